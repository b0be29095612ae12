"""Measurements beside predictions: bounds, estimates, and what was faster than a bound allows.

The counts are those of costs/, with the heads that a row has: nothing is derived again here. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ..costs.paths import Kernel, path_bound_s, total_bytes, total_flop
from ..hardware.calibration import Errors
from ..hardware.gpu import GPU
from ..hardware.roofline import Ceilings, binds, bound_s, datasheet_ceilings
from .accuracy import errors_of
from .checked import Dropped, KernelChecked, dropped, kernels_checked
from .crossing import Crossing, crossings
from .predicted import Predict, Prediction
from .record import MeasuredCeilings, Row, Skipped
from .recorded import Recorded, Recording
from .timed import timed_kernels, work_of

ROUNDING = 1e-9
"""Relative slack of a bound: what turning microseconds into seconds may lose."""
LONG_US = 100.0
"""Rows above it are told apart: launch and latency no longer count in them."""
DECODE_QUERIES = 4
"""Rows of up to so many queries are decode: one token and what speculation adds."""
REGIMES = ("latency", "memory", "compute")

CACHE_HITS = "cache hits, for L2 can hold what is moved; or, where it was cleared, a bug in our bytes"
NOT_MOVED = "a bug in our bytes, which L2 cannot hold, or a time that is not of this shape"
L2_UNKNOWN = "cache hits if L2, of unknown size, can hold what is moved, or a bug in our bytes"
NOT_COMPUTED = "compute binds, which no cache saves: a bug in our FLOPs, other products, or a wrong time"
A_SAMPLE = "a ceiling is measured as a sample: no violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One row beside its predictions; FLOPs and bytes are those of one rank and layer."""

    row: Row
    where: str
    gpu: str
    model: str
    flop: int
    bytes: int
    bound_s: float
    """By the datasheet's ceilings."""
    binds: str
    """What sets the bound, ``memory`` or ``compute``; of a path, in the kernel that takes most of it."""
    measured_bound_s: float | None
    """By the ceilings measured in the same run."""
    fits_l2: bool | None
    """Whether the L2 cache could hold what is read and written; ``None`` where its size is not known."""
    prediction: Prediction | None

    @property
    def time_s(self) -> float:
        """The measured median."""
        return self.row.time_us / 1e6

    @property
    def estimate_s(self) -> float | None:
        """The estimate, or ``None``."""
        return self.prediction.time_s if self.prediction else None

    @property
    def regime(self) -> str | None:
        """What the estimate mostly is: ``latency``, ``memory`` or ``compute``; ``None`` without one."""
        return self.prediction.regime if self.prediction else None

    @property
    def absolute_error(self) -> float | None:
        """|estimate - measured| over measured, as a fraction."""
        return None if self.estimate_s is None else abs(self.estimate_s - self.time_s) / self.time_s

    @property
    def is_judged(self) -> bool:
        """Whether an error of its estimate says anything: not where launches are in the time."""
        return self.estimate_s is not None and self.row.uncaptured is None

    @property
    def is_unseen(self) -> bool:
        """Whether the estimate is by the row's own kernel, says anything, and comes from a fit without this row."""
        found = self.prediction
        own = found is not None and found.kernel == self.row.kernel and found.held_out is not False
        return own and self.is_judged

    @property
    def is_decode(self) -> bool:
        """Whether the row timed the attention kernel of a decode step."""
        return self.row.scope == "attention" and self.row.queries <= DECODE_QUERIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Faster:
    """A row that took less than a bound."""

    row: int
    """Its index among the compared rows."""
    bound_s: float
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Measured over bound for the rows of one kernel, scope and cache on one GPU."""

    gpu: str
    kernel: str
    scope: str
    cache: str
    count: int
    median_over_bound: float
    least_over_bound: float
    most_over_bound: float
    median_over_measured_bound: float | None
    estimate: Errors | None
    """``None``: no row has an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelErrors:
    """How far the estimates of one kernel or path are off, over rows that its fit did not see."""

    kernel: str
    scope: str
    dtype: str
    cache: str
    errors: Errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that a recording says about the model."""

    rows: tuple[Compared, ...]
    violations: tuple[Faster, ...]
    """Rows below the datasheet's bound, which nothing can be."""
    below_measured: tuple[Faster, ...]
    """Rows below the bound by measured ceilings: no violation, since measuring a ceiling is a sample."""
    summaries: tuple[Summary, ...]
    estimate: Errors | None
    """Over rows with an estimate and without launches in their times; ``None``: there is none, as below."""
    estimate_long: Errors | None
    """Over rows of more than :data:`LONG_US`."""
    by_regime: Mapping[str, Errors]
    by_kernel: tuple[KernelErrors, ...]
    held_out: Errors | None
    """Over decode rows that the calibration did not see; ``None`` where that is not recorded."""
    kernels: tuple[KernelChecked, ...]
    dropped: tuple[Dropped, ...]
    skipped: tuple[Skipped, ...]
    crossover: tuple[Crossing, ...]
    calibrated: tuple[str, ...]
    """Kernels whose rows have an estimate by their own calibration."""
    borrowed: Mapping[str, str]
    """Kernels without a calibration, and the one whose estimate was asked for in their place."""


