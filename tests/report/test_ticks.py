"""Labels of axes in pictures: none touch, those that stay are equally far apart, and the axes end where they did."""

from __future__ import annotations

from itertools import pairwise
from math import log10
from typing import Any

import pytest

from mla_calc.report.chart import Axis, Bars, Chart, Line, Panel, Points, Roof, Rows, Zones
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.plotly_figure import plotly_figure

SIZES = ("slide", "column")
FEW = {"few": [{"x": 2.0, "y": 2.0}], "slope": 1.0, "flat": 500.0, "parting": 500.0}


def axes_of(x: Axis, y: Axis, *marks: Any, size: str = "slide", panels: int = 1) -> Any:
    drawn = marks or (Points(Rows("few"), "x", "y"),)
    return figure_of(Chart("t", "c", (Panel(x, y, drawn),) * panels, shared=True), FEW, size).axes[-1]


def named(axis: Any) -> dict[float, Any]:
    """The labels that are seen, by where they are."""
    low, high = sorted(axis.get_view_interval())
    axis.get_ticklabels()  # brings the ticks up to date
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return {
        float(tick.get_loc()): tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()
    }


def apart(axis: Any) -> bool:
    spans = sorted((label.get_window_extent().x0, label.get_window_extent().x1) for label in named(axis).values())
    return all(right > end for (_, end), (right, _) in pairwise(spans))


@pytest.mark.parametrize("high", [3e7, 5.9e8, 7e13])
@pytest.mark.parametrize("scale", ["log", "linear"])
def test_what_is_drawn_reaches_to_the_ends_of_an_axis_whose_labels_were_thinned(scale: Any, high: float) -> None:
    """A locator has ticks beyond the ends too: to set them as they are would move the ends to them."""
    x = Axis("x", scale, low=0.7, high=high, kind="integer")
    y = Axis("y", "log", low=0.7, high=7e3)
    axes = axes_of(x, y, Zones("parting", "memory", "compute"), Roof("slope", "flat"), size="column", panels=3)
    assert axes.get_xlim() == (0.7, high)
    assert axes.get_ylim() == (0.7, 7e3)
    (roof,) = (line for line in axes.get_lines() if line.get_gid() == "panel2-mark1")
    assert (roof.get_xdata()[0], roof.get_xdata()[-1]) == (0.7, high)
    zones = [patch.get_extents() for patch in axes.patches]
    frame = axes.get_window_extent()
    assert min(zone.x0 for zone in zones) == pytest.approx(frame.x0)
    assert max(zone.x1 for zone in zones) == pytest.approx(frame.x1)
    assert apart(axes.xaxis)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("high", [1400.0, 11_900.0, 1.19e8, 8.7e10])
def test_labels_of_a_linear_axis_are_at_equal_steps(high: float, size: str) -> None:
    """Three panels beside each other, or names of bars, leave an axis room for few labels, of long numbers for one."""
    rows = [{"who": "a name that takes half of the panel", "n": high * 0.6}]
    bars = Bars(Rows(""), "who", "n", "integer")
    panel = Panel(Axis("n", kind="integer"), Axis("", "category", kind="text"), (bars,))
    for axes in figure_of(Chart("t", "c", (panel,) * 3), rows, size).axes:
        places = sorted(named(axes.xaxis))
        steps = {round(right - left, 6) for left, right in pairwise(places)}
        assert len(steps) == 1 if high < 1e6 else len(places) == 1 or len(steps) == 1
        assert apart(axes.xaxis)


@pytest.mark.parametrize("decades", [4, 6, 9, 13])
def test_labels_of_a_log_axis_are_at_every_second_or_third_power(decades: int) -> None:
    x = Axis("x", "log", low=0.7, high=0.7 * 10**decades)
    axes = axes_of(x, Axis("y", "log", low=1, high=10), size="slide", panels=3)
    powers = [log10(at) for at in sorted(named(axes.xaxis))]
    assert powers[0] == 0
    assert len({round(right - left, 9) for left, right in pairwise(powers)}) == 1
    assert len(powers) >= 3 if decades < 13 else len(powers) >= 2
    assert apart(axes.xaxis)


@pytest.mark.parametrize("size", SIZES)
def test_a_log_axis_of_less_than_two_powers_keeps_what_has_room(size: str) -> None:
    x = Axis("x", "log", low=1.9e8, high=6e8)
    axes = axes_of(x, Axis("y", "log", low=1, high=10), size=size, panels=3)
    assert set(named(axes.xaxis)) <= {2e8, 5e8}
    assert 2e8 in named(axes.xaxis)
    assert axes.get_xlim() == (1.9e8, 6e8)


def test_given_ticks_at_equal_distances_stay_so() -> None:
    """Powers of 2 on a log axis, of which a third of a slide has not room for all."""
    ticks = tuple(2.0**power for power in range(10, 21))
    axes = axes_of(
        Axis("x", "log", kind="integer", low=900, high=1.2e6, ticks=ticks), Axis("y", low=1, high=9), panels=3
    )
    powers = [log10(at) / log10(2) for at in sorted(named(axes.xaxis))]
    assert powers[0] == 10
    assert len({round(right - left, 9) for left, right in pairwise(powers)}) == 1
    assert 3 <= len(powers) < 11


def test_a_tick_that_is_given_twice_is_there_once() -> None:
    """Or it would touch itself, and the labels of its neighbours were left out."""
    axes = axes_of(Axis("x", kind="integer", low=0, high=9, ticks=(8, 2, 8, 4)), Axis("y", low=1, high=9))
    assert [label.get_text() for label in named(axes.xaxis).values()] == ["2", "4", "8"]


def test_a_line_goes_along_its_axis_and_an_arrow_in_its_course() -> None:
    rows = [{"x": x, "y": 1.0 + at} for at, x in enumerate((64.0, 1.0, 16.0, 1.0))]
    axis = Axis("x", "log", low=0.5, high=100)
    marks = (Line(Rows(""), "x", "y"), Line(Rows(""), "x", "y", arrow=True))
    chart = Chart("t", "c", (Panel(axis, Axis("y"), marks),))
    plain, course = figure_of(chart, rows).axes[0].get_lines()
    assert list(plain.get_xdata()) == [1, 1, 16, 64]
    assert list(plain.get_ydata()) == [2, 4, 3, 1]
    assert list(course.get_xdata()) == [64, 1, 16, 1]
    of_html = [list(trace.x) for trace in plotly_figure(chart, rows).data if "lines" in trace.mode]
    assert of_html == [[1, 1, 16, 64], [64, 1, 16, 1]]
