"""Where the small texts of a panel stand: beside what they name, on no other text, and off lines and points.

A text has candidate places in the order of preference. Each costs by what it would cover; the cheapest is taken, and
a text that would cover another is left out unless it must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, hypot
from typing import TYPE_CHECKING, Any, Literal

from .glyphs import abridged
from .style import Size

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

ON_TEXT, ON_POINT, ON_LINE, ON_RULE, OUTSIDE = 1000.0, 60.0, 20.0, 6.0, 1000.0
MOST_POINTS = 4
"""Points under a text that cost: a cloud of them is no worse than another text."""
HIGHER = 3
"""As how many a marker counts that is higher than the text on it."""
ANYWHERE, OFF_TEXTS, OFF_CROWDS, OFF_POINTS, OFF_LINES = float("inf"), ON_TEXT, 3.5 * ON_POINT, ON_POINT, 2 * ON_LINE
"""What a text may cost: one that must be there, one that covers no text, few points, no point, one line at most."""
AIR = 2.0
"""Points of a slide that a text keeps from a line."""
NEAR, FAR = (1.0, 1.8), (1.0, 1.8, 3.0, 4.5, 6.0, 8.0, 10.0, 12.5)
"""How many gaps a text is away from its point: one that there is no need of, and one that must be there."""
LEAST_LEADER, SHORT_LEADER = 9.0, 5.0
"""Points of a slide from a text to its point's edge: from the first on a thin line joins them; one shorter than the
second would not be seen."""
MISREAD, LED_ASTRAY, RIVALLED = 70.0, 12.0, 18.0
"""What it costs a text to be nearer to another point than to its own: without a line to it, and with one; and to be
as near to both."""
RIVAL = 2.5
"""Points of a slide that another marker has to be further from a text than its own."""
SAME_PLACE = 4.0
"""Points of a slide: two markers no further apart lie on each other, and one text names both."""
HALO = 2.2
"""Points of a slide that a text has around it, where it is near a line."""
GROUND: dict[str, Any] = {"boxstyle": "square,pad=0.08", "fc": (1, 1, 1, 0.85), "ec": "none"}
"""Under a text that a line would strike through: the line goes on beside it."""
STEP_PX = 3.0
"""How densely lines are sampled."""

MOST_CHARACTERS = {"slide": 60, "column": 40}
"""Of a text in a panel."""

Across = Literal["left", "center", "right"]
Up = Literal["bottom", "center", "top"]


@dataclass(frozen=True, slots=True)
class Place:
    """A candidate: pixels of the figure, how the text lies to them, and what it costs as such."""

    x: float
    y: float
    across: Across
    up: Up
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Whether they share an area."""
        return (self.left < other.right and other.left < self.right
                and self.bottom < other.top and other.bottom < self.top)  # fmt: skip

    def grown(self, by: float) -> Box:
        """The rectangle with a margin."""
        return Box(self.left - by, self.bottom - by, self.right + by, self.top + by)

    def gap_to(self, marker: Box) -> float:
        """How far a marker is; 0 where it is touched. One that fills its rectangle to the corners counts as round."""
        across = max(0.0, self.left - marker.right, marker.left - self.right)
        up = max(0.0, self.bottom - marker.top, marker.bottom - self.top)
        (x, y), (to_x, to_y) = _nearest(self, marker.centre), marker.centre
        radius = max(marker.right - marker.left, marker.top - marker.bottom) / 2
        return max(hypot(across, up), hypot(to_x - x, to_y - y) - radius)

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2


