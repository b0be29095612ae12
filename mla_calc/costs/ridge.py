"""Where a kernel reaches the ridge as one axis moves: solved exactly, not read off.

With D(x) = flop(x) * bandwidth - bytes(x) * peak compute binds where D >= 0, and D is a polynomial of degree 2 at most
in the batch, the context, the queries, or the heads per rank (TP is all heads over them). It is found from the
kernels' own counts at whole numbers. Sparse attention changes the polynomial where the context passes topk: each side
is solved for itself. Source of the counts: docs/cost-model.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, get_args

from ..hardware.roofline import BINDS, Ceilings
from ..models.attention import MLA, Indexer
from .paths import Kernel, Path, Work, total_bytes, total_flop
from .quadratics import NotPolynomialError, Quadratic, through

Axis = Literal["tp", "batch", "context", "queries"]
AXES: tuple[Axis, ...] = get_args(Axis)
NOUNS: dict[Axis, str] = {"tp": "TP", "batch": "batch", "context": "context", "queries": "number of queries"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is followed: a kernel, or all kernels of a path, from one step on."""

    mla: MLA
    path: Path
    kernel: str
    work: Work
    ceilings: Ceilings
    indexer: Indexer | None = None

    def at(self, axis: Axis, value: int) -> Work:
        """The step with this value of the axis."""
        moved: dict[str, Any] = {axis: value}
        return replace(self.work, **moved)

    def kernels(self, axis: Axis, x: int) -> tuple[Kernel, ...]:
        """What is counted at ``x`` of the axis; of ``tp`` it is the heads of a rank, any number of them."""
        if axis == "tp":
            found = self.path(replace(self.mla, heads=x), replace(self.work, tp=1))
        else:
            found = self.path(self.mla, self.at(axis, x))
        return found if self.kernel == "path" else tuple(kernel for kernel in found if kernel.name == self.kernel)

    def difference(self, axis: Axis, x: int) -> int:
        """D(x) = flop * bandwidth - bytes * peak: 0 or more where compute binds."""
        kernels = self.kernels(axis, x)
        return int(
            total_flop(kernels) * self.ceilings.bytes_per_s - total_bytes(kernels) * self.ceilings.flop_per_s
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole numbers from ``low`` to ``high`` (``None``: without end) over which D is one polynomial."""

    low: int
    high: int | None
    polynomial: Quadratic


@dataclass(frozen=True, slots=True)
class Crossing:
    """The values of an axis, rising, at which the ridge is crossed; ``note`` says what binds where.

    At each the intensity is the ridge's; or it is the first whole number beyond a jump over the ridge, as counts of
    sparse attention have one, and the note says so.
    """

    values: tuple[Fraction, ...]
    note: str


def stretches(subject: Subject, axis: Axis) -> tuple[Stretch, ...]:
    """The axis cut where sparse attention changes its counts, each piece with its polynomial.

    Raises:
        NotPolynomialError: counts that are rounded to whole bytes.
    """
    work, low, high = subject.work, 1, None
    if axis == "tp":
        high = subject.mla.heads
    elif axis == "queries":
        high = work.context
    elif axis == "context":
        low = work.queries
    inside = sorted(cut for cut in _cuts(subject, axis) if cut >= low and (high is None or cut < high))
    lows, highs = [low, *(cut + 1 for cut in inside)], [*inside, high]
    return tuple(
        Stretch(start, stop, through(lambda x: subject.difference(axis, x), start, stop))
        for start, stop in zip(lows, highs, strict=True)
    )


def _cuts(subject: Subject, axis: Axis) -> set[int]:
    """Where counts of sparse attention change: a context of topk and, of causal queries, a prefix of topk."""
    if subject.indexer is None:
        return set()
    topk, work = subject.indexer.topk, subject.work
    if axis == "context":
        return {topk, topk + work.queries} if work.causal else {topk}
    return {work.context - topk} if axis == "queries" and work.causal else set()


def ridge_crossing(subject: Subject, axis: Axis) -> Crossing:
    """Where the intensity reaches the ridge or jumps over it, over all that the axis may be: any TP up to the heads,
    any context or batch from what the step needs on, queries up to the context."""
    try:
        pieces = stretches(subject, axis)
    except NotPolynomialError:
        return Crossing((), "not solved: bytes are rounded to whole ones here")
    found = [root for piece in pieces for root in piece.polynomial.roots() if _within(root, piece)]
    for below, above in pairwise(pieces):
        found += _between(below, above)
    first, last = pieces[0].low, pieces[-1].high
    if axis == "tp":
        heads = subject.mla.heads
        values = tuple(sorted(Fraction(heads) / x for x in set(found)))
        at_start = BINDS[pieces[-1].polynomial(heads) >= 0]
        first, last = 1, heads
    else:
        values = tuple(sorted(set(found)))
        at_start = BINDS[pieces[0].polynomial(first) >= 0]
    if not values:
        return Crossing((), _without(subject, axis, at_start, pieces))
    if len(values) == 1 and values[0] == first and at_start == "compute":
        beyond = BINDS[subject.difference(axis, 1 if axis == "tp" else first + 1) >= 0] if last != first else at_start
        return Crossing(values, f"on the ridge at {values[0]}, {beyond} binds above")
    return Crossing(values, _sides(values, at_start) + _jumps(subject, axis, values))


def _within(x: Fraction, piece: Stretch) -> bool:
    return piece.low <= x and (piece.high is None or x <= piece.high)


def _between(below: Stretch, above: Stretch) -> list[Fraction]:
    """The crossing between the last whole number of one stretch and the first of the next, if there is one.

    The counts run on into the gap by the upper polynomial, or jump there: then the crossing is at the next number.
    """
    assert below.high is not None
    if (below.polynomial(below.high) >= 0) == (above.polynomial(above.low) >= 0):
        return []
    inside = [root for root in above.polynomial.roots() if below.high < root < above.low]
    return inside[:1] or [Fraction(above.low)]


def _sides(values: Sequence[Fraction], at_start: str) -> str:
    other = BINDS[at_start == "memory"]
    if len(values) == 1:
        return f"{at_start} binds below, {other} above"
    names = [at_start, other]
    ends = ", ".join(f"{names[(at + 1) % 2]} from {float(value):,.4g}" for at, value in enumerate(values))
    return f"{at_start} binds below, {ends}"


def _jumps(subject: Subject, axis: Axis, values: Sequence[Fraction]) -> str:
    """What is to be said of values that are beyond the ridge, not on it; counts by TP are one stretch, and have none.

    A root that is whole is on it exactly: roots that are cut off are those of no square, and have decimals.
    """
    whole = [int(value) for value in values if value.denominator == 1 and axis != "tp"]
    beyond = [f"{value:,}" for value in whole if subject.difference(axis, value)]
    return f"; at {' and '.join(beyond)} the intensity jumps over the ridge" if beyond else ""


def _without(subject: Subject, axis: Axis, name: str, pieces: Sequence[Stretch]) -> str:
    """What binds where nothing is crossed, and where the ridge would lie if the axis went on."""
    low, high = pieces[0].low, pieces[-1].high
    if _is_level(subject, axis, low, high):
        return f"{name} binds: one intensity for all"
    roots = [root for root in pieces[-1 if axis == "tp" else 0].polynomial.roots() if root > 0]
    if axis == "tp" and high and (above := [root for root in roots if root > high]):
        return f"{name} binds: the ridge takes {float(above[0]):,.4g} heads per rank"
    if axis == "queries" and (below := [root for root in roots if root < low]):
        return f"{name} binds: the ridge lies at {float(below[-1]):,.4g} of one"
    return f"{name} binds throughout"


def _is_level(subject: Subject, axis: Axis, low: int, high: int | None) -> bool:
    """Whether the intensity is the same at both ends and in between."""
    last = high if high is not None else low + (1 << 20)
    at = [subject.kernels(axis, x) for x in (low, (low + last) // 2, last)]
    first_flop, first_bytes = total_flop(at[0]), total_bytes(at[0])
    return all(total_flop(kernels) * first_bytes == total_bytes(kernels) * first_flop for kernels in at)


def counts_at(subject: Subject, axis: Axis, value: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """(FLOP, bytes, bound in s) at any value of an axis where counts are polynomials, whole or not.

    Raises:
        NotPolynomialError: counts that are rounded to whole bytes.
    """
    x = subject.mla.heads / value if axis == "tp" else value
    piece = next(piece for piece in stretches(subject, axis) if piece.high is None or x <= piece.high)
    flop = moved = seconds = Fraction(0)
    for index in range(len(subject.kernels(axis, piece.low))):
        its_flop, its_bytes = (
            through(lambda n, at=index, of=name: getattr(subject.kernels(axis, n)[at], of), piece.low, piece.high)(x)  # type: ignore[misc]
            for name in ("flop", "bytes")
        )
        flop, moved = flop + its_flop, moved + its_bytes
        seconds += max(its_flop / subject.ceilings.flop_per_s, its_bytes / subject.ceilings.bytes_per_s)
    return flop, moved, seconds


def heads_times_queries(subject: Subject) -> float | None:
    """Heads per rank times queries at which attention over this context, its query and output bytes included, reaches
    the ridge; ``None`` where no number of queries up to the context does, or its counts are not one polynomial.

    Fewer than one query may be meant: what decides is the product.
    """
    try:
        pieces = stretches(subject, "queries")
    except NotPolynomialError:
        return None
    if len(pieces) > 1:
        return None
    roots = [root for root in pieces[0].polynomial.roots() if 0 < root <= subject.work.context]
    return float(roots[0] * (subject.mla.heads // subject.work.tp)) if roots else None
