"""Charts by matplotlib: what is drawn are the results' numbers, nothing overlaps, the same chart makes the same bytes.

References are in tests/report/images; `python -m tests.report.test_picture` draws them anew, to be looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mla_calc.errors import InputError
from mla_calc.report.chart import Axis, Bars, Chart, Line, Panel, Points, Rows
from mla_calc.report.chart_data import categories, edges, limits, place
from mla_calc.report.drawing.cells import readable_on
from mla_calc.report.drawing.picture import figure_of, save_picture
from mla_calc.report.drawing.style import COLOURS, SIZES, TEXT_COLOURS, drawing_style
from tests.report.sample_charts import BYTES, CATEGORY_MAP, CHARTS, CURVES, GROUPED, PARTS, RESULTS, STEPS

ROOT = Path(__file__).parents[2]
IMAGES = Path(__file__).parent / "images"
REFERENCES = [
    ("roofline", "slide"),
    ("roofline", "column"),
    ("side-by-side", "slide"),
    ("curves", "column"),
    ("map", "slide"),
    ("category-map", "column"),
    ("stacked", "column"),
    ("grouped", "slide"),
]
REFERENCE_DPI = {"slide": 50, "column": 150}
MOST_RMS = 5.0
"""Of 255. Another version's antialiasing is below it, a line less is above."""


def by_gid(axes: Any, gid: str) -> list[Any]:
    """The artists of a mark: panel and mark are counted from 0."""
    return [item for item in axes.get_children() if item.get_gid() == gid]


def line_points(axes: Any, gid: str) -> list[tuple[float, float]]:
    (line,) = by_gid(axes, gid)
    return [(float(x), float(y)) for x, y in line.get_xydata()]


