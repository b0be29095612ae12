"""A report on a terminal: a title line, one table whose numbers line up, a sentence, notes.

A report with a chart for the terminal ends with it and the sentence, which fill the last screen.
"""

from __future__ import annotations

import io
import sys
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
SCREEN = (80, 24)
"""Columns and lines of a chart and its sentence where there is no terminal."""
LEAST_CHART = 10
"""Lines of a chart on a terminal that has fewer."""


def plain_text(report: Report, explain: bool) -> str:
    """The report without colour, at a fixed width."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=PIPE_WIDTH, no_color=True, highlight=False, force_terminal=False)
    show(report, explain, console, _unicode(sys.stdout.encoding))
    return "".join(line.rstrip() + "\n" for line in buffer.getvalue().splitlines())


def show(report: Report, explain: bool, console: Console, unicode: bool | None = None) -> None:
    """Print the report to ``console``.

    ``unicode``: whether a chart may have characters beyond ASCII; ``None``: as the console's encoding has them.
    """
    charted = report.chart is not None and report.chart_on_terminal
    name, _, geometry = report.title.partition("   ")
    console.print(Text.assemble((name, "bold"), "   " + geometry if geometry else ""))
    if report.subtitle:
        console.print(Text(report.subtitle))
    for table in report.tables:
        console.print()
        if table.caption:
            console.print(Text("  " + table.caption, style="bold"))
        _print_table(table, report, console)
    if report.sentence and not charted:
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
    if charted:
        _print_chart(report, console, _unicode(console.encoding) if unicode is None else unicode)


def _unicode(encoding: str | None) -> bool:
    """Whether an encoding has every character; an unknown one is taken to."""
    return encoding is None or encoding.lower().startswith("utf")


def _print_chart(report: Report, console: Console, unicode: bool) -> None:
    """The chart and the sentence, together as high as the screen; on a terminal a line stays free for the prompt.

    Of several panels the last one stands on the screen, the others before it.
    """
    from .drawing.text import chart_text

    assert report.chart is not None
    width, height = (console.width, console.height - 1) if console.is_terminal else SCREEN
    sentence = Text(report.sentence)
    below = 1 + len(sentence.wrap(console, width)) if report.sentence else 0
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    console.print()
    room = max(LEAST_CHART, height - below)
    try:
        for panel in range(len(report.chart.panels)):
            text = chart_text(report.chart, report.results, width, room, colour, panel, ascii_only=not unicode)
            if panel:
                console.print()
            console.print(Text.from_ansi(text), soft_wrap=True)
    except ImportError:
        console.print(Text("note: no chart: plotext is not installed, or was built for another system", style="dim"))
    if report.sentence:
        console.print()
        console.print(sentence, width=width)


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
