"""What a chart draws: numbers looked up in the results, and its axes' limits. No renderer looks elsewhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import exp, log, log10
from typing import Any, Literal

from . import format as fmt
from .chart import Axis, Bars, Cells, Line, Mark, Panel, Points, Roof, Rows, Rule, Zones
from .record import Results, lookup

ROOM = 0.06
"""Of an axis' length: what is left free at both ends."""
MOST_TEXT = 0.6
"""Of an axis' length: more of it does not go to a number beside a bar."""


def records(results: Results, rows: Rows) -> list[dict[str, Any]]:
    """The records that ``rows`` names. Raises InputError where the results have no such list."""
    found = lookup(results, rows.path) if rows.path else results
    every: list[dict[str, Any]] = found if isinstance(found, list) else [found]
    return [record for record in every if matches(record, rows.only)]


def matches(record: dict[str, Any], only: Iterable[tuple[str, Any]]) -> bool:
    """Whether the record has the values of ``only`` at its keys."""
    return all(value(record, key) == wanted for key, wanted in only)


def value(record: dict[str, Any], key: str) -> Any:
    """What stands at a dotted key of a record."""
    return lookup(record, key)


def drawn(results: Results, mark: Line | Points | Cells | Bars) -> list[dict[str, Any]]:
    """The records of a mark that have what it draws: one with a value that is not known has no place.

    Those of a line go along its x axis, in whatever order they were asked for; of a line with a direction they stay in
    the order of the results, which is its course.
    """
    keys = (mark.value,) if isinstance(mark, Bars) else (mark.x, mark.y)
    found = [record for record in records(results, mark.rows) if all(value(record, key) is not None for key in keys)]
    return found if not isinstance(mark, Line) or mark.arrow else _rising(found, mark.x)


