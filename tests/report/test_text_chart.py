"""Charts as text: they keep to their size, stand where the numbers say, and need neither colour nor Unicode."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from math import log10
from typing import Any

import pytest
from rich.console import Console

from mla_calc.report import terminal
from mla_calc.report.chart import Axis, Chart, Line, Look, Mark, Panel, Points, Roof, Rows, Rule
from mla_calc.report.drawing.text import chart_text
from mla_calc.report.drawing.text_scale import Scale
from mla_calc.report.record import Report
from mla_calc.report.render import to_text
from tests.report import sample_charts

ESCAPE = re.compile("\x1b\\[([0-9;]*)m")
SIZES = ((30, 10), (80, 19), (80, 24), (100, 24), (200, 50))
PANELS = [(name, index) for name, chart in sample_charts.CHARTS.items() for index in range(len(chart.panels))]
WIDE = Axis("across", "log", low=1.0, high=1e4)
HIGH = Axis("up", "log", unit=1e12, low=1e12, high=1e14)


def single(*points: tuple[float | None, float | None]) -> tuple[Chart, list[dict[str, Any]]]:
    """A chart of lone points on four decades by two, and its results."""
    marks = (Points(Rows(""), "x", "y", "lone", Look("blue"), text="name"),)
    records = [{"x": x, "y": y, "name": f"point {index}"} for index, (x, y) in enumerate(points)]
    return Chart("Points", "", (Panel(WIDE, HIGH, marks),)), records


def place(lines: list[str], character: str) -> tuple[float, float]:
    """Where a character stands between the axes: as shares of the way from the first cell to the last."""
    floor = next(index for index, line in enumerate(lines) if "\u2514" in line)
    left = lines[floor].index("\u2514") + 1
    row = next(index for index in range(1, floor) if character in lines[index][left:])
    columns, rows = len(lines[floor]) - left, floor - 1
    return (lines[row].index(character, left) - left) / (columns - 1), (floor - 1 - row) / (rows - 1)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_no_chart_is_larger_than_it_may_be(name: str, panel: int, width: int, height: int) -> None:
    text = chart_text(sample_charts.CHARTS[name], sample_charts.RESULTS, width, height, False, panel)
    lines = text.split("\n")
    assert "\x1b" not in text
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [40, 79, 80, 200])
def test_height_is_used_whole(width: int) -> None:
    assert chart_text(sample_charts.ROOFLINE, sample_charts.RESULTS, width, 24, False).count("\n") == 23


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_colour_adds_escape_codes_of_the_foreground_alone(name: str, panel: int) -> None:
    chart = sample_charts.CHARTS[name]
    plain, coloured = (chart_text(chart, sample_charts.RESULTS, 80, 24, colour, panel) for colour in (False, True))
    bare = "\n".join(line.rstrip() for line in ESCAPE.sub("", coloured).split("\n"))
    assert bare == plain
    for line in coloured.split("\n"):
        assert ESCAPE.findall(line)[-1:] in ([], ["0"])  # no colour runs on into the next line
    codes = {code for found in ESCAPE.findall(coloured) for code in found.split(";")}
    assert len(codes) > 2
    assert codes <= {"0", "2", *map(str, (*range(30, 38), *range(90, 98)))}  # no background, nothing of 256 colours


@pytest.mark.parametrize("size", [(80, 20), (61, 17), (200, 46)])
@pytest.mark.parametrize(
    ("x", "y", "across", "up"),
    [
        (1.0, 1e12, 0, 0),
        (1e4, 1e14, 1, 1),
        (100.0, 1e13, 1 / 2, 1 / 2),
        (1000.0, 1e14, 3 / 4, 1),
        (10.0, 10**12.5, 1 / 4, 1 / 4),
    ],
)
def test_a_point_stands_where_its_logarithms_say(
    x: float, y: float, across: float, up: float, size: tuple[int, int]
) -> None:
    chart, results = single((x, y))
    lines = chart_text(chart, results, *size, False).split("\n")
    rows = next(index for index, line in enumerate(lines) if "\u2514" in line) - 1
    found = place(lines, "A")
    assert found[0] == pytest.approx(across, abs=1 / (size[0] - 20))
    assert found[1] == pytest.approx(up, abs=1 / (rows - 1))


def test_a_roof_bends_at_its_ridge() -> None:
    """3.35e12 and 989.4e12 meet at 295.34, an H100's ridge in bf16: (log10(295.34) - 0) / 4 = 0.6176 of the way."""
    axis = replace(HIGH, high=1e15)
    chart = Chart("Roof", "", (Panel(WIDE, axis, (Roof("slope", "flat", "roof"), Rule("ridge", "x", "ridge {}"))),))
    results: dict[str, Any] = {"slope": 3.35e12, "flat": 989.4e12, "ridge": 989.4e12 / 3.35e12}
    lines = chart_text(chart, results, 120, 40, False).split("\n")
    assert place(lines, "\u250a")[0] == pytest.approx(log10(295.34) / 4, abs=1 / 100)
    assert "ridge 295.3" in "\n".join(lines)
    left = max(line.index("\u2502") for line in lines if "\u2502" in line) + 1
    top = next(line[left:] for line in lines[1:] if any("\u2801" <= each <= "\u28ff" for each in line))
    start = next(index for index, each in enumerate(top) if "\u2801" <= each <= "\u28ff")
    # the row of the flat part holds what is within half a row: 3 decades on 35 rows are 0.087 a row
    assert start / (120 - left - 1) == pytest.approx(log10(295.34) / 4, abs=0.04)
    assert lines[-1].startswith("1 \u2500\u2500 roof")