@dataclass(slots=True)
class Places:
    """What is taken in one panel, in pixels of the figure."""

    axes: Axes
    size: Size
    texts: list[Box] = field(default_factory=list)
    points: list[Box] = field(default_factory=list)
    lines: list[tuple[float, NDArray[np.float64]]] = field(default_factory=list)
    """What it costs to cross it, and its way: places close to each other."""

    def px(self, points: float) -> float:
        """A distance of a slide, in pixels of this figure."""
        return self.size.points(points) * self.size.dpi / 72

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixels of a place in the panel's data."""
        across, up = self.axes.transData.transform((x, y))
        return float(across), float(up)

    def add_point(self, x: float, y: float, area: float) -> None:
        """Take the place of a marker of ``area`` square points at ``x``, ``y`` of the data."""
        self.points.append(self.marker(x, y, area))

    def marker(self, x: float, y: float, area: float) -> Box:
        """What a marker of ``area`` square points at ``x``, ``y`` of the data fills."""
        across, up = self.at(x, y)
        return Box(across, up, across, up).grown(area**0.5 / 2 * self.size.dpi / 72)

    def add_line(self, found: Iterable[tuple[float, float]], cost: float = ON_LINE) -> None:
        """Take the way of a broken line through points of the data."""
        self._sample([self.at(*point) for point in found], cost)

    def _sample(self, corners: list[tuple[float, float]], cost: float) -> None:
        import numpy as np

        sampled = corners[:1]
        for (x, y), (to_x, to_y) in pairwise(corners):
            steps = min(ceil(hypot(to_x - x, to_y - y) / STEP_PX), 2000)
            sampled += [(x + (to_x - x) * at / steps, y + (to_y - y) * at / steps) for at in range(1, steps + 1)]
        self.lines.append((cost, np.array(sampled).reshape(-1, 2).T))

    def _short(self, text: str) -> str:
        return abridged(text, MOST_CHARACTERS[self.size.name])

    def extent(self, text: str) -> tuple[float, float]:
        """Width and height of a small text, in pixels."""
        drawn = self.axes.text(0, 0, self._short(text), transform=None, fontsize=self.size.small)
        found = drawn.get_window_extent()
        drawn.remove()
        return float(found.width), float(found.height)

    def inside(self, candidates: Iterable[Place], text: str) -> list[Place]:
        """Places of a small text, those at which it would stick out of the panel moved inside by as much."""
        width, height = self.extent(text)
        frame, air = self.axes.get_window_extent(), self.px(AIR)

        def moved(place: Place) -> Place:
            box = _box(place, width, height)
            across = max(frame.x0 + air - box.left, 0.0) or min(frame.x1 - air - box.right, 0.0)
            up = max(frame.y0 + air - box.bottom, 0.0) or min(frame.y1 - air - box.top, 0.0)
            return replace(place, x=place.x + across, y=place.y + up)

        return [moved(place) for place in candidates]

    def put(
        self,
        text: str,
        candidates: Sequence[Place],
        most: float,
        own: Box | None = None,
        crossing: float = 1.0,
        **look: Any,
    ) -> bool:
        """Draw ``text`` at the cheapest of ``candidates``, unless that costs ``most`` or more; whether it was drawn.

        A thin line joins it with ``own``, the marker that it names, where that is far from it or another is nearer.
        To cross a line costs it ``crossing`` times what it costs others.
        """
        look = {"fontsize": self.size.small, "zorder": 6, "linespacing": 1.1} | look
        if "bbox" not in look:
            look["path_effects"] = self._halo()
        drawn = self.axes.text(0, 0, self._short(text), transform=None, clip_on=False, **look)
        extent = drawn.get_window_extent()
        place, box, cost = self._cheapest(candidates, extent.width, extent.height, own, crossing)
        if cost >= most:
            drawn.remove()
            return False
        self._settle(drawn, place)
        if "bbox" not in look and any(_meets(line, box) for _, line in self.lines):
            drawn.set_bbox(GROUND)
        self.texts.append(box)
        if own and self._is_led(box, own):
            self._lead(box, own.centre, look.get("color"))
        return True

    def _cheapest(
        self, candidates: Sequence[Place], width: float, height: float, own: Box | None, crossing: float
    ) -> tuple[Place, Box, float]:
        """The best place of a text of this size, what it fills there, and what that costs."""
        best: tuple[Place, Box, float] | None = None
        for place in sorted(candidates, key=lambda each: each.cost):
            if best and place.cost >= best[2]:
                break
            box = _box(place, width, height)
            cost = place.cost + self._cost(box, crossing)
            if own and (best is None or cost < best[2]):
                cost += self._reading_cost(box, own)
            if best is None or cost < best[2]:
                best = place, box, cost
        assert best
        return best

    def _reading_cost(self, box: Box, own: Box) -> float:
        """What it costs a text to be read as another point's, and what a line to its own would cover."""
        gap, rival = box.gap_to(own), self._rival_gap(box, own)
        led = self._leader_cost(box, own.centre) if self._is_led(box, own) else 0.0
        if rival < gap - 0.5:
            return led + (MISREAD if gap < self.px(SHORT_LEADER) else LED_ASTRAY)
        return led + (RIVALLED if rival <= gap + self.px(RIVAL) else 0.0)

    def _is_led(self, box: Box, own: Box) -> bool:
        """Whether a line joins a text with its marker."""
        gap = box.gap_to(own)
        return gap >= self.px(LEAST_LEADER) or self._rival_gap(box, own) < gap - 0.5

    def _rival_gap(self, box: Box, own: Box) -> float:
        """How far the nearest marker is that a text could be read as the name of; one at the same place is none."""
        (x, y), same = own.centre, self.px(SAME_PLACE)
        reach = box.grown(box.gap_to(own) + self.px(RIVAL))  # what is beyond is no rival
        near = (other for other in self.points if reach.overlaps(other))
        apart = (other for other in near if hypot(other.centre[0] - x, other.centre[1] - y) > same)
        return min((box.gap_to(other) for other in apart), default=float("inf"))

    def _leader_cost(self, box: Box, point: tuple[float, float]) -> float:
        """What a line to the point would cover of other texts and points."""
        (x, y), (to_x, to_y) = _nearest(box, point), point
        way = [(x + (to_x - x) * at / 20, y + (to_y - y) * at / 20) for at in range(1, 20)]
        span = Box(min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)).grown(1)
        others = [other for other in self.points if span.overlaps(other) and not _holds(other, *point)]
        points = sum(any(_holds(other, *each) for each in way) for other in others)
        texts = sum(any(_holds(other, *each) for each in way) for other in self.texts)
        return ON_POINT / 2 * min(MOST_POINTS, points) + ON_TEXT * texts

    def _lead(self, box: Box, point: tuple[float, float], colour: Any) -> None:
        """A line from a text's nearest edge to its point, which other texts keep off."""
        start = _nearest(box, point)
        ends = self.axes.transAxes.inverted().transform((start, point))
        self.axes.plot(
            ends[:, 0], ends[:, 1], transform=self.axes.transAxes, color=colour, linewidth=self.size.points(0.9),
            zorder=5.5, clip_on=False, scalex=False, scaley=False,
        )  # fmt: skip
        self._sample([start, point], ON_LINE)

    def _halo(self) -> list[Any]:
        from matplotlib.patheffects import withStroke

        return [withStroke(linewidth=self.size.points(HALO), foreground=(1, 1, 1, 0.75))]

    def _settle(self, drawn: Any, place: Place) -> None:
        """Fix a text to the panel: in fractions of it, so that it stays whatever the output's resolution."""
        x, y = self.axes.transAxes.inverted().transform((place.x, place.y))
        drawn.set(x=x, y=y, ha=place.across, va=place.up, transform=self.axes.transAxes)

    def _cost(self, box: Box, crossing: float) -> float:
        frame = self.axes.get_window_extent()
        inside = (frame.x0 - 1 <= box.left and box.right <= frame.x1 + 1
                  and frame.y0 - 1 <= box.bottom and box.top <= frame.y1 + 1)  # fmt: skip
        air = self.px(AIR)
        near = box.grown(air)
        beside = Box(box.left - 2 * air, box.bottom, box.right + 2 * air, box.top)  # or two would read as one
        crossed = sum(cost for cost, line in self.lines if _meets(line, near))
        return (
            (0.0 if inside else OUTSIDE)
            + ON_TEXT * sum(beside.overlaps(other) for other in self.texts)
            + ON_POINT * min(MOST_POINTS, sum(_weight(other, box) for other in self.points if box.overlaps(other)))
            + crossing * crossed
        )


