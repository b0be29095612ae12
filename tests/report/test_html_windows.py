"""Interactive figures in windows of any width: every text can be read, and those that must be there are."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import hypot, log10
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.main import run
from mla_calc.report.chart import Axis, Bars, Cells, Chart, Line, Look, Mark, Panel, Points, Roof, Rows, Rule, Zones
from mla_calc.report.drawing.plotly_figure import page_figure, plotly_figure
from mla_calc.report.drawing.style import ABOVE_SHADE, BELOW_SHADE, COLOURS, TEXT_COLOURS
from tests.browser import IS_THERE, MISSING, chromium

pytest.importorskip("plotly", reason="plotly is an extra")

WIDE, HIGH = 965, 430
"""Pixels of a panel in the window that a figure of a notebook is made for."""
LETTER = 5.5
"""The width of a character of 11 px, a little narrower than it may be."""


def figure(marks: tuple[Mark, ...], results: dict[str, Any], narrow: bool = False) -> dict[str, Any]:
    """A panel from 1 to 10,000 both ways, as plain data."""
    found: dict[str, Any] = plotly_figure(chart(marks), results, narrow).to_plotly_json()
    return found


def chart(marks: tuple[Mark, ...]) -> Chart:
    return Chart("t", "", (Panel(Axis("x", "log", low=1, high=1e4), Axis("y", "log", low=1, high=1e4), marks),))


def windows(drawn: Chart, results: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The figure of each window of a page, as the page puts it together, with the least width of the window.

    Plotly raises a ValueError for what it does not take.
    """
    graph_objects = pytest.importorskip("plotly.graph_objects")
    made = page_figure(drawn, results)
    wide = made["wide"]["data"]
    narrow = [trace | other for trace, other in zip(wide, made["narrow"]["data"], strict=True)]
    for own in made["windows"]:
        data = [trace | other for trace, other in zip(narrow if own["narrow"] else wide, own["data"], strict=True)]
        layout = made["narrow" if own["narrow"] else "wide"]["layout"] | own["layout"]
        yield own["from"] or 360, graph_objects.Figure(data=data, layout=layout).to_plotly_json()


def panel_px(made: dict[str, Any], window: int) -> float:
    """The width of the panels: 32 px are the page's margins and 15 a scroll bar's."""
    return float(window - 47 - made["layout"]["margin"]["l"] - made["layout"]["margin"]["r"])


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_a_map_of_columns_too_narrow_for_numbers_has_none() -> None:
    rows = [{"x": x, "y": y, "ratio": 2.0} for x in (4000.0, 4096.0, 8192.0, 131072.0) for y in (1.0, 2.0)]
    axis = Axis("x", "log", kind="integer", ticks=(4096, 8192))
    cells = Cells(Rows("rows"), "x", "y", "ratio", "less", "more", "ratio", "short_factor")
    for _, made in windows(Chart("t", "", (Panel(axis, axis, (cells,)),)), {"rows": rows}):
        (texts,) = (trace for trace in made["data"] if trace.get("mode") == "text")
        assert list(texts["text"]) == []


def distance(box: tuple[float, float, float, float], marker: tuple[float, float, float]) -> float:
    """From a text to a round marker."""
    x, y = min(max(marker[0], box[0]), box[2]), min(max(marker[1], box[1]), box[3])
    return max(0.0, hypot(marker[0] - x, marker[1] - y) - marker[2])


