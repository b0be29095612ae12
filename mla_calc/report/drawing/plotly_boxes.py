"""Rectangles of pixels, found by where they are: what the texts of an interactive figure keep off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

Box = tuple[float, float, float, float]
"""Left, low, right, high."""
SQUARE_PX = 48


@dataclass(slots=True)
class Boxes:
    """Very many boxes, of which few are near any place."""

    squares: defaultdict[tuple[int, int], list[Box]] = field(default_factory=lambda: defaultdict(list))

    def add(self, box: Box) -> None:
        """Take note of a box."""
        for square in _squares(box):
            self.squares[square].append(box)

    def touches(self, box: Box) -> bool:
        """Whether any has room in common with ``box``."""
        squares = self.squares
        return any(overlap(box, other) for square in _squares(box) if square in squares for other in squares[square])

    def touching(self, box: Box) -> set[Box]:
        """Those that have room in common with ``box``."""
        squares = self.squares
        near = (other for square in _squares(box) if square in squares for other in squares[square])
        return {other for other in near if overlap(box, other)}


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes have room in common."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def shared(one: Box, other: Box) -> float:
    """How much room two boxes have in common, in square pixels."""
    across, up = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(across, 0.0) * max(up, 0.0)


def _squares(box: Box) -> Iterator[tuple[int, int]]:
    left, low, right, high = (int(each // SQUARE_PX) for each in box)
    return ((column, row) for column in range(left, right + 1) for row in range(low, high + 1))
