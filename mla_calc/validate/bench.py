"""The device as a run sees it: the tensors that every case is cut from, and the calls that are timed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from triton.errors import TritonError

from ..errors import InputError
from ..models.attention import MLA, Model
from .absorbed import absorbed_path
from .case import Case
from .ceilings import gemm_dtypes, measure_ceilings, sustained_gemm
from .correctness import path_check, run_checks
from .device import Opened
from .faults import told
from .kernels import KERNELS, PAGE, absorbed_decode, pick
from .measure import CellFailedError, DeviceLostError
from .naive import NaivePaths, naive_in_place_paths, naive_paths
from .path_inputs import PathInputs
from .plan import Plan
from .record import Check, MeasuredCeilings, Row
from .sample import sample_of
from .timed import geometry_of
from .timing import CudaStream, Stream, Timing, cold_l2, row_times, time_call

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
NAIVE: Mapping[str, Callable[[PathInputs], NaivePaths]] = {"naive": naive_paths, "naive_in_place": naive_in_place_paths}
DEFAULT_L2 = 64 << 20
"""Taken for a device that does not tell its L2's size."""
IDLE_BYTES = 4 << 30
"""Memory that the allocator may hold unused before it is given back."""
CHOOSING_REPEATS = 3
"""Repeats that choose between torch's attention implementations; the best is timed anew."""
_CHUNK_PAGES = 4096
COMPILING = (RuntimeError, TritonError, OSError, subprocess.SubprocessError, AssertionError, ValueError)
"""What torch and Triton raise of a device or a shape, and, when they compile a kernel, of compilers that fail, headers
that are not there and a cache that cannot be written."""


