"""Which path wins over which stretch of queries: an exact solver for sums of maxima of polynomials.

A kernel's time is the larger of two counts, each a polynomial in Q, so a path's time is a polynomial between
kinks. The difference of two paths is solved between the kinks, and every whole number is settled by evaluating
its neighbours: integers throughout, no floats. Sparse attention changes the polynomials once, where the context
passes topk: the axis is cut there and each side solved for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from ..models.attention import MLA
from .paths import Kernel, Path, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The path that is cheaper from ``from_queries`` to ``to_queries``, both included (``None``: no end).

    ``equal`` is a stretch where both take exactly the same time.
    """

    path: str
    from_queries: int
    to_queries: int | None


@dataclass(frozen=True, slots=True)
class Weights:
    """What a FLOP and a byte count: times scaled to whole numbers, or FLOPs alone."""

    flop: int
    byte: int


FLOP_ALONE = Weights(flop=1, byte=0)


def first_naive(intervals: tuple[Interval, ...]) -> int | None:
    """The smallest Q at which the naive path takes strictly less."""
    return next((interval.from_queries for interval in intervals if interval.path == "naive"), None)


def winning_intervals(
    mla: MLA,
    paths: Mapping[str, Path],
    at: Callable[[int], Work],
    weights: Weights,
    *,
    last: int | None,
    cuts: Iterable[int] = (),
) -> tuple[Interval, ...]:
    """Stretches of Q on which the same of ``paths`` wins, from Q = 1 to ``last`` (``None``: without end).

    ``at`` gives the step of Q queries. Its counts have to be polynomials of degree 2 at most in Q, on each side
    of every Q of ``cuts`` (which belongs to the lower side).
    """
    inside = sorted({cut for cut in cuts if cut >= 1 and (last is None or cut < last)})
    starts, stops = [1, *(cut + 1 for cut in inside)], [*inside, last]
    winners = [
        found
        for start, stop in zip(starts, stops, strict=True)
        for found in _winners(mla, paths, at, weights, start, stop)
    ]
    changes = [winners[0]] + [now for before, now in pairwise(winners) if before[1] != now[1]]
    ends: list[int | None] = [start - 1 for start, _ in changes[1:]]
    return tuple(
        Interval(path=path, from_queries=start, to_queries=end)
        for (start, path), end in zip(changes, [*ends, last], strict=True)
    )


def _winners(
    mla: MLA, paths: Mapping[str, Path], at: Callable[[int], Work], weights: Weights, start: int, stop: int | None
) -> list[tuple[int, str]]:
    """The winner at enough Q from ``start`` to ``stop`` that between two of them it is that of the first.

    Polynomials are in x = Q - ``start``. On a piece shorter than three numbers they pass through what lies
    beyond it, which does no harm: they are right at every whole number of the piece.
    """
    last = None if stop is None else stop - start
    lines = {name: _lines(path, mla, at, weights, start) for name, path in paths.items()}
    kinks = {0}
    for compute, memory in (pair for path in lines.values() for pair in path):
        kinks.update((compute - memory).integers_at_roots())
    inside = sorted(x for x in kinks if x >= 0 and (last is None or x <= last))
    marks = set(inside)
    for x in inside:  # between kinks the difference is one polynomial, fixed by its pieces at a sample
        for sample in (x, x + 1):
            difference = _piece(lines["naive"], sample) - _piece(lines["absorbed"], sample)
            marks.update(difference.integers_at_roots())
    return [(start + x, _winner(lines, x)) for x in _samples(marks, last)]


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """c0 + c1 x + c2 x^2 with integer coefficients."""

    c0: int
    c1: int
    c2: int

    def __sub__(self, other: _Polynomial) -> _Polynomial:
        return _Polynomial(self.c0 - other.c0, self.c1 - other.c1, self.c2 - other.c2)

    def __add__(self, other: _Polynomial) -> _Polynomial:
        return _Polynomial(self.c0 + other.c0, self.c1 + other.c1, self.c2 + other.c2)

    def __call__(self, x: int) -> int:
        return self.c0 + x * (self.c1 + x * self.c2)

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


def _fitted(values: list[int], weight: int) -> _Polynomial:
    """Twice ``weight`` times the polynomial through values at x = 0, 1, 2; counts are at most quadratic in x."""
    f0, f1, f2 = (weight * value for value in values)
    c2 = f2 - 2 * f1 + f0
    return _Polynomial(2 * f0, 2 * (f1 - f0) - c2, c2)


Lines = list[tuple[_Polynomial, _Polynomial]]


def _lines(path: Path, mla: MLA, at: Callable[[int], Work], weights: Weights, start: int) -> Lines:
    """Each kernel's compute and memory as polynomials in x, doubled: so every coefficient is a whole number."""
    points: list[tuple[Kernel, ...]] = [path(mla, at(start + x)) for x in range(3)]
    return [
        (
            _fitted([kernel.flop for kernel in kernels], weights.flop),
            _fitted([kernel.bytes for kernel in kernels], weights.byte),
        )
        for kernels in zip(*points, strict=True)
    ]


def _piece(lines: Lines, x: int) -> _Polynomial:
    """The polynomial that a path's time is around ``x``."""
    pieces = [max(pair, key=lambda line: line(x)) for pair in lines]
    return sum(pieces[1:], pieces[0])


def _winner(paths: dict[str, Lines], x: int) -> str:
    naive, absorbed = (
        sum(max(compute(x), memory(x)) for compute, memory in paths[name]) for name in ("naive", "absorbed")
    )
    return "equal" if naive == absorbed else "naive" if naive < absorbed else "absorbed"


def _samples(marks: set[int], last: int | None) -> list[int]:
    """Every mark, and the integer after each: a stretch without a mark has one winner throughout."""
    around = {x + step for x in marks for step in (-1, 0, 1)}
    return sorted({0} | {x for x in around if x >= 0 and (last is None or x <= last)})
