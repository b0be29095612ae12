"""The page of `report`: its numbers are those of the commands it names; it is whole, safe and the same twice."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from mla_calc.cli.main import run
from mla_calc.cli.report import page_of
from mla_calc.data import preset_files
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.markdown_text import code, text
from mla_calc.report.page import Page, as_report
from mla_calc.report.page_html import inline_svg, to_html
from mla_calc.report.page_markdown import to_markdown, write_markdown
from mla_calc.report.render import to_json
from tests.browser import IS_THERE, MISSING, chromium

STEP = "--tp 8 -b 64 -s 32k --gpus 8"
LINE = f"report --model dsv3 --gpu h200 {STEP}"
SECTIONS = [
    "summary",
    "subject",
    "cache",
    "cost",
    "roofline",
    "intensity",
    "crossover",
    "dispatch",
    "workspace",
    "capacity",
    "explanations",
    "notes",
    "sources",
    "versions",
]
DEFAULTS: dict[str, Any] = {
    "tp": "1",
    "dp": None,
    "gpus": None,
    "batch": "1",
    "queries": "1",
    "context": "4096",
    "dtype": "bf16",
    "mma_dtype": "bf16",
    "vs": None,
    "engine": None,
    "chunk": None,
    "sparse": False,
    "weight_bytes": None,
    "max_model_len": None,
    "cache_budget": None,
    "date": None,
}
HOSTILE = "A[$x_$ --> <script>alert(1)</script> \\\"'&amp; `b` | [c](javascript:d)"


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, ids, links, and its tables as lists of texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tables: list[list[list[str]]] = []
        self.headings: list[str] = []
        self.inside: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag in ("h1", "h2"):
            self.headings.append("")
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "td" in self.inside[-2:] or "th" in self.inside[-2:]:
            self.tables[-1][-1][-1] += data
        if self.inside and self.inside[-1] in ("h1", "h2"):
            self.headings[-1] += data

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same page as HTML, Markdown and JSON."""
    folder = tmp_path_factory.mktemp("page")
    for suffix in ("html", "md", "json"):
        assert run([*shlex.split(LINE), "--output", str(folder / f"page.{suffix}")]) == 0
    return folder


@pytest.fixture(scope="module")
def document(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made / "page.json").read_text())
    return found