def test_a_text_is_nearer_to_its_own_point_than_to_another_or_has_a_line_to_it() -> None:
    """A kernel beside a larger one of another path, and ticks of which three are close to each other."""
    kernels = [
        {"path": "absorbed", "x": 100.0, "y": 100.0, "name": "attention", "share": 0.12},
        {"path": "naive", "x": 140.0, "y": 170.0, "name": "up_proj", "share": 0.55},
    ]
    ticks = [{"x": x, "y": 20.0, "name": f"Q {at}"} for at, x in ((4, 1000.0), (16, 1100.0), (64, 1210.0), (256, 4e3))]
    marks = (
        *(Points(Rows("kernels", (("path", path),)), "x", "y", path, area="share", text="name")
          for path in ("absorbed", "naive")),
        Line(Rows("ticks"), "x", "y", "over queries", text="name"),
    )  # fmt: skip
    for window, made in windows(chart(marks), {"kernels": kernels, "ticks": ticks}):
        width = panel_px(made, window)
        high = made["layout"]["height"] - made["layout"]["margin"]["t"] - made["layout"]["margin"]["b"]
        markers: list[tuple[float, float, float]] = []
        texts = []
        for trace in made["data"]:
            sizes = trace["marker"]["size"]
            for at, (x, y, text, side) in enumerate(
                zip(trace["x"], trace["y"], trace["text"], trace["textposition"], strict=True)
            ):
                radius = (sizes[at] if isinstance(sizes, (list, tuple)) else sizes) / 2
                markers.append((log10(x) / 4 * width, log10(y) / 4 * high, radius))
                texts.append((text, side, markers[-1]))
        led = [note["text"] for note in made["layout"].get("annotations", ())]
        assert {"attention", "up_proj"} <= {*led, *(text for text, _, _ in texts)}, window
        assert "Q 256" in [text for text, _, _ in texts], window
        for text, side, own in (each for each in texts if each[0]):
            away, length = own[2] / 0.8 + 1, LETTER * len(text)  # 0.8 and 1 are plotly's
            left = own[0] + (away if "right" in side else -away - length if "left" in side else -length / 2)
            low = own[1] + (away if "top" in side else -away - 11 if "bottom" in side else -5.5)
            box = left, low, left + length, low + 11
            nearest = min((each for each in markers if each != own), key=lambda marker: distance(box, marker))
            assert distance(box, own) < distance(box, nearest), (window, text)


def test_a_text_that_lines_surround_stands_where_they_strike_the_least_of_it() -> None:
    """A cage of level lines 11 px above and below the point, and of upright ones 20 px beside it."""
    across, up = 4 / WIDE, 4 / HIGH  # decades of a pixel
    cage = {
        f"{name} {way}": [(2 + right * across, 2 + above * up) for right, above in ends]
        for way in (-1, 1)
        for name, ends in (("level", ((-80, 11 * way), (80, 11 * way))), ("upright", ((20 * way, -40), (20 * way, 40))))
    }
    rows = [{"line": name, "x": 10**x, "y": 10**y} for name, ends in cage.items() for x, y in ends]
    lines = tuple(Line(Rows("rows", (("line", name),)), "x", "y", name, markers=False) for name in cage)
    point = Points(Rows("points"), "x", "y", "points", text="name")
    results = {"rows": rows, "points": [{"x": 100.0, "y": 100.0, "name": "a kernel"}]}
    (found,) = (trace for trace in figure((*lines, point), results)["data"] if trace["name"] == "points")
    assert found["text"] == ["a kernel"]
    assert found["textposition"][0] in ("middle right", "middle left")


