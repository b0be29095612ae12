"""Saving what is on the screen: one JSON of every answer, and the figure of the roofline, under names not in use."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from pathlib import Path
from threading import Lock

from ..errors import InputError
from ..report.record import Report
from ..report.render import to_json
from ..report.write import replacing, write_figure, write_utf8
from .answers import Answers, Wrong
from .state import COMMANDS, State

_ONE_AT_A_TIME = Lock()
"""matplotlib draws one figure at a time."""


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
        InputError: the folder cannot be written; then neither file is there.
    """
    text = to_json(report_of(answers, state))
    roofline = answers.answer(state, "roofline")
    with _ONE_AT_A_TIME:
        target, figure = taken_names(folder)
        try:
            with replacing(target, None) as path:
                write_utf8(path, text)
            if isinstance(roofline, Wrong):
                figure.unlink()
                return (target,)
            write_figure(roofline, figure, "slide")
        except BaseException as error:
            for made in (target, figure):
                made.unlink(missing_ok=True)
            if isinstance(error, InputError):
                raise InputError(f"nothing is saved: {str(error).removeprefix('--output ')}") from None
            raise
    return target, figure


def taken_names(folder: Path) -> tuple[Path, Path]:
    """The first numbered names of a JSON and a figure of which neither is there, each made as an empty file.

    Making them is what finds them free: nobody else's file of such a name is ever replaced.
    """
    for number in count(1):
        target, figure = folder / f"explore-{number}.json", folder / f"explore-{number}.svg"
        if _taken(target):
            if _taken(figure):
                return target, figure
            target.unlink()
    raise AssertionError("numbers do not end")


def _taken(path: Path) -> bool:
    """Make an empty file; ``False`` where something of that name is there."""
    try:
        path.open("x").close()
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(f"nothing is saved: {error.strerror}: {path.parent}") from None
    return True