def answers(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for section in document["results"]["sections"]:
        yield from section["answers"]


def page(**asked: Any) -> Page:
    return page_of(**(DEFAULTS | asked))


def test_every_answer_is_what_its_command_line_answers(document: dict[str, Any], cli: Callable[..., Any]) -> None:
    lines = [answer for answer in answers(document) if answer["command_line"]]
    assert len(lines) >= 12
    for answer in lines:
        program, _, line = answer["command_line"].partition(" ")
        assert program == "mla-calc"
        alone = json.loads(cli(line, "--format", "json", "--explain").out)
        for key in ("schema", "inputs", "results", "explanations"):
            assert alone.get(key, []) == answer[key], (line, key)
        assert set(alone["notes"]) <= set(document["notes"])
        assert set(alone["sources"]) <= set(document["sources"])


def test_tables_are_those_of_the_commands(made: Path, document: dict[str, Any], cli: Callable[..., Any]) -> None:
    """Read back from the HTML, against the Markdown that the named commands print."""
    shown = Reader((made / "page.html").read_text()).tables
    figure_alone = ("crossover-map", "crossover-map-1")
    for answer in answers(document):
        if not answer["command_line"] or answer["name"] in figure_alone:
            continue
        printed = cli(answer["command_line"].removeprefix("mla-calc "), "--format", "markdown").out
        tables = [
            [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block]
            for block in (chunk.splitlines() for chunk in printed.split("\n\n") if chunk.startswith("|"))
        ]
        assert tables
        for head, _, *rows in tables:
            stripped = [[[cell.strip() for cell in row] for row in table] for table in shown]
            assert [head, *rows] in stripped, head


def test_summary_says_what_the_commands_say(made: Path, document: dict[str, Any]) -> None:
    summary = document["results"]["summary"]
    assert [item["section"] for item in summary] == ["cache", "cost", "intensity", "crossover", "dispatch", "capacity"]
    by_section = {section["name"]: section["answers"][0] for section in document["results"]["sections"]}
    assert all(item["sentence"] == by_section[item["section"]]["sentence"] for item in summary)
    text_of = (made / "page.html").read_text()
    # 61 layers of 576 bf16 values: 70,272 B a token, which 64 requests of 32,768 tokens store on each rank
    assert 61 * 576 * 2 == 70272
    assert "<b>68.6 KiB</b>" in text_of
    assert f"<b>{64 * 32768 * 70272 / 2**30:.1f} GiB</b>" in text_of
    # 16 heads of a rank do 2 * 16 * (512 + 64 + 512) FLOP over a row of 1,152 B
    assert f"{2 * 16 * 1088 / 1152:.4g} FLOP per byte" in text_of


def test_sections_stand_in_a_reviewers_order(made: Path) -> None:
    read = Reader((made / "page.html").read_text())
    ids = read.values("id")
    assert [name for name in ids if name in SECTIONS] == SECTIONS
    assert re.findall(r'<a id="(\w+)"></a>', (made / "page.md").read_text()) == SECTIONS
    assert read.headings[0] == "DeepSeek-V3 on NVIDIA H200 SXM 141GB"


def test_anchors_and_references_resolve(made: Path) -> None:
    text_of = (made / "page.html").read_text()
    read = Reader(text_of)
    ids = read.values("id")
    assert len(ids) == len(set(ids))
    links = read.values("href") + read.values("xlink:href")
    inner = {link[1:] for link in links if link.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", text_of))
    assert len(inner) > len(SECTIONS)
    assert inner <= set(ids)
    assert all(link.startswith(("#", "data:")) for link in links)


def test_html_is_self_contained(made: Path) -> None:
    read = Reader((made / "page.html").read_text())
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(read.tags) - {"link"}
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("src", "srcset", "action")]
    assert "default-src 'none'" in read.values("content")[0]
    assert read.tags.count("svg") == 6  # cache, roofline, intensity, two maps, layouts


def test_markdown_has_its_figures_beside_it(made: Path) -> None:
    markdown = (made / "page.md").read_text()
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", markdown)
    names = ["cache", "roofline", "intensity-by-tp", "crossover-map", "crossover-map-1", "layouts"]
    assert figures == [f"page-{name}.svg" for name in names]
    for name in figures:
        assert ElementTree.parse(made / name).getroot().tag.endswith("svg")
    links = set(re.findall(r"\]\(#([\w-]+)\)", markdown))
    assert links <= set(re.findall(r'<a id="([\w-]+)"></a>', markdown))
    assert not list(made.glob(".*"))


def test_the_command_line_in_the_page_makes_it_again(
    made: Path, document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(document["results"]["command_line"])[1:]) == 0
    assert (tmp_path / "page.json").read_bytes() == (made / "page.json").read_bytes()
    for suffix in ("html", "md"):
        line = document["results"]["command_line"].replace("page.json", f"page.{suffix}")
        assert run(shlex.split(line)[1:]) == 0
    for file in made.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("format_name", "name"),
    [("html", "page.txt"), ("markdown", "page"), ("json", "a page.out"), ("html", "page.HTM"), (None, "page.markdown")],
)
def test_the_command_line_names_a_format_that_no_suffix_says(
    format_name: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--format", format_name] if format_name else []
    assert run(["report", "--model", "llama3-8b", "--gpu", "h100", *asked, "--output", name]) == 0
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (line,) = re.findall(r"mla-calc report [^`<\n]*?(?=<|`|\",?\n)", unescape(made[name].decode()))
    assert shlex.split(line)[-2:] == ["--output", name]
    for path in tmp_path.iterdir():
        path.unlink()
    assert run(shlex.split(line)[1:]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made


def test_what_is_named_twice_counts_once() -> None:
    named = {"vs": ["llama3-70b,Llama-3-70B", "llama3-70b"], "engine": ["vllm,vllm@0.33", "sglang"]}
    page = page_of(**DEFAULTS | {"model": "dsv3", "gpu": "h100"} | named)
    assert page.inputs["vs"] == ["Llama-3-70B"]
    assert page.inputs["engine"] == ["vLLM 0.33.0", "SGLang 0.5.23"]


def test_numbers_of_the_inputs_are_numbers() -> None:
    asked = {"tp": "8", "gpus": "16", "batch": "250", "queries": "2", "context": "32k", "chunk": "1k"}
    whole = page(model="dsv3", gpu="h200", **asked, max_model_len="64k", weight_bytes="0.5")
    found = json.loads(to_json(as_report(whole)))["inputs"]
    numbers = {"tp": 8, "gpus": 16, "dp": 2, "batch": 250, "group_batch": 125, "queries": 2, "context": 32768}
    numbers |= {"chunk": 1024, "max_model_len": 65536, "weight_bytes": 0.5}
    assert {name: found[name] for name in numbers} == numbers
    assert not [name for name, value in found.items() if isinstance(value, str) and value.isdigit()]


def test_measured_ceilings_have_units() -> None:
    page = page_of(**DEFAULTS | {"model": "dsv3", "gpu": "h200"})
    table = next(
        each for each in page.sections[0].parts[0].report.tables if each.caption.endswith("as it was measured")
    )
    units = {page.sections[0].parts[0].report.results["gpu"]["measured"][at]["quantity"]: row[2]
             for at, row in enumerate(table.rows)}  # fmt: skip
    assert units["memory_tbs"] == "TB/s"
    assert units["bf16_gemm_tflops"] == "TFLOP/s"
    assert set(units.values()) == {"TB/s", "TFLOP/s"}


def test_a_hundred_thousand_requests_are_one_kind_of_row() -> None:
    """Their prefixes are counted, and the batch is that of the same requests one by one."""
    page = page_of(**DEFAULTS | {"model": "dsv3", "gpu": "h200", "batch": "20000", "context": "64"})
    step = next(part for section in page.sections for part in section.parts if part.name == "dispatch-0")
    rows = step.report.results["rows"]
    assert len(rows) == 20_000
    assert all(row is rows[0] for row in rows)


def answers_of(found: Page, name: str) -> list[Any]:
    section = found.section(name)
    assert section is not None
    return [part.report for part in section.parts if part.report is not None]


@pytest.mark.parametrize(
    ("ranks", "batch", "groups", "group", "phrase"),
    [
        ({"gpus": "64"}, 256, 8, 32, "at TP 8, DP 8: 32 requests in each group"),
        ({"dp": "3"}, 256, 3, 86, "at TP 8, DP 3: 86 requests in the fullest group"),
        ({"dp": "8", "gpus": "64"}, 3, 8, 1, "at TP 8, DP 8: 1 request in the fullest group"),
        ({"gpus": "8"}, 256, 1, 256, "at TP 8; cache in bf16"),
    ],
)
def test_ranks_work_on_the_requests_of_their_group(
    ranks: dict[str, str], batch: int, groups: int, group: int, phrase: str
) -> None:
    """The fullest of the groups; capacity has the whole batch, and its decode takes as long as the step does."""
    found = page(model="dsv3", gpu="h200", tp="8", batch=str(batch), context="32k", **ranks)
    assert phrase in found.subtitle
    assert (found.inputs["dp"], found.inputs["group_batch"]) == (groups, group)
    (cache,), (cost,), (roofline,) = (answers_of(found, name) for name in ("cache", "cost", "roofline"))
    assert cache.results["per_rank_total_bytes"] == group * 32768 * 61 * 576 * 2
    assert cost.inputs["batch"] == roofline.inputs["batch"] == group
    assert [report.inputs["batch"] for report in answers_of(found, "crossover")[:2]] == [[group], [group]]
    assert [len(report.results["rows"]) for report in answers_of(found, "dispatch")] == [group, 1, group, 1]
    capacity = answers_of(found, "capacity")[0]
    assert (capacity.results["batch"], capacity.results["dp"]) == (batch, groups)
    assert cost.results["absorbed"]["total_bound_s"] == pytest.approx(capacity.results["total_decode_bound_s"])
    about = f"For the fullest of {groups} DP groups: {group} of {batch} requests."
    of_group = {section.name for section in found.sections if about in section.text}
    assert of_group == ({"cache", "cost", "roofline", "crossover", "dispatch"} if groups > 1 else set())
    labels = [figure.label for figure, _ in found.figures() if figure.section in ("cache", "cost", "crossover")]
    assert [label for label in labels[1:] if ("of a group" in label) != (groups > 1)] == []
    assert len(labels) >= 4


def test_what_capacity_has_no_option_for_is_said_beside_it() -> None:
    texts = {
        name: section.text
        for name, asked in (
            ("as asked", {"batch": "8", "weight_bytes": "2"}),
            ("other", {"sparse": True, "mma_dtype": "fp8", "queries": "2", "weight_bytes": "1"}),
            ("sparse", {"sparse": True}),
        )
        for section in page(model="dsv3.2", gpu="h200", tp="8", **asked).sections
        if section.name == "capacity"
    }
    assert "decode bound" not in texts["as asked"]
    assert "not of the page's step but of dense attention: " in texts["sparse"]
    assert "not of the page's step but of dense attention, one query to a request, products in bf16: " in texts["other"]


def test_what_dispatch_has_no_option_for_is_said_beside_it() -> None:
    texts = [page(model="dsv3", gpu="h200", weight_bytes=width).section("dispatch") for width in (None, "2", "1")]
    assert ["Weights are of 2 bytes here" in found.text for found in texts if found] == [False, False, True]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"context": "512"}, "512 new tokens leave none before them in a context of 512"),
        ({"context": "64"}, "512 new tokens leave none before them in a context of 64"),
        ({"queries": "600"}, "512 new tokens are no more than the step's --queries 600"),
    ],
)
def test_a_page_without_a_chunk_says_why(asked: dict[str, str], why: str, cli: Callable[..., Any]) -> None:
    found = page(model="dsv3", gpu="h200", **asked)
    section = found.section("dispatch")
    assert section is not None
    assert [part.text.rpartition(", ")[2] for part in section.parts] == ["the step", "the step", ""]
    assert section.parts[-1].reason == f"no chunk of a prefill: {why}."
    assert f"> **Left out:** no chunk of a prefill: {why}." in to_markdown(found)
    assert f"<b>Left out:</b> no chunk of a prefill: {why.replace(chr(39), '&#x27;')}." in to_html(found)
    again = found.command.removeprefix("mla-calc ")
    assert "--chunk" not in again
    assert cli(again, "--format", "json").code == 0


