"""Charts as HTML: numbers of the results, nothing from elsewhere, and a browser that shows it offline."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from math import log10, pi
from pathlib import Path
from typing import Any

import pytest

from mla_calc import __version__
from mla_calc.errors import InputError
from mla_calc.report.chart import Axis, Bars, Chart, Panel, Points, Rows, Rule, Shown
from mla_calc.report.drawing.page import figure_fragment, html_document, html_page, plotly_figure, report_fragment
from mla_calc.report.drawing.style import COLOURS
from mla_calc.report.record import Cell, Explanation, Report, Table
from tests.browser import IS_THERE, MISSING, chromium
from tests.report import sample_charts as sample

pytest.importorskip("plotly", reason="plotly is an extra")

BAD = '<script>window.bad=1</script><img src=x onerror="window.bad=1">'


def figure(name: str, narrow: bool = False) -> dict[str, Any]:
    """A sample chart as plain data, as the page holds it."""
    found: dict[str, Any] = json.loads(
        plotly_figure(sample.CHARTS[name], sample.RESULTS, narrow).to_json(engine="json")
    )
    return found


def traces(name: str, label: str, **wanted: Any) -> list[dict[str, Any]]:
    data = figure(name)["data"]
    return [each for each in data if each.get("name") == label and all(each.get(k) == v for k, v in wanted.items())]


class Elements(HTMLParser):
    """Every element with its attributes, and the text in each kind of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag in set(self.inside):
            self.texts[tag] = self.texts.get(tag, "") + data


def test_points_are_the_results_in_the_axes_units() -> None:
    (near,) = traces("roofline", "near pumps, area: share of time")
    expected = {(62.0, 190.0): 0.61, (118.0, 310.0): 0.27, (2.1, 6.8): 0.1, (1.6, 5.4): 0.02}
    assert set(zip(near["x"], near["y"], strict=True)) == set(expected)
    areas = {(x, y): pi / 4 * size**2 for x, y, size in zip(near["x"], near["y"], near["marker"]["size"], strict=True)}
    for place, share in expected.items():
        assert areas[place] / areas[62.0, 190.0] == pytest.approx(share / 0.61)


def test_a_line_keeps_its_order_and_has_a_head_at_every_step() -> None:
    line, heads = traces("roofline", "over stages")
    assert line["x"] == heads["x"] == [1.9, 3.7, 7.4, 14.6, 28.4, 54.0, 97.9, 165.0, 250.0, 337.0, 408.0]
    assert line["y"][:3] == [6.3, 12.4, 24.8]
    assert heads["marker"]["angleref"] == "previous"
    assert heads["marker"]["size"][0] == 0
    assert min(heads["marker"]["size"][1:]) > 0
    assert not heads["showlegend"]
    assert heads["legendgroup"] == line["legendgroup"]
    assert {"1", "4", "1,024"} <= set(line["text"])


def test_a_roof_is_the_lesser_of_both_ceilings() -> None:
    (roof,) = traces("roofline", "datasheet, slow: 3.35 Tm/s, 989.4 Tl/s")
    assert any(
        x == pytest.approx(295.3432835820896) and y == pytest.approx(989.4)
        for x, y in zip(roof["x"], roof["y"], strict=True)
    )
    for x, y in zip(roof["x"], roof["y"], strict=True):
        assert y == pytest.approx(min(3.35 * x, 989.4))
    assert "hose: Pump book, p. 7" in roof["hovertext"][0]
    assert not traces("roofline", "of a hose that is not known")


def test_rules_and_zones_stand_at_their_values() -> None:
    layout = figure("roofline")["layout"]
    upright = {shape["x0"] for shape in layout["shapes"] if shape["type"] == "line"}
    assert upright == {295.3432835820896, 590.7164179104478, 265.1006711409396}
    texts = {shape["label"]["text"] for shape in layout["shapes"] if shape.get("label", {}).get("text")}
    assert texts == {"ridge 295.3 m/l", "ridge 590.7 m/l", "measured ridge 265.1 m/l"}
    below, above = (shape for shape in layout["shapes"] if shape["type"] == "rect")
    assert below["x1"] == above["x0"] == 295.3432835820896
    names = [note["text"] for note in layout["annotations"]]
    assert names == ["← hose binds", "motor binds →"]
    assert layout["annotations"][0]["x"] == pytest.approx(log10(295.3432835820896))


