"""Tables, notes and explanations of a report as pieces of HTML. Every text is escaped here, none is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from . import format as fmt
from .direction import isolated
from .explain import explained
from .record import Report, Table
from .render import cells, numeric_columns


def escaped(text: object) -> str:
    """A text as HTML shows it, in an attribute too: no character of it is markup, and none moves those beside it."""
    return escape(isolated(str(text)), quote=True)


def tables_html(report: Report) -> str:
    """All tables of a report, in their order."""
    return "\n".join(table_html(table, report) for table in report.tables)


def table_html(table: Table, report: Report) -> str:
    """One table, its numbers to the right, in a box that scrolls sideways where the page is narrower."""
    numeric = numeric_columns(table)
    head = "".join(_cell("th", header, index in numeric) for index, header in enumerate(table.headers))
    lines = (
        "<tr>" + "".join(_cell("td", text, index in numeric) for index, text in enumerate(row)) + "</tr>"
        for row in cells(table, report)
    )
    caption = f"<caption>{escaped(table.caption)}</caption>\n" if table.caption else ""
    body = "\n".join(lines)
    return (
        f'<div class="table"><table>\n{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table></div>"
    )


def list_html(texts: Iterable[object]) -> str:
    """A list of texts, or nothing where there is none."""
    items = "\n".join(f"<li>{escaped(text)}</li>" for text in texts)
    return f"<ul>\n{items}\n</ul>" if items else ""


def explanations_html(report: Report) -> str:
    """How each figure comes about: its key and value, the formula, the numbers put in, and who says so."""
    items = "\n".join(
        f"<dt><code>{escaped(item['key'])}</code> = <b>{escaped(_value(item['value']))}</b></dt>\n"
        f"<dd><code>= {escaped(item['formula'])}</code><br>\n<code>= {escaped(item['numbers'])}</code><br>\n"
        f"<small>{escaped(item['cite'])}</small></dd>"
        for item in explained(report)
    )
    return f"<dl>\n{items}\n</dl>" if items else ""


def _value(value: object) -> str:
    return fmt.number(value) if isinstance(value, int | float) else fmt.text(value)


def _cell(tag: str, text: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    scope = ' scope="col"' if tag == "th" and text else ""
    return f"<{tag if text else 'td'}{scope}{kind}>{escaped(text)}</{tag if text else 'td'}>"
