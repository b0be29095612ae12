"""Absorbed decode for Hopper: 64 score rows a block, three specialised warp groups, TMA and asynchronous wgmma.

For r = 512 and dr = 64 in 16 bits. What shapes it is room: the fp32 output of 64 rows (64 x 512) fills half of a
multiprocessor's registers, and a cache page of 64 rows takes 72 KiB of its shared memory. So the work is divided:

* the *scores* group keeps 448 of the query's 576 columns in registers, computes S = Q K^T of a page, and
  publishes first the factor by which the running output must shrink, then the weights P = exp(S - max);
* the *left* and the *right* group own 256 output columns each. They shrink their half while the exponentials are
  taken, add P V, and refill the half of the page that they have just read.

With most of the query in registers there is room for three pages. There is no loading group: who empties a slot
fills it. docs/kernels.md says what was measured.
"""

# no `from __future__ import annotations`: the aggregate below checks its fields against the types themselves

from dataclasses import dataclass

from triton.experimental.gluon.language import DotOperandLayout
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from ...hardware.schedule import MERGES, Schedule
from .call import COMPILE, Call
from .combine import merge_splits
from .gluon_names import aggregate, gl, gluon, group_barrier, load_tile
from .shape import PAGE, Device, Shape, planned

TILE = 64
RANK = 512
ROPE = 64
PAGES_IN_FLIGHT = 3
SHARED_BYTES = 231_000
"""What a block takes of shared memory, rounded up; Hopper offers 232,448 to one block."""
REGISTERS_AT_ENTRY = 168
"""Per thread and group: the cap that lets the groups trade. The scores group ends up with 184."""
REGISTERS_OUTPUT = 160


@aggregate
class Shared:
    """The block's shared memory, and the barriers that say which of it is ready."""

    left: gl.shared_memory_descriptor
    """[3, 64, 256]: columns 0..255 of the pages in flight."""
    right: gl.shared_memory_descriptor
    """[3, 64, 256]: columns 256..511."""
    rope: gl.shared_memory_descriptor
    """[64, 64]: columns 512..575 of one page."""
    q_tail: gl.shared_memory_descriptor
    """[64, 64]: the query's columns 448..511."""
    q_rope: gl.shared_memory_descriptor
    """[64, 64]: the query's columns 512..575."""
    weights: gl.shared_memory_descriptor
    """[64, 64]: P of one page."""
    rescale: gl.shared_memory_descriptor
    """[2, 64]: the factor for the running output; pages alternate."""
    final: gl.shared_memory_descriptor
    """[2, 64]: the rows' sums, and their base-2 log-sum-exps."""
    q_full: gl.shared_memory_descriptor
    left_full: gl.shared_memory_descriptor
    """[3]"""
    right_full: gl.shared_memory_descriptor
    """[3]"""
    rope_full: gl.shared_memory_descriptor
    scored: gl.shared_memory_descriptor
    """[2]: the product S of a page is complete."""
    rescale_full: gl.shared_memory_descriptor
    """[2]"""
    weights_full: gl.shared_memory_descriptor
    weights_empty: gl.shared_memory_descriptor
    """Both output groups have used P."""
    final_full: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(
        self, left, right, rope, q_tail, q_rope, weights, rescale, final,
        q_full, left_full, right_full, rope_full, scored, rescale_full, weights_full, weights_empty, final_full,
    ):  # fmt: skip
        self.left = left
        self.right = right
        self.rope = rope
        self.q_tail = q_tail
        self.q_rope = q_rope
        self.weights = weights
        self.rescale = rescale
        self.final = final
        self.q_full = q_full
        self.left_full = left_full
        self.right_full = right_full
        self.rope_full = rope_full
        self.scored = scored
        self.rescale_full = rescale_full
        self.weights_full = weights_full
        self.weights_empty = weights_empty
        self.final_full = final_full


@gluon.jit
def _barriers(COUNT: gl.constexpr, arrivals: gl.constexpr):
    """COUNT barriers in a row, each complete after ``arrivals``."""
    bars = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for index in gl.static_range(COUNT):
        mbarrier.init(bars.index(index), count=arrivals)
    return bars


