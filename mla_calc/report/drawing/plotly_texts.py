"""Places for the texts in an interactive figure, such that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, hypot, log10
from typing import Any

from .plotly_frame import Direction, Frame, safe

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
WAY_PX, AIR_PX, MOST_STEPS = 5, 2, 2000
"""Between two boxes along a line, what a text keeps from it, and the most boxes from one corner to the next."""
LED_PX = (28, 44, 64, 90)
"""How far from its point a text may stand that has a line to it."""
FLAT = 0.3
"""A line less steep than this has its texts above it."""


@dataclass(slots=True)
class Places:
    """The boxes that a panel's texts have taken, in pixels from its lower left corner."""

    frame: Frame
    taken: list[Box] = field(default_factory=list)
    walls: list[Box] = field(default_factory=list)
    """Upright lines, which a text may cross only where it has no other room."""
    ways: list[Box] = field(default_factory=list)
    """Small boxes along roofs and lines, which a text may cross only where it has no other room either."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """Texts with a line to their point, as annotations of plotly's layout."""

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

    def wall(self, x: float) -> None:
        """Keep the texts at the foot off an upright line."""
        across = self.frame.share("x", x) * self.frame.width_px
        self.walls.append((across - 1, 0, across + 1, ROWS * row_px()))

    def way(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep texts off a line through points in the axes' units, as far as it is within the panel."""
        corners = [self.at(*point) for point in points]
        for (x, y), (to_x, to_y) in pairwise(corners):
            steps = min(ceil(hypot(to_x - x, to_y - y) / WAY_PX), MOST_STEPS)
            for part in (step / steps for step in range(steps + 1)) if steps else ():
                across, up = x + (to_x - x) * part, y + (to_y - y) * part
                if 0 <= across <= self.frame.width_px and 0 <= up <= self.frame.height_px:
                    self.ways.append((across - AIR_PX, up - AIR_PX, across + AIR_PX, up + AIR_PX))

    def beside(self, x: float, y: float, text: str, radius: float, sides: Sequence[str] = ()) -> str | None:
        """The side of a point at which its text has room, or ``None``: then only pointing at it tells.

        ``sides`` are tried first.
        """
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.15
        gap = radius + 2
        large: tuple[str, ...] = ("middle right",) if radius > LARGE_PX else ()  # at a corner it would be far away
        order = (*sides, *large, *SIDES)
        for walls in (self.ways, ()):
            for side in order:
                right, above = SIDES[side]
                left = across + right * gap - (0 if right > 0 else width if right < 0 else width / 2)
                low = up + above * gap - (0 if above > 0 else height if above < 0 else height / 2)
                if self._take((left, low, left + width, low + height), walls):
                    return side
        return None

    def led(self, x: float, y: float, text: str, look: dict[str, Any]) -> None:
        """A note of a text that has no room beside its point: where there is some, with a line to the point."""
        across, up = self.at(x, y)
        width, height = len(text) * TEXT_PX * CHAR, TEXT_PX * 1.15
        ways = [(far * right, far * above) for far in LED_PX for right, above in ((-1, 1), (1, -1), (-1, 0), (0, -1))]
        boxes = [
            (across + right - width / 2, up + above - height / 2, across + right + width / 2, up + above + height / 2)
            for right, above in ways
        ]
        tries = ((box, walls) for walls in (self.ways, ()) for box in boxes)
        box = next((box for box, walls in tries if self._take(box, walls)), boxes[0])
        right, above = (box[0] + box[2]) / 2 - across, (box[1] + box[3]) / 2 - up
        place = {"x": self._in_layout("x", x), "y": self._in_layout("y", y), "ax": right, "ay": -above}
        axes = {"xref": f"x{self.frame.suffix}", "yref": f"y{self.frame.suffix}"}
        lead = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": look["color"]}
        self.notes.append(place | axes | lead | {"text": safe(text), "font": look, "bgcolor": "rgba(255,255,255,0.8)"})

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
        if any(left < other[2] and other[0] < right and low < other[3] and other[1] < high for other in others):
            return False
        self.taken.append(box)
        return True


def row_px() -> float:
    """The height of a row of texts at the foot of a panel."""
    return TEXT_PX * 1.5
