"""Where each panel of an interactive figure stands, and its axes as plotly wants them."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any, Literal

from .. import format as fmt
from ..chart import Axis, Bars, Cells, Chart, Line, Panel, Points, Rule
from ..chart_data import categories, ends_alone, limits, number_at, place, with_room
from ..direction import isolated
from ..record import Results
from .sheet import panel_limits
from .style import GRID, INK, SOFT

Ends = tuple[float, float]
Both = tuple[Ends, Ends]
Direction = Literal["x", "y"]
DIRECTIONS: tuple[Direction, Direction] = ("x", "y")
FONT_PX = 13
PAGE_PX = 47
"""Of a window's width: what the page's margins and a scroll bar take."""
LEFT_PX, RIGHT_PX = 64, 24
"""Beside the panels; at the left are ticks and the label, which long ones need more for."""
PANEL_PX = 430
BETWEEN_PX = 110
"""Between panels one below the other: ticks, label and title."""
BAR_PX = 21
NUMBER_PX = 6.6
"""The width of a character of a number beside a bar."""
NAME_CHARS, LABEL_CHARS = 26, 64
"""Where a category's name and a label of the legend are folded at the latest."""
LEGEND_PX, LEGEND_CHAR_PX, LEGEND_MARK_PX = 12, 7.0, 46
"""Of the legend: the height of its texts, the width of a character, and what stands beside a text."""
NAME_SHARE, LEAST_NAME_CHARS, NAME_CHAR_PX = 0.3, 15, 7.2
"""Of a panel's share of a figure: what the names of categories take at most; what they take at least; the width of a
character of them."""
LONG_WORD = 0.85
"""Of a line's length: where a word is broken that needs more than one."""
NAME_LINE_PX = 16
RULE_CHARS, MOST_RULE_CHARS, RULE_CHAR_PX = 18, 24, 7.0
"""Where the name of a rule beside a map is folded, and a long word of it; the width of a character."""
TICK_CHAR_PX, TICK_AIR_PX = 7.2, 8
"""Of the labels of an axis: the width of a character, and what is between two."""
Y_TICK_PX = 24
"""The least room of a tick's label along y."""
Y_LABEL_PX, Y_TICKS_PX = 24, 14
"""Across, of a y axis' label, and of its ticks without their texts."""
TITLE_CHAR_PX, TITLE_LINE_PX = 8.4, 18
"""Of a panel's title: the width of a character in the widest of the fonts, and the height of a line."""
MOST_TICKS, LEAST_TICK = 9, 4
"""Along a linear x axis that has room for more; and how long a tick's text is at least, as 0.25 is."""
D3_NUMBER = ",.12~g"
"""Numbers as people write them, in d3's notation: 0.5, 1, 10, 1,000."""
D3_KINDS = ("number", "integer")
"""Kinds whose ticks plotly can write itself, and so choose anew when the figure is zoomed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One panel's place: shares of the plot, ends in the axes' units, pixels as far as they are known before."""

    panel: Panel
    number: int
    across: Ends
    up: Ends
    ends: dict[Direction, Ends]
    names: dict[Direction, list[Any]]
    width_px: float
    height_px: float
    narrow: bool
    each_px: float
    tells: bool = True
    """Whether what pointing tells is made, which is long and is the same in windows of many widths."""

    @property
    def suffix(self) -> str:
        """What plotly appends to the names of this panel's axes: nothing for the first."""
        return "" if self.number == 1 else str(self.number)

    def label(self, text: str) -> str:
        """A label of the legend, folded so that a line of it fits."""
        chars = int((self.each_px - LEGEND_MARK_PX) / LEGEND_CHAR_PX) if self.narrow else LABEL_CHARS
        return folded(text, min(LABEL_CHARS, chars))

    def axis(self, direction: Direction) -> Axis:
        """The axis of a direction."""
        return self.panel.x if direction == "x" else self.panel.y

    def share(self, direction: Direction, at: float) -> float:
        """Where a value in the axis' units stands: 0 at its lower end, 1 at its upper."""
        low, high = self.ends[direction]
        if self.axis(direction).scale == "log":
            return log10(at / low) / log10(high / low)
        return (at - low) / (high - low)

    def at(self, direction: Direction, share: float) -> float:
        """The value in the axis' units at a share of it: what :meth:`share` is told."""
        low, high = self.ends[direction]
        return low * (high / low) ** share if self.axis(direction).scale == "log" else low + (high - low) * share

    def position(self, direction: Direction, own: Any) -> float | None:
        """Where a value of the results stands, in the axis' units, or as the number of its category."""
        axis = self.axis(direction)
        if axis.scale == "category":
            return place(self.names[direction], own)
        return None if axis.scale == "log" and own <= 0 else own / axis.unit


