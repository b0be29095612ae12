"""The last line of the screen: the keys that everything begins with. A click on one is that key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.widget import Widget

GAP = 2


class Shown(NamedTuple):
    """A key on the line: from column ``start`` to before ``end``."""

    start: int
    end: int
    key: str
    name: str
    action: str


class KeyLine(Widget):
    """Keys and what they do. Textual's own footer is a widget for each key, which the first screen would wait for."""

    DEFAULT_CSS = "KeyLine { height: 1; width: 1fr; background: $panel; padding: 0 1; text-wrap: nowrap; }"

    def __init__(self, bindings: Iterable[Binding]) -> None:
        super().__init__(id="keys")
        self.shown = tuple(_placed(bindings))

    def render(self) -> Text:
        """``e Explain  s Save``."""
        text = Text(no_wrap=True, overflow="crop")
        for item in self.shown:
            text.append(item.key, "bold reverse").append(f" {item.name}").append(" " * GAP)
        return text

    async def on_click(self, event: events.Click) -> None:
        """Do what the key under the pointer does."""
        at = event.get_content_offset_capture(self).x
        for item in self.shown:
            if item.start <= at < item.end:
                await self.app.run_action(item.action)


def _placed(bindings: Iterable[Binding]) -> Iterator[Shown]:
    start = 0
    for binding in bindings:
        if binding.show:
            key = {"question_mark": "?"}.get(binding.key, binding.key)
            end = start + len(key) + 1 + len(binding.description)
            yield Shown(start, end, key, binding.description, binding.action)
            start = end + GAP
