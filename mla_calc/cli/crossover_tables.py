"""The tables of ``crossover``: by FLOPs, by bound, by estimate, as measured, and the engines' thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..costs.crossover import FlopCrossover, SparseFlopCrossover, TimeCrossover
from ..costs.estimated_crossover import EstimatedAtContext, EstimatedCrossover
from ..costs.measured_crossover import MeasuredAtContext
from ..engines.thresholds import EngineThreshold
from ..report import format as fmt
from ..report.record import Cell, Table
from . import sparse as dsa

STRETCHES_WIDTH = 36
"""Columns of the stretches by estimate, so that the table is no wider than a terminal; a comma is among them."""


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
        tables += _estimated_tables(estimated)
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


def map_tables(grid: Sequence[dict[str, Any]], what: str) -> Iterator[Table]:
    """Of the cells of a map, one for each TP and batch: queries downwards, contexts across."""
    places = {(cell["tp"], cell["batch"], cell["queries"], cell["context"]): at for at, cell in enumerate(grid)}
    contexts = sorted({cell["context"] for cell in grid})
    headers = ("Q", *(f"S {context:,}" if at == 0 else f"{context:,}" for at, context in enumerate(contexts)))
    for tp, batch in dict.fromkeys((cell["tp"], cell["batch"]) for cell in grid):
        rows = []
        for queries in sorted({cell["queries"] for cell in grid}):
            found = [places.get((tp, batch, queries, context)) for context in contexts]
            known = next(at for at in found if at is not None)
            rows.append((Cell(f"map[{known}].queries"), *(_map_cell(grid, at) for at in found)))
        where = f"TP {tp}, {fmt.counted(batch, 'request')}"
        yield Table(headers, tuple(rows), f"Map by {what}: factor for absorbed, or for naive (n); {where}")


def _map_cell(grid: Sequence[dict[str, Any]], at: int | None) -> str | Cell:
    """How many times less the cheaper path takes; a dash where there are more queries than keys."""
    if at is None:
        return "-"
    if grid[at]["naive_over_absorbed"] >= 1:
        return Cell(f"map[{at}].by", "short_factor")
    return f"n {fmt.short_factor(grid[at]['by'])}"


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


def _estimated_tables(estimated: EstimatedCrossover) -> Iterator[Table]:
    """One for each naive path; a point's stretches on as many lines as they take."""
    headers = ("context", "TP", "batch", "naive from", "for good", "which path wins")
    for name in dict.fromkeys(point.naive_kernel for point in estimated.by_context):
        rows: list[tuple[str | Cell, ...]] = []
        for index, point in enumerate(estimated.by_context):
            if point.naive_kernel != name:
                continue
            at = f"estimated.by_context[{index}]."
            columns = ("context", "tp", "batch", "first_queries_naive_wins", "naive_wins_to_end_from")
            first, *others = _estimated_stretches(point)
            rows.append((*(Cell(at + column) for column in columns), first))
            rows += [("",) * len(columns) + (line,) for line in others]
        yield Table(headers, tuple(rows), f"By estimate on this GPU ({name}), in queries (S; pairs causal)")


def _estimated_stretches(point: EstimatedAtContext) -> list[str]:
    """``absorbed to 330, naive to 1,024`` in lines: as far as both paths have estimates."""
    if not point.intervals:
        return ["no estimate"]
    before = point.intervals[0].from_queries - 1
    texts = [f"no estimate to {before:,}"] if before else []
    texts += [f"{item.path or 'no estimate'} to {item.to_queries:,}" for item in point.intervals]
    lines = [texts[0]]
    for text in texts[1:]:
        lines[-1] += ","
        if len(lines[-1]) + 1 + len(text) < STRETCHES_WIDTH:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


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
