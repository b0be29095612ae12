"""An axis in cells of a terminal: where a value falls, and which values get a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from .. import format as fmt
from ..chart import Axis

OUTSIDE = -9.0
"""A cell of no panel: where a value lies that a logarithmic axis has no place for."""
FEW_DECADES = 2.0
"""An axis of fewer decades gets ticks at 2 and 5 too."""


@dataclass(frozen=True, slots=True)
class Scale:
    """``axis`` over ``cells`` cells, from ``low`` to ``high`` in the axis' unit, or over ``categories``."""

    axis: Axis
    low: float
    high: float
    cells: int
    categories: tuple[Any, ...] = ()
    downwards: bool = False
    """Whether the first category is the one at the top."""

    def at(self, value: Any) -> float:
        """The cell of a value in the axis' unit, or of a category; cell 0 has its middle at the low end."""
        if self.axis.scale == "category":
            place = (self.categories.index(value) + 0.5) / len(self.categories)
            return (1 - place if self.downwards else place) * self.cells - 0.5
        if self.axis.scale == "log":
            if value <= 0:
                return OUTSIDE
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return share * (self.cells - 1)

    def step(self) -> float:
        """Cells between neighbouring categories."""
        return self.cells / max(1, len(self.categories))

    def ticks(self, room: int) -> list[tuple[float, str]]:
        """Cells and labels of ticks; of those that the renderer chooses, no more than one in ``room`` cells."""
        if self.axis.scale == "category":
            # whole cells, as bars have them: halves are rounded to either side
            return [(float(round(self.at(value))), _label(value, self.axis)) for value in self.categories]
        values = [tick / self.axis.unit for tick in self.axis.ticks] or self._chosen(max(2, self.cells // room))
        return [(self.at(value), _label(value, self.axis)) for value in values if self._inside(value)]

    def _chosen(self, most: int) -> Sequence[float]:
        if self.axis.scale == "linear":
            return _steps(self.low, self.high, most)
        every = 1
        while sum(map(self._inside, _decades(self.low, self.high, every))) > most:
            every += 1
        return _decades(self.low, self.high, every)

    def _inside(self, value: float) -> bool:
        slack = 1e-9 * abs(self.high)
        return self.low - slack <= value <= self.high + slack


def _label(value: Any, axis: Axis) -> str:
    """A tick's label; a whole number without a point."""
    if isinstance(value, str):
        return value
    return fmt.shown(int(value) if value == int(value) else value, axis.kind)


def _decades(low: float, high: float, every: int) -> Sequence[float]:
    """Each ``every``-th power of ten from below ``low`` to above ``high``; between few of them 2 and 5 too."""
    between = (1, 2, 5) if log10(high / low) < FEW_DECADES and every == 1 else (1,)
    powers = range(ceil(floor(log10(low)) / every) * every, ceil(log10(high)) + 1, every)
    return [float(f"{digit}e{power}") for power in powers for digit in between]


def _steps(low: float, high: float, most: int) -> Sequence[float]:
    """Multiples of 1, 2 or 5 times a power of ten, no more than ``most``."""
    magnitude = 10.0 ** floor(log10((high - low) / most))
    step = next(digit * magnitude for digit in (1, 2, 5, 10) if (high - low) / (digit * magnitude) <= most)
    return [index * step for index in range(ceil(low / step), floor(high / step) + 1)]
