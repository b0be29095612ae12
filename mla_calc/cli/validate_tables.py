"""The tables of ``validate``: summaries of the rows, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..report import format as fmt
from ..report.record import Cell, Table

MOST_SHOWN = 40
"""Entries of a list that a table shows; the JSON has all of them."""

Results = dict[str, Any]
Entry = str | Cell
Rows = tuple[tuple[Entry, ...], ...]


def tables_of(results: Results) -> tuple[Table, ...]:
    """Every table that has rows."""
    makers: tuple[Callable[[Results], list[Table]], ...] = (
        _summaries,
        _violations,
        _estimates,
        _kernels,
        _dropped,
        _crossovers,
        _engines,
        _skipped,
    )
    return tuple(table for make in makers for table in make(results))


def _summaries(results: Results) -> list[Table]:
    """Measured over bound, a table per GPU."""
    entries = list(enumerate(results["summaries"]))
    ceilings = any(entry["median_over_measured_bound"] is not None for _, entry in entries)
    gpus = list(dict.fromkeys(entry["gpu"] for _, entry in entries))
    headers: tuple[str, ...] = ("kernel", "scope", "cache", "rows", "median", "least", "most")
    caption = "Measured over the datasheet bound"
    if ceilings:
        headers, caption = (*headers, "ceilings"), f"{caption}; last, the median over measured ceilings"
    return [
        Table(
            headers,
            tuple(_summary(f"summaries[{index}].", ceilings) for index, entry in entries if entry["gpu"] == gpu),
            caption if len(gpus) == 1 else f"{gpu}: {caption}",
        )
        for gpu in gpus
    ]


def _summary(at: str, ceilings: bool) -> tuple[Entry, ...]:
    texts = tuple(Cell(at + name, "text") for name in ("kernel", "scope", "cache"))
    over = [f"{name}_over_bound" for name in ("median", "least", "most")]
    if ceilings:
        over.append("median_over_measured_bound")
    return (*texts, Cell(at + "count"), *(Cell(at + name, "factor") for name in over))


def _violations(results: Results) -> list[Table]:
    found = results["bound_violations"]
    if not found:
        return []
    rows: Rows = tuple(
        (
            place(found[index]["where"]),
            Cell(f"bound_violations[{index}].kernel", "text"),
            *(Cell(f"bound_violations[{index}].{name}") for name in ("heads", "batch", "queries", "context")),
            Cell(f"bound_violations[{index}].time_s", "seconds"),
            Cell(f"bound_violations[{index}].bound_s", "seconds"),
        )
        for index in range(min(len(found), MOST_SHOWN))
    )
    causes: dict[str, list[str]] = {}
    for entry in found:
        causes.setdefault(entry["cause"], []).append(place(entry["where"]))
    headers = ("row", "kernel", "heads", "batch", "Q", "context", "time", "bound")
    meaning = tuple((_summed(places), cause) for cause, places in causes.items())
    return [Table(headers, rows, "Below the datasheet bound"), Table(("row", "what it means"), meaning)]


def place(where: str) -> str:
    """A row's place without its file: ``rows[3]``, or the line of a CSV."""
    last = where.rpartition(":")[2].strip()
    return f"line {last}" if last.isdigit() else last


def _summed(places: Sequence[str]) -> str:
    """The one place, or how many: the JSON has the cause of each row."""
    return places[0] if len(places) == 1 else fmt.counted(len(places), "row")


def _estimates(results: Results) -> list[Table]:
    estimate = results["estimate"]
    if not estimate["all"]["count"]:
        return []
    named = [("all rows", "all"), ("over 100 us", "over_100us")]
    named += [(entry["regime"], f"by_regime[{index}]") for index, entry in enumerate(estimate["by_regime"])]
    if estimate["held_out"]:
        named.append(("decode, held out of the fit", "held_out"))
    errors = ("median_ape", "mean_ape", "p90_ape", "median_error")
    rows: Rows = tuple(
        (
            name,
            Cell(f"estimate.{key}.count"),
            *(Cell(f"estimate.{key}.{error}", "error_percent") for error in errors),
        )
        for name, key in named
    )
    return [Table(("estimate, error", "rows", "median", "mean", "p90", "signed"), rows, "Estimated against measured")]


