"""The line of panels' names, of which one is shown."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

TITLES = {
    "roofline": "Roofline",
    "kernels": "Kernels",
    "cache": "Cache",
    "capacity": "Capacity",
    "crossover": "Crossover",
    "engines": "Engines",
}
"""The panels by name, in the order of their keys."""


class PanelTab(Widget):
    """One panel's name with its key."""

    DEFAULT_CSS = """
    PanelTab {
        width: auto; height: 1; padding: 0 1;
        &.-shown { text-style: bold reverse; }
    }
    """

    class Chosen(Message):
        """The panel is wanted."""

        def __init__(self, panel: str) -> None:
            super().__init__()
            self.panel = panel

    def __init__(self, panel: str, key: str, classes: str) -> None:
        super().__init__(id=f"tab-{panel}", classes=classes)
        self.panel, self.key = panel, key

    def render(self) -> Text:
        """``1 Roofline``."""
        return Text.assemble((self.key, "underline"), " ", TITLES[self.panel])

    def on_click(self) -> None:
        """Ask for the panel."""
        self.post_message(self.Chosen(self.panel))
