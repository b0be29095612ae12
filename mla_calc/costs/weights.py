"""The attention's weights, and what of all weights one GPU stores (docs/cost-model.md, section 10).

The shapes are those of the chapter's seven steps (vllm/model_executor/layers/mla.py), from which `trace` makes
its projections; DeepSeek-V3 has 187,105,280 parameters of attention in a layer.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..arrays import maximum
from ..errors import InputError
from ..models.attention import GQA, MLA, Model, Stored

if TYPE_CHECKING:
    from ..arrays import Ints, Width

COPIED = ("fused_qkv_a_proj", "kv_a_proj_with_mqa")
"""Projections without a head axis: every rank stores them whole."""
MAX_INTEGER = 2**63 - 1


def projection_shapes(mla: MLA, heads: Ints) -> dict[str, tuple[Ints, ...]]:
    """Shapes of the projections of one layer on a rank of ``heads`` heads, by the steps' names in `trace`.

    ``q_fold`` and ``v_up`` are the two halves of kv_b_proj.
    """
    query = heads * mla.qk_head_dim
    if mla.q_lora_rank is None:
        before = {"kv_a_proj_with_mqa": (mla.hidden_size, mla.row_values), "q_proj": (mla.hidden_size, query)}
    else:
        down = mla.q_lora_rank + mla.row_values
        before = {"fused_qkv_a_proj": (mla.hidden_size, down), "q_b_proj": (mla.q_lora_rank, query)}
    return {
        **before,
        "q_fold": (heads, mla.qk_nope_head_dim, mla.kv_lora_rank),
        "v_up": (heads, mla.kv_lora_rank, mla.v_head_dim),
        "o_proj": (heads * mla.v_head_dim, mla.hidden_size),
    }


def attention_parameters(attention: MLA | GQA, tp: Ints = 1) -> Ints:
    """Parameters of one layer's attention on one of ``tp`` ranks; norms and biases are left out.

    What has a head axis divides by ``tp``; MLA's down-projections are copied. KV heads divide until there are
    more ranks than heads.
    """
    if isinstance(attention, MLA):
        return sum(prod(shape) for shape in projection_shapes(attention, attention.heads // tp).values())
    query_and_output = attention.heads // tp * (attention.qk_head_dim + attention.v_head_dim)
    key_and_value = maximum(1, attention.kv_heads // tp) * (attention.qk_head_dim + attention.v_head_dim)
    return attention.hidden_size * (query_and_output + key_and_value)


def stored_weights(model: Model, width: Width | None) -> tuple[Stored, Stored]:
    """How the attention's parameters and all others are stored: ``width`` bytes each, or as in the checkpoint.

    Raises:
        InputError: how many the model has is not known; or no ``width`` is given and the checkpoint's own storage
            was not read.
    """
    total_parameters(model)  # first: where they are not known, a width does not help
    if width is not None:
        given = Stored(dtype="as given", bytes=width.numerator, per=width.denominator)
        return given, given
    if model.weights is None:
        raise InputError(
            f"how {model.name} stores its weights is not known: give --weight-bytes (0.5, 1, 2 or 4)",
            "or the cache's own memory per GPU: --cache-budget 40GiB",
        )
    return model.weights.attention or model.weights, model.weights


def total_parameters(model: Model) -> int:
    """Parameters of the whole model. Raises InputError where they are not known."""
    if model.parameters.total is None:
        raise InputError(
            f"how many parameters {model.name} has is not known",
            "give the cache's own memory per GPU: --cache-budget 40GiB",
        )
    return model.parameters.total


def other_parameters(model: Model) -> int:
    """Parameters of the whole model less those of its attention: experts, embeddings, recurrent layers.

    Raises:
        InputError: how many the model has is not known, or fewer than its attention alone.
    """
    total = total_parameters(model)
    rest: int = total - model.cached_layers * attention_parameters(model.attention)
    if rest < 0:
        raise InputError(f"{model.name}: parameters.total is {total:,}, less than its attention alone has")
    return rest


def weights_bytes(
    model: Model, stored: tuple[Stored, Stored], *, tp: Ints, ep: Ints, caches: Ints, layers: Ints
) -> Ints:
    """Bytes of weights on a GPU of a pipeline stage with ``caches`` attentions in ``layers`` layers.

    The attention is split over ``tp``, the rest of the stage over ``ep`` ranks. Works over one point or arrays.

    Raises:
        InputError: see :func:`other_parameters`; or more parameters than a 64-bit count holds.
    """
    attention, others = stored
    rest = other_parameters(model)
    if rest * max(model.transformer_layers, others.bytes) > MAX_INTEGER:
        raise InputError(f"{model.name}: {rest:,} parameters are more than can be placed")
    share = -(-rest * layers // (model.transformer_layers * ep))
    return _bytes(caches * attention_parameters(model.attention, tp), attention) + _bytes(share, others)


def _bytes(parameters: Ints, stored: Stored) -> Ints:
    return -(-parameters * stored.bytes // stored.per)
