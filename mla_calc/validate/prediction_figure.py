"""Measured against predicted time: every cell over its bound or its estimate, and the ratio of the two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..report.drawing.style import DASHES, INK, SOFT, drawing_style, new_figure, note, plain_log_ticks
from .compare import Compared
from .figures import CLOUD_ORDER, Mark, cache_label, caption, marks_of, series_of
from .record import Run
from .verdict import P90_APE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS_AT = 0.6
"""The ratio beside which the line of a constant time has its label."""
MARKER_AREA = 17.0
"""Square points: small, since a full run has thousands of cells."""
SEEN_ALPHA = 0.25
"""Of points that the fit was made from; they show how many there are, the others how good it is."""

Axis = Literal["bound", "estimate"]
Group = tuple[str, bool, bool]
"""A series, whether its cache is narrower than 16-bit, and whether the fit has seen the row."""


def predicted_us(cell: Compared, prediction: Axis) -> float | None:
    """The datasheet bound or the estimate of a cell, us; ``None`` where there is no estimate."""
    seconds = cell.bound_s if prediction == "bound" else cell.estimate_s
    return None if seconds is None else seconds * 1e6


def predicted_figure(run: Run, cells: Sequence[Compared], prediction: Axis) -> Figure:
    """Measured over predicted time, log-log, and their ratio, for every cell that has the prediction.

    Attention kernels and whole paths have panels of their own for the ratio: their points lie on each other.
    """
    shown = [cell for cell in cells if predicted_us(cell, prediction) is not None]
    kinds = [
        (title, mine)
        for title, mine in (
            ("attention kernels", [cell for cell in shown if cell.row.scope == "attention"]),
            ("whole paths", [cell for cell in shown if cell.row.scope != "attention"]),
        )
        if mine
    ]
    what = "datasheet bound" if prediction == "bound" else "estimate"
    with drawing_style():
        figure = new_figure(f"Measured time against {what}", caption(run, [cell.row for cell in shown]))
        grid = figure.add_gridspec(len(kinds), 2)
        left = figure.add_subplot(grid[:, 0])
        _scatter(left, shown, prediction, ratio=False)
        _time_lines(left, run, what)
        left.set(title="Time of every measured cell", xlabel=f"{what}, µs", ylabel="measured (median), µs")
        for at, (title, mine) in enumerate(kinds):
            axes = figure.add_subplot(grid[at, 1])
            _scatter(axes, mine, prediction, ratio=True)
            _ratio_lines(axes, run, prediction, left.get_xlim(), labelled=at == 0)
            axes.set(title=f"Measured over {what}: {title}", ylabel="ratio")
        axes.set_xlabel(f"{what}, µs")
        _cell_legend(figure, shown, prediction)
    return figure


def groups_of(cells: Sequence[Compared], prediction: Axis) -> dict[Group, list[Compared]]:
    """The cells by how they are drawn, in the order of drawing: what has the fewest points lies on top."""
    found: dict[Group, list[Compared]] = {}
    for cell in cells:
        seen = prediction == "estimate" and cell.prediction is not None and cell.prediction.held_out is False
        found.setdefault((series_of(cell.row), cell.row.cache != "bf16", seen), []).append(cell)
    order = sorted(found, key=lambda group: (not group[2], -len(found[group]), group))
    return {group: found[group] for group in order}


def group_id(group: Group) -> str:
    """The id of a group's points in the drawing."""
    name, hollow, seen = group
    return name + " hollow" * hollow + " seen" * seen


def _scatter(axes: Axes, cells: Sequence[Compared], prediction: Axis, ratio: bool) -> None:
    """One collection per group, whose ``gid`` names it."""
    linear = ratio and prediction == "estimate"
    axes.set(xscale="log", yscale="linear" if linear else "log")
    marks = marks_of(cell.row for cell in cells)
    for rank, (group, mine) in enumerate(groups_of(cells, prediction).items()):
        x = [predicted_us(cell, prediction) or 0.0 for cell in mine]
        y = [cell.row.time_us / (at if ratio else 1) for cell, at in zip(mine, x, strict=True)]
        drawn = _points(axes, x, y, marks[group[0]], group)
        drawn.set(gid=group_id(group), zorder=CLOUD_ORDER + rank / 100)
    plain_log_ticks(axes.xaxis)
    if not linear:
        plain_log_ticks(axes.yaxis, dense=ratio)


