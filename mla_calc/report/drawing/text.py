"""A panel of a chart as text for a terminal, drawn with plotext.

plotext is imported here alone, and only when something is drawn: importing it takes longer than drawing. It gets
cells, with both axes linear: release 6.1.0 takes no logarithm of an axis' limits where ticks are given too.
"""

from __future__ import annotations

import re
from typing import Any

from ..chart import Bars, Cells, Chart, Colour, Line, Panel, Points
from ..chart_data import ends_alone, limits, value, with_room
from ..record import Results
from .text_key import key, left_over, told, wrapped
from .text_marks import draw
from .text_scale import Scale
from .text_sheet import Scene, Sheet
from .text_words import write_words

BASIC: dict[Colour, int | None] = {
    "blue": 12, "orange": 1, "green": 2, "pink": 13, "red": 5, "sky": 6, "ink": None, "soft": None,
}  # fmt: skip
"""Of the sixteen colours that a terminal's theme sets, so that they suit its background; ink is its own."""
FRAME = 3
"""Lines below the cells: the axis, its ticks' labels and its own."""
LEAST_ROWS = 8
"""Rows of cells that a key leaves to the chart, unless it has no more than a third of the lines."""
BESIDE_LONG_KEY = 12
"""Rows of cells beside a key that has no room within the height: both are seen after scrolling a little."""
BETWEEN_COLUMNS, BETWEEN_ROWS = 9, 2
"""Of columns and rows, how many there are to a tick at least."""
PALETTE = re.compile("\x1b\\[([0-9;]*?)38;5;([0-9]+)m")
"""A colour as plotext writes it."""
DOUBLE_RESET = re.compile("\x1b\\[0m(?=\x1b\\[0m)|^\x1b\\[0m", re.MULTILINE)
"""Resets that plotext writes and that reset nothing."""
PLAIN = str.maketrans(
    "\u2500\u2502\u250c\u2510\u2514\u2518\u251c\u2524\u252c\u2534\u253c\u2574\u00b7\u25b6\u25c0\u25b2\u25bc\u2591\u2593"
    "\u254e\u250a\u254c\u2504",
    "-|+++++++++-.><^v.#!:-.",
)
BRAILLE = 0x2800
"""The first of Unicode's 256 patterns of dots: bits 0 to 2 and 6 are the left column, 3 to 5 and 7 the right."""
LEFT, RIGHT = (0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80)


