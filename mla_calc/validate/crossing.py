"""The measured crossover: at how many queries the naive path first ran faster, beside what was predicted.

Rows that timed whole paths are put side by side at one :class:`Place`. Between two measured Q the logarithm of the
ratio of both times is taken as linear in the logarithm of Q. A path's kernels change with Q, so paths can cross more
than once: what lies above the first crossover is told too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log

from ..costs.crossover import first_causal_queries
from ..hardware.roofline import datasheet_ceilings
from .record import Row
from .recorded import Recorded
from .timed import work_of


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where both paths can be compared: times of anything else never meet."""

    dtype: str
    """Of the products."""
    cache: str
    heads: int
    """Per rank."""
    context: int
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The rows of both paths at one place; of the naive one, those of one implementation."""

    place: Place
    name: str
    """Which naive path: ``naive`` as an engine runs it, ``naive_in_place``."""
    absorbed: tuple[Row, ...]
    naive: tuple[Row, ...]


def place_of(row: Row) -> Place:
    """The place of a row."""
    return Place(dtype=row.dtype, cache=row.cache, heads=row.heads, context=row.context, batch=row.batch)


def pairs_of(rows: Iterable[Row]) -> tuple[Pair, ...]:
    """Both paths' rows side by side, by dtype and cache, then by naive path and the rest of the place.

    Rows of one GPU and model. Attention alone is no path, and a row with launches in its times is not compared.
    """
    absorbed: dict[Place, list[Row]] = {}
    naive: dict[tuple[Place, str], list[Row]] = {}
    for row in rows:
        if row.uncaptured is not None:
            continue
        if row.scope == "absorbed":
            absorbed.setdefault(place_of(row), []).append(row)
        elif row.scope == "naive":
            naive.setdefault((place_of(row), row.kernel), []).append(row)
    found = [
        Pair(place=place, name=name, absorbed=tuple(absorbed[place]), naive=tuple(mine))
        for (place, name), mine in naive.items()
        if place in absorbed
    ]
    return tuple(sorted(found, key=lambda pair: (pair.place.dtype, pair.place.cache, pair.name, pair.place)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One crossover; queries are causal, at a fixed context that counts them."""

    gpu: str
    model: str
    dtype: str
    """Of the products."""
    cache: str
    heads: int
    """Per rank."""
    context: int
    batch: int
    naive: str
    """Which naive path: ``naive`` as an engine runs it, ``naive_in_place``."""
    absorbed: tuple[str, ...]
    """The attention kernels of the absorbed path that was the fastest, over the measured queries."""
    queries: tuple[int, ...]
    """Those measured on both paths."""
    measured_queries: float | None
    """Where both paths first took the same time, by medians: at the next Q that was measured the naive one is faster,
    and at all above where ``crossed_again`` is empty."""
    low: float | None
    """The same where the naive path is as fast as its 10th percentile and the absorbed as slow as its 90th."""
    high: float | None
    """The same the other way round."""
    reason: str | None
    """Why one of the three is ``None``."""
    crossed_again: tuple[int, ...]
    """Measured Q at which the naive path is not the faster one although it is at a smaller one."""
    last_queries: float | None
    """Where ``crossed_again`` has any: where both took the same time for the last time; above, the naive path is the
    faster one at every Q that was measured. ``None``: it is not at the most measured, or they crossed once."""
    flop_queries: int | None
    """The first Q at which the naive path takes fewer FLOPs; ``None``: at none up to the context."""
    time_queries: int | None
    """The first Q at which the naive path's datasheet bound is lower."""


