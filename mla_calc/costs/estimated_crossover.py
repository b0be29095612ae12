"""Where the naive path overtakes the absorbed one by what a run on the GPU says that they take.

Estimates are no polynomials, so this is a search: on a grid that is whole for few queries and 5 % wide for many,
then between its two steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..hardware.calibration import Unknown, calibrations_of
from ..hardware.gpu import GPU
from ..models.attention import MLA
from .estimates import PathEstimate, Source, estimate_path
from .paths import PATHS, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedAtContext:
    """The crossover by estimates with S = ``context`` fixed, the queries causal among themselves: as a run measures it.

    Attributes are ``None`` where ``reason`` says why.
    """

    context: int
    tp: int
    batch: int
    first_queries_naive_wins: int | None
    """Smallest Q found at which the naive path's estimate is the lower one."""
    searched_from_queries: int | None
    """Fewest and most queries for which both paths have an estimate."""
    searched_to_queries: int | None
    absorbed_kernel: str | None = None
    """The implementations compared, at that Q or, without one, at the most queries."""
    naive_kernel: str | None = None
    sources: tuple[Source, ...] = ()
    """The runs that the constants come from."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedCrossover:
    """Crossovers by estimates on one GPU."""

    by_context: tuple[EstimatedAtContext, ...]


GRID = 1.05
"""Ratio of the queries at which the paths are compared; between two of them one crossing is looked for."""


def estimated_crossover(
    gpu: GPU, mla: MLA, work: Work, points: Iterable[tuple[int, int, int]], *, dtype: str, cache: str
) -> EstimatedCrossover:
    """The crossovers by estimates at every (context, tp, batch) of ``points``; ``work`` gives the byte widths."""
    found = (
        _estimated_at(gpu, mla, replace(work, context=context, tp=tp, batch=batch, causal=True), dtype, cache)
        for context, tp, batch in points
    )
    return EstimatedCrossover(by_context=tuple(found))


Pair = tuple[PathEstimate, PathEstimate]


def _estimated_at(gpu: GPU, mla: MLA, work: Work, dtype: str, cache: str) -> EstimatedAtContext:
    reason = None

    def pair(queries: int) -> Pair | None:
        nonlocal reason
        step = replace(work, queries=queries)
        absorbed = estimate_path(gpu, "absorbed", mla, step, dtype=dtype, cache=cache)
        naive = estimate_path(gpu, "naive", mla, step, dtype=dtype, cache=cache)
        if isinstance(absorbed, Unknown) or isinstance(naive, Unknown):
            reason = absorbed.reason if isinstance(absorbed, Unknown) else getattr(naive, "reason", None)
            return None
        return absorbed, naive

    most = _most_queries(gpu, dtype, cache, work.context)
    known = {queries: both for queries in _grid(most) if (both := pair(queries))}
    point = {"context": work.context, "tp": work.tp, "batch": work.batch}
    if not known:
        return EstimatedAtContext(
            **point,
            first_queries_naive_wins=None,
            searched_from_queries=None,
            searched_to_queries=None,
            reason=reason,
        )
    first = next((queries for queries, both in known.items() if _naive_wins(both)), None)
    if first is not None:
        low = max((queries for queries in known if queries < first), default=first)
        while first - low > 1:  # absorbed wins at low, naive at first
            middle = (low + first) // 2
            both = pair(middle)
            if both is None:
                break  # between the domains of two calibrations
            known[middle] = both
            low, first = (low, middle) if _naive_wins(both) else (middle, first)
    absorbed, naive = known[first if first is not None else max(known)]
    return EstimatedAtContext(
        **point,
        first_queries_naive_wins=first,
        searched_from_queries=min(known),
        searched_to_queries=max(known),
        absorbed_kernel=absorbed.kernel,
        naive_kernel=naive.kernel,
        sources=tuple(dict.fromkeys((*absorbed.sources, *naive.sources))),
    )


def _naive_wins(both: Pair) -> bool:
    return both[1].seconds < both[0].seconds


def _most_queries(gpu: GPU, dtype: str, cache: str, context: int) -> int:
    """The most queries that an attention kernel of either path was measured with."""
    limits = []
    for path in PATHS:
        domains = [item.domain for item in calibrations_of(gpu, path, "attention", dtype, cache)]
        limits.append(max((domain.queries[1] for domain in domains if domain.queries), default=1))
    return min(context, *limits)


def _grid(most: int) -> Iterator[int]:
    """1, 2, 3, ... in steps that grow to 5 %, and ``most``."""
    queries = 1
    while queries < most:
        yield queries
        queries = max(queries + 1, int(queries * GRID))
    yield most
