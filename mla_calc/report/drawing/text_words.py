"""Words of a panel in the cells of a terminal: those that must be there, those of rules, and what else has room."""

from __future__ import annotations

from collections.abc import Sequence

from .. import format as fmt
from ..chart import Line, Mark, Roof, Rule, Zones
from ..chart_data import number_at, value
from .text_marks import colour_of, corners, spots_of
from .text_sheet import Scene, Sheet, Spot, cells_of

ALONG_FLAT = 24
"""Columns from the right end of a roof that its name may begin in."""
ALONG_SLOPE = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Shares of a slope that its name may stand beside."""


def write_words(sheet: Sheet, scene: Scene) -> list[tuple[Mark, str]]:
    """Write the words of the scene's panel around the rest; what must be read and found no place, with its mark."""
    marks = scene.panel.marks
    lines = [mark for mark in marks if isinstance(mark, Line) and mark.text]
    rules = [mark for mark in marks if isinstance(mark, Rule) and mark.text]
    left: list[tuple[Mark, str]] = []
    for line in (each for each in lines if each.must):
        left += [(line, text) for text in _steps(sheet, line, scene, True)]
    for rule in rules:
        others = [each for each in marks if isinstance(each, Rule) and each is not rule]
        left += [(rule, text) for text in _rule_words(sheet, rule, scene, others)]
    for line in lines:
        _steps(sheet, line, scene, False)
    for mark in marks:
        if isinstance(mark, Zones):
            at = number_at(scene.results, mark.path)
            if at is not None:
                _zones(sheet, mark, round(sheet.x.at(at / scene.panel.x.unit)))
        elif isinstance(mark, Roof):
            _slope_name(sheet, mark, scene)
    _flat_names(sheet, scene)
    return left


def _steps(sheet: Sheet, mark: Line, scene: Scene, must: bool) -> list[str]:
    """The text of a line's points: the last and the first, then what finds room between; or those that ``must`` be.

    Those that found no place are returned.
    """
    found = list(zip(scene.drawn(mark), spots_of(sheet, mark, scene), strict=True))
    ends = (*found[-1:], *found[:1])
    ordered = ends if mark.ends and not must else (*ends, *found[1:-1])
    named = [(fmt.shown(value(record, mark.text), mark.kind), point)
             for record, point in ordered if bool(mark.must and value(record, mark.must)) == must]  # fmt: skip
    return [text for text, point in dict.fromkeys(named)
            if not sheet.write(text, colour_of(mark), _off_flat_ends(sheet, text, point, must), apart=1)
            and text]  # fmt: skip


def _off_flat_ends(sheet: Sheet, text: str, point: tuple[float, float], must: bool) -> list[Spot]:
    """Where the text of a point may begin: on no flat end that has a roof's name, or it would be read as another's.

    What ``must`` be read stands there where nothing else is left.
    """
    flat = {spot for roof in sheet.roofs if roof.named for spot in roof.flat}
    spots = _beside(text, point, must)
    clear = [spot for spot in spots if flat.isdisjoint(cells_of(spot, text))]
    return clear + [spot for spot in spots if must and spot not in clear]


def _beside(text: str, point: tuple[float, float], must: bool) -> list[Spot]:
    """Where the text of a point may begin: no more than a row away, or it is read as another's."""
    column, row = round(point[0]), round(point[1])
    left = column - 1 - len(text)
    beside = [(column + 1, row - 1), (column + 2, row), (left, row), (left + 1, row + 1), (column, row + 1),
              (column, row - 1), (column + 2, row - 1), (left, row + 1)]  # fmt: skip
    return beside + [(column - len(text) // 2, row + up) for up in (1, -1)] * must


def _flat_names(sheet: Sheet, scene: Scene) -> None:
    """The names of roofs on their flat ends; of those that share a row all of them, or none where they have no room."""
    rows: dict[int, list[Roof]] = {}
    for mark in scene.panel.marks:
        if isinstance(mark, Roof) and (points := corners(sheet, mark, scene)):
            rows.setdefault(round(points[-1][1]), []).append(mark)
    for row, roofs in rows.items():
        names = {mark.on_flat: colour_of(mark) for mark in roofs if mark.on_flat}
        if names:
            text = f" {', '.join(names)} "
            bend = max(round(corners(sheet, mark, scene)[1][0]) for mark in roofs)
            first = max(bend + 2, sheet.x.cells - 1 - ALONG_FLAT)
            spots = [(start, row) for start in range(sheet.x.cells - 1 - len(text), first - 1, -1)]
            sheet.write(text, names.popitem()[1] if len(names) == 1 else "ink", spots)


def _slope_name(sheet: Sheet, mark: Roof, scene: Scene) -> None:
    """The name of a roof beside its slope, where there is room."""
    points = corners(sheet, mark, scene)
    if points and mark.on_slope:
        (x0, y0), (x1, y1), _ = points
        places = [(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share) for share in ALONG_SLOPE]
        sheet.write(mark.on_slope, colour_of(mark), [(round(x) + 2, round(y)) for x, y in places])


def _rule_words(sheet: Sheet, mark: Rule, scene: Scene, others: Sequence[Rule]) -> list[str]:
    """Write the text of a rule along it; the text if there is no place."""
    at = number_at(scene.results, mark.path)
    if at is None:
        return []
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
    return [] if sheet.write(text, colour_of(mark), spots) else [text]


def _zones(sheet: Sheet, mark: Zones, x: int) -> None:
    """The names of both sides; one that is too long for its side is left out, since a part of it tells something else.

    :meth:`Sheet.write` takes no text that does not fit.
    """
    rows = (0, 1, sheet.y.cells - 1)
    sheet.write(mark.below, "soft", [(x - 1 - len(mark.below), row) for row in rows])
    sheet.write(mark.above, "soft", [(x + 2, row) for row in rows])
