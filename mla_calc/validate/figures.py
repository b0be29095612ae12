"""How the figures of a validate run look, and how they are written.

Figures are drawn on matplotlib's own ``Figure``, never through pyplot's global state, and always by the same
style whatever the user's matplotlibrc says: the same run makes the same bytes. Text in an SVG is drawn as paths,
since a page that lacks the font would lay it out otherwise; clouds of points are an image in it, since thousands of
paths make a file that a browser is slow to show. matplotlib is imported where a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report.write import replacing
from .record import Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_IN = (12.8, 7.2)
"""16:9; 1280 x 720 pixels at 100 dots per inch."""
DPI = 100
CLOUD_DPI = 110
"""Of the images that an SVG holds."""
CLOUD_ORDER = 3.1
"""The lowest place of points in the drawing order: just above that of titles, since whatever is drawn between two
series cuts their image in two."""
WIDE_CACHE = "16-bit"
"""What the bf16 layout holds: bf16 or fp16 rows, as the products are."""
DASHES = (0, (5, 3))
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


def cache_label(cache: str) -> str:
    """A cache layout as figures and tables call it."""
    return WIDE_CACHE if cache == "bf16" else cache


def caption(run: Run, rows: Sequence[Row]) -> str:
    """What every figure says below its title: GPU, model, dtypes, dense, run and date."""
    dtypes = ", ".join(sorted({row.dtype for row in rows}))
    caches = ", ".join(sorted({cache_label(row.cache) for row in rows}))
    forced = f" (FORCED against {run.machine.gpu})" if run.machine.forced else ""
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
        with replacing(folder / f"{name}.svg", "--report") as path:
            figure.savefig(path, format="svg", dpi=CLOUD_DPI, metadata={"Date": None, "Creator": None})
        with replacing(folder / f"{name}.png", "--report") as path:
            figure.savefig(path, format="png", dpi=DPI, metadata={"Software": None})


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


def plain_log_ticks(axis: Any, dense: bool = False) -> None:
    """Ticks of a log axis as people write them: 1, 10, 1,000; with ``dense`` also 2 and 5 of every decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if dense else (1.0,), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())


def tokens(count: int) -> str:
    """16384 -> 16k."""
    return f"{count >> 10}k" if count % 1024 == 0 else f"{count:,}"
