"""Every number of tests/golden.yaml, through the CLI's JSON, and what holds for every command's output."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mla_calc.report.record import lookup

GOLDEN = yaml.safe_load((Path(__file__).parent.parent / "golden.yaml").read_text())

COMMANDS = [
    "cache --model dsv3",
    "cache --model dsv32 --tp 1,8 --context 4k -b 2",
    "cache --model gpt-oss-120b --context 64k --vs dsv3",
    "flops --model dsv3 --gpu h100",
    "flops --model dsv3 -q 1,2 -s 4k,64k",
    "intensity --model dsv3 --gpu h20 --vs llama3-70b,qwen2.5-72b",
    "crossover --model dsv3 --gpu h20 -s 16,4k",
    "workspace --model dsv3 --tp 8",
    "workspace --model glm-5 --rows-cap 4k:16k:x2",
    "trace --model minicpm3-4b",
    "parity --model mistral-small-4",
    "presets list",
    "presets show h200",
    "presets check",
]


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: f"{line['command']}: {line['key']}")
def test_golden(line: dict[str, Any], cli: Any) -> None:
    answer = cli(line["command"] + " --format json")
    assert answer.code == 0, answer.err
    found = lookup(answer.results, line["key"])
    if "rel" in line:
        assert found == pytest.approx(line["value"], rel=line["rel"])
    else:
        assert found == line["value"]
        assert type(found) is type(line["value"])


@pytest.mark.parametrize("command", COMMANDS)
def test_json_document(command: str, cli: Any) -> None:
    document = json.loads(cli(f"{command} --format json").out)
    assert list(document) == ["schema", "inputs", "results", "notes", "sources"]
    words = [word for word in command.split() if not word.startswith("-")]
    name = f"{words[0]}-{words[1]}" if words[0] == "presets" else words[0]
    assert document["schema"] == f"mla-calc/{name}/1"
    assert all(isinstance(text, str) and text for text in document["notes"] + document["sources"])


@pytest.mark.parametrize("command", COMMANDS)
def test_csv_is_rectangular(command: str, cli: Any) -> None:
    rows = list(csv.reader(io.StringIO(cli(f"{command} --format csv").out)))
    assert rows, "a CSV has its header at least"
    assert len({len(row) for row in rows}) == 1
    assert len(set(rows[0])) == len(rows[0])


def test_csv_holds_the_json_figures(cli: Any) -> None:
    results = cli("cache --model dsv3 --tp 1,8 --format json").results
    rows = list(csv.DictReader(io.StringIO(cli("cache --model dsv3 --tp 1,8 --format csv").out)))
    assert [row["cluster_bytes_per_token"] for row in rows] == ["70272", "562176"]
    assert [int(row["tp"]) for row in rows] == [record["tp"] for record in results]


def test_trace_csv_has_a_line_per_step(cli: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("trace --model dsv3 --format csv").out)))
    assert rows[0]["name"] == "fused_qkv_a_proj"
    assert rows[0]["shape"] == "1x2112"  # 1536 + 512 + 64, the chapter's step 1
    assert rows[-1]["name"] == "o_proj"
    assert rows[-1]["flop"] == str(2 * 16384 * 7168)


@pytest.mark.parametrize("command", COMMANDS)
def test_markdown_tables_are_well_formed(command: str, cli: Any) -> None:
    text = cli(f"{command} --format markdown").out
    assert text.startswith("## ")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert lines or "all hold" in text
    for line in lines:
        assert line.endswith(" |")


@pytest.mark.parametrize("command", COMMANDS)
def test_table_fits_and_has_no_trailing_blanks(command: str, cli: Any) -> None:
    text = cli(command).out
    assert all(line == line.rstrip() for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= 120


def test_known_unknowns_are_null_with_a_note(cli: Any) -> None:
    document = json.loads(cli("flops --model dsv3 --format json").out)
    assert document["results"]["absorbed"]["bound_s"] is None
    assert any("--gpu" in note for note in document["notes"])
    document = json.loads(cli("crossover --model dsv3 --format json").out)
    assert document["results"]["time"] is None
    assert document["results"]["measured"] is None


def test_list_options_give_records_in_order(cli: Any) -> None:
    records = cli("flops --model dsv3 --tp 1,8 -q 1,4 -s 4k -f json").results
    assert [(record["tp"], record["queries"]) for record in records] == [(1, 1), (1, 4), (8, 1), (8, 4)]


def test_presets_list_keys(cli: Any) -> None:
    presets = cli("presets list -f json").results["presets"]
    dsv3 = next(preset for preset in presets if preset["id"] == "deepseek-v3")
    assert set(dsv3) >= {"name", "kind", "aliases", "source"}
    assert "dsv3" in dsv3["aliases"]
    assert dsv3["source"]
    assert sum(preset["kind"] == "mla" for preset in presets) >= 27
    assert sum(preset["kind"] == "gqa" for preset in presets) >= 12
    assert sum(preset["kind"] == "gpu" for preset in presets) >= 30


def test_trace_geometries(cli: Any) -> None:
    # the chapter: attn_mqa is (576, 1, 512), attn_mha is (192, 128, 128)
    geometries = cli("trace --model dsv3 -f json").results["geometries"]
    assert geometries == {"mqa": [576, 1, 512], "mha": [192, 128, 128]}


def test_parity_through_the_cli(cli: Any) -> None:
    results = cli("parity --model dsv3 -f json").results
    assert max(results["max_abs_error"].values()) < 1e-12
    assert results["rope_folds_needed"] == 64
    assert results["rope_broken_error"] > 0.1


def test_engines_beside_the_crossover(cli: Any) -> None:
    engines = cli("crossover --model dsv3 --gpu h100 -f json").results["engines"]
    # the chapter: FLASHMLA 128, FLASH_ATTN_MLA 512, TRITON_MLA 1, SGLang 8192
    found = {entry["backend"]: entry["threshold"] for entry in engines}
    assert found["FLASHMLA"] == 128
    assert found["FLASH_ATTN_MLA"] == 512
    assert found["TRITON_MLA"] == 1
    assert [entry["threshold"] for entry in engines if entry["counts"] == "prefix"] == [8192]


def test_engines_of_another_vendor(cli: Any) -> None:
    """No CUDA backend stands beside an AMD GPU, and none at all beside a TPU."""
    amd = cli("crossover --model dsv3 --gpu mi300x -f json").results["engines"]
    # vllm 0.33.0 vllm/platforms/rocm.py:531-551: the dense backends of ROCm that its registry names
    assert {entry["backend"] for entry in amd} == {"ROCM_AITER_MLA", "ROCM_AITER_TRITON_MLA"}
    answer = cli("crossover --model dsv3 --gpu tpu-v6e -f json")
    assert answer.results["engines"] == []
    assert "No threshold" in answer.out


def test_default_tps_of_intensity_fit_every_model(tmp_path: Path, cli: Any) -> None:
    # 40 heads over 10 KV heads: 1 and 2 divide both, 4 leaves the KV heads undivided
    config = {"num_hidden_layers": 2, "num_attention_heads": 40, "num_key_value_heads": 10, "hidden_size": 5120}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    for line in (f"intensity --model {path}", f"intensity --model dsv3 --vs {path}"):
        assert [row["tp"] for row in cli(f"{line} -f json").results["by_tp"]] == [1, 2]


def test_without_arguments_help_is_printed(cli: Any) -> None:
    answer = cli("")
    assert answer.code == 0
    assert "Usage" in answer.out


def test_equal_bounds_are_called_equal(cli: Any) -> None:
    """Both paths' bounds are the same fraction here; as doubles they differ in the last bit."""
    line = "--model mistral-small-4 --tp 2 -b 2 -s 2 --gpu h800 -f json"
    assert cli(f"flops {line} -q 1 --rectangular").results["lower_bound"] == "equal"
    assert cli(f"crossover {line}").results["time"]["by_context"][0]["intervals"][0]["path"] == "equal"


