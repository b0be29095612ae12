"""`dispatch` and `backends`: the chapter's statements, batches from files, and what must be refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import refused

DSV3 = "dispatch --model dsv3 -f json"


def paths(answer: Any) -> list[str]:
    assert answer.code == 0, answer.err
    return [row["path"] for row in answer.results["rows"]]


def test_a_batch_on_hopper(cli: Any) -> None:
    answer = cli(f"{DSV3} --gpu h200 --rows 1:4096,100:4096,600:9000")
    assert paths(answer) == ["absorbed", "absorbed", "mha"]
    results = answer.results
    assert (results["backend"], results["threshold"]) == ("FLASH_ATTN_MLA", 512)
    row = results["rows"][0]
    # one query over 4,097 keys, weights left out: 2 * 4,097 * 128 * 1,088 FLOP of the core and 2 folds of 16,777,216
    assert row["absorbed"]["flop"] == 2 * 4097 * 128 * 1088 + 2 * 16_777_216
    assert row["absorbed_bound_s"] < row["naive_bound_s"]
    assert row["regret_s"] == 0
    batch = results["batch"]
    assert batch["regret_s"] == pytest.approx(batch["chosen_bound_s"] - batch["best_bound_s"], abs=1e-15)


@pytest.mark.parametrize(
    ("backend", "rows", "expected"),
    [
        # the chapter: FLASHMLA 128, FLASH_ATTN_MLA 512, TRITON_MLA 1
        ("FLASH_ATTN_MLA", "512:9000", ["absorbed"]),
        ("FLASH_ATTN_MLA", "513:9000", ["mha"]),
        ("FLASHMLA", "128:9000", ["absorbed"]),
        ("FLASHMLA", "129:9000", ["mha"]),
        ("FLASHMLA", "1:9000,100:9000", ["absorbed", "mha"]),
        ("FLASH_ATTN_MLA", "1:9000,100:9000", ["absorbed", "absorbed"]),
        ("TRITON_MLA", "1:9000", ["absorbed"]),
        ("TRITON_MLA", "2:9000", ["mha"]),
        # a cold short prefill has no context, and is absorbed all the same (runner v2 sorts by length)
        ("FLASH_ATTN_MLA", "600:9000,100:0", ["mha", "absorbed"]),
    ],
)
def test_the_chapters_thresholds(backend: str, rows: str, expected: list[str], cli: Any) -> None:
    assert paths(cli(f"{DSV3} --cc 9.0 --backend {backend} --rows {rows}")) == expected


def test_dcp_drops_and_speculation_raises(cli: Any) -> None:
    line = f"{DSV3} --cc 9.0 --tp 8 --backend FLASHMLA"
    assert paths(cli(f"{line} --rows 2:9000")) == ["absorbed"]
    assert paths(cli(f"{line} --rows 2:9000 --dcp 2")) == ["mha"]
    triton = f"{DSV3} --cc 9.0 --backend TRITON_MLA --rows 4:9000"
    assert paths(cli(triton)) == ["mha"]
    assert paths(cli(f"{triton} --spec-tokens 3")) == ["absorbed"]


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        ("100:0", "", "mha_one_shot"),
        ("100:1", "", "absorbed"),
        ("100:8191", "", "absorbed"),
        ("100:8192", "", "mha_one_shot"),
        ("100:8191", "--prefix-threshold 0", "mha_one_shot"),
        ("1:9000", "", "absorbed"),
        ("1:9000", "--mode extend", "mha_one_shot"),
        ("100:131072", "", "mha_chunked"),
        ("100:8192", "--graph", "absorbed"),
    ],
)
def test_sglangs_shared_rule(rows: str, more: str, expected: str, cli: Any) -> None:
    assert paths(cli(f"{DSV3} --engine sglang --gpu h200 --rows {rows} {more}")) == [expected]


def test_the_scan_has_its_least_regret_at_the_best_threshold(cli: Any) -> None:
    answer = cli(f"{DSV3} --gpu h200 --rows 1:4096,100:4096,300:20000 --scan")
    scan = {entry["threshold"]: entry for entry in answer.results["scan"]}
    # 100 queries over 4,096 are better absorbed, 300 over 20,000 better expanded: 100 to 299 lose nothing, and
    # nothing changes between two lengths, so that these are tried, and the 512 in force
    assert list(scan) == [1, 100, 300, 512]
    assert [entry["in_force"] for entry in scan.values()] == [False, False, False, True]
    assert scan[100]["regret_s"] == 0
    assert min(scan[at]["regret_s"] for at in (1, 300, 512)) > 0
    assert scan[512]["regret_s"] == scan[300]["regret_s"]


def test_a_scan_of_many_lengths_is_bounded(cli: Any) -> None:
    rows = ",".join(f"{queries}:5000" for queries in range(1, 400))
    scan = cli(f"{DSV3} --gpu h200 --rows {rows} --scan").results["scan"]
    tried = [entry["threshold"] for entry in scan]
    assert (len(tried), tried[0], tried[-2:]) == (65, 1, [399, 512])


def test_a_scan_needs_a_threshold(cli: Any) -> None:
    refused(cli("dispatch --model dsv3 --gpu h200 --engine sglang --backend triton --rows 5:9000 --scan"), "threshold")


def test_batches_from_files(tmp_path: Path, cli: Any) -> None:
    listed = cli(f"{DSV3} --gpu h200 --rows 1:4096,100:8k").results["rows"]
    for name, text in (
        ("batch.csv", "prefix,queries,comment\n4096,1,x\n8192,100,y\n"),
        ("batch.json", '[{"queries": 1, "prefix": 4096}, [100, 8192]]'),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert cli(f"{DSV3} --gpu h200 --rows {path}").results["rows"] == listed


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("empty.csv", "", "empty"),
        ("headless.csv", "1,4096\n", "queries"),
        ("rows.csv", "queries,prefix\n", "no row"),
        ("words.csv", "queries,prefix\none,4096\n", "words.csv:2"),
        ("short.csv", "queries,prefix\n1\n", "prefix"),
        ("minus.csv", "queries,prefix\n1,-1\n", "-1"),
        ("quote.csv", 'queries,prefix\n"1,2\n', "quote.csv"),
        ("object.json", '{"queries": 1}', "list"),
        ("floats.json", "[[1.5, 2]]", "row 0"),
        ("bools.json", "[[true, 2]]", "row 0"),
        ("keys.json", '[{"q": 1}]', "row 0"),
        ("twice.csv", "queries,queries,prefix\n1,2,3\n", "more than once"),
        ("long.csv", "queries,prefix\n1,2,3\n", "long.csv:2"),
    ],
)
def test_bad_batches(name: str, text: str, word: str, tmp_path: Path, cli: Any) -> None:
    path = tmp_path / name
    path.write_text(text)
    refused(cli(f"dispatch --model dsv3 --gpu h200 --rows {path}"), word)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dispatch --model dsv3 --gpu h200 --rows ''", ["--rows"]),
        ("dispatch --model dsv3 --gpu h200 --rows 1", ["queries:prefix"]),
        ("dispatch --model dsv3 --gpu h200 --rows 0:5", ["queries"]),
        ("dispatch --model dsv3 --gpu h200 --rows 1:x", ["prefix"]),
        ("dispatch --model dsv3 --gpu h200 --rows 200000x1:5", ["--rows"]),
        ("dispatch --model dsv3 --gpu h200 --rows missing.csv", ["missing.csv"]),
        ("dispatch --model dsv3 --rows 1:5", ["--gpu", "--cc"]),
        ("dispatch --model dsv3 --gpu h200 --cc 9.0 --rows 1:5", ["--gpu", "--cc"]),
        ("dispatch --model dsv3 --cc nine --rows 1:5", ["nine"]),
        ("dispatch --model dsv3 --gpu tpu-v6e --rows 1:5", ["Google"]),
        ("dispatch --model dsv3 --gpu h200 --backend FLASHY --rows 1:5", ["FLASHY", "FLASHMLA"]),
        ("dispatch --model dsv3 --gpu h200 --tp 8 --dcp 3 --rows 1:5", ["--dcp 3"]),
        ("dispatch --model dsv3 --gpu h200 --prefix-threshold 5 --rows 1:5", ["--prefix-threshold"]),
        ("dispatch --model dsv3 --gpu h200 --engine sglang --threshold 5 --rows 1:5", ["--threshold"]),
        ("dispatch --model dsv3 --gpu h200 --engine sglang --mode idle --rows 1:5", ["idle"]),
        ("dispatch --model dsv3 --gpu h200 --graph --rows 1:5", ["--graph", "vLLM"]),
        ("dispatch --model dsv3 --gpu h200 --deterministic --rows 1:5", ["--deterministic", "vLLM"]),
        ("dispatch --model dsv3 --gpu h200 --no-ragged --rows 1:5", ["--no-ragged", "vLLM"]),
        ("dispatch --model dsv3 --gpu h200 --engine sglang --spec-tokens 3 --rows 1:5", ["--spec-tokens", "decode"]),
        ("dispatch --model dsv3 --gpu h200 --engine sglang --aiter --rows 1:5", ["--aiter", "SGLang"]),
        ("dispatch --model dsv3 --gpu h200 --sparse --rows 1:5", ["--sparse", "no indexer"]),
        ("dispatch --model dsv3 --cc 9.0 --rows 1:5 --scan", ["--scan", "--gpu"]),
        ("dispatch --model llama3-70b --gpu h200 --rows 1:5", ["GQA"]),
        ("backends --engine vllm@0.1", ["vllm@0.1"]),
        ("backends --model dsv3", ["--gpu", "--cc"]),
        ("backends --gpu h200", ["--gpu", "--model"]),
        ("backends --dtype q", ["--dtype", "--model"]),
        ("dispatch --model dsv3 --engine vllm@0.26 --gpu h200 --rows 1:5", ["not read"]),
        ("dispatch --model dsv3 --engine sglang --gpu h200 --dtype nvfp4_ds_mla --rows 1:5", ["nvfp4_ds_mla"]),
        ("backends --model dsv3 --engine sglang --gpu h200 --dtype q4_0", ["q4_0"]),
        ("workspace --model dsv3 --engine sglang --rows-cap 5", ["--rows-cap"]),
        ("workspace --model dsv3 --tp 8 --dcp 3", ["--dcp 3"]),
        ("workspace --model dsv3 --rows 1:5:6", ["5:6"]),
    ],
)
def test_refusals(line: str, words: list[str], cli: Any) -> None:
    refused(cli(line), *words)


def test_the_inventories(cli: Any) -> None:
    # the chapter: thirty-seven members, nineteen of them MLA; vllm 0.33.0 registry.py:44-169: 50 and 25
    assert cli("backends --engine vllm@0.29 -f json").results["registry"] == {"total": 37, "mla": 19}
    newest = cli("backends -f json").results
    assert newest["registry"] == {"total": 50, "mla": 25}
    assert len(newest["inventory"]) == 25


def test_the_class_chain_of_the_chapter(cli: Any) -> None:
    chain = {
        entry["name"]: entry["inherits"] for entry in cli("backends --engine sglang@0.5.18 -f json").results["chain"]
    }
    for child in ("CutlassMLABackend", "FlashMLABackend", "TRTLLMMLABackend"):
        assert chain[child] == "FlashInferMLAAttnBackend"
    for child in ("CuteDslMLABackend", "TokenspeedMLABackend"):
        assert chain[child] == "TRTLLMMLABackend"


@pytest.mark.parametrize(
    ("options", "resolved"),
    [
        # vllm 0.33.0 platforms/cuda.py:84-155 with each backend's own gates
        ("--model dsv3 --gpu h200", "FLASH_ATTN_MLA"),
        ("--model dsv3 --gpu h200 --dtype fp8", "FLASHMLA"),
        ("--model dsv3 --gpu b200", "FLASHINFER_MLA"),
        ("--model dsv3 --gpu a100", "TRITON_MLA"),
        ("--model dsv3 --cc 12.0", "TRITON_MLA"),
        ("--model dsv32 --gpu h200", "FLASH_ATTN_MLA_SPARSE"),
        ("--model dsv32 --gpu h200 --dtype fp8", "FLASHMLA_SPARSE"),
        ("--model dsv32 --gpu b200 --dtype fp8", "FLASHINFER_MLA_SPARSE"),
        ("--model dsv32 --gpu a100", None),
    ],
)
def test_resolved(options: str, resolved: str | None, cli: Any) -> None:
    results = cli(f"backends {options} -f json").results
    assert results["resolved"] == resolved
    taken = [rung["name"] for rung in results["ladder"] if rung["accepted"]]
    assert taken == ([resolved] if resolved else [])
    assert all(rung["reason"] for rung in results["ladder"])


def test_a_plan_of_chunks(cli: Any) -> None:
    # vllm#50613: 60,000 tokens of context beside 31 requests of 16 are one chunk now
    chunks = cli("workspace --model dsv3 --rows 600:60000,31x600:16 -f json").results["chunks"]
    assert [chunk["tokens"] for chunk in chunks] == [60_496]
    assert len(chunks[0]["pieces"]) == 32
    assert cli("workspace --model dsv3 -f json").results["chunks"] is None


def test_json_of_every_row_is_complete(cli: Any) -> None:
    document = json.loads(cli(f"{DSV3} --gpu h200 --rows 1:4096").out)
    row = document["results"]["rows"][0]
    keys = {"queries", "prefix", "path", "rule", "absorbed_bound_s", "naive_bound_s", "regret_s"}
    assert keys <= set(row)
    assert {"chosen_bound_s", "best_bound_s", "regret_s"} <= set(document["results"]["batch"])


SPARSE = "dispatch --model dsv32 -f json --sparse"


@pytest.mark.parametrize(
    ("engine", "rows", "expected"),
    [
        # a decode row over 4,097 keys attends its 2,048 best; a prefill of 300 over 4,096 is longer than the top-k
        ("vllm", "1:4096,300:4096", ["absorbed", "absorbed"]),
        # up to index_topk a prefill is dense MHA, as the longest prefill decides
        ("vllm", "1:4096,300:1748", ["absorbed", "mha"]),
        ("vllm", "1:4096,300:1749", ["absorbed", "absorbed"]),
        ("sglang", "300:1748", ["mha_one_shot"]),
        ("sglang", "300:1749", ["absorbed"]),
    ],
)
def test_sparse_rows(engine: str, rows: str, expected: list[str], cli: Any) -> None:
    answer = cli(f"{SPARSE} --gpu h200 --engine {engine} --rows {rows}")
    assert paths(answer) == expected
    # one query: 2,048 * 1,152 / (1,152 - 132) = 2,313.03 and 2,048 * 278,528 / (278,528 - 16,384) = 2,176
    assert answer.results["sparse"] == {"first_context_bytes": 2314, "first_context_flop": 2177}


def test_sparse_figures_of_a_row(cli: Any) -> None:
    row, short = cli(f"{SPARSE} --gpu h200 --rows 1:4096,1:99").results["rows"]
    folds = 2 * 2 * 128 * 128 * 512
    assert row["absorbed"]["flop"] == 4097 * 16_384 + 2048 * 278_528 + folds
    # the naive path scores all 4,097 keys and attends them all; up to 2,048 nothing is scored
    naive = 33_554_432 + 81_920
    assert row["naive"]["flop"] == 4097 * (naive + 16_384)
    assert short["naive"]["flop"] == 100 * naive


def test_dense_is_what_is_priced_unless_asked(cli: Any) -> None:
    answer = cli("dispatch --model dsv32 -f json --gpu h200 --rows 1:4096")
    assert answer.results["sparse"] is None
    assert answer.results["rows"][0]["absorbed"]["flop"] == 4097 * 278_528 + 2 * 2 * 128 * 128 * 512
    assert any("--sparse" in note for note in json.loads(answer.out)["notes"])


def test_layers_that_reuse_a_choice_score_nothing(cli: Any) -> None:
    """GLM-5.2 indexes on 21 of 78 layers: the regret of a wrong path is that of 21 and of 57 that do not score."""
    line = "dispatch --model glm-5.2 -f json --gpu h200 --sparse --backend FLASHMLA_SPARSE --dtype fp8_ds_mla"
    answer = cli(f"{line} --rows 2:1000 --threshold 1")
    # expanded, over no more than index_topk keys: the naive path does not score, the absorbed one does on 21 layers
    assert paths(answer) == ["mha"]
    batch = answer.results["batch"]
    indexer = max((1001 + 1002) * 2 * 32 * 128 / 989.4e12, 1002 * 132 / 4.8e12)
    assert batch["total_regret_s"] == pytest.approx(78 * batch["regret_s"] + 57 * indexer, rel=1e-9)


@pytest.mark.parametrize(
    ("line", "switch", "expected"),
    [
        # the switches of each engine, on a batch whose path they change
        ("dsv3 --engine sglang --gpu h200 --rows 5:9000", "--no-chunked-prefix", ["mha_one_shot", "absorbed"]),
        (
            "dsv3 --engine sglang --gpu h200 --rows 5:9000 --backend flashinfer",
            "--no-ragged",
            ["mha_one_shot", "absorbed"],
        ),
        ("dsv3 --engine sglang --gpu b200 --rows 5:9000 --backend fa4", "--deterministic", ["mha_chunked", "absorbed"]),
        ("dsv32 --gpu h200 --rows 300:1000", "--force-mqa", ["mha", "absorbed"]),
    ],
)
def test_switches(line: str, switch: str, expected: list[str], cli: Any) -> None:
    taken = [paths(cli(f"dispatch -f json --model {line} {more}"))[0] for more in ("", switch)]
    assert taken == expected


def test_aiter_changes_the_backend_on_rocm(cli: Any) -> None:
    """vllm/envs.py:1267: off unless it is set."""
    for more, backend in (("", "TRITON_MLA"), ("--aiter", "ROCM_AITER_MLA")):
        assert cli(f"{DSV3} --gpu mi300x --rows 1:9000 {more}").results["backend"] == backend


def test_the_rule_is_sourced(cli: Any) -> None:
    sources = json.loads(cli(f"{DSV3} --gpu h200 --rows 1:9000").out)["sources"]
    assert "vllm 0.33.0, vllm/v1/attention/backends/mla/flashattn_mla.py" in " ".join(sources)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        # vllm 0.33.0 v1/attention/ops/flashmla.py: the dense kernel refuses all but 9.x
        ("--model dsv3 --gpu b200 --backend FLASHMLA", ["would refuse FLASHMLA", "10"]),
        ("--model dsv3 --gpu h200 --backend FLASH_ATTN_MLA --dtype fp8", ["would refuse", "fp8"]),
        ("--model dsv3 --gpu h200 --backend CPU_MLA", ["would refuse", "cpu"]),
        ("--model dsv3 --gpu h200 --backend FLASHMLA_SPARSE", ["would refuse", "sparse"]),
        ("--model dsv3 --engine sglang --gpu h200 --backend dsa", ["would refuse", "indexer"]),
        ("--model dsv3 --gpu h200 --tp 8 --dcp 8", ["DCP", "without it"]),
    ],
)
def test_what_has_to_be_said_of_a_choice(line: str, words: list[str], cli: Any) -> None:
    notes = " ".join(json.loads(cli(f"dispatch -f json {line} --rows 1:4096").out)["notes"])
    assert [word for word in words if word not in notes] == []


def test_nothing_is_said_of_what_the_engine_takes(cli: Any) -> None:
    notes = " ".join(json.loads(cli(f"{DSV3} --gpu h200 --backend FLASH_ATTN_MLA --rows 1:4096").out)["notes"])
    assert "refuse" not in notes
    assert "stores" not in notes


@pytest.mark.parametrize(
    ("line", "row_bytes"),
    [
        # on Hopper DSA's fp8 rows are the scaled ones of 656 B, in vLLM and in SGLang; raw on Blackwell in SGLang
        ("--model dsv32 --gpu h200 --dtype fp8", 656),
        ("--model dsv32 --gpu h200 --dtype fp8 --engine sglang", 656),
        ("--model dsv32 --gpu b200 --dtype fp8 --engine sglang", 576),
        ("--model dsv3 --gpu h200 --dtype fp8", 576),
        ("--model dsv3 --gpu h200", 1152),
    ],
)
def test_the_rows_that_are_stored_are_priced(line: str, row_bytes: int, cli: Any) -> None:
    moved = cli(f"dispatch -f json {line} --rows 1:4095").results["rows"][0]["absorbed"]["bytes"]
    # beside 4,096 rows: q_fold 128 x (128 + 512), attention 128 x (2 x 512 + 64), v_up 128 x (512 + 128) values
    assert moved == 4096 * row_bytes + 2 * 128 * (640 + 1088 + 640)


def test_a_batch_of_one_takes_what_flops_says(cli: Any) -> None:
    for queries, prefix, path in ((600, 9000, "naive"), (1, 4096, "absorbed"), (100, 4096, "absorbed")):
        batch = cli(f"{DSV3} --gpu h200 --rows {queries}:{prefix}").results["batch"]
        step = cli(f"flops --model dsv3 --gpu h200 --queries {queries} --context {queries + prefix} -f json").results
        assert batch["chosen_bound_s"] == pytest.approx(step[path]["bound_s"], rel=1e-12)


def test_a_long_batch_lists_the_rules_of_the_rows_that_it_lists(cli: Any) -> None:
    rows = ",".join(f"{queries}:5000" for queries in range(1, 101))
    answer = cli(f"dispatch --model dsv3 --gpu h200 --rows {rows}")
    assert answer.code == 0
    assert "40 queries <= FLASH_ATTN_MLA's threshold" in answer.out
    assert "41 queries <=" not in answer.out
    assert "The first 40 of 100 different rows are listed; the JSON has all rows." in answer.out


def test_rows_that_are_alike_are_listed_once(cli: Any) -> None:
    # 42 + 2 rows of two kinds: the one that differs from the first 40 is listed too
    answer = cli("dispatch --model dsv3 --gpu h200 --rows 40x1:4096,600:9000,2x1:4096,600:9000")
    table = [line.split() for line in answer.out.splitlines() if line.strip().startswith(("42x", "2x"))]
    assert [line[:4] for line in table] == [["42x", "1", "4,096", "absorbed"], ["2x", "600", "9,000", "mha"]]
    assert re.search(r"^  0 to 39, 41, 42 +1 query <=", answer.out, re.MULTILINE)
    assert re.search(r"^  40, 43 +600 queries >", answer.out, re.MULTILINE)
    assert "are listed" not in answer.out


def test_rows_of_one_each_have_no_count(cli: Any) -> None:
    assert "rows  queries" not in cli("dispatch --model dsv3 --gpu h200 --rows 1:4096,1:4097").out


@pytest.mark.parametrize("runner", ["v1", "v2"])
@pytest.mark.parametrize("more", ["", "--parallel-drafting"])
def test_the_threshold_printed_is_the_one_that_decides(runner: str, more: str, cli: Any) -> None:
    """Speculation widens a verified row to 1 + 3 tokens, parallel drafting further where the runner has it."""
    line = f"{DSV3} --cc 9.0 --backend TRITON_MLA --spec-tokens 3 --runner {runner} {more}"
    threshold = cli(f"{line} --rows 1:9000").results["threshold"]
    assert threshold >= 4
    assert paths(cli(f"{line} --rows {threshold}:9000")) == ["absorbed"]
    assert paths(cli(f"{line} --rows {threshold + 1}:9000")) == ["mha"]
