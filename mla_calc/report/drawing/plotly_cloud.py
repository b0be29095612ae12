"""The points of a mark that are drawn: all, or of very many those that can be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .plotly_frame import PANEL_PX, Frame

MOST_POINTS = 5_000
"""Of a mark: what a browser draws and zooms at once, and a file holds with what each tells."""
FIRST_PX, COARSER = 0.5, 1.25
"""The side of the squares of which each keeps a point, and by what it grows until there are few enough."""
USUAL_PX = 940
"""The width of a panel in a window of the usual width."""
Placed = tuple[float, float, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points with the number of those that each stands for beside itself.

    ``every``: how many there are; ``apart_px``: within how many pixels one stands for all, in a window of the usual
    width; 0: all are drawn.
    """

    kept: tuple[tuple[float, float, dict[str, Any], int], ...]
    every: int
    label: str = ""
    apart_px: float = 0.0

    def told(self) -> str:
        """What a caption says of points that are left out; empty: none is."""
        if not self.apart_px:
            return ""
        apart = f"one for all within {self.apart_px:.2g} px of one another"
        return f"{self.label or 'points'}: {len(self.kept):,} of {self.every:,} drawn, {apart}"


def cloud_of(found: Sequence[Placed], frame: Frame, label: str, most: int = MOST_POINTS) -> Cloud:
    """``found`` as it is drawn: beyond ``most`` points the first in each square of as few pixels as it takes."""
    if len(found) <= most:
        return Cloud(tuple((*each, 0) for each in found), len(found), label)
    places = [(frame.share("x", x) * USUAL_PX, frame.share("y", y) * PANEL_PX) for x, y, _ in found]
    apart = FIRST_PX
    while True:
        squares = [(across // apart, up // apart) for across, up in places]
        in_each = Counter(squares)
        if len(in_each) <= most:
            break
        apart *= COARSER
    first = dict(zip(reversed(squares), reversed(found), strict=True))
    kept = tuple((*first[square], count - 1) for square, count in in_each.items())
    return Cloud(kept, len(found), label, apart)
