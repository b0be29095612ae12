"""Where the naive path overtakes the absorbed one (docs/cost-model.md, section 4).

By FLOPs dense attention has closed forms in which heads and TP cancel. By roofline time, and by FLOPs under
sparse attention, every stretch of queries is found by intervals.py. All of it is exact: integers and fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Indexer
from .counts import absorbed_core_flop, fold_flop, naive_core_flop
from .intervals import FLOP_ALONE, Interval, Weights, first_naive, winning_intervals
from .paths import Work
from .sparse import indexer_flop_per_pair, paths_of


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
class SparseFlopAtContext:
    """The FLOP crossover of sparse attention at one context and TP, which does not split the indexer.

    Paths can cross more than once; ``first_`` is the smallest Q of a naive stretch, ``None`` where there is none.
    """

    context: int
    tp: int
    queries_rectangular: float | None
    """Where both cost the same; ``None`` where that takes more queries than there are keys."""
    first_queries_naive_wins_rectangular: int | None
    intervals: tuple[Interval, ...]
    first_queries_naive_wins_causal: int | None
    causal_intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseFlopCrossover:
    """Crossovers of sparse attention by FLOPs alone.

    The first two are always ``None``: attention over topk rows does not grow with the context, the naive path
    does, so that at a long one absorption wins at every length.
    """

    queries_limit: None = None
    first_queries_naive_wins: None = None
    first_context_absorbed_wins_at_one_query: int | None
    """``None`` where it differs among the TPs."""
    by_context: tuple[SparseFlopAtContext, ...]


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
    *,
    indexer: Indexer | None = None,
) -> TimeCrossover:
    """The crossovers by bound at every context, TP and batch; ``work`` gives the layout and byte widths.

    With an ``indexer`` both paths are those of sparse attention, on a layer that indexes.
    """
    points = [(context, tp, batch) for context in contexts for tp in tps for batch in batches]
    return TimeCrossover(
        by_context=tuple(
            _time_at(mla, replace(work, context=context, tp=tp, batch=batch), ceilings, indexer)
            for context, tp, batch in points
        )
    )


def sparse_flop_crossover(
    mla: MLA, contexts: Iterable[int], tps: Iterable[int], indexer: Indexer
) -> SparseFlopCrossover:
    """The FLOP crossovers under sparse attention at every context and TP; batch cancels, TP does not."""
    ranks = tuple(tps)
    firsts = {_first_context_at_one_query(mla, indexer, tp) for tp in ranks}
    return SparseFlopCrossover(
        first_context_absorbed_wins_at_one_query=firsts.pop() if len(firsts) == 1 else None,
        by_context=tuple(_sparse_flop_at(mla, context, tp, indexer) for context in contexts for tp in ranks),
    )


def sparse_rectangular_flop_queries(mla: MLA, context: int, tp: int, indexer: Indexer) -> Fraction | None:
    """Q at which the FLOPs of both sparse paths are equal, S fixed; ``None`` beyond S.

    Up to topk keys only absorption scores them: Q = A S / (A + (ca - cn + T indexer) S), with A, ca and cn of
    all heads. Above, both do and it cancels: Q = A S / (A + ca topk - cn S).
    """
    fixed, absorbed, naive = _of_all_heads(mla)
    if context <= indexer.topk:
        per_query = fixed + (absorbed - naive + tp * indexer_flop_per_pair(indexer)) * context
    else:
        per_query = fixed + absorbed * indexer.topk - naive * context
    # more queries than keys: Q > S
    return Fraction(fixed * context, per_query) if per_query >= fixed else None


def rectangular_intervals(
    mla: MLA, work: Work, ceilings: Ceilings | None, indexer: Indexer | None = None
) -> tuple[Interval, ...]:
    """Who wins for Q = 1 .. S with S fixed at ``work.context``; by FLOPs without ``ceilings``."""
    context: int = work.context

    def at(queries: int) -> Work:
        return replace(work, queries=queries, causal=False)

    return winning_intervals(mla, paths_of(indexer), at, _weights(ceilings), last=context)


def causal_intervals(
    mla: MLA, work: Work, ceilings: Ceilings | None, indexer: Indexer | None = None
) -> tuple[Interval, ...]:
    """Who wins for Q = 1, 2, ... with the prefix fixed at ``work.context`` and S = P + Q.

    Sparse attention's counts have one kink, at S = topk: there the cached rows that are read stop growing, the
    naive path begins to score, and so many keys has the last query, which is the first to attend topk rows only.
    """
    prefix: int = work.context

    def at(queries: int) -> Work:
        return replace(work, queries=queries, context=prefix + queries, causal=True)

    cuts = (indexer.topk - prefix,) if indexer else ()
    return winning_intervals(mla, paths_of(indexer), at, _weights(ceilings), last=None, cuts=cuts)


def first_causal_queries(mla: MLA, work: Work, ceilings: Ceilings | None, indexer: Indexer | None = None) -> int | None:
    """The smallest causal Q up to ``work.context``, which is fixed, at which the naive path is cheaper: as measured.

    By the sum of the kernels' bounds, or by FLOPs without ``ceilings``. Under sparse attention the pairs have a kink
    where the first query begins to meet fewer than topk keys.
    """
    context: int = work.context
    cuts = (context - indexer.topk + 1,) if indexer else ()

    def at(queries: int) -> Work:
        return replace(work, queries=queries, causal=True)

    return first_naive(winning_intervals(mla, paths_of(indexer), at, _weights(ceilings), last=context, cuts=cuts))


def _weights(ceilings: Ceilings | None) -> Weights:
    """Times scaled by peak and bandwidth."""
    return Weights(flop=ceilings.bytes_per_s, byte=ceilings.flop_per_s) if ceilings else FLOP_ALONE


def _fixed_and_dearer(mla: MLA) -> tuple[int, int]:
    """A and ca - cn, for one head: heads cancel from every FLOP crossover."""
    return fold_flop(mla, 1), absorbed_core_flop(mla, 1) - naive_core_flop(mla, 1)


def _of_all_heads(mla: MLA) -> tuple[int, int, int]:
    """A, ca and cn."""
    return fold_flop(mla, mla.heads), absorbed_core_flop(mla, mla.heads), naive_core_flop(mla, mla.heads)


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


def _first_context_at_one_query(mla: MLA, indexer: Indexer, tp: int) -> int:
    """Smallest S at which one absorbed query needs fewer FLOPs than a naive one, all heads together."""
    fixed, absorbed, naive = _of_all_heads(mla)
    saved = fixed + naive - absorbed - tp * indexer_flop_per_pair(indexer)
    first = fixed // saved + 1 if saved > 0 else None
    if first is not None and first <= indexer.topk:
        return first
    # above topk both paths score the keys: A + ca topk < (A + cn) S
    return max(indexer.topk + 1, (fixed + absorbed * indexer.topk) // (fixed + naive) + 1)


def _sparse_flop_at(mla: MLA, context: int, tp: int, indexer: Indexer) -> SparseFlopAtContext:
    work = Work(queries=1, context=context, row_bytes=0, tp=tp)
    equal = sparse_rectangular_flop_queries(mla, context, tp, indexer)
    rectangular = rectangular_intervals(mla, work, None, indexer)
    causal = causal_intervals(mla, work, None, indexer)
    return SparseFlopAtContext(
        context=context,
        tp=tp,
        queries_rectangular=None if equal is None else float(equal),
        first_queries_naive_wins_rectangular=first_naive(rectangular),
        intervals=rectangular,
        first_queries_naive_wins_causal=first_naive(causal),
        causal_intervals=causal,
    )


def _time_at(mla: MLA, work: Work, ceilings: Ceilings, indexer: Indexer | None) -> TimeAtContext:
    rectangular = rectangular_intervals(mla, work, ceilings, indexer)
    causal = causal_intervals(mla, work, ceilings, indexer)
    return TimeAtContext(
        context=work.context,
        tp=work.tp,
        batch=work.batch,
        first_queries_naive_wins=first_naive(rectangular),
        intervals=rectangular,
        first_queries_naive_wins_causal=first_naive(causal),
        causal_intervals=causal,
    )


def _sqrt(square: Fraction) -> float:
    """Square root of a fraction, to a double, without overflow."""
    scale = 1 << 64
    return isqrt(square.numerator * square.denominator * scale * scale) / (square.denominator * scale)
