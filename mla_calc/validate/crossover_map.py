"""The crossover map of one validate run: which path was faster over queries and context, beside the predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2
from typing import TYPE_CHECKING, Any

from .crossing import Crossing
from .figures import INK, SOFT, caption, drawing_style, new_figure, tokens
from .record import Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAIVE_TITLES = {"naive": "naive as an engine runs it", "naive_in_place": "naive with K written in place"}
ABSORBED_COLOUR, NAIVE_COLOUR = "#0072B2", "#D55E00"
FULL_COLOUR_OCTAVES = 2.0
"""A path that is four times as fast as the other gets its full colour."""

MEASURED_COLOUR = "#009E73"
PANELS_IN, BOX_IN, BESIDE_IN = 10.4, 0.42, 0.26
"""Width that the panels share, that a box with its number takes, and from its middle to the point beside it."""


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
    """The shapes of ``batch`` requests that both paths were timed at; the fastest absorbed row stands for its path.

    Rows of different dtypes or cache layouts never meet.
    """
    absorbed: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if row.scope == "absorbed" and row.batch == batch:
            absorbed[_shape(row)] = min(row.time_us, absorbed.get(_shape(row), row.time_us))
    return [
        Duel(row.heads, row.context, row.queries, row.time_us / absorbed[_shape(row)])
        for row in rows
        if row.scope == "naive" and row.kernel == naive and row.batch == batch and _shape(row) in absorbed
    ]


def _shape(row: Row) -> tuple[Any, ...]:
    return (row.heads, row.batch, row.queries, row.context, row.dtype, row.cache)


def crossover_figure(
    run: Run, crossings: Sequence[Crossing], naive: str, batch: int, thresholds: Mapping[int, str]
) -> Figure:
    """One panel per head count: boxes say which path was faster, lines where it was predicted to change.

    Args:
        run: its ``absorbed`` and ``naive`` rows are the boxes.
        crossings: the measured boundary and the predictions, for any naive path and batch.
        naive: the naive path's name.
        batch: requests.
        thresholds: label by queries of the engines' constants.
    """
    found = duels(run.rows, naive, batch)
    heads = sorted({duel.heads for duel in found})
    title = f"Which path is faster: absorbed or {NAIVE_TITLES.get(naive, naive)}, batch {batch}"
    used = [row for row in run.rows if row.scope == "naive" and row.kernel == naive and row.batch == batch]
    with drawing_style():
        figure = new_figure(title, caption(run, used))
        panels = figure.subplots(1, len(heads), sharey=True, squeeze=False)[0]
        for axes, count in zip(panels, heads, strict=True):
            mine = sorted((c for c in crossings if _is(c, count, naive, batch)), key=lambda c: c.context)
            _map_axes(axes, found)
            _boxes(axes, [duel for duel in found if duel.heads == count], _roomy(found))
            _thresholds(axes, thresholds, labelled=axes is panels[-1])
            _boundaries(axes, mine)
            axes.set_title(f"{count} heads per rank")
        panels[0].set_ylabel("query tokens per request")
        _map_legend(figure, panels[0])
    return figure


def _is(crossing: Crossing, heads: int, naive: str, batch: int) -> bool:
    return (crossing.heads, crossing.naive, crossing.batch) == (heads, naive, batch)


def _map_axes(axes: Axes, found: Sequence[Duel]) -> None:
    contexts = sorted({duel.context for duel in found})
    most = max(duel.queries for duel in found)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(contexts, labels=[tokens(context) for context in contexts])
    powers = [1 << power for power in range(ceil(log2(max(most, 2))) + 1)]
    axes.set_yticks(powers, labels=[f"{power:,}" for power in powers])
    axes.minorticks_off()
    axes.set_xlim(contexts[0] / 1.9, contexts[-1] * 2.8)
    axes.set_ylim(0.75, most * 1.35)
    axes.set_xlabel("context, tokens")


def _boxes(axes: Axes, found: Sequence[Duel], roomy: bool) -> None:
    """A box per shape, above the lines: round for absorbed, square for naive, so that grey print tells too."""
    for duel in found:
        absorbed = duel.naive_over_absorbed >= 1
        strength = min(abs(log2(duel.naive_over_absorbed)) / FULL_COLOUR_OCTAVES, 1)
        axes.text(
            duel.context, duel.queries, duel.text if roomy else duel.text[0], ha="center", va="center",
            fontsize=8.5, zorder=3, color=INK,
            bbox={
                "boxstyle": "round,pad=0.1,rounding_size=0.5" if absorbed else "square,pad=0.1",
                "facecolor": _tint(ABSORBED_COLOUR if absorbed else NAIVE_COLOUR, 0.12 + 0.5 * strength),
                "edgecolor": "none",
            },
        )  # fmt: skip


def _roomy(found: Sequence[Duel]) -> bool:
    """Whether a box with a number in it fits between two contexts; else it holds the initial alone."""
    panels = len({duel.heads for duel in found})
    contexts = sorted({duel.context for duel in found})
    gaps = [log2(after / before) for before, after in pairwise(contexts)]
    octaves = log2(contexts[-1] / contexts[0]) + log2(1.9 * 2.8)
    return not gaps or min(gaps) * PANELS_IN / (panels * octaves) >= BOX_IN


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour let down with white; opaque, so that lines below a box do not cross its text."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def _thresholds(axes: Axes, thresholds: Mapping[int, str], labelled: bool) -> None:
    for queries, label in sorted(thresholds.items()):
        axes.axhline(queries, color=SOFT, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=1)
        if labelled:
            axes.annotate(
                f"{label}\n{queries}", (1, queries), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", ha="left", fontsize=10, color=SOFT, annotation_clip=False,
            )  # fmt: skip


def _boundaries(axes: Axes, mine: Sequence[Crossing]) -> None:
    """Measured with its spread, by FLOPs, by time; a context without a value breaks a line.

    Lines run below the boxes; the measured points stand beside theirs, to be seen whole.
    """
    from matplotlib.transforms import ScaledTranslation

    contexts = [crossing.context for crossing in mine]
    flop = [_or_gap(crossing.flop_queries) for crossing in mine]
    time = [_or_gap(crossing.time_queries) for crossing in mine]
    axes.plot(contexts, flop, color=INK, linewidth=1.2, zorder=2, label="predicted by FLOPs")
    axes.plot(contexts, time, color=INK, linestyle="--", linewidth=1.6, zorder=2, label="predicted by time")
    measured = [_or_gap(crossing.measured_queries) for crossing in mine]
    beside = axes.transData + ScaledTranslation(BESIDE_IN, 0, axes.figure.dpi_scale_trans)
    axes.plot(contexts, measured, color=MEASURED_COLOUR, linewidth=1.4, zorder=2, transform=beside)
    spread = (
        [at - _or(crossing.low, at) for at, crossing in zip(measured, mine, strict=True)],
        [_or(crossing.high, at) - at for at, crossing in zip(measured, mine, strict=True)],
    )
    axes.errorbar(
        contexts, measured, yerr=spread, color=MEASURED_COLOUR, marker="D", markersize=6, linestyle="",
        elinewidth=2, capsize=3.5, zorder=5, label="measured, with spread", transform=beside,
    )  # fmt: skip


def _or_gap(value: float | None) -> float:
    return float("nan") if value is None else value


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _map_legend(figure: Figure, axes: Axes) -> None:
    from matplotlib.patches import Patch

    handles, _ = axes.get_legend_handles_labels()
    handles += [
        Patch(facecolor=_tint(ABSORBED_COLOUR, 0.5), label="A: absorbed faster, times"),
        Patch(facecolor=_tint(NAIVE_COLOUR, 0.5), label="N: naive faster, times"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.4, handletextpad=0.5)
