"""The crossover map of one validate run: which path was faster over queries and context, beside the predictions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, Any

from ..report.drawing.style import INK, drawing_style, new_figure
from .crossing import Crossing, pairs_of
from .figures import caption, tokens
from .record import Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAIVE_TITLES = {"naive": "naive as an engine runs it", "naive_in_place": "naive with K written in place"}
ABSORBED_COLOUR, NAIVE_COLOUR = "#0072B2", "#D55E00"
FULL_COLOUR_OCTAVES = 2.0
"""A path that is four times as fast as the other gets its full colour."""

DOTS, DASHES = (0, (1, 1.5)), (0, (2.5, 1.2))
PANELS_IN = 10.0
"""Width that the columns of all panels share."""
LETTER_IN, NUMBER_IN = 0.2, 0.46
"""Width of a column that holds the initial of the faster path, and of one that holds its factor too."""
TEXT_LEFT, MARK_RIGHT = 0.12, 0.36
"""Of a column's width: from its middle to the text, and on the other side to the measured point."""
TEXT_SHIFT, TEXT_ROOM = 0.27, 0.2
"""Of a row's height: how far a text moves out of a line's way, and how near a line may come to its middle."""


@dataclass(frozen=True, slots=True)
class Duel:
    """Both paths at one shape: how many times as long the naive one took."""

    heads: int
    context: int
    queries: int
    naive_over_absorbed: float

    @property
    def text(self) -> str:
        """The faster path's initial and its factor: ``A 1.8`` absorbed, ``N 1.2`` naive."""
        ratio = self.naive_over_absorbed
        return f"A {_short(ratio)}" if ratio >= 1 else f"N {_short(1 / ratio)}"


def _short(factor: float) -> str:
    return f"{factor:.1f}" if factor < 9.95 else f"{factor:.0f}"


def duels(rows: Sequence[Row], naive: str, batch: int) -> list[Duel]:
    """The shapes of ``batch`` requests that both paths were timed at, by the pairs of the crossovers.

    The fastest absorbed row of a Q stands for its path.
    """
    found = []
    for pair in pairs_of(rows):
        if pair.name != naive or pair.place.batch != batch:
            continue
        absorbed: dict[int, float] = {}
        for row in pair.absorbed:
            absorbed[row.queries] = min(row.time_us, absorbed.get(row.queries, row.time_us))
        found += [
            Duel(row.heads, row.context, row.queries, row.time_us / absorbed[row.queries])
            for row in pair.naive
            if row.queries in absorbed
        ]
    return found


@dataclass(frozen=True, slots=True)
class Ladder:
    """An axis of queries with a row of equal height for every Q that was measured, rising.

    Between two rows, and beyond the ends, it is logarithmic: a step there is that of the nearest rows.
    """

    rows: tuple[int, ...]

    def place(self, queries: float) -> float:
        """The height of ``queries``, in rows: 0 is the first measured Q, 1 the second."""
        if len(self.rows) == 1:
            return log2(queries / self.rows[0])
        below = min(max(bisect_right(self.rows, queries) - 1, 0), len(self.rows) - 2)
        low, high = self.rows[below : below + 2]
        return below + log2(queries / low) / log2(high / low)

    def holds(self, queries: float) -> bool:
        """Whether ``queries`` lies on the axis, which ends half a row beyond the rows."""
        return -0.5 <= self.place(queries) <= len(self.rows) - 0.5


