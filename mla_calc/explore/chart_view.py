"""The roofline on the screen: the chart of its report as text, and what it says in a sentence."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from ..report.record import Report
    from .answers import Wrong

LEAST_HEIGHT = 17
"""Lines of a chart; what is left below it goes to the sentence."""


_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


class ChartView(Widget):
    """Draws the chart of a report, as large as there is room."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"chart--plain"}
    DEFAULT_CSS = """
    ChartView { height: 1fr; width: 1fr; }
    """

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.found: Report | Wrong | None = None
        self._drawn: tuple[object, object, list[Strip]] = (None, None, [])

    def tell(self, found: Report | Wrong) -> None:
        """Draw the chart of ``found``, or say why there is none."""
        if found is not self.found:
            self.found = found
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        key = (self.size, self.app.current_theme.name)
        if self._drawn[0] is not self.found or self._drawn[1] != key:
            self._drawn = (self.found, key, self._strips())
        strips = self._drawn[2]
        return (
            strips[y]
            if y < len(strips)
            else Strip.blank(self.size.width, self.get_component_rich_style("chart--plain"))
        )

    def _strips(self) -> list[Strip]:
        width, height = self.size
        base = self.get_component_rich_style("chart--plain")
        return [
            Strip(segments_of(line, base)).adjust_cell_length(width, base)
            for line in self._lines(width, height)[:height]
        ]

    def _lines(self, width: int, height: int) -> list[str]:
        if self.found is None:
            return []
        from ..report.record import Report

        if not isinstance(self.found, Report):
            return [f"\x1b[1m{line}\x1b[0m" for line in _wrapped(self.found.message, width)]
        from ..report.drawing.text import chart_text

        assert self.found.chart
        below = _wrapped(self.found.sentence, width)
        room = height - len(below) if height - len(below) >= LEAST_HEIGHT else height
        drawn = chart_text(self.found.chart, self.found.results, width, room, not self.app.no_color)
        return [*drawn.split("\n"), *below[: height - room]]


def segments_of(line: str, base: Style) -> list[Segment]:
    """A line with escape codes of colours and weights as segments on ``base``; other codes are dropped."""
    parts = _ESCAPE.split(line)
    segments, style = [], base
    for index, part in enumerate(parts):
        if index % 2:
            style = base + _style(part) if part.strip("0;") else base
        elif part:
            segments.append(Segment(part, style))
    return segments


@cache
def _style(codes: str) -> Style:
    """The style of one escape code, which rich knows to read."""
    return Text.from_ansi(f"\x1b[{codes}m.").spans[0].style  # type: ignore[return-value]  # never a name here


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 20))
