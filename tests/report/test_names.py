"""Whatever a name holds: no markup in Markdown, no escape code on a terminal, no moved or cut title in a figure."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from mla_calc.report.chart import Axis, Bars, Chart, Panel, Rows
from mla_calc.report.direction import isolated
from mla_calc.report.drawing.glyphs import drawable_text
from mla_calc.report.drawing.picture import figure_of, save_picture
from mla_calc.report.drawing.svg import unique_ids
from mla_calc.report.html import escaped
from mla_calc.report.markdown_text import code, inline, text
from mla_calc.report.page_html import inline_svg
from mla_calc.report.record import Report, Table
from mla_calc.report.render import to_markdown, to_text
from tests.report import sample_charts as sample

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = st.text(st.sampled_from("ab1 \\`*_~[](){}<>|#&;:!-+=.$/\"'"), max_size=24)


def plain(node: SyntaxTreeNode) -> str:
    """The text of a parsed piece, every leaf of which has to be a text."""
    assert node.children or node.type in ("text", "text_special"), node.type
    return "".join(map(plain, node.children)) if node.children else node.content


@given(MARKUP)
def test_a_text_of_markdown_reads_as_it_was(words: str) -> None:
    expected = " ".join(words.split())
    for prefix in ("", "# ", "- "):
        tree = SyntaxTreeNode(GITHUB.parse(f"{prefix}{text(words)}\n"))
        pieces = [node for node in tree.walk() if node.type == "inline"]
        assert "".join(plain(piece) for piece in pieces if piece.children) == expected
        assert {node.type for node in tree.walk()} <= {
            "root", "paragraph", "heading", "bullet_list", "list_item", "inline", "text", "text_special"
        }  # fmt: skip


@given(MARKUP)
def test_a_cell_of_markdown_reads_as_it_was(words: str) -> None:
    tree = SyntaxTreeNode(GITHUB.parse(f"| a | b |\n| --- | --- |\n| x{inline(words)} | last |\n"))
    cells = [node for node in tree.walk() if node.type == "td"]
    assert [plain(cell.children[0]) for cell in cells] == ["x" + " ".join(words.split()), "last"]


@pytest.mark.parametrize(("before", "kind", "target"), [("!", "image", "src"), ("1. ", "link", "href")])
@given(MARKUP)
def test_a_text_in_brackets_is_whole_in_its_link_or_image(before: str, kind: str, target: str, words: str) -> None:
    tree = SyntaxTreeNode(GITHUB.parse(f"{before}[{inline(words)}](page-roofline.svg)\n"))
    (found,) = (node for node in tree.walk() if node.type in ("link", "image"))
    assert (found.type, found.attrs[target]) == (kind, "page-roofline.svg")
    assert "".join(map(plain, found.children)) == " ".join(words.split())


@given(MARKUP)
def test_no_dollar_begins_a_formula(words: str) -> None:
    assert not re.search(r"(?<!\\)(?:\\\\)*\$", text(words))


@pytest.mark.parametrize(
    "words",
    [
        "q_fold",
        "2 < 3 and 4 > 3",
        "by_tp[0].name",
        "heads x queries = 156.4",
        "a - b",
        "-",
        "#4 of 5 & more",
        "a [b [c] d]",
    ],
)
def test_what_is_no_markup_stays_as_it_is(words: str) -> None:
    assert inline(words) == words


def report_of(name: str) -> Report:
    table = Table((name, "head"), ((name, "1"),), name)
    return replace(
        sample.REPORT, title=f"{name}   8 pumps", subtitle=name, sentence=name, notes=(name,), sources=(name,),
        tables=(table,), chart=named_chart(name), chart_on_terminal=True,
    )  # fmt: skip


def test_a_report_in_markdown_holds_no_markup_of_a_name() -> None:
    name = "a|b <img src=x> $x$ *y* _z_ `c` [l](http://x) \\"
    tree = SyntaxTreeNode(GITHUB.parse(to_markdown(report_of(name))))
    found = {node.type for node in tree.walk()}
    assert not found & {"html_inline", "html_block", "em", "link", "code_inline", "s", "image"}
    rows = [[plain(cell.children[0]) for cell in row.children] for row in tree.walk() if row.type == "tr"]
    assert rows == [[name, "head"], [name, "1"]]


def test_code_with_backticks_is_code() -> None:
    (piece,) = (node for node in SyntaxTreeNode(GITHUB.parse(code("a ` <b>"))).walk() if node.type == "code_inline")
    assert piece.content == "a ` <b>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DeepSeek-V3, größer", "DeepSeek-V3, größer"),
        ("שלום 7B", "<שלום> 7B"),
        ("on שלום, עולם 7 under it", "on <שלום, עולם> 7 under it"),
        ("نموذج (7B) كبير", "<نموذج> (7B) <كبير>"),
    ],
)
def test_right_to_left_words_are_set_apart(name: str, expected: str) -> None:
    assert isolated(name, "<", ">") == expected
    assert escaped(name) == expected.replace("<", "\u2068").replace(">", "\u2069")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Fen-V3", "Fen-V3"),
        ("größer → 2", "größer → 2"),
        ("Dragon 🐉🔥!", "Dragon [U+1F409 U+1F525]!"),
        ("模型 7B", "[U+6A21 U+578B] 7B"),
        ("שלום 7B", "\u200eשלום\u200e 7B"),
    ],
)
def test_a_picture_names_what_its_font_lacks(name: str, expected: str) -> None:
    assert drawable_text(name) == expected


def named_chart(name: str) -> Any:
    return replace(sample.ROOFLINE, title=f"{name} under the roof", caption=f"{name}  ·  pumps")


@pytest.mark.parametrize("size", ["slide", "column"])
@pytest.mark.parametrize("name", ["🐉 模型", "x" * 200, "LongModelName" * 15, "שלום 7B"])
def test_a_picture_of_any_name_is_whole_and_silent(
    name: str, size: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figure_of(named_chart(name), sample.RESULTS, size)
        save_picture(named_chart(name), sample.RESULTS, tmp_path / "figure.png", "png", size)
    assert capfd.readouterr().err == ""
    width = figure.get_window_extent().width
    title, caption = figure.texts[:2]
    for drawn in (title, caption):
        extent = drawn.get_window_extent()
        assert extent.x0 >= 0
        assert extent.x1 <= width
    assert title.get_text().replace("\n", "").replace(" ", "") == drawable_text(f"{name}undertheroof").replace(" ", "")
    assert title.get_window_extent().y0 >= caption.get_window_extent().y1


def test_names_of_results_are_drawable_too() -> None:
    rows = [{"name": name, "grams": at} for at, name in enumerate(("🐉", "b"), 1)]
    panel = Panel(Axis("grams"), Axis("", "category", kind="text"), (Bars(Rows("rows"), "name", "grams"),))
    figure = figure_of(Chart("tanks", "", (panel,)), {"rows": rows}, "slide")
    assert "[U+1F409]" in [label.get_text() for label in figure.axes[0].get_yticklabels()]


IDS = re.compile(r'\sid="([^"]*)"')
REFERENCES = re.compile(r'(?:href="#|url\(#)([^")]*)')


@pytest.mark.parametrize("name", sample.CHARTS)
def test_every_id_of_an_svg_is_its_own(name: str, tmp_path: Path) -> None:
    save_picture(sample.CHARTS[name], sample.RESULTS, tmp_path / "figure.svg", "svg")
    drawn = (tmp_path / "figure.svg").read_text()
    ids = IDS.findall(drawn)
    assert len(ids) == len(set(ids))
    assert [each for each in ids if each.startswith("panel0-mark")]
    assert set(REFERENCES.findall(drawn)) <= set(ids)
    page = "".join(inline_svg(drawn, f"{prefix}-", "a chart") for prefix in ("one", "two"))
    ids = IDS.findall(page)
    assert len(ids) == len(set(ids))
    assert set(REFERENCES.findall(page)) <= set(ids)


def test_an_id_is_not_renamed_to_one_that_is_there() -> None:
    drawn = '<g id="a"/><g id="a"/><g id="a-2"/><g id="a"/>'
    assert IDS.findall(unique_ids(drawn)) == ["a", "a-3", "a-2", "a-4"]


def test_no_escape_code_of_a_name_reaches_a_terminal() -> None:
    name = "a\x1b[31mb\x1b]0;t\x07 \u202e[red]c[/red]\r"
    shown = to_text(report_of(name), False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert (
        shown.count(r"a\x1b[31mb\x1b]0;t\x07 \u202e[red]c[/red]\r") == 8
    )  # title, subtitle, caption, table, chart, sentence, note
