from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from mla_calc.cli.main import run as mla_calc
from mla_calc.explore.app import Explorer
from mla_calc.explore.panels import PANELS
from mla_calc.explore.saving import save, taken_names
from mla_calc.explore.sheet import Sheet, sheet_of
from mla_calc.explore.sheet_view import SheetView
from mla_calc.explore.state import COMMANDS, State, command
from mla_calc.report import format as fmt
from mla_calc.report.record import Cell, Report, lookup

from .running import H100, LARGE, opened, run

STATES = (
    State(batch=4, queries=2),
    replace(H100, batch=16, context=16384),
    State(model="deepseek-v3.2", gpu="b200-sxm-180gb", tp=4, dp=2, batch=6, dtype="fp8_ds_mla", sparse=True),
    State(model="kimi-k2-thinking", max_model_len=65536, weight_bytes="0.5"),
    State(model="ling-3.0-flash", gpu="h100-sxm5-80gb", cache_budget="40GiB"),
)


def told(capsys: pytest.CaptureFixture[str], state: State, name: str) -> object:
    """The results of the printed command line."""
    assert mla_calc([*shlex.split(command(state, name))[1:], "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.model + state.gpu)
def test_every_number_is_that_of_the_printed_command(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, tuple[Report, Sheet]] = {}

    async def look() -> None:
        async with opened(state, LARGE) as (app, _):
            for panel in PANELS[1:]:
                view = app.query_one(f"#{panel.name}", SheetView)
                assert isinstance(view.found, Report), (panel.name, view.found)
                assert view.sheet
                found[panel.name] = view.found, view.sheet

    run(look)
    for panel in PANELS[1:]:
        report, sheet = found[panel.name]
        answers = [told(capsys, state, name) for name in panel.asks]
        results = dict(zip(("vLLM", "SGLang"), answers, strict=True)) if panel.name == "engines" else answers[0]
        cells = [cell for table in report.tables for row in table.rows for cell in row if isinstance(cell, Cell)]
        assert len(sheet.spots) > 5
        for spot in sheet.spots:
            shown = sheet.lines[spot.line][0][spot.start : spot.end].strip()
            value = lookup(results, spot.path)
            # the first line of a text that is folded
            assert shown in {fmt.shown(value, cell.kind)[: len(shown)] for cell in cells if cell.path == spot.path}
            assert shown


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.model + state.gpu)
def test_the_roofline_draws_the_results_of_the_printed_command(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    async def look() -> object:
        async with opened(state) as (app, _):
            report = app.view("roofline").found
            assert isinstance(report, Report)
            return report.results

    import asyncio

    assert json.loads(json.dumps(asyncio.run(look()))) == told(capsys, state, "roofline")


def test_saved_numbers_are_those_of_the_printed_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mla_calc.explore.answers import Answers

    target, figure = save(Answers(), H100, tmp_path)
    saved = json.loads(target.read_text())
    assert saved["schema"] == "mla-calc/explore/1"
    assert saved["inputs"]["context"] == 4096
    for name in COMMANDS:
        assert saved["results"][name] == told(capsys, H100, name)
    assert figure.read_text().lstrip().startswith("<?xml")
    assert taken_names(tmp_path) == (tmp_path / "explore-2.json", tmp_path / "explore-2.svg")


def test_what_was_asked_of_weights_and_room_is_saved(tmp_path: Path) -> None:
    from mla_calc.explore.answers import Answers

    target, _ = save(Answers(), replace(H100, weight_bytes="1", max_model_len=65536, cache_budget="40GiB"), tmp_path)
    saved = json.loads(target.read_text())
    names = ("weight_bytes", "max_model_len", "cache_budget")
    assert [saved["inputs"][name] for name in names] == ["1", 65536, "40GiB"]
    assert saved["results"]["capacity"]["per_gpu"]["cache_bytes"] == 40 << 30
    # v_up of a rank: 16 heads x 512 x 128 weights of a byte
    assert saved["results"]["flops"]["absorbed"]["kernels"][2]["weight_bytes"] == 16 * 512 * 128
    target, _ = save(Answers(), H100, tmp_path)
    assert [json.loads(target.read_text())["inputs"][name] for name in names] == [None, None, None]


def test_an_answer_that_there_is_not_is_saved_as_null_with_a_note(tmp_path: Path) -> None:
    from mla_calc.explore.answers import Answers

    (target,) = save(Answers(), replace(H100, tp=3), tmp_path)
    saved = json.loads(target.read_text())
    assert saved["results"]["flops"] is None
    assert any("TP 3 does not divide" in note for note in saved["notes"])
    assert not list(tmp_path.glob("*.svg"))


def test_names_that_are_taken_at_once_are_different(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        pairs = [each.result() for each in [pool.submit(taken_names, tmp_path) for _ in range(64)]]
    assert len(set(pairs)) == 64
    assert sorted(tmp_path.iterdir()) == sorted(path for pair in pairs for path in pair)


def test_a_file_that_appears_after_its_name_was_looked_for_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mla_calc.explore.answers import Answers

    (tmp_path / "explore-1.json").write_text("mine")
    (tmp_path / "explore-2.svg").write_text("mine")
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as it was a moment ago
    assert {path.stem for path in save(Answers(), H100, tmp_path)} == {"explore-3"}
    assert (tmp_path / "explore-1.json").read_text() == "mine"
    assert (tmp_path / "explore-2.svg").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {
        "explore-1.json", "explore-2.svg", "explore-3.json", "explore-3.svg",
    }  # fmt: skip


def test_a_save_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mla_calc.errors import InputError
    from mla_calc.explore import saving
    from mla_calc.explore.answers import Answers

    def full(*_: object) -> None:
        raise InputError("--output explore-1.svg: cannot be written: No space left on device")

    monkeypatch.setattr(saving, "write_figure", full)
    with pytest.raises(InputError, match=r"nothing is saved: explore-1\.svg: cannot be written: No space left"):
        save(Answers(), H100, tmp_path)
    assert not list(tmp_path.iterdir())


def test_who_asks_at_once_gets_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event, current_thread, main_thread

    from mla_calc.explore import answers as module

    begun, may_end = Event(), Event()

    def asked(*_: object) -> module.Wrong:
        if current_thread() is not main_thread():
            begun.set()
            may_end.wait()
        return module.Wrong("an answer")

    monkeypatch.setattr(module, "_asked", asked)
    answers = module.Answers()
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(answers.answer, H100, "flops")
        begun.wait()
        first = answers.answer(H100, "flops")  # which does not wait for the other
        may_end.set()
        assert beside.result() is first
    assert answers.answer(H100, "flops") is first


def test_the_oldest_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    from mla_calc.explore import answers as module

    monkeypatch.setattr(module, "MOST_KEPT", 2)
    monkeypatch.setattr(module, "_asked", lambda *_: module.Wrong("an answer"))
    answers = module.Answers()
    states = [replace(H100, batch=batch) for batch in (1, 2, 3)]
    for state in states:
        answers.answer(state, "flops")
    assert [answers.known(state, "flops") for state in states] == [False, True, True]


@pytest.mark.parametrize("width", [30, 60, 78, 99])
def test_a_sheet_is_as_narrow_as_its_numbers_allow(width: int) -> None:
    from mla_calc.explore.answers import Answers

    report = Answers().answer(State(), "crossover")
    assert isinstance(report, Report)
    sheet = sheet_of(report, width)
    assert sheet.width <= max(width, 78)
    texts = [text for text, role in sheet.lines if role == "note"]
    assert " ".join(texts).split() == " ".join(report.notes).split()


def test_the_app_has_no_numbers_of_its_own() -> None:
    assert Explorer(State()).answers is None


def test_what_a_number_without_a_formula_is() -> None:
    from mla_calc.explore.answers import Answers
    from mla_calc.explore.explaining import _whence

    report = Answers().answer(State(), "crossover")
    assert isinstance(report, Report)
    assert "setting" in _whence(report, "time.by_context[0].context")
    assert "measurement" in _whence(report, "measured[0].low")
    assert "estimate is the lower one" in _whence(report, "estimated.by_context[0].first_queries_naive_wins")
    assert _whence(report, "flop.unheard_of") == "A figure of `crossover`: no formula of its own is recorded."
