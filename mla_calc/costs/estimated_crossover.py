"""Where the naive path overtakes the absorbed one by what a run on the GPU says that they take.

Estimates are no polynomials, so this is a search: every whole number of queries up to many, beyond on a grid that is
5 % wide and then between its steps. They cross more than once where a wave of blocks has just filled: all stretches
are listed, those without an estimate too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from ..hardware.calibration import PathName
from ..hardware.gpu import GPU
from ..models.attention import MLA
from .estimates import PathEstimator, Source, implementations
from .paths import Work
from .step_estimates import FEW, FEW_WITH_NUMPY, Step, StepEstimate, estimate_steps, why_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedInterval:
    """The path whose estimate is lower from ``from_queries`` to ``to_queries``, both included.

    ``equal`` where both are the same; ``None`` where one of the paths has no estimate.
    """

    path: str | None
    from_queries: int
    to_queries: int


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
    """Smallest Q found at which the naive path's estimate is the lower one; the absorbed one may win again above it."""
    naive_wins_to_end_from: int | None
    """Smallest Q from which it is the lower one at every Q up to ``searched_to_queries``; ``None`` too where it is not
    at that Q."""
    searched_from_queries: int | None
    """Fewest and most queries for which both paths have an estimate; in between ``intervals`` says where not."""
    searched_to_queries: int | None
    intervals: tuple[EstimatedInterval, ...] = ()
    """Which path wins where, without gaps, from the fewest queries to the most."""
    absorbed_kernel: str | None = None
    """The attention kernel, at the first of these Q or, without one, at the most queries."""
    naive_kernel: str | None = None
    """The naive implementation; ``None``: none is calibrated."""
    sources: tuple[Source, ...] = ()
    """The runs that the constants come from."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathErrors:
    """How far estimates of one whole path were off, on cells of the run that the constants were not fitted to."""

    path: PathName
    kernel: str
    """The implementation: the absorbed path's attention kernel, or the naive path's name."""
    run: str
    count: int
    median_ape: float
    """Absolute relative error: 0.05 is 5 %."""
    p90_ape: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedCrossover:
    """Crossovers by estimates on one GPU: of each point one for every naive implementation that is calibrated."""

    by_context: tuple[EstimatedAtContext, ...]
    errors: tuple[PathErrors, ...] = ()
    """Of the paths that are compared, where the preset states them."""


EVERY = 1024
"""Up to so many queries every whole number is compared: with a wave of blocks just filled, absorbed loses for a few."""
GRID = 1.05
"""Ratio of the queries at which the paths are compared beyond; between two of them one crossing is looked for."""

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
    by_name, naive_paths = [], []
    for name in names:
        naive = _Remembered(PathEstimator(gpu, "naive", mla, dtype=dtype, cache=cache, kernel=name), causal)
        by_name.append(_Compared(absorbed, naive).crossovers(listed, name))
        naive_paths.append(naive)
    return EstimatedCrossover(
        by_context=tuple(found for at_point in zip(*by_name, strict=True) for found in at_point),
        errors=tuple(errors for path in (absorbed, *naive_paths) for errors in path.errors()),
    )


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

    def errors(self) -> Iterator[PathErrors]:
        """The errors of the implementations whose estimates were met, as the preset states them."""
        met = {found.kernel for found in self.known.values() if found}
        for name, chosen in self.estimator.implementations.items():
            fit = chosen.boundary.fit if chosen.boundary else None
            if name in met and chosen.boundary and fit and fit.held_out:
                held = fit.held_out
                yield PathErrors(
                    path=self.estimator.path,
                    kernel=name,
                    run=chosen.boundary.run,
                    count=held.count,
                    median_ape=held.median_ape,
                    p90_ape=held.p90_ape,
                )

    def why_unknown(self, step: Step) -> str | None:
        """Why there is no estimate of a step that was asked about; ``None`` where there is one."""
        return None if self.known[step] else why_unknown(self.estimator, step, self.work)


@dataclass(slots=True)
class _Search:
    """What is known of one point: both paths by queries, ``None`` where one of them has no estimate."""

    point: Point
    known: dict[int, Pair | None] = field(default_factory=dict)

    def middles(self) -> list[int]:
        """Queries to ask about next: between two that differ."""
        listed = sorted(self.known)
        apart = ((low, high) for low, high in pairwise(listed) if high - low > 1)
        return [(low + high) // 2 for low, high in apart if _winner(self.known[low]) != _winner(self.known[high])]

    def intervals(self) -> tuple[EstimatedInterval, ...]:
        """Stretches of the same winner, from the first queries with both estimates to the last."""
        with_both = [queries for queries, both in self.known.items() if both]
        if not with_both:
            return ()
        least, most = min(with_both), max(with_both)
        listed = [queries for queries in sorted(self.known) if least <= queries <= most]
        found = []
        for winner, group in groupby(listed, key=lambda queries: _winner(self.known[queries])):
            found.append((winner, next(group)))
        ends = [start - 1 for _, start in found[1:]] + [most]
        return tuple(
            EstimatedInterval(path=winner, from_queries=start, to_queries=end)
            for (winner, start), end in zip(found, ends, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two implementations, and the searches for where one overtakes the other, all points step by step."""

    absorbed: _Remembered
    naive: _Remembered

    def crossovers(self, points: Sequence[Point], name: str | None) -> list[EstimatedAtContext]:
        """The crossover at every point."""
        searches = [_Search(point) for point in points]
        self._ask((search, queries) for search in searches for queries in _grid(self._most_queries(search.point[0])))
        open_ = searches
        while open_ := [search for search in open_ if search.middles()]:
            self._ask([(search, middle) for search in open_ for middle in search.middles()])
        return [self._found(search, name) for search in searches]

    def _ask(self, asked: Iterable[tuple[_Search, int]]) -> None:
        """Put both estimates at the queries asked for into their searches."""
        listed = list(asked)
        steps = [_step(search.point, queries) for search, queries in listed]
        estimates = zip(listed, self.absorbed.at(steps), self.naive.at(steps), strict=True)
        for (search, queries), absorbed, naive in estimates:
            search.known[queries] = (absorbed, naive) if absorbed and naive else None

    def _most_queries(self, context: int) -> int:
        """The most queries that an attention kernel of either path was measured with."""
        limits = []
        for path in (self.absorbed, self.naive):
            parts = [item for chosen in path.estimator.implementations.values() for item in chosen.parts["attention"]]
            limits.append(max((item.domain.queries[1] for item in parts if item.domain.queries), default=1))
        return min(context, *limits)

    def _found(self, search: _Search, name: str | None) -> EstimatedAtContext:
        context, tp, batch = search.point
        intervals = search.intervals()
        first = next((item.from_queries for item in intervals if item.path == "naive"), None)
        end = intervals[-1] if intervals else None
        at = search.known[end.to_queries if first is None else first] if end else None
        most = _step(search.point, self._most_queries(context))
        return EstimatedAtContext(
            context=context,
            tp=tp,
            batch=batch,
            first_queries_naive_wins=first,
            naive_wins_to_end_from=end.from_queries if end and end.path == "naive" else None,
            searched_from_queries=intervals[0].from_queries if intervals else None,
            searched_to_queries=end.to_queries if end else None,
            intervals=intervals,
            absorbed_kernel=at[0].kernel if at else None,
            naive_kernel=name,
            sources=tuple(dict.fromkeys((*self.absorbed.sources, *self.naive.sources))) if at else (),
            reason=None if at else self.absorbed.why_unknown(most) or self.naive.why_unknown(most),
        )


def _step(point: Point, queries: int) -> Step:
    context, tp, batch = point
    return Step(queries, context, batch, tp)


def _winner(both: Pair | None) -> str | None:
    if both is None:
        return None
    absorbed, naive = both
    if absorbed.seconds == naive.seconds:
        return "equal"
    return "naive" if naive.seconds < absorbed.seconds else "absorbed"


def _grid(most: int) -> Iterator[int]:
    """1, 2, 3, ... to :data:`EVERY`, from there on in steps of 5 %, and ``most``."""
    queries = 1
    while queries < most:
        yield queries
        queries = queries + 1 if queries < EVERY else int(queries * GRID)
    yield most
