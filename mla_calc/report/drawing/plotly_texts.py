"""Places for the texts in an interactive figure, such that none covers another."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, hypot, log10
from typing import Any

from .plotly_boxes import Box, Boxes, overlap, shared
from .plotly_frame import Direction, Frame, safe
from .plotly_hover import NEAR_PX, Hits

TEXT_PX = 11
CHAR = 0.6
"""Of a text's height: the mean width of a character."""
SIDES: dict[str, tuple[int, int]] = {
    "bottom right": (1, -1),  # first: a roof rises from the lower left
    "middle right": (1, 0),
    "top left": (-1, 1),
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "bottom left": (-1, -1),
}
"""Where a text may stand beside its point, in plotly's words, the best first: steps across and up."""
HIGHEST = 0.6
"""Of a panel's height: below which the text of an upright line stands."""
MOST_LINES = 3
"""Into which such a text is folded where a line of it is too long."""
LARGE_PX = 8
BESIDE_LARGE = ("middle right", "middle left", "top center", "bottom center")
LARGE_CORNERS = ("bottom right", "top left", "top right")
"""Beside a point of a larger radius: at a corner a text would be far away."""
WAY_PX, AIR_PX, MOST_STEPS = 5, 2, 2000
"""Between two boxes along a line, what a text keeps from it, and the most boxes from one corner to the next."""
LED_PX = (20, 32, 48, 70, 96)
"""How far from its point a text may stand that has a line to it."""
LED_WAYS = ((-0.5, 1), (0.5, -1), (-1, 0.5), (1, -0.5), (0.5, 1), (-0.5, -1))
"""And in which directions, aslant: a line to the point would run along a rule or a flat roof otherwise."""
LED_STEPS = 12
"""Places of such a line that are looked at."""
LATTICE_PX, TIGHT_PX, MOST_FREE = 12, 4, 200
"""Between the places of a panel that are tried where none of those has room, and where none of the first has; and of
how many it is seen what a line to them would cut."""
WALL_WORTH_PX, WAY_WORTH_PX = 40, 80
"""How much further away a text may stand, to be on no line across the panel, and on no roof or other line."""
ROOF_STEP_PX, ROOF_AIR_PX = 8, 5
"""Between the places of a roof's name, and from it to the roof."""
RIVAL_PX = 2.0
"""What another marker has to be further from a text than the one that it names, or a line joins both."""
COVERED_POINT = 100
"""What it costs a cell's text to cover a point; a small box of a line costs 1."""
BESIDE_PX, SAME_PX = 4, 0.25
"""From a straight line to its text; and within which two such lines are one."""
FLAT = 0.3
"""A line less steep than this has its texts above it."""


