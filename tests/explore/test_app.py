from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import OptionList

from mla_calc.explore.app import Explorer
from mla_calc.explore.chart_view import ChartView
from mla_calc.explore.dialogs import Choosing, Reading
from mla_calc.explore.key_line import KeyLine
from mla_calc.explore.knobs import KNOBS, Knob
from mla_calc.explore.sheet_view import SheetView
from mla_calc.explore.state import State
from mla_calc.explore.tabs import TITLES

from .running import H100, LARGE, SMALL, explain, opened, press, run, screen_text, settle, until

V32 = State(model="deepseek-v3.2", gpu="h100-sxm5-80gb", tp=8, batch=4, queries=2)
ON = {
    "model": "deepseek-v3",
    "gpu": "h20-96gb",
    "tp": 16,
    "dp": 2,
    "batch": 8,
    "context": 8192,
    "queries": 4,
    "dtype": "bf16_padded640",
    "mma_dtype": "fp16",
    "sparse": True,
    "over": "batch",
    "weight_bytes": "0.5",
}
"""Where each knob of V32 is after its key."""


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_every_key_moves_its_knob_on_and_back(knob: Any) -> None:
    async def test() -> None:
        async with opened(V32) as (app, pilot):
            await press(pilot, knob.key)
            assert getattr(app.state, knob.name) == ON[knob.name]
            assert app.state == replace(V32, **{knob.name: ON[knob.name]})
            await press(pilot, knob.key.upper())
            assert app.state == V32

    run(test)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_a_click_on_an_arrow_moves_and_on_the_value_opens(knob: Any) -> None:
    async def test() -> None:
        async with opened(V32) as (app, pilot):
            widget = app.query_one(f"#knob-{knob.name}", Knob)
            await pilot.click(widget, offset=(widget.size.width - 1, 0))
            await settle(pilot)
            assert getattr(app.state, knob.name) == ON[knob.name]
            await pilot.click(widget, offset=(len(knob.label) + 1, 0))
            await settle(pilot)
            assert app.state == V32
            await pilot.click(widget, offset=(len(knob.label) + 3, 0))
            await settle(pilot)
            if knob.name == "sparse":
                assert app.state.sparse
            elif isinstance(getattr(V32, knob.name), int):
                assert widget.typing == ""
            else:
                assert isinstance(app.screen, Choosing)

    run(test)


@pytest.mark.parametrize("key", ["right", "up", "plus", "equals_sign"])
def test_arrows_and_signs_move_the_knob_that_has_the_focus(key: str) -> None:
    back = {"right": "left", "up": "down"}.get(key, "minus")

    async def test() -> None:
        async with opened() as (app, pilot):
            app.query_one("#knob-context").focus()
            await press(pilot, key)
            assert app.state.context == 8192
            await press(pilot, back, back)
            assert app.state.context == 2048

    run(test)


def test_the_wheel_turns_a_knob() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            knob = app.query_one("#knob-batch", Knob)
            for kind in (events.MouseScrollUp, events.MouseScrollUp, events.MouseScrollDown):
                knob.post_message(kind(knob, 0, 0, 0, 0, 0, False, False, False))
            await settle(pilot)
            assert app.state.batch == 2

    run(test)


@pytest.mark.parametrize(
    ("keys", "context"),
    [("8 k enter", 8192), ("3 2 7 6 8 enter", 32768), ("1 2 backspace 6 k enter", 16384), ("enter 2 k enter", 2048)],
)
def test_a_number_is_typed(keys: str, context: int) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            app.query_one("#knob-context").focus()
            await press(pilot, *keys.split())
            assert app.state == replace(H100, context=context)  # `k` did not move the cache's layout

    run(test)