@gluon.jit
def _allocate(half_desc, narrow_desc, STAGES: gl.constexpr):
    DTYPE: gl.constexpr = half_desc.dtype
    PLAIN: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    shared = Shared(
        gl.allocate_shared_memory(DTYPE, [STAGES, 64, 256], half_desc.layout),
        gl.allocate_shared_memory(DTYPE, [STAGES, 64, 256], half_desc.layout),
        gl.allocate_shared_memory(DTYPE, [64, 64], narrow_desc.layout),
        gl.allocate_shared_memory(DTYPE, [64, 64], narrow_desc.layout),
        gl.allocate_shared_memory(DTYPE, [64, 64], narrow_desc.layout),
        gl.allocate_shared_memory(DTYPE, [64, 64], narrow_desc.layout),
        gl.allocate_shared_memory(gl.float32, [2, 64], PLAIN),
        gl.allocate_shared_memory(gl.float32, [2, 64], PLAIN),
        _barriers(1, 1),  # q_full
        _barriers(STAGES, 1),  # left_full
        _barriers(STAGES, 1),  # right_full
        _barriers(1, 1),  # rope_full
        _barriers(2, 1),  # scored
        _barriers(2, 1),  # rescale_full
        _barriers(1, 1),  # weights_full
        _barriers(1, 2),  # weights_empty
        _barriers(1, 1),  # final_full
    )
    fence_async_shared()
    group_barrier()
    return shared


@gluon.jit
def _load_columns(desc, page, column, bar, slot, COLUMNS: gl.constexpr):
    """Start copying 64 rows of ``COLUMNS`` 16-bit columns of a page; ``bar`` completes when they have landed."""
    mbarrier.expect(bar, 64 * COLUMNS * 2)
    load_tile(desc, [page * 64, column], bar, slot)


@gluon.jit
def _load_page(half_desc, page, slot, shared):
    """Start copying the two halves of a page into a slot of the ring."""
    _load_columns(half_desc, page, 0, shared.left_full.index(slot), shared.left.index(slot), 256)
    _load_columns(half_desc, page, 256, shared.right_full.index(slot), shared.right.index(slot), 256)


