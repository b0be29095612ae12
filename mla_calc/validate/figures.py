"""The figures of one validate run: measured against predicted, the roofline; how all of them look and are written.

Figures are drawn on matplotlib's own ``Figure``, never through pyplot's global state, and always by the same
style whatever the user's matplotlibrc says: the same run makes the same bytes. Text in an SVG is drawn as paths,
since a page that lacks the font would lay it out otherwise. matplotlib is imported where a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..report.write import replacing
from .compare import Compared
from .record import Row, Run
from .verdict import P90_APE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_IN = (12.8, 7.2)
"""16:9; 1280 x 720 pixels at 100 dots per inch."""
DPI = 100
LAUNCH_FLOOR_US = 10.0
"""What the smallest decode calls take whatever they read: drawn for reference, not a figure of the run."""
WIDE_CACHE = "16-bit"
"""What the bf16 layout holds: bf16 or fp16 rows, as the products are."""
DASHES = (0, (5, 3))
LABEL_ROOM = 0.2
"""Share of a panel's width that a two-line label takes."""
INK, SOFT, GRID = "#1a1a1a", "#5a5a5a", "#dcdcdc"

STYLE: dict[str, Any] = {
    "svg.hashsalt": "mla-calc",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # ships with matplotlib
    "font.size": 12.5,
    "axes.titlesize": 13.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 12.5,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 11.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """How one series is drawn: marker and colour both tell it apart, so that grey print does too."""

    label: str
    marker: str
    colour: str


# Okabe and Ito's colours, which the common kinds of colour blindness tell apart
MARKS: dict[str, Mark] = {
    "hopper": Mark("hopper", "o", "#0072B2"),
    "tile64": Mark("tile64", "s", "#E69F00"),
    "small": Mark("small", "^", "#009E73"),
    "absorbed path": Mark("absorbed path", "D", "#CC79A7"),
    "naive": Mark("naive path", "P", "#D55E00"),
    "naive_in_place": Mark("naive path, K in place", "X", "#000000"),
}
OTHER_MARKS = (("v", "#56B4E9"), ("<", "#000000"), (">", "#D55E00"), ("h", "#009E73"), ("*", "#CC79A7"))
"""For kernels of somebody else, by the order of their names."""


def drawing_style() -> AbstractContextManager[Any]:
    """The one style of all figures: matplotlib's defaults, not the user's settings, and ours on top."""
    from matplotlib import style

    return style.context(["default", STYLE])


def series_of(row: Row) -> str:
    """The series that a row belongs to: its kernel, or the absorbed path with whichever kernel."""
    return "absorbed path" if row.scope == "absorbed" else row.kernel


def marks_of(rows: Iterable[Row]) -> dict[str, Mark]:
    """The marks of all series among ``rows``, known ones first and always alike, others by name."""
    found = {series_of(row) for row in rows}
    others = sorted(found - MARKS.keys())
    known = {name: mark for name, mark in MARKS.items() if name in found}
    return known | {name: Mark(name, *OTHER_MARKS[at % len(OTHER_MARKS)]) for at, name in enumerate(others)}


def caption(run: Run, rows: Sequence[Row]) -> str:
    """What every figure says below its title: GPU, model, dtypes, dense, run and date."""
    dtypes = ", ".join(sorted({row.dtype for row in rows}))
    caches = ", ".join(sorted({WIDE_CACHE if row.cache == "bf16" else row.cache for row in rows}))
    forced = " (forced)" if run.machine.forced else ""
    parts = (
        run.machine.device_name + forced,
        run.geometry.model,
        dtypes,
        f"cache {caches}",
        "dense",
        f"run {run.id}",
        run.started[:10],
    )
    return "  ·  ".join(parts)


def new_figure(title: str, below: str) -> Figure:
    """An empty figure of the one size, its title and caption at the top left; inside :func:`drawing_style`."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    below_title = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 0.895), w_pad=0.08, h_pad=0.06)
    figure = Figure(figsize=SIZE_IN, dpi=DPI, layout=below_title)
    figure.text(0.012, 0.978, title, fontsize=17, fontweight="bold", color=INK, va="top")
    figure.text(0.012, 0.927, below, fontsize=10.5, color=SOFT, va="top")
    return figure


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name``.svg and ``name``.png into ``folder``, without a date, whole or not at all.

    Raises:
        InputError: the folder cannot be written.
    """
    with drawing_style():  # the style holds the seed of an SVG's ids, and how its text is drawn
        with replacing(folder / f"{name}.svg") as path:
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        with replacing(folder / f"{name}.png") as path:
            figure.savefig(path, format="png", dpi=DPI, metadata={"Software": None})


Axis = Literal["bound", "estimate"]


def predicted_us(cell: Compared, prediction: Axis) -> float | None:
    """The datasheet bound or the estimate of a cell, us; ``None`` where there is no estimate."""
    seconds = cell.bound_s if prediction == "bound" else cell.estimate_s
    return None if seconds is None else seconds * 1e6


def predicted_figure(run: Run, cells: Sequence[Compared], prediction: Axis) -> Figure:
    """Measured over predicted time, log-log, and their ratio, for every cell that has the prediction."""
    shown = [cell for cell in cells if predicted_us(cell, prediction) is not None]
    what = "datasheet bound" if prediction == "bound" else "estimate"
    with drawing_style():
        figure = new_figure(f"Measured time against {what}", caption(run, [cell.row for cell in shown]))
        left, right = figure.subplots(1, 2)
        _scatter(left, shown, prediction, ratio=False)
        _scatter(right, shown, prediction, ratio=True)
        _time_lines(left, run, what)
        if prediction == "bound":
            _bound_ratio_lines(right, run)
        else:
            _estimate_ratio_lines(right)
        left.set(title="Time of every measured cell", xlabel=f"{what}, µs", ylabel="measured (median), µs")
        right.set(title=f"Measured over {what}", xlabel=f"{what}, µs", ylabel=f"measured / {what}")
        _cell_legend(figure, [cell.row for cell in shown])
    return figure


def _scatter(axes: Axes, cells: Sequence[Compared], prediction: Axis, ratio: bool) -> None:
    """One collection per series and cache layout, whose ``gid`` names it."""
    linear = ratio and prediction == "estimate"
    axes.set(xscale="log", yscale="linear" if linear else "log")
    for name, mark in marks_of(cell.row for cell in cells).items():
        for hollow in (False, True):
            mine = points_of_series(cells, name, hollow)
            x = [predicted_us(cell, prediction) or 0.0 for cell in mine]
            y = [cell.row.time_us / (at if ratio else 1) for cell, at in zip(mine, x, strict=True)]
            if mine:
                _points(axes, x, y, mark, hollow).set_gid(series_id(name, hollow))
    plain_log_ticks(axes.xaxis)
    if not linear:
        plain_log_ticks(axes.yaxis, dense=ratio)


def series_id(name: str, hollow: bool) -> str:
    """The id of a series' points in the drawing; hollow ones have a cache that is not bf16 wide."""
    return f"{name} hollow" if hollow else name


def points_of_series(cells: Sequence[Compared], name: str, hollow: bool) -> list[Compared]:
    """The cells of one series whose cache is bf16 wide, or, ``hollow``, is not."""
    return [cell for cell in cells if series_of(cell.row) == name and (cell.row.cache != "bf16") == hollow]


def _points(axes: Axes, x: Sequence[float], y: Sequence[float], mark: Mark, hollow: bool) -> Any:
    face = "none" if hollow else mark.colour
    edge, width = (mark.colour, 1.4) if hollow else ("white", 0.5)
    return axes.scatter(
        x, y, s=46, marker=mark.marker, facecolors=face, edgecolors=edge, linewidths=width, alpha=0.85, zorder=3
    )


def _time_lines(axes: Axes, run: Run, what: str) -> None:
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color=INK, linewidth=1.3, zorder=2)
    note(axes, f"line: measured = {what}", (0.985, 0.44), (0, 0), "right", "center", INK, fractions=(True, True))
    for value, label in _floors(run):
        if low < value < high:
            axes.axhline(value, color=SOFT, linestyle=DASHES, linewidth=1.2, zorder=2)
            note(axes, label, (1, value), (-4, 3), "right", "bottom", SOFT, fractions=(True, False))
    axes.set(xlim=(low, high), ylim=(low, high))


