"""A map of cells on a matplotlib panel: coloured to both sides of 1, with its key, and rules named beside it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from math import ceil, log2
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .. import format as fmt
from ..chart import Cells, Rule
from ..chart_data import drawn, edges, value
from .ceilings import rule_text
from .placing import ON_POINT, Place
from .sheet import POINT_TEXTS, Direction, Sheet
from .style import COLOURS, COLUMN, INK, TEXT_COLOURS, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_OCTAVES, MOST_OCTAVES = 1.0, 4.0
"""Ratio, as a power of two, that has the full colour: the largest drawn, within these; larger ones have it too."""
PALE, FULL = 0.10, 0.85
HATCH = "////"
"""Of values below 1, so that grey print tells them."""
LEAST_TEXT = {"slide": 7.5, "column": 4.6}
"""Points: a number that fits its cell only smaller is left out."""
FITTING = 0.84
"""Of a cell: what its number may take, and so leave its edges to be seen."""
EDGE, LEAST_EDGE, MOST_EDGE = 1.2, 0.25, 1 / 12
"""Points of a slide between two cells; the fewest that are drawn; and the most, of the narrower one."""
RULE_CHARACTERS = {"slide": 22, "column": 14}
"""Where the name of a rule is broken."""
INK_LUMINANCE = 0.01
OVER_RULES = 3.45
"""Of a number with its ground: over rules, and below lines and points."""
Spans = dict[Direction, dict[Any, tuple[float, float]]]
"""From where to where the cells of each value lie on either axis."""


def octaves_of(ratios: list[float]) -> float:
    """The power of two that has the full colour."""
    largest = max((abs(log2(ratio)) for ratio in ratios if ratio > 0), default=0.0)
    return float(min(max(ceil(largest), LEAST_OCTAVES), MOST_OCTAVES))


def cell_colour(ratio: float, octaves: float) -> tuple[float, float, float]:
    """Blue above 1, orange below, paler the nearer to it."""
    strength = min(abs(log2(ratio)) / octaves, 1.0)
    return tint(COLOURS["blue" if ratio >= 1 else "red"], PALE + (FULL - PALE) * strength)


def cell_look(ratio: float, octaves: float, size: Size) -> dict[str, Any]:
    """How a cell is drawn, and a patch that stands for its side: hatched below 1."""
    look: dict[str, Any] = {"facecolor": cell_colour(ratio, octaves), "linewidth": 0}
    if ratio >= 1:
        return look
    strength = min(PALE + 0.3 + (FULL - PALE) * min(abs(log2(ratio)) / octaves, 1.0), 1.0)
    return look | {"edgecolor": tint(COLOURS["red"], strength), "hatch": size.hatch(HATCH)}


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour let down with white; opaque."""
    red, green, blue = (1 - strength * (1 - part / 255) for part in bytes.fromhex(colour.removeprefix("#")))
    return red, green, blue


def readable_on(colour: Any) -> str:
    """Ink or white, whichever stands out more from ``colour``."""
    from matplotlib.colors import to_rgb

    return INK if is_light(to_rgb(colour), INK_LUMINANCE) else "white"


