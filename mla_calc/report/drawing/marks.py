"""Lines, points, roofs, rules and zones on a matplotlib panel."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import hypot
from typing import Any

from .. import format as fmt
from ..chart import Line, Look, Points, Roof, Rule, Zones
from ..chart_data import drawn, number_at, value
from .placing import ANYWHERE, OFF_LINES, OFF_POINTS, ON_RULE, Place, around
from .sheet import FAINT, LINE_TEXTS, MORE_TEXTS, POINT_TEXTS, RULES, Sheet, line_look, marker_look
from .style import ABOVE_SHADE, BELOW_SHADE, COLOURS, INK, MARKERS, SOFT, TEXT_COLOURS, Size

LEAST_SHARE = 0.02
"""A point by area is drawn no smaller than this share, or it could not be seen."""
LABELS = 6
"""How many points by area have their text, the largest first."""
ARROW_EVERY = 60.0
"""Points of a slide between two arrowheads of a line."""
Point = tuple[float, float, dict[str, Any]]


def draw_line(sheet: Sheet, mark: Line) -> None:
    """A line, its markers, arrowheads along it, and the texts of its points."""
    found = sheet.points(drawn(sheet.results, mark), mark.x, mark.y)
    if not found:
        return
    look = line_look(mark.look, sheet.size) | (marker_look(mark.look, sheet.size) if mark.markers else {})
    (line,) = sheet.axes.plot([x for x, _, _ in found], [y for _, y, _ in found], zorder=3.5, **look)
    line.set_gid(sheet.gid(mark))
    sheet.above.append(partial(_take, sheet, found, sheet.size.marker**2 if mark.markers else 0.0, line=True))
    if mark.arrow and len(found) > 1:
        sheet.above.append(partial(_arrows, sheet, found, mark.look))
    if mark.text:
        ends = [0, len(found) - 1][: len(found)]
        for at in [*ends, *range(1, len(found) - 1)]:
            rank, most = (LINE_TEXTS, ANYWHERE) if at in ends else (MORE_TEXTS, OFF_LINES)
            sheet.later.append((rank, partial(_line_text, sheet, mark, found, at, most)))


def _take(sheet: Sheet, found: list[Point], area: float, line: bool = False) -> None:
    """Keep texts off points and line."""
    if area:
        for x, y, _ in found:
            sheet.places.add_point(x, y, area)
    if line:
        sheet.places.add_line((x, y) for x, y, _ in found)


def _line_text(sheet: Sheet, mark: Line, found: list[Point], at: int, most: float) -> None:
    x, y, record = found[at]
    text = fmt.shown(value(record, mark.text), mark.kind)
    gap = sheet.places.px(sheet.size.marker / sheet.size.font * 12.5 / 2 + 4)
    sheet.places.put(
        text, around(*sheet.places.at(x, y), gap), most, color=TEXT_COLOURS[mark.look.colour], fontweight="bold"
    )


def _arrows(sheet: Sheet, found: list[Point], look: Look) -> None:
    """Heads in the middle of segments, so far apart that they do not hide the line; one at least."""
    corners = [sheet.places.at(x, y) for x, y, _ in found]
    long = [(start, end) for start, end in pairwise(corners) if hypot(end[0] - start[0], end[1] - start[1]) > 1]
    least = sheet.places.px(ARROW_EVERY)
    gone = least * 0.6
    for at, (start, end) in enumerate(long):
        length = hypot(end[0] - start[0], end[1] - start[1])
        gone += length
        room = length > sheet.places.px(sheet.size.marker * 12.5 / sheet.size.font + 10)
        if gone >= least and room:
            _arrow(sheet, start, end, look)
            gone = 0.0
        elif at == len(long) - 1 and gone == length + least * 0.6:
            _arrow(sheet, start, end, look)


def _arrow(sheet: Sheet, start: tuple[float, float], end: tuple[float, float], look: Look) -> None:
    back = sheet.axes.transAxes.inverted()
    ways = [(start[0] + (end[0] - start[0]) * at, start[1] + (end[1] - start[1]) * at) for at in (0.45, 0.6)]
    (tail_x, tail_y), (head_x, head_y) = back.transform(ways)
    sheet.axes.annotate(
        "", (head_x, head_y), (tail_x, tail_y), xycoords="axes fraction", textcoords="axes fraction",
        zorder=3.6, arrowprops={
            "arrowstyle": "-|>,head_length=0.5,head_width=0.25", "color": COLOURS[look.colour], "shrinkA": 0,
            "shrinkB": 0, "linewidth": sheet.size.line, "mutation_scale": sheet.size.points(12),
        },
    )  # fmt: skip


def draw_points(sheet: Sheet, mark: Points) -> None:
    """Points, the largest below; those by area with the texts of the largest few."""
    found = sheet.points(drawn(sheet.results, mark), mark.x, mark.y)
    if mark.area:
        found.sort(key=lambda point: -(value(point[2], mark.area) or 0.0))
    if not found:
        return
    areas = [point_area(value(each, mark.area) if mark.area else None, mark, sheet.size) for _, _, each in found]
    cloud = sheet.axes.scatter(
        [x for x, _, _ in found], [y for _, y, _ in found], s=areas, marker=MARKERS[mark.look.marker],
        zorder=4.5 if mark.area else 5.0, **point_look(mark, sheet.size),
    )  # fmt: skip
    cloud.set_gid(sheet.gid(mark))
    for point, area in zip(found, areas, strict=True):
        sheet.above.append(partial(_take, sheet, [point], area))
    if mark.text:
        for point, area in list(zip(found, areas, strict=True))[: LABELS if mark.area else None]:
            sheet.later.append((POINT_TEXTS, partial(_point_text, sheet, mark, point, area)))


def point_area(share: float | None, mark: Points, size: Size) -> float:
    """Square points of a marker: by the record's share where the mark has one, or that of all points."""
    if not mark.area:
        return (size.marker * 1.05) ** 2
    return size.full_area * max(share or 0.0, LEAST_SHARE)


