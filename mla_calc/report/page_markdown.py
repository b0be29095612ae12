"""A page of several answers as GitHub-flavoured Markdown; its figures are files beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from .explain import explained
from .markdown_text import code, inline, text
from .page import ENDINGS, OF_NOTES, SUMMARY, Page, Part, Section
from .record import Report, Table
from .render import cells, numeric_columns
from .write import replacing, write_utf8

FIGURE_SUFFIX = ".svg"


def write_markdown(page: Page, output: Path) -> None:
    """Write the page to ``output``, and its figures as ``STEM-NAME.svg`` beside it, all of them whole or none.

    Raises:
        InputError: a file that cannot be written.
    """
    from .drawing.picture import save_picture

    with ExitStack() as files:
        for _, part, report in page.answers():
            if part.chart is not None:
                path = files.enter_context(replacing(output.with_name(figure_name(output.stem, part))))
                save_picture(part.chart, report.results, path, FIGURE_SUFFIX.lstrip("."), "slide")
        path = files.enter_context(replacing(output))
        write_utf8(path, to_markdown(page, output.stem))


def figure_name(stem: str, part: Part) -> str:
    """The file of a part's figure, beside a page called ``stem``."""
    return f"{stem}-{part.name}{FIGURE_SUFFIX}"


def to_markdown(page: Page, stem: str | None = None) -> str:
    """The page as Markdown. ``stem``: of the files that its figures are in; ``None``: it has no figures."""
    parts = [f"# {text(page.title)}", text(page.subtitle), text(page.date or ""), *_opening(page)]
    heads = page.heads()
    for section in page.sections:
        parts += [*_heading(section.name, section.title), text(section.text)]
        parts += [
            piece for part in section.parts for piece in _part(part, heads.get((section.name, part.name), []), stem)
        ]
    for name, title in ENDINGS:
        parts += [*_heading(name, title), *_ENDING[name](page)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(name: str, title: str) -> list[str]:
    return [f'<a id="{name}"></a>', f"## {text(title)}"]


def _opening(page: Page) -> list[str]:
    contents = [f"{place}. [{inline(title)}](#{name})" for place, (name, title) in enumerate(page.contents(), 1)]
    figures = [f"| {inline(item.label)} | {inline(shown)} |" for item, shown in page.figures()]
    table = ["| | |", "| --- | ---: |", *figures] if figures else []
    said = [
        f"- [{inline(item.title)}](#{item.name}){f' ({inline(about)})' if about else ''}. {inline(sentence)}"
        for item, about, sentence in page.summary()
    ]
    return ["\n".join(contents), *_heading("summary", SUMMARY), "\n".join(table), "\n".join(said)]


def _part(part: Part, head: list[str], stem: str | None) -> list[str]:
    report = part.report
    found = [f"### {text(part.text)}" if part.text else ""]
    if report is not None and part.tables:
        found += [*map(text, head), *_tables(report), text(report.sentence)]
    if part.chart is not None and stem is not None:
        found.append(f"![{inline(part.chart.title)}]({quote(os.fsencode(figure_name(stem, part)))})")
    if part.reason:
        found.append(f"> **Left out:** {inline(part.reason)}")
    if part.command:
        found.append(code(part.command))
    return found


def _tables(report: Report) -> list[str]:
    found = []
    for table in report.tables:
        found += [f"**{inline(table.caption)}**" if table.caption else "", _table(table, report)]
    return found


def _table(table: Table, report: Report) -> str:
    numeric = numeric_columns(table)
    rule = ["---:" if index in numeric else "---" for index in range(len(table.headers))]
    lines = [[*map(inline, table.headers)], rule, *([*map(inline, row)] for row in cells(table, report))]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _explanations(page: Page) -> list[str]:
    found = []
    for section, part, report in page.explanations():
        items = [
            f"- {code(item['key'])} = {inline(str(item['value']))}: {code(item['formula'])} = {code(item['numbers'])}"
            f" ({inline(item['cite'])})"
            for item in explained(report)
        ]
        about = f"{section.title}: {part.text}" if part.text else section.title
        found += [f"### {text(about)}", code(f"{part.command} --explain"), "\n".join(items)]
    return found


def _notes(page: Page) -> list[str]:
    return [text(OF_NOTES), "\n".join(f"- {text(note)} ({_links(sections)})" for note, sections in page.notes())]


def _links(sections: Iterable[Section]) -> str:
    return ", ".join(f"[{inline(section.title.lower())}](#{section.name})" for section in sections)


def _sources(page: Page) -> list[str]:
    lists = ["\n".join(f"- {text(item)}" for item in items) for items in (page.sources(), page.inputs_read())]
    return [lists[0], "### Where each input was read", lists[1]]


def _versions(page: Page) -> list[str]:
    rows = [f"| {inline(item.what)} | {inline(item.version)} | {inline(item.date or '-')} |" for item in page.versions]
    table = "\n".join(["| what | version | date |", "| --- | --- | --- |", *rows])
    return [table, "This page is made again, byte for byte, by:", code(page.command)]


_ENDING = {"explanations": _explanations, "notes": _notes, "sources": _sources, "versions": _versions}
