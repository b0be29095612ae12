"""One measuring run: ceilings, checks, then every case of the plan, with all that was measured kept whatever ends it.

The loop imports no torch: what touches the device is a :class:`Bench`, and ``bench.CudaBench`` is the real one.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from .. import __version__
from ..errors import InputError
from ..hardware.gpu import GPU
from ..models.attention import Model
from .case import Case
from .device import Opened
from .plan import Plan
from .record import CTRL_C, EVERY_CELL, Check, MeasuredCeilings, Row, Run, Skipped
from .timed import geometry_of
from .watchdog import Watchdog

Stage = Literal["ceilings", "checks", "cells", "again", "sustained"]

CHECKPOINT_S = 5.0
HANG_S = 120.0
"""A cell that takes longer hangs: compiling included, the slowest takes a quarter of it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    stage: Stage
    done: int
    total: int
    """Of this stage: kernels to check, cells to time."""
    running: str
    """What runs now; empty once the stage is over."""


class CellFailedError(Exception):
    """A cell that cannot be timed, ``str`` says why; the others can."""


class DeviceLostError(Exception):
    """The device does no more work in this process; ``str`` says what it said."""


class Bench(Protocol):
    """What a run asks of the device."""

    def ceilings(self) -> tuple[MeasuredCeilings, Sequence[str]]:
        """The measured ceilings, and notes about those that could not be measured."""

    def sustained(self, ceilings: MeasuredCeilings) -> MeasuredCeilings:
        """``ceilings`` with the product's rate after seconds of nothing else."""

    def check(self, kernel: str) -> Sequence[Check]:
        """One kernel against float64."""

    def time(self, case: Case) -> Row:
        """One case. Raises CellFailedError, or DeviceLostError after which nothing works."""


def measure(
    plan: Plan,
    gpu: GPU,
    model: Model,
    *,
    opened: Opened,
    kernel: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    checkpoint: Callable[[Run], None] | None = None,
    bench: Bench | None = None,
    clock: Callable[[], float] = time.monotonic,
    hang_s: float = HANG_S,
) -> Run:
    """Measure ``plan`` on the opened GPU.

    Args:
        plan: from :func:`~mla_calc.validate.plan.make_plan`, made with the same ``opened`` and ``kernel``.
        gpu: the preset that the run is about; it gives the run's id its name.
        model: whose attention is measured.
        opened: from :func:`~mla_calc.validate.device.open_device`.
        kernel: the kernel that the plan was made for; noted in the run.
        progress: called before each thing that is run, and once at the end of each stage.
        checkpoint: called with all rows so far, about every five seconds; as soon as the run ends, whatever ends it;
            and, from another thread, when a kernel hangs, right before the process ends with exit code 2: a kernel
            that runs cannot be stopped.
        bench: a stand-in for the device.
        clock: seconds.
        hang_s: after so long a check or a cell counts as hung.

    Returns:
        the run. ``finished`` is ``None`` where Ctrl-C (a KeyboardInterrupt, which ends here) or a lost device
        stopped it, and ``stopped`` says which; its rows are complete. A cell without memory, a kernel that failed its
        check or could not be checked, and what the budget left out are in ``skipped``.

    Raises:
        InputError: a model without MLA. Any other error is a defect of ours; the rows until then went to
            ``checkpoint``.
    """
    state = _State(_begin(plan, gpu, model, opened, kernel), checkpoint, clock, plan.budget_s)
    try:
        with Watchdog(hang_s, state.hung) as watchdog:
            if bench is None:
                from .bench import CudaBench

                bench = CudaBench(plan, model, opened)
            _ceilings(bench, state, progress, watchdog)
            failed = _checks(bench, plan, state, progress, watchdog)
            timed = _cells(bench, plan, state, failed, progress, watchdog)
            for visit in range(1, plan.visits):
                _again(bench, timed, visit, state, progress, watchdog)
            _sustained(bench, state, progress, watchdog)
            state.update(finished=_now())
    except KeyboardInterrupt:
        state.stop(CTRL_C, "Stopped by Ctrl-C: the rows measured until then.")
    except (CellFailedError, DeviceLostError) as error:  # the former where not even the bench could be set up
        state.stop(str(error), f"The GPU failed, and the run ended there: {error}")
    except BaseException:
        with suppress(InputError, OSError):  # a record that cannot be written hides no defect
            state.keep()
        raise
    _end(state, opened)
    return state.run


