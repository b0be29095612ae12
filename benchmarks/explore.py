"""How fast ``mla-calc explore`` opens and follows a key, in turn with an empty app of the same widgets.

Opening is timed from outside: a process is started on a pseudo-terminal of the given size, and the clock stops when
what it writes holds the last line of the screen (its keys), and again when it holds numbers. The empty app has as many
widgets, of the same sizes, and starts as an installed program does: a script of two lines, with cached bytecode.

A change is timed from the key's event to after the screen was refreshed, in process and without a terminal. The empty
app changes the text of one widget. Needs textual.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import platform
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

SIZES = {"80x24": (80, 24), "200x50": (200, 50)}
KEYS_LINE = b"Quit"
NUMBERS = {"80x24": b"Ridge at|TFLOP/s", "200x50": b"SGLang 0"}
KEYS = list("ccbbuuookktTggmmCBUGMcbu")
"""What is pressed: every kind of knob, mostly to settings that were not asked about before."""

EMPTY = '''
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

ROWS = {rows}
TABS = {tabs}


class Knob(Widget, can_focus=True):
    DEFAULT_CSS = "Knob {{ width: auto; height: 1; }}"

    def __init__(self, label):
        super().__init__()
        self.label = label

    def get_content_width(self, *_):
        return len(self.label)

    def get_content_height(self, *_):
        return 1

    def render(self):
        return self.label


class Lines(ScrollView):
    def render_line(self, y):
        return Strip.blank(self.size.width)


class Empty(App):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [Binding(key, f"change('{{key}}')", name) for key, name in {keys!r}]
    CSS = """
    #knobs {{ height: auto; }} .row {{ height: 1; width: 1fr; }} #tabs {{ height: 1; }}
    #panels, .side {{ height: 1fr; width: 1fr; }} .panel {{ height: 1fr; }} #status {{ height: 1; }}
    """

    def compose(self):
        with Vertical(id="knobs"):
            for row in ROWS:
                with Horizontal(classes="row"):
                    yield from map(Knob, row)
        with Horizontal(id="tabs"):
            yield from map(Knob, TABS)
        with Horizontal(id="panels"):
            for side in range(2):
                with Vertical(classes="side"):
                    for number in range(3):
                        yield Lines(classes="panel")
        yield Static(id="status")
        yield Knob("  ".join(f"{{key}} {{name}}" for key, name in {keys!r}))

    def action_change(self, key):
        self.times = getattr(self, "times", 0) + 1
        self.change(None)

    def change(self, state):
        self.query_one("#status", Static).update(f"changed {{self.times}} times")
'''


def empty_app() -> str:
    """The source of an app with the explorer's widgets and no content."""
    from mla_calc.explore.keys import BINDINGS
    from mla_calc.explore.knobs import KNOBS, ROWS
    from mla_calc.explore.tabs import TITLES

    shown = [(bound.key, bound.description) for bound in BINDINGS if bound.show]
    width = {kind.name: len(kind.label) + kind.width + 3 for kind in KNOBS}
    rows = [["x" * width[name] for name in row] for row in ROWS]
    return EMPTY.format(rows=rows, tabs=[f" 1 {title} " for title in TITLES.values()], keys=shown)


def scripts(folder: Path) -> dict[str, Path]:
    """The two programs, as scripts of two lines."""
    (folder / "empty_app.py").write_text(empty_app(), encoding="utf-8")
    texts = {
        "explore": "from mla_calc.cli.main import main\n\nmain(['explore'])\n",
        "empty": "from empty_app import Empty\n\nEmpty().run()\n",
    }
    for name, text in texts.items():
        (folder / f"run_{name}.py").write_text(text, encoding="utf-8")
    return {name: folder / f"run_{name}.py" for name in texts}


def opened(script: Path, size: str, numbers: bytes | None) -> dict[str, float]:
    """Seconds until the screen is drawn and, where ``numbers`` is given, until they are on it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(script.parent / "bytecode"), "TERM": "xterm-256color"}
    start = time.perf_counter()
    process, terminal = pty.fork()
    if process == 0:
        time.sleep(0)
        os.execve(sys.executable, [sys.executable, str(script)], environment)
    columns, lines = SIZES[size]
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    wanted = {"screen": [KEYS_LINE], **({"numbers": numbers.split(b"|")} if numbers else {})}
    found: dict[str, float] = {}
    written = b""
    while len(found) < len(wanted) and time.perf_counter() - start < 30:
        if select.select([terminal], [], [], 0.5)[0]:
            written += os.read(terminal, 1 << 16)
            for name, marks in wanted.items():
                if name not in found and any(mark in written for mark in marks):
                    found[name] = time.perf_counter() - start
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(terminal)
    if len(found) < len(wanted):
        raise SystemExit(f"{script.name}: never showed {set(wanted) - set(found)}:\n{written[-2000:]!r}")
    return found


def open_times(size: str, runs: int) -> dict[str, list[float]]:
    """Wall seconds of every run; the programs take turns, so that a slow minute hits both."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        both = scripts(Path(folder))
        for turn in range(runs + 2):
            for name, script in both.items():
                found = opened(script, size, NUMBERS[size] if name == "explore" else None)
                for what, taken in found.items() if turn >= 2 else ():
                    times.setdefault(f"{name}: {what}", []).append(taken)
    return times


def timed(base: type[Any]) -> type[Any]:
    """An app that says when a change has reached the screen."""

    class Timed(base):  # type: ignore[misc]
        done: asyncio.Event

        def change(self, state: Any) -> None:
            super().change(state)
            self.call_after_refresh(self.done.set)

    return Timed


async def change_times(app: Any, size: str, keys: list[str]) -> list[float]:
    """Seconds from each key's event to the refreshed screen."""
    from textual import events

    found = []
    app.done = asyncio.Event()
    async with app.run_test(size=SIZES[size]) as pilot:
        await pilot.pause(0.5)
        for key in keys:
            await asyncio.sleep(0.05)
            app.done.clear()
            start = time.perf_counter()
            app.post_message(events.Key(key, key))
            await asyncio.wait_for(app.done.wait(), 10)
            found.append(time.perf_counter() - start)
    return found


def changes(size: str, runs: int) -> dict[str, list[float]]:
    """Both apps in turn, each opened anew; of the first round nothing is kept, since it loads what the others use."""
    from mla_calc.explore.app import Explorer
    from mla_calc.explore.state import State

    space: dict[str, Any] = {}
    exec(empty_app(), space)
    times: dict[str, list[float]] = {"explore: change": [], "empty: change": []}
    for turn in range(runs + 1):
        made = {
            "explore: change": (timed(Explorer)(State(batch=16), alone=True), KEYS),
            "empty: change": (timed(space["Empty"])(), ["e"] * len(KEYS)),
        }
        for name, (app, keys) in made.items():
            taken = asyncio.run(change_times(app, size, keys))
            times[name] += taken if turn else []
    return times


def report(size: str, times: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        base = medians[next(other for other in medians if other.startswith("empty"))]
        worst = sorted(taken)[int(0.95 * (len(taken) - 1))]
        print(
            f"{size:7} {name:18} median {medians[name] * 1e3:6.1f} ms, 95 % within {worst * 1e3:6.1f}, "
            f"{medians[name] / base:5.2f} x the empty app's, {len(taken)} times"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", choices=("open", "change"))
    chosen = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for size in SIZES:
        if chosen.only != "change":
            report(size, open_times(size, chosen.runs))
        if chosen.only != "open":
            report(size, changes(size, max(1, chosen.runs // 5)))


if __name__ == "__main__":
    main()
