"""Where the naive path overtakes the absorbed one (docs/cost-model.md, section 4).

By FLOPs there are closed forms in which heads and TP cancel. By roofline time both paths are sums of maxima,
so their difference is a polynomial between kinks: it is solved between the kinks and every integer answer is
settled by evaluating its neighbours. All of it is exact: integers and fractions, no floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import isqrt

from ..hardware.roofline import Ceilings
from ..models.attention import MLA
from .counts import absorbed_core_flop, fold_flop, naive_core_flop
from .paths import PATHS, Kernel, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopAtContext:
    """The FLOP crossover at one context: S of a rectangular block, prefix P of a causal one."""

    context: int
    queries_rectangular: float | None
    queries_causal: float | None
    first_queries_naive_wins_rectangular: int | None
    first_queries_naive_wins_causal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopCrossover:
    """Crossovers by FLOPs alone; ``None`` where one path wins throughout."""

    queries_limit: float | None
    """Q*(S) as S grows without end: r(dn+dv)/(2r-dn-dv)."""
    first_queries_naive_wins: int | None
    first_context_absorbed_wins_at_one_query: int | None
    by_context: tuple[FlopAtContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The path that is cheaper from ``from_queries`` to ``to_queries``, both included (``None``: no end).

    ``equal`` is a stretch where both take exactly the same time.
    """

    path: str
    from_queries: int
    to_queries: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAtContext:
    """The crossover by roofline time: rectangular with S = ``context``, causal with prefix ``context``."""

    context: int
    tp: int
    batch: int
    first_queries_naive_wins: int | None
    intervals: tuple[Interval, ...]
    first_queries_naive_wins_causal: int | None
    causal_intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCrossover:
    """Crossovers by bound on one GPU."""

    by_context: tuple[TimeAtContext, ...]


def flop_crossover(mla: MLA, contexts: Iterable[int]) -> FlopCrossover:
    """The FLOP crossovers of ``mla``; TP and batch cancel."""
    fixed, dearer = _fixed_and_dearer(mla)
    limit = Fraction(fixed, dearer) if dearer > 0 else None
    saved = fixed - dearer
    return FlopCrossover(
        queries_limit=None if limit is None else float(limit),
        first_queries_naive_wins=None if limit is None else fixed // dearer + 1,
        first_context_absorbed_wins_at_one_query=fixed // saved + 1 if saved > 0 else None,
        by_context=tuple(_flop_at(mla, context) for context in contexts),
    )


def rectangular_flop_queries(mla: MLA, context: int) -> Fraction | None:
    """Q*(S) = A / (A/S + (ca - cn)): the FLOPs of both paths are equal there. ``None`` if ca <= cn."""
    fixed, dearer = _fixed_and_dearer(mla)
    return Fraction(fixed * context, fixed + dearer * context) if dearer > 0 else None


def causal_flop_queries(mla: MLA, prefix: int) -> float | None:
    """Positive root of (ca-cn)/2 Q^2 + (ca-cn)(P+1/2) Q - A P = 0. ``None`` if ca <= cn."""
    fixed, dearer = _fixed_and_dearer(mla)
    if dearer <= 0:
        return None
    half, product = Fraction(2 * prefix + 1, 2), Fraction(2 * fixed * prefix, dearer)
    # sqrt(half^2 + product) - half, without the cancellation of a long prefix
    return float(product) / (_sqrt(half * half + product) + float(half))


def time_crossover(
    mla: MLA,
    contexts: Iterable[int],
    work: Work,
    tps: Iterable[int],
    batches: Iterable[int],
    ceilings: Ceilings,
) -> TimeCrossover:
    """The crossovers by bound at every context, TP and batch; ``work`` gives the layout and byte widths."""
    points = [(context, tp, batch) for context in contexts for tp in tps for batch in batches]
    return TimeCrossover(
        by_context=tuple(
            _time_at(mla, replace(work, context=context, tp=tp, batch=batch), ceilings) for context, tp, batch in points
        )
    )


