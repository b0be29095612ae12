"""One checked call: the tensors of a decode step, and what every kernel derives from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InputError
from ...hardware.schedule import Schedule
from .shape import PAGE, Device, Shape

ALIGNMENT = 16
COMPILE = {"enable_fp_fusion": True}
"""Options of every launch. Triton 3.10 will no longer fuse products and sums by itself."""
DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.float8_e4m3fn: "fp8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The tensors of one call, checked against each other, and the shape that they make."""

    q: Tensor
    """[batch, queries, heads, r + dr]"""
    cache: Tensor
    """[pages, 64, r + dr]"""
    block_table: Tensor
    """[batch, max_pages] int32"""
    lengths: Tensor
    """[batch] int32"""
    out: Tensor
    """[batch, queries, heads, r]"""
    scale_log2: float
    """The scale of the scores times log2(e) and the cache's scale: exponentials are taken to base 2."""
    cache_scale: float
    shape: Shape
    device: Device

    def partials(self, schedule: Schedule) -> tuple[Tensor, Tensor]:
        """Room for what the splits leave: outputs [batch, splits, rows, r], log-sum-exps [batch, splits, rows].

        With one split nothing is left, and the tensors are empty.
        """
        splits = schedule.splits if schedule.splits > 1 else 0
        sizes = (self.shape.batch, splits, self.shape.rows)
        partial = torch.empty(*sizes, self.shape.kv_lora_rank, device=self.q.device, dtype=torch.float32)
        return partial, torch.empty(*sizes, device=self.q.device, dtype=torch.float32)


def checked(
    q: Tensor,
    cache: Tensor,
    block_table: Tensor,
    lengths: Tensor,
    scale: float,
    cache_scale: float,
    max_length: int | None,
    kv_lora_rank: int,
    out: Tensor | None,
    device: Device,
) -> Call:
    """The call that these tensors make.

    Raises:
        InputError: a tensor of another rank, width, dtype, device or layout than the others need.
    """
    _check_ranks(q=(q, 4), cache=(cache, 3), block_table=(block_table, 2), lengths=(lengths, 1))
    batch, queries, heads, width = q.shape
    if not 0 < kv_lora_rank <= width:
        raise InputError(f"kv_lora_rank is {kv_lora_rank}, q is {width} wide: it holds the latent and the rotary part")
    if cache.shape[1:] != (PAGE, width):
        raise InputError(f"cache is {list(cache.shape)}: [pages, {PAGE}, {width}] goes with this q")
    if block_table.shape[0] != batch or lengths.shape[0] != batch:
        raise InputError(
            f"q has {batch} requests, block_table {block_table.shape[0]}, lengths {lengths.shape[0]}: one each"
        )
    if block_table.dtype != torch.int32 or lengths.dtype != torch.int32:
        raise InputError("block_table and lengths are int32")
    if q.dtype not in DTYPES or q.dtype == torch.float8_e4m3fn:
        raise InputError(f"q is {q.dtype}: bfloat16 and float16 are taken, float32 in the interpreter")
    if cache.dtype not in (q.dtype, torch.float8_e4m3fn):
        raise InputError(f"cache is {cache.dtype}: {q.dtype}, as q, or float8_e4m3fn is taken")
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(cache_scale) and cache_scale > 0):
        raise InputError(f"scale {scale} and cache_scale {cache_scale} are positive and finite")
    if cache_scale != 1.0 and cache.dtype != torch.float8_e4m3fn:
        raise InputError(f"cache_scale is for fp8 rows; these are {cache.dtype}")
    longest = block_table.shape[1] * PAGE
    if max_length is not None and not 0 < max_length <= longest:
        raise InputError(f"max_length is {max_length}: the block table has room for {longest} rows")
    if out is None:
        out = torch.empty(batch, queries, heads, kv_lora_rank, device=q.device, dtype=q.dtype)
    elif out.shape != (batch, queries, heads, kv_lora_rank) or out.dtype != q.dtype:
        raise InputError(f"out is {out.dtype} {list(out.shape)}: q's dtype, {[batch, queries, heads, kv_lora_rank]}")
    tensors = {"q": q, "cache": cache, "block_table": block_table, "lengths": lengths, "out": out}
    for name, tensor in tensors.items():
        if tensor.device != q.device or not tensor.is_contiguous():
            raise InputError(f"{name} is contiguous and on {q.device}: no copy is made for you")
    for name in ("q", "cache"):
        if tensors[name].data_ptr() % ALIGNMENT:
            raise InputError(f"{name} does not begin at a multiple of {ALIGNMENT} bytes, which vector loads need")
    shape = Shape(
        batch=batch,
        queries=queries,
        heads=heads,
        context=max_length or longest,
        kv_lora_rank=kv_lora_rank,
        qk_rope_head_dim=width - kv_lora_rank,
        dtype=DTYPES[q.dtype],
        cache_dtype=DTYPES[cache.dtype],
    )
    scale_log2 = scale * cache_scale * math.log2(math.e)
    return Call(**tensors, scale_log2=scale_log2, cache_scale=cache_scale, shape=shape, device=device)


def _check_ranks(**tensors: tuple[Tensor, int]) -> None:
    for name, (tensor, rank) in tensors.items():
        if tensor.dim() != rank:
            raise InputError(f"{name} has {tensor.dim()} dimensions: {rank} are expected")
        if tensor.numel() == 0:
            raise InputError(f"{name} is empty: {list(tensor.shape)}")
