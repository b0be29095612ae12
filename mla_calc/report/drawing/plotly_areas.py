"""The bars, zones and rules of a chart as plotly's traces and shapes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import log10
from typing import Any

from .. import format as fmt
from ..chart import Bars, Rule, Zones
from ..chart_data import bar_text, column, drawn, number_at, value
from ..record import Results
from .cells import tint
from .plotly_cells import halo, readable_on
from .plotly_frame import NUMBER_PX, Frame, beside_map, rules_at, safe
from .plotly_marks import DASHES, FAINT, Trace, told_by, told_to
from .plotly_texts import CHAR, TEXT_PX, Places
from .style import ABOVE_SHADE, BELOW_SHADE, COLOURS, INK, SOFT, TEXT_COLOURS

PATTERNS = ("", "/", ".", "x", "\\", "+")
"""Of stacked bars, by their place, so that grey print tells them."""
FAR = 1e6
"""How far past the panel a zone goes on, for whoever zooms out."""
ZONE_PX, ZONE_LINE_PX, ZONE_OFF_PX = 12, 18, 4
"""Of the names of zones: the height, that of a line, and how far from the border they stand."""
NUMBER_OFF_PX = 5
"""Of the number in a bar: what plotly keeps from the bar's ends, and what it should keep from a rule."""


def bars_traces(mark: Bars, frame: Frame, results: Results) -> list[Trace]:
    """A level bar for each record, its number at its end, or within a stacked one where it fits."""
    found = drawn(results, mark)
    if not found:
        return []
    colour = COLOURS[mark.look.colour]
    ground = "#ffffff" if mark.look.hollow else colour
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
            "name": frame.label(mark.label),
            "legendgroup": mark.label,
            "showlegend": bool(mark.label),
            "x": column(found, mark.value, frame.panel.x),
            "y": [frame.position("y", value(record, mark.name)) for record in found],
            "text": [safe(bar_text(record, mark)) for record in found],
            "textposition": ["auto" if value(record, mark.name) in stacked else "outside" for record in found],
            "textangle": 0,
            "insidetextanchor": _anchor(mark, frame, results),
            "constraintext": "inside",
            "cliponaxis": False,
            "textfont": {"size": TEXT_PX, "color": INK},
            "insidetextfont": {"size": TEXT_PX, "color": readable_on(tint(ground, 1.0)), "shadow": halo(ground)},
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
            **told_to(frame, lambda: [told_by(mark, record, frame) for record in found]),
        }
    ]


def _anchor(mark: Bars, frame: Frame, results: Results) -> str:
    """Where in its bars a mark's numbers stand: in the middle, or at an end where that is on fewer upright rules."""
    across = [frame.share("x", upright) * frame.width_px for upright in rules_at(frame, results, "x")]
    low = frame.ends["x"][0]
    crossed = dict.fromkeys(("middle", "start", "end"), 0)
    for start, end, text in _spans(mark, frame, results):
        if end <= low:
            continue
        left, right = (frame.share("x", max(each, low)) * frame.width_px for each in (start, end))
        width = len(text) * NUMBER_PX
        lefts = ((left + right - width) / 2, left + NUMBER_OFF_PX, right - NUMBER_OFF_PX - width)
        for anchor, at in zip(crossed, lefts, strict=True):
            crossed[anchor] += sum(at - NUMBER_OFF_PX < each < at + width + NUMBER_OFF_PX for each in across)
    return min(crossed, key=lambda anchor: crossed[anchor])


def _spans(mark: Bars, frame: Frame, results: Results) -> list[tuple[float, float, str]]:
    """From where to where each bar of a mark reaches, in the axis' units, and its number as it is written."""
    ends: dict[Any, float] = {}
    found: list[tuple[float, float, str]] = []
    for other in (each for each in frame.panel.marks if isinstance(each, Bars)):
        for record in drawn(results, other):
            name = value(record, other.name)
            start = ends.get(name, 0.0) if frame.panel.stacked else 0.0
            ends[name] = start + value(record, other.value) / frame.panel.x.unit
            if other is mark:
                found.append((start, ends[name], bar_text(record, mark)))
    return found


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
    across = frame.share("x", border) * frame.width_px
    names = []
    for lines, side, shift, colour in (
        (_zone_lines(f"←\u00a0{mark.below}", across), "right", -ZONE_OFF_PX, BELOW_SHADE),
        (_zone_lines(f"{mark.above}\u00a0→", frame.width_px - across), "left", ZONE_OFF_PX, ABOVE_SHADE),
    ):
        if not lines:
            continue
        width, height = max(map(len, lines)) * ZONE_PX * CHAR, len(lines) * ZONE_LINE_PX
        left = across + shift - (width if side == "right" else 0)
        box = left, frame.height_px - height, left + width, frame.height_px
        # a ground keeps a roof from striking the name through, but would cut a piece out of a marker
        is_struck = places.ways.touches(box) and not places.markers.touches(box)
        places.occupy_text(box)
        names.append(
            place | {"x": log10(border) if log else border, "y": 1, "yanchor": "top", "xanchor": side, "align": side,
                     "xshift": shift, "text": "<br>".join(map(safe, lines)), "showarrow": False,
                     "font": {"size": ZONE_PX, "color": SOFT}}
            | ({"bgcolor": colour} if is_struck else {})
        )  # fmt: skip
    return shapes, names


def _zone_lines(name: str, room_px: float) -> Sequence[str]:
    """A zone's name in lines that its side of the panel has room for; none where a word of it has none."""
    chars = int((room_px - ZONE_OFF_PX) / (ZONE_PX * CHAR))
    lines = textwrap.wrap(name, chars, break_long_words=False) if chars > 0 else []
    return [line.replace("\u00a0", " ") for line in lines] if all(len(line) <= chars for line in lines) else []


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
    name = {"name": frame.label(mark.label), "showlegend": True} if mark.label else {}
    if mark.axis == "y":
        shape |= {"xref": f"x{frame.suffix} domain", "yref": f"y{frame.suffix}", "x0": 0, "x1": 1, "y0": at, "y1": at}
        end, anchor = places.above(at, text) if text else ("end", "bottom")
        label: dict[str, Any] = {
            "textposition": end,
            "yanchor": anchor,
            "xanchor": "right" if end == "end" else "left",
        }
    else:
        shape |= {"xref": f"x{frame.suffix}", "yref": f"y{frame.suffix} domain", "x0": at, "x1": at, "y0": 0, "y1": 1}
        low, side, text = places.along(at, text) if text else (0.0, "right", "")
        label = {"textposition": "start", "yanchor": "bottom", "xanchor": "left" if side == "right" else "right"}
    drawn_line = shape | name | {"line": line}
    if not text:
        return [drawn_line]
    font = {"size": TEXT_PX, "color": TEXT_COLOURS[mark.look.colour]}
    label |= {"text": safe(text), "textangle": 0, "padding": 3, "font": font}
    holder = shape | {"line": {"width": 0, "color": "rgba(0,0,0,0)"}, "label": label}
    if mark.axis == "x":
        holder["y0"] = low / frame.height_px
    return [drawn_line, holder]
