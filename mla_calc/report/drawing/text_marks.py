"""Marks of a panel as strokes, characters and words in the cells of a terminal, before any library draws them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .. import format as fmt
from ..chart import Bars, Cells, Colour, Dash, Line, Mark, Points, Roof, Rule, Zones
from ..chart_data import bar_text, column, number_at, value
from .text_sheet import NEAR, TALL, Scene, Sheet

UPRIGHT: dict[Dash, str] = {"solid": "\u2502", "dashed": "\u254e", "dotted": "\u250a"}
LEVEL: dict[Dash, str] = {"solid": "\u2500", "dashed": "\u254c", "dotted": "\u2504"}
"""Rules of the three kinds, in one cell."""
LEFTWARDS, RIGHTWARDS = tuple((-aside, 0) for aside in range(9)), tuple((aside, 0) for aside in range(9))
"""Cells that the digit of a roof may stand in, on its flat part and on its slope."""
BESIDE_CELL = ((4, 0), (3, 0), (-4, 0), (4, 1), (4, -1))
"""Of a map, whose cells hold a text in each row, where a character stands on none."""
WORD = re.compile("[- ]")
"""What ends the first word of a zone's name."""
SHADES = {"below": "\u2591", "above": "\u2593"}
"""Cells under and over 1."""


def draw(sheet: Sheet, scene: Scene, symbols: dict[int, list[str]]) -> None:
    """Draw the marks of the scene's panel; ``symbols``: the characters of each mark's records, by the mark's place.

    Words come last, those of lines before those of rules and zones, so that they find their way around the rest.
    """
    for index, mark in enumerate(scene.panel.marks):
        if isinstance(mark, Roof):
            _roof(sheet, mark, scene, symbols.get(index, []))
        elif isinstance(mark, Rule):
            _rule(sheet, mark, scene)
        elif isinstance(mark, Line):
            _line(sheet, mark, scene)
        elif isinstance(mark, Cells):
            _cells(sheet, mark, scene)
    _bars(sheet, scene, symbols)
    for index, mark in reversed(tuple(enumerate(scene.panel.marks))):
        if isinstance(mark, Points | Line):
            _symbols(sheet, mark, scene, symbols.get(index, []))
    _words(sheet, scene.panel.marks, scene)


def key_colour(mark: Line | Points | Roof | Rule | Bars) -> Colour:
    """The colour of a mark in the key."""
    return (mark.key if isinstance(mark, Line | Points) else None) or colour_of(mark)


def colour_of(mark: Line | Points | Roof | Rule | Bars) -> Colour:
    """The colour of a mark; a faint one is soft."""
    return "soft" if mark.look.faint else mark.look.colour


def spots_of(sheet: Sheet, mark: Line | Points, scene: Scene) -> list[tuple[float, float]]:
    """Where the records of a mark fall, in cells."""
    found = scene.drawn(mark)
    xs, ys = column(found, mark.x, scene.panel.x), column(found, mark.y, scene.panel.y)
    return [(sheet.x.at(x), sheet.y.at(y)) for x, y in zip(xs, ys, strict=True)]


def _roof(sheet: Sheet, mark: Roof, scene: Scene, symbols: list[str]) -> None:
    slope, flat = number_at(scene.results, mark.slope), number_at(scene.results, mark.flat)
    if not slope or not flat:
        return
    corners = [
        sheet.x.low * scene.panel.x.unit,
        min(flat / slope, sheet.x.high * scene.panel.x.unit),
        sheet.x.high * scene.panel.x.unit,
    ]
    points = [
        (sheet.x.at(x / scene.panel.x.unit), sheet.y.at(min(slope * x, flat) / scene.panel.y.unit)) for x in corners
    ]
    sheet.stroke(points, colour_of(mark), mark.look.dash)
    several = sum(isinstance(other, Roof) for other in scene.panel.marks) > 1
    for symbol in symbols:
        sheet.put(sheet.x.cells - 1, points[-1][1], symbol, colour_of(mark), LEFTWARDS)
        if several:  # roofs of one flat part have slopes of their own
            sheet.put(0, points[0][1], symbol, colour_of(mark), RIGHTWARDS)