def test_a_model_without_engines_rules_has_no_word_about_a_chunk() -> None:
    section = page(model="llama3-8b", gpu="h200", context="512").section("dispatch")
    assert section is not None
    assert len(section.parts) == 1


def test_bytes_per_weight_that_place_no_weights_leave_capacity_whole() -> None:
    found = page(model="llama3-8b", gpu="h200", cache_budget="40GiB", weight_bytes="2", context="4096")
    section = found.section("capacity")
    assert section is not None
    (report,) = answers_of(found, "capacity")
    # 32 layers of 8 KV heads, keys and values 128 wide in bf16
    assert report.results["unique_tokens"] == (40 << 30) // (32 * 8 * 2 * 128 * 2)
    assert "--weight-bytes does not count" in section.text
    placed = page(model="llama3-8b", gpu="h200", weight_bytes="4", context="4096").section("capacity")
    assert placed is not None
    assert "--weight-bytes 4" in placed.parts[0].command
    assert "--weight-bytes" not in placed.text
    latent = page(model="dsv3", gpu="h200", cache_budget="40GiB", weight_bytes="1").section("capacity")
    assert latent is not None
    assert "--weight-bytes 1" in latent.parts[0].command


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("4096", [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]),
        ("20000", [1024, 2048, 4096, 8192, 20000, 32768, 65536, 131072]),
        ("30000", [1024, 2048, 4096, 8192, 16384, 30000, 65536, 131072]),
        ("1100", [1100, 2048, 4096, 8192, 16384, 32768, 65536, 131072]),
        ("1m", [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 1048576]),
    ],
)
def test_a_map_has_room_for_the_label_of_the_steps_context(context: str, expected: list[int]) -> None:
    section = page(model="kimi-k2", gpu="tpu-v5p", tp="4", batch="4", context=context).section("crossover")
    assert section is not None
    part = section.parts[1]
    assert part.report is not None
    assert isinstance(part.report.results, dict)
    assert sorted({cell["context"] for cell in part.report.results["map"]}) == expected
    assert part.chart is not None
    (axes,) = figure_of(part.chart, part.report.results, "slide").axes[:1]
    labels = {label.get_text() for label in axes.get_xticklabels()}
    assert f"{expected[-1] if context == '1m' else int(context):,}" in labels


