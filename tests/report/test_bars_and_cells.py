"""Bars and maps as each renderer draws them: lengths from zero, numbers beside them, keys that say where they end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mla_calc.report.chart import Axis, Bars, Cells, Chart, Line, Look, Panel, Rows, Rule
from mla_calc.report.chart_data import with_room
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.plotly_figure import plotly_figure
from mla_calc.report.drawing.text import chart_text

ROWS: list[dict[str, Any]] = [
    {"name": "pail", "weight": 2048, "times": 1.0},
    {"name": "barrel", "weight": 145_408, "times": 71.0},
    {"name": "jug", "weight": 1024, "times": 0.5},
]
TEXTS = ["2.0 KiB, 1x", "142.0 KiB, 71x", "1.0 KiB, 0.5x"]
NAMES = Axis("", "category", kind="text")
COLOURS: tuple[Any, ...] = ("blue", "sky", "orange")
ALONE = tuple(
    Bars(Rows("", (("name", row["name"]),)), "name", "weight", "binary", look=Look(colour), ratio="times")
    for row, colour in zip(ROWS, COLOURS, strict=True)
)
WEIGHTS = Chart("Weights", "c", (Panel(Axis("KiB", unit=1024.0), NAMES, ALONE, stacked=True),))
STACK = [{"who": "crew", "oars": 100.0, "ropes": 30.0, "tar": 1.0, "salt": 2.0}]
LOOKED: tuple[tuple[str, Any], ...] = (("oars", "blue"), ("ropes", "green"), ("tar", "pink"), ("salt", "soft"))
PARTS = tuple(Bars(Rows(""), "who", key, "number", key, Look(colour)) for key, colour in LOOKED)


def bars_of(axes: Any) -> list[Any]:
    return [patch for patch in axes.patches if str(patch.get_gid()).startswith("panel0-mark")]


@pytest.mark.parametrize("size", ["slide", "column"])
def test_bars_of_a_picture_are_as_long_as_their_numbers(size: str) -> None:
    """71 times as much is 71 times as long, and what is shortest is filled to its edges, so that it is seen."""
    figure: Any = figure_of(WEIGHTS, ROWS, size)
    pail, barrel, jug = bars_of(figure.axes[0])
    assert [bar.get_x() for bar in (pail, barrel, jug)] == [0, 0, 0]
    assert barrel.get_width() / pail.get_width() == pytest.approx(71)
    assert [bar.get_linewidth() for bar in (pail, barrel, jug)] == [0, 0, 0]
    assert [bool(bar.get_hatch()) for bar in (pail, barrel, jug)] == [False, True, False]
    frame = figure.axes[0].get_window_extent()
    for text, bar in zip(figure.axes[0].texts, (pail, barrel, jug), strict=True):
        extent = text.get_window_extent()
        assert bar.get_window_extent().x1 < extent.x0
        assert extent.x1 <= frame.x1 + 1
    assert [text.get_text() for text in figure.axes[0].texts] == TEXTS


def test_html_and_terminal_write_the_same_numbers() -> None:
    figure: Any = plotly_figure(WEIGHTS, ROWS)
    assert [trace.text[0] for trace in figure.data] == TEXTS
    assert {trace.textposition[0] for trace in figure.data} == {"outside"}
    assert {trace.marker.line.width for trace in figure.data} == {0}
    text = chart_text(WEIGHTS, ROWS, 80, 20, False)
    for name, number in zip(("pail", "barrel", "jug"), TEXTS, strict=True):
        (line,) = [line for line in text.split("\n") if name in line]
        assert line.endswith(number)


@pytest.mark.parametrize("narrow", [False, True])
def test_numbers_have_room_in_html(narrow: bool) -> None:
    """14 characters of 6.6 pixels beside the longest bar, in a panel 940 or 560 wide."""
    figure: Any = plotly_figure(WEIGHTS, ROWS, narrow=narrow)
    low, high = figure.layout.xaxis.range
    assert low == 0
    assert (high - 142) / high * (560 if narrow else 940) >= 14 * 6.6


def test_room_for_texts() -> None:
    """A text of a fifth at 80 ends at 100; one that asks for all of the axis gets 60 % of it."""
    assert with_room((0, 85), [(80, 0.2), (10, 0.1)]) == (0, 100)
    assert with_room((0, 85), [(50, 0.99)]) == (0, 125)
    assert with_room((0, 200), [(80, 0.2)]) == (0, 200)


def test_stacked_numbers_of_a_terminal_stand_in_their_bars() -> None:
    chart = Chart("t", "c", (Panel(Axis("kg"), NAMES, PARTS, stacked=True),))
    (line,) = [line for line in chart_text(chart, STACK, 80, 16, False).split("\n") if "crew" in line]
    assert "AAA 100 AAA" in line
    assert "BBB 30 BBB" in line


def test_a_category_and_its_bar_stand_in_one_row() -> None:
    """Of seven in 13 rows, where a half would be rounded one way for the name and the other for the bar."""
    rows = [{"name": f"n{at}", "weight": 10.0} for at in range(7)]
    chart = Chart("t", "c", (Panel(Axis("kg"), NAMES, (Bars(Rows(""), "name", "weight"),)),))
    for height in range(14, 26):
        lines = chart_text(chart, rows, 60, height, False).split("\n")
        assert all("A" in line for line in lines if line.startswith("n"))
        assert sum(line.startswith("n") for line in lines) == 7


def test_stacked_bars_of_html_are_told_apart_in_grey() -> None:
    figure: Any = plotly_figure(Chart("t", "c", (Panel(Axis("kg"), NAMES, PARTS, stacked=True),)), STACK)
    patterns = [trace.marker.pattern.shape for trace in figure.data]
    assert len(set(patterns)) == 4
    assert {trace.marker.pattern.fillmode for trace in figure.data} == {"overlay"}  # or the colour is left out


@pytest.mark.parametrize("size", ["slide", "column"])
def test_many_numbers_beside_a_stack_take_two_lines(size: str) -> None:
    thin = [{"who": "crew", "oars": 1000.0, "ropes": 3.0, "tar": 1.0, "salt": 2.0}]
    figure: Any = figure_of(Chart("t", "c", (Panel(Axis("kg"), NAMES, PARTS, stacked=True),)), thin, size)
    beside = next(text for text in figure.axes[0].texts if "tar" in text.get_text())
    assert beside.get_text() == "ropes 3, tar 1,\nsalt 2"
    assert beside.get_window_extent().x1 <= figure.axes[0].get_window_extent().x1 + 1


def test_a_rule_lies_over_the_bars_that_pass_it() -> None:
    panel = Panel(Axis("kg"), NAMES, (*PARTS, Rule("[0].oars", "x", label="most")), stacked=True)
    figure: Any = figure_of(Chart("t", "c", (panel,)), STACK)
    (rule,) = [line for line in figure.axes[0].lines if line.get_gid() == "panel0-mark4"]
    assert rule.get_zorder() > max(bar.get_zorder() for bar in bars_of(figure.axes[0]))


def cells_of(ratios: list[float], name: str = "a") -> list[dict[str, Any]]:
    return [{"map": name, "x": x, "y": y, "ratio": ratio} for x, ratio in enumerate(ratios, 1) for y in (1, 2)]


def map_of(*names: str) -> Chart:
    axis = Axis("x", "log", ticks=(1, 2))
    panels = tuple(
        Panel(axis, axis, (Cells(Rows("", (("map", name),)), "x", "y", "ratio", "left", "right"),), name)
        for name in names
    )
    return Chart("Map", "c", panels, shared=len(names) > 1)


def key_texts(figure: Any) -> list[str]:
    return [label.get_text() for label in figure.axes[-1].get_xticklabels()]


@pytest.mark.parametrize(
    ("ratios", "ends"),
    [
        ([0.5, 152.0], ("16x", "\u226516x")),
        ([1 / 152, 2.0], ("\u226516x", "16x")),
        ([1 / 16, 16.0], ("16x", "16x")),
        ([0.5, 3.0], ("4x", "4x")),
    ],
)
@pytest.mark.parametrize("size", ["slide", "column"])
def test_the_key_says_where_its_colours_end(ratios: list[float], ends: tuple[str, str], size: str) -> None:
    figure: Any = figure_of(map_of("a"), cells_of(ratios), size)
    texts = key_texts(figure)
    assert (texts[0], texts[-1]) == ends
    extents = [label.get_window_extent() for label in figure.axes[-1].get_xticklabels() if label.get_text()]
    assert all(left.x1 < right.x0 for left, right in pairwise(extents))


def test_maps_beside_each_other_have_the_colours_of_their_key() -> None:
    """A ratio of 2 is one colour, whatever else its own map has."""
    figure: Any = figure_of(map_of("a", "b"), [*cells_of([2.0, 40.0]), *cells_of([2.0, 1.5], "b")])
    colours = [
        next(patch.get_facecolor() for patch in axes.patches if patch.get_gid() == f"panel{at}-mark0")
        for at, axes in enumerate(figure.axes[:2])
    ]
    assert colours[0] == colours[1]


def test_the_key_of_html_has_factors_on_both_sides() -> None:
    """As the cells have: 4x for either path, never 0.25x."""
    figure: Any = plotly_figure(map_of("a"), cells_of([1 / 20, 20.0]))
    texts = list(figure.layout.coloraxis.colorbar.ticktext)
    assert texts == texts[::-1]
    assert "1" in texts
    assert not [text for text in texts if text.startswith("0")]


SPREAD: list[dict[str, Any]] = [
    {"at": 1.0, "mean": 40.0, "low": 36.0, "high": 43.0},
    {"at": 2.0, "mean": 50.0, "low": None, "high": None},
]
SPREAD_CHART = Chart(
    "t", "c", (Panel(Axis("at"), Axis("mean"), (Line(Rows(""), "at", "mean", "mean", spread=("low", "high")),)),)
)


def test_a_spread_is_an_upright_bar_where_it_is_known() -> None:
    figure: Any = figure_of(SPREAD_CHART, SPREAD)
    upright = [line for line in figure.axes[0].lines if len(set(line.get_xdata())) == 1]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in upright] == [([1.0, 1.0], [36.0, 43.0])]
    assert upright[0].get_markersize() > 1.5 * figure.axes[0].lines[0].get_markersize()  # or the marker hides it
    (trace,) = plotly_figure(SPREAD_CHART, SPREAD).data
    assert list(trace.error_y.array) == [3, 0]
    assert list(trace.error_y.arrayminus) == [4, 0]


def test_panels_of_a_column_have_the_height_that_their_bars_need() -> None:
    """Names of two lines, of which no two may touch."""
    rows = [{"name": f"a long name that breaks {at}", "n": 5.0} for at in range(20)]
    few = Panel(Axis("kg"), NAMES, (Bars(Rows(""), "name", "n"),))
    line = Panel(Axis("kg"), Axis("kg"), (Line(Rows(""), "n", "n"),))
    figure: Any = figure_of(Chart("t", "c", (few, line)), rows, "column")
    spans = sorted((label.get_window_extent().y0, label.get_window_extent().y1)
                   for label in figure.axes[0].get_yticklabels())  # fmt: skip
    assert all(top <= low + 1 for (_, top), (low, _) in pairwise(spans))


def test_letters_of_lines_stand_on_no_number_of_a_map() -> None:
    """On a screen's map of rows without gaps, with a point in the middle of every other cell."""
    ticks = tuple(2.0**power for power in range(8))
    axis = Axis("x", "log", ticks=ticks)
    rows = [{"x": x, "y": y, "ratio": 2.3} for x in ticks for y in ticks]
    marks = (
        Cells(Rows(""), "x", "y", "ratio", "left", "right", "ratio", "short_factor"),
        Line(Rows("", (("y", 8.0),)), "x", "y", "level"),
        Line(Rows("", (("y", 8.0),)), "x", "x", "rising"),
    )
    bare, lined = (
        chart_text(Chart("Map", "c", (Panel(axis, axis, shown),)), rows, 80, 14, False) for shown in (marks[:1], marks)
    )
    assert lined.count("2.3x") == bare.count("2.3x") > 40
    canvas = [line for line in lined.split("\n")[1:] if "\u2502" in line or "\u2524" in line]
    assert sum(line.count("a") for line in canvas) == 8