def is_light(colour: Iterable[float], dark: float = 0.0) -> bool:
    """Whether a text of luminance ``dark`` stands out more from a colour, in parts of 1, than a white one."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return (luminance + 0.05) ** 2 > 1.05 * (dark + 0.05)


def known(sheet: Sheet, mark: Cells) -> list[dict[str, Any]]:
    """The records that have a ratio; others leave their place white."""
    return [record for record in drawn(sheet.results, mark) if value(record, mark.value) is not None]


def draw_cells(sheet: Sheet, mark: Cells, octaves: float) -> None:
    """A rectangle for each record; those below 1 hatched; white lines between rows and columns."""
    from matplotlib.patches import Rectangle

    spans: Spans = {"x": _spans(sheet, mark, "x"), "y": _spans(sheet, mark, "y")}
    found = known(sheet, mark)
    for record in found:
        (left, right), (low, high) = spans["x"][value(record, mark.x)], spans["y"][value(record, mark.y)]
        look = cell_look(value(record, mark.value), octaves, sheet.size)
        corner, width, height = (left, low), right - left, high - low
        sheet.axes.add_patch(Rectangle(corner, width, height, zorder=1, gid=sheet.gid(mark), **look))
    sheet.above += [partial(_part_cells, sheet, spans), partial(_close_seams, sheet, mark, spans, octaves)]
    sheet.axes.grid(False)
    sheet.axes.tick_params(length=0)
    if mark.text:
        sheet.later.append((POINT_TEXTS, partial(_texts, sheet, mark, found, spans, octaves)))


def _spans(sheet: Sheet, mark: Cells, direction: Direction) -> dict[Any, tuple[float, float]]:
    """From where to where the cells of each value lie on an axis."""
    axis = sheet.axis(direction)
    key = mark.x if direction == "x" else mark.y
    if axis.scale == "category":
        return {name: (at - 0.5, at + 0.5) for at, name in enumerate(sheet.categories[direction])}
    values = sorted({value(record, key) for record in drawn(sheet.results, mark)})
    ends = [each / axis.unit for each in edges(values, axis)] if values else []
    return dict(zip(values, pairwise(ends), strict=True))


def _part_cells(sheet: Sheet, spans: Spans) -> None:
    """White lines between rows and between columns.

    They are no edges of the rectangles: a hatch has the colour of its rectangle's edge.
    """
    from matplotlib.collections import LineCollection

    for direction in spans:
        scale = sheet.axes.get_xaxis_transform() if direction == "x" else sheet.axes.get_yaxis_transform()
        widths = _parting(sheet, direction, spans)
        ways = [[(at, 0.0), (at, 1.0)] if direction == "x" else [(0.0, at), (1.0, at)] for at in widths]
        if ways:
            lines = LineCollection(ways, linewidths=list(widths.values()), colors="white", zorder=1.2, transform=scale)
            sheet.axes.add_collection(lines, autolim=False)


def _parting(sheet: Sheet, direction: Direction, spans: Spans) -> dict[float, float]:
    """Where columns, or rows, meet, and how wide the line is there in points: the less the narrower they are, or 0."""
    parts = sorted(spans[direction].values())
    breadths = [_breadth(sheet, direction, part) / sheet.size.dpi * 72 for part in parts]
    most = [min(sheet.size.points(EDGE), MOST_EDGE * min(two)) for two in pairwise(breadths)]
    widths = [width if width >= sheet.size.points(LEAST_EDGE) else 0.0 for width in most]
    return {at: width for (_, at), width in zip(parts, widths, strict=False)}


def _close_seams(sheet: Sheet, mark: Cells, spans: Spans, octaves: float) -> None:
    """The colour of each column under its seam with the next, where no line parts them.

    A viewer of vectors mixes both edges there with what is below: a map of narrow columns would be pale.
    """
    from matplotlib.collections import PolyCollection

    open_at = {at for at, width in _parting(sheet, "x", spans).items() if not width}
    after = dict(pairwise(sorted(spans["x"].values())))
    cells = {(spans["x"][value(record, mark.x)], spans["y"][value(record, mark.y)]): value(record, mark.value)
             for record in known(sheet, mark)}  # fmt: skip
    corners, colours = [], []
    for (column, (low, high)), ratio in cells.items():
        if column[1] in open_at and (after[column], (low, high)) in cells:
            start, end = sum(column) / 2, sum(after[column]) / 2
            corners.append([(start, low), (end, low), (end, high), (start, high)])
            colours.append(cell_colour(ratio, octaves))
    if corners:
        under = PolyCollection(corners, facecolors=colours, linewidths=0, zorder=0.9)
        sheet.axes.add_collection(under, autolim=False)


def _breadth(sheet: Sheet, direction: Direction, part: tuple[float, float]) -> float:
    """How broad a column, or a row, is: pixels of the figure."""
    x, y = sheet.axes.get_xlim()[0], sheet.axes.get_ylim()[0]
    at = 0 if direction == "x" else 1
    low, high = (sheet.places.at(*((end, y) if direction == "x" else (x, end)))[at] for end in part)
    return abs(high - low)


def _texts(sheet: Sheet, mark: Cells, found: list[dict[str, Any]], spans: Spans, octaves: float) -> None:
    """What stands in the cells, all in one size; nothing in columns and rows that are narrower than one of theirs.

    Of such a column the short numbers alone would stay, such as 2x and 4x, and seem to be all that there is. A number
    may stand on a rule, which goes on beside it. It gives way to lines, points and bars: where they leave no place in
    its cell, it is left out.
    """
    pairs = [(record, fmt.shown(value(record, mark.text), mark.kind)) for record in found]
    extents = {text: sheet.places.extent(text) for text in {text for _, text in pairs}}
    columns = _fitting(sheet, "x", spans, [(value(record, mark.x), extents[text][0]) for record, text in pairs])
    rows = _fitting(sheet, "y", spans, [(value(record, mark.y), extents[text][1]) for record, text in pairs])
    size = min([sheet.size.small, *columns.values(), *rows.values()])
    for record, text in pairs:
        if value(record, mark.x) not in columns or value(record, mark.y) not in rows:
            continue
        (left, right), (low, high) = spans["x"][value(record, mark.x)], spans["y"][value(record, mark.y)]
        (left, low), (right, high) = sheet.places.at(left, low), sheet.places.at(right, high)
        colour = cell_colour(value(record, mark.value), octaves)
        middle, half = (left + right) / 2, (low + high) / 2
        up = max(0.0, (high - low) / 2 - size * sheet.size.dpi / 72 * 0.75)
        aside = max(0.0, 0.45 * (right - left) - extents[text][0] * size / sheet.size.small / 2)
        shifts = [(across, away) for across in (0.0, -aside, aside) for away in (0.0, -up, up)]
        places = [Place(middle + across, half + away, "center", "center", abs(across) / 50 + abs(away) / 100)
                  for across, away in shifts]  # fmt: skip
        plate = {"boxstyle": "square,pad=0.1", "fc": colour, "ec": "none"}
        look: dict[str, Any] = {"color": readable_on(colour), "fontsize": size, "bbox": plate, "zorder": OVER_RULES}
        sheet.places.put(text, places, ON_POINT, **look)


def _fitting(
    sheet: Sheet, direction: Direction, spans: Spans, extents: Iterable[tuple[Any, float]]
) -> dict[Any, float]:
    """The size in points at which all texts of a column, or row, fit there; of those alone where it can be read.

    Args:
        extents: the value of each text's column or row, and how long the text is along the axis.
    """
    longest: dict[Any, float] = {}
    for at, extent in extents:
        longest[at] = max(extent, longest.get(at, 0.0))
    sizes = {
        at: sheet.size.small * FITTING * _breadth(sheet, direction, spans[direction][at]) / extent
        for at, extent in longest.items()
    }
    return {at: size for at, size in sizes.items() if size >= LEAST_TEXT[sheet.size.name]}


def name_rules(sheet: Sheet) -> None:
    """The texts of level rules at the right of a map; before the layout, which makes their room."""
    rules = [mark for mark in sheet.panel.marks if isinstance(mark, Rule) and mark.axis == "y" and mark.text]
    placed = [(at, mark) for mark in rules if (at := sheet.rule_at(mark.path, "y")) is not None]
    names = [
        sheet.axes.annotate(
            broken(rule_text(sheet, mark), RULE_CHARACTERS[sheet.size.name]), (1, at),
            fontsize=sheet.size.small,
            xycoords=("axes fraction", "data"), xytext=(sheet.size.points(5), 0), textcoords="offset points",
            va="center", ha="left", color=TEXT_COLOURS[mark.look.colour], annotation_clip=False, linespacing=1.1,
        )
        for at, mark in sorted(placed, key=lambda each: each[0])
    ]  # fmt: skip
    sheet.above.append(partial(_part, sheet, names))


def broken(text: str, width: int) -> str:
    """A text in lines of so many characters; a word that is longer is broken behind its underscores."""
    words = [word if len(word) <= width else word.replace("_", "_ ") for word in text.split(" ")]
    return fill(" ".join(words), width, break_long_words=False).replace("_ ", "_")


def _part(sheet: Sheet, names: list[Any]) -> None:
    """Move names up that stand on the one below them, and all that would stand above the panel down again."""
    extents = [name.get_window_extent() for name in names]
    ups, free = [], float("-inf")
    for extent in extents:
        ups.append(max(0.0, free - extent.y0))
        free = extent.y1 + ups[-1]
    most = sheet.axes.get_window_extent().y1
    for at in reversed(range(len(names))):
        ups[at] = min(ups[at], most - extents[at].y1)
        most = extents[at].y0 + ups[at]
        names[at].set_position((names[at].get_position()[0], ups[at] / sheet.size.dpi * 72))


def draw_key(figure: Figure, panels: list[Any], ratios: list[float], size: Size) -> None:
    """A bar below the panels with the ratios of the colours; the legend says what either side means."""
    octaves = octaves_of(ratios)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = [cell_colour(2 ** ((at + 0.5) / 128 * octaves - octaves), octaves) for at in range(256)]
    scale = ScalarMappable(Normalize(-octaves, octaves), ListedColormap(shades))
    bar = figure.colorbar(scale, ax=panels, location="bottom", aspect=45, shrink=0.72, pad=0.02)
    steps = [step for step in (-4, -3, -2, -1, 0, 1, 2, 3, 4) if abs(step) <= octaves]
    every = 2 if size is COLUMN and octaves > 2 else 1
    bar.set_ticks(steps, labels=["" if (octaves - step) % every else key_text(step, octaves, ratios) for step in steps])
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=size.small, length=size.points(3))
    hatched = tint(COLOURS["red"], 0.75)
    bar.ax.axvspan(-octaves, 0, facecolor="none", edgecolor=hatched, hatch=size.hatch(HATCH), linewidth=0)


def key_text(step: int, octaves: float, ratios: list[float]) -> str:
    """A tick of the key; at an end that has its colour for larger ratios too, that it does."""
    if not step:
        return "1"
    beyond = any(ratio > 2**octaves for ratio in (ratios if step > 0 else [1 / each for each in ratios if each > 0]))
    more = "\u2265" if beyond and abs(step) == octaves else ""
    return f"{more}{2 ** abs(step)}x"


def side_handles(mark: Cells, size: Size) -> list[Any]:
    """What either side of 1 means, for the legend."""
    from matplotlib.patches import Patch

    return [Patch(label=text, **cell_look(ratio, 1.0, size)) for text, ratio in ((mark.below, 0.6), (mark.above, 1.7))]