@pytest.mark.parametrize("stem", ["plan #2 (v1", "100%", "a[b]c", "x?y", "kv:2", "gr\u00f6\u00dfe"])
def test_figures_are_found_whatever_the_page_is_called(stem: str, tmp_path: Path) -> None:
    """A link of CommonMark ends at a space or an unmatched bracket, a URL's path at # or ?, and % begins a code."""
    found = page(model="minicpm3-4b", gpu="h100")
    write_markdown(found, tmp_path / f"{stem}.md")
    links = re.findall(r"!\[[^\]]+\]\((.*)\)$", (tmp_path / f"{stem}.md").read_text(), re.MULTILINE)
    assert len(links) == 4
    for link in links:
        assert re.fullmatch(r"[A-Za-z0-9._~%-]+", link)
        path = urlsplit(link).path
        assert (tmp_path / unquote(path)).is_file(), path


def test_no_date_but_the_one_given(cli: Callable[..., Any]) -> None:
    line = "report --model minicpm3-4b --gpu h100 --format markdown"
    assert "2031-02-03" not in cli(line).out
    assert "\n\n2031-02-03\n\n" in cli(line, "--date", "2031-02-03").out


def test_stdout_has_no_figure_in_markdown_and_all_in_html(cli: Callable[..., Any]) -> None:
    line = "report --model minicpm3-4b --gpu h100 --format"
    assert "![" not in cli(f"{line} markdown").out
    assert cli(f"{line} html", "--output", "-").out.count("<svg ") == 4


