"""The lines, points and roofs of a chart as plotly's traces, and what pointing at them tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from .. import format as fmt
from ..chart import Axis, Bars, Cells, Dash, Line, Look, Marker, Points, Roof, Shown
from ..chart_data import drawn, number_at, value
from ..record import Results
from .plotly_cloud import Cloud
from .plotly_frame import DIRECTIONS, Frame, mark_key, safe, told
from .plotly_hover import BREAK, NEAR_PX, Hit, together
from .plotly_texts import BESIDE_LARGE, LARGE_CORNERS, LARGE_PX, LED_PX, TEXT_PX, Places
from .style import COLOURS, INK, TEXT_COLOURS

MARKERS: dict[Marker, str] = {
    "circle": "circle",
    "square": "square",
    "triangle": "triangle-up",
    "diamond": "diamond",
    "plus": "cross",
    "cross": "x",
    "star": "star",
}
DASHES: dict[Dash, str] = {"solid": "solid", "dashed": "7px,4px", "dotted": "2px,3px"}
MARKER_PX, FULL_PX, LEAST_PX = 8, 44, 4
"""Diameters: of a point, of one whose share is 1, and of the smallest that is still seen."""
KERNEL_LED_PX = LED_PX[2]
"""How far from a sized point its text may stand, with a line to it, before it stands across one."""
FAINT = 0.35
HALO = ", ".join(f"{x}px {y}px 1px white" for x in (-1, 1) for y in (-1, 1))
"""In CSS' words."""
ROOF_STEPS = 24
"""Places of a roof that can be pointed at."""
ROOF_OFF_PX = 12
"""From the edge of a sized point, within which only a roof's corner can be pointed at."""
A_LITTLE = 1e-9
"""What a share of an axis may be wrong by."""
BEYOND = 1e4
"""How far past the panel a roof goes on, for whoever zooms out."""

Trace = dict[str, Any]


def line_traces(mark: Line, frame: Frame, results: Results, places: Places) -> list[Trace]:
    """A line through its records; arrow heads are a trace of their own, which the legend switches with it."""
    places_of = placed(mark, frame, results)
    if not places_of:
        return []
    x, y, found = map(list, zip(*places_of, strict=True))
    size = MARKER_PX - 1 if mark.markers else 0
    texts, sides = _texts(mark, found, x, y, [size / 2] * len(found), places)
    made = _base(mark, frame) | {
        "mode": "lines" + "+markers" * mark.markers + "+text" * bool(mark.text),
        "x": x,
        "y": y,
        "line": {"color": COLOURS[mark.look.colour], "width": 2 * mark.look.weight, "dash": DASHES[mark.look.dash]},
        "marker": _marker(mark.look, size),
        "text": texts,
        "textposition": sides,
        "textfont": _font(TEXT_COLOURS[mark.look.colour]),
        **told_to(frame, lambda: [told_here(mark, *each, frame, places) for each in places_of]),
    }
    if mark.spread:
        made["error_y"] = _error_bars(mark, y, found, frame)
    heads = [_heads(mark, frame, x, y, size)] if mark.arrow and len(found) > 1 else []
    return [*_keyed(mark, made), *heads]


def _keyed(mark: Line | Points, made: Trace) -> list[Trace]:
    """A trace, and where its colour in the key is another one, an entry of the key that switches it."""
    if not mark.key or not mark.label:
        return [made]
    colour = {"color": COLOURS[mark.key]}
    none: Trace = {key: [] for key in ("text", "textposition", "hovertext") if key in made}
    entry = made | {"x": [None], "y": [None], "error_y": {}} | none
    size = {"size": MARKER_PX + 1} if isinstance(mark, Points) else {}
    entry["marker"] = made["marker"] | size | colour
    entry["marker"]["line"] = made["marker"]["line"] | (colour if mark.look.hollow else {})
    if "line" in made:
        entry["line"] = made["line"] | colour
    return [made | {"showlegend": False}, entry]