def crossover_figure(
    run: Run, crossings: Sequence[Crossing], naive: str, batch: int, thresholds: Mapping[int, str]
) -> Figure:
    """One panel per head count: cells say which path was faster, lines where it was predicted to change.

    A panel has a column for every context that its head count was measured at; all share the rows. Lines are level
    over the column that they are of.

    Args:
        run: its ``absorbed`` and ``naive`` rows are the cells.
        crossings: the measured boundary and the predictions, for any naive path and batch.
        naive: the naive path's name.
        batch: requests.
        thresholds: label by queries of the engines' constants.
    """
    found = duels(run.rows, naive, batch)
    ladder = Ladder(tuple(sorted({duel.queries for duel in found})))
    contexts = {
        heads: sorted({duel.context for duel in found if duel.heads == heads})
        for heads in sorted({duel.heads for duel in found})
    }
    column_in = PANELS_IN / sum(map(len, contexts.values()))
    title = f"Which path is faster: absorbed or {NAIVE_TITLES.get(naive, naive)}, batch {batch}"
    used = [row for row in run.rows if row.scope == "naive" and row.kernel == naive and row.batch == batch]
    with drawing_style():
        blank = len(found) < len(ladder.rows) * sum(map(len, contexts.values()))
        figure = new_figure(title, caption(run, used) + "  ·  white: not measured" * blank)
        panels = figure.subplots(
            1, len(contexts), sharey=True, squeeze=False, width_ratios=[len(mine) for mine in contexts.values()]
        )[0]
        for axes, (heads, columns) in zip(panels, contexts.items(), strict=True):
            mine = {crossing.context: crossing for crossing in crossings if _is(crossing, heads, naive, batch)}
            lines = boundaries([mine.get(context) for context in columns], ladder)
            _map_axes(axes, columns, ladder, column_in)
            _cells(axes, [duel for duel in found if duel.heads == heads], columns, ladder, lines, column_in)
            _thresholds(axes, thresholds, ladder, labelled=axes is panels[-1])
            _draw_boundaries(axes, lines)
            axes.set_title(f"{heads} heads" + " per rank" * (len(columns) * column_in > 2))
        panels[0].set_ylabel("query tokens per request (a row for each Q measured)")
        _map_legend(figure, panels[0], bool(thresholds))
    return figure


def _is(crossing: Crossing, heads: int, naive: str, batch: int) -> bool:
    return (crossing.heads, crossing.naive, crossing.batch) == (heads, naive, batch)


def _map_axes(axes: Axes, contexts: Sequence[int], ladder: Ladder, column_in: float) -> None:
    labels = [tokens(context) for context in contexts]
    longest = max(map(len, labels)) * 0.11  # inches at the size of ticks
    axes.set_xticks(range(len(contexts)), labels=labels, rotation=0 if longest < column_in else 90)
    axes.set_yticks(range(len(ladder.rows)), labels=[f"{queries:,}" for queries in ladder.rows])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.set_xlim(-0.5, len(contexts) - 0.5)
    axes.set_ylim(-0.5, len(ladder.rows) - 0.5)
    axes.set_xlabel("context, tokens")


def _cells(
    axes: Axes,
    mine: Sequence[Duel],
    contexts: Sequence[int],
    ladder: Ladder,
    lines: Boundaries,
    column_in: float,
) -> None:
    """A cell per shape, its colour by the faster path; its text is a letter too, so that grey print tells."""
    from matplotlib.patches import Rectangle

    for duel in mine:
        x, y = contexts.index(duel.context), ladder.rows.index(duel.queries)
        colour = _colour_of(duel.naive_over_absorbed)
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 1}
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, zorder=1, rasterized=True, **look))
        if column_in >= LETTER_IN:
            height = y + _clear_of([level[x] - y for level in (lines.measured, lines.flop, lines.time)])
            axes.text(
                x - TEXT_LEFT, height, duel.text if column_in >= NUMBER_IN else duel.text[0], ha="center", va="center",
                fontsize=9, zorder=4, color=INK, bbox={"boxstyle": "square,pad=0.08", "fc": colour, "ec": "none"},
            )  # fmt: skip


def _clear_of(lines: Sequence[float]) -> float:
    """How far from a cell's middle its text stands, so that none of the ``lines`` crosses it, in rows."""

    def room(shift: float) -> float:
        return min((abs(line - shift) for line in lines if line == line), default=1.0)

    return max((0.0, -TEXT_SHIFT, TEXT_SHIFT), key=lambda shift: min(room(shift), TEXT_ROOM))