def safe(text: str) -> str:
    """A text for plotly, which reads a few tags and entities in whatever it shows."""
    return html.escape(isolated(text), quote=False).replace("\n", "<br>")


def folded(text: str, chars: int) -> str:
    """A text of plotly broken into lines of at most ``chars``, a word of its own line's length a little earlier.

    A text of many words has letters of every width, and one of few may have wide ones alone.
    """
    chars = min(chars, max(1, int(chars * LONG_WORD))) if max(map(len, text.split()), default=0) > chars / 2 else chars
    return "<br>".join(safe(line) for line in textwrap.wrap(text, chars)) or safe(text)


def told(axis: Axis, number: float) -> str:
    """A value in the axis' units, in the axis' format."""
    whole: int | float = int(number) if number == int(number) and abs(number) < 1e15 else number
    return fmt.shown(whole, "number" if axis.kind == "integer" and isinstance(whole, float) else axis.kind)


def frames(chart: Chart, results: Results, figure_px: float, narrow: bool, tells: bool = True) -> list[Frame]:
    """The places of all panels of a figure so wide: side by side, or one below the other where it is narrow."""
    count = len(chart.panels)
    shared = _limits(chart.panels, results) if chart.shared else None
    each = _each_px(chart, figure_px, narrow)
    height = PANEL_PX if not narrow else PANEL_PX - 90
    height = max(height, *(_bars_px(panel, results, each) for panel in chart.panels))
    plot = figure_px - sum(margins_px(chart, results, figure_px, narrow))
    gap = _gap(chart, results, each, plot, height, narrow) if count > 1 else 0.0
    part = (1 - gap * (count - 1)) / count
    width = plot if narrow else plot * part
    found = []
    for number, panel in enumerate(chart.panels, 1):
        names: dict[Direction, list[Any]] = {"x": [], "y": []}
        for direction, axis in zip(DIRECTIONS, (panel.x, panel.y), strict=True):
            if axis.scale == "category":
                names[direction] = categories(panel, results, direction)
        start = (number - 1) * (part + gap)
        span = (start, start + part)
        ends = _ends(panel, results, names, shared)
        if panel.x.scale == "linear" and panel.x.high is None:
            ends["x"] = with_room(ends["x"], [(at, (len(text) * NUMBER_PX + 10) / width)
                                              for at, text in ends_alone(panel, results)])  # fmt: skip
        found.append(
            Frame(panel, number, *(((0.0, 1.0), (1 - span[1], 1 - span[0])) if narrow else (span, (0.0, 1.0))),
                  ends, names, width, height, narrow, each, tells)
        )  # fmt: skip
    return found


def margins_px(chart: Chart, results: Results, figure_px: float, narrow: bool) -> tuple[float, float]:
    """What stands at the left and at the right of all panels: ticks and labels, and the names of rules."""
    left = chart.panels if narrow else chart.panels[:1]
    right = chart.panels if narrow else chart.panels[-1:]
    each = _each_px(chart, figure_px, narrow)
    before = max(LEFT_PX, *(_before_px(panel, results, each) for panel in left))
    return before, RIGHT_PX + max(names_px(panel, results) for panel in right)


def _each_px(chart: Chart, figure_px: float, narrow: bool) -> float:
    """The width of a figure that a panel has with what stands beside it."""
    return figure_px if narrow else figure_px / len(chart.panels)


def _gap(chart: Chart, results: Results, each_px: float, plot_px: float, height: float, narrow: bool) -> float:
    """Between panels, as a share of all of them: room for what stands between two."""
    count = len(chart.panels)
    if narrow:
        between = BETWEEN_PX + TITLE_LINE_PX * (max(title_lines(panel, plot_px) for panel in chart.panels) - 1)
        return between / (height * count + between * (count - 1))
    beside = max(names_px(panel, results) for panel in chart.panels[:-1])
    if chart.shared:
        return max(0.03, beside / plot_px)
    before = max(_before_px(panel, results, each_px) for panel in chart.panels[1:])
    return (beside + RIGHT_PX + before) / plot_px


def _before_px(panel: Panel, results: Results, each_px: float) -> float:
    """What a panel's ticks and label along y need at its left."""
    return Y_TICKS_PX + Y_LABEL_PX * bool(panel.y.label) + _y_texts_px(panel, results, each_px)


