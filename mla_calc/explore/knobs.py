"""A knob: one setting on one line, changed by keys, by typing, by the wheel, or by a click on its arrows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from .state import COUNTS, SWITCHES, State, short


@dataclass(frozen=True, slots=True)
class Kind:
    """A knob's name in the state, its label, the key that moves it on (shifted: back), and its columns."""

    name: str
    label: str
    key: str
    width: int
    what: str


KNOBS = (
    Kind("model", "Model", "m", 18, "the model, of those with a latent"),
    Kind("gpu", "GPU", "g", 29, "the GPU, of those with a peak for the dtype"),
    Kind("tp", "TP", "t", 4, "tensor-parallel ranks that divide the heads"),
    Kind("dp", "DP", "d", 4, "data-parallel groups, doubled or halved"),
    Kind("batch", "Batch", "b", 5, "requests in all groups, doubled or halved"),
    Kind("context", "Context", "c", 7, "keys of a request, doubled or halved"),
    Kind("queries", "Queries", "u", 7, "new tokens of a request, doubled or halved"),
    Kind("dtype", "KV", "k", 14, "the cache's layout"),
    Kind("mma_dtype", "MMA", "a", 4, "dtype of the products' operands: whose peak is the roof"),
    Kind("sparse", "Sparse", "p", 3, "sparse attention (DSA), for a model with an indexer"),
    Kind("over", "Over", "o", 7, "what the roofline's trajectories go over"),
)
"""In the order of the screen; a key is a letter of its label, which is underlined there."""
ROWS = (("model", "gpu"), ("tp", "dp", "batch", "context", "queries"), ("dtype", "mma_dtype", "sparse", "over"))
"""Which knobs share a line of a narrow screen."""

BACK, ON = "‹", "›"


def shown(state: State, name: str) -> str:
    """A knob's value as it is shown."""
    value: str | int | bool = getattr(state, name)
    if isinstance(value, bool):
        return "on" if value else "off"
    return short(value) if isinstance(value, int) else value


class Knob(Widget, can_focus=True):
    """One setting. It says what is wanted of it by messages, and shows what it is told."""

    DEFAULT_CSS = """
    Knob {
        width: auto; height: 1; margin-right: 1;
        &:focus { background: $boost; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,down,minus", "move(-1)", "back", show=False),
        Binding("right,up,plus,equals_sign", "move(1)", "on", show=False),
        Binding("enter,space", "open", "type or choose", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The next (1) or the previous (-1) value is wanted."""

        name: str
        step: int

    @dataclass
    class Typed(Message):
        """A value was typed."""

        name: str
        text: str

    @dataclass
    class Opened(Message):
        """The list of its values is wanted."""

        name: str

    def __init__(self, kind: Kind, value: str) -> None:
        super().__init__(id=f"knob-{kind.name}")
        self.kind = kind
        self.value = value
        self.typing: str | None = None
        """What was typed so far; ``None`` where nothing is being typed."""

    @property
    def counts(self) -> bool:
        """Whether the value is a number, which is typed."""
        return self.kind.name in COUNTS

    def tell(self, value: str) -> None:
        """Show ``value``."""
        if value != self.value:
            self.value = value
            self.refresh()

    def get_content_width(self, *_: object) -> int:
        """Columns of label, arrows and the longest value."""
        return len(self.kind.label) + 1 + len(BACK) + self.kind.width + len(ON)

    def get_content_height(self, *_: object) -> int:
        """One line."""
        return 1

    def render(self) -> Text:
        """``Label ‹value›``, the letter that moves it underlined."""
        label = Text(self.kind.label, style="bold" if self.has_focus else "")
        at = self.kind.label.lower().index(self.kind.key)
        label.stylize("underline", at, at + 1)
        width = self.kind.width
        if self.typing is not None:
            entry = (self.typing + "_")[-width:]
            return Text.assemble(label, " ", BACK, (entry.ljust(width), "reverse"), ON)
        value = self.value if len(self.value) <= width else "~" + self.value[1 - width :]
        style = "reverse bold" if self.has_focus else "bold"
        return Text.assemble(label, " ", BACK, (value.center(width) if self.counts else value.ljust(width), style), ON)

    def action_move(self, step: int) -> None:
        """Ask for the next or the previous value."""
        self.post_message(self.Moved(self.kind.name, step))

    def action_open(self) -> None:
        """Start typing a number, flip a switch, or ask for the list."""
        if self.counts:
            self.type("")
        elif self.kind.name in SWITCHES:
            self.action_move(1)
        else:
            self.post_message(self.Opened(self.kind.name))

    def type(self, text: str | None) -> None:
        """Show what is being typed; ``None`` ends it."""
        self.typing = text
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Take the keys of a number that is being typed before they mean anything else."""
        digit = event.character is not None and event.character.isascii() and event.character.isdigit()
        if self.typing is None:
            if not (self.counts and digit):
                return
            self.type(event.character)
        elif not self._edit(self.typing, event):
            return
        event.stop()
        event.prevent_default()

    def _edit(self, typed: str, event: events.Key) -> bool:
        """Whether the key was one of typing."""
        if event.key == "enter":
            self.type(None)
            if typed:
                self.post_message(self.Typed(self.kind.name, typed))
        elif event.key == "escape":
            self.type(None)
        elif event.key == "backspace":
            self.type(typed[:-1])
        elif event.is_printable and event.character:
            self.type(typed + event.character)
        else:
            self.type(None)
            return False
        return True

    def on_blur(self) -> None:
        """What was not ended by Enter is dropped."""
        self.type(None)

    def on_click(self, event: events.Click) -> None:
        """An arrow moves; the value is typed or chosen."""
        value_at = len(self.kind.label) + 1 + len(BACK)
        if event.x < value_at:
            self.action_move(-1)
        elif event.x >= value_at + self.kind.width:
            self.action_move(1)
        else:
            self.action_open()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """On by the wheel."""
        event.stop()
        self.action_move(1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Back by the wheel."""
        event.stop()
        self.action_move(-1)
