"""Published figures that are wrong: the right one is printed, and a note says what it contradicts."""

from __future__ import annotations

import json
from typing import Any

import pytest


def notes(cli: Any, line: str) -> str:
    answer = cli(f"cache -f json {line}")
    assert answer.code == 0, answer.err
    return " ".join(json.loads(answer.out)["notes"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        # arXiv:2505.09343, Table 1: 516.096 kB and 70.272 kB, and 7.28x
        ("--model dsv3 --vs llama3.1-405b", ["arXiv:2505.09343", "7.28x", "7.34x"]),
        ("--model dsv3 --vs llama3-70b,llama3-405b --tp 8", ["7.28x"]),
        # arXiv:2405.04434: 1 - 60 * 576 / (95 * 2 * 8 * 128) = 82.2 % at one precision
        ("--model dsv2 --vs deepseek-67b", ["93.3 %", "82.2 %"]),
        # 1,462,784 * 61 * (656 + 132) B
        ("--model dsv32 --dtype fp8_ds_mla --batch 64 --context 22856", ["sglang#11309", "54.52", "65.48"]),
        ("--model dsv32 --context 131072", ["FlashMLA", "8.72 GiB", "62 layers"]),
    ],
)
def test_the_contradicted_figure_is_named(line: str, words: list[str], cli: Any) -> None:
    found = notes(cli, line)
    assert [word for word in words if word not in found] == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("--model dsv3", "7.28x"),
        ("--model dsv3 --vs llama3-70b", "7.28x"),
        ("--model dsv3 --vs llama3-405b --dtype fp8", "7.28x"),
        ("--model dsv2 --vs llama3-70b", "93.3"),
        ("--model dsv32", "54.52"),
        ("--model dsv32 --context 131071", "8.72"),
    ],
)
def test_it_is_not_named_where_it_is_not_concerned(line: str, word: str, cli: Any) -> None:
    assert word not in notes(cli, line)


def test_the_figures_that_the_notes_give(cli: Any) -> None:
    def results(line: str) -> Any:
        return cli(f"cache -f json {line}").results

    assert results("--model dsv3 --vs llama3-405b")["vs"][0]["ratio"] == 516_096 / 70_272
    assert round(516_096 / 70_272, 2) == 7.34
    total = results("--model dsv32 --dtype fp8_ds_mla --batch 64 --context 22856")["total_bytes"]
    assert total == 1_462_784 * 61 * (656 + 132)
    assert round(total / 2**30, 2) == 65.48
    with_mtp = results("--model dsv32 --context 131072 --mtp-layers 1")
    assert with_mtp["latent_bytes_per_token"] * 131_072 / 2**30 == 8.71875
