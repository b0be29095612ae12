"""Charts as HTML: numbers of the results, nothing from elsewhere, and a browser that shows it offline."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import pairwise
from math import log10, pi
from pathlib import Path
from typing import Any

import pytest

from mla_calc import __version__
from mla_calc.cli.main import run
from mla_calc.errors import InputError
from mla_calc.report.chart import Axis, Bars, Cells, Chart, Line, Look, Panel, Points, Roof, Rows, Rule, Shown
from mla_calc.report.drawing.page import figure_fragment, html_document, html_page, report_fragment
from mla_calc.report.drawing.plotly_figure import page_figure, plotly_figure
from mla_calc.report.drawing.style import COLOURS, TEXT_COLOURS
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
    assert {text.replace("<br>", " ") for text in texts} == {
        "ridge 295.3 m/l",
        "ridge 590.7 m/l",
        "measured ridge 265.1 m/l",
    }
    below, above = (shape for shape in layout["shapes"] if shape["type"] == "rect")
    assert below["x1"] == above["x0"] == 295.3432835820896
    names = [note["text"] for note in layout["annotations"]]
    assert names[:2] == ["← hose binds", "motor binds →"]
    assert layout["annotations"][0]["x"] == pytest.approx(log10(295.3432835820896))


def test_level_rules_are_in_the_axis_unit() -> None:
    shapes = figure("curves")["layout"]["shapes"]
    assert {shape["y0"] for shape in shapes if shape["y0"] == shape["y1"]} == {24.0}
    assert any(shape.get("label", {}).get("text") == "limit 24.0 GiB" for shape in shapes)


def test_cells_hold_the_ratios_and_their_logarithms() -> None:
    for name in ("map", "category-map"):
        made = figure(name)
        grid = next(each for each in made["data"] if each["type"] == "heatmap")
        rows = {flow: [row["ratio"] for row in sample.GRID if row["flow"] == flow] for flow in (1, 32, 128, 512)}
        assert grid["customdata"] == list(rows.values())
        assert grid["z"][0] == pytest.approx([log10(ratio) for ratio in rows[1]])
        assert grid["z"][3][3] is None
        (texts,) = (each for each in made["data"] if each.get("mode") == "text")
        assert "12.56x" in texts["text"]
        assert len(texts["text"]) == sum(row["ratio"] is not None for row in sample.GRID)
    assert [each["name"] for each in made["data"] if each.get("legend") == "legend2"] == [
        "← screw pump faster",
        "piston pump faster →",
    ]
    assert figure("category-map")["layout"]["xaxis"]["ticktext"] == ["1,024", "4,096", "16,384", "65,536"]


DOUBLED = Axis("context S, tokens", "log", kind="integer", ticks=tuple(2.0**power for power in range(10, 18)))
UPWARD = Axis("queries", "log", kind="integer", ticks=(1, 2, 4))


def ratio_map(*panels: dict[tuple[float, float], float], rules: int = 0) -> tuple[Chart, dict[str, Any]]:
    """A map for each of ``panels``, which have ratios by place; ``rules`` at 2 in each, the first with a label."""
    rows = [
        {"map": at, "x": x, "y": y, "ratio": ratio}
        for at, cells in enumerate(panels)
        for (x, y), ratio in cells.items()
    ]
    names = ("absorbs up to", "")
    levels = tuple(Rule("two", "y", f"{{}}: A_LONG_BACKEND_{at}", "integer", names[at]) for at in range(rules))
    made = tuple(
        Panel(DOUBLED, UPWARD, (Cells(Rows("rows", (("map", at),)), "x", "y", "ratio", "naive less", "absorbed less",
                                      "ratio", "short_factor"), *levels), f"map {at}" if len(panels) > 1 else "")
        for at in range(len(panels))
    )  # fmt: skip
    return Chart("Which", "made up", made, shared=len(panels) > 1), {"rows": rows, "two": 2}


def wide_map(factor: float = 1.0) -> dict[tuple[float, float], float]:
    """Eight contexts and three counts of queries: from 1/3 to 3, times ``factor``."""
    return {(x, y): factor * 3 ** (1 - place) for x in DOUBLED.ticks for place, y in enumerate((1.0, 2.0, 4.0))}


def heatmaps(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in made["data"] if each["type"] == "heatmap"]


def test_the_only_cell_of_an_axis_has_a_width() -> None:
    made = plotly_figure(*ratio_map({(4096.0, 1.0): 4.0, (4096.0, 2.0): 0.5})).to_plotly_json()
    (grid,) = heatmaps(made)
    left, right = grid["x"]
    assert left < 0.75 * 4096 < 1.5 * 4096 < right
    assert made["layout"]["xaxis"]["range"] == pytest.approx([log10(left), log10(right)])
    assert grid["y"] == pytest.approx([2**-0.5, 2**0.5, 2**1.5])


def test_maps_beside_each_other_share_a_scale_a_key_and_the_legend() -> None:
    made = plotly_figure(*ratio_map(wide_map(), wide_map(0.5), wide_map(2.0), rules=1)).to_plotly_json()
    assert [grid["coloraxis"] for grid in heatmaps(made)] == ["coloraxis"] * 3
    assert not [trace for trace in made["data"] if "colorbar" in trace or "zmax" in trace]
    assert made["layout"]["coloraxis"]["cmax"] == pytest.approx(log10(8))  # 6, of the last and the middle one
    every = [*made["data"], *made["layout"]["shapes"]]
    named = [each["name"] for each in every if each.get("showlegend")]
    assert sorted(named) == ["absorbed less →", "absorbs up to", "← naive less"]
    for axis, (low, high) in (("xaxis2", (1024, 131072)), ("yaxis2", (1, 4))):  # cells leave no margin
        around = [log10(low / 2**0.5), log10(high * 2**0.5)]
        assert made["layout"][axis]["range"] == pytest.approx(around)


@pytest.mark.parametrize(
    ("ratio", "ends"), [(0.99, ("2x", "2x")), (3.0, ("4x", "4x")), (152.0, ("16x", "≥16x")), (1 / 152, ("≥16x", "16x"))]
)
def test_colours_span_what_those_of_a_picture_do(ratio: float, ends: tuple[str, str]) -> None:
    made = plotly_figure(*ratio_map({(1024.0, 1.0): ratio, (2048.0, 1.0): 1.0})).to_plotly_json()
    axis = made["layout"]["coloraxis"]
    texts = axis["colorbar"]["ticktext"]
    assert (texts[0], texts[len(texts) // 2], texts[-1]) == (ends[0], "1", ends[1])
    assert axis["cmax"] == -axis["cmin"] == pytest.approx(log10(float(ends[1].strip("≥x"))))


def test_what_is_below_1_is_hatched() -> None:
    made = plotly_figure(*ratio_map({(1024.0, 1.0): 3.0, (2048.0, 1.0): 0.5, (1024.0, 2.0): 0.9})).to_plotly_json()
    hatched = [each for each in made["data"] if each.get("fillpattern")]
    cells, side = hatched
    middles = set()
    for at in range(0, len(cells["x"]), 6):
        (left, right), (low, high) = ({*cells[axis][at : at + 5]} for axis in ("x", "y"))
        middles.add((round((left * right) ** 0.5), round((low * high) ** 0.5)))
    assert middles == {(2048, 1), (1024, 2)}
    assert (side["name"], side["legend"]) == ("← naive less", "legend2")
    assert side["fillpattern"]["shape"] == cells["fillpattern"]["shape"] != ""
    assert made["layout"]["legend2"]["itemclick"] is False


def rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """By the W3C's rules."""
    shades = []
    for colour in (one, other):
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
        shades.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(shades) / min(shades)


