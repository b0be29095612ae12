"""Estimates of rows: whose calibration they are, what of them is constant, and which rows a fit left out."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from mla_calc.hardware.calibration import Calibration, Domain, Fit
from mla_calc.validate.estimate import is_held_out
from mla_calc.validate.predicted import Prediction, predictor
from mla_calc.validate.recorded import Recorded
from tests.validate.runs import H200_BANDWIDTH, H200_PEAK, a_row, recorded

WIDE = (1, 1 << 50)
RUN = "20261130T013000Z-h200"


def calibration(**changes: Any) -> Calibration:
    """Of the hopper kernel: 10 us, 60 % of the peak, 80 % of the bandwidth."""
    found = Calibration(
        path="absorbed",
        part="attention",
        kernel="hopper",
        dtype="bf16",
        cache="bf16",
        run=RUN,
        date=datetime.date(2026, 11, 30),
        t0_us=((1.0, 10.0),),
        compute=((1.0, 0.6),),
        memory=((1.0, 0.8),),
        domain=Domain(
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            heads=WIDE,
            batch=WIDE,
            queries=WIDE,
            context=WIDE,
            flop=WIDE,
            bytes=WIDE,
        ),
        fit=Fit(seed=7, holdout=0.5, rows=10, held_out=None),
    )
    return replace(found, **changes)


def item(*calibrations: Calibration, **changes: Any) -> Recorded:
    (found,) = recorded(a_row(**changes))
    return replace(found, gpu=replace(found.gpu, calibration=calibrations))


def expected(heads: int, cache_bytes: int = 1152) -> tuple[float, float]:
    """What compute and memory take of 32 requests of one query over 4096 keys, s."""
    flop = 2 * 32 * 4096 * heads * 1088
    moved = 32 * 4096 * cache_bytes + 32 * heads * 2176
    return flop / (0.6 * H200_PEAK), moved / (0.8 * H200_BANDWIDTH)


@pytest.mark.parametrize("heads", [16, 128])
def test_an_estimate_and_its_constant_part(heads: int) -> None:
    found = predictor(None, None)(item(calibration(), heads=heads))
    assert found
    assert found.kernel == "hopper"
    assert found.runs == (RUN,)
    assert found.constant_s == pytest.approx(10e-6)
    assert found.time_s == pytest.approx(10e-6 + max(expected(heads)))
    assert found.regime == ("compute" if expected(heads)[0] > expected(heads)[1] else "memory")


def test_a_small_call_is_latency() -> None:
    found = predictor(None, None)(item(calibration(), heads=16, batch=1, context=64))
    assert found
    assert found.regime == "latency"


def test_a_kernel_without_a_calibration_has_no_estimate_unless_asked() -> None:
    row = item(calibration(), kernel="flashmla")
    assert predictor(None, None)(row) is None
    asked = predictor("hopper", None)(row)
    assert asked
    assert asked.kernel == "hopper"
    own = predictor("small", None)(item(calibration(), calibration(kernel="small"), kernel="hopper"))
    assert own
    assert own.kernel == "hopper"
    assert predictor("tile64", None)(row) is None


def test_a_naive_path_is_not_estimated_by_an_attention_kernel() -> None:
    assert predictor("hopper", None)(item(calibration(), kernel="naive", scope="naive")) is None


def test_fp8_products_of_others_are_estimated_by_ours_in_bf16() -> None:
    row = item(calibration(cache="fp8"), kernel="flashmla", cache="fp8", dtype="fp8")
    found = predictor("hopper", None)(row)
    assert found
    assert found.time_s == pytest.approx(10e-6 + max(expected(128, 576)))


def test_a_gpu_without_calibrations_is_not_asked() -> None:
    assert predictor("hopper", None)(item()) is None
    assert predictor(None, None)(item(calibration(cache="fp8"))) is None


def prediction(run: str | None, **changes: Any) -> Prediction:
    found = predictor(None, run)(item(calibration(), **changes))
    assert found
    return found


def test_rows_of_the_run_are_known_to_be_held_out_or_not() -> None:
    contexts = range(1000, 1100)
    found = [prediction(RUN, context=context).held_out for context in contexts]
    assert found == [is_held_out(a_row(context=context), 7, 0.5) for context in contexts]
    assert {True, False} == set(found)


def test_rows_of_another_run_are_not() -> None:
    assert prediction("20261201T000000Z-h200").held_out is None
    assert prediction(None).held_out is None