@gluon.jit
def _prefetch_rope(cache_ptr, page):
    """Bring a page's rotary columns, one 128-byte line a row, into L2: their single slot makes their load urgent."""
    gl.inline_asm_elementwise(
        """{
        .reg .u32 row; .reg .u64 at;
        mov.u32 row, %tid.x; and.b32 row, row, 63;
        mad.wide.u32 at, row, 1152, $1;
        prefetch.global.L2 [at + 1024];
        mov.u32 $0, 0;
        }""",
        "=r,l",
        [cache_ptr + page.to(gl.int64) * (64 * 576)],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def _score_pages(
    shared, cache_ptr, half_desc, table, pages, first_masked, visible, row0, heads, scale_log2,
    STAGES: gl.constexpr,
):  # fmt: skip
    """The scores group. ``visible`` keys of this split are seen by a row of query 0; query i sees i more."""
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    ROWS: gl.constexpr = gl.SliceLayout(1, SCORES)
    QUERY: gl.constexpr = DotOperandLayout(0, SCORES, 2)
    DTYPE: gl.constexpr = half_desc.dtype

    # the query came into the last slot of the ring; once it is in registers, the slot takes its first page
    LAST: gl.constexpr = STAGES - 1
    mbarrier.wait(shared.q_full.index(0), 0)
    q0 = shared.left.index(LAST).load(QUERY)
    q1 = shared.right.index(LAST).slice(0, 128, 1).load(QUERY)
    q2 = shared.right.index(LAST).slice(128, 64, 1).load(QUERY)
    fence_async_shared()
    group_barrier()
    if pages > LAST:
        _load_page(half_desc, gl.load(table + LAST), LAST, shared)

    zero = gl.full([64, 64], 0.0, gl.float32, SCORES)
    top = gl.full([64], -1e30, gl.float32, ROWS)
    total = gl.full([64], 0.0, gl.float32, ROWS)
    slot = 0
    phase = 0
    ahead = gl.load(table + gl.minimum(1, pages - 1))
    for i in range(pages):
        _prefetch_rope(cache_ptr, ahead)
        ahead = gl.load(table + gl.minimum(i + 2, pages - 1))
        mbarrier.wait(shared.left_full.index(slot), phase)
        s = warpgroup_mma(q0, shared.left.index(slot).permute((1, 0)), zero, use_acc=False, is_async=True)
        mbarrier.wait(shared.right_full.index(slot), phase)
        right = shared.right.index(slot)
        s = warpgroup_mma(q1, right.slice(0, 128, 1).permute((1, 0)), s, is_async=True)
        s = warpgroup_mma(q2, right.slice(128, 64, 1).permute((1, 0)), s, is_async=True)
        s = warpgroup_mma(shared.q_tail, right.slice(192, 64, 1).permute((1, 0)), s, is_async=True)
        mbarrier.wait(shared.rope_full.index(0), i & 1)
        s = warpgroup_mma(shared.q_rope, shared.rope.permute((1, 0)), s, is_async=True)
        s = warpgroup_mma_wait(0, deps=[s])
        mbarrier.arrive(shared.scored.index(i & 1), count=1)
        if i >= first_masked:
            key = i * 64 + gl.arange(0, 64, gl.SliceLayout(0, SCORES))
            limit = visible + (row0 + gl.arange(0, 64, ROWS)) // heads
            s = gl.where(key[None, :] < limit[:, None], s, -float("inf"))

        # first the factor: the output groups shrink their halves while the exponentials are taken here
        new_top = gl.maximum(top, gl.max(s, 1) * scale_log2)
        rescale = gl.exp2(top - new_top)
        top = new_top
        shared.rescale.index(i & 1).store(rescale)
        group_barrier()
        mbarrier.arrive(shared.rescale_full.index(i & 1), count=1)
        p = gl.exp2(s * scale_log2 - top[:, None])
        rounded = p.to(DTYPE)
        mbarrier.wait(shared.weights_empty.index(0), (i & 1) ^ 1)
        shared.weights.store(rounded)
        fence_async_shared()
        group_barrier()
        mbarrier.arrive(shared.weights_full.index(0), count=1)
        # of the fp32 values: a second use of the rounded ones would split the packed conversion into slow single ones
        total = total * rescale + gl.sum(p, 1)
        slot = slot + 1
        if slot == STAGES:
            slot = 0
            phase = phase ^ 1
    # a row without a key here sums to 0; NaN is no 0, and stays
    nothing = total == 0.0
    total = gl.where(nothing, 1.0, total)
    shared.final.index(0).store(total)
    shared.final.index(1).store(gl.where(nothing, -float("inf"), top + gl.log2(total)))
    group_barrier()
    mbarrier.arrive(shared.final_full.index(0), count=1)


@gluon.jit
def _clear_tail(half, valid):
    """Zero the rows from ``valid`` on of a page's half: they may hold NaN, and 0 * NaN would reach the output."""
    CHUNK: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 1], [1, 0])
    for chunk in gl.static_range(8):
        if chunk * 8 + 8 > valid:
            part = half.slice(chunk * 8, 8)
            values = part.load(CHUNK)
            row = chunk * 8 + gl.arange(0, 8, gl.SliceLayout(1, CHUNK))
            part.store(gl.where((row < valid)[:, None], values, 0.0).to(values.dtype))
    fence_async_shared()
    group_barrier()