def test_ticks_are_decades_as_people_write_them() -> None:
    chart, results = single((1.0, 1e12), (1e4, 1e14))
    lines = chart_text(chart, results, 80, 24, False).split("\n")
    floor = next(index for index, line in enumerate(lines) if "\u2514" in line)
    assert lines[floor + 1].split() == ["1", "10", "100", "1,000", "10,000"]
    assert [line.split("\u2524")[0].strip() for line in lines if "\u2524" in line] == ["100", "10", "1"]
    assert lines[0] == "up   Points"
    assert lines[floor + 2].strip() == "across"


@pytest.mark.parametrize(
    ("axis", "low", "high", "cells", "labels"),
    [
        (Axis("", "log"), 0.9, 1100.0, 40, ["1", "10", "100", "1,000"]),
        (Axis("", "log"), 1e-3, 1e9, 40, ["0.001", "1", "1,000", "1,000,000", "1,000,000,000"]),
        (Axis("", "log"), 3.0, 60.0, 40, ["5", "10", "20", "50"]),
        (Axis("", "log", ticks=(1, 2, 4, 64)), 1.0, 8.0, 40, ["1", "2", "4"]),
        (Axis("", "linear"), 0.0, 9.9, 40, ["0", "2", "4", "6", "8"]),
        (Axis("", "linear", unit=1024.0, ticks=(1024, 3072)), 0.5, 4.0, 40, ["1", "3"]),
        (Axis("", "linear"), -0.25, 0.25, 40, ["-0.2", "-0.1", "0", "0.1", "0.2"]),
    ],
)
def test_ticks_that_have_room(axis: Axis, low: float, high: float, cells: int, labels: list[str]) -> None:
    assert [label for _, label in Scale(axis, low, high, cells).ticks(7)] == labels


def test_what_is_not_known_is_left_out() -> None:
    text = chart_text(sample_charts.ROOFLINE, sample_charts.RESULTS, 100, 30, False)
    assert "dry" not in text
    assert "not known" not in text
    chart, results = single((None, 1e13), (10.0, None), (10.0, 1e13))
    assert chart_text(chart, results, 80, 20, False).split("\n")[-1] == "lone: A point 2"


