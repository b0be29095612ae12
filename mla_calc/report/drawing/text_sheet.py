"""What is drawn in the cells of a terminal: strokes, characters and words, each out of the others' way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot
from typing import Any

from ..chart import Bars, Cells, Colour, Dash, Line, Panel, Points
from ..chart_data import drawn
from ..record import Results
from .text_scale import Scale

Spot = tuple[int, int]
"""Column and row of a cell, the row counted from the bottom."""
TALL = 2.0
"""A cell is about twice as high as wide."""
PATTERNS: dict[Dash, tuple[float, float]] = {"dashed": (3.0, 1.5), "dotted": (2.0, 0.0)}
"""Of a stroke that is not solid: the length of its period and of its ink, in widths of a cell."""
NEAR = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1))
"""Cells that a character may stand in, where another has its own already: one away at most."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A panel and the results that it is looked up in; a mark's records are looked up once."""

    panel: Panel
    results: Results
    found: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def drawn(self, mark: Line | Points | Cells | Bars) -> list[dict[str, Any]]:
        """The records of a mark of this panel that have what it draws."""
        if id(mark) not in self.found:
            self.found[id(mark)] = drawn(self.results, mark)
        return self.found[id(mark)]


@dataclass(frozen=True, slots=True)
class Stroke:
    """Straight lines through points given in cells."""

    points: tuple[tuple[float, float], ...]
    colour: Colour
    dash: Dash = "solid"
    character: str = ""
    """What stands in each of its cells, where no dots do."""

    def spots(self) -> set[Spot]:
        """The cells it runs through."""
        return {(round(x), round(y)) for x, y in walk(self.points, 0.7)}

    def dashes(self) -> list[tuple[float, float]]:
        """Starts and ends, in turn, of the pieces of a stroke that is not solid."""
        period, ink = PATTERNS[self.dash]
        ends: list[tuple[float, float]] = []
        for (x0, y0), (x1, y1) in pairwise(self.points):
            length = hypot(x1 - x0, TALL * (y1 - y0)) or 1.0
            for index in range(max(1, round(length / period))):
                for along in (index * period, index * period + ink):
                    share = min(1.0, along / length)
                    ends.append((x0 + (x1 - x0) * share, y0 + (y1 - y0) * share))
        return ends


@dataclass(slots=True)
class Sheet:
    """What is drawn on ``x`` and ``y``, and which cells are in use."""

    x: Scale
    y: Scale
    strokes: list[Stroke] = field(default_factory=list)
    characters: dict[Spot, tuple[str, Colour]] = field(default_factory=dict)
    words: list[tuple[Spot, str, Colour]] = field(default_factory=list)
    inked: set[Spot] = field(default_factory=set)

    def stroke(
        self, points: Iterable[tuple[float, float]], colour: Colour, dash: Dash = "solid", character: str = ""
    ) -> None:
        """Draw a line through ``points``, in cells; of ``character`` or of dots."""
        stroke = Stroke(tuple(points), colour, dash, character)
        self.strokes.append(stroke)
        self.inked |= stroke.spots()

    def put(self, x: float, y: float, character: str, colour: Colour, near: Sequence[Spot] = NEAR) -> None:
        """Set a character at a cell, or ``near`` it where another stands there."""
        spots = [(round(x) + across, round(y) + up) for across, up in near]
        taken = self._taken("") if len(near) > 1 else self.characters.keys()
        spot = next((spot for spot in spots if self._inside(spot) and spot not in taken), spots[0])
        if self._inside(spot):
            self.characters[spot] = (character, colour)

    def write(self, text: str, colour: Colour, spots: Sequence[Spot], apart: int = 0) -> None:
        """Write ``text`` from the first of ``spots`` where nothing is in its way; nowhere if there is none.

        Second best is over a line, never over other words or characters; best is ``apart`` cells from any line.
        """
        taken = self._taken(" ")
        fitting = [spot for spot in spots if self._fits(spot, text) and not taken & cells_of(spot, text)]
        wide = " " * apart + text + " " * apart
        about = {spot: cells_of((spot[0] - apart, spot[1]), wide) for spot in fitting}
        clear = [spot for spot in fitting if not self.inked & about[spot]]
        best = [spot for spot in clear if not self.characters.keys() & about[spot]]
        for spot in (best or clear or fitting)[:1]:
            self.words.append((spot, text, colour))

    def _taken(self, apart: str) -> set[Spot]:
        """The cells of characters and words, with ``apart`` on both sides of a word."""
        words = (cells_of((column - len(apart), row), apart + word + apart) for (column, row), word, _ in self.words)
        return set(self.characters).union(*words)

    def _inside(self, spot: Spot) -> bool:
        return 0 <= spot[0] < self.x.cells and 0 <= spot[1] < self.y.cells

    def _fits(self, spot: Spot, text: str) -> bool:
        return bool(text) and self._inside(spot) and spot[0] + len(text) <= self.x.cells


def walk(points: Sequence[tuple[float, float]], step: float) -> Iterable[tuple[float, float]]:
    """Points about every ``step`` widths of a cell along straight lines."""
    for (x0, y0), (x1, y1) in pairwise(points):
        count = max(1, int(hypot(x1 - x0, TALL * (y1 - y0)) / step))
        for index in range(count + 1):
            yield x0 + (x1 - x0) * index / count, y0 + (y1 - y0) * index / count


def cells_of(spot: Spot, text: str) -> set[Spot]:
    """The cells of a text that begins at ``spot``."""
    return {(spot[0] + index, spot[1]) for index in range(len(text))}