@gluon.jit
def _add_values(
    SIDE: gl.constexpr, shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse,
    ONE: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """One output group: ``SIDE`` 0 owns the left 256 columns, 1 the right ones."""
    OUTPUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 16])
    ROWS: gl.constexpr = gl.SliceLayout(1, OUTPUT)
    half = shared.left if SIDE == 0 else shared.right
    full = shared.left_full if SIDE == 0 else shared.right_full
    acc = gl.full([64, 256], 0.0, gl.float32, OUTPUT)
    slot = 0
    # page numbers are read a step before they are needed
    refill = gl.load(table + gl.minimum(STAGES, pages - 1))
    if SIDE == 1:
        rope_page = gl.load(table + gl.minimum(1, pages - 1))
    for i in range(pages):
        # two barriers, since the scores may be one page ahead of us here
        mbarrier.wait(shared.rescale_full.index(i & 1), (i >> 1) & 1)
        if SIDE == 1:
            if i + 1 < pages:  # S of this page is complete, so the rotary slot is free
                _load_columns(narrow_desc, rope_page, 512, shared.rope_full.index(0), shared.rope, 64)
            rope_page = gl.load(table + gl.minimum(i + 2, pages - 1))
        acc = acc * shared.rescale.index(i & 1).load(ROWS)[:, None]
        if i == pages - 1 and valid_last < 64:
            _clear_tail(half.index(slot), valid_last)
        mbarrier.wait(shared.weights_full.index(0), i & 1)
        if SIDE == 1:
            # both products at once would starve the next scores of tensor time: this half waits for them,
            # and then runs under their exponentials
            mbarrier.wait(shared.scored.index((i + 1) & 1), ((i + 1) >> 1) & 1, pred=i + 1 < pages)
        acc = warpgroup_mma(shared.weights, half.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=[acc])
        group_barrier()
        mbarrier.arrive(shared.weights_empty.index(0), count=1)
        if i + STAGES < pages:
            _load_columns(half_desc, refill, SIDE * 256, full.index(slot), half.index(slot), 256)
        refill = gl.load(table + gl.minimum(i + 1 + STAGES, pages - 1))
        slot = slot + 1
        if slot == STAGES:
            slot = 0
    mbarrier.wait(shared.final_full.index(0), 0)
    result = acc * (1.0 / shared.final.index(0).load(ROWS))[:, None]
    row = gl.arange(0, 64, ROWS)
    if ONE:
        # through shared memory, so that a warp writes whole rows: the product's own layout writes 16 bytes of each
        WIDE: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 1], [1, 0])
        half.index(0).store(result.to(half.dtype))
        group_barrier()
        wide_row = gl.arange(0, 64, gl.SliceLayout(1, WIDE))
        column = SIDE * 256 + gl.arange(0, 256, gl.SliceLayout(0, WIDE))
        at = out + wide_row[:, None] * 512 + column[None, :]
        gl.store(at, half.index(0).load(WIDE), mask=(wide_row < live_rows)[:, None])
    else:
        column = SIDE * 256 + gl.arange(0, 256, gl.SliceLayout(0, OUTPUT))
        gl.store(out + row[:, None] * 512 + column[None, :], result, mask=(row < live_rows)[:, None])
        if SIDE == 0:
            gl.store(lse + row, shared.final.index(1).load(ROWS), mask=row < live_rows)


@gluon.jit
def _add_left(
    shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse,
    ONE: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    _add_values(0, shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse, ONE, STAGES)


@gluon.jit
def _add_right(
    shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse,
    ONE: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    _add_values(1, shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse, ONE, STAGES)


@gluon.jit
def _write_nothing(out, lse, live_rows, ONE: gl.constexpr):
    """A block without keys: zeros where it owns the output, a log-sum-exp of -inf where it is one of several."""
    WIDE: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 1], [1, 0])
    row = gl.arange(0, 64, gl.SliceLayout(1, WIDE))
    if ONE:
        column = gl.arange(0, 512, gl.SliceLayout(0, WIDE))
        zero = gl.full([64, 512], 0.0, out.dtype.element_ty, WIDE)
        gl.store(out + row[:, None] * 512 + column[None, :], zero, mask=(row < live_rows)[:, None])
    else:
        gl.store(lse + row, gl.full([64], -float("inf"), gl.float32, gl.SliceLayout(1, WIDE)), mask=row < live_rows)


