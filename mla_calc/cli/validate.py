"""``mla-calc validate``: measurements against the model's predictions, made here and now or recorded elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError, nearest, shown
from ..report.write import chosen_format, emit
from ..sizes import parse_count
from . import complete, options
from .validate_calibrate import calibrated, check_preset
from .validate_files import check_apart, check_writable, same_file

if TYPE_CHECKING:
    from ..validate.compare import Comparison
    from ..validate.record import Run
    from ..validate.recorded import Fill, Recording

app = options.command_app()

RECORD = "run.json"
"""A run beside its report."""
REPORT_FILES = ("report.md", RECORD)
MISSES = "The preset is written all the same: what does not hold is the estimate, by these constants."
ONLY_REPLAY = ("dtype", "mma_dtype")
ONLY_MEASURE = ("quick", "seed", "record")

ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Whose attention it is.", autocompletion=complete.models, show_default="dsv3"),
]
GpuOption = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        "-g",
        help="The GPU to measure; with --replay, that of the rows.",
        autocompletion=complete.gpus,
        show_default="auto: this machine's",
    ),
]
DtypeOption = Annotated[
    str | None,
    typer.Option("--dtype", help="--replay: cache layout of rows that name none.", autocompletion=complete.layouts),
]
MmaDtypeOption = Annotated[
    str | None,
    typer.Option(
        "--mma-dtype",
        help="--replay of a CSV: dtype of the products, whose peak bounds a row.",
        autocompletion=complete.mma_dtypes,
        show_default="the fastest that a kernel could use",
    ),
]


@app.command()
def validate(
    ctx: typer.Context,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", help="Compare recorded rows instead of measuring: a run's JSON, or a CSV."),
    ] = None,
    gpu: GpuOption = None,
    model: ModelOption = None,
    dtype: DtypeOption = None,
    mma_dtype: MmaDtypeOption = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", help="Measure this kernel alone; with --replay, estimate rows of others by it."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer cells: under a minute.")] = False,
    seed: Annotated[str, typer.Option("--seed", help="Of the order of measurement.")] = "0",
    force: Annotated[
        bool, typer.Option("--force", help="Take another GPU than --gpu all the same, and say so in the report.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Where the run's JSON goes.", show_default="mla-calc-<run>.json"),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="PATH", help="Write a Markdown report with its figures into this folder."),
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option("--calibrate", help="Write what the run calibrates into this GPU preset (YAML).")
    ] = None,
    format_name: options.Format = None,
    output: options.Output = None,
    explain: options.Explain = False,
) -> None:
    """Measure the kernels on this GPU and compare with bounds and estimates; --replay compares recorded rows."""
    _check_options(options.given(ctx), replay is not None)
    chosen_format(format_name, output)  # what is wrong is told before minutes of measuring
    ends = _Ends(_folder(report), calibrate, format_name, output, explain)
    read = {"--replay": replay, "--gpu": gpu, "--model": model, "--dtype": dtype}
    check_apart(read, {"--output": output, "--record": record, "--calibrate": calibrate}, ends.report, REPORT_FILES)
    ends.check()
    check_writable({"--output": output, "--record": record, "--calibrate": calibrate})
    from ..validate.recorded import Fill, read_recording

    fill = Fill(gpu=gpu, model=model, dtype=dtype, mma_dtype=_mma_dtype(mma_dtype), force=force)
    if replay is not None:
        _conclude(read_recording(replay, fill), kernel, fill, ends)
        return
    from .validate_measure import Wanted, measured, unfinished

    run, recording = measured(fill, Wanted(kernel, quick, parse_count(seed, "--seed", least=0), force, record))
    code = unfinished(run)
    if code and calibrate:
        sys.stderr.write(f"mla-calc: {calibrate} is left as it was: the run was stopped before its end\n")
        ends = replace(ends, calibrate=None)
    _conclude(recording, None, fill, ends, unfinished=code)


@dataclass(frozen=True, slots=True)
class _Ends:
    """What is to be written in the end."""

    report: Path | None
    calibrate: Path | None
    format_name: str | None
    output: Path | None
    explain: bool

    def check(self) -> None:
        """Refuse what could not be written, before anything is measured."""
        if self.report is not None:
            _check_folder(self.report)
        if self.calibrate is not None:
            check_preset(self.calibrate)


def _check_options(given: frozenset[str], replays: bool) -> None:
    """Refuse an option that would not be looked at."""
    for name in ONLY_MEASURE if replays else ONLY_REPLAY:
        if name in given:
            why = "--replay measures nothing" if replays else "it is for rows of a file: --replay"
            raise InputError(f"{options.spelled(name)}: {why}")


def _mma_dtype(name: str | None) -> str | None:
    from ..hardware.gpu import DTYPES

    if name is not None and name not in DTYPES:
        raise InputError(f"--mma-dtype {shown(name)}: one of {', '.join(DTYPES)} is accepted")
    return name


def _folder(report: str | None) -> Path | None:
    if report is not None and not report.strip():
        raise InputError("--report '': the name of a folder is expected; . is the current one")
    return None if report is None else Path(report)


def _check_folder(report: Path) -> None:
    if report.exists() and not report.is_dir():
        raise InputError(f"--report {report}: is a file; a folder is expected")
    if not report.parent.is_dir():
        raise InputError(f"--report {report}: the folder {report.parent} does not exist")
    try:
        with TemporaryFile(dir=report if report.is_dir() else report.parent):
            pass
    except OSError as error:
        raise InputError(f"--report {report}: cannot be written: {error.strerror}") from None
    if report.is_dir():
        check_writable({"--report": report / REPORT_FILES[0]})
    if find_spec("matplotlib") is None:
        raise InputError("--report: its figures need matplotlib", "pip install matplotlib")


def _conclude(recording: Recording, kernel: str | None, fill: Fill, ends: _Ends, unfinished: int = 0) -> None:
    """Compare, write what was asked for, print, and exit by the verdict, or by ``unfinished``."""
    from ..validate.compare import compare
    from ..validate.predicted import predictor
    from ..validate.verdict import judge
    from .validate_report import explanations, report_of

    run = recording.run
    if run is None and (ends.report or ends.calibrate):
        raise InputError(
            f"{'--report' if ends.report else '--calibrate'}: {recording.source} is no run of this tool",
            "a CSV lacks the GPU as it was, its ceilings and the checks",
        )
    if kernel is not None:
        _check_kernel(kernel, recording)
    notes, written = recording.notes, False
    if run is not None and ends.calibrate is not None:
        recording, written = calibrated(recording, run, ends.calibrate)
    comparison = compare(recording, predictor(kernel, run.id if run else None))
    if kernel is not None and kernel not in comparison.borrowed.values():
        recording = _unused(kernel, recording, comparison, written)
    verdict = judge(comparison)
    if written and not verdict.passed:
        recording = replace(recording, notes=(*recording.notes, MISSES))
    if run is not None and ends.report is not None:
        _write_report(replace(recording, notes=notes), run, comparison, ends.report)
    answer = report_of(recording, comparison, verdict, fill, kernel)
    if ends.explain:
        answer = replace(answer, explanations=explanations(recording))
    emit(answer, ends.format_name, ends.output, ends.explain)
    if unfinished or verdict.exit_code:
        raise typer.Exit(unfinished or verdict.exit_code)


def _check_kernel(kernel: str, recording: Recording) -> None:
    """Refuse a kernel that nothing is calibrated of and that is none of ours."""
    from ..validate.operands import OUR_KERNELS

    gpus = {item.gpu.name: item.gpu for item in recording.rows}
    found = [item.kernel for gpu in gpus.values() for item in gpu.calibration if item.path == "absorbed"]
    names = dict.fromkeys([*OUR_KERNELS, *(name for name in found if name)])
    if kernel not in names:
        known = ", ".join(names)
        raise InputError(
            f"--kernel {shown(kernel)}: {', '.join(gpus)} has no calibration of it; one of {known} is accepted",
            nearest(kernel, names) if kernel else None,
        )


def _unused(kernel: str, recording: Recording, comparison: Comparison, written: bool) -> Recording:
    """Say that ``kernel`` stands in for no row, or refuse it where nothing is estimated by it at all."""
    if kernel not in comparison.calibrated and not written:
        gpus = ", ".join(dict.fromkeys(item.gpu.name for item in recording.rows))
        raise InputError(
            f"--kernel {shown(kernel)}: estimates no row: {gpus} has no calibration of it for such shapes",
            "without --kernel every row gets its bounds",
        )
    note = f"--kernel {kernel} stands in for no row: each has an estimate by its own kernel, or none by this one."
    return replace(recording, notes=(*recording.notes, note))


def _write_report(recording: Recording, run: Run, comparison: Comparison, folder: Path) -> None:
    """The Markdown report, its figures and the run that they are of, in one folder."""
    from ..validate.page import write_page
    from ..validate.store import write_run

    page = write_page(
        run,
        comparison,
        folder,
        gpu=recording.rows[0].gpu,
        record_name=RECORD,
        forced=recording.forced,
        notes=recording.notes,
    )
    if not same_file(Path(recording.source), folder / RECORD):  # what is read is not written over
        write_run(run, folder / RECORD)
    sys.stderr.write(f"mla-calc: the report is in {page}\n")
