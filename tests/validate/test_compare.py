"""The comparison: bounds worked out by hand, what is below them, and the errors of estimates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mla_calc.validate.compare import CACHE_HITS, L2_UNKNOWN, NOT_COMPUTED, NOT_MOVED, Compared, compare, errors_over
from mla_calc.validate.predicted import Prediction
from mla_calc.validate.record import Check, MeasuredCeilings, Row
from mla_calc.validate.recorded import Fill, Recorded, read_recording
from tests.validate.runs import (
    H200_BANDWIDTH,
    H200_FP8_PEAK,
    H200_PEAK,
    a_row,
    csv_file,
    recording,
)


def nothing(_: Recorded) -> None:
    """No estimate."""


def compared(row: Row, **changes: Any) -> Compared:
    (found,) = compare(recording(row, **changes), nothing).rows
    return found


def attention(row: Row) -> tuple[int, int]:
    """FLOP and bytes of DeepSeek-V3's absorbed attention, each query counted by itself."""
    met = sum(row.context - row.queries + token for token in range(1, row.queries + 1))
    row_bytes = {"bf16": 576 * 2, "fp8": 576}[row.cache]
    keys, tokens = row.batch * row.context, row.batch * row.queries
    return 2 * row.batch * met * row.heads * (576 + 512), keys * row_bytes + tokens * row.heads * (576 + 512) * 2


@given(
    heads=st.integers(1, 128),
    batch=st.integers(1, 300),
    queries=st.integers(1, 64),
    prefix=st.integers(0, 10_000),
    cache=st.sampled_from(["bf16", "fp8"]),
)
def test_the_attention_kernel_alone(heads: int, batch: int, queries: int, prefix: int, cache: str) -> None:
    row = a_row(heads=heads, batch=batch, queries=queries, context=prefix + queries, cache=cache)
    found = compared(row)
    assert (found.flop, found.bytes) == attention(row)
    compute, memory = found.flop / H200_PEAK, found.bytes / H200_BANDWIDTH
    assert found.bound_s == pytest.approx(max(compute, memory), rel=1e-12)
    assert found.binds == ("compute" if compute >= memory else "memory")


def test_whole_paths_are_sums_over_their_kernels() -> None:
    h, b, q, s = 16, 2, 8, 1024
    absorbed = compared(a_row(scope="absorbed", heads=h, batch=b, queries=q, context=s))
    core, moved = attention(a_row(heads=h, batch=b, queries=q, context=s))
    fold = 2 * b * q * h * 128 * 512
    fold_bytes = 2 * (h * 128 * 512 + b * q * h * (128 + 512))
    assert (absorbed.flop, absorbed.bytes) == (core + 2 * fold, moved + 2 * fold_bytes)
    parts = [(core, moved), (fold, fold_bytes), (fold, fold_bytes)]
    assert absorbed.bound_s == pytest.approx(sum(max(f / H200_PEAK, m / H200_BANDWIDTH) for f, m in parts))

    naive = compared(a_row(kernel="naive", scope="naive", heads=h, batch=b, queries=q, context=s))
    expanded = 2 * b * s * h * 320
    up = (2 * b * s * 512 * h * 256, b * s * 1152 + 2 * 512 * h * 256 + expanded)
    met = sum(s - q + token for token in range(1, q + 1))
    core_naive = (2 * b * met * h * 320, expanded + 2 * b * q * h * 320)
    assert (naive.flop, naive.bytes) == (up[0] + core_naive[0], up[1] + core_naive[1])
    assert naive.bound_s == pytest.approx(sum(max(f / H200_PEAK, m / H200_BANDWIDTH) for f, m in (up, core_naive)))


def test_fp8_rows_of_an_unknown_kernel_are_bound_by_the_fp8_peak(tmp_path: Any) -> None:
    path = csv_file(tmp_path, "h200,flashmla,fp8,128,128,1,4096,900")
    (theirs,) = compare(read_recording(path, Fill()), nothing).rows
    # 2 * 128 * 4096 * 128 * 1088 FLOP; both are bound by compute
    flop = 2 * 128 * 4096 * 128 * 1088
    assert theirs.bound_s == pytest.approx(flop / H200_FP8_PEAK)
    # a run says that its products were bf16 ones
    assert compared(a_row(batch=128, cache="fp8", time_us=900.0)).bound_s == pytest.approx(flop / H200_PEAK)


