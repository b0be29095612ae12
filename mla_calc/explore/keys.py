"""The keys of the explorer, and the page that lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from .knobs import KNOBS

if TYPE_CHECKING:
    from .sheet import Sheet

PANEL_KEYS = "123456"

BINDINGS = [
    Binding("e", "explain", "Explain"),
    Binding("s", "save", "Save"),
    Binding("y", "commands", "Command lines"),
    Binding("v", "view", "Light/dark"),
    Binding("question_mark", "keys", "Keys"),
    Binding("q", "quit", "Quit"),
    Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
    Binding("left_square_bracket", "turn(-1)", "Panel before", show=False),
    Binding("right_square_bracket", "turn(1)", "Next panel", show=False),
    *(Binding(key, f"panel({index})", f"Panel {key}", show=False) for index, key in enumerate(PANEL_KEYS)),
    *(
        Binding(key, f"move('{knob.name}', {step})", knob.what, show=False)
        for knob in KNOBS
        for key, step in ((knob.key, 1), (knob.key.upper(), -1))
    ),
]

OTHERS = (
    ("1 to 6, [ and ]", "go to a panel"),
    ("Tab, Shift+Tab", "go to the next knob or panel, or the one before"),
    ("arrows, + and -", "on a knob: on and back"),
    ("arrows", "on a panel: to the next number that way"),
    ("digits", "on a knob with a number: type or paste it (8192 or 8k); Enter takes it, Esc does not"),
    ("Enter", "on a knob: type or choose; on a number: explain it"),
    ("e", "explain the selected number: formula, numbers put in, sources"),
    ("s", "save all numbers (JSON) and the roofline (SVG) in the current folder"),
    ("y", "the command lines that give the same"),
    ("v", "light or dark"),
    ("q, Ctrl+C", "quit, and print the command line that opens this again"),
    ("mouse", "click a knob's arrows or value, a tab or a number; the wheel turns a knob and scrolls a panel"),
)


def keys_sheet(width: int) -> Sheet:
    """The list of keys, folded to ``width``."""
    from .sheet import Sheet, add_rows

    sheet = Sheet()
    knobs = [(f"{knob.key} / {knob.key.upper()}", f"{knob.label}: {knob.what}") for knob in KNOBS]
    add_rows(sheet, "A knob on, and (shifted) back", knobs, width)
    sheet.lines.append(("", "plain"))
    add_rows(sheet, "Everything else", OTHERS, width)
    return sheet
