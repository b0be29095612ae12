"""The explorer: the answers to a state on its screen, and what each key and click does."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import BindingType

from ..data import presets_kept
from ..errors import InputError, shown
from .frame import Frame
from .keys import BINDINGS, keys_sheet
from .knobs import KNOBS, Knob
from .knobs import shown as shown_value
from .sheet_view import SheetView
from .state import State, commands, count_of, width_of
from .tabs import TITLES, PanelTab

if TYPE_CHECKING:
    from ..report.record import Report
    from .answers import Answers, Wrong

PAUSE_S = 0.15
"""How long a panel that takes long waits before it begins: another key may follow."""

GARBAGE_AT = 10_000
"""Objects made before garbage is looked for: at Python's 700 that is twenty times a change, a tenth of its time; at
many more it would be seen."""

THEMES = ("textual-dark", "textual-light")


class Explorer(Frame):
    """Shows a state; its result is the state that it was left in."""

    TITLE = "mla-calc explore"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    def __init__(self, state: State, light: bool = False, folder: Path | None = None, alone: bool = False) -> None:
        super().__init__(state)
        self.started = state
        """Its own files stay in the knobs' lists."""
        self.folder = folder or here()
        self.answers: Answers | None = None
        """Set once the screen has been drawn: until then there are no numbers."""
        self._light, self._alone = light, alone
        self._saving, self._leaving = 0, False
        self._left_with: list[str] = []
        """What became of the saves that leaving waited for."""
        self.unsaved = False
        """Whether one of them failed: on the way out nobody can ask for it again."""
        self._early: list[Callable[[], object]] = []
        """What keys asked for before there were numbers, in their order."""
        self._presets = ExitStack()

    def on_mount(self) -> None:
        """Draw the screen as it is, then get the numbers: loading what works them out takes longer than drawing."""
        self._presets.enter_context(presets_kept())
        self.theme = THEMES[self._light]
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        from .answers import Answers

        self.answers = Answers()
        self.show()
        self.call_after_refresh(self._catch_up)
        if self._alone:
            # what was loaded stays: to look through it again for garbage takes a tenth of a second, amid a key press
            gc.freeze()
            gc.set_threshold(GARBAGE_AT)
            gc.enable()

    def _once_there(self, do: Callable[[], object]) -> None:
        """Do what takes numbers: now, or as soon as they are on the screen."""
        if self.answers is None or self._early:
            self._early.append(do)
        else:
            do()

    def _catch_up(self) -> None:
        """Do what was asked for before the numbers were there."""
        while self._early:
            self._early[0]()
            del self._early[0]

    def on_unmount(self) -> None:
        """Forget the presets."""
        self._presets.close()

    def on_resize(self, event: events.Resize) -> None:
        """All panels at once where there is room."""
        self.fit(*event.size)
        self.ask_for_room(*event.size)
        self.arrange()
        self.show()

    # what is shown

    def show(self) -> None:
        """Bring every panel that is seen up to the state."""
        if self.answers is None:
            return
        self.tell_knobs()
        for name in TITLES:
            if self.wide or name == self.active:
                self._show_panel(name)
        self._say_state()

    def _show_panel(self, name: str) -> None:
        from .answers import Wrong
        from .panels import panel_named

        assert self.answers is not None
        panel = panel_named(name)
        if not panel.at_once(self.answers, self.state):
            self.view(name).tell(Wrong("", f"{self.state.group_batch:,} rows are being priced ..."))
            self.set_timer(PAUSE_S, partial(self._price_rows, self.state))
            return
        self.view(name).tell(panel.found(self.answers, self.state))

    def _price_rows(self, state: State) -> None:
        """Work out what takes long, beside the screen, unless the state has changed since."""
        if state == self.state:
            self.run_worker(partial(self._priced, state), thread=True, group="price", exclusive=True)

    def _priced(self, state: State) -> None:
        from .panels import panel_named

        assert self.answers is not None
        panel_named("engines").found(self.answers, state)
        self._back(self.show)

    def _back(self, done: Callable[..., None], *arguments: object) -> None:
        """From beside the screen, call what shows the outcome there, unless the screen has been left meanwhile."""
        from textual.worker import get_current_worker

        if not get_current_worker().is_cancelled:
            self.call_from_thread(done, *arguments)

    # what is said

    def _say_state(self) -> None:
        from .moves import problem, told

        wrong = problem(self.state)
        self.say(wrong or told(self.state), wrong is not None)

    # what is done

    def change(self, state: State) -> None:
        """Show another state."""
        if state != self.state:
            self.state = state
            self.show()

    def action_move(self, name: str, step: int) -> None:
        """A knob on or back, past what does not go with the rest."""
        from .moves import moved

        try:
            move = moved(self.state, name, step, self.started)
        except InputError as error:
            self.say(str(error), wrong=True)
            return
        self.change(move.state)
        if move.skipped:
            self.say(f"passed over: {'; '.join(move.skipped)}")

    def on_knob_moved(self, event: Knob.Moved) -> None:
        """The same, by the knob's own keys, its arrows or the wheel."""
        self.action_move(event.name, event.step)

    def on_knob_typed(self, event: Knob.Typed) -> None:
        """A number that was typed; one that does not go with the rest is shown with the reason."""
        try:
            state = self.state.at(**{event.name: count_of(event.name, event.text)})
        except InputError as error:
            self.say(str(error), wrong=True)
            return
        self._say_state()
        self.change(state)

    def on_knob_dropped(self) -> None:
        """What was said of the typing goes with it."""
        self._say_state()

    def on_knob_refused(self, event: Knob.Refused) -> None:
        """A character that no number has."""
        took = f"{label_of(event.name)} takes digits, commas, k and m, not {shown(event.character)}"
        self.say(f"{took}; Esc drops the number", wrong=True)

    def list_values(self, name: str) -> None:
        """Choose from the list of a knob's values."""
        from .dialogs import Choosing
        from .moves import choices

        def chosen(value: str | None) -> None:
            if value is not None:
                self.change(self.state.at(**{name: width_of(value) if name == "weight_bytes" else value}))

        self.push_screen(Choosing(label_of(name), choices(name, self.started), shown_value(self.state, name)), chosen)

    def on_panel_tab_chosen(self, event: PanelTab.Chosen) -> None:
        """Go to the panel whose name was clicked."""
        self._go_to(event.panel)

    def action_panel(self, index: int) -> None:
        """Go to the panel of that number, from 0."""
        self._go_to(list(TITLES)[index])

    def action_turn(self, step: int) -> None:
        """Go to the next panel, or the one before."""
        names = list(TITLES)
        self._go_to(names[(names.index(self.active) + step) % len(names)])

    def _go_to(self, name: str) -> None:
        self.active = name
        self.arrange()
        self.show()
        self.set_focus(self.view(name) if isinstance(self.view(name), SheetView) else None)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The panel that has the focus is the active one."""
        if isinstance(event.widget, SheetView) and event.widget.id:
            self.active = event.widget.id

    def action_explain(self) -> None:
        """How the selected number comes about; of the roofline, every number of its own. Beside the screen."""
        explain = partial(self._explain_of, self.state, self.active)
        view = self.view(self.active)
        self._once_there(partial(view.once_laid_out, explain) if isinstance(view, SheetView) else explain)

    def _explain_of(self, state: State, name: str) -> None:
        if state != self.state:
            return  # a key has asked for another since
        view = self.view(name)
        spot = view.selected if isinstance(view, SheetView) else None
        self.say("explaining ...")
        asked = (state, name, spot.path if spot else None)
        self.run_worker(partial(self._explain, *asked), thread=True, group="explain", exclusive=True)

    def _explain(self, state: State, name: str, path: str | None) -> None:
        from .panels import panel_named

        assert self.answers is not None
        found = panel_named(name).found(self.answers, state, explain=True)
        self._back(self._explained, state, path, found)

    def _explained(self, state: State, path: str | None, found: Report | Wrong) -> None:
        """Show an explanation, unless something else is shown by now."""
        from .answers import Wrong
        from .dialogs import Reading
        from .explaining import explanation_of

        if state == self.state:
            self._say_state()  # and no longer that it is being explained
        if state != self.state or len(self.screen_stack) > 1:
            return
        if isinstance(found, Wrong):
            self.say(found.message, wrong=True)
            return
        self.push_screen(Reading("How it comes about", partial(explanation_of, found, path)))

    def action_keys(self) -> None:
        """List the keys."""
        from .dialogs import Reading

        self.push_screen(Reading("Keys", keys_sheet))

    def action_commands(self) -> None:
        """The command lines that give the same."""
        from .dialogs import Reading
        from .sheet import sheet_of_lines

        self.push_screen(Reading("The same on the command line", partial(sheet_of_lines, commands(self.state))))

    def action_save(self) -> None:
        """Write the numbers and the figure; it takes a moment, so beside the screen."""
        self._saving += 1  # from now on: leaving waits for it
        self._once_there(partial(self._save_beside, self.state))

    def _save_beside(self, state: State) -> None:
        self.say("saving ...")
        self.run_worker(partial(self._save, state), thread=True, group="save")

    def _save(self, state: State) -> None:
        from .saving import save

        assert self.answers is not None
        try:
            paths = save(self.answers, state, self.folder)
        except InputError as error:
            self._back(self._saved, str(error), True)
            return
        self._back(self._saved, f"written: {' and '.join(path.name for path in paths)} in {self.folder}", False)

    def _saved(self, text: str, wrong: bool) -> None:
        """Say what became of it; the last one that leaving waited for also leaves, and says it of all of those."""
        self.say(text, wrong)
        self._saving -= 1
        if not self._leaving:
            return
        self._left_with.append(text)
        self.unsaved |= wrong
        if not self._saving:
            self.exit(self.state, message="\n".join(self._left_with))

    def action_view(self) -> None:
        """Light or dark."""
        self.theme = THEMES[self.theme == THEMES[0]]

    async def action_quit(self) -> None:
        """Leave; the state is the result. What is being saved is waited for, unless this is asked for again."""
        if self._saving and not self._leaving:
            self._leaving = True
            self.say("saving, then quitting ...")
            return
        self.exit(self.state)


def here() -> Path:
    """The current folder, by a name that stays right to the reader; the relative one where it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


def label_of(name: str) -> str:
    """A knob's label."""
    return next(kind.label for kind in KNOBS if kind.name == name)
