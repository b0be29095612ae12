"""Both paths for a row, regret, and the batch's best assignment, counted by hand and by trying them all."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mla_calc.costs.paths import PATHS
from mla_calc.engines.batch import Decision, Row
from mla_calc.engines.pricing import Setting, as_run_kernels, price_batch, price_rows
from mla_calc.hardware.roofline import Ceilings
from tests.shapes import DSV3, H100, brute_pairs, kernel_table, scaled_time

ABSORBED, MHA = Decision("absorbed", "x"), Decision("mha", "y")


def setting(ceilings: Ceilings | None = H100, **more: object) -> Setting:
    plan = {"mla": DSV3, "layers": 61, "row_bytes": 1152, "tp": 8, "ceilings": ceilings, "paths": PATHS} | more
    return Setting(**plan)  # type: ignore[arg-type]


def by_hand(row: Row, path: str, weights: bool = False) -> float:
    """A row's bound from the table of docs/cost-model.md, section 5, written afresh in tests/shapes.py."""
    pairs = brute_pairs(row.queries, row.context, True)
    kernels = kernel_table(DSV3, row.queries, row.context, pairs, row=1152, b=1, t=8)[path]
    # 16 heads: W_UK and W_UV are 16 x 128 x 512 values each
    held = {"q_fold": 16 * 128 * 512 * 2, "v_up": 16 * 128 * 512 * 2, "up_proj": 2 * 16 * 128 * 512 * 2}
    light = [(name, flop, moved - (0 if weights else held.get(name, 0))) for name, flop, moved in kernels]
    return float(Fraction(scaled_time(light, H100), H100.flop_per_s * H100.bytes_per_s))


@pytest.mark.parametrize("row", [Row(1, 4096), Row(100, 4096), Row(512, 100_000), Row(4096, 0), Row(1, 0)], ids=str)
def test_a_row_without_weights(row: Row) -> None:
    cost = price_rows([row], [ABSORBED], setting())[0]
    assert cost.absorbed_bound_s == pytest.approx(by_hand(row, "absorbed"), rel=1e-12)
    assert cost.naive_bound_s == pytest.approx(by_hand(row, "naive"), rel=1e-12)
    least = min(by_hand(row, "absorbed"), by_hand(row, "naive"))
    assert cost.regret_s == pytest.approx(by_hand(row, "absorbed") - least, rel=1e-9, abs=1e-18)


def test_weights_are_added_once_for_each_path_used() -> None:
    rows = [Row(1, 4096)] * 3 + [Row(600, 9000)]
    at = setting()
    mixed = price_batch(price_rows(rows, [ABSORBED] * 3 + [MHA], at), at)
    one = price_batch(price_rows(rows, [ABSORBED] * 4, at), at)
    # either path's weights on a rank: 2 x 16 x 128 x 512 values of 2 bytes
    weights = 2 * 16 * 128 * 512 * 2
    light = 3 * by_hand(rows[0], "absorbed")
    expected = light + by_hand(rows[3], "naive") + 2 * weights / H100.bytes_per_s
    assert mixed.chosen_bound_s == pytest.approx(expected, rel=1e-12)
    assert one.chosen_bound_s == pytest.approx(
        light + by_hand(rows[3], "absorbed") + weights / H100.bytes_per_s, rel=1e-12
    )
    assert (mixed.absorbed_rows, mixed.naive_rows) == (3, 1)


@given(st.lists(st.tuples(st.integers(1, 700), st.integers(0, 20_000)), min_size=1, max_size=6), st.data())
def test_the_best_assignment_is_the_best_of_all(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows, at = [Row(*pair) for pair in pairs], setting()
    chosen = [data.draw(st.sampled_from([ABSORBED, MHA])) for _ in rows]
    batch = price_batch(price_rows(rows, chosen, at), at)
    tried = [
        price_batch(price_rows(rows, list(decisions), at), at).chosen_bound_s
        for decisions in product([ABSORBED, MHA], repeat=len(rows))
    ]
    assert batch.best_bound_s == pytest.approx(min(bound for bound in tried if bound is not None), rel=1e-12)
    assert batch.regret_s is not None
    assert batch.regret_s >= 0
    assert batch.total_regret_s == pytest.approx(61 * batch.regret_s)


def test_as_run_extras_by_hand() -> None:
    # 100 queries over 4,096 cached rows, 16 heads, 2 chunks; 2 bytes a value
    kernels = {kernel.name: kernel.bytes for kernel in as_run_kernels(DSV3, Row(100, 4096), 8, 2)}
    assert kernels == {
        "gather": 2 * 4096 * 576 * 2,
        "assemble_k": 2 * 4196 * 16 * 192 * 2,
        "merge": 3 * 2 * 100 * 16 * 128 * 2,
    }
    cold = {kernel.name: kernel.bytes for kernel in as_run_kernels(DSV3, Row(100, 0), 8, 2)}
    assert (cold["gather"], cold["merge"]) == (0, 0)


def test_as_run_never_makes_the_naive_path_cheaper() -> None:
    row = Row(100, 4096)
    plain = price_rows([row], [MHA], setting())[0]
    run = price_rows([row], [MHA], setting(as_run=True))[0]
    assert run.naive_bound_s is not None
    assert plain.naive_bound_s is not None
    assert run.naive_bound_s > plain.naive_bound_s
    assert run.absorbed_bound_s == plain.absorbed_bound_s


def test_without_a_gpu_there_is_no_time() -> None:
    at = setting(ceilings=None)
    cost = price_rows([Row(1, 10)], [ABSORBED], at)
    batch = price_batch(cost, at)
    assert (cost[0].regret_s, cost[0].better, batch.chosen_bound_s, batch.regret_s) == (None, None, None, None)
    assert batch.chosen_bytes > 0
