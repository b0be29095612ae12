"""The engine over a grid: the same formulas, called with arrays, a chunk of points at a time.

A sweep has its axes and one function from arrays of points to named columns (see sweeps.py); this module
enumerates the points, checks the grid before any of it is computed, and hands out the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Indexer, Model
from .layouts import Layout
from .sharding import check_tp
from .workspace import VLLM, WorkspaceRule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import Width

    Column = NDArray[Any]

CHUNK_POINTS = 1 << 17
"""Points evaluated at a time: a column takes 1 MiB, so that memory stays bounded whatever the grid."""
MAX_POINTS = 100_000_000
"""Most points of a grid: some 10 GB of Parquet."""
MAX_INTEGER = 2**63 - 1
"""Largest integer of a column."""
UNEVEN = ("tp", "block_size")
"""Axes along which some figures fall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is the same at every point of a grid."""

    model: Model
    layout: Layout
    ceilings: Ceilings | None = None
    causal: bool = True
    weight_bytes: Width = 2
    indexer: Indexer | None = None
    """The model's indexer where attention is priced sparse."""
    rule: WorkspaceRule = VLLM
    """The engine's rule for the workspace of chunked prefill."""

    @property
    def mla(self) -> MLA:
        """The model's MLA shapes; only for sweeps that are ``mla_only``."""
        assert self.model.mla is not None
        return self.model.mla


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One command's sweep: from the points, one array per axis, to columns of the same length."""

    axes: tuple[str, ...]
    """Slowest first."""
    columns: Callable[[Setting, Mapping[str, Column]], dict[str, Column]]
    settings: tuple[str, ...] = ()
    """Fields of :class:`Setting` that it depends on, besides the model and the layout."""
    mla_only: bool = False


Axes = Mapping[str, tuple[int, ...]]


def grid_points(sweep: Sweep, axes: Axes) -> int:
    """Points of the whole grid, those that will be left out included."""
    return prod(len(axes[name]) for name in sweep.axes)


def left_out(sweep: Sweep, axes: Axes) -> int:
    """Points with more queries than context: the context counts the new tokens too."""
    if not _has_both(sweep):
        return 0
    import numpy as np

    shorter = np.searchsorted(np.sort(axes["context"]), axes["queries"])
    others = prod(len(axes[name]) for name in sweep.axes if name not in ("queries", "context"))
    return int(shorter.sum()) * others


def check_grid(sweep: Sweep, setting: Setting, axes: Axes) -> None:
    """Refuse a grid before any of it is computed.

    Raises:
        InputError: too many points, a TP that does not divide the heads, no point that is left, or a figure
            that does not fit a 64-bit integer.
    """
    points = grid_points(sweep, axes)
    if points > MAX_POINTS:
        raise InputError(f"the grid has {points:,} points; at most {MAX_POINTS:,} are accepted")
    for tp in axes["tp"]:
        check_tp(setting.model, tp)
    if left_out(sweep, axes) == points:
        raise InputError("every point has more queries than context, which counts the new tokens too")
    _check_corners(sweep, setting, _corners(sweep, axes))


def chunks(
    sweep: Sweep, setting: Setting, axes: Axes, advance: Callable[[int], object] = lambda _: None
) -> Iterator[dict[str, Column]]:
    """The columns of the grid, up to :data:`CHUNK_POINTS` points at a time, the last axis fastest.

    ``advance`` is told how many points of the grid are done, once the chunk that had them was taken.
    """
    import numpy as np

    values = {name: np.array(axes[name], dtype=np.int64) for name in sweep.axes}
    total = grid_points(sweep, axes)
    for start in range(0, total, CHUNK_POINTS):
        stop = min(start + CHUNK_POINTS, total)
        points = _points(values, start, stop)
        if points["tp"].size:
            yield sweep.columns(setting, points)
        advance(stop - start)


def _points(values: Mapping[str, Column], start: int, stop: int) -> dict[str, Column]:
    """The points from ``start`` to ``stop`` of the grid, those with more queries than context left out."""
    import numpy as np

    at = np.unravel_index(np.arange(start, stop), tuple(len(axis) for axis in values.values()))
    points: dict[str, Column] = {name: axis[index] for (name, axis), index in zip(values.items(), at, strict=True)}
    if "queries" not in points or "context" not in points:
        return points
    kept = points["queries"] <= points["context"]
    return points if kept.all() else {name: column[kept] for name, column in points.items()}


def _has_both(sweep: Sweep) -> bool:
    return "queries" in sweep.axes and "context" in sweep.axes


def _corners(sweep: Sweep, axes: Axes) -> dict[str, tuple[int, ...]]:
    """Points among which every figure is largest, as axes of equal length.

    Counts grow along every axis but TP, where some fall, and block size, where what is rounded up to whole
    pages goes up and down: of these two every value is tried. Under sparse attention some stop growing, none falls.
    """
    largest = {name: max(axes[name]) for name in sweep.axes}
    if _has_both(sweep):
        largest["queries"] = max(queries for queries in axes["queries"] if queries <= largest["context"])
    tried = [axes[name] for name in UNEVEN if name in sweep.axes]
    combined = list(zip(*product(*tried), strict=True))
    every = dict(zip((name for name in UNEVEN if name in sweep.axes), combined, strict=True))
    return {name: every.get(name, (largest[name],) * len(combined[0])) for name in sweep.axes}


def _check_corners(sweep: Sweep, setting: Setting, corners: Mapping[str, tuple[int, ...]]) -> None:
    """Evaluate the corners with Python integers, through the function that takes the arrays."""
    import numpy as np

    points = {name: np.array(values, dtype=object) for name, values in corners.items()}
    for name, column in sweep.columns(setting, points).items():
        for index, value in enumerate(column.tolist()):
            if isinstance(value, int) and value > MAX_INTEGER:
                where = ", ".join(f"{axis} {values[index]}" for axis, values in corners.items())
                raise InputError(f"{name} is {value:.3e} at {where}: more than 2**63 - 1, the largest of a column")