def test_level_rules_are_in_the_axis_unit() -> None:
    shapes = figure("curves")["layout"]["shapes"]
    assert {shape["y0"] for shape in shapes if shape["y0"] == shape["y1"]} == {24.0}
    assert any(shape.get("label", {}).get("text") == "limit 24.0 GiB" for shape in shapes)


def test_cells_hold_the_ratios_and_their_logarithms() -> None:
    for name in ("map", "category-map"):
        grid = next(each for each in figure(name)["data"] if each["type"] == "heatmap")
        rows = {flow: [row["ratio"] for row in sample.GRID if row["flow"] == flow] for flow in (1, 32, 128, 512)}
        assert grid["customdata"] == list(rows.values())
        assert grid["z"][0] == pytest.approx([log10(ratio) for ratio in rows[1]])
        assert grid["z"][3][3] is None
        assert grid["zmin"] == -grid["zmax"] == pytest.approx(-log10(max(row["ratio"] or 0 for row in sample.GRID)))
        assert grid["text"][0][0] == "12.56x"
        ticks = dict(zip(grid["colorbar"]["ticktext"], grid["colorbar"]["tickvals"], strict=True))
        assert ticks["4x"] == pytest.approx(log10(4))
    assert "screw pump faster" in grid["colorbar"]["title"]["text"]
    assert figure("category-map")["layout"]["xaxis"]["ticktext"] == ["1,024", "4,096", "16,384", "65,536"]


def test_a_rule_on_categories_stands_between_them() -> None:
    panel = sample.CATEGORY_MAP.panels[0]
    marks = (*panel.marks, Rule("at", "x", "from {}", "integer"))
    chart = replace(sample.CATEGORY_MAP, panels=(replace(panel, marks=marks),))
    made = plotly_figure(chart, sample.RESULTS | {"at": 8192}).to_plotly_json()
    assert made["layout"]["shapes"][0]["x0"] == pytest.approx(1.5)  # between 4,096 and 16,384


def test_bars_stand_in_the_order_of_the_records_the_first_at_the_top() -> None:
    for name, mode in (("stacked", "stack"), ("grouped", "group")):
        made = figure(name)
        pipe, joint, valve = made["data"]
        assert pipe["x"] == [92_400, 70_272, 18_432, 1_280]
        assert joint["x"] == [3_100, 9_100, 2_048, 96]
        assert (valve["x"], valve["y"]) == ([12_000, 1_024, 640], [0, 1, 3])  # one is not known
        assert pipe["text"][0] == "92,400 B"
        axis = made["layout"]["yaxis"]
        assert axis["ticktext"] == ["Cathedral spring", "Mill race, upper and lower<br>weir together", "Harbour", "Fen"]
        assert axis["range"] == [3.5, -0.5]
        assert made["layout"]["barmode"] == mode
    assert len({each["offsetgroup"] for each in figure("grouped")["data"]}) == 3
    assert figure("stacked")["layout"]["xaxis"]["range"][1] >= 107_500


def test_pointing_tells_every_line_that_a_mark_shows() -> None:
    (near,) = traces("roofline", "near pumps, area: share of time")
    at = near["x"].index(62.0)
    assert near["hovertext"][at].split("<br>") == [
        "<b>main stage  ·  near pumps, area: share of time</b>",
        "share of time: 61 %",
        "time: 12.5 us",
        "head: 62 m/litre",
        "lift: 190 Tl/s",
    ]
    pipe = figure("stacked")["data"][0]
    assert pipe["hovertext"][0] == "<b>Cathedral spring  ·  pipe</b><br>joint: 3,100 B<br>grams: 92,400 B"
    (boundary,) = traces("map", "measured boundary")
    assert "spread: 61 to 74" in boundary["hovertext"][0]
    assert "ratio: 12.56x" in figure("map")["data"][0]["hovertext"][0][0]
    for name in sample.CHARTS:
        for trace in figure(name)["data"]:
            assert trace["hoverinfo"] == ("skip" if trace.get("marker", {}).get("angleref") else "text")


def test_shared_panels_have_one_scale_and_one_legend_entry_for_what_is_alike() -> None:
    made = figure("side-by-side")
    layout, data = made["layout"], made["data"]
    assert layout["xaxis"]["range"] == layout["xaxis2"]["range"]
    assert (layout["xaxis2"]["matches"], layout["yaxis2"]["matches"]) == ("x", "y")
    roofs = [each for each in data if each["name"].startswith("datasheet, slow")]
    assert [each["showlegend"] for each in roofs] == [True, False]
    assert {each["xaxis"] for each in data} == {"x", "x2"}
    assert layout["xaxis"]["domain"][1] < layout["xaxis2"]["domain"][0]


