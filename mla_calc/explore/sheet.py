"""A report as lines of a given width, and where in them its numbers stand, to be pointed at.

Cells, formats and alignment are those of a report on a terminal (:mod:`mla_calc.report.render`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.cells import cell_len

from ..report.record import Cell, Report, Table
from ..report.render import cells, numeric_columns
from .answers import Wrong
from .cells import folded, placed

Role = Literal["plain", "title", "caption", "header", "note", "wrong"]
GAP = 2
LEAST_TEXT = 12
"""Columns of text fold down to this width."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A number on a line: from column ``start`` to before ``end``, and its path in the results."""

    line: int
    start: int
    end: int
    path: str


@dataclass(slots=True)
class Sheet:
    """Lines with the role of each, and the spots in reading order."""

    lines: list[tuple[str, Role]] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Columns of the longest line."""
        return max((cell_len(text) for text, _ in self.lines), default=0)


def sheet_of(found: Report | Wrong, width: int) -> Sheet:
    """The report's sentence, tables and notes, folded to ``width``; or why there is no report."""
    sheet = Sheet()
    if isinstance(found, Wrong):
        add_text(sheet, found.message, width, "wrong")
        add_text(sheet, found.hint or "", width, "note")
        return sheet
    add_text(sheet, found.sentence, width, "plain")
    for table in found.tables:
        if sheet.lines:
            sheet.lines.append(("", "plain"))
        _add_table(sheet, table, found, width)
    if found.notes:
        sheet.lines.append(("", "plain"))
    for note in found.notes:
        add_text(sheet, note, width, "note")
    return sheet


def add_text(sheet: Sheet, text: str, width: int, role: Role, indent: int = 0) -> None:
    """Add ``text`` folded to ``width``, its lines indented; nothing where it is empty."""
    sheet.lines += [(" " * indent + line, role) for line in _folded(text, width - indent)] if text else []


def _folded(text: str, width: int) -> list[str]:
    return folded(text, max(width, LEAST_TEXT)) or [""]


def _add_table(sheet: Sheet, table: Table, report: Report, width: int) -> None:
    if table.caption:
        add_text(sheet, table.caption, width, "caption")
    shown, numeric = cells(table, report), numeric_columns(table)
    widths = _widths(table, shown, numeric, width)
    if any(table.headers):
        for line in _lines(table.headers, widths, numeric):
            sheet.lines.append((line, "header"))
    starts = [sum(widths[:index]) + GAP * index for index in range(len(widths))]
    for entries, row in zip(table.rows, shown, strict=True):
        for index, (entry, text) in enumerate(zip(entries, row, strict=True)):
            if isinstance(entry, Cell):
                end = starts[index] + (widths[index] if index in numeric else min(cell_len(text), widths[index]))
                start = end - cell_len(text) if index in numeric else starts[index]
                sheet.spots.append(Spot(len(sheet.lines), start, end, entry.path))
        sheet.lines += [(line, "plain") for line in _lines(row, widths, numeric)]


def _widths(table: Table, shown: Sequence[Sequence[str]], numeric: set[int], width: int) -> list[int]:
    """Every column's width; those of text give way where the table is wider than ``width``."""
    widths = [max(map(cell_len, column)) for column in zip(table.headers, *shown, strict=True)]
    over = sum(widths) + GAP * (len(widths) - 1) - width
    for index in sorted(set(range(len(widths))) - numeric, key=lambda index: -widths[index]):
        given = max(0, min(over, widths[index] - LEAST_TEXT))
        widths[index] -= given
        over -= given
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], numeric: set[int]) -> Iterator[str]:
    """A row's lines: more than one where a text is folded."""
    columns = [[text] if index in numeric else _folded(text, widths[index]) for index, text in enumerate(row)]
    for number in range(max(map(len, columns))):
        parts: Iterable[str] = (
            placed(column[number] if number < len(column) else "", widths[index], index in numeric)
            for index, column in enumerate(columns)
        )
        yield (" " * GAP).join(parts).rstrip()


def add_rows(sheet: Sheet, caption: str, rows: Sequence[tuple[str, str]], width: int) -> None:
    """Add pairs of texts in two columns under a caption; the second is folded."""
    add_text(sheet, caption, width, "caption")
    first = max(len(name) for name, _ in rows)
    for name, text in rows:
        for number, line in enumerate(_folded(text, width - first - GAP)):
            sheet.lines.append((f"{name if not number else '':<{first}}{' ' * GAP}{line}", "plain"))


def sheet_of_lines(texts: Sequence[str], width: int) -> Sheet:
    """Texts, each folded to ``width``, with a free line between."""
    sheet = Sheet()
    for text in texts:
        add_text(sheet, text, width, "plain")
        sheet.lines.append(("", "plain"))
    del sheet.lines[-1:]
    return sheet
