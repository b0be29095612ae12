"""``mla-calc sweep`` from the command line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli import sweep as module
from mla_calc.cli.main import run
from mla_calc.costs.sweeps import SWEEPS


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_both_paths_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--model", "dsv3", "--gpu", "h100", "--tp", "1,8", "-s", "4k"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, second = rows(out)
    # the chapter: folds of 33,554,432 and a core of 278,528 per pair, both split over TP
    assert int(first["absorbed.flop"]) == 33_554_432 + 278_528 * 4096
    assert int(second["absorbed.flop"]) == (33_554_432 + 278_528 * 4096) // 8
    assert float(first["absorbed.total_bound_s"]) == 61 * float(first["absorbed.bound_s"])
    assert first["lower_bound"] == "absorbed"


@pytest.mark.parametrize("command", SWEEPS)
def test_every_sweep_runs_on_its_defaults(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", command, "--model", "dsv3"]) == 0
    (row,) = rows(capsys.readouterr().out)
    assert list(row)[: len(SWEEPS[command].axes)] == list(SWEEPS[command].axes)


def test_json_is_the_usual_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "o.json"
    assert run(["sweep", "--model", "dsv3", "-q", "1,5k", "-s", "4k", "--rectangular", "-o", str(output)]) == 0
    document = json.loads(output.read_text())
    assert document["schema"] == "mla-calc/sweep/1"
    assert document["inputs"]["queries"] == [1, 5120]
    assert document["inputs"]["causal"] is False
    (record,) = document["results"]
    assert record["naive"]["flop"] == (33_554_432 + 81_920) * 4096
    left = "1 of 2 points have more queries than context and are left out"
    assert document["notes"][0] == left + "."
    assert capsys.readouterr().err == f"mla-calc: {left}\n"


def test_flops_json_has_the_same_keys_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    point = ["--model", "dsv3", "--gpu", "h200", "--tp", "4", "-b", "3", "-q", "7", "-s", "5k", "--dtype", "fp8_ds_mla"]
    documents = []
    for command in (["sweep"], ["flops"]):
        assert run([*command, *point, "--format", "json"]) == 0
        documents.append(json.loads(capsys.readouterr().out)["results"])
    swept, alone = documents[0][0], documents[1]
    for path in ("absorbed", "naive"):
        assert swept[path] == {key: alone[path][key] for key in swept[path]}
    assert {key: swept[key] for key in ("fewer_flop", "fewer_bytes", "lower_bound")} == {
        key: alone[key] for key in ("fewer_flop", "fewer_bytes", "lower_bound")
    }


def test_parquet_equals_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arguments = ["sweep", "--model", "dsv3", "--gpu", "h20", "-q", "1:64:x2", "-s", "1k:8k:+1k"]
    assert run([*arguments, "-o", str(tmp_path / "o.parquet")]) == 0
    assert run(arguments) == 0
    table = parquet.read_table(tmp_path / "o.parquet").to_pylist()
    assert [{key: str(value) for key, value in row.items()} for row in table] == rows(capsys.readouterr().out)
    assert len(table) == 7 * 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cach"], "sweep cach: one of flops, cache, intensity, workspace is accepted"),
        (["crossover"], "sweep crossover: one of flops, cache, intensity, workspace is accepted"),
        (["cache", "-q", "2"], "--queries: `sweep cache` does not depend on it"),
        (["cache", "--gpu", "h100"], "--gpu: `sweep cache` does not depend on it"),
        (["intensity", "--rectangular"], "--causal: `sweep intensity` does not depend on it"),
        (["--tp", "1,3"], "TP 3 does not divide the 128 heads of DeepSeek-V3"),
        (["-q", "8k"], "every point has more queries than context"),
        (["-q", "1:20k:+1", "-s", "20k:40k:+1"], "419,450,880 points; at most 100,000,000 are accepted"),
        (["-q", "1024m", "-s", "1024m"], "more than 2**63 - 1"),
        (["--format", "parquet"], "--output FILE names a file"),
        (["-o", "x.md"], "the suffix .md names no format"),
        (["-s", "4kk"], "--context '4kk': a whole number is expected"),
        (["--explain"], "No such option"),
    ],
)
def test_wrong_input(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--model", "dsv3", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) <= 2


def test_gqa_has_no_two_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--model", "llama3-70b"]) == 2
    assert "Llama-3-70B is GQA" in capsys.readouterr().err
    assert run(["sweep", "cache", "--model", "llama3-70b"]) == 0
    (row,) = rows(capsys.readouterr().out)
    assert row["bytes_per_token"] == "327680"


def failing(*_: Any) -> Iterator[Any]:
    raise KeyboardInterrupt
    yield  # a generator, as chunks is


def test_interruption_leaves_an_existing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "o.csv"
    output.write_text("old")
    monkeypatch.setattr(module, "chunks", failing)
    assert run(["sweep", "--model", "dsv3", "-o", str(output)]) == 130
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


def test_progress_is_on_stderr_of_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert run(["sweep", "--model", "dsv3", "-s", "1:9:+1", "-o", str(tmp_path / "o.csv")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "points" in err
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 10


def test_module_imports_neither_numpy_nor_pyarrow() -> None:
    code = "import sys, mla_calc.cli.sweep; print([name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
