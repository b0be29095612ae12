"""The figures of a validate run: what is drawn are the records' numbers, and the same run draws the same bytes.

Everything is drawn from a synthetic run; expected values come from its own formulas or from the GPU's datasheet.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

from mla_calc.hardware.load import load_gpu
from mla_calc.validate.compare import Comparison
from mla_calc.validate.crossing import Crossing
from mla_calc.validate.crossover_map import Duel, Ladder, crossover_figure, duels
from mla_calc.validate.decode_map import Fraction, efficiency_figure, fractions, kernel_letters, regular_grid
from mla_calc.validate.figures import save
from mla_calc.validate.prediction_figure import predicted_figure
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
    left, kernels, paths = DRAWINGS["bound"](RUN, COMPARISON).axes
    rows = of_series(name)
    assert len(rows) >= 4
    assert_allclose(drawn_points(left, name), sorted((bound_us(row), row.time_us) for row in rows), rtol=1e-9)
    over = sorted((bound_us(row), row.time_us / bound_us(row)) for row in rows)
    right = kernels if name in ("hopper", "tile64", "small") else paths
    assert_allclose(drawn_points(right, name), over, rtol=1e-9)


def test_rows_of_a_narrow_cache_are_hollow() -> None:
    left = DRAWINGS["bound"](RUN, COMPARISON).axes[0]
    rows = [row for row in RUN.rows if row.cache == "fp8"]
    assert len(drawn_points(left, "tile64 hollow")) == len(rows) == 4


def test_a_constant_time_is_a_line_in_every_panel() -> None:
    left, *ratios = DRAWINGS["bound"](RUN, COMPARISON).axes
    level = [line for line in left.lines if len(set(line.get_ydata())) == 1]
    assert [line.get_ydata()[0] for line in level] == pytest.approx([2.1])  # the run's launch_s
    for axes in ratios:
        products = [{round(x * y, 9) for x, y in line.get_xydata()} for line in axes.lines]
        assert [found for found in products if len(found) == 1] == [{2.1}]  # bound times (2.1 us over bound)
        assert axes.get_xlim() == left.get_xlim()


def test_what_has_the_fewest_points_lies_on_top() -> None:
    left = DRAWINGS["bound"](RUN, COMPARISON).axes[0]
    clouds = sorted((item for item in left.collections if item.get_gid()), key=lambda item: item.get_zorder())
    sizes = [len(item.get_offsets()) for item in clouds]
    assert sizes == sorted(sizes, reverse=True)
    assert all(item.get_rasterized() for item in clouds)


def test_rows_that_the_fit_used_are_pale_and_below_those_held_out() -> None:
    _, kernels, _ = DRAWINGS["estimate"](RUN, COMPARISON).axes
    rows = of_series("hopper")
    held_out = [row for row in rows if (row.context // 1024 + row.batch) % 3 == 0]  # by the made-up estimate
    assert 0 < len(held_out) < len(rows)
    seen, held = (next(c for c in kernels.collections if c.get_gid() == name) for name in ("hopper seen", "hopper"))
    assert [len(seen.get_offsets()), len(held.get_offsets())] == [len(rows) - len(held_out), len(held_out)]
    assert seen.get_alpha() < held.get_alpha() / 2
    assert seen.get_zorder() < held.get_zorder()


def test_the_band_of_the_estimate_is_12_percent_in_every_panel() -> None:
    left, *ratios = DRAWINGS["estimate"](RUN, COMPARISON).axes
    slopes = {round(float(line.get_ydata()[0] / line.get_xdata()[0]), 9) for line in left.lines if line.get_xdata()[0]}
    assert slopes >= {0.88, 1.0, 1.12}
    for axes in ratios:
        assert sorted(line.get_ydata()[0] for line in axes.lines) == pytest.approx([0.88, 1.0, 1.12])


def test_an_estimate_is_drawn_only_for_rows_that_have_one() -> None:
    some = [replace(cell, prediction=None) if cell.row.scope == "naive" else cell for cell in COMPARISON.rows]
    figure: Any = predicted_figure(RUN, some, "estimate")
    left, *ratios = figure.axes
    names = {item.get_gid().removesuffix(" seen") for item in left.collections}
    assert names == {"hopper", "tile64", "tile64 hollow", "small", "absorbed path"}
    shown = [y for axes in ratios for item in axes.collections if item.get_gid() for _, y in item.get_offsets()]
    assert len(shown) == sum(row.scope != "naive" for row in RUN.rows)
    assert all(0.94 < ratio < 1.06 for ratio in shown)  # the synthetic wobble is 5 %
    for axes in ratios:
        assert sum(axes.get_ylim()) == pytest.approx(2)


def test_roofline_points_are_intensity_and_rate_and_colour_is_bytes() -> None:
    wide, narrow = DRAWINGS["roofline"](RUN, COMPARISON).axes[:2]
    assert [axes.get_title(loc="left") for axes in (wide, narrow)] == ["16-bit cache", "fp8 cache"]
    for name in ("hopper", "small", "tile64"):
        expected = []
        for row in of_series(name):
            ((flop, size),) = counts(row)
            expected.append((flop / size, flop / row.time_us / 1e6))  # FLOP per us are MFLOP/s; in TFLOP/s
        assert_allclose(drawn_points(wide, name), sorted(expected), rtol=1e-9)
    (cloud,) = [item for item in wide.collections if item.get_gid() == "small"]
    sizes = sorted(size / 1e6 for row in of_series("small") for _, size in counts(row))
    assert_allclose(sorted(map(float, cloud.get_array())), sizes, rtol=1e-9)
    assert [item.get_gid() for item in narrow.collections if item.get_gid()] == ["tile64"]


def test_a_kernel_that_is_not_picked_is_faint_below_the_others_in_the_roofline() -> None:
    cells = [
        replace(cell, row=replace(cell.row, picked=cell.row.kernel != "tile64"))
        for cell in COMPARISON.rows
        if cell.row.cache == "bf16"
    ]
    figure: Any = roofline_figure(RUN, load_gpu("h200"), cells)
    clouds = {item.get_gid(): item for item in figure.axes[0].collections if item.get_gid()}
    assert set(clouds) == {"hopper", "small", "tile64 aside"}
    assert clouds["tile64 aside"].get_alpha() < 0.5
    assert clouds["tile64 aside"].get_zorder() < clouds["hopper"].get_zorder()
    assert "faint: not the kernel picked" in legend_texts(figure)
    assert "faint: not the kernel picked" not in legend_texts(DRAWINGS["roofline"](RUN, COMPARISON))


def legend_texts(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_roofs_bend_at_the_ridge_and_no_point_is_above() -> None:
    for axes in DRAWINGS["roofline"](RUN, COMPARISON).axes[:2]:
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
        ("datasheet, bf16 and fp16: 4.8 TB/s, 989.4 TFLOP/s", 989.4e12),
        ("datasheet, fp8: 4.8 TB/s, 1979 TFLOP/s", 1978.9e12),
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
    half = [replace(row, dtype="fp16") for row in rows if row.scope == "absorbed"]
    assert duels([*half, *(row for row in rows if row.scope == "naive")], "naive", 1) == []
    assert Duel(16, 4096, 64, 90 / 40).text == "A 2.2"
    assert Duel(16, 4096, 64, 30 / 40).text == "N 1.3"
    assert Duel(16, 4096, 64, 31.2).text == "A 31"


QUERIES = (1, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024)  # of the synthetic rows
CONTEXTS = (1024, 4096, 16_384, 65_536)


def height(queries: float) -> float:
    """Rows of equal height for every measured Q, logarithmic between two."""
    after = next((at for at, q in enumerate(QUERIES) if q > queries), len(QUERIES) - 1)
    low, high = QUERIES[after - 1], QUERIES[after]
    return after - 1 + math.log(queries / low) / math.log(high / low)


def test_a_ladder_has_a_row_for_every_measured_q_and_is_logarithmic_between() -> None:
    ladder = Ladder((1, 16, 64, 96))
    assert [ladder.place(queries) for queries in (1, 16, 64, 96)] == pytest.approx([0, 1, 2, 3])
    assert ladder.place(4) == pytest.approx(0.5)  # the geometric mean of 1 and 16
    assert ladder.place(32) == pytest.approx(1.5)
    assert ladder.place(144) == pytest.approx(4)  # 96 * 96 / 64
    assert [ladder.holds(queries) for queries in (0.2, 0.3, 1, 117, 118)] == [False, True, True, True, False]
    assert Ladder((64,)).place(128) == pytest.approx(1)


def crossings_of(found: Comparison, naive: str, heads: int) -> list[Crossing]:
    return sorted((c for c in found.crossover if c.naive == naive and c.heads == heads), key=lambda c: c.context)


def test_crossover_map_has_a_cell_per_shape_and_the_boundaries_over_their_own_column() -> None:
    figure = DRAWINGS["crossover"](RUN, COMPARISON)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["16 heads per rank", "128 heads per rank"]
    for axes, heads in zip(figure.axes, (16, 128), strict=True):
        mine = [row for row in RUN.rows if row.kernel == "naive" and row.heads == heads]
        cells = sorted((patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in cells_of(axes))
        assert cells == sorted((CONTEXTS.index(row.context), QUERIES.index(row.queries)) for row in mine)
        texts = [text.get_position() for text in axes.texts if text.get_text()[:2] in ("A ", "N ")]
        assert sorted((round(x), round(y)) for x, y in texts) == cells  # in their own cell
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1k", "4k", "16k", "64k"]
        found = crossings_of(COMPARISON, "naive", heads)
        stairs = {item.get_label(): item.get_data() for item in axes.patches if hasattr(item, "get_data")}
        assert all(list(data.edges) == [-0.5, 0.5, 1.5, 2.5, 3.5] for data in stairs.values())
        # in the record: by FLOPs and, causal with the context fixed, by the datasheet's bounds
        for label, queries in (
            ("predicted by FLOPs", [item.flop_queries for item in found]),
            ("predicted by time", [item.time_queries for item in found]),
            ("measured", [item.measured_queries for item in found]),
        ):
            assert_allclose(stairs[label].values, [height(value or 0) for value in queries], rtol=1e-9)


def cells_of(axes: Any) -> list[Any]:
    return [patch for patch in axes.patches if hasattr(patch, "get_xy") and hasattr(patch, "get_width")]


def test_measured_points_stand_in_the_column_of_their_context_with_their_spread() -> None:
    """Once each stood one context further to the right."""
    figure = DRAWINGS["crossover"](RUN, COMPARISON)
    figure.draw_without_rendering()
    for axes, heads in zip(figure.axes, (16, 128), strict=True):
        found = crossings_of(COMPARISON, "naive", heads)
        (bars,) = axes.containers
        points = bars.lines[0]
        assert_allclose(
            list(map(float, points.get_ydata())), [height(item.measured_queries or 0) for item in found], rtol=1e-9
        )
        ends = [tuple(map(float, part[:, 1])) for part in bars.lines[2][0].get_segments()]
        spreads = [(height(item.low or 0), height(item.high or 0)) for item in found]
        assert_allclose(ends, spreads, rtol=1e-9)
        pixels = points.get_transform().transform(points.get_xydata().astype(float))[
            :, 0
        ]  # where they are drawn, not said to be
        columns = axes.transData.inverted().transform([(x, 0) for x in pixels])[:, 0]
        assert [round(column) for column in columns] == list(range(len(found)))


def overlapping(texts: Sequence[Any]) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    return [(one, other) for (one, a), (other, b) in itertools.combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.parametrize("contexts", [(1024, 2048, 4096, 8192, 16_384, 32_768, 65_536), (1500, 20_000)])
def test_no_texts_of_the_crossover_map_overlap(contexts: tuple[int, ...]) -> None:
    """Panels as a full run has them: the ranks between measured at fewer contexts and queries."""
    rows = [
        made_up(kernel, scope, heads, 1, queries, context)
        for heads in (16, 32, 64, 128)
        for context in (contexts if heads in (16, 128) else contexts[::3])
        for queries in (QUERIES if heads in (16, 128) else (1, 64, 128, 256, 512))
        for kernel, scope in (("hopper", "absorbed"), ("naive", "naive"))
    ]
    run = replace(RUN, rows=tuple(rows))
    figure: Any = crossover_figure(run, synthetic_comparison(run).crossover, "naive", 1, THRESHOLDS)
    figure.draw_without_rendering()
    assert "white: not measured" in figure.texts[1].get_text()
    assert len(figure.axes) == 4
    for axes in figure.axes:
        assert not overlapping([*axes.texts, *axes.get_xticklabels()])
        columns = axes.get_window_extent().width / len(axes.get_xticks())
        assert all(label.get_window_extent().width < columns for label in axes.get_xticklabels())
        points = axes.containers[0].lines[0]
        texts = [text.get_window_extent() for text in axes.texts if text.get_text()[:2] in ("A ", "N ")]
        for x, y in points.get_transform().transform(points.get_xydata()):
            assert not any(box.contains(x, y) for box in texts)
        levels = [item.get_data().values for item in axes.patches if hasattr(item, "get_data")]
        assert len(levels) == 3
        for column, level in ((at, value) for values in levels for at, value in enumerate(values)):
            x, y = axes.transData.transform((column - 0.12, level))
            assert not any(box.contains(x, y) for box in texts), "a line crosses a text"
    assert [len(axes.get_xticks()) for axes in figure.axes] == [
        len(contexts) if heads in (16, 128) else len(contexts[::3]) for heads in (16, 32, 64, 128)
    ]


def test_thresholds_are_lines_and_labelled_once() -> None:
    figure = DRAWINGS["crossover"](RUN, COMPARISON)
    for axes in figure.axes:
        level = {line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]}
        assert level == {QUERIES.index(1), QUERIES.index(128), QUERIES.index(512)}
    labels = [text for axes in figure.axes for text in texts_of(axes) if "MLA" in text]
    assert sorted(labels) == ["FLASHMLA\n128", "FLASH_ATTN_MLA\n512", "TRITON_MLA\n1"]


def test_a_threshold_below_the_measured_queries_has_no_line() -> None:
    few = replace(RUN, rows=tuple(row for row in RUN.rows if row.queries >= 64))
    figure: Any = crossover_figure(few, synthetic_comparison(few).crossover, "naive", 1, THRESHOLDS)
    last: Any = figure.axes[-1]
    assert {line.get_ydata()[0] for line in last.lines if list(line.get_xdata()) == [0, 1]} == {2, 7}  # of 64, 96, ...
    assert "TRITON_MLA\n1, beyond" in texts_of(last)


def test_a_crossover_that_was_not_met_is_a_gap() -> None:
    unmet = [
        replace(item, measured_queries=None, low=None, high=None, flop_queries=None) for item in COMPARISON.crossover
    ]
    axes: Any = crossover_figure(RUN, unmet, "naive", 1, THRESHOLDS).axes[0]
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
    assert "was fastest" in figure.get_supxlabel()


def test_decode_map_shows_the_kernel_that_is_picked_where_that_is_known() -> None:
    cells = [
        replace(cell, row=replace(cell.row, picked=cell.row.kernel == "tile64"))
        if cell.row.kernel in ("hopper", "tile64")
        else cell
        for cell in COMPARISON.rows
    ]
    found = {(item.heads, item.batch, item.context): item for item in fractions(cells)[0]}
    at = found[128, 32, 16_384]
    (row,) = [
        row
        for row in RUN.rows
        if (row.kernel, row.heads, row.batch, row.context, row.queries, row.cache)
        == ("tile64", 128, 32, 16_384, 1, "bf16")
    ]
    assert at.kernel == "tile64"  # though hopper is faster there
    assert at.fraction == pytest.approx(bound_us(row, 790e12 / PEAK, 4.51e12 / BANDWIDTH) / row.time_us)
    assert found[32, 1, 1024].kernel == "hopper"  # no other was timed there
    assert "is picked" in efficiency_figure(RUN, cells).get_supxlabel()


def full_grid() -> list[Fraction]:
    """As a full run measures: powers of two, and a few shapes between them."""
    powers = itertools.product((16, 128), (1, 2, 4, 8, 16, 32, 64, 128), (1024, 2048, 4096, 8192, 16_384))
    between = itertools.product((16, 128), (3, 12, 48, 96), (1500, 5000, 20_000, 50_000))
    return [Fraction(*key, "hopper", 0.5) for key in (*powers, *between)]


def test_the_regular_grid_leaves_out_what_few_cells_share() -> None:
    batches, contexts = regular_grid(full_grid())
    assert batches == [1, 2, 4, 8, 16, 32, 64, 128]
    assert contexts == [1024, 2048, 4096, 8192, 16_384]
    alone = [Fraction(16, 12, 5000, "small", 0.5)]
    assert regular_grid(alone) == ([12], [5000])
    assert regular_grid([item for item in full_grid() if item.batch < 64])[0] == [1, 2, 4, 8, 16, 32]
    holed = [item for item in full_grid() if (item.batch, item.context) != (128, 16_384)]  # did not fit the memory
    assert regular_grid(holed) == (batches, contexts)


def test_decode_map_draws_the_regular_grid_says_what_stands_aside_and_numbers_fit() -> None:
    axes_of = ((1, 2, 4, 8, 16, 32, 64, 128), (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536))
    regular = itertools.product((16, 32, 64, 128), *axes_of)
    between = itertools.product((16, 32, 64, 128), (3, 12, 48, 96), (1500, 5000, 20_000, 50_000))
    rows = [made_up("hopper", "attention", heads, batch, 1, context) for heads, batch, context in (*regular, *between)]
    rows += [made_up("small", "attention", 16, 1, 1, context) for context in axes_of[1]]
    run = replace(RUN, rows=tuple(rows))
    figure: Any = efficiency_figure(run, synthetic_comparison(run).rows)
    figure.draw_without_rendering()
    assert "64 cells of other batches and contexts not drawn" in figure.get_supxlabel()  # 4 x 4 x 4
    for axes in figure.axes[:4]:
        values = axes.collections[0].get_array()
        assert values.shape == (8, 7)
        assert not any(value != value for value in values.ravel())  # no stripes
        assert len(axes.texts) == 56
        (x0, y0), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)])
        for text in axes.texts:
            box = text.get_window_extent()
            assert box.width < 0.95 * (x1 - x0), text
            assert box.height < 0.9 * (y1 - y0), text


def test_numbers_of_the_decode_map_stand_out_from_their_cells() -> None:
    """WCAG asks for a contrast of 4.5 to 1 of text; grey in the middle of the scale allows no more than 4.2."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    def luminance(colour: Any) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    found, _ = fractions(COMPARISON.rows)
    figure = DRAWINGS["efficiency"](RUN, COMPARISON)
    for text in (text for axes in figure.axes for text in axes.texts):
        fraction = min((item.fraction for item in found), key=lambda at: abs(at - float(text.get_text().split()[0])))
        dark, light = sorted((luminance(text.get_color()), luminance(colormaps["cividis"](fraction))))
        assert (light + 0.05) / (dark + 0.05) > 4


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


def test_figures_of_a_full_run_are_small_enough_for_a_page(tmp_path: Path) -> None:
    """2,500 cells as paths make 1 MB; as an image they make a quarter of it."""
    grid = itertools.product((16, 32, 64, 128), (1, 2, 4, 8, 16, 32, 64, 128), range(1, 5), range(1, 20))
    rows = [made_up("hopper", "attention", heads, batch, q, 1536 * c) for heads, batch, q, c in grid]
    run = replace(RUN, rows=(*rows, *(row for row in RUN.rows if row.scope != "attention")))
    assert len(run.rows) > 2500
    found = synthetic_comparison(run)
    for name in ("bound", "estimate", "roofline"):
        save(DRAWINGS[name](run, found), tmp_path, name)
        assert (tmp_path / f"{name}.svg").stat().st_size < 300_000
        assert "<image" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


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
