"""Both paths for a row, regret, and the batch's best assignment, counted by hand and by trying them all."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.costs.paths import PATHS
from mla_calc.engines.batch import Decision, Row
from mla_calc.engines.pricing import Setting, as_run_kernels, price_batch, price_rows, tabulate
from mla_calc.hardware.roofline import Ceilings
from tests.shapes import DSV3, H100, brute_pairs, kernel_table, scaled_time

ABSORBED, MHA = Decision("absorbed", "x"), Decision("mha", "y")
HELD = {"q_fold": 16 * 128 * 512 * 2, "v_up": 16 * 128 * 512 * 2, "up_proj": 2 * 16 * 128 * 512 * 2}
"""Bytes of weights at TP 8, 16 heads: W_UK and W_UV are 16 x 128 x 512 values each."""


def setting(ceilings: Ceilings | None = H100, **more: object) -> Setting:
    plan = {"mla": DSV3, "layers": 61, "row_bytes": 1152, "tp": 8, "ceilings": ceilings, "paths": PATHS} | more
    return Setting(**plan)  # type: ignore[arg-type]


def by_hand(row: Row, path: str, weights: bool = False) -> float:
    """A row's bound from the table of docs/cost-model.md, section 5, written afresh in tests/shapes.py."""
    pairs = brute_pairs(row.queries, row.context, True)
    kernels = kernel_table(DSV3, row.queries, row.context, pairs, row=1152, b=1, t=8)[path]
    light = [(name, flop, moved - (0 if weights else HELD.get(name, 0))) for name, flop, moved in kernels]
    return float(Fraction(scaled_time(light, H100), H100.flop_per_s * H100.bytes_per_s))


@pytest.mark.parametrize("row", [Row(1, 4096), Row(100, 4096), Row(512, 100_000), Row(4096, 0), Row(1, 0)], ids=str)
def test_a_row_without_weights(row: Row) -> None:
    cost = price_rows(tabulate([row], setting()), [ABSORBED])[0]
    assert cost.absorbed_bound_s == pytest.approx(by_hand(row, "absorbed"), rel=1e-12)
    assert cost.naive_bound_s == pytest.approx(by_hand(row, "naive"), rel=1e-12)
    least = min(by_hand(row, "absorbed"), by_hand(row, "naive"))
    assert cost.regret_s == pytest.approx(by_hand(row, "absorbed") - least, rel=1e-9, abs=1e-18)


@cache
def counted_pairs(row: Row) -> int:
    return brute_pairs(row.queries, row.context, True)


def together(rows: list[Row], paths: list[str]) -> float:
    """A batch's bound by hand: FLOPs and bytes of each kernel summed over its rows, the weights once."""
    found = 0.0
    for path in ("absorbed", "naive"):
        sums: dict[str, list[int]] = {}
        for row in (row for row, taken in zip(rows, paths, strict=True) if taken == path):
            pairs = counted_pairs(row)
            for name, flop, moved in kernel_table(DSV3, row.queries, row.context, pairs, row=1152, b=1, t=8)[path]:
                first = name not in sums
                total = sums.setdefault(name, [0, 0])
                total[0] += flop
                total[1] += moved - (0 if first else HELD.get(name, 0))
        found += sum(max(flop / H100.flop_per_s, moved / H100.bytes_per_s) for flop, moved in sums.values())
    return found


def decisions_of(paths: list[str]) -> list[Decision]:
    return [ABSORBED if path == "absorbed" else MHA for path in paths]


def test_rows_share_the_kernels_of_their_path() -> None:
    rows, paths = [Row(1, 4096)] * 3 + [Row(600, 9000)], ["absorbed"] * 3 + ["naive"]
    batch = price_batch(tabulate(rows, setting()), decisions_of(paths))
    assert batch.chosen_bound_s == pytest.approx(together(rows, paths), rel=1e-12)
    assert (batch.absorbed_rows, batch.naive_rows, batch.queries) == (3, 1, 603)


@pytest.mark.parametrize("row", [Row(1, 4096), Row(100, 8191), Row(600, 9000)], ids=str)
@pytest.mark.parametrize(("decision", "path"), [(ABSORBED, "absorbed"), (MHA, "naive")])
def test_a_batch_of_one_row_has_the_bound_of_flops(row: Row, decision: Decision, path: str) -> None:
    batch = price_batch(tabulate([row], setting()), [decision])
    assert batch.chosen_bound_s == pytest.approx(by_hand(row, path, weights=True), rel=1e-12)


