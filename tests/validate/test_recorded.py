"""Recordings: columns, fills, names and whose peak bounds a row; and every file that must be refused by its line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import presets_root
from mla_calc.errors import InputError
from mla_calc.validate.record import Geometry, Machine
from mla_calc.validate.recorded import Fill, Recorded, read_recording, recording_of_run
from mla_calc.validate.store import write_run
from tests.validate.runs import HEADER, a_row, a_run, csv_file

GOOD = "h200,flashmla,bf16,128,32,1,4096,100"


def rows(path: Path, **fill: Any) -> tuple[Recorded, ...]:
    return read_recording(path, Fill(**fill)).rows


def one(path: Path, **fill: Any) -> Recorded:
    (found,) = rows(path, **fill)
    return found


def test_a_csv_row_is_read(tmp_path: Path) -> None:
    item = one(csv_file(tmp_path, "h200,my kernel,bf16,24,3,2,4k,16.25"))
    row = item.row
    assert (row.kernel, row.scope, row.dtype, row.cache) == ("my kernel", "attention", "bf16", "bf16")
    assert (row.heads, row.batch, row.queries, row.context, row.time_us) == (24, 3, 2, 4096, 16.25)
    assert (item.gpu.name, item.model.name, item.row_bytes) == ("NVIDIA H200 SXM 141GB", "DeepSeek-V3", 1152)
    # heads are those of a rank: 24 is no share of DeepSeek-V3's 128
    assert item.mla.heads == 24
    assert item.where.endswith("rows.csv:2")


def test_columns_come_in_any_order_case_and_number(tmp_path: Path) -> None:
    header = " Time_US ,GPU,note,dtype,kernel,heads,batch,queries,context,floor_us"
    path = csv_file(tmp_path, "100,h200,x,bf16,flashmla,128,32,1,4096,7", header=header)
    assert one(path).row == a_row(kernel="flashmla")
    notes = read_recording(path, Fill()).notes
    assert "Columns that are not read: note, floor_us." in notes


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("flashmla", '"flashmla"').replace("4096", " 4096 "),
    ],
)
def test_bytes_that_editors_leave_do_no_harm(change: Callable[[str], str], tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD)
    path.write_bytes(change(path.read_text(encoding="utf-8")).encode())
    assert one(path).row == a_row(kernel="flashmla")


def test_options_fill_what_a_file_lacks(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "flashmla,16,1,1,1024,16.0", header="kernel,heads,batch,queries,context,time_us")
    item = one(path, gpu="h100", dtype="fp8_ds_mla", model="kimi-k2")
    assert item.gpu.name.startswith("NVIDIA H100")
    assert (item.row.cache, item.row_bytes) == ("fp8_ds_mla", 656)
    assert item.model.name == "Kimi-K2-Instruct"


def test_an_empty_cell_is_filled_and_a_full_one_is_kept(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, "," + GOOD.partition(",")[2])
    first, second = rows(path, gpu="h100")
    assert first.gpu.name.startswith("NVIDIA H200")
    assert second.gpu.name.startswith("NVIDIA H100")
    assert not any("--gpu" in note for note in read_recording(path, Fill(gpu="h100")).notes)


def test_an_option_that_fills_nothing_is_told(tmp_path: Path) -> None:
    notes = read_recording(csv_file(tmp_path, GOOD), Fill(gpu="h200", dtype="fp8")).notes
    assert [note for note in notes if "not used" in note] == [
        "--dtype is not used: every row of the file names its own.",
    ]


def test_the_model_that_was_taken_is_told(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD)
    assert any("DeepSeek-V3 (--model)" in note for note in read_recording(path, Fill()).notes)
    assert not any("--model" in note for note in read_recording(path, Fill(model="dsv3")).notes)


def test_rows_name_their_own_gpu_and_model(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path,
        "h200,k,bf16,128,1,1,4096,100,dsv3",
        "NVIDIA H100 80GB HBM3,k,bf16,40,1,1,4096,100,minicpm3-4b",
        "NVIDIA H20,k,bf16,128,1,1,4096,100,",
        header=f"{HEADER},model",
    )
    found = rows(path)
    # the runtime's names are matched whole: NVIDIA H20 begins NVIDIA H200
    assert [item.gpu.aliases[0] for item in found] == ["h200", "h100", "h20"]
    assert [item.mla.kv_lora_rank for item in found] == [512, 256, 512]


@pytest.mark.parametrize(
    ("gpu", "kernel", "dtype", "products", "row_bytes"),
    [
        ("h200", "flashmla", "bf16", "bf16", 1152),
        ("h200", "flashmla", "fp16", "fp16", 1152),
        ("h200", "flashmla", "Float16", "fp16", 1152),
        # a kernel of somebody else may multiply in fp8, where the GPU has a peak for it
        ("h200", "flashmla", "fp8", "fp8", 576),
        ("h200", "flashmla", "fp8_e4m3", "fp8", 576),
        ("h200", "flashmla", "fp8_ds_mla", "fp8", 656),
        ("a100", "flashmla", "fp8", "bf16", 576),
        # ours widen fp8 rows, but a CSV does not say whose kernel has the name
        ("h200", "hopper", "fp8", "fp8", 576),
        ("h200", "small", "fp8", "fp8", 576),
        ("h200", "tile64", "fp8", "fp8", 576),
        # H200 has no fp4, B200 has
        ("h200", "flashmla", "nvfp4_ds_mla", "fp8", 352),
        ("b200", "flashmla", "nvfp4_ds_mla", "fp4", 352),
        ("h200", "llama.cpp", "q8_0", "int8", 612),
    ],
)
def test_whose_peak_bounds_a_row(
    gpu: str, kernel: str, dtype: str, products: str, row_bytes: int, tmp_path: Path
) -> None:
    item = one(csv_file(tmp_path, f"{gpu},{kernel},{dtype},128,1,1,4096,100"))
    assert (item.row.dtype, item.row_bytes) == (products, row_bytes)


def test_the_products_can_be_named(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "h200,flashmla,fp8,128,1,1,4096,100")
    assert one(path, mma_dtype="bf16").row.dtype == "bf16"


def test_scopes_and_percentiles(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path,
        f"{GOOD},naive,90,110",
        f"{GOOD},Absorbed,,",
        f"{GOOD},,,",
        header=f"{HEADER},scope,p10_us,p90_us",
    )
    found = [item.row for item in rows(path)]
    assert [row.scope for row in found] == ["naive", "absorbed", "attention"]
    assert [(row.p10_us, row.p90_us) for row in found] == [(90.0, 110.0), (None, None), (None, None)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("h200,k,bf16,128,32,1,4096,nan", ["time_us", "nan"]),
        ("h200,k,bf16,128,32,1,4096,inf", ["time_us"]),
        ("h200,k,bf16,128,32,1,4096,1e400", ["time_us", "1e400"]),
        ("h200,k,bf16,128,32,1,4096,1e300", ["time_us"]),
        ("h200,k,bf16,128,32,1,4096,0", ["time_us"]),
        ("h200,k,bf16,128,32,1,4096,-1", ["time_us", "-1"]),
        ("h200,k,bf16,128,32,1,4096,1_000", ["time_us"]),
        ("h200,k,bf16,128,32,1,4096,", ["time_us"]),
        ("h200,k,bf16,128,32,1,4096,12 us", ["time_us", "12 us"]),
        ("h200,k,bf16,0,32,1,4096,100", ["heads", "0"]),
        ("h200,k,bf16,-128,32,1,4096,100", ["heads", "-128"]),
        ("h200,k,bf16,128.0,32,1,4096,100", ["heads", "whole number"]),
        ("h200,k,bf16,128,nan,1,4096,100", ["batch", "nan"]),
        ("h200,k,bf16,128,32,0,4096,100", ["queries", "0"]),
        ("h200,k,bf16,128,32,1,99999999999,100", ["context"]),
        ("h200,k,bf16,128,32,4097,4096,100", ["4,097 queries", "4,096"]),
        ("h200,,bf16,128,32,1,4096,100", ["kernel", "blank"]),
        (",k,bf16,128,32,1,4096,100", ["gpu is empty"]),
        ("h200,k,,128,32,1,4096,100", ["dtype is empty"]),
        ("h2000,k,bf16,128,32,1,4096,100", ["h2000"]),
        ("NVIDIA H2,k,bf16,128,32,1,4096,100", ["NVIDIA H2"]),
        ("auto,k,bf16,128,32,1,4096,100", ["gpu", "auto", "name of a preset"]),
        ("./h200.yaml,k,bf16,128,32,1,4096,100", ["gpu", "name of a preset"]),
        ("h200,k,bf17,128,32,1,4096,100", ["bf17"]),
        ("h200,k,/dev/stdin,128,32,1,4096,100", ["dtype", "name of a preset"]),
        ("tpu-v5p,k,fp16,128,32,1,4096,100", ["fp16 peak"]),
        ("h200,k,bf16,128,32,1,4096", ["7 values", "8"]),
        ("h200,k,bf16,128,32,1,4096,100,7", ["9 values", "8"]),
        ('h200,"k,bf16,128,32,1,4096,100', ["CSV"]),
    ],
)
def test_a_wrong_row_is_refused_by_its_line(line: str, words: list[str], tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, line)
    with pytest.raises(InputError) as error:
        read_recording(path, Fill())
    assert f"{path}:3" in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("scope", "decode", ["scope", "decode", "attention, absorbed, naive"]),
        ("model", "llama3-70b", ["no latent"]),
        ("model", "dsv33", ["dsv33"]),
        ("p10_us", "101", ["p10_us is 101", "time_us is 100"]),
        ("p90_us", "x", ["p90_us"]),
    ],
)
def test_a_wrong_optional_cell_is_refused(column: str, value: str, words: list[str], tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"{GOOD},{value}", header=f"{HEADER},{column}")
    with pytest.raises(InputError) as error:
        read_recording(path, Fill())
    assert f"{path}:2" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_a_layout_must_fit_the_model(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "h200,k,fp8_ds_mla,40,1,1,4096,100,minicpm3-4b", header=f"{HEADER},model")
    with pytest.raises(InputError, match=r"rows\.csv:2: .*fp8_ds_mla.*kv_lora_rank"):
        read_recording(path, Fill())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("\n \n", ["empty"]),
        (HEADER, ["no row"]),
        (f"{HEADER}\n\n", ["no row"]),
        (GOOD, [":1", "no column 'gpu'"]),
        (HEADER.replace(",", ";") + "\n" + GOOD.replace(",", ";"), [":1", "semicolons"]),
        (HEADER.replace(",", "\t") + "\n" + GOOD.replace(",", "\t"), [":1", "tabs"]),
        (f"{HEADER},heads\n{GOOD},64", [":1", "'heads' more than once"]),
        (f"{HEADER},Heads \n{GOOD},64", [":1", "'heads' more than once"]),
        (f"{HEADER.removesuffix(',time_us')},time\n{GOOD}", [":1", "no column 'time_us'"]),
        (f"{HEADER.replace('queries,', '')}\n{GOOD.replace('1,4096', '4096')}", [":1", "no column 'queries'"]),
        ("a\0b", ["text"]),
        ("[1, 2]", [":1", "gpu"]),
        ("{", ["JSON"]),
    ],
)
def test_a_file_that_is_no_recording_is_refused(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_recording(path, Fill())
    assert str(path) in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(("column", "option"), [("gpu", "--gpu"), ("dtype", "--dtype")])
def test_a_missing_column_names_the_option_that_fills_it(column: str, option: str, tmp_path: Path) -> None:
    index = HEADER.split(",").index(column)
    header, line = (",".join(text.split(",")[:index] + text.split(",")[index + 1 :]) for text in (HEADER, GOOD))
    with pytest.raises(InputError, match=f"no column '{column}'") as error:
        read_recording(csv_file(tmp_path, line, header=header), Fill())
    assert option in (error.value.hint or "")


def test_a_near_name_of_a_column_is_offered(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, header=HEADER.replace("queries", "query"))
    with pytest.raises(InputError, match="'queries'") as error:
        read_recording(path, Fill())
    assert "query" in (error.value.hint or "")


def test_too_many_rows(tmp_path: Path) -> None:
    path = csv_file(tmp_path, *["h200,k,bf16,1,1,1,1,1"] * 100_001)
    with pytest.raises(InputError, match="100,000"):
        read_recording(path, Fill())


def test_a_run_is_read_on_its_own_gpu(tmp_path: Path) -> None:
    run = a_run(a_row(), a_row(cache="fp8", kernel="tile64"), a_row(dtype="fp16"))
    path = tmp_path / "run.json"
    write_run(run, path)
    found = read_recording(path, Fill())
    assert found.run == run
    assert [item.row for item in found.rows] == list(run.rows)
    assert [item.row_bytes for item in found.rows] == [1152, 576, 1152]
    assert {item.gpu.name for item in found.rows} == {"NVIDIA H200 SXM 141GB"}
    path.rename(tmp_path / "run.txt")  # JSON is told by its first character too
    assert read_recording(tmp_path / "run.txt", Fill()).run == run


def of_run(fill: Fill, **changes: Any) -> Any:
    return recording_of_run(a_run(**changes), "run.json", fill)


def machine(**changes: Any) -> Machine:
    return replace(a_run().machine, **changes)


def test_another_gpu_needs_force_and_is_told() -> None:
    with pytest.raises(InputError, match=r"recorded on NVIDIA H200, which is another GPU") as error:
        of_run(Fill(gpu="h100"))
    assert "--force" in (error.value.hint or "")
    found = of_run(Fill(gpu="h100", force=True))
    assert found.rows[0].gpu.name.startswith("NVIDIA H100")
    assert any(note.startswith("FORCED: rows measured on NVIDIA H200") for note in found.notes)
    assert not any("FORCED" in note for note in of_run(Fill(gpu="h200")).notes)


def test_a_forced_run_says_so() -> None:
    assert any(note.startswith("FORCED") for note in of_run(Fill(), machine=machine(forced=True)).notes)


def test_a_run_of_a_gpu_without_a_preset(tmp_path: Path) -> None:
    unknown = machine(gpu="My GPU", device_name="NVIDIA H200")
    with pytest.raises(InputError, match="My GPU") as error:
        of_run(Fill(), machine=unknown)
    assert "--gpu" in (error.value.hint or "")
    path = tmp_path / "mine.yaml"
    shutil.copy(presets_root() / "gpus" / "h200-sxm-141gb.yaml", path)
    path.write_text(path.read_text().replace("name: NVIDIA H200 SXM 141GB", "name: My GPU"))
    assert of_run(Fill(gpu=str(path)), machine=unknown).rows[0].gpu.name == "My GPU"


def test_a_run_is_compared_by_the_attention_that_was_measured() -> None:
    other = Geometry(model="DeepSeek-V3", kv_lora_rank=256, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
    with pytest.raises(InputError, match="other widths"):
        of_run(Fill(), geometry=other)
    with pytest.raises(InputError, match="other widths"):
        of_run(Fill(model="minicpm3-4b"))
    same = of_run(Fill(model="kimi-k2"), rows=(a_row(heads=64),))
    assert same.rows[0].model.name == "Kimi-K2-Instruct"
    assert "Measured as DeepSeek-V3, compared as Kimi-K2-Instruct: the widths are the same." in same.notes


def test_what_a_run_records_is_not_filled() -> None:
    with pytest.raises(InputError, match="--mma-dtype"):
        of_run(Fill(mma_dtype="bf16"))
    assert any("--dtype is not used" in note for note in of_run(Fill(dtype="fp8")).notes)


def test_a_stopped_run_says_how_much_it_holds() -> None:
    found = of_run(Fill(), finished=None, rows=(a_row(), a_row(queries=2)), notes=("Stopped by Ctrl-C.",))
    assert any("2 rows" in note for note in found.notes)
    assert "Stopped by Ctrl-C." in found.notes


def test_a_run_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="no row"):
        of_run(Fill(), rows=())


def test_a_run_of_an_unknown_cache_names_its_row() -> None:
    with pytest.raises(InputError, match=r"run\.json: rows\[1\]: .*fp9"):
        of_run(Fill(), rows=(a_row(), a_row(cache="fp9")))
