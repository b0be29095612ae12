"""A report as JSON, CSV, Markdown or terminal text. Each format is one function from report to text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from . import format as fmt
from .explain import explained, input_lines
from .markdown_text import code, inline, text
from .record import Cell, Report, Table, flattened, lookup


def to_json(report: Report, explain: bool = False) -> str:
    """The report as JSON: schema, inputs, results, notes, sources; integers stay integers."""
    document: dict[str, Any] = {
        "schema": report.schema,
        "inputs": report.inputs,
        "results": report.results,
        "notes": list(report.notes),
        "sources": list(report.sources),
    }
    if explain:
        document["explanations"] = explained(report)
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(report: Report, explain: bool = False) -> str:
    """One line per record, columns by dotted path; a value that is not known is empty.

    Where the results hold one main list (``by_tp``, ``steps``), its entries are the lines and the figures
    beside the list repeat on each.
    """
    del explain  # a CSV holds figures alone
    lines: list[dict[str, Any]] = [flattened(row) for row in report.csv_rows]
    records = report.results if isinstance(report.results, list) else [report.results]
    lines = lines or [line for record in records for line in _csv_lines(record, report.rows_path)]
    columns = list(dict.fromkeys((*report.csv_columns, *(column for line in lines for column in line))))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def _csv_lines(record: dict[str, Any], rows_path: str) -> list[dict[str, Any]]:
    if not rows_path:
        return [flattened(record)]
    beside = {key: value for key, value in record.items() if not isinstance(value, list | dict)}
    return [{**beside, **flattened(row)} for row in lookup(record, rows_path)]


def to_markdown(report: Report, explain: bool = False) -> str:
    """The report as GitHub-flavoured Markdown, with the same tables as a terminal shows."""
    parts = [f"## {inline(report.title)}", text(report.subtitle)]
    for table in report.tables:
        if table.caption:
            parts.append(f"**{inline(table.caption)}**")
        parts.append(_markdown_table(table, report))
    parts.append(text(report.sentence))
    if report.notes:
        parts.append("\n".join(f"- {text(note)}" for note in report.notes))
    if explain:
        lines = [
            f"- {code(item['key'])} = {inline(str(item['value']))}: {code(item['formula'])} = {code(item['numbers'])}"
            for item in explained(report)
        ]
        parts += [
            "### How each figure comes about",
            "\n".join(lines),
            "\n".join(f"- {text(line)}" for line in input_lines(report)),
        ]
    if report.sources:
        parts.append("Sources: " + "; ".join(map(inline, report.sources)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_table(table: Table, report: Report) -> str:
    rows = [[inline(entry) for entry in row] for row in cells(table, report)]
    numeric = numeric_columns(table)
    rule = ["---:" if index in numeric else "---" for index in range(len(table.headers))]
    lines = [[inline(header) for header in table.headers], rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(table: Table, report: Report) -> list[list[str]]:
    """The table's entries as text, every number looked up in the report's results."""
    return [[_shown(entry, report) for entry in row] for row in table.rows]


def _shown(entry: str | Cell, report: Report) -> str:
    return entry if isinstance(entry, str) else fmt.shown(lookup(report.results, entry.path), entry.kind)


def numeric_columns(table: Table) -> set[int]:
    """The columns that hold a number somewhere, to be aligned to the right."""
    entries = ((index, entry) for row in table.rows for index, entry in enumerate(row))
    return {index for index, entry in entries if isinstance(entry, Cell) and entry.kind != "text"}


def to_text(report: Report, explain: bool = False) -> str:
    """The report as plain terminal text, for a file or a pipe."""
    from .terminal import plain_text

    return plain_text(report, explain)


FORMATS: dict[str, Callable[[Report, bool], str]] = {
    "table": to_text,
    "json": to_json,
    "csv": to_csv,
    "markdown": to_markdown,
}
SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".txt": "table"}
