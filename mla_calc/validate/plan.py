"""What a run measures: its cases, shuffled by a seed, as many as the time and the memory allow.

Decode cells lie on both sides of the ridge, crossover cells on both sides of the crossover. What a case computes,
moves and keeps is counted by the cost model. A plan imports no torch: kernels are asked through their interface.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import InputError, nearest, shown
from ..hardware.gpu import GPU
from ..models.attention import MLA, Model
from .case import Case, Costs, Offer
from .grids import FULL, QUICK, Grid
from .kernels.shape import PAGE, Device, Shape
from .record import EVERY_CELL, Skipped
from .timed import row_bytes_of

Kind = Literal["quick", "full"]

RESERVE_BYTES = 1 << 30
"""Left free: the context's growth, code, the library's workspaces."""
POOL_SHARE = {"bf16": 0.5, "fp16": 0.15, "fp8": 0.15}
"""Largest share of the memory that the cache of one dtype takes; all of them stay through the run.
The rest is for what a case works on."""
Pick = Callable[[Shape, Device], str]
"""The kernel that is taken for a shape; raises InputError where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cases of one run, in the order of measurement."""

    kind: Kind
    seed: int
    cases: tuple[Case, ...]
    skipped: tuple[Skipped, ...]
    """Cells that do not fit the memory, and kernels that do not run here."""
    pool_pages: Mapping[str, int]
    """Pages of the largest case, by the cache's dtype."""
    estimate_s: float
    """What the run is expected to take, on the GPU that it was planned for."""
    budget_s: float
    """After so much time no further cell is begun; the order is random, so what is left out is too."""
    visits: int = 1
    """Times that each cell is timed, a whole pass over all apart: a slow spell of the device, which lasts for a few
    cells, is then in one of them, and the shorter time is kept."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Our own kernels among the cases, each once, in order of first use: those to check."""
        return tuple(dict.fromkeys(case.kernel for case in self.cases if case.scope != "naive"))


def make_plan(
    kind: Kind,
    *,
    model: Model,
    gpu: GPU,
    device: Device,
    free_bytes: int,
    seed: int,
    kernels: Mapping[str, Offer],
    pick: Pick,
    kernel: str | None = None,
) -> Plan:
    """The cases of a ``quick`` (under 60 s) or ``full`` (under 8 minutes) run of ``model``.

    Args:
        kind: which grid.
        model: its heads give the ranks: TP 1, 2, 4 and 8, as far as they divide.
        gpu: what the times will be compared with: products that it has no peak for are not measured. It also prices
            the cases, for the estimate of the time.
        device: what the kernels are asked about (``Opened.device``).
        free_bytes: memory that the run may take (``Opened.free_bytes``).
        seed: of the order.
        kernels: all there are (``kernels.KERNELS``).
        pick: the choice between them (``kernels.pick``).
        kernel: measure this one alone, wherever it runs; ``None``: the picked one in full, the others thinly.

    Raises:
        InputError: a model without MLA, an unknown ``kernel``, a GPU without a bf16 peak, or nothing that can be
            measured here.
    """
    mla = model.mla
    if mla is None:
        raise InputError(f"validate times MLA kernels; {model.name} has grouped-query attention")
    if kernel is not None and kernel not in kernels:
        raise InputError(
            f"no kernel is named {shown(kernel)}; there are {', '.join(kernels)}", nearest(kernel, kernels)
        )
    gpu.peak_flop_per_s("bf16")
    planner = _Planner(mla, gpu, device, kernels, pick, kernel)
    grid = FULL if kind == "full" else QUICK
    cases = tuple(dict.fromkeys((*planner.decode_cases(grid), *planner.crossover_cases(grid))))
    kept, too_large = planner.fitting(cases, free_bytes)
    skipped = (*planner.refused(), *too_large)
    if not kept:
        raise InputError(
            f"nothing can be measured for {model.name} on this GPU",
            "; ".join(dict.fromkeys(f"{item.kernel}: {item.reason}" for item in skipped))[:200] or None,
        )
    order = list(kept)
    random.Random(seed).shuffle(order)
    return Plan(
        kind=kind,
        seed=seed,
        cases=tuple(order),
        skipped=skipped,
        pool_pages=_pool_pages(order),
        estimate_s=grid.visits * planner.costs.estimate_s(order),
        budget_s=grid.budget_s,
        visits=grid.visits,
    )


