"""Places for the texts in an interactive figure, such that none covers another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, hypot, log10
from typing import Any

from .plotly_frame import LEAST_SHARE, Direction, Frame, safe
from .plotly_hover import Hits

Box = tuple[float, float, float, float]
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
ROWS = 6
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
ROOF_STEP_PX, ROOF_AIR_PX = 8, 5
"""Between the places of a roof's name, and from it to the roof."""
COVERED_POINT = 100
"""What it costs a cell's text to cover a point; a small box of a line costs 1."""
FLAT = 0.3
"""A line less steep than this has its texts above it."""


@dataclass(slots=True)
class Places:
    """The boxes that a panel's texts have taken, in pixels from its lower left corner."""

    frame: Frame
    taken: list[Box] = field(default_factory=list)
    texts: list[Box] = field(default_factory=list)
    """Those of them that are texts'."""
    leads: list[tuple[float, float]] = field(default_factory=list)
    """Places on the lines from texts to their points."""
    walls: list[Box] = field(default_factory=list)
    """Straight lines across the panel, which a text may cross only where it has no other room."""
    ways: list[Box] = field(default_factory=list)
    """Small boxes along roofs and lines, which a text may cross only where it has no other room either."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """Texts with a line to their point, and names of roofs, as annotations of plotly's layout."""
    hits: Hits = field(default_factory=Hits)
    """The markers of points and lines, for what pointing at one tells."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point in the axes' units."""
        frame = self.frame
        return frame.share("x", x) * frame.width_px, frame.share("y", y) * frame.height_px

    def occupy(self, x: float, y: float, across_px: float, up_px: float) -> None:
        """Keep texts off what reaches so far to both sides of a point."""
        across, up = self.at(x, y)
        self.taken.append((across - across_px, up - up_px, across + across_px, up + up_px))

    def occupy_top(self, x: float, names: tuple[str, str]) -> None:
        """Keep texts off the names of the zones on both sides of ``x``."""
        across = self.frame.share("x", x) * self.frame.width_px
        left, right = ((len(name) + 4) * TEXT_PX * CHAR for name in names)
        self.taken.append((across - left, self.frame.height_px - row_px(), across + right, self.frame.height_px))

    def wall(self, direction: Direction, at: float) -> None:
        """Keep texts off a line across the panel, upright at an x or level at a y."""
        share = self.frame.share(direction, at)
        if direction == "x":
            across = share * self.frame.width_px
            self.walls.append((across - AIR_PX, 0, across + AIR_PX, self.frame.height_px))
        else:
            up = share * self.frame.height_px
            self.walls.append((0, up - AIR_PX, self.frame.width_px, up + AIR_PX))

    def way(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep texts off a line through points in the axes' units, as far as it is within the panel."""
        corners = [self.at(*point) for point in points]
        for (x, y), (to_x, to_y) in pairwise(corners):
            steps = min(ceil(hypot(to_x - x, to_y - y) / WAY_PX), MOST_STEPS)
            for part in (step / steps for step in range(steps + 1)) if steps else ():
                across, up = x + (to_x - x) * part, y + (to_y - y) * part
                if 0 <= across <= self.frame.width_px and 0 <= up <= self.frame.height_px:
                    self.ways.append((across - AIR_PX, up - AIR_PX, across + AIR_PX, up + AIR_PX))

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
        """The side of a point at which its text has room, or ``None``: then only pointing at it tells.

        ``sides`` are tried first, or those of ``only`` alone. ``strict``: it may cross no line at all; else an upright
        or level one of the whole panel before any other.
        """
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.15
        gap = radius / 0.8 + 1  # plotly's own
        large = BESIDE_LARGE if radius > LARGE_PX else ()
        order = only or (*sides, *large, *SIDES)
        for walls in ((*self.ways, *self.walls), *(() if strict else (self.ways, ()))):
            for side in order:
                right, above = SIDES[side]
                left = across + right * gap - (0 if right > 0 else width if right < 0 else width / 2)
                low = up + above * gap - (0 if above > 0 else height if above < 0 else height / 2)
                if self._take((left, low, left + width, low + height), walls):
                    return side
        return None

    def led(
        self, x: float, y: float, text: str, look: dict[str, Any], most: float, must: bool, strict: bool = False
    ) -> bool:
        """A note of a text that has no room beside its point: where there is some, with a line to the point.

        ``strict``: off every line, or not at all. ``most``: how far away at most. ``must``: its
        line may run over a marker, where there is no other way. Whether it was made.
        """
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.15
        ways = [(far * right, far * above) for far in LED_PX if far <= most for right, above in LED_WAYS]
        ways = [(right + (width / 2 if right > 0 else -width / 2 if right < 0 else 0), above) for right, above in ways]
        boxes = [
            (across + right - width / 2, up + above - height / 2, across + right + width / 2, up + above + height / 2)
            for right, above in ways
        ]
        chances = ((*self.ways, *self.walls), *(() if strict else (self.ways, ())))
        costs = [self._cuts(box, across, up) for box in boxes]
        kept = [(cost, at) for at, cost in enumerate(costs) if cost <= (1 if must else 0)]
        boxes = [boxes[at] for _, at in sorted(kept)] or ([] if strict else boxes)
        tries = ((box, walls) for walls in chances for box in boxes)
        box = next((box for box, walls in tries if self._take(box, walls)), None if strict else boxes[0])
        if box is None:
            return False
        right, above = (box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up
        self.leads += [
            (across + right * part, up + above * part) for part in (step / LED_STEPS for step in range(1, LED_STEPS))
        ]
        place = {"x": self._in_layout("x", x), "y": self._in_layout("y", y), "ax": right, "ay": -above}
        axes = {"xref": f"x{self.frame.suffix}", "yref": f"y{self.frame.suffix}"}
        lead = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": look["color"]}
        self.notes.append(place | axes | lead | {"text": safe(text), "font": look, "bgcolor": "rgba(255,255,255,0.8)"})
        return True

    def _cuts(self, box: Box, across: float, up: float) -> int:
        """Whether a line from the middle of a text to its point runs through another text, 2, or a sized marker, 1."""
        right, above = (box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up
        parts = [step / LED_STEPS for step in range(1, LED_STEPS)]
        dots = [(across + right * part, up + above * part) for part in parts]
        own = self.hits.covering(across, up)
        if any(any(map(box_touches((*dot, *dot)), self.texts)) for dot in dots):
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
        for walls in ((*self.ways, *self.walls), self.ways, ()):
            for box in tries:
                if self._take(box, walls):
                    middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
                    self.notes.append(self._note(*middle) | {"showarrow": False, "text": safe(text), "font": look})
                    return

    def in_cell(self, cell: Box, text: str, size: float, levels: Sequence[float]) -> tuple[float, float]:
        """Where in a cell of so many pixels its text covers least, the middle first; in the axes' units.

        ``levels``: of level lines, in the y axis' units.
        """
        half, tall = len(text) * size * CHAR / 2, size / 2
        middle, height = (cell[0] + cell[2]) / 2, (cell[1] + cell[3]) / 2
        aside = max(0.0, (cell[2] - cell[0]) / 2 - half / LEAST_SHARE - AIR_PX)  # a narrower window has it narrower
        away = max(0.0, (cell[3] - cell[1]) / 2 - tall - 0.5)
        rules = [self.frame.share("y", at) * self.frame.height_px for at in levels]
        tries = [(middle + right, height + above) for right in (0.0, -aside, aside) for above in (0.0, -away, away)]
        boxes = [(x - half, y - tall, x + half, y + tall) for x, y in tries]
        walls = [(0.0, at - 1, self.frame.width_px, at + 1) for at in rules]
        covered = [
            COVERED_POINT * sum(map(box_touches(box), self.taken)) + sum(map(box_touches(box), (*self.ways, *walls)))
            for box in boxes
        ]
        best = covered.index(min(covered))
        self.taken.append(boxes[best])
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

    def along(self, x: float, text: str) -> tuple[int, str]:
        """Row from the foot of an upright line, and side, ``left`` or ``right``, where its text has room."""
        across = self.frame.share("x", x) * self.frame.width_px
        width, height = len(text) * TEXT_PX * CHAR, row_px()
        for walls in ((*self.walls, *self.ways), self.walls, ()):
            for row in range(ROWS):
                for side, left in (("right", across + 4), ("left", across - 4 - width)):
                    if self._take((left, row * height, left + width, (row + 1) * height), walls):
                        return row, side
        return 0, "right"

    def above(self, y: float, text: str) -> str:
        """The end of a level line, ``start`` or ``end``, above which its text has room."""
        up = self.frame.share("y", y) * self.frame.height_px
        width = len(text) * TEXT_PX * CHAR
        for end, left in (("end", self.frame.width_px - width - 4), ("start", 4.0)):
            if self._take((left, up, left + width, up + TEXT_PX * 1.3)):
                return end
        return "end"

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

    def _take(self, box: Box, walls: Sequence[Box] = ()) -> bool:
        left, low, right, high = box
        if left < 0 or low < 0 or right > self.frame.width_px or high > self.frame.height_px:
            return False
        others = (*self.taken, *walls)
        if any(map(box_touches(box), others)):
            return False
        if any(box_touches(box)((x, y, x, y)) for x, y in self.leads):
            return False
        self.taken.append(box)
        self.texts.append(box)
        return True


def box_touches(box: Box) -> Callable[[Box], bool]:
    """Whether another box has room in common with this one."""
    left, low, right, high = box
    return lambda other: left < other[2] and other[0] < right and low < other[3] and other[1] < high


def row_px() -> float:
    """The height of a row of texts at the foot of a panel."""
    return TEXT_PX * 1.5