@pytest.mark.parametrize("name", [path.stem for path in preset_files("models")])
def test_every_model_makes_a_page(name: str) -> None:
    """Without figures, which take most of the time: each section answers, or says in a line why it does not."""
    found = page(model=name, gpu="h100")
    assert [section.name for section in found.sections] == SECTIONS[1:10]
    parts = [part for section in found.sections for part in section.parts]
    assert all(part.report is not None or part.reason for part in parts)
    assert to_markdown(found, "page").count("**Left out:**") == sum(bool(part.reason) for part in parts)
    cache, intensity = found.section("cache"), found.section("intensity")
    assert cache is not None
    assert cache.parts[0].chart is not None
    assert intensity is not None
    assert intensity.parts[-1].chart is not None


def test_a_model_without_a_latent_leaves_sections_out() -> None:
    found = page(model="llama3-70b", gpu="h100", tp="8")
    reasons = {section.name: section.parts[0].reason for section in found.sections}
    left_out = {name for name, reason in reasons.items() if reason}
    assert left_out == {"cost", "roofline", "crossover", "dispatch", "workspace", "capacity"}
    assert reasons["cost"].startswith("Llama-3-70B is GQA (no kv_lora_rank)")
    assert "parameters Llama-3-70B has is not known" in reasons["capacity"]
    assert [section.name for section, *_ in found.summary()] == ["cache", "intensity"]
    shown = to_html(found)
    assert shown.count('class="missing"') == len(left_out)
    assert "DeepSeek-V3" in shown  # an MLA model stands beside