def test_the_measured_ceilings_are_of_the_same_products() -> None:
    row = a_row(heads=16)
    _, moved = attention(row)
    # bandwidth binds: the higher of copy (4.28) and read (4.51)
    assert compared(row).measured_bound_s == pytest.approx(moved / 4.51e12)
    flop, _ = attention(a_row(heads=128, batch=128))
    assert compared(a_row(batch=128)).measured_bound_s == pytest.approx(flop / 7.69e14)
    assert compared(a_row(dtype="fp16")).measured_bound_s is None
    assert compared(row, ceilings=MeasuredCeilings(read_bytes_per_s=4.5e12)).measured_bound_s is None
    assert compared(row, ceilings=MeasuredCeilings(gemm_flop_per_s={"bf16": 7e14})).measured_bound_s is None


def bound_us(row: Row) -> float:
    flop, moved = attention(row)
    return 1e6 * max(flop / H200_PEAK, moved / H200_BANDWIDTH)


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        (a_row(heads=16, batch=1), CACHE_HITS),  # 4.8 MB, of an L2 of 62.9 MB
        (a_row(heads=16, batch=128), NOT_MOVED),  # 604 MB
        (a_row(heads=128, batch=128, queries=2), NOT_COMPUTED),
    ],
)
def test_what_is_below_the_datasheet_bound_is_named(row: Row, cause: str) -> None:
    bound = bound_us(row)
    rows = [a_row(kernel=row.kernel), *(a_row(**shape(row), time_us=bound * share) for share in (1.01, 1.0, 0.99, 0.5))]
    found = compare(recording(*rows), nothing)
    assert [entry.row for entry in found.violations] == [3, 4]
    assert {entry.cause for entry in found.violations} == {cause}
    assert found.violations[0].bound_s == pytest.approx(bound / 1e6)


def shape(row: Row) -> dict[str, int]:
    return {name: getattr(row, name) for name in ("heads", "batch", "queries", "context")}


def test_the_l2_is_the_runs_or_the_presets_or_not_known(tmp_path: Any) -> None:
    row = a_row(heads=16, batch=8, time_us=0.1)  # 38.5 MB
    assert [found.cause for found in compare(recording(row), nothing).violations] == [CACHE_HITS]
    # 60 MiB by the preset where the file does not say
    path = csv_file(tmp_path, "h200,k,bf16,16,8,1,4096,0.1", "h200,k,bf16,16,16,1,4096,0.1")
    assert [found.cause for found in compare(read_recording(path, Fill()), nothing).violations] == [
        CACHE_HITS,
        NOT_MOVED,
    ]
    path = csv_file(tmp_path, "tpu-v5p,k,bf16,16,8,1,4096,0.1")
    assert [found.cause for found in compare(read_recording(path, Fill()), nothing).violations] == [L2_UNKNOWN]


def test_below_the_measured_ceilings_is_no_violation() -> None:
    row = a_row(heads=16, batch=128)
    _, moved = attention(row)
    between = 1e6 * moved / 4.65e12  # between the datasheet's 4.8 and the measured 4.51
    found = compare(recording(a_row(heads=16, batch=128, time_us=between)), nothing)
    assert found.violations == ()
    assert [entry.row for entry in found.below_measured] == [0]


def test_summaries_are_by_kernel_scope_and_cache() -> None:
    bound = bound_us(a_row())
    times = [3.0, 1.5, 2.0]
    rows = [a_row(time_us=bound * share) for share in times] + [a_row(kernel="small"), a_row(cache="fp8")]
    found = compare(recording(*rows), nothing).summaries
    assert [(entry.kernel, entry.cache, entry.count) for entry in found] == [
        ("hopper", "bf16", 3),
        ("small", "bf16", 1),
        ("hopper", "fp8", 1),
    ]
    first = found[0]
    assert (first.least_over_bound, first.median_over_bound, first.most_over_bound) == pytest.approx((1.5, 2.0, 3.0))


def test_kernels_are_judged_by_their_worst_check() -> None:
    def check(kernel: str, error: float | None, correct: bool) -> Check:
        return Check(kernel=kernel, case="c", relative_error=error, tolerance=3e-3, correct=correct)

    checks = (
        check("hopper", 1e-3, True),
        check("hopper", 2e-3, True),
        check("small", 1e-3, True),
        check("small", None, False),
        check("tile64", 0.5, False),
    )
    found = {entry.name: entry for entry in compare(recording(a_row(kernel="naive"), checks=checks), nothing).kernels}
    assert {name: (entry.correct, entry.relative_error) for name, entry in found.items()} == {
        "hopper": (True, 2e-3),
        "small": (False, 1e-3),
        "tile64": (False, 0.5),
        "naive": (None, None),
    }


