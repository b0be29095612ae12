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
ON_ROOF = 1e-3
"""In heights of a cell: what is closer to a roof is on it."""


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

    def spots(self, step: float = 0.7) -> set[Spot]:
        """The cells it runs through, by points ``step`` widths of a cell apart."""
        return {(round(x), round(y)) for x, y in walk(self.points, step)}

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


@dataclass(frozen=True, slots=True)
class Roofline:
    """A stroke from left to right that no character may be moved across, and its cells."""

    stroke: Stroke
    spots: frozenset[Spot]
    named: bool = False
    """Whether its name stands in its flat end, if there is room."""

    @property
    def flat(self) -> set[Spot]:
        """The cells of its flat end."""
        (bend, _), (_, y) = self.stroke.points[-2:]
        return {(column, row) for column, row in self.spots if column >= round(bend) and row == round(y)}

    def side(self, x: float, y: float) -> int:
        """1 for a point above it, -1 below it, 0 on it."""
        away = y - self._height(x)
        return 0 if abs(away) < ON_ROOF else 1 if away > 0 else -1

    def side_of(self, spot: Spot) -> int:
        """1 for a cell above its own, -1 below them, 0 for one of them."""
        return 0 if spot in self.spots else self.side(*spot)

    def _height(self, x: float) -> float:
        """Where it runs at a column."""
        (x0, y0), (x1, y1) = next(
            (piece for piece in pairwise(self.stroke.points) if piece[0][0] < piece[1][0] and x <= piece[1][0]),
            self.stroke.points[-2:],
        )
        return y1 if x1 <= x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)


@dataclass(slots=True)
class Sheet:
    """What is drawn on ``x`` and ``y``, and which cells are in use."""

    x: Scale
    y: Scale
    strokes: list[Stroke] = field(default_factory=list)
    characters: dict[Spot, tuple[str, Colour]] = field(default_factory=dict)
    words: list[tuple[Spot, str, Colour]] = field(default_factory=list)
    inked: set[Spot] = field(default_factory=set)
    roofs: list[Roofline] = field(default_factory=list)
    weak: set[Spot] = field(default_factory=set)
    """Cells whose character is one of many alike: another that finds no place elsewhere takes it."""
    hidden: dict[str, str] = field(default_factory=dict)
    """What stands in place of a character that found no place somewhere."""

    def stroke(
        self, points: Iterable[tuple[float, float]], colour: Colour, dash: Dash = "solid", character: str = ""
    ) -> None:
        """Draw a line through ``points``, in cells; of ``character`` or of dots."""
        stroke = Stroke(tuple(points), colour, dash, character)
        self.strokes.append(stroke)
        self.inked |= stroke.spots()

    def roof(self, points: Iterable[tuple[float, float]], colour: Colour, dash: Dash, named: bool = False) -> None:
        """Draw a line that no character is moved across; ``named``: whether its flat end has its name."""
        self.stroke(points, colour, dash)
        stroke = self.strokes[-1]
        self.roofs.append(Roofline(stroke, frozenset(stroke.spots(0.25)), named))

    def near(self, x: float, y: float, aside: Sequence[Spot] = NEAR) -> list[Spot]:
        """The cell of a point, and those ``aside`` of it that lie on the same side of every roof as it does.

        A point that shares a cell with a roof may stand in it or on its own side of it; one that lies on a roof may
        share a cell with others, for it stays on its own.
        """
        own, *others = ((round(x) + across, round(y) + up) for across, up in aside)
        if self._inside(own) and own not in self._taken(""):
            return [own]  # it is free: no other is asked for
        sides = [(roof, roof.side(x, y)) for roof in self.roofs]
        on_one = any(side == 0 for _, side in sides)
        allowed = [(roof, {side, 0} if on_one or roof.side_of(own) == 0 else {side}) for roof, side in sides]
        return [own, *(spot for spot in others if all(roof.side_of(spot) in each for roof, each in allowed))]

    def put(self, spots: Sequence[Spot], character: str, colour: Colour, weak: bool = False) -> None:
        """Set a character in the first of ``spots`` that is free, or else in the first of all over a word.

        Where another character stands there already, that stays, unless it is ``weak``.
        """
        taken = self._taken("") if len(spots) > 1 else self.characters.keys()
        spot = next((spot for spot in spots if self._inside(spot) and spot not in taken), spots[0])
        if spot in self.characters and spot not in self.weak:
            self.hidden[character] = self.characters[spot][0]
        elif self._inside(spot):
            self.characters[spot] = (character, colour)
            (self.weak.add if weak else self.weak.discard)(spot)

    def unseen(self) -> dict[str, str]:
        """The characters that are seen nowhere, with what stands in place of each."""
        seen = {character for character, _ in self.characters.values()}
        return {character: by for character, by in self.hidden.items() if character not in seen}

    def write(self, text: str, colour: Colour, spots: Sequence[Spot], apart: int = 0) -> bool:
        """Write ``text`` from the first of ``spots`` where nothing is in its way; whether there is one.

        Second best is over a line, never over other words or characters, nor beside a character unless ``apart`` is 0:
        best is that many cells from any line too.
        """
        taken = self._taken(" ")
        found: Spot | None = None
        for spot in spots:
            column, row = spot
            about = [(column + index, row) for index in range(-apart, len(text) + apart)]
            own = about[apart : apart + len(text)]
            if not self._fits(spot, text) or not taken.isdisjoint(own) or any(map(self.characters.__contains__, about)):
                continue
            if self.inked.isdisjoint(about):
                found = spot
                break
            found = found or spot
        if found is not None:
            self.words.append((found, text, colour))
        return found is not None

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