def test_unknown_memory_leaves_capacity_out_unless_a_budget_is_given() -> None:
    without = page(model="dsv3", gpu="h200-nvl", tp="8").section("capacity")
    assert without is not None
    assert "is not known" in without.parts[0].reason
    found = page(model="dsv3", gpu="h200-nvl", tp="8", cache_budget="40GiB").section("capacity")
    assert found is not None
    report = found.parts[0].report
    assert report is not None
    assert isinstance(report.results, dict)
    assert report.results["unique_tokens"] == (40 << 30) // 70272 // 64 * 64 or report.results["unique_tokens"] > 0


def test_a_map_of_one_request_only_where_that_was_measured() -> None:
    names = {
        batch: [part.name for part in found.parts]
        for batch in ("1", "64")
        for found in (page(model="dsv3", gpu="h200", tp="8", batch=batch).section("crossover"),)
        if found is not None
    }
    assert names == {
        "1": ["crossover", "crossover-map"],
        "64": ["crossover", "crossover-map", "crossover-map-1"],
    }
    on_h100 = page(model="dsv3", gpu="h100", tp="8", batch="64").section("crossover")
    assert on_h100 is not None
    assert [part.name for part in on_h100.parts] == ["crossover", "crossover-map"]


def test_notes_and_sources_stand_once() -> None:
    found = page(model="dsv3.2", gpu="h200", tp="8", sparse=True)
    assert len(found.sources()) == len(set(found.sources()))
    notes = [note for note, _ in found.notes()]
    assert len(notes) == len(set(notes))
    several = [sections for _, sections in found.notes() if len(sections) > 1]
    assert several  # or there was nothing to merge
    shown = to_markdown(found)
    assert all(shown.count(f"\n- {text(note)} (") == 1 for note in notes)