def crossings(rows: Iterable[Recorded]) -> tuple[Crossing, ...]:
    """Every crossover that ``rows`` hold: each naive path against the fastest absorbed one of the same place.

    By GPU and model, then as :func:`pairs_of` has them.
    """
    groups: dict[tuple[str, str], dict[Place, Recorded]] = {}
    listed: dict[tuple[str, str], list[Row]] = {}
    for item in rows:
        key = (item.gpu.name, item.model.name)
        groups.setdefault(key, {}).setdefault(place_of(item.row), item)
        listed.setdefault(key, []).append(item.row)
    return tuple(_crossing(pair, groups[key][pair.place]) for key in sorted(groups) for pair in pairs_of(listed[key]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Where one naive path met the absorbed one, by measured times alone. Fields are those of :class:`Crossing`."""

    absorbed: tuple[str, ...]
    queries: tuple[int, ...]
    measured_queries: float | None
    low: float | None
    high: float | None
    reason: str | None
    crossed_again: tuple[int, ...]
    last_queries: float | None


def met(pair: Pair) -> Met:
    """Where the paths met, by the rows of one place; of several rows of one path and Q the fastest counts."""
    of_absorbed, of_naive = _fastest(pair.absorbed), _fastest(pair.naive)
    both = sorted(of_absorbed.keys() & of_naive.keys())
    medians = [(q, log(of_naive[q].time_us / of_absorbed[q].time_us)) for q in both]
    measured, again = crossing_of(medians), crossed_again(medians)
    low, high = (
        crossing_of(points) if points else None
        for points in (_spread(of_naive, of_absorbed, both, early) for early in (True, False))
    )
    return Met(
        absorbed=tuple(dict.fromkeys(of_absorbed[q].kernel for q in both)),
        queries=tuple(both),
        measured_queries=measured,
        low=low,
        high=high,
        reason=_reason(medians, measured, low, high),
        crossed_again=again,
        last_queries=last_crossing_of(medians) if again else None,
    )


Points = Sequence[tuple[int, float]]
"""Q and the logarithm of naive over absorbed time, Q rising."""


def crossing_of(points: Points) -> float | None:
    """The Q at which the ratio first falls below 1; ``None`` where it starts below or stays above."""
    if points and points[0][1] < 0:
        return None
    return next(_falls(points), None)


def last_crossing_of(points: Points) -> float | None:
    """The Q at which the ratio falls below 1 for the last time; ``None`` where it ends at 1 or above."""
    if not points or points[-1][1] >= 0:
        return None
    return max(_falls(points), default=None)


def crossed_again(points: Points) -> tuple[int, ...]:
    """The Q at which the ratio is 1 or above although it was below at a smaller one."""
    first = next((queries for queries, ratio in points if ratio < 0), None)
    return () if first is None else tuple(queries for queries, ratio in points if queries > first and ratio >= 0)


def _falls(points: Points) -> Iterator[float]:
    """Every Q at which the ratio falls below 1, rising."""
    for (before, above), (after, below) in pairwise(points):
        if above >= 0 > below:
            yield exp(log(before) + (log(after) - log(before)) * above / (above - below))


def _crossing(pair: Pair, item: Recorded) -> Crossing:
    """``item`` is any row of the pair's place."""
    times, place = met(pair), pair.place
    work = replace(work_of(item.row, item.row_bytes), queries=1)
    ceilings = datasheet_ceilings(item.gpu, place.dtype)
    return Crossing(
        gpu=item.gpu.name,
        model=item.model.name,
        dtype=place.dtype,
        cache=place.cache,
        heads=place.heads,
        context=place.context,
        batch=place.batch,
        naive=pair.name,
        absorbed=times.absorbed,
        queries=times.queries,
        measured_queries=times.measured_queries,
        low=times.low,
        high=times.high,
        reason=times.reason,
        crossed_again=times.crossed_again,
        last_queries=times.last_queries,
        flop_queries=first_causal_queries(item.mla, work, None),
        time_queries=first_causal_queries(item.mla, work, ceilings),
    )


def _fastest(rows: Iterable[Row]) -> dict[int, Row]:
    """The fastest row of every Q: a path would run that kernel."""
    found: dict[int, Row] = {}
    for row in rows:
        known = found.get(row.queries)
        if known is None or row.time_us < known.time_us:
            found[row.queries] = row
    return found


def _spread(naive: Mapping[int, Row], absorbed: Mapping[int, Row], both: Sequence[int], early: bool) -> Points:
    """The points at one end of the spread; none where a row has no percentiles."""
    points = []
    for q in both:
        over, under = (naive[q].p10_us, absorbed[q].p90_us) if early else (naive[q].p90_us, absorbed[q].p10_us)
        if over is None or under is None:
            return ()
        points.append((q, log(over / under)))
    return points


def _reason(medians: Points, measured: float | None, low: float | None, high: float | None) -> str | None:
    if not medians:
        return "no Q was measured on both paths"
    first, last = medians[0][0], medians[-1][0]
    if measured is None:
        if medians[0][1] < 0:
            where = "from the first query on" if first == 1 else f"the crossover is below {first:,}"
            return f"naive is faster at Q = {first:,}, the least measured: {where}"
        return f"absorbed is faster up to Q = {last:,}, the most measured: the crossover is above"
    if low is not None and high is not None:
        return None
    if low is None and high is None:
        return "no spread: the rows have no percentiles, or it is wider than the measured range"
    return f"the spread reaches {'below' if low is None else 'above'} the measured {first:,} to {last:,}"