def test_a_narrow_page_has_its_panels_one_below_the_other() -> None:
    layout = figure("curves", narrow=True)["layout"]
    assert layout["xaxis"]["domain"] == layout["xaxis2"]["domain"] == [0, 1]
    assert layout["yaxis"]["domain"][0] > layout["yaxis2"]["domain"][1]


def test_series_are_told_apart_by_colour_marker_and_dash() -> None:
    lines = figure("curves")["data"][:2]
    assert [line["line"]["color"] for line in lines] == [COLOURS["blue"], COLOURS["orange"]]
    assert len({line["line"]["dash"] for line in lines}) == len({line["marker"]["symbol"] for line in lines}) == 2
    assert next(each for each in figure("side-by-side")["data"] if each["name"] == "hollow")["marker"][
        "symbol"
    ].endswith("-open")


def test_the_same_input_gives_the_same_bytes() -> None:
    for name in ("roofline", "map", "stacked"):
        assert html_page(sample.CHARTS[name], sample.REPORT) == html_page(sample.CHARTS[name], sample.REPORT)


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = html_page(sample.ROOFLINE, sample.REPORT)
    elements = Elements(page)
    loading = {"src", "href", "srcset", "data", "action", "poster", "background"}
    assert not [each for each in elements.found if loading & set(each[1])]
    assert "url(" not in elements.texts["style"]
    assert "@import" not in elements.texts["style"]
    (policy,) = (each["content"] for tag, each in elements.found if tag == "meta" and "http-equiv" in each)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"https?:|script-src[^;]*unsafe|\*", policy)
    assert ("html", {"lang": "en"}) in elements.found
    assert ("meta", {"charset": "utf-8"}) in elements.found
    assert elements.texts["title"] == "Pumps under the roof"


def test_the_share_button_of_plotly_is_off() -> None:
    made = re.search(
        r'<script type="application/json">(.*)</script>', figure_fragment(sample.MAP, sample.RESULTS, False)
    )
    assert made
    config = json.loads(made[1])["config"]
    assert (config["showSendToCloud"], config["plotlyServerURL"]) == (False, "")


def full_report(text: str) -> Report:
    return replace(
        sample.REPORT,
        title=text,
        subtitle=text,
        sentence=text,
        notes=(text,),
        sources=(text,),
        tables=(Table((text, "head"), ((text, Cell("steps[3].head", "number")),), text),),
        explanations=(Explanation("steps[3].stages", "a * b", {"a": 2, "b": 4}, text),),
        input_sources={text: (text,)},
    )


def bad_chart(text: str) -> tuple[Chart, dict[str, Any]]:
    panel = Panel(
        Axis(text),
        Axis(text, "category", kind="text"),
        (Bars(Rows("rows"), "name", "n", label=text, shown=(Shown(text, "name"),)),),
        text,
    )
    points = Panel(Axis(text), Axis(text), (Points(Rows("rows"), "n", "n", text, text="name"), Rule("at", "x", text)))
    return Chart(text, text, (panel, points)), {"rows": [{"name": text, "n": 3}], "at": 2}


def test_whatever_a_name_holds_is_text() -> None:
    chart, results = bad_chart(BAD)
    page = html_page(chart, replace(full_report(BAD), results=results | sample.RESULTS))
    found = Elements(page).found
    assert [tag for tag, _ in found].count("script") == 3  # plotly's, ours, and the figure's numbers
    assert "img" not in [tag for tag, _ in found]
    assert page.count(BAD) == 0


def test_the_page_says_what_the_report_says() -> None:
    report = replace(full_report("a & b"), sentence="It lifts.", notes=("made up", "dry"), sources=("book, p. 7",))
    text = report_fragment(report)
    assert "<h1>a &amp; b</h1>" in text
    assert '<p class="sentence">It lifts.</p>' in text
    assert "<li>made up</li>\n<li>dry</li>" in text
    assert "Sources: book, p. 7" in text
    assert '<th>a &amp; b</th><th class="n">head</th>' in text
    assert '<td>a &amp; b</td><td class="n">14.6</td>' in text
    assert "steps[3].stages = 8 = a * b = 2 * 4" in text
    assert f"<footer>mla-calc {__version__}</footer>" in html_document("t", text)


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    for draw in (lambda: html_page(sample.ROOFLINE, sample.REPORT), lambda: html_document("t", "")):
        with pytest.raises(InputError, match="needs plotly") as caught:
            draw()
        assert caught.value.hint == "pip install 'mla-calc[html]'"


