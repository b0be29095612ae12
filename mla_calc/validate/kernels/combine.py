"""The second pass of a split decode: partial outputs of one row, merged by their log-sum-exp."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from .call import COMPILE

BLOCK = 8192
"""Partial values that a block holds at a time: 64 registers a thread."""
MOST_COLUMNS = 512
LEAST_COLUMNS = 128
"""One 16-byte load a thread of a warp."""


@triton.jit(do_not_specialize=["splits"])
def _merge_splits(
    partial_ptr,
    lse_ptr,
    out_ptr,
    rows,
    splits,
    RANK: tl.constexpr,
    COLUMNS: tl.constexpr,
    MOST: tl.constexpr,
    CHUNK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    row = tl.program_id(0)
    request = tl.program_id(2)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    base = request.to(tl.int64) * splits * rows + row  # [request, split, row]
    every = tl.arange(0, MOST)
    if DEPENDENT:  # launched while the first pass still runs: wait until what it wrote can be seen
        tl.extra.cuda.gdc_wait()
    lse = tl.load(lse_ptr + base + every * rows, mask=every < splits, other=-float("inf"))
    top = tl.maximum(tl.max(lse, 0), -1e30)  # a row without any key has -inf everywhere: no NaN out of inf - inf
    total = tl.sum(tl.exp2(lse - top), 0)
    merged = tl.zeros([CHUNK, COLUMNS], tl.float32)
    for start in tl.static_range(0, MOST, CHUNK):
        split = start + tl.arange(0, CHUNK)
        at_split = base + split * rows
        mine = tl.load(lse_ptr + at_split, mask=split < splits, other=-float("inf"))
        # asked for at once, without waiting for the log-sum-exps
        partial = tl.load(
            partial_ptr + at_split[:, None] * RANK + column[None, :], mask=(split < splits)[:, None], other=0.0
        )
        weight = tl.exp2(mine - top)[:, None]
        # a split without keys for this row wrote its -inf alone: what stands in its output means nothing
        merged += tl.where((mine == -float("inf"))[:, None], 0.0, weight * partial)
    result = tl.sum(merged, 0) / tl.where(total == 0.0, 1.0, total)
    at = (request.to(tl.int64) * rows + row) * RANK + column
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty))


def merge_splits(partial: Tensor, lse: Tensor, out: Tensor, splits: int, dependent: bool) -> None:
    """Merge ``splits`` partial results of every row into ``out``.

    Args:
        partial: float32 [batch, splits, rows, r], each row normalised by its own sum.
        lse: float32 [batch, splits, rows], base-2 logarithm of that sum; -inf where a split had no key.
        out: [batch, rows, r], any dtype.
        splits: how many of them; zeros are written for a row that no split had a key for.
        dependent: whether the device can launch this pass before the first one ends (compute capability 9.0).
    """
    batch, _, rows, rank = partial.shape
    most = max(2, triton.next_power_of_2(splits))
    columns = min(rank, MOST_COLUMNS, max(LEAST_COLUMNS, BLOCK // most))
    options = {"launch_pdl": True} if dependent else {}
    _merge_splits[(rows, rank // columns, batch)](
        partial,
        lse,
        out,
        rows,
        splits,
        RANK=rank,
        COLUMNS=columns,
        MOST=most,
        CHUNK=min(most, BLOCK // columns),
        DEPENDENT=dependent,
        num_warps=4,
        **options,
        **COMPILE,
    )
