"""A name of any length leaves a picture its panels: it is folded, and in the middle cut."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

from mla_calc.errors import InputError
from mla_calc.report.chart import Axis, Bars, Chart, Line, Panel, Points, Roof, Rows, Rule
from mla_calc.report.drawing.glyphs import abridged, folded
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.style import SIZES as STYLES
from mla_calc.report.drawing.style import drawing_style

SIZES = ("slide", "column")
NAMES = ("LongModelName" * 23, "a model of many words " * 14)
AXIS = Axis("x", "log", low=1, high=1e3)
NAMED = Axis("", "category", kind="text")


def chart_of(name: str, panels: int) -> tuple[Chart, dict[str, Any]]:
    """A chart that has the name wherever a chart has texts, once ending in ``one`` and once in ``two``."""
    both = [f"{name} one", f"{name} two"]
    results = {
        "points": [{"x": 10.0, "y": 10.0, "who": f"{name} at a point"}],
        "bars": [{"who": who, "n": 5.0 + at} for at, who in enumerate(both)],
        "slope": 1.0,
        "flat": 100.0,
        "at": 30.0,
    }
    marks = (
        Roof("slope", "flat", both[0], on_flat=f"{name} on a roof"),
        Line(Rows("points"), "x", "y", both[1], text="who", must="x"),
        Points(Rows("points"), "x", "y", text="who"),
        Rule("at", "x", f"{name} at a rule {{}}"),
    )
    first = Panel(AXIS, AXIS, marks, f"{name} one")
    bars = Panel(Axis("n"), NAMED, (Bars(Rows("bars"), "who", "n"),), f"{name} two")
    return Chart(f"{name} under {name}", f"{name} of 61 layers  ·  on {name}", (first, bars)[:panels]), results


def labels_of(axis: Any) -> list[str]:
    return [label.get_text().replace("\n", " ") for label in axis.get_ticklabels() if label.get_text()]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_name_leaves_the_panels_their_room(name: str, size: str) -> None:
    chart, results = chart_of(name, 2)
    with warnings.catch_warnings(), drawing_style(STYLES[size]):
        warnings.simplefilter("error")
        figure: Any = figure_of(chart, results, size)
        figure.draw_without_rendering()
        heads = [text.get_window_extent() for text in figure.texts[:2]]
    width, height = figure.bbox.width, figure.bbox.height
    for axes in figure.axes:
        frame = axes.get_window_extent()
        assert frame.width * len(figure.axes) ** (size == "slide") > 0.4 * width
        assert frame.height > (height / 5 if size == "slide" else 0.5 * figure.dpi)
        assert axes.get_tightbbox(for_layout_only=True).y1 <= min(head.y0 for head in heads) + 1
    assert max(head.x1 for head in heads) <= width
    lines = [len(text.get_text().split("\n")) for text in figure.texts[:2]]
    assert lines <= ([3, 6] if size == "slide" else [6, 12])  # the caption has two parts


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_long_names_that_differ_at_their_end_are_told_apart(name: str, size: str) -> None:
    figure: Any = figure_of(*chart_of(name, 2), size)
    (legend,) = figure.legends
    for texts in ([text.get_text() for text in legend.get_texts()], labels_of(figure.axes[1].yaxis)):
        assert [text.split()[-1] for text in texts] == ["one", "two"]
        assert all(text.startswith(name[:5]) for text in texts)


def test_a_text_is_cut_in_its_middle() -> None:
    assert abridged("abcdefghijkl", 12) == "abcdefghijkl"
    assert abridged("abcdefghijkl", 9) == "abcde\u2026jkl"
    assert folded("one two three four", 9, 2) == "one two\nth\u2026four"
    assert folded("one two three", 9, 2) == "one two\nthree"


def test_texts_that_leave_no_room_are_an_error_and_no_warning() -> None:
    """Sixty panels of a slide: matplotlib would warn, and draw them over each other."""
    panel = Panel(AXIS, AXIS, (Points(Rows("points"), "x", "y"),), "a title")
    chart = Chart("t", "c", (panel,) * 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="leave a figure no room"):
            figure_of(chart, {"points": [{"x": 2.0, "y": 2.0}]}, "slide")
        few = replace(chart, panels=chart.panels[:2])
        figure_of(few, {"points": [{"x": 2.0, "y": 2.0}]}, "slide")
