"""The shape of one decode call and what a device offers: all that a kernel needs to accept or refuse it."""

from __future__ import annotations

from dataclasses import dataclass

from ...hardware.schedule import PAGE, Schedule, merge_pages, plan_splits

__all__ = ["PAGE", "Device", "Shape", "planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One call: ``batch`` requests of ``queries`` tokens and ``heads`` heads over at most ``context`` rows."""

    batch: int
    queries: int
    heads: int
    context: int
    """The longest request, new tokens included; it decides the split, not what is read."""
    kv_lora_rank: int = 512
    qk_rope_head_dim: int = 64
    dtype: str = "bf16"
    """Of the query and the output: bf16, fp16 or, in the interpreter, fp32."""
    cache_dtype: str = "bf16"
    """bf16, fp16, fp32 or fp8."""

    @property
    def rows(self) -> int:
        """Rows of the score matrix of one request: every head of every query token."""
        return self.queries * self.heads

    @property
    def width(self) -> int:
        """Values of a cache row: the latent and the rotary part."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def pages(self) -> int:
        """Pages of the longest request."""
        return -(-self.context // PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a kernel needs to know of the device."""

    sms: int
    capability: tuple[int, int]
    shared_bytes: int
    """Shared memory that one block may take, opted in."""
    interpreted: bool = False
    """Triton's CPU interpreter runs the kernel: no limits of hardware hold, no hardware instruction exists."""


def planned(shape: Shape, slots: int, tile_rows: int, merge: float) -> Schedule:
    """How a kernel cuts a call into blocks, with ``slots`` of them at a time and ``tile_rows`` score rows each.

    ``merge`` is the weight of the merge's bytes (:data:`~mla_calc.hardware.schedule.MERGES`).
    """
    merged = merge_pages(merge, shape.batch, shape.rows, slots, shape.kv_lora_rank, shape.qk_rope_head_dim)
    return plan_splits(shape.batch, shape.rows, shape.pages, slots, tile_rows, merged_pages=merged)
