"""Texts are placed at a picture's resolution and drawn at an SVG's or PDF's: they are as wide in both."""

from __future__ import annotations

import pytest

from mla_calc.report.drawing.style import COLUMN, FONT, SLIDE, Size, drawing_style, new_figure

LABELS = ("TP 16, DP 2, DCP 16, PP 2", "absorbed attention over queries", "reserve 14.0, workspace 0.3")


@pytest.mark.parametrize("size", [SLIDE, COLUMN], ids=["slide", "column"])
@pytest.mark.parametrize("label", LABELS)
def test_a_text_is_placed_as_wide_as_its_outline(label: str, size: Size) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    with drawing_style(size):
        text = new_figure("", "", size).text(0, 0, label, fontsize=size.small)
        placed = text.get_window_extent().width * 72 / size.dpi
        outline = TextPath((0, 0), label, size=size.small, prop=FontProperties(family=FONT)).get_extents().width
    # the free room at both ends takes one or two points; hinted, the first label was 8.5 points wider on a slide
    assert placed == pytest.approx(outline, abs=2)