def test_numbers_in_cells_can_be_read() -> None:
    cells = {(float(2**x), float(2**y)): 2 ** ((x - 8 * y) / 4) for x in range(10, 18) for y in range(6)}
    made = plotly_figure(*ratio_map(cells)).to_plotly_json()
    axis = made["layout"]["coloraxis"]
    (texts,) = (each for each in made["data"] if each.get("mode") == "text")
    assert made["data"][-1] is texts  # or a line would go through them
    ratios = list(cells.values())
    assert len(texts["text"]) == len(ratios)
    assert min(ratios) < 1 / 16 < 16 < max(ratios)
    for ratio, colour in zip(ratios, texts["textfont"]["color"], strict=True):
        place = min(max((log10(ratio) - axis["cmin"]) / (axis["cmax"] - axis["cmin"]), 0.0), 1.0)
        stops = axis["colorscale"][:2] if place < 0.5 else axis["colorscale"][2:]
        (start, low), (end, high) = stops
        part = (place - start) / (end - start)
        ground = [one + part * (other - one) for one, other in zip(rgb(low), rgb(high), strict=True)]
        assert contrast(rgb(colour), ground) >= 4.5


@pytest.mark.parametrize("narrow", [False, True])
def test_numbers_in_cells_and_names_of_rules_keep_off_one_another(narrow: bool) -> None:
    made = plotly_figure(*ratio_map(wide_map(), wide_map(), rules=2), narrow=narrow).to_plotly_json()
    layout = made["layout"]
    texts = next(each for each in made["data"] if each.get("mode") == "text")
    beside = [y for y in texts["y"] if 1.45 < y < 2.8]
    assert len(beside) == 8
    assert all(abs(log10(y / 2)) > 0.02 for y in beside)  # the rules are at 2
    assert {round(y, 6) for y in texts["y"] if not 1.45 < y < 2.8} == {1, 4}
    assert not [shape for shape in layout["shapes"] if "label" in shape]
    for axis in ("x domain", "x2 domain"):
        lower, upper = (note for note in layout["annotations"] if note["xref"] == axis and note["x"] == 1)
        assert (lower["xanchor"], lower["text"], upper["text"]) == (
            "left", "2:<br>A_LONG_BACKEND_0", "2:<br>A_LONG_BACKEND_1",
        )  # fmt: skip
        assert upper["yshift"] - lower["yshift"] >= 2 * 11
    room = 16 * 6  # of the longest line
    assert layout["margin"]["r"] >= room
    if not narrow:
        assert (layout["xaxis2"]["domain"][0] - layout["xaxis"]["domain"][1]) * 940 >= room


