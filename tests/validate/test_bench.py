"""The device's errors as a run knows them: what fails a cell, what ends the run, and what is a defect of ours."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from triton.errors import TritonError

from mla_calc.errors import InputError
from mla_calc.models.load import load_model
from mla_calc.validate.bench import CudaBench
from mla_calc.validate.measure import CellFailedError, DeviceLostError
from mla_calc.validate.record import MeasuredCeilings
from tests.validate.test_measure import opened, plan_of

GEMM = MeasuredCeilings(gemm_shapes={"bf16": (8, 8, 8)})


@dataclass
class Stream:
    """A device that works, or does not any more."""

    lost: bool = False

    def wait(self) -> None:
        if self.lost:
            raise RuntimeError("CUDA error: unspecified launch failure")

    def capture(self, call: Callable[[], object]) -> Callable[[], object]:
        return call

    def mark(self) -> Any:
        return 0

    def elapsed_us(self, start: Any, end: Any) -> float:
        return float(end - start)


def bench(stream: Stream | None = None) -> CudaBench:
    return CudaBench(
        plan_of(),
        load_model("dsv3"),
        opened(),
        device=torch.device("cpu"),
        stream=stream or Stream(),
        flush=lambda: None,
    )


FAULTS = [
    (RuntimeError("PassManager::run failed"), "RuntimeError: PassManager::run failed"),
    (TritonError("out of resource"), "TritonError: out of resource"),
    # a box without the headers of Python: Triton compiles its launcher with subprocess.check_call
    (
        subprocess.CalledProcessError(1, ["gcc", "-I", "include"]),
        "CalledProcessError: Command '['gcc', '-I', 'include']",
    ),
    (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
    (AssertionError("Torch not compiled with CUDA enabled"), "AssertionError: Torch not compiled with CUDA enabled"),
    (ValueError("Unsupported conversion"), "ValueError: Unsupported conversion"),
    (InputError("the hopper kernel cannot run this shape"), "the hopper kernel cannot run this shape"),
    (torch.cuda.OutOfMemoryError("tried to allocate 9 GiB"), "out of memory: OutOfMemoryError: tried to allocate"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=[type(fault).__name__ for fault, _ in FAULTS])
@pytest.mark.parametrize("step", ["ceilings", "check", "time", "sustained"])
def test_what_a_step_meets_fails_that_step(
    fault: Exception, said: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise fault

    for name in ("measure_ceilings", "run_checks", "sustained_gemm", "absorbed_decode"):
        monkeypatch.setattr(f"mla_calc.validate.bench.{name}", fail)
    mine = bench()
    monkeypatch.setattr(mine, "_attention", fail)
    calls: dict[str, Callable[[], object]] = {
        "ceilings": mine.ceilings,
        "check": lambda: mine.check("one"),
        "time": lambda: mine.time(plan_of().cases[0]),
        "sustained": lambda: mine.sustained(GEMM),
    }
    with pytest.raises(CellFailedError) as caught:
        calls[step]()
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_device_that_answers_nothing_more_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = bench(Stream(lost=True))

    def fail(_: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(mine, "_attention", fail)
    with pytest.raises(DeviceLostError, match="illegal memory access"):
        mine.time(plan_of().cases[0])


def test_a_defect_of_ours_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = bench()

    def fail(_: Any) -> Any:
        raise TypeError("ours")

    monkeypatch.setattr(mine, "_attention", fail)
    with pytest.raises(TypeError, match="ours"):
        mine.time(plan_of().cases[0])
