"""The roofline with the measured points: FLOP/s over FLOP/byte, datasheet and measured ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from ..report.drawing.style import INK, SOFT, drawing_style, new_figure, note, plain_log_ticks
from .compare import Compared, measured_ceilings
from .figures import CLOUD_ORDER, Mark, cache_label, caption, marks_of, series_of
from .record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALEST = 0.92
"""Where the colour map is cut: light yellow on white is hard to see."""
MARKER_AREA = 18.0
ASIDE_ALPHA = 0.3
"""Of kernels that were timed beside the one that the choice takes."""


@dataclass(frozen=True, slots=True)
class Roof:
    """Two ceilings and where they come from; FLOP/s and B/s."""

    dtypes: tuple[str, ...]
    flop_per_s: float
    bytes_per_s: float
    measured: bool

    @property
    def ridge(self) -> float:
        """FLOP/B at which both ceilings meet."""
        return self.flop_per_s / self.bytes_per_s

    @property
    def label(self) -> str:
        """Source, dtypes and numbers."""
        source = "measured" if self.measured else "datasheet"
        numbers = f"{self.bytes_per_s / 1e12:.4g} TB/s, {self.flop_per_s / 1e12:.4g} TFLOP/s"
        return f"{source}, {' and '.join(self.dtypes)}: {numbers}"


def roofs(run: Run, gpu: GPU, dtypes: Sequence[str]) -> list[Roof]:
    """The datasheet's roof of every dtype among ``dtypes``, and the measured one where the run has both parts.

    Dtypes that share a peak share the datasheet's roof.
    """
    found: dict[float, Roof] = {}
    measured = []
    for dtype in dtypes:
        sheet = datasheet_ceilings(gpu, dtype)
        names = found[sheet.flop_per_s].dtypes if sheet.flop_per_s in found else ()
        found[sheet.flop_per_s] = Roof((*names, dtype), sheet.flop_per_s, sheet.bytes_per_s, False)
        own = measured_ceilings(run.ceilings, dtype)
        if own:
            measured.append(Roof((dtype,), own.flop_per_s, own.bytes_per_s, True))
    return [*found.values(), *measured]


def attention_cells(cells: Sequence[Compared]) -> list[Compared]:
    """The cells that timed the attention kernel alone: those that have one place on a roofline."""
    return [cell for cell in cells if cell.row.scope == "attention"]


def roofline_figure(run: Run, gpu: GPU, cells: Sequence[Compared]) -> Figure:
    """Attention cells under their roofs, a panel per cache layout; the marker is the kernel, colour what is moved."""
    shown = attention_cells(cells)
    over = roofs(run, gpu, sorted({cell.row.dtype for cell in shown}))
    caches = sorted({cell.row.cache for cell in shown})
    with drawing_style():
        figure = new_figure("Attention kernels under the roofline", caption(run, [cell.row for cell in shown]))
        panels = figure.subplots(1, len(caches), sharex=True, sharey=True, squeeze=False)[0]
        drawn: Any = None
        for axes, cache in zip(panels, caches, strict=True):
            axes.set(xscale="log", yscale="log", xlabel="intensity, FLOP/byte", title=f"{cache_label(cache)} cache")
            drawn = _points(axes, [cell for cell in shown if cell.row.cache == cache], shown)
        limits = _limits(over, shown)
        for axes in panels:
            _draw_roofs(axes, over, limits)
        panels[0].set_ylabel("TFLOP/s")
        bar = figure.colorbar(drawn, ax=list(panels), pad=0.01, aspect=35)
        bar.set_label("bytes moved, MB")
        bar.outline.set_visible(False)
        plain_log_ticks(bar.ax.yaxis)
        _legend(figure, panels[0], shown)
    return figure


def group_id(kernel: str, aside: bool) -> str:
    """The id of a kernel's points in a panel; ``aside``: timed where the choice takes another."""
    return kernel + " aside" * aside


def _points(axes: Axes, mine: Sequence[Compared], everything: Sequence[Compared]) -> Any:
    """One collection per kernel, those that the choice does not take below and faint."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    scale = ListedColormap(colormaps["viridis"]([PALEST * at / 255 for at in range(256)]))
    sizes = [cell.bytes / 1e6 for cell in everything]
    norm = LogNorm(min(sizes), max(*sizes, min(sizes) * 1.01))
    drawn: Any = None
    for aside in (True, False):
        for name, mark in marks_of(cell.row for cell in everything).items():
            group = [cell for cell in mine if series_of(cell.row) == name and (cell.row.picked is False) == aside]
            if not group:
                continue
            drawn = axes.scatter(
                [cell.flop / cell.bytes for cell in group],
                [cell.flop / cell.row.time_us * 1e-6 for cell in group],
                c=[cell.bytes / 1e6 for cell in group], cmap=scale, norm=norm, marker=mark.marker, s=MARKER_AREA,
                linewidths=0, alpha=ASIDE_ALPHA if aside else 1, zorder=CLOUD_ORDER + (not aside) / 10, rasterized=True,
            )  # fmt: skip
            drawn.set_gid(group_id(name, aside))
    return drawn


def _limits(over: Sequence[Roof], cells: Sequence[Compared]) -> tuple[float, float, float, float]:
    """x and y limits for all panels, with room below for the ridges' numbers."""
    intensities = [cell.flop / cell.bytes for cell in cells]
    rates = [cell.flop / cell.row.time_us * 1e-6 for cell in cells]
    low = min(intensities) / 1.5
    high = max(*intensities, 2 * max(roof.ridge for roof in over)) * 1.4
    return low, high, min(rates) / 4, max(roof.flop_per_s for roof in over) * 1e-12 * 2.2


def _draw_roofs(axes: Axes, over: Sequence[Roof], limits: tuple[float, float, float, float]) -> None:
    low, high, bottom, top = limits
    for roof in over:
        x = [low, roof.ridge, high]
        y = [value * 1e-12 for value in (low * roof.bytes_per_s, roof.flop_per_s, roof.flop_per_s)]
        axes.plot(
            x, y, color=SOFT if roof.measured else INK, linestyle=(0, (6, 3)) if roof.measured else "-",
            linewidth=1.6 if roof.measured else 2.0, zorder=2, label=roof.label,
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


def _legend(figure: Figure, axes: Axes, cells: Sequence[Compared]) -> None:
    """Below the panels: roofs at the left, kernels at the right."""
    points = [_handle(mark) for mark in marks_of(cell.row for cell in cells).values()]
    if any(cell.row.picked is False for cell in cells):
        points.append(_handle(Mark("faint: not the kernel picked", "o", SOFT), alpha=ASIDE_ALPHA, markeredgewidth=0))
    lines, _ = axes.get_legend_handles_labels()
    figure.legend(handles=lines, loc="outside lower left", fontsize=10.5)
    figure.legend(handles=points, loc="outside lower right", ncols=2, fontsize=10.5, handletextpad=0.2)


def _handle(mark: Mark, **more: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=mark.marker, color=SOFT, markersize=7.5, label=mark.label, **more)
