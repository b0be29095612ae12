"""A chart as PNG, SVG or PDF, by matplotlib. It knows nothing of what the chart is about."""

from __future__ import annotations

import warnings
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..chart import Bars, Cells, Chart, Line, Points, Roof, Rule, Zones
from ..chart_data import value
from ..record import Results
from .bars import MOST_IN_LINE, draw_bars
from .ceilings import draw_roof, draw_rule, draw_zones
from .cells import draw_cells, draw_key, known, name_rules, octaves_of
from .glyphs import drawable
from .legend import add_legend
from .marks import draw_line, draw_points
from .scales import set_scales, thin_ticks, turn_names, wrap_labels, wrap_title
from .sheet import Sheet, panel_limits
from .style import COLUMN, Size, drawing_style, fit_head, new_figure, size_named, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ACROSS = 3
"""Panels side by side on a slide."""
PANEL_IN, KEY_IN, BAR_IN, ROW_IN = 1.78, 0.25, 0.115, 0.155
"""Height in a column: of a panel with its axis' labels, of the key of a map, of a bar, of a map's row."""
DRAW: dict[type, Any] = {
    Line: draw_line,
    Points: draw_points,
    Roof: draw_roof,
    Rule: draw_rule,
    Zones: draw_zones,
}


def save_picture(chart: Chart, results: Results, path: Path, format_name: str, size: str = "slide") -> None:
    """Write a chart to ``path`` as png, svg or pdf: the same chart and results make the same bytes.

    Raises:
        InputError: ``size`` is none of slide and column.
    """
    write(figure_of(chart, results, size), path, format_name, size_named(size))


def figure_of(chart: Chart, results: Results, size: str = "slide") -> Figure:
    """A chart as a matplotlib figure.

    Args:
        chart: what is drawn.
        results: where its numbers are looked up.
        size: ``slide`` or ``column``.

    Raises:
        InputError: ``size`` is neither.
    """
    made_for = size_named(size)
    chart, results = drawable(chart), drawable(results)
    with drawing_style(made_for):
        figure = new_figure(chart.title, chart.caption, made_for)
        sheets = _sheets(figure, chart, results, made_for)
        ratios = _ratios(sheets)
        for sheet in sheets:
            _draw(sheet, octaves_of(ratios))
        keyed = _add_key(figure, sheets, ratios, made_for)
        legend = add_legend(figure, sheets, made_for)
        if made_for is COLUMN:
            _set_height(figure, sheets, legend, keyed)
        _settle(figure, sheets)
    return figure


def _sheets(figure: Figure, chart: Chart, results: Results, size: Size) -> list[Sheet]:
    """An empty panel each: side by side on a slide, below each other in a column."""
    count = len(chart.panels)
    rows = count if size is COLUMN else ceil(count / MOST_ACROSS)
    across = ceil(count / rows)
    grid = figure.subplots(rows, across, squeeze=False)
    for axes in list(grid.flat)[count:]:
        axes.set_axis_off()
    joint = panel_limits(chart.panels, results) if chart.shared else None
    sheets = []
    for at, (axes, panel) in enumerate(zip(grid.flat, chart.panels, strict=False)):
        sheet = Sheet(axes, panel, results, size, joint or panel_limits([panel], results), at)
        set_scales(sheet)
        if panel.title:
            sheet.title = axes.set_title(panel.title)
            wrap_title(sheet)
        sheets.append(sheet)
        if chart.shared:
            axes.tick_params(labelleft=at % across == 0)
            axes.set_ylabel(panel.y.label if at % across == 0 else "")
        if chart.shared and at + across < count:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
    return sheets


def _draw(sheet: Sheet, octaves: float) -> None:
    cells = [mark for mark in sheet.panel.marks if isinstance(mark, Cells)]
    bars = [mark for mark in sheet.panel.marks if isinstance(mark, Bars)]
    for mark in sheet.panel.marks:
        if type(mark) in DRAW:
            DRAW[type(mark)](sheet, mark)
    if bars:
        draw_bars(sheet, bars)
    for mark in cells:
        draw_cells(sheet, mark, octaves)
    if cells:
        name_rules(sheet)


def _ratios(sheets: list[Sheet]) -> list[float]:
    """Those of the maps of all panels, which have the same colours."""
    maps = [(sheet, mark) for sheet in sheets for mark in sheet.panel.marks if isinstance(mark, Cells)]
    return [value(record, mark.value) for sheet, mark in maps for record in known(sheet, mark)]


def _add_key(figure: Figure, sheets: list[Sheet], ratios: list[float], size: Size) -> bool:
    """One key for the maps of all panels; whether there are any."""
    maps = [sheet for sheet in sheets if sheet.has_cells]
    if maps:
        draw_key(figure, [sheet.axes for sheet in maps], ratios, size)
    return bool(maps)


def _set_height(figure: Figure, sheets: list[Sheet], legend: Any, keyed: bool) -> None:
    """As high as head, panels, key and legend need."""
    engine: Any = figure.get_layout_engine()
    head = (1 - engine.get()["rect"][3]) * COLUMN.height_in
    below = legend.get_window_extent().height / COLUMN.dpi if legend else 0.0
    heights = [_height_in(sheet) for sheet in sheets]
    place: Any = sheets[0].axes.get_subplotspec()
    place.get_gridspec().set_height_ratios(heights)
    figure.set_figheight(head + sum(heights) + below + (KEY_IN if keyed else 0.0))
    fit_head(figure, COLUMN)


def _height_in(sheet: Sheet) -> float:
    bars = [mark for mark in sheet.panel.marks if isinstance(mark, Bars)]
    if not bars:
        rows = len(sheet.categories.get("y", ())) or len(sheet.panel.y.ticks)
        return max(PANEL_IN, 0.45 + rows * ROW_IN * sheet.has_cells)
    lanes = 1 if sheet.panel.stacked else len(bars)
    lines = max((label.get_text().count("\n") + 1 for label in sheet.axes.get_yticklabels()), default=1)
    if sheet.panel.stacked and len(bars) >= MOST_IN_LINE:
        lines = max(lines, 2)
    return max(0.9, 0.45 + len(sheet.categories["y"]) * max(lanes + 0.6, lines + 0.4) * BAR_IN)


def _settle(figure: Figure, sheets: list[Sheet]) -> None:
    """Lay the panels out once and for all, then put the texts where there is room."""
    _lay_out(figure)
    changed = [change(sheet) for sheet in sheets for change in (turn_names, wrap_labels, wrap_title)]
    rooms = [make for sheet in sheets for make in sheet.room]
    for make in rooms:
        make()
    if any(changed) or rooms:
        _lay_out(figure)
    for make in rooms:
        make()
    figure.set_layout_engine("none")
    for sheet in sheets:
        for take in sheet.above:
            take()
        thin_ticks(sheet)
        for _, put in sorted(sheet.later, key=lambda each: each[0]):
            put()


def _lay_out(figure: Figure) -> None:
    """Give every panel its place. Raises InputError where the texts around them leave none: matplotlib only warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            figure.draw_without_rendering()
        except UserWarning:
            raise InputError(
                "the texts around its panels leave a figure no room to draw them",
                "draw less in one figure, or name it shorter",
            ) from None