def test_a_line_to_a_text_is_no_longer_than_it_has_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Panels of 180 px, in which no place is off every line: a text stands across one rather than far away."""
    path = tmp_path / "figure.html"
    gpus = "h100,h200,b200,h20,mi300x,l40s"
    assert run(["roofline", "--model", "dsv3", "--gpu", gpus, "--layout", "panels", "--output", str(path)]) == 0
    capsys.readouterr()
    (found,) = re.findall(r'<script type="application/json">(.*)</script>', path.read_text(encoding="utf-8"))
    made = json.loads(found)
    layouts = [made["wide"]["layout"], made["narrow"]["layout"], *(own["layout"] for own in made["windows"])]
    notes = [note for layout in layouts for note in layout.get("annotations", ())]
    led = [hypot(note["ax"], note["ay"]) for note in notes if "ax" in note]
    assert len(led) > 50
    assert max(led) < 150


def test_lines_between_cells_give_way_where_those_are_narrow() -> None:
    """As in a picture they take a twelfth at most, so that 1 px needs 12; a hatch has no edge, as it has none there."""
    for steps, count in (([4096.0 * at for at in range(1, 33)], 32), ([4096.0, 8192.0, 16384.0], 3)):
        rows = [{"x": x, "y": y, "ratio": ratio} for x in steps for y, ratio in ((1.0, 2.0), (2.0, 0.5))]
        axis = Axis("x", "log", kind="integer")
        cells = Cells(Rows("rows"), "x", "y", "ratio", "less", "more", "ratio", "short_factor")
        for window, made in windows(Chart("t", "", (Panel(axis, axis, (cells,)),)), {"rows": rows}):
            (grid,) = (trace for trace in made["data"] if trace["type"] == "heatmap")
            assert not {"xgap", "ygap"} & set(grid)
            hatched = [trace for trace in made["data"] if "fillpattern" in trace and len(trace["x"]) > 1]
            assert [trace["line"]["width"] for trace in hatched] == [0]
            (white,) = (trace for trace in made["data"] if trace.get("line", {}).get("color") == "white")
            assert white["line"]["width"] == 1
            ends = list(grid["x"])
            px = panel_px(made, window) / log10(ends[-1] / ends[0])
            wide = [log10(high / low) * px >= 12 for low, high in pairwise(ends)]
            wanted = [at for at, both in zip(ends[1:-1], pairwise(wide), strict=True) if all(both)]
            upright = [white["x"][at] for at in range(0, len(white["x"]), 3) if white["x"][at] == white["x"][at + 1]]
            assert upright == pytest.approx(wanted), window
            assert len(upright) < count - 1 or count == 3
            assert len(white["x"]) == 3 * (len(upright) + 1)  # and one between both rows


def test_the_name_of_a_zone_cuts_nothing_out_of_a_point() -> None:
    """It has a ground only where a roof would strike it through: 6 px below the panel's top, which is 10^4."""
    at = 10 ** (4 * (1 - 6 / HIGH))
    zones = Zones("at", "memory binds", "compute binds")
    roof = Roof("slope", "flat", label="roof")
    point = Points(Rows("rows"), "x", "y", "points")
    results = {"at": 100.0, "slope": 1e9, "flat": at, "rows": [{"x": 130.0, "y": at}]}
    for marks, grounds in (
        ((zones,), {"memory": None, "compute": None}),
        ((zones, roof), {"memory": BELOW_SHADE, "compute": ABOVE_SHADE}),
        ((zones, roof, point), {"memory": BELOW_SHADE, "compute": None}),
    ):
        notes = figure(marks, results)["layout"]["annotations"]
        found = {note["text"].strip("\u2190\u2192 ").partition(" ")[0]: note.get("bgcolor") for note in notes}
        assert found == grounds


def test_title_and_caption_are_folded_within_the_figure() -> None:
    """By the widest of the fonts that a browser may have; both begin 10 px from the figure's left."""
    fonts = pytest.importorskip("matplotlib.ft2font")
    folder = Path(pytest.importorskip("matplotlib").get_data_path()) / "fonts" / "ttf"
    words = "NVIDIA H100 SXM5 80GB: 989.4 TFLOP/s dense bf16, 3.35 TB/s"
    drawn = Chart(words, words, chart(()).panels)
    for window, made in windows(drawn, {}):
        title, caption = re.fullmatch(
            r"<b>(.*)</b><br><span[^>]*>(.*)</span>", made["layout"]["title"]["text"]
        ).groups()
        for text, name, size in ((title, "DejaVuSans-Bold.ttf", 19), (caption, "DejaVuSans.ttf", 13)):
            font = fonts.FT2Font(str(folder / name))
            font.set_size(size, 72)
            for line in text.split("<br>"):
                font.set_text(line)
                assert 10 + font.get_width_height()[0] / 64 <= window - 47, (window, line)


def crossings(count: int) -> tuple[tuple[Line, ...], dict[str, Any]]:
    """Lines that all have a text to show at nearly the same place, each a long one."""
    rows = [
        {"line": at, "x": 100.0 * (1 + at / 200), "y": 100.0, "name": f"A LONG GPU {at} naive Q {at}", "solved": True}
        for at in range(count)
    ]
    lines = tuple(
        Line(Rows("rows", (("line", at),)), "x", "y", f"line {at}", text="name", must="solved") for at in range(count)
    )
    return lines, {"rows": rows}


