"""A chart as a figure of plotly: what a page shows, and what a notebook can show too."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..chart import Bars, Cells, Chart, Line, Mark, Points, Roof, Rule, Zones
from ..record import Results
from .cells import octaves_of
from .plotly_areas import bars_traces, rule_shapes, zone_shapes
from .plotly_cells import KEY_AT_PX, SIDES_LEGEND, cells_traces, colour_axis, is_text, names_of_rules, ratios_of
from .plotly_cloud import Cloud, cloud_of
from .plotly_frame import (
    DIRECTIONS,
    FONT_PX,
    LEGEND_CHAR_PX,
    LEGEND_MARK_PX,
    LEGEND_PX,
    PAGE_PX,
    TITLE_LINE_PX,
    Frame,
    axes,
    folded,
    frames,
    margins_px,
    rules_at,
    shown_title,
    title_lines,
)
from .plotly_hover import NEAR_PX, Hit, wrapped
from .plotly_marks import Trace, line_traces, placed, points_traces, radius, roof_points, roof_traces, settle_musts
from .plotly_texts import TEXT_PX, Places
from .style import INK, SOFT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"
CAPTION_BETWEEN = "  ·  "
FEW_BARS = 4
"""Categories, below which bars do not grow wider."""
BUTTONS_PX = 28
"""Of plotly's buttons, which stand above the title of a narrow figure."""
BUTTONS_WIDE_PX = 190
"""Of plotly's buttons, which stand beside the title of a wide figure."""
TITLE_PX, CAPTION_PX = 19, 13
HEAD_LINE_PX = 1.3 * TITLE_PX
"""Of a line of title or caption: plotly has one height for both."""
TITLE_CHAR_PX, CAPTION_CHAR_PX = 12.1, 7.4
"""The mean width of a character in the widest of the fonts, where most are capitals and digits, as of GPUs."""
NARROW_BELOW_PX, LEAST_PANEL_PX = 820, 180
"""Windows that have their panels one below the other: those below a width, or with less of it for each panel."""
WINDOWS_PX = (360, 480, 600, 700, 760, NARROW_BELOW_PX, 960, 1100, 1260)
"""Widths of the window from which on all texts are laid out anew, each for the smallest that it is for."""
TOLD_AT_PX = {False: 1100, True: 700}
"""Those of the windows for which it is made what pointing tells: of wide ones and of narrow ones."""
HEAD_PX = 13
"""What title and caption leave free of a figure's width."""
LEGEND_ROW_PX, LEGEND_LINE_PX = 29, 16
"""Of a row of the legend, and of every line more in it."""
LEGEND_AT_PX = 50
"""From the panels' foot to the legend."""
KEY_PX = KEY_AT_PX - 50 + 38
"""Of the key of a map's colours, with its ticks."""
LEGEND: dict[str, Any] = {
    "orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top",
    "font": {"size": LEGEND_PX}, "bgcolor": "rgba(255,255,255,0)",
}  # fmt: skip
RULE_TURN = 1
"""After which the texts of lines take their places that must be there."""
CROWD = 400
"""Points of a mark, of which a text covers some wherever it is."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart for windows from a width on. ``told``: what the caption says beside the chart's own."""

    chart: Chart
    frames: list[Frame]
    data: list[Trace]
    layout: dict[str, Any]
    told: tuple[str, ...]
    figure_px: float
    margins_px: tuple[float, float]

    @property
    def plot_px(self) -> float:
        """The height of the panels, and of what is between those that are one below the other."""
        low, high = self.frames[0].up
        return self.frames[0].height_px / (high - low)

    @property
    def across_px(self) -> float:
        """The width of the panels, and of what is between those side by side."""
        return self.figure_px - sum(self.margins_px)


def plotly_figure(chart: Chart, results: Results, narrow: bool = False) -> Figure:
    """The chart as a ``plotly.graph_objects.Figure``; ``narrow``: its panels one below the other, for a phone.

    Every number in it is looked up in ``results``.

    Raises:
        InputError: plotly is not installed.
        ValueError: nothing is drawn along an axis that has no ends of its own.
    """
    graph_objects = plotly_module("graph_objects")
    made = _drawn(chart, results, TOLD_AT_PX[narrow], narrow)
    return graph_objects.Figure(data=made.data, layout=made.layout | _around(made))