def ranks_heads(mla: MLA) -> tuple[int, ...]:
    """Heads per rank at TP 1, 2, 4 and 8, as far as they divide, most first."""
    return tuple(mla.heads // tp for tp in (1, 2, 4, 8) if mla.heads % tp == 0)


def _pool_pages(cases: Sequence[Case]) -> dict[str, int]:
    pages: dict[str, int] = {}
    for case in cases:
        pages[case.cache_dtype] = max(pages.get(case.cache_dtype, 0), case.pages)
    return pages


class _Planner:
    """The choices of one plan: which kernel takes a cell, whether it fits, what it costs."""

    def __init__(
        self, mla: MLA, gpu: GPU, device: Device, kernels: Mapping[str, Offer], pick: Pick, kernel: str | None
    ) -> None:
        self.mla, self.gpu, self.device = mla, gpu, device
        self.kernels, self.pick, self.only = kernels, pick, kernel
        self.costs = Costs(mla, gpu, device, kernels)
        self._refused: dict[tuple[str, str], Skipped] = {}

    def decode_cases(self, grid: Grid) -> Iterator[Case]:
        """Attention alone: the picked kernel over the whole grid, the others and the other dtypes over less."""
        heads = ranks_heads(self.mla)
        yield from self._taken((*grid.decode.cells(heads), *grid.between.cells(heads)), "bf16", "bf16")
        for dtype, cache, axes in (("fp16", "bf16", grid.fp16), ("bf16", "fp8", grid.fp8)):
            if self._has_peak(dtype):
                yield from self._taken(axes.cells(heads), dtype, cache)
        if self.only is None:
            for name in self.kernels:
                for cell in grid.others.cells(heads):
                    case = Case(scope="attention", kernel=name, dtype="bf16", cache="bf16", **cell)
                    if self._runs(case):
                        yield case

    def crossover_cases(self, grid: Grid) -> Iterator[Case]:
        """Both paths from end to end, and the better naive one; all for one request."""
        heads = ranks_heads(self.mla)
        ends = {heads[0], heads[-1]}
        for count in heads:
            axes = grid.crossover_ends if count in ends else grid.crossover_between
            for cell in axes.cells((count,)):
                if cell["queries"] > cell["context"]:
                    continue
                yield from (replace(case, scope="absorbed") for case in self._taken((cell,), "bf16", "bf16"))
                for name in ("naive", "naive_in_place"):
                    yield Case(scope="naive", kernel=name, dtype="bf16", cache="bf16", **cell)

    def _has_peak(self, dtype: str) -> bool:
        """Whether there is a bound to compare with; without one every cell of the dtype is left out, and told."""
        if dtype in self.gpu.peak_tflops:
            return True
        reason = f"{self.gpu.name} gives no {dtype} peak: there is no bound to compare with"
        self._refused["every kernel", reason] = Skipped(
            kernel="every kernel", case=f"{EVERY_CELL} of {dtype}", reason=reason
        )
        return False

    def _taken(self, cells: Sequence[Mapping[str, int]], dtype: str, cache: str) -> Iterator[Case]:
        """The cells with the kernel that takes each; those that none takes are noted."""
        for cell in cells:
            case = Case(scope="attention", kernel=self.only or "auto", dtype=dtype, cache=cache, **cell)
            if self.only is not None:
                if self._runs(case):
                    yield case
                continue
            try:
                yield replace(case, kernel=self.pick(case.shape(self.mla), self.device))
            except InputError as error:
                self._refuse(case, str(error))

    def _runs(self, case: Case) -> bool:
        reason = self.kernels[case.kernel].refusal(case.shape(self.mla), self.device)
        if reason is not None:
            self._refuse(case, reason)
        return reason is None

    def _refuse(self, case: Case, reason: str) -> None:
        """Note one cell for each kernel and reason: a kernel mostly refuses a whole dtype or model."""
        key = (case.kernel, reason)
        self._refused.setdefault(key, Skipped(kernel=case.kernel, case=f"{case} and its like", reason=reason))

    def refused(self) -> tuple[Skipped, ...]:
        """What kernels refused, so far."""
        return tuple(self._refused.values())

    def fitting(self, cases: Sequence[Case], free_bytes: int) -> tuple[list[Case], list[Skipped]]:
        """The cases that fit the memory, and those that do not, with what they need."""
        usable = max(free_bytes - RESERVE_BYTES, 0)
        cached = [
            case for case in cases if self.costs.cache_bytes(case) <= usable * POOL_SHARE.get(case.cache_dtype, 0.0)
        ]
        pools = 0
        for dtype, pages in _pool_pages(cached).items():
            pools += pages * PAGE * row_bytes_of("fp8" if dtype == "fp8" else "bf16", self.mla)
        room = usable - pools
        kept = [case for case in cached if self.costs.working_bytes(case) <= room]
        chosen = set(kept)
        return kept, [self._too_large(case, free_bytes) for case in cases if case not in chosen]

    def _too_large(self, case: Case, free_bytes: int) -> Skipped:
        need = (self.costs.cache_bytes(case) + self.costs.working_bytes(case)) / 2**30
        reason = f"too little memory: {need:.1f} GiB beside the other caches, {free_bytes / 2**30:.1f} GiB free"
        return Skipped(kernel=case.kernel, case=str(case), reason=reason)
