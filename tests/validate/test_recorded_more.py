"""Recordings: GPUs that are not the one asked for, heads, repeats, records that contradict themselves, and sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import MAX_FILE_BYTES, presets_root
from mla_calc.errors import InputError
from mla_calc.report.record import plain
from mla_calc.validate.compare import compare
from mla_calc.validate.record import Check, Machine, Run
from mla_calc.validate.recorded import Fill, Recording, read_recording, recording_of_run
from mla_calc.validate.store import read_run, run_of_text
from mla_calc.validate.verdict import faults_of_run, judge
from tests.validate.runs import H200_FP8_PEAK, HEADER, a_row, a_run, csv_file, recording

GOOD = "h200,k,bf16,128,32,1,4096,100"
H100, H200 = "NVIDIA H100 SXM5 80GB", "NVIDIA H200 SXM 141GB"


def machine(**changes: Any) -> Machine:
    return replace(a_run().machine, **changes)


def of_run(fill: Fill, **changes: Any) -> Recording:
    return recording_of_run(a_run(**changes), "run.json", fill)


def document(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = plain(a_run())
    return value | changes


# --- the GPU


def test_rows_of_another_gpu_are_refused_unless_forced(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, GOOD.replace("h200", "NVIDIA H200"))
    with pytest.raises(InputError, match=rf"--gpu {H100}: .*rows\.csv:2 was recorded on {H200}") as error:
        read_recording(path, Fill(gpu="h100"))
    assert "--force" in (error.value.hint or "")
    found = read_recording(path, Fill(gpu="h100", force=True))
    assert found.forced
    assert {item.gpu.name for item in found.rows} == {H100}
    assert f"FORCED: rows measured on {H200} are compared with the ceilings of {H100}." in found.notes


@pytest.mark.parametrize("asked", ["h200", H200, "NVIDIA H200"])
def test_rows_of_the_gpu_that_is_asked_for(asked: str, tmp_path: Path) -> None:
    found = read_recording(csv_file(tmp_path, GOOD), Fill(gpu=asked, force=True))
    assert not found.forced
    assert not any("FORCED" in note or "--gpu" in note for note in found.notes)


def test_rows_are_compared_with_the_preset_file_of_their_gpu(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    text = (presets_root() / "gpus" / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    mine.write_text(text.partition("# Written by")[0].replace("4.8", "4.0", 1), encoding="utf-8")
    (row,) = read_recording(csv_file(tmp_path, GOOD), Fill(gpu=str(mine))).rows
    assert (row.gpu.name, row.gpu.bandwidth_bytes_per_s, row.gpu.calibration) == (H200, 4.0e12, ())


def test_a_gpu_that_fills_some_lines_judges_none(tmp_path: Path) -> None:
    found = read_recording(csv_file(tmp_path, GOOD, GOOD.replace("h200", "")), Fill(gpu="h100", force=True))
    assert [item.gpu.name for item in found.rows] == [H200, H100]
    assert not found.forced


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (Fill(gpu="zzz"), "no GPU preset is named 'zzz'"),
        (Fill(dtype="zzz"), "no layout preset is named 'zzz'"),
        (Fill(model="zzz"), "no model preset is named 'zzz'"),
        (Fill(model="llama3-70b"), "--model: "),
        (Fill(mma_dtype="fp4"), "--mma-dtype fp4: "),
    ],
)
@pytest.mark.parametrize("columns", ["full", "empty"])
def test_a_wrong_option_is_blamed_itself(columns: str, fill: Fill, words: str, tmp_path: Path) -> None:
    full = columns == "full" or fill.mma_dtype
    path = csv_file(tmp_path, f"{GOOD},dsv3" if full else ",k,,128,32,1,4096,100,", header=f"{HEADER},model")
    with pytest.raises(InputError) as error:
        read_recording(path, fill if full else replace(Fill(gpu="h200", dtype="bf16"), **set_of(fill)))
    assert str(error.value).startswith(words)
    assert "rows.csv" not in str(error.value)


def set_of(fill: Fill) -> dict[str, str]:
    return {name: value for name in ("gpu", "dtype", "model") if (value := getattr(fill, name))}


@pytest.mark.parametrize("fill", [Fill(gpu="zzz"), Fill(dtype="zzz"), Fill(model="zzz")])
def test_a_wrong_option_for_a_run(fill: Fill) -> None:
    with pytest.raises(InputError, match=r"^no \w+ preset is named 'zzz'"):
        of_run(fill)


def test_a_device_that_is_not_the_gpu_of_its_run_is_refused() -> None:
    odd = machine(device_name="NVIDIA H100 80GB HBM3")
    with pytest.raises(InputError, match=f"names {H200} and was recorded on NVIDIA H100 80GB HBM3") as error:
        of_run(Fill(), machine=odd)
    assert "--force" in (error.value.hint or "")
    with pytest.raises(InputError, match="another GPU"):
        of_run(Fill(gpu="h200"), machine=odd)
    found = of_run(Fill(force=True), machine=odd)
    assert found.forced
    assert any(note.startswith("FORCED: rows measured on NVIDIA H100 80GB HBM3") for note in found.notes)
    assert of_run(Fill(gpu="h100"), machine=odd).rows[0].gpu.name == H100


def test_a_forced_run_is_told_truly() -> None:
    other = of_run(Fill(), machine=machine(forced=True, device_name="NVIDIA H100 80GB HBM3"))
    assert f"FORCED: the run was made on NVIDIA H100 80GB HBM3, which is not {H200}." in other.notes
    same = of_run(Fill(), machine=machine(forced=True))
    assert f"FORCED: the run says so, asked for {H200}; NVIDIA H200 is a device of {H200}." in same.notes
    assert other.forced
    assert same.forced
    assert not of_run(Fill()).forced


def test_a_preset_without_device_names_takes_the_runs_word(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = (presets_root() / "gpus" / "h200-sxm-141gb.yaml").read_text(encoding="utf-8")
    text = text.partition("# Written by")[0].replace(f"name: {H200}", "name: My GPU")
    path.write_text(text.replace("device_names:\n  - NVIDIA H200\n", ""), encoding="utf-8")
    mine = machine(gpu="My GPU", device_name="My Device")
    assert not of_run(Fill(gpu=str(path)), machine=mine).forced
    with pytest.raises(InputError, match="another GPU"):
        of_run(Fill(gpu=str(path)), machine=machine(gpu="Other", device_name="My Device"))


# --- whose products


def test_a_kernel_with_one_of_our_names_is_anybodys(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "h200,hopper,fp8,128,128,1,4096,90", "h200,other,fp8,128,128,1,4096,90")
    ours, other = compare(read_recording(path, Fill()), lambda _: None).rows
    # 2 * 128 * 4096 * 128 heads * 1088 FLOP at the fp8 peak
    assert ours.bound_s == pytest.approx(2 * 128 * 4096 * 128 * 1088 / H200_FP8_PEAK, rel=1e-4)
    assert other.bound_s == ours.bound_s
    widened = compare(read_recording(path, Fill(mma_dtype="bf16")), lambda _: None)
    assert len(widened.violations) == 2


def test_a_run_of_ours_keeps_the_products_that_it_records() -> None:
    (row,) = recording(a_row(kernel="tile64", cache="fp8")).rows
    assert row.row.dtype == "bf16"


# --- heads, repeats, models


def test_more_heads_than_the_model_has_are_refused(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, GOOD.replace("128", "129"))
    with pytest.raises(InputError, match=r"rows\.csv:3: 129 heads are more than the 128 of DeepSeek-V3"):
        read_recording(path, Fill())
    with pytest.raises(InputError, match=r"rows\[1\]: 256 heads"):
        of_run(Fill(), rows=(a_row(), a_row(heads=256)))


def test_heads_that_no_split_gives_are_told(tmp_path: Path) -> None:
    lines = [GOOD.replace("128", str(heads)) for heads in (128, 64, 24, 3)]
    notes = read_recording(csv_file(tmp_path, *lines), Fill()).notes
    told = [note for note in notes if "divide" in note]
    assert told == ["Heads that do not divide the 128 of DeepSeek-V3, as those of one rank would: 3, 24."]
    assert any("DeepSeek-V3" in note and "3." in note for note in of_run(Fill(), rows=(a_row(heads=3),)).notes)


def test_a_cell_that_stands_twice_is_told(tmp_path: Path) -> None:
    notes = of_run(Fill(), rows=(a_row(), a_row(queries=2), a_row(), a_row(time_us=101.0))).notes
    assert "2 rows of a cell that stood before: 1 cell count more than once." in notes
    # products, cache, scope or GPU make another cell of it
    csv = csv_file(tmp_path, GOOD, GOOD.replace("h200", "h100"), GOOD.replace("bf16", "fp16"))
    assert not any("stood before" in note for note in read_recording(csv, Fill()).notes)


def test_the_widths_that_differ_are_named() -> None:
    other = replace(a_run().geometry, kv_lora_rank=256)
    with pytest.raises(InputError, match=r"those of DeepSeek-V3: kv_lora_rank 256, not 512$"):
        of_run(Fill(), geometry=other)


# --- what a record says of itself


@pytest.mark.parametrize(
    ("error", "correct", "right"),
    [
        (1e-3, True, True),
        (3e-3, True, True),
        (0.5, True, False),
        (None, True, False),
        (-1.0, True, False),
        (1e-3, False, False),
    ],
)
def test_a_check_is_right_by_its_numbers(error: float | None, correct: bool, right: bool) -> None:
    check = Check(kernel="hopper", case="bf16", relative_error=error, tolerance=3e-3, correct=correct)
    found = compare(recording(checks=(check,)), lambda _: None)
    assert found.kernels[0].correct is right
    assert judge(found).passed is right
    assert bool(faults_of_run(found)) is not right


def with_row(**changes: Any) -> dict[str, Any]:
    return document(rows=[document()["rows"][0] | changes])


def with_machine(**changes: Any) -> dict[str, Any]:
    return document(machine=document()["machine"] | changes)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (with_row(time_us="5"), ["rows.0.time_us", "'5'"]),
        (with_row(time_us=True), ["rows.0.time_us", "true"]),
        (with_row(p90_us="500"), ["rows.0.p90_us"]),
        (with_row(picked="yes"), ["rows.0.picked"]),
        (with_row(order=True), ["rows.0.order"]),
        (with_row(relative_error="0"), ["rows.0.relative_error"]),
        (with_row(parts_us={"attention": "3"}), ["rows.0.parts_us.attention"]),
        (with_machine(forced="no"), ["machine.forced"]),
        (document(seed="4"), ["seed"]),
        (document(ceilings={"copy_bytes_per_s": "4e12"}), ["ceilings.copy_bytes_per_s"]),
        (document(ceilings={"read_bytes_per_s": -1.0}), ["ceilings.read_bytes_per_s"]),
        (document(checks=[document()["checks"][0] | {"correct": 1}]), ["checks.0.correct"]),
        (document(checks=[document()["checks"][0] | {"tolerance": "1"}]), ["checks.0.tolerance"]),
        (document(finished="yesterday"), ["finished", "'yesterday'", "a time is expected"]),
        (document(started="soon"), ["started", "'soon'"]),
        (document(finished="2026-11-30T01:29:59+00:00"), ["finished", "before started"]),
        (with_row(kernel="k" * 61), ["rows[0]", "61 characters", "60"]),
    ],
)
def test_a_record_of_other_kinds_of_value_is_refused(value: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        run_of_text(json.dumps(value), "f.json")
    for word in words:
        assert word in str(error.value)


def test_whole_numbers_are_times_too() -> None:
    assert run_of_text(json.dumps(with_row(time_us=100)), "f.json").rows[0].time_us == 100.0


# --- files


@pytest.fixture
def many(tmp_path: Path) -> Callable[[int], Path]:
    def write(count: int) -> Path:
        path = tmp_path / "many.json"
        path.write_text(json.dumps(document(rows=document()["rows"] * count)), encoding="utf-8")
        return path

    return write


def test_a_recording_may_be_larger_than_a_preset(many: Callable[[int], Path]) -> None:
    path = many(15_000)
    assert path.stat().st_size > MAX_FILE_BYTES
    run: Run = read_run(path)
    assert len(run.rows) == 15_000


def test_a_run_of_too_many_rows_is_refused() -> None:
    with pytest.raises(InputError, match="more than 100,000 rows"):
        run_of_text(json.dumps(document(rows=[{}] * 100_001)), "f.json")


def test_a_recording_without_end_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mla_calc.validate.recorded.MAX_RECORDING_BYTES", 10)
    with pytest.raises(InputError, match="a recording has at most 10"):
        read_recording(csv_file(tmp_path, GOOD), Fill())


def test_a_comment_is_no_header(tmp_path: Path) -> None:
    path = csv_file(tmp_path, HEADER, GOOD, header="# measured on Monday")
    with pytest.raises(InputError, match=r"rows\.csv:1: is a comment"):
        read_recording(path, Fill())


def test_a_row_is_named_by_the_line_that_it_begins_in(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, 'h200,"k\nl",bf16,128,32,1,4096,100', "h200,k,bf16,128,32,1,4096,x")
    with pytest.raises(InputError, match=r"rows\.csv:3: kernel"):
        read_recording(path, Fill())
    path = csv_file(tmp_path, "", f'{GOOD},"a\n\nb"', "", "h200,k,bf16,128,32,1,4096,x,y", header=f"{HEADER},note")
    with pytest.raises(InputError, match=r"rows\.csv:7: time_us"):
        read_recording(path, Fill())


def test_a_header_below_blank_lines_is_named_by_its_line(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "gpu,kernel", header="\n")
    with pytest.raises(InputError, match=r"rows\.csv:3: has no column"):
        read_recording(path, Fill())


def test_the_run_that_was_shipped_is_read_with_its_own_note_alone() -> None:
    path = presets_root().parent / "docs" / "measurements" / "h200" / "run.json"
    if not path.is_file():  # an installation has no docs
        pytest.skip("no run is shipped here")
    found = read_recording(path, Fill(gpu="h200"))
    assert (len(found.rows), found.forced) == (2574, False)
    (note,) = found.notes
    assert note.startswith("2,574 of 2,574 cells were timed again")
