"""The answers of the commands to a state: the same records as theirs, each asked for once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any

from ..errors import InputError
from ..report.record import Report
from .state import State, options_of, refusal

MOST_KEPT = 512
"""Answers that are kept: going back and forth between settings costs nothing."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What stands where an answer should: why there is none."""

    message: str
    hint: str | None = None


@dataclass(slots=True)
class Answers:
    """Answers to states by the commands behind the panels, kept while the explorer runs.

    The screen and what works beside it ask at the same time, so what is kept is touched under a lock; an answer is
    worked out outside of it, so that the screen never waits for a long one of another panel.
    """

    _kept: dict[tuple[Any, ...], Report | Wrong] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, state: State, name: str, explain: bool = False) -> Report | Wrong:
        """What the command ``name`` (of :data:`mla_calc.explore.state.COMMANDS`) says of ``state``."""
        options = options_of(state, name)
        key = (name, explain, *options.items())
        with self._lock:
            found = self._kept.get(key)
        if found is not None:
            return found
        made = _asked(state, name, options, explain)
        with self._lock:
            # the same for all that asked at once: what is shown is laid out anew where it is another
            found = self._kept.setdefault(key, made)
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def known(self, state: State, name: str) -> bool:
        """Whether the answer is there already."""
        key = (name, False, *options_of(state, name).items())
        with self._lock:
            return key in self._kept


def _asked(state: State, name: str, options: Mapping[str, Any], explain: bool) -> Report | Wrong:
    wrong = refusal(state)
    if wrong:
        return Wrong(wrong)
    module = import_module(f"..cli.{name.partition('-')[0]}", __package__)
    try:
        report: Report = module.answer(**options, explain=explain)
    except InputError as error:
        return Wrong(str(error), error.hint)
    return report
