"""The legend of a matplotlib figure: below the panels, never over them."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from ..chart import Bars, Cells, Line, Look, Mark, Points, Roof, Rule, Zones
from ..chart_data import drawn, number_at
from .bars import bar_look
from .cells import side_handles
from .glyphs import folded
from .marks import point_look
from .sheet import Sheet, line_look, marker_look
from .style import MARKERS, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL_CHARACTERS = {"slide": 100, "column": 50}
"""Where a label is broken."""
LABEL_LINES = {"slide": 3, "column": 6}
"""The most of a label."""
WIDTH = 0.98
"""Of the figure's: what a legend may take."""


def add_legend(figure: Figure, sheets: list[Sheet], size: Size) -> Any:
    """A legend of all panels' marks, in as few rows as fit; ``None`` where no mark has a label."""
    handles = list(_handles(sheets).values())
    if not handles:
        return None
    across = _columns(figure, handles, size)
    across = ceil(len(handles) / ceil(len(handles) / across))  # rows of like length
    return _legend(figure, handles, across, size)


def _handles(sheets: list[Sheet]) -> dict[tuple[str, Any], Any]:
    """A handle for each label and look: roofs of all panels first, and else in the order of the marks."""
    found: dict[tuple[str, Any], Any] = {}
    marks = [(sheet, mark) for sheet in sheets for mark in sheet.panel.marks]
    for sheet, mark in sorted(marks, key=lambda each: not isinstance(each[1], Roof)):
        if isinstance(mark, Cells):
            found |= {(handle.get_label(), None): handle for handle in side_handles(mark, sheet.size)}
        elif not isinstance(mark, Zones) and mark.label and _is_drawn(sheet, mark):
            handle = _handle(mark, _at(sheet, mark), sheet.size)
            name = sheet.size.name
            handle.set_label(folded(mark.label, LABEL_CHARACTERS[name], LABEL_LINES[name]))
            found.setdefault((mark.label, key_look(mark)), handle)
    return found


def key_look(mark: Line | Points | Roof | Rule | Bars) -> Look:
    """How a mark looks in the key: in a colour of its own there, where it has one."""
    key = mark.key if isinstance(mark, Line | Points) else None
    return replace(mark.look, colour=key) if key else mark.look


def _at(sheet: Sheet, mark: Mark) -> int:
    """Of bars, the place among those of the panel, by which they are hatched."""
    bars = [each for each in sheet.panel.marks if isinstance(each, Bars)]
    return bars.index(mark) if isinstance(mark, Bars) else 0


def _is_drawn(sheet: Sheet, mark: Mark) -> bool:
    if isinstance(mark, Roof):
        return bool(number_at(sheet.results, mark.slope) and number_at(sheet.results, mark.flat))
    if isinstance(mark, Rule):
        return sheet.rule_at(mark.path, mark.axis) is not None
    return not isinstance(mark, Zones) and bool(drawn(sheet.results, mark))


def _handle(mark: Mark, at: int, size: Size) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(mark, Bars):
        return Patch(label=mark.label, linewidth=size.points(0.8), **bar_look(mark.look, at, size))
    if isinstance(mark, Points):
        cloud = point_look(replace(mark, look=key_look(mark)), size)
        return Line2D(
            [], [], linestyle="", marker=MARKERS[mark.look.marker], markersize=size.marker * 1.1, label=mark.label,
            markerfacecolor=cloud["facecolors"], markeredgecolor=cloud["edgecolors"],
            markeredgewidth=cloud["linewidths"], alpha=cloud["alpha"],
        )  # fmt: skip
    assert isinstance(mark, Line | Roof | Rule)
    look = key_look(mark)
    markers = marker_look(look, size) if isinstance(mark, Line) and mark.markers else {}
    return Line2D([], [], label=mark.label, **line_look(look, size), **markers)


def _columns(figure: Figure, handles: list[Any], size: Size) -> int:
    """The most columns that the figure's width holds."""
    for across in range(len(handles), 1, -1):
        legend = _legend(figure, handles, across, size)
        width = legend.get_window_extent().width
        legend.remove()
        if width <= WIDTH * size.width_in * size.dpi:
            return across
    return 1


def _legend(figure: Figure, handles: list[Any], across: int, size: Size) -> Any:
    return figure.legend(
        handles=handles, loc="outside lower center", ncols=across, fontsize=size.small, columnspacing=1.4,
        handletextpad=0.5, handlelength=2.4, labelspacing=0.4,
    )  # fmt: skip