def test_a_number_in_a_cell_leaves_its_edges() -> None:
    cells = Cells(Rows(""), "x", "y", "ratio", "left", "right", "ratio", "short_factor")
    chart = map_of("a")
    chart = replace(chart, panels=(replace(chart.panels[0], marks=(cells,)),))
    rows = [{"map": "a", "x": 2**x, "y": 2**y, "ratio": 595.0} for x in range(12) for y in range(4)]
    figure: Any = figure_of(chart, rows, "column")
    figure.draw_without_rendering()  # which gives a text its box
    axes = figure.axes[0]
    boxes = [patch.get_window_extent() for patch in axes.patches if patch.get_gid() == "panel0-mark0"]
    assert axes.texts
    for text in axes.texts:
        extent = text.get_bbox_patch().get_window_extent()
        assert any(box.x0 < extent.x0 and extent.x1 < box.x1 for box in boxes)


LADDER = tuple(2.0**power for power in range(8))
LADDER_AXIS = Axis("x", "log", ticks=LADDER)
NUMBERED = Cells(Rows("cells"), "x", "y", "ratio", "left", "right", "ratio", "short_factor")
CLIMB = Line(Rows("climb"), "x", "y", "climb", spread=("low", "high"))


def climbed(marks: tuple[Any, ...], size: str) -> Any:
    """A map with a measured line at the height of one of its rows: a point and a bar in the middle of each cell."""
    results = {
        "cells": [{"x": x, "y": y, "ratio": 2.3} for x in LADDER for y in LADDER],
        "climb": [{"x": x, "y": 8.0, "low": 6.0, "high": 10.5} for x in LADDER],
        "rule": 32.0,
    }
    chart = Chart("Map", "c", (Panel(LADDER_AXIS, LADDER_AXIS, marks),))
    figure: Any = figure_of(chart, results, size)
    figure.draw_without_rendering()
    return figure