def _error_bars(mark: Line, y: list[Any], found: list[dict[str, Any]], frame: Frame) -> Trace:
    """How far the ends of the spread are from each point; nowhere where one is not known."""
    assert mark.spread
    low, high = ([frame.position("y", value(record, key)) if value(record, key) is not None else None
                  for record in found] for key in mark.spread)  # fmt: skip
    return {
        "type": "data",
        "symmetric": False,
        "array": [0 if end is None else end - at for at, end in zip(y, high, strict=True)],
        "arrayminus": [0 if end is None else at - end for at, end in zip(y, low, strict=True)],
        "color": TEXT_COLOURS[mark.look.colour],
        "thickness": 1.5,
        "width": 7,
    }


def _heads(mark: Line, frame: Frame, x: list[Any], y: list[Any], size: int) -> Trace:
    """An arrow head before each point but the first, turned along the line."""
    marker = {
        "symbol": "arrow",
        "angleref": "previous",
        "size": [0, *[10] * (len(x) - 1)],
        "standoff": size / 2,
        "color": COLOURS[mark.look.colour],
        "line": {"width": 0},
        "opacity": 1,
    }
    made = _base(mark, frame) | {"mode": "markers", "x": x, "y": y, "marker": marker}
    return made | {"showlegend": False, "hoverinfo": "skip"}


def points_traces(mark: Points, frame: Frame, cloud: Cloud, places: Places) -> list[Trace]:
    """A point for each record of ``cloud``, the large ones below the small."""
    kept = sorted(cloud.kept, key=lambda each: -radius(mark, each[2]))
    if not kept:
        return []
    x, y, found = map(list, zip(*(each[:3] for each in kept), strict=True))
    radii = [radius(mark, record) for record in found]
    texts, sides = _texts(mark, found, x, y, radii, places)
    marker = _marker(mark.look, MARKER_PX + 1)
    if mark.area:
        # diameters, since a legend shows plotly's own areas as specks
        marker |= {"size": [2 * each for each in radii], "opacity": 0.85 * marker["opacity"]}
    made = _base(mark, frame) | {
        "mode": "markers" + "+text" * bool(mark.text),
        "x": x,
        "y": y,
        "marker": marker,
        "text": texts,
        "textposition": sides,
        "textfont": _font(TEXT_COLOURS[mark.look.colour]),
        **told_to(
            frame,
            lambda: [
                told_here(mark, *each[:3], frame, places) + (f"<br>and {each[3]:,} more close to it" * bool(each[3]))
                for each in kept
            ],
        ),
    }
    return _keyed(mark, made)


def radius(mark: Line | Points, record: dict[str, Any]) -> float:
    """Of a record's marker, in pixels."""
    if isinstance(mark, Line) or not mark.area:
        return MARKER_PX / 2
    return max(FULL_PX * sqrt(value(record, mark.area) or 0.0), LEAST_PX) / 2


def roof_traces(mark: Roof, frame: Frame, results: Results, places: Places) -> list[Trace]:
    """Both ceilings as one line with its corner, and places along it that can be pointed at, off the points on it."""
    points = roof_points(mark, frame, results)
    if not points:
        return []
    ridge = _ridge(mark, frame, results)
    kept = [each for each in points if each[0] == ridge or not places.hits.covering(*places.at(*each), ROOF_OFF_PX)]
    _name_roof(mark, frame, points, ridge, places)
    made = _base(mark, frame) | {
        "mode": "lines",
        "line": {
            "color": COLOURS[mark.look.colour],
            "width": mark.look.weight * (2.2 if mark.look.dash == "solid" else 1.7),
            "dash": DASHES[mark.look.dash],
        },
    }
    if not frame.tells:
        return [made]  # where it can be pointed at depends on what lies there
    x, y = map(list, zip(*kept, strict=True))
    told_beside = [f"{safe(label)}: {safe(text)}" for label, text in mark.shown]
    named_by = [f"<b>{safe(mark.label)}</b>", *told_beside]
    tells = [BREAK.join([*_told_on(frame, places, *each), *named_by, *_at(frame, *each)]) for each in kept]
    return [made | {"x": x, "y": y, "hovertext": tells}]


