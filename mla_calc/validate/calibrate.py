"""The constants of the estimate, fitted to one run: t0, compute and memory efficiency of every kernel it timed.

A share of the rows, chosen by a seed, is kept out of the fit; the errors on them stand beside the constants. An
attention kernel of the absorbed path is fitted with its schedule, and of a kernel whose schedule is not known that
one is taken, of a few plain ones, which gives the measured times best.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from ..costs.estimates import cell_of, implementation_kernels
from ..errors import InputError
from ..hardware.calibration import Boundary, Calibration, Cell, Domain, Errors, Fit, PathName, Scope, Tiling
from ..hardware.choice import TILE_ROWS
from ..hardware.crossovers import Crossovers
from ..hardware.gpu import DTYPES, GPU
from ..hardware.latency import Estimate, Terms, estimate, schedule_of, terms
from ..hardware.schedule import MERGES
from .accuracy import errors_of
from .boundary import boundaries_of, rounded
from .estimate import estimate_row_s, is_held_out, row_id
from .fitting import Curves, Samples, fit
from .preset_file import write_calibration
from .record import Geometry, Row, Run, Skipped
from .run_crossovers import crossovers_of
from .timed import step_of

__all__ = ["CalibrationResult", "calibrate", "write_calibration"]

LEAST_ROWS = 8
"""Rows that a fit is made from, at least."""
TILES_TRIED = (64, 16, 32, 128)
BLOCKS_PER_SM = (1, 2, 3, 4)
MERGES_TRIED = tuple(dict.fromkeys((0.0, 0.5, *MERGES.values())))
"""Weights of the merge's bytes in a schedule; they are told apart by the splits that rows record, by no time."""
AXES = ("heads", "batch", "queries", "context")
AGREES = 0.5
"""Share of the rows whose recorded splits a schedule gives, from which the one that gives most is the kernel's own.
A kernel may launch a few shapes in another way."""
SHARED_PARTS = ("q_fold", "v_up")
"""Parts of the absorbed path that run the same whatever kernel attends and however the cache is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """What a run gave: constants, how far they can be trusted, and the crossovers that it met."""

    calibrations: tuple[Calibration, ...]
    held_out_errors: Mapping[str, Errors]
    """On the rows that were kept out, by ``<scope> <kernel> <dtype>/<cache>``; whole paths too."""
    used: tuple[str, ...]
    """Rows of the fit, by :func:`~mla_calc.validate.estimate.row_id`."""
    held_out: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    """Kernels that were timed and not calibrated, and why."""
    crossovers: tuple[Crossovers, ...] = ()
    """From all rows, those kept out included: no constant is in them."""
    boundaries: tuple[Boundary, ...] = ()
    """What the run's whole paths took beyond the sum of their parts."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """One time of one kernel, with the roofline's counts."""

    row: Row
    cell: Cell
    flop: int
    bytes: int
    time_us: float


@dataclass(slots=True)
class _Group:
    """The times of one kernel that one calibration is fitted to."""

    path: PathName
    part: str
    kernel: str | None
    dtype: str
    cache: str | None
    scope: Scope | None
    """``None``: a part without a schedule, which is timed in paths alone."""
    samples: list[_Sample] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.path, self.part, self.kernel or "", self.dtype, self.cache or "")

    @property
    def name(self) -> str:
        return " ".join(text for text in self.key if text)


def calibrate(run: Run, gpu: GPU, *, seed: int, holdout: float = 0.3) -> CalibrationResult:
    """Fit the constants of every kernel that ``run`` timed on ``gpu``.

    Args:
        run: made on that GPU.
        gpu: its preset; efficiencies are shares of its peaks.
        seed: of the choice of rows kept out.
        holdout: share of the rows kept out, from 0 (none) to below 1.

    Raises:
        InputError: a run of another GPU, a forced or a stopped one, a GPU whose preset lacks ``sms``, or a run with too
            few rows to fit anything.
    """
    _check(run, gpu, holdout)
    calibrations: list[Calibration] = []
    skipped = []
    for group in _groups(run):  # attention on its own comes first: paths run the kernel with the same schedule
        reason = _too_little(group, gpu, seed, holdout)
        if reason:
            skipped.append(Skipped(kernel=group.kernel or group.path, case=group.name, reason=reason))
            continue
        known = next((item.tiling for item in calibrations if item.key[:5] == group.key), None)
        calibrations.append(_calibration(group, run, gpu, seed, holdout, known))
    if not calibrations:
        reasons = "; ".join(f"{item.case}: {item.reason}" for item in skipped[:3])
        raise InputError(f"run {run.id} has too few rows to calibrate anything", reasons or None)
    rows = [(row, is_held_out(row, seed, holdout)) for row in run.rows if row.uncaptured is None]
    calibrated = replace(gpu, calibration=tuple(calibrations))
    boundaries = boundaries_of(run, calibrated, _date(run), seed, holdout)
    calibrated = replace(calibrated, boundaries=boundaries)
    held = [row for row, out in rows if out]
    return CalibrationResult(
        calibrations=calibrated.calibration,
        held_out_errors=_errors_by_kernel(held, calibrated, run.geometry),
        used=tuple(row_id(row) for row, out in rows if not out),
        held_out=tuple(row_id(row) for row in held),
        skipped=tuple(skipped),
        crossovers=crossovers_of(run, _date(run)),
        boundaries=boundaries,
    )


def _check(run: Run, gpu: GPU, holdout: float) -> None:
    names = {name.lower() for name in (gpu.name, *gpu.aliases)}
    if run.machine.gpu.lower() not in names:
        raise InputError(f"run {run.id} was made on {run.machine.gpu}; its constants are none of {gpu.name}")
    if run.machine.forced:
        raise InputError(f"run {run.id} was forced: its device is not the GPU that it was asked for")
    if run.finished is None:
        raise InputError(f"run {run.id} was stopped before its end: it is compared, and calibrates nothing")
    if not gpu.sms:
        raise InputError(f"{gpu.name}: a calibration needs `sms` in the GPU's preset")
    if not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout}: a share from 0 to below 1 is expected")


def _groups(run: Run) -> list[_Group]:
    """Every kernel's times: attention from rows of its own, and the parts of both paths."""
    groups: dict[tuple[str, tuple[str, ...]], _Group] = {}
    captured = (row for row in run.rows if row.uncaptured is None)  # the others have launches in their times
    for row in sorted(captured, key=lambda row: row.scope != "attention"):
        for group, sample in _samples(row, run.geometry):
            groups.setdefault((row.scope, group.key), group).samples.append(sample)
    return list(groups.values())


