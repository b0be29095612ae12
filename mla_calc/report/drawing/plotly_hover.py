"""What pointing at an interactive figure tells where its points lie on one another, in lines that a window holds."""

from __future__ import annotations

import html
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot
from typing import Any

from ..chart import Line, Points

HOVER_CHARS = 64
NEAR_PX = 2.0
"""Within how many pixels points are told together: a pointer tells them apart no more."""
MOST_TOGETHER = 4
"""Records whose values stand side by side."""
BESIDE = "  |  "
BREAK = "<br>"


@dataclass(frozen=True, slots=True)
class Hit:
    """A record's marker, in pixels; ``near``: within how many of them others are told with it."""

    mark: Line | Points
    record: dict[str, Any]
    across: float
    up: float
    radius: float
    near: float


@dataclass(slots=True)
class Hits:
    """The markers of a panel, found by their place."""

    squares: defaultdict[tuple[int, int], list[Hit]] = field(default_factory=lambda: defaultdict(list))
    sized: list[Hit] = field(default_factory=list)
    """Those with an area, which cover places far from their middle."""

    def add(self, hit: Hit) -> None:
        """Take note of a marker."""
        self.squares[_square(hit.across, hit.up)].append(hit)
        if isinstance(hit.mark, Points) and hit.mark.area:
            self.sized.append(hit)

    def near(self, across: float, up: float, near: float = NEAR_PX) -> list[Hit]:
        """The markers that lie on a place."""
        column, row = _square(across, up)
        around = [(column + right, row + above) for right in (-1, 0, 1) for above in (-1, 0, 1)]
        found = [hit for square in around for hit in self.squares.get(square, ())]
        return [hit for hit in found if hypot(hit.across - across, hit.up - up) <= min(near, hit.near)]

    def covering(self, across: float, up: float, air: float = 0.0) -> list[Hit]:
        """The sized markers that reach over a place."""
        return [hit for hit in self.sized if hypot(hit.across - across, hit.up - up) <= hit.radius + air]


def _square(across: float, up: float) -> tuple[int, int]:
    return int(across // NEAR_PX), int(up // NEAR_PX)


def together(told: Sequence[tuple[Line | Points, str]]) -> str:
    """What several marks tell, as one text: those that show the same side by side, others one below the other."""
    blocks: dict[tuple[str, ...], list[str]] = {}
    for mark, text in told:
        blocks.setdefault(tuple(each.label for each in mark.shown), []).append(text)
    return BREAK.join(_side_by_side(texts) for texts in blocks.values())


def _side_by_side(texts: Sequence[str]) -> str:
    """Texts of the same lines as one, with the values that differ in the order of the heads."""
    lines = [text.split(BREAK) for text in texts[:MOST_TOGETHER]]
    heads = [[line for line in each if line.startswith("<b>")] for each in lines]
    rest = [[line.partition(": ") for line in each if not line.startswith("<b>")] for each in lines]
    labels = [[label for label, _, _ in each] for each in rest]
    if any(each != labels[0] for each in labels):
        return BREAK.join(texts)
    made = list(dict.fromkeys(line for each in heads for line in each))
    for same in zip(*rest, strict=True):
        values = [each for _, _, each in same]
        label, colon, _ = same[0]
        made.append(label + colon + (values[0] if len(set(values)) == 1 else BESIDE.join(values)))
    more = len(texts) - len(lines)
    return BREAK.join([*made, *([f"and {more:,} more at this place"] if more else [])])


def wrapped(told: Any) -> Any:
    """A text of plotly's, or lists of such texts, in lines of at most :data:`HOVER_CHARS`."""
    if not isinstance(told, str):
        return [wrapped(each) for each in told]
    return BREAK.join(_wrapped_line(line) for line in told.split(BREAK))


def _wrapped_line(line: str) -> str:
    if line.startswith("<b>"):
        return f"<b>{_wrapped_line(line.removeprefix('<b>').removesuffix('</b>'))}</b>"
    lines = textwrap.wrap(html.unescape(line), HOVER_CHARS, break_on_hyphens=False)  # addresses have hyphens
    return BREAK.join(html.escape(each, quote=False) for each in lines) or line
