"""A report on a terminal: a title line, one table whose numbers line up, a sentence, notes.

A report with a chart for the terminal ends with it and the sentence, which fill the last screen.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ..errors import one_line
from . import format as fmt
from .explain import explained, input_lines
from .record import Report, Table
from .render import cells, numeric_columns

INDENT = 2
LEAST_TEXT, LONGEST_WORD = 12, 24
"""Columns of text fold down to the first width, or that of their longest word; but a word is broken at the second."""
PIPE_WIDTH = 100
"""Sentences wrap here where there is no terminal and nobody says how wide it is; tables are then never cut."""
SCREEN = (80, 24)
"""Columns and lines of a chart and its sentence where there is no terminal."""
LEAST_CHART = 10
"""Lines of a chart on a terminal that has fewer."""


def plain_text(report: Report, explain: bool, columns: int | None = None) -> str:
    """The report without colour: for ``columns``, or at a fixed width with tables as wide as they need."""
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=columns or PIPE_WIDTH, height=SCREEN[1], no_color=True, highlight=False, force_terminal=False
    )
    show(report, explain, console, _unicode(sys.stdout.encoding), fitted=columns is not None)
    return "".join(line.rstrip() + "\n" for line in buffer.getvalue().splitlines())


def asked_columns() -> int | None:
    """The columns that the variable COLUMNS asks for, as rich reads it on a terminal; ``None``: it does not."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) or None if columns.isascii() and columns.isdigit() else None


def show(
    report: Report, explain: bool, console: Console, unicode: bool | None = None, fitted: bool | None = None
) -> None:
    """Print the report to ``console``.

    ``unicode``: whether a chart may have characters beyond ASCII; ``None``: as the console's encoding has them.
    ``fitted``: whether tables and charts keep to the console's width; ``None``: where it is a terminal.
    """
    charted = report.chart is not None and report.chart_on_terminal
    fitted = console.is_terminal if fitted is None else fitted
    name, _, geometry = report.title.partition("   ")
    console.print(Text.assemble((_plain(name), "bold"), "   " + _plain(geometry) if geometry else ""))
    if report.subtitle:
        console.print(Text(_plain(report.subtitle)))
    for table in report.tables:
        console.print()
        if table.caption:
            _indented(table.caption, INDENT, console, style="bold")
        _print_table(table, report, console, fitted)
    if report.sentence and not charted:
        console.print()
        console.print(Text(_plain(report.sentence)))
    if report.notes:
        console.print()
    for note in report.notes:
        console.print(Text(_plain(f"note: {note}"), style="dim"))
    if report.show_sources:
        console.print()
        for source in report.sources:
            _indented(f"source of {source}", 0, console, style="dim")
    if explain and (report.explanations or report.input_sources):
        _print_explanations(report, console)
    if charted:
        _print_chart(report, console, _unicode(console.encoding) if unicode is None else unicode, fitted)


def _plain(text: str) -> str:
    """A text none of whose characters moves the cursor or tells the terminal anything: those as escapes."""
    return text if text.isprintable() else "\n".join(map(one_line, text.split("\n")))


def _unicode(encoding: str | None) -> bool:
    """Whether an encoding has every character; an unknown one is taken to."""
    return encoding is None or encoding.lower().startswith("utf")


def _print_chart(report: Report, console: Console, unicode: bool, fitted: bool) -> None:
    """The chart and the sentence, together as high as the screen; on a terminal a line stays free for the prompt.

    Of several panels the last one stands on the screen, the others before it.
    """
    from .drawing.glyphs import with_texts
    from .drawing.text import chart_text

    assert report.chart is not None
    chart, results = with_texts(report.chart, _plain), with_texts(report.results, _plain)
    width, height = console.width if fitted else SCREEN[0], console.height - 1 if console.is_terminal else SCREEN[1]
    sentence = Text(_plain(report.sentence))
    below = 1 + len(sentence.wrap(console, width)) if report.sentence else 0
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    console.print()
    room = max(LEAST_CHART, height - below)
    try:
        for panel in range(len(chart.panels)):
            text = chart_text(chart, results, width, room, colour, panel, ascii_only=not unicode, whole_key=True)
            if panel:
                console.print()
            console.print(Text.from_ansi(text), soft_wrap=True)
    except ImportError:
        console.print(Text("note: no chart: plotext is not installed, or was built for another system", style="dim"))
    if report.sentence:
        console.print()
        console.print(sentence, width=width)


def _print_table(table: Table, report: Report, console: Console, fitted: bool) -> None:
    """The table as wide as it needs; where ``fitted``, narrower by folding its texts, and else entry below entry."""
    rows = [[_plain(entry) for entry in row] for row in cells(table, report)]
    numeric = numeric_columns(table)
    headers = tuple(map(_plain, table.headers))
    columns = list(zip(headers, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    if fitted:
        least = [widths[at] if at in numeric else _least(column) for at, column in enumerate(columns)]
        room = console.width - INDENT - 2 * (len(widths) - 1)
        if sum(least) > room:
            _print_entries(headers, rows, numeric, console)
            return
        widths = _folded(widths, least, room)
    rich_table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, (header, width) in enumerate(zip(headers, widths, strict=True)):
        justify: Literal["left", "right"] = "right" if index in numeric else "left"
        rich_table.add_column(Text(header), justify=justify, overflow="fold", no_wrap=index in numeric, width=width)
    for row in rows:
        rich_table.add_row(*map(Text, row))
    options = console.options.update(width=sum(widths) + 2 * len(widths) + INDENT)
    for line in console.render_lines(Padding(rich_table, (0, 0, 0, INDENT), expand=False), options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def _least(column: Iterable[str]) -> int:
    """The width that a column of texts keeps: no word of it is broken but one longer than any is likely to be."""
    words = [cell_len(word) for text in column for word in text.split()]
    longest = max(map(cell_len, column), default=0)
    return min(longest, max(LEAST_TEXT, min(max(words, default=0), LONGEST_WORD)))


def _folded(widths: list[int], least: list[int], room: int) -> list[int]:
    """The widths of columns that share ``room``: the widest that may be narrower is, until all fit."""
    widths = list(widths)
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _print_entries(headers: tuple[str, ...], rows: list[list[str]], numeric: set[int], console: Console) -> None:
    """A table that is wider than the screen: of each row its first entry, and the others below it."""
    for row in rows:
        _indented(f"{headers[0]}  {row[0]}".strip(), INDENT, console)
        others = list(zip(headers, row, range(len(row)), strict=True))[1:]
        pieces = [(f"{header}: {entry}" if header else entry, at) for header, entry, at in others if entry.strip()]
        for line, at in _packed(pieces, console.width - 2 * INDENT):
            if at in numeric:
                console.print(Text(" " * 2 * INDENT + line), soft_wrap=True)  # a number stays in one piece
            else:
                _indented(line, 2 * INDENT, console)


def _packed(pieces: list[tuple[str, int]], room: int) -> list[tuple[str, int]]:
    """Texts side by side in lines of ``room`` columns, each line with the column of its first."""
    lines: list[tuple[str, int]] = []
    for text, at in pieces:
        joined = f"{lines[-1][0]}; {text}" if lines else text
        if lines and cell_len(joined) <= room:
            lines[-1] = joined, lines[-1][1]
        else:
            lines.append((text, at))
    return lines


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
    console.print(Padding(Text(_plain(text), style=style), (0, 0, 0, indent), expand=False))
