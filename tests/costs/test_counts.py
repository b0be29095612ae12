"""FLOP counts: the chapter's numbers, and counting one by one.

Sources: docs/cost-model.md, section 3; the chapter.
"""

from __future__ import annotations

import numpy as np
import pytest

from mla_calc.costs.counts import absorbed_core_flop, expanded_values, fold_flop, naive_core_flop, pairs
from mla_calc.models.attention import MLA
from tests.shapes import CHEAP_CORE, DSV3, EVEN_CORES, MLAS, NOPE, UNEVEN, brute_pairs


def test_dsv3_numbers_of_the_chapter() -> None:
    # the chapter, "step 1" and "what it costs": A, cn, ca, and 3.4x
    assert fold_flop(DSV3, 128) == 33_554_432
    assert naive_core_flop(DSV3, 128) == 81_920
    assert absorbed_core_flop(DSV3, 128) == 278_528
    assert absorbed_core_flop(DSV3, 128) * 10 == naive_core_flop(DSV3, 128) * 34


def test_typhoon_counts_multiply_adds() -> None:
    # arXiv 2509.21081 Table 1: 40 K and 136 K MAC per query and key (K = 1024), a MAC is 2 FLOP
    assert naive_core_flop(DSV3, 128) == 2 * 40 * 1024
    assert absorbed_core_flop(DSV3, 128) == 2 * 136 * 1024


def test_materialized_values_of_the_chapter() -> None:
    # the chapter: 128 x (192 + 128) x 2 = 81,920 B against the 1,152 B read, 71x
    assert expanded_values(DSV3, 128) * 2 == 81_920
    assert expanded_values(DSV3, 128) * 2 / 1152 == pytest.approx(71.11, abs=0.005)


def test_chapter_causal_pairs() -> None:
    # the chapter's snippet: prefix 5, 3 queries -> 21
    assert pairs(3, 8, causal=True) == 21
    assert pairs(3, 8, causal=False) == 24


@pytest.mark.parametrize("causal", [True, False])
def test_pairs_by_counting_them(causal: bool) -> None:
    for context in range(1, 17):
        for queries in range(1, context + 1):
            assert pairs(queries, context, causal) == brute_pairs(queries, context, causal)


@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_counts_by_walking_the_products(mla: MLA) -> None:
    """Every multiply-add of one head, product by product: [1, a] x [a, b] is a*b of them."""
    r, dn, dr, dv = mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    query_fold, value_fold = dn * r, r * dv
    naive_score, naive_value = dn + dr, dv
    absorbed_score, absorbed_value = r + dr, r
    for heads in (1, mla.heads):
        assert fold_flop(mla, heads) == 2 * heads * (query_fold + value_fold)
        assert naive_core_flop(mla, heads) == 2 * heads * (naive_score + naive_value)
        assert absorbed_core_flop(mla, heads) == 2 * heads * (absorbed_score + absorbed_value)
        assert expanded_values(mla, heads) == heads * (dn + dr + dv)


@pytest.mark.parametrize(
    ("mla", "fold", "naive", "absorbed"),
    [
        # by hand: 2*512*64*512, 2*64*512, 2*64*1024
        (NOPE, 33_554_432, 65_536, 131_072),
        # 2*40*12*40, 2*12*46, 2*12*86
        (UNEVEN, 38_400, 1_104, 2_064),
        # 2*8*4*16, 2*4*18, 2*4*18: the cores cost the same
        (EVEN_CORES, 1_024, 144, 144),
        # 2*4*4*16, 2*4*18, 2*4*10: the absorbed core is cheaper
        (CHEAP_CORE, 512, 144, 80),
    ],
)
def test_other_shapes_by_hand(mla: MLA, fold: int, naive: int, absorbed: int) -> None:
    counts = (fold_flop(mla, mla.heads), naive_core_flop(mla, mla.heads), absorbed_core_flop(mla, mla.heads))
    assert counts == (fold, naive, absorbed)


def test_arrays_give_the_same_counts() -> None:
    queries, context = np.meshgrid(np.arange(1, 30), np.arange(30, 60))
    for causal in (True, False):
        grid = pairs(queries, context, causal)
        assert grid.dtype == np.int64
        assert grid.tolist() == [
            [pairs(q, s, causal) for q, s in zip(*lines, strict=True)]
            for lines in zip(queries.tolist(), context.tolist(), strict=True)
        ]
    heads = np.array([128, 16, 1])
    assert fold_flop(DSV3, heads).tolist() == [fold_flop(DSV3, h) for h in (128, 16, 1)]
