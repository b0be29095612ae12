"""The rule of the splits as docs/cost-model.md states it, tried split by split."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from mla_calc.hardware.schedule import plan_splits


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 128])
@pytest.mark.parametrize("pages", [1, 5, 16, 100, 1024])
@pytest.mark.parametrize(("rows", "tile_rows"), [(16, 16), (96, 64), (512, 64)])
@pytest.mark.parametrize("slots", [132, 264])
def test_splits_are_those_of_least_cost(batch: int, pages: int, rows: int, tile_rows: int, slots: int) -> None:
    tiles = ceil(Fraction(rows, tile_rows))

    def cost(splits: int) -> Fraction:
        waves = ceil(Fraction(batch * tiles * splits, slots))
        return waves * (ceil(Fraction(pages, splits)) + 3) + Fraction(2, 100) * splits

    best = min(range(1, min(pages, 128) + 1), key=cost)  # the first, and so the fewest, of several
    per_split = ceil(Fraction(pages, best))
    found = plan_splits(batch, rows, pages, slots, tile_rows)
    # whole pages: the last splits may have nothing left, and are not launched
    splits = ceil(Fraction(pages, per_split))
    assert (found.tiles, found.pages_per_split, found.splits) == (tiles, per_split, splits)
    assert found.waves == ceil(Fraction(batch * tiles * splits, slots))