@pytest.mark.parametrize("count", [3, 8, 14])
def test_texts_that_must_be_there_are_there_and_on_no_other(count: int) -> None:
    lines, results = crossings(count)
    for window, made in windows(chart(lines), results):
        width = panel_px(made, window)
        high = made["layout"]["height"] - made["layout"]["margin"]["t"] - made["layout"]["margin"]["b"]
        found: dict[str, tuple[float, ...]] = {}
        for trace in made["data"]:
            for x, y, text, side in zip(trace["x"], trace["y"], trace["text"], trace["textposition"], strict=True):
                if text:
                    length = LETTER * len(text)
                    left = log10(x) / 4 * width + (0 if "right" in side else -length if "left" in side else -length / 2)
                    middle = log10(y) / 4 * high + (11 if "top" in side else -11 if "bottom" in side else 0)
                    found[text] = (left, middle - 5.5, left + length, middle + 5.5)
        for note in made["layout"]["annotations"]:
            across, up = note["x"] / 4 * width + note["ax"], note["y"] / 4 * high - note["ay"]
            half = LETTER * len(note["text"]) / 2
            found[note["text"]] = (across - half, up - 5.5, across + half, up + 5.5)
        assert sorted(found) == sorted(row["name"] for row in results["rows"])
        assert not [pair for pair in combinations(found, 2) if overlap(found[pair[0]], found[pair[1]])], window


def test_kernels_that_lie_on_each_other_share_a_text_of_their_paths_colour() -> None:
    """fold and up by half a pixel, of which fold is first as it is larger; main lies elsewhere, among rules."""
    rows = [
        {"path": "near", "x": 10.02, "y": 10.0, "name": "up", "share": 0.2},
        {"path": "near", "x": 10.0, "y": 10.0, "name": "fold", "share": 0.7},
        {"path": "near", "x": 900.0, "y": 90.0, "name": "main", "share": 0.1},
        {"path": "far", "x": 10.0, "y": 10.0, "name": "attention", "share": 1.0},
    ]
    looks = {"near": Look("blue"), "far": Look("orange")}
    near, far = (
        Points(Rows("rows", (("path", path),)), "x", "y", path, look, area="share", text="name")
        for path, look in looks.items()
    )
    around = {"left": 750.0, "right": 1080.0, "low": 70.0, "high": 116.0}
    rules = tuple(Rule(at, "x" if at in ("left", "right") else "y") for at in around)
    made = figure((*rules, near, far), {"rows": rows, **around})
    assert made["layout"]["annotations"]  # a name at the end of a line has the colour too
    shown: dict[str, str] = {note["text"]: note["font"]["color"] for note in made["layout"]["annotations"]}
    for trace in made["data"]:
        shown |= {text: trace["textfont"]["color"] for text in trace["text"] if text}
    assert shown == {
        "fold, up": TEXT_COLOURS["blue"], "main": TEXT_COLOURS["blue"], "attention": TEXT_COLOURS["orange"],
    }  # fmt: skip


def test_the_text_of_a_rule_is_read_as_its_own() -> None:
    """Two rules 2 px apart: the text of each is on the side of its own, however much room a roof leaves there."""
    rules = (Rule("low", "x", "measured {}"), Rule("high", "x", "ridge {}", look=Look("sky", dash="dotted")))
    low = 100.0
    results = {"low": low, "high": low * 10 ** (4 * 2 / WIDE)}
    labels = [shape["label"] for shape in figure(rules, results)["layout"]["shapes"] if "label" in shape]
    assert [label["text"].partition(" ")[0] for label in labels] == ["measured", "ridge"]
    assert [label["xanchor"] for label in labels] == ["right", "left"]
    assert labels[1]["font"]["color"] == TEXT_COLOURS["sky"]


def test_a_rule_near_the_edge_has_its_text_within_the_panel() -> None:
    """Of 60 % of a panel's width on the left and 40 % on the right, another rule takes the left."""
    marks = (Rule("ridge", "x", "ridge {} FLOP/B"), Rule("other", "x", "measured ridge {} FLOP/B"))
    results = {"ridge": 10**2.4, "other": 10**2.35}
    for window, made in windows(chart(marks), results):
        width = panel_px(made, window)
        for shape in (shape for shape in made["layout"]["shapes"] if "label" in shape):
            longest = max(len(line) for line in shape["label"]["text"].split("<br>")) * LETTER
            across = log10(shape["x0"]) / 4 * width
            room = across if shape["label"]["xanchor"] == "right" else width - across
            assert longest + 3 <= room, (window, shape["label"]["text"])


