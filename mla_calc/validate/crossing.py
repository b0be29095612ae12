"""The measured crossover: from how many queries the naive path ran faster, beside what was predicted.

Rows that timed whole paths are put side by side at the same heads, context, batch and cache. Between two measured
Q the logarithm of the ratio of both times is taken as linear in the logarithm of Q.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log

from ..costs.intervals import FLOP_ALONE, Weights, first_naive, winning_intervals
from ..costs.paths import PATHS, Work
from ..hardware.roofline import Ceilings, datasheet_ceilings
from ..models.attention import MLA
from .record import Row
from .recorded import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One crossover; queries are causal, at a fixed context that counts them."""

    gpu: str
    model: str
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
    """Where both paths took the same time, by medians; from there on the naive one is faster."""
    low: float | None
    """The same where the naive path is as fast as its 10th percentile and the absorbed as slow as its 90th."""
    high: float | None
    """The same the other way round."""
    reason: str | None
    """Why one of the three is ``None``."""
    flop_queries: int | None
    """The first Q at which the naive path takes fewer FLOPs; ``None``: at none up to the context."""
    time_queries: int | None
    """The first Q at which the naive path's datasheet bound is lower."""


def crossings(rows: Iterable[Recorded]) -> tuple[Crossing, ...]:
    """Every crossover that ``rows`` hold: each naive path against the fastest absorbed one of the same shape.

    By GPU, model and cache, then by naive path, heads, context and batch.
    """
    absorbed: dict[tuple[object, ...], list[Recorded]] = {}
    naive: dict[tuple[object, ...], dict[str, list[Recorded]]] = {}
    for item in rows:
        row = item.row
        shape = (item.gpu.name, item.model.name, row.cache, row.heads, row.context, row.batch)
        if row.scope == "absorbed":
            absorbed.setdefault(shape, []).append(item)
        elif row.scope == "naive":
            naive.setdefault(shape, {}).setdefault(row.kernel, []).append(item)
    found = [
        _crossing(absorbed[shape], name, items)
        for shape, by_kernel in naive.items()
        for name, items in by_kernel.items()
        if shape in absorbed
    ]
    return tuple(sorted(found, key=_place))


def _place(found: Crossing) -> tuple[str | int, ...]:
    return (found.gpu, found.model, found.cache, found.naive, found.heads, found.context, found.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Where one naive path met the absorbed one, by measured times alone. Fields are those of :class:`Crossing`."""

    absorbed: tuple[str, ...]
    queries: tuple[int, ...]
    measured_queries: float | None
    low: float | None
    high: float | None
    reason: str | None


def met(absorbed: Iterable[Row], naive: Iterable[Row]) -> Met:
    """Where the paths met, by rows of one shape and of one naive path; of absorbed kernels the fastest counts."""
    of_absorbed, of_naive = _fastest(absorbed), _fastest(naive)
    both = sorted(of_absorbed.keys() & of_naive.keys())
    medians = [(q, log(of_naive[q].time_us / of_absorbed[q].time_us)) for q in both]
    measured = crossing_of(medians)
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
    )


def first_queries(mla: MLA, work: Work, ceilings: Ceilings | None) -> int | None:
    """The smallest causal Q up to ``work.context``, which is fixed, at which the naive path is cheaper.

    By the sum of the kernels' bounds, or by FLOPs without ``ceilings``. Exact: integers throughout.
    """
    weights = Weights(flop=ceilings.bytes_per_s, byte=ceilings.flop_per_s) if ceilings else FLOP_ALONE

    def at(queries: int) -> Work:
        return replace(work, queries=queries, causal=True)

    context: int = work.context
    return first_naive(winning_intervals(mla, PATHS, at, weights, last=context))


Points = Sequence[tuple[int, float]]
"""Q and the logarithm of naive over absorbed time, Q rising."""


def crossing_of(points: Points) -> float | None:
    """The Q at which the ratio first falls below 1; ``None`` where it starts below or stays above."""
    for (before, above), (after, below) in pairwise(points):
        if above >= 0 > below:
            return exp(log(before) + (log(after) - log(before)) * above / (above - below))
        if above < 0:
            return None
    return None


def _crossing(absorbed: Sequence[Recorded], name: str, naive: Sequence[Recorded]) -> Crossing:
    item = naive[0]
    times = met((other.row for other in absorbed), (other.row for other in naive))
    row = item.row
    work = Work(queries=1, context=row.context, row_bytes=item.row_bytes, batch=row.batch)
    ceilings = datasheet_ceilings(item.gpu, absorbed[0].row.dtype)
    return Crossing(
        gpu=item.gpu.name,
        model=item.model.name,
        cache=row.cache,
        heads=row.heads,
        context=row.context,
        batch=row.batch,
        naive=name,
        absorbed=times.absorbed,
        queries=times.queries,
        measured_queries=times.measured_queries,
        low=times.low,
        high=times.high,
        reason=times.reason,
        flop_queries=first_queries(item.mla, work, None),
        time_queries=first_queries(item.mla, work, ceilings),
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
