"""Roofs, rules and zones on a matplotlib panel: what points are seen against."""

from __future__ import annotations

from functools import partial
from math import hypot

from .. import format as fmt
from ..chart import Roof, Rule, Zones
from ..chart_data import number_at
from .placing import ANYWHERE, OFF_TEXTS, ON_LINE, ON_RULE, Place
from .sheet import NAMES, ROOF_TEXTS, RULES, Sheet, line_look
from .style import ABOVE_SHADE, BELOW_SHADE, SOFT, TEXT_COLOURS

BEHIND_RULE, TO_RULE = 80.0, 15.0
"""What it costs a rule's text to stand behind another rule, and to reach one."""


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
    way = list(zip(x, y, strict=True))
    sheet.above.append(partial(sheet.places.add_line, way))
    if mark.on_flat and high > ridge:
        sheet.later.append((ROOF_TEXTS, partial(_roof_text, sheet, mark, mark.on_flat, way[-2:][::-1])))
    if mark.on_slope and low < ridge:
        sheet.later.append((ROOF_TEXTS, partial(_roof_text, sheet, mark, mark.on_slope, way[:2])))


def _roof_text(sheet: Sheet, mark: Roof, text: str, way: list[tuple[float, float]]) -> None:
    """Along the part of a roof that goes from its end, the first of ``way``, on: above it, or else below."""
    frame, step = sheet.axes.get_window_extent(), sheet.places.px(8)
    off_line = sheet.places.px(3)
    off_markers = off_line + sheet.size.marker / 2 * sheet.size.dpi / 72
    (x, y), (to_x, to_y) = (sheet.places.at(*each) for each in way)
    flat = abs(to_y - y) < 1
    steps = int(hypot(to_x - x, to_y - y) / step)
    along = [(x + (to_x - x) * at / steps, y + (to_y - y) * at / steps) for at in range(steps)]
    inside = [each for each in along if frame.y0 <= each[1] <= frame.y1]
    places = [
        Place(across, up + side * gap, "right" if flat or side > 0 else "left", "bottom" if side > 0 else "top", cost)
        for rank, (across, up) in enumerate(inside)
        for side, gap, cost in (
            (1, off_line, rank * 0.8),
            (-1, off_line, rank * 0.8 + 0.5),
            (1, off_markers, rank * 0.8 + 1),
            (-1, off_markers, rank * 0.8 + 1.5),
        )
    ]
    if places:
        sheet.places.put(text, places, OFF_TEXTS, color=TEXT_COLOURS[mark.look.colour])


def draw_rule(sheet: Sheet, mark: Rule) -> None:
    """A straight line, and its text where there is room beside it; at the right of a map."""
    at = sheet.rule_at(mark.path, mark.axis)
    if at is None:
        return
    draw = sheet.axes.axvline if mark.axis == "x" else sheet.axes.axhline
    look = line_look(mark.look, sheet.size) | {"linewidth": sheet.size.line * 0.65}
    draw(at, zorder=3.4 if sheet.has_cells or sheet.has_bars else 2.2, gid=sheet.gid(mark), **look)
    ends = sheet.axes.get_ylim() if mark.axis == "x" else sheet.axes.get_xlim()
    way = [(at, end) if mark.axis == "x" else (end, at) for end in ends]
    # a text on an upright rule is cut once, one on a level rule is struck out
    sheet.above.append(partial(sheet.places.add_line, way, ON_RULE if mark.axis == "x" else ON_LINE))
    if mark.text and not (sheet.has_cells and mark.axis == "y"):
        sheet.later.append((RULES, partial(_rule_text, sheet, mark, at)))


def rule_text(sheet: Sheet, mark: Rule) -> str:
    """A rule's text with its number."""
    return mark.text.replace("{}", fmt.shown(number_at(sheet.results, mark.path), mark.kind))


def _rule_text(sheet: Sheet, mark: Rule, at: float) -> None:
    """Beside the line: of an upright one at the bottom first and then higher, of a level one at the right first.

    Where another rule is near, on the side away from it: a text is read as the nearest line's.
    """
    frame = sheet.axes.get_window_extent()
    text = rule_text(sheet, mark)
    away = _sides(sheet, mark, at, sheet.places.extent(text)[0 if mark.axis == "x" else 1])
    gap, step = sheet.places.px(5), sheet.places.px(8)
    colour = TEXT_COLOURS[mark.look.colour]
    if mark.axis == "x":
        x = sheet.places.at(at, sheet.axes.get_ylim()[0])[0]
        heights = [frame.y0 + gap + step * row for row in range(int((frame.height - gap) / step))]
        places = [
            Place(x + side * gap, height, "left" if side > 0 else "right", "bottom", rank * 0.8 + away[side])
            for rank, height in enumerate(heights)
            for side in (1, -1)
        ]
    else:
        y = sheet.places.at(sheet.axes.get_xlim()[0], at)[1]
        columns = [frame.x1 - gap - step * 2 * rank for rank in range(int(frame.width / step / 2))]
        places = [
            Place(x, y + side * gap * 0.6, "right", "bottom" if side > 0 else "top", rank * 0.8 + away[side])
            for rank, x in enumerate(columns)
            for side in (1, -1)
        ]
    sheet.places.put(text, places, ANYWHERE, color=colour)


def _sides(sheet: Sheet, mark: Rule, at: float, length: float) -> dict[int, float]:
    """What each side of a rule costs a text of ``length`` pixels, by the other rules there."""
    gap = sheet.places.px(5)
    corner = (sheet.axes.get_xlim()[0], sheet.axes.get_ylim()[0])

    def pixel(number: float) -> float:
        return sheet.places.at(number, corner[1])[0] if mark.axis == "x" else sheet.places.at(corner[0], number)[1]

    rules = [each for each in sheet.panel.marks if isinstance(each, Rule) and each.axis == mark.axis]
    numbers = [sheet.rule_at(each.path, each.axis) for each in rules if each is not mark]
    others = [number for number in numbers if number is not None]
    costs = {1: 0.0, -1: 0.5}
    for side in costs:
        for other in others:
            off = (pixel(other) - pixel(at)) * side
            costs[side] += BEHIND_RULE if 0 < off <= gap else TO_RULE if gap < off <= length + 3 * gap else 0.0
    return costs


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
            sheet.later.append((NAMES, partial(_zone_name, sheet, name, start == low)))


def _zone_name(sheet: Sheet, name: str, left: bool) -> None:
    frame = sheet.axes.get_window_extent()
    gap = sheet.places.px(6)
    x = frame.x0 + gap if left else frame.x1 - gap
    corner = Place(x, frame.y1 - gap * 0.6, "left" if left else "right", "top")
    sheet.places.put(name, [corner], ANYWHERE, color=SOFT)
