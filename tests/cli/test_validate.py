"""``mla-calc validate``: replays, what they print, how they end, and a measuring run on a fake device."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mla_calc.data import presets_root
from mla_calc.errors import InputError
from mla_calc.validate.record import Check, Row, Run, Skipped
from mla_calc.validate.store import read_run, write_run
from tests.cli.test_bad_input import refused
from tests.validate.runs import HEADER, a_row, a_run, csv_file

# FlashMLA and two Triton kernels on an H200, as published in an earlier measurement: heads, batch, context, us
PUBLISHED = (
    "flashmla,128,128,1,4096,234",
    "flashmla,64,128,1,16384,624",
    "flashmla,16,128,1,4096,168",
    "flashmla,16,1,1,16384,44.6",
    "sglang triton,128,128,1,4096,2341",
    "vllm triton,16,1,1,16384,75",
)
NO_GPU_HEADER = "kernel,heads,batch,queries,context,time_us"
FILL = "--gpu h200 --dtype bf16"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return csv_file(tmp_path, *PUBLISHED, header=NO_GPU_HEADER)


@pytest.fixture
def run_file(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Row, **changes: Any) -> Path:
        path = tmp_path / "run.json"
        write_run(a_run(*rows, **changes), path)
        return path

    return write


def paths(context: int = 4096) -> list[Row]:
    """Both paths around a crossover at Q = 64, with their spread."""
    return [
        a_row(
            kernel=kernel,
            scope=scope,
            heads=16,
            batch=1,
            context=context,
            queries=queries,
            time_us=time,
            p10_us=time / 1.05,
            p90_us=time * 1.05,
        )
        for kernel, scope, power in (("hopper", "absorbed", 1.0), ("naive", "naive", 0.5))
        for queries in (1, 16, 256, 1024)
        for time in (6400.0 * (queries / 64) ** power,)
    ]


def test_published_rows_hold(published: Path, cli: Any) -> None:
    answer = cli(f"validate {FILL} -f json --replay", str(published))
    assert answer.code == 0, answer.err
    results = answer.results
    assert results["row_count"] == len(PUBLISHED)
    assert results["bound_violations"] == []
    assert results["verdict"]["pass"] is True
    # 2 * 128 * 4096 * 128 heads * 1088 FLOP at 989.4 TFLOP/s
    row = results["rows"][0]
    assert row["bound_s"] == pytest.approx(2 * 128 * 4096 * 128 * 1088 / 989.4e12)
    assert row["time_over_bound"] == pytest.approx(234e-6 / row["bound_s"])
    assert (row["binds"], row["estimate_s"], row["measured_bound_s"]) == ("compute", None, None)


def test_every_key_is_there_whatever_is_known(published: Path, cli: Any) -> None:
    document = json.loads(cli(f"validate {FILL} -f json --replay", str(published)).out)
    results = document["results"]
    assert document["schema"] == "mla-calc/validate/1"
    nothing = {"count": 0, "median_ape": None, "mean_ape": None, "p90_ape": None, "median_error": None}
    estimate = results["estimate"]
    assert (estimate["all"], estimate["over_100us"], estimate["by_regime"]) == (nothing, nothing, [])
    assert any("No row has an estimate" in note for note in document["notes"])
    assert [entry["name"] for entry in results["kernels"]] == ["flashmla", "sglang triton", "vllm triton"]
    assert all(entry["correct"] is None and entry["relative_error"] is None for entry in results["kernels"])
    assert (results["skipped"], results["crossover"], results["run"]) == ([], [], None)


def test_a_violation_is_named_and_fails(tmp_path: Path, cli: Any) -> None:
    path = csv_file(tmp_path, "h200,k,bf16,16,128,1,4096,168", "h200,fast,bf16,16,128,1,4096,100")
    answer = cli("validate -f json --replay", str(path))
    assert answer.code == 1
    (found,) = answer.results["bound_violations"]
    assert (found["row"], found["kernel"], found["heads"], found["context"]) == (1, "fast", 16, 4096)
    assert found["where"] == f"{path}:3"
    # 128 * 4096 rows of 1,152 B and 128 * 16 queries and outputs of 2,176 B
    assert found["bytes"] == 128 * 4096 * 1152 + 128 * 16 * 2176
    assert found["bound_s"] == pytest.approx(found["bytes"] / 4.8e12)
    assert "bug in our bytes" in found["cause"]
    text = cli("validate --replay", str(path)).out
    assert "Does not hold: 1 measurement of 2 rows below the datasheet bound" in text
    assert "line 3" in text


def test_the_crossover_stands_beside_its_predictions(run_file: Callable[..., Path], cli: Any) -> None:
    answer = cli("validate -f json --replay", str(run_file(*paths())))
    assert answer.code == 0, answer.err
    (found,) = answer.results["crossover"]
    assert (found["heads"], found["context"], found["batch"], found["naive"]) == (16, 4096, 1, "naive")
    assert found["measured_queries"] == pytest.approx(64.0)
    assert found["low"] == pytest.approx(64 / 1.05**4)
    assert found["high"] == pytest.approx(64 * 1.05**4)
    # A * S < (ca - cn) * pairs + A * Q, tried one by one with A, ca and cn of a head
    fixed, dearer = 262_144, 2176 - 640
    expected = next(
        q for q in range(1, 4097) if fixed * 4096 < dearer * (q * (4096 - q) + q * (q + 1) // 2) + fixed * q
    )
    assert found["flop_queries"] == expected
    assert (found["dtype"], found["crossed_again"], found["last_queries"]) == ("bf16", [], None)
    assert "rossed more than once" not in answer.out
    thresholds = {entry["threshold"] for entry in answer.results["engines"]}
    assert {1, 128, 512} <= thresholds


def test_paths_that_cross_again_are_told(run_file: Callable[..., Path], cli: Any) -> None:
    def at(queries: int) -> Row:
        return next(row for row in paths() if (row.queries, row.scope) == (queries, "absorbed"))

    naive = [replace(at(q), kernel="naive", scope="naive", queries=q, p10_us=None, p90_us=None) for q in (1, 16, 256)]
    absorbed = [replace(row, scope="absorbed", kernel="hopper") for row in naive]
    ratios = {1: 2.0, 16: 0.5, 256: 2.0}
    naive = [replace(row, time_us=ratios[row.queries] * row.time_us) for row in naive]
    path = run_file(*absorbed, *naive)
    answer = cli("validate -f json --replay", str(path))
    (found,) = answer.results["crossover"]
    assert (found["measured_queries"], found["crossed_again"]) == (pytest.approx(4.0), [256])
    assert found["last_queries"] is None
    told = "naive, 16 heads, batch 1, context 4,096: at Q = 256, the most measured"
    assert told in cli("validate --replay", str(path)).out.replace("\n", " ")


def test_what_cells_dropped_and_how_they_were_timed_is_told(run_file: Callable[..., Path], cli: Any) -> None:
    naive = a_row(kernel="naive", scope="naive", time_us=5000.0, relative_error=2e-3, dropped={"flash": "no backward"})
    path = run_file(a_row(), naive, a_row(time_us=900.0, uncaptured="no CUDA graph (x): launches are in the times"))
    results = cli("validate -f json --replay", str(path)).results
    assert results["dropped"] == [
        {"kernel": "naive", "implementation": "flash", "cells": 1, "reasons": ["no backward"]}
    ]
    kernels = {item["name"]: (item["checks"], item["correct"], item["must"]) for item in results["kernels"]}
    assert kernels == {"hopper": (1, True, True), "naive": (1, True, False)}
    assert [row["uncaptured"] is None for row in results["rows"]] == [True, True, False]
    assert [row["relative_error"] for row in results["rows"]] == [None, 2e-3, None]
    assert results["estimate"]["all"]["count"] == sum(
        row["estimate_s"] is not None and row["uncaptured"] is None for row in results["rows"]
    )
    text = cli("validate --replay", str(path)).out
    assert "no backward" in text
    assert "Without a CUDA graph" in text


def test_a_run_shows_what_it_records(run_file: Callable[..., Path], cli: Any) -> None:
    checks = (
        Check(kernel="hopper", case="a", relative_error=1.9e-3, tolerance=3e-3, correct=True),
        Check(kernel="small", case="b", relative_error=None, tolerance=3e-3, correct=False, message="NaN"),
    )
    skipped = (Skipped(kernel="naive", case="h=128 b=128", reason="too little memory"),)
    path = run_file(a_row(), checks=checks, skipped=skipped)
    answer = cli("validate -f json --replay", str(path))
    assert answer.code == 1
    results = answer.results
    assert [(k["name"], k["correct"], k["relative_error"]) for k in results["kernels"]] == [
        ("hopper", True, 1.9e-3),
        ("small", False, None),
    ]
    assert results["skipped"] == [{"kernel": "naive", "case": "h=128 b=128", "reason": "too little memory"}]
    assert results["run"]["machine"]["device_name"] == "NVIDIA H200"
    assert results["rows"][0]["measured_bound_s"] > results["rows"][0]["bound_s"]
    text = cli("validate --replay", str(path)).out
    assert "WRONG" in text
    assert "too little memory" in text


def test_a_forced_gpu_labels_the_answer(run_file: Callable[..., Path], cli: Any) -> None:
    path = run_file(a_row())
    refused(cli("validate --gpu h100 --replay", str(path)), "NVIDIA H200", "--force")
    answer = cli("validate --gpu h100 --force --replay", str(path))
    assert "FORCED" in answer.out
    assert "NVIDIA H100" in answer.out


def test_formats(published: Path, tmp_path: Path, cli: Any) -> None:
    line = f"validate {FILL} --replay {published}"
    rows = list(csv.DictReader(io.StringIO(cli(f"{line} -f csv").out)))
    assert [row["kernel"] for row in rows] == [text.partition(",")[0] for text in PUBLISHED]
    assert float(rows[0]["time_s"]) == 234e-6
    assert cli(f"{line} -f markdown").out.startswith("## DeepSeek-V3")
    output = tmp_path / "answer.json"
    assert cli(f"{line} -o", str(output)).code == 0
    assert json.loads(output.read_text(encoding="utf-8"))["results"]["row_count"] == len(PUBLISHED)


def test_explain_shows_where_the_first_bound_comes_from(published: Path, cli: Any) -> None:
    answer = cli(f"validate {FILL} -f json --explain --replay", str(published))
    items = {item["key"]: item for item in json.loads(answer.out)["explanations"]}
    assert set(items) == {f"rows[0].{key}" for key in ("flop", "bytes", "bound_s", "time_over_bound")}
    for item in items.values():
        assert eval(item["numbers"], {"__builtins__": {}}, {"max": max}) == pytest.approx(item["value"])


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(
    width: int, run_file: Callable[..., Path], cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    rows = [*paths(), *paths(65536), a_row(kernel="naive_in_place", scope="naive", time_us=5000.0), a_row(time_us=1.0)]
    answer = cli("validate --replay", str(run_file(*rows)))
    assert answer.code == 1
    assert "\x1b[1m" in answer.out  # it took it for a terminal
    text = re.sub(r"\x1b\[[0-9;]*m", "", answer.out)
    assert "Below the datasheet bound" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_long_recording_is_summed_up(tmp_path: Path, cli: Any) -> None:
    lines = [f"h200,k{index % 3},bf16,16,1,1,{1024 + index},1" for index in range(1, 400)]
    answer = cli("validate --replay", str(csv_file(tmp_path, *lines)))
    assert len(answer.out.splitlines()) < 80
    assert "the JSON has all" not in answer.out
    lines = [line.replace(",1\n", ",0.01\n") for line in (f"{text}\n" for text in lines)]
    answer = cli("validate --replay", str(csv_file(tmp_path, *(line.strip() for line in lines))))
    assert len(answer.out.splitlines()) < 80
    assert "the JSON has all" in answer.out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("validate --replay missing.csv", ["missing.csv", "cannot be read"]),
        ("validate --replay .", ["cannot be read"]),
        ("validate --replay rows.csv", ["'gpu'", "--gpu"]),
        ("validate --replay rows.csv --gpu h200", ["'dtype'", "--dtype"]),
        ("validate --replay rows.csv --gpu h2000 --dtype bf16", ["h2000"]),
        ("validate --replay rows.csv --gpu h200 --dtype fp9", ["fp9"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --model llama3-70b", ["no latent"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --mma-dtype fp9", ["--mma-dtype", "fp9"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --mma-dtype fp4", ["fp4 peak"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --kernel nothing", ["--kernel", "nothing"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --format yaml", ["yaml"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --quick", ["--quick", "--replay"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --seed 1", ["--seed"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --record r.json", ["--record"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --report nowhere/at/all", ["--report", "nowhere/at"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --report rows.csv", ["--report", "folder"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --calibrate h200", ["--calibrate", "YAML"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --calibrate gpu.yaml", ["--calibrate", "no run"]),
        ("validate --replay rows.csv --gpu h200 --dtype bf16 --calibrate rows.yaml", ["rows.yaml"]),
        ("validate --dtype bf16 --gpu h200", ["--dtype", "--replay"]),
        ("validate --mma-dtype bf16 --gpu h200", ["--mma-dtype", "--replay"]),
        ("validate --seed x --gpu h200", ["--seed"]),
        ("validate --gpu h2000", ["h2000"]),
        ("validate --gpu h200 --model nothing", ["nothing"]),
        ("validate --gpu h200 --record nowhere/run.json", ["--record", "nowhere/run.json"]),
        ("validate --gpu h200 --record .", ["--record", "directory"]),
        ("validate rows.csv", ["rows.csv"]),
    ],
)
def test_refused(line: str, words: list[str], published: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(published.parent)
    shutil.copy(presets_root() / "gpus" / "h200-sxm-141gb.yaml", "gpu.yaml")
    shutil.copy(published, "rows.yaml")
    monkeypatch.setattr("mla_calc.cli.validate.find_spec", lambda _: object())
    refused(cli(line), *words)


def test_figures_without_matplotlib_are_refused(published: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mla_calc.cli.validate.find_spec", lambda _: None)
    refused(cli(f"validate {FILL} --report {published.parent / 'r'} --replay", str(published)), "matplotlib", "pip")


PROBE = """
import sys
for name in ("torch", "triton", "matplotlib"):
    sys.modules[name] = None
