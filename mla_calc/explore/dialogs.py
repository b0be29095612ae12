"""What opens above the screen: a text to read, and a list to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from .ahead import passed_on
from .sheet import Role, Sheet

STYLES: dict[Role, str] = {
    "plain": "",
    "title": "bold",
    "caption": "bold",
    "header": "underline",
    "note": "dim",
    "wrong": "bold",
}
MOST_COLUMNS = 100
"""Columns of a dialog; a narrower terminal has fewer."""
AROUND = 6
"""Columns of a dialog's border and padding, and of its scrollbar."""
MOVING = {
    "up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down", "home": "first",
    "end": "last",
}  # fmt: skip
"""Keys that move in a list, and the list's actions that they are."""

CSS = """
Dialog { align: center middle; }
Dialog #dialog {
    width: auto; max-width: 100; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
    background: $surface; border-title-style: bold;
}
Dialog #text { width: 100%; height: auto; }
Dialog #scroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
Dialog #names { height: auto; max-height: 100%; width: 44; border: none; padding: 0; background: $surface; }
"""


class Reading(ModalScreen[None]):
    """A text with a title, made for the width that there is; any of the usual keys closes it."""

    DEFAULT_CSS = CSS.replace("Dialog", "Reading")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,e,y,question_mark,space", "dismiss", "Close", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
    ]

    def __init__(self, title: str, made: Callable[[int], Sheet]) -> None:
        super().__init__()
        self.heading, self.made = title, made

    def compose(self) -> ComposeResult:
        """The text in a box."""
        with Vertical(id="dialog") as box:
            box.border_title, box.border_subtitle = self.heading, "Esc closes"
            with VerticalScroll(id="scroll"):
                yield Static(id="text", markup=False)

    def on_mount(self) -> None:
        """Fill the box for the first time."""
        self.on_resize()

    def on_resize(self) -> None:
        """Fold the text to the width that there is."""
        if not self.query("#text"):
            return  # the screen is left before it was filled
        width = max(20, min(MOST_COLUMNS, self.app.size.width) - AROUND)
        lines = self.made(width).lines
        self.query_one("#dialog").styles.width = width + AROUND
        self.query_one("#text", Static).update(Text("\n").join(Text(text, STYLES[role]) for text, role in lines))

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one("#scroll").scroll_relative(y=lines, animate=False)

    def on_click(self, event: events.Click) -> None:
        """A click outside closes."""
        if event.widget is self:
            self.dismiss()


class Choosing(ModalScreen[str | None]):
    """A list of names, narrowed by typing."""

    DEFAULT_CSS = CSS.replace("Dialog", "Choosing")

    def __init__(self, title: str, names: Sequence[str], now: str) -> None:
        super().__init__()
        self.heading, self.names, self.now, self.typed = title, names, now, ""

    def compose(self) -> ComposeResult:
        """The list in a box, at what is chosen now."""
        with Vertical(id="dialog") as box:
            box.border_subtitle = "type to narrow, Enter chooses, Esc closes"
            yield OptionList(id="names")

    def on_mount(self) -> None:
        """List all names, unless the screen is left already."""
        if self.query("#names"):
            self._list()

    @property
    def list(self) -> OptionList:
        """The list on the screen."""
        return self.query_one("#names", OptionList)

    def _list(self) -> None:
        found = [name for name in self.names if self.typed in name.lower()]
        self.query_one("#dialog").border_title = f"{self.heading}: {self.typed}_" if self.typed else self.heading
        self.list.clear_options()
        self.list.add_options([Option(Text(name), id=name) for name in found])
        if found:
            self.list.highlighted = found.index(self.now) if self.now in found else 0

    def on_key(self, event: events.Key) -> None:
        """Narrow the list by what is typed, move in it and choose: all here, so that keys are done in their order."""
        if passed_on(self, event) or self._typed(event) or self._done(event):
            event.stop()
            event.prevent_default()

    def _typed(self, event: events.Key) -> bool:
        if event.key == "backspace":
            self.typed = self.typed[:-1]
        elif event.is_printable and event.character:
            self.typed += event.character.lower()
        else:
            return False
        self._list()
        return True

    def _done(self, event: events.Key) -> bool:
        at = self.list.highlighted
        if event.key == "escape":
            self.dismiss(None)
        elif event.key == "enter" and at is not None:
            self.dismiss(self.list.get_option_at_index(at).id)
        elif event.key in MOVING:
            getattr(self.list, f"action_{MOVING[event.key]}")()
        else:
            return False
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """The name that was chosen."""
        self.dismiss(event.option_id)

    def on_click(self, event: events.Click) -> None:
        """A click outside closes."""
        if event.widget is self:
            self.dismiss(None)
