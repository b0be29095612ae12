"""The two paths as lists of kernels, with the FLOPs and bytes of each (docs/cost-model.md, section 5).

Both paths are the same kind of list, so whatever prices one prices the other. Everything is per rank and per
layer, for ``batch`` requests of equal size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from ..arrays import stored_bytes
from ..errors import InputError, shown
from ..hardware.roofline import Ceilings, bound_s
from ..models.attention import MLA
from .counts import absorbed_core_flop, expanded_values, naive_core_flop, pairs
from .sharding import heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Floats, Ints, Width


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One layer's step: ``batch`` requests of ``queries`` new tokens over ``context`` keys, on ``tp`` ranks."""

    queries: Ints
    context: Ints
    row_bytes: int
    """Bytes of a cached row, by its layout."""
    batch: Ints = 1
    tp: Ints = 1
    causal: bool = True
    activation_bytes: Width = 2
    weight_bytes: Width = 2


def check_step(work: Work) -> None:
    """Refuse a step with more new tokens than keys, or without any of either. Raises InputError."""
    for name in ("queries", "context", "batch", "tp"):
        value = getattr(work, name)
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {shown(value)}: a whole number from 1 on is expected")
    if work.queries > work.context:
        raise InputError(
            f"{work.queries:,} queries are more than the context of {work.context:,}, which counts the new tokens too"
        )


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel's counts; bytes are told apart by the tensor they belong to."""

    name: str
    flop: Ints
    cache_bytes: Ints
    weight_bytes: Ints
    activation_bytes: Ints
    indexes: bool = False
    """Whether only the layers that hold indexer keys run it; every layer that caches runs the others."""

    @property
    def bytes(self) -> Ints:
        """All bytes that the kernel reads and writes."""
        return self.cache_bytes + self.weight_bytes + self.activation_bytes


Path = Callable[[MLA, Work], tuple[Kernel, ...]]


def absorbed_kernels(mla: MLA, work: Work) -> tuple[Kernel, ...]:
    """The absorbed (MQA) form: fold W_UK into the query, attend over latent rows, bring values up after."""
    heads = heads_per_rank(mla, work.tp)
    rank, nope, rope, value = mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    tokens = work.batch * work.queries
    return (
        Kernel(
            "q_fold",
            flop=2 * tokens * heads * nope * rank,
            cache_bytes=0,
            weight_bytes=stored_bytes(heads * nope * rank, work.weight_bytes),
            activation_bytes=stored_bytes(tokens * heads * (nope + rank), work.activation_bytes),
        ),
        Kernel(
            "attention",
            flop=work.batch * pairs(work.queries, work.context, work.causal) * absorbed_core_flop(mla, heads),
            cache_bytes=work.batch * work.context * work.row_bytes,
            weight_bytes=0,
            activation_bytes=stored_bytes(tokens * heads * (2 * rank + rope), work.activation_bytes),
        ),
        Kernel(
            "v_up",
            flop=2 * tokens * heads * rank * value,
            cache_bytes=0,
            weight_bytes=stored_bytes(heads * rank * value, work.weight_bytes),
            activation_bytes=stored_bytes(tokens * heads * (rank + value), work.activation_bytes),
        ),
    )


def naive_kernels(mla: MLA, work: Work) -> tuple[Kernel, ...]:
    """The naive (MHA) form: up-project every context token into per-head keys and values, then attend."""
    heads = heads_per_rank(mla, work.tp)
    rank, nope, value = mla.kv_lora_rank, mla.qk_nope_head_dim, mla.v_head_dim
    keys = work.batch * work.context
    tokens = work.batch * work.queries
    expanded = stored_bytes(keys * expanded_values(mla, heads), work.activation_bytes)
    return (
        Kernel(
            "up_proj",
            flop=2 * keys * rank * heads * (nope + value),
            cache_bytes=keys * work.row_bytes,
            weight_bytes=stored_bytes(rank * heads * (nope + value), work.weight_bytes),
            activation_bytes=expanded,
        ),
        Kernel(
            "attention",
            flop=work.batch * pairs(work.queries, work.context, work.causal) * naive_core_flop(mla, heads),
            cache_bytes=0,
            weight_bytes=0,
            activation_bytes=expanded + stored_bytes(tokens * expanded_values(mla, heads), work.activation_bytes),
        ),
    )


PATHS: dict[str, Path] = {"absorbed": absorbed_kernels, "naive": naive_kernels}


def total_flop(kernels: tuple[Kernel, ...]) -> Ints:
    """FLOP of a path: the sum over its kernels."""
    return reduce(add, (kernel.flop for kernel in kernels))


def total_bytes(kernels: tuple[Kernel, ...]) -> Ints:
    """Bytes of a path: the sum over its kernels."""
    return reduce(add, (kernel.bytes for kernel in kernels))


def path_bound_s(kernels: tuple[Kernel, ...], ceilings: Ceilings) -> Floats:
    """Bound of a path run kernel after kernel, s: the sum of its kernels' bounds."""
    return reduce(add, (bound_s(kernel.flop, kernel.bytes, ceilings) for kernel in kernels))


def over_layers(
    kernels: tuple[Kernel, ...], layers: int, indexing: int, figure: Callable[[tuple[Kernel, ...]], Any]
) -> Any:
    """A ``figure`` of a path over the model: ``layers`` that cache, of which ``indexing`` run the indexer."""
    total = layers * figure(tuple(kernel for kernel in kernels if not kernel.indexes))
    scoring = tuple(kernel for kernel in kernels if kernel.indexes)
    return total + indexing * figure(scoring) if scoring else total


def overlapped_bound_s(kernels: tuple[Kernel, ...], ceilings: Ceilings) -> Floats:
    """Bound if all of a path's compute overlapped all of its traffic, s; never above the path's bound."""
    return bound_s(total_flop(kernels), total_bytes(kernels), ceilings)
