"""Level bars on a matplotlib panel: stacked or side by side, with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..chart import Bars, Look
from ..chart_data import MOST_TEXT, bar_text, drawn, value
from .cells import readable_on
from .glyphs import folded
from .sheet import FAINT, POINT_TEXTS, Sheet, tick_text
from .style import COLOURS, INK, Size

FILLED = 0.78
"""Of a category's height: what its bars take."""
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
"""By a mark's place among the bars of its panel, so that grey print tells them."""
LEAST_HATCHED = 0.03
"""Of a panel's width: a shorter bar that its category alone names is filled, or little of it were left."""
NAME_CHARACTERS = {"slide": 30, "column": 18}
"""Where the name of a category is broken."""
NAME_LINES = 3
"""The most of a category's name."""
LEAST_PLACES = {"slide": 4.0, "column": 0.0}
"""For how many bars a panel has room at least: fewer would be blocks."""
MOST_IN_LINE = 3
"""Of stacked bars, so many numbers that stand at the end make two lines."""
GAP = 4.0
"""Points of a slide between a bar and its number."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar in the axes' units, and its number as it is written."""

    mark: Bars
    start: float
    end: float
    middle: float
    height: float
    text: str


def draw_bars(sheet: Sheet, marks: Sequence[Bars]) -> None:
    """All bars of a panel, in the order of their marks, and their numbers when the layout is settled."""
    low = sheet.axes.get_xlim()[0] if sheet.panel.x.scale == "log" else 0.0
    rows = bars_of(sheet, marks)
    for row in rows:
        for bar in row:
            _draw_bar(sheet, bar, marks.index(bar.mark), low, alone=len(row) == 1 and not bar.mark.label)
    _name(sheet, 1 if sheet.panel.stacked else len(marks))
    sheet.room.append(partial(_make_room, sheet, rows))
    sheet.later += [(POINT_TEXTS, partial(_numbers, sheet, row)) for row in rows]


def _draw_bar(sheet: Sheet, bar: Bar, at: int, low: float, *, alone: bool) -> None:
    """A bar; one that its category ``alone`` names is filled to its ends, or a short one were not seen."""
    start = max(bar.start, low)
    look = bar_look(bar.mark.look, at, sheet.size) | {"linewidth": sheet.size.points(0.8)}
    if alone and not bar.mark.look.hollow:
        look["linewidth"] = 0.0  # the edge is white
    if alone and sheet.panel.x.scale == "linear":
        short = bar.end - start < LEAST_HATCHED * (sheet.axes.get_xlim()[1] - low)
        look["hatch"] = "" if short else look["hatch"]
    (patch,) = sheet.axes.barh(bar.middle, bar.end - start, bar.height, left=start, zorder=3, **look)
    patch.set_gid(sheet.gid(bar.mark))


def bars_of(sheet: Sheet, marks: Sequence[Bars]) -> list[list[Bar]]:
    """The bars that belong together: those of a category where they are stacked, and else each alone."""
    rows: dict[Any, list[Bar]] = {}
    for at, mark in enumerate(marks):
        for record in drawn(sheet.results, mark):
            name = value(record, mark.name)
            category = sheet.categories["y"].index(name)
            row = rows.setdefault(name if sheet.panel.stacked else (at, name), [])
            start = row[-1].end if row else 0.0
            end = start + value(record, mark.value) / sheet.panel.x.unit
            share = 1 if sheet.panel.stacked else len(marks)
            middle = category + (0 if sheet.panel.stacked else FILLED * ((at + 0.5) / share - 0.5))
            height = FILLED / share * (1 if share == 1 else 0.92)
            row.append(Bar(mark, start, end, middle, height, bar_text(record, mark)))
    return list(rows.values())


def bar_look(look: Look, at: int, size: Size) -> dict[str, Any]:
    """How the bars of the mark at a place among its panel's are drawn."""
    colour = COLOURS[look.colour]
    return {
        "facecolor": "white" if look.hollow else colour,
        "edgecolor": colour if look.hollow else "white",
        "hatch": size.hatch(HATCHES[at % len(HATCHES)]),
        "alpha": FAINT if look.faint else None,
    }