def point_look(mark: Points, size: Size) -> dict[str, Any]:
    """Colours of a cloud of points."""
    colour = COLOURS[mark.look.colour]
    return {
        "facecolors": "none" if mark.look.hollow else colour,
        "edgecolors": colour if mark.look.hollow else "white",
        "linewidths": size.points(1.6 if mark.look.hollow else 0.8),
        "alpha": FAINT if mark.look.faint else 0.75 if mark.area else 1.0,
    }


def _point_text(sheet: Sheet, mark: Points, point: Point, area: float) -> None:
    x, y, record = point
    text = fmt.shown(value(record, mark.text), mark.kind)
    gap = area**0.5 / 2 * sheet.size.dpi / 72 + sheet.places.px(3)
    sheet.places.put(text, around(*sheet.places.at(x, y), gap), OFF_POINTS, color=INK)


def draw_roof(sheet: Sheet, mark: Roof) -> None:
    """A broken line over the whole panel."""
    slope, flat = number_at(sheet.results, mark.slope), number_at(sheet.results, mark.flat)
    if not slope or not flat:
        return
    low, high = sheet.axes.get_xlim()
    ridge = flat / slope / sheet.panel.x.unit
    x = [low, ridge, high] if low < ridge < high else [low, high]
    y = [min(slope * at * sheet.panel.x.unit, flat) / sheet.panel.y.unit for at in x]
    (line,) = sheet.axes.plot(x, y, zorder=2.5, **line_look(mark.look, sheet.size))
    line.set_gid(sheet.gid(mark))
    sheet.above.append(partial(sheet.places.add_line, list(zip(x, y, strict=True))))


def draw_rule(sheet: Sheet, mark: Rule) -> None:
    """A straight line, and its text where there is room beside it; at the right of a map."""
    at = sheet.rule_at(mark.path, mark.axis)
    if at is None:
        return
    draw = sheet.axes.axvline if mark.axis == "x" else sheet.axes.axhline
    look = line_look(mark.look, sheet.size) | {"linewidth": sheet.size.line * 0.65}
    draw(at, zorder=3.4 if sheet.has_cells else 2.2, gid=sheet.gid(mark), **look)
    ends = sheet.axes.get_ylim() if mark.axis == "x" else sheet.axes.get_xlim()
    way = [(at, end) if mark.axis == "x" else (end, at) for end in ends]
    sheet.above.append(partial(sheet.places.add_line, way, ON_RULE))
    if mark.text and not (sheet.has_cells and mark.axis == "y"):
        sheet.later.append((RULES, partial(_rule_text, sheet, mark, at)))


def rule_text(sheet: Sheet, mark: Rule) -> str:
    """A rule's text with its number."""
    return mark.text.replace("{}", fmt.shown(number_at(sheet.results, mark.path), mark.kind))


def _rule_text(sheet: Sheet, mark: Rule, at: float) -> None:
    """Beside the line: of an upright one at the bottom first and then higher, of a level one at the right first."""
    frame = sheet.axes.get_window_extent()
    gap, step = sheet.places.px(5), sheet.places.px(8)
    colour = TEXT_COLOURS[mark.look.colour]
    if mark.axis == "x":
        x = sheet.places.at(at, sheet.axes.get_ylim()[0])[0]
        heights = [frame.y0 + gap + step * row for row in range(int((frame.height - gap) / step))]
        places = [
            Place(x + side * gap, height, "left" if side > 0 else "right", "bottom", rank * 0.8 + (side < 0) * 0.5)
            for rank, height in enumerate(heights)
            for side in (1, -1)
        ]
    else:
        y = sheet.places.at(sheet.axes.get_xlim()[0], at)[1]
        columns = [frame.x1 - gap - step * 2 * rank for rank in range(int(frame.width / step / 2))]
        places = [
            Place(x, y + side * gap * 0.6, "right", "bottom" if side > 0 else "top", rank * 0.8 + (side < 0) * 0.5)
            for rank, x in enumerate(columns)
            for side in (1, -1)
        ]
    sheet.places.put(rule_text(sheet, mark), places, ANYWHERE, color=colour)


def draw_zones(sheet: Sheet, mark: Zones) -> None:
    """Both sides of a value shaded, their names at the top corners."""
    at = sheet.rule_at(mark.path, "x")
    number = number_at(sheet.results, mark.path)
    if number is None:
        return
    low, high = sheet.axes.get_xlim()
    parting = at if at is not None else high if number / sheet.panel.x.unit > high else low
    for start, end, shade, name in ((low, parting, BELOW_SHADE, mark.below), (parting, high, ABOVE_SHADE, mark.above)):
        if start < end:
            sheet.axes.axvspan(start, end, color=shade, zorder=0, linewidth=0)
            sheet.later.append((RULES - 1, partial(_zone_name, sheet, name, start == low)))


def _zone_name(sheet: Sheet, name: str, left: bool) -> None:
    frame = sheet.axes.get_window_extent()
    gap = sheet.places.px(6)
    x = frame.x0 + gap if left else frame.x1 - gap
    corner = Place(x, frame.y1 - gap * 0.6, "left" if left else "right", "top")
    sheet.places.put(name, [corner], ANYWHERE, color=SOFT)