def texts_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend_of(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("size", ["slide", "column"])
def test_points_and_lines_are_the_records_in_the_axes_units(size: str) -> None:
    axes: Any = figure_of(CHARTS["roofline"], RESULTS, size).axes[0]
    steps = line_points(axes, "panel0-mark9")
    assert steps == [(step["head"], pytest.approx(step["lift"] / 1e12)) for step in STEPS]
    (near,) = by_gid(axes, "panel0-mark10")
    # largest first, and the pump whose head is not known is not there
    assert [(float(x), float(y)) for x, y in near.get_offsets()] == [(62, 190), (118, 310), (2.1, 6.8), (1.6, 5.4)]
    areas = [float(area) for area in near.get_sizes()]
    assert areas[0] / areas[2] == pytest.approx(0.61 / 0.10)
    assert areas[0] / areas[3] == pytest.approx(0.61 / 0.02)


def test_roofs_bend_where_slope_and_flat_meet() -> None:
    axes: Any = figure_of(CHARTS["roofline"], RESULTS).axes[0]
    low, high = axes.get_xlim()
    assert line_points(axes, "panel0-mark1") == [
        (low, pytest.approx(3.35 * low)),
        (pytest.approx(989.4 / 3.35), pytest.approx(989.4)),
        (high, pytest.approx(989.4)),
    ]
    (fast,), (measured,) = by_gid(axes, "panel0-mark2"), by_gid(axes, "panel0-mark3")
    assert fast.get_xydata()[1] == pytest.approx([1978.9 / 3.35, 1978.9])
    assert measured.get_xydata()[1] == pytest.approx([790 / 2.98, 790])
    assert (fast.get_linestyle(), measured.get_linestyle()) == ("-", "--")


def test_rules_stand_at_their_value_with_its_number() -> None:
    axes: Any = figure_of(CHARTS["roofline"], RESULTS).axes[0]
    (rule,) = by_gid(axes, "panel0-mark5")
    assert set(rule.get_xdata()) == {RESULTS["ceilings"]["ridge"]}
    assert {"ridge 295.3 m/l", "ridge 590.7 m/l", "measured ridge 265.1 m/l"} <= set(texts_of(axes))
    per_tank: Any = figure_of(CURVES, RESULTS).axes[0]
    (limit,) = by_gid(per_tank, "panel0-mark3")
    assert set(limit.get_ydata()) == {24.0}  # 25769803776 bytes in GiB
    assert "limit 24.0 GiB" in texts_of(per_tank)


@pytest.mark.parametrize("size", ["slide", "column"])
def test_what_is_not_known_is_left_out(size: str) -> None:
    figure: Any = figure_of(CHARTS["roofline"], RESULTS, size)
    axes = figure.axes[0]
    assert by_gid(axes, "panel0-mark4") == []  # a roof
    assert by_gid(axes, "panel0-mark8") == []  # a rule
    assert "not known" not in texts_of(axes)
    assert "dry" not in texts_of(axes)
    assert "of a hose that is not known" not in legend_of(figure)
    valves = by_gid(figure_of(GROUPED, RESULTS, size).axes[0], "panel0-mark2")
    assert len(valves) == sum(part["valve"] is not None for part in PARTS) == 3


def test_panels_of_their_own_draw_their_own_keys() -> None:
    left, right = figure_of(CURVES, RESULTS).axes
    for axes, key, panel in ((left, "per_tank", 0), (right, "all", 1)):
        for mark, kind in enumerate(("split", "kept whole")):
            expected = [(each["tanks"], each[key] / 2**30) for each in BYTES if each["kind"] == kind]
            assert line_points(axes, f"panel{panel}-mark{mark}") == pytest.approx(expected)
    assert left.get_ylim() != right.get_ylim()


def test_shared_panels_have_the_same_ends() -> None:
    near, far = figure_of(CHARTS["side-by-side"], RESULTS).axes
    assert (near.get_xlim(), near.get_ylim()) == (far.get_xlim(), far.get_ylim())


@pytest.mark.parametrize("size", ["slide", "column"])
def test_stacked_bars_lie_end_to_end_and_every_number_is_written(size: str) -> None:
    axes: Any = figure_of(CHARTS["stacked"], RESULTS, size).axes[0]
    for at, name in enumerate(("pipe", "joint", "valve")):
        bars = by_gid(axes, f"panel0-mark{at}")
        assert [bar.get_width() for bar in bars] == pytest.approx([part[name] for part in PARTS if part[name]])
    mill = [by_gid(axes, f"panel0-mark{at}")[1] for at in range(3)]
    assert [bar.get_x() for bar in mill] == pytest.approx([0, 70_272, 79_372])
    written = " ".join(texts_of(axes))
    for part in PARTS:
        for name in ("pipe", "joint", "valve"):
            assert part[name] is None or f"{part[name]:,} B" in written
    assert axes.get_xlim()[1] > 92_400 + 3_100 + 12_000


def test_grouped_bars_end_at_their_values_on_a_log_axis() -> None:
    axes: Any = figure_of(GROUPED, RESULTS).axes[0]
    low = axes.get_xlim()[0]
    for at, name in enumerate(("pipe", "joint", "valve")):
        bars = by_gid(axes, f"panel0-mark{at}")
        assert [bar.get_x() for bar in bars] == pytest.approx([low] * len(bars))
        ends = [bar.get_x() + bar.get_width() for bar in bars]
        assert ends == pytest.approx([part[name] for part in PARTS if part[name]])
    assert [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()] == [part["who"] for part in PARTS]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first is at the top


def cells_of(axes: Any) -> dict[tuple[float, float], Any]:
    """By the middle of the cell."""
    found = by_gid(axes, "panel0-mark0")
    return {(cell.get_x() + cell.get_width() / 2, cell.get_y() + cell.get_height() / 2): cell for cell in found}


def test_cells_have_their_ratios_colour_and_text() -> None:
    axes: Any = figure_of(CATEGORY_MAP, RESULTS).axes[0]
    cells = cells_of(axes)
    assert len(cells) == 15  # of 16 one is not known
    assert (3, 3) not in cells
    deep, pale = cells[3, 0], cells[3, 2]  # 19.04 times and 1.036 times
    for above in (deep, pale):
        red, _, blue, _ = above.get_facecolor()
        assert blue > red
        assert not above.get_hatch()
    assert min(deep.get_facecolor()) < min(pale.get_facecolor())
    below = cells[0, 3]  # 0.298 times
    assert below.get_facecolor()[0] > below.get_facecolor()[2]
    assert below.get_hatch()
    assert {"0.298x", "1.036x", "19.04x"} <= set(texts_of(axes))


def test_a_map_says_what_its_sides_mean_and_names_its_rules() -> None:
    figure: Any = figure_of(CHARTS["map"], RESULTS)
    assert legend_of(figure) == ["screw pump faster", "piston pump faster", "measured boundary"]
    assert "small house, from 128" in texts_of(figure.axes[0])
    boundary = line_points(figure.axes[0], "panel0-mark2")
    assert boundary == [(1024, 68), (4096, 84), (16_384, 109)]  # the fourth is not known


def test_a_legend_lies_below_the_panels() -> None:
    for chart in CHARTS.values():
        figure: Any = figure_of(chart, RESULTS)
        for legend in figure.legends:
            lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
            assert legend.get_window_extent().y1 <= lowest + 1


def visible(figure: Any) -> list[Any]:
    """All texts that are drawn: labels of ticks beyond an axis' ends never are."""
    from matplotlib.text import Text

    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    beyond = {id(label) for axis in axes for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)}
    beyond -= {id(label) for axis in axes for label in tick_labels(axis)}
    found = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    return [text for text in found if id(text) not in beyond]


