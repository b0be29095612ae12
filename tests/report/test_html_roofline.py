"""The roofline as an interactive figure: what pointing tells, and where its texts stand."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from math import log10
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.main import run
from mla_calc.report.chart import Axis, Bars, Chart, Colour, Line, Look, Mark, Panel, Points, Roof, Rows, Rule, Shown
from mla_calc.report.drawing.plotly_figure import plotly_figure
from mla_calc.report.drawing.style import TEXT_COLOURS
from tests.browser import IS_THERE, MISSING, chromium

pytest.importorskip("plotly", reason="plotly is an extra")

WIDE, HIGH = 965, 430
"""Pixels of a panel that texts are placed for."""
TELLS = (Shown("lift", "lift"), Shown("path", "path"))


def made(marks: tuple[Mark, ...], results: dict[str, Any]) -> dict[str, Any]:
    """A panel from 1 to 10,000 both ways, as plain data."""
    panel = Panel(Axis("x", "log", low=1, high=1e4), Axis("y", "log", low=1, high=1e4), marks)
    found: dict[str, Any] = plotly_figure(Chart("t", "", (panel,)), results).to_plotly_json()
    return found


def pixel(x: float, y: float) -> tuple[float, float]:
    return log10(x) / 4 * WIDE, log10(y) / 4 * HIGH


def box(x: float, y: float, text: str, side: str, size: float) -> tuple[float, float, float, float]:
    """Where plotly draws a text beside a marker of a diameter, a little narrower than it may be: 5.5 px a letter."""
    across, up = pixel(x, y)
    gap = size / 2 / 0.8 + 1
    width = 5.5 * len(text)
    left = across + gap if "right" in side else across - gap - width if "left" in side else across - width / 2
    low = up + gap if "top" in side else up - gap - 11 if "bottom" in side else up - 5.5
    return left, low, left + width, low + 11


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def points(only: str, label: str, **more: Any) -> Points:
    return Points(Rows("rows", (("path", only),)), "x", "y", label, shown=TELLS, **more)


def test_what_pointing_tells_is_in_lines_that_a_window_holds() -> None:
    source = "https://pumps.example/a-book/of-hoses.html (from the maker's paper); " * 6 + "p. <7> & 8"
    rows = [{"x": 10.0, "y": 10.0, "name": source, "n": 3.0}]
    roof = Roof("slope", "flat", "roof", shown=(("hose", source),))
    data = made((roof, Points(Rows("rows"), "x", "y", source, shown=(Shown("cause", "name"),))),
                {"rows": rows, "slope": 1.0, "flat": 100.0})["data"]  # fmt: skip
    panel = Panel(Axis("n"), Axis("", "category", kind="text"), (Bars(Rows("rows"), "name", "n", label="bar"),))
    bars = plotly_figure(Chart("t", "", (panel,)), {"rows": rows}).to_plotly_json()["data"]
    for trace in (*data, *bars):
        for text in trace["hovertext"]:
            lines = [unescape(re.sub("</?b>", "", line)) for line in text.split("<br>")]
            assert max(map(len, lines)) <= 64
            assert " ".join(source.split()) in " ".join(lines)
            assert "https://pumps.example/a-book/of-hoses.html" in re.split(r"[\s]", " ".join(lines))
            assert text.count("<b>") == text.count("</b>")


def test_points_that_lie_on_one_another_are_all_told_by_each() -> None:
    rows = [
        {"x": 10.0, "y": 10.0, "lift": "low", "path": "near", "name": "fold"},
        {"x": 10.0, "y": 10.0, "lift": "low", "path": "near", "name": "up"},
        {"x": 10.03, "y": 10.03, "lift": "high", "path": "far", "name": "main"},  # half a pixel away
        {"x": 12.0, "y": 12.0, "lift": "apart", "path": "far", "name": "alone"},  # 19 pixels away
    ]
    near, far = made((points("near", "near", text="name"), points("far", "far", text="name")), {"rows": rows})["data"]
    for text in (*near["hovertext"], far["hovertext"][0]):
        lines = text.split("<br>")
        assert set(lines[:3]) == {"<b>fold  ·  near</b>", "<b>up  ·  near</b>", "<b>main  ·  far</b>"}
        assert "apart" not in text
    # values in the order of the heads, and once what is alike
    assert far["hovertext"][0].split("<br>")[0] == "<b>main  ·  far</b>"
    assert "lift: high  |  low  |  low" in far["hovertext"][0].split("<br>")
    assert "path: near  |  near  |  far" in near["hovertext"][0].split("<br>")
    assert far["hovertext"][1] == "<b>alone  ·  far</b><br>lift: apart<br>path: far<br>x: 12<br>y: 12"


def test_more_points_than_stand_side_by_side_are_counted() -> None:
    rows = [{"x": 10.0, "y": 10.0, "lift": f"lift {at}", "path": "near"} for at in range(7)]
    (near,) = made((points("near", "near"),), {"rows": rows})["data"]
    for at, text in enumerate(near["hovertext"]):
        assert f"lift: lift {at}  |  " in text  # its own is the first
        assert text.endswith("and 3 more at this place")


def test_a_place_of_a_line_on_a_kernel_tells_the_kernel_first() -> None:
    rows = [{"x": 10.0, "y": 10.0, "lift": "low", "path": "near", "share": 0.5}]
    course = [{"x": 10.2, "y": 10.2, "at": "Q 256"}, {"x": 100.0, "y": 100.0, "at": "Q 512"}]
    line = Line(Rows("course"), "x", "y", "over queries", text="at", shown=(Shown("at", "at"),))
    data = made((line, points("near", "near", area="share")), {"rows": rows, "course": course})["data"]
    first, second = data[0]["hovertext"]
    assert first.split("<br>")[0] == "<b>near</b>"
    assert "lift: low" in first
    assert "at: Q 256" in first
    assert second.startswith("<b>Q 512  ·  over queries</b>")
    assert "low" not in second


def test_a_roof_is_not_pointed_at_in_the_place_of_what_lies_on_it() -> None:
    rows = [{"x": at, "y": at, "lift": "low", "path": "near", "share": 1.0} for at in (3.0, 10.0, 30.0)]
    course = [{"x": 100.0, "y": 100.0, "at": "Q 1.3"}]
    marks = (
        Roof("slope", "flat", "roof"),
        Line(Rows("course"), "x", "y", "over queries", text="at", shown=(Shown("at", "at"),)),
        points("near", "near", area="share"),
    )
    roof = made(marks, {"rows": rows, "course": course, "slope": 1.0, "flat": 100.0})["data"][0]
    for x, y in zip(roof["x"], roof["y"], strict=True):
        if 1 <= x <= 1e4:
            across, up = pixel(x, y)
            away = [((across - pixel(at, at)[0]) ** 2 + (up - pixel(at, at)[1]) ** 2) ** 0.5 for at in (3, 10, 30)]
            assert min(away) > 22  # the radius of each
    corner = roof["hovertext"][list(roof["x"]).index(100.0)]
    assert corner.startswith("<b>Q 1.3  ·  over queries</b>")
    assert "<b>roof</b>" in corner


def test_a_roof_has_its_names_beside_its_parts() -> None:
    colours: tuple[Colour, Colour] = ("blue", "green")
    marks = tuple(
        Roof(f"slope{at}", f"flat{at}", f"roof {at}", Look(colour), on_flat=f"flat name {at}", on_slope=f"way {at}")
        for at, colour in enumerate(colours)
    )
    results = {"slope0": 1.0, "flat0": 100.0, "slope1": 0.02, "flat1": 30.0}
    notes = {note["text"]: note for note in made(marks, results)["layout"]["annotations"]}
    assert set(notes) == {"flat name 0", "flat name 1", "way 0", "way 1"}
    for at, colour in enumerate(colours):
        for text in (f"flat name {at}", f"way {at}"):
            note = notes[text]
            assert not note["showarrow"]
            assert note["font"]["color"] == TEXT_COLOURS[colour]
            across, up = note["x"] / 4 * WIDE, note["y"] / 4 * HIGH
            lower = min(results[f"slope{at}"] * 10 ** note["x"], results[f"flat{at}"])
            assert 5 < abs(up - pixel(1, lower)[1]) < 40
            if text.startswith("flat"):
                assert across + len(text) * 3 > 0.9 * WIDE


@pytest.mark.parametrize("axis", ["x", "y"])
def test_no_text_lies_on_a_rule_where_there_is_room(axis: Any) -> None:
    # the sides that are tried first, at the lower right, have a rule
    rows = [{"x": 100.0, "y": 100.0, "name": "a name of it"}]
    at = 110.0 if axis == "x" else 85.0
    rule = Rule("at", axis)
    mark = Points(Rows("rows"), "x", "y", "kernel", text="name")
    trace = made((rule, mark), {"rows": rows, "at": at})["data"][0]
    assert trace["text"][0] == "a name of it"
    own = box(100, 100, "a name of it", trace["textposition"][0], 9)
    across, up = pixel(at, at)
    assert not overlap(own, (across, 0, across, HIGH) if axis == "x" else (0, up, WIDE, up))
    free = made((mark,), {"rows": rows})["data"][0]
    assert free["textposition"][0] != trace["textposition"][0]


def test_a_text_that_must_be_there_leaves_a_rule_to_a_line() -> None:
    rows = [{"x": 100.0, "y": 100.0, "name": "solved 1.317", "solved": True}]
    line = Line(Rows("rows"), "x", "y", "over", text="name", must="solved")
    walls = tuple(Rule(f"at{at}", "x") for at in range(2)) + tuple(Rule(f"at{at}", "y") for at in range(2))
    results = {"rows": rows, "at0": 90.0, "at1": 110.0}
    figure = made((*walls, line), results)
    assert list(figure["data"][0]["text"]) == [""]
    (note,) = figure["layout"]["annotations"]
    across, up = pixel(100, 100)
    across, up = across + note["ax"], up - note["ay"]
    own = (across - 33, up - 5.5, across + 33, up + 5.5)
    for at in (90.0, 110.0):
        right, above = pixel(at, at)
        assert not overlap(own, (right, 0, right, HIGH))
        assert not overlap(own, (0, above, WIDE, above))


def test_no_text_lies_under_a_marker() -> None:
    # its edge, 17 px from its middle, reaches over the side that is tried first: 45 px to the right and 21 px below
    rows = [
        {"x": 100.0, "y": 100.0, "name": "up_proj", "path": "near", "lift": "", "share": 0.6},
        {"x": 155.4, "y": 156.8, "name": "", "path": "far", "lift": "", "share": 0.6},
    ]
    near, far = made((points("near", "near", text="name", area="share"), points("far", "far", area="share")),
                     {"rows": rows})["data"]  # fmt: skip
    assert near["text"][0] == "up_proj"
    for trace in (near, far):
        across, up = pixel(trace["x"][0], trace["y"][0])
        half = trace["marker"]["size"][0] / 2
        own = box(100, 100, "up_proj", near["textposition"][0], near["marker"]["size"][0])
        assert not overlap(own, (across - half, up - half, across + half, up + half))


needs_browser = pytest.mark.skipif(not IS_THERE, reason=MISSING)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("roofline") / "r.html"
    assert run(["roofline", "--model", "dsv3", "--gpu", "h100", "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), 1280, 800) as driver:
        yield driver


HOVERED = """
const plot = document.querySelector('.js-plotly-plot'), layout = plot._fullLayout;
const trace = plot._fullData.findIndex((each) => each.name === arguments[0] && each.visible === true);
const at = plot._fullData[trace].hovertext.findIndex((text) => text.includes(arguments[1]));
const area = plot.querySelector('.nsewdrag').getBoundingClientRect();
const x = layout.xaxis.d2p(plot._fullData[trace].x[at]), y = layout.yaxis.d2p(plot._fullData[trace].y[at]);
return [area.left + x, area.top + y];
"""


def told_at(browser: Any, place: list[float]) -> tuple[str, dict[str, float]]:
    """What a browser shows where the pointer is, and where it shows it."""
    from selenium.webdriver import ActionChains

    chain = ActionChains(browser)
    pointer: Any = chain.w3c_actions.pointer_action
    pointer.move_to_location(5, 5)
    pointer.pause(0.3)
    pointer.move_to_location(*map(round, place))
    chain.perform()
    script = (
        "const it = document.querySelector('.hoverlayer .hovertext'); if (!it) return null;"
        "const own = it.getBoundingClientRect();"
        "return [it.textContent, {left: own.left, right: own.right, top: own.top, width: window.innerWidth}]"
    )
    for _ in range(200):
        if found := browser.execute_script(script):
            return found[0], found[1]
        time.sleep(0.05)
    raise AssertionError("nothing is told")


@needs_browser
@pytest.mark.parametrize("size", [(1280, 800), (800, 600)])
def test_a_browser_tells_the_ridge_and_the_kernels_within_its_window(
    browser: Any, page: Path, size: tuple[int, int]
) -> None:
    browser.set_window_size(*size)
    browser.get(page.as_uri())
    for _ in range(200):
        if browser.execute_script("return document.querySelector('.main-svg .legend')"):
            break
        time.sleep(0.05)
    absorbed, roof = "absorbed kernels, at the bound", "bf16, datasheet: 989.4 TFLOP/s, 3.35 TB/s"
    for name, part, wanted in (
        (absorbed, "kernel: q_fold", ("q_fold", "v_up", "naive kernels")),
        (absorbed, "kernel: attention", ("attention  ·  absorbed kernels", "1.141 GFLOP")),
        (roof, "Q 1.317", ("Q 1.317", roof, "memory: 3.35 TB/s")),
    ):
        text, place = told_at(browser, browser.execute_script(HOVERED, name, part))
        for each in wanted:
            assert each in text
        assert place["left"] >= 0
        assert place["top"] >= 0
        assert place["right"] <= place["width"]
    # the kernel comes before the place of a trajectory that is on it
    text, _ = told_at(browser, browser.execute_script(HOVERED, absorbed, "kernel: attention"))
    assert text.startswith("attention  ·  absorbed kernels")