def rectangular_intervals(mla: MLA, work: Work, ceilings: Ceilings) -> tuple[Interval, ...]:
    """Who wins for Q = 1 .. S with S fixed at ``work.context``."""
    context: int = work.context

    def at(queries: int) -> Work:
        return replace(work, queries=queries, causal=False)

    return _intervals(mla, at, ceilings, last=context)


def causal_intervals(mla: MLA, work: Work, ceilings: Ceilings) -> tuple[Interval, ...]:
    """Who wins for Q = 1, 2, ... with the prefix fixed at ``work.context`` and S = P + Q."""
    prefix: int = work.context

    def at(queries: int) -> Work:
        return replace(work, queries=queries, context=prefix + queries, causal=True)

    return _intervals(mla, at, ceilings, last=None)


def first_naive(intervals: tuple[Interval, ...]) -> int | None:
    """The smallest Q at which the naive path takes strictly less time."""
    return next((interval.from_queries for interval in intervals if interval.path == "naive"), None)


def _fixed_and_dearer(mla: MLA) -> tuple[int, int]:
    """A and ca - cn, for one head: heads cancel from every FLOP crossover."""
    return fold_flop(mla, 1), absorbed_core_flop(mla, 1) - naive_core_flop(mla, 1)


def _flop_at(mla: MLA, context: int) -> FlopAtContext:
    rectangular = rectangular_flop_queries(mla, context)
    return FlopAtContext(
        context=context,
        queries_rectangular=None if rectangular is None else float(rectangular),
        queries_causal=causal_flop_queries(mla, context),
        first_queries_naive_wins_rectangular=None if rectangular is None else int(rectangular) + 1,
        first_queries_naive_wins_causal=_first_causal(mla, context),
    )