@pytest.mark.parametrize(
    ("knob", "keys", "changed"),
    [
        ("context", "enter 2 k enter", {"context": 2048}),
        ("context", "space 2 k enter", {"context": 2048}),
        ("context", "enter 2 k enter t", {"context": 2048, "tp": 16}),
        ("context", "right 2 k enter", {"context": 2048}),
        ("context", "2 k enter right right", {"context": 8192}),
        ("context", "3 2 comma 7 6 9 backspace 8 enter", {"context": 32768}),
        ("context", "9 9 delete 1 6 k enter", {"context": 16384}),
        ("context", "9 9 ctrl+u 1 6 k enter", {"context": 16384}),
        ("context", "tab 3 enter shift+tab 8 k enter", {"queries": 3, "context": 8192}),
        ("gpu", "enter b 2 0 0 down enter", {"gpu": "gb200-186gb"}),
        ("gpu", "enter b 2 0 0 down enter c", {"gpu": "gb200-186gb", "context": 8192}),
        ("gpu", "enter escape c", {"context": 8192}),
    ],
)
def test_keys_without_a_pause_are_done_in_their_order(knob: str, keys: str, changed: dict[str, Any]) -> None:
    from textual.events import Key

    characters = {"space": " ", "comma": ","}

    async def test() -> None:
        async with opened() as (app, pilot):
            app.query_one(f"#knob-{knob}").focus()
            await pilot.pause()
            for key in keys.split():
                app.post_message(Key(key, characters.get(key, key if len(key) == 1 else None)))
            await settle(pilot)
            assert app.state == replace(H100, **changed)
            assert len(app.screen_stack) == 1
            assert all(each.typing is None for each in app.query(Knob))

    run(test)


@pytest.mark.parametrize("key", ["x", "q", "g", "full_stop", "minus"])
def test_what_no_number_has_is_refused_and_typing_goes_on(key: str) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            app.query_one("#knob-context").focus()
            await press(pilot, "8", key)
            status = screen_text(app).splitlines()[-2]
            assert status.startswith(" ! Context takes digits, commas, k and m, not '")
            await press(pilot, "k", "enter")
            assert app.state == replace(H100, context=8192)
            await press(pilot, "8", key, "escape")
            assert "!" not in screen_text(app).splitlines()[-2]

    run(test)


@pytest.mark.parametrize(
    ("keys", "pasted", "context"),
    [("", "32,768\n", 32768), ("", "8k", 8192), ("1 6", "k", 16384), ("enter", " 2048 ", 2048), ("", " \n", None)],
)
def test_a_number_is_pasted(keys: str, pasted: str, context: int | None) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            knob = app.query_one("#knob-context", Knob)
            knob.focus()
            await press(pilot, *keys.split())
            app.post_message(events.Paste(pasted))
            await settle(pilot)
            assert app.state == H100  # not before Enter takes it
            assert (knob.typing is None) == (context is None)
            if context:
                await press(pilot, "enter")
                assert app.state == replace(H100, context=context)

    run(test)


@pytest.mark.parametrize("before", ["", "8"])
def test_a_text_that_is_no_number_is_not_pasted(before: str) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            knob = app.query_one("#knob-context", Knob)
            knob.focus()
            await press(pilot, *before)
            app.post_message(events.Paste("8192 tokens"))
            await settle(pilot)
            assert screen_text(app).splitlines()[-2].startswith(" ! Context takes digits, commas, k and m, not ' '")
            assert knob.typing == before
            await press(pilot, "escape")
            assert app.state == H100
            app.query_one("#knob-model").focus()
            app.post_message(events.Paste("8k"))
            await settle(pilot)
            assert app.state == H100

    run(test)


@pytest.mark.parametrize("keys", ["9 escape", "9 tab", "enter enter", "enter escape"])
def test_what_is_not_ended_by_enter_is_dropped(keys: str) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            knob = app.query_one("#knob-context", Knob)
            knob.focus()
            await press(pilot, *keys.split())
            assert app.state == H100
            assert knob.typing is None

    run(test)