def test_the_names_of_zones_stand_within_their_zones() -> None:
    """The right one has 15 % of the panel; in the narrowest windows no word of its name has room there."""
    lines_of = {}
    for window, made in windows(chart((Zones("at", "memory binds", "compute binds"),)), {"at": 10**3.4}):
        width = panel_px(made, window)
        for note in made["layout"]["annotations"]:
            room = width * (0.15 if "compute" in note["text"] else 0.85)
            assert max(map(len, note["text"].split("<br>"))) * 6 <= room
            lines_of[window, "compute" in note["text"]] = note["text"].count("<br>") + 1
    assert (360, False) in lines_of
    assert (360, True) not in lines_of
    assert lines_of[600, True] == 2
    assert lines_of[1260, True] == 1


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05


def contrast(one: str, other: str) -> float:
    """By the W3C's rules."""
    low, high = sorted((luminance(one), luminance(other)))
    return high / low


def test_every_text_stands_out_from_its_ground() -> None:
    rows = [{"x": 10.0, "y": 10.0, "name": "a", "at": 3.0, "share": 0.5}]
    for colour in COLOURS:
        look = Look(colour)
        marks: tuple[Mark, ...] = (
            Zones("at", "below", "above"),
            Rule("at", "x", "upright", look=look),
            Rule("at", "y", "level", look=look),
            Line(Rows("rows"), "x", "y", "line", look, text="name"),
            Points(Rows("rows"), "x", "y", "points", look, text="name", area="share"),
        )
        made = figure(marks, {"rows": rows, "at": 3.0})
        fonts = [trace["textfont"]["color"] for trace in made["data"]]
        fonts += [shape["label"]["font"]["color"] for shape in made["layout"]["shapes"] if "label" in shape]
        fonts += [note["font"]["color"] for note in made["layout"]["annotations"]]
        assert len(fonts) == 6
        for font in fonts:
            assert min(contrast(font, ground) for ground in ("#ffffff", BELOW_SHADE, ABOVE_SHADE)) >= 4.5, colour
        bars = tuple(Bars(Rows("rows"), "name", key, label=key, look=look) for key in ("x", "y"))
        panel = Panel(Axis("kg"), Axis("", "category", kind="text"), bars, stacked=True)
        for trace in plotly_figure(Chart("t", "", (panel,)), {"rows": rows}).to_plotly_json()["data"]:
            assert contrast(trace["insidetextfont"]["color"], COLOURS[colour]) >= 4.5, colour
            assert COLOURS[colour] in trace["insidetextfont"]["shadow"]  # over the pattern of others


def test_no_rule_strikes_out_the_numbers_of_bars() -> None:
    """A rule in the middle of the first of two bars, and one that hits none."""
    rows = [{"name": "all", "weights": 100.0, "rest": 50.0}]
    bars = tuple(Bars(Rows("rows"), "name", key, label=key) for key in ("weights", "rest"))
    for at, free in ((50.0, ("start", "middle")), (125.0, ("middle", "start")), (155.0, ("middle", "middle"))):
        marks: tuple[Mark, ...] = (*bars, Rule("at", "x", label="memory"))
        panel = Panel(Axis("GiB", high=160), Axis("", "category", kind="text"), marks, stacked=True)
        for window, made in windows(Chart("t", "", (panel,)), {"rows": rows, "at": at}):
            anchors = tuple(trace["insidetextanchor"] for trace in made["data"])
            assert anchors == free, (at, window)


def test_a_long_name_of_the_legend_is_folded_in_a_narrow_window() -> None:
    name = "a name of the legend that goes on and on for as long as it can"
    for window, made in windows(chart((Points(Rows("rows"), "x", "y", name),)), {"rows": [{"x": 9.0, "y": 9.0}]}):
        lines = made["data"][0]["name"].split("<br>")
        assert " ".join(lines) == name
        assert 46 + max(map(len, lines)) * 6.4 <= window - 47


