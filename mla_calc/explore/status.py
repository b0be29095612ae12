"""The line below the panels: what the state is of, or what is wrong; and what stands where nothing has room."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget


class Status(Widget):
    """One line. It never asks for a layout, which would draw every other widget anew."""

    DEFAULT_CSS = """
    Status {
        height: 1; width: 1fr; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        &.-wrong { color: $text-error; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="status")
        self.text, self.wrong = "", False

    def tell(self, text: str, wrong: bool = False) -> None:
        """Show ``text``; what is wrong is marked, with and without colour."""
        if (text, wrong) == (self.text, self.wrong):
            return
        if wrong != self.wrong:
            self.set_class(wrong, "-wrong")
        self.text, self.wrong = text, wrong
        self.refresh()

    def render(self) -> Text:
        """The line, cut where the screen ends."""
        return Text(f"! {self.text}" if self.wrong else self.text, no_wrap=True, overflow="ellipsis")


class TooSmall(Widget):
    """Stands alone on a terminal that the screen does not fit."""

    DEFAULT_CSS = "TooSmall { display: none; height: 1fr; width: 1fr; text-style: bold; }"

    def __init__(self, text: str) -> None:
        super().__init__(id="too-small")
        self.text = text

    def tell(self, text: str) -> None:
        """Show ``text``."""
        self.text = text
        self.refresh()

    def render(self) -> Text:
        """The text, folded."""
        return Text(self.text)
