"""One panel being drawn: its axes, where values lie on them, and the texts that wait for the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from .. import format as fmt
from ..chart import Axis, Bars, Cells, Look, Panel, Zones
from ..chart_data import categories, drawn, edges, limits, number_at, place, value
from ..record import Results
from .placing import Places
from .style import COLOURS, LINES, MARKERS, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Direction = Literal["x", "y"]
Ends = tuple[tuple[float, float], tuple[float, float]]
FAINT = 0.35
NAMES, MUSTS, RULES, ROOF_TEXTS, POINT_TEXTS, LINE_TEXTS, MORE_TEXTS = range(7)
"""The order in which texts take their places."""
NAME_ROOM = 0.09
"""Of a panel's height: what is left free above its marks for the names of zones."""


@dataclass(slots=True)
class Sheet:
    """A panel on its axes. ``limits``: the ends of both, in the units of the axes."""

    axes: Axes
    panel: Panel
    results: Results
    size: Size
    limits: Ends
    number: int = 0
    title: Any = None
    """The panel's title as it is drawn; ``None``: it has none."""
    above: list[Callable[[], None]] = field(default_factory=list)
    """What takes its place before any text does: points and lines."""
    room: list[Callable[[], None]] = field(default_factory=list)
    """What makes room in the panel, for numbers at the ends of bars; it needs the panel's width."""
    later: list[tuple[float, Callable[[], Any]]] = field(default_factory=list)
    """Texts, with their rank in taking a place; drawn when the layout is settled."""
    categories: dict[Direction, list[Any]] = field(default_factory=dict)
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.axes, self.size)
        for direction in ("x", "y"):
            if self.axis(direction).scale == "category":
                self.categories[direction] = categories(self.panel, self.results, direction)

    def axis(self, direction: Direction) -> Axis:
        """The axis of a direction."""
        return self.panel.x if direction == "x" else self.panel.y

    @property
    def has_cells(self) -> bool:
        """Whether the panel is a map."""
        return any(isinstance(mark, Cells) for mark in self.panel.marks)

    @property
    def has_bars(self) -> bool:
        """Whether the panel has bars, which would hide a line behind them."""
        return any(isinstance(mark, Bars) for mark in self.panel.marks)

    def where(self, number: Any, direction: Direction) -> float | None:
        """Where a value of the results lies on an axis; ``None``: nowhere."""
        axis = self.axis(direction)
        if axis.scale == "category":
            return place(self.categories[direction], number)
        return None if axis.scale == "log" and number <= 0 else float(number / axis.unit)

    def points(self, found: Sequence[dict[str, Any]], x: str, y: str) -> list[tuple[float, float, dict[str, Any]]]:
        """Records with both of their places; without those that have none."""
        placed = [(self.where(value(each, x), "x"), self.where(value(each, y), "y"), each) for each in found]
        return [(across, up, each) for across, up, each in placed if across is not None and up is not None]

    def ends(self) -> Ends:
        """The ends of both axes as they are drawn: a category axis has a place of 1 for each."""
        places = {name: (-0.5, len(found) - 0.5) for name, found in self.categories.items()}
        return places.get("x", self.limits[0]), places.get("y", self.limits[1])

    def rule_at(self, path: str, direction: Direction) -> float | None:
        """Where the number at ``path`` lies inside the panel; ``None``: it is not known or beyond the ends."""
        number = number_at(self.results, path)
        at = None if number is None else self.where(number, direction)
        low, high = sorted(self.axes.get_xlim() if direction == "x" else self.axes.get_ylim())
        return at if at is not None and low <= at <= high else None

    def gid(self, mark: object) -> str:
        """The name of a mark's artists in the figure."""
        return f"panel{self.number}-mark{next(at for at, each in enumerate(self.panel.marks) if each is mark)}"


def panel_limits(panels: Sequence[Panel], results: Results) -> Ends:
    """The ends of both axes; zones have room for their names at the top, and a map has none around it."""
    if any(isinstance(mark, Cells) for mark in panels[0].marks):
        panels = [replace(panel, x=_tight(panel, "x", results), y=_tight(panel, "y", results)) for panel in panels]
    across, (low, high) = limits(panels, results)
    axis = panels[0].y
    if axis.high is None and any(isinstance(mark, Zones) for panel in panels for mark in panel.marks):
        high = high * (high / low) ** NAME_ROOM if axis.scale == "log" else high + (high - low) * NAME_ROOM
    return across, (low, high)


def _tight(panel: Panel, direction: Direction, results: Results) -> Axis:
    """An axis that ends where the cells do, unless it has ends of its own."""
    axis = panel.x if direction == "x" else panel.y
    if axis.scale == "category":
        return axis
    cells = [mark for mark in panel.marks if isinstance(mark, Cells)]
    keyed = [(mark, mark.x if direction == "x" else mark.y) for mark in cells]
    values = [value(record, key) for mark, key in keyed for record in drawn(results, mark)]
    ends = edges(values, axis) if values else [axis.low, axis.high]
    return replace(
        axis, low=ends[0] if axis.low is None else axis.low, high=ends[-1] if axis.high is None else axis.high
    )


def line_look(look: Look, size: Size) -> dict[str, Any]:
    """How a line of ``look`` is drawn."""
    return {
        "color": COLOURS[look.colour],
        "linestyle": LINES[look.dash],
        "linewidth": size.line * (1.0 if look.dash == "solid" else 0.85) * look.weight,
        "alpha": FAINT if look.faint else 1.0,
    }


def marker_look(look: Look, size: Size) -> dict[str, Any]:
    """How the markers of a line of ``look`` are drawn."""
    colour = COLOURS[look.colour]
    return {
        "marker": MARKERS[look.marker],
        "markersize": size.marker,
        "markerfacecolor": "white" if look.hollow else colour,
        "markeredgecolor": colour if look.hollow else "white",
        "markeredgewidth": size.points(1.6 if look.hollow else 0.8),
    }


def tick_text(number: Any, kind: str) -> str:
    """A value as an axis or a category names it."""
    if isinstance(number, str):
        return number
    if isinstance(number, float) and number == int(number) and abs(number) < 1e15:
        number = int(number)
    return fmt.shown(number, kind if kind != "text" else "number")