def test_labels_along_a_map_do_not_touch() -> None:
    for count in (1, 3):
        made = plotly_figure(*ratio_map(*[wide_map()] * count)).to_plotly_json()
        axis = made["layout"]["xaxis"]
        left, right = axis["domain"]
        step = (right - left) * 940 / 8
        shown = [(at, text) for at, text in enumerate(axis["ticktext"]) if text]
        assert len(shown) >= 3
        assert shown[0] == (0, "1,024")
        for (at, text), (then, after) in pairwise(shown):
            assert (then - at) * step > 6.5 * (len(text) + len(after)) / 2
        assert axis["tickangle"] == 0


def test_a_symbol_of_an_axis_is_no_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A count of queries is not told in Q."""
    path = tmp_path / "map.html"
    assert run(["crossover", "--model", "dsv3", "--gpu", "h200", "--context", "4k", "-o", str(path)]) == 0
    capsys.readouterr()
    (found,) = re.findall(r'<script type="application/json">(.*)</script>', path.read_text(encoding="utf-8"))
    (grid,) = heatmaps(json.loads(found)["wide"])
    assert grid["hovertext"][0][0].split("<br>")[-2:] == ["context S: 4,096 tokens", "new tokens per request Q: 1"]


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
            silent = trace.get("marker", {}).get("angleref") or trace.get("mode") == "text" or trace.get("fill")
            silent = silent or trace.get("line", {}).get("color") == "white"  # between cells
            assert trace["hoverinfo"] == ("skip" if silent else "text")


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
@pytest.mark.parametrize("width", [1280, 700])
def test_nothing_below_a_map_covers_anything(browser: Any, tmp_path: Path, width: int) -> None:
    chart, results = ratio_map(wide_map(), wide_map(0.5), wide_map(2.0), rules=1)
    size = browser.get_window_size()
    places = "return [...document.querySelectorAll('%s')].map(each => each.getBoundingClientRect())"
    try:
        browser.set_window_size(width, 800)
        opened(browser, html_page(chart, replace(sample.REPORT, chart=chart, results=results)), tmp_path)
        titles, (key,), (sides,), (legend,) = (
            until(partial(browser.execute_script, places % what))
            for what in (".xtitle, .x2title, .x3title", ".cbcoloraxis", ".legend2", ".legend")
        )
        assert len(titles) == 3
        assert max(title["bottom"] for title in titles) <= key["top"] + 1
        assert key["bottom"] <= sides["top"] + 1
        assert sides["bottom"] <= legend["top"] + 1
        assert max(each["right"] for each in (key, sides, legend)) <= width
        assert legend["bottom"] <= browser.execute_script(
            "return document.querySelector('figure').getBoundingClientRect().bottom"
        )
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


def crowd(count: int) -> tuple[Chart, dict[str, Any]]:
    """A chart of so many points on a square of 400 by 250 different places, and what it draws."""
    rows = [{"x": 1 + at % 400, "y": 1 + at // 400 % 250, "name": f"point {at}"} for at in range(count)]
    points = Points(Rows("rows"), "x", "y", "timed", shown=(Shown("name", "name"), Shown("across", "x", "number")))
    return Chart("many", "made up", (Panel(Axis("x"), Axis("y"), (points,)),)), {"rows": rows}


def test_few_points_are_all_drawn() -> None:
    chart, results = crowd(1000)
    made = plotly_figure(chart, results).to_plotly_json()
    assert len(made["data"][0]["x"]) == 1000
    assert "drawn" not in made["layout"]["title"]["text"]


def test_very_many_points_are_thinned_and_the_page_says_so() -> None:
    chart, results = crowd(100_000)
    made = plotly_figure(chart, results).to_plotly_json()
    (points,) = made["data"]
    count = len(points["x"])
    assert 1000 < count <= 5000
    assert f"timed: {count:,} of 100,000 drawn" in made["layout"]["title"]["text"]
    close = [re.search(r"and ([\d,]+) more close to it$", text) for text in points["hovertext"]]
    assert count + sum(int(found[1].replace(",", "")) for found in close if found) == 100_000
    assert (min(points["x"]), max(points["y"])) == (1, pytest.approx(250, abs=4))  # none far from any is missing
    page = html_page(chart, replace(sample.REPORT, chart=chart, results=results))
    assert len(page) < 8_000_000  # plotly's script is 5 MB of it


def test_wide_and_narrow_share_what_is_alike() -> None:
    chart, results = crowd(1000)
    made = page_figure(chart, results)
    assert not {"x", "y", "hovertext", "marker"} & set(made["narrow"]["data"][0])
    for name in sample.CHARTS:
        made = json.loads(json.dumps(page_figure(sample.CHARTS[name], sample.RESULTS), default=list))
        both = zip(made["wide"]["data"], made["narrow"]["data"], strict=True)
        assert [wide | narrow for wide, narrow in both] == figure(name, narrow=True)["data"]


def layouts(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The layout that a page has in each of its windows."""
    return [made["narrow" if own["narrow"] else "wide"]["layout"] | own["layout"] for own in made["windows"]]