def _end(state: _State, opened: Opened) -> None:
    """Keep the run, then ask for the clocks: nvidia-smi can take its time, and Ctrl-C can be pressed once more."""
    try:
        state.keep()
    except KeyboardInterrupt:
        state.keep()
    with suppress(KeyboardInterrupt):
        state.update(after=opened.telemetry())


@dataclass
class _State:
    """The run so far. The watchdog's thread reads ``run``, which is replaced whole, never changed."""

    run: Run
    checkpoint: Callable[[Run], None] | None
    clock: Callable[[], float]
    budget_s: float
    began: float = field(init=False)
    saved: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.saved = self.clock()

    def update(self, **changes: object) -> None:
        self.run = replace(self.run, **changes)  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        self.update(notes=(*self.run.notes, text))

    def stop(self, by: str, text: str) -> None:
        self.note(text)
        self.update(stopped=by)

    def hung(self, what: str) -> None:
        """The last words of a run that will not come back."""
        self.stop("a kernel hangs", f"{what}, and the run ended there.")
        self.keep()

    def skip(self, kernel: str, case: str, reason: str) -> None:
        self.update(skipped=(*self.run.skipped, Skipped(kernel=kernel, case=case, reason=reason)))

    def spent(self) -> bool:
        return self.clock() - self.began > self.budget_s

    def save(self) -> None:
        """A checkpoint, if the last one is old enough."""
        if self.clock() - self.saved >= CHECKPOINT_S:
            self.keep()
            self.saved = self.clock()

    def keep(self) -> None:
        """A checkpoint, now."""
        if self.checkpoint is not None:
            self.checkpoint(self.run)


def _begin(plan: Plan, gpu: GPU, model: Model, opened: Opened, kernel: str | None) -> Run:
    started = datetime.datetime.now(datetime.UTC)
    short = gpu.aliases[0] if gpu.aliases else "-".join(gpu.name.lower().split())
    notes = [*opened.notes]
    if kernel is not None:
        notes.append(f"--kernel {kernel}: the other kernels were not measured.")
    return Run(
        id=f"{started:%Y%m%dT%H%M%SZ}-{short}",
        started=started.isoformat(timespec="seconds"),
        version=__version__,
        plan=plan.kind,
        seed=plan.seed,
        machine=opened.machine,
        geometry=geometry_of(model),
        ceilings=MeasuredCeilings(),
        before=opened.telemetry(),
        skipped=plan.skipped,
        notes=tuple(notes),
    )


def _ceilings(bench: Bench, state: _State, progress: Callable[[Progress], None], watchdog: Watchdog) -> None:
    progress(Progress("ceilings", 0, 1, "copy, read, matrix product, launch"))
    with watchdog.over("the ceilings"):
        try:
            found, notes = bench.ceilings()
            state.update(ceilings=found, notes=(*state.run.notes, *notes))
        except CellFailedError as error:
            state.note(f"The ceilings could not be measured: {error}")
    progress(Progress("ceilings", 1, 1, ""))


def _sustained(bench: Bench, state: _State, progress: Callable[[Progress], None], watchdog: Watchdog) -> None:
    """Last, so that the heat of it is in no cell."""
    progress(Progress("sustained", 0, 1, "a matrix product, for seconds"))
    with watchdog.over("the sustained product"):
        try:
            state.update(ceilings=bench.sustained(state.run.ceilings))
        except CellFailedError as error:
            state.note(f"The sustained product could not be measured: {error}")
    progress(Progress("sustained", 1, 1, ""))


