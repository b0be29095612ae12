"""What a run measures: its cases, shuffled by a seed, as many as the time and the memory allow.

Decode cells lie on both sides of the ridge, crossover cells on both sides of the crossover. What a case computes,
moves and keeps is counted by the cost model. A plan needs no torch: kernels are asked through their interface.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as remembered
from typing import TYPE_CHECKING, Literal, Protocol

from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.paths import PATHS, Kernel, Work, path_bound_s
from ..errors import InputError, nearest, shown
from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from ..models.attention import MLA, Model
from .grids import FULL, QUICK, Grid
from .kernels.shape import PAGE, Device, Shape
from .record import Scope, Skipped

if TYPE_CHECKING:
    from .kernels import Schedule

Kind = Literal["quick", "full"]

RESERVE_BYTES = 1 << 30
"""Left free: the context's growth, code, the library's workspaces."""
POOL_SHARE = {"bf16": 0.5, "fp16": 0.15, "fp8": 0.15}
"""Largest share of the memory that the cache of one dtype takes; all of them stay through the run.
The rest is for what a case works on."""
COPIES = 3
"""Expanded keys and values that the naive paths hold at a time: projected, assembled, and of the part timed alone."""

CELL_S, REPLAYS, FLUSH_S = 0.012, 14, 80e-6
"""A timed call: warm-up and capture, about as many runs of a long one, and making the L2 cold before each."""
MOST_MEASURED_S = 0.035
CANDIDATES, CHOOSING_RUNS = 6, 8
"""Torch's ways to attend that a naive cell tries, and the runs of each: checked, captured, chosen between."""
CHECKS_S = 25.0
CEILINGS_S = 6.0


class Offer(Protocol):
    """What a plan asks of a kernel; those of ``kernels.KERNELS`` answer."""

    def refusal(self, shape: Shape, device: Device) -> str | None:
        """Why it cannot run ``shape`` on ``device``; ``None``: it can."""

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        """How the call is cut into blocks."""


Pick = Callable[[Shape, Device], str]
"""The kernel that is taken for a shape; raises InputError where none is."""


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
        gpu: prices the cases, for the estimate of the time alone.
        device: what the kernels are asked about (``Opened.device``).
        free_bytes: memory that the run may take (``Opened.free_bytes``).
        seed: of the order.
        kernels: all there are (``kernels.KERNELS``).
        pick: the choice between them (``kernels.pick``).
        kernel: measure this one alone, wherever it runs; ``None``: the picked one in full, the others thinly.

    Raises:
        InputError: a model without MLA, an unknown ``kernel``, or nothing that can be measured here.
    """
    mla = model.mla
    if mla is None:
        raise InputError(f"validate times MLA kernels; {model.name} has grouped-query attention")
    if kernel is not None and kernel not in kernels:
        raise InputError(
            f"no kernel is named {shown(kernel)}; there are {', '.join(kernels)}", nearest(kernel, kernels)
        )
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
        estimate_s=CEILINGS_S + CHECKS_S * len({case.kernel for case in order}) / 4 + sum(map(planner.cost_s, order)),
        budget_s=grid.budget_s,
    )


def ranks_heads(mla: MLA) -> tuple[int, ...]:
    """Heads per rank at TP 1, 2, 4 and 8, as far as they divide, most first."""
    return tuple(mla.heads // tp for tp in (1, 2, 4, 8) if mla.heads % tp == 0)


def case_work(case: Case, mla: MLA) -> Work:
    """The case as the cost model counts it."""
    return Work(
        queries=case.queries,
        context=case.context,
        row_bytes=_row_bytes(case.cache, mla),
        batch=case.batch,
        tp=mla.heads // case.heads,
    )


@remembered
def _row_bytes(layout: str, mla: MLA) -> int:
    return latent_row_bytes(load_layout(layout), mla)


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
        self._refused: dict[tuple[str, str], Skipped] = {}

    def decode_cases(self, grid: Grid) -> Iterator[Case]:
        """Attention alone: the picked kernel over the whole grid, the others and the other dtypes over less."""
        heads = ranks_heads(self.mla)
        yield from self._taken((*grid.decode.cells(heads), *grid.between.cells(heads)), "bf16", "bf16")
        for dtype, cache, axes in (("fp16", "bf16", grid.fp16), ("bf16", "fp8", grid.fp8)):
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
        cached = [case for case in cases if self.cache_bytes(case) <= usable * POOL_SHARE.get(case.cache_dtype, 0.0)]
        pools = 0
        for dtype, pages in _pool_pages(cached).items():
            pools += pages * PAGE * _row_bytes("fp8" if dtype == "fp8" else "bf16", self.mla)
        room = usable - pools
        kept = [case for case in cached if self.working_bytes(case) <= room]
        chosen = set(kept)
        return kept, [self._too_large(case, free_bytes) for case in cases if case not in chosen]

    def _too_large(self, case: Case, free_bytes: int) -> Skipped:
        need = (self.cache_bytes(case) + self.working_bytes(case)) / 2**30
        reason = f"too little memory: {need:.1f} GiB beside the other caches, {free_bytes / 2**30:.1f} GiB free"
        return Skipped(kernel=case.kernel, case=str(case), reason=reason)

    def cache_bytes(self, case: Case) -> int:
        """Bytes of the pages that the case's requests own."""
        return case.pages * PAGE * _row_bytes(case.cache, self.mla)

    def working_bytes(self, case: Case) -> int:
        """Bytes that the case takes besides the cache: activations, the splits' partial outputs, expanded keys."""
        kernels = self._timed(case)
        if case.scope == "naive":
            up, attention = kernels
            return COPIES * int(up.activation_bytes) + int(attention.activation_bytes) + int(up.weight_bytes)
        activations = sum(int(kernel.activation_bytes + kernel.weight_bytes) for kernel in kernels)
        splits = self.kernels[case.kernel].schedule(case.shape(self.mla), self.device).splits
        partial = splits * case.batch * case.queries * case.heads * (self.mla.kv_lora_rank + 1) * 4
        return activations + (partial if splits > 1 else 0)

    def _timed(self, case: Case) -> tuple[Kernel, ...]:
        """The kernels that the case runs, as the cost model counts them."""
        path = PATHS["naive" if case.scope == "naive" else "absorbed"](self.mla, case_work(case, self.mla))
        return path if case.scope != "attention" else tuple(kernel for kernel in path if kernel.name == "attention")

    def cost_s(self, case: Case) -> float:
        """What timing the case takes: whole and parts (as long again), each warmed up, captured and repeated."""
        calls, long_runs = {"attention": (1, 1), "absorbed": (4, 2), "naive": (5 + CANDIDATES, 2)}[case.scope]
        path = self._timed(case)
        dtype = case.dtype if case.dtype in self.gpu.peak_tflops else next(iter(self.gpu.peak_tflops))
        run = 1.5 * float(path_bound_s(path, datasheet_ceilings(self.gpu, dtype))) + 15e-6
        runs = min(60.0, max(float(REPLAYS), MOST_MEASURED_S / run))
        chosen = CANDIDATES * CHOOSING_RUNS * run if case.scope == "naive" else 0.0
        return calls * (CELL_S + runs * FLUSH_S) + long_runs * runs * run + chosen
