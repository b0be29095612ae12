"""A map of cells as plotly's traces: one scale of colours for all panels, the key to it, and the names of rules."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import log10
from typing import Any

from .. import format as fmt
from ..chart import Cells, Chart, Colour
from ..chart_data import drawn, edges, value
from ..record import Results
from .cells import FULL, MOST_EDGE, PALE, cell_colour, is_light, key_text, octaves_of, tint
from .plotly_frame import FONT_PX, TICK_AIR_PX, TICK_CHAR_PX, Direction, Frame, rule_names, rules_at, safe
from .plotly_marks import Trace, placed, told_by, told_to
from .plotly_texts import CHAR, TEXT_PX, Places
from .style import COLOURS, SOFT, TEXT_COLOURS

LEAST_PX = 8
"""A number that fits its cell only smaller is left out: pointing at the cell tells it."""
FITTING = 0.9
"""Of a cell: what its number may take."""
HATCH: dict[str, Any] = {"shape": "/", "size": 7, "solidity": 0.16, "fgcolor": TEXT_COLOURS["red"]}
"""Of values below 1, so that grey print tells them."""
SEAM_PX = 1
"""Between two cells: a thinner line would not be seen."""
KEY_AT_PX, KEY_THICK_PX = 52, 13
"""From the panels' foot to the key, and how thick that is."""
SIDES_LEGEND = "legend2"
"""A legend of its own, in which nothing can be switched: what either side of 1 means."""
Ratios = list[float]


def ratios_of(chart: Chart, results: Results) -> Ratios:
    """The ratios of all cells of all panels: they share one scale."""
    marks = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Cells)]
    return [ratio for mark in marks for record in drawn(results, mark) if (ratio := value(record, mark.value))]


def colour_axis(ratios: Ratios, plot_px: float, across_px: float) -> dict[str, Any]:
    """The scale of colours that the panels share, and below them its key: the colours and ends of a picture's.

    ``plot_px``, ``across_px``: how high the panels are, and how wide the key.
    """
    octaves = octaves_of(ratios)
    reach = octaves * log10(2)
    stops: tuple[tuple[float, Colour, float], ...] = (
        (0.0, "red", FULL),
        (0.5, "red", PALE),
        (0.5, "blue", PALE),
        (1.0, "blue", FULL),
    )
    steps = _key_steps(ratios, across_px)
    return {
        "cmin": -reach,
        "cmax": reach,
        "colorscale": [[at, css(tint(COLOURS[colour], strength))] for at, colour, strength in stops],
        "colorbar": {
            "orientation": "h", "thickness": KEY_THICK_PX, "outlinewidth": 0, "lenmode": "fraction", "len": 1,
            "x": 0, "xanchor": "left", "xpad": 0, "y": -KEY_AT_PX / plot_px, "yanchor": "top", "ypad": 0,
            "tickvals": [step * log10(2) for step in steps],
            "ticktext": [key_text(step, octaves, ratios) for step in steps],
            "ticks": "outside", "ticklen": 3, "tickcolor": SOFT, "tickangle": 0, "tickfont": {"size": 12},
        },
    }  # fmt: skip


def _key_steps(ratios: Ratios, across_px: float) -> list[int]:
    """The powers of two that have a tick: the ends and 1, and as many between as do not touch."""
    most = int(octaves_of(ratios))
    texts = [key_text(step, most, ratios) for step in range(-most, most + 1)]
    apart = (max(map(len, texts)) * TICK_CHAR_PX + TICK_AIR_PX) * 2 * most / across_px
    step = next((each for each in range(1, most) if most % each == 0 and each >= apart), most)
    return list(range(-most, most + 1, step))