@pytest.mark.parametrize(
    ("knob", "typed", "words"),
    [
        ("tp", "3", "TP 3 does not divide the 128 heads"),
        ("queries", "8k", "more than the context of 4,096"),
        ("batch", "0", "--batch 0: 1 to 8,192 is accepted"),
        ("context", "9kk", "a whole number is expected"),
        ("dp", "4096", "32,768 GPUs"),
    ],
)
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_wrong_numbers_are_one_line_and_no_crash(knob: str, typed: str, words: str, size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(size=size) as (app, pilot):
            app.query_one(f"#knob-{knob}").focus()
            await press(pilot, *typed, "enter")
            assert [line for line in screen_text(app).splitlines()[-2:-1] if words in line and line[1] == "!"]
            for key in "123456":
                app.set_focus(None)
                await press(pilot, key)
            await press(pilot, "e")

    run(test)


def test_a_capacity_that_lacks_an_option_says_how_it_is_given() -> None:
    async def test() -> None:
        async with opened(State(model="mistral-large-3")) as (app, pilot):
            await press(pilot, "4")
            text = " ".join(screen_text(app).split())
            assert "Here w sets --weight-bytes." in text
            assert "--cache-budget is an option at the start: q quits and prints the line to put it in." in text
            await press(pilot, "w", "w")
            text = " ".join(screen_text(app).split())
            assert "unique tokens 701,610" in text  # as `capacity --weight-bytes 1`
            assert "option at the start" not in text
            app.change(State(model="kimi-k2-thinking"))
            await settle(pilot)
            text = " ".join(screen_text(app).split())
            assert "--max-model-len is an option at the start" in text
            assert "w sets" not in text
            app.change(State(model="kimi-k2-thinking", max_model_len=65536, weight_bytes="0.5"))
            await settle(pilot)
            assert "unique tokens" in screen_text(app)

    run(test)


@pytest.mark.parametrize(
    ("sparse", "label"), [(True, "decode of 4, bound (dense attention)"), (False, "decode of 4, bound ")]
)
def test_the_bound_of_dense_attention_is_called_that_beside_sparse(sparse: bool, label: str) -> None:
    async def test() -> None:
        async with opened(replace(V32, gpu="h200-sxm-141gb", sparse=sparse)) as (app, pilot):
            await press(pilot, "4")
            view = app.query_one("#capacity", SheetView)
            assert view.sheet
            lines = [line for line, _role in view.sheet.lines if line.startswith("decode of")]
            assert [line.startswith(label) for line in lines] == [True]
            assert ("dense" in lines[0]) == sparse

    run(test)


def test_an_axis_along_which_nothing_moves_says_so_under_the_chart() -> None:
    def below(app: Explorer) -> str:
        return " ".join(" ".join(screen_text(app).splitlines()[-6:-2]).split())

    async def test() -> None:
        async with opened(replace(H100, over="batch")) as (app, pilot):
            assert "No line over batch: one intensity for all. Ridge at heads x queries = 156.4" in below(app)
            await press(pilot, "o")
            assert app.state.over == "context"
            assert "No line" not in below(app)
            assert "by context alone" in below(app)
            app.change(replace(V32, sparse=True, over="batch"))
            await settle(pilot)
            assert "No line over batch: one intensity for all." in below(app)  # and no one ridge to tell

        async with opened(replace(H100, over="batch"), LARGE) as (app, pilot):
            reason = "(memory binds: one intensity for all)"
            text = " ".join(" ".join(line[:99] for line in screen_text(app).splitlines()).split())
            assert f"Not drawn: absorbed and naive attention over batch {reason}." in text
            app.change(H100)
            await settle(pilot)
            text = " ".join(" ".join(line[:99] for line in screen_text(app).splitlines()).split())
            assert f"Not drawn: naive attention over TP {reason}." in text

    run(test)


def test_a_number_of_an_engine_is_explained_as_one_of_dispatch() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await explain(pilot, "6")
            text = screen_text(app)
            assert "A figure of `dispatch`" in text
            assert "`explore`" not in text

    run(test)


class Late(Explorer):
    """One whose numbers are there only when they are let in."""

    def _begin(self) -> None:
        pass

    def let_in(self) -> None:
        super()._begin()


@pytest.mark.parametrize(
    ("keys", "pausing", "path"),
    [
        ("c s 2 e", True, "absorbed.kernels[0].flop"),
        ("c s 2 down e", True, "absorbed.kernels[1].flop"),
        ("c s 2 e", False, "absorbed.kernels[0].flop"),
    ],
)
def test_keys_that_come_before_the_numbers_are_done_when_these_are_there(
    keys: str, pausing: bool, path: str, tmp_path: Path
) -> None:
    from textual.events import Key

    async def test() -> None:
        app = Late(H100, folder=tmp_path)
        async with app.run_test(size=SMALL) as pilot:
            for key in keys.split():
                app.post_message(Key(key, key if len(key) == 1 else None))
                if pausing:
                    await pilot.pause()
            if pausing:
                assert not list(tmp_path.iterdir())
                assert len(app.screen_stack) == 1
            app.let_in()
            await until(pilot, lambda: isinstance(app.screen, Reading))
            assert isinstance(app.screen, Reading)
            assert f"{path} = " in screen_text(app).splitlines()[1]

    run(test)
    saved = json.loads((tmp_path / "explore-1.json").read_text())
    assert saved["inputs"]["context"] == 8192
    assert len(list(tmp_path.iterdir())) == 2


def test_leaving_waits_for_what_was_to_be_saved_before_the_numbers_were_there(tmp_path: Path) -> None:
    import asyncio

    async def test() -> None:
        app = Late(H100, folder=tmp_path)
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("s", "c", "q")
            assert app.return_value is None
            app.let_in()
            while app.return_value is None:
                await asyncio.sleep(0.01)

    run(test)
    assert json.loads((tmp_path / "explore-1.json").read_text())["inputs"]["context"] == 4096


WIDE_NAME = "深度求索模型實驗室的混合專家大型語言模型 🚀 第三版"


def test_a_name_of_wide_characters_loses_nothing_at_80_columns(tmp_path: Path) -> None:
    from rich.cells import cell_len

    from mla_calc.data import presets_root

    text = (presets_root() / "models" / "deepseek-v3.yaml").read_text()
    path = tmp_path / "專家🚀.yaml"
    path.write_text(text.replace("name: DeepSeek-V3\n", f"name: {WIDE_NAME}\n"))
    state = replace(H100, model=str(path), context=1 << 20)  # longer than the model allows, which notes say by name

    def without_blanks(text: str) -> str:
        return "".join(text.split())

    async def test() -> None:
        async with opened(state) as (app, pilot):
            named = 0
            for key, name in list(zip("123456", TITLES, strict=True))[1:]:
                app.set_focus(None)
                await press(pilot, key)
                view = app.query_one(f"#{name}", SheetView)
                assert view.sheet
                lines = [line for line, _ in view.sheet.lines]
                assert max(map(cell_len, lines)) <= 79
                found: Any = view.found
                named += sum(WIDE_NAME in note for note in found.notes)
                told = without_blanks("".join(lines))
                assert all(without_blanks(note) in told for note in (found.sentence, *found.notes))
            assert named
            knobs = screen_text(app).splitlines()[0]
            assert "🚀.yaml› GPU ‹" in knobs
            assert cell_len(knobs.partition("›")[0]) == len("Model ‹") + 16

    run(test)


def test_a_gpu_that_an_engine_does_not_know_is_a_note() -> None:
    async def test() -> None:
        async with opened(replace(H100, gpu="tpu-v5p"), LARGE) as (app, _):
            found: Any = app.query_one("#engines", SheetView).found
            assert "no ladder of vLLM" in found.message or any("no ladder of vLLM" in note for note in found.notes)
            wrong: Any = app.query_one("#capacity", SheetView).found
            assert wrong.message if hasattr(wrong, "message") else wrong.results

    run(test)


def test_each_engine_says_why_it_does_not_answer() -> None:
    from mla_calc.explore.answers import Wrong
    from mla_calc.explore.panels import panel_named

    engines = panel_named("engines")

    async def test() -> None:
        async with opened(replace(H100, gpu="tpu-v5p")) as (app, pilot):
            await press(pilot, "6")
            text = " ".join(screen_text(app).split())
            assert "vLLM: no ladder of vLLM was read" in text
            assert "SGLang: no backend of these engines is recorded" in text

    run(test)
    assert engines.made(H100, (Wrong("a", "do b"), Wrong("a", "do c"))) == Wrong("a", "do b; do c")


def test_an_input_of_both_engines_has_the_sources_of_both() -> None:
    from mla_calc.explore.answers import Answers
    from mla_calc.explore.panels import panel_named
    from mla_calc.report.record import Report

    found = [Answers().answer(H100, name) for name in ("dispatch-vllm", "dispatch-sglang")]
    reports = [each for each in found if isinstance(each, Report)]
    given = ({"threads": ("a.py:1", "b.py:2")}, {"threads": ("c.py:3", "a.py:1"), "waves": ("d.py:4",)})
    both = [replace(report, input_sources=each) for report, each in zip(reports, given, strict=True)]
    merged = panel_named("engines").made(H100, tuple(both))
    assert isinstance(merged, Report)
    assert merged.input_sources == {"threads": ("a.py:1", "b.py:2", "c.py:3"), "waves": ("d.py:4",)}


@pytest.mark.parametrize("size", [(79, 24), (80, 23), (60, 20), (20, 5)])
def test_a_terminal_that_is_too_small_says_so_until_it_is_not(size: tuple[int, int]) -> None:
    needed = f"80x24 at least; this is {size[0]}x{size[1]}"

    async def test() -> None:
        async with opened(size=size) as (app, pilot):
            assert " ".join(screen_text(app).split()).startswith(needed)
            assert "Model" not in screen_text(app)
            await pilot.resize_terminal(*SMALL)
            await settle(pilot)
            assert screen_text(app).startswith("Model")
            assert needed not in screen_text(app)
            await press(pilot, "c")
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert " ".join(screen_text(app).split()).startswith(needed)
            assert app.state.context == 8192

    run(test)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_where_the_ridge_is_crossed_is_on_the_screen(size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(size=size) as (app, pilot):
            assert "heads x queries = 156.4 by context alone" in " ".join(screen_text(app).split())
            app.change(replace(V32, sparse=True))  # its indexer is divided by no TP: no one number
            await settle(pilot)
            if size == SMALL:
                assert "no one number of heads x queries" in screen_text(app)

    run(test)


def test_a_plotext_that_cannot_be_loaded_costs_the_chart_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "plotext", None)

    async def test() -> None:
        async with opened() as (app, pilot):
            assert "no chart: plotext is not installed" in screen_text(app)
            assert "295.3 FLOP/B" in screen_text(app)  # 989.4 TFLOP/s over 3.35 TB/s
            await press(pilot, "2")
            assert "absorbed: attention" in screen_text(app)

    run(test)


def test_explaining_is_worked_out_beside_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from mla_calc.explore import answers

    asked, threads = answers._asked, []

    def noted(state: State, name: str, options: Any, explain: bool) -> Any:
        threads.append((explain, threading.get_ident()))
        return asked(state, name, options, explain)

    monkeypatch.setattr(answers, "_asked", noted)

    async def test() -> None:
        async with opened() as (_, pilot):
            for key in "123456":
                await explain(pilot, key)
                await press(pilot, "escape")

    run(test)
    beside = {thread for explain, thread in threads if explain}
    assert beside
    assert threading.get_ident() not in beside


def test_an_explanation_that_comes_after_a_change_is_not_shown() -> None:
    from mla_calc.explore.answers import Answers
    from mla_calc.explore.panels import panel_named

    found = panel_named("kernels").found(Answers(), H100, explain=True)

    async def test() -> None:
        async with opened() as (app, pilot):
            await press(pilot, "c")
            app._explained(H100, None, found)
            await settle(pilot)
            assert len(app.screen_stack) == 1
            app._explained(app.state, None, found)
            assert len(app.screen_stack) == 2
            await settle(pilot)

    run(test)


def test_keys_and_clicks_go_to_panels() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            for key, name in zip("123456", TITLES, strict=True):
                app.set_focus(None)
                await press(pilot, key)
                assert [view.id for view in app.query(".panel.-shown")] == [name]
            await press(pilot, "right_square_bracket")
            assert app.active == "roofline"
            await press(pilot, "left_square_bracket")
            assert app.active == "engines"
            await pilot.click("#tab-cache")
            await settle(pilot)
            assert app.active == "cache"
            assert "latent, cached" in screen_text(app)

    run(test)


def test_all_panels_change_at_once_where_there_is_room() -> None:
    async def test() -> None:
        async with opened(size=LARGE) as (app, pilot):
            assert len(app.query(".panel.-shown")) == 6
            views: list[Any] = [*app.query(SheetView), *app.query(ChartView)]
            before = {view.id: view.found.results for view in views}
            await press(pilot, "c")
            assert {view.id for view in views if view.found.results != before[view.id]} == set(TITLES)

    run(test)


def test_a_resize_goes_from_tabs_to_all_panels_and_back() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await pilot.resize_terminal(*LARGE)
            await settle(pilot)
            assert len(app.query(".panel.-shown")) == 6
            await pilot.resize_terminal(*SMALL)
            await settle(pilot)
            assert len(app.query(".panel.-shown")) == 1
            assert all(len(line) <= 80 for line in screen_text(app).splitlines())

    run(test)


def test_a_number_is_selected_and_explained() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await press(pilot, "2", "down", "right")
            view = app.query_one("#kernels", SheetView)
            assert view.selected
            assert view.selected.path == "absorbed.kernels[1].bytes"
            await explain(pilot, "up", "left")
            assert "absorbed.kernels[0].flop" in screen_text(app)
            await press(pilot, "escape")
            spot = view.sheet.spots[7] if view.sheet else None
            assert spot
            await pilot.click(view, offset=(spot.start, spot.line))
            await settle(pilot)
            assert view.selected == spot

    run(test)


def test_an_explanation_has_formula_numbers_and_source() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await explain(pilot, "3")
            text = " ".join(screen_text(app).split())
            # 61 layers of 576 values of two bytes
            assert "70,272" in text
            assert "61 * 1152" in text or "61 * (576 * 2)" in text or "61 *" in text
            await press(pilot, "end")
            await explain(pilot, "escape", "1")
            assert "ridge" in screen_text(app)

    run(test)


def test_the_same_number_stays_selected_after_a_change() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await press(pilot, "4", "down", "down", "down")
            view = app.query_one("#capacity", SheetView)
            assert view.selected
            path = view.selected.path
            await press(pilot, "b", "c")
            assert view.selected.path == path

    run(test)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("panel", ["2", "4", "5"])
def test_after_many_changes_the_screen_is_as_if_opened_so(size: tuple[int, int], panel: str) -> None:
    """Of a sheet only the lines that changed are drawn anew: none of them may be forgotten."""

    async def test() -> None:
        async with opened(V32, size=size) as (app, pilot):
            await press(pilot, panel)
            view = app.query_one(f"#{app.active}", SheetView)
            view.scroll_to(y=2, animate=False)
            for key in "mMpPtTaAubcuUbc":
                await press(pilot, key)  # and none that draws a whole panel, as to select another number does
            found, state, offset = screen_text(app), app.state, view.scroll_offset
        async with opened(state, size=size) as (fresh, again):
            await press(again, panel)
            fresh.query_one(f"#{fresh.active}", SheetView).scroll_to(*offset, animate=False)
            await settle(again)
            assert screen_text(fresh).splitlines()[:-2] == found.splitlines()[:-2]  # but for what the last key said

    run(test)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_was_scrolled_past_a_shorter_sheet_comes_back(size: tuple[int, int]) -> None:
    async def test() -> None:
        async with opened(size=size) as (app, pilot):
            await press(pilot, "4")
            view = app.query_one("#capacity", SheetView)
            view.scroll_end(animate=False)
            await settle(pilot)
            assert view.scroll_offset.y == view.virtual_size.height - view.scrollable_content_region.height > 0
            app.change(replace(app.state, model="glm-5", tp=1, weight_bytes="4"))  # one line: it does not fit
            await settle(pilot)
            assert view.sheet is not None
            assert view.virtual_size.height == len(view.sheet.lines)
            assert view.scroll_offset.y == max(0, view.virtual_size.height - view.scrollable_content_region.height)
            assert view.sheet.lines[view.scroll_offset.y][0].strip() in screen_text(app)

    run(test)


def test_lists_are_narrowed_by_typing() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            app.query_one("#knob-gpu").focus()
            await press(pilot, "enter", *"b200")
            names = [str(option.id) for option in app.screen.query_one(OptionList).options]
            assert names == ["b200-sxm-180gb", "gb200-186gb"]
            await press(pilot, "down", "enter")
            assert app.state.gpu == "gb200-186gb"
            await press(pilot, "enter", *"zzz", "enter", "escape")
            assert app.state.gpu == "gb200-186gb"

    run(test)


def test_a_file_of_ones_own_is_in_the_list(tmp_path: Path) -> None:
    from mla_calc.data import presets_root

    path = tmp_path / "mine.yaml"
    path.write_text((presets_root() / "models" / "kimi-k2.yaml").read_text())
    started = replace(H100, model=str(path))

    async def test() -> None:
        async with opened(started) as (app, pilot):
            await press(pilot, "m")
            assert app.state != started
            await press(pilot, "M")
            assert app.state == started
            app.query_one("#knob-model").focus()
            await press(pilot, "enter", *"minicpm3", "enter")
            assert app.state.model == "minicpm3-4b"
            await press(pilot, "enter", "home", "enter")
            assert app.state == started
            await press(pilot, "enter")
            listed = app.screen.query_one(OptionList)
            assert (listed.options[0].id, listed.highlighted) == (str(path), 0)

    run(test)


def test_saving_takes_free_names_and_says_them(tmp_path: Path) -> None:
    (tmp_path / "explore-1.svg").write_text("mine")

    async def test() -> None:
        async with opened(folder=tmp_path) as (app, pilot):
            await press(pilot, "s")
            told = app.query_one("#status").text  # type: ignore[attr-defined]
            assert told == f"written: explore-2.json and explore-2.svg in {tmp_path}"

    run(test)
    assert (tmp_path / "explore-1.svg").read_text() == "mine"
    assert json.loads((tmp_path / "explore-2.json").read_text())["inputs"]["gpu"] == "h100-sxm5-80gb"
    assert (tmp_path / "explore-2.svg").stat().st_size > 1000


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(size=LARGE, folder=tmp_path / "missing") as (app, pilot):
            await press(pilot, "s")
            said = screen_text(app).splitlines()[-2].strip()
            assert said == f"! nothing is saved: No such file or directory: {tmp_path / 'missing'}"

    run(test)


def test_the_current_folder_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Explorer(H100).folder == tmp_path


def test_leaving_waits_for_what_is_being_saved(tmp_path: Path) -> None:
    import asyncio

    from textual.events import Key

    async def test() -> None:
        async with opened(folder=tmp_path) as (app, _):
            for key in "ssq":
                app.post_message(Key(key, key))
            while app.return_value is None:
                await asyncio.sleep(0.01)
        assert app.return_value == H100

    run(test)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "explore-1.json", "explore-1.svg", "explore-2.json", "explore-2.svg",
    ]  # fmt: skip