def tick_labels(axis: Any) -> list[Any]:
    """The labels of ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    labels = zip(axis.get_ticklabels(), axis.get_majorticklocs(), strict=False)
    return [label for label, at in labels if label.get_text() and label.get_visible() and low <= at <= high]


@pytest.mark.parametrize("size", ["slide", "column"])
@pytest.mark.parametrize("name", CHARTS)
def test_no_text_leaves_the_figure_and_no_tick_labels_touch(name: str, size: str) -> None:
    figure: Any = figure_of(CHARTS[name], RESULTS, size)
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    for text in visible(figure):
        extent = text.get_window_extent()
        inside = extent.x0 >= -1 and extent.y0 >= -1 and extent.x1 <= width + 1 and extent.y1 <= height + 1
        assert inside, text.get_text()
    for axes in figure.axes:
        for axis, end in ((axes.xaxis, "x"), (axes.yaxis, "y")):
            extents = [label.get_window_extent() for label in tick_labels(axis)]
            spans = sorted((getattr(each, f"{end}0"), getattr(each, f"{end}1")) for each in extents)
            assert all(start >= ended for (_, ended), (start, _) in pairwise(spans)), (name, end)


@pytest.mark.parametrize("size", ["slide", "column"])
@pytest.mark.parametrize("name", ["roofline", "side-by-side", "curves"])
def test_texts_in_a_panel_do_not_overlap(name: str, size: str) -> None:
    for axes in figure_of(CHARTS[name], RESULTS, size).axes:
        shown: list[Any] = [text for text in axes.texts if text.get_text()]
        extents = [text.get_window_extent() for text in shown]
        for at, one in enumerate(extents):
            for other_at in range(at + 1, len(extents)):
                other = extents[other_at]
                across = min(one.x1, other.x1) - max(one.x0, other.x0)
                up = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert across <= 1 or up <= 1, (shown[at].get_text(), shown[other_at].get_text())


@pytest.mark.parametrize("size", ["slide", "column"])
def test_the_first_and_last_point_of_a_line_have_their_text(size: str) -> None:
    axes: Any = figure_of(CHARTS["roofline"], RESULTS, size).axes[0]
    assert {"1", "1,024"} <= set(texts_of(axes))
    assert any(getattr(text, "arrow_patch", None) is not None for text in axes.texts)


def test_sizes_are_a_slide_and_a_column() -> None:
    slide, column = (figure_of(CHARTS["curves"], RESULTS, size) for size in ("slide", "column"))
    assert list(slide.get_size_inches()) == pytest.approx([12.8, 7.2])
    assert column.get_figwidth() == pytest.approx(3.5)
    smallest = min(text.get_fontsize() for text in visible(column))
    assert 5.5 <= smallest <= 6.5
    one = figure_of(CHARTS["map"], RESULTS, "column")
    assert 2.2 < one.get_figheight() < 3.2 < column.get_figheight()


def test_an_unknown_size_names_the_option() -> None:
    with pytest.raises(InputError, match=r"--size 'slides': one of slide, column is accepted") as caught:
        figure_of(CHARTS["map"], RESULTS, "slides")
    assert caught.value.hint == "did you mean slide?"


@pytest.mark.parametrize(("name", "size"), REFERENCES)
def test_it_looks_like_its_reference(name: str, size: str, tmp_path: Path) -> None:
    from matplotlib.testing.compare import compare_images

    reference, drawn = tmp_path / "reference.png", tmp_path / "drawn.png"
    reference.write_bytes((IMAGES / f"{name}-{size}.png").read_bytes())
    draw_reference(CHARTS[name], size, drawn)
    assert compare_images(str(reference), str(drawn), MOST_RMS) is None


def test_a_line_less_does_not_look_like_the_reference(tmp_path: Path) -> None:
    from matplotlib.testing.compare import compare_images

    panel = CURVES.panels[0]
    less = replace(CURVES, panels=(replace(panel, marks=panel.marks[:3]), CURVES.panels[1]))
    reference, drawn = tmp_path / "reference.png", tmp_path / "drawn.png"
    reference.write_bytes((IMAGES / "curves-column.png").read_bytes())
    draw_reference(less, "column", drawn)
    assert compare_images(str(reference), str(drawn), MOST_RMS) is not None


def draw_reference(chart: Chart, size: str, path: Path) -> None:
    with drawing_style(SIZES[size]):
        figure_of(chart, RESULTS, size).savefig(path, dpi=REFERENCE_DPI[size], metadata={"Software": None})


DRAW_ALL = """
import sys
from pathlib import Path
from mla_calc.report.drawing.picture import save_picture
from tests.report.sample_charts import CHARTS, RESULTS
for name in ("roofline", "map", "stacked"):
    for suffix in ("svg", "pdf", "png"):
        save_picture(CHARTS[name], RESULTS, Path(sys.argv[1]) / f"{name}.{suffix}", suffix, "column")
