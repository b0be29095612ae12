"""The sections of the report: tables out of the run and its comparison, and a sentence where one is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from ..hardware.calibration import Errors
from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from ..report import format as fmt
from .compare import LONG_US, REGIMES, Compared, Comparison, Faster
from .engine_lines import EngineLines
from .figures import cache_label, marks_of, series_of
from .page_correctness import correctness_section
from .page_crossover import crossover_section
from .page_markdown import table
from .record import Run, Telemetry
from .verdict import judge

Section = tuple[str, str, list[str]]
"""A key that figures name, a title, and blocks of Markdown."""
MOST_SHOWN = 40
"""Entries of a list that a table shows; the record has all of them."""
EXTREMES = 5
"""Best and worst cells that are listed."""


def sections(run: Run, comparison: Comparison, gpu: GPU, engines: EngineLines) -> list[Section]:
    """All sections with something in them, in the order of the report."""
    found: list[Section] = [
        ("verdict", "Verdict", _verdict(comparison)),
        ("machine", "What was measured on", _machine(run)),
        ("ceilings", "Ceilings", _ceilings(run, gpu)),
        ("correctness", "Correctness", correctness_section(run, comparison)),
        ("kernels", "Kernels against the bound", _kernels(comparison)),
        ("violations", "Below a bound", _violations(comparison)),
        ("estimate", "Estimate", _estimate(comparison)),
        ("crossover", "Crossover of the absorbed and the naive path", crossover_section(comparison, engines)),
        ("cells", "Best and worst decode cells", _extremes(comparison)),
        ("skipped", "Not measured", _skipped(run)),
        ("notes", "Notes", ["\n".join(f"- {note}" for note in run.notes)] if run.notes else []),
    ]
    return [section for section in found if section[2]]


def _verdict(comparison: Comparison) -> list[str]:
    verdict = judge(comparison)
    lines = [f"- {reason}" for reason in verdict.reasons]
    return ["All stated tolerances hold." if verdict.passed else "A stated tolerance does not hold.", "\n".join(lines)]


def _machine(run: Run) -> list[str]:
    machine = run.machine
    rows = [
        ("device", machine.device_name),
        ("GPU preset", machine.gpu + (" (FORCED)" if machine.forced else "")),
        ("compute capability, SMs", f"{machine.compute_capability}, {machine.sms}"),
        ("memory", fmt.binary_bytes(machine.memory_bytes)),
        ("L2 cache", fmt.binary_bytes(machine.l2_bytes) if machine.l2_bytes else fmt.NOTHING),
        ("driver, CUDA", f"{machine.driver}, {machine.cuda}"),
        ("torch, Triton, Python", f"{machine.torch}, {machine.triton}, {machine.python}"),
        ("started", run.started),
        ("finished", run.finished or fmt.NOTHING),
        *([("stopped by", run.stopped)] if run.stopped else []),
    ]
    moments = [("before", run.before), *([("after", run.after)] if run.after else [])]
    clocks = table(
        ("", "SM clock, MHz", "memory clock, MHz", "power, W", "temperature, C"),
        [(name, *_telemetry(moment)) for name, moment in moments],
    )
    return [table(("", "this run"), rows, left=2), clocks]


def _telemetry(moment: Telemetry) -> list[str]:
    values = (moment.sm_mhz, moment.memory_mhz, moment.power_w, moment.temperature_c)
    return [fmt.NOTHING if value is None else fmt.number(value) for value in values]


def _ceilings(run: Run, gpu: GPU) -> list[str]:
    found = run.ceilings
    sheet = gpu.bandwidth_bytes_per_s
    rows = [
        _ceiling(name, rate, sheet, 1e12, "TB/s")
        for name, rate in (("copy, read plus write", found.copy_bytes_per_s), ("read", found.read_bytes_per_s))
        if rate
    ]
    for dtype, rate in found.gemm_flop_per_s.items():
        m, n, k = found.gemm_shapes.get(dtype, (0, 0, 0))
        shape = f", {m} x {n} x {k}" if m else ""
        peak = datasheet_ceilings(gpu, dtype).flop_per_s if dtype in gpu.peak_tflops else None
        rows.append(_ceiling(f"{dtype} product{shape}", rate, peak, 1e12, "TFLOP/s"))
    for dtype, rate in found.sustained_gemm_flop_per_s.items():
        peak = datasheet_ceilings(gpu, dtype).flop_per_s if dtype in gpu.peak_tflops else None
        rows.append(_ceiling(f"{dtype} product after seconds of it", rate, peak, 1e12, "TFLOP/s"))
    if found.launch_s:
        rows.append(("empty kernel in a replayed graph", fmt.seconds(found.launch_s), fmt.NOTHING, fmt.NOTHING))
    datasheet = f"datasheet of {gpu.name} (FORCED)" if run.machine.forced else "datasheet"
    return [table(("ceiling", "measured", datasheet, "measured / datasheet"), rows)] if rows else []


def _ceiling(name: str, rate: float, sheet: float | None, scale: float, unit: str) -> tuple[str, ...]:
    measured = f"{rate / scale:.4g} {unit}"
    if sheet is None:
        return name, measured, fmt.NOTHING, fmt.NOTHING
    return name, measured, f"{sheet / scale:.4g} {unit}", f"{rate / sheet:.3f}"


def _kernels(comparison: Comparison) -> list[str]:
    """Median of bound over time for each series and cache, by regime."""
    known = any(item.regime for item in comparison.rows)
    groups: dict[tuple[str, str], list[Compared]] = {}
    for item in comparison.rows:
        groups.setdefault((series_of(item.row), item.row.cache), []).append(item)
    marks = marks_of(item.row for item in comparison.rows)
    rows = [
        (
            marks[name].label,
            cache_label(cache),
            f"{len(mine):,}",
            _median(mine, _of_bound),
            *(_median([item for item in mine if _regime(item, known) == regime], _of_bound) for regime in REGIMES),
            _median(mine, _of_measured),
        )
        for name in marks
        for cache in sorted(cache for series, cache in groups if series == name)
        for mine in (groups[name, cache],)
    ]
    headers = ("kernel or path", "cache", "cells", "all", *REGIMES, "all, of measured floor")
    text = "Median of bound over measured time (1 is at the bound), by what the time hangs on"
    text += ": mostly the constant part of the estimate, memory, or compute." if known else " in the bound alone."
    aside = sum(item.row.picked is False for item in comparison.rows)
    if aside:
        text += f" {fmt.counted(aside, 'cell')} timed a kernel where the choice takes another; they count here too."
    return [text, table(headers, rows, left=2)]


def _regime(item: Compared, known: bool) -> str | None:
    return item.regime if known else item.binds


def _of_bound(item: Compared) -> float | None:
    return item.bound_s / item.time_s


def _of_measured(item: Compared) -> float | None:
    return None if item.measured_bound_s is None else item.measured_bound_s / item.time_s


def _median(items: Iterable[Compared], figure: Callable[[Compared], float | None]) -> str:
    values = [value for item in items if (value := figure(item)) is not None]
    return f"{median(values):.3f}" if values else fmt.NOTHING


def _violations(comparison: Comparison) -> list[str]:
    count = len(comparison.violations)
    if not count:
        blocks = [f"No measurement is below its datasheet bound ({fmt.counted(len(comparison.rows), 'cell')})."]
    else:
        text = f"{fmt.counted(count, 'measurement')} below the datasheet bound, which cannot be:"
        blocks = [text, *_faster_table(comparison, comparison.violations)]
    if comparison.below_measured:
        text = (
            f"{fmt.counted(len(comparison.below_measured), 'measurement')} below the bound by this run's own ceilings"
        )
        blocks += [f"{text}, which are samples themselves:", *_faster_table(comparison, comparison.below_measured)]
    return blocks


def _faster_table(comparison: Comparison, found: Sequence[Faster]) -> list[str]:
    rows = []
    for item in found[:MOST_SHOWN]:
        cell = comparison.rows[item.row]
        rows.append((*_place(cell), fmt.seconds(cell.time_s), fmt.seconds(item.bound_s)))
    causes = Counter(item.cause for item in found)
    lines = [f"- {fmt.counted(count, 'cell')}: {cause}" for cause, count in causes.items()]
    return [table((*PLACE, "measured", "bound"), rows, left=2), *_more(found), "\n".join(lines)]


def _more(found: Sequence[object]) -> list[str]:
    """How many entries a table leaves out, if any."""
    left = len(found) - MOST_SHOWN
    return [f"And {left:,} more, which the record beside this report has."] if left > 0 else []


PLACE = ("kernel", "cache", "heads", "batch", "queries", "context")


def _place(cell: Compared) -> tuple[str, ...]:
    row = cell.row
    counts = (row.heads, row.batch, row.queries, row.context)
    path = f" ({row.kernel})" if row.scope == "absorbed" else ""
    return series_of(row) + path, cache_label(row.cache), *(f"{count:,}" for count in counts)


def _estimate(comparison: Comparison) -> list[str]:
    if comparison.estimate is None:
        return ["No row has an estimate: nothing is calibrated for these kernels on this GPU."]
    found: list[tuple[str, Errors | None]] = [
        ("all rows", comparison.estimate),
        (f"rows over {LONG_US:g} us", comparison.estimate_long),
        *((f"regime: {name}", errors) for name, errors in comparison.by_regime.items()),
        ("held out of the calibration, decode", comparison.held_out),
    ]
    rows = [(name, f"{errors.count:,}", *_errors(errors)) for name, errors in found if errors]
    figures = ("count", "median", "mean", "p90", "signed")
    text = "Error is |estimate - measured| / measured; signed is the median with its sign, above 0 for one too long."
    blocks = [text, table(("rows", *figures), rows), *_by_kernel(comparison, figures)]
    borrowed = [f"- {name} has no calibration: estimated by that of {of}" for name, of in comparison.borrowed.items()]
    return [*blocks, "\n".join(borrowed)] if borrowed else blocks


def _errors(errors: Errors) -> list[str]:
    values = [f"{value * 100:.1f} %" for value in (errors.median_ape, errors.mean_ape, errors.p90_ape)]
    return [*values, fmt.NOTHING if errors.median_error is None else f"{errors.median_error * 100:+.1f} %"]


def _by_kernel(comparison: Comparison, figures: Sequence[str]) -> list[str]:
    """The errors of each kernel and path, over rows that its fit did not see."""
    rows = [
        (item.kernel, item.scope, item.dtype, cache_label(item.cache), f"{item.errors.count:,}", *_errors(item.errors))
        for item in comparison.by_kernel
    ]
    headers = ("kernel", "what was timed", "products", "cache", *figures)
    return ["Over rows that the fit did not see:", table(headers, rows, left=4)] if rows else []


def _extremes(comparison: Comparison) -> list[str]:
    """Cells over :data:`LONG_US` by fraction of the floor; shorter ones are launch and latency.

    Kernels that the choice does not take are left out: how slow they are there is why.
    """
    long = [item for item in comparison.rows if item.is_decode and item.row.time_us > LONG_US]
    decode = [item for item in long if item.row.picked is not False]
    if not decode:
        return []
    measured = all(item.measured_bound_s is not None for item in decode)
    figure = _of_measured if measured else _of_bound
    ranked = sorted(decode, key=lambda item: -(figure(item) or 0))
    headers = (*PLACE, "measured", "fraction")
    floor = "bound by this run's ceilings" if measured else "datasheet bound"
    text = f"Of {fmt.counted(len(decode), 'decode cell')} over {LONG_US:g} us, by {floor} over measured time."
    if len(decode) < len(long):
        text += f" {fmt.counted(len(long) - len(decode), 'cell')} left out: kernels that the choice does not take."
    if len(ranked) <= 2 * EXTREMES:
        return [text, table(headers, _fraction_rows(ranked, figure), left=2)]
    best, worst = _fraction_rows(ranked[:EXTREMES], figure), _fraction_rows(ranked[-EXTREMES:], figure)
    return [text, "Best:", table(headers, best, left=2), "Worst:", table(headers, worst, left=2)]


def _fraction_rows(items: Iterable[Compared], figure: Callable[[Compared], float | None]) -> list[tuple[str, ...]]:
    return [(*_place(item), fmt.seconds(item.time_s), f"{figure(item) or 0:.3f}") for item in items]


def _skipped(run: Run) -> list[str]:
    if not run.skipped:
        return []
    rows = [(item.kernel, item.case, item.reason) for item in run.skipped[:MOST_SHOWN]]
    return [table(("kernel", "cell", "reason"), rows, left=3), *_more(run.skipped)]