def test_command_lines_and_keys_are_shown() -> None:
    async def test() -> None:
        async with opened(size=LARGE) as (app, pilot):
            await press(pilot, "y")
            text = " ".join(screen_text(app).replace("│", " ").split())
            assert "mla-calc explore --model deepseek-v3 --gpu h100-sxm5-80gb --tp 8" in text
            assert "--rows 1x1:4095" in text
            await press(pilot, "y", "question_mark")
            text = screen_text(app)
            assert all(f"{knob.key} / {knob.key.upper()}" in text for knob in KNOBS)
            await press(pilot, "question_mark")
            assert not isinstance(app.screen, Reading)

    run(test)


def test_light_and_dark() -> None:
    async def test() -> None:
        async with opened(light=True) as (app, pilot):
            assert app.theme == "textual-light"
            await press(pilot, "v")
            assert app.theme == "textual-dark"

    run(test)


@pytest.mark.parametrize("opening", ["action_keys", "action_commands", "list_values"])
def test_leaving_while_a_dialog_opens_is_no_crash(opening: str) -> None:
    async def test() -> None:
        async with opened() as (app, _):
            getattr(app, opening)(*(["gpu"] if opening == "list_values" else []))
            app.exit(app.state)
        assert app.return_value == H100
        assert not app.return_code

    run(test)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_quitting_returns_the_state(key: str) -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            await pilot.press("c", key)
        assert app.return_value == replace(H100, context=8192)

    run(test)


