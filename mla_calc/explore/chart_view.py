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

from .cells import folded

if TYPE_CHECKING:
    from ..report.record import Report
    from .answers import Wrong

LEAST_HEIGHT = 17
"""Lines of a chart; what is left below it goes to the sentence, or to where the ridge is reached alone."""
ONE_INTENSITY = "one intensity for all"
"""How the roofline says of an axis that nothing moves along it."""
FEW_COLOURS = "standard"
"""What rich calls the colours of a terminal that has 16."""
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

    @property
    def _coloured(self) -> bool:
        """Whether series have colours: the usual 16 have yellow and cyan for them, which are hardly seen on white."""
        few = self.app.console.color_system == FEW_COLOURS
        return not self.app.no_color and (self.app.current_theme.dark or not few)

    def _lines(self, width: int, height: int) -> list[str]:
        if self.found is None:
            return []
        from ..report.record import Report

        if not isinstance(self.found, Report):
            return _bold(self.found.message, width)
        from ..report.drawing.text import chart_text

        assert self.found.chart
        texts = (f"{self.found.sentence} {undrawn(self.found)}".rstrip(), *short_lines(self.found))
        fitting = (lines for text in texts if height - len(lines := _wrapped(text, width)) >= LEAST_HEIGHT)
        below = next(fitting, [])
        room = height - len(below)
        try:
            drawn = chart_text(self.found.chart, self.found.results, width, room, self._coloured)
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


def undrawn(report: Report) -> str:
    """Which trajectories the chart leaves out because they go nowhere, and why; empty where it has them all."""
    by_note: dict[str, list[str]] = {}
    for item in _left_out(report):
        by_note.setdefault(item["ridge_crossing_note"], []).append(item["path"])
    axis = _axis(report)
    return " ".join(
        f"Not drawn: {' and '.join(paths)} attention over {axis} ({note})." for note, paths in by_note.items()
    )


def short_lines(report: Report) -> tuple[str, ...]:
    """What can stand in a line of 80 columns in place of the sentence, what says more first."""
    ridge = ridge_line(report.results)
    left_out, every = _left_out(report), _followed(report)
    if not left_out or len(left_out) < len(every):
        return (ridge,)
    level = all(item["ridge_crossing_note"].endswith(ONE_INTENSITY) for item in left_out)
    none = f"No line over {_axis(report)}: {ONE_INTENSITY if level else 'the intensity hardly moves'}."
    return (f"{none} {ridge}", f"{none} {ridge.partition(' by ')[0]}", none)


def _followed(report: Report) -> list[tuple[int, dict[str, Any]]]:
    """The trajectories of attention, with their places in the results."""
    results: Any = report.results
    return [(at, item) for at, item in enumerate(results["trajectories"]) if item["kernel"] == "attention"]


def _left_out(report: Report) -> list[dict[str, Any]]:
    from ..report.chart import Line

    assert report.chart
    marks = (mark for panel in report.chart.panels for mark in panel.marks)
    drawn = {mark.rows.path for mark in marks if isinstance(mark, Line)}
    return [item for at, item in _followed(report) if f"trajectories[{at}].course" not in drawn]


def _axis(report: Report) -> str:
    """The one axis that an explorer's roofline follows."""
    inputs: Any = report.inputs
    return "TP" if inputs["over"] == ["tp"] else str(inputs["over"][0])


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
    return folded(text, max(width, 20))
