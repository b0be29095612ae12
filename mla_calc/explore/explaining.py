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
        add_text(sheet, f"{_whence(report, path)}: no formula of its own is recorded.", width, "plain")
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


def _whence(report: Report, path: str) -> str:
    """What kind of number it is, by the end of its path."""
    name = path.rpartition(".")[2]
    if name.endswith("estimate_s"):
        return "An estimate by the constants that were measured on this GPU (docs/validate.md)"
    if "measured" in path:
        return "A measurement"
    return f"A figure of `{report.command}`"
