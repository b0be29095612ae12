"""A report on the screen: lines that scroll, and a number that is pointed at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

if TYPE_CHECKING:
    from ..report.record import Report
    from .answers import Wrong
    from .sheet import Role, Sheet, Spot

COMPONENTS = ("plain", "title", "caption", "header", "note", "wrong")


class SheetView(ScrollView, can_focus=True):
    """Shows a report; one of its numbers is selected, by arrow keys or a click."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"sheet--{name}" for name in COMPONENTS}
    DEFAULT_CSS = """
    SheetView {
        height: 1fr; overflow-y: scroll; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1;
        .sheet--title { text-style: bold; }
        .sheet--caption { text-style: bold; }
        .sheet--header { text-style: underline; }
        .sheet--note { color: $text-muted; }
        .sheet--wrong { color: $text-error; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "point(-1, 0)", "up", show=False),
        Binding("down", "point(1, 0)", "down", show=False),
        Binding("left", "point(0, -1)", "left", show=False),
        Binding("right", "point(0, 1)", "right", show=False),
        Binding("enter", "app.explain", "explain", show=False),
    ]

    class Pointed(Message):
        """Another number is selected."""

        def __init__(self, view: SheetView) -> None:
            super().__init__()
            self.view = view

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Of all lines. The panel keeps its place whatever it holds: a layout would draw every other widget anew."""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.found: Report | Wrong | None = None
        self.sheet: Sheet | None = None
        self.selected: Spot | None = None
        self._folded: tuple[Report | Wrong | None, int] = (None, 0)
        self._early: list[Callable[[], object]] = []
        """What was asked for before there was a sheet."""

    def tell(self, found: Report | Wrong) -> None:
        """Show a report, the same number selected where it has one at the same place of the results."""
        self.found = found
        self._fold()

    def _fold(self) -> None:
        """Lay the report out anew, if it or the width is not what it was."""
        width = self.scrollable_content_region.width - 1  # a column free before the scrollbar
        folded, at_width = self._folded
        if self.found is None or (folded is self.found and at_width == width) or width < 1:
            return
        from .sheet import sheet_of

        self._folded = (self.found, width)
        before, marked = self.sheet, self.selected
        self.sheet = sheet_of(self.found, width)
        self.virtual_size = Size(self.sheet.width, len(self.sheet.lines))
        self.selected = self._again(self.sheet.spots)
        self._redraw(before, marked)
        early, self._early = self._early, []
        for do in early:
            do()

    def _redraw(self, before: Sheet | None, marked: Spot | None) -> None:
        """Draw what is not as it was: a change moves few lines, and the rest takes a tenth of its time."""
        assert self.sheet is not None
        if before is None or len(before.lines) != len(self.sheet.lines):
            self.refresh()
            return
        shown = {spot.line for spot in (marked, self.selected) if spot}
        pairs = zip(before.lines, self.sheet.lines, strict=True)
        other = (number for number, (old, new) in enumerate(pairs) if old != new or number in shown)
        top, (width, height) = self.scroll_offset.y, self.size
        regions: list[Region] = []
        for line in (Region(0, number - top, width, 1) for number in other if top <= number < top + height):
            if regions and regions[-1].bottom == line.y:
                regions[-1] = regions[-1].union(line)
            else:
                regions.append(line)
        if regions:
            self.refresh(*regions)

    def once_laid_out(self, do: Callable[[], object]) -> None:
        """Do what takes a selection: now, or as soon as there is a sheet, which a panel gone to just now lacks."""
        if self.sheet is None:
            self._early.append(do)
        else:
            do()

    def watch_virtual_size(self, size: Size) -> None:
        """Scrollbars, and how far it is scrolled, follow what there is to scroll through."""
        self._scroll_update(size)

    def _again(self, spots: list[Spot]) -> Spot | None:
        """The spot of what was selected before, or the first of all."""
        path = self.selected.path if self.selected else ""
        return next((spot for spot in spots if spot.path == path), spots[0] if spots else None)

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._fold()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        left, top = self.scroll_offset
        line, width = top + y, self.size.width
        if self.sheet is None or line >= len(self.sheet.lines):
            return Strip.blank(width, self._style("plain"))
        text, role = self.sheet.lines[line]
        strip = Strip(self._segments(text, line, self._style(role)))
        return strip.crop_extend(left, left + width, self._style("plain"))

    def _style(self, role: Role) -> Style:
        return self.get_component_rich_style(f"sheet--{role}")

    def _segments(self, text: str, line: int, style: Style) -> list[Segment]:
        at = self.selected
        if at is None or at.line != line or not self.has_focus:
            return [Segment(text, style)]
        whole = Strip([Segment(text, style)])
        parts = whole.divide((at.start, at.end, whole.cell_length))
        looks = (style, style + Style(reverse=True), style)
        return [Segment(each.text, look) for part, look in zip(parts, looks, strict=False) for each in part]

    def action_point(self, down: int, right: int) -> None:
        """Select the nearest number that way, or scroll where there is none."""
        if self.sheet is None:
            self._early.append(partial(self.action_point, down, right))
            return
        spots, at = self.sheet.spots, self.selected
        if at is None:
            self.scroll_relative(y=down, x=right * 4, animate=False)
            return
        if right:
            there = [spot for spot in spots if spot.line == at.line and (spot.start - at.start) * right > 0]
            best = min(there, key=lambda spot: abs(spot.start - at.start), default=None)
        else:
            there = [spot for spot in spots if (spot.line - at.line) * down > 0]
            best = min(there, key=lambda spot: (abs(spot.line - at.line), _apart(spot, at)), default=None)
        if best is not None:
            self.select(best)
        elif down:
            self.scroll_relative(y=down, animate=False)

    def select(self, spot: Spot) -> None:
        """Point at ``spot``, and bring it into sight."""
        self.selected = spot
        self.scroll_to_region(Region(spot.start, spot.line, spot.end - spot.start, 1), animate=False)
        self.refresh()
        self.post_message(self.Pointed(self))

    def on_click(self, event: events.Click) -> None:
        """Select the number under the pointer."""
        left, top = self.scroll_offset
        x, y = event.x + left, event.y + top
        spots = self.sheet.spots if self.sheet else []
        under = next((spot for spot in spots if spot.line == y and spot.start <= x < spot.end), None)
        if under is not None:
            self.select(under)


def _apart(spot: Spot, at: Spot) -> int:
    """Columns between two numbers of different lines: of their ends, by which they are aligned."""
    return abs(spot.end - at.end)