def _bound_ratio_lines(axes: Axes, run: Run) -> None:
    """A constant time is a line of slope -1 here; labels stand below 1, where no measurement should be."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    bottom = min(bottom, 0.45)
    axes.axhline(1, color=INK, linewidth=1.3, zorder=2)
    note(axes, "1: at the bound", (1, 1), (-2, -4), "right", "top", INK, fractions=(True, False))
    height = 0.62 if bottom < 0.62 else 0.95
    for at, (value, label) in enumerate(_floors(run)):
        axes.plot([low, high], [value / low, value / high], color=SOFT, linestyle=DASHES, linewidth=1.2, zorder=2)
        room = log10(value / height / low) / log10(high / low)  # of the axes' width, left of the line
        side, offset = ("right", -7) if at and room > LABEL_ROOM else ("left", 7)
        note(axes, label.replace(": ", ":\n"), (value / height, height), (offset, 0), side, "center", SOFT)
    axes.set(xlim=(low, high), ylim=(bottom, top))


def _estimate_ratio_lines(axes: Axes) -> None:
    """A linear axis, as far above 1 as below; the band is what nine of ten decode cells are held to."""
    reach = max(0.2, *(abs(limit - 1) for limit in axes.get_ylim()))
    axes.axhline(1, color=INK, linewidth=1.3, zorder=2)
    axes.axhspan(1 - P90_APE, 1 + P90_APE, color="#eef4fa", zorder=0, linewidth=0)
    note(axes, f"band: ± {P90_APE * 100:.0f} %", (0.985, 1 + P90_APE), (0, 3), "right", "bottom", SOFT, (True, False))
    axes.set_ylim(1 - reach, 1 + reach)


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[int, int],
    across: str,
    up: str,
    colour: str,
    fractions: tuple[bool, bool] = (False, False),
) -> None:
    """A small text at ``at``, in data coordinates or fractions of the axes, moved by ``offset`` points."""
    x, y = ("axes fraction" if fraction else "data" for fraction in fractions)
    axes.annotate(
        text, at, xycoords=(x, y), xytext=offset, textcoords="offset points", ha=across, va=up, fontsize=10.5,
        color=colour, annotation_clip=False, zorder=4,
    )  # fmt: skip


def _floors(run: Run) -> list[tuple[float, str]]:
    found = [(LAUNCH_FLOOR_US, f"{LAUNCH_FLOOR_US:g} µs: launch and latency")]
    if run.ceilings.launch_s:
        empty = run.ceilings.launch_s * 1e6
        found.append((empty, f"{empty:.3g} µs: an empty kernel"))
    return found


def _cell_legend(figure: Figure, rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D

    marks = marks_of(rows)
    handles = [
        Line2D([], [], linestyle="", marker=m.marker, color=m.colour, markersize=8, label=m.label)
        for m in marks.values()
    ]
    wide = sorted({row.cache for row in rows} - {"bf16"})
    if wide and any(row.cache == "bf16" for row in rows):
        label = f"hollow: {', '.join(wide)} cache"
        hollow = Line2D([], [], linestyle="", marker="o", color=INK, markerfacecolor="none", markersize=8, label=label)
        handles.append(hollow)
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 7))


def plain_log_ticks(axis: Any, dense: bool = False) -> None:
    """Ticks of a log axis as people write them: 1, 10, 1,000; with ``dense`` also 2 and 5 of every decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if dense else (1.0,), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator() if dense else LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
    axis.set_minor_formatter(NullFormatter())


def tokens(count: int) -> str:
    """16384 -> 16k."""
    return f"{count >> 10}k" if count % 1024 == 0 else f"{count:,}"