def test_title_and_caption_fit_any_window() -> None:
    part = "a part of the caption that is long"
    chart = replace(sample.ROOFLINE, title="A title of pumps " * 4, caption="  ·  ".join([part] * 7))
    made = page_figure(chart, sample.RESULTS)
    lines = []
    windows = made["windows"]
    for layout, own, wider in zip(layouts(made), windows, [*windows[1:], {"from": 1600}], strict=True):
        title, *caption = layout["title"]["text"].split("</b><br>")
        rows = re.sub("<[^>]*>", "", caption[0].replace("<br>", "\n")).split("\n")
        assert " ".join("  ·  ".join(rows).split("  ·  ")) == " ".join([part] * 7)
        room = max(own["from"], 360)
        assert max(map(len, rows)) * 6.4 < room, own["from"]  # DejaVu Sans at 13 px: 6.4 px a character
        assert max(map(len, title.removeprefix("<b>").split("<br>"))) * 11 < room
        assert own["narrow"] == (wider["from"] <= 820)
        lines.append(len(rows))
    assert lines == sorted(lines, reverse=True)
    assert lines[0] > lines[-1]


def test_texts_of_a_line_have_its_colour() -> None:
    line, _ = traces("roofline", "over stages")
    assert line["textfont"]["color"] == TEXT_COLOURS["green"]
    (near,) = traces("roofline", "near pumps, area: share of time")
    assert near["textfont"]["color"] == TEXT_COLOURS["blue"]


