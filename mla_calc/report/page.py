"""One page of several answers: what stands in it, in order. Renderers make HTML, Markdown and JSON of the same page.

The page holds no number of its own: its tables, key figures and sentences are those of the reports in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from . import format as fmt
from .chart import Chart
from .explain import explained, input_lines, numbers_in
from .record import Cell, Report, Results, lookup

SUMMARY = "Summary"
ENDINGS = (
    ("explanations", "How every figure comes about"),
    ("notes", "Assumptions and notes"),
    ("sources", "Sources"),
    ("versions", "Versions"),
)
"""The sections that gather what the answers hold, after them: anchor and title."""
OF_NOTES = (
    "Options that a note names are those of the commands in the sections beside it; a figure with (null) has none in"
    " their JSON, for the reason given."
)
"""What stands before the notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One answer in a section, or the reason why there is none."""

    name: str
    """Anchor of its figure, and the ending of that figure's file."""
    command: str = ""
    """The command line that gives the same answer; empty: no command does."""
    report: Report | None = None
    chart: Chart | None = None
    reason: str = ""
    """Why there is no report, or no figure of it."""
    text: str = ""
    """A line before the answer: what it is asked for."""
    tables: bool = True
    """Whether its tables are shown: where a figure alone is wanted they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with an anchor, what it answers, and the answers."""

    name: str
    title: str
    text: str = ""
    parts: tuple[Part, ...] = ()
    sums_up: bool = False
    """Whether the sentence of its first answer stands in the summary."""

    def first(self) -> Part | None:
        """The part with its first answer, if it has one."""
        return next((part for part in self.parts if part.report is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A number that is shown large at the top: looked up in the first answer of a section."""

    label: str
    section: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One of the things that the page was made with: a program, or a file of data by its date and digest."""

    what: str
    version: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page. ``date`` is as it was given, if it was: a page has no clock."""

    title: str
    subtitle: str
    command: str
    sections: tuple[Section, ...]
    inputs: dict[str, Any]
    key_figures: tuple[KeyFigure, ...] = ()
    versions: tuple[Version, ...] = ()
    date: str | None = None

    def contents(self) -> list[tuple[str, str]]:
        """Anchor and title of everything that has a heading, in order."""
        return [("summary", SUMMARY), *((section.name, section.title) for section in self.sections), *ENDINGS]

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def answers(self) -> Iterator[tuple[Section, Part, Report]]:
        """Every answer with its section, in order."""
        for section in self.sections:
            for part in section.parts:
                if part.report is not None:
                    yield section, part, part.report

    def heads(self) -> dict[tuple[str, str], list[str]]:
        """Title and subtitle of each answer, by section and part, where no answer before it has the same ones."""
        seen: set[str] = set()
        found = {}
        for section, part, report in self.answers():
            lines = [text.replace("   ", ": ", 1) for text in (report.title, report.subtitle) if text]
            found[section.name, part.name] = [text for text in lines if text not in seen] if part.tables else []
            seen.update(found[section.name, part.name])
        return found

    def summary(self) -> list[tuple[Section, str, str]]:
        """What the sections that sum up say: section, what its first answer was asked for, and that one's sentence."""
        firsts = [(section, section.first()) for section in self.sections if section.sums_up]
        return [
            (section, part.text, part.report.sentence)
            for section, part in firsts
            if part is not None and part.report is not None and part.report.sentence
        ]

    def figures(self) -> list[tuple[KeyFigure, str]]:
        """The key figures that are known, as text."""
        found = []
        for figure in self.key_figures:
            section = self.section(figure.section)
            part = section.first() if section else None
            value = _at(part.report.results, figure.cell.path) if part and part.report else None
            if value is not None:
                found.append((figure, fmt.shown(value, figure.cell.kind)))
        return found

    def explanations(self) -> Iterator[tuple[Section, Part, Report]]:
        """Every answer with those of its explanations that no answer of the same command before it has."""
        seen: set[tuple[str, ...]] = set()
        for section, part, report in self.answers():
            mine = {(report.command, item.path, item.formula, numbers_in(item)): item for item in report.explanations}
            kept = tuple(item for key, item in mine.items() if key not in seen)
            seen.update(mine)
            if kept:
                yield section, part, replace(report, explanations=kept)

    def notes(self) -> list[tuple[str, list[Section]]]:
        """Every note once, with the sections that it was made for."""
        found: dict[str, list[Section]] = {}
        for section, _, report in self.answers():
            for note in report.notes:
                sections = found.setdefault(note, [])
                if section not in sections:
                    sections.append(section)
        return list(found.items())

    def sources(self) -> list[str]:
        """Every source once, in the order in which the answers name them."""
        return list(dict.fromkeys(text for *_, report in self.answers() for text in report.sources))

    def inputs_read(self) -> list[str]:
        """Where each input was read, one line each."""
        return list(dict.fromkeys(line for *_, report in self.answers() for line in input_lines(report)))


def _at(results: Results, path: str) -> Any:
    """What stands at ``path``, or ``None`` where nothing does: what is not known is no key figure."""
    try:
        return lookup(results, path)
    except InputError:
        return None


def as_report(page: Page) -> Report:
    """The page as one record: what its JSON holds, every answer with the command line that gives it."""
    return Report(
        command="report",
        title=page.title,
        subtitle=page.subtitle,
        inputs=page.inputs,
        results={
            "command_line": page.command,
            "date": page.date,
            "summary": [{"section": section.name, "sentence": text} for section, _, text in page.summary()],
            "key_figures": [
                {"label": figure.label, "section": figure.section, "key": figure.cell.path, "text": text}
                for figure, text in page.figures()
            ],
            "sections": [
                {"name": section.name, "title": section.title, "answers": [_answer(part) for part in section.parts]}
                for section in page.sections
            ],
            "versions": [
                {"what": item.what, "version": item.version, "date": item.date or None} for item in page.versions
            ],
        },
        tables=(),
        sentence="",
        notes=tuple(note for note, _ in page.notes()),
        sources=tuple(page.sources()),
    )


def _answer(part: Part) -> dict[str, Any]:
    report = part.report
    return {
        "name": part.name,
        "command_line": part.command or None,
        "schema": None if report is None else report.schema,
        "reason": part.reason or None,
        "figure": part.chart is not None,
        "inputs": None if report is None else report.inputs,
        "results": None if report is None else report.results,
        "sentence": None if report is None else report.sentence,
        "explanations": [] if report is None else explained(report),
    }
