"""Texts of a picture: which must be there, whose they read as, and in which colour the key shows a mark."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from matplotlib.colors import to_hex

from mla_calc.report.chart import Axis, Chart, Line, Look, Mark, Panel, Points, Roof, Rows, Rule
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.placing import Box, Place, Places
from mla_calc.report.drawing.style import COLOURS
from mla_calc.report.drawing.style import SIZES as SIZES_BY_NAME
from mla_calc.report.drawing.text import chart_text

SIZES = ("slide", "column")


def chart_of(*marks: Mark) -> Chart:
    return Chart("t", "c", (Panel(Axis("x", "log", low=1, high=1e3), Axis("y", "log", low=1, high=1e3), marks),))


def texts(chart: Chart, results: Any, size: str) -> dict[str, Any]:
    (axes,) = figure_of(chart, results, size).axes
    return {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text()}


def test_labels_that_have_room_stay() -> None:
    """Of four in a row that touch every second goes; the others, far apart, keep theirs, and so do both ends."""
    crowd = (300.0, 310.0, 320.0, 330.0)
    ticks = (1.0, 4.0, 16.0, 64.0, *crowd, 1000.0)
    axis = Axis("x", "log", low=0.5, high=2e3, kind="integer", ticks=ticks)
    chart = Chart("t", "c", (Panel(axis, Axis("y", "log", low=1, high=1e3), (Points(Rows("few"), "x", "y"),)),))
    (axes,) = figure_of(chart, {"few": [{"x": 2, "y": 2}]}, "slide").axes
    shown = [label.get_text() for label in axes.get_xticklabels() if label.get_text()]
    assert shown == ["1", "4", "16", "64", "300", "1,000"]


def test_of_labels_that_all_touch_those_at_equal_distances_stay() -> None:
    ticks = tuple(map(float, range(100_000, 100_000 + 60 * 10, 10)))
    axis = Axis("x", low=ticks[0] - 5, high=ticks[-1] + 5, kind="integer", ticks=ticks)
    chart = Chart("t", "c", (Panel(axis, Axis("y", low=1, high=9), (Points(Rows("few"), "x", "y"),)),))
    (axes,) = figure_of(chart, {"few": [{"x": 100_100, "y": 2}]}, "column").axes
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    spans = [label.get_window_extent() for label in labels]
    numbers = [int(label.get_text().replace(",", "")) for label in labels]
    assert numbers[0] == 100_000
    assert len({high - low for low, high in pairwise(numbers)}) == 1
    assert 3 < len(labels) < 30
    assert all(right.x0 > left.x1 for left, right in pairwise(spans))


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


def empty_places() -> tuple[Any, Places]:
    (axes,) = figure_of(chart_of(Points(Rows("few"), "x", "y")), {"few": [{"x": 2, "y": 2}]}).axes
    return axes, Places(axes, SIZES_BY_NAME["slide"])


def leaders(axes: Any) -> list[Any]:
    return [line for line in axes.get_lines() if line.get_transform() == axes.transAxes]


def test_a_text_that_is_nearer_to_another_point_has_a_line_to_its_own() -> None:
    own, other = Box(400, 300, 410, 310), Box(414, 338, 424, 348)
    beside = [Place(414, 325, "left", "center")]  # 12 pixels from its own, 7 below the other
    for others, expected in (([], 0), ([other], 1)):
        axes, places = empty_places()
        places.points += [own, *others]
        assert places.put("a name", beside, float("inf"), own)
        assert len(leaders(axes)) == expected
    ((x, y),) = axes.transData.inverted().transform([(405, 305)])
    end = axes.transAxes.transform(leaders(axes)[0].get_xydata()[-1])
    assert axes.transData.inverted().transform(end) == pytest.approx([x, y], rel=1e-3)


def test_a_text_goes_where_its_own_point_is_nearest() -> None:
    own, other = Box(400, 300, 410, 310), Box(412, 330, 422, 340)
    axes, places = empty_places()
    places.points += [own, other]
    at_the_other = Place(405, 316, "center", "bottom")
    below = Place(405, 294, "center", "top", 5.0)
    assert places.put("name", [at_the_other, below], float("inf"), own)
    assert axes.texts[-1].get_window_extent().y1 < 300


@pytest.mark.parametrize("size", SIZES)
def test_points_by_area_are_named_in_a_crowd(size: str) -> None:
    big = [{"x": x, "y": x, "name": name, "share": 0.5} for x, name in ((20.0, "the first"), (26.0, "the second"))]
    results = {"big": big, "cloud": CLOUD}
    marks = (Points(Rows("cloud"), "x", "y"), Points(Rows("big"), "x", "y", area="share", text="name"))
    assert {"the first", "the second"} <= set(texts(chart_of(*marks), results, size))


@pytest.mark.parametrize("size", SIZES)
def test_points_on_each_other_have_one_text(size: str) -> None:
    big = [{"x": x, "y": x, "name": name, "share": 0.3} for x, name in ((20.0, "one"), (20.0, "other"), (200.0, "far"))]
    shown = texts(chart_of(Points(Rows("big"), "x", "y", area="share", text="name")), {"big": big}, size)
    assert set(shown) == {"one, other", "far"}


def luminance(colour: Any) -> float:
    """Of WCAG 2, on white."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(colour)
    mixed = [part * alpha + 1 - alpha for part in (red, green, blue)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in mixed]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", ["green", "orange", "sky", "pink", "blue", "soft"])
