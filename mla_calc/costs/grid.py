"""The engine over a grid: the same formulas, called with arrays, a chunk of points at a time.

A sweep is an entry of :data:`SWEEPS`: its axes, and one function from arrays of points to named columns. Every
column comes from the functions that price a single point, and equals what they give to the last bit. Names of
columns are the keys of that command's JSON, flattened with dots. What has no value (bounds without a GPU,
latent bytes of a GQA model) has no column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Model
from .cache import CacheCost, cache_cost, request_bytes, token_bytes
from .intensity import context_intensity
from .layouts import Layout, latent_row_bytes
from .paths import PATHS, Kernel, Work, overlapped_bound_s, path_bound_s, total_bytes, total_flop
from .sharding import check_tp
from .workspace import WorkspaceCost, workspace_cost

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..arrays import Floats, Width

    Column = NDArray[Any]

CHUNK_POINTS = 1 << 17
"""Points evaluated at a time: a column takes 1 MiB, so that memory stays bounded whatever the grid."""
MAX_POINTS = 100_000_000
"""Most points of a grid: some 10 GB of Parquet."""
MAX_INTEGER = 2**63 - 1
"""Largest integer of a column."""
EXACT_IN_FLOAT = 2**53
"""Up to here every integer is a float64, and the quotient of two arrays is that of two Python integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is the same at every point of a grid."""

    model: Model
    layout: Layout
    ceilings: Ceilings | None = None
    causal: bool = True
    weight_bytes: Width = 2

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


def _names(record: type[Any], ending: str) -> list[str]:
    return [item.name for item in fields(record) if item.name.endswith(ending)]


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
        check_tp(setting.model.name, setting.model.attention, tp)
    if left_out(sweep, axes) == points:
        raise InputError("every point has more queries than context, which counts the new tokens too")
    for corner in _corners(sweep, axes):
        _check_corner(sweep, setting, corner)


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


def _corners(sweep: Sweep, axes: Axes) -> list[dict[str, int]]:
    """The points that hold the largest figures: counts grow along every axis but TP, where some fall."""
    largest = {name: max(axes[name]) for name in sweep.axes}
    if _has_both(sweep):
        largest["queries"] = max(queries for queries in axes["queries"] if queries <= largest["context"])
    return [{**largest, "tp": tp} for tp in sorted({min(axes["tp"]), max(axes["tp"])})]


def _check_corner(sweep: Sweep, setting: Setting, corner: Mapping[str, int]) -> None:
    """Evaluate one point with Python integers, through the function that takes the arrays."""
    import numpy as np

    points = {name: np.array([value], dtype=object) for name, value in corner.items()}
    for name, column in sweep.columns(setting, points).items():
        value = column.tolist()[0]
        if isinstance(value, int) and value > MAX_INTEGER:
            where = ", ".join(f"{axis} {at}" for axis, at in corner.items())
            raise InputError(f"{name} is {value:.3e} at {where}: more than 2**63 - 1, the largest of a column")


def _flops(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """Both paths: the columns of ``flops``, without its kernels."""
    work = Work(
        queries=points["queries"],
        context=points["context"],
        row_bytes=latent_row_bytes(setting.layout, setting.mla),
        batch=points["batch"],
        tp=points["tp"],
        causal=setting.causal,
        weight_bytes=setting.weight_bytes,
    )
    columns = dict(points)
    for name, path in PATHS.items():
        figures = _path_figures(path(setting.mla, work), setting.model.cached_layers, setting.ceilings)
        columns |= {f"{name}.{key}": column for key, column in figures.items()}
    compared = {"fewer_flop": "flop", "fewer_bytes": "bytes", "lower_bound": "bound_s"}
    for name, key in compared.items():
        if f"naive.{key}" in columns:
            columns[name] = _cheaper(columns[f"absorbed.{key}"], columns[f"naive.{key}"])
    return columns


def _path_figures(kernels: tuple[Kernel, ...], layers: int, ceilings: Ceilings | None) -> dict[str, Any]:
    """The figures of ``flops.PathCost`` over arrays."""
    flop, moved = total_flop(kernels), total_bytes(kernels)
    figures: dict[str, Any] = {"flop": flop, "bytes": moved}
    totals: dict[str, Any] = {"total_flop": layers * flop, "total_bytes": layers * moved}
    if ceilings:
        figures["bound_s"] = _exact_bound(path_bound_s, kernels, ceilings)
        figures["overlapped_bound_s"] = _exact_bound(overlapped_bound_s, kernels, ceilings)
        totals["total_bound_s"] = layers * figures["bound_s"]
    return figures | totals


def _exact_bound(
    rule: Callable[[tuple[Kernel, ...], Ceilings], Floats], kernels: tuple[Kernel, ...], ceilings: Ceilings
) -> NDArray[np.float64]:
    """The bound by ``rule``, to the last bit that of Python integers.

    An int64 above 2**53 is rounded to a float before it is divided, and the quotient once more; Python rounds
    once. So the points with such counts are divided as Python integers, which object arrays hold.
    """
    import numpy as np

    bound = np.asarray(rule(kernels, ceilings), dtype=np.float64)
    large = np.maximum(total_flop(kernels), total_bytes(kernels)) > EXACT_IN_FLOAT
    if large.any():
        bound[large] = rule(tuple(_as_integers(kernel, large) for kernel in kernels), ceilings)
    return bound


def _as_integers(kernel: Kernel, chosen: NDArray[np.bool_]) -> Kernel:
    """The kernel at the ``chosen`` points, its counts as Python integers."""
    import numpy as np

    counts = ("flop", "cache_bytes", "weight_bytes", "activation_bytes")
    whole: Any = {name: np.broadcast_to(getattr(kernel, name), chosen.shape) for name in counts}
    return replace(kernel, **{name: column[chosen].astype(object) for name, column in whole.items()})


def _cheaper(absorbed: Column, naive: Column) -> Column:
    """:func:`~mla_calc.costs.flops.cheaper`, point by point."""
    import numpy as np

    names = np.array(["naive", "equal", "absorbed"], dtype=object)
    return names[(absorbed <= naive).astype(np.int8) + (absorbed < naive)]


TOKEN_FIGURES = (*_names(CacheCost, "bytes_per_token"), "expanded_to_latent_ratio")
"""Columns of ``cache`` that TP alone decides."""


def _cache(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``cache``: what a token takes, and the totals of all requests."""
    model, layout = setting.model, setting.layout
    tps, which = _distinct(points["tp"])
    copy = token_bytes(model, layout)
    parts: Any = _table([token_bytes(model, layout, tp=tp) for tp in tps], ("main", "indexer", "windowed"), which)
    batch, context = points["batch"], points["context"]
    rank_total = batch * _request_bytes(replace(copy, **parts), model, context)
    return {
        **points,
        **_table([cache_cost(model, layout, tp=tp) for tp in tps], TOKEN_FIGURES, which),
        "total_bytes": batch * _request_bytes(copy, model, context),
        "allocated_bytes": batch * _request_bytes(copy, model, context, points["block_size"]),
        "per_rank_total_bytes": rank_total,
        "cluster_total_bytes": rank_total * points["tp"],
    }


