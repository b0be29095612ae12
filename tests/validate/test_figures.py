"""The figures of a validate run: what is drawn are the records' numbers, and the same run draws the same bytes.

Everything is drawn from a synthetic run; expected values come from its own formulas or from the GPU's datasheet.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

from mla_calc.hardware.load import load_gpu
from mla_calc.validate.compare import Comparison
from mla_calc.validate.crossover_map import Duel, crossover_figure, duels
from mla_calc.validate.decode_map import efficiency_figure, fractions, kernel_letters
from mla_calc.validate.figures import predicted_figure, save
from mla_calc.validate.record import MeasuredCeilings, Row, Run
from mla_calc.validate.roofline_figure import roofline_figure, roofs
from tests.validate.synthetic import (
    BANDWIDTH,
    PEAK,
    bound_us,
    counts,
    made_up,
    made_up_estimate,
    synthetic_comparison,
    synthetic_run,
)

ROOT = Path(__file__).parents[2]
THRESHOLDS = {1: "TRITON_MLA", 128: "FLASHMLA", 512: "FLASH_ATTN_MLA"}
RUN = synthetic_run(batches=(1, 32), contexts=(1024, 16_384))
COMPARISON = synthetic_comparison(RUN)

Drawing = Callable[[Run, Comparison], Any]
DRAWINGS: dict[str, Drawing] = {
    "bound": lambda run, found: predicted_figure(run, found.rows, "bound"),
    "estimate": lambda run, found: predicted_figure(run, found.rows, "estimate"),
    "roofline": lambda run, found: roofline_figure(run, load_gpu("h200"), found.rows),
    "crossover": lambda run, found: crossover_figure(run, found.crossover, "naive", 1, THRESHOLDS),
    "efficiency": lambda run, found: efficiency_figure(run, found.rows),
}


def drawn_points(axes: Any, name: str) -> list[tuple[float, float]]:
    """The points of the series called ``name``, sorted."""
    found = [item for item in axes.collections if item.get_gid() == name]
    assert len(found) == 1, name
    return sorted((float(x), float(y)) for x, y in found[0].get_offsets())


def texts_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def of_series(name: str) -> list[Row]:
    """Rows by the names that the figures give series."""
    wide = [row for row in RUN.rows if row.cache == "bf16"]
    if name == "absorbed path":
        return [row for row in wide if row.scope == "absorbed"]
    return [row for row in wide if row.scope != "absorbed" and row.kernel == name]


@pytest.mark.parametrize("name", ["hopper", "tile64", "small", "absorbed path", "naive", "naive_in_place"])
def test_points_are_bounds_and_times_of_the_records(name: str) -> None:
    left, right = DRAWINGS["bound"](RUN, COMPARISON).axes
    rows = of_series(name)
    assert len(rows) >= 4
    assert_allclose(drawn_points(left, name), sorted((bound_us(row), row.time_us) for row in rows), rtol=1e-9)
    over = sorted((bound_us(row), row.time_us / bound_us(row)) for row in rows)
    assert_allclose(drawn_points(right, name), over, rtol=1e-9)


def test_rows_of_a_narrow_cache_are_hollow() -> None:
    left, _ = DRAWINGS["bound"](RUN, COMPARISON).axes
    rows = [row for row in RUN.rows if row.cache == "fp8"]
    assert len(drawn_points(left, "tile64 hollow")) == len(rows) == 4


def test_a_constant_time_is_a_line_in_both_panels() -> None:
    left, right = DRAWINGS["bound"](RUN, COMPARISON).axes
    level = [line for line in left.lines if len(set(line.get_ydata())) == 1]
    assert sorted(line.get_ydata()[0] for line in level) == pytest.approx([2.1, 10.0])
    products = [{round(x * y, 9) for x, y in line.get_xydata()} for line in right.lines]
    assert {10.0} in products  # bound times (10 us over bound)
    assert {2.1} in products


def test_an_estimate_is_drawn_only_for_rows_that_have_one() -> None:
    some = [replace(cell, prediction=None) if cell.row.scope == "naive" else cell for cell in COMPARISON.rows]
    left, right = predicted_figure(RUN, some, "estimate").axes
    names = {item.get_gid() for item in left.collections}
    assert names == {"hopper", "tile64", "tile64 hollow", "small", "absorbed path"}
    ratios = [y for item in right.collections if item.get_gid() for _, y in item.get_offsets()]
    assert len(ratios) == sum(row.scope != "naive" for row in RUN.rows)
    assert all(0.94 < ratio < 1.06 for ratio in ratios)  # the synthetic wobble is 5 %
    low, high = right.get_ylim()
    assert low + high == pytest.approx(2)


def test_roofline_points_are_intensity_and_rate() -> None:
    axes = DRAWINGS["roofline"](RUN, COMPARISON).axes[0]
    for name in ("hopper", "small", "tile64"):
        expected = []
        for row in of_series(name):
            ((flop, size),) = counts(row)
            expected.append((flop / size, flop / row.time_us / 1e6))  # FLOP per us are MFLOP/s; in TFLOP/s
        assert_allclose(drawn_points(axes, name), sorted(expected), rtol=1e-9)


def test_roofs_bend_at_the_ridge_and_no_point_is_above() -> None:
    axes = DRAWINGS["roofline"](RUN, COMPARISON).axes[0]
    sheet, own = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert sheet.get_xydata()[1] == pytest.approx([PEAK / BANDWIDTH, 989.4])
    assert own.get_xydata()[1] == pytest.approx([790 / 4.51, 790])
    assert "ridge datasheet\n206.1 FLOP/B" in texts_of(axes)  # 989.4 / 4.8 = 206.125
    assert "ridge measured\n175.2 FLOP/B" in texts_of(axes)  # 790 / 4.51 = 175.17
    for x, y in (point for item in axes.collections if item.get_gid() for point in item.get_offsets()):
        assert y <= min(x * 4.8, 989.4)


def test_a_roof_needs_both_measured_parts() -> None:
    alone = replace(RUN, ceilings=MeasuredCeilings(read_bytes_per_s=4.51e12))
    found = roofs(alone, load_gpu("h200"), ["bf16", "fp16", "fp8"])
    assert [(roof.label, roof.flop_per_s) for roof in found] == [
        ("datasheet, bf16", 989.4e12),
        ("datasheet, fp8", 1978.9e12),
    ]


def test_duels_are_naive_over_the_fastest_absorbed() -> None:
    rows = [
        replace(made_up("small", "absorbed", 16, 1, 64, 4096), time_us=50.0),
        replace(made_up("hopper", "absorbed", 16, 1, 64, 4096), time_us=40.0),
        replace(made_up("naive", "naive", 16, 1, 64, 4096), time_us=90.0),
        replace(made_up("naive_in_place", "naive", 16, 1, 64, 4096), time_us=30.0),
        replace(made_up("naive", "naive", 16, 8, 64, 4096), time_us=9.0),  # another batch
        replace(made_up("naive", "naive", 32, 1, 64, 4096), time_us=9.0),  # no absorbed row
        replace(made_up("hopper", "absorbed", 32, 1, 64, 4096, cache="fp8"), time_us=9.0),  # nor one of its cache
    ]
    assert duels(rows, "naive", 1) == [Duel(16, 4096, 64, 90 / 40)]
    assert duels(rows, "naive_in_place", 1) == [Duel(16, 4096, 64, 30 / 40)]
    assert Duel(16, 4096, 64, 90 / 40).text == "A 2.2"
    assert Duel(16, 4096, 64, 30 / 40).text == "N 1.3"
    assert Duel(16, 4096, 64, 31.2).text == "A 31"


def test_crossover_map_has_a_box_per_shape_and_the_boundaries() -> None:
    figure = DRAWINGS["crossover"](RUN, COMPARISON)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["16 heads per rank", "128 heads per rank"]
    for axes, heads in zip(figure.axes, (16, 128), strict=True):
        mine = [row for row in RUN.rows if row.kernel == "naive" and row.heads == heads]
        places = sorted(text.get_position() for text in axes.texts if text.get_text()[:2] in ("A ", "N "))
        assert places == sorted((row.context, row.queries) for row in mine)
        lines = {line.get_label(): list(map(float, line.get_ydata())) for line in axes.lines}
        # in the record: by FLOPs and, causal with the context fixed, by the datasheet's bounds
        found = sorted(
            (c for c in COMPARISON.crossover if c.naive == "naive" and c.heads == heads), key=lambda c: c.context
        )
        assert lines["predicted by FLOPs"] == [item.flop_queries for item in found]
        assert lines["predicted by time"] == [item.time_queries for item in found]
        (bars,) = axes.containers
        assert list(bars.lines[0].get_ydata()) == [item.measured_queries for item in found]
        ends = [tuple(map(float, part[:, 1])) for part in bars.lines[2][0].get_segments()]
        assert_allclose(ends, [(item.low, item.high) for item in found], rtol=1e-9)


def test_thresholds_are_lines_and_labelled_once() -> None:
    figure = DRAWINGS["crossover"](RUN, COMPARISON)
    for axes in figure.axes:
        level = {line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]}
        assert level == {1, 128, 512}
    labels = [text for axes in figure.axes for text in texts_of(axes) if "MLA" in text]
    assert sorted(labels) == ["FLASHMLA\n128", "FLASH_ATTN_MLA\n512", "TRITON_MLA\n1"]


def test_a_crossover_that_was_not_met_is_a_gap() -> None:
    unmet = [
        replace(item, measured_queries=None, low=None, high=None, flop_queries=None) for item in COMPARISON.crossover
    ]
    axes = crossover_figure(RUN, unmet, "naive", 1, THRESHOLDS).axes[0]
    (bars,) = axes.containers
    assert all(value != value for value in bars.lines[0].get_ydata())


def test_decode_map_shows_the_fastest_kernel_over_the_measured_floor() -> None:
    found, measured = fractions(COMPARISON.rows)
    assert measured
    at = next(item for item in found if (item.heads, item.batch, item.context) == (128, 32, 16_384))
    rows = [row for row in RUN.rows if row.scope == "attention" and row.cache == "bf16" and row.queries == 1]
    mine = [row for row in rows if (row.heads, row.batch, row.context) == (128, 32, 16_384)]
    best = min(mine, key=lambda row: row.time_us)
    # measured ceilings of the synthetic run: 790 TFLOP/s and 4.51 TB/s
    assert at.kernel == best.kernel == "hopper"
    assert at.fraction == pytest.approx(bound_us(best, 790e12 / PEAK, 4.51e12 / BANDWIDTH) / best.time_us)
    figure = DRAWINGS["efficiency"](RUN, COMPARISON)
    shown = [float(text.split()[0]) for axes in figure.axes for text in texts_of(axes)]
    assert sorted(shown) == pytest.approx(sorted(item.fraction for item in found), abs=0.005)
    meshes = [axes.collections[0].get_array() for axes in figure.axes[:4]]
    assert sorted(float(value) for mesh in meshes for value in mesh.ravel()) == sorted(item.fraction for item in found)


def test_decode_map_without_measured_ceilings_says_datasheet() -> None:
    cells = [replace(cell, measured_bound_s=None) for cell in COMPARISON.rows]
    found, measured = fractions(cells)
    assert not measured
    assert all(0 < item.fraction < 1 for item in found)
    assert any("datasheet bound" in text.get_text() for text in efficiency_figure(RUN, cells).texts)


def test_letters_of_kernels_differ() -> None:
    assert kernel_letters(["hopper", "small", "hopper"]) == {"hopper": "h", "small": "s"}
    assert kernel_letters(["small", "sglang triton"]) == {"sglang triton": "a", "small": "b"}
    assert kernel_letters(["hopper", "hopper"]) == {}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_figure_says_what_it_is_of_and_clips_no_text(name: str) -> None:
    from matplotlib.text import Text

    figure = DRAWINGS[name](RUN, COMPARISON)
    figure.draw_without_rendering()
    said = " ".join(text.get_text() for text in figure.texts)
    for part in ("SYNTHETIC H200", "DeepSeek-V3", "bf16", "dense", RUN.id, "2026-11-30"):
        assert part in said
    width, height = figure.get_size_inches() * figure.dpi
    assert (width, height) == (1280, 720)
    for text in figure.findobj(Text):
        axes = text.axes
        hidden = axes is not None and (not axes.axison or not text.get_visible())
        if text.get_text().strip() and not hidden and text not in unseen_ticks(figure):
            box = text.get_window_extent()
            assert box.x0 >= -1, text
            assert box.x1 <= width + 1, text
            assert box.y0 >= -1, text
            assert box.y1 <= height + 1, text


def unseen_ticks(figure: Any) -> list[Any]:
    """Labels of ticks beyond an axis' limits, which are made and not drawn."""
    unseen = []
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    unseen += [tick.label1, tick.label2]
    return unseen


