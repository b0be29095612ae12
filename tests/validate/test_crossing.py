"""The measured crossover: made-up times whose crossing is known, and predictions by brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mla_calc.validate.crossing import Crossing, crossed_again, crossing_of, crossings, last_crossing_of, pairs_of
from mla_calc.validate.record import Row
from tests.validate.runs import H200_BANDWIDTH, H200_PEAK, a_row, recorded

QUERIES = (1, 16, 64, 256, 1024)


def path_rows(times: dict[str, dict[int, float]], spread: float | None = None, **shape: Any) -> list[Row]:
    """Rows of both paths: kernel -> Q -> us; naive ones by their name, absorbed ones by any other."""
    return [
        a_row(
            kernel=kernel,
            scope="naive" if kernel.startswith("naive") else "absorbed",
            heads=shape.get("heads", 16),
            batch=shape.get("batch", 1),
            context=shape.get("context", 4096),
            cache=shape.get("cache", "bf16"),
            dtype=shape.get("dtype", "bf16"),
            queries=queries,
            time_us=time,
            p10_us=None if spread is None else time / spread,
            p90_us=None if spread is None else time * spread,
        )
        for kernel, by_queries in times.items()
        for queries, time in by_queries.items()
    ]


def growing(at: float, queries: tuple[int, ...] = QUERIES) -> dict[str, dict[int, float]]:
    """An absorbed path that takes 100 us times Q, and a naive one as fast at Q = ``at``, growing as its root."""
    return {
        "hopper": {q: 100.0 * q for q in queries},
        "naive": {q: 100.0 * at * (q / at) ** 0.5 for q in queries},
    }


def only(rows: list[Row]) -> Crossing:
    (found,) = crossings(recorded(*rows))
    return found


def test_crossovers_are_in_order_whatever_the_order_of_measurement() -> None:
    times = {**growing(64.0), "naive_in_place": growing(32.0)["naive"]}
    shapes = [(128, 4096, 1), (16, 4096, 2), (16, 65536, 1), (16, 4096, 1)]
    rows = [
        row for heads, context, batch in shapes for row in path_rows(times, heads=heads, context=context, batch=batch)
    ]
    found = [(item.naive, item.heads, item.context, item.batch) for item in crossings(recorded(*rows))]
    assert found == [
        (naive, *shape)
        for naive in ("naive", "naive_in_place")
        for shape in ((16, 4096, 1), (16, 4096, 2), (16, 65536, 1), (128, 4096, 1))
    ]


@pytest.mark.parametrize("at", [1.5, 20.0, 64.0, 171.0, 1000.0])
def test_a_power_law_crosses_where_it_must(at: float) -> None:
    found = only(path_rows(growing(at)))
    # the log of the ratio is linear in log Q, so that the interpolation is exact
    assert found.measured_queries == pytest.approx(at)
    assert (found.low, found.high) == (None, None)
    assert "no spread" in (found.reason or "")


def test_the_spread_is_of_both_paths() -> None:
    found = only(path_rows(growing(64.0), spread=1.1))
    # naive faster by 1.1 and absorbed slower by 1.1: Q / 64 = (1 / 1.21) ** 2
    assert found.measured_queries == pytest.approx(64.0)
    assert found.low == pytest.approx(64.0 / 1.21**2)
    assert found.high == pytest.approx(64.0 * 1.21**2)
    assert found.reason is None


def test_a_spread_beyond_the_measured_range_is_told() -> None:
    found = only(path_rows(growing(1.1), spread=1.1))
    assert found.low is None
    assert found.high is not None
    assert "below" in (found.reason or "")
    found = only(path_rows(growing(1000.0), spread=1.1))
    assert (found.low is not None, found.high) == (True, None)
    assert "above" in (found.reason or "")


@pytest.mark.parametrize(
    ("at", "queries", "words"),
    [
        (5000.0, QUERIES, ["absorbed is faster", "1,024", "above"]),
        (10.0, (16, 64), ["naive is faster", "16", "below 16"]),
        (0.5, QUERIES, ["naive is faster", "first query"]),
    ],
)
def test_no_crossover_in_the_measured_range(at: float, queries: tuple[int, ...], words: list[str]) -> None:
    found = only(path_rows(growing(at, queries)))
    assert found.measured_queries is None
    for word in words:
        assert word in (found.reason or "")


def test_only_queries_measured_on_both_paths_count() -> None:
    times = growing(64.0)
    del times["hopper"][64]
    found = only(path_rows(times))
    assert found.queries == (1, 16, 256, 1024)
    assert found.measured_queries == pytest.approx(64.0)
    found = only(path_rows({"hopper": {1: 10.0}, "naive": {2: 20.0}}))
    assert (found.queries, found.measured_queries, found.reason) == ((), None, "no Q was measured on both paths")


def test_the_fastest_absorbed_path_counts_and_is_named() -> None:
    times = growing(64.0) | {"small": {q: 250.0 if q == 1 else 1e6 for q in QUERIES}}
    times["hopper"][1] = 300.0
    found = only(path_rows(times))
    assert found.absorbed == ("small", "hopper")
    assert found.measured_queries == pytest.approx(64.0)


def test_the_first_of_several_crossings_is_taken() -> None:
    # naive is faster at 4 and 16, and at 256 again
    points = [(1, 0.5), (4, -0.5), (16, -0.1), (64, 0.2), (256, -0.3)]
    assert crossing_of(points) == pytest.approx(2.0)


def test_crossings_above_the_first_are_told() -> None:
    points = [(1, 0.5), (4, -0.5), (16, -0.1), (64, 0.2), (256, -0.3)]
    assert crossed_again(points) == (64,)
    # from 64 to 256, 0.2 of 0.5 of the way over log Q
    assert last_crossing_of(points) == pytest.approx(64 * 4**0.4)
    assert crossed_again(points[:3]) == ()
    assert (crossed_again(points[:4]), last_crossing_of(points[:4])) == ((64,), None)
    # as fast is not faster; a path that begins faster crosses again too
    assert crossed_again([(1, -0.5), (4, 0.0), (16, 0.3), (64, -0.1)]) == (4, 16)


@pytest.mark.parametrize(
    ("slower_at", "again", "last"),
    [((), (), None), ((256,), (256,), 256 * 4**0.5), ((256, 1024), (256, 1024), None)],
)
def test_a_crossover_says_where_the_paths_crossed_again(
    slower_at: tuple[int, ...], again: tuple[int, ...], last: float | None
) -> None:
    """Naive half as fast as absorbed at 1 and 16 queries, twice as fast from 64 on, but for some."""
    slow = {1, 16, *slower_at}
    times = {"hopper": dict.fromkeys(QUERIES, 100.0), "naive": {q: 200.0 if q in slow else 50.0 for q in QUERIES}}
    found = only(path_rows(times))
    assert found.measured_queries == pytest.approx(32.0)  # the geometric mean of 16 and 64
    assert found.crossed_again == again
    assert found.last_queries == (None if last is None else pytest.approx(last))


def test_equal_times_are_the_crossing_itself() -> None:
    assert crossing_of([(1, 0.5), (8, 0.0), (64, -0.5)]) == pytest.approx(8.0)
    assert crossing_of([(1, 0.0), (8, 0.0)]) is None


def test_shapes_caches_and_naive_paths_are_apart() -> None:
    both = growing(64.0) | {"naive_in_place": growing(20.0)["naive"]}
    rows = path_rows(both) + path_rows(growing(30.0), heads=32) + path_rows(growing(40.0), context=8192)
    rows += path_rows(growing(50.0), batch=2) + path_rows(growing(60.0), cache="fp8")
    found = {(c.heads, c.context, c.batch, c.cache, c.naive): c.measured_queries for c in crossings(recorded(*rows))}
    assert found == pytest.approx(
        {
            (16, 4096, 1, "bf16", "naive"): 64.0,
            (16, 4096, 1, "bf16", "naive_in_place"): 20.0,
            (32, 4096, 1, "bf16", "naive"): 30.0,
            (16, 8192, 1, "bf16", "naive"): 40.0,
            (16, 4096, 2, "bf16", "naive"): 50.0,
            (16, 4096, 1, "fp8", "naive"): 60.0,
        }
    )


def test_products_of_two_dtypes_never_meet() -> None:
    """Rows of fp16 and of bf16 products have the same cache layout, bf16."""
    rows = path_rows(growing(64.0)) + path_rows(growing(30.0), dtype="fp16")
    assert {item.dtype: item.measured_queries for item in crossings(recorded(*rows))} == pytest.approx(
        {"bf16": 64.0, "fp16": 30.0}
    )
    apart = path_rows({"hopper": growing(64.0)["hopper"]}) + path_rows({"naive": {1: 2.0}}, dtype="fp16")
    assert crossings(recorded(*apart)) == ()
    assert pairs_of(apart) == ()


def test_rows_with_launches_in_their_times_are_not_compared() -> None:
    fast = a_row(kernel="small", scope="absorbed", heads=16, batch=1, queries=256, time_us=1.0)
    rows = [*path_rows(growing(64.0)), replace(fast, uncaptured="no CUDA graph (RuntimeError)")]
    found = only(rows)
    assert (found.absorbed, found.measured_queries) == (("hopper",), pytest.approx(64.0))
    assert only([*path_rows(growing(64.0)), fast]).measured_queries is not None
    assert "small" in only([*path_rows(growing(64.0)), fast]).absorbed


def test_attention_rows_and_lone_paths_give_none() -> None:
    rows = [a_row(queries=q) for q in QUERIES] + path_rows({"hopper": growing(64.0)["hopper"]})
    assert crossings(recorded(*rows)) == ()
    assert crossings(recorded(*path_rows({"naive": {1: 2.0}}))) == ()


def absorbed_cost(h: int, b: int, q: int, s: int) -> list[tuple[int, int]]:
    met = q * (s - q) + q * (q + 1) // 2
    fold = (2 * b * q * h * 128 * 512, 2 * (h * 128 * 512 + b * q * h * 640))
    return [fold, (2 * b * met * h * 1088, b * s * 1152 + 2 * b * q * h * 1088), fold]


def naive_cost(h: int, b: int, q: int, s: int) -> list[tuple[int, int]]:
    met = q * (s - q) + q * (q + 1) // 2
    expanded = 2 * b * s * h * 320
    up = (2 * b * s * 512 * h * 256, b * s * 1152 + 2 * 512 * h * 256 + expanded)
    return [up, (2 * b * met * h * 320, expanded + 2 * b * q * h * 320)]


def first(heads: int, batch: int, context: int, by_time: bool) -> int | None:
    """The smallest Q, tried one by one; in whole numbers, since both paths can take exactly the same time."""
    peak, bandwidth = round(H200_PEAK), round(H200_BANDWIDTH)

    def cost(kernels: list[tuple[int, int]]) -> int:
        if by_time:
            return sum(max(flop * bandwidth, moved * peak) for flop, moved in kernels)
        return sum(flop for flop, _ in kernels)

    shapes = ((heads, batch, queries, context) for queries in range(1, context + 1))
    return next((shape[2] for shape in shapes if cost(naive_cost(*shape)) < cost(absorbed_cost(*shape))), None)


@example(heads=1, batch=18, context=144)  # equal at Q = 45
@given(heads=st.sampled_from([1, 16, 48, 128]), batch=st.integers(1, 64), context=st.integers(1, 1500))
def test_the_predictions_are_those_of_brute_force(heads: int, batch: int, context: int) -> None:
    assume(context > 1 or batch < 8)
    times = {"hopper": {1: 1.0}, "naive": {1: 2.0}}
    found = only(path_rows(times, heads=heads, batch=batch, context=context))
    assert found.flop_queries == first(heads, batch, context, by_time=False)
    assert found.time_queries == first(heads, batch, context, by_time=True)


def test_a_long_context_is_predicted_as_the_chapter_has_it() -> None:
    found = only(path_rows({"hopper": {1: 1.0}, "naive": {1: 2.0}}, context=1 << 24))
    assert found.flop_queries == 171