def roof_and_points() -> tuple[Chart, dict[str, Any]]:
    """Points on a roof, each with room below it to the right and above it to the left."""
    rows = [{"x": 10.0**at, "y": 10.0**at, "name": f"at {at}"} for at in (1, 2, 3)]
    marks = (Roof("slope", "flat", "roof"), Points(Rows("rows"), "x", "y", "points", text="name"))
    panel = Panel(Axis("x", "log", low=1, high=1e6), Axis("y", "log", low=1, high=1e5), marks)
    return Chart("roof", "", (panel,)), {"rows": rows, "slope": 1.0, "flat": 1e4}


@pytest.mark.parametrize("narrow", [False, True])
def test_no_text_lies_on_a_roof_where_there_is_room(narrow: bool) -> None:
    made = plotly_figure(*roof_and_points(), narrow=narrow).to_plotly_json()
    points = made["data"][1]
    assert list(points["text"]) == ["at 1", "at 2", "at 3"]
    # the roof rises from the lower left to the upper right of every point
    assert set(points["textposition"]) <= {"bottom right", "top left"}
    assert "white" in points["textfont"]["shadow"]


def test_a_text_that_must_be_there_is_there() -> None:
    rows = [{"x": 100.0 + at / 100, "y": 50.0, "name": f"a long name of {at}", "solved": at == 7} for at in range(15)]
    line = Line(Rows("rows"), "x", "y", "line", text="name", must="solved")
    panel = Panel(Axis("x", low=0, high=200), Axis("y", low=0, high=100), (line,))
    (trace,) = plotly_figure(Chart("t", "", (panel,)), {"rows": rows}).to_plotly_json()["data"]
    assert trace["text"][7] == "a long name of 7"
    assert "" in trace["text"]


def test_a_text_that_must_be_there_has_a_line_to_its_point_where_it_has_no_room_beside_it() -> None:
    rows = [{"x": 10.0, "y": 10.0, "name": "solved 4", "solved": True, "share": 1.0}]
    line = Line(Rows("rows"), "x", "y", "line", text="name", must="solved")
    large = [Points(Rows("rows"), "x", "y", f"kind {at}", area="share") for at in range(2)]
    panel = Panel(Axis("x", "log", low=1, high=100), Axis("y", "log", low=1, high=100), (line, *large))
    made = plotly_figure(Chart("t", "", (panel,)), {"rows": rows}).to_plotly_json()
    assert list(made["data"][0]["text"]) == [""]
    (note,) = made["layout"]["annotations"]
    assert (note["text"], note["x"], note["y"], note["showarrow"]) == ("solved 4", 1, 1, True)
    assert max(abs(note["ax"]), abs(note["ay"])) > 22  # the radius of the largest


