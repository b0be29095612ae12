"""The tables of ``crossover``: by FLOPs, by bound, by estimate, as measured, and the engines' thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from ..costs.crossover import FlopCrossover, SparseFlopCrossover, TimeCrossover
from ..costs.estimated_crossover import EstimatedCrossover
from ..costs.measured_crossover import MeasuredAtContext
from ..engines.thresholds import EngineThreshold
from ..report.record import Cell, Table
from . import sparse as dsa


def tables_of(
    flop: FlopCrossover | SparseFlopCrossover,
    time: TimeCrossover | None,
    estimated: EstimatedCrossover | None,
    measured: tuple[MeasuredAtContext, ...],
    thresholds: tuple[EngineThreshold, ...],
) -> list[Table]:
    """Every table that has rows."""
    tables = [dsa.flop_table(flop) if isinstance(flop, SparseFlopCrossover) else _flop_table(flop)]
    if time:
        tables.append(_time_table(time))
    if estimated and any(point.searched_from_queries for point in estimated.by_context):
        tables.append(_estimated_table(estimated))
    if measured:
        tables.append(_measured_table(measured))
    engines = tuple(
        (
            item.engine,
            _backend(item),
            Cell(f"engines[{index}].threshold"),
            item.counts,
        )
        for index, item in enumerate(thresholds)
    )
    if engines:
        tables.append(Table(("engine", "backend", "threshold", "counts"), engines, "What the engines use"))
    return tables


def _flop_table(flop: FlopCrossover) -> Table:
    columns = ("queries_rectangular", "first_queries_naive_wins_rectangular")
    causal = ("queries_causal", "first_queries_naive_wins_causal")
    rows: list[tuple[str | Cell, ...]] = []
    for index in range(len(flop.by_context)):
        at = f"flop.by_context[{index}]."
        pair = [(Cell(at + equal, "number"), Cell(at + first)) for equal, first in (columns, causal)]
        rows.append((Cell(at + "context"), *pair[0], *pair[1]))
    limit = (Cell("flop.queries_limit", "number"), Cell("flop.first_queries_naive_wins"))
    rows.append(("without end", *limit, *limit))
    headers = ("context", "equal at", "naive from", "causal: equal at", "naive from")
    return Table(headers, tuple(rows), "By FLOPs, in queries (rectangular: context S; causal: prefix P)")


def _backend(item: EngineThreshold) -> str:
    """The backend, with what its threshold hangs on."""
    text = item.backend
    if item.heads_per_rank is not None:
        text += f", {item.heads_per_rank} heads"
    if item.compute_capability_major:
        text += f", {'/'.join(map(str, item.compute_capability_major))}.x"
    return text


def _time_table(time: TimeCrossover) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for index, point in enumerate(time.by_context):
        at = f"time.by_context[{index}]."
        rows.append(
            (
                *(Cell(at + axis) for axis in ("context", "tp", "batch")),
                Cell(at + "first_queries_naive_wins"),
                Cell(at + "first_queries_naive_wins_causal"),
                dsa.stretches(point.causal_intervals),
            )
        )
    headers = ("context", "TP", "batch", "naive from", "causal: from", "causal: which path wins")
    return Table(headers, tuple(rows), "By bound on this GPU, in queries (context is S; causal: P)")


def _estimated_table(estimated: EstimatedCrossover) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for index, point in enumerate(estimated.by_context):
        at = f"estimated.by_context[{index}]."
        known = point.searched_from_queries is not None
        searched = f"{point.searched_from_queries:,} to {point.searched_to_queries:,}" if known else "-"
        kernels = (Cell(at + "absorbed_kernel", "text"), Cell(at + "naive_kernel", "text"))
        axes = (Cell(at + axis) for axis in ("context", "tp", "batch"))
        rows.append((*axes, Cell(at + "first_queries_naive_wins"), searched, *kernels))
    headers = ("context", "TP", "batch", "naive from", "searched", "absorbed", "naive")
    return Table(headers, tuple(rows), "By estimate on this GPU, in queries (context is S, pairs causal)")


def _measured_table(measured: Sequence[MeasuredAtContext]) -> Table:
    """With a column more where a naive path was, above its first crossover, slower again."""
    again = any(at.crossed_again for at in measured)
    rows: list[tuple[str | Cell, ...]] = []
    for index, at in enumerate(measured):
        row = (
            *(Cell(f"measured[{index}].{axis}") for axis in ("context", "tp", "heads", "batch")),
            Cell(f"measured[{index}].naive", "text"),
            *(Cell(f"measured[{index}].{figure}", "number") for figure in ("queries", "low", "high")),
        )
        rows.append((*row, ", ".join(f"{queries:,}" for queries in at.crossed_again) or "-") if again else row)
    headers: tuple[str, ...] = ("context", "TP", "heads", "batch", "naive path", "naive from", "low", "high")
    headers += ("not at",) if again else ()
    return Table(headers, tuple(rows), "Measured on this GPU, in queries (context is S, pairs causal)")
