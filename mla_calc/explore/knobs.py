"""A knob: one setting on one line, changed by keys, by typing, by the wheel, or by a click on its arrows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from .ahead import passed_on
from .cells import ending, placed
from .state import COUNTS, OWN, SWITCHES, TYPED, State, short


@dataclass(frozen=True, slots=True)
class Kind:
    """A knob's name in the state, its label, the key that moves it on (shifted: back), and its columns."""

    name: str
    label: str
    key: str
    width: int
    what: str


KNOBS = (
    Kind("model", "Model", "m", 16, "the model: those with a latent, and that of the start"),
    Kind("gpu", "GPU", "g", 29, "the GPU, of those with a peak for the dtype"),
    Kind("tp", "TP", "t", 4, "tensor-parallel ranks that divide the heads"),
    Kind("dp", "DP", "d", 4, "data-parallel groups, by powers of two"),
    Kind("batch", "Batch", "b", 5, "requests in all groups, by powers of two"),
    Kind("context", "Context", "c", 7, "keys of a request, by powers of two"),
    Kind("queries", "Queries", "u", 7, "new tokens of a request, by powers of two"),
    Kind("dtype", "KV", "k", 14, "the cache's layout"),
    Kind("mma_dtype", "MMA", "a", 4, "dtype of the products' operands: whose peak is the roof"),
    Kind("sparse", "Sparse", "p", 3, "sparse attention (DSA), for a model with an indexer"),
    Kind("over", "Over", "o", 7, "what the roofline's trajectories go over"),
    Kind("weight_bytes", "Wts", "w", 4, "bytes of a weight; auto: in Capacity the checkpoint's, else 2"),
)
"""In the order of the screen; a key is a letter of its label, which is underlined there."""
ROWS = (
    ("model", "gpu"),
    ("tp", "dp", "batch", "context", "queries"),
    ("dtype", "mma_dtype", "sparse", "over", "weight_bytes"),
)
"""Which knobs share a line of a narrow screen."""

BACK, ON = "‹", "›"
STEPS = {"left": -1, "down": -1, "minus": -1, "right": 1, "up": 1, "plus": 1, "equals_sign": 1}
"""Keys that move the knob that has the focus."""
OPENING = ("enter", "space")
"""Keys that type a number, flip a switch, or open a list."""
ERASING = ("backspace", "ctrl+h")
CLEARING = ("delete", "ctrl+u", "ctrl+w")


def shown(state: State, name: str) -> str:
    """A knob's value as it is shown."""
    value: str | int | bool | None = getattr(state, name)
    if value is None:
        return OWN
    if isinstance(value, bool):
        return "on" if value else "off"
    return short(value) if isinstance(value, int) else value


class Knob(Widget, can_focus=True):
    """One setting. It says what is wanted of it by messages, and shows what it is told.

    The messages are written out: making a dataclass takes a part of a millisecond before the first screen.
    """

    DEFAULT_CSS = """
    Knob {
        width: auto; height: 1; margin-right: 1;
        &:focus { background: $boost; text-style: bold; }
    }
    """

    class Moved(Message):
        """The next (1) or the previous (-1) value is wanted."""

        def __init__(self, name: str, step: int) -> None:
            super().__init__()
            self.name, self.step = name, step

    class Typed(Message):
        """A value was typed."""

        def __init__(self, name: str, text: str) -> None:
            super().__init__()
            self.name, self.text = name, text

    class Refused(Message):
        """A character was typed that no number has."""

        def __init__(self, name: str, character: str) -> None:
            super().__init__()
            self.name, self.character = name, character

    class Dropped(Message):
        """What was being typed is given up."""

    def __init__(self, kind: Kind, value: str, listed: Callable[[str], None]) -> None:
        """``listed`` shows the list of a knob's values: at once, so that the next key is the list's."""
        super().__init__(id=f"knob-{kind.name}")
        self.kind = kind
        self.value = value
        self.listed = listed
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
        value = ending(self.value, width)
        style = "reverse bold" if self.has_focus else "bold"
        return Text.assemble(
            label, " ", BACK, (value.center(width) if self.counts else placed(value, width), style), ON
        )

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
            self.listed(self.kind.name)

    def type(self, text: str | None) -> None:
        """Show what is being typed; ``None`` ends it."""
        self.typing = text
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Do here what a key means. The app runs bindings, and may do so only after the next key has come here."""
        if passed_on(self, event) or self._typed(event) or self._turned(event):
            event.stop()
            event.prevent_default()

    def _turned(self, event: events.Key) -> bool:
        """Whether the key was one of a knob at which nothing is being typed."""
        if event.key in STEPS:
            self.action_move(STEPS[event.key])
        elif event.key in OPENING:
            self.action_open()
        elif event.key in ("tab", "shift+tab"):
            go = self.screen.focus_next if event.key == "tab" else self.screen.focus_previous
            go()
        else:
            return False
        return True

    def _typed(self, event: events.Key) -> bool:
        """Whether the key was one of typing a number."""
        if self.typing is not None:
            return self._edit(self.typing, event)
        digit = event.character is not None and event.character.isascii() and event.character.isdigit()
        if self.counts and digit:
            self.type(event.character)
            return True
        return False

    def _edit(self, typed: str, event: events.Key) -> bool:
        """Whether the key was one of typing; one that is not ends it."""
        if event.key == "enter" and typed:
            self.type(None)
            self.post_message(self.Typed(self.kind.name, typed))
        elif event.key in ("enter", "escape"):
            self._drop()
        elif event.key in ERASING:
            self.type(typed[:-1])
        elif event.key in CLEARING:
            self.type("")
        elif not (event.is_printable and event.character):
            self._drop()
            return False
        elif event.character in TYPED:
            self.type(typed + event.character)
        else:
            self.post_message(self.Refused(self.kind.name, event.character))
        return True

    def on_paste(self, event: events.Paste) -> None:
        """Type all of a text that a number may have; one of any other is refused whole, at its first such character."""
        text = event.text.strip()
        if not (self.counts and text):
            return
        event.stop()
        odd = next((character for character in text if character not in TYPED), None)
        self.type((self.typing or "") + ("" if odd else text))
        if odd:
            self.post_message(self.Refused(self.kind.name, odd))

    def _drop(self) -> None:
        """Give up what is being typed."""
        if self.typing is not None:
            self.type(None)
            self.post_message(self.Dropped())

    def on_blur(self) -> None:
        """What was not ended by Enter is dropped."""
        self._drop()

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
