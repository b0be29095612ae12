from __future__ import annotations

import textwrap

import pytest

from mla_calc.explore.cells import ending, folded, placed
from mla_calc.explore.sheet import sheet_of
from mla_calc.report.record import Cell, Report, Table


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("深度求索 模型", 9, ["深度求索", "模型"]),  # 8 columns, a blank, 4
        ("深度求索 模型", 13, ["深度求索 模型"]),
        ("深度求索模型", 5, ["深度", "求索", "模型"]),  # no character is halved
        ("a 深度求索", 6, ["a 深度", "求索"]),
        ("🚀🚀 ab", 4, ["🚀🚀", "ab"]),
        ("", 10, []),
    ],
)
def test_wide_characters_take_two_columns(text: str, width: int, lines: list[str]) -> None:
    assert folded(text, width) == lines


@pytest.mark.parametrize("width", range(12, 40))
def test_narrow_characters_fold_as_the_standard_library_folds(width: int) -> None:
    text = "first  second\tthird-and-more of a_word_that_is_longer_than_every_line_that_there_is\nand (an end). x"
    plain = text.replace("\t", " ")
    lines = textwrap.wrap(plain, width, break_on_hyphens=False)
    assert folded(text, width) == [line.rstrip() for line in lines]


def test_blanks_and_cuts_are_by_columns() -> None:
    assert placed("深度", 6) == "深度  "
    assert placed("深度", 6, right=True) == "  深度"
    assert ending("深度求索", 8) == "深度求索"
    assert ending("深度求索", 6) == "~求索"
    assert ending("深度求索", 5) == "~求索"


def test_numbers_beside_wide_characters_are_where_they_are_pointed_at() -> None:
    table = Table(("模型", "tokens"), (("深度求索", Cell("a")), ("b", Cell("b"))))
    report = Report(
        command="x", title="", inputs={}, results={"a": 12, "b": 7}, tables=(table,), sentence="", notes=(), sources=()
    )
    sheet = sheet_of(report, 40)
    assert [line for line, _ in sheet.lines] == ["模型      tokens", "深度求索      12", "b              7"]
    assert [(spot.start, spot.end) for spot in sheet.spots] == [(14, 16), (15, 16)]
    assert sheet.width == 16
