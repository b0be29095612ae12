"""Absorbed decode in plain Triton, for compute capability 8.0 and up: tiles of 16 or of 64 score rows.

A request's score rows are its heads times its query tokens, query by query. A block owns a tile of them and one
split of the context, walks its pages, and leaves either the output or a partial one for the combine pass. A row
of the cache is read once and used as key (all of it) and as value (its first r).

The 16-row form is for few rows: little is padded, and the loads alone set its pace. The 64-row form does four
times the work on each row that it brings in, which is what many heads need.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ...hardware.schedule import MERGES, Schedule
from .call import COMPILE, Call
from .combine import merge_splits
from .shape import PAGE, Device, Shape, planned


@triton.jit
def _attend(
    q_latent, q_rope, kv, k_rope, seen, limit, scale_log2, top, total, acc, ROPE: tl.constexpr, MASK: tl.constexpr
):
    """One step of the online softmax: the keys ``kv`` | ``k_rope`` at the positions ``seen``."""
    scores = tl.dot(q_latent, tl.trans(kv))  # [TILE, KEYS]
    if ROPE > 0:
        scores = tl.dot(q_rope, tl.trans(k_rope), scores)
    scores = scores * scale_log2
    if MASK:
        scores = tl.where(seen[None, :] < limit[:, None], scores, -float("inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    rescale = tl.exp2(top - new_top)
    weights = tl.exp2(scores - new_top[:, None])
    total = total * rescale + tl.sum(weights, 1)
    acc = tl.dot(weights.to(kv.dtype), kv, acc * rescale[:, None])
    return new_top, total, acc


@triton.jit(do_not_specialize=["splits", "table_stride", "queries"])
def _decode_tile(
    q_ptr,
    cache_ptr,
    latent_desc,
    rope_desc,
    table_ptr,
    length_ptr,
    out_ptr,
    partial_ptr,
    lse_ptr,
    scale_log2,
    cache_scale,
    table_stride,
    heads,
    queries,
    splits,
    RANK: tl.constexpr,
    ROPE: tl.constexpr,
    TILE: tl.constexpr,
    KEYS: tl.constexpr,
    PAGE: tl.constexpr,
    ONE: tl.constexpr,
    STAGES: tl.constexpr,
    WHOLE_PAGES: tl.constexpr,
):
    WIDTH: tl.constexpr = RANK + ROPE
    DTYPE: tl.constexpr = q_ptr.dtype.element_ty
    request = tl.program_id(2)
    split = tl.program_id(1)
    rows = heads * queries
    row0 = tl.program_id(0) * TILE
    row = row0 + tl.arange(0, TILE)
    live = row < rows
    length = tl.load(length_ptr + request)
    # query i of Q sees the keys up to its own, Q - 1 - i before the last one: a tile's last row sees the most
    limit = length - queries + row // heads + 1
    most = length - queries + (tl.minimum(row0 + TILE, rows) - 1) // heads + 1
    per_split = tl.cdiv(tl.cdiv(length, PAGE), splits) * PAGE
    first = split * per_split
    end = tl.minimum(first + per_split, most)

    latent = tl.arange(0, RANK)
    key = tl.arange(0, KEYS)
    q_row = q_ptr + (request.to(tl.int64) * rows + row)[:, None] * WIDTH
    q_latent = tl.load(q_row + latent[None, :], mask=live[:, None], other=0.0)  # [TILE, RANK]
    q_rope = q_latent
    if ROPE > 0:
        rope = RANK + tl.arange(0, ROPE)
        q_rope = tl.load(q_row + rope[None, :], mask=live[:, None], other=0.0)  # [TILE, ROPE]
    top = tl.full([TILE], -1e30, tl.float32)
    total = tl.zeros([TILE], tl.float32)
    acc = tl.zeros([TILE, RANK], tl.float32)
    table = table_ptr + request.to(tl.int64) * table_stride
    if WHOLE_PAGES:
        # pages that every row sees in full, by the copy engine and without a mask
        fewest = tl.maximum(length - queries + row0 // heads + 1, 0)
        whole = tl.minimum(fewest // PAGE * PAGE, end)
        ahead = tl.load(table + first // PAGE, mask=first < whole, other=0)
        for start in tl.range(first, whole, PAGE, num_stages=STAGES):
            page = ahead
            ahead = tl.load(table + start // PAGE + 1, mask=start + PAGE < whole, other=0)
            kv = latent_desc.load([page * PAGE, 0])
            k_rope = kv
            if ROPE > 0:
                k_rope = rope_desc.load([page * PAGE, RANK])
            top, total, acc = _attend(
                q_latent, q_rope, kv, k_rope, key, limit, scale_log2, top, total, acc, ROPE, False
            )
        first = tl.maximum(first, whole)
    # the page number of a step is read in the step before: its rows can then be asked for at once
    ahead = tl.load(table + first // PAGE, mask=first < end, other=0)
    for start in tl.range(first, end, KEYS, num_stages=1 if WHOLE_PAGES else STAGES):
        page = ahead
        ahead = tl.load(table + (start + KEYS) // PAGE, mask=start + KEYS < end, other=0)
        seen = start + key
        at = cache_ptr + (page.to(tl.int64) * PAGE + seen % PAGE)[:, None] * WIDTH
        # rows past the end may hold anything, NaN too: 0 * NaN would reach the output
        inside = (seen < length)[:, None]
        kv = tl.load(at + latent[None, :], mask=inside, other=0.0).to(DTYPE)  # [KEYS, RANK]
        k_rope = kv
        if ROPE > 0:
            k_rope = tl.load(at + rope[None, :], mask=inside, other=0.0).to(DTYPE)  # [KEYS, ROPE]
        top, total, acc = _attend(q_latent, q_rope, kv, k_rope, seen, limit, scale_log2, top, total, acc, ROPE, True)
    # a row without a key here sums to 0; NaN is no 0, and stays
    nothing = total == 0.0
    total = tl.where(nothing, 1.0, total)
    out = acc * (cache_scale / total)[:, None]
    if ONE:
        at_out = (request.to(tl.int64) * rows + row)[:, None] * RANK + latent[None, :]
        tl.store(out_ptr + at_out, out.to(DTYPE), mask=live[:, None])
    else:
        at_row = (request.to(tl.int64) * splits + split) * rows + row
        lse = tl.where(nothing, -float("inf"), top + tl.log2(total))
        tl.store(lse_ptr + at_row, lse, mask=live)
        if split * per_split < end:
            tl.store(partial_ptr + at_row[:, None] * RANK + latent[None, :], out, mask=live[:, None])


@dataclass(frozen=True, slots=True)
class Tuning:
    """Keys of one step, warps of a block, steps in flight, and blocks that one multiprocessor holds."""

    keys: int
    warps: int
    stages: int
    per_sm: int = 1
    whole_pages: bool = False
    """Whether pages that need no mask come by the copy engine, through descriptors of the cache."""


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """The plain Triton kernel with one size of tile."""

    name: str
    tile: int
    """Score rows of a block."""

    def refusal(self, shape: Shape, device: Device) -> str | None:
        """Why this kernel cannot run ``shape`` on ``device``; ``None`` where it can."""
        rank, rope = shape.kv_lora_rank, shape.qk_rope_head_dim
        if rank < 16 or rank & (rank - 1):
            return f"kv_lora_rank {rank} is no power of two from 16 on"
        if rope and (rope < 16 or rope & (rope - 1)):
            return f"qk_rope_head_dim {rope} is neither 0 nor a power of two from 16 on"
        if device.interpreted:
            return None
        if device.capability < (8, 0):
            return f"compute capability {device.capability[0]}.{device.capability[1]} is below 8.0"
        if shape.dtype == "fp32":
            return "float32 is for the interpreter alone: tensor cores would round it to tf32"
        if shape.cache_dtype == "fp8" and device.capability < (8, 9):
            return "fp8 rows need compute capability 8.9"
        if self.tuning(shape, device) is None:
            return f"{device.shared_bytes // 1024} KiB of shared memory hold no two steps of {shape.width} columns"
        return None

    def tuning(self, shape: Shape, device: Device) -> Tuning | None:
        """The fastest launch that fits the device's shared memory, by what was measured on an H200."""
        if device.interpreted:
            return Tuning(keys=16, warps=4, stages=1, whole_pages=shape.cache_dtype == shape.dtype)
        return next((tuning for tuning in self._preferred(shape, device) if self._fits(tuning, shape, device)), None)

    def _preferred(self, shape: Shape, device: Device) -> tuple[Tuning, ...]:
        if self.tile == 16 and shape.cache_dtype == "fp8":
            return (Tuning(32, 4, 4, per_sm=2), Tuning(32, 4, 3), Tuning(16, 4, 3))
        if self.tile == 16:
            return (Tuning(64, 4, 3), Tuning(32, 4, 4), Tuning(32, 4, 3), Tuning(16, 4, 3))
        engine = device.capability[0] == 9 and shape.cache_dtype == shape.dtype
        pages = (Tuning(16, 8, 2, whole_pages=True),) if engine else ()
        return (*pages, Tuning(64, 8, 2), Tuning(32, 8, 2), Tuning(16, 8, 2))

    def _fits(self, tuning: Tuning, shape: Shape, device: Device) -> bool:
        """Whether the steps in flight and the query tile fit; fp8 rows are widened, which takes a step's room."""
        stored = 1 if shape.cache_dtype == "fp8" else 2
        keys = PAGE if tuning.whole_pages else tuning.keys
        steps = keys * shape.width * stored * tuning.stages
        if device.capability[0] == 10:
            steps *= 2  # the fifth-generation products take their operands, and move their results, through it too
        widened = keys * shape.width * 2 if stored == 1 else 0
        query = self.tile * (shape.width + keys) * 2 if self.tile >= 64 else 0
        return steps + widened + query <= device.shared_bytes

    def slots(self, shape: Shape, device: Device) -> int:
        """Blocks that the device runs at a time."""
        tuning = self.tuning(shape, device)
        return device.sms * (tuning.per_sm if tuning else 1)

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        """How the call is cut into blocks on this device."""
        return planned(shape, self.slots(shape, device), self.tile, MERGES[self.name])

    def _descriptors(self, call: Call) -> tuple[TensorDescriptor, TensorDescriptor | None]:
        """The cache as a matrix of rows, a page's latent and rotary parts a tile each."""
        rank, rope = call.shape.kv_lora_rank, call.shape.qk_rope_head_dim
        rows = call.cache.view(-1, call.shape.width)
        latent = TensorDescriptor.from_tensor(rows, [PAGE, rank])
        return latent, TensorDescriptor.from_tensor(rows, [PAGE, rope]) if rope else None

    def launch(self, call: Call, schedule: Schedule) -> None:
        """Run on ``call``'s tensors, its context in ``schedule.splits`` pieces."""
        tuning = self.tuning(call.shape, call.device)
        assert tuning  # refusal() was asked
        partial, lse = call.partials(schedule)
        shape = call.shape
        latent_desc, rope_desc = self._descriptors(call) if tuning.whole_pages else (None, None)
        _decode_tile[(schedule.tiles, schedule.splits, shape.batch)](
            call.q,
            call.cache,
            latent_desc,
            rope_desc,
            call.block_table,
            call.lengths,
            call.out,
            partial,
            lse,
            call.scale_log2,
            call.cache_scale,
            call.block_table.stride(0),
            shape.heads,
            shape.queries,
            schedule.splits,
            RANK=shape.kv_lora_rank,
            ROPE=shape.qk_rope_head_dim,
            TILE=self.tile,
            KEYS=tuning.keys,
            PAGE=PAGE,
            ONE=schedule.splits == 1,
            STAGES=tuning.stages,
            WHOLE_PAGES=tuning.whole_pages,
            num_warps=tuning.warps,
            num_stages=tuning.stages,
            **COMPILE,
        )
        if schedule.splits > 1:
            dependent = not call.device.interpreted and call.device.capability >= (9, 0)
            merge_splits(partial, lse, call.out, schedule.splits, dependent)
