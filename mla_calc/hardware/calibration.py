"""What one run measured of one kernel on one GPU, as constants of the cost model, and the estimate from them.

An estimate is a latency, unlike a bound (docs/cost-model.md, section 5):

    t0(splits) + partial bytes / (combine * bandwidth) + max(FLOP / (ec * peak * u), bytes / (em * bandwidth))

FLOPs and bytes are the roofline's. A kernel that cuts the context into blocks (``tiling``) is priced by its own
schedule: ``u`` is the useful share of the multiprocessors' steps (idle ones, the last wave and the padding of a
tile are its rest), ``ec`` and ``em`` run over the pages of a block, ``t0`` over the splits, and a split context
writes partial outputs and reads them again. Any other kernel has u = 1, no partial outputs, one t0, and its
curves run over GFLOP and MB. Every constant was fitted to one run, which is named; there is no default one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le, Lt, MaxLen, MinLen
from pydantic import AfterValidator, Strict

from ..schema import STRICT, Count, Dimension, Quantity, Text
from .schedule import OVERHEAD_PAGES, Schedule, plan_splits

if TYPE_CHECKING:
    from .gpu import GPU

PAGE = 64
"""Cache rows of a page: what a block takes per step."""
PARTIAL_BYTES = 4
"""Partial outputs are kept in fp32."""
PathName = Literal["absorbed", "naive"]


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if any(left[0] >= right[0] for left, right in pairwise(points)):
        raise ValueError("sizes of a curve must rise")
    return points


def _in_order(limits: tuple[int, int]) -> tuple[int, int]:
    if limits[0] > limits[1]:
        raise ValueError("the least is above the most")
    return limits


Curve = Annotated[tuple[tuple[Quantity, Quantity], ...], MaxLen(8), AfterValidator(_rising)]
"""[size, value] pairs by rising size: linear in between over log(size), and held beyond both ends."""
Whole = Annotated[int, Strict(), Ge(0), Le(1 << 60)]
Between = Annotated[tuple[Whole, Whole], AfterValidator(_in_order)]
"""Least and most, both included."""
Share = Annotated[float, Strict(), Ge(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One layer's call on one rank: the attention's widths and the axes of a measurement. Queries are causal."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    heads: int
    """Of the rank."""
    batch: int
    queries: int
    context: int

    @property
    def tokens(self) -> int:
        """New tokens of all requests."""
        return self.batch * self.queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The cells that the run measured the kernel on; an estimate outside is not given.

    ``None``: the kernel does not know this axis. A fold knows its tokens and not how many requests they are of.
    """

    __pydantic_config__ = STRICT

    kv_lora_rank: Dimension
    qk_rope_head_dim: Count
    qk_nope_head_dim: Dimension | None = None
    v_head_dim: Dimension | None = None
    heads: Between
    tokens: Between | None = None
    batch: Between | None = None
    queries: Between | None = None
    context: Between | None = None
    flop: Between
    bytes: Between