def test_clicks_on_the_last_line_are_its_keys() -> None:
    async def test() -> None:
        async with opened() as (app, pilot):
            line = app.query_one(KeyLine)
            keys = {item.key: item for item in line.shown}
            assert set(keys) == {"e", "s", "y", "v", "?", "q"}
            await pilot.click(line, offset=(keys["v"].start + 1, 0))
            await settle(pilot)
            assert app.theme == "textual-light"
            await pilot.click(line, offset=(keys["?"].start + 1, 0))
            await settle(pilot)
            assert isinstance(app.screen, Reading)

    run(test)


def test_no_key_has_two_meanings() -> None:
    from mla_calc.explore.keys import BINDINGS

    keys = [binding.key for binding in BINDINGS]
    assert len(keys) == len(set(keys))


def test_many_rows_are_priced_beside_the_screen() -> None:
    async def test() -> None:
        async with opened(replace(H100, batch=100), LARGE) as (app, pilot):
            await until(pilot, lambda: "being priced" not in screen_text(app))
            assert "being priced" not in screen_text(app)
            found: Any = app.query_one("#engines", SheetView).found
            assert found.results["vLLM"]["batch"]["absorbed_rows"] == 100

    run(test)


@pytest.mark.parametrize(
    ("light", "system", "coloured"),
    [(True, "STANDARD", False), (False, "STANDARD", True), (True, "EIGHT_BIT", True), (True, "TRUECOLOR", True)],
)
def test_on_white_no_series_has_one_of_sixteen_colours(
    light: bool, system: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.color import ColorSystem

    monkeypatch.delenv("NO_COLOR", raising=False)

    async def test() -> None:
        async with opened(light=light) as (app, pilot):
            app.console._color_system = ColorSystem[system]
            await press(pilot, "c")
            view = app.query_one(ChartView)
            lines = [list(view.render_line(y)) for y in range(view.size.height)]
            naive = next(line for line in lines if "".join(part.text for part in line).startswith("naive kernels"))
            assert (len({part.style and part.style.color for part in naive}) > 1) == coloured

    run(test)


def test_without_colour_the_series_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def test() -> None:
        async with opened() as (app, _):
            assert app.no_color
            styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip]
            text = screen_text(app)
            colours = {style.color.triplet for style in styles if style and style.color and style.color.triplet}
            assert all(max(each) - min(each) <= 1 for each in colours)
            assert "absorbed" in text
            assert "naive" in text

    run(test)