def test_the_key_has_a_colour_of_its_own_where_a_mark_names_one() -> None:
    rows = [{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 3.0}]
    marks = (
        Line(Rows("rows"), "x", "y", "over", Look("blue"), key="ink"),
        Points(Rows("rows"), "x", "y", "kernels", Look("orange"), key="ink"),
        Points(Rows("rows"), "x", "y", "others", Look("green")),
    )
    data = plotly_figure(Chart("t", "", (Panel(Axis("x"), Axis("y"), marks),)), {"rows": rows}).to_plotly_json()["data"]
    for label, own, key in (("over", "blue", "ink"), ("kernels", "orange", "ink"), ("others", "green", "green")):
        mine = [trace for trace in data if trace["name"] == label]
        (entry,) = (trace for trace in mine if trace["showlegend"])
        assert entry["marker"]["color"] == COLOURS[key]
        assert {trace["legendgroup"] for trace in mine} == {entry["legendgroup"]}
        (drawn,) = (trace for trace in mine if len([at for at in trace["x"] if at is not None]) == 2)
        assert drawn["marker"]["color"] == COLOURS[own]


def test_right_to_left_words_keep_their_place_in_a_page() -> None:
    chart = replace(sample.ROOFLINE, title="שלום 7B under the roof")
    page = html_page(chart, replace(sample.REPORT, title="שלום 7B   8 pumps"))
    (made,) = re.findall(r'<script type="application/json">(.*)</script>', page)
    assert page.count("\u2068שלום\u2069 7B") == 3  # title, label, heading
    titles = [layout["title"]["text"] for layout in layouts(json.loads(made))]
    assert all("\u2068שלום\u2069 7B" in title for title in titles)


@needs_browser
def test_a_window_that_grows_has_its_caption_in_fewer_lines(browser: Any, tmp_path: Path) -> None:
    chart = replace(sample.ROOFLINE, caption="  ·  ".join(["a part of the caption that is long"] * 5))
    opened(browser, html_page(chart, sample.REPORT), tmp_path)
    inside = (
        "const place = document.querySelector('.gtitle').getBoundingClientRect();"
        "return place.left >= 0 && place.right <= window.innerWidth"
    )

    def found(lines: int) -> bool:
        count = browser.execute_script("return document.querySelectorAll('.gtitle > tspan').length")
        return bool(count == lines)

    size = browser.get_window_size()
    try:
        for width, expected in ((500, 6), (840, 4), (1280, 3)):  # the title's among them
            browser.set_window_size(width, 800)
            until(partial(found, expected))
            until(partial(browser.execute_script, inside))
        assert severe(browser) == []
    finally:
        browser.set_window_size(size["width"], size["height"])


@pytest.mark.parametrize("narrow", [False, True])
def test_a_name_of_any_length_is_folded(narrow: bool) -> None:
    name = "x" * 200
    rows = [{"name": name, "n": 3}, {"name": f"{name}y", "n": 5}]
    panel = Panel(Axis("n"), Axis("", "category", kind="text"), (Bars(Rows("rows"), "name", "n", label=name),))
    made = plotly_figure(Chart(name, name, (panel,)), {"rows": rows}, narrow=narrow).to_plotly_json()
    layout = made["layout"]
    ticks = [tick.split("<br>") for tick in layout["yaxis"]["ticktext"]]
    assert max(len(line) for tick in ticks for line in tick) <= 26
    assert layout["height"] - layout["margin"]["t"] - layout["margin"]["b"] >= sum(map(len, ticks)) * 15
    room = 640 if narrow else 1040  # of windows of 700 and 1,100
    title, caption = layout["title"]["text"].split("</b><br>")
    for text, px in ((title.removeprefix("<b>"), 11), (re.sub(r"</?span[^>]*>", "", caption), 7.7)):
        assert text.replace("<br>", "") == name
        assert max(map(len, text.split("<br>"))) * px <= room
    legend = made["data"][0]["name"].split("<br>")
    assert "".join(legend) == name
    assert max(map(len, legend)) * 7.2 <= room - 46
    assert layout["margin"]["b"] >= 60 + 16 * len(legend)
