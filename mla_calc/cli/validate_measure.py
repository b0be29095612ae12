"""The measuring half of ``validate``: opens the GPU, shows what runs, and keeps the run whatever ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError
from ..report.format import counted

if TYPE_CHECKING:
    from ..hardware.gpu import GPU
    from ..models.attention import Model
    from ..validate.device import Opened
    from ..validate.measure import Progress
    from ..validate.plan import Plan
    from ..validate.record import Run
    from ..validate.recorded import Fill, Recording

DID_NOT_HOLD, INTERRUPTED = 1, 130
NO_GPU = "--replay compares recorded rows, without a GPU"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a measuring run."""

    kernel: str | None
    quick: bool
    seed: int
    force: bool
    record: Path | None


def unfinished(run: Run) -> int:
    """The exit code of a run that was stopped; 0: it came to its end."""
    from ..validate.record import CTRL_C

    if run.finished is not None:
        return 0
    return INTERRUPTED if run.stopped == CTRL_C else DID_NOT_HOLD


def measured(fill: Fill, wanted: Wanted) -> tuple[Run, Recording]:
    """Measure, keep the run whatever ends it, and hand its rows on."""
    from ..hardware.load import load_gpu
    from ..models.load import load_model
    from ..validate.device import open_device
    from ..validate.recorded import DEFAULT_MODEL, recording_of_run

    try:
        gpu = load_gpu(fill.gpu or "auto")
    except InputError as error:
        raise InputError(str(error), error.hint if fill.gpu not in (None, "auto") else NO_GPU) from None
    model = load_model(fill.model or DEFAULT_MODEL)
    _check_writable(wanted.record)
    opened = open_device(gpu, force=wanted.force)
    run = _kept_run(_plan_of(gpu, model, opened, wanted), gpu, model, opened, wanted)
    sys.stderr.write(f"mla-calc: the run is in {_record_path(run, wanted.record)}\n")
    if not run.rows:
        sys.stderr.write(f"mla-calc: nothing was timed: {'; '.join(run.notes) or 'see what the run skipped'}\n")
        raise typer.Exit(unfinished(run) or DID_NOT_HOLD)
    names = replace(fill, gpu=fill.gpu or "auto", model=fill.model or DEFAULT_MODEL)
    return run, recording_of_run(run, str(_record_path(run, wanted.record)), names)


def _plan_of(gpu: GPU, model: Model, opened: Opened, wanted: Wanted) -> Plan:
    """The plan of the run, and on stderr how long it is."""
    from ..validate.kernels import KERNELS, pick  # torch and triton: open_device says where they are missing
    from ..validate.plan import make_plan

    plan = make_plan(
        "quick" if wanted.quick else "full",
        model=model,
        gpu=gpu,
        device=opened.device,
        free_bytes=opened.free_bytes,
        seed=wanted.seed,
        kernels=KERNELS,
        pick=pick,
        kernel=wanted.kernel,
    )

    minutes = max(1, round(plan.estimate_s / 60))
    sys.stderr.write(f"mla-calc: {counted(len(plan.cases), 'cell')}, about {counted(minutes, 'minute')}\n")
    return plan


def _kept_run(plan: Plan, gpu: GPU, model: Model, opened: Opened, wanted: Wanted) -> Run:
    """The run, written as it grows. Where a defect of ours ends it, stderr says where the rows until then are."""
    from ..validate.measure import measure
    from ..validate.store import write_run

    kept: list[Path] = []

    def keep(run: Run) -> None:
        path = _record_path(run, wanted.record)
        write_run(run, path)
        kept[:] = [path]

    try:
        with _progress() as progress:
            run = measure(plan, gpu, model, opened=opened, kernel=wanted.kernel, progress=progress, checkpoint=keep)
        keep(run)
    except BaseException:
        if kept:
            sys.stderr.write(f"mla-calc: the rows until then are in {kept[0]}\n")
        raise
    return run


def _record_path(run: Run, record: Path | None) -> Path:
    return record or Path(f"mla-calc-{run.id}.json")


def _check_writable(record: Path | None) -> None:
    """Refuse a --record that cannot be written before anything is measured."""
    path = record or Path("mla-calc-run.json")
    if path.is_dir():
        raise InputError(f"--record {path}: is a directory")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        where = f"--record {path}" if record else f"the current folder, {Path.cwd()}"
        raise InputError(f"{where}: no file can be written there", None if record else "--record names another place")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """What is running, on stderr: a bar where someone watches, else a line per stage."""
    if not sys.stderr.isatty():
        yield _StageLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    columns = (
        TextColumn("{task.fields[stage]:<8}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[running]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    # redrawn seldom: the drawing thread takes its share of the interpreter that launches kernels
    with Bar(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("", total=1, stage="", running="")

        def show(at: Progress) -> None:
            bar.update(task, completed=at.done, total=at.total, stage=at.stage, running=at.running)

        yield show


class _StageLines:
    """A line when a stage begins."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, at: Any) -> None:
        if at.stage != self._stage:
            self._stage = at.stage
            sys.stderr.write(f"mla-calc: {at.stage}, {at.total}\n")
            sys.stderr.flush()
