"""Lines and points on a matplotlib panel."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import dist, hypot
from typing import Any

from .. import format as fmt
from ..chart import Line, Look, Points
from ..chart_data import drawn, value
from .placing import ANYWHERE, FAR, NEAR, OFF_CROWDS, OFF_LINES, OFF_TEXTS, ON_LINE, ON_POINT, SAME_PLACE, Box, around
from .sheet import FAINT, LINE_TEXTS, MORE_TEXTS, MUSTS, POINT_TEXTS, Sheet, line_look, marker_look
from .style import COLOURS, MARKERS, TEXT_COLOURS, Size

LEAST_SHARE = 0.02
"""A point by area is drawn no smaller than this share, or it could not be seen."""
LABELS = 6
"""How many points by area have their text, the largest first."""
ARROW_EVERY = 60.0
"""Points of a slide between two arrowheads of a line."""
SPREAD_WIDTH = 2.2
"""How many times as wide as a marker the ends of an upright bar are."""
NAME_CROSSING = 2.5
"""How many times as much as a number it costs a point's name to cross a line: it is longer, and may be led to."""
Point = tuple[float, float, dict[str, Any]]


def draw_line(sheet: Sheet, mark: Line) -> None:
    """A line, its markers, arrowheads along it, and the texts of its points."""
    found = sheet.points(drawn(sheet.results, mark), mark.x, mark.y)
    if not found:
        return
    look = line_look(mark.look, sheet.size) | (marker_look(mark.look, sheet.size) if mark.markers else {})
    (line,) = sheet.axes.plot([x for x, _, _ in found], [y for _, y, _ in found], zorder=3.5, **look)
    line.set_gid(sheet.gid(mark))
    if mark.markers and not mark.arrow:
        sheet.above.append(partial(_part_markers, sheet, line, found))
    if mark.spread:
        draw_spread(sheet, mark, found)
    area = sheet.size.marker**2 if mark.markers else 0.0
    # a number of a map may stand on a rule, but on no line
    sheet.above.append(partial(_take, sheet, found, area, line=ON_POINT if sheet.has_cells else ON_LINE))
    if mark.arrow and len(found) > 1:
        sheet.above.append(partial(_arrows, sheet, found, mark.look))
    if mark.text:
        ends = [0, len(found) - 1][: len(found)]
        for at in ends if mark.ends else [*ends, *range(1, len(found) - 1)]:
            rank, most = _standing(sheet, mark, found[at], at in ends)
            sheet.later.append((rank, partial(_line_text, sheet, mark, found, at, most)))


def _part_markers(sheet: Sheet, line: Any, found: list[Point]) -> None:
    """Leave out markers that would cover the one before them: of a crowd their white edges alone were seen."""
    least = sheet.size.marker * sheet.size.dpi / 72
    kept: list[int] = []
    for at, (x, y, _) in enumerate(found):
        if not kept or dist(sheet.places.at(x, y), sheet.places.at(*found[kept[-1]][:2])) >= least:
            kept.append(at)
    if len(kept) < len(found):
        line.set_markevery(kept)


def _standing(sheet: Sheet, mark: Line, point: Point, is_end: bool) -> tuple[float, float]:
    """When a point's text takes its place, and what it may cost: those that must be there first, then a line's ends.

    The highest comes first of all: those below have more room.
    """
    x, y, record = point
    if mark.must and value(record, mark.must):
        up = sheet.axes.transAxes.inverted().transform(sheet.axes.transData.transform((x, y)))[1]
        return MUSTS + 0.9 * (1 - min(max(float(up), 0.0), 1.0)), ANYWHERE
    return (LINE_TEXTS, OFF_CROWDS) if is_end and not mark.ends else (MORE_TEXTS, OFF_LINES)


def draw_spread(sheet: Sheet, mark: Line, found: list[Point]) -> None:
    """An upright bar through each point, with ends wider than the marker; where both ends are known."""
    assert mark.spread
    for x, _, record in found:
        low, high = (value(record, key) for key in mark.spread)
        ends = [sheet.where(end, "y") for end in (low, high) if end is not None]
        known = [end for end in ends if end is not None]
        if len(known) == 2:
            sheet.axes.plot(
                [x, x], known, zorder=3.55, color=TEXT_COLOURS[mark.look.colour], linewidth=sheet.size.points(1.4),
                marker="_", markersize=sheet.size.marker * SPREAD_WIDTH, markeredgewidth=sheet.size.points(1.4),
            )  # fmt: skip
            sheet.above.append(partial(_take_spread, sheet, x, (known[0], known[1])))


