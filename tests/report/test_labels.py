"""Texts of a picture: which must be there, whose they read as, and in which colour the key shows a mark."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.colors import to_hex

from mla_calc.report.chart import Axis, Chart, Line, Look, Mark, Panel, Points, Roof, Rows, Rule
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.placing import Place, Places
from mla_calc.report.drawing.style import COLOURS
from mla_calc.report.drawing.style import SIZES as SIZES_BY_NAME
from mla_calc.report.drawing.text import chart_text

SIZES = ("slide", "column")


def chart_of(*marks: Mark) -> Chart:
    return Chart("t", "c", (Panel(Axis("x", "log", low=1, high=1e3), Axis("y", "log", low=1, high=1e3), marks),))


def texts(chart: Chart, results: Any, size: str) -> dict[str, Any]:
    (axes,) = figure_of(chart, results, size).axes
    return {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text()}


CROWD = [{"x": 10 * 1.06**at, "y": 10 * 1.06**at, "name": f"step number {at}", "solved": at == 13} for at in range(27)]
CLOUD = [{"x": 10 * 1.03**at, "y": 10 * 1.05**up} for at in range(54) for up in range(0, 33, 2)]


@pytest.mark.parametrize("size", SIZES)
def test_a_text_that_must_be_there_is(size: str) -> None:
    results = {"crowd": CROWD, "cloud": CLOUD}
    marks = (Points(Rows("cloud"), "x", "y"), Line(Rows("crowd"), "x", "y", text="name"))
    assert "step number 13" not in texts(chart_of(*marks), results, size)
    must = (marks[0], Line(Rows("crowd"), "x", "y", text="name", must="solved"))
    shown = texts(chart_of(*must), results, size)
    own = shown["step number 13"]
    for name, other in shown.items():
        if name != "step number 13":
            assert min(own.x1, other.x1) - max(own.x0, other.x0) <= 1 or min(own.y1, other.y1) <= max(own.y0, other.y0)


def test_a_cloud_of_points_is_better_covered_than_another_text() -> None:
    (axes,) = figure_of(chart_of(Points(Rows("few"), "x", "y")), {"few": [{"x": 2, "y": 2}]}).axes
    places = Places(axes, SIZES_BY_NAME["slide"])
    assert places.put("another text", [Place(300, 300, "left", "bottom")], 1.0)
    back = axes.transData.inverted()
    for at in range(40):
        x, y = back.transform((505 + at, 305))
        places.add_point(x, y, 9.0)
    both = [Place(300, 300, "left", "bottom"), Place(500, 300, "left", "bottom")]
    assert places.put("the last text", both, float("inf"))
    assert axes.texts[-1].get_window_extent().x0 == pytest.approx(500, abs=2)


def test_it_is_there_in_a_terminal() -> None:
    results = {"crowd": CROWD}
    without = chart_text(chart_of(Line(Rows("crowd"), "x", "y", text="name")), results, 60, 20, False)
    assert "step number 13" not in without
    line = Line(Rows("crowd"), "x", "y", text="name", must="solved")
    assert "step number 13" in chart_text(chart_of(line), results, 60, 20, False)


def test_a_line_may_have_the_texts_of_its_ends_alone() -> None:
    results = {"few": [{"x": x, "y": y, "name": name} for x, y, name in ((2, 2, "a"), (30, 30, "b"), (400, 400, "c"))]}
    assert set(texts(chart_of(Line(Rows("few"), "x", "y", text="name")), results, "slide")) == {"a", "b", "c"}
    line = Line(Rows("few"), "x", "y", text="name", ends=True)
    assert set(texts(chart_of(line), results, "slide")) == {"a", "c"}
    inside = [row for row in chart_text(chart_of(line), results, 60, 20, False).split("\n") if "\u2502" in row]
    assert not [row for row in inside if " b" in row]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("axis", ["x", "y"])
def test_texts_of_rules_near_each_other_stand_on_the_outer_sides(axis: Any, size: str) -> None:
    results = {"low": 100.0, "high": 103.0}
    marks = (Rule("low", axis, "lower {}"), Rule("high", axis, "higher {}"))
    shown = texts(chart_of(*marks), results, size)
    (axes,) = figure_of(chart_of(*marks), results, size).axes
    at = 0 if axis == "x" else 1
    low, high = (axes.transData.transform((number, number))[at] for number in results.values())
    lower, higher = shown["lower 100"], shown["higher 103"]
    assert (lower.x1 if axis == "x" else lower.y1) < low
    assert (higher.x0 if axis == "x" else higher.y0) > high


def test_a_text_of_a_rule_in_a_terminal_stands_on_its_outer_side() -> None:
    results = {"low": 100.0, "high": 115.0}
    chart = chart_of(Rule("low", "x", "lower {}"), Rule("high", "x", "higher {}"))
    text = chart_text(chart, results, 60, 20, False)
    assert "lower 100\u250a" in text
    assert "\u250ahigher 115" in text


def test_a_text_between_two_rules_in_a_terminal_touches_one_of_them_at_most() -> None:
    chart = chart_of(Rule("low", "x", "lower {}"), Rule("high", "x", "higher {}"))
    for high in range(200, 500, 10):
        text = chart_text(chart, {"low": 100.0, "high": float(high)}, 60, 20, False)
        assert "lower 100" in text
        assert "\u250alower 100\u250a" not in text, high


def test_a_number_does_not_stand_on_a_level_rule() -> None:
    results = {"rule": 100.0, "steps": [{"x": 2.0, "y": 88.0, "n": "first"}, {"x": 500.0, "y": 5.0, "n": "last"}]}
    chart = chart_of(Rule("rule", "y"), Line(Rows("steps"), "x", "y", text="n"))
    for size in SIZES:
        (axes,) = figure_of(chart, results, size).axes
        rule = axes.transData.transform((1, 100))[1]
        extent = texts(chart, results, size)["first"]
        assert not extent.y0 < rule < extent.y1


@pytest.mark.parametrize("size", SIZES)
def test_a_roof_has_its_texts_beside_its_parts(size: str) -> None:
    results = {"slope": 1.0, "flat": 50.0}
    chart = chart_of(Roof("slope", "flat", on_flat="the flat", on_slope="the slope"))
    shown = texts(chart, results, size)
    (axes,) = figure_of(chart, results, size).axes
    x, y = axes.transData.transform((50, 50))
    assert shown["the flat"].x0 > x
    assert 0 < shown["the flat"].y0 - y < 3 * shown["the flat"].height
    assert shown["the slope"].x1 < x


def test_a_mark_has_the_colour_of_the_key_there_and_its_own_in_the_panel() -> None:
    results = {"few": [{"x": 2.0, "y": 2.0}, {"x": 30.0, "y": 30.0}]}
    line = Line(Rows("few"), "x", "y", "line", Look("blue"), key="ink")
    points = Points(Rows("few"), "x", "y", "points", Look("orange"), key="ink")
    figure: Any = figure_of(chart_of(line, points), results)
    for handle in figure.legends[0].legend_handles:
        assert to_hex(handle.get_markerfacecolor()).upper() == COLOURS["ink"].upper()
    assert figure.axes[0].get_lines()[0].get_color() == COLOURS["blue"]
    key = chart_text(chart_of(line), results, 60, 20, True).split("\n")[-1]
    assert "\x1b" not in key


def test_a_line_of_more_weight_is_wider() -> None:
    results = {"slope": 1.0, "flat": 50.0}
    roofs = (Roof("slope", "flat", look=Look(weight=2.5)), Roof("slope", "flat"))
    (axes,) = figure_of(chart_of(*roofs), results).axes
    wide, usual = (line.get_linewidth() for line in axes.get_lines())
    assert wide == pytest.approx(2.5 * usual)