assert "matplotlib.pyplot" not in sys.modules
"""


def test_same_chart_same_bytes_whatever_the_process_and_the_users_settings(tmp_path: Path) -> None:
    """Another hash seed, another matplotlibrc: neither may show."""
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 30\nsavefig.bbox: tight\nsvg.fonttype: none\naxes.grid: False\nhatch.color: red\n")
    folders = []
    for seed, more in (("1", {}), ("2", {"MATPLOTLIBRC": str(settings)})):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, **more}
        subprocess.run([sys.executable, "-c", DRAW_ALL, str(folder)], cwd=ROOT, env=environment, check=True)
        folders.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(folders[0]) == 9
    assert [name for name in folders[0] if folders[0][name] != folders[1][name]] == []


def test_a_file_says_no_date(tmp_path: Path) -> None:
    for suffix in ("svg", "pdf"):
        save_picture(CHARTS["curves"], RESULTS, tmp_path / f"a.{suffix}", suffix, "slide")
    names = {element.tag.rpartition("}")[2] for element in ET.parse(tmp_path / "a.svg").iter()}
    assert not names & {"date", "text"}
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_every_colour_of_text_reads_on_white() -> None:
    for name, colour in TEXT_COLOURS.items():
        assert contrast_with_white(colour) >= 4.5, name  # WCAG 2.1, small text
    assert readable_on(COLOURS["blue"]) == "white"
    assert readable_on(COLOURS["orange"]) != "white"


def contrast_with_white(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


# what a chart draws, before any renderer


def test_numbers_of_a_category_axis_rise_and_texts_keep_their_order() -> None:
    assert categories(CATEGORY_MAP.panels[0], RESULTS, "y") == [1, 32, 128, 512]
    assert categories(GROUPED.panels[0], RESULTS, "y")[0] == "Cathedral spring"


def test_a_place_between_two_categories_is_logarithmic() -> None:
    assert place([1, 16, 64], 16) == 1
    assert place([1, 16, 64], 4) == pytest.approx(0.5)  # the geometric mean of 1 and 16
    assert place([1, 16, 64], 128) == pytest.approx(2.5)
    assert place(["a", "b"], "b") == 1
    assert place(["a", "b"], 3) is None
    assert place([4], 3) is None


def test_edges_of_cells_are_halfway_on_their_scale() -> None:
    assert edges([1, 4, 16], Axis("", "log")) == pytest.approx([0.5, 2, 8, 32])
    assert edges([3, 1, 2], Axis("", "linear")) == pytest.approx([0.5, 1.5, 2.5, 3.5])


def test_ends_of_stacked_bars_hold_their_sum() -> None:
    (low, high), _ = limits(CHARTS["stacked"].panels, RESULTS)
    assert low == 0
    assert high == pytest.approx(107_500 * 1.06)


def test_an_empty_mark_draws_nothing() -> None:
    none = Rows("pumps", (("place", "nowhere"),))
    marks = (Line(Rows("steps"), "head", "lift"), Line(none, "head", "lift", "a"), Points(none, "head", "lift", "b"))
    figure: Any = figure_of(Chart("t", "c", (Panel(Axis("x", "log"), Axis("y", "log"), marks),)), RESULTS)
    assert [len(by_gid(figure.axes[0], f"panel0-mark{at}")) for at in range(3)] == [1, 0, 0]
    assert legend_of(figure) == []


def test_many_panels_stand_in_rows() -> None:
    panel = CURVES.panels[0]
    figure: Any = figure_of(Chart("t", "c", (panel,) * 4), RESULTS)
    tops = [round(axes.get_position().y1, 3) for axes in figure.axes]
    assert tops[0] == tops[1] > tops[2] == tops[3]


def test_long_labels_are_broken_and_stay_inside() -> None:
    panel = CURVES.panels[0]
    long = Axis("bytes of all tanks that a house of the upper town keeps filled, GiB", "log", 2.0**30)
    label = "what is split over the tanks, counted once for each house that draws from any of them"
    marks = (replace(panel.marks[0], label=label), *panel.marks[1:])
    figure: Any = figure_of(Chart("t", "c", (replace(panel, y=long, marks=marks),)), RESULTS, "column")
    assert legend_of(figure)[0].replace("\n", " ") == label
    for text in visible(figure):
        extent = text.get_window_extent()
        assert extent.x0 >= -1, text.get_text()
        assert extent.y0 >= -1, text.get_text()
        assert extent.x1 <= figure.bbox.width + 1, text.get_text()
    name = figure.axes[0].yaxis.label
    assert name.get_text().replace("\n", " ") == long.label
    assert name.get_window_extent().height <= figure.axes[0].get_window_extent().height


def test_a_category_without_a_bar_keeps_its_place() -> None:
    bars = Bars(Rows("parts"), "who", "valve", "bytes")
    figure: Any = figure_of(Chart("t", "c", (Panel(Axis("g"), Axis("", "category"), (bars,)),)), RESULTS)
    middles = [bar.get_y() + bar.get_height() / 2 for bar in by_gid(figure.axes[0], "panel0-mark0")]
    assert middles == pytest.approx([0, 1, 3])
    assert len(figure.axes[0].get_yticklabels()) == 4


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, size in REFERENCES:
        draw_reference(CHARTS[name], size, IMAGES / f"{name}-{size}.png")
