"""What ``validate`` prints: the JSON's results, one sentence and notes; tables are in validate_tables.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..costs.measured_crossover import again_notes
from ..engines.load import load_engine
from ..engines.thresholds import NEWEST, EngineThreshold, distinct_thresholds
from ..report import format as fmt
from ..report.record import Explanation, Report, plain
from ..validate.compare import Compared, Comparison, Faster, Summary
from ..validate.recorded import Fill, Recorded, Recording
from ..validate.verdict import Verdict
from . import request
from .validate_tables import MOST_SHOWN, tables_of

if TYPE_CHECKING:
    from ..costs.layouts import Layout
    from ..hardware.calibration import Errors
    from ..hardware.gpu import GPU

APES = ("median_ape", "mean_ape", "p90_ape", "median_error")
SHAPE = ("kernel", "scope", "dtype", "cache", "heads", "batch", "queries", "context")


def report_of(recording: Recording, comparison: Comparison, verdict: Verdict, fill: Fill, kernel: str | None) -> Report:
    """The answer."""
    gpus = _gpus(recording)
    thresholds = _thresholds(recording) if comparison.crossover else ()
    results = _results(recording, comparison, verdict, thresholds)
    models = {item.model.name: item.model for item in recording.rows}
    sources = request.input_sources(models.values(), _layouts(recording), None)
    for gpu in gpus:
        sources |= request.input_sources((), (), gpu)
    return Report(
        command="validate",
        title=f"{', '.join(models)}   {fmt.counted(len(recording.rows), 'row')} of {_source(recording)}",
        subtitle=_subtitle(recording, gpus),
        inputs=_inputs(recording, gpus, fill, kernel),
        results=results,
        tables=tables_of(results),
        sentence=f"{'Holds' if verdict.passed else 'Does not hold'}: {'; '.join(verdict.reasons)}.",
        notes=tuple(_notes(recording, comparison)),
        sources=(*request.source_list(sources), *dict.fromkeys(item.source for item in thresholds)),
        input_sources=sources,
        rows_path="rows",
    )


def _gpus(recording: Recording) -> list[GPU]:
    return list({item.gpu.name: item.gpu for item in recording.rows}.values())


def _layouts(recording: Recording) -> list[Layout]:
    return list({item.layout.name: item.layout for item in recording.rows}.values())


def _source(recording: Recording) -> str:
    return recording.run.id if recording.run else recording.source.rpartition("/")[2]


def _subtitle(recording: Recording, gpus: list[GPU]) -> str:
    if len(gpus) > 1:
        return f"on {', '.join(gpu.name for gpu in gpus)}"
    dtypes = dict.fromkeys(item.row.dtype for item in recording.rows)
    forced = ", FORCED" if recording.forced else ""
    return request.gpu_phrase(gpus[0], next(iter(dtypes))) + forced


def _inputs(recording: Recording, gpus: list[GPU], fill: Fill, kernel: str | None) -> dict[str, Any]:
    return {
        "source": recording.source,
        "gpu": [gpu.name for gpu in gpus],
        "model": list(dict.fromkeys(item.model.name for item in recording.rows)),
        "dtype": fill.dtype,
        "mma_dtype": fill.mma_dtype,
        "kernel": kernel,
        "force": fill.force,
    }


def _results(
    recording: Recording, comparison: Comparison, verdict: Verdict, thresholds: tuple[EngineThreshold, ...]
) -> dict[str, Any]:
    rows = [_row(item) for item in comparison.rows]
    return {
        "row_count": len(rows),
        "forced": recording.forced,
        "run": _run(recording),
        "verdict": {
            "pass": verdict.passed,
            "reasons": list(verdict.reasons),
            "tolerances": plain(verdict.tolerances),
        },
        "bound_violations": [_faster(found, rows) for found in comparison.violations],
        "below_measured_ceilings": [_faster(found, rows) for found in comparison.below_measured],
        "summaries": [_summary(item) for item in comparison.summaries],
        "estimate": {
            "all": _errors(comparison.estimate),
            "over_100us": _errors(comparison.estimate_long),
            "by_regime": [{"regime": name, **plain(errors)} for name, errors in comparison.by_regime.items()],
            "by_kernel": [
                {**{name: getattr(item, name) for name in ("kernel", "scope", "dtype", "cache")}, **plain(item.errors)}
                for item in comparison.by_kernel
            ],
            "held_out": plain(comparison.held_out) if comparison.held_out else None,
            "calibrated": list(comparison.calibrated),
            "by_another_kernel": [{"kernel": own, "estimated_as": other} for own, other in comparison.borrowed.items()],
        },
        "kernels": plain(comparison.kernels),
        "dropped": plain(comparison.dropped),
        "skipped": plain(comparison.skipped),
        "crossover": plain(comparison.crossover),
        "engines": plain(thresholds),
        "rows": rows,
    }


def _errors(found: Errors | None) -> dict[str, Any]:
    """Errors, or a count of 0 where nothing is estimated."""
    return plain(found) if found else {"count": 0, **dict.fromkeys(APES)}


def _summary(item: Summary) -> dict[str, Any]:
    return {**plain(item), "estimate": _errors(item.estimate)}


def _run(recording: Recording) -> dict[str, Any] | None:
    """What a reader must know of the run; its file has all of it."""
    run = recording.run
    if run is None:
        return None
    ceilings = plain(run.ceilings)
    return {
        **{name: getattr(run, name) for name in ("id", "started", "finished", "stopped", "version", "plan", "seed")},
        "machine": plain(run.machine),
        "ceilings": ceilings,
    }


def _row(item: Compared) -> dict[str, Any]:
    over = {
        name: None if predicted is None else item.time_s / predicted
        for name, predicted in (
            ("time_over_bound", item.bound_s),
            ("time_over_measured_bound", item.measured_bound_s),
            ("time_over_estimate", item.estimate_s),
        )
    }
    return {
        "where": item.where,
        "gpu": item.gpu,
        "model": item.model,
        **{name: getattr(item.row, name) for name in SHAPE},
        "time_s": item.time_s,
        "p10_s": _seconds(item.row.p10_us),
        "p90_s": _seconds(item.row.p90_us),
        "flop": item.flop,
        "bytes": item.bytes,
        "bound_s": item.bound_s,
        "binds": item.binds,
        "measured_bound_s": item.measured_bound_s,
        "estimate_s": item.estimate_s,
        "regime": item.regime,
        "held_out": item.prediction.held_out if item.prediction else None,
        "fits_l2": item.fits_l2,
        "relative_error": item.row.relative_error,
        "uncaptured": item.row.uncaptured,
        **over,
    }


def _seconds(micros: float | None) -> float | None:
    return None if micros is None else micros / 1e6


def _faster(found: Faster, rows: list[dict[str, Any]]) -> dict[str, Any]:
    row = rows[found.row]
    return {
        "row": found.row,
        **{name: row[name] for name in ("where", "gpu", "model", *SHAPE, "time_s")},
        "bound_s": found.bound_s,
        "time_over_bound": row["time_s"] / found.bound_s,
        "bytes": row["bytes"],
        "fits_l2": row["fits_l2"],
        "cause": found.cause,
    }


def _thresholds(recording: Recording) -> tuple[EngineThreshold, ...]:
    """The engines' constants for the heads and GPUs of the rows that timed a path."""
    paths: dict[tuple[str, str, int], Recorded] = {
        (item.gpu.name, item.model.name, item.row.heads): item for item in recording.rows if item.row.scope == "naive"
    }
    asked = ((heads, item.gpu, bool(item.model.indexer)) for (_, _, heads), item in paths.items())
    return distinct_thresholds(map(load_engine, NEWEST), asked)


