"""What stands on the screen: knobs above, panels below, one at a time or all at once, and a line for messages."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical

from .chart_view import ChartView
from .key_line import KeyLine
from .keys import BINDINGS
from .knobs import KNOBS, ROWS, Knob, shown
from .sheet_view import SheetView
from .state import State
from .status import Status, TooSmall
from .tabs import TITLES, PanelTab

LEAST = (80, 24)
"""Columns and lines that the screen needs."""
WIDE = (160, 40)
"""Columns and lines from which on all panels are shown at once."""
ONE_LINE = 200
"""Columns from which on all knobs stand on one line."""
COLUMNS = (("roofline", "cache", "capacity"), ("kernels", "crossover", "engines"))
"""Panels from top to bottom, where all are shown."""


class Frame(App[State]):
    """The widgets, and which of them are seen. Nothing here knows where the numbers come from."""

    CSS = """
    #knobs { height: auto; }
    .row { height: 1; width: 1fr; }
    #tabs { height: 1; }
    #panels, #left, #right { height: 1fr; width: 1fr; }
    #left, #right { display: none; }
    #left.-shown, #right.-shown { display: block; }
    Screen.-small > * { display: none; }
    Screen.-small > TooSmall { display: block; }
    .panel { display: none; }
    .panel.-shown { display: block; }
    Screen.-wide {
        #tabs { display: none; }
        .panel { border-top: solid $primary; border-title-style: bold; border-title-color: $foreground; }
        .panel:focus { border-top: heavy $accent; }
        #left { margin-right: 1; }
        #roofline { height: 24fr; } #cache { height: 11fr; } #capacity { height: 12fr; }
        #kernels { height: 20fr; } #crossover { height: 15fr; } #engines { height: 12fr; }
    }
    Screen.-one-line #knobs { layout: horizontal; height: 1; }
    Screen.-one-line .row { width: auto; }
    """

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.active = "roofline"
        """The panel that is shown where there is room for one, and that keys are meant for."""

    def compose(self) -> ComposeResult:
        """Knobs, tabs, panels, a line for messages, and the keys."""
        self.fit(*self.size)
        kinds = {kind.name: kind for kind in KNOBS}
        with Vertical(id="knobs"):
            for row in ROWS:
                with Horizontal(classes="row"):
                    yield from (Knob(kinds[name], shown(self.state, name), self.list_values) for name in row)
        with Horizontal(id="tabs"):
            for number, name in enumerate(TITLES, 1):
                yield PanelTab(name, str(number), classes=self._if_shown(name == self.active))
        with Horizontal(id="panels"):
            for side, names in zip(("left", "right"), COLUMNS, strict=True):
                with Vertical(id=side, classes=self._if_shown(self.wide or self.active in names)):
                    for name in names:
                        classes = f"panel {self._if_shown(self.wide or name == self.active)}"
                        view = (ChartView if name == "roofline" else SheetView)(id=name, classes=classes)
                        view.border_title = TITLES[name]
                        yield view
        yield Status()
        yield KeyLine(BINDINGS)

    @property
    def wide(self) -> bool:
        """Whether all panels are shown at once."""
        return self.screen_stack[0].has_class("-wide")

    def fit(self, width: int, height: int) -> None:
        """Take the arrangement for a screen of so many columns and lines."""
        base = self.screen_stack[0]
        base.set_class(width >= WIDE[0] and height >= WIDE[1], "-wide")
        base.set_class(width >= ONE_LINE, "-one-line")
        base.set_class(width < LEAST[0] or height < LEAST[1], "-small")

    def ask_for_room(self, width: int, height: int) -> None:
        """Say what is needed, where so many columns and lines are too few."""
        base = self.screen_stack[0]
        if not base.has_class("-small"):
            return
        text = f"{LEAST[0]}x{LEAST[1]} at least; this is {width}x{height}. A larger terminal shows it all; q quits."
        if there := base.query(TooSmall):
            there.first().tell(text)
        else:
            base.mount(TooSmall(text))

    @staticmethod
    def _if_shown(seen: bool) -> str:
        return "-shown" if seen else ""

    def arrange(self) -> None:
        """Show the panels that there is room for."""
        base = self.screen_stack[0]
        for side, names in zip(("left", "right"), COLUMNS, strict=True):
            base.query_one(f"#{side}").set_class(self.wide or self.active in names, "-shown")
        for name in TITLES:
            base.query_one(f"#{name}").set_class(self.wide or name == self.active, "-shown")
            base.query_one(f"#tab-{name}").set_class(name == self.active, "-shown")

    def list_values(self, name: str) -> None:
        """Show the list of a knob's values."""

    def tell_knobs(self) -> None:
        """Bring every knob up to the state."""
        for knob in self.screen_stack[0].query(Knob):
            knob.tell(shown(self.state, knob.kind.name))

    def view(self, name: str) -> ChartView | SheetView:
        """The panel of that name."""
        found = self.screen_stack[0].query_one(f"#{name}")
        assert isinstance(found, ChartView | SheetView)
        return found

    def say(self, text: str, wrong: bool = False) -> None:
        """One line below the panels."""
        self.screen_stack[0].query_one(Status).tell(text, wrong)