def plates(figure: Any) -> list[Any]:
    return [text.get_bbox_patch().get_window_extent() for text in figure.axes[0].texts if text.get_bbox_patch()]


@pytest.mark.parametrize("size", ["slide", "column"])
def test_numbers_of_a_map_hide_no_data(size: str) -> None:
    """They are in every cell that is free; those in the line's row stand beside points, bars and line, or nowhere."""
    bare = climbed((NUMBERED,), size)
    assert len(plates(bare)) == 64
    figure = climbed((NUMBERED, CLIMB), size)
    (line, *bars) = list(figure.axes[0].lines)
    assert len(bars) == 8
    ways = [*bars, line]
    corners = [figure.axes[0].transData.transform(each.get_xydata()) for each in ways]
    for box in plates(figure):
        for (x, low), (to_x, high) in (pair for way in corners for pair in pairwise(way)):
            assert not (box.x0 < max(x, to_x) and min(x, to_x) < box.x1 and box.y0 < max(low, high) and low < box.y1)
    assert len(plates(figure)) >= 56
    numbers = [text.get_zorder() for text in figure.axes[0].texts if text.get_bbox_patch()]
    assert max(numbers) < min(each.get_zorder() for each in ways)


def test_a_number_of_a_map_may_stand_on_a_rule() -> None:
    """Which goes on beside it, and runs through all of its row."""
    figure = climbed((NUMBERED, Rule("rule", "y")), "column")
    assert len(plates(figure)) == 64
    (rule,) = figure.axes[0].lines
    assert all(text.get_zorder() > rule.get_zorder() for text in figure.axes[0].texts)


