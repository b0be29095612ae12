"""The engine over a grid: hand-worked numbers, and every point bit for bit what one point alone gives."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.costs import grid
from mla_calc.costs.cache import cache_cost
from mla_calc.costs.flops import flops_cost
from mla_calc.costs.grid import Setting, check_grid, chunks, grid_points, left_out
from mla_calc.costs.intensity import context_intensity, intensity_cost
from mla_calc.costs.layouts import latent_row_bytes, load_layout
from mla_calc.costs.paths import Work
from mla_calc.costs.sweeps import SWEEPS
from mla_calc.costs.workspace import workspace_cost
from mla_calc.engines.load import load_engine
from mla_calc.errors import InputError
from mla_calc.models.attention import Indexer, Windowed
from mla_calc.models.load import load_model
from mla_calc.report.record import flattened, lookup, plain

from ..shapes import DSV3, GPUS, H100, H200, LLAMA3_70B, UNEVEN, ceilings, divisors, kernel_table, mlas, model

BF16 = load_layout("bf16")
DSV3_61 = Setting(model=model(DSV3, 61), layout=BF16, ceilings=H100)


def rows_of(command: str, setting: Setting, **axes: tuple[int, ...]) -> list[dict[str, Any]]:
    """The grid as a list of rows of plain Python values."""
    check_grid(SWEEPS[command], setting, axes)
    rows = []
    for chunk in chunks(SWEEPS[command], setting, axes):
        rows += [dict(zip(chunk, row, strict=True)) for row in zip(*(c.tolist() for c in chunk.values()), strict=True)]
    return rows


def flops_axes(**axes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"tp": (1,), "batch": (1,), "queries": (1,), "context": (4096,)} | axes


def test_chapter_numbers_of_one_point() -> None:
    """docs/cost-model.md, section 3: folds of 33,554,432 and a core of 278,528 per pair; A * S and 81,920 per pair."""
    (row,) = rows_of("flops", DSV3_61, **flops_axes())
    assert row["absorbed.flop"] == 33_554_432 + 278_528 * 4096
    assert row["naive.flop"] == 33_554_432 * 4096 + 81_920 * 4096
    assert row["absorbed.total_flop"] == 61 * row["absorbed.flop"]
    # weights 2 * 128 * 512 * 128 values, cached rows, and activations of q_fold, attention and v_up
    assert row["absorbed.bytes"] == 33_554_432 + 4096 * 1152 + 2 * 128 * (640 + 1088 + 640)
    assert row["naive.bytes"] == 4096 * 1152 + 33_554_432 + 2 * 4096 * 81_920 + 81_920
    assert (row["fewer_flop"], row["fewer_bytes"], row["lower_bound"]) == ("absorbed",) * 3


def test_order_of_rows_is_context_fastest() -> None:
    axes = flops_axes(tp=(2, 1), batch=(3, 1), queries=(1, 2), context=(8, 4))
    rows = rows_of("flops", DSV3_61, **axes)
    points = [(row["tp"], row["batch"], row["queries"], row["context"]) for row in rows]
    assert points == list(product((2, 1), (3, 1), (1, 2), (8, 4)))


@pytest.mark.parametrize("causal", [True, False])
def test_contract_table(causal: bool) -> None:
    """docs/cost-model.md, section 5, written a second time in shapes.py."""
    setting = Setting(model=model(UNEVEN, 5), layout=BF16, causal=causal)
    row_bytes = 2 * 46
    for row in rows_of("flops", setting, tp=(1, 2, 6), batch=(1, 3), queries=(1, 7), context=(7, 100)):
        q, s = row["queries"], row["context"]
        pairs = q * (s - q) + q * (q + 1) // 2 if causal else q * s
        table = kernel_table(UNEVEN, q, s, pairs, row=row_bytes, b=row["batch"], t=row["tp"])
        for path, kernels in table.items():
            assert row[f"{path}.flop"] == sum(flop for _, flop, _ in kernels)
            assert row[f"{path}.bytes"] == sum(moved for _, _, moved in kernels)


@settings(max_examples=60)
@given(
    mla=mlas(),
    peaks=ceilings(),
    causal=st.booleans(),
    weight_bytes=st.sampled_from([1, 2, Fraction(1, 2)]),
    seed=st.integers(0, 2**32),
)
def test_random_points_equal_the_scalar_engine(
    mla: Any, peaks: Any, causal: bool, weight_bytes: Any, seed: int
) -> None:
    rng = random.Random(seed)
    axes = {
        "tp": tuple(divisors(mla.heads)[:3]),
        "batch": (1, rng.randint(2, 20)),
        "queries": (1, rng.randint(1, 50_000)),
        "context": (rng.randint(1, 4096), rng.randint(50_000, 250_000)),
    }
    setting = Setting(
        model=model(mla, rng.randint(1, 61)), layout=BF16, ceilings=peaks, causal=causal, weight_bytes=weight_bytes
    )
    for row in rows_of("flops", setting, **axes):
        assert_scalar(setting, row)


def assert_scalar(setting: Setting, row: dict[str, Any]) -> None:
    """Every figure of the row, of the same type and to the last bit."""
    work = Work(
        queries=row["queries"],
        context=row["context"],
        row_bytes=latent_row_bytes(setting.layout, setting.mla),
        batch=row["batch"],
        tp=row["tp"],
        causal=setting.causal,
        weight_bytes=setting.weight_bytes,
    )
    expected = plain(flops_cost(setting.mla, setting.model.cached_layers, work, setting.ceilings))
    for name, value in row.items():
        assert type(value) is type(lookup(expected, name)), name
        assert value == lookup(expected, name), name


@pytest.mark.parametrize("gpu", GPUS)
def test_bounds_of_counts_beyond_floats_are_exact(gpu: str) -> None:
    """Above 2**53 an int64 is rounded before it is divided; Python's quotient is rounded once."""
    rng = random.Random(7)
    axes = flops_axes(
        batch=(1, 2),
        queries=tuple(rng.sample(range(1, 10**5), 40)),
        context=tuple(rng.sample(range(10**6, 2 * 10**6), 10)),
    )
    setting = replace(DSV3_61, ceilings=GPUS[gpu])
    rows = rows_of("flops", setting, **axes)
    assert max(row["absorbed.flop"] for row in rows) > 2**56
    for row in rows:
        assert_scalar(setting, row)