def test_intensity_takes_a_list_of_queries(cli: Any) -> None:
    records = cli("intensity --model dsv3 -q 1,2 --tp 1 -f json").results
    # twice the queries, twice the FLOP per byte of cache: 241.8 and 483.6
    assert [record["by_tp"][0]["intensity_flop_per_byte"] for record in records] == pytest.approx([241.7778, 483.5556])
    rows = list(csv.DictReader(io.StringIO(cli("intensity --model dsv3 --vs llama3-70b --tp 1,8 -f csv").out)))
    assert [float(row["vs.Llama-3-70B"]) for row in rows] == [8.0, 8.0]


def test_windowed_layers_on_a_rank(cli: Any) -> None:
    # MiMo-V2-Flash: 39 windowed layers of 8 KV heads, 320 values each, 2 B: 199,680 B; at TP 8 one head a rank
    results = cli("cache --model mimo-v2-flash --tp 4 -f json").results
    assert results["windowed_bytes_per_token"] == 39 * 8 * 320 * 2
    assert results["windowed_per_rank_bytes_per_token"] == 39 * 2 * 320 * 2


def test_a_context_beyond_the_models_limit_is_said(cli: Any) -> None:
    assert any("163,840" in note for note in json.loads(cli("cache --model dsv3 -s 200k -f json").out)["notes"])
    assert not any("163,840" in note for note in json.loads(cli("cache --model dsv3 -s 160k -f json").out)["notes"])
