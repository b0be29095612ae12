"""The crossovers that a run measured on the GPU, of those that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..hardware.crossovers import Crossed, Crossovers
from ..hardware.gpu import GPU
from ..models.attention import MLA
from .paths import Work
from .sharding import heads_per_rank


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAtContext:
    """One crossover, its queries causal at S = ``context``, which is held fixed."""

    context: int
    tp: int
    heads: int
    """Per rank."""
    batch: int
    naive: str
    """Which naive path: ``naive`` as an engine runs it, ``naive_in_place``."""
    queries: float
    """Where both paths first took the same time, by medians."""
    low: float | None
    high: float | None
    """By the 10th and 90th percentiles; ``None``: beyond the queries that were measured."""
    crossed_again: tuple[int, ...]
    """Measured Q above at which the naive path was not the faster one; empty: from ``queries`` on it always was."""
    last_queries: float | None
    """Where ``crossed_again`` has any: from there on the naive path was always faster; ``None``: not at the most
    measured Q, or they crossed once."""
    run: str
    date: str


class CanCrossAgain(Protocol):
    """A measured crossover, of a run or of a preset."""

    @property
    def naive(self) -> str:
        """Which naive path."""

    @property
    def heads(self) -> int:
        """Per rank."""

    @property
    def batch(self) -> int:
        """Requests."""

    @property
    def context(self) -> int:
        """Held fixed."""

    @property
    def crossed_again(self) -> tuple[int, ...]:
        """Measured Q above the crossover at which the naive path is not the faster one."""

    @property
    def last_queries(self) -> float | None:
        """Where both took the same time for the last time."""


def measured_crossover(
    gpu: GPU, mla: MLA, work: Work, points: Iterable[tuple[int, int, int]], *, dtype: str, cache: str
) -> tuple[tuple[MeasuredAtContext, ...], str | None]:
    """What the preset records at the (context, tp, batch) of ``points``, and why some of them are not there.

    Nothing stands in for another: heads per rank, batch, context, widths, dtype and cache are those measured.

    Args:
        gpu: whose preset is asked.
        mla: the attention's widths.
        work: gives the byte widths.
        points: what was asked for.
        dtype: of the products' operands.
        cache: name of the cache layout.
    """
    kept, reason = _of_geometry(gpu, mla, work, dtype, cache)
    found: list[MeasuredAtContext] = []
    missing = False
    for context, tp, batch in points:
        heads = heads_per_rank(mla, tp)
        here = [
            _measured_at(tp, at, record)
            for record in kept
            for at in record.at
            if (at.context, at.heads, at.batch) == (context, heads, batch)
        ]
        found += here
        missing = missing or not here
    return tuple(found), reason or (f"measured were {_extent(kept)}" if missing else None)


def again_text(queries: Sequence[int], last: float | None) -> str:
    """Where absorbed was faster again above a crossover, and from where on it no longer was.

    Args:
        queries: measured ones, at least one, rising.
        last: where both took the same time for the last time; ``None``: absorbed was faster at the most measured.
    """
    text = f"at Q = {', '.join(f'{value:,}' for value in queries)}"
    return f"{text}, the most measured" if last is None else f"{text} (naive from {last:,.0f} on)"


def again_notes(items: Iterable[CanCrossAgain], most: int) -> list[str]:
    """One note on the places among ``items`` where the paths crossed more than once, ``most`` of them named."""
    again = [item for item in items if item.crossed_again]
    if not again:
        return []
    places = [
        f"{item.naive}, {item.heads} heads, batch {item.batch}, context {item.context:,}: "
        f"{again_text(item.crossed_again, item.last_queries)}"
        for item in again[:most]
    ]
    places += [f"{len(again) - most:,} more"] if len(again) > most else []
    return [f"Crossed more than once, the first is listed; absorbed is faster again: {'; '.join(places)}."]


def _of_geometry(gpu: GPU, mla: MLA, work: Work, dtype: str, cache: str) -> tuple[Sequence[Crossovers], str | None]:
    """The records of such an attention, or why there are none."""
    if not gpu.crossovers:
        return (), f"the preset of {gpu.name} records none"
    if work.weight_bytes != 2 or work.activation_bytes != 2:
        return (), "weights and activations of 2 bytes were measured"
    widths = (mla.kv_lora_rank, mla.qk_rope_head_dim, mla.qk_nope_head_dim, mla.v_head_dim)
    same = [item for item in gpu.crossovers if item.key[:4] == widths]
    if not same:
        known = dict.fromkeys("/".join(map(str, item.key[:4])) for item in gpu.crossovers)
        asked = "/".join(map(str, widths))
        return (), f"r/dr/dn/dv of {' and '.join(known)} were measured, not {asked}"
    kept = [item for item in same if (item.dtype, item.cache) == (dtype, cache)]
    if not kept:
        known = dict.fromkeys(f"{item.dtype} products over a {item.cache} cache" for item in same)
        return (), f"{' and '.join(known)} were measured"
    return kept, None


def _measured_at(tp: int, at: Crossed, record: Crossovers) -> MeasuredAtContext:
    return MeasuredAtContext(
        context=at.context,
        tp=tp,
        heads=at.heads,
        batch=at.batch,
        naive=at.naive,
        queries=at.queries,
        low=at.low,
        high=at.high,
        crossed_again=at.crossed_again,
        last_queries=at.last_queries,
        run=record.run,
        date=record.date.isoformat(),
    )


def _extent(kept: Sequence[Crossovers]) -> str:
    """Which heads were measured at which contexts, those with the same contexts and batches together."""
    seen: dict[int, set[tuple[int, int]]] = {}
    for at in (at for record in kept for at in record.at):
        seen.setdefault(at.heads, set()).add((at.batch, at.context))
    alike: dict[frozenset[tuple[int, int]], list[int]] = {}
    for heads in sorted(seen):
        alike.setdefault(frozenset(seen[heads]), []).append(heads)
    return "; ".join(f"{_listed(heads)} heads per rank at {_places(places)}" for places, heads in alike.items())


def _places(places: Iterable[tuple[int, int]]) -> str:
    by_batch: dict[int, list[int]] = {}
    for batch, context in sorted(places):
        by_batch.setdefault(batch, []).append(context)
    return " and ".join(f"contexts {_listed(contexts)}, batch {batch:,}" for batch, contexts in by_batch.items())


def _listed(values: Iterable[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)
