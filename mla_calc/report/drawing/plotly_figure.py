"""A chart as a figure of plotly: what a page shows, and what a notebook can show too."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..chart import Bars, Cells, Chart, Line, Mark, Points, Roof, Rule, Zones
from ..chart_data import number_at
from ..record import Results
from .plotly_areas import bars_traces, cells_traces, rule_shapes, zone_shapes
from .plotly_frame import FONT_PX, NARROW_PX, WIDE_PX, Frame, axes, folded, frames, safe
from .plotly_marks import Trace, line_traces, placed, points_traces, radius, roof_traces
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
TITLE_PX, CAPTION_PX, LEGEND_PX = 19, 13, 12


def plotly_figure(chart: Chart, results: Results, narrow: bool = False) -> Figure:
    """The chart as a ``plotly.graph_objects.Figure``; ``narrow``: its panels one below the other, for a phone.

    Every number in it is looked up in ``results``.

    Raises:
        InputError: plotly is not installed.
        ValueError: nothing is drawn along an axis that has no ends of its own.
    """
    graph_objects = plotly_module("graph_objects")
    data: list[Trace] = []
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    every = frames(chart, results, narrow)
    for frame in every:
        data += _panel(frame, results, layout)
        layout |= axes(frame, chart)
        layout["annotations"] += _panel_title(frame)
    _name_once(data)
    return graph_objects.Figure(data=data, layout=layout | _around(chart, every, data, layout["shapes"]))


def plotly_module(name: str) -> Any:
    """A module of plotly. Raises InputError where that is not installed."""
    try:
        return import_module(f"plotly.{name}")
    except ImportError:
        raise InputError("a figure as HTML needs plotly", "pip install 'mla-calc[html]'") from None


def _panel(frame: Frame, results: Results, layout: dict[str, Any]) -> list[Trace]:
    """The traces of a panel, the lowest first; what is no trace goes into ``layout``."""
    places = Places(frame)
    _keep_free(places, results)
    data: list[Trace] = []
    order = sorted(enumerate(frame.panel.marks), key=lambda each: _turn(each[1]))
    made: dict[int, list[Trace]] = {}
    for index, mark in order:
        made[index] = _mark(mark, frame, results, places, layout)
    for index in sorted(made):
        data += made[index]
    for trace in data:
        trace |= {"xaxis": f"x{frame.suffix}", "yaxis": f"y{frame.suffix}"}
        if trace["type"] == "bar" and not frame.panel.stacked:
            trace["offsetgroup"] = trace["name"]
    return data


def _turn(mark: Mark) -> int:
    """When a mark's texts take their places: what has no other place comes first."""
    return 0 if isinstance(mark, Zones | Cells) else 1 if isinstance(mark, Rule) else 2


def _keep_free(places: Places, results: Results) -> None:
    """Keep texts off every point of the panel."""
    panel = places.frame.panel
    for mark in panel.marks:
        if isinstance(mark, Line | Points):
            for x, y, record in placed(mark, places.frame, results):
                places.occupy(x, y, 0.75 * radius(mark, record), 0.75 * radius(mark, record))
        elif isinstance(mark, Rule) and mark.axis == "x" and (own := number_at(results, mark.path)) is not None:
            at = places.frame.position("x", own)
            if at is not None:
                places.wall(at)


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
    if isinstance(mark, Points):
        return points_traces(mark, frame, results, places)
    if isinstance(mark, Roof):
        return roof_traces(mark, frame, results)
    if isinstance(mark, Cells):
        return cells_traces(mark, frame, results, places)
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


def _around(chart: Chart, every: list[Frame], data: list[Trace], shapes: list[dict[str, Any]]) -> dict[str, Any]:
    """Title, caption, legend and margins, and the height that all take."""
    narrow = every[0].narrow
    title = folded(chart.title, 46 if narrow else 84)
    caption = _folded_caption(chart.caption, 78 if narrow else 132)
    head = 24 * (title.count("<br>") + 1) + 24 * (caption.count("<br>") + 1) + 10
    head += BUTTONS_PX * narrow
    head += 24 * any(panel.title for panel in chart.panels)
    most = max(len(frame.names["y"]) for frame in every)
    names = [item["name"] for item in (*data, *shapes) if item.get("showlegend")]
    foot = 60 + 29 * _legend_rows(names, NARROW_PX if narrow else WIDE_PX)
    plot = sum(frame.height_px for frame in every) if narrow else every[0].height_px
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
        "margin": {"l": 64, "r": 24, "t": head, "b": foot},
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "y": -50 / plot, "yanchor": "top",
            "font": {"size": LEGEND_PX}, "bgcolor": "rgba(255,255,255,0)",
        },
        "showlegend": bool(names),
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


def _legend_rows(names: list[str], width: int) -> int:
    """Rows of the legend, filled one after the other."""
    rows, taken = 0, float(width)
    for name in names:
        own = 46 + 0.58 * LEGEND_PX * len(name)
        rows, taken = (rows + 1, own) if taken + own > width else (rows, taken + own)
    return rows


def _has_bars(chart: Chart) -> bool:
    return any(isinstance(mark, Bars) for panel in chart.panels for mark in panel.marks)
