"""Both paths' FLOPs, bytes and bounds for one step (docs/cost-model.md, sections 3 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..arrays import stored_bytes
from ..hardware.gpu import GPU
from ..hardware.latency import Unknown
from ..hardware.roofline import Ceilings, binds, bound_s
from ..models.attention import MLA, Indexer
from .counts import absorbed_core_flop, expanded_values, fold_flop, naive_core_flop, pairs
from .estimates import BOUNDARY, PathEstimate, estimate_path
from .paths import (
    Kernel,
    Work,
    check_step,
    over_layers,
    overlapped_bound_s,
    path_bound_s,
    total_bytes,
    total_flop,
)
from .sharding import heads_per_rank
from .sparse import SparseCost, paths_of, sparse_cost

if TYPE_CHECKING:
    from ..arrays import Floats


ROUNDING = 1e-14
"""Relative rounding of a sum of a few quotients of doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCost:
    """One kernel of a path, per rank and layer; the bound is ``None`` without a GPU."""

    name: str
    flop: int
    bytes: int
    cache_bytes: int
    weight_bytes: int
    activation_bytes: int
    intensity_flop_per_byte: float
    bound_s: float | None
    binds: str | None
    estimate_s: float | None = None
    """A latency, from a calibration; ``None`` without one for this kernel and step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedPart:
    """One measured step of a path, and the run that its constants come from; ``boundary`` is what the whole took
    beyond the others, mostly less than 0."""

    name: str
    estimate_s: float
    run: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """Where a path's estimate comes from. Its parts may be more than the kernels that have a bound."""

    kernel: str
    """The implementation: the attention kernel that is taken for this step; the naive path as engines run it."""
    parts: tuple[EstimatedPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCost:
    """One path, per rank and layer; ``total_`` is over all layers that cache.

    Under sparse attention the layer is one that indexes, and a total has the indexer on those layers alone.
    """

    flop: int
    bytes: int
    bound_s: float | None
    overlapped_bound_s: float | None
    total_flop: int
    total_bytes: int
    total_bound_s: float | None
    kernels: tuple[KernelCost, ...]
    estimate_s: float | None = None
    """The sum over the path's measured parts; ``None`` without a calibration for this step."""
    total_estimate_s: float | None = None
    estimated: Estimated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsCost:
    """FLOPs and bytes of both paths for ``batch`` requests, per rank and layer."""

    tp: int
    batch: int
    queries: int
    context: int
    causal: bool
    fold_flop_per_query_token: int
    naive_core_flop_per_pair: int
    absorbed_core_flop_per_pair: int
    core_ratio: float
    materialized_bytes_per_context_token: int
    pairs: int
    """Of one request."""
    fold_to_core_ratio: float
    """The folds' FLOPs over those of the absorbed core."""
    fewer_flop: str
    fewer_bytes: str
    lower_bound: str | None
    bound_ratio: float | None
    """The higher of the two bounds over the lower."""
    absorbed: PathCost
    naive: PathCost
    merged_output_projection_ratio: float
    """Parameters of W_UV*W_O over those of W_O: why nobody multiplies them beforehand."""
    sparse: SparseCost | None = None
    """Of sparse attention; ``None``: attention is priced dense."""
    lower_estimate: str | None = None
    """The path with the lower estimate; ``None`` unless both have one."""


def flops_cost(
    mla: MLA, layers: int, work: Work, ceilings: Ceilings | None = None, *, indexer: Indexer | None = None
) -> FlopsCost:
    """Price both paths for one point; bounds are ``None`` without ``ceilings``.

    Attention is dense, or sparse over the choice of ``indexer`` where one is given.

    Raises:
        InputError: more queries than context, or a TP that does not divide the heads.
    """
    check_step(work)
    heads = heads_per_rank(mla, work.tp)
    query_pairs = pairs(work.queries, work.context, work.causal)
    fold, core = fold_flop(mla, heads), absorbed_core_flop(mla, heads)
    indexing = indexer.layers if indexer else 0
    costs = {name: path_cost(path(mla, work), layers, ceilings, indexing) for name, path in paths_of(indexer).items()}
    sparse = sparse_cost(mla, indexer, work) if indexer else None
    attended = sparse.attended_pairs if sparse else query_pairs
    absorbed, naive = costs["absorbed"], costs["naive"]
    return FlopsCost(
        tp=work.tp,
        batch=work.batch,
        queries=work.queries,
        context=work.context,
        causal=work.causal,
        fold_flop_per_query_token=fold,
        naive_core_flop_per_pair=naive_core_flop(mla, heads),
        absorbed_core_flop_per_pair=core,
        core_ratio=core / naive_core_flop(mla, heads),
        materialized_bytes_per_context_token=stored_bytes(expanded_values(mla, heads), work.activation_bytes),
        pairs=query_pairs,
        fold_to_core_ratio=fold * work.queries / (core * attended),
        fewer_flop=cheaper(absorbed.flop, naive.flop),
        fewer_bytes=cheaper(absorbed.bytes, naive.bytes),
        lower_bound=cheaper(absorbed.bound_s, naive.bound_s) if ceilings else None,
        bound_ratio=_ratio(absorbed.bound_s, naive.bound_s),
        absorbed=absorbed,
        naive=naive,
        merged_output_projection_ratio=mla.kv_lora_rank / mla.v_head_dim,
        sparse=sparse,
    )


def with_estimates(
    cost: FlopsCost, gpu: GPU, mla: MLA, layers: int, work: Work, *, dtype: str, cache: str
) -> tuple[FlopsCost, tuple[str, ...]]:
    """``cost`` with what its paths are estimated to take on ``gpu``, and why a path has no estimate.

    Args:
        cost: of the same step, by :func:`flops_cost`.
        gpu: whose calibrations are used.
        mla: the attention's widths.
        layers: that cache.
        work: the step.
        dtype: of the products' operands.
        cache: name of the cache layout.
    """
    if cost.sparse:
        return cost, ("attention is sparse: it was not measured",)
    absorbed = estimate_path(gpu, "absorbed", mla, work, dtype=dtype, cache=cache)
    naive = estimate_path(gpu, "naive", mla, work, dtype=dtype, cache=cache)
    reasons = tuple(found.reason for found in (absorbed, naive) if isinstance(found, Unknown))
    priced = replace(
        cost, absorbed=_estimated(cost.absorbed, absorbed, layers), naive=_estimated(cost.naive, naive, layers)
    )
    if isinstance(absorbed, PathEstimate) and isinstance(naive, PathEstimate):
        priced = replace(priced, lower_estimate=cheaper(absorbed.seconds, naive.seconds))
    return priced, reasons


def _estimated(path: PathCost, found: PathEstimate | Unknown, layers: int) -> PathCost:
    if isinstance(found, Unknown):
        return path
    seconds = {name: part.seconds for name, part in found.parts}
    parts = tuple(
        EstimatedPart(
            name=name,
            estimate_s=part.seconds,
            run=part.calibration.run,
            date=part.calibration.date.isoformat(),
        )
        for name, part in found.parts
    )
    if found.boundary:
        run, date = found.boundary.run, found.boundary.date.isoformat()
        parts += (EstimatedPart(name=BOUNDARY, estimate_s=found.boundary_s, run=run, date=date),)
    return replace(
        path,
        kernels=tuple(replace(kernel, estimate_s=seconds.get(kernel.name)) for kernel in path.kernels),
        estimate_s=found.seconds,
        total_estimate_s=layers * found.seconds,
        estimated=Estimated(kernel=found.kernel, parts=parts),
    )


def path_figures(
    kernels: tuple[Kernel, ...], layers: int, ceilings: Ceilings | None, indexing: int = 0
) -> dict[str, Any]:
    """The figures of a path, over one point or arrays; bounds are ``None`` without ``ceilings``.

    Of the ``layers``, ``indexing`` run the path's indexer, if it has one.
    """

    def bound(some: tuple[Kernel, ...]) -> Floats:
        return path_bound_s(some, ceilings) if ceilings else None

    return {
        "flop": total_flop(kernels),
        "bytes": total_bytes(kernels),
        "bound_s": bound(kernels),
        "overlapped_bound_s": overlapped_bound_s(kernels, ceilings) if ceilings else None,
        "total_flop": over_layers(kernels, layers, indexing, total_flop),
        "total_bytes": over_layers(kernels, layers, indexing, total_bytes),
        "total_bound_s": over_layers(kernels, layers, indexing, bound) if ceilings else None,
    }


def path_cost(kernels: tuple[Kernel, ...], layers: int, ceilings: Ceilings | None, indexing: int = 0) -> PathCost:
    """One path's kernels, their sums and, with ``ceilings``, their bounds; a kernel without work is left out."""
    costs = tuple(_kernel_cost(kernel, ceilings) for kernel in kernels if kernel.bytes)
    return PathCost(**path_figures(kernels, layers, ceilings, indexing), kernels=costs)


def cheaper(absorbed: Floats, naive: Floats) -> Any:
    """Which of the two is less, point by point; ``equal`` where neither is.

    Seconds are sums of rounded quotients: what differs by no more than their rounding is equal.
    """
    if isinstance(absorbed, int):
        return "equal" if absorbed == naive else "absorbed" if absorbed < naive else "naive"
    if isinstance(absorbed, float):
        equal = abs(absorbed - naive) <= ROUNDING * absorbed
        return "equal" if equal else "absorbed" if absorbed < naive else "naive"
    import numpy as np

    slack = ROUNDING * absorbed if absorbed.dtype == np.float64 else 0
    names = np.array(["naive", "equal", "absorbed"], dtype=object)
    less = absorbed < naive - slack
    return names[less.astype(np.int8) + (absorbed <= naive + slack)]


def _ratio(left: float | None, right: float | None) -> float | None:
    if left is None or right is None:
        return None
    return max(left, right) / min(left, right)


def _kernel_cost(kernel: Kernel, ceilings: Ceilings | None) -> KernelCost:
    return KernelCost(
        name=kernel.name,
        flop=kernel.flop,
        bytes=kernel.bytes,
        cache_bytes=kernel.cache_bytes,
        weight_bytes=kernel.weight_bytes,
        activation_bytes=kernel.activation_bytes,
        intensity_flop_per_byte=kernel.flop / kernel.bytes,
        bound_s=bound_s(kernel.flop, kernel.bytes, ceilings) if ceilings else None,
        binds=binds(kernel.flop, kernel.bytes, ceilings) if ceilings else None,
    )
