"""How a decode call is cut into blocks: tiles of score rows, and splits of the context.

Plain integers without torch: the kernels launch by it, and the estimate prices by it.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_SPLITS = 128
OVERHEAD_PAGES = 3.0
"""What starting and ending a block costs, in pages of its loop."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A launch of ``tiles * splits * batch`` blocks, each over at most ``pages_per_split`` pages."""

    tiles: int
    """Blocks that share a request's rows: ceil(queries * heads / rows of a tile)."""
    splits: int
    pages_per_split: int
    waves: int
    """Rounds of blocks on the device's slots, the last one included however empty."""

    @property
    def steps(self) -> int:
        """Pages on the critical path of one slot."""
        return self.waves * self.pages_per_split


def plan_splits(
    batch: int, rows: int, pages: int, slots: int, tile_rows: int, overhead_pages: float = OVERHEAD_PAGES
) -> Schedule:
    """The split of the context with the least pages on the critical path.

    Args:
        batch: requests.
        rows: score rows of one request, queries * heads.
        pages: pages of the longest request.
        slots: blocks that the device runs at a time.
        tile_rows: score rows of one block.
        overhead_pages: what starting and ending a block costs, in pages of its loop.

    A split costs its overhead once a wave, and a little more in the combine: hence the second term. Sizes are
    those of the longest request; shorter ones are cut into as many, shorter pieces.
    """
    tiles = -(-rows // tile_rows)
    best, least = 1, float("inf")
    for splits in range(1, min(pages, MOST_SPLITS) + 1):
        waves = -(-batch * tiles * splits // slots)
        cost = waves * (-(-pages // splits) + overhead_pages) + 0.02 * splits
        if cost < least:
            best, least = splits, cost
    per_split = -(-pages // best)
    splits = -(-pages // per_split)
    return Schedule(tiles, splits, per_split, -(-batch * tiles * splits // slots))