from mla_calc.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def without_torch(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=False)


def test_a_replay_needs_no_torch(published: Path) -> None:
    found = without_torch("validate", *FILL.split(), "--replay", str(published))
    assert (found.returncode, found.stderr) == (0, "")


def test_measuring_without_torch_is_one_clear_line(tmp_path: Path) -> None:
    found = without_torch("validate", "--gpu", "h200", "--record", str(tmp_path / "run.json"))
    assert found.returncode == 2
    assert 1 <= len(found.stderr.splitlines()) <= 2
    assert "torch" in found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """A measuring run whose device, kernels and loop are stand-ins: it ends with the run given, or raises."""
    monkeypatch.chdir(tmp_path)

    def install(found: Run | InputError) -> None:
        class Opened:
            device, free_bytes = object(), 1 << 37

        def open_device(*_: Any, **__: Any) -> Any:
            if isinstance(found, InputError):
                raise found
            return Opened

        def measure(*_: Any, opened: Any, progress: Any, checkpoint: Any, **__: Any) -> Run:
            assert isinstance(found, Run)
            assert opened is Opened
            progress(ModuleProgress("ceilings", 0, 1, "copy"))
            progress(ModuleProgress("cells", 0, 2, "hopper [h=16]"))
            checkpoint(replace(found, rows=found.rows[:1], finished=None))
            progress(ModuleProgress("cells", 2, 2, ""))
            return found

        stand_ins = {
            "device": {"open_device": open_device},
            "kernels": {"KERNELS": {}, "pick": None},
            "measure": {"measure": measure},
            "plan": {"make_plan": lambda *_, **__: SimpleNamespace(cases=(1, 2), estimate_s=70.0)},
        }
        for name, members in stand_ins.items():
            module = ModuleType(f"mla_calc.validate.{name}")
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, f"mla_calc.validate.{name}", module)

    return install


