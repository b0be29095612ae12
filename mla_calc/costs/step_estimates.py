"""Estimates of many steps at once: one after another, or, where there are very many, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from ..hardware.calibration import Boundary, Calibration, Cell
from ..hardware.latency import Unknown, inside, priced
from .estimates import (
    PathEstimate,
    PathEstimator,
    Source,
    boundary_s,
    cell_of,
    implementation_kernels,
    not_measured,
    source_of,
)
from .paths import Work

FEW = 1000
"""Steps that are estimated one after another: numpy takes longer to import than they do."""
FEW_WITH_NUMPY = 8
"""The same where arrays are in use already."""
LARGE = 1 << 24
"""A context or batch from which no array is used: its counts might not fit into 64 bits."""


class Step(NamedTuple):
    """One step, per rank and layer."""

    queries: int
    context: int
    batch: int = 1
    tp: int = 1


class StepEstimate(NamedTuple):
    """What a path is estimated to take for one step, s, and by which implementation."""

    kernel: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StepEstimates:
    """Of every step, in the order given, and the runs that the constants come from."""

    found: tuple[StepEstimate | None, ...]
    """``None``: there is no estimate; :func:`why_unknown` says why."""
    sources: tuple[Source, ...]


def why_unknown(estimator: PathEstimator, step: Step, work: Work) -> str:
    """Why there is no estimate of ``step``; it names the step's own figures."""
    found = estimator.at(_at(work, step))
    assert isinstance(found, Unknown)
    return found.reason


def estimate_steps(
    estimator: PathEstimator, steps: Sequence[Step], work: Work, few: int | None = None
) -> StepEstimates:
    """The estimate of every step.

    Args:
        estimator: of one path.
        steps: as many as there are.
        work: gives the byte widths and the kind of pairs.
        few: up to so many are estimated one after another, :data:`FEW` unless said.
    """
    if (
        len(steps) <= (FEW if few is None else few)
        or not estimator.implementations
        or not_measured(replace(work, queries=2))
    ):
        return _one_by_one(estimator, steps, work)
    return _as_arrays(estimator, steps, work)


def _one_by_one(estimator: PathEstimator, steps: Sequence[Step], work: Work) -> StepEstimates:
    found = [estimator.at(_at(work, step)) for step in steps]
    known = [item for item in found if isinstance(item, PathEstimate)]
    return StepEstimates(
        tuple(StepEstimate(item.kernel, item.seconds) if isinstance(item, PathEstimate) else None for item in found),
        tuple(dict.fromkeys(source for item in known for source in item.sources)),
    )


def _at(work: Work, step: Step) -> Work:
    return replace(work, queries=step.queries, context=step.context, batch=step.batch, tp=step.tp)


def _as_arrays(estimator: PathEstimator, steps: Sequence[Step], work: Work) -> StepEstimates:
    import numpy as np

    usable = [context < LARGE and batch < LARGE and queries <= context for queries, context, batch, _ in steps]
    within = [step for step, fits in zip(steps, usable, strict=True) if fits]
    names = _implementations_of(estimator, within)
    axes = np.array(list(zip(*within, strict=True)), dtype=np.int64).reshape(len(Step._fields), -1)  # a row per field
    seconds, kernels = np.full(len(within), np.inf), np.full(len(within), None, dtype=object)
    used: dict[Calibration | Boundary, None] = {}
    for name in estimator.implementations:
        mine = np.flatnonzero([name in of for of in names])
        if not len(mine):
            continue
        found = _sums(estimator, name, replace(work, **dict(zip(Step._fields, axes[:, mine], strict=True))), used)
        better = found < seconds[mine]  # NaN never is
        seconds[mine[better]], kernels[mine[better]] = found[better], name
    known = iter(zip(kernels.tolist(), seconds.tolist(), strict=True))
    answers = (next(known) if fits else (None, 0.0) for fits in usable)
    rest = _one_by_one(estimator, [step for step, fits in zip(steps, usable, strict=True) if not fits], work)
    others = iter(rest.found)
    return StepEstimates(
        tuple(
            (StepEstimate(kernel, time_s) if kernel is not None else None) if fits else next(others)
            for (kernel, time_s), fits in zip(answers, usable, strict=True)
        ),
        tuple(dict.fromkeys((*map(source_of, used), *rest.sources))),
    )


def _implementations_of(estimator: PathEstimator, steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """The implementations that answer for each step."""
    if not estimator.chooses:
        return [tuple(estimator.implementations)] * len(steps)
    heads = estimator.mla.heads
    return [(estimator.taken(heads // step.tp, step.batch, step.queries, step.context),) for step in steps]


def _sums(estimator: PathEstimator, name: str, work: Work, used: dict[Calibration | Boundary, None]) -> Any:
    """Seconds of each of an array of steps, NaN where there is no estimate; ``used`` gains what they rest on."""
    import numpy as np

    chosen, cell = estimator.implementations[name], cell_of(estimator.mla, work)
    total, t0_s = np.zeros(work.queries.shape), np.zeros(work.queries.shape)
    rest_on: list[tuple[Calibration, Any]] = []
    for kernel in implementation_kernels(estimator.path, estimator.mla, work, name):
        if kernel.name not in chosen.parts:
            continue
        flop, moved = np.broadcast_to(kernel.flop, total.shape), np.broadcast_to(kernel.bytes, total.shape)
        open_ = np.ones(total.shape, dtype=bool)
        for item in chosen.parts[kernel.name]:
            takes = open_ & inside(item, cell, flop, moved, estimator.gpu)
            if not takes.any():
                continue
            found = priced(item, _part_of(cell, takes), flop[takes], moved[takes], estimator.gpu)
            total[takes] += found.seconds
            t0_s[takes] += found.t0_s
            open_ &= ~takes
            rest_on.append((item, takes))
        total[open_] = np.nan
    used |= dict.fromkeys(item for item, takes in rest_on if (takes & ~np.isnan(total)).any())
    if chosen.boundary and not np.isnan(total).all():
        used[chosen.boundary] = None
    return total + boundary_s(chosen.boundary, t0_s)


def _part_of(cell: Cell, takes: Any) -> Cell:
    """The calls of ``cell`` that ``takes`` marks."""
    values = {item.name: getattr(cell, item.name) for item in fields(cell)}
    return Cell(**{name: value if isinstance(value, int) else value[takes] for name, value in values.items()})