def chart_text(
    chart: Chart,
    results: Results,
    width: int,
    height: int,
    colour: bool,
    panel: int = 0,
    ascii_only: bool = False,
    whole_key: bool = False,
) -> str:
    """Panel number ``panel`` of a chart as text, its key below, without a newline at the end.

    Not for several threads at once: plotext has one figure, which is cleared before and after.

    Args:
        chart: the chart.
        results: what its marks are looked up in.
        width: columns; no line is wider.
        height: lines; the text has no more.
        colour: with escape codes for colours of the terminal's theme; a background is never set.
        panel: the panel's place in the chart.
        ascii_only: without any character beyond ASCII, for an output that has no other.
        whole_key: a key that has no room within the height is longer than that, rather than cut.
    """
    shown = chart.panels[panel]
    heading = _heading(chart, shown, width)
    scene = Scene(shown, results)
    symbols, groups = key(scene)
    lines = [heading]
    try:
        ends = limits(chart.panels if chart.shared else (shown,), results)
    except ValueError:
        lines.append("(nothing to draw)")
    else:
        room = height - 1
        most = max(height // 3, room - FRAME - LEAST_ROWS)
        beside_long = max(room - most, min(room, FRAME + BESIDE_LONG_KEY))
        entries = wrapped(groups, width, most, whole_key)
        while True:
            canvas = room - len(entries) if len(entries) <= most else beside_long
            sheet, labels = _sheet(scene, ends, width, canvas)
            draw(sheet, scene, symbols)
            left = left_over(scene, symbols, write_words(sheet, scene))
            found = wrapped([*told(groups, sheet.unseen()), *left], width, most, whole_key)
            if len(found) <= len(entries):
                break
            entries = found  # a longer key leaves fewer rows, where yet more may find no place
        lines += _drawn(sheet, shown.x.label, labels, width, canvas, colour)
        lines += ["".join(_coloured(text, hue, colour) for text, hue in entry) for entry in found]
    text = "\n".join(line.rstrip() for line in (lines if whole_key else lines[:height]))
    return in_ascii(text) if ascii_only else text


def in_ascii(text: str) -> str:
    """``text`` with characters of ASCII in place of lines, dots and arrows; a question mark for any other."""
    lines = "".join(_dots(each) if BRAILLE < ord(each) < BRAILLE + 256 else each for each in text)
    return lines.translate(PLAIN).encode("ascii", "replace").decode("ascii")


def _dots(character: str) -> str:
    """The character of ASCII that is most like a pattern of dots."""
    bits = ord(character) - BRAILLE
    left, right = ([row for row, bit in enumerate(side) if bits & bit] for side in (LEFT, RIGHT))
    if len(left) > 2 or len(right) > 2:
        return "|"
    if left and right and left[0] == right[0]:
        return "'-.."[left[0]] if left[0] in (0, 3) else "-"
    return "." if min(left + right) >= 2 else "'"


def _heading(chart: Chart, panel: Panel, width: int) -> str:
    """The y axis' label, and the title where both have room."""
    title = panel.title or chart.title
    if panel.y.label and len(panel.y.label) + 3 + len(title) > width:
        return panel.y.label[:width]
    return (panel.y.label + "   " + title if panel.y.label else title)[:width]


def _sheet(
    scene: Scene, ends: tuple[tuple[float, float], tuple[float, float]], width: int, height: int
) -> tuple[Sheet, list[tuple[float, str]]]:
    """An empty sheet for the cells that the axes leave, and the y axis' ticks."""
    panel = scene.panel
    (left, right), (bottom, top) = ends
    bars = any(isinstance(mark, Bars) for mark in panel.marks)
    y = Scale(panel.y, bottom, top, max(2, height - FRAME), _categories(scene, "y"), bars)
    most = max(8, width * 2 // 5)
    labels = [(at, text if len(text) <= most else text[: most - 3] + "...") for at, text in y.ticks(BETWEEN_ROWS)]
    taken = 1 + max((len(text) for _, text in labels), default=0)
    across = max(2, width - taken)
    if panel.x.scale == "linear" and panel.x.high is None:
        alone = ends_alone(panel, scene.results)
        left, right = with_room((left, right), [(at, (len(text) + 3) / across) for at, text in alone])
    x = Scale(panel.x, left, right, across, _categories(scene, "x"))
    return Sheet(x, y), labels


def _categories(scene: Scene, axis: str) -> tuple[Any, ...]:
    """The categories of an axis, in the order in which the marks name them; of other axes none."""
    panel = scene.panel
    if (panel.x if axis == "x" else panel.y).scale != "category":
        return ()
    names: dict[Any, None] = {}
    for mark in panel.marks:
        if isinstance(mark, Line | Points | Cells | Bars):
            path = mark.name if isinstance(mark, Bars) else mark.x if axis == "x" else mark.y
            names |= dict.fromkeys(value(record, path) for record in scene.drawn(mark))
    return tuple(names)


def _drawn(
    sheet: Sheet, label: str, labels: list[tuple[float, str]], width: int, height: int, colour: bool
) -> list[str]:
    """The sheet with its axes, drawn by plotext."""
    import plotext

    figure = plotext.figure
    try:
        figure.clear()
        plotext.terminal.limit(False, False)
        figure.theme("colorless").plot_size(width, height)
        for axis in ("x", "y"):
            figure.axes(False, axis=axis, side=1)
        _ruled(figure.ruler("x"), sheet.x, sheet.x.ticks(BETWEEN_COLUMNS))
        _ruled(figure.ruler("y"), sheet.y, labels)
        figure.label(label, "x")
        _inked(plotext, figure, sheet)
        text: str = figure.build().string(not colour)
    finally:
        figure.clear()
        plotext.terminal.clear()
    return _tidy(text).rstrip("\n").split("\n")


def _ruled(ruler: Any, scale: Scale, ticks: list[tuple[float, str]]) -> None:
    ruler.lim(0, scale.cells - 1)
    ruler.ticks([at for at, _ in ticks], [text for _, text in ticks])


def _inked(plotext: Any, figure: Any, sheet: Sheet) -> None:
    """Strokes, then words, then characters."""
    for stroke in sorted(sheet.strokes, key=lambda stroke: (not stroke.character, stroke.colour != "soft")):
        marker = plotext.marker(stroke.character or "braille", _pixel(plotext, stroke.colour))
        solid = stroke.dash == "solid"
        points = stroke.points if solid else stroke.dashes()
        signal = figure.signal([x for x, _ in points], [y for _, y in points], marker=marker)
        if not solid:
            for end in range(1, len(points), 2):
                signal.line(end)
        figure.draw(signal.lines() if solid else signal)
    for (column, row), text, hue in sheet.words:
        figure.draw(figure.text(column, row, plotext.colorize(text, _pixel(plotext, hue))))
    alike: dict[tuple[str, Colour], list[tuple[int, int]]] = {}
    for spot, character in sheet.characters.items():
        alike.setdefault(character, []).append(spot)
    for (sign, hue), spots in alike.items():
        marker = plotext.marker(sign, _pixel(plotext, hue))
        figure.draw(figure.signal([column for column, _ in spots], [row for _, row in spots], marker=marker))


def _pixel(plotext: Any, colour: Colour) -> Any:
    return plotext.pixel(BASIC[colour], style="dim" if colour == "soft" else None)


def _coloured(text: str, colour: Colour, wanted: bool) -> str:
    if not wanted or colour == "ink":
        return text
    return f"\x1b[{2 if colour == 'soft' else _basic(BASIC[colour] or 0)}m{text}\x1b[0m"


def _tidy(text: str) -> str:
    """plotext's escape codes as those of the sixteen colours, which every terminal knows."""
    short = PALETTE.sub(lambda match: f"\x1b[{match[1]}{_basic(int(match[2]))}m", text)
    return DOUBLE_RESET.sub("", short)


def _basic(number: int) -> int:
    return 30 + number if number < 8 else 82 + number
