"""The absorbed path as an engine runs it: fold W_UK into the query, attend over latent rows, bring values up.

vLLM runs a batched product, a concatenation with the rotary part, the kernel and another batched product. Here
the first product writes into the latent columns of the query buffer (a strided view), so that of the concatenation
only the copy of the rotary columns is left: the same work without one more pass over the folded query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from .path_inputs import PathInputs


@dataclass(frozen=True, slots=True)
class PathCalls:
    """A path ready to run, on buffers of its own: every call can be captured in a CUDA graph and replayed.

    A part works on what the part before it left in the buffers: run ``whole`` once before timing a part.
    """

    whole: Callable[[], torch.Tensor]
    """The path from end to end; returns [batch, queries, heads, dv], the same buffer at each call if it can."""
    parts: Mapping[str, Callable[[], object]]
    """Its steps in order, each alone, by name."""


Decode = Callable[..., torch.Tensor]
"""A function like ``kernels.absorbed_decode``."""


def absorbed_path(
    inputs: PathInputs, *, kernel: str | None, max_length: int | None = None, decode: Decode | None = None
) -> PathCalls:
    """The absorbed path with its parts ``q_fold``, ``attention`` and ``v_up``.

    Args:
        inputs: what it starts from
        kernel: the attention kernel's name; ``None`` picks
        max_length: of the longest request; by default what the block table holds
        decode: a stand-in for ``kernels.absorbed_decode``

    Raises:
        InputError: at the first call, for shapes that the kernel refuses.
    """
    batch, queries, heads, _ = inputs.q_nope.shape
    rank, rope, value = inputs.w_uk.shape[-1], inputs.q_rope.shape[-1], inputs.w_uv.shape[1]
    most = inputs.block_table.shape[1] * inputs.cache.shape[1] if max_length is None else max_length
    attend = _own_decode() if decode is None else decode
    q = inputs.q_nope.new_empty(batch, queries, heads, rank + rope)
    latent = inputs.q_nope.new_empty(batch, queries, heads, rank)
    named = {
        "cache_scale": inputs.cache_scale,
        "max_length": most,
        "kernel": kernel,
        "kv_lora_rank": rank,
        "out": latent,
    }
    q_fold = _fold(inputs.q_nope, inputs.q_rope, inputs.w_uk, q)
    v_up = _up(latent, inputs.w_uv, inputs.q_nope.new_empty(batch, queries, heads, value))

    def attention() -> torch.Tensor:
        return attend(q, inputs.cache, inputs.block_table, inputs.lengths, inputs.scale, **named)

    def whole() -> torch.Tensor:
        q_fold()
        attention()
        return v_up()

    return PathCalls(whole, {"q_fold": q_fold, "attention": attention, "v_up": v_up})


def _own_decode() -> Decode:
    from .kernels import absorbed_decode  # imports Triton, which a stand-in does without

    return absorbed_decode


def _fold(q_nope: torch.Tensor, q_rope: torch.Tensor, w_uk: torch.Tensor, q: torch.Tensor) -> Callable[[], None]:
    """Fills q [batch, queries, heads, r + dr]: the product goes straight into its first r columns."""
    tokens, heads, rank = q.shape[0] * q.shape[1], q.shape[2], w_uk.shape[-1]
    q_by_head = q_nope.reshape(tokens, heads, -1).transpose(0, 1)
    folded_by_head = q.view(tokens, heads, -1)[..., :rank].transpose(0, 1)

    def q_fold() -> None:
        torch.bmm(q_by_head, w_uk, out=folded_by_head)
        if q_rope.shape[-1]:
            q[..., rank:].copy_(q_rope)

    return q_fold


def _up(latent: torch.Tensor, w_uv: torch.Tensor, out: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Fills and returns out [batch, queries, heads, dv] from the latent [batch, queries, heads, r]."""
    tokens, heads = out.shape[0] * out.shape[1], out.shape[2]
    latent_by_head = latent.view(tokens, heads, -1).transpose(0, 1)
    out_by_head = out.view(tokens, heads, -1).transpose(0, 1)
    value_weights = w_uv.transpose(1, 2)

    def v_up() -> torch.Tensor:
        torch.bmm(latent_by_head, value_weights, out=out_by_head)
        return out

    return v_up
