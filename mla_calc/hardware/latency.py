"""An estimate: the latency of one kernel by a calibration (docs/cost-model.md, section 5).

    t0(splits) + partial bytes / (combine * bandwidth) + max(FLOP / (ec * peak * u), bytes / (em * bandwidth))

FLOPs and bytes are the roofline's. A kernel that cuts the context into blocks (``tiling``) is priced by its own
schedule: ``u`` is the useful share of the multiprocessors' steps (idle ones, the last wave and the padding of a
tile are its rest), ``ec`` and ``em`` run over the pages of a block, ``t0`` over the splits, and a split context
writes partial outputs and reads them again. Any other kernel has u = 1, no partial outputs, one t0, and its
curves run over GFLOP and MB. Everything is written once, for one call and for arrays of calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..arrays import maximum
from .calibration import Calibration, Cell, Curve, Domain, Tiling
from .schedule import PAGE, Schedule, merge_pages, merged_bytes, plan_splits

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from .gpu import GPU

_AXES = tuple(item.name for item in fields(Domain))


@dataclass(frozen=True, slots=True)
class Terms:
    """What the constants of a calibration apply to: seconds at the peaks, and sizes."""

    compute_s: Floats
    """FLOP / (peak * u)."""
    memory_s: Floats
    combine_s: Floats
    """Partial outputs, written and read, at peak bandwidth."""
    splits: Ints
    compute_size: Floats
    memory_size: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimated latency of one kernel and its parts, s: ``t0_s + combine_s + max(compute_s, memory_s)``."""

    seconds: Floats
    t0_s: Floats
    combine_s: Floats
    compute_s: Floats
    memory_s: Floats
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


def at(curve: Curve, size: Floats) -> Floats:
    """The value of ``curve`` at ``size``: linear over log(size) between two points, held beyond both ends."""
    if not isinstance(size, int | float):
        import numpy as np

        sizes, values = zip(*curve, strict=True)
        return np.interp(np.log(size), np.log(sizes), values)
    for left, right in pairwise(curve):
        if size < right[0]:
            share = max(0.0, math.log(size / left[0]) / math.log(right[0] / left[0]))
            return left[1] + share * (right[1] - left[1])
    return curve[-1][1]