def test_one_row_is_drawn() -> None:
    run = replace(RUN, rows=(made_up("hopper", "attention", 16, 1, 1, 4096),))
    found = synthetic_comparison(run)
    for name in ("bound", "estimate", "roofline", "efficiency"):
        DRAWINGS[name](run, found).draw_without_rendering()


def test_png_is_1280_by_720_and_svg_has_no_date(tmp_path: Path) -> None:
    save(DRAWINGS["efficiency"](RUN, COMPARISON), tmp_path, "figure")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "figure.svg"]
    header = (tmp_path / "figure.png").read_bytes()[:24]
    assert struct.unpack(">II", header[16:24]) == (1280, 720)
    tree = ET.parse(tmp_path / "figure.svg")
    names = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert "path" in names
    assert not names & {"date", "text"}  # text is drawn as paths


DRAW_ALL = """
import sys
from pathlib import Path
from tests.validate.test_figures import COMPARISON, DRAWINGS, RUN, save
for name in ("bound", "crossover"):
    save(DRAWINGS[name](RUN, COMPARISON), Path(sys.argv[1]), name)
assert "matplotlib.pyplot" not in sys.modules
"""


def test_same_run_same_bytes_whatever_the_process_and_the_users_settings(tmp_path: Path) -> None:
    """Another hash seed, another matplotlibrc: neither may show."""
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "matplotlibrc").write_text("font.size: 30\nsavefig.bbox: tight\nsvg.fonttype: none\naxes.grid: False\n")
    folders = []
    for seed, more in (("1", {}), ("2", {"MATPLOTLIBRC": str(settings / "matplotlibrc")})):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, **more}
        subprocess.run([sys.executable, "-c", DRAW_ALL, str(folder)], cwd=ROOT, env=environment, check=True)
        folders.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert sorted(folders[0]) == ["bound.png", "bound.svg", "crossover.png", "crossover.svg"]
    assert folders[0] == folders[1]


def test_importing_the_page_imports_no_matplotlib() -> None:
    code = "import sys, mla_calc.validate.page; assert not {'matplotlib', 'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_made_up_estimates_are_near_the_made_up_times() -> None:
    """The fixture itself: a wobble of 5 % each way and nothing else."""
    for cell in COMPARISON.rows:
        assert cell.estimate_s is not None
        assert abs(cell.row.time_us * 1e-6 / cell.estimate_s - 1) < 0.051
    assert made_up_estimate.__doc__
