"""Axes of a matplotlib panel: scales, ends, ticks, and labels that do not touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from textwrap import fill
from typing import Any

from ..chart import Axis
from .sheet import Direction, Sheet, tick_text
from .style import log_text, plain_log_ticks, wrap

WRAPPED = 0.85
"""Of the characters that would fill an axis: some are wider than others."""
DENSE_BELOW = 2.0
"""Decades: a shorter log axis has ticks at 2 and 5 too."""
TITLE_LINES = 2
"""The most of a panel's title."""
MOST_TICKS = 6
"""Steps between the ticks of a linear axis."""
ALIKE = 1e-6
"""By what share of each other distances may differ that are equal but for rounding."""


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
    from matplotlib.ticker import FuncFormatter, NullLocator

    on: Any = sheet.axes.xaxis if direction == "x" else sheet.axes.yaxis
    if axis.scale == "category":
        names = sheet.categories[direction]
        _name_ticks(on, range(len(names)), [tick_text(name, axis.kind) for name in names])
    elif axis.ticks:
        ticks = [tick / axis.unit for tick in sorted(set(axis.ticks))]
        _name_ticks(on, ticks, [tick_text(tick, axis.kind) for tick in ticks])
        on.set_minor_locator(NullLocator())
    elif axis.scale == "log":
        plain_log_ticks(on, dense=log10(ends[1] / ends[0]) < DENSE_BELOW)
    else:
        on.set_major_locator(_round_numbers(MOST_TICKS))
        on.set_major_formatter(FuncFormatter(lambda number, _: tick_text(round(number, 12), axis.kind)))


def _round_numbers(most: int) -> Any:
    """Ticks of a linear axis, with at most so many steps between them."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


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


def wrap_title(sheet: Sheet) -> bool:
    """Break the title of a panel that is wider than the panel; whether it was.

    Before the layout too, when the panel is as wide as it can be, or a long title would take all of the figure.
    """
    room = sheet.axes.get_window_extent().width
    if sheet.title is None or sheet.title.get_window_extent().width <= room:
        return False
    sheet.title.set_text(sheet.panel.title)
    wrap(sheet.title, room, TITLE_LINES)
    return True


def thin_ticks(sheet: Sheet) -> None:
    """Leave out labels that would touch their neighbours, but no category's; when the layout is settled.

    The axes' ends stay as they are: everything that was drawn reaches to them.
    """
    directions: tuple[Direction, Direction] = ("x", "y")
    for direction in directions:
        on: Any = sheet.axes.xaxis if direction == "x" else sheet.axes.yaxis
        axis = sheet.axis(direction)
        if axis.scale != "category" and touching(_seen(on), direction):
            _thin(on, axis, direction)
        _keep_inside(_seen(on))


def _seen(on: Any) -> list[Any]:
    """The labels between the ends of an axis."""
    return [label for _, label in _places(on)]


def _places(on: Any) -> list[tuple[float, Any]]:
    """Where the labels between the ends of an axis are on its scale, the lowest number first."""
    low, high = sorted(on.get_view_interval())
    every = sorted(zip(on.get_majorticklocs(), on.get_ticklabels(), strict=False), key=lambda each: each[0])
    inside = [(at, label) for at, label in every if label.get_text() and low <= at <= high]
    scaled = on.get_transform().transform([at for at, _ in inside])
    return list(zip(map(float, scaled), (label for _, label in inside), strict=True))


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


def _thin(on: Any, axis: Axis, direction: Direction) -> None:
    """Fewer labels, none of which touch, at equal distances: what is not named between them can be counted."""
    if axis.ticks:
        _thin_given(on, direction)
    elif axis.scale == "log":
        _thin_decades(on, direction)
    else:
        for most in reversed(range(1, MOST_TICKS)):
            on.set_major_locator(_round_numbers(most))
            if not touching(_seen(on), direction):
                return
        _keep(on, _seen(on)[-1:])


def _thin_decades(on: Any, direction: Direction) -> None:
    """1, 10, 100, or every second or third of them; of fewer than two the ticks between them as they are."""
    low, high = sorted(on.get_view_interval())
    powers = range(ceil(log10(low)), floor(log10(high)) + 1)
    if len(powers) < 2:
        _thin_given(on, direction)
        return
    for every in range(1, len(powers) + 1):
        texts = [log_text(10.0**power) if at % every == 0 else "" for at, power in enumerate(powers)]
        _name_ticks(on, [10.0**power for power in powers], texts)
        if not touching(_seen(on), direction):
            return


def _thin_given(on: Any, direction: Direction) -> None:
    """Of ticks at equal distances every second or third from the first on; of others those that have room."""
    places = _places(on)
    labels = [label for _, label in places]
    steps = [high - low for (low, _), (high, _) in pairwise(places)]
    _keep(on, _regular(labels, direction) if max(steps) <= min(steps) * (1 + ALIKE) else _free(labels, direction))


def _regular(labels: list[Any], direction: Direction) -> list[Any]:
    """As many labels as touch none, as far from each other."""
    steps = (labels[::step] for step in range(2, len(labels)))
    return next((kept for kept in steps if not touching(kept, direction)), labels[:1])


def _free(labels: list[Any], direction: Direction) -> list[Any]:
    """The two outermost labels, and of the others all that touch none before them and not the last."""
    kept, last = labels[:1], labels[-1]
    for label in labels[1:-1]:
        if not touching([kept[-1], label], direction) and not touching([label, last], direction):
            kept.append(label)
    return kept if touching([kept[-1], last], direction) else [*kept, last]


def _keep(on: Any, kept: Iterable[Any]) -> None:
    """Leave out all labels but these; their ticks stay."""
    shown, every = {id(label) for label in kept}, on.get_ticklabels()
    _name_ticks(on, on.get_majorticklocs(), [label.get_text() if id(label) in shown else "" for label in every])


def _name_ticks(on: Any, places: Sequence[float], texts: Sequence[str]) -> None:
    """Ticks at ``places`` with their texts. ``set_ticks`` would move the ends of the axis to the outermost tick."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    on.set_major_locator(FixedLocator(places))
    on.set_major_formatter(FixedFormatter(texts))
