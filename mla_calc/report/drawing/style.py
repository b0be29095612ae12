"""How every figure looks, and how it is written: colours, sizes, text, and files without a date.

Figures are drawn on matplotlib's own ``Figure``, never through pyplot's global state, and always by the same
style whatever the user's matplotlibrc says: the same input makes the same bytes. Text in an SVG is drawn as paths,
since a page that lacks the font would lay it out otherwise. matplotlib is imported where a figure is drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, nearest, shown
from ..chart import Colour, Dash, Marker
from .glyphs import FONT, check_matplotlib, within
from .svg import unique_ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLOUD_DPI = 110
"""Of the images that an SVG holds."""
DASHES = (0, (5, 3))
INK, SOFT, GRID = "#1a1a1a", "#5a5a5a", "#dcdcdc"
BELOW_SHADE, ABOVE_SHADE = "#eef4fa", "#fbf3e6"
"""Of the two sides of a ridge."""

# Okabe and Ito's colours, which the common kinds of colour blindness tell apart
COLOURS: dict[Colour, str] = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "red": "#D55E00",
    "sky": "#56B4E9",
    "ink": INK,
    "soft": SOFT,
}
TEXT_COLOURS: dict[Colour, str] = COLOURS | {
    "orange": "#8a5f00",
    "green": "#00735a",
    "pink": "#94507a",
    "red": "#a84a00",
    "sky": "#1f6a9a",
}
"""The same for small texts, dark enough to read on white."""
MARKERS: dict[Marker, str] = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "plus": "P",
    "cross": "X",
    "star": "*",
}
LINES: dict[Dash, Any] = {"solid": "-", "dashed": DASHES, "dotted": (0, (1, 1.8))}


@dataclass(frozen=True, slots=True)
class Size:
    """What a figure is made for: inches, dots per inch, and points of everything drawn in it.

    ``font``: axes and legend; ``small``: what stands in a panel; ``line``, ``marker``: width and diameter;
    ``full_area``: the square points of a marker that stands for a share of 1.
    """

    name: str
    width_in: float
    height_in: float
    dpi: int
    font: float
    small: float
    title: float
    caption: float
    line: float
    marker: float
    full_area: float

    def hatch(self, pattern: str) -> str:
        """A hatch for this size: its repeats are per inch."""
        return pattern if self is SLIDE else pattern * 2

    def points(self, slide_points: float) -> float:
        """A distance that was chosen for a slide, as this size has it."""
        return slide_points * self.font / SLIDE.font


SLIDE = Size("slide", 12.8, 7.2, 100, 12.5, 10.5, 17, 10.5, 2.0, 7.0, 900.0)
"""16:9; 1280 x 720 pixels."""
COLUMN = Size("column", 3.5, 2.6, 300, 6.6, 6.0, 8, 5.8, 1.1, 3.4, 190.0)
"""A column of a paper of two; as high as its panels need."""
SIZES = {size.name: size for size in (SLIDE, COLUMN)}

STYLE: dict[str, Any] = {
    "text.hinting": "no_hinting",  # texts are as wide at every resolution: what is placed here is drawn at others too
    "svg.hashsalt": "mla-calc",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "font.family": FONT,
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
_DISTANCES: dict[str, float] = {
    "axes.linewidth": 0.8,
    "axes.labelpad": 4.0,
    "axes.titlepad": 6.0,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.0,
    "xtick.major.size": 3.5,
    "ytick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "ytick.major.width": 0.8,
    "xtick.major.pad": 3.5,
    "ytick.major.pad": 3.5,
}
"""What a slide has of matplotlib's defaults, in points: a smaller figure has them smaller."""
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""By format: no date and no version, which would differ between runs."""
MARGIN, CAPTION_AT, HEAD = 11.4048, 37.8432, 54.432
"""Points from a slide's top to its title, to the caption and to the panels."""
LINE_SPACING = 1.2
BETWEEN = "  ·  "
"""The parts of a caption."""
MOST_LINES = {"slide": 3, "column": 6}
"""Of a title, and of each part of a caption."""


def size_named(name: str) -> Size:
    """The size called ``name``. Raises InputError, which names ``--size``."""
    if name not in SIZES:
        accepted = ", ".join(SIZES)
        raise InputError(f"--size {shown(name)}: one of {accepted} is accepted", nearest(name, SIZES))
    return SIZES[name]