def _first_causal(mla: MLA, prefix: int) -> int | None:
    """Smallest Q with (ca - cn) * (Q*P + Q(Q+1)/2) > A*P, by integer square root and its neighbours."""
    fixed, dearer = _fixed_and_dearer(mla)
    if dearer <= 0:
        return None
    # dearer * Q^2 + dearer * (2P + 1) * Q > 2 * fixed * P
    b, c = dearer * (2 * prefix + 1), 2 * fixed * prefix
    queries = max(1, (isqrt(b * b + 4 * dearer * c) - b) // (2 * dearer))
    while dearer * queries * queries + b * queries <= c:
        queries += 1
    return queries


def _time_at(mla: MLA, work: Work, ceilings: Ceilings) -> TimeAtContext:
    rectangular = rectangular_intervals(mla, work, ceilings)
    causal = causal_intervals(mla, work, ceilings)
    return TimeAtContext(
        context=work.context,
        tp=work.tp,
        batch=work.batch,
        first_queries_naive_wins=first_naive(rectangular),
        intervals=rectangular,
        first_queries_naive_wins_causal=first_naive(causal),
        causal_intervals=causal,
    )


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """c0 + c1 Q + c2 Q^2 with integer coefficients."""

    c0: int
    c1: int
    c2: int

    def __sub__(self, other: _Polynomial) -> _Polynomial:
        return _Polynomial(self.c0 - other.c0, self.c1 - other.c1, self.c2 - other.c2)

    def __add__(self, other: _Polynomial) -> _Polynomial:
        return _Polynomial(self.c0 + other.c0, self.c1 + other.c1, self.c2 + other.c2)

    def __call__(self, queries: int) -> int:
        return self.c0 + queries * (self.c1 + queries * self.c2)

    def integers_at_roots(self) -> list[int]:
        """Integers that hold the floor and the ceiling of every real root (and a few beside them)."""
        if self.c2 == 0:
            return [-self.c0 // self.c1, -self.c0 // self.c1 + 1] if self.c1 else []
        square = self.c1 * self.c1 - 4 * self.c2 * self.c0
        if square < 0:
            return []
        # isqrt is short by less than 1, and |2 c2| >= 2: each root is off by less than one half
        floors = [(-self.c1 + sign * isqrt(square)) // (2 * self.c2) for sign in (1, -1)]
        return [floor + step for floor in floors for step in (-1, 0, 1, 2)]


def _fitted(values: list[int], rate: int) -> _Polynomial:
    """Twice ``rate`` times the polynomial through values at Q = 0, 1, 2; counts are at most quadratic in Q."""
    f0, f1, f2 = (rate * value for value in values)
    c2 = f2 - 2 * f1 + f0
    return _Polynomial(2 * f0, 2 * (f1 - f0) - c2, c2)


def _intervals(mla: MLA, at: Callable[[int], Work], ceilings: Ceilings, last: int | None) -> tuple[Interval, ...]:
    """Stretches of Q on which the same path wins, from Q = 1 to ``last``."""
    paths = {name: _lines(path, mla, at, ceilings) for name, path in PATHS.items()}
    kinks = {1}
    for compute, memory in (lines for path in paths.values() for lines in path):
        kinks.update((compute - memory).integers_at_roots())
    inside = sorted(queries for queries in kinks if queries >= 1 and (last is None or queries <= last))
    marks = set(inside)
    for queries in inside:  # between kinks the difference is one polynomial, fixed by its pieces at a sample
        for sample in (queries, queries + 1):
            difference = _piece(paths["naive"], sample) - _piece(paths["absorbed"], sample)
            marks.update(difference.integers_at_roots())
    samples = _samples(marks, last)
    winners = [(queries, _winner(paths, queries)) for queries in samples]
    starts = [winners[0]] + [now for before, now in pairwise(winners) if before[1] != now[1]]
    ends: list[int | None] = [start - 1 for start, _ in starts[1:]]
    return tuple(
        Interval(path=path, from_queries=start, to_queries=end)
        for (start, path), end in zip(starts, [*ends, last], strict=True)
    )


Lines = list[tuple[_Polynomial, _Polynomial]]


def _lines(
    path: Callable[[MLA, Work], tuple[Kernel, ...]], mla: MLA, at: Callable[[int], Work], ceilings: Ceilings
) -> Lines:
    """Each kernel's compute time and memory time as polynomials in Q.

    Times are scaled by 2 * peak * bandwidth, which makes every coefficient a whole number.
    """
    points = [path(mla, at(queries)) for queries in (0, 1, 2)]
    return [
        (
            _fitted([kernel.flop for kernel in kernels], ceilings.bytes_per_s),
            _fitted([kernel.bytes for kernel in kernels], ceilings.flop_per_s),
        )
        for kernels in zip(*points, strict=True)
    ]


def _piece(lines: Lines, queries: int) -> _Polynomial:
    """The polynomial that a path's time is around ``queries``."""
    pieces = [max(pair, key=lambda line: line(queries)) for pair in lines]
    return sum(pieces[1:], pieces[0])


def _winner(paths: dict[str, Lines], queries: int) -> str:
    naive, absorbed = (
        sum(max(compute(queries), memory(queries)) for compute, memory in paths[name]) for name in ("naive", "absorbed")
    )
    return "equal" if naive == absorbed else "naive" if naive < absorbed else "absorbed"


def _samples(marks: set[int], last: int | None) -> list[int]:
    """Every mark, and the integer after each: a stretch without a mark has one winner throughout."""
    around = {queries + step for queries in marks for step in (-1, 0, 1)}
    return sorted({1} | {queries for queries in around if queries >= 1 and (last is None or queries <= last)})


def _sqrt(square: Fraction) -> float:
    """Square root of a fraction, to a double, without overflow."""
    scale = 1 << 64
    return isqrt(square.numerator * square.denominator * scale * scale) / (square.denominator * scale)