@dataclass(slots=True)
class Places:
    """The boxes that a panel's texts have taken, in pixels from its lower left corner."""

    frame: Frame
    taken: Boxes = field(default_factory=Boxes)
    texts: Boxes = field(default_factory=Boxes)
    """Those of them that are texts'."""
    markers: Boxes = field(default_factory=Boxes)
    """What a text could be read as the name of: markers that are seen, each as the square around it."""
    leads: Boxes = field(default_factory=Boxes)
    """Places on the lines from texts to their points."""
    walls: Boxes = field(default_factory=Boxes)
    """Straight lines across the panel, which a text may cross only where it has no other room."""
    uprights: list[float] = field(default_factory=list)
    """Where those of them are that are upright."""
    ways: Boxes = field(default_factory=Boxes)
    """Small boxes along roofs and lines, which a text may cross only where it has no other room either."""
    settled: dict[tuple[int, int], str] = field(default_factory=dict)
    """By the ids of a line and of a record: the side of the point that its text has, or none, where a note has it."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """Texts with a line to their point, and names of roofs, as annotations of plotly's layout."""
    hits: Hits = field(default_factory=Hits)
    """The markers of points and lines, for what pointing at one tells."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point in the axes' units."""
        frame = self.frame
        return frame.share("x", x) * frame.width_px, frame.share("y", y) * frame.height_px

    def occupy(self, x: float, y: float, radius: float, is_seen: bool) -> None:
        """Keep texts off a point of a mark; where its marker ``is_seen``, also those that would be read as its name."""
        across, up = self.at(x, y)
        box = _around(across, up, 2 * radius, 2 * radius)
        self.taken.add(box)
        if is_seen and overlap(box, (0.0, 0.0, self.frame.width_px, self.frame.height_px)):
            self.markers.add(box)

    def occupy_text(self, box: Box) -> None:
        """Keep texts off a text that has no other place."""
        self.taken.add(box)
        self.texts.add(box)

    def wall(self, direction: Direction, at: float) -> None:
        """Keep texts off a line across the panel, upright at an x or level at a y."""
        share = self.frame.share(direction, at)
        if direction == "x":
            across = share * self.frame.width_px
            self.walls.add((across - AIR_PX, 0, across + AIR_PX, self.frame.height_px))
            self.uprights.append(across)
        else:
            up = share * self.frame.height_px
            self.walls.add((0, up - AIR_PX, self.frame.width_px, up + AIR_PX))

    def way(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep texts off a line through points in the axes' units, as far as it is within the panel."""
        corners = [self.at(*point) for point in points]
        for (x, y), (to_x, to_y) in pairwise(corners):
            steps = min(ceil(hypot(to_x - x, to_y - y) / WAY_PX), MOST_STEPS)
            for part in (step / steps for step in range(steps + 1)) if steps else ():
                across, up = x + (to_x - x) * part, y + (to_y - y) * part
                if 0 <= across <= self.frame.width_px and 0 <= up <= self.frame.height_px:
                    self.ways.add((across - AIR_PX, up - AIR_PX, across + AIR_PX, up + AIR_PX))

    def beside(
        self,
        x: float,
        y: float,
        text: str,
        radius: float,
        sides: Sequence[str] = (),
        only: Sequence[str] = (),
        strict: bool = False,
    ) -> str | None:
        """The side of a point at which its text has room and is read as its, or ``None``: then only pointing tells.

        ``sides`` are tried first, or those of ``only`` alone. ``strict``: it may cross no line at all; else an upright
        or level one of the whole panel before any other.
        """
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.15
        gap = radius / 0.8 + 1  # plotly's own
        large = BESIDE_LARGE if radius > LARGE_PX else ()
        order = only or (*sides, *large, *SIDES)
        free = []
        for side in dict.fromkeys(order):
            right, above = SIDES[side]
            left = across + right * gap - (0 if right > 0 else width if right < 0 else width / 2)
            low = up + above * gap - (0 if above > 0 else height if above < 0 else height / 2)
            box = left, low, left + width, low + height
            if self._is_free(box) and not self._misread(box, across, up, radius):
                free.append((side, box))
        for lines in self._lines(strict):
            # where none is off all lines, that on the shortest piece of them
            tries = free if lines else sorted(free, key=lambda each: len(self.ways.touching(each[1])))
            for side, box in tries:
                if self._take(box, lines):
                    return side
        return None

    def _misread(self, box: Box, across: float, up: float, radius: float) -> bool:
        """Whether a text is as near to another marker as to that which it names; one at the same place is no other."""
        reach = _gap(box, across, up, radius) + RIVAL_PX
        near = self.markers.touching((box[0] - reach, box[1] - reach, box[2] + reach, box[3] + reach))
        others = [((left + right) / 2, (low + high) / 2, (right - left) / 2) for left, low, right, high in near]
        return any(_gap(box, *other) < reach for other in others if hypot(other[0] - across, other[1] - up) > NEAR_PX)

    def _lines(self, strict: bool = False) -> Sequence[tuple[Boxes, ...]]:
        """What a text keeps off beside other texts, in the order in which it gives up on that."""
        every = (self.ways, self.walls)
        return (every,) if strict else (every, (self.ways,), ())

    def led(
        self, x: float, y: float, text: str, look: dict[str, Any], most: float, must: bool, strict: bool = False
    ) -> bool:
        """A note of a text that has no room beside its point: where there is some, with a line to the point.

        ``strict``: off every line, or not at all. ``most``: how far away at most. ``must``: its line may run over a
        marker, and unless it is ``strict`` it is further away where it has no room there. Whether it was made.
        """
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, row_px()
        ways = [(far * right, far * above) for far in LED_PX if far <= most for right, above in LED_WAYS]
        ways = [(right + (width / 2 if right > 0 else -width / 2 if right < 0 else 0), above) for right, above in ways]
        boxes = [_around(across + right, up + above, width, height) for right, above in ways]
        box = self._first(self._readable(boxes, across, up, 1 if must else 0), strict)
        if box is None and must and not strict:
            box = self._anywhere(across, up, width, height)
        if box is None:
            return False
        right, above = (box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up
        for part in (step / LED_STEPS for step in range(1, LED_STEPS)):
            self.leads.add(_around(across + right * part, up + above * part, 0, 0))
        place = {"x": self._in_layout("x", x), "y": self._in_layout("y", y), "ax": right, "ay": -above}
        axes = {"xref": f"x{self.frame.suffix}", "yref": f"y{self.frame.suffix}"}
        lead = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": look["color"]}
        self.notes.append(place | axes | lead | {"text": safe(text), "font": look, "bgcolor": "rgba(255,255,255,0.8)"})
        return True

    def _readable(self, boxes: Sequence[Box], across: float, up: float, most: int) -> list[Box]:
        """Those of ``boxes`` with room whose line to a point cuts no more than ``most``, the clearest first."""
        costs = [(self._cuts(box, across, up), at) for at, box in enumerate(boxes) if self._is_free(box)]
        return [boxes[at] for cost, at in sorted(costs) if cost <= most]

    def _first(self, boxes: Sequence[Box], strict: bool) -> Box | None:
        """The first of ``boxes`` that has room, which it then takes."""
        tries = ((box, lines) for lines in self._lines(strict) for box in boxes)
        return next((box for box, lines in tries if self._take(box, lines)), None)

    def _anywhere(self, across: float, up: float, width: float, height: float) -> Box:
        """Where in the panel a text has room that must be there, near its point; or where it covers least of others."""
        free = [box for box in self._lattice(across, up, width, height, LATTICE_PX) if self._is_free(box)]
        near = sorted(free[:MOST_FREE], key=lambda box: _away(box, across, up) + self._crossed(box))
        box = next((box for box in near if self._cuts(box, across, up) <= 1), None)
        if box is None:  # a line through another text, or no air above and below, is still better than no text
            tight = () if free else self._lattice(across, up, width, TEXT_PX * 1.15, TIGHT_PX)
            box = free[0] if free else min(tight, key=self._covered)
        self.occupy_text(box)
        return box

    def _lattice(self, across: float, up: float, width: float, height: float, apart: float) -> list[Box]:
        """Boxes of a size all over the panel, so far apart, the nearest to a point first."""
        right, high = max(self.frame.width_px - width, 0.0), max(self.frame.height_px - height, 0.0)
        corners = [(left, low) for left in _steps(right, apart) for low in _steps(high, apart)]
        boxes = [(left, low, left + width, low + height) for left, low in corners]
        return sorted(boxes, key=lambda box: _away(box, across, up))

    def _crossed(self, box: Box) -> float:
        """What the lines that a text crosses are worth, as pixels that it may be further away to cross none."""
        return WALL_WORTH_PX * self.walls.touches(box) + WAY_WORTH_PX * self.ways.touches(box)

    def _covered(self, box: Box) -> float:
        """How much of other texts a text would cover, in square pixels."""
        return sum(shared(box, other) for other in self.texts.touching(box))

    def _cuts(self, box: Box, across: float, up: float) -> int:
        """Whether a line from the middle of a text to its point runs through another text, 2, or a sized marker, 1."""
        right, above = (box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up
        parts = [step / LED_STEPS for step in range(1, LED_STEPS)]
        dots = [(across + right * part, up + above * part) for part in parts]
        own = self.hits.covering(across, up)
        if any(self.texts.touches(_around(*dot, 0, 0)) for dot in dots):
            return 2
        return int(any(hit not in own for dot in dots for hit in self.hits.covering(*dot)))

    def along_roof(self, end: tuple[float, float], to: tuple[float, float], text: str, look: dict[str, Any]) -> None:
        """A note of a text at a part of a roof: near its ``end`` first, above it, or else below; none has no room."""
        (x, y), (to_x, to_y) = self.at(*end), self.at(*to)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.3
        level = abs(to_y - y) < 1
        steps = max(1, int(hypot(to_x - x, to_y - y) / ROOF_STEP_PX))
        tries = []
        for part in (step / steps for step in range(steps)):
            across, up = x + (to_x - x) * part, y + (to_y - y) * part
            # of a slope, what is above it is at its left, and what is below it at its right
            above = (across - width, up + ROOF_AIR_PX)
            below = (across - width if level else across, up - ROOF_AIR_PX - height)
            tries += [(left, low, left + width, low + height) for left, low in (above, below)]
        box = self._first(tries, False)
        if box:
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            self.notes.append(self._note(*middle) | {"showarrow": False, "text": safe(text), "font": look})

    def in_cell(self, cell: Box, text: str, size: float, levels: Sequence[float]) -> tuple[float, float]:
        """Where in a cell of so many pixels its text covers least, the middle first; in the axes' units.

        ``levels``: of level lines, in the y axis' units.
        """
        half, tall = len(text) * size * CHAR / 2, size / 2
        middle, height = (cell[0] + cell[2]) / 2, (cell[1] + cell[3]) / 2
        aside = max(0.0, (cell[2] - cell[0]) / 2 - half - AIR_PX)
        away = max(0.0, (cell[3] - cell[1]) / 2 - tall - 0.5)
        rules = [self.frame.share("y", at) * self.frame.height_px for at in levels]
        tries = [(middle + right, height + above) for right in (0.0, -aside, aside) for above in (0.0, -away, away)]
        boxes = [(x - half, y - tall, x + half, y + tall) for x, y in tries]
        walls = [(0.0, at - 1, self.frame.width_px, at + 1) for at in rules]
        covered = [
            COVERED_POINT * len(self.taken.touching(box))
            + len(self.ways.touching(box))
            + sum(overlap(box, wall) for wall in walls)
            for box in boxes
        ]
        best = covered.index(min(covered))
        self.taken.add(boxes[best])
        x, y = tries[best]
        return self.frame.at("x", x / self.frame.width_px), self.frame.at("y", y / self.frame.height_px)

    def _note(self, across: float, up: float) -> dict[str, Any]:
        """Where an annotation of plotly's layout stands whose middle is at so many pixels."""
        x, y = self.frame.at("x", across / self.frame.width_px), self.frame.at("y", up / self.frame.height_px)
        axes = {"xref": f"x{self.frame.suffix}", "yref": f"y{self.frame.suffix}"}
        return {"x": self._in_layout("x", x), "y": self._in_layout("y", y)} | axes

    def _in_layout(self, direction: Direction, at: float) -> float:
        """A place on an axis as plotly's layout has it: of a log axis the logarithm."""
        return log10(at) if self.frame.axis(direction).scale == "log" else at

    def along(self, x: float, text: str) -> tuple[float, str, str]:
        """How far above the foot of an upright line its text stands, at its ``left`` or ``right``; the text, folded.

        A text is read as the nearest line's, so none stands across another upright line, or behind one, as long as it
        has any other room; rather it crosses a roof.
        """
        across = self.frame.share("x", x) * self.frame.width_px
        tries = [each for folds in range(1, MOST_LINES + 1) for each in self._beside_upright(across, text, folds)]
        own = [each for each in tries if not self._behind(each[0], across)]
        for some, lines in ((own, (self.ways,)), (own, ()), (tries, ())):
            for box, side, folded in some:
                if self._take(box, lines):
                    return box[1], side, folded
        box, side, folded = min(tries, key=lambda each: self._covered(each[0]))
        self.occupy_text(box)
        return box[1], side, folded

    def _beside_upright(self, across: float, text: str, folds: int) -> Iterator[tuple[Box, str, str]]:
        """Places of a text at both sides of an upright line, from the foot on, in so many lines."""
        lines = _in_lines(text, folds)
        width, height = max(map(len, lines)) * TEXT_PX * CHAR, row_px() * len(lines)
        for row in range(max(1, int((HIGHEST * self.frame.height_px - height) / row_px()))):
            low = row * row_px()
            for side, left in (("right", across + BESIDE_PX), ("left", across - BESIDE_PX - width)):
                yield (left, low, left + width, low + height), side, "\n".join(lines)

    def _behind(self, box: Box, across: float) -> bool:
        """Whether another upright line lies on a text beside one, or between both."""
        low, high = min(box[0] - AIR_PX, across), max(box[2] + AIR_PX, across)
        return any(low < other < high for other in self.uprights if abs(other - across) > SAME_PX)

    def above(self, y: float, text: str) -> tuple[str, str]:
        """The end of a level line, ``start`` or ``end``, and whether its text stands on it, ``bottom``, or below."""
        up = self.frame.share("y", y) * self.frame.height_px
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.3
        ends = (("end", self.frame.width_px - width - BESIDE_PX), ("start", float(BESIDE_PX)))
        tries = [
            ((left, low, left + width, low + height), end, anchor)
            for low, anchor in ((up, "bottom"), (up - height, "top"))
            for end, left in ends
        ]
        for lines in ((self.ways,), ()):
            for box, end, anchor in tries:
                if self._take(box, lines):
                    return end, anchor
        box, end, anchor = min(tries, key=lambda each: self._covered(each[0]))
        self.occupy_text(box)
        return end, anchor

    def along_line(self, x: Sequence[float], y: Sequence[float]) -> list[tuple[str, ...]]:
        """The sides of each point of a line that are off the line."""
        places = [self.at(*point) for point in zip(x, y, strict=True)]
        found: list[tuple[str, ...]] = []
        for index in range(len(places)):
            first, last = places[max(0, index - 1)], places[min(len(places) - 1, index + 1)]
            right, rise = last[0] - first[0], last[1] - first[1]
            if abs(rise) <= FLAT * abs(right):
                found.append(("top center", "bottom center"))
            else:
                found.append(("bottom right", "top left") if right * rise > 0 else ("top right", "bottom left"))
        return found

    def _take(self, box: Box, lines: Sequence[Boxes] = ()) -> bool:
        free = self._is_free(box, lines)
        if free:
            self.occupy_text(box)
        return free

    def _is_free(self, box: Box, lines: Sequence[Boxes] = ()) -> bool:
        """Whether a box is within the panel and on nothing that is taken, and on none of ``lines``."""
        left, low, right, high = box
        if left < 0 or low < 0 or right > self.frame.width_px or high > self.frame.height_px:
            return False
        return not any(boxes.touches(box) for boxes in (self.taken, self.leads, *lines))


def _in_lines(text: str, most: int) -> list[str]:
    """A text in no more lines than that, as short as they can be."""
    every = (textwrap.wrap(text, chars, break_long_words=False) for chars in range(1, len(text) + 1))
    return next(lines for lines in every if len(lines) <= most) or [text]


def _around(across: float, up: float, width: float, height: float) -> Box:
    """The box around a middle."""
    return across - width / 2, up - height / 2, across + width / 2, up + height / 2


def _away(box: Box, across: float, up: float) -> float:
    """From a text's middle to a place."""
    return hypot((box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up)


def _gap(box: Box, across: float, up: float, radius: float) -> float:
    """From a text to a round marker: 0 where they touch."""
    x, y = min(max(across, box[0]), box[2]), min(max(up, box[1]), box[3])
    return max(0.0, hypot(across - x, up - y) - radius)


def _steps(end: float, apart: float) -> list[float]:
    """Places from 0 to ``end``, no further apart than that."""
    count = ceil(end / apart)
    return [end * step / count for step in range(count + 1)] if count else [0.0]


def row_px() -> float:
    """The height of a row of texts at the foot of a panel."""
    return TEXT_PX * 1.5
