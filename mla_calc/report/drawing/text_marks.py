"""Marks of a panel as strokes, characters and words in the cells of a terminal, before any library draws them."""

from __future__ import annotations

from typing import Any

from .. import format as fmt
from ..chart import Bars, Cells, Colour, Dash, Line, Mark, Points, Roof, Rule
from ..chart_data import bar_text, column, number_at, value
from .text_sheet import NEAR, TALL, Scene, Sheet, Spot

UPRIGHT: dict[Dash, str] = {"solid": "\u2502", "dashed": "\u254e", "dotted": "\u250a"}
LEVEL: dict[Dash, str] = {"solid": "\u2500", "dashed": "\u254c", "dotted": "\u2504"}
"""Rules of the three kinds, in one cell."""
ASIDE = range(9)
"""How far from either end the digit of a roof may stand."""
ALWAYS = 2
"""The rank of points that are seen whatever else is there."""
MANY = 12
"""Points of a mark that may have a letter each; of more, one may have another character in its place."""
FURTHER = ((2, 0), (-2, 0), (2, 1), (-2, -1))
"""Where a letter of a point may stand beside a roof too, which leaves it few cells that are nearer."""
BESIDE_CELL = ((4, 0), (3, 0), (-4, 0), (4, 1), (4, -1))
"""Of a map, whose cells hold a text in each row, where a character stands on none."""
SHADES = {"below": "\u2591", "above": "\u2593"}
"""Cells under and over 1."""


def draw(sheet: Sheet, scene: Scene, symbols: dict[int, list[str]]) -> None:
    """Draw the marks of the scene's panel, but for words; ``symbols``: each mark's characters, by the mark's place.

    Of the characters those of the highest rank come first, and the digits of slopes last: flat ends have them too.
    """
    marks = scene.panel.marks
    for mark in marks:
        if isinstance(mark, Roof):
            _roof(sheet, mark, scene)
        elif isinstance(mark, Rule):
            _rule(sheet, mark, scene)
        elif isinstance(mark, Line):
            _line(sheet, mark, scene)
        elif isinstance(mark, Cells):
            _cells(sheet, mark, scene)
    _bars(sheet, scene, symbols)
    placed = [(_rank(mark), index) for index, mark in enumerate(marks) if isinstance(mark, Points | Line)]
    ordered = sorted(placed, reverse=True)
    for index in (index for rank, index in ordered if rank):
        _symbols(sheet, marks[index], scene, symbols[index])
    _digits(sheet, scene, symbols, flat=True)
    for index in (index for rank, index in ordered if not rank):
        _symbols(sheet, marks[index], scene, symbols[index])
    _digits(sheet, scene, symbols, flat=False)


def _rank(mark: Points | Line) -> int:
    return mark.rank if isinstance(mark, Points) else 0


def key_colour(mark: Line | Points | Roof | Rule | Bars) -> Colour:
    """The colour of a mark in the key."""
    return (mark.key if isinstance(mark, Line | Points) else None) or colour_of(mark)


def colour_of(mark: Line | Points | Roof | Rule | Bars) -> Colour:
    """The colour of a mark; a faint one is soft."""
    return "soft" if mark.look.faint else mark.look.colour


def rule_sign(mark: Rule) -> str:
    """The character that a rule is made of."""
    return (UPRIGHT if mark.axis == "x" else LEVEL)[mark.look.dash]


def spots_of(sheet: Sheet, mark: Line | Points, scene: Scene) -> list[tuple[float, float]]:
    """Where the records of a mark fall, in cells."""
    found = scene.drawn(mark)
    xs, ys = column(found, mark.x, scene.panel.x), column(found, mark.y, scene.panel.y)
    return [(sheet.x.at(x), sheet.y.at(y)) for x, y in zip(xs, ys, strict=True)]


def corners(sheet: Sheet, mark: Roof, scene: Scene) -> list[tuple[float, float]]:
    """The left end of a roof, its ridge and its right end, in cells; none where a ceiling is not known."""
    slope, flat = number_at(scene.results, mark.slope), number_at(scene.results, mark.flat)
    if not slope or not flat:
        return []
    x, y = scene.panel.x, scene.panel.y
    ends = (sheet.x.low * x.unit, min(flat / slope, sheet.x.high * x.unit), sheet.x.high * x.unit)
    return [(sheet.x.at(at / x.unit), sheet.y.at(min(slope * at, flat) / y.unit)) for at in ends]


def _roof(sheet: Sheet, mark: Roof, scene: Scene) -> None:
    points = corners(sheet, mark, scene)
    if points:
        sheet.roof(points, colour_of(mark), mark.look.dash, named=bool(mark.on_flat))


def _digits(sheet: Sheet, scene: Scene, symbols: dict[int, list[str]], flat: bool) -> None:
    """The digits of roofs on their flat ends, or on their slopes where there are several: those of one peak differ."""
    roofs = [(index, mark) for index, mark in enumerate(scene.panel.marks) if isinstance(mark, Roof)]
    for index, mark in roofs if flat or len(roofs) > 1 else ():
        points = corners(sheet, mark, scene)
        for symbol in symbols[index] if points else ():
            row = round(points[-1 if flat else 0][1])
            columns = [sheet.x.cells - 1 - aside if flat else aside for aside in ASIDE]
            sheet.put([(column, row) for column in columns], symbol, colour_of(mark))


def _rule(sheet: Sheet, mark: Rule, scene: Scene) -> None:
    at = number_at(scene.results, mark.path)
    if at is None:
        return
    across, up = sheet.x.cells - 1, sheet.y.cells - 1
    if mark.axis == "x":
        x = sheet.x.at(at / scene.panel.x.unit)
        sheet.stroke([(x, 0), (x, up)], colour_of(mark), character=rule_sign(mark))
    else:
        y = sheet.y.at(at / scene.panel.y.unit)
        sheet.stroke([(0, y), (across, y)], colour_of(mark), character=rule_sign(mark))


def _line(sheet: Sheet, mark: Line, scene: Scene) -> None:
    points = spots_of(sheet, mark, scene)
    if len(points) > 1:
        sheet.stroke(points, colour_of(mark), mark.look.dash)


def _symbols(sheet: Sheet, mark: Mark, scene: Scene, symbols: list[str]) -> None:
    assert isinstance(mark, Points | Line)
    points = spots_of(sheet, mark, scene)
    characters = symbols if len(symbols) == len(points) else symbols[:1] * len(points)
    if isinstance(mark, Line) and not mark.markers and characters:
        points, characters = [points[len(points) // 2]], characters[:1]
    elif isinstance(mark, Line) and mark.arrow and len(points) > 1 and characters:
        characters = [*characters[:-1], arrow(points[-2], points[-1])]
    shared = isinstance(mark, Points) and len(symbols) < len(points)
    weak = shared and len(points) > MANY and _rank(mark) < ALWAYS
    near: tuple[Spot, ...] = NEAR[:1] if weak else NEAR + BESIDE_CELL if _is_map(scene) else NEAR
    if sheet.roofs and isinstance(mark, Points) and not shared:
        near += FURTHER
    for (x, y), character in zip(points, characters, strict=True):
        # steps of one line, or points with one sign, may share a cell: the sign stands for all of them
        standing = sheet.characters.get((round(x), round(y)))
        if standing != (character, colour_of(mark)):
            sheet.put(sheet.near(x, y, near), character, colour_of(mark), weak)


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