def _rising(found: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Records by their number at ``key``; names, which have no order but their own, stay as they are."""
    numeric = all(isinstance(value(record, key), int | float) for record in found)
    return sorted(found, key=lambda record: value(record, key)) if numeric else found


def bar_text(record: dict[str, Any], mark: Bars) -> str:
    """What stands at the end of a bar: its number, and how many times another's that is."""
    text = fmt.shown(value(record, mark.value), mark.kind)
    return f"{text}, {fmt.short_factor(value(record, mark.ratio))}" if mark.ratio else text


def ends_alone(panel: Panel, results: Results) -> list[tuple[float, str]]:
    """Of each bar that is stacked with no other: where it ends, in the axis' units, and what stands there."""
    bars = [(record, mark) for mark in panel.marks if isinstance(mark, Bars) for record in drawn(results, mark)]
    names = [value(record, mark.name) for record, mark in bars]
    return [
        (value(record, mark.value) / panel.x.unit, bar_text(record, mark))
        for name, (record, mark) in zip(names, bars, strict=True)
        if not panel.stacked or names.count(name) == 1
    ]


def with_room(ends: tuple[float, float], taken: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The ends of a linear axis, the upper one so high that texts stand inside.

    Args:
        ends: as they are without texts.
        taken: where each text begins, and what share of the axis it takes; more than MOST_TEXT it does not get.
    """
    low, high = ends
    return low, max([high, *(low + (start - low) / (1 - min(share, MOST_TEXT)) for start, share in taken)])


def column(found: Iterable[dict[str, Any]], key: str, axis: Axis) -> list[Any]:
    """The values at ``key`` as an axis draws them: divided by its unit, categories as they are."""
    values = [value(record, key) for record in found]
    return values if axis.scale == "category" else [each / axis.unit for each in values]


def number_at(results: Results, path: str) -> float | None:
    """The number at ``path``, or ``None`` where it is not known."""
    found: float | None = lookup(results, path)
    return found


def categories(panel: Panel, results: Results, axis: Literal["x", "y"]) -> list[Any]:
    """What the marks have along a category axis: texts in the order of the records, numbers rising.

    The first is at the left of an x axis and at the bottom of a y axis; of bars at the top. Where there are cells,
    they alone make the axis, and other marks are put on it by :func:`place`.
    """
    found: dict[Any, None] = {}
    cells = [mark for mark in panel.marks if isinstance(mark, Cells)]
    for mark in cells or panel.marks:
        if isinstance(mark, Bars) and axis == "y":
            found |= dict.fromkeys(value(record, mark.name) for record in records(results, mark.rows))
        elif isinstance(mark, Line | Points | Cells):
            key = mark.x if axis == "x" else mark.y
            found |= dict.fromkeys(value(record, key) for record in drawn(results, mark))
    numeric = all(isinstance(each, int | float) for each in found)
    return sorted(found) if numeric else list(found)


def place(among: Sequence[Any], at: Any) -> float | None:
    """Where ``at`` lies on a category axis: 0 is the first of ``among``, 1 the second; ``None``: nowhere.

    Between two numbers, and beyond the ends by the step of the nearest two, the axis is logarithmic.
    """
    if at in among:
        return float(among.index(at))
    if len(among) < 2 or not all(isinstance(each, int | float) and each > 0 for each in [*among, at]):
        return None
    below = min(max(bisect_right(among, at) - 1, 0), len(among) - 2)
    low, high = among[below : below + 2]
    return below + log(at / low) / log(high / low)


def edges(values: Iterable[float], axis: Axis) -> list[float]:
    """The edges of cells whose middles are ``values``, one more than there are values, rising.

    On a log axis they are halfway between two values as the axis shows them.
    """
    middles = sorted(set(values))
    scaled = [log(each) for each in middles] if axis.scale == "log" else middles
    steps = [high - low for low, high in pairwise(scaled)] or [1.0]
    inner = [(low + high) / 2 for low, high in pairwise(scaled)]
    ends = [scaled[0] - steps[0] / 2, *inner, scaled[-1] + steps[-1] / 2]
    return [exp(each) for each in ends] if axis.scale == "log" else ends


def limits(panels: Sequence[Panel], results: Results) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of both axes, in the axes' units, such that every mark of ``panels`` is seen.

    Of category axes they mean nothing. Raises ValueError where nothing is drawn and an axis has no ends of its own.
    """
    xs: list[float] = []
    ys: list[float] = []
    for panel in panels:
        for mark in panel.marks:
            across, up = _reach(mark, panel, results)
            xs += across
            ys += up
    first = panels[0]
    return _ends(first.x, xs), _ends(first.y, ys)


def _reach(mark: Mark, panel: Panel, results: Results) -> tuple[list[float], list[float]]:
    """The values of both axes that a mark needs to be seen, in the results' units."""
    if isinstance(mark, Line | Points):
        found = drawn(results, mark)
        return _numbers(found, mark.x, panel.x), _numbers(found, mark.y, panel.y)
    if isinstance(mark, Cells):
        found = drawn(results, mark)
        return _edges(found, mark.x, panel.x), _edges(found, mark.y, panel.y)
    if isinstance(mark, Bars):
        return _lengths(mark, panel, results), []
    if isinstance(mark, Roof):
        slope, flat = number_at(results, mark.slope), number_at(results, mark.flat)
        return ([flat / slope * 2], [flat * 1.3]) if slope and flat else ([], [])
    if isinstance(mark, Rule):
        at = number_at(results, mark.path)
        known = [] if at is None else [at]
        return (known, []) if mark.axis == "x" else ([], known)
    assert isinstance(mark, Zones)
    return [], []


def _edges(found: Iterable[dict[str, Any]], key: str, axis: Axis) -> list[float]:
    middles = _numbers(found, key, axis)
    return edges(middles, axis) if middles else []


def _lengths(mark: Bars, panel: Panel, results: Results) -> list[float]:
    """Where the bars of a mark end, and where they start; stacked ones end where all of their category end."""
    lengths = _numbers(drawn(results, mark), mark.value, panel.x)
    start = 0.0 if panel.x.scale == "linear" else min(lengths, default=1.0) / 2
    if panel.stacked:
        ends: dict[Any, float] = {}
        for other in (each for each in panel.marks if isinstance(each, Bars)):
            for record in drawn(results, other):
                name = value(record, other.name)
                ends[name] = ends.get(name, 0.0) + value(record, other.value)
        lengths += ends.values()
    return [start, *lengths]


def _numbers(found: Iterable[dict[str, Any]], key: str, axis: Axis) -> list[float]:
    return [] if axis.scale == "category" else [value(record, key) for record in found]


def _ends(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    if axis.scale == "category":
        return 0.0, 1.0
    if not values and (axis.low is None or axis.high is None):
        raise ValueError(f"nothing is drawn along {axis.label!r}")
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if axis.scale == "log":
        room = ROOM * log10(high / low) if high > low else 0.3
        low = low / 10**room if axis.low is None else low
        high = high * 10**room if axis.high is None else high
    else:
        room = ROOM * (high - low) or 1.0
        low = (min(max(low - room, 0.0), low) if low >= 0 else low - room) if axis.low is None else low
        high = high + room if axis.high is None else high
    return low / axis.unit, high / axis.unit
