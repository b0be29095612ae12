"""A chart as a figure of plotly: what a page shows, and what a notebook can show too."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..chart import Bars, Cells, Chart, Line, Mark, Points, Roof, Rule, Zones
from ..chart_data import number_at
from ..record import Results
from .cells import octaves_of
from .plotly_areas import bars_traces, rule_shapes, zone_shapes
from .plotly_cells import KEY_AT_PX, SIDES_LEGEND, cells_traces, colour_axis, is_text, names_of_rules, ratios_of
from .plotly_cloud import Cloud, cloud_of
from .plotly_frame import FONT_PX, NARROW_PX, WIDE_PX, Frame, axes, folded, frames, names_px, safe
from .plotly_hover import NEAR_PX, Hit, wrapped
from .plotly_marks import Trace, line_traces, placed, points_traces, radius, roof_points, roof_traces
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
TITLE_PX, CAPTION_PX, LEGEND_PX = 19, 13, 12
TITLE_CHAR_PX, CAPTION_CHAR_PX = 11.6, 7.0
"""The mean width of a character, in the widest of the fonts."""
NARROW_BELOW_PX = 820
WINDOWS_PX = (360, 480, 600, 700, 760, NARROW_BELOW_PX, 960, 1100, 1260)
"""Widths of the window from which on title, caption and legend are laid out anew."""
BESIDE_PX = 60
"""Of a window's width: what the page and the figure leave free at both sides."""
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
CROWD = 400
"""Points of a mark, of which a text covers some wherever it is."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart's panels as plotly has them: all but what stands around, which depends on the window's width."""

    chart: Chart
    frames: list[Frame]
    data: list[Trace]
    layout: dict[str, Any]
    told: tuple[str, ...]
    """What the caption says beside the chart's own."""
    beside_px: float = 0.0
    """What the names of rules need at the right."""

    @property
    def plot_px(self) -> float:
        """The height of the panels, and of what is between those that are one below the other."""
        low, high = self.frames[0].up
        return self.frames[0].height_px / (high - low)


def plotly_figure(chart: Chart, results: Results, narrow: bool = False) -> Figure:
    """The chart as a ``plotly.graph_objects.Figure``; ``narrow``: its panels one below the other, for a phone.

    Every number in it is looked up in ``results``.

    Raises:
        InputError: plotly is not installed.
        ValueError: nothing is drawn along an axis that has no ends of its own.
    """
    graph_objects = plotly_module("graph_objects")
    made = _drawn(chart, results, narrow)
    return graph_objects.Figure(data=made.data, layout=made.layout | _around(made, NARROW_PX if narrow else WIDE_PX))


def page_figure(chart: Chart, results: Results) -> dict[str, Any]:
    """The chart for a window of any width, as plain data that a page chooses from.

    ``wide`` and ``narrow`` have data and layout; the data of ``narrow`` is what differs from ``wide``'s, trace by
    trace. ``heads`` are what stands around, each ``from`` a width of the window on, and whether it is of ``narrow``.

    Raises:
        InputError: plotly is not installed.
        ValueError: nothing is drawn along an axis that has no ends of its own.
    """
    graph_objects = plotly_module("graph_objects")
    both = {narrow: _drawn(chart, results, narrow) for narrow in (False, True)}
    plain = {
        narrow: graph_objects.Figure(data=made.data, layout=made.layout).to_plotly_json()
        for narrow, made in both.items()
    }
    for made in plain.values():
        made["layout"].pop("template", None)  # plotly's own look, which what stands around has none of
    plain[True]["data"] = [
        {key: each for key, each in own.items() if other.get(key) != each}
        for own, other in zip(plain[True]["data"], plain[False]["data"], strict=True)
    ]
    heads = [
        {"from": width if at else 0, "narrow": width < NARROW_BELOW_PX,
         "layout": _around(both[width < NARROW_BELOW_PX], width - BESIDE_PX)}
        for at, width in enumerate(WINDOWS_PX)
    ]  # fmt: skip
    return {"wide": plain[False], "narrow": plain[True], "heads": heads}


