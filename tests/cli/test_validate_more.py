"""``mla-calc validate``: forced comparisons, presets that are left alone, and files that are not written over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import presets_root
from mla_calc.errors import InputError
from mla_calc.report.write import check_replaceable, replacing
from mla_calc.validate.record import Check, Row
from mla_calc.validate.store import read_run, write_run
from tests.cli.test_bad_input import refused
from tests.validate.runs import a_row, a_run, csv_file

H100, H200 = "NVIDIA H100 SXM5 80GB", "NVIDIA H200 SXM 141GB"
NOBODY = 65534


def decode_rows(slower: Callable[[int], float] = lambda _: 1.0) -> list[Row]:
    """Decode of 16 heads that takes 12 us and 80 % of 4.8 TB/s, times ``slower`` of each index."""
    shapes = [
        (batch, context) for batch in (1, 2, 4, 8, 16, 32, 64, 128) for context in (1 << at for at in range(10, 17))
    ]
    return [
        a_row(
            heads=16,
            batch=batch,
            context=context,
            time_us=(12 + (batch * context * 1152 + batch * 16 * 2176) / 3.84e6) * slower(index),
        )
        for index, (batch, context) in enumerate(shapes)
    ]


@pytest.fixture
def run_file(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Row, **changes: Any) -> Path:
        path = tmp_path / "run.json"
        write_run(a_run(*rows, **changes), path)
        return path

    return write


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    """The H200's preset without a calibration."""
    path = tmp_path / "gpu.yaml"
    text = (presets_root() / "gpus" / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    path.write_text(text.partition("# Written by `mla-calc validate")[0], encoding="utf-8")
    return path


# --- forced


def test_a_forced_comparison_is_labelled_everywhere(run_file: Callable[..., Path], cli: Any, tmp_path: Path) -> None:
    line = f"validate --gpu h100 --force --replay {run_file(*decode_rows(lambda _: 3.0))}"
    text = cli(line).out
    assert "3.35 TB/s, FORCED" in text.splitlines()[1]
    answer = cli(f"{line} -f json --report", str(tmp_path / "out"))
    assert answer.code == 0, answer.err
    assert answer.results["forced"] is True
    assert answer.results["run"]["machine"]["gpu"] == H200  # the record is what was measured
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    assert lines[0] == f"# MLA decode on NVIDIA H200, FORCED against {H100}: measured against predicted"
    assert f"**FORCED**: measured on NVIDIA H200 and compared with the ceilings of {H100}" in page
    assert any("GPU preset" in row and f"{H100} (FORCED)" in row for row in lines)
    assert any("ceiling" in row and f"datasheet of {H100} (FORCED)" in row for row in lines)
    assert f"- FORCED: rows measured on NVIDIA H200 are compared with the ceilings of {H100}." in page
    assert f'$ mla-calc validate --replay run.json --gpu "{H100}" --force' in page
    assert f'$ mla-calc validate --gpu "{H200}" --model "DeepSeek-V3" --seed 4' in page
    assert read_run(tmp_path / "out" / "run.json") == read_run(tmp_path / "run.json")


def test_a_comparison_that_is_not_forced_says_nothing_of_it(
    run_file: Callable[..., Path], cli: Any, tmp_path: Path
) -> None:
    line = f"validate --gpu h200 --force --replay {run_file(*decode_rows())} -f json --report {tmp_path / 'out'}"
    answer = cli(line)
    assert answer.results["forced"] is False
    assert "FORCED" not in answer.out
    assert "forced" not in (tmp_path / "out" / "report.md").read_text(encoding="utf-8").lower()


def test_figures_of_a_forced_comparison_say_so(run_file: Callable[..., Path], cli: Any, tmp_path: Path) -> None:
    from mla_calc.validate import page

    captions = []

    def draw(run: Any, *_: Any) -> list[Any]:
        from mla_calc.validate.figures import caption

        captions.append(caption(run, run.rows))
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "draw", draw)
        cli(f"validate --gpu h100 --force --replay {run_file(*decode_rows())} --report {tmp_path / 'out'}")
    assert captions[0].startswith(f"NVIDIA H200 (FORCED against {H100})")