def test_ticks_have_their_labels_in_whatever_order_they_are_given() -> None:
    axis = Axis("x", "log", kind="integer", ticks=(32, 1, 8), low=1, high=64)
    panel = Panel(axis, axis, (Points(Rows("rows"), "x", "x", "points"),))
    for _, made in windows(Chart("t", "", (panel,)), {"rows": [{"x": 8.0}]}):
        for name in ("xaxis", "yaxis"):
            assert list(made["layout"][name]["tickvals"]) == [1, 8, 32]
            assert list(made["layout"][name]["ticktext"]) == ["1", "8", "32"]


def test_panels_stand_side_by_side_only_where_each_has_room() -> None:
    """Six of them have 100 px each in a window of 820."""
    (panel,) = chart((Points(Rows("rows"), "x", "y", "points"),)).panels
    for count, least in ((2, 820), (6, 1100)):
        drawn = Chart("t", "", (panel,) * count, shared=True)
        for window, made in windows(drawn, {"rows": [{"x": 9.0, "y": 9.0}]}):
            starts = {made["layout"][f"xaxis{at}"]["domain"][0] for at in ("", 2)}
            assert len(starts) == (2 if window >= least else 1), window


TEXTS = """
const found = [];
for (const text of document.querySelectorAll('.js-plotly-plot .main-svg text')) {
  if (text.closest('.hoverlayer, .modebar') || !text.textContent.trim()) continue;
  const look = getComputedStyle(text);
  if (look.opacity === '0' || look.display === 'none') continue;
  const lines = text.querySelectorAll('tspan.line');
  for (const each of lines.length ? lines : [text]) {
    const place = each.getBoundingClientRect();
    if (place.width) found.push([text.textContent, place.left, place.top, place.right, place.bottom]);
  }
}
return [found, window.innerWidth];
"""
FIGURES = {
    "overlaid": "roofline --model dsv3 --gpu h200,h100,h20,b200,mi300x",
    "panels": "roofline --model dsv3 --gpu h100,h200,b200 --layout panels --levels link,pcie",
    "map": "crossover --model dsv3 --gpu h200",
    "nothing-fits": "capacity --model dsv3 --gpu h100 --gpus 4 --search",
    "cache": "cache --model dsv3 --vs llama3-70b,llama3-8b,qwen3-32b",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), 1280, 1300) as driver:
        yield driver


def shown(browser: Any, path: Path, width: int) -> tuple[list[list[Any]], int]:
    """The lines of text of a page's figure in a window so wide, with their edges, and the window's width."""
    size = {"width": width, "height": 1300, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get(path.as_uri())
    before: Any = None
    for _ in range(200):
        texts, inside = browser.execute_script(TEXTS)
        if texts and texts == before:
            return texts, inside
        before = texts
        time.sleep(0.1)
    raise AssertionError("it is never drawn")


@pytest.mark.skipif(not IS_THERE, reason=MISSING)
@pytest.mark.parametrize("name", FIGURES)
def test_a_browser_shows_every_text_in_any_window(
    browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / "figure.html"
    assert run([*FIGURES[name].split(), "--output", str(path)]) == 0
    capsys.readouterr()
    for width in (360, 500, 600, 700, 820, 1000, 1280):
        texts, inside = shown(browser, path, width)
        assert inside == width
        assert len(texts) > 20
        assert not [text for text, left, _, right, _ in texts if left < -1 or right > width + 1]
        for (text, *one), (other, *place) in combinations(texts, 2):
            within = min(one[2], place[2]) - max(one[0], place[0]), min(one[3], place[3]) - max(one[1], place[1])
            assert within[0] < 1.5 or within[1] < 3.5, (width, text, other)  # a line is higher than its letters


@pytest.mark.parametrize("contexts", ["4000,4096,8k,128k", "1k:64k:+1k"])
def test_a_map_of_any_contexts_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str], contexts: str) -> None:
    path = tmp_path / "map.html"
    assert run(["crossover", "--model", "dsv3", "--gpu", "h200", "--context", contexts, "-o", str(path)]) == 0
    capsys.readouterr()
    (found,) = re.findall(r'<script type="application/json">(.*)</script>', path.read_text(encoding="utf-8"))
    (grid,) = (trace for trace in json.loads(found)["wide"]["data"] if trace["type"] == "heatmap")
    assert len(grid["x"]) == 1 + {"4000,4096,8k,128k": 4, "1k:64k:+1k": 64}[contexts]