def _y_texts_px(panel: Panel, results: Results, each_px: float) -> float:
    if panel.y.scale != "category":
        low, high = _limits([panel], results)[1]
        ticks = [tick / panel.y.unit for tick in panel.y.ticks] or [low, high]
        return TICK_CHAR_PX * max(len(rounded(panel.y, tick)) for tick in ticks)
    names = [shown_name(panel.y, name, each_px) for name in categories(panel, results, "y")]
    return NAME_CHAR_PX * max((len(line) for name in names for line in name.split("<br>")), default=0)


def rounded(axis: Axis, number: float) -> str:
    """A tick's text near a number, to see how long it is: of its first digit alone."""
    return told(axis, float(f"{number:.0e}"))


def shown_name(axis: Axis, name: Any, each_px: float) -> str:
    """A category's name, folded so that it leaves room for the panel."""
    chars = max(LEAST_NAME_CHARS, int(NAME_SHARE * each_px / NAME_CHAR_PX))
    return folded(fmt.shown(name, axis.kind), min(NAME_CHARS, chars))


def title_lines(panel: Panel, width_px: float) -> int:
    """Of a panel's title, above a panel so wide."""
    return shown_title(panel, width_px).count("<br>") + 1


def shown_title(panel: Panel, width_px: float) -> str:
    """A panel's title, folded so that it stands above no other panel."""
    return folded(panel.title, max(1, int((width_px + RIGHT_PX) / TITLE_CHAR_PX))) if panel.title else ""


def _bars_px(panel: Panel, results: Results, each_px: float) -> int:
    """The height that a panel's bars and their names need to be told apart."""
    bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
    if not bars:
        return 0
    names = [shown_name(panel.y, name, each_px) for name in categories(panel, results, "y")]
    tallest = max((name.count("<br>") + 2 for name in names), default=0)
    beside = 1 if panel.stacked else len(bars)
    return max(BAR_PX * (beside + 1), NAME_LINE_PX * tallest) * len(names)


def mark_key(mark: Line | Points | Cells | Bars, direction: Direction) -> str:
    """The key that a mark has on an axis."""
    if isinstance(mark, Bars):
        return mark.value if direction == "x" else mark.name
    return mark.x if direction == "x" else mark.y


def _ends(
    panel: Panel, results: Results, names: dict[Direction, list[Any]], shared: Both | None
) -> dict[Direction, Ends]:
    """The ends of both axes: of categories by their places."""
    found: dict[Direction, Ends] = {}
    for direction, ends in zip(DIRECTIONS, shared or _limits([panel], results), strict=True):
        axis = panel.x if direction == "x" else panel.y
        found[direction] = (-0.5, len(names[direction]) - 0.5) if axis.scale == "category" else ends
    return found


def _limits(panels: Sequence[Panel], results: Results) -> Both:
    """The ends that panels share: of a map as far as its cells reach, as in a picture."""
    return panel_limits(panels, results) if any(map(is_map, panels)) else limits(panels, results)


def is_map(panel: Panel) -> bool:
    """Whether a panel has cells."""
    return any(isinstance(mark, Cells) for mark in panel.marks)


def beside_map(panel: Panel, mark: Rule) -> bool:
    """Whether a rule's text stands at the right of its panel, where it covers no cell."""
    return mark.axis == "y" and panel.y.scale != "category" and is_map(panel)


def rules_at(frame: Frame, results: Results, direction: Direction) -> list[float]:
    """Where the rules across an axis lie, in its units."""
    rules = [mark for mark in frame.panel.marks if isinstance(mark, Rule) and mark.axis == direction]
    owns = [number_at(results, rule.path) for rule in rules]
    return [at for own in owns if own is not None and (at := frame.position(direction, own)) is not None]


def rule_names(panel: Panel, results: Results) -> list[tuple[float, Rule, str]]:
    """The rules that have their texts beside their panel, where they lie in the axis' units, and the folded texts."""
    rules = [mark for mark in panel.marks if isinstance(mark, Rule) and mark.text and beside_map(panel, mark)]
    if not rules:
        return []
    low, high = _limits([panel], results)[1]
    found = []
    for mark in rules:
        own = number_at(results, mark.path)
        if own is not None and low <= own / panel.y.unit <= high:
            text = mark.text.replace("{}", fmt.shown(own, mark.kind))
            lines = textwrap.wrap(text, RULE_CHARS, break_long_words=False)
            lines = [part for line in lines for part in textwrap.wrap(line, MOST_RULE_CHARS)]
            found.append((own / panel.y.unit, mark, "<br>".join(map(safe, lines))))
    return found


def names_px(panel: Panel, results: Results) -> float:
    """The room that the texts of rules need beside a map."""
    lines = [line for _, _, text in rule_names(panel, results) for line in text.split("<br>")]
    return max(map(len, lines)) * RULE_CHAR_PX + 10 if lines else 0.0