def compare(recording: Recording, predict: Predict) -> Comparison:
    """Every row beside its bounds and estimate, and what follows from all of them."""
    run = recording.run
    l2_bytes = run.machine.l2_bytes if run else None
    rows = tuple(_compared(item, recording.ceilings, l2_bytes, predict) for item in recording.rows)
    estimated = [(item, item.prediction) for item in rows if item.prediction]
    held_out = [item for item, prediction in estimated if prediction.held_out and item.is_decode]
    return Comparison(
        rows=rows,
        violations=_faster(rows, lambda item: item.bound_s, _cause),
        below_measured=_faster(rows, lambda item: item.measured_bound_s, lambda _: A_SAMPLE),
        summaries=_summaries(rows),
        estimate=errors_over(rows),
        estimate_long=errors_over(item for item in rows if item.row.time_us > LONG_US),
        by_regime={
            regime: errors
            for regime in REGIMES
            if (errors := errors_over(item for item in rows if item.regime == regime))
        },
        by_kernel=_by_kernel(rows),
        held_out=errors_over(held_out),
        kernels=kernels_checked([item.row for item in rows], run),
        dropped=dropped(item.row for item in rows),
        skipped=run.skipped if run else (),
        crossover=crossings(recording.rows),
        calibrated=_names(item.row.kernel for item, found in estimated if found.kernel == item.row.kernel),
        borrowed={item.row.kernel: found.kernel for item, found in estimated if found.kernel != item.row.kernel},
    )


def kernels_of(item: Recorded) -> tuple[Kernel, ...]:
    """The kernels that a row timed: a path's, or the absorbed path's attention alone."""
    return timed_kernels(item.row.scope, item.mla, work_of(item.row, item.row_bytes))


def measured_ceilings(ceilings: MeasuredCeilings | None, dtype: str) -> Ceilings | None:
    """The run's own ceilings for products of ``dtype``: the best product, and the higher of both bandwidths."""
    if ceilings is None:
        return None
    flop_per_s = ceilings.gemm_flop_per_s.get(dtype)
    bytes_per_s = ceilings.highest_bytes_per_s
    return Ceilings(round(flop_per_s), round(bytes_per_s)) if flop_per_s and bytes_per_s else None


def errors_over(rows: Iterable[Compared]) -> Errors | None:
    """The errors of those rows that have an estimate to be judged; ``None`` without any."""
    return errors_of((item.estimate_s, item.time_s) for item in rows if item.is_judged and item.estimate_s is not None)


def _compared(item: Recorded, ceilings: MeasuredCeilings | None, l2_bytes: int | None, predict: Predict) -> Compared:
    kernels = kernels_of(item)
    sheet = datasheet_ceilings(item.gpu, item.row.dtype)
    own = measured_ceilings(ceilings, item.row.dtype)
    longest = max(kernels, key=lambda kernel: bound_s(kernel.flop, kernel.bytes, sheet))
    return Compared(
        row=item.row,
        where=item.where,
        gpu=item.gpu.name,
        model=item.model.name,
        flop=total_flop(kernels),
        bytes=total_bytes(kernels),
        bound_s=path_bound_s(kernels, sheet),
        binds=binds(longest.flop, longest.bytes, sheet),
        measured_bound_s=path_bound_s(kernels, own) if own else None,
        fits_l2=_fits(kernels, l2_bytes or _l2_bytes(item.gpu)),
        prediction=predict(item),
    )


def _l2_bytes(gpu: GPU) -> int | None:
    return round(gpu.l2_mib * (1 << 20)) if gpu.l2_mib else None


def _fits(kernels: tuple[Kernel, ...], l2_bytes: int | None) -> bool | None:
    """Whether L2 holds all that is moved or, between a path's kernels, what one hands to the next."""
    if l2_bytes is None:
        return None
    handed = sum(kernel.activation_bytes for kernel in kernels) if len(kernels) > 1 else total_bytes(kernels)
    return bool(min(handed, total_bytes(kernels)) <= l2_bytes)


def _faster(
    rows: Sequence[Compared], bound: Callable[[Compared], float | None], cause: Callable[[Compared], str]
) -> tuple[Faster, ...]:
    return tuple(
        Faster(row=index, bound_s=least, cause=cause(item))
        for index, item in enumerate(rows)
        if (least := bound(item)) is not None and item.time_s < least * (1 - ROUNDING)
    )


def _cause(item: Compared) -> str:
    """What a time below the datasheet's bound means."""
    if item.binds == "compute":
        return NOT_COMPUTED
    return {True: CACHE_HITS, False: NOT_MOVED, None: L2_UNKNOWN}[item.fits_l2]


def _summaries(rows: Iterable[Compared]) -> tuple[Summary, ...]:
    groups: dict[tuple[str, str, str, str], list[Compared]] = {}
    for item in rows:
        groups.setdefault((item.gpu, item.row.kernel, item.row.scope, item.row.cache), []).append(item)
    return tuple(_summary(*key, mine) for key, mine in groups.items())


def _summary(gpu: str, kernel: str, scope: str, cache: str, rows: Sequence[Compared]) -> Summary:
    over = [item.time_s / item.bound_s for item in rows]
    over_measured = [item.time_s / item.measured_bound_s for item in rows if item.measured_bound_s]
    return Summary(
        gpu=gpu,
        kernel=kernel,
        scope=scope,
        cache=cache,
        count=len(rows),
        median_over_bound=median(over),
        least_over_bound=min(over),
        most_over_bound=max(over),
        median_over_measured_bound=median(over_measured) if over_measured else None,
        estimate=errors_over(rows),
    )


def _by_kernel(rows: Iterable[Compared]) -> tuple[KernelErrors, ...]:
    groups: dict[tuple[str, str, str, str], list[Compared]] = {}
    for item in rows:
        if item.is_unseen:
            row = item.row
            groups.setdefault((row.scope, row.kernel, row.dtype, row.cache), []).append(item)
    return tuple(
        KernelErrors(kernel=kernel, scope=scope, dtype=dtype, cache=cache, errors=errors)
        for (scope, kernel, dtype, cache), mine in sorted(groups.items())
        if (errors := errors_over(mine))
    )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