def _ridge(mark: Roof, frame: Frame, results: Results) -> float:
    """Where both ceilings meet, in the x axis' units."""
    slope, flat = number_at(results, mark.slope), number_at(results, mark.flat)
    assert slope
    assert flat
    return flat / slope / frame.panel.x.unit


def _told_on(frame: Frame, places: Places, x: float, y: float) -> list[str]:
    """What the points on a place of a roof tell, which the roof would be pointed at instead of."""
    across, up = places.at(x, y)
    hits = [*places.hits.covering(across, up), *places.hits.near(across, up)]
    return [_told_by_all(hits, frame)] if hits else []


def _name_roof(mark: Roof, frame: Frame, points: list[tuple[float, float]], ridge: float, places: Places) -> None:
    """What stands beside each part of a roof, from that part's end within the panel on."""
    look = _font(TEXT_COLOURS[mark.look.colour])
    shares = [(each, frame.share("x", each[0]), frame.share("y", each[1])) for each in points if each[0] and each[1]]
    inside = [each for each, *both in shares if all(-A_LITTLE <= share <= 1 + A_LITTLE for share in both)]
    for text, way in (
        (mark.on_flat, [each for each in reversed(inside) if each[0] >= ridge]),
        (mark.on_slope, [each for each in inside if each[0] <= ridge]),
    ):
        if text and way:
            places.along_roof(way[0], way[-1], text, look)


def roof_points(mark: Roof, frame: Frame, results: Results) -> list[tuple[float, float]]:
    """Places along a roof, its corner among them, in the axes' units; none where it is not known."""
    slope, flat = number_at(results, mark.slope), number_at(results, mark.flat)
    if not slope or not flat:
        return []
    x_axis, y_axis = frame.panel.x, frame.panel.y
    places = sorted({*_spread(x_axis, *frame.ends["x"]), _ridge(mark, frame, results)})
    return [(at, min(slope * at * x_axis.unit, flat) / y_axis.unit) for at in places]


def _spread(axis: Axis, low: float, high: float) -> list[float]:
    """Places from ``low`` to ``high``, evenly on the axis, and one far out at either side."""
    parts = [step / ROOF_STEPS for step in range(ROOF_STEPS + 1)]
    if axis.scale == "log":
        return [low / BEYOND, *(low * (high / low) ** part for part in parts), high * BEYOND]
    return [0.0, *(low + (high - low) * part for part in parts if low + (high - low) * part > 0), high * BEYOND]


def told_to(frame: Frame, tell: Callable[[], Any]) -> Trace:
    """What pointing at a trace tells, where the frame's drawing says that."""
    return {"hovertext": tell()} if frame.tells else {}


def told_here(mark: Line | Points, x: float, y: float, record: dict[str, Any], frame: Frame, places: Places) -> str:
    """What pointing at a record's marker tells: the record's own, and what others that lie on it would.

    The marker of a line is small, so that a browser takes it before the kernel on which it lies: it tells that first.
    """
    across, up = places.at(x, y)
    own = Hit(mark, record, across, up, 0.0, NEAR_PX)
    others = places.hits.near(across, up)
    if isinstance(mark, Line):
        others = [*places.hits.covering(across, up), *others]
    others = [hit for hit in others if hit.mark is not mark or hit.record is not record]
    points = [hit for hit in others if isinstance(hit.mark, Points)]
    lines = [hit for hit in others if isinstance(hit.mark, Line)]
    return _told_by_all([own, *points, *lines] if isinstance(mark, Points) else [*points, own, *lines], frame)


def _told_by_all(hits: Sequence[Hit], frame: Frame) -> str:
    """What each of several records tells, each once."""
    once = {(id(hit.mark), id(hit.record)): hit for hit in hits}
    return together([(hit.mark, told_by(hit.mark, hit.record, frame)) for hit in once.values()])


