"""The roofline with the measured points: FLOP/s over FLOP/byte, datasheet and measured ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from .compare import Compared, measured_ceilings
from .figures import (
    INK,
    SOFT,
    caption,
    drawing_style,
    marks_of,
    new_figure,
    note,
    plain_log_ticks,
    points_of_series,
    series_id,
)
from .record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Roof:
    """Two ceilings and where they come from; FLOP/s and B/s."""

    label: str
    flop_per_s: float
    bytes_per_s: float
    measured: bool

    @property
    def ridge(self) -> float:
        """FLOP/B at which both ceilings meet."""
        return self.flop_per_s / self.bytes_per_s


def roofs(run: Run, gpu: GPU, dtypes: Sequence[str]) -> list[Roof]:
    """The datasheet's roof of every dtype among ``dtypes``, and the measured one where the run has both parts.

    Dtypes that share a peak share the datasheet's roof.
    """
    found: dict[float, Roof] = {}
    measured = []
    for dtype in dtypes:
        sheet = datasheet_ceilings(gpu, dtype)
        found.setdefault(sheet.flop_per_s, Roof(f"datasheet, {dtype}", sheet.flop_per_s, sheet.bytes_per_s, False))
        own = measured_ceilings(run.ceilings, dtype)
        if own:
            measured.append(Roof(f"measured, {dtype}", own.flop_per_s, own.bytes_per_s, True))
    return [*found.values(), *measured]


def attention_cells(cells: Sequence[Compared]) -> list[Compared]:
    """The cells that timed the attention kernel alone: those that have one place on a roofline."""
    return [cell for cell in cells if cell.row.scope == "attention"]


def roofline_figure(run: Run, gpu: GPU, cells: Sequence[Compared]) -> Figure:
    """Attention cells under their roofs; colour is heads x queries, the marker is the kernel."""
    shown = attention_cells(cells)
    over = roofs(run, gpu, sorted({cell.row.dtype for cell in shown}))
    with drawing_style():
        title = "Attention kernels under the roofline"
        figure = new_figure(title, caption(run, [cell.row for cell in shown]))
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlabel="intensity, FLOP/byte", ylabel="TFLOP/s")
        _points(figure, axes, shown)
        _draw_roofs(axes, over)
        _legend(axes, shown)
    return figure


def _points(figure: Figure, axes: Axes, cells: Sequence[Compared]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    levels = sorted({cell.row.heads * cell.row.queries for cell in cells})
    scale = colormaps["viridis"](_spread(len(levels)))
    norm = BoundaryNorm([at - 0.5 for at in range(len(levels) + 1)], len(levels))
    drawn: Any = None
    for name, mark in marks_of(cell.row for cell in cells).items():
        for hollow in (False, True):
            mine = points_of_series(cells, name, hollow)
            if not mine:
                continue
            colours = [levels.index(cell.row.heads * cell.row.queries) for cell in mine]
            drawn = axes.scatter(
                [cell.flop / cell.bytes for cell in mine],
                [cell.flop / cell.row.time_us * 1e-6 for cell in mine],
                c=colours, cmap=ListedColormap(scale), norm=norm, marker="d" if hollow else mark.marker, s=42,
                edgecolors="white", linewidths=0.5, zorder=3,
            )  # fmt: skip
            drawn.set_gid(series_id(name, hollow))
    bar = figure.colorbar(drawn, ax=axes, pad=0.01, aspect=30)
    bar.set_label("heads x queries (score rows of a request)")
    bar.set_ticks(list(range(len(levels))), labels=[f"{level:,}" for level in levels])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def _spread(count: int) -> list[float]:
    """Places on a colour map, its palest end left out: light yellow on white is hard to see."""
    return [0.92 * at / max(count - 1, 1) for at in range(count)]


def _draw_roofs(axes: Axes, over: Sequence[Roof]) -> None:
    low, high = axes.get_xlim()
    low, high = low / 1.5, max(high, 2 * max(roof.ridge for roof in over)) * 1.3
    bottom = axes.get_ylim()[0] / 3  # room for the ridges' numbers
    top = max(roof.flop_per_s for roof in over) * 1e-12 * 2.2
    for roof in over:
        x = [low, roof.ridge, high]
        y = [value * 1e-12 for value in (low * roof.bytes_per_s, roof.flop_per_s, roof.flop_per_s)]
        numbers = f"{roof.bytes_per_s / 1e12:.4g} TB/s, {roof.flop_per_s / 1e12:.4g} TFLOP/s"
        axes.plot(
            x, y, color=SOFT if roof.measured else INK, linestyle=(0, (6, 3)) if roof.measured else "-",
            linewidth=1.6 if roof.measured else 2.0, zorder=2, label=f"{roof.label}: {numbers}",
        )  # fmt: skip
    marked = {roof.measured: roof for roof in reversed(over)}  # the first of either kind: more would overlap
    for roof in marked.values():
        _mark_ridge(axes, roof, right=roof.ridge == max(other.ridge for other in marked.values()))
    _shade(axes, marked[False].ridge, low, high)
    axes.set(xlim=(low, high), ylim=(bottom, top))
    plain_log_ticks(axes.xaxis, dense=True)
    plain_log_ticks(axes.yaxis)


def _mark_ridge(axes: Axes, roof: Roof, right: bool) -> None:
    colour = SOFT if roof.measured else INK
    axes.axvline(roof.ridge, color=colour, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    text = f"ridge {'measured' if roof.measured else 'datasheet'}\n{roof.ridge:.1f} FLOP/B"
    side, offset = ("left", 5) if right else ("right", -5)
    note(axes, text, (roof.ridge, 0.02), (offset, 0), side, "bottom", colour, fractions=(False, True))


def _shade(axes: Axes, ridge: float, low: float, high: float) -> None:
    for start, end, colour, text, side in (
        (low, ridge, "#eef4fa", "memory binds", "left"),
        (ridge, high, "#fbf3e6", "compute binds", "right"),
    ):
        axes.axvspan(start, end, color=colour, zorder=0, linewidth=0)
        at, offset = (start, 8) if side == "left" else (end, -8)
        note(axes, text, (at, 0.985), (offset, 0), side, "top", SOFT, fractions=(False, True))


def _legend(axes: Axes, cells: Sequence[Compared]) -> None:
    """Roofs at the left above the axes, kernels at the right."""
    from matplotlib.lines import Line2D

    marks = [(mark.marker, mark.label) for mark in marks_of(cell.row for cell in cells).values()]
    narrow = sorted({cell.row.cache for cell in cells} - {"bf16"})
    if narrow:
        marks.append(("d", f"{', '.join(narrow)} cache"))
    kernels = [
        Line2D([], [], linestyle="", marker=marker, color=SOFT, markersize=8, label=label) for marker, label in marks
    ]
    axes.add_artist(axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2))
    axes.legend(handles=kernels, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderaxespad=0.2)