needs_browser = pytest.mark.skipif(not IS_THERE, reason=MISSING)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), 1280, 800) as driver:
        yield driver


def until(told: Callable[[], Any]) -> Any:
    """What ``told`` returns once that is true; a browser draws when it likes."""
    for _ in range(200):
        found = told()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it never came to be")


def opened(browser: Any, page: str, folder: Path) -> list[str]:
    """Open a page, wait for its figure, and return the addresses that were asked for."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(path.as_uri())
    until(
        lambda: browser.execute_script(
            "return document.querySelector('.main-svg .legend, .main-svg .cbcoloraxis, .hm')"
        )
    )
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [
        url for url in asked if url != path.as_uri() and not url.startswith("data:")
    ]  # a map is an image in the page


def severe(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@needs_browser
@pytest.mark.parametrize("name", sample.CHARTS)
def test_a_browser_shows_it_without_a_request_or_an_error(browser: Any, tmp_path: Path, name: str) -> None:
    assert opened(browser, html_page(sample.CHARTS[name], sample.REPORT), tmp_path) == []
    assert severe(browser) == []
    drawn = {
        kind: browser.execute_script(f"return document.querySelectorAll('{query}').length")
        for kind, query in (
            ("points", ".scatterlayer path.point"),
            ("bars", ".barlayer g.point"),
            ("cells", ".hm image"),
        )
    }
    data = figure(name)["data"]
    points = sum(len(each["x"]) for each in data if "markers" in each.get("mode", ""))
    bars = sum(len(each["x"]) for each in data if each["type"] == "bar")
    assert drawn == {"points": points, "bars": bars, "cells": sum(each["type"] == "heatmap" for each in data)}


@needs_browser
def test_pointing_at_a_point_shows_its_label(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    opened(browser, html_page(sample.ROOFLINE, sample.REPORT), tmp_path)
    points = browser.find_elements(By.CSS_SELECTOR, ".scatterlayer path.point")
    largest = max(points, key=lambda point: point.size["width"])
    ActionChains(browser).move_to_element(largest).perform()
    text = until(lambda: browser.execute_script("return document.querySelector('.hoverlayer .hovertext')?.textContent"))
    assert text.startswith("main stage  ·  far pumps, area: share of time")
    assert "share of time: 75 %" in text
    assert "head: 240 m/litre" in text


@needs_browser
def test_the_legend_switches_a_series(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    opened(browser, html_page(sample.CURVES, sample.REPORT), tmp_path)
    count = "return document.querySelectorAll('.scatterlayer path.point').length"
    assert browser.execute_script(count) == 24  # 6 tanks, 2 kinds, 2 panels
    ActionChains(browser).move_to_element(browser.find_elements(By.CSS_SELECTOR, ".legendtoggle")[0]).click().perform()
    until(lambda: browser.execute_script(count) == 12)
    assert severe(browser) == []


@needs_browser
def test_a_narrow_window_has_its_panels_below_one_another(browser: Any, tmp_path: Path) -> None:
    opened(browser, html_page(sample.CURVES, sample.REPORT), tmp_path)
    tops = "return [...document.querySelectorAll('.xtitle, .x2title')].map(title => title.getBoundingClientRect().top)"
    size = browser.get_window_size()
    try:
        assert len(set(until(lambda: browser.execute_script(tops)))) == 1
        browser.set_window_size(600, 800)
        until(lambda: len(set(browser.execute_script(tops))) == 2)
        until(lambda: browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"))
    finally:
        browser.set_window_size(size["width"], size["height"])


@needs_browser
def test_a_browser_runs_nothing_that_a_name_holds(browser: Any, tmp_path: Path) -> None:
    chart, results = bad_chart(BAD)
    page = html_page(chart, replace(full_report(BAD), results=results | sample.RESULTS))
    assert opened(browser, page, tmp_path) == []
    assert severe(browser) == []
    assert browser.execute_script("return window.bad") is None
    assert browser.execute_script("return document.querySelector('h1').textContent") == BAD
    assert "<script>" in browser.execute_script("return document.querySelector('.legendtext').textContent")


@needs_browser
def test_no_other_script_may_run(browser: Any, tmp_path: Path) -> None:
    body = figure_fragment(sample.MAP, sample.RESULTS, include_js=True) + "<script>window.bad = 1</script>"
    opened(browser, html_document("t", body), tmp_path)
    assert browser.execute_script("return window.bad") is None
    assert any("Content Security Policy" in message for message in severe(browser))