def told_by(mark: Line | Points | Cells | Bars, record: dict[str, Any], frame: Frame) -> str:
    """What pointing at a record tells: its text and its mark, every line that the mark shows, and its place."""
    text = fmt.shown(value(record, mark.text), mark.kind) if not isinstance(mark, Bars) and mark.text else ""
    name = fmt.shown(value(record, mark.name), "text") if isinstance(mark, Bars) else ""
    label = "" if isinstance(mark, Cells) else mark.label
    head = "  ·  ".join(safe(part) for part in (name, text, label) if part)
    lines = [f"<b>{head}</b>"] if head else []
    lines += [f"{safe(each.label)}: {safe(fmt.shown(value(record, each.key), each.kind))}" for each in mark.shown]
    return "<br>".join([*lines, *_own_place(mark, record, frame)])


def _own_place(mark: Line | Points | Cells | Bars, record: dict[str, Any], frame: Frame) -> list[str]:
    """The values along both axes, but for those among the mark's lines already."""
    if isinstance(mark, Bars):
        shown = Shown(frame.panel.x.label, mark.value, mark.kind)
        return [f"{safe(named(shown.label, fmt.shown(value(record, shown.key), shown.kind), unit=False))}"]
    already = {each.key for each in mark.shown}
    lines = []
    for direction in DIRECTIONS:
        axis, key = frame.axis(direction), mark_key(mark, direction)
        if key not in already:
            own = value(record, key)
            text = fmt.shown(own, axis.kind) if axis.scale == "category" else told(axis, own / axis.unit)
            lines.append(safe(named(axis.label, text)))
    return lines


def _at(frame: Frame, x: float, y: float) -> list[str]:
    """The place of a point that is no record's: four digits."""
    return [
        safe(named(axis.label, fmt.number(float(f"{at:.4g}")))) for axis, at in ((frame.panel.x, x), (frame.panel.y, y))
    ]


def named(label: str, text: str, unit: bool = True) -> str:
    """A value behind its axis' label, the label's unit behind the value: ``intensity: 295 FLOP/B``."""
    name, _, after = label.rpartition(", ")
    if not name:
        return f"{label}: {text}" if label else text
    return f"{name}: {text} {after}" if unit else f"{name}: {text}"


def placed(mark: Line | Points | Cells, frame: Frame, results: Results) -> list[tuple[float, float, dict[str, Any]]]:
    """The records of a mark that have a place, and the place in the axes' units."""
    found = []
    for record in drawn(results, mark):
        x, y = frame.position("x", value(record, mark.x)), frame.position("y", value(record, mark.y))
        if x is not None and y is not None:
            found.append((x, y, record))
    return found


def settle_musts(lines: Sequence[Line], frame: Frame, results: Results, places: Places) -> None:
    """Places for the texts of lines that must be there, before others take them; the highest first: below is room."""
    found = []
    for mark in lines:
        every = placed(mark, frame, results)
        sides = places.along_line(*map(list, zip(*((x, y) for x, y, _ in every), strict=True))) if every else []
        found += [(mark, *each, first) for each, first in zip(every, sides, strict=True) if _must(mark, each[2])]
    for mark, x, y, record, first in sorted(found, key=lambda each: -each[2]):
        place = x, y, fmt.shown(value(record, mark.text), mark.kind)
        near = radius(mark, record)
        look = _font(TEXT_COLOURS[mark.look.colour])
        side = places.beside(*place, near, first, strict=True)
        # at the end of a line of its own rather than across another
        if not side and not places.led(*place, look, LED_PX[-1], must=True, strict=True):
            side = places.beside(*place, near, first)
            if not side:
                places.led(*place, look, LED_PX[-1], must=True)
        places.settled[id(mark), id(record)] = side or ""


def _must(mark: Line, record: dict[str, Any]) -> bool:
    """Whether a point's text is there whatever is near."""
    return bool(mark.text and mark.must and value(record, mark.must))


