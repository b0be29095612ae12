from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from mla_calc.cli.main import run as mla_calc
from mla_calc.explore.app import Explorer
from mla_calc.explore.panels import PANELS
from mla_calc.explore.saving import free_names, save
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
    assert free_names(tmp_path) == (tmp_path / "explore-2.json", tmp_path / "explore-2.svg")


def test_an_answer_that_there_is_not_is_saved_as_null_with_a_note(tmp_path: Path) -> None:
    from mla_calc.explore.answers import Answers

    (target,) = save(Answers(), replace(H100, tp=3), tmp_path)
    saved = json.loads(target.read_text())
    assert saved["results"]["flops"] is None
    assert any("TP 3 does not divide" in note for note in saved["notes"])
    assert not list(tmp_path.glob("*.svg"))


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
