"""A kernel's way over the roofline as one axis moves and the others stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, get_args

from ..hardware.roofline import binds
from ..models.attention import MLA
from .paths import Work, path_bound_s, total_bytes, total_flop
from .ridge import Axis, Subject, counts_at, ridge_crossing

Followed = Literal["attention", "path"]
FOLLOWED: tuple[Followed, ...] = get_args(Followed)

USUAL: dict[Axis, tuple[int, ...]] = {
    "tp": (1, 2, 4, 8),
    "batch": (1, 4, 16, 64, 256),
    "context": (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18),
    "queries": (1, 4, 16, 64, 256),
}
"""The values that an axis is followed over where none are asked for; those that the model and the step allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """A kernel, or the sum of a path's kernels, at one value of an axis; per rank and layer."""

    value: int
    """Of the axis."""
    tp: int
    heads: int
    """Per rank."""
    batch: int
    queries: int
    context: int
    flop: int
    bytes: int
    cache_bytes: int
    weight_bytes: int
    activation_bytes: int
    intensity_flop_per_byte: float
    bound_s: float
    """Of a path the sum over its kernels, one after another."""
    flop_per_s: float
    """At the bound: of one kernel it lies on the roof, of a path below it where its kernels are bound by both."""
    binds: str
    """By the intensity; of a path by that of all its kernels together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place on the way: a vertex, or a crossing of the ridge between two of them, whose counts are no whole ones.

    ``at_ridge`` holds of a vertex too whose value is a crossing's, be it the first beyond a jump over the ridge.
    """

    value: float
    at_ridge: bool
    flop: float
    bytes: float
    intensity_flop_per_byte: float
    flop_per_s: float
    binds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Where a kernel goes as ``axis`` moves and the other axes stay; one GPU, one dtype of the products."""

    gpu: str
    dtype: str
    axis: Axis
    path: str
    kernel: str
    """``attention``, or ``path``: all kernels of the path together."""
    ridge_flop_per_byte: float
    ridge_crossing: float | None
    """The smallest real value of the axis at which the intensity is the ridge's, or the first whole one beyond a jump
    over it, which the note tells; ``None``: at none."""
    ridge_crossings: tuple[float, ...]
    ridge_crossing_note: str
    """What binds on either side, or all along."""
    points: tuple[Vertex, ...]
    course: tuple[Place, ...]
    """The points, and the crossings between them: what a line is drawn through."""


def usual_values(axis: Axis, mla: MLA, work: Work) -> tuple[int, ...]:
    """:data:`USUAL` and the step's own value, rising: TPs that divide the heads, no more queries than context."""
    own: int = getattr(work, axis)
    allowed = {
        "tp": lambda value: mla.heads % value == 0,
        "batch": lambda _: True,
        "context": lambda value: value >= work.queries,
        "queries": lambda value: value <= work.context,
    }[axis]
    return tuple(sorted({own, *filter(allowed, USUAL[axis])}))


def vertex(subject: Subject, axis: Axis, value: int) -> Vertex:
    """The followed kernel at one value of the axis."""
    work = subject.at(axis, value)
    heads = subject.mla.heads // work.tp
    kernels = subject.kernels(axis, heads if axis == "tp" else value)
    flop, moved = total_flop(kernels), total_bytes(kernels)
    bound = path_bound_s(kernels, subject.ceilings)
    return Vertex(
        value=value,
        tp=work.tp,
        heads=heads,
        batch=work.batch,
        queries=work.queries,
        context=work.context,
        flop=flop,
        bytes=moved,
        cache_bytes=sum(kernel.cache_bytes for kernel in kernels),
        weight_bytes=sum(kernel.weight_bytes for kernel in kernels),
        activation_bytes=sum(kernel.activation_bytes for kernel in kernels),
        intensity_flop_per_byte=flop / moved,
        bound_s=bound,
        flop_per_s=flop / bound,
        binds=binds(flop, moved, subject.ceilings),
    )


def trajectory(subject: Subject, axis: Axis, values: Sequence[int], *, gpu: str, dtype: str, path: str) -> Trajectory:
    """The followed kernel at each of ``values``, and where it crosses the ridge.

    Raises:
        InputError: a TP that does not divide the heads.
    """
    crossing = ridge_crossing(subject, axis)
    points = tuple(vertex(subject, axis, value) for value in values)
    values_at = tuple(float(value) for value in crossing.values)
    return Trajectory(
        gpu=gpu,
        dtype=dtype,
        axis=axis,
        path=path,
        kernel=subject.kernel,
        ridge_flop_per_byte=subject.ceilings.ridge_flop_per_byte,
        ridge_crossing=values_at[0] if values_at else None,
        ridge_crossings=values_at,
        ridge_crossing_note=crossing.note,
        points=points,
        course=_course(subject, axis, points, crossing.values),
    )


def _course(subject: Subject, axis: Axis, points: Sequence[Vertex], crossings: Sequence[Fraction]) -> tuple[Place, ...]:
    """The points in their order with the crossings between each two, in the same direction."""
    found = [_place(points[0], crossings)]
    for before, after in pairwise(points):
        low, high = sorted((before.value, after.value))
        between = [_at_ridge(subject, axis, value) for value in crossings if low < value < high]
        found += between if before.value < after.value else between[::-1]
        found.append(_place(after, crossings))
    return tuple(found)


def _place(vertex: Vertex, crossings: Sequence[Fraction]) -> Place:
    return Place(
        value=vertex.value,
        at_ridge=vertex.value in crossings,
        flop=vertex.flop,
        bytes=vertex.bytes,
        intensity_flop_per_byte=vertex.intensity_flop_per_byte,
        flop_per_s=vertex.flop_per_s,
        binds=vertex.binds,
    )


def _at_ridge(subject: Subject, axis: Axis, value: Fraction) -> Place:
    flop, moved, seconds = counts_at(subject, axis, value)
    return Place(
        value=float(value),
        at_ridge=True,
        flop=float(flop),
        bytes=float(moved),
        intensity_flop_per_byte=float(flop / moved),
        flop_per_s=float(flop / seconds),
        binds="compute",
    )