def test_a_faint_point_is_seen_on_white(colour: Any) -> None:
    results = {"few": [{"x": 20.0, "y": 20.0}]}
    chart = chart_of(Points(Rows("few"), "x", "y", "p", Look(colour, "plus", faint=True)))
    (cloud,) = figure_of(chart, results).axes[0].collections
    assert 1.05 / (luminance(cloud.get_edgecolor()[0]) + 0.05) >= 3


def test_a_text_stands_on_small_markers_rather_than_on_one_that_is_higher_than_it() -> None:
    from matplotlib.figure import Figure

    axes = Figure(figsize=(8, 4), dpi=100).add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 800), ylim=(0, 400))
    places = Places(axes, SIZES_BY_NAME["slide"])
    on_small, on_large = Place(200, 200, "center", "center", cost=1), Place(600, 200, "center", "center")
    for across in (190, 210):
        places.add_point(across, 200, area=16)
    places.add_point(600, 200, area=40**2)
    assert places.put("S 256k", (on_small, on_large), most=float("inf"))
    (text,) = axes.texts
    assert text.get_position()[0] == pytest.approx(200 / 800)


def test_two_texts_beside_each_other_do_not_read_as_one() -> None:
    axes, places = empty_places()
    assert places.put("TP 1", [Place(300, 300, "left", "bottom")], 1.0)
    right = axes.texts[-1].get_window_extent().x1
    touching, apart = Place(right + 1, 300, "left", "bottom"), Place(right + 12, 300, "left", "bottom", 5.0)
    assert places.put("Q 16", [touching, apart], float("inf"))
    assert axes.texts[-1].get_window_extent().x0 >= right + 10


def crossed_by(figure: Any, extent: Any, gid: str) -> bool:
    """Whether the line of a mark goes through a rectangle."""
    axes = figure.axes[0]
    (line,) = (each for each in axes.get_lines() if each.get_gid() == gid)
    corners = line.get_transform().transform(line.get_xydata())
    for (x, y), (to_x, to_y) in pairwise(corners):
        for at in range(2001):
            across, up = x + (to_x - x) * at / 2000, y + (to_y - y) * at / 2000
            if extent.x0 < across < extent.x1 and extent.y0 < up < extent.y1:
                return True
    return False


@pytest.mark.parametrize("size", SIZES)
def test_names_of_points_in_a_corner_stand_off_the_roof(size: str) -> None:
    """Two kernels at one place at the foot of a roof: their names are pushed into the panel, and not onto the roof."""
    rows = [{"x": 1.3, "y": 1.3, "share": 0.5, "name": name} for name in ("q_fold, v_up", "attention")]
    results = {"slope": 1.0, "flat": 300.0, "rows": rows}
    looks = (Look("blue"), Look("orange", "square"))
    points = [
        Points(Rows("rows", (("name", row["name"]),)), "x", "y", look=look, area="share", text="name")
        for row, look in zip(rows, looks, strict=True)
    ]
    figure: Any = figure_of(chart_of(Roof("slope", "flat"), *points), results, size)
    frame = figure.axes[0].get_window_extent()
    shown = [text for text in figure.axes[0].texts if text.get_text()]
    assert {text.get_text() for text in shown} == {"q_fold, v_up", "attention"}
    for text in shown:
        extent = text.get_window_extent()
        assert not crossed_by(figure, extent, "panel0-mark0"), text.get_text()
        assert frame.x0 < extent.x0
        assert frame.y0 < extent.y0
        assert text.get_bbox_patch() is None


@pytest.mark.parametrize("size", SIZES)
def test_no_line_strikes_a_text_through(size: str) -> None:
    """Rules so near to each other that a number has room on neither side: the next one goes on beside it."""
    results = {"a": 100.0, "b": 114.0, "c": 130.0, "d": 148.0, "far": 3.0}
    marks = [Rule(key, "x", f"{key} = {{}} of all") for key in results]
    figure: Any = figure_of(chart_of(*marks), results, size)
    struck = 0
    for text in figure.axes[0].texts:
        lines = [crossed_by(figure, text.get_window_extent(), f"panel0-mark{at}") for at in range(len(marks))]
        patch = text.get_bbox_patch()
        assert (patch is not None) == any(lines), text.get_text()
        if patch is not None:
            struck += 1
            assert min(patch.get_facecolor()) > 0.8
            assert text.get_zorder() > max(line.get_zorder() for line in figure.axes[0].get_lines())
    assert struck >= 2