def _notes(recording: Recording, comparison: Comparison) -> list[str]:
    notes = list(recording.notes)
    if recording.run is None:
        notes.append("A CSV has neither measured ceilings nor checks: what rests on them is null.")
    elif all(item.measured_bound_s is None for item in comparison.rows):
        notes.append("The run holds no measured ceilings for its products: the bounds by them are null.")
    notes += _estimate_notes(comparison)
    if comparison.below_measured:
        count = fmt.counted(len(comparison.below_measured), "row")
        notes.append(f"{count} below the bound by measured ceilings: no violation, since a ceiling is a sample too.")
    if comparison.crossover:
        notes.append("Measured crossovers are interpolated between measured Q; the ends are of p10 and p90 times.")
        notes += again_notes(comparison.crossover, MOST_SHOWN)
    hidden = max(len(comparison.violations), len(comparison.skipped), len(comparison.crossover)) > MOST_SHOWN
    if hidden:
        notes.append(f"Tables list the first {MOST_SHOWN}; the JSON has all.")
    return notes


def _estimate_notes(comparison: Comparison) -> list[str]:
    runs = dict.fromkeys(run for item in comparison.rows if item.prediction for run in item.prediction.runs)
    if not runs:
        return ["No row has an estimate: its kernel is not calibrated on its GPU, or not for such a shape."]
    notes = [f"Estimates are by the calibration of run {', '.join(runs)}."]
    without = sum(item.prediction is None for item in comparison.rows)
    if without:
        notes.append(f"{without:,} of {fmt.counted(len(comparison.rows), 'row')} have no estimate: bounds alone.")
    for other in dict.fromkeys(comparison.borrowed.values()):
        own = ", ".join(name for name, borrowed in comparison.borrowed.items() if borrowed == other)
        notes.append(f"{own}: no calibration of its own; estimated as {other}, as --kernel asks, and not judged.")
    return notes


def explanations(recording: Recording) -> tuple[Explanation, ...]:
    """How the first row's figures come about."""
    from ..costs import formulas  # only where they are asked for
    from ..costs.counts import pairs
    from ..hardware.roofline import datasheet_ceilings
    from ..validate.compare import kernels_of
    from ..validate.timed import work_of

    item = recording.rows[0]
    kernels, work = kernels_of(item), work_of(item.row, item.row_bytes)
    texts = formulas.KERNELS["naive" if item.row.scope == "naive" else "absorbed"]
    names = {
        **formulas.attention_names(item.model, item.layout, tp=1),
        **formulas.work_names(work, pairs(work.queries, work.context, work.causal)),
        **formulas.ceiling_names(datasheet_ceilings(item.gpu, item.row.dtype)),
        "heads_per_rank": item.row.heads,
        "time_s": item.row.time_us / 1e6,
    }
    names |= {f"{kernel.name}_flop": kernel.flop for kernel in kernels}
    names |= {f"{kernel.name}_bytes": kernel.bytes for kernel in kernels}
    bound = " + ".join(formulas.bound_text(kernel.name) for kernel in kernels)
    what = "the kernels that the row timed, with its heads"
    return (
        Explanation("rows[0].flop", " + ".join(texts[kernel.name][0] for kernel in kernels), names, what),
        Explanation("rows[0].bytes", " + ".join(texts[kernel.name][1] for kernel in kernels), names, what),
        Explanation("rows[0].bound_s", bound, names, "roofline, by the datasheet; one kernel after another"),
        Explanation("rows[0].time_over_bound", f"time_s / ({bound})", names, "the measured median over the bound"),
    )
