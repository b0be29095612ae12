"""The measuring half of `validate` where a defect ends the run: the rows until then are kept, and it is said where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.validate_measure import Wanted, _kept_run
from mla_calc.validate import measure as measure_module
from mla_calc.validate.record import Run
from mla_calc.validate.store import read_run
from tests.validate.runs import a_row, a_run


def kept(monkeypatch: pytest.MonkeyPatch, path: Path, loop: Callable[[Callable[[Run], None]], Run]) -> Run:
    monkeypatch.setattr(measure_module, "measure", lambda *_, checkpoint, **__: loop(checkpoint))
    nothing: Any = None
    return _kept_run(nothing, nothing, nothing, nothing, Wanted(None, True, 0, False, path))


def test_a_defect_leaves_the_rows_and_says_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(a_row())

    def fails(checkpoint: Callable[[Run], None]) -> Run:
        checkpoint(run)
        raise TypeError("ours")

    with pytest.raises(TypeError, match="ours"):
        kept(monkeypatch, tmp_path / "mine.json", fails)
    assert read_run(tmp_path / "mine.json") == run
    assert capsys.readouterr().err == f"mla-calc: the rows until then are in {tmp_path / 'mine.json'}\n"


def test_where_nothing_was_written_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: Callable[[Run], None]) -> Run:
        raise TypeError("ours")

    with pytest.raises(TypeError, match="ours"):
        kept(monkeypatch, tmp_path / "mine.json", fails)
    assert capsys.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


def test_the_last_word_is_the_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = a_run(a_row(), a_row(queries=2))

    def ends(checkpoint: Callable[[Run], None]) -> Run:
        checkpoint(replace(run, rows=run.rows[:1]))
        return run

    assert kept(monkeypatch, tmp_path / "mine.json", ends) == run
    assert read_run(tmp_path / "mine.json") == run