def _kernels(results: Results) -> list[Table]:
    checked = [index for index, entry in enumerate(results["kernels"]) if entry["correct"] is not None]
    rows = tuple(
        (
            Cell(f"kernels[{index}].name", "text"),
            Cell(f"kernels[{index}].checks"),
            Cell(f"kernels[{index}].relative_error", "number"),
            "right" if results["kernels"][index]["correct"] else "WRONG",
        )
        for index in checked
    )
    headers = ("kernel", "checks", "worst error", "")
    return [Table(headers, rows, "Against float64, before timing; a naive path in its cells")] if rows else []


def _dropped(results: Results) -> list[Table]:
    rows = tuple(
        (
            Cell(f"dropped[{index}].kernel", "text"),
            Cell(f"dropped[{index}].implementation", "text"),
            Cell(f"dropped[{index}].cells"),
            "; ".join(entry["reasons"]),
        )
        for index, entry in enumerate(results["dropped"])
    )
    headers = ("path", "implementation", "cells", "why, most often")
    return [Table(headers, rows, "Tried in cells and dropped")] if rows else []


def _crossovers(results: Results) -> list[Table]:
    found = results["crossover"]
    if not found:
        return []
    several = [name for name in ("gpu", "dtype", "cache") if len({entry[name] for entry in found}) > 1]
    rows = tuple(_crossover(index, found[index], several) for index in range(min(len(found), MOST_SHOWN)))
    headers = (*several, "naive path", "heads", "context", "batch", "measured", "low", "high", "FLOPs", "bound")
    return [Table(headers, rows, "Queries from which the naive path first is faster (causal, context fixed)")]


def _crossover(index: int, entry: Results, several: Sequence[str]) -> tuple[Entry, ...]:
    at = f"crossover[{index}]."
    measured = Cell(at + "measured_queries", "number")
    return (
        *(Cell(at + name, "text") for name in several),
        Cell(at + "naive", "text"),
        *(Cell(at + name) for name in ("heads", "context", "batch")),
        measured if entry["measured_queries"] is not None else _beyond(entry),
        Cell(at + "low", "number"),
        Cell(at + "high", "number"),
        Cell(at + "flop_queries"),
        Cell(at + "time_queries"),
    )


def _beyond(entry: Results) -> str:
    """Where a crossover lies that was not met: beyond the least or the most Q measured on both paths."""
    if not entry["queries"]:
        return fmt.NOTHING
    if "naive is faster" in entry["reason"]:
        return f"< {entry['queries'][0]:,}"
    return f"> {entry['queries'][-1]:,}"


def _engines(results: Results) -> list[Table]:
    rows = tuple(
        (
            Cell(f"engines[{index}].engine", "text"),
            _backend(entry),
            Cell(f"engines[{index}].threshold"),
            Cell(f"engines[{index}].counts", "text"),
        )
        for index, entry in enumerate(results["engines"])
    )
    return [Table(("engine", "backend", "threshold", "counts"), rows, "What the engines use")] if rows else []


def _backend(entry: Results) -> str:
    heads = entry["heads_per_rank"]
    return entry["backend"] if heads is None else f"{entry['backend']}, {heads} heads"


def _skipped(results: Results) -> list[Table]:
    rows = tuple(
        tuple(Cell(f"skipped[{index}].{name}", "text") for name in ("kernel", "case", "reason"))
        for index in range(min(len(results["skipped"]), MOST_SHOWN))
    )
    return [Table(("kernel", "case", "why it was not timed"), rows, "Not timed")] if rows else []
