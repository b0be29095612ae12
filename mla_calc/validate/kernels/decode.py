"""``absorbed_decode``: the kernels behind one function of tensors, and the choice between them."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from functools import cache as remembered
from typing import Protocol

import torch
from torch import Tensor

from ...errors import InputError, nearest, shown
from ...hardware.choice import TILE_ROWS, preference
from ...hardware.schedule import Schedule
from .call import Call, checked
from .hopper import HopperKernel
from .shape import Device, Shape
from .tiled import TiledKernel


class DecodeKernel(Protocol):
    """What a kernel offers to the choice and to the measurement."""

    @property
    def name(self) -> str:
        """The name that ``--kernel`` takes and that a record carries."""

    def refusal(self, shape: Shape, device: Device) -> str | None:
        """Why the kernel cannot run ``shape`` on ``device``; ``None`` where it can."""

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        """How the call is cut into blocks."""

    def launch(self, call: Call, schedule: Schedule) -> None:
        """Run it."""


KERNELS: dict[str, DecodeKernel] = {
    kernel.name: kernel
    for kernel in (HopperKernel(), TiledKernel("small", TILE_ROWS["small"]), TiledKernel("tile64", TILE_ROWS["tile64"]))
}


def interpreted() -> bool:
    """Whether Triton's CPU interpreter runs the kernels (``TRITON_INTERPRET=1``)."""
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")


@remembered
def _cuda_device(index: int) -> Device:
    properties = torch.cuda.get_device_properties(index)
    return Device(
        sms=properties.multi_processor_count,
        capability=(properties.major, properties.minor),
        shared_bytes=getattr(properties, "shared_memory_per_block_optin", properties.shared_memory_per_block),
    )


def device_of(tensor: Tensor) -> Device:
    """The device that a kernel on ``tensor`` runs on.

    Raises:
        InputError: a tensor outside a CUDA device, and no interpreter.
    """
    if interpreted():
        return Device(sms=4, capability=(0, 0), shared_bytes=0, interpreted=True)
    if not tensor.is_cuda:
        raise InputError(f"the kernels run on a CUDA device; these tensors are on {tensor.device}")
    return _cuda_device(tensor.device.index or 0)


def pick(shape: Shape, device: Device) -> str:
    """The name of the kernel that is the fastest for ``shape`` on ``device``, of those that run it.

    Raises:
        InputError: none runs it; each one's reason is told.
    """
    reasons = {}
    for name in _preference(shape, device):
        reason = KERNELS[name].refusal(shape, device)
        if reason is None:
            return name
        reasons[name] = reason
    raise InputError("no kernel runs this shape: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))


def _preference(shape: Shape, device: Device) -> tuple[str, ...]:
    """Every kernel, best first."""
    return preference(
        rows=shape.rows,
        tokens=shape.batch * shape.context,
        fp8=shape.cache_dtype == "fp8",
        capability_major=device.capability[0],
    )


def absorbed_decode(
    q: Tensor,
    cache: Tensor,
    block_table: Tensor,
    lengths: Tensor,
    scale: float,
    *,
    kv_lora_rank: int = 512,
    cache_scale: float = 1.0,
    max_length: int | None = None,
    kernel: str | None = None,
    splits: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Absorbed (MQA-form) attention of the newest tokens of each request over a paged latent cache.

    The last ``queries`` of a request's ``lengths`` keys are the query tokens themselves: query i sees the keys
    up to its own. A request of length 0 gets zeros, and so does a query before its request's first key.

    Args:
        q: [batch, queries, heads, r + dr], bf16 or fp16: the query folded into the latent, and its rotary part.
        cache: [pages, 64, r + dr], of q's dtype or float8_e4m3fn. Rows past a request's length may hold anything.
        block_table: [batch, max_pages] int32, the page of each 64 rows of a request.
        lengths: [batch] int32, keys of each request, the new tokens included.
        scale: multiplies the scores: the model's (dn + dr)**-0.5, not the latent width's.
        kv_lora_rank: r; the first r columns of a row are its value too.
        cache_scale: multiplies the rows of an fp8 cache.
        max_length: the longest request, where the caller knows it: the split is planned for it. Otherwise the
            block table's width is taken.
        kernel: a name of :data:`KERNELS`; ``None`` lets :func:`pick` choose.
        splits: pieces that the context is cut into; ``None`` lets the kernel's schedule choose.
        out: [batch, queries, heads, r] of q's dtype, written in place.

    Returns:
        [batch, queries, heads, r] in q's dtype. Nothing waits for the device, so a CUDA graph can capture it.

    Raises:
        InputError: tensors that do not go together, an unknown kernel, or one that refuses the shape.
    """
    call = checked(q, cache, block_table, lengths, scale, cache_scale, max_length, kv_lora_rank, out, device_of(q))
    name = kernel or pick(call.shape, call.device)
    if name not in KERNELS:
        raise InputError(f"no kernel is named {shown(name)}; there are {', '.join(KERNELS)}", nearest(name, KERNELS))
    chosen = KERNELS[name]
    reason = chosen.refusal(call.shape, call.device)
    if reason is not None:
        raise InputError(f"the {name} kernel cannot run this shape: {reason}")
    schedule = chosen.schedule(call.shape, call.device)
    if splits is not None:
        schedule = _with_splits(schedule, splits, call.shape.pages)
    # Triton launches on the current device, wherever the tensors are
    with torch.cuda.device(q.device) if q.is_cuda else nullcontext():
        chosen.launch(call, schedule)
    return call.out


def _with_splits(schedule: Schedule, splits: int, pages: int) -> Schedule:
    if not 1 <= splits <= pages:
        raise InputError(f"splits is {splits}: from 1 to the {pages} pages of the longest request")
    return replace(schedule, splits=splits, pages_per_split=-(-pages // splits))