class CudaBench:
    """One model's cases on the current CUDA device; the cache of each dtype is drawn once and shared by all cases.

    The pages of a case are random ones of its cache, in random order: a request's rows are as scattered as an
    engine's are after a while.
    """

    def __init__(
        self,
        plan: Plan,
        model: Model,
        opened: Opened,
        *,
        device: torch.device | None = None,
        stream: Stream | None = None,
        flush: Callable[[], object] | None = None,
    ) -> None:
        """``device``, ``stream`` and ``flush`` are stand-ins: tests run the cases where there is no GPU."""
        assert model.mla is not None  # the plan was made for an MLA model
        self._plan, self._opened, self._mla = plan, opened, model.mla
        self._geometry = geometry_of(model)
        self._device = device or torch.device("cuda", opened.index)
        self._stream = stream or CudaStream()
        with self._told():
            self._random = torch.Generator(device=self._device).manual_seed(plan.seed)
        self._pools: dict[str, Tensor] = {}
        self._orders: dict[str, Tensor] = {}
        self._flush_call = flush

    def ceilings(self) -> tuple[MeasuredCeilings, Sequence[str]]:
        """The measured ceilings, of every product that the device has, and notes on those that could not be."""
        with self._told():
            found, notes = measure_ceilings(
                stream=self._stream,
                sms=self._opened.device.sms,
                free_bytes=self._opened.free_bytes,
                dtypes=gemm_dtypes(self._opened.device.capability),
                flush=self._flush(),
            )
            torch.cuda.empty_cache()
            return found, notes

    def sustained(self, ceilings: MeasuredCeilings) -> MeasuredCeilings:
        """``ceilings`` with the rate that the best bf16 product keeps up."""
        shape = ceilings.gemm_shapes.get("bf16")
        if shape is None:
            return ceilings
        with self._told():
            rate = sustained_gemm("bf16", shape, self._stream)
            return replace(ceilings, sustained_gemm_flop_per_s={"bf16": rate})

    def check(self, kernel: str) -> Sequence[Check]:
        """One kernel on every check that it does not refuse, and the absorbed paths that it is part of."""
        with self._told():
            found = run_checks(
                [kernel],
                self._opened.device,
                torch_device=self._device,
                seed=self._plan.seed,
                geometry=self._geometry,
                free_bytes=self._opened.free_bytes,
            )
            found += [self._path_check(case) for case in self._path_classes(kernel)]
            self._release(0)
            return found

    def _path_classes(self, kernel: str) -> Sequence[Case]:
        """The shortest absorbed case of each count of heads and of queries: float64 is quick there."""
        shortest: dict[tuple[int, int], Case] = {}
        for case in sorted(self._plan.cases, key=lambda case: case.pages):
            if (case.scope, case.kernel) == ("absorbed", kernel):
                shortest.setdefault((case.heads, case.queries), case)
        return list(shortest.values())

    def _path_check(self, case: Case) -> Check:
        def error() -> float:
            inputs = self._inputs(case)
            whole = absorbed_path(inputs, kernel=case.kernel, max_length=case.context).whole
            return sample_of(inputs).error(whole())

        return path_check(str(case).removeprefix("absorbed "), error)

    def time(self, case: Case) -> Row:
        """One case. Raises CellFailedError or DeviceLostError."""
        with self._told():
            row = {"attention": self._attention, "absorbed": self._absorbed, "naive": self._naive}[case.scope](case)
            self._release(IDLE_BYTES)
            return row

    def _attention(self, case: Case) -> Row:
        mla = self._mla
        cache, table, lengths = self._cached(case)
        q = self._draw(case, case.batch, case.queries, case.heads, mla.row_values)
        out = torch.empty(*q.shape[:-1], mla.kv_lora_rank, dtype=q.dtype, device=self._device)

        def call() -> None:
            absorbed_decode(
                q,
                cache,
                table,
                lengths,
                _scale(mla),
                kv_lora_rank=mla.kv_lora_rank,
                max_length=case.context,
                kernel=case.kernel,
                out=out,
            )

        return self._row(case, self._time(call), splits=self._splits(case))

    def _absorbed(self, case: Case) -> Row:
        calls = absorbed_path(self._inputs(case), kernel=case.kernel, max_length=case.context)
        whole = self._time(calls.whole)
        return self._row(case, whole, self._parts(calls.parts), splits=self._splits(case))

    def _naive(self, case: Case) -> Row:
        """The path with the attention of torch that is the fastest here."""
        paths = NAIVE[case.kernel](self._inputs(case))
        if not paths.calls:
            raise CellFailedError(
                "no attention of torch runs it: " + "; ".join(f"{name}: {why}" for name, why in paths.dropped.items())
            )
        times = {
            name: self._time(calls.parts["attention"], repeats=CHOOSING_REPEATS).median_us
            for name, calls in paths.calls.items()
        }
        best = min(times, key=lambda name: times[name])
        whole, parts = self._time(paths.calls[best].whole), self._parts(paths.calls[best].parts)
        return self._row(
            case, whole, parts, detail=best, relative_error=paths.errors[best], dropped=dict(paths.dropped)
        )

    def _time(self, call: Callable[[], object], repeats: int | None = None) -> Timing:
        return time_call(call, stream=self._stream, flush=self._flush(), repeats=repeats)

    def _parts(self, parts: Mapping[str, Callable[[], object]]) -> dict[str, Timing]:
        return {name: self._time(part) for name, part in parts.items()}

    def _row(self, case: Case, whole: Timing, parts: Mapping[str, Timing] | None = None, **told_of: Any) -> Row:
        """The row of a case; ``told_of`` are fields that only some cases have."""
        parts = parts or {}
        return Row(
            kernel=case.kernel,
            scope=case.scope,
            dtype=case.dtype,
            cache=case.cache,
            heads=case.heads,
            batch=case.batch,
            queries=case.queries,
            context=case.context,
            picked=None if case.scope == "naive" else pick(case.shape(self._mla), self._opened.device) == case.kernel,
            parts_us={name: timing.median_us for name, timing in parts.items()},
            uncaptured=_uncaptured({"": whole, **parts}),
            **row_times(whole),
            **told_of,
        )

    def _splits(self, case: Case) -> int:
        return int(KERNELS[case.kernel].schedule(case.shape(self._mla), self._opened.device).splits)

    def _inputs(self, case: Case) -> PathInputs:
        """What both paths start from, drawn anew."""
        mla = self._mla
        cache, table, lengths = self._cached(case)
        scaled = mla.kv_lora_rank**-0.5  # keys of about unit size, as a model's are
        return PathInputs(
            q_nope=self._draw(case, case.batch, case.queries, case.heads, mla.qk_nope_head_dim),
            q_rope=self._draw(case, case.batch, case.queries, case.heads, mla.qk_rope_head_dim),
            w_uk=self._draw(case, case.heads, mla.qk_nope_head_dim, mla.kv_lora_rank) * scaled,
            w_uv=self._draw(case, case.heads, mla.v_head_dim, mla.kv_lora_rank) * scaled,
            cache=cache,
            block_table=table,
            lengths=lengths,
            scale=_scale(mla),
        )

    def _draw(self, case: Case, *sizes: int) -> Tensor:
        return torch.randn(*sizes, dtype=TORCH[case.dtype], device=self._device, generator=self._random)

    def _cached(self, case: Case) -> tuple[Tensor, Tensor, Tensor]:
        """The cache of the case's dtype, and the case's block table and lengths."""
        pool = self._pool(case.cache_dtype)
        table = self._orders[case.cache_dtype][: case.pages].view(case.batch, -1)
        lengths = torch.full((case.batch,), case.context, dtype=torch.int32, device=self._device)
        return pool, table, lengths

    def _pool(self, dtype: str) -> Tensor:
        """[pages, 64, r + dr] of random rows, drawn at the first use."""
        if dtype not in self._pools:
            pages = self._plan.pool_pages[dtype]
            pool = torch.empty(pages, PAGE, self._mla.row_values, dtype=TORCH[dtype], device=self._device)
            for chunk in torch.split(pool, _CHUNK_PAGES):  # fp8 has no random numbers of its own
                chunk.copy_(torch.randn(chunk.shape, dtype=torch.bfloat16, device=self._device, generator=self._random))
            self._pools[dtype] = pool
            self._orders[dtype] = torch.randperm(pages, device=self._device, generator=self._random).int()
        return self._pools[dtype]

    def _flush(self) -> Callable[[], object]:
        if self._flush_call is None:
            l2 = self._opened.machine.l2_bytes or DEFAULT_L2
            self._flush_call = cold_l2(self._stream, self._opened.device.sms, l2, self._device)
        return self._flush_call

    def _release(self, most_idle: int) -> None:
        """Give unused memory back where the allocator holds more than ``most_idle`` bytes of it."""
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > most_idle:
            torch.cuda.empty_cache()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the device as those that a run knows."""
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            self._release(0)
            raise CellFailedError(f"out of memory: {told(error)}") from None
        except InputError as error:
            raise CellFailedError(str(error)) from None
        except COMPILING as error:
            self._stop_if_lost(error)
            raise CellFailedError(told(error)) from None

    def _stop_if_lost(self, error: Exception) -> None:
        """Raises DeviceLostError where the device answers nothing more: such errors stay for the process's life."""
        try:
            self._stream.wait()
        except RuntimeError:
            raise DeviceLostError(told(error)) from None


def _scale(mla: MLA) -> float:
    return float(mla.qk_head_dim**-0.5)


def _uncaptured(timings: Mapping[str, Timing]) -> str | None:
    """What was timed without a graph, and why: the whole (by the empty name) and parts; ``None``: nothing."""
    found = [
        f"{name}: {timing.uncaptured}" if name else timing.uncaptured
        for name, timing in timings.items()
        if timing.uncaptured is not None
    ]
    return "; ".join(found) or None