class ModuleProgress:
    def __init__(self, stage: str, done: int, total: int, running: str) -> None:
        self.stage, self.done, self.total, self.running = stage, done, total, running


def test_a_measuring_run_is_kept_and_compared(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    run = a_run(*paths())
    device(run)
    answer = cli("validate --gpu h200 -f json")
    assert answer.code == 0, answer.err
    assert answer.results["row_count"] == len(run.rows)
    name = f"mla-calc-{run.id}.json"
    assert read_run(tmp_path / name) == run
    assert answer.err.splitlines() == [
        "mla-calc: 2 cells, about 1 minute",
        "mla-calc: ceilings, 1",
        "mla-calc: cells, 2",
        f"mla-calc: the run is in {name}",
    ]


def test_record_names_the_file(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    device(a_run(a_row(kernel="anything")))  # no preset has a calibration of it
    assert cli("validate --gpu h200 --record mine.json").code == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.json"]


def test_an_interrupted_run_keeps_its_rows(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    run = a_run(*paths()[:3], finished=None, stopped="Ctrl-C")
    device(run)
    answer = cli("validate --gpu h200 --record mine.json -f json")
    assert answer.code == 130
    assert read_run(tmp_path / "mine.json") == run
    assert answer.results["row_count"] == 3


def test_a_run_interrupted_at_once_is_told(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    device(replace(a_run(), rows=(), finished=None, stopped="Ctrl-C"))
    answer = cli("validate --gpu h200 --record mine.json")
    assert (answer.code, answer.out) == (130, "")
    assert "nothing was timed" in answer.err
    assert (tmp_path / "mine.json").exists()


def test_an_interrupted_run_calibrates_nothing(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    shutil.copy(presets_root() / "gpus" / "h200-sxm-141gb.yaml", tmp_path / "gpu.yaml")
    before = (tmp_path / "gpu.yaml").read_bytes()
    device(a_run(*paths(), finished=None, stopped="Ctrl-C"))
    answer = cli("validate --gpu h200 --calibrate gpu.yaml")
    assert answer.code == 130
    assert "gpu.yaml is left as it was" in answer.err
    assert (tmp_path / "gpu.yaml").read_bytes() == before


def test_a_lost_device_is_no_success(device: Callable[..., None], cli: Any) -> None:
    failed = a_run(finished=None, stopped="unspecified launch failure", notes=("Ctrl-C was not pressed.",))
    device(failed)
    assert cli("validate --gpu h200 --record mine.json").code == 1
    assert read_run(Path("mine.json")) == failed
    answer = cli("validate -f json --replay mine.json")
    assert answer.results["run"]["stopped"] == "unspecified launch failure"
    assert "stopped before its end (unspecified launch failure)" in answer.out


def test_what_the_device_refuses_is_one_line(device: Callable[..., None], cli: Any, tmp_path: Path) -> None:
    device(InputError("the driver 470.1 is too old", "575 or newer is needed"))
    refused(cli("validate --gpu h200"), "470.1", "575")
    assert list(tmp_path.iterdir()) == []


def test_a_bar_runs_where_someone_watches(
    device: Callable[..., None], cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    device(a_run(a_row(kernel="anything")))  # no preset has a calibration of it
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    answer = cli("validate --gpu h200 --record mine.json")
    assert answer.code == 0
    assert "mla-calc: ceilings" not in answer.err


def test_a_run_calibrates_a_preset_that_estimates_from_then_on(
    run_file: Callable[..., Path], published: Path, tmp_path: Path, cli: Any
) -> None:
    gpu = tmp_path / "gpu.yaml"
    shipped = (presets_root() / "gpus" / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    gpu.write_text(shipped.partition("# Written by `mla-calc validate")[0], encoding="utf-8")
    # 12 us and 80 % of 4.8 TB/s
    rows = [
        a_row(heads=16, batch=batch, context=context, queries=1, time_us=12 + batch * context * 1152 / 3.84e6)
        for batch in (1, 2, 4, 8, 16, 32, 64, 128)
        for context in (1024, 2048, 4096, 8192, 16384, 32768, 65536)
    ]
    path = run_file(*rows)
    assert cli("validate -f json --gpu", str(gpu), "--replay", str(path)).results["estimate"]["all"]["count"] == 0
    answer = cli("validate -f json --calibrate", str(gpu), "--replay", str(path))
    assert "calibration:" in gpu.read_text(encoding="utf-8")
    results = answer.results
    assert results["estimate"]["all"]["count"] == len(rows)
    held_out = results["estimate"]["held_out"]
    assert 0 < held_out["count"] < len(rows)
    assert held_out["count"] == sum(row["held_out"] for row in results["rows"])
    assert any(f"Written into {gpu}" in note for note in json.loads(answer.out)["notes"])
    assert answer.code == (0 if held_out["median_ape"] <= 0.05 and held_out["p90_ape"] <= 0.12 else 1)

    line = f"validate --gpu {gpu} --dtype bf16 -f json --replay {published}"
    assert cli(line).results["estimate"]["all"]["count"] == 0
    asked = json.loads(cli(f"{line} --kernel hopper").out)
    # the calibration is of 16 heads: the rows of FlashMLA and vLLM that have as many
    assert asked["results"]["estimate"]["all"]["count"] == 3
    assert {entry["estimated_as"] for entry in asked["results"]["estimate"]["by_another_kernel"]} == {"hopper"}
    assert any("estimated as hopper, as --kernel asks" in note for note in asked["notes"])


def test_a_layout_of_ones_own(published: Path, tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nlatent:\n- {of: row, bytes: 3, what: three bytes}\nsources: {default: [here]}\n")
    line = f"validate --gpu h200 --dtype {path} -f json --explain --replay {published}"
    row = cli(line).results["rows"][3]
    # one request of 16,384 rows of 576 values of three bytes, and 16 heads of 2,176 B
    assert (row["cache"], row["bytes"]) == ("mine", 16_384 * 1728 + 16 * 2176)


def test_a_header_alone_is_told(tmp_path: Path, cli: Any) -> None:
    refused(cli("validate --replay", str(csv_file(tmp_path, header=HEADER))), "no row")