def _texts(
    mark: Line | Points,
    found: Sequence[dict[str, Any]],
    x: list[Any],
    y: list[Any],
    radii: Sequence[float],
    places: Places,
) -> tuple[list[str], list[str]]:
    """The texts that have room beside their points, and the sides they stand at."""
    if not mark.text:
        return [], []
    texts = [fmt.shown(value(record, mark.text), mark.kind) for record in found]
    ends = (0, len(found) - 1)
    settled = [places.settled.get((id(mark), id(record))) for record in found]
    sides: list[str | None] = [side or None for side in settled]
    asked: Sequence[int] = [at for at, side in enumerate(settled) if side is None]
    first: Sequence[tuple[str, ...]] = [()] * len(x)
    if isinstance(mark, Line):
        first = places.along_line(x, y)
        asked = [at for at in asked if not mark.ends or at in ends]
    else:
        texts = _joined(mark, texts, found, x, y, places)
        asked = [at for at in asked if texts[at]]
    sized = isinstance(mark, Points) and bool(mark.area)
    look = _font(TEXT_COLOURS[mark.look.colour])
    for at in sorted(asked, key=lambda at: at not in ends):
        place = x[at], y[at], texts[at]
        if not sized:
            sides[at] = places.beside(*place, radii[at], first[at])
            continue
        # at the end of a line of its own rather than across another
        sides[at] = places.beside(*place, radii[at], first[at], strict=True)
        if sides[at] or places.led(*place, look, KERNEL_LED_PX, must=False, strict=True):
            continue
        if radii[at] > LARGE_PX:
            sides[at] = places.beside(*place, radii[at], only=BESIDE_LARGE)
            if sides[at] or places.led(*place, look, LED_PX[-1], must=False, strict=True):
                continue
            # at the lower left it would be read as the name of what lies before it on the roof
            sides[at] = places.beside(*place, radii[at], only=LARGE_CORNERS)
        else:
            sides[at] = places.beside(*place, radii[at], first[at])
        if not sides[at]:
            places.led(*place, look, LED_PX[-1], must=True)
    kept = [safe(text) if side else "" for text, side in zip(texts, sides, strict=True)]
    return kept, [side or "top center" for side in sides]


def _joined(
    mark: Points, texts: Sequence[str], found: Sequence[dict[str, Any]], x: list[Any], y: list[Any], places: Places
) -> list[str]:
    """The texts of points that lie on each other as one, at the first of them; the others have none."""
    order = {id(record): at for at, record in enumerate(found)}
    stands_at: list[int] = []
    joined: list[dict[str, None]] = [{} for _ in texts]
    for at, text in enumerate(texts):
        here = [order[id(hit.record)] for hit in places.hits.near(*places.at(x[at], y[at])) if hit.mark is mark]
        first = min([at, *here])
        stands_at.append(at if first == at else stands_at[first])
        if text:
            joined[stands_at[at]][text] = None
    return [", ".join(each) for each in joined]


def _base(mark: Line | Points | Roof, frame: Frame) -> Trace:
    look = mark.look
    return {
        "type": "scatter",
        "name": frame.label(mark.label),
        "legendgroup": f"{mark.label}/{look.colour}/{look.marker}/{look.dash}",
        "showlegend": bool(mark.label),
        "hoverinfo": "text",
        "textfont": _font(INK),
        "opacity": 1,
    }


def _font(colour: str) -> dict[str, Any]:
    """Of a text beside a point: white around it, where it crosses a line after all."""
    return {"size": TEXT_PX, "color": colour, "shadow": HALO}


def _marker(look: Look, size: float) -> dict[str, Any]:
    colour = COLOURS[look.colour]
    line = {"width": 1.6, "color": colour} if look.hollow else {"width": 0.8, "color": "white"}
    return {
        "symbol": MARKERS[look.marker] + "-open" * look.hollow,
        "size": size,
        "color": colour,
        "line": line,
        "opacity": FAINT if look.faint else 1.0,
    }
