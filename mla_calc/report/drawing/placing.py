"""Where the small texts of a panel stand: beside what they name, on no other text, and off lines and points.

A text has candidate places in the order of preference. Each costs by what it would cover; the cheapest is taken, and
a text that would cover another is left out unless it must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, hypot
from typing import TYPE_CHECKING, Any, Literal

from .style import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ON_TEXT, ON_POINT, ON_LINE, ON_RULE, OUTSIDE = 1000.0, 60.0, 20.0, 6.0, 1000.0
MOST_POINTS = 4
"""Points under a text that cost: a cloud of them is no worse than another text."""
ANYWHERE, OFF_TEXTS, OFF_POINTS, OFF_LINES = float("inf"), ON_TEXT, ON_POINT, 2 * ON_LINE
"""What a text may cost: one that must be there, one that covers no text, no point, one that crosses a line at most."""
AIR = 2.0
"""Points of a slide that a text keeps from a line."""
NEAR, FAR = (1.0, 1.8), (1.0, 1.8, 3.0, 4.5, 6.0, 8.0, 10.0, 12.5)
"""How many gaps a text is away from its point: one that there is no need of, and one that must be there."""
LEAST_LEADER = 14.0
"""Points of a slide from a text to its point, from which on a thin line joins them."""
HALO = 2.2
"""Points of a slide that a text has around it, where it crosses a line."""
STEP_PX = 3.0
"""How densely lines are sampled."""

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


@dataclass(slots=True)
class Places:
    """What is taken in one panel, in pixels of the figure."""

    axes: Axes
    size: Size
    texts: list[Box] = field(default_factory=list)
    points: list[Box] = field(default_factory=list)
    lines: list[tuple[float, list[tuple[float, float]]]] = field(default_factory=list)
    """What it costs to cross it, and its way."""

    def px(self, points: float) -> float:
        """A distance of a slide, in pixels of this figure."""
        return self.size.points(points) * self.size.dpi / 72

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixels of a place in the panel's data."""
        across, up = self.axes.transData.transform((x, y))
        return float(across), float(up)

    def add_point(self, x: float, y: float, area: float) -> None:
        """Take the place of a marker of ``area`` square points at ``x``, ``y`` of the data."""
        across, up = self.at(x, y)
        radius = area**0.5 / 2 * self.size.dpi / 72
        self.points.append(Box(across - radius, up - radius, across + radius, up + radius))

    def add_line(self, found: Iterable[tuple[float, float]], cost: float = ON_LINE) -> None:
        """Take the way of a broken line through points of the data."""
        self._sample([self.at(*point) for point in found], cost)

    def _sample(self, corners: list[tuple[float, float]], cost: float) -> None:
        sampled = corners[:1]
        for (x, y), (to_x, to_y) in pairwise(corners):
            steps = min(ceil(hypot(to_x - x, to_y - y) / STEP_PX), 2000)
            sampled += [(x + (to_x - x) * at / steps, y + (to_y - y) * at / steps) for at in range(1, steps + 1)]
        self.lines.append((cost, sampled))

    def extent(self, text: str) -> tuple[float, float]:
        """Width and height of a small text, in pixels."""
        drawn = self.axes.text(0, 0, text, transform=None, fontsize=self.size.small)
        found = drawn.get_window_extent()
        drawn.remove()
        return float(found.width), float(found.height)

    def put(
        self,
        text: str,
        candidates: Sequence[Place],
        most: float,
        point: tuple[float, float] | None = None,
        **look: Any,
    ) -> bool:
        """Draw ``text`` at the cheapest of ``candidates``, unless that costs ``most`` or more; whether it was drawn.

        A thin line joins it with ``point``, in pixels, where that is far from it.
        """
        look = {"fontsize": self.size.small, "zorder": 6, "linespacing": 1.1} | look
        if "bbox" not in look:
            look["path_effects"] = self._halo()
        drawn = self.axes.text(0, 0, text, transform=None, clip_on=False, **look)
        extent = drawn.get_window_extent()
        boxes = [_box(place, extent.width, extent.height) for place in candidates]
        costs = [place.cost + self._cost(box) for place, box in zip(candidates, boxes, strict=True)]
        if point:
            costs = [cost + self._leader_cost(box, point) for cost, box in zip(costs, boxes, strict=True)]
        best = costs.index(min(costs))
        if costs[best] >= most:
            drawn.remove()
            return False
        self._settle(drawn, candidates[best])
        self.texts.append(boxes[best])
        if point:
            self._lead(boxes[best], point, look.get("color"))
        return True

    def _leader_cost(self, box: Box, point: tuple[float, float]) -> float:
        """What a line to the point would cover of other texts and points."""
        (x, y), (to_x, to_y) = _nearest(box, point), point
        if hypot(to_x - x, to_y - y) < self.px(LEAST_LEADER):
            return 0.0
        way = [(x + (to_x - x) * at / 20, y + (to_y - y) * at / 20) for at in range(1, 20)]
        others = [other for other in self.points if not _holds(other, *point)]
        points = sum(any(_holds(other, *each) for each in way) for other in others)
        texts = sum(any(_holds(other, *each) for each in way) for other in self.texts)
        return ON_POINT * min(MOST_POINTS, points) + ON_TEXT * texts

    def _lead(self, box: Box, point: tuple[float, float], colour: Any) -> None:
        """A line from a text's nearest edge to its point, which other texts keep off."""
        start = _nearest(box, point)
        if hypot(point[0] - start[0], point[1] - start[1]) < self.px(LEAST_LEADER):
            return
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

    def _cost(self, box: Box) -> float:
        frame = self.axes.get_window_extent()
        inside = (frame.x0 - 1 <= box.left and box.right <= frame.x1 + 1
                  and frame.y0 - 1 <= box.bottom and box.top <= frame.y1 + 1)  # fmt: skip
        air = self.px(AIR)
        near = Box(box.left - air, box.bottom - air, box.right + air, box.top + air)
        crossed = sum(cost for cost, line in self.lines if any(_holds(near, *point) for point in line))
        return (
            (0.0 if inside else OUTSIDE)
            + ON_TEXT * sum(box.overlaps(other) for other in self.texts)
            + ON_POINT * min(MOST_POINTS, sum(box.overlaps(other) for other in self.points))
            + crossed
        )


def around(x: float, y: float, gap: float, fars: Sequence[float] = NEAR) -> list[Place]:
    """Places around a point, ``gap`` pixels times ``fars`` away: at its sides first, then at its corners.

    From far away only aslant: a line to the point would run along a roof or a ridge otherwise.
    """
    slant, steep, level = gap * 0.75, gap, gap * 0.45
    found: list[tuple[float, float, Across, Up]] = [
        (gap, 0, "left", "center"), (-gap, 0, "right", "center"), (0, gap, "center", "bottom"),
        (0, -gap, "center", "top"), (slant, -slant, "left", "top"), (-slant, slant, "right", "bottom"),
        (slant, slant, "left", "bottom"), (-slant, -slant, "right", "top"),
    ]  # fmt: skip
    aslant: list[tuple[float, float, Across, Up]] = [
        *found[4:],
        (steep, level, "left", "bottom"), (-steep, level, "right", "bottom"), (steep, -level, "left", "top"),
        (-steep, -level, "right", "top"), (level, steep, "left", "bottom"), (-level, steep, "right", "bottom"),
        (level, -steep, "left", "top"), (-level, -steep, "right", "top"),
    ]  # fmt: skip
    return [
        Place(x + right * far, y + up * far, across, side, rank + (far - 1) * 10)
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
