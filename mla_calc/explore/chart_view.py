"""The roofline on the screen: the chart of its report as text, and what it says in a sentence."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from ..report.record import Report
    from .answers import Wrong

LEAST_HEIGHT = 17
"""Lines of a chart; what is left below it goes to the sentence, or to where the ridge is reached alone."""
NO_CHART = "no chart: plotext is not installed, or was built for another system"

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
            return _bold(self.found.message, width)
        from ..report.drawing.text import chart_text

        assert self.found.chart
        texts = (self.found.sentence, ridge_line(self.found.results))
        fitting = (lines for text in texts if height - len(lines := _wrapped(text, width)) >= LEAST_HEIGHT)
        below = next(fitting, [])
        room = height - len(below)
        try:
            drawn = chart_text(self.found.chart, self.found.results, width, room, not self.app.no_color)
        except ImportError:
            return [*_bold(NO_CHART, width), *_wrapped(self.found.sentence, width)]
        lines = drawn.split("\n")
        return [*lines, *[""] * (room - len(lines)), *below]


def ridge_line(results: Any) -> str:
    """Where attention reaches the ridge, in a line of 80 columns: of the report's sentence, what matters most."""
    first = results["ridge_heads_times_queries"][0]
    means = {"by_context": "by context alone", "with_query_and_output": "with query and output"}
    found = [f"{first[key]:.1f} {how}" for key, how in means.items() if first[key]]
    if not found:
        return "There is no one number of heads x queries at which the ridge is reached."
    return f"Ridge at heads x queries = {', '.join(found)}"


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


def _bold(text: str, width: int) -> list[str]:
    return [f"\x1b[1m{line}\x1b[0m" for line in _wrapped(text, width)]


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 20))