def _request_bytes(token: Any, model: Model, context: Any, block_size: Any = 1) -> Column:
    """:func:`request_bytes` of many contexts: what has a window is priced apart, at most that long."""
    import numpy as np

    total: Any = request_bytes(token, context, None, block_size)
    if model.windowed:
        windowed: Any = np.minimum(context, model.windowed.window)
        total += request_bytes(replace(token, main=token.windowed, indexer=0), windowed, None, block_size)
    return np.asarray(total)


def _intensity(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``intensity``, whose list by TP has a row for each number of queries."""
    import numpy as np

    queries: Any = points["queries"].astype(object)  # FLOPs of any size are divided exactly
    intensity = np.empty(len(queries))
    for tp in _distinct(points["tp"])[0]:
        rows = points["tp"] == tp
        intensity[rows] = context_intensity(setting.model.attention, setting.layout, tp, queries[rows])
    columns = dict(points) | {"intensity_flop_per_byte": intensity}
    if setting.ceilings:
        ridge = setting.ceilings.ridge_flop_per_byte
        share, margin = intensity / ridge, ridge / intensity
        binds = np.array(["memory", "compute"], dtype=object)[(intensity >= ridge).astype(np.int8)]
        columns |= {"ridge_share": share, "margin": margin, "binds": binds, "by": np.maximum(share, margin)}
    return columns


WORKSPACE_FIGURES = ("rows", *_names(WorkspaceCost, "_bytes"), "expansion_ratio", "cache_tokens_worth")


def _workspace(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``workspace``: a loop of some 4 us a point, for its rule is written for single numbers."""
    tps = _distinct(points["tp"])[0]
    held = {tp: token_bytes(setting.model, setting.layout, tp=tp).growing for tp in tps}
    rows = zip(*(axis.tolist() for axis in points.values()), strict=True)
    named = (dict(zip(points, row, strict=True)) for row in rows)
    costs = [workspace_cost(setting.mla, cache_bytes_per_token=held[point["tp"]], **point) for point in named]
    return {**points, **_table(costs, WORKSPACE_FIGURES)}


def _distinct(column: Column) -> tuple[list[int], Column]:
    """The distinct values, and the place of each entry's value among them."""
    import numpy as np

    values, which = np.unique(column, return_inverse=True)
    return values.tolist(), which


def _table(records: list[Any], names: tuple[str, ...], which: Any = slice(None)) -> dict[str, Column]:
    """Fields of records as columns, a record's figures at every place that ``which`` gives it."""
    import numpy as np

    known = [name for name in names if getattr(records[0], name) is not None]
    return {name: np.array([getattr(record, name) for record in records])[which] for name in known}


SWEEPS: dict[str, Sweep] = {
    "flops": Sweep(
        axes=("tp", "batch", "queries", "context"),
        columns=_flops,
        settings=("ceilings", "causal", "weight_bytes"),
        mla_only=True,
    ),
    "cache": Sweep(axes=("tp", "batch", "context", "block_size"), columns=_cache),
    "intensity": Sweep(axes=("tp", "queries"), columns=_intensity, settings=("ceilings",)),
    "workspace": Sweep(axes=("tp", "max_model_len", "max_num_seqs", "block_size"), columns=_workspace, mla_only=True),
}
"""The sweeps by command; the first is what `sweep` does without one."""
