"""The map of decode over batch and context: how near its floor each cell ran, and by which kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from ..report import format as fmt
from ..report.drawing.style import INK, SOFT, drawing_style, new_figure
from .compare import Compared
from .figures import caption, tokens
from .record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "cividis"  # made for colour blindness, and its lightness rises evenly
LEAST_FILLED = 0.5
PANELS_IN = 10.6
"""Width that the panels of a row share."""
CHARACTER = 0.62
"""Mean width of a character over the font's size."""
INK_LUMINANCE = 0.01


@dataclass(frozen=True, slots=True)
class Fraction:
    """The fraction of its floor that one decode cell reached, and the kernel that did."""

    heads: int
    batch: int
    context: int
    kernel: str
    fraction: float


def decode_cells(cells: Sequence[Compared]) -> list[Compared]:
    """One-query attention cells, of one dtype and cache layout: those with the most cells."""
    decode = [cell for cell in cells if cell.row.scope == "attention" and cell.row.queries == 1]
    kinds = Counter((cell.row.dtype, cell.row.cache) for cell in decode)
    chosen = min(kinds, key=lambda kind: (-kinds[kind], kind), default=None)
    return [cell for cell in decode if (cell.row.dtype, cell.row.cache) == chosen]


def fractions(cells: Sequence[Compared]) -> tuple[list[Fraction], bool]:
    """Floor over time of :func:`decode_cells`, and whether the floor is the measured one.

    Of several kernels at a cell the one that the choice takes is drawn, and the fastest where no row says which
    that is. Where any cell lacks a bound by measured ceilings, all are over the datasheet's.
    """
    decode = decode_cells(cells)
    measured = all(cell.measured_bound_s is not None for cell in decode)
    best: dict[tuple[int, int, int], Compared] = {}
    for cell in decode:
        key = (cell.row.heads, cell.row.batch, cell.row.context)
        if key not in best or _rank(cell) < _rank(best[key]):
            best[key] = cell
    return [
        Fraction(*key, cell.row.kernel, _floor_s(cell, measured) / (cell.row.time_us * 1e-6))
        for key, cell in sorted(best.items())
    ], measured


def _rank(cell: Compared) -> tuple[bool, float]:
    return cell.row.picked is not True, cell.row.time_us


def _floor_s(cell: Compared, measured: bool) -> float:
    if not measured:
        return cell.bound_s
    assert cell.measured_bound_s is not None
    return cell.measured_bound_s


def regular_grid(found: Sequence[Fraction]) -> tuple[list[int], list[int]]:
    """The batches and contexts of the map, rising: those that most cells share.

    The emptiest batch or context goes until none is left of which less than half of the map was measured.
    """
    places = {(item.batch, item.context) for item in found}
    batches, contexts = ({place[at] for place in places} for at in (0, 1))
    while True:
        inside = [place for place in places if place[0] in batches and place[1] in contexts]
        filled = Counter((at, place[at]) for place in inside for at in (0, 1))
        across = (len(contexts), len(batches))
        lines = [(0, batch) for batch in batches] + [(1, context) for context in contexts]
        emptiest = min(lines, key=lambda line: (filled[line] / across[line[0]], line))
        if filled[emptiest] / across[emptiest[0]] >= LEAST_FILLED:
            return sorted(batches), sorted(contexts)
        (batches, contexts)[emptiest[0]].discard(emptiest[1])


