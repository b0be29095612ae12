"""`capacity` and `cache --cache-form` through the command line: keys, refusals, formats.

Figures by hand: docs/cost-model.md, section 10, and vllm-project/vllm#10927.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.main import run

ROOT = Path(__file__).parents[2]
KEYS = {  # the design's own list
    "unique_tokens",
    "copies",
    "per_gpu",
    "layouts",
    "requests",
    "gpus_needed",
    "fixed_bytes_per_request",
}
LINES = [
    "capacity --model dsv3 --gpu h200 --gpus 8 --tp 8",
    "capacity --model dsv3 --gpu h200 --gpus 12 --search",
    "capacity --model dsv32 --gpu h200 --tp 8 --dcp 2 --engine sglang --dtype fp8_ds_mla",
    "capacity --model dsv3 --gpu h200 --for-context 128k --for-requests 100",
    "capacity --model llama3-70b --cache-budget 40GiB --tp 16 --dcp 2",
    "capacity --model gpt-oss-120b --cache-budget 40GiB -s 64k",
    "capacity --model kimi-linear-48b --gpu h200 --weight-bytes 2",
    "capacity --model dsv2-lite --cache-budget 40GiB --cache-form expanded --pad-head-dim 256",
]


@pytest.mark.parametrize("line", LINES)
def test_documents_in_every_format(line: str, cli: Any) -> None:
    document = json.loads(cli(f"{line} -f json").out)
    assert document["schema"] == "mla-calc/capacity/1"
    results = document["results"]
    assert set(results) >= KEYS
    assert set(results["per_gpu"]) >= {"weights_bytes", "cache_bytes", "workspace_bytes", "reserve_bytes"}
    assert set(results["layouts"][0]) == {
        "tp",
        "dp",
        "dcp",
        "pp",
        "legal",
        "reason",
        "unique_tokens",
        "total_decode_bound_s",
    }
    rows = list(csv.reader(io.StringIO(cli(f"{line} -f csv").out)))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == 1 + (len(results["layouts"]) if "--search" in line else 1)
    assert cli(f"{line} -f markdown").out.startswith("## ")
    text = cli(f"{line} --explain").out
    assert max(map(len, text.splitlines())) <= 120
    assert f"{results['unique_tokens']:,}" in text


@pytest.mark.parametrize("line", LINES)
def test_every_key_is_explained(line: str, cli: Any) -> None:
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").split("\n## capacity\n")[1].split("\n## ")[0]
    explained = set(re.findall(r"`(?:\w+(?:\[\])?\.)*(\w+)(?:\[\])?`", page))
    results = cli(f"{line} -f json").results
    named = {*results, *results["per_gpu"], *results["layouts"][0]}
    assert named - explained == set()


def test_what_is_not_known_is_null_with_a_note(cli: Any) -> None:
    document = json.loads(cli("capacity --model dsv3 --cache-budget 40GiB -f json").out)
    here = document["results"]["per_gpu"]
    assert here["weights_bytes"] is here["workspace_bytes"] is here["reserve_bytes"] is None
    assert document["results"]["total_decode_bound_s"] is document["results"]["gpus_needed"] is None
    notes = " ".join(document["notes"])
    assert all(word in notes for word in ("--cache-budget", "decode bound", "--for-context"))


def test_a_budget_needs_no_gpu(cli: Any) -> None:
    # 40 GiB // 70,272 B
    assert cli("capacity --model dsv3 --cache-budget 40GiB -f json").results["unique_tokens"] == 611_191


@pytest.mark.parametrize(("reserve", "expected"), [("12.5%", 143_156 * 2**17), ("8GiB", 8 * 2**30), ("0%", 0)])
def test_reserve(reserve: str, expected: int, cli: Any) -> None:
    results = cli(f"capacity --model dsv3 --gpu h200 --tp 8 --reserve {reserve} -f json").results
    assert results["per_gpu"]["reserve_bytes"] == expected


def test_dp_takes_the_gpus_that_remain(cli: Any) -> None:
    results = cli("capacity --model dsv3 --gpu h200 --gpus 16 --tp 4 --pp 2 -f json").results
    assert (results["dp"], results["gpus"], results["ep"]) == (2, 16, 8)


def test_gpus_needed_is_the_inverse(cli: Any) -> None:
    line = "capacity --model dsv3 --gpu h200 --for-context 128k --for-requests 100 --search -f json"
    results = cli(line).results
    assert results["gpus_needed"] == results["gpus"]
    assert results["requests"] >= 100
    fewer = cli(f"capacity --model dsv3 --gpu h200 --gpus {results['gpus'] - 1} -s 128k --search -f json").results
    assert fewer["requests"] < 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "--gpu"),
        ("--gpu h800", "--cache-budget"),
        ("--gpu h200 --tp 3", "TP 3 does not divide"),
        ("--gpu h200 --tp 8 --dcp 3", "DCP 3 does not divide TP 8"),
        ("--gpu h200 --pp 62", "PP 62"),
        ("--gpu h200 --gpus 12 --tp 8", "does not divide --gpus 12"),
        ("--gpu h200 --gpus 16 --tp 8 --dp 3", "are 24 GPUs"),
        ("--gpu h200 --tp 128 --dp 64", "at most 4,096"),
        ("--gpu h200 --gpus 4097", "4,096"),
        ("--gpu h200 --gpus 8 --ep 3", "EP 3"),
        ("--gpu h200 --reserve 10", "--reserve"),
        ("--gpu h200 --reserve 110%", "at most 100%"),
        ("--gpu h200 --reserve 99999999999%", "at most 100%"),
        ("--gpu h200 --reserve 100.0001%", "at most 100%"),
        ("--gpu h200 --reserve x%", "10%"),
        ("--gpu h200 --reserve %", "10%"),
        ("--gpu h200 --reserve 0", "a share such as 10% or a size such as 8GiB"),
        ("--gpu h200 --reserve 8Gi", "a share such as 10% or a size such as 8GiB"),
        ("--gpu h200 --reserve 200GiB", "more than"),
        ("--gpu h200 --search", "--gpus"),
        ("--gpu h200 --for-requests 4", "--for-context"),
        ("--gpu h200 --gpus 8 --for-context 4k", "leave out --gpus"),
        ("--gpu h200 --for-context 1024m --for-requests 1024m", "no legal layout"),
        ("--gpu h200 --weight-bytes 3", "--weight-bytes"),
        ("--cache-budget 0B", "--cache-budget"),
        ("--cache-budget 2048TiB", "1024TiB"),
        ("--cache-budget 40", "--cache-budget"),
        ("--cache-budget 40GiB --cache-form wide", "latent or expanded"),
        ("--cache-budget 40GiB --pad-head-dim 256", "--cache-form expanded"),
        ("--cache-budget 40GiB --cache-form expanded --pad-head-dim 64", "192 wide"),
        ("--cache-budget 40GiB --cache-form expanded --tp 8 --dcp 2", "copies of a KV head"),
        ("--cache-budget 40GiB --mtp-layers 2", "--mtp-layers 2"),
        ("--cache-budget 40GiB --engine tensorrt", "tensorrt"),
    ],
)
def test_bad_input(options: str, said: str, cli: Any) -> None:
    answer = cli(f"capacity --model dsv3 {options}")
    assert answer.code == 2
    assert not answer.out
    assert said in answer.err
    assert len(answer.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "said"),
    [("glm-5.2", "--weight-bytes"), ("llama3-70b", "--cache-budget"), ("hy4-preview", "--max-model-len")],
)
def test_models_of_which_something_is_not_known(name: str, said: str, cli: Any) -> None:
    answer = cli(f"capacity --model {name} --gpu h200 --tp 8")
    assert answer.code == 2
    assert said in answer.err


def test_refused_layouts_say_why(cli: Any) -> None:
    layouts = cli("capacity --model dsv3 --gpu h200 --gpus 12 --search -f json").results["layouts"]
    refused = {one["reason"] for one in layouts if not one["legal"]}
    assert "TP 3 does not divide the 128 heads of DeepSeek-V3" in refused
    assert "DCP 3 does not divide TP 4" in refused
    assert all(one["unique_tokens"] is None for one in layouts if not one["legal"])


def test_cache_of_expanded_keys_and_values(cli: Any) -> None:
    # vllm-project/vllm#10927: 27 * 16 * 2 * 256 * 2
    line = "cache --model dsv2-lite --cache-form expanded --pad-head-dim 256 --tp 4"
    results = cli(f"{line} -f json").results
    assert results["bytes_per_token"] == results["cluster_bytes_per_token"] == 442_368
    assert results["per_rank_bytes_per_token"] == 442_368 // 4
    assert results["latent_bytes_per_token"] == 31_104
    assert results["never_cached_bytes_per_token_per_layer"] is None
    document = json.loads(cli(f"{line} --explain -f json").out)
    for item in document["explanations"]:
        assert eval(item["numbers"]) == pytest.approx(item["value"]), item["key"]


def test_an_expanded_cache_has_no_break_even(cli: Any) -> None:
    answer = cli("cache --model dsv3 --cache-form expanded --vs llama3-70b -f json")
    assert answer.results["break_even_tp"] is None
    assert "shards its heads" in answer.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model llama3-70b --cache-form expanded", "no latent"),
        ("--model dsv3 --cache-form x", "latent or expanded"),
        ("--model dsv3 --dtype fp8_ds_mla --cache-form expanded", "fp8_ds_mla"),
        ("--model dsv3 --pad-head-dim 256", "--cache-form expanded"),
    ],
)
def test_cache_forms_that_do_not_hold(options: str, said: str, cli: Any) -> None:
    answer = cli(f"cache {options}")
    assert answer.code == 2
    assert said in answer.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model dsv3 --cache-budget 40GiB --reserve rubbish", "--reserve does not count here: --cache-budget"),
        ("--model dsv3 --cache-budget 40GiB --rows-cap foo", "--rows-cap does not count here: --cache-budget"),
        ("--model dsv3 --cache-budget 40GiB --max-num-seqs 0", "--max-num-seqs does not count here: --cache-budget"),
        ("--model dsv3 --cache-budget 40GiB --for-context 128k -s 4k", "--context does not count here: --for-context"),
        ("--model dsv3 --gpu h200 --engine sglang --rows-cap 5", "SGLang 0.5.23 sets no workspace aside"),
        ("--model dsv3 --gpu h200 --engine sglang --max-num-seqs 5", "SGLang 0.5.23 sets no workspace aside"),
        ("--model llama3-70b --gpu h200 --rows-cap 5", "without a cached latent"),
        ("--model dsv3 --cache-budget 40GiB --batch 4", "--batch does not count here"),
        ("--model dsv3 --cache-budget 40GiB --weight-bytes 2", "--weight-bytes does not count here"),
        ("--model llama3-70b --gpu h200 --cache-budget 40GiB --batch 4", "--batch does not count here"),
        ("--model dsv3 --gpu h200 --max-model-len 4k -s 8k", "--context 8k: with --max-model-len 4,096"),
        ("--model dsv3 --gpu h200 --max-model-len 4k --for-context 8k", "--for-context 8k: with --max-model-len 4,096"),
        ("--model dsv3 --cache-budget 40GiB --max-model-len 4k,8k", "--max-model-len takes one value"),
        ("--model dsv3 --cache-budget 70272B --for-context 65", "holds 1 request of 65 tokens"),
        ("--model llama3-70b --gpu h100 --weight-bytes 2", "how many parameters"),
    ],
)
def test_what_the_answer_would_not_look_at_is_refused(options: str, said: str, cli: Any) -> None:
    answer = cli(f"capacity {options}")
    assert answer.code == 2
    assert not answer.out
    assert said in answer.err
    assert len(answer.err.splitlines()) <= 2


def test_an_option_that_counts_is_not_refused(cli: Any) -> None:
    lines = (
        "--cache-budget 40GiB --gpu h200 --batch 4 --weight-bytes 2",
        "--gpu h200 --tp 8 --rows-cap 65536 --max-num-seqs 8 --reserve 5% --batch 2 --max-model-len 8k -s 8k",
    )
    for options in lines:
        assert cli(f"capacity --model dsv3 {options}").code == 0


def test_a_published_size_has_decimals(cli: Any) -> None:
    # vllm-project/vllm#10927: 35.42 GiB = 38,031,935,406.08 B, 5,373 blocks
    line = "capacity --model dsv2-lite --cache-form expanded --pad-head-dim 256 --block-size 16 --cache-budget 35.42GiB"
    here = cli(f"{line} -f json").results["per_gpu"]
    assert (here["cache_bytes"], here["blocks"]) == (38_031_935_406, 5_373)
    assert "38,031,935,406 B" in cli(line).out


def said(cli: Any, options: str) -> tuple[str, str]:
    """The sentence, and the notes as one text."""
    document = json.loads(cli(f"capacity {options} -f json").out)
    return " ".join(cli(f"capacity {options}").out.split("\nnote:")[0].split("\n\n")[-1].split()), " ".join(
        document["notes"]
    )


def test_requests_asked_for_are_held_by_the_first_layout(cli: Any) -> None:
    results = cli("capacity --model dsv3 --gpu h200 --for-context 64 --for-requests 70000 --search -f json").results
    assert results["requests"] >= 70_000
    first = results["layouts"][0]
    assert [first[name] for name in ("tp", "dp", "dcp", "pp")] == [results[name] for name in ("tp", "dp", "dcp", "pp")]
    assert any(one["unique_tokens"] > results["unique_tokens"] for one in results["layouts"])


def test_copies_of_rows_and_keys_are_told_apart(cli: Any) -> None:
    options = "--model dsv32 --cache-budget 1TiB --gpus 4096 --tp 128 --dcp 128 --engine sglang"
    sentence, notes = said(cli, options)
    assert "each latent row is stored once, each indexer key 128 times" in sentence
    assert "keeps all indexer keys on every rank" in notes
    sentence, notes = said(cli, "--model dsv32 --cache-budget 1TiB --tp 8 --cache-form expanded")
    assert "each key and value is stored once, each indexer key 8 times" in sentence
    assert "an indexer key has none" in notes
    assert "indexer key" not in " ".join(said(cli, "--model dsv32 --cache-budget 1TiB --tp 8 --dcp 2"))


@pytest.mark.parametrize(
    ("options", "note", "there"),
    [
        ("--model dsv32 --gpu h200 --tp 8", "the decode bound is dense attention's", True),
        ("--model dsv3 --gpu h200 --tp 8", "dense attention's", False),
        ("--model dsv32 --cache-budget 40GiB", "dense attention's", False),
        ("--model glm-5.2 --cache-budget 40GiB --pp 4", "hold indexer keys are taken as spread evenly", True),
        ("--model glm-5.2 --cache-budget 40GiB", "spread evenly", False),
        ("--model dsv32 --cache-budget 40GiB --pp 4", "spread evenly", False),
        ("--model kimi-linear-48b --cache-budget 40GiB --pp 4", "layers that cache are taken as spread evenly", True),
        ("--model gpt-oss-120b --cache-budget 40GiB --pp 4", "cache or have a window are taken as spread", True),
        ("--model dsv3 --gpu h200 --tp 8 -b 5", "does not fit: 5 requests of 163,840, and 4 fit", True),
        ("--model dsv3 --gpu h200 --tp 8 -b 4", "does not fit", False),
        ("--model dsv3 --gpu h200 --tp 8 -s 1m", "does not fit: 1 request of 1,048,576, and not one fits", True),
        ("--model dsv32 --gpu h200 --tp 8 --engine vllm@0.26", "besides for sparse attention was not read", True),
        ("--model dsv32 --gpu h200 --tp 8 --engine vllm@0.29", "besides for sparse attention", False),
        ("--model dsv3 --gpu h200 --tp 8 --engine vllm@0.26", "besides for sparse attention", False),
        ("--model dsv3 --gpu h200", "No decode bound (null): nothing fits.", True),
        ("--model dsv3 --cache-budget 40GiB", "MTP layers (1) are left out", True),
        ("--model dsv3 --cache-budget 40GiB --mtp-layers 1", "are left out", False),
        ("--model hy4-preview --cache-budget 40GiB", "is not known: requests are taken as 4,096 long", True),
        ("--model hy4-preview --cache-budget 40GiB -s 8k", "requests are taken as", False),
    ],
)
def test_notes(options: str, note: str, there: bool, cli: Any) -> None:
    assert (note in said(cli, options)[1]) == there


@pytest.mark.parametrize(("batch", "said_so"), [(4, False), (5, True)])
def test_that_the_step_asked_for_does_not_fit_is_in_the_sentence(batch: int, said_so: bool, cli: Any) -> None:
    sentence = said(cli, f"--model dsv3 --gpu h200 --tp 8 -b {batch}")[0]  # test_notes: 4 requests fit
    assert ("The step asked for, of 5 requests, does not fit." in sentence) == said_so


def test_a_model_of_unknown_length_where_no_workspace_hangs_on_it(cli: Any) -> None:
    line = "capacity --model hy4-preview --gpu h200 --engine sglang --context 128k --tp 8 --weight-bytes 0.5 -f json"
    document = json.loads(cli(line).out)
    assert document["results"]["context"] == 131_072
    assert document["inputs"]["max_model_len"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--model dsv3 --cache-budget 40GiB --for-context 1",
            # pages of 64: 40 GiB // (64 * 70,272 B) requests
            "1 request of 1 token needs 1 GPU at least; on it 611,191 different tokens fit, or 9,549 requests of 1;"
            " each is stored once.",
        ),
        (
            "--model dsv3 --cache-budget 40GiB -s 10000000",
            "611,191 different tokens fit, but not one request of 10,000,000; each is stored once.",
        ),
        (
            "--model dsv3 --cache-budget 70272B -s 64",
            "1 different token fits, but not one request of 64; each is stored once.",
        ),
        ("--model dsv3 --cache-budget 1B", "Nothing fits: the cache given is 1 B, and a token takes 70,272 B."),
    ],
)
def test_sentences(options: str, sentence: str, cli: Any) -> None:
    assert said(cli, options)[0] == sentence


def test_a_search_in_which_nothing_fits_says_so_once(cli: Any) -> None:
    text = cli("capacity --model dsv3 --gpu h200 --gpus 2 --search").out
    assert text.count("leave no room") == 1
    assert "Nothing fits in any layout" in text
    assert "4 legal layouts (4 hold nothing)" in text  # TP 2 with DCP 1 or 2, DP 2, PP 2


def test_search_of_thousands_of_gpus_ends(cli: Any) -> None:
    found = cli("capacity --model dsv3 --gpu h200 --gpus 4096 --search -f json").results
    assert found["gpus"] == 4096
    assert found["layouts"][0]["unique_tokens"] == max(one["unique_tokens"] or 0 for one in found["layouts"])


def test_help_of_every_option_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capacity", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--gpus", "--dp", "--dcp", "--pp", "--ep", "--reserve", "--cache-budget", "--search"):
        assert option in text