def css(colour: Iterable[float]) -> str:
    """A colour in CSS' words."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def readable_on(colour: Iterable[float]) -> str:
    """Black or white, whichever stands out more: one of both has a contrast of 4.5 and more on any colour."""
    return "#000000" if is_light(colour) else "#ffffff"


def cells_traces(mark: Cells, frame: Frame, results: Results, places: Places, octaves: float) -> list[Trace]:
    """A grid coloured by the logarithm of its ratio, a hatch below 1, and the texts above both; then the key's sides.

    The ratios themselves go along.
    """
    at = {(x, y): record for x, y, record in placed(mark, frame, results)}
    across, up = _spans(mark, frame, results, "x"), _spans(mark, frame, results, "y")
    ratios = [[value(at[x, y], mark.value) if (x, y) in at else None for x in across] for y in up]
    made: Trace = {
        "type": "heatmap",
        "x": _ends(across),
        "y": _ends(up),
        "z": [[log10(ratio) if ratio else None for ratio in row] for row in ratios],
        "customdata": ratios,
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hoverinfo": "text",
        **told_to(
            frame, lambda: [[told_by(mark, at[x, y], frame) if (x, y) in at else "" for x in across] for y in up]
        ),
    }
    known = {place: ratio for place, record in at.items() if (ratio := value(record, mark.value))}
    below = [(across[x], up[y]) for (x, y), ratio in known.items() if ratio < 1]
    found = [made, _hatched(below), _seams(across, up, places)]
    if mark.text:
        texts = {place: fmt.shown(value(at[place], mark.text), mark.kind) for place in known}
        colours = {place: cell_colour(ratio, octaves) for place, ratio in known.items()}
        found.append(_texts(texts, colours, (across, up), places, results))
    return [*found, *_sides(mark)]


Spans = dict[float, tuple[float, float]]
"""From where to where the cells lie whose middle is at a place of an axis."""


def _spans(mark: Cells, frame: Frame, results: Results, direction: Direction) -> Spans:
    axis = frame.axis(direction)
    if axis.scale == "category":
        return {float(at): (at - 0.5, at + 0.5) for at in range(len(frame.names[direction]))}
    key = mark.x if direction == "x" else mark.y
    values = sorted({value(record, key) for record in drawn(results, mark)})
    ends = [each / axis.unit for each in edges(values, axis)] if values else []
    return {each / axis.unit: span for each, span in zip(values, pairwise(ends), strict=True)}


def _ends(spans: Spans) -> list[float]:
    """One more than there are cells: from middles alone plotly would guess how wide the only one of an axis is."""
    return [*(low for low, _ in spans.values()), *([high for _, high in spans.values()][-1:])]


def _hatched(boxes: list[tuple[tuple[float, float], tuple[float, float]]]) -> Trace:
    x: list[float | None] = []
    y: list[float | None] = []
    for (left, right), (low, high) in boxes:
        x += [left, right, right, left, left, None]
        y += [low, low, high, high, low, None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself", "fillcolor": "rgba(0,0,0,0)",
        "fillpattern": HATCH | {"bgcolor": "rgba(0,0,0,0)"}, "line": {"width": 0},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _seams(across: Spans, up: Spans, places: Places) -> Trace:
    """White lines between columns and between rows.

    They are no gaps of plotly's: those are the same between all columns, of which the narrow ones would be gap alone.
    """
    x: list[float | None] = []
    y: list[float | None] = []
    columns, rows = _ends(across), _ends(up)
    for at in _parting(across, "x", places.frame):
        x += [at, at, None]
        y += [rows[0], rows[-1], None]
    for at in _parting(up, "y", places.frame):
        x += [columns[0], columns[-1], None]
        y += [at, at, None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"width": SEAM_PX, "color": "white"},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _parting(spans: Spans, direction: Direction, frame: Frame) -> list[float]:
    """Where columns, or rows, meet of which the narrower has room for a line: it takes no more than a picture's."""
    length = frame.width_px if direction == "x" else frame.height_px
    parts = [(high, (frame.share(direction, high) - frame.share(direction, low)) * length)
             for low, high in spans.values()]  # fmt: skip
    return [at for (at, one), (_, other) in pairwise(parts) if MOST_EDGE * min(one, other) >= SEAM_PX]