def test_a_panel_without_marks_says_so() -> None:
    empty = Chart("Empty", "", (Panel(Axis("x"), Axis("y"), (Points(Rows(""), "x", "y"),)),))
    assert chart_text(empty, [], 80, 20, False) == "y   Empty\n(nothing to draw)"


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_each_sign_of_the_key_stands_in_the_chart(size: tuple[int, int]) -> None:
    lines = chart_text(sample_charts.ROOFLINE, sample_charts.RESULTS, *size, False).split("\n")
    label = next(index for index, line in enumerate(lines) if line.strip() == "head, m/litre")
    canvas, key = "\n".join(lines[1 : label - 2]), "\n".join(lines[label + 1 :])
    for sign, name in {
        "A": "intake", "B": "main stage", "C": "booster", "D": "outlet", "E": "intake", "F": "main stage",
        "G": "outlet", "H": "measured", "a": "over stages", "1": "\u2500\u2500 datasheet, slow",
        "2": "\u2500\u2500 datasheet, fast", "3": "\u2574\u2574 measured, slow",
    }.items():  # fmt: skip
        assert f"{sign} {name}" in key
        assert sign in canvas
    assert "near pumps: A" in key  # a character has no area to tell of
    assert "\u25b6" in canvas
    assert "ridge 295.3 m/l" in canvas


def test_points_in_one_cell_stand_side_by_side() -> None:
    chart, results = single(*[(100.0, 1e13)] * 3)
    lines = chart_text(chart, results, 80, 20, False).split("\n")
    (row,) = [line for line in lines if "A" in line and "lone" not in line]
    assert "CAB" in row


def test_many_points_share_one_sign() -> None:
    chart, results = single(*[(10.0 ** (index / 10), 1e13) for index in range(30)])
    lines = chart_text(chart, results, 80, 20, False).split("\n")
    assert lines[-1] == "o lone"
    assert sum(line.count("o") for line in lines[1:-2]) in range(29, 32)  # the axis' label has one


def test_a_mark_without_a_label_has_the_signs_of_the_one_before_it() -> None:
    rows = [{"x": x, "y": 1e13, "card": card} for card, x in (("one", 10.0), ("two", 1000.0))]
    marks = (
        Points(Rows("", (("card", "one"),)), "x", "y", "along", Look("blue", "triangle")),
        Points(Rows("", (("card", "two"),)), "x", "y", "", Look("red", "triangle")),
        Points(Rows("", (("card", "two"),)), "x", "y", "others", Look("red", "square")),
    )
    lines = chart_text(Chart("Two", "", (Panel(WIDE, HIGH, marks),)), rows, 80, 20, False).split("\n")
    (row,) = [line for line in lines[1:-2] if "A" in line]
    assert (row.count("A"), row.count("B"), row.count("C")) == (2, 1, 0)
    assert lines[-1] == "A along  B others"


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_ascii_has_the_same_lines(name: str, panel: int) -> None:
    chart = sample_charts.CHARTS[name]
    text = chart_text(chart, sample_charts.RESULTS, 80, 24, False, panel)
    ascii_text = chart_text(chart, sample_charts.RESULTS, 80, 24, False, panel, ascii_only=True)
    assert ascii_text.isascii()
    assert "?" not in ascii_text
    assert list(map(len, ascii_text.split("\n"))) == list(map(len, text.split("\n")))


def test_nothing_is_left_from_one_chart_to_the_next() -> None:
    first = [chart_text(sample_charts.CHARTS[name], sample_charts.RESULTS, 80, 24, True, at) for name, at in PANELS]
    again = [chart_text(sample_charts.CHARTS[name], sample_charts.RESULTS, 80, 24, True, at) for name, at in PANELS]
    assert again == first


def test_plotext_waits_until_something_is_drawn() -> None:
    code = "import sys, mla_calc.report.drawing.text, mla_calc.report.terminal; print('plotext' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


LONG = (
    "The ridge lies at 295.3 metres per litre: the hose binds the pumps that are near, and the motor those afar. " * 2
)


def test_a_report_in_a_pipe_ends_with_a_screen_of_chart_and_sentence() -> None:
    lines = to_text(replace(sample_charts.REPORT, sentence=LONG), False).split("\n")
    assert lines.pop() == ""
    screen = lines[-24:]
    assert screen[0] == "lift, Tl/s   Pumps under the roof"
    assert "H measured" in screen[-5]
    assert screen[-4] == ""
    assert " ".join(screen[-3:]).split() == LONG.split()
    assert max(map(len, screen)) <= 80
    assert lines[:4] == ["Fen-V3   8 pumps", "", "note: The numbers are made up.", ""]


def test_each_panel_is_shown_and_the_last_fills_the_screen() -> None:
    lines = to_text(replace(sample_charts.REPORT, chart=sample_charts.SIDE_BY_SIDE), False).split("\n")
    assert [line for line in lines if line.startswith("lift, Tl/s")] == ["lift, Tl/s   near", "lift, Tl/s   far"]
    assert lines[-25] == "lift, Tl/s   far"


