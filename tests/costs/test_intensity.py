"""Arithmetic intensity against TP.

Sources: docs/cost-model.md, section 5; the chapter, section 1; deepseek-ai/FlashMLA@9241ae3
docs/20250422-new-kernel-deep-dive.md.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from mla_calc.costs.intensity import (
    context_intensity,
    context_token_bytes,
    core_flop_per_context_token,
    intensity_cost,
    ridge_heads_times_queries,
)
from mla_calc.costs.layouts import latent_row_bytes, load_layout
from mla_calc.errors import InputError
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import GQA, MLA
from tests.shapes import DSV3, H20, H100, LLAMA3_70B, MLAS, NOPE, brute_pairs, kernel_table, model

BF16 = load_layout("bf16")
V3 = model(DSV3, 61, name="DeepSeek-V3")
LLAMA = model(LLAMA3_70B, 80, name="Llama-3-70B")


@pytest.mark.parametrize(("tp", "intensity"), [(1, 241.7778), (8, 30.2222), (2, 120.8889), (128, 1.8889)])
def test_dsv3_falls_as_one_over_tp(tp: int, intensity: float) -> None:
    # the chapter: 242 at TP 1, 30 at TP 8
    assert context_intensity(DSV3, BF16, tp) == pytest.approx(intensity, abs=5e-5)
    assert context_intensity(DSV3, BF16, tp) * tp == pytest.approx(Fraction(278_528, 1152), rel=1e-15)


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_queries_multiply_it(queries: int) -> None:
    # docs/cost-model.md, section 5: Q is a factor of it
    assert context_intensity(DSV3, BF16, 1, queries) == pytest.approx(queries * 278_528 / 1152, rel=1e-15)


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("layout", ["bf16", "fp8"])
@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_what_one_more_context_token_adds(mla: MLA, layout: str, tp: int) -> None:
    """FLOP and bytes that the decode kernel gains from S to S + 1, by the table of docs/cost-model.md, section 5."""
    row = latent_row_bytes(load_layout(layout), mla)
    queries = 3
    (_, flop_before, bytes_before), (_, flop_after, bytes_after) = (
        kernel_table(mla, queries, s, brute_pairs(queries, s, True), row=row, t=tp)["absorbed"][1] for s in (40, 41)
    )
    flop, moved = flop_after - flop_before, bytes_after - bytes_before
    assert flop == queries * core_flop_per_context_token(mla, tp)
    assert moved == context_token_bytes(mla, load_layout(layout), tp)
    assert context_intensity(mla, load_layout(layout), tp, queries) == flop / moved


@pytest.mark.parametrize(
    ("tp", "intensity"),
    [(1, 8), (2, 8), (8, 8), (16, 4), (64, 1)],  # = heads/kv_heads in bf16, until there are more ranks than heads
)
def test_gqa_holds_until_its_heads_are_one_per_rank(tp: int, intensity: float) -> None:
    # the chapter: GQA-8 Llama-3-70B at 8
    assert context_intensity(LLAMA3_70B, BF16, tp) == intensity


@pytest.mark.parametrize(
    ("attention", "layout", "expected"),
    [
        (LLAMA3_70B, "fp8", 16),
        (GQA(heads=32, hidden_size=4096, kv_heads=32, qk_head_dim=128, v_head_dim=128), "bf16", 1),  # MHA
        (GQA(heads=64, hidden_size=4096, kv_heads=4, qk_head_dim=192, v_head_dim=128), "bf16", 16),
        (NOPE, "bf16", 131_072 / 1024),
        (DSV3, "fp8", 278_528 / 576),
        (DSV3, "fp8_ds_mla", 278_528 / 656),
    ],
)
def test_others_by_hand(attention: MLA | GQA, layout: str, expected: float) -> None:
    assert context_intensity(attention, load_layout(layout), 1) == expected


def test_shares_of_the_ridge() -> None:
    # the chapter: 242 of 295 is 82 %, bandwidth binds by 1.2x; GQA-8 by 37x
    cost = intensity_cost(V3, BF16, (1, 8), ceilings=H100, vs=((LLAMA, BF16),))
    assert cost.ridge_flop_per_byte == pytest.approx(295.343, abs=5e-4)
    one, eight = cost.by_tp
    assert (one.tp, eight.tp) == (1, 8)
    assert one.ridge_share == pytest.approx(0.8186, abs=5e-5)
    assert one.margin == pytest.approx(1.22, abs=0.005)
    assert eight.margin == pytest.approx(8 * 1.22154, rel=1e-4)
    assert (one.binds, eight.binds) == ("memory", "memory")
    beside = cost.vs[0]
    assert (beside.model, beside.layout) == ("Llama-3-70B", "bf16")
    assert [at.intensity_flop_per_byte for at in beside.by_tp] == [8, 8]
    assert beside.by_tp[0].margin is not None
    assert round(beside.by_tp[0].margin) == 37


def test_on_a_low_ridge_compute_binds() -> None:
    # H20's ridge is 37: DSV3 at TP 1 is far above it, at TP 8 below
    one, eight = intensity_cost(V3, BF16, (1, 8), ceilings=H20).by_tp
    assert (one.binds, eight.binds) == ("compute", "memory")
    assert one.ridge_share == pytest.approx(278_528 / 1152 / 37, rel=1e-15)


def test_two_queries_pass_the_h100_ridge() -> None:
    (at,) = intensity_cost(V3, BF16, (1,), queries=2, ceilings=H100).by_tp
    assert at.intensity_flop_per_byte == pytest.approx(483.5556, abs=5e-5)
    assert at.binds == "compute"


def test_heads_times_queries_at_the_ridge() -> None:
    # docs/cost-model.md, section 5: ridge * row / (2 (2r + dr)) = 156.4 on an H100 or H800
    heads = ridge_heads_times_queries(DSV3, BF16, H100)
    assert heads == pytest.approx(156.4, abs=0.05)
    # at that many heads on a rank, the intensity is the ridge
    assert 2 * heads * 1088 / 1152 == pytest.approx(H100.ridge_flop_per_byte, rel=1e-14)
    # FlashMLA's own approximation rounds (2r + dr) / (r + dr) to 2: half the ridge, 148
    assert H100.ridge_flop_per_byte / 2 == pytest.approx(148, abs=0.5)
    # and with a clock-limited peak of 865 TFLOP/s, 128 (its deep dive of 2025-04-22)
    limited = Ceilings(865_000_000_000_000, 3_350_000_000_000)
    assert ridge_heads_times_queries(DSV3, BF16, limited) * 1088 / 576 / 2 == pytest.approx(128, rel=0.01)


def test_flashmlas_rule_of_thumb() -> None:
    # its deep dive: intensity about 2 * h_q * s_q = 256; exactly 241.8
    assert context_intensity(DSV3, BF16, 1) == pytest.approx(256, rel=0.06)


def test_without_a_gpu_there_is_no_ridge() -> None:
    cost = intensity_cost(V3, BF16, (1,), vs=((LLAMA, BF16),))
    at = cost.by_tp[0]
    assert (cost.ridge_flop_per_byte, cost.ridge_heads_times_queries) == (None, None)
    assert (at.ridge_share, at.margin, at.binds) == (None, None, None)
    assert cost.break_even_tp == 327_680 / 70_272


def test_gqa_has_no_heads_at_the_ridge() -> None:
    assert intensity_cost(LLAMA, BF16, (1,), ceilings=H100).ridge_heads_times_queries is None


@pytest.mark.parametrize("layout", ["bf16", "fp8_ds_mla"])
def test_tps_and_layouts_that_do_not_fit(layout: str) -> None:
    with pytest.raises(InputError, match="TP 3 "):
        intensity_cost(V3, load_layout(layout), (1, 3))
    if layout == "fp8_ds_mla":
        with pytest.raises(InputError, match=layout):
            intensity_cost(LLAMA, load_layout(layout), (1,))