def schedule_of(tiling: Tiling, cell: Cell, sms: int) -> Schedule:
    """The blocks that a tiled kernel launches for ``cell`` on ``sms`` multiprocessors."""
    rows, pages = cell.queries * cell.heads, -(-cell.context // PAGE)
    slots = sms * tiling.blocks_per_sm
    merged: Floats = 0.0
    if tiling.merge:
        merged = merge_pages(tiling.merge, cell.batch, rows, slots, cell.kv_lora_rank, cell.qk_rope_head_dim)
    return plan_splits(cell.batch, rows, pages, slots, tiling.tile_rows, tiling.overhead_pages, merged)


def terms(tiling: Tiling | None, cell: Cell, dtype: str, flop: Ints, bytes_moved: Ints, gpu: GPU) -> Terms:
    """Seconds at the peaks of ``gpu`` and the sizes that curves run over.

    Raises:
        InputError: the GPU has no peak of ``dtype``.
    """
    compute_s, memory_s = flop / gpu.peak_flop_per_s(dtype), bytes_moved / gpu.bandwidth_bytes_per_s
    if tiling is None:
        return Terms(compute_s, memory_s, 0.0, 1, maximum(flop / 1e9, 1e-6), maximum(bytes_moved / 1e6, 1e-6))
    assert gpu.sms  # calibrate() and outside() refuse a GPU without
    schedule = schedule_of(tiling, cell, gpu.sms)
    rows, slots = cell.queries * cell.heads, gpu.sms * tiling.blocks_per_sm
    useful = cell.batch * rows * cell.context / (slots * tiling.tile_rows * schedule.steps * PAGE)
    partial = merged_bytes(cell.batch, rows, cell.kv_lora_rank) * schedule.splits * (schedule.splits > 1)
    pages = schedule.pages_per_split
    return Terms(compute_s / useful, memory_s, partial / gpu.bandwidth_bytes_per_s, schedule.splits, pages, pages)


def estimate(calibration: Calibration, cell: Cell, flop: int, bytes_moved: int, gpu: GPU) -> Estimate | Unknown:
    """The latency of one call, from one kernel's constants and the roofline's counts of that call."""
    reason = outside(calibration, cell, flop, bytes_moved, gpu)
    return Unknown(reason) if reason else priced(calibration, cell, flop, bytes_moved, gpu)


def priced(calibration: Calibration, cell: Cell, flop: Ints, bytes_moved: Ints, gpu: GPU) -> Estimate:
    """The latency of calls that are within what was measured; nothing is checked."""
    found = terms(calibration.tiling, cell, calibration.dtype, flop, bytes_moved, gpu)
    t0_s = at(calibration.t0_us, found.splits) * 1e-6
    combine_s = found.combine_s / calibration.combine if calibration.combine else 0.0
    compute_s = found.compute_s / (at(calibration.compute, found.compute_size) if calibration.compute else 1.0)
    memory_s = found.memory_s / (at(calibration.memory, found.memory_size) if calibration.memory else 1.0)
    return Estimate(
        seconds=t0_s + combine_s + maximum(compute_s, memory_s),
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
    for name, limits, value in _limits(calibration, cell, flop, bytes_moved):
        if isinstance(limits, tuple):
            if not limits[0] <= value <= limits[1]:
                return f"{name} {value:,} is outside {limits[0]:,} to {limits[1]:,}, which were measured"
        elif value != limits:
            return f"{name} is {value}; {limits} was measured"
    return None


def inside(calibration: Calibration, cell: Cell, flop: Ints, bytes_moved: Ints, gpu: GPU) -> Any:
    """Which of an array of calls the run measured; ``False`` where it is none of them."""
    found: Any = not calibration.tiling or bool(gpu.sms)
    for _, limits, value in _limits(calibration, cell, flop, bytes_moved):
        if isinstance(limits, tuple):
            found = found & (limits[0] <= value) & (value <= limits[1])
        else:
            found = found & (value == limits)
    return found


def _limits(
    calibration: Calibration, cell: Cell, flop: Ints, bytes_moved: Ints
) -> Iterator[tuple[str, int | tuple[int, int], Ints]]:
    """Every axis of the domain with what was measured of it and what is asked."""
    domain = calibration.domain
    for name in _AXES:
        limits = getattr(domain, name)
        if limits is not None:
            yield name, limits, flop if name == "flop" else bytes_moved if name == "bytes" else getattr(cell, name)


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
    found = tuple(calibrations_of(gpu, path, part, dtype, cache, kernel))
    if not found:
        of = f"{kernel} " if kernel else ""
        return Unknown(f"{gpu.name} has no calibration of {of}{path} {part} in {dtype}, cache {cache}")
    return first_estimate(found, cell, flop, bytes_moved, gpu)


def first_estimate(
    calibrations: Iterable[Calibration], cell: Cell, flop: int, bytes_moved: int, gpu: GPU
) -> Estimate | Unknown:
    """The estimate by the first of each kernel's ``calibrations`` that measured ``cell``; the lowest of several.

    Where there is none, the reason is of one that was measured with these widths, if any was.
    """
    best: Estimate | None = None
    answered = set()
    reason, fits = "", False
    for item in calibrations:
        if item.kernel in answered:
            continue
        found = estimate(item, cell, flop, bytes_moved, gpu)
        if isinstance(found, Estimate):
            answered.add(item.kernel)
            best = found if best is None or found.seconds < best.seconds else best
        elif not reason or item.measured_widths_of(cell) >= fits:
            reason, fits = f"{item.kernel or item.path} {item.part}: {found.reason}", item.measured_widths_of(cell)
    return best or Unknown(reason)