def _points(axes: Axes, x: Sequence[float], y: Sequence[float], mark: Mark, group: Group) -> Any:
    _, hollow, seen = group
    face = "none" if hollow else mark.colour
    edge, width = (mark.colour, 0.8) if hollow else ("white", 0.0 if seen else 0.25)
    alpha = SEEN_ALPHA if seen else 0.85
    return axes.scatter(
        x, y, s=MARKER_AREA, marker=mark.marker, facecolors=face, edgecolors=edge, linewidths=width, alpha=alpha,
        rasterized=True,
    )  # fmt: skip


def _time_lines(axes: Axes, run: Run, what: str) -> None:
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color=INK, linewidth=1.3, zorder=2)
    if what == "estimate":
        for share in (1 - P90_APE, 1 + P90_APE):
            axes.plot([low, high], [low * share, high * share], color=SOFT, linewidth=0.8, linestyle=(0, (1, 2)))
    note(axes, f"line: measured = {what}", (0.985, 0.44), (0, 0), "right", "center", INK, fractions=(True, True))
    empty = _empty_us(run)
    if empty and low < empty < high:
        axes.axhline(empty, color=SOFT, linestyle=DASHES, linewidth=1.2, zorder=2)
        note(axes, _empty_label(empty), (1, empty), (-4, 3), "right", "bottom", SOFT, fractions=(True, False))
    axes.set(xlim=(low, high), ylim=(low, high))


def _ratio_lines(axes: Axes, run: Run, prediction: Axis, xlim: tuple[float, float], labelled: bool) -> None:
    """The panels of ratios share the x axis of the times."""
    axes.set_xlim(xlim)
    if prediction == "bound":
        _bound_ratio_lines(axes, run, labelled)
    else:
        _estimate_ratio_lines(axes, labelled)


def _bound_ratio_lines(axes: Axes, run: Run, labelled: bool) -> None:
    """A constant time is a line of slope -1 here; labels stand below 1, where no measurement should be."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    bottom = min(bottom, 0.8 * LABELS_AT)
    axes.axhline(1, color=INK, linewidth=1.3, zorder=2)
    if labelled:
        note(axes, "1: at the bound", (1, 1), (-2, -4), "right", "top", INK, fractions=(True, False))
    empty = _empty_us(run)
    if empty:
        axes.plot([low, high], [empty / low, empty / high], color=SOFT, linestyle=DASHES, linewidth=1.2, zorder=2)
        if labelled:
            note(axes, _empty_label(empty), (empty / LABELS_AT, LABELS_AT), (10, 0), "left", "center", SOFT)
    axes.set(xlim=(low, high), ylim=(bottom, top))


def _estimate_ratio_lines(axes: Axes, labelled: bool) -> None:
    """A linear axis, as far above 1 as below; the band is what nine of ten decode cells are held to."""
    reach = max(0.2, *(abs(limit - 1) for limit in axes.get_ylim()))
    axes.axhline(1, color=INK, linewidth=1.3, zorder=2)
    axes.axhspan(1 - P90_APE, 1 + P90_APE, color="#e3edf6", zorder=0, linewidth=0)
    for edge in (1 - P90_APE, 1 + P90_APE):
        axes.axhline(edge, color=SOFT, linewidth=0.9, linestyle=(0, (1, 2)), zorder=2)
    if labelled:
        band = f"band: ± {P90_APE * 100:.0f} %"
        note(axes, band, (0.99, 1 + P90_APE), (0, 2), "right", "bottom", SOFT, fractions=(True, False))
    axes.set_ylim(1 - reach, 1 + reach)


def _empty_us(run: Run) -> float | None:
    """What an empty kernel took in this run."""
    return run.ceilings.launch_s * 1e6 if run.ceilings.launch_s else None


def _empty_label(empty_us: float) -> str:
    return f"{empty_us:.3g} µs: an empty kernel"


def _cell_legend(figure: Figure, cells: Sequence[Compared], prediction: Axis) -> None:
    from matplotlib.lines import Line2D

    def handle(marker: str, colour: str, label: str, **more: Any) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=7.5, label=label, **more)

    groups = groups_of(cells, prediction)
    handles = [handle(mark.marker, mark.colour, mark.label) for mark in marks_of(cell.row for cell in cells).values()]
    narrow = sorted({cache_label(cell.row.cache) for cell in cells if cell.row.cache != "bf16"})
    if narrow and any(not hollow for _, hollow, _ in groups):
        handles.append(handle("o", INK, f"hollow: {', '.join(narrow)} cache", markerfacecolor="none"))
    if any(seen for _, _, seen in groups):
        handles.append(handle("o", INK, "pale: the fit used it", alpha=SEEN_ALPHA, markeredgewidth=0))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 8), columnspacing=1.3, handletextpad=0.1
    )
