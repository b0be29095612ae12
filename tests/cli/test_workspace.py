"""`workspace` and `sweep workspace`: what is said beside the figures, and what is refused.

Sources: shared facts on the engines, B (vllm 0.33.0 mla_attention.py) and D (sglang 0.5.23
attention_backend_handler.py, forward_batch_deepseek_mha_mixin.py).
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.cli.test_bad_input import refused

VECTOR = "600:60000,31x600:16"
"""vllm#50613 as prefills: 600 queries are above every dense threshold of Hopper."""
MIB = 2**20


def document(answer: Any) -> Any:
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def notes(answer: Any) -> str:
    return "\n".join(document(answer)["notes"])


# --- plans of a batch


def test_a_batch_that_one_shot_takes_whole(cli: Any) -> None:
    answer = cli(f"workspace --model dsv3 --engine sglang --rows {VECTOR} -f json")
    # 131,072 // 32 = 4,096; ceil(60,000 / 4,096) = 15
    assert answer.results["chunk_count"] == len(answer.results["chunks"]) == 15
    # 60,600 + 31 * 616
    assert "sum to 79,696" in notes(answer)
    assert "one-shot form (flashinfer, flashmla, fa3)" in notes(answer)
    assert "without one (fa4, trtllm_mla, cutedsl_mla)" in notes(answer)
    assert "`dispatch` says" in notes(answer)


@pytest.mark.parametrize(("queries", "fits"), [(1072, True), (1073, False)])
def test_one_shot_takes_up_to_the_chunk_capacity(queries: int, fits: bool, cli: Any) -> None:
    # the new tokens count: 130,000 + 1,072 = 131,072
    answer = cli(f"workspace --model dsv3 --engine sglang --rows {queries}:130000 -f json")
    assert ("one-shot" in notes(answer)) is fits
    assert answer.results["chunk_count"] == 1


def test_one_shot_is_of_sglang(cli: Any) -> None:
    assert "one-shot" not in notes(cli(f"workspace --model dsv3 --rows {VECTOR} -f json"))


@pytest.mark.parametrize("rows", ["", " --rows 600:60000"])
def test_a_dsa_model_is_not_chunked_in_sglang(rows: str, cli: Any) -> None:
    answer = cli(f"workspace --model dsv32 --engine sglang -f json{rows}")
    assert answer.results["chunks"] is answer.results["chunk_count"] is None
    assert "longer than the top-k of 2,048" in notes(answer)
    assert "--rows" not in notes(answer)
    assert "which rows are" not in notes(answer)


@pytest.mark.parametrize("engine", ["vllm", "vllm@0.26", "sglang"])
def test_which_rows_are_expanded_is_left_to_dispatch(engine: str, cli: Any) -> None:
    said = "Every row with a prefix is taken to be expanded; which rows are, `dispatch` says."
    line = f"workspace --model dsv3 --engine {engine} -f json"
    assert said in document(cli(f"{line} --rows 1:4096"))["notes"]
    assert said not in document(cli(line))["notes"]


@pytest.mark.parametrize(
    ("engine", "more", "chunks"),
    [
        # vllm#50613: 65,536 // 32 = 2,048 and ceil(60,000 / 2,048) = 30 before, 60,496 <= 65,536 now
        ("vllm@0.26", "", 30),
        ("vllm", "", 1),
        # rows without a prefix take no share in vLLM; SGLang: 131,072 // 132 = 992, ceil(60,000 / 992) = 61
        ("vllm@0.26", ",100x600:0", 30),
        ("vllm", ",100x600:0", 1),
        ("sglang", ",100x600:0", 61),
    ],
)
def test_chunks_of_prefills(engine: str, more: str, chunks: int, cli: Any) -> None:
    answer = cli(f"workspace --model dsv3 --engine {engine} --rows {VECTOR}{more} -f json")
    assert answer.results["chunk_count"] == len(answer.results["chunks"]) == chunks


def test_the_rows_are_in_the_inputs(cli: Any) -> None:
    answer = cli("workspace --model dsv3 --rows 600:60k,2x600:16 -f json")
    assert document(answer)["inputs"]["rows"] == ["600:61440", "600:16", "600:16"]
    assert document(cli("workspace --model dsv3 -f json"))["inputs"]["rows"] == []


# --- fp8 rows


def test_an_fp8_prefill_gathers_one_byte_a_value(cli: Any) -> None:
    # 65,536 rows of 576 B
    assert cli("workspace --model dsv3 --dtype fp8 --fp8-prefill -f json").results["latent_bytes"] == 36 * MIB
    assert cli("workspace --model dsv3 --dtype fp8 -f json").results["latent_bytes"] == 72 * MIB
    # under DCP 2 65,536 + 32,768 rows of the model's dtype
    answer = cli("workspace --model dsv3 --dtype fp8 --fp8-prefill --tp 2 --dcp 2 -f json")
    assert answer.results["latent_bytes"] == 108 * MIB
    assert "whatever --fp8-prefill says" in notes(answer)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("workspace --model dsv3 --fp8-prefill", ["--fp8-prefill", "bf16", "--dtype fp8"]),
        ("workspace --model dsv32 --dtype fp8_ds_mla --fp8-prefill", ["--fp8-prefill", "fp8_ds_mla"]),
        ("workspace --model dsv3 --engine sglang --dtype fp8 --fp8-prefill", ["--fp8-prefill", "SGLang"]),
        ("sweep workspace --model dsv3 --engine sglang", ["SGLang", "sets no", "`workspace --engine sglang`"]),
    ],
)
def test_refusals(line: str, words: list[str], cli: Any) -> None:
    refused(cli(line), *words)


# --- DSA models


