"""How a decode call is cut into blocks: tiles of score rows, and splits of the context.

Plain integers without torch: the kernels launch by it, and the estimate prices by it. Of one call, or of arrays
of calls at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..arrays import Floats, Ints

PAGE = 64
"""Cache rows of a page: what a block takes per step."""
MOST_SPLITS = 128
OVERHEAD_PAGES = 3.0
"""What starting and ending a block costs, in pages of its loop."""
SPLIT_PAGES = 0.02
"""What one more split costs in the combine, whatever the call's size, in pages."""
MERGES = {"hopper": 1.5, "tile64": 0.0, "small": 0.0}
"""Weight of the merge's bytes in each kernel's own schedule, by what was fastest on an H200 (docs/kernels.md); 0 leaves
them out. A run measures the kernels with it, and its calibrations keep it (``Tiling.merge``), so that another value
here does not change what they estimate."""
PARTIAL_BYTES = 4
"""Partial outputs are kept in fp32."""
VALUE_BYTES = 2


@dataclass(frozen=True, slots=True)
class Schedule:
    """A launch of ``tiles * splits * batch`` blocks, each over at most ``pages_per_split`` pages."""

    tiles: Ints
    """Blocks that share a request's rows: ceil(queries * heads / rows of a tile)."""
    splits: Ints
    pages_per_split: Ints
    waves: Ints
    """Rounds of blocks on the device's slots, the last one included however empty."""

    @property
    def steps(self) -> Ints:
        """Pages on the critical path of one slot."""
        return self.waves * self.pages_per_split


def merged_bytes(batch: Ints, rows: Ints, kv_lora_rank: int) -> Ints:
    """Bytes of one split's partial outputs of all requests, written and read again."""
    return batch * rows * (kv_lora_rank + 1) * PARTIAL_BYTES * 2


def merge_pages(merge: float, batch: Ints, rows: Ints, slots: int, kv_lora_rank: int, qk_rope_head_dim: int) -> Floats:
    """What the merge's bytes add for each split, in pages: over the bytes that all slots load in one step.

    Args:
        merge: weight of these bytes; 1 counts them like the cache's.
        batch: requests.
        rows: score rows of one request.
        slots: blocks that the device runs at a time.
        kv_lora_rank: values of a partial output, beside its log-sum.
        qk_rope_head_dim: the rest of a cached row's values.
    """
    step = slots * PAGE * (kv_lora_rank + qk_rope_head_dim) * VALUE_BYTES
    return merge * merged_bytes(batch, rows, kv_lora_rank) / step


def plan_splits(
    batch: Ints,
    rows: Ints,
    pages: Ints,
    slots: int,
    tile_rows: int,
    overhead_pages: float = OVERHEAD_PAGES,
    merged_pages: Floats = 0.0,
) -> Schedule:
    """The split of the context with the least pages on the critical path.

    Args:
        batch: requests.
        rows: score rows of one request, queries * heads.
        pages: pages of the longest request.
        slots: blocks that the device runs at a time.
        tile_rows: score rows of one block.
        overhead_pages: what starting and ending a block costs, in pages of its loop.
        merged_pages: what the merge's bytes add for each split of a split context, in pages (:func:`merge_pages`).

    A split costs its overhead once a wave, and a little more in the combine: hence the second term. Sizes are
    those of the longest request; shorter ones are cut into as many, shorter pieces.
    """
    tiles = -(-rows // tile_rows)
    best = _best_splits(batch * tiles, pages, slots, overhead_pages, merged_pages)
    per_split = -(-pages // best)
    splits = -(-pages // per_split)
    return Schedule(tiles, splits, per_split, -(-batch * tiles * splits // slots))


def _best_splits(blocks: Ints, pages: Ints, slots: int, overhead_pages: float, merged_pages: Floats) -> Ints:
    """The splits of least cost, the fewest of several; ``blocks`` are those of one split."""
    if isinstance(blocks, int) and isinstance(pages, int):
        return _best_of_one(blocks, pages, slots, overhead_pages, merged_pages)
    import numpy as np

    blocks, pages, merged_pages = np.broadcast_arrays(blocks, pages, merged_pages)
    keys, place = np.unique(np.stack((blocks, pages, merged_pages)), axis=1, return_inverse=True)
    distinct = np.arange(1, MOST_SPLITS + 1), keys[0][:, None].astype(np.int64), keys[1][:, None].astype(np.int64)
    costs = _cost(*distinct, slots, overhead_pages, np.where(distinct[0] > 1, keys[2][:, None], 0.0))
    costs[distinct[0] > distinct[2]] = np.inf
    return (1 + costs.argmin(axis=1))[place.reshape(-1)].reshape(blocks.shape)


@lru_cache(maxsize=1 << 14)
def _best_of_one(blocks: int, pages: int, slots: int, overhead_pages: float, merged_pages: float) -> int:
    best, least = 1, float("inf")
    for splits in range(1, min(pages, MOST_SPLITS) + 1):
        cost = _cost(splits, blocks, pages, slots, overhead_pages, merged_pages if splits > 1 else 0.0)
        if cost < least:
            best, least = splits, cost
    return best


def _cost(splits: Ints, blocks: Ints, pages: Ints, slots: int, overhead_pages: float, merged_pages: Floats) -> Floats:
    """Pages on the critical path, and what they and the splits cost beside."""
    waves = -(-blocks * splits // slots)
    return waves * (-(-pages // splits) + overhead_pages) + (SPLIT_PAGES + merged_pages) * splits