def page_figure(chart: Chart, results: Results) -> dict[str, Any]:
    """The chart for a window of any width, as plain data that a page chooses from.

    ``wide`` and ``narrow`` have data and layout; the data of ``narrow`` is what differs from ``wide``'s, trace by
    trace. ``windows`` have what differs from one of both, each ``from`` a width of the window on: texts have other
    places in each.

    Raises:
        InputError: plotly is not installed.
        ValueError: nothing is drawn along an axis that has no ends of its own.
    """
    graph_objects = plotly_module("graph_objects")
    both = {narrow: _drawn(chart, results, width, narrow) for narrow, width in TOLD_AT_PX.items()}
    plain = {
        narrow: graph_objects.Figure(data=made.data, layout=made.layout | _around(made)).to_plotly_json()
        for narrow, made in both.items()
    }
    windows = []
    for at, width in enumerate(WINDOWS_PX):
        narrow = width < max(NARROW_BELOW_PX, LEAST_PANEL_PX * len(chart.panels))
        base = both[narrow]
        own = base if width == TOLD_AT_PX[narrow] else _drawn(chart, results, width, narrow, tells=False)
        windows.append(
            {"from": width if at else 0, "narrow": narrow,
             "data": [_changes(trace, other) for trace, other in zip(own.data, base.data, strict=True)],
             "layout": _changes(own.layout | _around(own), base.layout | _around(base))}
        )  # fmt: skip
    plain[True]["data"] = [
        _changes(own, other) for own, other in zip(plain[True]["data"], plain[False]["data"], strict=True)
    ]
    return {"wide": plain[False], "narrow": plain[True], "windows": windows}


