"""The verdict: what fails it, what does not, and which rows the estimate is judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mla_calc.validate.compare import compare
from mla_calc.validate.predicted import Predict, Prediction
from mla_calc.validate.record import EVERY_CELL, Check, Row, Skipped
from mla_calc.validate.recorded import Fill, Recorded, read_recording
from mla_calc.validate.verdict import Verdict, judge
from tests.validate.runs import a_row, csv_file, recording


def off_by(*errors: float, kernel: str | None = None, held_out: tuple[bool, ...] = ()) -> Predict:
    """Estimates that miss the measured time by these fractions, row after row."""
    left = list(enumerate(errors))

    def predict(item: Recorded) -> Prediction | None:
        if not left:
            return None
        index, error = left.pop(0)
        return Prediction(
            time_s=item.row.time_us / 1e6 * (1 + error),
            constant_s=0.0,
            memory_s=0.0,
            compute_s=0.0,
            kernel=kernel or item.row.kernel,
            held_out=held_out[index] if held_out else None,
        )

    return predict


def verdict(rows: list[Row], predict: Predict = lambda _: None, **changes: Any) -> Verdict:
    return judge(compare(recording(*rows, **changes), predict))


def test_a_csv_without_an_estimate_and_checks_passes_and_says_so(tmp_path: Path) -> None:
    rows = read_recording(csv_file(tmp_path, "h200,hopper,bf16,128,32,1,4096,100"), Fill())
    found = judge(compare(rows, lambda _: None))
    assert (found.passed, found.exit_code) == (True, 0)
    text = "; ".join(found.reasons)
    for words in ("no measurement is below", "correctness is not recorded", "none is judged"):
        assert words in text


def test_a_row_below_the_bound_fails_it() -> None:
    found = verdict([a_row(), a_row(time_us=1.0)])
    assert (found.passed, found.exit_code) == (False, 1)
    assert "1 measurement of 2 rows below the datasheet bound" in found.reasons


def test_a_wrong_kernel_fails_it_and_is_named() -> None:
    wrong = Check(kernel="small", case="c", relative_error=None, tolerance=3e-3, correct=False)
    right = Check(kernel="hopper", case="c", relative_error=1e-3, tolerance=3e-3, correct=True)
    assert verdict([a_row()], checks=(right,)).passed
    found = verdict([a_row()], checks=(right, wrong))
    assert not found.passed
    assert "wrong results: small" in found.reasons


def test_a_run_fails_where_one_of_our_kernels_has_rows_and_no_check() -> None:
    found = verdict([a_row(), a_row(kernel="small")])  # hopper is checked
    assert (found.passed, found.exit_code) == (False, 1)
    assert "no check of results: small" in found.reasons
    assert verdict([a_row()]).passed
    found = verdict([a_row()], checks=())
    assert not found.passed
    assert "no check of results: hopper" in found.reasons


def test_a_run_fails_where_one_of_our_kernels_was_left_out_without_a_check() -> None:
    left_out = Skipped(kernel="tile64", case=EVERY_CELL, reason="its check could not be made")
    assert "no check of results: tile64" in verdict([a_row()], skipped=(left_out,)).reasons
    one_cell = Skipped(kernel="tile64", case="tile64 bf16 h=128", reason="out of memory")
    assert verdict([a_row()], skipped=(one_cell,)).passed
    naive = [a_row(kernel="naive", scope="naive", time_us=1e4)]
    found = verdict(naive, checks=(), skipped=(left_out,))  # no own kernel could be checked, and none has rows
    assert not found.passed


def test_what_is_wrong_and_what_is_unchecked_are_both_named() -> None:
    wrong = Check(kernel="small", case="c", relative_error=None, tolerance=3e-3, correct=False)
    found = verdict([a_row()], checks=(wrong,))
    assert "wrong results: small; no check of results: hopper" in found.reasons


def test_naive_rows_with_an_error_are_checked_in_their_cells() -> None:
    def naive(error: float | None) -> Row:
        return a_row(kernel="naive", scope="naive", time_us=1e4, relative_error=error)

    found = verdict([a_row(), naive(9e-3), naive(None)])
    assert found.passed
    assert "2 kernels right against float64" in found.reasons
    found = verdict([a_row(), naive(9e-3), naive(1.1e-2)])  # more than 1e-2
    assert not found.passed
    assert "wrong results: naive" in found.reasons
    assert "1 kernel right against float64; none recorded of naive" in verdict([a_row(), naive(None)]).reasons


def test_rows_with_launches_in_their_times_are_not_judged() -> None:
    rows = [a_row(), a_row(uncaptured="no CUDA graph (capture failed): launches are in the times")]
    found = verdict(rows, off_by(0.01, 0.9))
    assert found.passed
    assert any("over 1 decode row:" in reason for reason in found.reasons)
    alone = verdict(rows[1:], off_by(0.9))
    assert alone.passed
    assert any("none is judged" in reason for reason in alone.reasons)
    # launches only add to a time: what is below a bound with them is below it
    assert not verdict([a_row(), a_row(time_us=1.0, uncaptured="no CUDA graph")]).passed


@pytest.mark.parametrize(
    ("errors", "passed"),
    [
        ((0.05, -0.05, 0.05), True),
        ((0.04, 0.051, 0.06), False),  # median over 5 %
        ((0.01,) * 8 + (0.11, 0.13), True),  # 90th percentile 11.2 %
        ((0.01,) * 8 + (0.125, 0.13), False),  # 12.55 %
    ],
)
def test_the_tolerances_of_the_estimate(errors: tuple[float, ...], passed: bool) -> None:
    assert verdict([a_row()] * len(errors), off_by(*errors)).passed is passed


def test_only_decode_rows_are_judged() -> None:
    others = [a_row(queries=5, time_us=1e4), a_row(scope="absorbed", time_us=1e4)]
    found = verdict([a_row(), a_row(queries=4, time_us=1e4), *others], off_by(0.01, 0.01, 9.0, 9.0))
    assert found.passed
    assert any("over 2 decode rows" in reason for reason in found.reasons)


def test_only_rows_that_the_fit_did_not_see_are_judged() -> None:
    rows = [a_row()] * 4
    found = verdict(rows, off_by(0.0, 0.0, 0.0, 0.5, held_out=(False, False, False, True)))
    assert not found.passed
    assert any("1 held-out decode row:" in reason for reason in found.reasons)
    assert verdict(rows, off_by(9.0, 9.0, 9.0, 0.01, held_out=(False, False, False, True))).passed


def test_rows_that_the_fit_was_made_from_are_not_judged() -> None:
    """A fit that kept nothing out says nothing about itself, good or bad."""
    found = verdict([a_row()] * 2, off_by(0.0, 9.0, held_out=(False, False)))
    assert found.passed
    assert any("one that its fit was made from: none is judged" in reason for reason in found.reasons)


def test_an_estimate_by_another_kernel_is_not_judged() -> None:
    assert verdict([a_row(kernel="flashmla")], off_by(0.9, kernel="hopper")).passed


def test_every_tolerance_has_a_reason() -> None:
    found = verdict([a_row()])
    assert [item.quantity for item in found.tolerances] == [
        "bound_violations",
        "incorrect_or_unchecked_kernels",
        "decode_median_ape",
        "decode_p90_ape",
    ]
    assert [item.limit for item in found.tolerances] == [0, 0, 0.05, 0.12]
    assert all(item.why for item in found.tolerances)