def test_a_csv_of_another_gpu(cli: Any, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "h200,k,bf16,16,128,1,4096,300")
    refused(cli(f"validate --gpu h100 --replay {path}"), H100, H200, "rows.csv:2", "--force")
    refused(cli(f"validate --gpu zzz --replay {path}"), "zzz")
    refused(cli(f"validate --dtype zzz --replay {path}"), "zzz")
    answer = cli(f"validate --gpu h100 --force -f json --replay {path}")
    assert (answer.code, answer.results["forced"]) == (0, True)
    # 128 * 4096 rows of 1,152 B and 128 * 16 queries and outputs of 2,176 B
    assert answer.results["rows"][0]["bound_s"] == pytest.approx((128 * 4096 * 1152 + 128 * 16 * 2176) / 3.35e12)
    assert any(note.startswith("FORCED") for note in json.loads(answer.out)["notes"])


# --- what a preset is not changed by


def wrong(**changes: Any) -> Check:
    return Check(
        **{"kernel": "hopper", "case": "a", "relative_error": 1e-3, "tolerance": 3e-3, "correct": True} | changes
    )


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        (decode_rows(lambda _: 0.3), {}, "below the datasheet bound"),
        (decode_rows(), {"checks": (wrong(correct=False),)}, "wrong results: hopper"),
        (decode_rows(), {"checks": (wrong(relative_error=0.5),)}, "wrong results: hopper"),
        (decode_rows(), {"checks": ()}, "no check of results: hopper"),
    ],
)
def test_a_run_that_does_not_hold_calibrates_nothing(
    rows: list[Row], changes: Any, words: str, run_file: Callable[..., Path], preset: Path, cli: Any
) -> None:
    before = preset.read_bytes()
    answer = cli(f"validate --replay {run_file(*rows, **changes)} --calibrate {preset}")
    assert answer.code == 1
    (line,) = answer.err.splitlines()
    assert line.startswith(f"mla-calc: {preset} is left as it was: ")
    assert words in line
    assert "Written into" not in answer.out
    assert preset.read_bytes() == before


def test_a_stopped_run_calibrates_nothing(run_file: Callable[..., Path], preset: Path, cli: Any) -> None:
    before = preset.read_bytes()
    path = run_file(*decode_rows(), finished=None)
    refused(cli(f"validate --replay {path} --calibrate {preset}"), "--calibrate", "stopped before its end")
    assert preset.read_bytes() == before


def test_a_forced_comparison_calibrates_nothing(run_file: Callable[..., Path], preset: Path, cli: Any) -> None:
    before = preset.read_bytes()
    refused(cli(f"validate --gpu h100 --force --replay {run_file(*decode_rows())} --calibrate {preset}"), "by force")
    assert preset.read_bytes() == before


def test_an_estimate_that_misses_is_what_a_calibration_reports(
    run_file: Callable[..., Path], preset: Path, cli: Any
) -> None:
    path = run_file(*decode_rows(lambda index: 1.6 if index % 2 else 1.0))  # no curve meets both
    answer = cli(f"validate -f json --replay {path} --calibrate {preset}")
    assert answer.code == 1
    assert "calibration:" in preset.read_text(encoding="utf-8")
    notes = json.loads(answer.out)["notes"]
    assert any("The preset is written all the same" in note for note in notes)


def test_a_run_that_holds_is_written_without_that_note(run_file: Callable[..., Path], preset: Path, cli: Any) -> None:
    answer = cli(f"validate -f json --replay {run_file(*decode_rows())} --calibrate {preset}")
    assert answer.code == 0, answer.out
    notes = json.loads(answer.out)["notes"]
    assert any(note.startswith(f"Written into {preset}") for note in notes)
    assert not any("all the same" in note for note in notes)


def test_a_lesser_run_says_what_it_replaces(run_file: Callable[..., Path], preset: Path, cli: Any) -> None:
    """Of 40 rows, and then of half as many: the second fit is written, and the report says what went."""
    rows = decode_rows()
    assert cli(f"validate --replay {run_file(*rows)} --calibrate {preset}").code == 0
    answer = cli(f"validate -f json --replay {run_file(*rows[: len(rows) // 2])} --calibrate {preset}")
    notes = json.loads(answer.out)["notes"]
    (told,) = [note for note in notes if note.startswith("Older fits were replaced by lesser ones: ")]
    assert "absorbed attention hopper bf16 bf16: one of" in told
    again = cli(f"validate -f json --replay {run_file(*rows)} --calibrate {preset}")
    assert "replaced by lesser" not in again.out


