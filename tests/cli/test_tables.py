"""What a person sees: the same numbers as the JSON, in 80 columns, with or without colour."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from mla_calc.report import format as fmt
from mla_calc.report.record import Report, lookup
from mla_calc.report.terminal import show

NUMBER = re.compile(r"\d[\d,]*")


def bytes_in(text: str) -> list[int]:
    """Every figure that a table prints in plain bytes."""
    return [int(found.replace(",", "")) for found in re.findall(r"(\d[\d,]*) B\b", text)]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    model=st.sampled_from(["dsv3", "dsv32", "kimi-k2", "glm-5.2", "llama3-70b", "gpt-oss-20b", "longcat-flash"]),
    tp=st.sampled_from([1, 2, 4, 8]),
    context=st.integers(1, 1 << 20),
    batch=st.integers(1, 512),
    layout=st.sampled_from(["bf16", "fp8"]),
)
def test_cache_table_and_json_show_the_same(
    model: str, tp: int, context: int, batch: int, layout: str, cli: Any
) -> None:
    line = f"cache --model {model} --tp {tp} -s {context} -b {batch} --dtype {layout}"
    results = cli(f"{line} --format json").results
    shown = bytes_in(cli(line).out)
    for key in ("bytes_per_token", "total_bytes", "allocated_bytes", "per_rank_total_bytes", "cluster_total_bytes"):
        assert results[key] in shown
    if tp > 1:
        assert results["per_rank_bytes_per_token"] in shown
        assert results["cluster_bytes_per_token"] in shown
    values = {value for value in results.values() if isinstance(value, int)}
    notes = {results["windowed_bytes_per_token"]}
    assert set(shown) <= values | notes


@pytest.mark.parametrize("context", [1, 63, 4096, 100_001])
def test_flops_table_and_json_show_the_same(context: int, cli: Any) -> None:
    line = f"flops --model dsv3 --gpu h100 -s {context}"
    results = cli(f"{line} -f json").results
    text = cli(line).out
    for path in ("absorbed", "naive"):
        row = next(row for row in text.splitlines() if row.strip().startswith(f"{path}, sum"))
        assert fmt.flop(results[path]["flop"]) in row
        assert fmt.seconds(results[path]["bound_s"]) in row


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (fmt.exact_bytes(70272), "70,272 B"),
        (fmt.binary_bytes(70272), "68.6 KiB"),
        (fmt.decimal_bytes(70272), "70.3 kB"),
        (fmt.binary_bytes(1023), "1023 B"),
        (fmt.binary_bytes(3 * 2**30), "3.0 GiB"),
        (fmt.flop(33554432), "33.55 MFLOP"),
        (fmt.flop(0), "0 FLOP"),
        (fmt.seconds(11.6057e-6), "11.61 us"),
        (fmt.seconds(0.0), "0 ns"),
        (fmt.seconds(2.5), "2.5 s"),
        (fmt.short_seconds(11.6057e-6), "11.6 us"),
        (fmt.short_seconds(999.7e-6), "1000 us"),  # no exponent
        (fmt.short_flop(33_554_432), "33.6 MFLOP"),
        (fmt.short_flop(999.7e9), "1000 GFLOP"),
        (fmt.percent(0.8186), "82 %"),
        (fmt.percent(0.0294), "2.9 %"),
        (fmt.number(241.7778), "241.8"),
        (fmt.number(171.0), "171"),
        (fmt.number(12345.6), "12,346"),
        (fmt.factor(71.1111), "71.11x"),
        (fmt.shown(None, "bytes"), "-"),
        (fmt.counted(1, "query", "queries"), "1 query"),
        (fmt.counted(2, "query", "queries"), "2 queries"),
    ],
)
def test_formats(value: str, shown: str) -> None:
    assert value == shown


LINES = [
    "cache --model dsv3 --tp 8 --vs llama3-70b,qwen2.5-72b -s 128k -b 64",
    "cache --model dsv32",
    "flops --model dsv3 --gpu h100",
    "intensity --model dsv3 --gpu h100 --vs llama3-70b",
    "crossover --model dsv3 --gpu h20 -s 16,4k,64k",
    "workspace --model dsv3",
    "workspace --model dsv3 --rows-cap 4k:64k:x2",
    "trace --model dsv3",
    "parity --model dsv3",
    "presets list",
    "presets show dsv3",
]


def emitted(line: str, cli: Any, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report that a command emits, by its own module or by the one that makes commands of answers."""
    seen: list[Report] = []
    for module in (line.split()[0], "command"):
        monkeypatch.setattr(f"mla_calc.cli.{module}.emit", lambda report, *_: seen.append(report), raising=False)
    assert cli(line).code == 0
    return seen[0]


@pytest.mark.parametrize("line", LINES)
def test_eighty_columns(line: str, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 columns no line is longer, and no number is broken over two lines."""
    report = emitted(line, cli, monkeypatch)
    buffer = io.StringIO()
    show(report, False, Console(file=buffer, width=80, force_terminal=True, color_system=None, highlight=False))
    text = re.sub(r"\x1b\[[0-9;]*m", "", buffer.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    cells = [entry for table in report.tables for row in table.rows for entry in row]
    for cell in cells:
        if not isinstance(cell, str) and cell.kind in ("bytes", "integer", "seconds"):
            assert fmt.shown(lookup(report.results, cell.path), cell.kind) in text, cell


@pytest.mark.parametrize("width", [10, 40])
@pytest.mark.parametrize("line", LINES)
def test_numbers_are_never_broken(line: str, width: int, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal: it wraps a line that is too long, a number stays in one piece."""
    report = emitted(line, cli, monkeypatch)
    buffer = io.StringIO()
    show(report, False, Console(file=buffer, width=width, force_terminal=True, color_system=None, highlight=False))
    text = re.sub(r"\x1b\[[0-9;]*m", "", buffer.getvalue())
    cells = [entry for table in report.tables for row in table.rows for entry in row]
    for cell in cells:
        if not isinstance(cell, str) and cell.kind != "text":
            assert fmt.shown(lookup(report.results, cell.path), cell.kind) in text, cell
