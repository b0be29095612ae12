"""What a single answer imports, and which presets it parses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mla_calc.data

HEAVY = {"numpy", "torch", "matplotlib", "pandas", "pyarrow", "triton", "textual", "plotly", "plotext"}

PROBE = """
import json, sys
from mla_calc.cli.main import run
assert run(sys.argv[1:]) == 0
sys.stderr.write(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def modules_after(*arguments: str) -> set[str]:
    found = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(found.stderr))


@pytest.mark.parametrize(
    "line",
    [
        "cache --model dsv3 --tp 8 --vs llama3-70b --explain",
        "flops --model dsv3 --gpu h100",
        "intensity --model dsv3 --gpu h100",
        "roofline --model dsv3 --gpu h100 --format json",
        "dispatch --model dsv3 --gpu h100 --rows 1:4096",
        "explore --model dsv3 --print",
        "crossover --model dsv3 --gpu h100",
        "workspace --model dsv3",
        "trace --model dsv3",
        "presets list",
        "--help",
    ],
)
def test_single_answers_import_nothing_heavy(line: str) -> None:
    loaded = modules_after(*line.split())
    assert "mla_calc" in loaded
    assert not loaded & HEAVY


def test_the_probe_sees_heavy_modules() -> None:
    assert "numpy" in modules_after("parity", "--model", "dsv3")


def test_only_the_presets_asked_for_are_parsed(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    read = mla_calc.data.read_mapping

    def counted(path: Path) -> Any:
        parsed.append(path.name)
        return read(path)

    monkeypatch.setattr(mla_calc.data, "read_mapping", counted)
    # a file's own name is parsed alone; an alias parses no more than the files that mention it
    assert cli("cache --model deepseek-v3").code == 0
    assert parsed == ["deepseek-v3.yaml", "bf16.yaml"]
    parsed.clear()
    assert cli("cache --model longcat-flash-chat --dtype fp8").code == 0
    assert parsed == ["longcat-flash.yaml", "fp8.yaml"]


def test_the_c_loader_is_used() -> None:
    import yaml

    assert issubclass(mla_calc.data._strict_loader(), yaml.CSafeLoader)


def test_python_dash_m() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "mla_calc", "cache", "--model", "dsv3"], capture_output=True, text=True, check=True
    )
    assert "70,272 B" in found.stdout


def test_version_and_help(cli: Any) -> None:
    assert cli("--version").out.startswith("mla-calc 0.")
    text = cli("--help").out
    from mla_calc.cli.main import COMMANDS

    for command in COMMANDS:
        assert command in text
        answer = cli(f"{command} --help")
        assert answer.code == 0
        assert "Usage" in answer.out


def test_a_closed_pipe_is_no_error() -> None:
    line = f"{sys.executable} -m mla_calc presets list | head -1"
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert found.stdout.count("\n") == 1
    assert found.stderr == ""
