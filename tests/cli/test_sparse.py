"""``--sparse`` on the command line: what it prints, what it notes, what it refuses."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from mla_calc.cli.main import run


def printed(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments.split()) == 0, capsys.readouterr().err
    return " ".join(capsys.readouterr().out.split())


def document(arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert run([*arguments.split(), "--format", "json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


# cost-model.md, section 9: topk*row/(row-132) and topk*ca/(ca-16384)
@pytest.mark.parametrize(
    ("options", "in_bytes", "in_flop"),
    [
        ("", 2314, 2177),
        ("--dtype fp8_ds_mla", 2564, 2177),
        ("--tp 8", 2314, 3869),
        ("--tp 32", 2314, None),
    ],
)
def test_flops_tells_where_sparse_is_less(
    options: str, in_bytes: int, in_flop: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(f"flops --model dsv32 --sparse {options}", capsys)
    sparse = found["results"]["sparse"]
    assert (sparse["first_context_bytes"], sparse["first_context_flop"]) == (in_bytes, in_flop)
    assert (sparse["topk"], sparse["indexer_layers"]) == (2048, 61)
    assert found["inputs"]["sparse"] is True
    noted = any("first_context_flop: null" in note for note in found["notes"])
    assert noted == (in_flop is None)


def test_flops_is_dense_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("flops --model dsv32", capsys)
    assert found["results"]["sparse"] is None
    assert found["inputs"]["sparse"] is False
    assert any("attention is priced dense (--sparse prices DSA)" in note for note in found["notes"])
    assert [kernel["name"] for kernel in found["results"]["absorbed"]["kernels"]] == ["q_fold", "attention", "v_up"]
    assert not any("indexer" in note for note in document("flops --model dsv3", capsys)["notes"])


def test_flops_lists_points(capsys: pytest.CaptureFixture[str]) -> None:
    rows = document("flops --model dsv32 --sparse --context 1k,64k --tp 1,32", capsys)["results"]
    assert [row["sparse"]["attended_pairs"] for row in rows] == [1024, 2048] * 2
    assert [row["sparse"]["first_context_flop"] for row in rows] == [2177, 2177, None, None]


def test_what_is_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("flops --model glm-5.2 --sparse --gpu h200", capsys)
    assert "The indexer's projections, its queries and scores as bytes, and the selection of the top-k are not" in text
    assert "min(context, top-k) rows a request is the least that is read" in text
    assert "21 of 78 do" in text
    assert "engines score in fp8: where compute binds, its bound is too high" in text


@pytest.mark.parametrize("command", ["flops", "intensity", "crossover", "sweep", "sweep intensity"])
def test_a_model_without_an_indexer_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--model", "dsv3", "--sparse"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "mla-calc: --sparse: DeepSeek-V3 has no indexer (index_topk), its attention is dense\n"


def test_gqa_has_no_indexer_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["intensity", "--model", "llama3-70b", "--sparse"]) == 2
    assert "Llama-3-70B has no indexer" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["cache", "workspace"])
def test_sweeps_that_do_not_depend_on_it_refuse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", command, "--model", "dsv32", "--sparse"]) == 2
    assert f"--sparse: `sweep {command}` does not depend on it" in capsys.readouterr().err


def test_intensity_at_a_context(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("intensity --model dsv32 --sparse --tp 8 --context 4k,64k --gpu h100", capsys)
    values = [row["by_tp"][0]["intensity_flop_per_byte"] for row in found["results"]]
    assert values == [
        (16_384 * s + 34_816 * 2048) / (132 * s + 1152 * 2048)  # of section 9's rates
        for s in (4096, 65_536)
    ]
    assert found["inputs"]["context"] == [4096, 65_536]
    assert found["results"][0]["sparse"]["limit_flop_per_byte"] == 16_384 / 132
    assert "it tends to 124.1 at every TP" in printed("intensity --model dsv32 --sparse", capsys)
    assert document("intensity --model dsv32", capsys)["results"]["sparse"] is None


def test_intensity_takes_a_context_with_sparse_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["intensity", "--model", "dsv32", "--context", "4k"]) == 2
    assert "--context: without --sparse" in capsys.readouterr().err


def test_intensity_refuses_more_queries_than_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["intensity", "--model", "dsv32", "--sparse", "-q", "5", "-s", "4"]) == 2
    assert "5 queries are more than the context of 4" in capsys.readouterr().err


def test_crossover(capsys: pytest.CaptureFixture[str]) -> None:
    found = document("crossover --model dsv32 --sparse --gpu h200 --context 4k,64k --tp 1,8", capsys)
    flop = found["results"]["flop"]
    assert (flop["queries_limit"], flop["first_queries_naive_wins"]) == (None, None)
    at = {(row["context"], row["tp"]): row for row in flop["by_context"]}
    # A S / (A + ca topk - cn S) = 2**25 * 4096 / (2**25 + 278528 * 2048 - 81920 * 4096)
    assert at[4096, 8]["queries_rectangular"] == 512
    assert at[4096, 8]["first_queries_naive_wins_rectangular"] == 513
    assert at[65_536, 1]["first_queries_naive_wins_rectangular"] is None
    assert at[65_536, 1]["causal_intervals"] == [{"path": "absorbed", "from_queries": 1, "to_queries": None}]
    assert any("queries_limit and first_queries_naive_wins are null" in note for note in found["notes"])
    assert len(found["results"]["time"]["by_context"]) == 4


@pytest.mark.parametrize("gpu", ["", "--gpu h200"])
def test_crossover_as_csv(gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"crossover --model dsv32 --sparse --context 1k,4k --tp 1,8 {gpu} --format csv".split()) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["context"], row["flop.tp"]) for row in rows] == [
        ("1024", "1"),
        ("1024", "8"),
        ("4096", "1"),
        ("4096", "8"),
    ]
    assert [row["flop.first_queries_naive_wins_rectangular"] for row in rows] == ["137", "94", "513", "513"]


@pytest.mark.parametrize("command", ["flops", "intensity", "crossover"])
def test_explained(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(f"{command} --model dsv32 --sparse --context 4k --gpu h100 --explain", capsys)
    texts = {item["key"]: item for item in found["explanations"]}
    key = {
        "flops": "sparse.first_context_flop",
        "intensity": "sparse.limit_flop_per_byte",
        "crossover": "flop.by_context[0].queries_rectangular",
    }[command]
    for item in texts.values():
        assert eval(item["numbers"], {"__builtins__": {"min": min, "max": max}}) == pytest.approx(
            item["value"], rel=1e-12
        )
    assert texts[key]["value"]


def test_sweep_equals_flops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--model", "glm-5.2", "--sparse", "--tp", "1,8", "--context", "1k,64k", "--gpu", "h100"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    single = document("flops --model glm-5.2 --sparse --tp 1,8 --context 1k,64k --gpu h100", capsys)["results"]
    for row, record in zip(rows, single, strict=True):
        for path in ("absorbed", "naive"):
            for key in ("flop", "bytes", "total_flop", "total_bytes"):
                assert int(row[f"{path}.{key}"]) == record[path][key]
            assert float(row[f"{path}.total_bound_s"]) == record[path]["total_bound_s"]


def test_sweep_says_what_it_priced(capsys: pytest.CaptureFixture[str]) -> None:
    sparse = document("sweep intensity --model dsv32 --sparse --context 4k,64k --queries 1,2", capsys)
    assert sparse["inputs"]["sparse"] is True
    assert [row["context"] for row in sparse["results"]] == [4096, 65_536] * 2
    assert "sparse" not in document("sweep --model dsv32", capsys)["inputs"]
