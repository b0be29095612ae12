"""How one number comes about: its formula, the numbers put in, and where they were read."""

from __future__ import annotations

from typing import Any

from ..report import format as fmt
from ..report.explain import explained, input_lines
from ..report.record import Report, lookup
from .sheet import Sheet, add_text


def explanation_of(report: Report, path: str | None, width: int) -> Sheet:
    """The explanation of the number at ``path``, or of every one that the report explains, folded to ``width``."""
    sheet = Sheet()
    every = explained(report)
    found = [item for item in every if item["key"] == path] if path else every
    for item in found:
        _add(sheet, item, width)
    if path and not found:
        value = lookup(report.results, path)
        add_text(sheet, f"{path} = {_value(value)}", width, "title")
        add_text(sheet, _whence(report, path), width, "plain")
    if every and path and not found:
        sheet.lines.append(("", "plain"))
        add_text(sheet, "Explained here: " + ", ".join(item["key"] for item in every), width, "note")
    if report.input_sources:
        sheet.lines += [] if found else [("", "plain")]
        add_text(sheet, "Where the inputs were read", width, "caption")
        for line in input_lines(report):
            add_text(sheet, line, width, "note")
    return sheet


def _add(sheet: Sheet, item: dict[str, Any], width: int) -> None:
    add_text(sheet, f"{item['key']} = {_value(item['value'])}", width, "title")
    add_text(sheet, f"= {item['formula']}", width, "plain", indent=2)
    add_text(sheet, f"= {item['numbers']}", width, "plain", indent=2)
    add_text(sheet, item["cite"], width, "note", indent=2)
    sheet.lines.append(("", "plain"))


def _value(value: Any) -> str:
    return fmt.number(value) if isinstance(value, int | float) else fmt.shown(value, "text")


SETTING = "A setting of this row, not a result."
TOLD = {
    **dict.fromkeys(("tp", "batch", "context", "queries", "prefix", "heads"), SETTING),
    "threshold": "A constant of the engine, read in its source (docs/dispatch.md).",
    "memory_bytes": "What the driver reports of the GPU, by its preset.",
    "reserve_bytes": "What `capacity --reserve` keeps free: 10% of the memory unless told otherwise.",
    "workspace_bytes": "What chunked prefill keeps, by the engine's rule: `workspace --explain` derives it.",
    "first_queries_naive_wins": "The first number of queries at which the naive path's estimate is the lower one.",
    "naive_wins_to_end_from": "The number of queries from which the naive path's estimate stays the lower one.",
}
"""Of figures that have no formula, by the end of their path: what they are."""


def _whence(report: Report, path: str) -> str:
    """What a number without a formula is."""
    name = path.rpartition(".")[2]
    if name.endswith("estimate_s"):
        return "An estimate by the constants that were measured on this GPU (docs/validate.md)."
    if "measured" in path and name not in ("tp", "batch", "context", "heads"):
        return "A measurement: the median of a run, or its 10th and 90th percentile (docs/validate.md)."
    return TOLD.get(name) or f"A figure of `{report.command}`: no formula of its own is recorded."