def _colour_of(naive_over_absorbed: float) -> tuple[float, float, float]:
    strength = min(abs(log2(naive_over_absorbed)) / FULL_COLOUR_OCTAVES, 1)
    return _tint(ABSORBED_COLOUR if naive_over_absorbed >= 1 else NAIVE_COLOUR, 0.12 + 0.5 * strength)


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour let down with white; opaque, so that lines below a text do not cross it."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def _thresholds(axes: Axes, thresholds: Mapping[int, str], ladder: Ladder, labelled: bool) -> None:
    """Those beyond the axis have a label at its end, and no line."""
    for queries, label in sorted(thresholds.items()):
        inside = ladder.holds(queries)
        place = min(max(ladder.place(queries), -0.5), len(ladder.rows) - 0.5)
        if inside:
            axes.axhline(place, color=INK, linewidth=1.3, linestyle=DOTS, zorder=2)
        if labelled:
            text = f"{label}\n{queries}" + ("" if inside else ", beyond")
            axes.annotate(
                text, (1, place), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
                va="center", ha="left", fontsize=10, color=INK, annotation_clip=False,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Heights on the ladder, one per column; NaN where there is no value."""

    measured: list[float]
    low: list[float]
    high: list[float]
    flop: list[float]
    time: list[float]


def boundaries(mine: Sequence[Crossing | None], ladder: Ladder) -> Boundaries:
    """The heights of what was measured and predicted, for the columns that ``mine`` are of."""

    def heights(of: Callable[[Crossing], float | None]) -> list[float]:
        found = [None if crossing is None else of(crossing) for crossing in mine]
        return [float("nan") if queries is None else ladder.place(queries) for queries in found]

    return Boundaries(
        measured=heights(lambda crossing: crossing.measured_queries),
        low=heights(lambda crossing: crossing.low),
        high=heights(lambda crossing: crossing.high),
        flop=heights(lambda crossing: crossing.flop_queries),
        time=heights(lambda crossing: crossing.time_queries),
    )


def _draw_boundaries(axes: Axes, lines: Boundaries) -> None:
    """Measured with its spread, by FLOPs, by time; a context without a value has a gap.

    A line is level over the width of its context's column; the measured point stands beside the cells' text.
    """
    from matplotlib.patheffects import withStroke

    edges = [at - 0.5 for at in range(len(lines.measured) + 1)]
    flat: dict[str, Any] = {"edges": edges, "baseline": None, "color": INK, "zorder": 3}
    # the solid line lies on the dashes, of which then both ends show: the predictions are often alike
    axes.stairs(lines.time, linestyle=DASHES, linewidth=2.4, label="predicted by time", **flat)
    axes.stairs(lines.flop, linewidth=1.1, label="predicted by FLOPs", **flat)
    halo = [withStroke(linewidth=4.6, foreground="white")]
    axes.stairs(lines.measured, linewidth=2.6, path_effects=halo, label="measured", **flat)
    spread = (
        [max(at - _or(end, at), 0) for at, end in zip(lines.measured, lines.low, strict=True)],
        [max(_or(end, at) - at, 0) for at, end in zip(lines.measured, lines.high, strict=True)],
    )
    axes.errorbar(
        [at + MARK_RIGHT for at in range(len(lines.measured))], lines.measured, yerr=spread, color=INK, marker="D",
        markersize=6, markerfacecolor="white", markeredgewidth=1.6, linestyle="", elinewidth=1.6, capsize=3, zorder=5,
        label="measured, with spread",
    )  # fmt: skip


def _or(value: float, other: float) -> float:
    return other if value != value else value


def _map_legend(figure: Figure, axes: Axes, thresholds: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn, labels = axes.get_legend_handles_labels()
    flat: dict[str, Any] = {"color": INK}
    handles: list[Any] = [
        drawn[labels.index("measured, with spread")],
        Line2D([], [], linewidth=2.4, linestyle=DASHES, label="predicted by time", **flat),
        Line2D([], [], linewidth=1.1, label="predicted by FLOPs", **flat),
    ]
    if thresholds:
        handles.append(Line2D([], [], linewidth=1.3, linestyle=DOTS, label="engines' constants", **flat))
    handles += [
        Patch(facecolor=_tint(ABSORBED_COLOUR, 0.5), label="A: absorbed faster, times"),
        Patch(facecolor=_tint(NAIVE_COLOUR, 0.5), label="N: naive faster, times"),
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.1, handletextpad=0.4,
        fontsize=10.5,
    )  # fmt: skip