def _drawn(chart: Chart, results: Results, narrow: bool) -> Drawn:
    data: list[Trace] = []
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    told: list[str] = []
    every = frames(chart, results, narrow)
    ratios = ratios_of(chart, results)
    for frame in every:
        clouds = _clouds(frame, results)
        data += _panel(frame, results, layout, clouds, octaves_of(ratios))
        layout |= axes(frame, chart)
        layout["annotations"] += [*_panel_title(frame), *names_of_rules(frame, results)]
        told += [cloud.told() for cloud in clouds.values()]
    _name_once([*data, *layout["shapes"]])
    shown = every if narrow else every[-1:]
    beside = max(names_px(frame.panel, results) for frame in shown)
    made = Drawn(chart, every, data, layout, tuple(filter(None, told)), beside)
    if any(trace.get("coloraxis") for trace in data):
        layout["coloraxis"] = colour_axis(ratios, made.plot_px)
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
    for index, mark in order:
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
    return 1 if isinstance(mark, Rule) else 2 if isinstance(mark, Line) and mark.must else 3


def _keep_free(places: Places, results: Results, clouds: dict[int, Cloud]) -> None:
    """Keep texts off every point and line of the panel; of a crowd of points there is nowhere to keep them off."""
    frame = places.frame
    for index, mark in enumerate(frame.panel.marks):
        points: list[tuple[float, float, dict[str, Any]]] = []
        if isinstance(mark, Points):
            points = [each[:3] for each in clouds[index].kept]
        elif isinstance(mark, Line):
            points = placed(mark, frame, results)
            places.way([each[:2] for each in points])
        elif isinstance(mark, Roof):
            places.way(roof_points(mark, frame, results))
        elif isinstance(mark, Rule) and (own := number_at(results, mark.path)) is not None:
            at = frame.position(mark.axis, own)
            if at is not None:
                places.wall(mark.axis, at)
        if isinstance(mark, Line | Points):
            few = len(points) <= CROWD
            for x, y, record in points:
                size = radius(mark, record)
                places.hits.add(Hit(mark, record, *places.at(x, y), size, NEAR_PX if few else 0.0))
                if few:
                    places.occupy(x, y, size, size)


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
    look = {"xanchor": "left", "yanchor": "bottom", "yshift": 4, "showarrow": False, "font": {"size": FONT_PX + 1}}
    return [place | look | {"text": safe(frame.panel.title)}]


def _name_once(data: list[Trace]) -> None:
    """One entry of the legend for what several panels draw alike; it switches all of them."""
    seen: set[str] = set()
    for trace in data:
        if trace.get("showlegend"):
            trace["showlegend"] = trace["legendgroup"] not in seen
            seen.add(trace["legendgroup"])


def _around(made: Drawn, width_px: int) -> dict[str, Any]:
    """Title, caption, legend and margins, and the height that all take, where there is room for ``width_px``."""
    chart, every = made.chart, made.frames
    narrow = every[0].narrow
    title = folded(chart.title, int((width_px if narrow else width_px - BUTTONS_WIDE_PX) / TITLE_CHAR_PX))
    caption = _folded_caption(CAPTION_BETWEEN.join((chart.caption, *made.told)), int(width_px / CAPTION_CHAR_PX))
    head = 24 * (title.count("<br>") + 1) + 24 * (caption.count("<br>") + 1) + 10
    head += BUTTONS_PX * narrow
    head += 24 * any(panel.title for panel in chart.panels)
    most = max(len(frame.names["y"]) for frame in every)
    named = [item for item in (*made.data, *made.layout["shapes"]) if item.get("showlegend")]
    names = [item["name"] for item in named if item.get("legend") != SIDES_LEGEND]
    sides = [item["name"] for item in named if item.get("legend") == SIDES_LEGEND]
    key = KEY_PX * ("coloraxis" in made.layout)
    below = [LEGEND_AT_PX + key, LEGEND_AT_PX + key + _legend_px(sides, width_px)]
    foot = 10 + below[1] + _legend_px(names, width_px)
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
        "margin": {"l": 64, "r": 24 + made.beside_px, "t": head, "b": foot},
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


def _legend_px(names: list[str], width: int) -> int:
    """The height of the legend, whose rows are filled one after the other."""
    heights: list[int] = []
    taken = float(width)
    for name in names:
        lines = name.split("<br>")
        own = 46 + 0.58 * LEGEND_PX * max(map(len, lines))
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
