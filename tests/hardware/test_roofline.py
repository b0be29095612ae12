"""Ceilings, the ridge and the bound.

Sources: docs/cost-model.md, section 5; the chapter; the datasheets that the GPU presets name.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mla_calc.errors import InputError
from mla_calc.hardware.load import load_gpu
from mla_calc.hardware.roofline import Ceilings, binds, bound_s, datasheet_ceilings
from tests.shapes import GPUS, H20, H100


@pytest.mark.parametrize("name", GPUS)
def test_datasheet_ceilings_are_whole_numbers(name: str) -> None:
    # the chapter: 989.4 TFLOP/s, 3.35 TB/s; the others by the datasheets that their presets name
    ceilings = datasheet_ceilings(load_gpu(name), "bf16")
    assert ceilings == GPUS[name]
    assert type(ceilings.flop_per_s) is int
    assert type(ceilings.bytes_per_s) is int


def test_h800_has_h100_ceilings() -> None:
    # docs/cost-model.md, section 5: 156.4 "on an H100 or H800"
    assert datasheet_ceilings(load_gpu("h800"), "bf16") == H100


def test_the_peak_follows_the_products_dtype() -> None:
    # 132 SMs * 8192 dense fp8 FLOP per clock * 1830 MHz = 1978.9 TFLOP/s; the bandwidth stays
    fp8 = datasheet_ceilings(load_gpu("h100"), "fp8")
    assert fp8 == Ceilings(1_978_900_000_000_000, 3_350_000_000_000)


def test_a_peak_that_a_gpu_has_not_is_named() -> None:
    with pytest.raises(InputError, match="fp4") as caught:
        datasheet_ceilings(load_gpu("h100"), "fp4")
    assert "bf16" in str(caught.value)


@pytest.mark.parametrize(
    ("tflops", "tbs", "ridge", "within"),
    [
        (989.4, 3.35, 295.3, 0.05),  # the chapter
        (989, 3.35, 295, 0.5),  # GLA README, roofline caption
        (148, 4.0, 37.0, 1e-9),  # H20, by hand
        (865, 3.35, 2 * 128, 0.01 * 256 + 0.5),  # FlashMLA's deep dive: half of it is 128 (rounded)
    ],
)
def test_ridges(tflops: float, tbs: float, ridge: float, within: float) -> None:
    ceilings = Ceilings(round(tflops * 1e12), round(tbs * 1e12))
    assert ceilings.ridge_flop_per_byte == pytest.approx(ridge, abs=within)


@pytest.mark.parametrize(
    ("flop", "moved", "seconds", "which"),
    [
        # the chapter: 69.6 GFLOP = 70 us, 287.8 MB = 86 us
        (61 * 4096 * 278_528, 0, 70.3e-6, "compute"),
        (0, 61 * 4096 * 1152, 85.9e-6, "memory"),
        (61 * 4096 * 278_528, 61 * 4096 * 1152, 85.9e-6, "memory"),
        (61 * 4096 * 278_528 // 8, 0, 8.8e-6, "compute"),
    ],
)
def test_bounds_of_the_chapter(flop: int, moved: int, seconds: float, which: str) -> None:
    assert bound_s(flop, moved, H100) == pytest.approx(seconds, abs=0.05e-6)
    assert binds(flop, moved, H100) == which


def test_exactly_on_the_ridge_compute_binds() -> None:
    # H20's ridge is 37: one FLOP either way decides, at sizes where floats could not tell
    moved = 10**17
    assert binds(37 * moved, moved, H20) == "compute"
    assert binds(37 * moved - 1, moved, H20) == "memory"
    assert binds(37 * moved + 1, moved, H20) == "compute"


def test_a_bound_is_the_larger_time() -> None:
    for flop in (0, 1, 10**9, 10**15):
        for moved in (0, 1, 10**7, 10**12):
            exact = max(Fraction(flop, H100.flop_per_s), Fraction(moved, H100.bytes_per_s))
            assert bound_s(flop, moved, H100) == float(exact)


def test_arrays_give_the_same_bounds() -> None:
    flop, moved = np.meshgrid(np.array([0, 1, 10**9, 10**15]), np.array([0, 1, 10**7, 10**12]))
    found = bound_s(flop, moved, H100)
    assert found.tolist() == [
        [bound_s(f, m, H100) for f, m in zip(*lines, strict=True)]
        for lines in zip(flop.tolist(), moved.tolist(), strict=True)
    ]
