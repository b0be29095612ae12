"""One case of a plan: its shape, and what it takes of memory and time, counted by the cost model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..costs.paths import Kernel, path_bound_s
from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from ..hardware.schedule import Schedule
from ..models.attention import MLA
from .kernels.shape import PAGE, Device, Shape
from .record import Scope
from .timed import row_bytes_of, timed_kernels, work_of

COPIES = 3
"""Expanded keys and values that the naive paths hold at a time: projected, assembled, and of the part timed alone."""

CELL_S, REPLAYS, FLUSH_S = 0.012, 14, 80e-6
"""A timed call: warm-up and capture, about as many runs of a long one, and making the L2 cold before each."""
MOST_MEASURED_S = 0.035
CANDIDATES, CHOOSING_RUNS = 6, 8
"""Torch's ways to attend that a naive cell tries, and the runs of each: checked, captured, chosen between."""
CHECKS_S = 11.0
"""Of one kernel, most of it compiling."""
CEILINGS_S = 9.0
"""With the sustained product."""


class Offer(Protocol):
    """What a plan asks of a kernel; those of ``kernels.KERNELS`` answer."""

    def refusal(self, shape: Shape, device: Device) -> str | None:
        """Why it cannot run ``shape`` on ``device``; ``None``: it can."""

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        """How the call is cut into blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cell to time. ``heads`` are per rank; ``context`` counts the new tokens."""

    scope: Scope
    kernel: str
    dtype: str
    cache: str
    """The cache layout's name; of fp16 rows it is ``bf16``, which has the same bytes."""
    heads: int
    batch: int
    queries: int
    context: int

    @property
    def cache_dtype(self) -> str:
        """What the rows hold: ``fp8``, or the dtype of the products."""
        return "fp8" if self.cache == "fp8" else self.dtype

    @property
    def pages(self) -> int:
        """Pages of all requests."""
        return self.batch * -(-self.context // PAGE)

    def shape(self, mla: MLA) -> Shape:
        """As a kernel is asked about it."""
        return Shape(
            batch=self.batch,
            queries=self.queries,
            heads=self.heads,
            context=self.context,
            kv_lora_rank=mla.kv_lora_rank,
            qk_rope_head_dim=mla.qk_rope_head_dim,
            dtype=self.dtype,
            cache_dtype=self.cache_dtype,
        )

    def __str__(self) -> str:
        cache = f" {self.cache} cache" if self.cache_dtype != self.dtype else ""
        where = f"h={self.heads} b={self.batch} Q={self.queries} S={self.context}"
        scope = "absorbed " if self.scope == "absorbed" else ""
        return f"{scope}{self.kernel} {self.dtype}{cache} {where}"


class Costs:
    """What the cases of a model take on a GPU."""

    def __init__(self, mla: MLA, gpu: GPU, device: Device, kernels: Mapping[str, Offer]) -> None:
        self._mla, self._gpu, self._device, self._kernels = mla, gpu, device, kernels

    def cache_bytes(self, case: Case) -> int:
        """Bytes of the pages that the case's requests own."""
        return case.pages * PAGE * row_bytes_of(case.cache, self._mla)

    def working_bytes(self, case: Case) -> int:
        """Bytes that the case takes besides the cache: activations, the splits' partial outputs, expanded keys."""
        kernels = self._timed(case)
        if case.scope == "naive":
            up, attention = kernels
            return COPIES * int(up.activation_bytes) + int(attention.activation_bytes) + int(up.weight_bytes)
        activations = sum(int(kernel.activation_bytes + kernel.weight_bytes) for kernel in kernels)
        splits = int(self._kernels[case.kernel].schedule(case.shape(self._mla), self._device).splits)
        partial = splits * case.batch * case.queries * case.heads * (self._mla.kv_lora_rank + 1) * 4
        return activations + (partial if splits > 1 else 0)

    def _timed(self, case: Case) -> tuple[Kernel, ...]:
        """The kernels that the case runs, as the cost model counts them."""
        rank = replace(self._mla, heads=case.heads)
        return timed_kernels(case.scope, rank, work_of(case, row_bytes_of(case.cache, rank)))

    def estimate_s(self, cases: Sequence[Case]) -> float:
        """What the whole run takes: ceilings, the checks of our own kernels, and the cases."""
        ours = {case.kernel for case in cases if case.scope != "naive"}
        return CEILINGS_S + CHECKS_S * len(ours) + sum(map(self._cost_s, cases))

    def _cost_s(self, case: Case) -> float:
        """What timing the case takes: whole and parts (as long again), each warmed up, captured and repeated."""
        calls, long_runs = {"attention": (1, 1), "absorbed": (4, 2), "naive": (5 + CANDIDATES, 2)}[case.scope]
        path = self._timed(case)
        run = 1.5 * float(path_bound_s(path, datasheet_ceilings(self._gpu, case.dtype))) + 15e-6
        runs = min(60.0, max(float(REPLAYS), MOST_MEASURED_S / run))
        chosen = CANDIDATES * CHOOSING_RUNS * run if case.scope == "naive" else 0.0
        return calls * (CELL_S + runs * FLUSH_S) + long_runs * runs * run + chosen
