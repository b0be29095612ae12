"""The ceilings of this GPU, measured in the run that uses them: copy, read, matrix product, launch."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .faults import told
from .record import MeasuredCeilings
from .timing import Stream, empty_launch, reader, time_call

Product = tuple[int, int, int]

_GIB = 1 << 30
_REPEATS = 7
SUSTAINED_S = 3.0
_PER_SAMPLE = 20
"""Products between two looks at the clock."""
GEMM_SHAPES = ((8192, 8192, 8192), (4096, 8192, 8192), (16384, 8192, 4096), (8192, 4096, 16384))
"""(m, n, k), large enough that a product's start and end do not count. No shape is the best everywhere."""
READERS = ((8192, 2, 8), (8192, 4, 8), (4096, 8, 4), (16384, 2, 16))
"""Block, blocks a multiprocessor, warps of the reading kernel: the best depends on the memory."""


def measure_ceilings(
    *, stream: Stream, sms: int, free_bytes: int, dtypes: tuple[str, ...], flush: Callable[[], object]
) -> tuple[MeasuredCeilings, tuple[str, ...]]:
    """Measure them all; a few seconds.

    Args:
        stream: the device.
        sms: its multiprocessors.
        free_bytes: memory to use; at most 8 GiB and a quarter of it are taken.
        dtypes: products to measure, of bf16, fp16 and fp8; one that this torch does not run is left out and told.
        flush: makes the L2 cold. The launch floor is measured as cells are, after it.

    Returns:
        the ceilings, each the best over shapes or variants of a median over repeats; and a sentence for each product
        that was left out.
    """
    device = torch.device("cuda")
    size = min(4 * _GIB, free_bytes // 8) // (1 << 26) * (1 << 26)
    source = torch.randint(-(2**31), 2**31 - 1, (size // 4,), dtype=torch.int32, device=device)
    copy, read = _copy_rate(source, stream), _read_rate(source, sms, stream)
    del source
    best, left_out = _best_gemms(dtypes, stream)
    launch = time_call(empty_launch(device), stream=stream, flush=flush)
    found = MeasuredCeilings(
        copy_bytes_per_s=copy,
        read_bytes_per_s=read,
        gemm_flop_per_s={dtype: rate for dtype, (rate, _) in best.items()},
        gemm_shapes={dtype: shape for dtype, (_, shape) in best.items()},
        launch_s=launch.median_us * 1e-6,
    )
    return found, left_out


def _copy_rate(source: Tensor, stream: Stream) -> float:
    # by a kernel: in a captured graph, copy_ becomes a copy node, which an H200 runs at 2.8 instead of 4.3 TB/s
    target = torch.empty_like(source)
    timing = time_call(lambda: torch.bitwise_not(source, out=target), stream=stream, flush=None, repeats=_REPEATS)
    return 2 * source.numel() * source.element_size() / (timing.median_us * 1e-6)


def _read_rate(source: Tensor, sms: int, stream: Stream) -> float:
    calls = [reader(source, sms, block=block, per_sm=per_sm, warps=warps) for block, per_sm, warps in READERS]
    best = min(time_call(call, stream=stream, flush=None, repeats=_REPEATS).median_us for call in calls)
    return source.numel() * source.element_size() / (best * 1e-6)


def _best_gemms(dtypes: tuple[str, ...], stream: Stream) -> tuple[dict[str, tuple[float, Product]], tuple[str, ...]]:
    """The best rate over the shapes, and its shape, by dtype; and why a dtype is not among them."""
    best, left_out = {}, []
    for dtype in dtypes:
        try:
            best[dtype] = max((_gemm_rate(dtype, shape, stream), shape) for shape in GEMM_SHAPES)
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError) as error:
            stream.wait()  # a device that is lost says so here, once more
            left_out.append(f"No product of {dtype} among the ceilings: {told(error, 200)}")
    return best, tuple(left_out)


def _gemm_rate(dtype: str, shape: Product, stream: Stream) -> float:
    """FLOP/s of one product of random operands: zeros draw less power, and run faster."""
    m, n, k = shape
    timing = time_call(_product(dtype, m, n, k), stream=stream, flush=None, repeats=_REPEATS)
    return 2 * m * n * k / (timing.median_us * 1e-6)


def sustained_gemm(dtype: str, shape: Product, stream: Stream, seconds: float = SUSTAINED_S) -> float:
    """FLOP/s of one product after ``seconds`` of nothing else: long enough for power and heat to set the clocks.

    The rate is the median over the last third. A run takes it last, so that it heats no cell.
    """
    m, n, k = shape
    product = _product(dtype, m, n, k)
    product()
    stream.wait()
    rates, began = [], time.monotonic()
    while time.monotonic() - began < seconds:
        start = stream.mark()
        for _ in range(_PER_SAMPLE):
            product()
        end = stream.mark()
        stream.wait()
        rates.append(_PER_SAMPLE * 2 * m * n * k / (stream.elapsed_us(start, end) * 1e-6))
    return float(np.median(rates[-max(1, len(rates) // 3) :]))


def _product(dtype: str, m: int, n: int, k: int) -> Callable[[], object]:
    """A call that multiplies [m, k] by [k, n]. fp8 is e4m3, with one scale a tensor and a bf16 result."""
    left = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    if dtype == "fp8":
        left8, right8 = left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn).t()
        one = torch.ones((), device="cuda", dtype=torch.float32)
        return lambda: torch._scaled_mm(
            left8, right8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    wide = {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    out = torch.empty(m, n, device="cuda", dtype=wide)
    first, second = left.to(wide), right.to(wide).t()
    return lambda: torch.mm(first, second, out=out)


def gemm_dtypes(capability: tuple[int, int]) -> tuple[str, ...]:
    """The products that the matrix units of ``capability`` run, of bf16, fp16 and fp8 (8.9 and newer)."""
    return ("bf16", "fp16", "fp8") if capability >= (8, 9) else ("bf16", "fp16")