def on_terminal(report: Report, width: int, height: int, **options: Any) -> list[str]:
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        height=height,
        force_terminal=True,
        color_system="standard",
        highlight=False,
        **options,
    )
    terminal.show(report, False, console)
    return buffer.getvalue().split("\n")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_a_terminal_shows_all_of_it_above_the_prompt(width: int, height: int) -> None:
    lines = [ESCAPE.sub("", line) for line in on_terminal(sample_charts.REPORT, width, height)]
    screen = lines[-height:]
    assert screen[0] == "lift, Tl/s   Pumps under the roof"
    assert screen[-3:] == ["", "Pumps lift water.", ""]
    assert max(map(len, screen)) <= width


def test_no_color_means_no_escape_code_in_the_chart() -> None:
    lines = on_terminal(sample_charts.REPORT, 80, 24, no_color=True)
    assert not any("\x1b" in line for line in lines[-24:])
    assert any("\x1b[94m" in line for line in on_terminal(sample_charts.REPORT, 80, 24, no_color=False))


def test_an_output_that_has_no_unicode_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert to_text(sample_charts.REPORT, False).isascii()


def test_a_report_without_a_chart_is_printed_as_ever() -> None:
    expected = "Fen-V3   8 pumps\n\nPumps lift water.\n\nnote: The numbers are made up.\n"
    assert to_text(replace(sample_charts.REPORT, chart=None), False) == expected
    assert to_text(replace(sample_charts.REPORT, chart_on_terminal=False), False) == expected


def test_without_plotext_the_report_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotext", None)
    assert to_text(sample_charts.REPORT, False).split("\n")[-4:] == [
        "note: no chart: plotext is not installed, or was built for another system", "", "Pumps lift water.", "",
    ]  # fmt: skip


# --- under a roof


CEILING = {"slope": 4.8e12, "flat": 989.4e12}
"""An H200's, which meet at 206.1."""
ROOM = (Axis("x", "log", low=0.5, high=5e3), Axis("y", "log", unit=1e12, low=2e12, high=4e15))


def under_roof(*marks: Mark, points: list[dict[str, Any]]) -> tuple[Chart, dict[str, Any]]:
    roof = Roof("slope", "flat", "roof: 989.4 T, 4.8 T")
    return Chart("t", "", (Panel(*ROOM, (roof, *marks)),)), CEILING | {"points": points}


def rows_of(lines: list[str], sign: str) -> list[int]:
    """The rows of cells that have a sign, counted from the top."""
    floor = next(index for index, line in enumerate(lines) if "\u2514" in line)
    left = lines[floor].index("\u2514") + 1
    return [index for index in range(1, floor) if sign in lines[index][left:]]


def named(kind: str, **options: Any) -> Points:
    return Points(Rows("points", (("kind", kind),)), "x", "y", kind, **options)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize(("share", "low", "high"), [(0.61, 0, 99), (1.44, -99, 0)])
def test_no_sign_is_moved_across_a_roof(width: int, share: float, low: int, high: int) -> None:
    """One at 61 % of 989.4 T among four on the roof stands on it or below, one at 144 % on it or above."""
    points = [{"x": 900.0, "y": share * 989.4e12, "kind": "measured", "n": ""}]
    points += [{"x": x, "y": 989.4e12, "kind": "bound", "n": f"n{x}"} for x in (870.0, 890.0, 900.0, 930.0)]
    marks = (named("measured", rank=1), named("bound", text="n"))
    for height in range(14, 51, 3):
        lines = chart_text(*under_roof(*marks, points=points), width, height, False).split("\n")
        (roof,), (found,) = rows_of(lines, "1"), rows_of(lines, "A")
        assert low <= found - roof <= high, height
        for sign in "BCDE":
            assert rows_of(lines, sign) in ([roof], []), (sign, height)


