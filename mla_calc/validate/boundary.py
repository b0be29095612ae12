"""What a path that runs from end to end takes beyond the sum of its parts, each of which was timed alone."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..costs.estimates import PARTS
from ..hardware.calibration import Boundary, Errors, Fit, PathName
from ..hardware.gpu import GPU
from .accuracy import errors_of
from .estimate import estimate_row_s, is_held_out
from .record import Geometry, Row, Run

LEAST_ROWS = 8
"""Rows that a boundary is found from, at least."""


def boundaries_of(run: Run, gpu: GPU, date: datetime.date, seed: int, holdout: float) -> tuple[Boundary, ...]:
    """The boundary of every path that ``run`` timed with all of its parts, and the errors of estimates with it.

    Args:
        run: its rows that were not captured are left out.
        gpu: with the calibrations of this run.
        date: of the run.
        seed: of the choice of rows kept out.
        holdout: share of the launches kept out.
    """
    found = []
    for (path, kernel, dtype, cache), rows in _paths(run.rows):
        used = [row for row in rows if not is_held_out(row, seed, holdout)]
        if len(used) < LEAST_ROWS:
            continue
        boundary = Boundary(
            path=path,
            kernel=kernel,
            dtype=dtype,
            cache=cache,
            kv_lora_rank=run.geometry.kv_lora_rank,
            qk_rope_head_dim=run.geometry.qk_rope_head_dim,
            qk_nope_head_dim=run.geometry.qk_nope_head_dim,
            v_head_dim=run.geometry.v_head_dim,
            run=run.id,
            date=date,
            us=round(_middle_us(used), 3),
            fit=Fit(seed=seed, holdout=float(holdout), rows=len(used)),
        )
        held = [row for row in rows if is_held_out(row, seed, holdout)]
        errors = _errors(held, replace(gpu, boundaries=(boundary,)), run.geometry)
        found.append(replace(boundary, fit=replace(boundary.fit, held_out=errors)))
    return tuple(found)


def _paths(rows: Sequence[Row]) -> Iterator[tuple[tuple[PathName, str, str, str], list[Row]]]:
    """Rows of whole paths with all their parts, by path, implementation and dtypes."""
    groups: dict[tuple[PathName, str, str, str], list[Row]] = {}
    for row in rows:
        if row.scope == "attention" or row.uncaptured is not None:
            continue
        if set(row.parts_us) == set(PARTS[row.scope]):
            groups.setdefault((row.scope, row.kernel, row.dtype, row.cache), []).append(row)
    yield from groups.items()


def _middle_us(rows: Sequence[Row]) -> float:
    """The constant with the least sum of errors relative to the rows' times: a median, each row by 1 / time.

    A part of milliseconds wanders by more than any launch takes; short rows say what a boundary is.
    """
    beyond = sorted((row.time_us - sum(row.parts_us.values()), 1 / row.time_us) for row in rows)
    half, weight = sum(weight for _, weight in beyond) / 2, 0.0
    for us, share in beyond:
        weight += share
        if weight >= half:
            return us
    raise AssertionError("unreachable")


def _errors(rows: Sequence[Row], gpu: GPU, geometry: Geometry) -> Errors | None:
    """Of the whole path's estimates."""
    estimated = ((estimate_row_s(gpu, row, geometry), row.time_us) for row in rows)
    return rounded(errors_of((found * 1e6, time_us) for found, time_us in estimated if found is not None))


def rounded(errors: Errors | None) -> Errors | None:
    """To a hundredth of a percent, as a preset holds them."""
    if errors is None:
        return None
    return Errors(
        count=errors.count,
        median_ape=round(errors.median_ape, 4),
        mean_ape=round(errors.mean_ape, 4),
        p90_ape=round(errors.p90_ape, 4),
        median_error=None if errors.median_error is None else round(errors.median_error, 4),
    )
