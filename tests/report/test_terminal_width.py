"""What is printed keeps to the columns that there are, on a terminal or by COLUMNS, and breaks no word."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mla_calc.cli.main import run
from mla_calc.report import terminal
from mla_calc.report.record import Cell, Report, Table
from tests.report import sample_charts as sample

Print = Callable[..., str]
LINES = (
    "cache --model dsv3",
    "cache --model dsv3 --vs llama3-70b",
    "flops --model dsv3 --gpu h100",
    "roofline --model dsv3 --gpu h100 --format table",
    "intensity --model dsv3 --gpu h100",
    "crossover --model dsv3 --gpu h100",
)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Print:
    """What a command prints into a pipe, with COLUMNS as given."""

    def of(line: str, columns: str | None = None) -> str:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        assert run(line.split()) == 0
        found = capsys.readouterr()
        assert found.err == ""
        return found.out

    return of


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("columns", [40, 60, 79])
def test_columns_say_how_wide_a_pipe_is(printed: Print, line: str, columns: int) -> None:
    found = printed(line, str(columns))
    assert max(map(len, found.splitlines())) <= columns


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("columns", [40, 60])
def test_no_word_is_broken(printed: Print, line: str, columns: int) -> None:
    """Every word that stands in the whole of it, which has room for all, stands in the narrow one too."""
    mark = re.compile(r"[A-Za-z][\w()-]+")
    whole, narrow = (printed(line, wide).partition("\nTFLOP/s")[0] for wide in ("200", str(columns)))
    assert set(mark.findall(narrow)) == set(mark.findall(whole))


def test_a_chart_is_as_wide_as_columns_say(printed: Print) -> None:
    line = "roofline --model dsv3 --gpu h100"
    widths = {columns: max(map(len, printed(line, columns).splitlines()[-24:])) for columns in ("60", "120")}
    assert 50 <= widths["60"] <= 60
    assert 110 <= widths["120"] <= 120


@pytest.mark.parametrize("columns", ["", "0", "many", "-5", "8.5", "²"])
def test_columns_that_are_no_number_are_none(printed: Print, columns: str) -> None:
    assert printed("flops --model dsv3", columns) == printed("flops --model dsv3")


def test_a_file_does_not_depend_on_columns(printed: Print, tmp_path: Path) -> None:
    path = tmp_path / "flops.txt"
    assert printed(f"flops --model dsv3 --output {path}", "40") == ""
    assert path.read_text() == printed("flops --model dsv3")


def test_a_table_that_does_not_fit_has_its_entries_one_below_the_other() -> None:
    headers = ("pump", "head", "what it does", "lift")
    values = [{"head": 1234567, "lift": 89.5}]
    row = ("main stage", Cell("[0].head"), "lifts water from the fen", Cell("[0].lift", "number"))
    report = replace(sample.REPORT, results=values, tables=(Table(headers, (row,), "of the works"),), chart=None)
    assert shown(report, 80).split("\n")[2:5] == [
        "  of the works",
        "  pump             head  what it does              lift",
        "  main stage  1,234,567  lifts water from the fen  89.5",
    ]
    assert shown(report, 30).split("\n")[2:8] == [
        "  of the works",
        "  pump  main stage",
        "    head: 1,234,567",
        "    what it does: lifts water",
        "    from the fen",
        "    lift: 89.5",
    ]
    assert "1,234,567" in shown(report, 10)


def test_a_word_longer_than_any_is_broken_rather_than_the_table() -> None:
    report = replace(sample.REPORT, tables=(Table(("name", "n"), (("x" * 200, "1"),)),), chart=None)
    lines = shown(report, 60).split("\n")
    assert max(map(len, lines)) <= 60
    assert sum(line.count("x") for line in lines) == 200


def test_no_color_leaves_weight_alone() -> None:
    """As no-color.org has it: colour is what is not added; bold stays."""
    report = replace(sample.REPORT, tables=(Table(("pump",), (("main",),), "works"),))
    codes = set(re.findall(r"\x1b\[([\d;]*)m", shown(report, 80, plain=False, no_color=True)))
    assert codes <= {"0", "1", "2"}
    assert "1" in codes


def shown(report: Report, width: int, plain: bool = True, **options: Any) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, height=24, force_terminal=True, color_system="standard",
                      highlight=False, **options)  # fmt: skip
    terminal.show(report, False, console)
    if not plain:
        return buffer.getvalue()
    return re.sub(r"\x1b\[[\d;]*m| +(?=\n)", "", buffer.getvalue())
