"""The figure of ``roofline``, and that of ``intensity``: what must be read in it is there, and reads as its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli import intensity, intensity_figure
from mla_calc.cli.roofline import answer
from mla_calc.cli.roofline_figure import chart
from mla_calc.errors import InputError
from mla_calc.report.chart import Line, Mark, Points, Roof, Rule, Zones
from mla_calc.report.chart_data import drawn, number_at
from mla_calc.report.drawing.picture import figure_of
from mla_calc.report.drawing.text import chart_text
from mla_calc.report.record import Report, lookup

RUN = Path(__file__).parents[2] / "docs/measurements/h200/run.json"
SIZES = ("slide", "column")
LETTERS = {"tp": "TP", "batch": "B", "context": "S", "queries": "Q"}
ALL = "tp,batch,context,queries"
MANY: dict[str, dict[str, Any]] = {
    "one": {"gpu": "h100"},
    "early ridge": {"gpu": "h20"},
    "every axis": {"gpu": "h20", "over": ALL, "queries": "2"},
    "paths": {"gpu": "b200", "follow": "path", "over": ALL},
    "fp8": {"gpu": "b200", "mma_dtype": "fp8", "dtype": "fp8", "queries": "1,4,16"},
    "small model": {"model": "minicpm3-4b", "gpu": "mi300x"},
    "sparse": {"model": "dsv32", "gpu": "h100", "sparse": True, "context": "64k"},
    "overlay": {"gpu": "h100,h200,b200"},
    "panels": {"gpu": "h100,h200,b200", "layout": "panels"},
    "measured": {"gpu": "h200", "measured": RUN},
    "measured, one axis": {"gpu": "h200", "measured": RUN, "over": "queries"},
    "dtypes and levels": {"gpu": "b200", "mma_dtype": "bf16,fp8,fp4", "levels": "link,pcie"},
}


def report_of(**options: Any) -> Report:
    return answer(**({"model": "dsv3"} | options))


def results_of(report: Report) -> dict[str, Any]:
    assert isinstance(report.results, dict)
    return report.results


def marks(report: Report) -> list[Mark]:
    return [mark for panel in chart(report).panels for mark in panel.marks]


def texts_of(axes: Any) -> list[Any]:
    return [text for text in axes.texts if text.get_text()]


def crossings(report: Report) -> Counter[str]:
    """What is to be read of all solved crossings between the values that are drawn."""
    found: Counter[str] = Counter()
    for item in results_of(report)["trajectories"]:
        at = [point["intensity_flop_per_byte"] for point in item["points"]]
        if item["kernel"] != report.inputs["follow"] or item["axis"] not in report.inputs["drawn"]:
            continue
        if max(at) / min(at) <= 1.02:  # a place, no line
            continue
        values = [point["value"] for point in item["points"]]
        inside = [value for value in item["ridge_crossings"] if min(values) < value < max(values)]
        found.update(f"{LETTERS[item['axis']]} {value:,.4g}" for value in inside)
    return found


def ends_with(texts: list[str], wanted: str) -> int:
    return sum(text == wanted or text.endswith(" " + wanted) for text in texts)


# --- crossings


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", MANY)
def test_every_crossing_is_read_and_no_text_covers_it(case: str, size: str) -> None:
    report = report_of(**MANY[case])
    wanted = crossings(report)
    assert wanted
    figure: Any = figure_of(chart(report), results_of(report), size)
    shown = [text for axes in figure.axes for text in texts_of(axes)]
    for label, count in wanted.items():
        assert ends_with([text.get_text() for text in shown], label) >= count, label
    for axes in figure.axes:
        extents = [(text.get_text(), text.get_window_extent()) for text in texts_of(axes)]
        for at, (name, one) in enumerate(extents):
            for other_name, other in extents[at + 1 :]:
                across = min(one.x1, other.x1) - max(one.x0, other.x0)
                up = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert across <= 1 or up <= 1, (name, other_name)


@pytest.mark.parametrize("case", ["one", "early ridge", "overlay", "measured", "dtypes and levels"])
def test_every_crossing_is_read_in_a_terminal(case: str) -> None:
    report = report_of(**MANY[case])
    text = chart_text(chart(report), results_of(report), 80, 24, False)
    for label in crossings(report):
        assert label in text


# --- levels


@pytest.mark.parametrize("levels", ["link", "pcie", "pcie,link", "memory", "memory,memory"])
def test_memory_is_always_drawn_and_everything_goes_by_it(levels: str) -> None:
    report = report_of(gpu="h100", levels=levels)
    found = results_of(report)
    asked = {"memory", *levels.split(",")}
    assert sorted(report.inputs["levels"]) == sorted(asked)
    roofs = [(number_at(found, mark.slope), number_at(found, mark.flat)) for mark in marks(report)
             if isinstance(mark, Roof) and mark.look.dash == "solid"]  # fmt: skip
    assert len(roofs) == len(asked)
    assert (3.35e12, 989.4e12) in roofs
    (zones,) = [mark for mark in marks(report) if isinstance(mark, Zones)]
    assert number_at(found, zones.path) == pytest.approx(989.4 / 3.35)
    for mark in marks(report):
        if isinstance(mark, Line | Points):
            for row in drawn(found, mark):
                most = max(min(slope * row["intensity_flop_per_byte"], flat) for slope, flat in roofs)
                assert row["flop_per_s"] <= most * (1 + 1e-9)
    assert report.tables[0].headers[0].startswith("roofs")
    listed = {row[0].split(", ")[1] for row in report.tables[0].rows if isinstance(row[0], str)}
    assert listed == asked


def test_a_level_that_a_gpu_has_not_is_told() -> None:
    notes = report_of(gpu="rtx-4090", levels="link,pcie").notes
    assert [note for note in notes if "has no link or pcie bandwidth" in note]
    assert not [note for note in report_of(gpu="h100", levels="link,pcie").notes if "bandwidth: its roof" in note]


# --- roofs


def test_roofs_of_one_gpu_are_told_apart() -> None:
    report = report_of(gpu="b200", mma_dtype="bf16,fp8,fp4", levels="link,pcie")
    roofs = [mark for mark in marks(report) if isinstance(mark, Roof)]
    assert len({(mark.look.colour, mark.look.dash) for mark in roofs}) == len(roofs) == 8
    for mark in roofs:
        assert mark.look.dash == ("dashed" if "measured" in mark.label else "solid")
    assert {mark.on_flat for mark in roofs} >= {"bf16", "fp8", "fp4", "measured"}
    assert {mark.on_slope for mark in roofs} >= {"link", "pcie"}
    # a dtype's measured roof has its colour, but for the first, which is the darkest
    colours = {mark.label.split(",")[0]: mark.look.colour for mark in roofs if mark.look.dash == "solid"}
    for mark in roofs:
        name = mark.label.split(",")[0]
        if mark.look.dash == "dashed" and name != "bf16":
            assert mark.look.colour == colours[name]


@pytest.mark.parametrize("size", SIZES)
def test_a_roof_has_its_name_at_it(size: str) -> None:
    for options, names in (
        ({"gpu": "b200", "mma_dtype": "bf16,fp8,fp4", "levels": "link,pcie"}, {"bf16", "fp8", "fp4", "link", "pcie"}),
        ({"gpu": "h100,h200,b200"}, {"H100", "H200", "B200"}),
    ):
        report = report_of(**options)
        (axes,) = figure_of(chart(report), results_of(report), size).axes
        assert names <= {text.get_text() for text in texts_of(axes)}


def test_of_roofs_with_one_peak_the_one_below_is_wider() -> None:
    report = report_of(gpu="h100,h200,b200")  # 989.4, 989.4 and 2,250 TFLOP/s
    (axes,) = figure_of(chart(report), results_of(report)).axes
    found = {(text.get_gid() or ""): text for text in axes.get_lines()}
    widths = []
    for at, mark in enumerate(marks(report)):
        if isinstance(mark, Roof):
            widths.append(found[f"panel0-mark{at}"].get_linewidth())
    h200, b200, h100 = sorted(widths)[0], sorted(widths)[1], sorted(widths)[2]
    assert h100 >= 1.4 * h200
    assert h200 == b200
    names = [mark.label.split(":")[0] for mark in marks(report) if isinstance(mark, Roof)]
    assert widths[names.index("H100")] == h100
    assert names.index("H100") < names.index("H200")


def test_links_that_are_alike_are_both_seen() -> None:
    found = marks(report_of(gpu="h100,h200", levels="link"))  # 450 GB/s each
    links = [mark.look.weight for mark in found if isinstance(mark, Roof) and "link" in mark.label]
    assert links[0] > 1.4 * links[1]


# --- ridges


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", ["one", "panels", "measured"])
def test_a_ridges_number_stands_nearest_to_its_own_line(case: str, size: str) -> None:
    report = report_of(**MANY[case])
    drawn_chart, found = chart(report), results_of(report)
    for axes, panel in zip(figure_of(drawn_chart, found, size).axes, drawn_chart.panels, strict=True):
        rules = [mark for mark in panel.marks if isinstance(mark, Rule)]
        lines = [axes.transData.transform((number_at(found, mark.path) or 1.0, 1))[0] for mark in rules]
        assert len(rules) == 2
        for own, mark in zip(lines, rules, strict=True):
            words = mark.text.partition("{}")[0]
            (text,) = [text for text in texts_of(axes) if text.get_text().startswith(words)]
            extent = text.get_window_extent()
            away = [max(extent.x0 - line, line - extent.x1, 0.0) for line in lines]
            assert min(away) == max(extent.x0 - own, own - extent.x1, 0.0) > 0


# --- several GPUs in one panel


def test_an_overlay_says_whose_everything_is() -> None:
    report = report_of(gpu="h100,h200,b200")
    drawn_chart, found = chart(report), results_of(report)
    for gpu in report.inputs["gpu"]:
        assert gpu in drawn_chart.caption
    for mark in marks(report):
        if isinstance(mark, Line | Points):
            assert mark.key == "ink"
    for item in found["trajectories"]:
        for place in item["course"]:
            if place["at_ridge"]:
                assert place["label"].startswith(item["gpu"].split()[1] + " ")
            elif "H100" not in item["gpu"]:
                assert place["label"] == ""
            if place["label"]:
                assert ("naive" in place["label"]) == (item["path"] == "naive")
    alone = results_of(report_of(gpu="h100"))["trajectories"]
    assert not [place for item in alone for place in item["course"] if "naive" in place["label"]]


@pytest.mark.parametrize("options", [{"gpu": "h100,h200"}, {"gpu": "h100,h200", "layout": "panels"}, {"gpu": "h100"}])
def test_measured_roofs_are_drawn_or_their_absence_is_told(options: dict[str, Any]) -> None:
    report = report_of(**options)
    dashed = [mark for mark in marks(report) if isinstance(mark, Roof) and mark.look.dash == "dashed"]
    told = [note for note in report.notes if "datasheets' roofs alone are drawn" in note]
    assert bool(dashed) != bool(told)
    assert any("and is drawn" in note for note in report.notes) == bool(dashed)
    assert [item for item in results_of(report)["roofs"] if item["kind"] == "measured"]


def test_panels_share_their_key_and_the_caption_has_the_numbers() -> None:
    report = report_of(gpu="h100,h200,b200", layout="panels")
    drawn_chart = chart(report)
    for text in ("989.4 TFLOP/s, 3.35 TB/s", "989.4 TFLOP/s, 4.8 TB/s", "2,250 TFLOP/s, 7.7 TB/s"):
        assert text in drawn_chart.caption
    (legend,) = figure_of(drawn_chart, results_of(report), "column").legends
    tops = {round(text.get_window_extent().y0) for text in legend.get_texts()}
    assert len(tops) <= 5


# --- measurements and estimates


def test_measured_kernels_are_named(tmp_path: Path) -> None:
    labels = [mark.label for mark in marks(report_of(**MANY["measured"])) if isinstance(mark, Points)]
    assert "measured absorbed attention: hopper, small, tile64" in labels
    rows = "".join(f"k{at},16,1,1,4096,{at + 5}\n" for at in range(5))
    (tmp_path / "rows.csv").write_text("kernel,heads,batch,queries,context,time_us\n" + rows)
    few = report_of(gpu="h200", measured=tmp_path / "rows.csv")
    labels = [mark.label for mark in marks(few) if isinstance(mark, Points)]
    assert "measured absorbed attention: 5 kernels" in labels


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ({"gpu": "h200"}, False),
        ({"gpu": "h200", "measured": RUN}, True),
        ({"gpu": "h100,h200"}, True),
        ({"gpu": "h100,h200", "layout": "panels"}, False),
        ({"gpu": "h100,b200"}, False),  # neither is calibrated
    ],
)
def test_estimates_that_are_not_drawn_are_told(options: dict[str, Any], left_out: bool) -> None:
    report = report_of(**options)
    hollow = [mark for mark in marks(report) if isinstance(mark, Points) and "estimate" in mark.label]
    known = [point for point in results_of(report)["points"] if point["kind"] == "estimate"]
    assert bool(known) == (bool(hollow) or left_out)
    assert any("has no estimates" in note for note in report.notes) == left_out


def test_what_is_listed_twice_counts_once() -> None:
    once = results_of(report_of(gpu="h100", mma_dtype="bf16", tp="1,2"))
    assert results_of(report_of(gpu="h100,h100", mma_dtype="bf16,bf16", tp="1,2,2")) == once


# --- intensity


@pytest.mark.parametrize("size", SIZES)
def test_numbers_of_intensity_are_off_the_ridge_and_every_line_has_its_ends(size: str) -> None:
    report = intensity.answer("dsv3", gpu="h100", vs=["llama3-70b"], queries="1,2")
    drawn_chart = intensity_figure.chart(report)
    (axes,) = figure_of(drawn_chart, report.results, size).axes
    ridge = axes.transData.transform((1, 989.4 / 3.35))[1]
    shown = texts_of(axes)
    for text in shown:
        extent = text.get_window_extent()
        assert not extent.y0 < ridge < extent.y1, text.get_text()
    # 2 * 128 * (2 * 512 + 64) / 1152 and twice that, over TP 16; GQA has 8 queries to a head until TP passes 8 heads
    for number in ("241.8", "15.11", "483.6", "30.22", "8", "4", "16"):
        assert number in {text.get_text() for text in shown}
    for mark in drawn_chart.panels[0].marks:
        if isinstance(mark, Line):
            assert mark.text
            assert all(lookup(row, mark.text) for row in drawn(report.results, mark))


def test_the_caption_of_intensity_names_the_other_dtype() -> None:
    """fp8_ds_mla is a row of a latent: GQA has none, and is priced in bf16."""
    report = intensity.answer("dsv3", dtype="fp8_ds_mla", vs=["llama3-70b", "kimi-k2"])
    parts = intensity_figure.chart(report).caption.split("  ·  ")
    assert parts[0].endswith("fp8_ds_mla")
    assert "Llama-3-70B in bf16" in parts
    assert not [part for part in parts if "Kimi" in part]
    same = intensity.answer("dsv3", vs=["llama3-70b"])
    assert "Llama" not in intensity_figure.chart(same).caption


# --- what is read beside kernels and measured points


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", MANY)
def test_attention_of_both_paths_and_up_proj_are_named(case: str, size: str) -> None:
    report = report_of(**MANY[case])
    figure: Any = figure_of(chart(report), results_of(report), size)
    for axes in figure.axes:
        names = [name for text in texts_of(axes) for name in text.get_text().split(", ")]
        assert names.count("attention") == 2
        assert "up_proj" in names


@pytest.mark.parametrize(("count", "faint"), [(1, False), (60, False), (61, True), (1000, True)])
def test_few_measured_points_are_drawn_at_full_strength(count: int, faint: bool, tmp_path: Path) -> None:
    rows = [f"mine,128,1,1,{4096 + at},9" for at in range(count)]
    (tmp_path / "t.csv").write_text("\n".join(["kernel,heads,batch,queries,context,time_us", *rows]) + "\n")
    report = report_of(gpu="h200", measured=tmp_path / "t.csv")
    (mark,) = [mark for mark in marks(report) if isinstance(mark, Points) and mark.label.startswith("measured")]
    assert mark.look.faint == faint


def test_the_caption_says_which_step_is_whose(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("kernel,heads,batch,queries,context,time_us\nmine,64,2,3,8192,90\n")
    report = report_of(gpu="h200", measured=tmp_path / "t.csv")
    assert "kernels of 1 request, 1 query over 4,096 keys, TP 1" in chart(report).caption
    assert "measured: 64 heads, 2 requests, 3 queries over 8,192 keys" in chart(report).caption
    assert "measured: 1,024 steps" in chart(report_of(gpu="h200", measured=RUN)).caption
    assert "measured" not in chart(report_of(gpu="h200")).caption


# --- intensity


OTHERS = ["llama3-70b", "qwen3-235b", "gpt-oss-120b", "kimi-k2", "mistral-large-3", "glm-4.5"]


def intensity_lines(**options: Any) -> list[Line]:
    report = intensity.answer(**({"model": "dsv3", "gpu": "h100"} | options))
    return [mark for mark in intensity_figure.chart(report).panels[0].marks if isinstance(mark, Line)]


def test_looks_of_intensity_never_repeat() -> None:
    for queries in ("1", "1,2,4,8", "1:8:+1"):
        looks = [mark.look for mark in intensity_lines(vs=OTHERS, queries=queries)]
        assert len(set(looks)) == len(looks) > 4
        assert len({(look.colour, look.marker, look.dash, look.hollow) for look in looks}) == len(looks)


def test_more_lines_of_intensity_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(InputError, match="cannot tell 7 models at 40 steps apart"):
        intensity_lines(vs=OTHERS, queries="1:40:+1")


def test_lines_of_intensity_on_each_other_are_one() -> None:
    found = intensity_lines(model="dsv32", sparse=True, context="4k,64k", vs=["llama3-70b"])
    assert [mark.label for mark in found].count("Llama-3-70B") == 1
    assert len(found) == 3
