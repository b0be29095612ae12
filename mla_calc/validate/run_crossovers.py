"""The crossovers of one run as a GPU preset keeps them: those that were met, by the dtype and cache of their rows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from ..hardware.crossovers import Crossed, Crossovers
from .crossing import met
from .record import Row, Run

Shape = tuple[int, int, int]
"""Heads, context, batch: by these they are put in order."""


def crossovers_of(run: Run, date: datetime.date) -> tuple[Crossovers, ...]:
    """Every crossover that ``run`` met, one record for each dtype and cache that its paths were timed with.

    Queries are kept to four digits: more than a run repeats. Paths that did not cross where they were measured
    leave nothing.
    """
    kinds = dict.fromkeys((row.dtype, row.cache) for row in run.rows if row.scope == "naive")
    found = []
    for dtype, cache in kinds:
        at = _crossed([row for row in run.rows if (row.dtype, row.cache) == (dtype, cache)])
        if at:
            found.append(
                Crossovers(
                    run=run.id,
                    date=date,
                    kv_lora_rank=run.geometry.kv_lora_rank,
                    qk_rope_head_dim=run.geometry.qk_rope_head_dim,
                    qk_nope_head_dim=run.geometry.qk_nope_head_dim,
                    v_head_dim=run.geometry.v_head_dim,
                    dtype=dtype,
                    cache=cache,
                    at=at,
                )
            )
    return tuple(found)


def _crossed(rows: Sequence[Row]) -> tuple[Crossed, ...]:
    absorbed = _by_shape(row for row in rows if row.scope == "absorbed")
    found = []
    for name in sorted({row.kernel for row in rows if row.scope == "naive"}):
        naive = _by_shape(row for row in rows if row.scope == "naive" and row.kernel == name)
        for shape in sorted(naive.keys() & absorbed.keys()):
            times = met(absorbed[shape], naive[shape])
            if times.measured_queries is not None:
                heads, context, batch = shape
                found.append(
                    Crossed(
                        naive=name,
                        heads=heads,
                        batch=batch,
                        context=context,
                        queries=_four_digits(times.measured_queries),
                        low=_four_digits(times.low),
                        high=_four_digits(times.high),
                    )
                )
    return tuple(found)


def _by_shape(rows: Iterable[Row]) -> Mapping[Shape, list[Row]]:
    found: dict[Shape, list[Row]] = {}
    for row in rows:
        found.setdefault((row.heads, row.context, row.batch), []).append(row)
    return found


@overload
def _four_digits(value: float) -> float: ...
@overload
def _four_digits(value: None) -> None: ...
def _four_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