@pytest.mark.parametrize("height", range(14, 51, 3))
def test_no_step_of_a_line_is_moved_across_a_roof(height: int) -> None:
    """Each step lies on the flat part, well right of 206.1."""
    steps = [{"x": 300.0 * 1.04**at, "y": 989.4e12, "kind": "step"} for at in range(12)]
    line = Line(Rows("points"), "x", "y", "line")
    lines = chart_text(*under_roof(line, points=steps), 80, height, False).split("\n")
    assert rows_of(lines, "a") == rows_of(lines, "1")


@pytest.mark.parametrize("many", [1, 5, 30])
def test_points_of_the_highest_rank_are_always_seen(many: int) -> None:
    above = [{"x": 20.0 * 1.2**at, "y": 1.3e15, "kind": "above"} for at in range(many)]
    others = [{"x": row["x"], "y": row["y"], "kind": "other", "n": "n"} for row in above]
    for sign in {"A"} if many < 13 else {"%"}:
        look = Look(marker="diamond")
        alone = chart_text(*under_roof(named("above", look=look, rank=2), points=above), 80, 20, False).split("\n")
        marks = (named("above", look=look, rank=2), named("other", text="n"), Line(Rows("points"), "x", "y", "l"))
        among = chart_text(*under_roof(*marks, points=[*above, *others]), 80, 22, False).split("\n")
        (row,), (crowded,) = rows_of(alone, sign), rows_of(among, sign)
        assert row == crowded
        spots = [[at for at, each in enumerate(line) if each == sign] for line in (alone[row], among[row])]
        assert spots[0] == spots[1] != []


def test_many_points_leave_a_letter_its_place() -> None:
    crowd = [{"x": 10.0 * 1.01**at, "y": y, "kind": "crowd"} for at in range(300) for y in (8e13, 1.5e14, 3e14, 6e14)]
    points = [*crowd, {"x": 40.0, "y": 1.5e14, "kind": "one", "n": "the one"}]
    marks = (named("crowd", look=Look(marker="plus"), rank=1), named("one", text="n"))
    lines = chart_text(*under_roof(*marks, points=points), 80, 20, False).split("\n")
    assert len(rows_of(lines, "A")) == 1
    assert "A the one" in lines[-1]


def test_the_key_tells_what_hides_a_sign() -> None:
    points = [{"x": 5.0, "y": 24e12, "kind": "few", "n": f"number {at}"} for at in range(12)]
    lines = chart_text(*under_roof(named("few", text="n"), points=points), 60, 24, False).split("\n")
    key = "\n".join(lines[next(at for at, line in enumerate(lines) if line.strip() == "x") :])
    hidden = [sign for sign in "ABCDEFGHIJKL" if not rows_of(lines, sign)]
    assert hidden
    for at, sign in enumerate("ABCDEFGHIJKL"):
        assert re.search(rf"{sign} number {at} \(at [A-L]\)", key.replace("\n", " ")) is not None or sign not in hidden
        assert f"{sign} number {at} (at" not in key or sign in hidden


# --- texts that must be read, and the key


def crossings(many: int, rules: int) -> tuple[Chart, dict[str, Any]]:
    """Lines whose solved points fall together at 100 and 480 T, and rules close to there."""
    names = [f"line {at}" for at in range(many)]
    points = [
        {"x": 100.0, "y": 4.8e14, "kind": name, "n": f"SOLVED {at}", "must": True} for at, name in enumerate(names)
    ]
    marks = [Line(Rows("points", (("kind", name),)), "x", "y", name, text="n", must="must") for name in names]
    upright = [Rule(f"rule{at}", "x", f"RULE {at} IS {{}}") for at in range(rules)]
    chart, results = under_roof(*upright, *marks, points=points)
    return chart, results | {f"rule{at}": 90.0 + at for at in range(rules)}


@pytest.mark.parametrize(("width", "height"), [(60, 16), (80, 24), (200, 50)])
def test_what_must_be_read_stands_at_its_place_or_in_the_key(width: int, height: int) -> None:
    many, rules = 14, 44
    chart, results = crossings(many, rules)
    lines = chart_text(chart, results, width, height, False, whole_key=True).split("\n")
    floor = next(at for at, line in enumerate(lines) if "\u2514" in line)
    key = "\n".join(lines[floor + 3 :])
    # 2 to 4,000 T on so many rows, and a point at 480
    at_point = floor - 1 - round(log10(480 / 2) / log10(4000 / 2) * (floor - 2))
    inside = 0
    for number in range(many):
        sign = "abcdefghijklmn"[number]
        rows = [at for at in range(1, floor) if re.search(rf"SOLVED {number}(?!\d)", lines[at])]
        inside += len(rows)
        assert all(abs(at - at_point) <= 1 for at in rows)
        assert rows or re.search(rf"{sign} SOLVED {number}(?!\d)", key)
    for number in range(rules):
        text = f"RULE {number} IS {90 + number}"
        assert any(text in line for line in lines[1:floor]) or f"\u250a {text}" in key
    assert 0 < inside < many
    assert "crossings: " in key
    assert ("ridges: " in key) == (height < 50)