@given(st.lists(st.tuples(st.integers(1, 700), st.integers(0, 20_000)), min_size=1, max_size=4), st.data())
@settings(max_examples=30)
def test_the_best_split_is_no_worse_than_any_simple_one(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows = [Row(*pair) for pair in pairs]
    table = tabulate(rows, setting())
    chosen = [data.draw(st.sampled_from(["absorbed", "naive"])) for _ in rows]
    batch = price_batch(table, decisions_of(chosen))
    assert batch.best_bound_s is not None
    assert batch.regret_s is not None
    each = ["absorbed" if by_hand(row, "absorbed") < by_hand(row, "naive") else "naive" for row in rows]
    simple = [together(rows, paths) for paths in (chosen, each, ["absorbed"] * len(rows), ["naive"] * len(rows))]
    tried = [together(rows, list(paths)) for paths in product(["absorbed", "naive"], repeat=len(rows))]
    assert batch.best_bound_s <= min(simple) * (1 + 1e-12)
    assert batch.best_bound_s >= min(tried) * (1 - 1e-12)
    assert batch.chosen_bound_s == pytest.approx(simple[0], rel=1e-12)
    assert batch.regret_s == pytest.approx(simple[0] - batch.best_bound_s, rel=1e-9, abs=1e-13 * simple[0])
    assert batch.total_regret_s == pytest.approx(61 * batch.regret_s)


@pytest.mark.parametrize(
    "kinds",
    [[(Row(1, 4096), 60)], [(Row(180, 4096), 50)], [(Row(300, 20_000), 7), (Row(40, 0), 9), (Row(1, 100_000), 5)]],
    ids=["short", "near the crossover", "three kinds"],
)
def test_the_best_split_of_rows_that_are_alike(kinds: list[tuple[Row, int]]) -> None:
    """Against every count of absorbed rows in the order of the gains, priced one by one."""
    kinds = sorted(kinds, key=lambda kind: by_hand(kind[0], "absorbed") - by_hand(kind[0], "naive"))
    rows = [row for row, count in kinds for _ in range(count)]
    tried = [together(rows, ["absorbed"] * k + ["naive"] * (len(rows) - k)) for k in range(len(rows) + 1)]
    shuffled = rows[1::2] + rows[::2]
    best = price_batch(tabulate(shuffled, setting()), [MHA] * len(rows)).best_bound_s
    assert best == pytest.approx(min(tried), rel=1e-12)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 900), st.integers(0, 30_000), st.integers(1, 9)), min_size=1, max_size=3),
    st.integers(10**13, 10**15),
)
def test_the_best_split_on_any_ridge(drawn: list[tuple[int, int, int]], peak: int) -> None:
    """The least over counts may lie inside of a kind of rows: every count is tried here, with the tool's own prices."""
    at = setting(Ceilings(peak, 3_350_000_000_000))
    counts = {Row(queries, prefix): count for queries, prefix, count in drawn}
    rows = [row for row, count in counts.items() for _ in range(count)]
    table = tabulate(rows, at)
    alone = {row: price_rows(tabulate([row], at), [ABSORBED])[0] for row in counts}
    order = sorted(rows, key=lambda row: (alone[row].absorbed_bound_s or 0) - (alone[row].naive_bound_s or 0))
    tried = [
        price_batch(tabulate(order, at), [ABSORBED] * k + [MHA] * (len(rows) - k)).chosen_bound_s or 0
        for k in range(len(rows) + 1)
    ]
    assert price_batch(table, [MHA] * len(rows)).best_bound_s == pytest.approx(min(tried), rel=1e-12)


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
    plain = price_rows(tabulate([row], setting()), [MHA])[0]
    run = price_rows(tabulate([row], setting(as_run=True)), [MHA])[0]
    assert run.naive_bound_s is not None
    assert plain.naive_bound_s is not None
    assert run.naive_bound_s > plain.naive_bound_s
    assert run.absorbed_bound_s == plain.absorbed_bound_s


def test_without_a_gpu_there_is_no_time() -> None:
    at = setting(ceilings=None)
    table = tabulate([Row(1, 10)], at)
    cost, batch = price_rows(table, [ABSORBED]), price_batch(table, [ABSORBED])
    assert (cost[0].regret_s, cost[0].better, batch.chosen_bound_s, batch.regret_s) == (None, None, None, None)
    assert batch.chosen_bytes > 0