def drawing_style(size: Size = SLIDE) -> AbstractContextManager[Any]:
    """The one style of all figures: matplotlib's defaults, not the user's settings, and ours on top."""
    check_matplotlib()
    from matplotlib import style

    if size is SLIDE:
        return style.context(["default", STYLE])
    distances = {key: size.points(points) for key, points in _DISTANCES.items()}
    fonts = {"font.size": size.font, "axes.titlesize": size.font, "axes.labelsize": size.font,
             "xtick.labelsize": size.small, "ytick.labelsize": size.small, "legend.fontsize": size.small}  # fmt: skip
    return style.context(["default", STYLE | distances | fonts])


def new_figure(title: str, below: str, size: Size = SLIDE) -> Figure:
    """An empty figure, its title and caption at the top left; inside :func:`drawing_style`.

    Both wrap where they are wider than the figure; a caption between its parts, of which each has a few lines at most.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(size.width_in, size.height_in), dpi=size.dpi)
    left = 0.012 if size is SLIDE else 0.02
    head = [
        figure.text(left, 1, title, fontsize=size.title, fontweight="bold", color=INK, va="top"),
        figure.text(left, 1, below, fontsize=size.caption, color=SOFT, va="top"),
    ]
    for text in head:
        wrap(text, (1 - 2 * left) * size.width_in * size.dpi, MOST_LINES[size.name])
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=size.points(5.76) / 72, h_pad=size.points(4.32) / 72))
    fit_head(figure, size)
    return figure


def fit_head(figure: Figure, size: Size) -> None:
    """Put title and caption at the top of the figure's height, and the panels below; again when that changes."""
    title, caption = figure.texts[:2]
    height = figure.get_figheight() * 72
    more_title = title.get_text().count("\n") * size.title * LINE_SPACING
    more = more_title + caption.get_text().count("\n") * size.caption * LINE_SPACING
    title.set_y(1 - size.points(MARGIN) / height)
    caption.set_y(1 - (size.points(CAPTION_AT) + more_title) / height)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0.0, 0.0, 1.0, 1 - (size.points(HEAD) + more) / height))


def wrap(text: Any, width_px: float, most: int) -> None:
    """Break a text where it is wider than ``width_px``: between its parts, and within a part only where it is no line.

    Such a part breaks at its blanks if it has any, and else anywhere; it has ``most`` lines at most.
    """

    def fits(line: str) -> bool:
        text.set_text(line)
        return bool(text.get_window_extent().width <= width_px)

    lines: list[str] = []
    for part in text.get_text().split(BETWEEN):
        joined = lines[-1] + BETWEEN + part if lines else part
        if fits(joined):
            lines[-1:] = [joined]
        else:
            lines += within(most, part, lambda each: _lines(each, fits))
    text.set_text("\n".join(lines))


def _lines(text: str, fits: Callable[[str], bool]) -> list[str]:
    lines: list[str] = []
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        if fits(joined):
            lines[-1:] = [joined]
        else:
            lines += [word] if fits(word) else _broken(word, fits)
    return lines


def _broken(word: str, fits: Callable[[str], bool]) -> list[str]:
    """A word in as few lines as it fits into; one character to a line at least."""
    lines = []
    while word:
        most = bisect_left(range(1, len(word) + 1), True, key=lambda length: not fits(word[:length]))
        length = max(most, 1)
        lines.append(word[:length])
        word = word[length:]
    return lines


def write(figure: Figure, path: Path, format_name: str, size: Size = SLIDE) -> None:
    """Write ``figure`` as png, svg or pdf, without a date."""
    drawn = BytesIO()
    with drawing_style(size):  # the style holds the seed of an SVG's ids, and how its text is drawn
        dpi = size.dpi if format_name == "png" else max(CLOUD_DPI, size.dpi)
        figure.savefig(drawn, format=format_name, dpi=dpi, metadata=METADATA[format_name])
    made = drawn.getvalue()
    path.write_bytes(unique_ids(made.decode()).encode() if format_name == "svg" else made)


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
    axis.set_major_formatter(FuncFormatter(lambda value, _: log_text(value)))
    axis.set_minor_locator(NullLocator())


def log_text(value: float) -> str:
    """A tick of a log axis."""
    return f"{value:,.10g}"
