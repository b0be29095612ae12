"""Columns to CSV, JSON and Parquet: the values survive, and a file is whole or untouched."""

from __future__ import annotations

import builtins
import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mla_calc.errors import InputError
from mla_calc.report.columns import Envelope, chosen_format, csv_lines, json_lines, write

ENVELOPE = Envelope(schema="mla-calc/sweep/1", inputs={"tp": [1, 2]}, notes=("a note",), sources=("a “source”",))
FLOATS = [1e-5, 7.36256e-06, 0.1, 1 / 3, 1e22, 5.0]
INTEGERS = [0, 1, 2**53 + 1, 2**63 - 1, 10**18 + 7, 3]
WORDS = ["absorbed", "naive", "equal", "absorbed", "naive", "equal"]


def two_chunks() -> Iterator[dict[str, Any]]:
    for part in (slice(0, 4), slice(4, 6)):
        yield {
            "tp": np.array([1, 1, 1, 2, 2, 2])[part],
            "naive.flop": np.array(INTEGERS, dtype=np.int64)[part],
            "fewer_flop": np.array(WORDS, dtype=object)[part],
            "naive.bound_s": np.array(FLOATS)[part],
        }


def failing_chunks() -> Iterator[dict[str, Any]]:
    yield next(two_chunks())
    raise KeyboardInterrupt


def test_csv_equals_the_csv_module() -> None:
    expected = io.StringIO()
    writer = csv.writer(expected, lineterminator="\n")
    writer.writerow(["tp", "naive.flop", "fewer_flop", "naive.bound_s"])
    writer.writerows(zip([1, 1, 1, 2, 2, 2], INTEGERS, WORDS, FLOATS, strict=True))
    assert "".join(csv_lines(two_chunks(), ENVELOPE)) == expected.getvalue()


def test_json_nests_dotted_names_and_keeps_integers() -> None:
    document = json.loads("".join(json_lines(two_chunks(), ENVELOPE)))
    assert list(document) == ["schema", "inputs", "results", "notes", "sources"]
    assert document["schema"] == "mla-calc/sweep/1"
    assert (document["notes"], document["sources"]) == (["a note"], ["a “source”"])
    assert [record["naive"] for record in document["results"]] == [
        {"flop": flop, "bound_s": bound} for flop, bound in zip(INTEGERS, FLOATS, strict=True)
    ]
    assert all(type(record["naive"]["flop"]) is int for record in document["results"])
    assert [record["fewer_flop"] for record in document["results"]] == WORDS


def test_parquet_has_the_same_values_and_the_envelope(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    output = tmp_path / "o.parquet"
    write(two_chunks(), ENVELOPE, "parquet", output)
    table = parquet.read_table(output)
    assert [str(field.type) for field in table.schema] == ["int64", "int64", "string", "double"]
    assert table["naive.flop"].to_pylist() == INTEGERS
    assert table["naive.bound_s"].to_pylist() == FLOATS
    assert table["fewer_flop"].to_pylist() == WORDS
    assert json.loads(table.schema.metadata[b"mla-calc"])["inputs"] == {"tp": [1, 2]}


@pytest.mark.parametrize("name", ["csv", "json"])
def test_stdout_and_file_have_the_same_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(two_chunks(), ENVELOPE, name, None)
    write(two_chunks(), ENVELOPE, name, tmp_path / "o")
    assert (tmp_path / "o").read_bytes().decode() == capsys.readouterr().out


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_interruption_leaves_the_old_file_whole(name: str, tmp_path: Path) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    output = tmp_path / "o"
    output.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(failing_chunks(), ENVELOPE, name, output)
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize("name", ["csv", "json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_full_device_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write(two_chunks(), ENVELOPE, name, Path("/dev/full"))


def test_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write(two_chunks(), ENVELOPE, "csv", tmp_path / "none" / "o.csv")


def test_reader_that_left_is_no_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def writelines(self, _: Any) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        write(two_chunks(), ENVELOPE, "csv", None)


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        (None, None, "csv"),
        ("json", None, "json"),
        (None, "A.CSV", "csv"),
        (None, "a.json", "json"),
        ("csv", "a.x", "csv"),
    ],
)
def test_format_is_named_or_that_of_the_suffix(name: str | None, output: str | None, expected: str) -> None:
    assert chosen_format(name, Path(output) if output else None) == expected


@pytest.mark.parametrize(
    ("name", "output", "message"),
    [
        ("xml", None, "--format 'xml': one of csv, json, parquet is accepted"),
        ("table", "a.csv", "--format 'table': one of csv, json, parquet is accepted"),
        (None, "a.md", "the suffix .md names no format"),
        (None, "a", r"the suffix \(none\) names no format"),
        ("parquet", None, "--output FILE names a file"),
        ("parquet", "/dev/null", "--output FILE names a file"),
    ],
)
def test_wrong_format(name: str | None, output: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_format(name, Path(output) if output else None)


def test_parquet_without_pyarrow_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'mla-calc\[parquet\]'"):
        chosen_format(None, Path("a.parquet"))
