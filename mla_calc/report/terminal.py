"""A report on a terminal: a title line, one table whose numbers line up, a sentence, notes."""

from __future__ import annotations

import io
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from . import format as fmt
from .explain import explained, input_lines
from .record import Report, Table
from .render import cells, numeric_columns

INDENT = 2
LEAST_TEXT = 12
"""Columns of text fold down to this width."""
PIPE_WIDTH = 100
"""Sentences wrap here where there is no terminal; tables are never cut."""


def plain_text(report: Report, explain: bool) -> str:
    """The report without colour, at a fixed width."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=PIPE_WIDTH, no_color=True, highlight=False, force_terminal=False)
    show(report, explain, console)
    return "".join(line.rstrip() + "\n" for line in buffer.getvalue().splitlines())


def show(report: Report, explain: bool, console: Console) -> None:
    """Print the report to ``console``."""
    name, _, geometry = report.title.partition("   ")
    console.print(Text.assemble((name, "bold"), "   " + geometry if geometry else ""))
    if report.subtitle:
        console.print(Text(report.subtitle))
    for table in report.tables:
        console.print()
        if table.caption:
            console.print(Text("  " + table.caption, style="bold"))
        _print_table(table, report, console)
    if report.sentence:
        console.print()
        console.print(Text(report.sentence))
    if report.notes:
        console.print()
    for note in report.notes:
        console.print(Text(f"note: {note}", style="dim"))
    if report.show_sources:
        console.print()
        for source in report.sources:
            _indented(f"source of {source}", 0, console, style="dim")
    if explain and (report.explanations or report.input_sources):
        _print_explanations(report, console)


def _print_table(table: Table, report: Report, console: Console) -> None:
    """The table as wide as it needs; folded only where a terminal is narrower."""
    rows = cells(table, report)
    numeric = numeric_columns(table)
    widths = [max(map(len, column)) for column in zip(table.headers, *rows, strict=True)]
    least = [width if index in numeric else min(width, LEAST_TEXT) for index, width in enumerate(widths)]
    rich_table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, header in enumerate(table.headers):
        justify: Literal["left", "right"] = "right" if index in numeric else "left"
        rich_table.add_column(Text(header), justify=justify, overflow="fold", no_wrap=index in numeric)
    for row in rows:
        rich_table.add_row(*map(Text, row))
    needed, narrowest = (sum(sizes) + 2 * len(sizes) for sizes in (widths, least))
    # texts fold where a terminal is narrow; a number is never broken, rather the terminal wraps the line
    width = max(narrowest, min(needed, console.width - INDENT)) if console.is_terminal else needed
    options = console.options.update(width=width + INDENT)
    for line in console.render_lines(Padding(rich_table, (0, 0, 0, INDENT), expand=False), options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def _print_explanations(report: Report, console: Console) -> None:
    console.print()
    if report.explanations:
        console.print(Text("How each figure comes about", style="bold"))
    for item in explained(report):
        value = item["value"]
        result = fmt.number(value) if isinstance(value, int | float) else str(value)
        _indented(f"{item['key']} = {result}", 2, console)
        _indented(f"= {item['formula']}", 6, console)
        _indented(f"= {item['numbers']}", 6, console)
        _indented(item["cite"], 6, console, style="dim")
    if report.input_sources:
        console.print(Text("Where the inputs were read", style="bold"))
    for line in input_lines(report):
        _indented(line, 2, console, style="dim")


def _indented(text: str, indent: int, console: Console, style: str = "") -> None:
    """A line whose continuation stays indented."""
    console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