def by_share(constant_us: float = 0.0, **more: Any) -> Any:
    """Estimates of 110 us, of which ``constant_us`` do not grow."""

    def predict(item: Recorded) -> Prediction:
        rest = (110 - constant_us) / 1e6
        return Prediction(
            time_s=110e-6,
            constant_s=constant_us / 1e6,
            memory_s=rest,
            compute_s=0.0,
            kernel=more.get("kernel", item.row.kernel),
            held_out=more.get("held_out"),
        )

    return predict


def test_errors_are_fractions_of_the_measured_time() -> None:
    times = [100.0, 110.0, 55.0, 220.0, 88.0]
    found = compare(recording(*(a_row(time_us=time) for time in times)), by_share())
    # |110 - t| / t: 0.1, 0, 1, 0.5, 0.25
    assert found.estimate.count == 5
    assert found.estimate.median_ape == pytest.approx(0.25)
    assert found.estimate.mean_ape == pytest.approx(0.37)
    assert found.estimate.p90_ape == pytest.approx(0.8)  # 0.6 of the way from 0.5 to 1
    # strictly over 100 us: 110 and 220
    assert found.estimate_long.count == 2
    assert found.estimate_long.median_ape == pytest.approx(0.25)
    assert found.rows[0].estimate_s == pytest.approx(110e-6)


def test_errors_of_one_row_and_of_none() -> None:
    (row,) = compare(recording(a_row(time_us=100.0)), by_share()).rows
    single = errors_over([row])
    assert single
    assert (single.count, single.p90_ape) == (1, pytest.approx(0.1))
    found = compare(recording(a_row()), nothing)
    assert (found.estimate, found.estimate_long, found.held_out, found.summaries[0].estimate) == (None,) * 4


def test_rows_with_launches_in_their_times_are_compared_and_in_no_error() -> None:
    rows = [a_row(time_us=100.0), a_row(time_us=10_000.0, uncaptured="no CUDA graph")]
    found = compare(recording(*rows), by_share(held_out=True))
    assert [item.estimate_s for item in found.rows] == pytest.approx([110e-6] * 2)
    assert found.rows[1].bound_s > 0
    for errors in (found.estimate, found.held_out, found.by_regime["memory"], found.summaries[0].estimate):
        assert errors
        assert (errors.count, errors.median_ape) == (1, pytest.approx(0.1))
    assert found.estimate_long is None
    assert any("launches in their times: 1 row" in note for note in recording(*rows).notes)


def test_what_cells_dropped_is_summed_up() -> None:
    reasons = ["relative error 3e-02", "relative error 4e-02", "relative error 3e-02", "not available"]
    rows = [a_row(kernel="naive", scope="naive", dropped={"flash": reason}) for reason in reasons]
    rows.append(a_row(kernel="naive", scope="naive", dropped={"cudnn": "no engine"}))
    found = compare(recording(*rows), nothing).dropped
    assert [(item.kernel, item.implementation, item.cells) for item in found] == [
        ("naive", "cudnn", 1),
        ("naive", "flash", 4),
    ]
    assert found[1].reasons[0] == "relative error 3e-02"
    assert set(found[1].reasons) == set(reasons)


@pytest.mark.parametrize(("constant_us", "regime"), [(54.0, "memory"), (56.0, "latency")])
def test_the_regime_is_latency_where_the_constant_part_is_over_half(constant_us: float, regime: str) -> None:
    found = compare(recording(a_row()), by_share(constant_us))
    assert list(found.by_regime) == [regime]
    assert found.rows[0].regime == regime


def test_rows_without_an_estimate_have_no_regime() -> None:
    found = compare(recording(a_row()), nothing)
    assert (found.rows[0].regime, dict(found.by_regime), found.held_out) == (None, {}, None)


def test_held_out_rows_are_decode_rows_of_the_attention_kernel() -> None:
    rows = [a_row(), a_row(queries=4), a_row(queries=5), a_row(scope="absorbed")]
    found = compare(recording(*rows), by_share(held_out=True))
    assert found.held_out
    assert found.held_out.count == 2
    assert compare(recording(*rows), by_share(held_out=False)).held_out is None


def test_whose_calibration_an_estimate_is() -> None:
    rows = [a_row(kernel="hopper"), a_row(kernel="flashmla")]
    found = compare(recording(*rows), by_share(kernel="hopper"))
    assert found.calibrated == ("hopper",)
    assert dict(found.borrowed) == {"flashmla": "hopper"}