def _changes(own: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What ``own`` has otherwise."""
    return {key: each for key, each in own.items() if key not in other or other[key] != each}


def _drawn(chart: Chart, results: Results, window_px: int, narrow: bool, tells: bool = True) -> Drawn:
    data: list[Trace] = []
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    told: list[str] = []
    figure_px = window_px - PAGE_PX
    every = frames(chart, results, figure_px, narrow, tells)
    ratios = ratios_of(chart, results)
    for frame in every:
        clouds = _clouds(frame, results)
        data += _panel(frame, results, layout, clouds, octaves_of(ratios))
        layout |= axes(frame, chart)
        layout["annotations"] += [*_panel_title(frame), *names_of_rules(frame, results)]
        told += [cloud.told() for cloud in clouds.values()]
    _name_once([*data, *layout["shapes"]])
    margins = margins_px(chart, results, figure_px, narrow)
    made = Drawn(chart, every, data, layout, tuple(filter(None, told)), figure_px, margins)
    if any(trace.get("coloraxis") for trace in data):
        layout["coloraxis"] = colour_axis(ratios, made.plot_px, made.across_px)
    return made


def _clouds(frame: Frame, results: Results) -> dict[int, Cloud]:
    """The points of each mark that has any, by the mark's place in the panel."""
    return {
        at: cloud_of(placed(mark, frame, results), frame, mark.label)
        for at, mark in enumerate(frame.panel.marks)
        if isinstance(mark, Points)
    }


def plotly_module(name: str) -> Any:
    """A module of plotly. Raises InputError where that is not installed."""
    try:
        return import_module(f"plotly.{name}")
    except ImportError:
        raise InputError("a figure as HTML needs plotly", "pip install 'mla-calc[html]'") from None


def _panel(
    frame: Frame, results: Results, layout: dict[str, Any], clouds: dict[int, Cloud], octaves: float
) -> list[Trace]:
    """The traces of a panel, the lowest first; what is no trace goes into ``layout``."""
    places = Places(frame)
    _keep_free(places, results, clouds)
    data: list[Trace] = []
    order = sorted(enumerate(frame.panel.marks), key=lambda each: _turn(each[1]))
    made: dict[int, list[Trace]] = {}
    settled = False
    for index, mark in order:
        if not settled and _turn(mark) > RULE_TURN:
            settle_musts([each for each in frame.panel.marks if isinstance(each, Line)], frame, results, places)
            settled = True
        if isinstance(mark, Points):
            made[index] = points_traces(mark, frame, clouds[index], places)
        elif isinstance(mark, Cells):
            made[index] = cells_traces(mark, frame, results, places, octaves)
        else:
            made[index] = _mark(mark, frame, results, places, layout)
    for index in sorted(made):
        data += made[index]
    data.sort(key=is_text)  # the numbers of cells above the lines, their grounds around them
    layout["annotations"] += places.notes
    for trace in data:
        trace |= {"xaxis": f"x{frame.suffix}", "yaxis": f"y{frame.suffix}"}
        if "hovertext" in trace:
            trace["hovertext"] = wrapped(trace["hovertext"])
        if trace["type"] == "bar" and not frame.panel.stacked:
            trace["offsetgroup"] = trace["name"]
    return data


def _turn(mark: Mark) -> int:
    """When a mark's texts take their places: what has no other place comes first."""
    if isinstance(mark, Zones | Cells):
        return 0
    return RULE_TURN if isinstance(mark, Rule) else 2 if isinstance(mark, Line) and mark.must else 3


def _keep_free(places: Places, results: Results, clouds: dict[int, Cloud]) -> None:
    """Keep texts off every point and line of the panel; of a crowd of points there is nowhere to keep them off."""
    frame = places.frame
    for direction in DIRECTIONS:
        for at in rules_at(frame, results, direction):
            places.wall(direction, at)
    for index, mark in enumerate(frame.panel.marks):
        points: list[tuple[float, float, dict[str, Any]]] = []
        if isinstance(mark, Points):
            points = [each[:3] for each in clouds[index].kept]
        elif isinstance(mark, Line):
            points = placed(mark, frame, results)
            places.way([each[:2] for each in points])
        elif isinstance(mark, Roof):
            places.way(roof_points(mark, frame, results))
        if isinstance(mark, Line | Points):
            few = len(points) <= CROWD
            is_seen = isinstance(mark, Points) or mark.markers
            for x, y, record in points:
                size = radius(mark, record)
                places.hits.add(Hit(mark, record, *places.at(x, y), size, NEAR_PX if few else 0.0))
                if few:
                    places.occupy(x, y, size, is_seen)


def _mark(mark: Mark, frame: Frame, results: Results, places: Places, layout: dict[str, Any]) -> list[Trace]:
    if isinstance(mark, Zones):
        shapes, names = zone_shapes(mark, frame, results, places)
        layout["shapes"] += shapes
        layout["annotations"] += names
        return []
    if isinstance(mark, Rule):
        layout["shapes"] += rule_shapes(mark, frame, results, places)
        return []
    if isinstance(mark, Line):
        return line_traces(mark, frame, results, places)
    if isinstance(mark, Roof):
        return roof_traces(mark, frame, results, places)
    assert isinstance(mark, Bars)
    return bars_traces(mark, frame, results)


def _panel_title(frame: Frame) -> list[dict[str, Any]]:
    if not frame.panel.title:
        return []
    place = {"xref": f"x{frame.suffix} domain", "yref": f"y{frame.suffix} domain", "x": 0, "y": 1}
    look = {"xanchor": "left", "yanchor": "bottom", "align": "left", "yshift": 4, "showarrow": False}
    text = shown_title(frame.panel, frame.width_px)
    return [place | look | {"font": {"size": FONT_PX + 1}, "text": text}]


def _name_once(data: list[Trace]) -> None:
    """One entry of the legend for what several panels draw alike; it switches all of them."""
    seen: set[str] = set()
    for trace in data:
        if trace.get("showlegend"):
            trace["showlegend"] = trace["legendgroup"] not in seen
            seen.add(trace["legendgroup"])


def _around(made: Drawn) -> dict[str, Any]:
    """Title, caption, legend and margins, and the height that all take."""
    chart, every = made.chart, made.frames
    narrow, width_px = every[0].narrow, made.figure_px - HEAD_PX
    title = folded(chart.title, int((width_px if narrow else width_px - BUTTONS_WIDE_PX) / TITLE_CHAR_PX))
    caption = _folded_caption(CAPTION_BETWEEN.join((chart.caption, *made.told)), int(width_px / CAPTION_CHAR_PX))
    head = HEAD_LINE_PX * (title.count("<br>") + caption.count("<br>") + 2) + 10
    head += BUTTONS_PX * narrow
    if any(panel.title for panel in chart.panels):
        lines = max(title_lines(frame.panel, frame.width_px) for frame in every)
        head += TITLE_LINE_PX * lines + 6
    most = max(len(frame.names["y"]) for frame in every)
    named = [item for item in (*made.data, *made.layout["shapes"]) if item.get("showlegend")]
    names = [item["name"] for item in named if item.get("legend") != SIDES_LEGEND]
    sides = [item["name"] for item in named if item.get("legend") == SIDES_LEGEND]
    key = KEY_PX * ("coloraxis" in made.layout)
    below = [LEGEND_AT_PX + key, LEGEND_AT_PX + key + _legend_px(sides, made.across_px)]
    foot = 10 + below[1] + _legend_px(names, made.across_px)
    plot = made.plot_px
    height = head + plot + foot
    return {
        "template": {},
        "title": {
            "text": f"<b>{title}</b><br><span style='font-size:{CAPTION_PX}px;color:{SOFT}'>{caption}</span>",
            "font": {"size": TITLE_PX, "color": INK},
            "x": 0, "xref": "container", "xanchor": "left",
            "y": 1 - (22 + BUTTONS_PX * narrow) / height, "yref": "container", "yanchor": "top",
            "pad": {"l": 10, "t": 0},
        },
        "font": {"family": FONT, "size": FONT_PX, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "height": height,
        "margin": {"l": made.margins_px[0], "r": made.margins_px[1], "t": head, "b": foot},
        "legend": LEGEND | {"y": -below[1] / plot},
        SIDES_LEGEND: LEGEND | {"y": -below[0] / plot, "itemclick": False, "itemdoubleclick": False},
        "showlegend": bool(named),
        "barmode": "stack" if any(panel.stacked for panel in chart.panels) else "group",
        "bargap": 1 - 0.72 * min(1.0, most / FEW_BARS),
        "uniformtext": {"minsize": TEXT_PX, "mode": "hide"} if _has_bars(chart) else {},
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "white", "font": {"family": FONT, "size": 12, "color": INK}, "align": "left", "namelength": -1,
        },
        "dragmode": "zoom",
        "uirevision": "kept",
    }  # fmt: skip


def _folded_caption(caption: str, chars: int) -> str:
    """A caption broken between its parts, where it is longer than a line."""
    lines: list[str] = []
    for part in caption.split(CAPTION_BETWEEN):
        if lines and len(lines[-1]) + len(CAPTION_BETWEEN) + len(part) <= chars:
            lines[-1] += CAPTION_BETWEEN + part
        else:
            lines.append(part)
    return "<br>".join(folded(line, chars) for line in lines)


def _legend_px(names: list[str], width: float) -> int:
    """The height of the legend, whose rows are filled one after the other."""
    heights: list[int] = []
    taken = width
    for name in names:
        lines = name.split("<br>")
        own = LEGEND_MARK_PX + LEGEND_CHAR_PX * max(map(len, lines))
        tall = LEGEND_ROW_PX + LEGEND_LINE_PX * (len(lines) - 1)
        if taken + own > width:
            heights.append(tall)
            taken = own
        else:
            heights[-1] = max(heights[-1], tall)
            taken += own
    return sum(heights)


def _has_bars(chart: Chart) -> bool:
    return any(isinstance(mark, Bars) for panel in chart.panels for mark in panel.marks)