_AXES = tuple(item.name for item in fields(Domain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How the kernel cuts a call into blocks (schedule.py)."""

    __pydantic_config__ = STRICT

    tile_rows: Dimension
    """Score rows (heads times queries) of a block."""
    blocks_per_sm: Dimension = 1
    overhead_pages: Quantity = OVERHEAD_PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Absolute relative errors of estimates against measured times; 0.05 is 5 %."""

    __pydantic_config__ = STRICT

    count: Dimension
    median_ape: Share
    mean_ape: Share
    p90_ape: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the constants were found: which rows of the run were kept out of the fit, and the errors on them."""

    __pydantic_config__ = STRICT

    seed: int
    holdout: Annotated[float, Strict(), Ge(0), Lt(1)]
    """Share of the rows kept out, by seed and row."""
    rows: Dimension
    """Rows used."""
    held_out: Errors | None = None
    """``None``: no row was kept out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The measured constants of one kernel. Never mixed with the peaks."""

    __pydantic_config__ = STRICT

    path: PathName
    part: Text
    """The cost model's name of the kernel: ``attention``, ``q_fold``, ``v_up``, ``up_proj``, ``assemble``."""
    kernel: Text | None = None
    """The implementation; ``None``: the path's implementations share this part."""
    dtype: Text
    """Of the products' operands: its peak is the one that ``compute`` is a share of."""
    cache: Text | None = None
    """Cache layout; ``None``: the part does not read the cache."""
    run: Text
    date: datetime.date
    tiling: Tiling | None = None
    t0_us: Annotated[Curve, MinLen(1)]
    """Over the splits of a request; one point without ``tiling``."""
    combine: Quantity | None = None
    """Share of the bandwidth at which partial outputs are written and read; above 1 where L2 holds them."""
    compute: Curve = ()
    """Share of the peak (ec) over pages of a block, or GFLOP; empty: it bound no row, and the peak itself counts."""
    memory: Curve = ()
    """Share of the bandwidth (em) over pages of a block, or MB; empty: it bound no row, and the peak itself counts."""
    domain: Domain
    fit: Fit

    @property
    def key(self) -> tuple[str, ...]:
        """What a newer calibration of the same kernel replaces."""
        return (self.path, self.part, self.kernel or "", self.dtype, self.cache or "")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the constants of a calibration apply to, for one cell: seconds at the peaks, and sizes."""

    compute_s: float
    """FLOP / (peak * u)."""
    memory_s: float
    combine_s: float
    """Partial outputs, written and read, at peak bandwidth."""
    splits: int
    compute_size: float
    memory_size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimated latency of one kernel and its parts, s: ``t0_s + combine_s + max(compute_s, memory_s)``."""

    seconds: float
    t0_s: float
    combine_s: float
    compute_s: float
    memory_s: float
    calibration: Calibration

    @property
    def binds(self) -> str:
        """What takes most of the time: ``overhead`` (t0 and combine), ``compute`` or ``memory``."""
        larger = "compute" if self.compute_s >= self.memory_s else "memory"
        return "overhead" if self.t0_s + self.combine_s > max(self.compute_s, self.memory_s) else larger


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why there is no estimate."""

    reason: str


def at(curve: Curve, size: float) -> float:
    """The value of ``curve`` at ``size``: linear over log(size) between two points, held beyond both ends."""
    for left, right in pairwise(curve):
        if size < right[0]:
            share = max(0.0, math.log(size / left[0]) / math.log(right[0] / left[0]))
            return left[1] + share * (right[1] - left[1])
    return curve[-1][1]


def schedule_of(tiling: Tiling, cell: Cell, sms: int) -> Schedule:
    """The blocks that a tiled kernel launches for ``cell`` on ``sms`` multiprocessors."""
    rows, pages = cell.queries * cell.heads, -(-cell.context // PAGE)
    slots = sms * tiling.blocks_per_sm
    return plan_splits(cell.batch, rows, pages, slots, tiling.tile_rows, tiling.overhead_pages)


def terms(tiling: Tiling | None, cell: Cell, dtype: str, flop: int, bytes_moved: int, gpu: GPU) -> Terms:
    """Seconds at the peaks of ``gpu`` and the sizes that curves run over.

    Raises:
        InputError: the GPU has no peak of ``dtype``.
    """
    compute_s, memory_s = flop / gpu.peak_flop_per_s(dtype), bytes_moved / gpu.bandwidth_bytes_per_s
    if tiling is None:
        return Terms(compute_s, memory_s, 0.0, 1, max(flop / 1e9, 1e-6), max(bytes_moved / 1e6, 1e-6))
    assert gpu.sms  # calibrate() and outside() refuse a GPU without
    schedule = schedule_of(tiling, cell, gpu.sms)
    rows, slots = cell.queries * cell.heads, gpu.sms * tiling.blocks_per_sm
    useful = cell.batch * rows * cell.context / (slots * tiling.tile_rows * schedule.steps * PAGE)
    partial = cell.batch * rows * schedule.splits * (cell.kv_lora_rank + 1) * PARTIAL_BYTES * 2
    combine_s = partial / gpu.bandwidth_bytes_per_s if schedule.splits > 1 else 0.0
    pages = schedule.pages_per_split
    return Terms(compute_s / useful, memory_s, combine_s, schedule.splits, pages, pages)


def estimate(calibration: Calibration, cell: Cell, flop: int, bytes_moved: int, gpu: GPU) -> Estimate | Unknown:
    """The latency of one call, from one kernel's constants and the roofline's counts of that call."""
    reason = outside(calibration, cell, flop, bytes_moved, gpu)
    if reason:
        return Unknown(reason)
    found = terms(calibration.tiling, cell, calibration.dtype, flop, bytes_moved, gpu)
    t0_s = at(calibration.t0_us, found.splits) * 1e-6
    combine_s = found.combine_s / calibration.combine if calibration.combine else 0.0
    compute_s = found.compute_s / (at(calibration.compute, found.compute_size) if calibration.compute else 1.0)
    memory_s = found.memory_s / (at(calibration.memory, found.memory_size) if calibration.memory else 1.0)
    return Estimate(
        seconds=t0_s + combine_s + max(compute_s, memory_s),
        t0_s=t0_s,
        combine_s=combine_s,
        compute_s=compute_s,
        memory_s=memory_s,
        calibration=calibration,
    )


def outside(calibration: Calibration, cell: Cell, flop: int, bytes_moved: int, gpu: GPU) -> str | None:
    """Why ``cell`` is not among what the run measured, or ``None`` where it is."""
    if calibration.tiling and not gpu.sms:
        return f"{gpu.name} does not say how many multiprocessors it has"
    domain = calibration.domain
    for name in _AXES:
        limits = getattr(domain, name)
        if limits is None:
            continue
        value = flop if name == "flop" else bytes_moved if name == "bytes" else getattr(cell, name)
        if isinstance(limits, tuple):
            if not limits[0] <= value <= limits[1]:
                return f"{name} {value:,} is outside {limits[0]:,} to {limits[1]:,}, which were measured"
        elif value != limits:
            return f"{name} is {value}; {limits} was measured"
    return None


def calibrations_of(
    gpu: GPU, path: str, part: str, dtype: str, cache: str, kernel: str | None = None
) -> Iterator[Calibration]:
    """The GPU's calibrations of one part of a path, in the preset's order; of any kernel where none is named."""
    for item in gpu.calibration:
        if item.part != part or item.path != path or item.dtype != dtype:
            continue
        if item.cache in (None, cache) and (kernel is None or item.kernel in (None, kernel)):
            yield item


def estimate_kernel(
    gpu: GPU, path: str, part: str, dtype: str, cache: str, kernel: str | None, cell: Cell, flop: int, bytes_moved: int
) -> Estimate | Unknown:
    """The estimate of one part, from the first calibration that measured such a cell; the lowest of several kernels.

    Without ``kernel`` every calibrated one is asked and the fastest answers: its name stands in ``calibration``.
    """
    best: Estimate | None = None
    reason = f"{gpu.name} has no calibration of {f'{kernel} ' if kernel else ''}{path} {part} in {dtype}, cache {cache}"
    answered = set()
    for item in calibrations_of(gpu, path, part, dtype, cache, kernel):
        if item.kernel in answered:
            continue
        found = estimate(item, cell, flop, bytes_moved, gpu)
        if isinstance(found, Unknown):
            reason = f"{item.kernel or path} {part}: {found.reason}"
            continue
        answered.add(item.kernel)
        if best is None or found.seconds < best.seconds:
            best = found
    return best or Unknown(reason)