# --- files that are read are not written over


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--replay run.json --output run.json", ["--output", "--replay"]),
        ("--replay run.json --output ./sub/../run.json", ["--output", "--replay"]),
        ("--replay run.json --output link.json", ["--output", "--replay"]),
        ("--replay link.json --output run.json", ["--output", "--replay"]),
        ("--replay rows.csv --output rows.csv", ["--output", "--replay"]),
        ("--replay run.json --gpu ./gpu.yaml --format json --output gpu.yaml", ["--output", "--gpu"]),
        ("--replay run.json --calibrate gpu.yaml --format json --output gpu.yaml", ["--output", "--calibrate"]),
        ("--replay run.json --model ./model.yaml --format json --output model.yaml", ["--output", "--model"]),
        ("--replay run.json --model ./folder --output folder/config.json", ["--output", "--model"]),
        ("--replay rows.csv --dtype ./mine.yaml --format csv --output mine.yaml", ["--output", "--dtype"]),
        ("--replay run.json --report sub --output sub/run.json", ["--output", "--report's run.json"]),
        ("--replay run.json --report sub --output sub/report.md", ["--output", "--report's report.md"]),
        ("--gpu h200 --record a.json --output a.json", ["--output", "--record"]),
        ("--gpu ./gpu.yaml --record gpu.yaml", ["--record", "--gpu"]),
        ("--gpu h200 --calibrate gpu.yaml --record gpu.yaml", ["--record", "--calibrate"]),
        ("--gpu h200 --record sub/report.md --report sub", ["--record", "--report's report.md"]),
        ("--replay run.json --calibrate run.json", ["--calibrate", "--replay"]),
    ],
)
def test_an_output_is_no_input(
    line: str, words: list[str], run_file: Callable[..., Path], preset: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = preset.parent
    run_file(*decode_rows())
    csv_file(folder, "h200,k,bf16,16,128,1,4096,300")
    (folder / "sub").mkdir()
    (folder / "folder").mkdir()
    (folder / "folder" / "config.json").write_text("{}")
    (folder / "link.json").symlink_to("run.json")
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    refused(cli(f"validate {line}"), "same file", *words)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_report_beside_its_record_leaves_the_record(run_file: Callable[..., Path], cli: Any) -> None:
    path = run_file(a_row(kernel="mine"))
    text = path.read_text(encoding="utf-8").replace("\n ", "\n  ")  # the same run, spaced by somebody else
    path.write_text(text, encoding="utf-8")
    assert cli(f"validate --replay {path} --report {path.parent}").code == 0
    assert (path.parent / "report.md").is_file()
    assert path.read_text(encoding="utf-8") == text


def test_a_preset_may_be_compared_with_and_calibrated(run_file: Callable[..., Path], preset: Path, cli: Any) -> None:
    assert cli(f"validate --replay {run_file(*decode_rows())} --gpu {preset} --calibrate {preset}").code == 0
    assert "calibration:" in preset.read_text(encoding="utf-8")


# --- what may not be written


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user whom permissions bind, where the tests run as root."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may write into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def test_a_read_only_file_is_not_replaced(open_folder: Path) -> None:
    path = open_folder / "gpu.yaml"
    path.write_text("mine")
    path.chmod(0o444)
    with as_nobody():
        with pytest.raises(InputError, match=f"^--calibrate {path}: cannot be written: Permission denied"):
            check_replaceable(path, "--calibrate")
        with (
            pytest.raises(InputError, match=f"^--calibrate {path}: cannot be written"),
            replacing(path, "--calibrate") as temporary,
        ):
            temporary.write_text("theirs")
    assert [(entry.name, entry.read_text()) for entry in open_folder.iterdir()] == [("gpu.yaml", "mine")]


def test_what_can_be_replaced_is_left_as_it_was(open_folder: Path) -> None:
    path = open_folder / "gpu.yaml"
    path.write_text("mine")
    check_replaceable(path, "--calibrate")
    check_replaceable(open_folder / "new.yaml", "--calibrate")
    assert [(entry.name, entry.read_text()) for entry in open_folder.iterdir()] == [("gpu.yaml", "mine")]


@pytest.mark.parametrize("option", ["--calibrate", "--output", "--report"])
def test_what_cannot_be_written_is_named_by_its_option(
    option: str, open_folder: Path, preset: Path, run_file: Callable[..., Path], cli: Any
) -> None:
    run = Path(shutil.copy(run_file(a_row(kernel="mine")), open_folder))
    shutil.copy(preset, open_folder)
    target = {"--calibrate": "gpu.yaml", "--output": "answer.json", "--report": ""}[option]
    assert cli(f"validate --replay {run} -f json").code == 0  # imports what nobody may not read
    open_folder.chmod(0o555)
    with as_nobody():
        answer = cli(f"validate --replay {run} {option} {open_folder / target}")
    open_folder.chmod(0o777)
    refused(answer, f"{option} {open_folder / target}: cannot be written: Permission denied")


def test_a_home_that_cannot_be_written_is_no_matter(run_file: Callable[..., Path], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    environment = {**os.environ, "HOME": str(home), "MPLCONFIGDIR": str(home / "matplotlib")}
    arguments = ["validate", "--replay", str(run_file(*decode_rows()[:8])), "--report", str(tmp_path / "out")]
    probe = "import sys; from mla_calc.cli.main import run; sys.exit(run(sys.argv[1:]))"
    found = subprocess.run(
        [sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert found.stderr.splitlines() == [f"mla-calc: the report is in {tmp_path / 'out' / 'report.md'}"]


# --- messages


def test_a_kernel_of_no_such_name(run_file: Callable[..., Path], cli: Any, preset: Path) -> None:
    before = preset.read_bytes()
    line = f"validate --replay {run_file(*decode_rows())} --kernel"
    refused(cli(line, "hoper"), "hopper, small, tile64", "did you mean hopper?")
    refused(cli(line, ""), "hopper, small, tile64")
    refused(cli(f"{line} hoper --calibrate {preset}"), "did you mean hopper?")
    assert preset.read_bytes() == before


def test_a_kernel_that_stands_in_for_nothing_is_told(run_file: Callable[..., Path], cli: Any) -> None:
    answer = cli(f"validate --replay {run_file(*decode_rows())} --kernel hopper -f json")
    assert any("--kernel hopper stands in for no row" in note for note in json.loads(answer.out)["notes"])


def test_what_is_no_preset_is_called_what_it_is(run_file: Callable[..., Path], cli: Any, tmp_path: Path) -> None:
    line = f"validate --replay {run_file()} --calibrate"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    refused(cli(line, str(tmp_path)), "a folder")
    refused(cli(line, str(tmp_path / "pipe")), "no regular file")
    refused(cli(line, str(tmp_path / "none.yaml")), "no such file")
    refused(cli(line, str(tmp_path / "dangling")), "no such file")


def test_a_report_without_a_name_is_refused(run_file: Callable[..., Path], cli: Any) -> None:
    refused(cli(f"validate --replay {run_file()} --report ''"), "--report", "name of a folder")


@pytest.mark.parametrize("gpu", ["", "--gpu auto"])
def test_without_a_gpu_a_replay_is_offered(gpu: str, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mla_calc.hardware.load._device_names", lambda: {"Unknown GPU"})
    refused(cli(f"validate {gpu}"), "Unknown GPU", "--replay")


def test_heads_beyond_the_model_are_one_line(cli: Any, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "h200,k,bf16,256,128,1,4096,300")
    refused(cli(f"validate --replay {path}"), "256 heads", "DeepSeek-V3", "--model")


def test_an_error_is_in_percent_however_large(run_file: Callable[..., Path], cli: Any) -> None:
    rows = decode_rows(lambda _: 1.0)
    quick = [replace(row, kernel="mine", time_us=row.time_us / 1000) for row in rows]  # the estimate is 1,000 times it
    answer = cli(f"validate --replay {run_file(*quick)} --kernel hopper")
    (line,) = (text for text in answer.out.splitlines() if text.strip().startswith("all rows"))
    assert line.count(" %") >= 3
    assert "x" not in line


def test_a_forced_run_is_labelled_with_the_gpu_that_it_is_compared_with(
    run_file: Callable[..., Path], cli: Any, tmp_path: Path
) -> None:
    machine = replace(a_run().machine, gpu=H100, forced=True)  # asked for an H100, the device being an H200
    path = run_file(a_row(kernel="mine", time_us=300.0), machine=machine)
    for gpu, preset in (("", H100), ("--gpu h200", H200)):
        cli(f"validate --replay {path} {gpu} --report {tmp_path / 'out'}")
        page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
        assert page.startswith(f"# MLA decode on NVIDIA H200, FORCED against {preset}: ")
        assert f"datasheet of {preset} (FORCED)" in page
        assert (f'--replay run.json --gpu "{H200}" --force' in page) is (preset == H200)


@pytest.mark.parametrize("count", [1, 300])
def test_a_pipe_gets_lines_of_a_hundred_columns(count: int, cli: Any, tmp_path: Path) -> None:
    rows = [f"h200,fast,{dtype},128,{index},1,4096,0.01" for index in range(1, count + 1) for dtype in ("bf16", "fp8")]
    answer = cli(f"validate --replay {csv_file(tmp_path, *rows)}")
    assert answer.code == 1
    assert "compute binds" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100