def _texts(
    texts: dict[tuple[float, float], str],
    colours: dict[tuple[float, float], tuple[float, float, float]],
    spans: tuple[Spans, Spans],
    places: Places,
    results: Results,
) -> Trace:
    """What stands in the cells, all in one size, off lines and points where a cell has room; a cell's colour around."""
    boxes = {
        (x, y): (*places.at(spans[0][x][0], spans[1][y][0]), *places.at(spans[0][x][1], spans[1][y][1]))
        for x, y in texts
    }
    fitting = [
        FITTING * min((box[2] - box[0]) / (max(len(texts[place]), 1) * CHAR), box[3] - box[1])
        for place, box in boxes.items()
    ]
    size = min(FONT_PX - 1, *fitting) if fitting else 0.0
    shown = list(texts) if size >= LEAST_PX else []
    size = max(size, LEAST_PX)  # plotly takes no size below 1, of no text either
    levels = rules_at(places.frame, results, "y")
    at = [places.in_cell(boxes[place], texts[place], size, levels) for place in shown]
    halos = [css(colours[place]) for place in shown]
    return {
        "type": "scatter",
        "mode": "text",
        "x": [x for x, _ in at],
        "y": [y for _, y in at],
        "text": [safe(texts[place]) for place in shown],
        "textposition": "middle center",
        "textfont": {
            "size": round(size, 1),
            "color": [readable_on(colours[place]) for place in shown],
            "shadow": [halo(colour) for colour in halos],
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }


def is_text(trace: Trace) -> bool:
    """Whether a trace has texts alone."""
    return trace.get("mode") == "text"


def halo(colour: str) -> str:
    """In CSS' words: a text's ground, over a hatch and over a line that it has no room beside."""
    ways = [(x, y) for x in (-2, 0, 2) for y in (-2, 0, 2) if x or y]
    return ", ".join(f"{x}px {y}px 1px {colour}" for x, y in ways)


def _sides(mark: Cells) -> list[Trace]:
    """What either side of 1 means, for a legend below the key: hatched below 1, as the cells are."""
    made = []
    for label, text, ratio in (
        (mark.below, f"\u2190 {safe(mark.below)}", 0.6),
        (mark.above, f"{safe(mark.above)} \u2192", 1.7),
    ):
        colour = css(cell_colour(ratio, 1.0))
        side: Trace = {
            "type": "scatter", "mode": "lines", "x": [None], "y": [None], "line": {"width": 1, "color": colour},
            "fill": "toself", "fillcolor": colour, "name": text, "legend": SIDES_LEGEND,
            "legendgroup": f"side/{label}", "showlegend": bool(label), "hoverinfo": "skip",
        }  # fmt: skip
        made.append(side | ({"fillpattern": HATCH | {"bgcolor": colour}} if ratio < 1 else {}))
    return made


def names_of_rules(frame: Frame, results: Results) -> list[dict[str, Any]]:
    """The texts of a map's level rules at its right, where they cover no cell; none stands on the one below it."""
    notes = []
    free = float("-inf")
    for at, mark, text in sorted(rule_names(frame.panel, results), key=lambda each: each[0]):
        half = 0.65 * TEXT_PX * (text.count("<br>") + 1)
        own = frame.share("y", at) * frame.height_px
        middle = max(own, free + half)
        free = middle + half
        notes.append(
            {
                "xref": f"x{frame.suffix} domain", "yref": f"y{frame.suffix}", "x": 1, "xanchor": "left", "xshift": 3,
                "y": log10(at) if frame.panel.y.scale == "log" else at, "yanchor": "middle", "yshift": middle - own,
                "text": text, "align": "left", "showarrow": False,
                "font": {"size": TEXT_PX, "color": TEXT_COLOURS[mark.look.colour]},
            }
        )  # fmt: skip
    return notes