def test_columns_are_the_keys_of_flops() -> None:
    work = Work(queries=1, context=4096, row_bytes=1152)
    keys = set(flattened(plain(flops_cost(DSV3, 61, work, H100))))
    (row,) = rows_of("flops", DSV3_61, **flops_axes())
    assert set(row) <= keys


def test_without_ceilings_there_are_no_bounds() -> None:
    (row,) = rows_of("flops", replace(DSV3_61, ceilings=None), **flops_axes())
    assert not [name for name in row if "bound" in name]


def test_equal_counts_are_called_equal() -> None:
    """At one token of context and one query the two paths differ by the cores alone: 2r = dn + dv makes them equal."""
    even = replace(UNEVEN, kv_lora_rank=20)
    (row,) = rows_of("flops", Setting(model=model(even, 1), layout=BF16), **flops_axes(context=(1,)))
    assert row["absorbed.flop"] == row["naive.flop"]
    assert row["fewer_flop"] == "equal"


def test_points_with_more_queries_than_context_are_left_out() -> None:
    axes = flops_axes(tp=(1, 2), queries=(1, 5, 9), context=(4, 8, 5))
    rows = rows_of("flops", DSV3_61, **axes)
    kept = [(tp, q, s) for tp in (1, 2) for q in (1, 5, 9) for s in (4, 8, 5) if q <= s]
    assert [(row["tp"], row["queries"], row["context"]) for row in rows] == kept
    # queries 5 drops context 4, queries 9 all three, at each of two TPs
    assert left_out(SWEEPS["flops"], axes) == 8
    assert grid_points(SWEEPS["flops"], axes) == 18


