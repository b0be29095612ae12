"""The crossovers of one run as a GPU preset keeps them: those that were met, by the dtype and cache of their rows."""

from __future__ import annotations

import datetime
from typing import overload

from ..hardware.crossovers import Crossed, Crossovers
from .crossing import Met, Pair, met, pairs_of
from .record import Run


def crossovers_of(run: Run, date: datetime.date) -> tuple[Crossovers, ...]:
    """Every crossover that ``run`` met, one record for each dtype and cache that its paths were timed with.

    Queries are kept to four digits: more than a run repeats. Paths that did not cross where they were measured
    leave nothing.
    """
    kinds: dict[tuple[str, str], list[Crossed]] = {}
    for pair in pairs_of(run.rows):
        times = met(pair)
        if times.measured_queries is not None:
            kinds.setdefault((pair.place.dtype, pair.place.cache), []).append(
                _crossed(pair, times, times.measured_queries)
            )
    return tuple(
        Crossovers(
            run=run.id,
            date=date,
            kv_lora_rank=run.geometry.kv_lora_rank,
            qk_rope_head_dim=run.geometry.qk_rope_head_dim,
            qk_nope_head_dim=run.geometry.qk_nope_head_dim,
            v_head_dim=run.geometry.v_head_dim,
            dtype=dtype,
            cache=cache,
            at=tuple(at),
        )
        for (dtype, cache), at in kinds.items()
    )


def _crossed(pair: Pair, times: Met, queries: float) -> Crossed:
    return Crossed(
        naive=pair.name,
        heads=pair.place.heads,
        batch=pair.place.batch,
        context=pair.place.context,
        queries=_four_digits(queries),
        low=_four_digits(times.low),
        high=_four_digits(times.high),
        crossed_again=times.crossed_again,
        last_queries=_four_digits(times.last_queries),
    )


@overload
def _four_digits(value: float) -> float: ...
@overload
def _four_digits(value: None) -> None: ...
def _four_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
