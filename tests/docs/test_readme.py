"""The pages around the examples: tables of commands and keys match the code, links lead somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mla_calc import __version__
from mla_calc.cli.main import COMMANDS, run

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MOST_README_LINES = 150


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def printed(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments.split()) == 0
    return capsys.readouterr().out


def test_readme_lists_the_commands_of_help_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(docs/([\w-]+)\.md\) \|", prose(ROOT / "README.md"), re.MULTILINE)
    helped = re.findall(r"^│ ([a-z]+) +\S", printed("--help", capsys), re.MULTILINE)
    assert [command for command, _ in listed] == helped == list(COMMANDS)
    assert all(command == page for command, page in listed)


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MOST_README_LINES


def test_the_manual_lists_every_page_once() -> None:
    listed = re.findall(r"^\| \[([\w-]+\.md)\]\(\1\) \|", prose(ROOT / "docs" / "README.md"), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in PAGES if page.name != "README.md")


@pytest.mark.parametrize("page", LINKED, ids=relative)
def test_links_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(prose(page)) if "://" not in target]
    assert [target for target in targets if not (page.parent / target.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=relative)
def test_a_page_opens_with_its_question(page: Path) -> None:
    heading = page.read_text(encoding="utf-8").splitlines()[0]
    assert heading.startswith("# ")
    assert heading.endswith("?")


@pytest.mark.parametrize("page", LINKED, ids=relative)
def test_options_named_in_the_text_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helps = [f"{command} --help" for command in COMMANDS]
    helps += [f"presets {action} --help" for action in ("list", "show", "check", "schema")]
    known = {option for text in helps for option in re.findall(r"--[a-z][\w-]*", printed(text, capsys))}
    others = {"--check", "--snapshot-update"}  # of ruff format, of pytest
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", prose(page)))
    assert named - known - others == set()


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from keys(child)


def section(heading: str) -> str:
    text = prose(ROOT / "docs" / "json.md")
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    "arguments",
    [
        "cache --model dsv3 --vs llama3-70b --context 4k",
        "flops --model dsv3 --gpu h100",
        "intensity --model dsv3 --gpu h100 --vs llama3-70b",
        "crossover --model dsv3 --gpu h100",
        "flops --model dsv32 --sparse",
        "intensity --model dsv32 --sparse",
        "crossover --model dsv32 --sparse --gpu h200",
        "cache --model dsv3 --vs llama3-70b --by-tp",
        "crossover --model dsv3 --gpu h200 --map",
        "capacity --model dsv3 --gpu h200 --gpus 8 --search --context 32k",
        "roofline --model dsv3 --gpu h200",
        "roofline --model dsv32 --gpu h200 --sparse",
        "workspace --model dsv3",
        "trace --model dsv3",
        "parity --model dsv3",
        "presets list",
        "presets check",
        f"validate --replay {ROOT / 'docs/measurements/h200/run.json'}",
    ],
)
def test_every_key_of_the_json_is_explained(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(f"{arguments} --format json", capsys))
    explained = set(re.findall(r"`(?:[\w]+(?:\[\])?\.)*(\w+)(?:\[\])?`", section(arguments.split()[0])))
    assert set(keys(document["results"])) - explained == set()
    envelope = set(re.findall(r"^\| `(\w+)` \|", prose(ROOT / "docs" / "json.md").split("\n## ")[0], re.MULTILINE))
    assert set(document) <= envelope


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__
    assert citation["license"] == "Apache-2.0"
    assert {"message", "title", "authors"} <= set(citation)


def test_licence_is_whole() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