def test_chunks_make_up_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = flops_axes(tp=(1, 4), queries=(1, 3, 6), context=tuple(range(1, 12)))
    whole = rows_of("flops", DSV3_61, **axes)
    monkeypatch.setattr(grid, "CHUNK_POINTS", 5)
    done: list[int] = []
    sizes = [len(chunk["tp"]) for chunk in chunks(SWEEPS["flops"], DSV3_61, axes, done.append)]
    assert rows_of("flops", DSV3_61, **axes) == whole
    assert sum(sizes) == len(whole) < 66
    assert max(sizes) <= 5
    assert min(sizes) > 0
    assert sum(done) == 66


def test_cache_matches_the_scalar_engine() -> None:
    setting = Setting(model=model(DSV3, 61, indexer=Indexer(heads=64, head_dim=128, topk=2048, layers=61)), layout=BF16)
    axes = {"tp": (1, 8, 16), "batch": (1, 7), "context": (1, 100, 4096), "block_size": (1, 64)}
    rows = rows_of("cache", setting, **axes)
    assert len(rows) == 36
    # 61 rows of 1,152 B and 61 indexer keys of 132 B; the cluster holds 8 copies
    assert {row["bytes_per_token"] for row in rows} == {70_272 + 8_052}
    assert {row["cluster_bytes_per_token"] for row in rows if row["tp"] == 8} == {8 * 78_324}
    for row in rows:
        assert_cache(setting, row)


def test_cache_of_windowed_layers() -> None:
    windowed = Windowed(layers=3, window=128, kv_heads=8, qk_head_dim=64, v_head_dim=64)
    setting = Setting(model=model(LLAMA3_70B, 80, windowed=windowed), layout=BF16)
    axes = {"tp": (1, 8, 16), "batch": (1, 3), "context": (1, 127, 128, 129, 4096), "block_size": (16, 64)}
    for row in rows_of("cache", setting, **axes):
        assert_cache(setting, row)
        assert "latent_bytes_per_token" not in row


def assert_cache(setting: Setting, row: dict[str, Any]) -> None:
    point = {name: row[name] for name in ("tp", "context", "batch", "block_size")}
    expected = cache_cost(setting.model, setting.layout, **point)
    assert row == {name: getattr(expected, name) for name in row}


def test_intensity_matches_the_scalar_engine() -> None:
    axes = {"tp": (1, 8, 128), "queries": (1, 2, 4)}
    rows = rows_of("intensity", DSV3_61, **axes)
    assert rows[0]["intensity_flop_per_byte"] == pytest.approx(241.8, abs=0.05)
    assert rows[0]["ridge_share"] == pytest.approx(0.82, abs=0.005)
    for row in rows:
        cost = intensity_cost(DSV3_61.model, BF16, (row["tp"],), queries=row.pop("queries"), ceilings=H100)
        assert row == plain(cost.by_tp[0])


def test_intensity_of_gqa() -> None:
    rows = rows_of("intensity", Setting(model=model(LLAMA3_70B, 80), layout=BF16), tp=(1, 8, 16), queries=(1,))
    assert [row["intensity_flop_per_byte"] for row in rows] == [8, 8, 4]
    assert rows[2]["intensity_flop_per_byte"] == context_intensity(LLAMA3_70B, BF16, 16)


def test_workspace_matches_the_scalar_engine() -> None:
    axes = {"tp": (1, 8), "max_model_len": (4096, 163_840), "max_num_seqs": (8, 256), "block_size": (64, 96)}
    rows = rows_of("workspace", DSV3_61, **axes)
    assert len(rows) == 16
    for row in rows:
        point = {name: row[name] for name in axes}
        expected = workspace_cost(DSV3, cache_bytes_per_token=70_272, **point)
        assert row == {name: getattr(expected, name) for name in row}
    widest = next(row for row in rows if row["max_model_len"] == 163_840 and row["block_size"] == 64)
    assert (widest["rows"], widest["latent_bytes"], widest["k_bytes"]) == (65_536, 75_497_472, 3_221_225_472)


