"""Saving what is on the screen: one JSON of every answer, and the figure of the roofline, under names not in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path

from ..report.record import Report
from ..report.render import to_json
from ..report.write import replacing, write_figure
from .answers import Answers, Wrong
from .state import COMMANDS, State


def report_of(answers: Answers, state: State) -> Report:
    """Every answer to ``state`` as one record; where there is none, ``null`` with a note."""
    found = {name: answers.answer(state, name) for name in COMMANDS}
    reports = {name: each for name, each in found.items() if isinstance(each, Report)}
    notes = [f"{name}: {each.message}" for name, each in found.items() if isinstance(each, Wrong)]
    return Report(
        command="explore",
        title=f"{state.model} on {state.gpu}",
        inputs=asdict(state),
        results={name: reports[name].results if name in reports else None for name in COMMANDS},
        tables=(),
        sentence="",
        notes=(*notes, *dict.fromkeys(note for report in reports.values() for note in report.notes)),
        sources=tuple(dict.fromkeys(source for report in reports.values() for source in report.sources)),
    )


def save(answers: Answers, state: State, folder: Path) -> tuple[Path, ...]:
    """Write ``explore-N.json`` and, where there is a roofline, ``explore-N.svg``; the paths written are returned.

    Raises:
        InputError: the folder cannot be written.
    """
    target, figure = free_names(folder)
    with replacing(target, None) as path:
        path.write_text(to_json(report_of(answers, state)), encoding="utf-8")
    roofline = answers.answer(state, "roofline")
    if isinstance(roofline, Wrong):
        return (target,)
    write_figure(roofline, figure, "slide")
    return target, figure


def free_names(folder: Path) -> tuple[Path, Path]:
    """The first numbered names of a JSON and a figure of which neither is there."""
    pairs: Iterator[tuple[Path, Path]] = (
        (folder / f"explore-{number}.json", folder / f"explore-{number}.svg") for number in count(1)
    )
    return next((target, figure) for target, figure in pairs if not target.exists() and not figure.exists())