def _name(sheet: Sheet, lanes: int) -> None:
    """Categories downwards, long names broken."""
    names = sheet.categories["y"]
    texts = [tick_text(name, sheet.panel.y.kind) for name in names]
    broken = [folded(text, NAME_CHARACTERS[sheet.size.name], NAME_LINES) for text in texts]
    sheet.axes.set_yticks(range(len(names)), labels=broken)
    room = max(0.0, LEAST_PLACES[sheet.size.name] - len(names) * lanes) / lanes / 2
    sheet.axes.set_ylim(len(names) - 0.5 + room, -0.5 - room)
    sheet.axes.grid(False, axis="y")
    sheet.axes.tick_params(axis="y", length=0)


def _inside(sheet: Sheet, bar: Bar) -> bool:
    """Whether the number of a stacked bar fits in it."""
    start, end = _ends_px(sheet, bar)
    return end - start >= _width(sheet, bar.text) + 2 * sheet.places.px(GAP)


def _beside(sheet: Sheet, row: Sequence[Bar]) -> str:
    """What stands at the end of a row: the number of a bar alone, of stacked ones those that do not fit inside."""
    if len(row) == 1:
        return row[0].text
    texts = [f"{bar.mark.label} {bar.text}".strip() for bar in row if not _inside(sheet, bar)]
    lines = [", ".join(texts[: MOST_IN_LINE - 1]), ", ".join(texts[MOST_IN_LINE - 1 :])]
    return ",\n".join(line for line in lines if line)


def _make_room(sheet: Sheet, rows: Sequence[Sequence[Bar]]) -> None:
    """Widen the axis so that the numbers at the bars' ends stand inside; twice, since what fits inside changes."""
    if sheet.panel.x.high is not None:
        return
    scale: Any = sheet.axes.xaxis.get_transform()
    frame = sheet.axes.get_window_extent().width
    for _ in range(2):
        low, high = scale.transform(sheet.axes.get_xlim())
        for row in rows:
            text = _beside(sheet, row)
            taken = (_width(sheet, text) + 2 * sheet.places.px(GAP)) / frame if text else 0.0
            (end,) = scale.transform([row[-1].end])
            high = max(high, low + (end - low) / (1 - min(taken, MOST_TEXT)))
        sheet.axes.set_xlim(*scale.inverted().transform([low, high]))


def _numbers(sheet: Sheet, row: Sequence[Bar]) -> None:
    """Inside stacked bars where they fit; what does not fit stands at the row's end."""
    y = sheet.places.at(sheet.axes.get_xlim()[0], row[0].middle)[1]
    for bar in row if len(row) > 1 else ():
        if _inside(sheet, bar):
            colour = "#ffffff" if bar.mark.look.hollow else COLOURS[bar.mark.look.colour]
            backed = {"boxstyle": "square,pad=0.12", "fc": colour, "ec": "none"}
            _text(sheet, bar.text, sum(_ends_px(sheet, bar)) / 2, y, "center", color=readable_on(colour), bbox=backed)
    beside = _beside(sheet, row)
    if beside:
        end = min(_ends_px(sheet, row[-1])[1], sheet.axes.get_window_extent().x1)
        _text(sheet, beside, end + sheet.places.px(GAP), y, "left", color=INK)


def _ends_px(sheet: Sheet, bar: Bar) -> tuple[float, float]:
    low = sheet.axes.get_xlim()[0]
    return sheet.places.at(max(bar.start, low), bar.middle)[0], sheet.places.at(bar.end, bar.middle)[0]


def _width(sheet: Sheet, text: str) -> float:
    return sheet.places.extent(text)[0]


def _text(sheet: Sheet, text: str, x: float, y: float, across: str, **look: Any) -> None:
    place_x, place_y = sheet.axes.transAxes.inverted().transform((x, y))
    sheet.axes.text(
        place_x, place_y, text, ha=across, va="center_baseline", transform=sheet.axes.transAxes, zorder=6,
        fontsize=sheet.size.small, **look,
    )  # fmt: skip