def _weight(marker: Box, text: Box) -> int:
    """What a marker under a text counts: one that is higher than the text would be read as what it names."""
    return HIGHER if marker.top - marker.bottom > text.top - text.bottom else 1


def around(x: float, y: float, gap: float, fars: Sequence[float] = NEAR, radius: float = 0.0) -> list[Place]:
    """Places around a point of ``radius``, ``gap`` pixels times ``fars`` off: at its sides first, then its corners.

    From far away only aslant: a line to the point would run along a roof or a ridge otherwise.
    """
    slant, steep, level = 0.75, 1.0, 0.45
    found: list[tuple[float, float, Across, Up]] = [
        (1, 0, "left", "center"), (-1, 0, "right", "center"), (0, 1, "center", "bottom"),
        (0, -1, "center", "top"), (slant, -slant, "left", "top"), (-slant, slant, "right", "bottom"),
        (slant, slant, "left", "bottom"), (-slant, -slant, "right", "top"),
    ]  # fmt: skip
    aslant: list[tuple[float, float, Across, Up]] = [
        *found[4:],
        (steep, level, "left", "bottom"), (-steep, level, "right", "bottom"), (steep, -level, "left", "top"),
        (-steep, -level, "right", "top"), (level, steep, "left", "bottom"), (-level, steep, "right", "bottom"),
        (level, -steep, "left", "top"), (-level, -steep, "right", "top"),
    ]  # fmt: skip
    return [
        Place(x + right * (radius + gap * far), y + up * (radius + gap * far), across, side, rank + (far - 1) * 10)
        for far in fars
        for rank, (right, up, across, side) in enumerate(found if far in NEAR else aslant)
    ]


def _box(place: Place, width: float, height: float) -> Box:
    left = place.x - {"left": 0.0, "center": 0.5, "right": 1.0}[place.across] * width
    bottom = place.y - {"bottom": 0.0, "center": 0.5, "top": 1.0}[place.up] * height
    return Box(left, bottom, left + width, bottom + height)


def _nearest(box: Box, point: tuple[float, float]) -> tuple[float, float]:
    """The place of a rectangle that is nearest to a point."""
    return min(max(point[0], box.left), box.right), min(max(point[1], box.bottom), box.top)


def _holds(box: Box, x: float, y: float) -> bool:
    return box.left <= x <= box.right and box.bottom <= y <= box.top


def _meets(line: NDArray[np.float64], box: Box) -> bool:
    """Whether a line, as places close to each other, goes through a rectangle."""
    x, y = line
    return bool(((x >= box.left) & (x <= box.right) & (y >= box.bottom) & (y <= box.top)).any())
