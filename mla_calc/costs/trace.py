"""One step through one layer, from fused_qkv_a_proj to o_proj, as the chapter walks layer 30.

Source: the chapter's seven steps, which follow vllm/model_executor/layers/mla.py and mla_attention.py.
Shapes are of a step's output on one rank; softmax, RoPE and norms are left out of the FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..arrays import stored_bytes
from ..models.attention import MLA
from .paths import Work, absorbed_kernels, check_step
from .sharding import heads_per_rank
from .weights import projection_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. ``flop`` is ``None`` where the step's arithmetic is left out of the counts."""

    name: str
    shape: tuple[int, ...]
    splits: tuple[str, ...]
    """What the output is split or viewed as, one text per part."""
    weight_shape: tuple[int, ...] | None
    flop: int | None
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometries:
    """(QK width, KV heads, V width) of the two attention kernels on one rank."""

    mqa: tuple[int, int, int]
    mha: tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCost:
    """The steps of one layer on one rank, for the absorbed path."""

    tp: int
    batch: int
    queries: int
    context: int
    geometries: Geometries
    steps: tuple[Step, ...]
    folds_flop: int
    core_flop: int
    fold_to_core_ratio: float
    layer_flop: int
    layer_bytes: int


def trace_cost(mla: MLA, work: Work) -> TraceCost:
    """Walk the absorbed path through one layer.

    Raises:
        InputError: more queries than context, or a TP that does not divide the heads.
    """
    check_step(work)
    heads = heads_per_rank(mla, work.tp)
    before = (*_query_steps(mla, work), *_cache_steps(mla, work))
    kernels = {kernel.name: kernel.flop for kernel in absorbed_kernels(mla, work)}
    folds, core = kernels["q_fold"] + kernels["v_up"], kernels["attention"]
    steps = (*before, *_attention_steps(mla, work), _linear("o_proj", (), mla, work))
    return TraceCost(
        tp=work.tp,
        batch=work.batch,
        queries=work.queries,
        context=work.context,
        geometries=Geometries(mqa=(mla.row_values, 1, mla.kv_lora_rank), mha=(mla.qk_head_dim, heads, mla.v_head_dim)),
        steps=steps,
        folds_flop=folds,
        core_flop=core,
        fold_to_core_ratio=folds / core,
        layer_flop=sum(step.flop or 0 for step in steps),
        layer_bytes=sum(step.bytes for step in steps),
    )


def _query_steps(mla: MLA, work: Work) -> tuple[Step, ...]:
    """From the hidden state to the query and the latent, not yet rotated."""
    latent = (f"kv_c {mla.kv_lora_rank}", *((f"k_pe {mla.qk_rope_head_dim}",) if mla.qk_rope_head_dim else ()))
    query = (f"q [{mla.heads // work.tp}, {mla.qk_head_dim}]",)
    if mla.q_lora_rank is None:
        return _linear("kv_a_proj_with_mqa", latent, mla, work), _linear("q_proj", query, mla, work)
    return (
        _linear("fused_qkv_a_proj", (f"q_c {mla.q_lora_rank}", *latent), mla, work),
        _linear("q_b_proj", query, mla, work),
    )


def _cache_steps(mla: MLA, work: Work) -> tuple[Step, ...]:
    """The rotation, where the model has any, and the row's way into the cache."""
    tokens, heads = work.batch * work.queries, mla.heads // work.tp
    rotated = (tokens, heads + 1, mla.qk_rope_head_dim)
    moved = stored_bytes(2 * prod(rotated), work.activation_bytes)
    rotary = Step(
        name="rotary_emb", shape=rotated, splits=("q and k_pe, in place",), weight_shape=None, flop=None, bytes=moved
    )
    row = (tokens, mla.row_values)
    stored = stored_bytes(prod(row), work.activation_bytes) + tokens * work.row_bytes
    write = Step(name="cache_write", shape=row, splits=(), weight_shape=None, flop=0, bytes=stored)
    return (rotary, write) if mla.qk_rope_head_dim and mla.rotated else (write,)


def _attention_steps(mla: MLA, work: Work) -> tuple[Step, ...]:
    """The absorbed path's own kernels, with the shapes that the batched products see."""
    tokens, heads = work.batch * work.queries, mla.heads // work.tp
    rank, weights = mla.kv_lora_rank, projection_shapes(mla, heads)
    shapes: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
        "q_fold": ((heads, tokens, rank), (f"{mla.row_values} wide with q_pe",) if mla.qk_rope_head_dim else ()),
        "attention": ((tokens, heads, rank), (f"K {mla.row_values}, V its first {rank}",)),
        "v_up": ((tokens, heads, mla.v_head_dim), ()),
    }
    steps = []
    for kernel in absorbed_kernels(mla, work):
        shape, splits = shapes[kernel.name]
        steps.append(
            Step(
                name=kernel.name,
                shape=shape,
                splits=splits,
                weight_shape=weights.get(kernel.name),
                flop=kernel.flop,
                bytes=kernel.bytes,
            )
        )
    return tuple(steps)


def _linear(name: str, splits: tuple[str, ...], mla: MLA, work: Work) -> Step:
    """A dense projection [tokens, wide] x [wide, out]: weights read once, activations in and out."""
    wide, out = projection_shapes(mla, mla.heads // work.tp)[name]
    tokens = work.batch * work.queries
    return Step(
        name=name,
        shape=(tokens, out),
        splits=splits,
        weight_shape=(wide, out),
        flop=2 * prod((tokens, wide, out)),
        bytes=stored_bytes(wide * out, work.weight_bytes) + stored_bytes(tokens * (wide + out), work.activation_bytes),
    )