def efficiency_figure(run: Run, cells: Sequence[Compared]) -> Figure:
    """Fraction of the floor over batch and context, a panel per head count; each cell's kernel is named."""
    everything, measured = fractions(cells)
    batches, contexts = regular_grid(everything)
    found = [item for item in everything if item.batch in batches and item.context in contexts]
    floor = "bound by the ceilings of this run" if measured else "datasheet bound"
    heads = sorted({item.heads for item in found})
    columns = min(len(heads), 2)
    with drawing_style():
        title = f"Decode, one query: {floor} over measured time"
        figure = new_figure(title, caption(run, [cell.row for cell in decode_cells(cells)]))
        grid = figure.subplots(ceil(len(heads) / columns), columns, squeeze=False, sharex=True, sharey=True)
        drawn: Any = None
        letters = kernel_letters(item.kernel for item in found)
        for axes, count in zip(grid.flat, heads, strict=False):
            drawn = _heat(axes, [item for item in found if item.heads == count], batches, contexts)
            _numbers(axes, [item for item in found if item.heads == count], batches, contexts, letters, columns)
            axes.set_title(f"{count} heads per rank")
        for axes in list(grid.flat)[len(heads) :]:
            axes.set_axis_off()
        bar = figure.colorbar(drawn, ax=list(grid.flat), aspect=35, pad=0.015)
        bar.set_label("fraction of the floor (1 = at the floor)")
        bar.outline.set_visible(False)
        figure.supxlabel(_below(decode_cells(cells), letters, len(everything) - len(found)), fontsize=11.5, color=SOFT)
    return figure


def _below(decode: Sequence[Compared], letters: Mapping[str, str], aside: int) -> str:
    parts = []
    if letters:
        picked = any(cell.row.picked for cell in decode)
        key = ", ".join(f"{letter} {name}" for name, letter in letters.items())
        parts.append(f"letter: the kernel that {'is picked' if picked else 'was fastest'} for the cell ({key})")
    if aside:
        parts.append(f"{fmt.counted(aside, 'cell')} of other batches and contexts not drawn")
    return "  ·  ".join(parts)


def kernel_letters(names: Iterable[str]) -> dict[str, str]:
    """A letter for each of several kernels: their initials where these differ; for one kernel none."""
    found = sorted(set(names))
    initials = [name[0] for name in found]
    letters = initials if len(set(initials)) == len(found) else ascii_lowercase
    return dict(zip(found, letters, strict=False)) if len(found) > 1 else {}


def _heat(axes: Axes, mine: Sequence[Fraction], batches: Sequence[int], contexts: Sequence[int]) -> Any:
    """A mesh over all batches and contexts of the figure; a cell that was not measured stays empty."""
    values = [[float("nan")] * len(contexts) for _ in batches]
    for item in mine:
        values[batches.index(item.batch)][contexts.index(item.context)] = item.fraction
    places = range(len(contexts)), range(len(batches))
    drawn = axes.pcolormesh(
        *places,
        values,
        cmap=COLOURS,
        vmin=0,
        vmax=1,
        shading="nearest",
        edgecolors="white",
        linewidth=1.5,
        rasterized=True,
    )
    axes.grid(False)
    axes.set_xticks(range(len(contexts)), labels=[tokens(context) for context in contexts])
    axes.set_yticks(range(len(batches)), labels=[str(batch) for batch in batches])
    axes.tick_params(length=0)
    axes.set(xlabel="context, tokens", ylabel="batch, requests")
    axes.label_outer(remove_inner_ticks=False)
    return drawn


def _numbers(
    axes: Axes,
    mine: Sequence[Fraction],
    batches: Sequence[int],
    contexts: Sequence[int],
    letters: Mapping[str, str],
    columns: int,
) -> None:
    """The fraction and the kernel's letter in every cell, in a size that the cell holds."""
    width_pt = PANELS_IN / columns / len(contexts) * 72
    size = min(11.0, 0.9 * width_pt / (CHARACTER * (6 if letters else 4)))
    for item in mine:
        text = f"{item.fraction:.2f} {letters.get(item.kernel, '')}".strip()
        place = contexts.index(item.context), batches.index(item.batch)
        axes.text(*place, text, ha="center", va="center", fontsize=size, color=_readable_on(item.fraction))


def _readable_on(fraction: float) -> str:
    """Ink or white, whichever stands out more from the colour of ``fraction``."""
    from matplotlib import colormaps

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colormaps[COLOURS](fraction)[:3]]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return INK if (luminance + 0.05) ** 2 > 1.05 * (INK_LUMINANCE + 0.05) else "white"
