"""The ways that torch offers to attend with keys of one width and values of another, causal at the end of a context.

Which one is the fastest depends on the GPU and the shape, and some refuse some shapes, so all are offered by name
and whoever measures times them. The queries are the last tokens of the context: query i of Q sees the keys before
``S - Q + i + 1``, a mask that is aligned to the lower right corner. ``is_causal=True`` of
``scaled_dot_product_attention`` is aligned to the upper left one, and so is right only where Q = S.

Two ways lead to that mask. One call sees all keys, by a mask of the backend's own or a written one. Or, under a
name that ends in ``split``, what engines do with a prefix: one call over the prefix without a mask, one over the
new tokens with a square causal mask, and both outputs weighed by their log-sum-exps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import pad, scaled_dot_product_attention

Attend = Callable[[], torch.Tensor]
Values = Callable[[], torch.Tensor]
"""Gives the values at every call: padding them is part of what a call costs."""
OneCall = Callable[[torch.Tensor, torch.Tensor, Values, float], Attend]
"""(q, k, values, scale) -> the call over all keys with the lower right mask."""
WithLse = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, bool, float], tuple[torch.Tensor, torch.Tensor]]
"""(q, k, v, square causal mask, scale) -> output [batch, heads, queries, dv], log-sum-exp [batch, heads, queries]."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One implementation of attention in torch."""

    one_call: OneCall
    with_lse: WithLse
    equal_widths: bool = False
    """Whether values must be as wide as keys: narrower ones get columns of zeros."""


def attention_candidates(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, *, padded_v: torch.Tensor | None = None
) -> dict[str, Attend]:
    """Calls that compute the same attention, [batch, heads, queries, dv], by the name of what runs.

    Args:
        q: [batch, heads, queries, dqk]; here as below any strides but for the last axis
        k: [batch, heads, context, dqk]
        v: [batch, heads, context, dv]
        scale: of the scores
        padded_v: ``v`` with columns of zeros up to dqk, where the caller keeps such a buffer. Without it a backend
            that wants equal widths pads at every call, as engines do for it

    A candidate may raise when it is called: only then is it known whether a backend takes the shape. On a CPU
    there are stand-ins that take the same steps.
    """
    queries, context, value = q.shape[2], k.shape[2], v.shape[3]

    def padded() -> torch.Tensor:
        return pad(v, (0, q.shape[3] - value)) if padded_v is None else padded_v

    found: dict[str, Attend] = {}
    for name, backend in (CUDA if q.is_cuda else CPU).items():
        values = padded if backend.equal_widths and value < q.shape[3] else lambda: v
        found[name] = _narrowed(backend.one_call(q, k, values, scale), value)
        if 1 < queries < context:
            found[f"{name} split"] = _split(backend.with_lse, q, k, values, scale, value)
    return found


def merged(old: torch.Tensor, old_lse: torch.Tensor, new: torch.Tensor, new_lse: torch.Tensor) -> torch.Tensor:
    """The attention over two sets of keys from the attention over each, in one pass over the outputs.

    Outputs are [..., width], log-sum-exps (natural) their leading axes. The weight of the second is
    exp(new) / (exp(old) + exp(new)), in float32 and then rounded to the outputs' dtype: ``lerp`` takes one dtype.
    """
    weight = torch.sigmoid(new_lse - old_lse).unsqueeze(-1).to(new.dtype)
    return torch.lerp(old, new, weight)


def _split(attend: WithLse, q: torch.Tensor, k: torch.Tensor, values: Values, scale: float, value: int) -> Attend:
    prefix = k.shape[2] - q.shape[2]

    def call() -> torch.Tensor:
        v = values()
        old, old_lse = attend(q, k[:, :, :prefix], v[:, :, :prefix], False, scale)
        new, new_lse = attend(q, k[:, :, prefix:], v[:, :, prefix:], True, scale)
        return merged(old[..., :value], old_lse, new[..., :value], new_lse)

    return call


def _narrowed(attend: Attend, value: int) -> Attend:
    return lambda: attend()[..., :value]


def _lower_right(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor | None:
    """The written mask, bool [queries, context]; ``None`` where nothing or a square causal mask does."""
    queries, context = q.shape[2], k.shape[2]
    if queries in (1, context):
        return None
    return torch.ones(queries, context, dtype=torch.bool, device=q.device).tril(context - queries)


def _square(q: torch.Tensor, k: torch.Tensor) -> bool:
    return 1 < q.shape[2] == k.shape[2]


def _cudnn(q: torch.Tensor, k: torch.Tensor, values: Values, scale: float) -> Attend:
    visible = _lower_right(q, k)
    bias = None
    if visible is not None:  # a bool mask would be turned into this one at every call
        bias = torch.zeros(visible.shape, dtype=q.dtype, device=q.device).masked_fill_(~visible, float("-inf"))

    def call() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, values(), attn_mask=bias, is_causal=_square(q, k), scale=scale)

    return call


def _cudnn_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q, k, v, None, True, 0.0, causal, False, scale=scale
    )
    return out, lse.reshape(out.shape[:3])  # some versions keep a last axis of 1


def _flash(q: torch.Tensor, k: torch.Tensor, values: Values, scale: float) -> Attend:
    # FlashAttention aligns its mask to the lower right; scaled_dot_product_attention does not let it where Q < S
    return lambda: _flash_with_lse(q, k, values(), q.shape[2] > 1, scale)[0]


def _flash_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)
    return out, lse[..., : q.shape[2]]


def _efficient(q: torch.Tensor, k: torch.Tensor, values: Values, scale: float) -> Attend:
    mask = causal_lower_right(q.shape[2], k.shape[2]) if 1 < q.shape[2] < k.shape[2] else None

    def call() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return scaled_dot_product_attention(q, k, values(), attn_mask=mask, is_causal=_square(q, k), scale=scale)

    return call


def _efficient_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal, scale=scale)
    return out, lse[..., : q.shape[2]]  # its rows are padded to 32


def _math(q: torch.Tensor, k: torch.Tensor, values: Values, scale: float) -> Attend:
    visible = _lower_right(q, k)

    def call() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(q, k, values(), attn_mask=visible, is_causal=_square(q, k), scale=scale)

    return call


def _math_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = (q @ k.transpose(2, 3) * scale).float()
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[2:], dtype=torch.bool).tril(), float("-inf"))
    lse = scores.logsumexp(dim=-1)
    return (scores - lse.unsqueeze(-1)).exp().to(v.dtype) @ v, lse


def _cpu_flash(q: torch.Tensor, k: torch.Tensor, values: Values, scale: float) -> Attend:
    visible = _lower_right(q, k)
    bias = None if visible is None else torch.zeros(visible.shape, dtype=q.dtype).masked_fill_(~visible, float("-inf"))
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return lambda: flash(q, k, values(), 0.0, _square(q, k), attn_mask=bias, scale=scale)[0]


def _cpu_flash_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = flash(q, k, v, 0.0, causal, scale=scale)
    return out, lse


CUDA = {
    "cudnn": Backend(_cudnn, _cudnn_with_lse),
    "flash": Backend(_flash, _flash_with_lse, equal_widths=True),
    "efficient": Backend(_efficient, _efficient_with_lse),
}
CPU = {
    "math": Backend(_math, _math_with_lse),
    "flash": Backend(_cpu_flash, _cpu_flash_with_lse, equal_widths=True),
}