def _rule(sheet: Sheet, mark: Rule, scene: Scene) -> None:
    at = number_at(scene.results, mark.path)
    if at is None:
        return
    across, up = sheet.x.cells - 1, sheet.y.cells - 1
    if mark.axis == "x":
        x = sheet.x.at(at / scene.panel.x.unit)
        sheet.stroke([(x, 0), (x, up)], colour_of(mark), character=UPRIGHT[mark.look.dash])
    else:
        y = sheet.y.at(at / scene.panel.y.unit)
        sheet.stroke([(0, y), (across, y)], colour_of(mark), character=LEVEL[mark.look.dash])


def _line(sheet: Sheet, mark: Line, scene: Scene) -> None:
    points = spots_of(sheet, mark, scene)
    if len(points) > 1:
        sheet.stroke(points, colour_of(mark), mark.look.dash)


def _symbols(sheet: Sheet, mark: Points | Line, scene: Scene, symbols: list[str]) -> None:
    points = spots_of(sheet, mark, scene)
    characters = symbols if len(symbols) == len(points) else symbols[:1] * len(points)
    if isinstance(mark, Line) and not mark.markers and characters:
        points, characters = [points[len(points) // 2]], characters[:1]
    elif isinstance(mark, Line) and mark.arrow and len(points) > 1 and characters:
        characters = [*characters[:-1], arrow(points[-2], points[-1])]
    crowd = isinstance(mark, Points) and len(symbols) < len(points)
    near = NEAR[:1] if crowd else NEAR + BESIDE_CELL if _is_map(scene) else NEAR
    for (x, y), character in zip(points, characters, strict=True):
        spot = (round(x), round(y))
        if not crowd or spot not in sheet.characters:
            sheet.put(x, y, character, colour_of(mark), near)


def _is_map(scene: Scene) -> bool:
    return any(isinstance(mark, Cells) for mark in scene.panel.marks)


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """The arrow head that points from ``start`` to ``end``, in cells."""
    across, up = end[0] - start[0], TALL * (end[1] - start[1])
    if abs(across) >= abs(up):
        return "\u25b6" if across >= 0 else "\u25c0"
    return "\u25b2" if up >= 0 else "\u25bc"


def _cells(sheet: Sheet, mark: Cells, scene: Scene) -> None:
    found = [record for record in scene.drawn(mark) if value(record, mark.value) is not None]
    xs, ys = column(found, mark.x, scene.panel.x), column(found, mark.y, scene.panel.y)
    for record, x, y in zip(found, xs, ys, strict=True):
        below = value(record, mark.value) < 1
        shade, spot = SHADES["below" if below else "above"], (round(sheet.x.at(x)), round(sheet.y.at(y)))
        text = fmt.shown(value(record, mark.text), mark.kind) if mark.text else ""
        sheet.write(f"{shade} {text}".strip(), "blue" if below else "orange", [(spot[0] - 3, spot[1]), spot])


def _bars(sheet: Sheet, scene: Scene, symbols: dict[int, list[str]]) -> None:
    bars = [(index, mark) for index, mark in enumerate(scene.panel.marks) if isinstance(mark, Bars)]
    names = [value(record, mark.name) for _, mark in bars for record in scene.drawn(mark)]
    ends: dict[Any, float] = {}
    for place, (index, mark) in enumerate(bars):
        found = scene.drawn(mark)
        for record, length in zip(found, column(found, mark.value, scene.panel.x), strict=True):
            name = value(record, mark.name)
            start = ends.get(name, 0.0) if scene.panel.stacked else 0.0
            ends[name] = start + length
            aside = 0.0 if scene.panel.stacked else (len(bars) / 2 - place - 0.5) * min(1.0, sheet.y.step() / len(bars))
            first = round(sheet.x.at(start)) if start or scene.panel.x.scale == "linear" else 0
            row, last = round(sheet.y.at(name) + aside), round(sheet.x.at(start + length))
            for cell in range(max(0, first), max(first, last) + 1):
                sheet.characters[cell, row] = (symbols[index][0], colour_of(mark))
            if not scene.panel.stacked or names.count(name) == 1:
                sheet.write(bar_text(record, mark), "ink", [(last + 2, row)])
            else:
                _number_within(sheet, bar_text(record, mark), (first, last), row)


def _number_within(sheet: Sheet, text: str, ends: tuple[int, int], row: int) -> None:
    """The number of a stacked bar in place of its middle, where that leaves two of its signs on both sides."""
    first, last = ends
    start = first + (last - first + 1 - len(text)) // 2
    if start - first < 3:
        return
    for cell, sign in enumerate(f" {text} ", start - 1):
        sheet.characters.pop((cell, row), None)
        if sign != " ":
            sheet.characters[cell, row] = (sign, "ink")


def _words(sheet: Sheet, marks: Sequence[Mark], scene: Scene) -> None:
    lines = [mark for mark in marks if isinstance(mark, Line) and mark.text]
    for line in (each for each in lines if each.must):
        _steps(sheet, line, scene, True)
    for line in lines:
        _steps(sheet, line, scene, False)
    for mark in marks:
        if isinstance(mark, Rule) and mark.text:
            _rule_words(sheet, mark, scene, [each for each in marks if isinstance(each, Rule) and each is not mark])
        elif isinstance(mark, Zones):
            at = number_at(scene.results, mark.path)
            if at is not None:
                _zones(sheet, mark, round(sheet.x.at(at / scene.panel.x.unit)))


def _steps(sheet: Sheet, mark: Line, scene: Scene, must: bool) -> None:
    """The text of a line's points: the last and the first, then what finds room between; or those that ``must`` be."""
    found = list(zip(scene.drawn(mark), spots_of(sheet, mark, scene), strict=True))
    ends = (*found[-1:], *found[:1])
    ordered = ends if mark.ends and not must else (*ends, *found[1:-1])
    named = [(fmt.shown(value(record, mark.text), mark.kind), point)
             for record, point in ordered if bool(mark.must and value(record, mark.must)) == must]  # fmt: skip
    for text, (x, y) in dict.fromkeys(named):
        column_, row = round(x), round(y)
        beside = [(column_ + 1, row - 1), (column_ + 2, row), (column_ - 1 - len(text), row),
                  (column_ - len(text), row + 1), (column_, row + 1), (column_, row - 1),
                  (column_ + 2, row - 1), (column_ - 1 - len(text), row + 1)]  # fmt: skip
        if must:
            beside += [(column_ + across, row + up) for up in (2, -2, 3, -3, 4, -4)
                       for across in (1, -len(text), -len(text) // 2)]  # fmt: skip
        sheet.write(text, colour_of(mark), beside, apart=1)


def _rule_words(sheet: Sheet, mark: Rule, scene: Scene, others: Sequence[Rule]) -> None:
    at = number_at(scene.results, mark.path)
    if at is None:
        return
    text = mark.text.replace("{}", fmt.shown(at, mark.kind))
    if mark.axis == "x":
        x = round(sheet.x.at(at / scene.panel.x.unit))
        numbers = [number_at(scene.results, each.path) for each in others if each.axis == "x"]
        near = [round(sheet.x.at(number / scene.panel.x.unit)) for number in numbers if number is not None]
        # on the side with the fewest other rules: a text is read as the nearest one's
        sides = sorted((x + 1, x - len(text)), key=lambda left: sum(
            left - 1 <= other <= left + len(text) and other != x for other in near))  # fmt: skip
        spots = [(left, row) for row in range(1, sheet.y.cells) for left in sides]
    else:
        y = round(sheet.y.at(at / scene.panel.y.unit))
        spots = [(left, row) for left in (1, sheet.x.cells - len(text)) for row in (y + 1, y - 1)]
    sheet.write(text, colour_of(mark), spots)


def _zones(sheet: Sheet, mark: Zones, x: int) -> None:
    """The names of both sides; of one that is too long for its side the first word."""
    rows = (0, 1, sheet.y.cells - 1)
    below = mark.below if len(mark.below) < x else WORD.split(mark.below)[0]
    above = mark.above if x + 2 + len(mark.above) <= sheet.x.cells else WORD.split(mark.above)[0]
    sheet.write(below, "soft", [(x - 1 - len(below), row) for row in rows])
    sheet.write(above, "soft", [(x + 2, row) for row in rows])