def _take_spread(sheet: Sheet, x: float, ends: tuple[float, float]) -> None:
    """Keep texts off an upright bar and its ends."""
    (across, low), (_, high) = (sheet.places.at(x, end) for end in sorted(ends))
    half = sheet.size.marker * SPREAD_WIDTH / 2 * sheet.size.dpi / 72
    thick = sheet.places.px(0.7)
    sheet.places.points.append(Box(across - half, low - thick, across + half, high + thick))


def _take(sheet: Sheet, found: list[Point], area: float, line: float = 0.0) -> None:
    """Keep texts off points, and off the line where it costs something to cross it."""
    if area:
        for x, y, _ in found:
            sheet.places.add_point(x, y, area)
    if line:
        sheet.places.add_line(((x, y) for x, y, _ in found), line)


def _line_text(sheet: Sheet, mark: Line, found: list[Point], at: int, most: float) -> None:
    x, y, record = found[at]
    text = fmt.shown(value(record, mark.text), mark.kind)
    if not text:
        return
    gap = sheet.places.px(sheet.size.marker / sheet.size.font * 12.5 / 2 + 4)
    own = sheet.places.marker(x, y, sheet.size.marker**2 if mark.markers else 0.0)
    places = around(*own.centre, gap, FAR if most >= OFF_CROWDS else NEAR)
    sheet.places.put(text, places, most, own, color=TEXT_COLOURS[mark.look.colour], fontweight="bold")


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
        named = list(zip(found, areas, strict=True))[: LABELS if mark.area else None]
        largest = value(found[0][2], mark.area) if mark.area else None
        rank = POINT_TEXTS + 0.9 * (1 - min(largest or 0.0, 1.0))  # the largest marker is what others' texts go round
        sheet.later.append((rank, partial(_point_texts, sheet, mark, named)))


def point_area(share: float | None, mark: Points, size: Size) -> float:
    """Square points of a marker: by the record's share where the mark has one, or that of all points."""
    if not mark.area:
        return (size.marker * 1.05) ** 2
    return size.full_area * max(share or 0.0, LEAST_SHARE)


def point_look(mark: Points, size: Size) -> dict[str, Any]:
    """Colours of a cloud of points."""
    colour = COLOURS[mark.look.colour]
    if mark.look.faint and not mark.look.hollow:
        from matplotlib.colors import to_rgba

        # of points on each other the inside shows how many they are, the edge each of them
        return {
            "facecolors": to_rgba(colour, FAINT),
            "edgecolors": TEXT_COLOURS[mark.look.colour],
            "linewidths": size.points(0.6),
            "alpha": None,
        }
    return {
        "facecolors": "none" if mark.look.hollow else colour,
        "edgecolors": colour if mark.look.hollow else "white",
        "linewidths": size.points(1.6 if mark.look.hollow else 0.8),
        "alpha": FAINT if mark.look.faint else 0.75 if mark.area else 1.0,
    }


def _point_texts(sheet: Sheet, mark: Points, named: list[tuple[Point, float]]) -> None:
    """The texts of points, the largest first; those that lie on each other have one."""
    groups: list[tuple[Box, list[str]]] = []
    for (x, y, record), area in named:
        text, own = fmt.shown(value(record, mark.text), mark.kind), sheet.places.marker(x, y, area)
        at_it = next((texts for other, texts in groups if _same_place(sheet, own, other)), None)
        if at_it is None:
            groups.append((own, [text]))
        elif text not in at_it:
            at_it.append(text)
    for own, texts in groups:
        _point_text(sheet, mark, ", ".join(filter(None, texts)), own)


def _same_place(sheet: Sheet, one: Box, other: Box) -> bool:
    (x, y), (to_x, to_y) = one.centre, other.centre
    return hypot(to_x - x, to_y - y) <= sheet.places.px(SAME_PLACE)


def _point_text(sheet: Sheet, mark: Points, text: str, own: Box) -> None:
    """A point's name, at the end of a line if need be: only another text leaves it no room."""
    if text:
        places = around(*own.centre, sheet.places.px(4), FAR, (own.right - own.left) / 2)
        inside = sheet.places.inside(places, text)
        sheet.places.put(text, inside, OFF_TEXTS, own, NAME_CROSSING, color=TEXT_COLOURS[mark.look.colour])