@pytest.mark.parametrize("size", ["slide", "column"])
def test_names_of_rules_stay_beside_the_map(size: str) -> None:
    """Of long names at its top none stands above it or on another one, and none takes the width of the cells."""
    name = "; ".join(["A_BACKEND_WITH_A_LONG_NAME and 2 more"] * 2)
    rules = tuple(Rule(f"cells[{at}].y", "y", f"{{}}: {name}", "number") for at in (7, 6))
    figure = climbed((NUMBERED, *rules), size)
    frame = figure.axes[0].get_window_extent()
    names = [text for text in figure.axes[0].texts if "BACKEND" in text.get_text()]
    assert [text.get_text().replace("\n", "").count("A_BACKEND_WITH_A_LONG_NAME") for text in names] == [2, 2]
    extents = [text.get_window_extent() for text in names]
    assert max(extent.y1 for extent in extents) <= frame.y1 + 1
    assert extents[0].y1 <= extents[1].y0 + 1
    assert frame.width > figure.bbox.width / 2


def map_with(columns: list[float], *marks: Any) -> Chart:
    """A map of two rows over contexts; its cells' numbers are as wide as ``2.3x``."""
    across, up = Axis("x", "log", ticks=tuple(columns)), Axis("y", "log", ticks=(1.0, 2.0))
    return Chart("Map", "c", (Panel(across, up, (NUMBERED, *marks)),))


def rows_of(columns: list[float], ratio: float = 2.3) -> list[dict[str, Any]]:
    return [{"x": x, "y": y, "ratio": ratio} for x in columns for y in (1.0, 2.0)]