def test_workspace_of_a_dsa_model_matches_the_scalar_engine() -> None:
    """Its rows are capped by the top-k, and its buffers change where a length passes 262,144 (flashmla_sparse.py)."""
    dsv32, rule = load_model("dsv32"), load_engine("vllm").workspace
    assert rule is not None
    axes = {"tp": (1, 8), "max_model_len": (4096, 262_144, 262_145), "max_num_seqs": (16, 256), "block_size": (64,)}
    rows = rows_of("workspace", Setting(model=dsv32, layout=BF16, rule=rule), **axes)
    assert len(rows) == 12
    for row in rows:
        point = {name: row[name] for name in axes}
        expected = workspace_cost(DSV3, cache_bytes_per_token=78_324, rule=rule, indexer=dsv32.indexer, **point)
        assert row == {name: getattr(expected, name) for name in row}
    found = {(row["max_model_len"], row["max_num_seqs"]): row for row in rows}
    assert found[4096, 16]["rows"] == 16 * 2048
    # 5 and 40 lengths up to 262,144, then 2 and 16: rows of 1,152 B, keys of 132 B
    assert found[262_144, 16]["sparse_prefill_bytes"] == 5 * 262_144 * 1152
    assert found[262_145, 16]["sparse_prefill_bytes"] == 2 * 262_145 * 1152
    assert found[262_145, 16]["indexer_buffer_bytes"] == 16 * 262_145 * 132


def test_tp_that_does_not_divide_is_refused() -> None:
    with pytest.raises(InputError, match="TP 3 does not divide the 128 heads"):
        check_grid(SWEEPS["flops"], DSV3_61, flops_axes(tp=(1, 3)))


def test_empty_grid_is_refused() -> None:
    with pytest.raises(InputError, match="more queries than context"):
        check_grid(SWEEPS["flops"], DSV3_61, flops_axes(queries=(5, 6), context=(4, 3)))


def test_too_many_points_are_refused_with_their_count() -> None:
    with pytest.raises(InputError, match="110,000,000 points; at most 100,000,000"):
        check_grid(
            SWEEPS["flops"], DSV3_61, flops_axes(queries=tuple(range(1, 11_001)), context=tuple(range(1, 10_001)))
        )


def test_counts_beyond_int64_are_refused() -> None:
    huge = 1 << 30
    with pytest.raises(InputError, match=r"absorbed\.flop is .* more than 2\*\*63 - 1"):
        check_grid(SWEEPS["flops"], DSV3_61, flops_axes(batch=(1, huge), queries=(1, huge), context=(huge,)))
    with pytest.raises(InputError, match="cluster_total_bytes"):
        check_grid(
            SWEEPS["cache"], DSV3_61, {"tp": (1, 128), "batch": (1 << 20,), "context": (1 << 20,), "block_size": (64,)}
        )


def test_largest_count_that_fits_is_exact() -> None:
    """The totals over layers reach past 2**62 here and stay exact."""
    setting = replace(DSV3_61, ceilings=H200)
    axes = flops_axes(batch=(1 << 6,), queries=(1 << 14,), context=(3 << 17,))
    (row,) = rows_of("flops", setting, **axes)
    q, s = 1 << 14, 3 << 17
    pairs = q * (s - q) + q * (q + 1) // 2
    assert row["absorbed.total_flop"] == 61 * 64 * (33_554_432 * q + 278_528 * pairs)
    assert row["naive.total_flop"] == 61 * 64 * (33_554_432 * s + 81_920 * pairs)
    assert row["absorbed.total_flop"] > 2**62
    assert_scalar(setting, row)


def test_refusal_is_exact_at_the_edge() -> None:
    """A query axis that reaches past the context is judged by its largest query that is kept."""
    axes = flops_axes(batch=(1 << 6,), queries=(1 << 14, 1 << 30), context=(3 << 17,))
    check_grid(SWEEPS["flops"], DSV3_61, axes)
