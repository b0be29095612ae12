"""How one call is timed: a CUDA graph of it replayed many times, each on a cold L2, and the median told.

Events around a replay see a little more than its kernels: the gap between an event and the graph's first kernel.
An empty kernel timed in the same way (``MeasuredCeilings.launch_s``) says how much that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from ..errors import one_line
from .kernels.call import COMPILE
from .record import Row

LEAST_REPEATS, MOST_REPEATS = 7, 60
ENOUGH_US = 30_000.0
"""Measured time after which a cell has enough repeats, if it has the least number."""
_WARM = 2
_FIRST = 3
"""Replays that tell how many are worth it; they count."""


class NotCapturableError(RuntimeError):
    """The call cannot be captured in a CUDA graph; ``str`` says why."""


class Stream(Protocol):
    """What timing needs of a device; :class:`CudaStream` is the real one."""

    def capture(self, call: Callable[[], object]) -> Callable[[], object]:
        """``call`` as a graph to replay. Raises NotCapturableError."""

    def mark(self) -> Any:
        """An event in stream order."""

    def elapsed_us(self, start: Any, end: Any) -> float:
        """Time between two events that the device has passed, us."""

    def wait(self) -> None:
        """Until the device has done all that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the repeats of one call say, us."""

    median_us: float
    p10_us: float
    p90_us: float
    repeats: int
    uncaptured: str | None = None
    """Why the call was timed without a graph, its launches included; ``None``: it was captured."""


class CudaStream:
    """Captures, events and waits of the current CUDA device."""

    def capture(self, call: Callable[[], object]) -> Callable[[], object]:
        """``call`` as a graph. An out-of-memory in it is left as it is; else NotCapturableError."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                call()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            torch.cuda.synchronize()  # a broken capture ends here; a broken device raises once more
            raise NotCapturableError(one_line((str(error).splitlines() or ["no reason given"])[0])) from None
        return partial(_replay, graph, call)

    def mark(self) -> Any:
        """A timed event, recorded now."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def elapsed_us(self, start: Any, end: Any) -> float:
        """Between two events, us."""
        return float(start.elapsed_time(end)) * 1e3

    def wait(self) -> None:
        """Until the device is idle; an error of the work before is raised here."""
        torch.cuda.synchronize()


def _replay(graph: Any, _call: Callable[[], object]) -> None:
    """Replay a graph. It knows addresses, not tensors: whoever may replay it holds the call, and so its tensors."""
    graph.replay()


def time_call(
    call: Callable[[], object],
    *,
    stream: Stream,
    flush: Callable[[], object] | None,
    repeats: int | None = None,
) -> Timing:
    """Time ``call``, which launches work on the device and waits for nothing.

    Args:
        call: run once to compile and to warm up, captured once, then replayed.
        stream: the device.
        flush: makes the L2 cold; runs before each repeat, in stream order, outside the events. ``None``: the L2
            stays as the repeat before left it.
        repeats: how many; ``None``: at least 7, up to 60, until 30 ms are measured.

    Raises:
        whatever ``call`` raises; torch.cuda.OutOfMemoryError where a graph needs memory that is not there.
    """
    call()
    stream.wait()
    replay, uncaptured = call, None
    try:
        replay = stream.capture(call)
    except NotCapturableError as error:
        uncaptured = f"no CUDA graph ({error}): launches are in the times"
    for _ in range(_WARM):
        replay()
    taken = _take(replay, stream, flush, min(repeats or _FIRST, _FIRST))
    wanted = repeats or _wanted(float(np.median(taken)))
    taken += _take(replay, stream, flush, wanted - len(taken))
    p10, median, p90 = (float(value) for value in np.percentile(taken, (10, 50, 90)))
    return Timing(median_us=median, p10_us=p10, p90_us=p90, repeats=len(taken), uncaptured=uncaptured)


def _wanted(time_us: float) -> int:
    return min(max(math.ceil(ENOUGH_US / max(time_us, 1e-3)), LEAST_REPEATS), MOST_REPEATS)


def _take(
    replay: Callable[[], object], stream: Stream, flush: Callable[[], object] | None, repeats: int
) -> list[float]:
    """The times of ``repeats`` replays. All are queued before any is read, so that none waits for the host."""
    marks = []
    for _ in range(repeats):
        if flush is not None:
            flush()
        start = stream.mark()
        replay()
        marks.append((start, stream.mark()))
    stream.wait()
    return [stream.elapsed_us(start, end) for start, end in marks]


def row_times(timing: Timing) -> dict[str, Any]:
    """The fields of a :class:`~mla_calc.validate.record.Row` that a timing fills."""
    fields = {
        "time_us": timing.median_us,
        "p10_us": timing.p10_us,
        "p90_us": timing.p90_us,
        "repeats": timing.repeats,
    }
    assert fields.keys() <= set(Row.__dataclass_fields__)
    return fields


@triton.jit  # type: ignore[untyped-decorator]
def _read_all(source, out, blocks, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Read ``blocks`` blocks of BLOCK int32 values, as many programs as there are; one sum each is left."""
    total = tl.zeros([BLOCK], tl.int32)
    step = tl.num_programs(0)
    offsets = tl.arange(0, BLOCK)
    for block in range(tl.program_id(0), blocks, step):
        total += tl.load(source + tl.cast(block, tl.int64) * BLOCK + offsets)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def _nothing(out):  # type: ignore[no-untyped-def]
    """An empty kernel: what a launch costs."""


def reader(source: Tensor, sms: int, *, block: int = 8192, per_sm: int = 4, warps: int = 8) -> Callable[[], object]:
    """A call that reads ``source`` [n] int32 once, in 16-byte loads by a grid that stays; n a multiple of ``block``."""
    out = torch.empty(sms * per_sm, dtype=torch.int32, device=source.device)
    blocks = source.numel() // block
    return lambda: _read_all[(sms * per_sm,)](source, out, blocks, BLOCK=block, num_warps=warps, **COMPILE)


def empty_launch(device: torch.device) -> Callable[[], object]:
    """A call that launches an empty kernel."""
    out = torch.empty(1, dtype=torch.int32, device=device)
    return lambda: _nothing[(1,)](out, num_warps=1, **COMPILE)


def cold_l2(stream: Stream, sms: int, l2_bytes: int, device: torch.device) -> Callable[[], object]:
    """A call that leaves nothing of use in the L2: it reads four times its size of other memory.

    It reads and does not write: a written buffer would fill the L2 with dirty lines, and the timed call would pay
    for writing them back. As a graph it is queued faster than it runs, so the device never waits for the host.
    """
    block = 8192
    values = -(-4 * l2_bytes // (4 * block)) * block
    source = torch.randint(-(2**31), 2**31 - 1, (values,), dtype=torch.int32, device=device)
    call = reader(source, sms, block=block)
    call()
    stream.wait()
    return stream.capture(call)
