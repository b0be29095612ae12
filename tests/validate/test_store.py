"""Runs on disk: what is written reads back equal, and what is no run is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mla_calc.errors import InputError
from mla_calc.validate.record import MeasuredCeilings, Skipped
from mla_calc.validate.store import read_run, run_of_text, write_run
from tests.validate.runs import a_row, a_run

TIMES = st.floats(1e-3, 1e9)


@given(times=st.lists(TIMES, min_size=3, max_size=3).map(sorted), rate=st.floats(1e-3, 1e300), order=st.integers(0, 99))
def test_a_run_reads_back_to_the_last_bit(
    times: list[float], rate: float, order: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row = a_row(p10_us=times[0], time_us=times[1], p90_us=times[2], order=order, parts_us={"q_fold": times[1]})
    run = a_run(
        row,
        finished=None,
        ceilings=MeasuredCeilings(copy_bytes_per_s=rate, gemm_flop_per_s={"bf16": rate}),
        skipped=(Skipped(kernel="naïve", case="h=1 µ", reason="no room"),),
        notes=("stopped",),
    )
    path = tmp_path_factory.getbasetemp() / "run.json"
    write_run(run, path)
    assert read_run(path) == run
    json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_an_existing_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("before", encoding="utf-8")
    write_run(a_run(), path)
    assert read_run(path) == a_run()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_run_with_a_nan_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(ValueError, match="JSON compliant"):
        write_run(a_run(a_row(time_us=float("nan"))), path)
    assert not path.exists()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere/run\.json: cannot be written") as error:
        write_run(a_run(), tmp_path / "nowhere" / "run.json")
    assert "--output" not in str(error.value)


def document(**changes: Any) -> dict[str, Any]:
    from mla_calc.report.record import plain

    value: dict[str, Any] = plain(a_run())
    return value | changes


def row(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = document()["rows"][0] | changes
    return {key: entry for key, entry in value.items() if entry is not ...}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], ["one JSON object"]),
        ({}, ["'schema' is missing"]),
        (document(schema="mla-calc/validate-run/2"), ["mla-calc/validate-run/2", "mla-calc/validate-run/1 is read"]),
        (document(schema=None), ["'schema' is missing"]),
        (document(schema=7), ["schema 7"]),
        (document(colour="red"), ["colour"]),
        ({key: entry for key, entry in document().items() if key != "machine"}, ["machine", "missing"]),
        (document(rows=[row(heads=0)]), ["rows.0.heads", "greater than 0"]),
        (document(rows=[row(heads="128")]), ["rows.0.heads"]),
        (document(rows=[row(heads=1.5)]), ["rows.0.heads"]),
        (document(rows=[row(time_us=0)]), ["rows.0.time_us"]),
        (document(rows=[row(time_us=-3)]), ["rows.0.time_us"]),
        (document(rows=[row(time_us=1e-9)]), ["rows[0]", "time_us", "0.001"]),
        (document(rows=[row(time_us=1e300)]), ["rows[0]", "time_us"]),
        (document(rows=[row(), row(kernel="")]), ["rows.1.kernel", "blank"]),
        (document(rows=[row(kernel="a\x1b[31m")]), ["rows.0.kernel"]),
        (document(rows=[row(scope="decode")]), ["rows.0.scope", "decode"]),
        (document(rows=[row(time_us=...)]), ["rows.0.time_us", "missing"]),
        (document(rows=[row(), row(queries=4097)]), ["rows[1]", "4,097 queries", "4,096"]),
        (document(rows=[row(p10_us=101.0)]), ["rows[0]", "p10_us is 101", "time_us is 100"]),
        (document(rows=[row(p90_us=99.0)]), ["time_us is 100", "p90_us is 99"]),
        (document(rows=[row(p10_us=0)]), ["p10_us"]),
    ],
)
def test_what_is_no_run_is_refused(value: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        run_of_text(json.dumps(value), "f.json")
    assert str(error.value).startswith("f.json: ")
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_number_that_json_does_not_know_is_refused(number: str) -> None:
    text = json.dumps(document(rows=[row(time_us=12345.5)])).replace("12345.5", number)
    with pytest.raises(InputError, match=r"f\.json: "):
        run_of_text(text, "f.json")


def test_the_printed_answer_is_no_run() -> None:
    with pytest.raises(InputError, match="mla-calc/validate/1") as error:
        run_of_text('{"schema": "mla-calc/validate/1"}', "f.json")
    assert "--record" in (error.value.hint or "")


def test_the_run_that_the_refusals_start_from_is_read() -> None:
    run = a_run()
    assert run_of_text(json.dumps(document()), "f.json") == run
    assert replace(run, seed=5) != run