def _samples(row: Row, geometry: Geometry) -> Iterator[tuple[_Group, _Sample]]:
    """The kernels that one row timed, each with the group that it belongs to."""
    path: PathName = "naive" if row.scope == "naive" else "absorbed"
    mla, work = step_of(row, geometry)
    times = {"attention": row.time_us} if row.scope == "attention" else row.parts_us
    for kernel in implementation_kernels(path, mla, work, row.kernel):
        if kernel.name not in times:
            continue
        shared = path == "absorbed" and kernel.name in SHARED_PARTS
        group = _Group(
            path=path,
            part=kernel.name,
            kernel=None if shared else row.kernel,
            dtype=row.dtype,
            cache=None if shared else row.cache,
            scope=None if path == "naive" or shared else "attention" if row.scope == "attention" else "path",
        )
        yield group, _Sample(row, cell_of(mla, work), kernel.flop, kernel.bytes, times[kernel.name])


def _too_little(group: _Group, gpu: GPU, seed: int, holdout: float) -> str | None:
    used = sum(not is_held_out(sample.row, seed, holdout) for sample in group.samples)
    if used < LEAST_ROWS:
        return f"{used} rows to fit, {LEAST_ROWS} are needed"
    if group.dtype not in DTYPES or group.dtype not in gpu.peak_tflops:
        return f"{gpu.name} has no {group.dtype} peak"
    return None


def _calibration(group: _Group, run: Run, gpu: GPU, seed: int, holdout: float, known: Tiling | None) -> Calibration:
    """The group's constants, by the schedule ``known`` or the one that fits."""
    kept = [sample for sample in group.samples if not is_held_out(sample.row, seed, holdout)]
    tiling, curves = _best(group, kept, gpu, known)
    found = Calibration(
        path=group.path,
        part=group.part,
        kernel=group.kernel,
        dtype=group.dtype,
        cache=group.cache,
        scope=group.scope,
        run=run.id,
        date=_date(run),
        tiling=tiling,
        t0_us=curves.t0_us,
        combine=curves.combine,
        compute=curves.compute,
        memory=curves.memory,
        domain=_domain(group),
        fit=Fit(seed=seed, holdout=float(holdout), rows=len(kept), held_out=None),
    )
    held = [sample for sample in group.samples if is_held_out(sample.row, seed, holdout)]
    return replace(found, fit=replace(found.fit, held_out=_held_out(found, held, gpu)))


