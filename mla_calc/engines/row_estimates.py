"""What both paths of a row are estimated to take, each row as a step of its own.

An estimate is of whole kernels as they were measured, weights read and launches made: unlike a row's bound it
holds the weights, and the estimates of rows that share a kernel do not add up to the batch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..costs.estimates import PathEstimator, Source
from ..costs.paths import Work
from ..costs.step_estimates import Step, StepEstimate, estimate_steps, why_unknown
from ..hardware.calibration import PathName
from ..hardware.gpu import GPU
from .batch import Row
from .pricing import RowEstimated, Setting

PATHS: tuple[PathName, PathName] = ("absorbed", "naive")


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """Both paths of one row, per rank and layer, weights included."""

    absorbed: StepEstimate | None
    naive: StepEstimate | None


@dataclass(frozen=True, slots=True)
class RowEstimates:
    """Every row's estimates, in the order given, and what they rest on."""

    rows: tuple[RowEstimate, ...] = ()
    sources: tuple[Source, ...] = ()
    kernels: tuple[str, ...] = ()
    """The implementations that rows are estimated by, each once."""
    reasons: tuple[str, ...] = ()
    """Why paths of rows have none, each once."""

    @property
    def priced(self) -> tuple[RowEstimated, ...]:
        """As a row's costs take them."""
        return tuple(RowEstimated(*_told(row.absorbed), *_told(row.naive)) for row in self.rows)


def _told(found: StepEstimate | None) -> tuple[float | None, str | None]:
    return (found.seconds, found.kernel) if found else (None, None)


def estimate_rows(gpu: GPU, rows: Sequence[Row], setting: Setting, *, dtype: str, cache: str) -> RowEstimates:
    """Every row's estimates; rows that are alike are asked about once.

    Args:
        gpu: whose calibrations are used.
        rows: of the batch.
        setting: gives shapes, row width and ranks.
        dtype: of the products' operands.
        cache: name of the layout that the backend stores.
    """
    steps = [Step(row.queries, row.context, 1, setting.tp) for row in rows]
    places = {step: place for place, step in enumerate(dict.fromkeys(steps))}
    work = Work(queries=1, context=1, row_bytes=setting.row_bytes, tp=setting.tp)
    estimators = [PathEstimator(gpu, name, setting.mla, dtype=dtype, cache=cache) for name in PATHS]
    absorbed, naive = (estimate_steps(path, list(places), work) for path in estimators)
    each = [RowEstimate(*both) for both in zip(absorbed.found, naive.found, strict=True)]
    found = [item for both in each for item in (both.absorbed, both.naive)]
    unknown = (
        why_unknown(path, step, work)
        for step, both in zip(places, each, strict=True)
        for path, item in zip(estimators, (both.absorbed, both.naive), strict=True)
        if item is None
    )
    return RowEstimates(
        rows=tuple(each[places[step]] for step in steps),
        sources=tuple(dict.fromkeys((*absorbed.sources, *naive.sources))),
        kernels=tuple(dict.fromkeys(item.kernel for item in found if item)),
        reasons=tuple(dict.fromkeys(unknown)),
    )