@pytest.mark.parametrize("size", ["slide", "column"])
def test_a_map_of_many_columns_is_not_white(size: str) -> None:
    """900 columns of one colour from 1 to 900, of which most are narrower than a line between wide ones is."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    columns = [float(at) for at in range(1, 901)]
    figure: Any = figure_of(map_with(columns), {"cells": rows_of(columns, 3000.0)}, size)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255
    frame, (cell, *_) = figure.axes[0].get_window_extent(), figure.axes[0].patches
    inside = pixels[int(frame.y0) + 2 : int(frame.y1) - 1, int(frame.x0) + 2 : int(frame.x1) - 1]
    of_cells = (np.abs(inside - cell.get_facecolor()[:3]) < 0.02).all(axis=2)
    assert of_cells[:, inside.shape[1] * 2 // 3 :].mean() > 0.97  # but for the line between the rows
    assert of_cells.mean() > 0.8
    at = int(figure.axes[0].transData.transform((2**0.5, 1))[0])
    assert (pixels[int(frame.y0) + 30, at - 2 : at + 3].max(axis=0) > 0.8).all()  # the first two columns are parted


@pytest.mark.parametrize("size", ["slide", "column"])
def test_a_narrow_column_takes_no_number_from_wide_ones(size: str) -> None:
    columns = [16.0, 17.0, 100.0, 1000.0, 10_000.0]
    figure: Any = figure_of(map_with(columns), {"cells": rows_of(columns)}, size)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    numbers = [text for text in axes.texts if text.get_text() == "2.3x"]
    middles = [axes.transData.inverted().transform((text.get_window_extent().x0, 0))[0] for text in numbers]
    assert len(numbers) == 8
    assert min(middles) > 17
    assert len({text.get_fontsize() for text in numbers}) == 1


def test_a_column_has_all_of_its_numbers_or_none() -> None:
    """The narrow ones have room for 2x and not for 2.345x: a map of round numbers alone would be misread."""
    columns = [10 * 1.05**at for at in range(30)]
    columns += [1e4, 1e5, 1e6]
    rows = [record | {"ratio": 2.0 if record["y"] == 1 else 2.345} for record in rows_of(columns)]
    cells = replace(NUMBERED, kind="factor")
    chart = map_with(columns)
    chart = replace(chart, panels=(replace(chart.panels[0], marks=(cells,)),))
    texts = [text.get_text() for text in figure_of(chart, {"cells": rows}).axes[0].texts]
    assert texts.count("2x") == texts.count("2.345x") == 4  # those from 1e4 on, and the last of the others beside them


@pytest.mark.parametrize("size", ["slide", "column"])
def test_markers_of_a_crowded_line_cover_none(size: str) -> None:
    """The line goes through all of its points; an arrow's markers tell its course, and stay."""
    results = {"few": [{"x": 1.0 + at / 50, "y": 1.0 + at / 50} for at in range(500)]}
    axis = Axis("x", low=0, high=12)
    line = Line(Rows("few"), "x", "y", "line")
    figure: Any = figure_of(Chart("t", "c", (Panel(axis, axis, (line, replace(line, arrow=True))),)), results, size)
    plain, course = figure.axes[0].get_lines()
    kept = plain.get_markevery()
    corners = figure.axes[0].transData.transform(plain.get_xydata())
    least = plain.get_markersize() * figure.dpi / 72
    assert len(corners) == 500
    assert 10 < len(kept) < 200
    assert all(((corners[one] - corners[two]) ** 2).sum() ** 0.5 >= least for one, two in pairwise(kept))
    assert course.get_markevery() is None


def test_columns_that_no_line_parts_have_no_seam() -> None:
    """A viewer of vectors shows what is below the edges of two cells: it has the colour of one of them."""
    from matplotlib.collections import PolyCollection

    def under(columns: list[float]) -> list[Any]:
        figure: Any = figure_of(map_with(columns), {"cells": rows_of(columns)})
        return [each for each in figure.axes[0].collections if isinstance(each, PolyCollection)]

    assert under([1.0, 2.0, 4.0]) == []
    columns = [float(at) for at in range(1, 901)]
    (seams,) = under(columns)
    spans = sorted((path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in seams.get_paths())
    assert len(seams.get_paths()) == len(set(spans)) * 2  # in both rows
    for column in range(200, 900):  # narrower than 2 pixels each
        assert any(low < (column * (column + 1)) ** 0.5 < high for low, high in spans), column