def test_what_was_not_read_is_null(cli: Any) -> None:
    line = "workspace --model dsv32 --engine vllm@0.26"
    answer = cli(f"{line} -f json")
    results = answer.results
    assert results["sparse_prefill_bytes"] is results["indexer_buffer_bytes"] is None
    # 72 MiB and 4 GiB; a token is 61 * (1,152 + 132) = 78,324 B
    assert results["held_bytes"] == 72 * MIB + 4096 * MIB
    assert results["cache_tokens_worth"] == 4_370_464_768 // 78_324 == 55_799
    assert "not read for vLLM 0.26.0" in notes(answer)
    assert "are without them" in notes(answer)
    assert "FLASHMLA_SPARSE" not in notes(answer)
    explained = cli(f"{line} --explain")
    assert explained.code == 0
    assert "held_bytes = 4,370,464,768" in explained.out
    (row,) = csv.DictReader(io.StringIO(cli(f"{line} -f csv").out))
    assert row["sparse_prefill_bytes"] == ""


def test_a_dense_model_has_zero_whatever_the_release(cli: Any) -> None:
    results = cli("workspace --model dsv3 --engine vllm@0.26 -f json").results
    assert (results["sparse_prefill_bytes"], results["indexer_buffer_bytes"]) == (0, 0)


def test_a_sweep_leaves_out_what_was_not_read(cli: Any) -> None:
    answer = cli("sweep workspace --model dsv32 --engine vllm@0.26 -f json")
    (row,) = answer.results
    assert not {"sparse_prefill_bytes", "indexer_buffer_bytes"} & set(row)
    assert row["held_bytes"] == 72 * MIB + 4096 * MIB
    assert "not read for vLLM 0.26.0" in notes(answer)
    read = cli("sweep workspace --model dsv32 -f json")
    assert read.results[0]["sparse_prefill_bytes"] == 943_718_400
    assert "not read" not in notes(read)
    dense = cli("sweep workspace --model dsv3 --engine vllm@0.26 -f json")
    assert dense.results[0]["sparse_prefill_bytes"] == 0
    assert "not read" not in notes(dense)


def test_whose_scratch_it_is(cli: Any) -> None:
    said = notes(cli("workspace --model dsv32 -f json"))
    assert "is FLASHMLA_SPARSE's; other sparse backends" in said
    # sparse_mla_attention.py:67, 230-239: 128 MiB, on SM10x without DCP
    assert "Masked MHA (compute capability 10.x, an unquantised cache) keeps 128.0 MiB" in said
    assert "Masked MHA" not in notes(cli("workspace --model dsv32 --tp 2 --dcp 2 -f json"))
    assert "FLASHMLA_SPARSE" not in notes(cli("workspace --model dsv3 -f json"))


@pytest.mark.parametrize(
    ("requests", "peak_mib", "said"),
    [
        # requests * 2,048 rows of 128 * (256 + 192) * 2 = 114,688 B; the reserve is 4 GiB
        (1, 224, "covers the peak"),
        (18, 4032, "covers the peak"),
        (19, 4256, "160.0 MiB of the peak come from what memory is left"),
        (32, 7168, "3.0 GiB of the peak come from what memory is left"),
    ],
)
def test_what_the_reserve_leaves_out(requests: int, peak_mib: int, said: str, cli: Any) -> None:
    answer = cli(f"workspace --model dsv32 --max-num-seqs {requests} -f json")
    assert answer.results["transient_peak_bytes"] == peak_mib * MIB
    assert answer.results["reserved_bytes"] == 4096 * MIB
    assert said in notes(answer)
    assert ("memory is left" in notes(answer)) is ("memory is left" in said)


# --- lists


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("--tp 1,2", "At TP 1 and 65,536 rows, 72.0 MiB of latent rows"),
        ("--tp 2 --rows-cap 8k,64k", "At TP 2 and 8,192 rows, 9.0 MiB of latent rows"),
        ("--tp 4,1 --engine sglang", "At TP 4, up to 131,072 tokens"),
        ("--tp 2", "72.0 MiB of latent rows"),
        ("--engine sglang", "Up to 131,072 tokens"),
    ],
)
def test_the_sentence_says_which_entry_it_is_of(options: str, start: str, cli: Any) -> None:
    text = cli(f"workspace --model dsv3 {options}").out
    assert any(line.startswith(start) for line in text.splitlines()), text


def test_chunks_of_a_list(cli: Any) -> None:
    # 60,000 + 31 * 16 = 60,496 tokens: 8 chunks of 8,192 rows, 1 of 65,536
    line = f"workspace --model dsv3 --rows-cap 8k,64k --rows {VECTOR}"
    assert [record["chunk_count"] for record in cli(f"{line} -f json").results] == [8, 1]
    lines = cli(line).out.splitlines()
    header = next(index for index, text in enumerate(lines) if text.startswith("  TP"))
    assert lines[header].endswith("chunks")
    assert [text.split()[-1] for text in lines[header + 1 : header + 3]] == ["8", "1"]
    assert "chunks" not in cli("workspace --model dsv3 --rows-cap 8k,64k").out.splitlines()[header]


def test_what_a_dsa_model_holds_in_a_list(cli: Any) -> None:
    # 9 + 512 + 900 + 825 MiB
    line = "workspace --model dsv32 --rows-cap 8k,64k"
    first = cli(f"{line} -f json").results[0]
    assert first["held_bytes"] == 2246 * MIB
    assert first["cache_tokens_worth"] == 2246 * MIB // 78_324 == 30_068
    lines = cli(line).out.splitlines()
    header = next(index for index, text in enumerate(lines) if text.startswith("  TP"))
    assert "held" in lines[header]
    assert "2.2 GiB" in lines[header + 1]
    assert "held" not in cli("workspace --model dsv3 --rows-cap 8k,64k").out.splitlines()[header]
