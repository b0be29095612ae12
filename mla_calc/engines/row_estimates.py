"""What both paths of a row are estimated to take, each row as a step of its own.

An estimate is of whole kernels as they were measured, weights read and launches made: unlike a row's bound it
holds the weights, and the estimates of rows that share a kernel do not add up to the batch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..costs.estimates import PathEstimate, estimate_path
from ..costs.paths import Work
from ..hardware.calibration import PathName, Unknown
from ..hardware.gpu import GPU
from .batch import Row
from .pricing import Setting


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """Both paths of one row, per rank and layer, weights included."""

    absorbed: PathEstimate | Unknown
    naive: PathEstimate | Unknown

    @property
    def found(self) -> tuple[PathEstimate, ...]:
        """The paths that have an estimate."""
        return tuple(item for item in (self.absorbed, self.naive) if isinstance(item, PathEstimate))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the others have none."""
        return tuple(item.reason for item in (self.absorbed, self.naive) if isinstance(item, Unknown))


def estimate_rows(
    gpu: GPU, rows: Sequence[Row], setting: Setting, *, dtype: str, cache: str
) -> tuple[RowEstimate, ...]:
    """Every row's estimates, in the order given; rows that are alike are asked about once.

    Args:
        gpu: whose calibrations are used.
        rows: of the batch.
        setting: gives shapes, row width and ranks.
        dtype: of the products' operands.
        cache: name of the layout that the backend stores.
    """
    known: dict[Row, RowEstimate] = {}
    for row in rows:
        if row not in known:
            work = Work(queries=row.queries, context=row.context, row_bytes=setting.row_bytes, tp=setting.tp)
            known[row] = RowEstimate(*(_path(gpu, name, setting, work, dtype, cache) for name in ("absorbed", "naive")))
    return tuple(known[row] for row in rows)


def seconds(found: PathEstimate | Unknown) -> float | None:
    """The estimate, s, if there is one."""
    return found.seconds if isinstance(found, PathEstimate) else None


def _path(gpu: GPU, name: PathName, setting: Setting, work: Work, dtype: str, cache: str) -> PathEstimate | Unknown:
    return estimate_path(gpu, name, setting.mla, work, dtype=dtype, cache=cache)