def _best(group: _Group, samples: Sequence[_Sample], gpu: GPU, known: Tiling | None) -> tuple[Tiling | None, Curves]:
    """The curves of the schedule that gives the splits that most rows say, or, where they say none, the times."""
    if known or not group.scope:
        return known, fit(_arrays(group, samples, known, gpu))
    candidates = [
        Tiling(tile_rows=rows, blocks_per_sm=blocks, merge=merge)
        for merge, rows, blocks in product(MERGES_TRIED, TILES_TRIED, BLOCKS_PER_SM)
    ]
    shares = [_agreement(tiling, samples, gpu) for tiling in candidates]
    if max(shares) >= AGREES:
        candidates = [tiling for tiling, share in zip(candidates, shares, strict=True) if share == max(shares)]
        own = [tiling for tiling in candidates if tiling.tile_rows == TILE_ROWS.get(group.kernel or "")]
        candidates = own or candidates  # rows that fill a part of any tile alike tell none from another
    least = candidates[0].merge  # where the splits are the same with and without, as if it were without
    found = [(tiling, fit(_arrays(group, samples, tiling, gpu))) for tiling in candidates if tiling.merge == least]
    return min(found, key=lambda item: item[1].cost)


def _agreement(tiling: Tiling, samples: Sequence[_Sample], gpu: GPU) -> float:
    """Share of the rows that say their splits and whose splits ``tiling`` gives."""
    assert gpu.sms
    said = [sample for sample in samples if sample.row.splits is not None]
    if not said:
        return 0.0
    axes: dict[str, Any] = {name: np.array([getattr(sample.cell, name) for sample in said]) for name in AXES}
    planned = schedule_of(tiling, replace(said[0].cell, **axes), gpu.sms).splits
    return float(np.mean(planned == np.array([sample.row.splits for sample in said])))


def _arrays(group: _Group, samples: Sequence[_Sample], tiling: Tiling | None, gpu: GPU) -> Samples:
    found = [_terms(sample, tiling, group.dtype, gpu) for sample in samples]
    columns = {name: np.array([getattr(item, name) for item in found], dtype=np.float64) for name in Terms.__slots__}
    return Samples(measured_s=np.array([sample.time_us for sample in samples]) * 1e-6, **columns)


def _terms(sample: _Sample, tiling: Tiling | None, dtype: str, gpu: GPU) -> Terms:
    return terms(tiling, sample.cell, dtype, sample.flop, sample.bytes, gpu)


def _domain(group: _Group) -> Domain:
    """The box around all rows of the run, those kept out included: the errors on them were found within it."""
    cells = [sample.cell for sample in group.samples]
    first, attends_latent = cells[0], group.path == "absorbed" and group.part == "attention"
    axes = ("tokens",) if group.part in SHARED_PARTS else ("batch", "queries", "context")
    return Domain(
        kv_lora_rank=first.kv_lora_rank,
        qk_rope_head_dim=first.qk_rope_head_dim,
        qk_nope_head_dim=None if attends_latent else first.qk_nope_head_dim,
        v_head_dim=None if attends_latent else first.v_head_dim,
        heads=_limits(cell.heads for cell in cells),
        flop=_limits(sample.flop for sample in group.samples),
        bytes=_limits(sample.bytes for sample in group.samples),
        **{axis: _limits(getattr(cell, axis) for cell in cells) for axis in axes},
    )


def _limits(values: Iterable[int]) -> tuple[int, int]:
    listed = list(values)
    return min(listed), max(listed)


def _held_out(calibration: Calibration, samples: Sequence[_Sample], gpu: GPU) -> Errors | None:
    """The errors of ``calibration`` on rows that it was not fitted to."""
    found = []
    for sample in samples:
        estimated = estimate(calibration, sample.cell, sample.flop, sample.bytes, gpu)
        if isinstance(estimated, Estimate):
            found.append((estimated.seconds * 1e6, sample.time_us))
    return rounded(errors_of(found))


def _errors_by_kernel(rows: Iterable[Row], gpu: GPU, geometry: Geometry) -> dict[str, Errors]:
    """Errors on rows as a replay finds them, by scope, kernel and dtype."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        seconds = estimate_row_s(gpu, row, geometry)
        if seconds is not None:
            name = f"{row.scope} {row.kernel} {row.dtype}/{row.cache}"
            pairs.setdefault(name, []).append((seconds * 1e6, row.time_us))
    return {name: errors for name, listed in pairs.items() if (errors := rounded(errors_of(listed)))}


def _date(run: Run) -> datetime.date:
    try:
        return datetime.datetime.fromisoformat(run.started).date()
    except ValueError:
        raise InputError(f"run {run.id} started at {run.started!r}: a date is expected") from None
