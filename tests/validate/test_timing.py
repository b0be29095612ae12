"""Timing by a device that keeps a clock of its own: what runs, in which order, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from mla_calc.validate import ceilings
from mla_calc.validate.timing import NotCapturableError, Timing, row_times, time_call


@dataclass
class FakeStream:
    """A device whose calls take the times that they are given, us; the queue runs when someone waits."""

    capturable: bool = True
    log: list[str] = field(default_factory=list)
    now_us: float = 0.0

    def capture(self, call: Callable[[], object]) -> Callable[[], object]:
        if not self.capturable:
            raise NotCapturableError("operation not permitted when stream is capturing")
        self.log.append("capture")
        before = self.now_us
        call()
        self.now_us = before  # a capture runs nothing
        self.log = self.log[:-1]  # nor does the call show
        return call

    def mark(self) -> Any:
        self.log.append("mark")
        return self.now_us

    def elapsed_us(self, start: Any, end: Any) -> float:
        return float(end - start)

    def wait(self) -> None:
        self.log.append("wait")


def timed(stream: FakeStream, *times_us: float, **options: Any) -> Timing:
    """Time a call that takes ``times_us`` in turn, the last one for ever."""
    left = list(times_us)

    def call() -> None:
        stream.log.append("call")
        stream.now_us += left.pop(0) if len(left) > 1 else left[0]

    def flush() -> None:
        stream.log.append("flush")
        stream.now_us += 1e6  # must never be in a time

    return time_call(call, stream=stream, flush=flush, **options)


def test_a_steady_call_has_its_time_and_no_spread() -> None:
    timing = timed(FakeStream(), 500.0)
    assert (timing.median_us, timing.p10_us, timing.p90_us) == (500.0, 500.0, 500.0)
    assert timing.uncaptured is None


def test_the_first_runs_are_not_counted() -> None:
    # compiling takes ten seconds, once; two more slow runs warm up what is left
    timing = timed(FakeStream(), 1e7, 1e7, 900.0, 900.0, 50.0)
    assert timing.p90_us == 50.0


def test_the_flush_runs_before_each_start_and_is_in_no_time() -> None:
    stream = FakeStream()
    timing = timed(stream, 100.0)
    events = [entry for entry in stream.log if entry in ("flush", "mark", "call")]
    repeats = events[events.index("flush") :]
    assert repeats == ["flush", "mark", "call", "mark"] * timing.repeats
    assert timing.p90_us == 100.0


@pytest.mark.parametrize(
    ("time_us", "repeats"),
    [
        (14.0, 60),  # 30 ms would be 2143: at most 60
        (1000.0, 30),  # 30 ms
        (4000.0, 8),  # 7.5, rounded up
        (50_000.0, 7),  # at least 7
    ],
)
def test_short_calls_are_repeated_more(time_us: float, repeats: int) -> None:
    assert timed(FakeStream(), time_us).repeats == repeats


def test_a_given_number_of_repeats_is_kept() -> None:
    assert timed(FakeStream(), 10.0, repeats=2).repeats == 2
    assert timed(FakeStream(), 50_000.0, repeats=11).repeats == 11


def test_the_percentiles_are_those_of_the_repeats() -> None:
    # run 1, capture, 2 to warm up, then 11 repeats of 100, 110, ..., 200: median 150, p10 110, p90 190
    repeats = [100.0 + 10 * step for step in range(11)]
    timing = timed(FakeStream(), 1.0, 1.0, 1.0, 1.0, *repeats, repeats=11)
    assert timing == Timing(median_us=150.0, p10_us=110.0, p90_us=190.0, repeats=11)


def test_a_call_that_cannot_be_captured_is_timed_and_says_so() -> None:
    timing = timed(FakeStream(capturable=False), 70.0)
    assert timing.median_us == 70.0
    assert timing.uncaptured is not None
    assert "not permitted when stream is capturing" in timing.uncaptured
    assert "launches are in the times" in timing.uncaptured


def test_an_error_of_the_call_is_not_swallowed() -> None:
    def call() -> None:
        raise MemoryError("of the device")

    with pytest.raises(MemoryError, match="of the device"):
        time_call(call, stream=FakeStream(), flush=None)


def test_a_timing_fills_the_fields_of_a_row() -> None:
    fields = row_times(Timing(median_us=3.0, p10_us=2.0, p90_us=4.0, repeats=9))
    assert fields == {"time_us": 3.0, "p10_us": 2.0, "p90_us": 4.0, "repeats": 9}


@pytest.mark.gpu
def test_a_cold_cache_is_cold() -> None:
    # 24 MiB fit every L2 from Hopper on; read again they are faster than memory can be, after the flush not
    import torch

    from mla_calc.validate.timing import CudaStream, cold_l2, reader

    properties = torch.cuda.get_device_properties(0)
    sms, l2 = properties.multi_processor_count, properties.L2_cache_size
    stream, device = CudaStream(), torch.device("cuda")
    source = torch.randint(0, 100, (24 * 2**20 // 4,), dtype=torch.int32, device=device)
    call = reader(source, sms)
    cold_first = cold_l2(stream, sms, l2, device)

    def warmed() -> None:
        # the flush runs here too: it keeps the device busy while the replay is on its way to it
        cold_first()
        call()

    warm = time_call(call, stream=stream, flush=warmed).median_us
    cold = time_call(call, stream=stream, flush=cold_first).median_us
    assert cold > warm


@pytest.mark.gpu
def test_the_reader_reads_everything() -> None:
    import torch

    from mla_calc.validate import timing

    source = torch.randint(-1000, 1000, (100 * 4096,), dtype=torch.int32, device="cuda")
    out = torch.full((7,), -1, dtype=torch.int32, device="cuda")
    timing._read_all[(7,)](source, out, 100, BLOCK=4096, num_warps=4)
    blocks = source.view(100, 4096).sum(dim=1)
    assert out.tolist() == [int(blocks[first::7].sum()) for first in range(7)]


@pytest.mark.gpu
def test_ceilings_are_below_the_datasheet() -> None:
    import torch

    from mla_calc.hardware.load import detected_gpu
    from mla_calc.validate.ceilings import gemm_dtypes, measure_ceilings
    from mla_calc.validate.timing import CudaStream

    gpu, properties = detected_gpu(), torch.cuda.get_device_properties(0)
    dtypes = gemm_dtypes((properties.major, properties.minor))
    sms = properties.multi_processor_count
    stream = CudaStream()
    found, left_out = measure_ceilings(stream=stream, sms=sms, free_bytes=16 << 30, dtypes=dtypes, flush=lambda: None)
    assert left_out == ()
    for rate in (found.copy_bytes_per_s, found.read_bytes_per_s):
        assert rate is not None
        assert 0.6 < rate / gpu.bandwidth_bytes_per_s <= 1
    assert set(found.gemm_flop_per_s) == set(dtypes)
    for dtype, rate in found.gemm_flop_per_s.items():
        assert 0.4 < rate / gpu.peak_flop_per_s(dtype) <= 1
    assert found.launch_s is not None
    assert 0 < found.launch_s < 50e-6


def test_a_product_that_torch_does_not_have_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def rate(dtype: str, shape: ceilings.Product, _: Any) -> float:
        if dtype == "fp8":
            raise RuntimeError("torch._scaled_mm is only supported on CUDA devices\nand more")
        return float(sum(shape))

    monkeypatch.setattr(ceilings, "_gemm_rate", rate)
    stream = FakeStream()
    best, left_out = ceilings._best_gemms(("bf16", "fp8", "fp16"), stream)
    # the sums of the shapes: 24,576, 20,480, 28,672 and 28,672
    assert {dtype: found[0] for dtype, found in best.items()} == {"bf16": 28_672.0, "fp16": 28_672.0}
    [note] = left_out
    assert note == (
        "No product of fp8 among the ceilings: RuntimeError: torch._scaled_mm is only supported on CUDA devices"
    )
    assert stream.log == ["wait"]  # a lost device would have said so


def test_the_sustained_product_is_that_of_the_last_third(monkeypatch: pytest.MonkeyPatch) -> None:
    # a device that slows down: 9 samples of 20 products of 2 * 10^6 FLOP; 1 us each at first, 2 us in the last third
    stream = FakeStream()
    clock = iter(range(20))
    products = count()

    def product() -> None:
        stream.now_us += 1.0 if next(products) <= 20 * 6 else 2.0

    monkeypatch.setattr(ceilings, "_product", lambda *_: product)
    monkeypatch.setattr(ceilings, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    rate = ceilings.sustained_gemm("bf16", (100, 100, 100), stream, seconds=9.5)
    assert rate == pytest.approx(2e6 / 2e-6)
