"""The map of decode over batch and context: how near its floor each cell ran, and by which kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from .compare import Compared
from .figures import INK, SOFT, caption, drawing_style, new_figure, tokens
from .record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    Of several kernels at a cell the fastest is taken. Where any cell lacks a bound by measured ceilings, all are
    over the datasheet's.
    """
    decode = decode_cells(cells)
    measured = all(cell.measured_bound_s is not None for cell in decode)
    best: dict[tuple[int, int, int], Compared] = {}
    for cell in decode:
        key = (cell.row.heads, cell.row.batch, cell.row.context)
        if key not in best or cell.row.time_us < best[key].row.time_us:
            best[key] = cell
    return [
        Fraction(*key, cell.row.kernel, _floor_s(cell, measured) / (cell.row.time_us * 1e-6))
        for key, cell in sorted(best.items())
    ], measured


def _floor_s(cell: Compared, measured: bool) -> float:
    if not measured:
        return cell.bound_s
    assert cell.measured_bound_s is not None
    return cell.measured_bound_s


def efficiency_figure(run: Run, cells: Sequence[Compared]) -> Figure:
    """Fraction of the floor over batch and context, a panel per head count; each cell's fastest kernel is named."""
    found, measured = fractions(cells)
    floor = "bound by the ceilings of this run" if measured else "datasheet bound"
    heads = sorted({item.heads for item in found})
    columns = min(len(heads), 2)
    with drawing_style():
        title = f"Decode, one query: {floor} over measured time"
        figure = new_figure(title, caption(run, [cell.row for cell in decode_cells(cells)]))
        grid = figure.subplots(ceil(len(heads) / columns), columns, squeeze=False)
        drawn: Any = None
        letters = kernel_letters(item.kernel for item in found)
        for axes, count in zip(grid.flat, heads, strict=False):
            drawn = _heat(axes, [item for item in found if item.heads == count], found, letters)
            axes.set_title(f"{count} heads per rank")
        for axes in list(grid.flat)[len(heads) :]:
            axes.set_axis_off()
        bar = figure.colorbar(drawn, ax=list(grid.flat), aspect=35, pad=0.015)
        bar.set_label("fraction of the floor (1 = at the floor)")
        bar.outline.set_visible(False)
        if letters:
            key = ", ".join(f"{letter} {name}" for name, letter in letters.items())
            figure.supxlabel(f"letter: the fastest kernel of the cell ({key})", fontsize=11.5, color=SOFT)
    return figure


def kernel_letters(names: Iterable[str]) -> dict[str, str]:
    """A letter for each of several kernels: their initials where these differ; for one kernel none."""
    found = sorted(set(names))
    initials = [name[0] for name in found]
    letters = initials if len(set(initials)) == len(found) else ascii_lowercase
    return dict(zip(found, letters, strict=False)) if len(found) > 1 else {}


def _heat(axes: Axes, mine: Sequence[Fraction], everything: Sequence[Fraction], letters: Mapping[str, str]) -> Any:
    """A mesh over all batches and contexts of the figure; a cell that was not measured stays empty."""
    batches = sorted({item.batch for item in everything})
    contexts = sorted({item.context for item in everything})
    values = [[float("nan")] * len(contexts) for _ in batches]
    for item in mine:
        x, y = contexts.index(item.context), batches.index(item.batch)
        values[y][x] = item.fraction
        text = f"{item.fraction:.2f} {letters.get(item.kernel, '')}".strip()
        axes.text(x, y, text, ha="center", va="center", fontsize=10.5, color=INK if item.fraction > 0.55 else "white")
    places = range(len(contexts)), range(len(batches))
    drawn = axes.pcolormesh(
        *places, values, cmap="cividis", vmin=0, vmax=1, shading="nearest", edgecolors="white", linewidth=1.5
    )
    axes.grid(False)
    axes.set_xticks(range(len(contexts)), labels=[tokens(context) for context in contexts])
    axes.set_yticks(range(len(batches)), labels=[str(batch) for batch in batches])
    axes.tick_params(length=0)
    axes.set(xlabel="context, tokens", ylabel="batch, requests")
    axes.label_outer(remove_inner_ticks=False)
    return drawn
