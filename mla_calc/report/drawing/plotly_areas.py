"""The bars, zones and rules of a chart as plotly's traces and shapes."""

from __future__ import annotations

from math import log10
from typing import Any

from .. import format as fmt
from ..chart import Bars, Rule, Zones
from ..chart_data import bar_text, column, drawn, number_at, value
from ..record import Results
from .plotly_frame import LABEL_CHARS, Frame, beside_map, folded, safe
from .plotly_marks import DASHES, FAINT, Trace, told_by
from .plotly_texts import TEXT_PX, Places, row_px
from .style import ABOVE_SHADE, BELOW_SHADE, COLOURS, SOFT

PATTERNS = ("", "/", ".", "x", "\\", "+")
"""Of stacked bars, by their place, so that grey print tells them."""
FAR = 1e6
"""How far past the panel a zone goes on, for whoever zooms out."""


def bars_traces(mark: Bars, frame: Frame, results: Results) -> list[Trace]:
    """A level bar for each record, its number at its end, or within a stacked one where it fits."""
    found = drawn(results, mark)
    if not found:
        return []
    colour = COLOURS[mark.look.colour]
    others = [other for other in frame.panel.marks if isinstance(other, Bars) and other is not mark]
    stacked = {value(record, other.name) for other in others for record in drawn(results, other)}
    stacked = stacked if frame.panel.stacked else set()
    at = next(
        at for at, each in enumerate(each for each in frame.panel.marks if isinstance(each, Bars)) if each is mark
    )
    # what stands alone has no edge, which would hide a short bar, and no pattern: its category names it
    edged = mark.look.hollow or any(value(record, mark.name) in stacked for record in found)
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": folded(mark.label, LABEL_CHARS),
            "legendgroup": mark.label,
            "showlegend": bool(mark.label),
            "x": column(found, mark.value, frame.panel.x),
            "y": [frame.position("y", value(record, mark.name)) for record in found],
            "text": [safe(bar_text(record, mark)) for record in found],
            "textposition": ["auto" if value(record, mark.name) in stacked else "outside" for record in found],
            "textangle": 0,
            "insidetextanchor": "middle",
            "constraintext": "inside",
            "cliponaxis": False,
            "textfont": {"size": TEXT_PX},
            "marker": {
                "color": "white" if mark.look.hollow else colour,
                "opacity": FAINT if mark.look.faint else 1.0,
                "line": {"width": 1.2 if edged else 0, "color": colour if mark.look.hollow else "white"},
                "pattern": {
                    "shape": PATTERNS[at % len(PATTERNS)] if edged else "",
                    "size": 7,
                    "solidity": 0.2,
                    "fgcolor": colour if mark.look.hollow else "white",
                    "fillmode": "overlay",
                },
            },
            "hoverinfo": "text",
            "hovertext": [told_by(mark, record, frame) for record in found],
        }
    ]


def zone_shapes(
    mark: Zones, frame: Frame, results: Results, places: Places
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two shaded areas, and their names at the border between, which both move with it when the figure is zoomed."""
    border = number_at(results, mark.path)
    if not border:
        return [], []
    border /= frame.panel.x.unit
    log = frame.panel.x.scale == "log"
    low, high = frame.ends["x"]
    ends = (low / FAR if log else -high * FAR, high * FAR)
    place: dict[str, Any] = {"xref": f"x{frame.suffix}", "yref": f"y{frame.suffix} domain"}
    shapes = [
        place | {"type": "rect", "x0": left, "x1": right, "y0": 0, "y1": 1, "fillcolor": colour, "line": {"width": 0},
                 "layer": "below"}
        for left, right, colour in ((ends[0], border, BELOW_SHADE), (border, ends[1], ABOVE_SHADE))
    ]  # fmt: skip
    places.occupy_top(border, (mark.below, mark.above))
    names = [
        place | {"x": log10(border) if log else border, "y": 1, "yanchor": "top", "xanchor": anchor, "xshift": shift,
                 "text": text, "showarrow": False, "font": {"size": 12, "color": SOFT}, "bgcolor": colour}
        for text, anchor, shift, colour in (
            (f"← {safe(mark.below)}", "right", -4, BELOW_SHADE),
            (f"{safe(mark.above)} →", "left", 4, ABOVE_SHADE),
        )
    ]  # fmt: skip
    return shapes, names


def rule_shapes(mark: Rule, frame: Frame, results: Results, places: Places) -> list[dict[str, Any]]:
    """A straight line across the panel, and a second unseen one that holds the text where it has room."""
    own = number_at(results, mark.path)
    at = None if own is None else frame.position(mark.axis, own)
    if at is None:
        return []
    text = "" if beside_map(frame.panel, mark) else mark.text.replace("{}", fmt.shown(own, mark.kind))
    colour = COLOURS[mark.look.colour]
    group = {"legendgroup": f"rule/{mark.label}"} if mark.label else {}
    line = {"color": colour, "width": 1.3, "dash": DASHES[mark.look.dash]}
    shape: dict[str, Any] = {"type": "line", **group}
    name = {"name": safe(mark.label), "showlegend": True} if mark.label else {}
    if mark.axis == "y":
        shape |= {"xref": f"x{frame.suffix} domain", "yref": f"y{frame.suffix}", "x0": 0, "x1": 1, "y0": at, "y1": at}
        end = places.above(at, text) if text else "end"
        label: dict[str, Any] = {
            "textposition": end,
            "yanchor": "bottom",
            "xanchor": "right" if end == "end" else "left",
        }
    else:
        shape |= {"xref": f"x{frame.suffix}", "yref": f"y{frame.suffix} domain", "x0": at, "x1": at, "y0": 0, "y1": 1}
        row, side = places.along(at, text) if text else (0, "right")
        label = {"textposition": "start", "yanchor": "bottom", "xanchor": "left" if side == "right" else "right"}
    drawn_line = shape | name | {"line": line}
    if not text:
        return [drawn_line]
    label |= {"text": safe(text), "textangle": 0, "padding": 3, "font": {"size": TEXT_PX, "color": colour}}
    holder = shape | {"line": {"width": 0, "color": "rgba(0,0,0,0)"}, "label": label}
    if mark.axis == "x":
        holder["y0"] = row * row_px() / frame.height_px
    return [drawn_line, holder]