def test_versions_name_every_file_by_its_digest() -> None:
    import hashlib

    found = page(model="dsv3", gpu="h200", vs=["qwen3-32b"], engine=["vllm@0.29"])
    by_file = {item.version.partition(", sha256 ")[0]: item for item in found.versions[1:]}
    for kind, name in (
        ("models", "deepseek-v3"),
        ("models", "qwen3-32b"),
        ("gpus", "h200-sxm-141gb"),
        ("layouts", "bf16"),
        ("engines", "vllm-0.29"),
    ):
        path = next(path for path in preset_files(kind) if path.stem == name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest.startswith(by_file[f"presets/{kind}/{name}.yaml"].version.rpartition(" ")[2])
    assert len(by_file) == 5
    assert by_file["presets/engines/vllm-0.29.yaml"].date == "released 2026-09-09"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A preset whose every text is an attack."""
    own = next(path for path in preset_files("models") if path.stem == "minicpm3-4b").read_text()
    path = tmp_path / "hostile.yaml"
    lines = own.replace("name: MiniCPM3-4B", f'name: "{HOSTILE}"').replace(
        "  - A dense model with tied embeddings; longrope.", f'  - "{HOSTILE}"'
    )
    path.write_text(lines.replace("aliases: [minicpm3]\n", "").replace("hf: [openbmb/MiniCPM3-4B]\n", ""))
    return path


def test_html_escapes_what_a_preset_says(hostile: Path) -> None:
    found = page(model=str(hostile), gpu="h100")
    shown = to_html(found)
    read = Reader(shown)
    assert "script" not in read.tags
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert not [value for value in read.values("href") if value.startswith("javascript")]
    assert "<script" not in shown
    assert read.headings[0].startswith(found.title)
    name = json.loads(f'"{HOSTILE}"')
    assert found.title.startswith(name)
    assert read.values("aria-label")[1].find(name) > 0


def test_markdown_escapes_what_a_preset_says(hostile: Path) -> None:
    shown = to_markdown(page(model=str(hostile), gpu="h100"), "page")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", shown.replace("\\`", ""))
    assert not re.search(r"(?<!\\)<(?!a id=|/a>)[A-Za-z/!?]", outside)
    assert not re.search(r"(?<!\\)\]\((?!#|page-)", outside)
    pictures = [node for node in SyntaxTreeNode(MarkdownIt("commonmark").parse(shown)).walk() if node.type == "image"]
    assert len(pictures) == shown.count("](page-") == 4  # cache, roofline, intensity, crossover


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a_b * _c", r"a_b * \_c"),
        ("<b> 2 < 3", r"\<b> 2 < 3"),
        ("one\ntwo", "one two"),
        ("1. see", r"1\. see"),
        ("see https://x.org/a_b#c (d_e)", r"see https://x.org/a_b#c (d_e)"),
    ],
)
def test_text_of_markdown(words: str, expected: str) -> None:
    assert text(words) == expected


def test_code_of_markdown_holds_backticks() -> None:
    assert code("a ``b") == "```a ``b```"
    assert code("`a") == "`` `a ``"


def test_inline_svg_keeps_to_itself() -> None:
    drawn = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="9pt" xmlns="http://www.w3.org/2000/svg">\n'
        "<metadata><a href='http://x'/></metadata><defs><style type=\"text/css\">*{fill: red}</style></defs>"
        '<path id="p" clip-path="url(#c)"/><path id="p"/><use xlink:href="#p"/></svg>\n'
    )
    assert inline_svg(drawn, "one-", 'a "b"') == (
        '<svg id="one-svg" role="img" aria-label="a &quot;b&quot;" width="9pt" xmlns="http://www.w3.org/2000/svg">\n'
        '<defs><style type="text/css">#one-svg * {fill: red}</style></defs>'
        '<path id="one-p" clip-path="url(#one-c)"/><path id="one-p-2"/><use xlink:href="#one-p"/></svg>'
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model nope --gpu h100", "no model preset is named 'nope'"),
        ("--model dsv3 --gpu nope", "no GPU preset is named 'nope'"),
        ("--model dsv3", "Missing option '--gpu'"),
        ("--model dsv3 --gpu h100 --tp 3", "TP 3 does not divide the 128 heads of DeepSeek-V3"),
        ("--model dsv3 --gpu h100 --tp 1,2", "--tp takes one value here"),
        ("--model dsv3 --gpu h100 --context 1k,2k", "--context takes one value here"),
        ("--model dsv3 --gpu h100 -q 5k", "--queries 5,120 is more than --context 4,096"),
        ("--model dsv3 --gpu h100 --tp 8 --gpus 9", "does not divide --gpus 9"),
        ("--model dsv3 --gpu h100 --tp 8 --dp 3 --gpus 8", "--gpus says 8"),
        ("--model dsv3 --gpu h100 --vs nope", "no model preset is named 'nope'"),
        ("--model dsv3 --gpu h100 --tp 128 --vs llama3-70b", "TP 128 does not divide the 64 heads of Llama-3-70B"),
        ("--model dsv3 --gpu h100 --mma-dtype fp4", "has no fp4 peak"),
        ("--model dsv3 --gpu h100 --dtype nope", "no layout preset is named 'nope'"),
        ("--model dsv3 --gpu h100 --engine nope", "no engine preset is named 'nope'"),
        ("--model dsv3 --gpu h100 --sparse", "--sparse: DeepSeek-V3 has no indexer"),
        ("--model dsv3 --gpu h100 --weight-bytes 3", "--weight-bytes '3'"),
        ("--model dsv3 --gpu h100 --cache-budget much", "--cache-budget"),
        ("--model dsv3 --gpu h100 --chunk 0", "--chunk"),
        ("--model dsv3 --gpu h100 -s 512 --chunk 512", "--chunk 512 does not count here: 512 new tokens leave none"),
        ("--model dsv3 --gpu h100 -s 512 --chunk 1k", "--chunk 1,024 does not count here"),
        ("--model dsv3 --gpu h100 -q 8 --chunk 8", "--chunk 8 does not count here: 8 new tokens are no more than"),
        ("--model dsv3 --gpu h100 -s 1 --chunk 1", "here: 1 new token leaves none before it in a context of 1"),
        ("--model dsv3 --gpu h100 --chunk 1", "here: 1 new token is no more than the step's --queries 1"),
        ("--model dsv3 --gpu h100 --date yesterday", "--date 'yesterday'"),
        ("--model dsv3 --gpu h100 --date 20261130", "--date '20261130'"),
        ("--model dsv3 --gpu h100 --date 2026-W01-1", "--date '2026-W01-1'"),
        ("--model dsv3 --gpu h100 --gpus ''", "--gpus ''"),
        ("--model dsv3 --gpu h100 --dp ''", "--dp ''"),
        ("--model dsv3 --gpu h100 --vs ,", "--vs: an entry of the list has no name"),
        ("--model dsv3 --gpu h100 --engine vllm,", "--engine: an entry of the list has no name"),
        ("--model dsv3 --gpu h100 --format table", "--format 'table': one of html, markdown, json is accepted"),
    ],
)
def test_a_wrong_option_is_refused_in_a_line(
    options: str, message: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    answer = cli(f"report {options}", "--output", str(tmp_path / "page.html"))
    assert answer.code == 2
    assert message in answer.err
    assert answer.err.startswith("mla-calc: ")
    assert answer.err.count("\n") <= 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "a page is written to a file"),
        ("page.pdf", "the suffix .pdf names no format"),
        ("page.html --format markdown", "the suffix .html is not that of --format markdown"),
        ("page.md --format json", "the suffix .md is not that of --format json"),
        ("page.svg --format html", "the suffix .svg is not that of --format html"),
        ("no/page.md", "cannot be"),
    ],
)
def test_an_output_that_cannot_be_is_refused(
    output: str | None, message: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    more = "" if output is None else f" --output {tmp_path}/{output}"
    answer = cli(f"report --model dsv3 --gpu h100{more}")
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not IS_THERE:
        pytest.skip(MISSING)
    with chromium(tmp_path_factory.mktemp("profile"), 1280, 900) as driver:
        yield driver


def test_opens_in_a_browser_without_error_or_request(browser: Any, made: Path) -> None:
    address = (made / "page.html").as_uri()
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(address)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if url != address and not url.startswith("data:")] == []
    assert browser.get_log("browser") == []
    heights = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(each => each.getBoundingClientRect().height)"
    )
    assert len(heights) == 6
    assert min(heights) > 300


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_no_width_makes_the_page_scroll_sideways(browser: Any, made: Path, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get((made / "page.html").as_uri())
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_legible(browser: Any, made: Path, scheme: str) -> None:
    """Text against paper, by WCAG's contrast ratio: 4.5 is what it asks of small text."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get((made / "page.html").as_uri())
    paper = _luminance(browser, "body", "backgroundColor")
    assert (paper > 0.5) == (scheme == "light")
    for selector in ("body", "a", ".soft", "small", "th", ".key span"):
        bright, dark = sorted((_luminance(browser, selector, "color"), paper), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, selector
    assert _luminance(browser, ".picture", "backgroundColor") == pytest.approx(1.0)


def _luminance(browser: Any, selector: str, key: str) -> float:
    script = f"return getComputedStyle(document.querySelector('{selector}')).{key}"
    channels = [int(each) / 255 for each in re.findall(r"\d+", browser.execute_script(script))[:3]]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
