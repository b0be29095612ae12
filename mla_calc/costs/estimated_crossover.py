"""Where the naive path overtakes the absorbed one by what a run on the GPU says that they take.

Estimates are no polynomials, so this is a search: on a grid that is whole for few queries and 5 % wide for many,
then between its two steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..hardware.gpu import GPU
from ..models.attention import MLA
from .estimates import PathEstimator, Source, implementations
from .paths import Work
from .step_estimates import FEW, FEW_WITH_NUMPY, Step, StepEstimate, estimate_steps, why_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedAtContext:
    """The crossover by estimates with S = ``context`` fixed, the queries causal among themselves: as a run measures it.

    Of one naive implementation; the absorbed path runs the attention kernel that is taken.
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
    """The attention kernel, at that Q or, without one, at the most queries."""
    naive_kernel: str | None = None
    """The naive implementation; ``None``: none is calibrated."""
    sources: tuple[Source, ...] = ()
    """The runs that the constants come from."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedCrossover:
    """Crossovers by estimates on one GPU: of each point one for every naive implementation that is calibrated."""

    by_context: tuple[EstimatedAtContext, ...]


GRID = 1.05
"""Ratio of the queries at which the paths are compared; between two of them one crossing is looked for."""

Point = tuple[int, int, int]
"""Context, TP and batch."""
Pair = tuple[StepEstimate, StepEstimate]
"""The absorbed path and the naive one."""


def estimated_crossover(
    gpu: GPU, mla: MLA, work: Work, points: Iterable[Point], *, dtype: str, cache: str
) -> EstimatedCrossover:
    """The crossovers by estimates at every (context, tp, batch) of ``points``; ``work`` gives the byte widths."""
    listed, causal = list(points), replace(work, causal=True)
    absorbed = _Remembered(PathEstimator(gpu, "absorbed", mla, dtype=dtype, cache=cache), causal)
    names: Sequence[str | None] = implementations(gpu, "naive", mla, dtype=dtype, cache=cache) or (None,)
    by_name = []
    for name in names:
        naive = _Remembered(PathEstimator(gpu, "naive", mla, dtype=dtype, cache=cache, kernel=name), causal)
        by_name.append(_Compared(absorbed, naive).crossovers(listed, name))
    return EstimatedCrossover(by_context=tuple(found for at_point in zip(*by_name, strict=True) for found in at_point))


@dataclass(slots=True)
class _Remembered:
    """One path's estimates, each step asked about once."""

    estimator: PathEstimator
    work: Work
    known: dict[Step, StepEstimate | None] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def at(self, steps: Sequence[Step]) -> list[StepEstimate | None]:
        """The estimate of every step."""
        new = [step for step in dict.fromkeys(steps) if step not in self.known]
        few = FEW_WITH_NUMPY if len(self.known) > FEW else FEW
        found = estimate_steps(self.estimator, new, self.work, few)
        self.known |= dict(zip(new, found.found, strict=True))
        self.sources = tuple(dict.fromkeys((*self.sources, *found.sources)))
        return [self.known[step] for step in steps]

    def why_unknown(self, step: Step) -> str | None:
        """Why there is no estimate of a step that was asked about; ``None`` where there is one."""
        return None if self.known[step] else why_unknown(self.estimator, step, self.work)


@dataclass(slots=True)
class _Search:
    """What is known of one point: both paths by queries, and where the naive one was first found faster."""

    point: Point
    known: dict[int, Pair] = field(default_factory=dict)
    first: int | None = None
    low: int = 0
    """The most queries below ``first`` at which the absorbed path was faster; as many as ``first``: nothing between."""

    def settle(self) -> None:
        """Find ``first`` and ``low`` on the grid."""
        self.first = next((queries for queries, both in self.known.items() if _naive_wins(both)), None)
        if self.first is not None:
            self.low = max((queries for queries in self.known if queries < self.first), default=self.first)

    @property
    def middle(self) -> int | None:
        """Queries to ask about next."""
        return (self.low + self.first) // 2 if self.first is not None and self.first - self.low > 1 else None

    def narrow(self, both: Pair | None) -> None:
        """Take what was found at :attr:`middle`."""
        middle = self.middle
        assert middle is not None
        if both is None:
            self.low = self.first or 0  # between the domains of two calibrations: no further
            return
        self.known[middle] = both
        if _naive_wins(both):
            self.first = middle
        else:
            self.low = middle


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two implementations, and the searches for where one overtakes the other, all points step by step."""

    absorbed: _Remembered
    naive: _Remembered

    def crossovers(self, points: Sequence[Point], name: str | None) -> list[EstimatedAtContext]:
        """The crossover at every point."""
        searches = [_Search(point) for point in points]
        grid = [(search, queries) for search in searches for queries in _grid(self._most_queries(search.point[0]))]
        self._ask(grid)
        for search in searches:
            search.settle()
        while open_ := [(search, middle) for search in searches if (middle := search.middle) is not None]:
            self._ask(open_)
        return [self._found(search, name) for search in searches]

    def _ask(self, asked: Sequence[tuple[_Search, int]]) -> None:
        """Put both estimates at the queries asked for into their searches."""
        steps = [_step(search.point, queries) for search, queries in asked]
        estimates = zip(asked, self.absorbed.at(steps), self.naive.at(steps), strict=True)
        for (search, queries), absorbed, naive in estimates:
            both = (absorbed, naive) if absorbed and naive else None
            if search.first is not None:
                search.narrow(both)
            elif both:
                search.known[queries] = both

    def _most_queries(self, context: int) -> int:
        """The most queries that an attention kernel of either path was measured with."""
        limits = []
        for path in (self.absorbed, self.naive):
            parts = [item for chosen in path.estimator.implementations.values() for item in chosen.parts["attention"]]
            limits.append(max((item.domain.queries[1] for item in parts if item.domain.queries), default=1))
        return min(context, *limits)

    def _found(self, search: _Search, name: str | None) -> EstimatedAtContext:
        context, tp, batch = search.point
        known = search.known
        last = known[search.first if search.first is not None else max(known)] if known else None
        most = _step(search.point, self._most_queries(context))
        return EstimatedAtContext(
            context=context,
            tp=tp,
            batch=batch,
            first_queries_naive_wins=search.first,
            searched_from_queries=min(known, default=None),
            searched_to_queries=max(known, default=None),
            absorbed_kernel=last[0].kernel if last else None,
            naive_kernel=name,
            sources=tuple(dict.fromkeys((*self.absorbed.sources, *self.naive.sources))) if last else (),
            reason=None if last else self.absorbed.why_unknown(most) or self.naive.why_unknown(most),
        )


def _step(point: Point, queries: int) -> Step:
    context, tp, batch = point
    return Step(queries, context, batch, tp)


def _naive_wins(both: Pair) -> bool:
    return both[1].seconds < both[0].seconds


def _grid(most: int) -> Iterator[int]:
    """1, 2, 3, ... in steps that grow to 5 %, and ``most``."""
    queries = 1
    while queries < most:
        yield queries
        queries = max(queries + 1, int(queries * GRID))
    yield most
