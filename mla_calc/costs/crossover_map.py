"""Both paths over a grid of contexts and queries, and the boundary between them: what the figure of `crossover` draws.

Pairs are causal and the context is held fixed while queries vary, new ones included: as crossovers are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .crossover import first_causal_queries
from .grid import Setting, check_grid, chunks
from .layouts import latent_row_bytes
from .paths import Work
from .sharding import heads_per_rank
from .sweeps import SWEEPS

MAP_QUERIES = tuple(2**power for power in range(11))
"""Queries of a map: 1 to 1,024."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """Both paths at one point, per rank and layer."""

    context: int
    queries: int
    tp: int
    batch: int
    absorbed_flop: int
    naive_flop: int
    absorbed_bound_s: float | None
    naive_bound_s: float | None
    naive_over_absorbed: float
    """By bound; by FLOPs without a GPU. Above 1 the absorbed path takes less."""
    by: float
    """How many times as much the path takes that takes more: this ratio, or its inverse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapBoundary:
    """The smallest causal Q at which the naive path takes less, S = ``context`` fixed; ``None``: at no Q up to S."""

    context: int
    tp: int
    heads: int
    """Per rank."""
    batch: int
    flop_queries: int | None
    bound_queries: int | None
    """``None`` too without a GPU."""


def map_size(contexts: Sequence[int], tps: Sequence[int], batches: Sequence[int]) -> int:
    """How many cells such a map has."""
    one: int = sum(queries <= context for context in contexts for queries in MAP_QUERIES)
    return one * len(tps) * len(batches)


def crossover_map(
    setting: Setting, contexts: Sequence[int], tps: Sequence[int], batches: Sequence[int]
) -> list[MapCell]:
    """Both paths at every point of the grid that has no more queries than context, context by context.

    Args:
        setting: the model, layout, GPU and byte widths.
        contexts: keys attended, the new ones included.
        tps: ranks, each of which the model can run at.
        batches: requests.

    Raises:
        InputError: a count beyond 64 bits.
    """
    sweep = SWEEPS["flops"]
    axes = {"tp": tuple(tps), "batch": tuple(batches), "queries": MAP_QUERIES, "context": tuple(contexts)}
    check_grid(sweep, setting, axes)
    ratio_of = "bound_s" if setting.ceilings else "flop"
    names = ("tp", "batch", "queries", "context", *_figures(setting))
    found = []
    for columns in chunks(sweep, setting, axes):
        ratios = (columns[f"naive.{ratio_of}"] / columns[f"absorbed.{ratio_of}"]).tolist()
        listed = [columns[name].tolist() for name in names]
        for ratio, values in zip(ratios, zip(*listed, strict=True), strict=True):
            found.append(_cell(dict(zip(names, values, strict=True)), ratio))
    return found


def _figures(setting: Setting) -> tuple[str, ...]:
    keys = ("flop", "bound_s") if setting.ceilings else ("flop",)
    return tuple(f"{path}.{key}" for path in ("absorbed", "naive") for key in keys)


def _cell(at: dict[str, object], ratio: float) -> MapCell:
    figures = {name.replace(".", "_"): value for name, value in at.items()}
    bounds = dict.fromkeys(("absorbed_bound_s", "naive_bound_s"))
    return MapCell(**(bounds | figures), naive_over_absorbed=ratio, by=max(ratio, 1 / ratio))  # type: ignore[arg-type]


def map_boundary(
    setting: Setting, contexts: Sequence[int], tps: Sequence[int], batches: Sequence[int]
) -> list[MapBoundary]:
    """Where the naive path first takes less at every context, TP and batch. Exact."""
    row = latent_row_bytes(setting.layout, setting.mla)
    work = Work(queries=1, context=1, row_bytes=row, weight_bytes=setting.weight_bytes)
    points = [(context, tp, batch) for context in contexts for tp in tps for batch in batches]
    found = []
    for context, tp, batch in points:
        at = replace(work, context=context, tp=tp, batch=batch, causal=True)
        by_bound = (
            first_causal_queries(setting.mla, at, setting.ceilings, setting.indexer) if setting.ceilings else None
        )
        found.append(
            MapBoundary(
                context=context,
                tp=tp,
                heads=heads_per_rank(setting.mla, tp),
                batch=batch,
                flop_queries=first_causal_queries(setting.mla, at, None, setting.indexer),
                bound_queries=by_bound,
            )
        )
    return found
