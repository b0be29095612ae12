"""Axes of a matplotlib panel: scales, ends, ticks, and labels that do not touch."""

from __future__ import annotations

from itertools import pairwise
from math import log10
from textwrap import fill
from typing import Any

from ..chart import Axis
from .sheet import Direction, Sheet, tick_text
from .style import plain_log_ticks

WRAPPED = 0.85
"""Of the characters that would fill an axis: some are wider than others."""
DENSE_BELOW = 2.0
"""Decades: a shorter log axis has ticks at 2 and 5 too."""


def set_scales(sheet: Sheet) -> None:
    """Scales, labels and ends of both axes; before anything is drawn."""
    directions: tuple[Direction, Direction] = ("x", "y")
    for direction, ends in zip(directions, sheet.ends(), strict=True):
        axis = sheet.axis(direction)
        if axis.scale == "log":
            (sheet.axes.set_xscale if direction == "x" else sheet.axes.set_yscale)("log")
        (sheet.axes.set_xlim if direction == "x" else sheet.axes.set_ylim)(*ends)
        (sheet.axes.set_xlabel if direction == "x" else sheet.axes.set_ylabel)(axis.label)
        _set_ticks(sheet, direction, axis, ends)


def _set_ticks(sheet: Sheet, direction: Direction, axis: Axis, ends: tuple[float, float]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    on: Any = sheet.axes.xaxis if direction == "x" else sheet.axes.yaxis
    if axis.scale == "category":
        names = sheet.categories[direction]
        on.set_ticks(range(len(names)), labels=[tick_text(name, axis.kind) for name in names])
    elif axis.ticks:
        on.set_ticks([tick / axis.unit for tick in axis.ticks],
                     labels=[tick_text(tick / axis.unit, axis.kind) for tick in axis.ticks])  # fmt: skip
        on.set_minor_locator(NullLocator())
    elif axis.scale == "log":
        plain_log_ticks(on, dense=log10(ends[1] / ends[0]) < DENSE_BELOW)
    else:
        on.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        on.set_major_formatter(FuncFormatter(lambda number, _: tick_text(round(number, 12), axis.kind)))


def turn_names(sheet: Sheet) -> bool:
    """Turn the names along the x axis where they would touch; whether it did."""
    labels = sheet.axes.get_xticklabels()
    if sheet.axis("x").scale != "category" or not touching(labels, "x"):
        return False
    sheet.axes.tick_params(axis="x", labelrotation=90)
    return True


def wrap_labels(sheet: Sheet) -> bool:
    """Break the labels of axes that are longer than their axis; whether any was."""
    frame = sheet.axes.get_window_extent()
    broken = False
    for label, extent, room in (
        (sheet.axes.xaxis.label, sheet.axes.xaxis.label.get_window_extent().width, frame.width),
        (sheet.axes.yaxis.label, sheet.axes.yaxis.label.get_window_extent().height, frame.height),
    ):
        if extent > room:
            label.set_text(
                fill(label.get_text(), int(len(label.get_text()) * WRAPPED * room / extent), break_long_words=False)
            )
            broken = True
    return broken


def thin_ticks(sheet: Sheet) -> None:
    """Leave out labels that would touch their neighbours, but no category's; when the layout is settled."""
    directions: tuple[Direction, Direction] = ("x", "y")
    for direction in directions:
        on: Any = sheet.axes.xaxis if direction == "x" else sheet.axes.yaxis
        low, high = sorted(on.get_view_interval())
        places = zip(on.get_ticklabels(), on.get_majorticklocs(), strict=False)
        labels = [label for label, at in places if label.get_text() and low <= at <= high]
        _keep_inside(labels)
        if touching(labels, direction) and sheet.axis(direction).scale != "category":
            _thin(on, labels, direction)


def _keep_inside(labels: list[Any]) -> None:
    """Hide a label that would leave the figure."""
    for label in labels:
        extent, whole = label.get_window_extent(), label.figure.bbox
        if extent.x1 > whole.x1 or extent.x0 < 0 or extent.y1 > whole.y1 or extent.y0 < 0:
            label.set_visible(False)


def touching(labels: list[Any], direction: Direction) -> bool:
    """Whether any two labels next to each other touch."""
    spans = sorted(_span(label, direction) for label in labels)
    return any(low < end for (_, end), (low, _) in pairwise(spans))


def _span(label: Any, direction: Direction) -> tuple[float, float]:
    extent = label.get_window_extent()
    air = label.get_fontsize() * 0.4 * label.figure.dpi / 72
    return (extent.x0, extent.x1 + air) if direction == "x" else (extent.y0, extent.y1)


def _thin(on: Any, labels: list[Any], direction: Direction) -> None:
    """Keep the two outermost labels, and of the others all that touch none before them and not the last."""
    seen = sorted((label for label in labels if label.get_visible()), key=lambda label: _span(label, direction))
    rows: list[Any] = seen[:1]
    for label in seen[1:-1]:
        if not touching([rows[-1], label], direction) and not touching([label, seen[-1]], direction):
            rows.append(label)
    if len(seen) > 1 and not touching([rows[-1], seen[-1]], direction):
        rows.append(seen[-1])
    kept = {id(label) for label in rows}
    ends = on.get_view_interval()
    texts = [label.get_text() if id(label) in kept else "" for label in on.get_ticklabels()]
    on.set_ticks(on.get_majorticklocs(), labels=texts)
    on.set_view_interval(*ends, ignore=True)