def test_a_text_does_not_touch_the_sign_of_another() -> None:
    for x in range(60, 140, 4):
        points = [{"x": 100.0, "y": 9.9e13, "kind": "line", "n": "solved", "must": True}]
        points += [{"x": float(x), "y": y, "kind": "other"} for y in (5e13, 9.9e13, 2e14)]
        line = Line(Rows("points", (("kind", "line"),)), "x", "y", "line", text="n", must="must")
        lines = chart_text(*under_roof(line, named("other"), points=points), 80, 20, False).split("\n")
        (found,) = [re.search("(.)solved(.)", each + " ") for each in lines[:-1] if "solved" in each]
        assert found is not None
        assert not found[1].isalpha()
        assert not found[2].isalpha()


def series(many: int) -> tuple[Chart, dict[str, Any]]:
    names = [f"a line of some length number {at}" for at in range(many)]
    points = [{"x": 2.0 + at, "y": 1e13, "kind": name} for at, name in enumerate(names)]
    return under_roof(*(Line(Rows("points", (("kind", name),)), "x", "y", name) for name in names), points=points)


def test_a_whole_key_is_never_cut_and_its_chart_fits_a_screen() -> None:
    chart, results = series(24)
    cut = chart_text(chart, results, 80, 16, False)
    assert "more" in cut.split("\n")[-1]
    assert cut.count("\n") == 15
    lines = chart_text(chart, results, 80, 16, False, whole_key=True).split("\n")
    for at in range(24):
        assert any(re.search(rf"\b{'abcdefghijklmnopqrstuvwxyz'[at]} a line of some length number {at}\b", line)
                   for line in lines)  # fmt: skip
    floor = next(at for at, line in enumerate(lines) if "\u2514" in line)
    assert 8 < floor <= 16 - 3
    assert chart_text(*series(3), 80, 16, False) == chart_text(*series(3), 80, 16, False, whole_key=True)


def test_roofs_lose_their_numbers_in_the_key_before_a_line_loses_its_name() -> None:
    for many, numbers in ((9, True), (10, False)):
        lines = chart_text(*series(many), 80, 16, False).split("\n")
        assert ("1 \u2500\u2500 roof: 989.4 T, 4.8 T" in "\n".join(lines)) == numbers
        assert "1 \u2500\u2500 roof" in "\n".join(lines)
        assert f"number {many - 1}" in "\n".join(lines)
        assert "more" not in lines[-1]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_names_of_roofs_stand_where_they_have_room(size: tuple[int, int]) -> None:
    results = {"slope": 1e12, "flat": 5e14, "low": 4e10, "same": 5.0001e14}
    first = Roof("slope", "flat", "r", on_flat="first")
    second, third = Roof("low", "same", "s", on_flat="second"), Roof("low", "flat", "t", on_slope="third")
    lines = chart_text(Chart("t", "", (Panel(*ROOM, (first,)),)), results, *size, False).split("\n")
    (row,) = rows_of(lines, "first")
    assert lines[row].endswith(" first 1")
    axes = (replace(ROOM[0], high=1e6), ROOM[1])
    lines = chart_text(Chart("t", "", (Panel(*axes, (first, second, third)),)), results, *size, False).split("\n")
    (row,) = rows_of(lines, "first")
    assert " first, second " in lines[row]  # of those that share a row one name alone would be all of theirs
    assert len(rows_of(lines, "third")) == 1
    crowded = Panel(*axes, (first, replace(second, on_flat="a name that is much too long")))
    assert not rows_of(chart_text(Chart("t", "", (crowded,)), results, *size, False).split("\n"), "first")