@gluon.jit(do_not_specialize=["splits", "table_stride", "queries"])
def _decode_hopper(
    cache_ptr, q_desc, q_half_desc, half_desc, narrow_desc, table_ptr, length_ptr, out_ptr, partial_ptr, lse_ptr,
    scale_log2, table_stride, heads, queries, splits,
    ONE: gl.constexpr, STAGES: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    row0 = gl.program_id(0) * 64
    split = gl.program_id(1)
    request = gl.program_id(2)
    rows = heads * queries
    live_rows = gl.minimum(rows - row0, 64)
    length = gl.load(length_ptr + request)
    per_split = ((length + 63) // 64 + splits - 1) // splits
    first = split * per_split
    # the tile's last row sees the most keys, its first row the fewest
    tile_limit = length - queries + (row0 + live_rows - 1) // heads + 1
    pages = gl.minimum(first + per_split, (tile_limit + 63) // 64) - first
    out_row = (request.to(gl.int64) * splits + split) * rows + row0
    out = (out_ptr if ONE else partial_ptr) + out_row * 512
    lse = lse_ptr + out_row
    if pages > 0:
        shared = _allocate(half_desc, narrow_desc, STAGES)
        table = table_ptr + request.to(gl.int64) * table_stride + first
        q_row = request * rows + row0
        q_full = shared.q_full.index(0)
        mbarrier.expect(q_full, 64 * 640 * 2)
        load_tile(q_half_desc, [q_row, 0], q_full, shared.left.index(STAGES - 1))
        load_tile(q_half_desc, [q_row, 256], q_full, shared.right.index(STAGES - 1))
        load_tile(q_desc, [q_row, 448], q_full, shared.q_tail)
        load_tile(q_desc, [q_row, 512], q_full, shared.q_rope)
        for i in gl.static_range(STAGES - 1):
            if i < pages:
                page = gl.load(table + i)
                _load_page(half_desc, page, i, shared)
                if i == 0:
                    _load_columns(narrow_desc, page, 512, shared.rope_full.index(0), shared.rope, 64)
        visible = length - queries + 1 - first * 64
        first_masked = gl.maximum(visible + row0 // heads, 0) // 64
        valid_last = length - (first + pages - 1) * 64
        gl.warp_specialize(
            [
                (
                    _score_pages,
                    (
                        shared, cache_ptr, half_desc, table, pages, first_masked, visible, row0, heads, scale_log2,
                        STAGES,
                    ),
                ),
                (
                    _add_left,
                    (shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse, ONE, STAGES),
                ),
                (
                    _add_right,
                    (shared, half_desc, narrow_desc, table, pages, valid_last, live_rows, out, lse, ONE, STAGES),
                ),
            ],
            [4, 4],
            [REGISTERS, REGISTERS],
        )  # fmt: skip
    else:
        _write_nothing(out, lse, live_rows, ONE)


@dataclass(frozen=True, slots=True)
class HopperKernel:
    """The Gluon kernel."""

    name: str = "hopper"

    def refusal(self, shape: Shape, device: Device) -> str | None:
        """Why this kernel cannot run ``shape`` on ``device``; ``None`` where it can."""
        if device.interpreted:
            return "Gluon has no interpreter"
        if device.capability[0] != 9:
            return f"made for compute capability 9.0, this device has {device.capability[0]}.{device.capability[1]}"
        if (shape.kv_lora_rank, shape.qk_rope_head_dim) != (RANK, ROPE):
            return f"made for rows of {RANK} + {ROPE}, not {shape.kv_lora_rank} + {shape.qk_rope_head_dim}"
        if shape.dtype not in ("bf16", "fp16") or shape.cache_dtype != shape.dtype:
            return f"takes bf16 or fp16 with rows of the same dtype, not {shape.dtype} with {shape.cache_dtype} rows"
        if device.shared_bytes < SHARED_BYTES:
            return f"needs {SHARED_BYTES} bytes of shared memory, a block here has {device.shared_bytes}"
        return None

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        """How the call is cut into blocks: one block a multiprocessor."""
        return planned(shape, device.sms, TILE, MERGES[self.name])

    def launch(self, call: Call, schedule: Schedule) -> None:
        """Run on ``call``'s tensors, its context in ``schedule.splits`` pieces."""
        shape = call.shape
        partial, lse = call.partials(schedule)
        dtype = gl.bfloat16 if shape.dtype == "bf16" else gl.float16
        half, narrow = [PAGE, RANK // 2], [PAGE, ROPE]
        half_layout, narrow_layout = (gl.NVMMASharedLayout.get_default_for(block, dtype) for block in (half, narrow))
        rows, queries = call.cache.view(-1, shape.width), call.q.view(-1, shape.width)
        _decode_hopper[(schedule.tiles, schedule.splits, shape.batch)](
            call.cache,
            TensorDescriptor.from_tensor(queries, narrow, narrow_layout),
            TensorDescriptor.from_tensor(queries, half, half_layout),
            TensorDescriptor.from_tensor(rows, half, half_layout),
            TensorDescriptor.from_tensor(rows, narrow, narrow_layout),
            call.block_table,
            call.lengths,
            call.out,
            partial,
            lse,
            call.scale_log2,
            call.block_table.stride(0),
            shape.heads,
            shape.queries,
            schedule.splits,
            ONE=schedule.splits == 1,
            STAGES=PAGES_IN_FLIGHT,
            REGISTERS=REGISTERS_OUTPUT,
            num_warps=4,
            maxnreg=REGISTERS_AT_ENTRY,
            **COMPILE,
        )
        if schedule.splits > 1:
            merge_splits(partial, lse, call.out, schedule.splits, dependent=True)