def _checks(
    bench: Bench, plan: Plan, state: _State, progress: Callable[[Progress], None], watchdog: Watchdog
) -> frozenset[str]:
    """Check every kernel that has cells. Those that failed, or were not checked, are not timed: their names."""
    failed = []
    for done, name in enumerate(plan.kernels):
        progress(Progress("checks", done, len(plan.kernels), name))
        with watchdog.over(f"the checks of {name}"):
            checks = _checks_of(name, bench)
        state.update(checks=(*state.run.checks, *checks))
        wrong = [check for check in checks if not check.correct]
        if wrong:
            failed.append(name)
            why = f"{wrong[0].case}: {wrong[0].message}" if wrong[0].message else wrong[0].case
            state.skip(name, EVERY_CELL, f"{len(wrong)} of {len(checks)} checks failed ({why})")
        state.save()
    progress(Progress("checks", len(plan.kernels), len(plan.kernels), ""))
    return frozenset(failed)


def _checks_of(name: str, bench: Bench) -> tuple[Check, ...]:
    """What the checks of a kernel found: one at least. One that could not be made, or none at all, is a failed one."""
    try:
        checks = tuple(bench.check(name))
    except CellFailedError as error:
        return (_not_made(name, f"could not be made: {error}"),)
    return checks or (_not_made(name, "the kernel takes none of the cases that are checked"),)


def _not_made(name: str, why: str) -> Check:
    return Check(kernel=name, case="every check", relative_error=None, tolerance=0.0, correct=False, message=why)


def _cells(
    bench: Bench,
    plan: Plan,
    state: _State,
    failed: frozenset[str],
    progress: Callable[[Progress], None],
    watchdog: Watchdog,
) -> list[Case]:
    """Time the cells of the kernels that did not fail; the cases of the rows are returned, in their order."""
    cases = [case for case in plan.cases if case.kernel not in failed]
    timed = []
    for done, case in enumerate(cases):
        if state.spent():
            _left_out(cases[done:], state)
            break
        progress(Progress("cells", done, len(cases), str(case)))
        with watchdog.over(str(case)):
            try:
                row = bench.time(case)
            except CellFailedError as error:
                state.skip(case.kernel, str(case), str(error))
                continue
        state.update(rows=(*state.run.rows, replace(row, order=done)))
        timed.append(case)
        state.save()
    progress(Progress("cells", len(cases), len(cases), ""))
    return timed


def _again(
    bench: Bench,
    timed: Sequence[Case],
    visit: int,
    state: _State,
    progress: Callable[[Progress], None],
    watchdog: Watchdog,
) -> None:
    """Time the cells of all rows once more, in the same order, and keep the shorter times.

    A cell that fails now keeps the time that it has; so do those that the budget leaves no time for.
    """
    shorter = done = 0
    for done, case in enumerate(timed):
        if state.spent():
            break
        progress(Progress("again", done, len(timed), str(case)))
        with watchdog.over(str(case)), suppress(CellFailedError):
            row = replace(bench.time(case), order=visit * len(timed) + done)
            rows = state.run.rows
            if row.time_us < rows[done].time_us:
                state.update(rows=(*rows[:done], row, *rows[done + 1 :]))
                shorter += 1
        state.save()
    else:
        done = len(timed)
    progress(Progress("again", len(timed), len(timed), ""))
    state.note(
        f"{done:,} of {len(timed):,} cells were timed again, one pass over all later, and were shorter in {shorter:,}: "
        "the shorter time is kept."
    )


def _left_out(cases: Sequence[Case], state: _State) -> None:
    reason = f"the time of this run, {state.budget_s:g} s, was used up; the order is random"
    for name, count in Counter(case.kernel for case in cases).items():
        state.skip(name, f"{count} cells", reason)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