def axes(frame: Frame, chart: Chart) -> dict[str, Any]:
    """Both axes of a panel, as plotly's layout has them."""
    inner = chart.shared and frame.number > 1 and not frame.narrow
    x, y = _axis(frame, "x"), _axis(frame, "y")
    x |= {"domain": list(frame.across), "anchor": f"y{frame.suffix}"}
    y |= {"domain": list(frame.up), "anchor": f"x{frame.suffix}"}
    if frame.panel.y.scale == "category" and any(isinstance(mark, Bars) for mark in frame.panel.marks):
        y["range"] = y["range"][::-1]  # as in a table, the first at the top
    if chart.shared and frame.number > 1:
        x["matches"], y["matches"] = "x", "y"
    if inner:
        y |= {"showticklabels": False, "title": {"text": ""}}
    return {f"xaxis{frame.suffix}": x, f"yaxis{frame.suffix}": y}


def _axis(frame: Frame, direction: Direction) -> dict[str, Any]:
    axis, ends = frame.axis(direction), frame.ends[direction]
    made: dict[str, Any] = {
        "title": {"text": safe(axis.label), "font": {"size": FONT_PX}, "standoff": 8},
        "type": "log" if axis.scale == "log" else "linear",
        "automargin": True,
        "gridcolor": GRID,
        "linecolor": SOFT,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": SOFT,
        "tickfont": {"color": INK, "size": 12},
        "zeroline": False,
    }
    if axis.scale == "category":
        names = [shown_name(axis, name, frame.each_px) for name in frame.names[direction]]
        places = {"tickvals": list(range(len(names))), "ticktext": names, "range": list(ends)}
        return made | places | {"showgrid": False, "ticks": ""}
    made["range"] = [log10(end) for end in ends] if axis.scale == "log" else list(ends)
    ticks = sorted(tick / axis.unit for tick in axis.ticks) or ([] if axis.kind in D3_KINDS else _ticks(axis, ends))
    level = {"tickangle": 0} if direction == "x" else {}
    if ticks:
        texts = [safe(told(axis, tick)) for tick in ticks]
        return made | level | {"tickvals": ticks, "ticktext": _thinned(frame, ticks, texts) if level else texts}
    longest = max(len(rounded(axis, end)) for end in ends)
    longest = longest if axis.scale == "log" else max(longest, LEAST_TICK)
    across = frame.width_px / (longest * TICK_CHAR_PX + TICK_AIR_PX)
    more = {}
    if axis.scale == "log":
        room = across if direction == "x" else frame.height_px / Y_TICK_PX
        more = {"nticks": _most_ticks(log10(ends[1] / ends[0]), room)}
    elif direction == "x":
        more = {"nticks": max(2, min(MOST_TICKS, int(across)))}
    return made | level | more | {"tickformat": D3_NUMBER, "exponentformat": "none"}


def _thinned(frame: Frame, ticks: list[float], texts: list[str]) -> list[str]:
    """The labels of ticks along x, every second or third of them alone where others would touch."""
    at = [frame.share("x", tick) * frame.width_px for tick in ticks]
    half = [(len(text) * TICK_CHAR_PX + TICK_AIR_PX) / 2 for text in texts]
    for step in range(1, len(ticks) + 1):
        kept = range(0, len(ticks), step)
        if all(at[first] + half[first] <= at[then] - half[then] for first, then in pairwise(kept)):
            break
    return [text if place in kept else "" for place, text in enumerate(texts)]


def _most_ticks(decades: float, room: float) -> int:
    """The bound on ticks by which plotly labels what ``room`` has place for.

    It labels every number of a decade at more than 1/0.3 ticks a decade, 1, 2 and 5 at 1/0.7 and more, and at fewer
    every decade or every second or third alone. Between 1 and 2 is 0.3 of a decade.
    """
    if room >= decades / log10(2):
        return max(2, ceil(decades / 0.7))
    return max(2, ceil(decades / ceil(decades / room)))


def _ticks(axis: Axis, ends: Ends) -> list[float]:
    """Round numbers within the ends, for a format that plotly does not know."""
    low, high = ends
    if axis.scale == "log":
        steps = (1, 2, 5) if high / low < 200 else (1,)
        powers = range(floor(log10(low)), ceil(log10(high)) + 1)
        return [
            float(f"{step}e{power}") for power in powers for step in steps if low <= float(f"{step}e{power}") <= high
        ]
    size = 10.0 ** floor(log10((high - low) / 4))
    step = next(step * size for step in (1, 2, 2.5, 5, 10) if (high - low) / (step * size) <= 6)
    return [round(at * step, 12) for at in range(ceil(low / step), floor(high / step) + 1)]
