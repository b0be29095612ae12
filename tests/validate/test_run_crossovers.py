"""The crossovers of a run as a GPU preset keeps them, and read back."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from mla_calc.data import presets_root
from mla_calc.hardware.crossovers import Crossed
from mla_calc.hardware.load import load_gpu
from mla_calc.validate.calibrate import calibrate
from mla_calc.validate.preset_file import write_calibration
from mla_calc.validate.record import Row
from mla_calc.validate.run_crossovers import crossovers_of
from tests.validate.runs import a_row, a_run

DATE = datetime.date(2026, 11, 30)


def paths(ratios: dict[int, float], dtype: str = "bf16", heads: int = 16) -> list[Row]:
    """An absorbed path of 100 us, and a naive one that takes ``ratios`` of that, by Q."""
    shape = {"heads": heads, "batch": 1, "context": 4096, "dtype": dtype}
    return [
        a_row(kernel=kernel, scope=scope, queries=queries, time_us=100 * (ratio if scope == "naive" else 1), **shape)
        for queries, ratio in ratios.items()
        for kernel, scope in (("hopper", "absorbed"), ("naive", "naive"))
    ]


def only(rows: list[Row]) -> Crossed:
    (kept,) = crossovers_of(a_run(*rows), DATE)
    (found,) = kept.at
    return found


def test_a_crossover_that_is_not_the_last_says_so() -> None:
    found = only(paths({64: 2.0, 256: 0.5, 512: 2.0, 1024: 0.5}))
    assert found.queries == pytest.approx(128)  # the geometric mean
    assert found.crossed_again == (512,)
    assert found.last_queries == pytest.approx(724.1)  # 512 * 2 ** 0.5, to four digits
    assert only(paths({64: 2.0, 256: 0.5, 512: 2.0})).last_queries is None
    once = only(paths({64: 2.0, 256: 0.5, 512: 0.5}))
    assert (once.crossed_again, once.last_queries) == ((), None)


def test_products_of_two_dtypes_are_records_of_their_own() -> None:
    found = crossovers_of(a_run(*paths({64: 2.0, 256: 0.5}), *paths({64: 2.0, 1024: 0.5}, dtype="fp16")), DATE)
    assert [(kept.dtype, [at.queries for at in kept.at]) for kept in found] == [
        ("bf16", [pytest.approx(128)]),
        ("fp16", [pytest.approx(256)]),
    ]


def test_rows_with_launches_in_their_times_make_none() -> None:
    rows = [
        a_row(**{**{name: getattr(row, name) for name in ("kernel", "scope", "queries", "time_us")}, **more})
        for row in paths({64: 2.0, 256: 0.5})
        for more in ({"heads": 16, "batch": 1, "uncaptured": "no CUDA graph"},)
    ]
    assert crossovers_of(a_run(*rows), DATE) == ()


def test_a_second_crossover_is_written_into_a_preset_and_read_back(tmp_path: Path) -> None:
    """One that crossed once has nothing written about it."""
    decode = [
        a_row(heads=16, batch=batch, context=context, time_us=12 + batch * context * 1152 / 3.84e6)
        for batch in (1, 4, 16, 64)
        for context in (1024, 4096, 16_384, 65_536)
    ]
    run = a_run(*decode, *paths({64: 2.0, 256: 0.5, 512: 2.0, 1024: 0.5}), *paths({64: 2.0, 256: 0.5}, heads=32))
    path = tmp_path / "gpu.yaml"
    shipped = (presets_root() / "gpus" / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    path.write_text(shipped.partition("# Written by `mla-calc validate")[0], encoding="utf-8")
    found = calibrate(run, load_gpu(path), seed=1)
    write_calibration(path, found.calibrations, found.crossovers)
    assert load_gpu(path).crossovers == crossovers_of(run, DATE)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "{naive: " in line]
    assert [("crossed_again: [512], last_queries: 724.1" in line, "again" in line) for line in lines] == [
        (True, True),
        (False, False),
    ]
