"""What the figures of a validate run share: marks of kernels, the caption, and how they are written.

They are drawn in the style of all figures (:mod:`mla_calc.report.drawing.style`). Clouds of points are an image in an
SVG, since thousands of paths make a file that a browser is slow to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..report.drawing.style import write
from ..report.write import replacing
from .record import Row, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOUD_ORDER = 3.1
"""The lowest place of points in the drawing order: just above that of titles, since whatever is drawn between two
series cuts their image in two."""
WIDE_CACHE = "16-bit"
"""What the bf16 layout holds: bf16 or fp16 rows, as the products are."""


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


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name``.svg and ``name``.png into ``folder``, without a date, whole or not at all.

    Raises:
        InputError: the folder cannot be written.
    """
    for suffix in ("svg", "png"):
        with replacing(folder / f"{name}.{suffix}", "--report") as path:
            write(figure, path, suffix)


def tokens(count: int) -> str:
    """16384 -> 16k."""
    return f"{count >> 10}k" if count % 1024 == 0 else f"{count:,}"
