"""The kernel table of both paths and what `flops` makes of it.

Sources: docs/cost-model.md, sections 3 and 5; the chapter.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any

import pytest

from mla_calc.costs.flops import cheaper, flops_cost
from mla_calc.costs.paths import (
    PATHS,
    Work,
    absorbed_kernels,
    naive_kernels,
    overlapped_bound_s,
    path_bound_s,
    total_bytes,
    total_flop,
)
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import MLA
from tests.shapes import CHEAP_CORE, DSV3, H20, H100, MLAS, UNEVEN, brute_pairs, kernel_table, scaled_time

POINTS = [  # (Q, S, B, T, row)
    (1, 1, 1, 1, 1152),
    (1, 4096, 1, 1, 1152),
    (2, 4096, 128, 8, 1152),
    (7, 7, 3, 4, 656),
    (60, 100, 2, 2, 576),
]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_the_table_of_section_5(mla: MLA, point: tuple[int, ...], causal: bool) -> None:
    q, s, b, t, row = point
    t = gcd(t, mla.heads)  # a TP that divides the heads
    pairs = brute_pairs(q, s, causal)
    work = Work(queries=q, context=s, row_bytes=row, batch=b, tp=t, causal=causal)
    expected = kernel_table(mla, q, s, pairs, row=row, b=b, t=t)
    for path, kernels in PATHS.items():
        found = [(kernel.name, kernel.flop, kernel.bytes) for kernel in kernels(mla, work)]
        assert found == expected[path]
        assert total_flop(kernels(mla, work)) == sum(flop for _, flop, _ in expected[path])
        assert total_bytes(kernels(mla, work)) == sum(moved for _, _, moved in expected[path])


def test_bytes_are_told_apart_by_tensor() -> None:
    # DSV3, Q=1, S=4096, by hand; 8 ranks hold 16 heads each
    work = Work(queries=1, context=4096, row_bytes=1152, tp=8)
    fold, core, up = absorbed_kernels(DSV3, work)
    assert (fold.cache_bytes, fold.weight_bytes, fold.activation_bytes) == (0, 16 * 128 * 512 * 2, 16 * 640 * 2)
    assert (core.cache_bytes, core.weight_bytes, core.activation_bytes) == (4096 * 1152, 0, 16 * 1088 * 2)
    assert (up.cache_bytes, up.weight_bytes, up.activation_bytes) == (0, 16 * 512 * 128 * 2, 16 * 640 * 2)
    up_proj, core = naive_kernels(DSV3, work)
    assert up_proj.cache_bytes == 4096 * 1152
    assert up_proj.weight_bytes == 512 * 16 * 256 * 2
    assert up_proj.activation_bytes == 4096 * 16 * 320 * 2
    assert (core.cache_bytes, core.weight_bytes) == (0, 0)
    assert core.activation_bytes == (4096 + 1) * 16 * 320 * 2


@pytest.mark.parametrize("width", [1, 4, Fraction(1, 2)])
def test_weight_bytes_change_the_weights_alone(width: int | Fraction) -> None:
    point: dict[str, Any] = {"queries": 3, "context": 50, "row_bytes": 92, "batch": 2, "tp": 2}
    for path in PATHS.values():
        for usual, other in zip(
            path(UNEVEN, Work(**point)), path(UNEVEN, Work(**point, weight_bytes=width)), strict=True
        ):
            assert other.weight_bytes == usual.weight_bytes / 2 * width
            assert (other.flop, other.cache_bytes, other.activation_bytes) == (
                usual.flop,
                usual.cache_bytes,
                usual.activation_bytes,
            )


def test_half_a_byte_of_weights_is_a_whole_number_of_bytes() -> None:
    # 15 values of 4 bits: 7.5 B, the last half byte dropped (arrays.stored_bytes)
    odd = MLA(
        heads=1,
        hidden_size=4,
        kv_lora_rank=5,
        q_lora_rank=None,
        qk_nope_head_dim=3,
        qk_rope_head_dim=1,
        v_head_dim=3,
    )
    work = Work(queries=1, context=1, row_bytes=12, weight_bytes=Fraction(1, 2))
    assert absorbed_kernels(odd, work)[0].weight_bytes == 7
    assert isinstance(absorbed_kernels(odd, work)[0].bytes, int)


def test_the_cache_layout_changes_the_cache_bytes_alone() -> None:
    # docs/cost-model.md, section 5: the peak follows the MMA dtype, the bytes follow the layout
    for path in PATHS.values():
        bf16, fp8 = (path(DSV3, Work(queries=4, context=99, row_bytes=row)) for row in (1152, 656))
        for wide, narrow in zip(bf16, fp8, strict=True):
            assert (wide.flop, wide.weight_bytes, wide.activation_bytes) == (
                narrow.flop,
                narrow.weight_bytes,
                narrow.activation_bytes,
            )
            assert wide.cache_bytes * 656 == narrow.cache_bytes * 1152


@pytest.mark.parametrize("ceilings", [H100, H20], ids=["h100", "h20"])
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_bounds_are_sums_of_maxima(point: tuple[int, ...], ceilings: Ceilings) -> None:
    q, s, b, t, row = point
    work = Work(queries=q, context=s, row_bytes=row, batch=b, tp=t)
    table = kernel_table(DSV3, q, s, brute_pairs(q, s, True), row=row, b=b, t=t)
    for path, kernels in PATHS.items():
        rows = table[path]
        exact = Fraction(scaled_time(rows, ceilings), ceilings.flop_per_s * ceilings.bytes_per_s)
        assert path_bound_s(kernels(DSV3, work), ceilings) == pytest.approx(float(exact), rel=1e-14)
        overlapped = max(
            Fraction(sum(flop for _, flop, _ in rows), ceilings.flop_per_s),
            Fraction(sum(moved for _, _, moved in rows), ceilings.bytes_per_s),
        )
        assert overlapped_bound_s(kernels(DSV3, work), ceilings) == pytest.approx(float(overlapped), rel=1e-14)


# The accounting of FlashMLA's bench on public threads (H100: ai-bot-pro/achatbot#123; H20: deepseek-ai/FlashMLA#30):
# the attention kernel over a full block, TFLOP/s and GB/s at the latency measured.
# (B, Q, S, heads, ms, TFLOP/s, GB/s, GPU)
@pytest.mark.parametrize(
    ("b", "q", "s", "heads", "ms", "tflops", "gbs", "ceilings"),
    [
        (128, 1, 4096, 16, 0.215, 85, 2826, H100),
        (128, 2, 4096, 16, 0.218, 168, 2812, H100),
        (128, 3, 8192, 64, 3.407, 129, 370, H20),
    ],
)
def test_flashmla_bench_accounting(
    b: int, q: int, s: int, heads: int, ms: float, tflops: int, gbs: int, ceilings: Ceilings
) -> None:
    work = Work(queries=q, context=s, row_bytes=1152, batch=b, tp=128 // heads, causal=False)
    core = absorbed_kernels(DSV3, work)[1]
    assert core.flop / (ms * 1e-3) / 1e12 == pytest.approx(tflops, rel=0.01)
    assert core.bytes / (ms * 1e-3) / 1e9 == pytest.approx(gbs, rel=0.01)
    # a roofline time is a bound: no measurement is below it
    assert path_bound_s((core,), ceilings) <= ms * 1e-3


def test_flops_of_one_token_of_dsv3() -> None:
    # the chapter, "what it costs"
    cost = flops_cost(DSV3, 61, Work(queries=1, context=4096, row_bytes=1152), H100)
    assert cost.fold_flop_per_query_token == 33_554_432
    assert cost.naive_core_flop_per_pair == 81_920
    assert cost.absorbed_core_flop_per_pair == 278_528
    assert cost.core_ratio == pytest.approx(3.4, rel=1e-15)
    assert cost.materialized_bytes_per_context_token == 81_920
    assert cost.pairs == 4096
    # "33.55 MFLOP together, under 3 % of the 1.14 GFLOP attention core"
    folds, core = cost.absorbed.kernels[0].flop + cost.absorbed.kernels[2].flop, cost.absorbed.kernels[1].flop
    assert folds == 33_554_432
    assert core == 1_140_850_688
    assert cost.fold_to_core_ratio == pytest.approx(folds / core, rel=1e-15)
    assert cost.fold_to_core_ratio == pytest.approx(0.0294, abs=5e-5)
    # docs/cost-model.md, section 3: pre-multiplied, W_UV*W_O is h*r*H instead of h*dv*H parameters, 4x
    assert cost.merged_output_projection_ratio == (128 * 512 * 7168) / (128 * 128 * 7168) == 4


def test_wall_clock_of_the_chapter() -> None:
    # attention core alone, 61 layers, S=4096: 69.6 GFLOP = 70.3 us, 287.8 MB = 85.9 us; TP 8: 8.8 us, same reads
    for tp, gflop, compute_us in ((1, 69.6, 70.3), (8, 8.7, 8.8)):
        core = absorbed_kernels(DSV3, Work(queries=1, context=4096, row_bytes=1152, tp=tp))[1]
        assert 61 * core.flop / 1e9 == pytest.approx(gflop, abs=0.05)
        assert 61 * core.flop / H100.flop_per_s * 1e6 == pytest.approx(compute_us, abs=0.05)
        assert 61 * core.cache_bytes / 1e6 == pytest.approx(287.8, abs=0.05)
        assert 61 * core.cache_bytes / H100.bytes_per_s * 1e6 == pytest.approx(85.9, abs=0.05)


@pytest.mark.parametrize(
    ("mla", "context", "fewer"),
    [
        # S* = 1.0059: absorption wins from context 2 (the chapter, "three")
        (DSV3, 1, "naive"),
        (DSV3, 2, "absorbed"),
        (DSV3, 4096, "absorbed"),
        # ca < cn: absorption wins from the first token
        (CHEAP_CORE, 1, "absorbed"),
    ],
)
def test_one_query_favours_absorption_from_context_2(mla: MLA, context: int, fewer: str) -> None:
    assert flops_cost(mla, 1, Work(queries=1, context=context, row_bytes=2)).fewer_flop == fewer


def test_without_a_gpu_there_are_no_bounds() -> None:
    cost = flops_cost(DSV3, 61, Work(queries=1, context=4096, row_bytes=1152))
    assert cost.lower_bound is None
    for path in (cost.absorbed, cost.naive):
        assert (path.bound_s, path.overlapped_bound_s, path.total_bound_s) == (None, None, None)
        assert all(kernel.bound_s is None and kernel.binds is None for kernel in path.kernels)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_flops_cost_sums_its_kernels(point: tuple[int, ...], causal: bool) -> None:
    q, s, b, t, row = point
    pairs = brute_pairs(q, s, causal)
    cost = flops_cost(DSV3, 61, Work(queries=q, context=s, row_bytes=row, batch=b, tp=t, causal=causal), H100)
    table = kernel_table(DSV3, q, s, pairs, row=row, b=b, t=t)
    assert cost.pairs == pairs
    (_, fold, _), (_, core, _), (_, up, _) = table["absorbed"]
    assert cost.fold_to_core_ratio == pytest.approx((fold + up) / core, rel=1e-15)
    flop, moved, time = {}, {}, {}
    for name, path in (("absorbed", cost.absorbed), ("naive", cost.naive)):
        rows = table[name]
        flop[name], moved[name] = sum(f for _, f, _ in rows), sum(m for _, _, m in rows)
        time[name] = scaled_time(rows, H100)
        assert (path.flop, path.bytes) == (flop[name], moved[name])
        assert (path.total_flop, path.total_bytes) == (61 * flop[name], 61 * moved[name])
        assert path.bound_s is not None
        assert path.bound_s == pytest.approx(time[name] / (H100.flop_per_s * H100.bytes_per_s), rel=1e-14)
        assert path.total_bound_s == pytest.approx(61 * path.bound_s, rel=1e-15)
        for kernel, (_, kernel_flop, kernel_bytes) in zip(path.kernels, rows, strict=True):
            assert kernel.intensity_flop_per_byte == kernel_flop / kernel_bytes
            compute = Fraction(kernel_flop, kernel_bytes) >= Fraction(H100.flop_per_s, H100.bytes_per_s)
            assert kernel.binds == ("compute" if compute else "memory")
            assert kernel.cache_bytes + kernel.weight_bytes + kernel.activation_bytes == kernel_bytes
    for said, of in ((cost.fewer_flop, flop), (cost.fewer_bytes, moved), (cost.lower_bound, time)):
        assert said == ("absorbed" if of["absorbed"] < of["naive"] else "naive")


def test_cheaper_says_equal() -> None:
    assert (cheaper(1, 2), cheaper(2, 1), cheaper(2, 2)) == ("absorbed", "naive", "equal")


def test_materialized_bytes_against_the_row() -> None:
    # docs/cost-model.md, section 3: 81,920 B per context token and layer against 1,152 B read: 71x; per rank a T-th
    for tp in (1, 8, 128):
        cost = flops_cost(DSV3, 61, Work(queries=1, context=2, row_bytes=1152, tp=tp))
        assert cost.materialized_bytes_per_context_token * tp == 81_920
    assert round(81_920 / 1152) == 71
