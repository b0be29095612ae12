"""A figure as a record: panels, axes and marks whose numbers are looked up in a report's results.

A mark holds no number of its own, as a table's cell does not: it names rows of the results and the keys of what is
drawn, so that a figure shows what the JSON says. Renderers (:mod:`mla_calc.report.drawing`) draw the same chart as
PNG, SVG, PDF, HTML or text. Numbers are in the units of the results; an axis divides them by its ``unit``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Colour = Literal["blue", "orange", "green", "pink", "red", "sky", "ink", "soft"]
"""Of Okabe and Ito's palette, which the common kinds of colour blindness tell apart; a renderer has the values."""
Marker = Literal["circle", "square", "triangle", "diamond", "plus", "cross", "star"]
Dash = Literal["solid", "dashed", "dotted"]
Scale = Literal["log", "linear", "category"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a mark is drawn. Marks that share a colour differ in marker or dash too, so that grey print tells them.

    ``weight``: how many times as wide as others a line is.
    """

    colour: Colour = "ink"
    marker: Marker = "circle"
    dash: Dash = "solid"
    hollow: bool = False
    faint: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Rows:
    """The records of the list at ``path`` in the results whose values at the keys of ``only`` are those given.

    ``path`` may be empty, for results that are a list themselves or one record.
    """

    path: str
    only: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of what a mark tells when it is pointed at: a label, the key of a record, and its format's name."""

    label: str
    key: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Line:
    """A line through records: along its x axis, or in their own order where it has a direction.

    ``text`` is the key of what stands at each of its points, and ``kind`` that text's format; ``must`` the key of what
    says that a point's text is there whatever is near. ``ends``: only the first and the last point have a text, where
    there is room. ``arrow``: it has a direction. ``key``: its colour in the key, where its own tells something else.
    ``spread``: the keys of both ends of an upright bar through each point; a terminal has no room for it.
    """

    rows: Rows
    x: str
    y: str
    label: str = ""
    look: Look = field(default_factory=Look)
    text: str = ""
    kind: str = "text"
    arrow: bool = False
    markers: bool = True
    shown: tuple[Shown, ...] = ()
    spread: tuple[str, str] | None = None
    must: str = ""
    ends: bool = False
    key: Colour | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """A point for each record; ``area``: key of a share from 0 to 1 that its area is proportional to.

    ``key``: its colour in the key, where its own tells something else. ``rank``: of what falls into one cell of a
    terminal the highest is seen; of rank 2 each point is, however many they are.
    """

    rows: Rows
    x: str
    y: str
    label: str = ""
    look: Look = field(default_factory=Look)
    area: str = ""
    text: str = ""
    kind: str = "text"
    shown: tuple[Shown, ...] = ()
    key: Colour | None = None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Roof:
    """The lesser of ``slope`` times x and ``flat``: the paths of both in the results.

    ``on_flat`` and ``on_slope`` are what a picture says beside its parts.
    """

    slope: str
    flat: str
    label: str = ""
    look: Look = field(default_factory=Look)
    shown: tuple[tuple[str, str], ...] = ()
    """Label and text of what is told beside: the sources of both."""
    on_flat: str = ""
    on_slope: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across the panel at the value of ``path``: upright at an x, or level at a y; ``text`` beside it.

    In ``text``, ``{}`` stands for the value, in the format ``kind``.
    """

    path: str
    axis: Literal["x", "y"]
    text: str = ""
    kind: str = "number"
    label: str = ""
    look: Look = field(default_factory=lambda: Look("soft", dash="dotted"))


@dataclass(frozen=True, slots=True)
class Zones:
    """The panel shaded on both sides of the x at ``path``, each side with its name."""

    path: str
    below: str
    above: str


@dataclass(frozen=True, slots=True)
class Cells:
    """A cell for each record of a grid, coloured by the ``value``'s ratio to 1 on a logarithmic scale.

    ``below`` and ``above`` say what a value under and over 1 means; ``text`` is the key of what stands in the cell.
    """

    rows: Rows
    x: str
    y: str
    value: str
    below: str
    above: str
    text: str = ""
    kind: str = "text"
    shown: tuple[Shown, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """A level bar for each record: ``name`` is the key of its category on the y axis, ``value`` of its length.

    The number stands at its end in the format ``kind``, and after it that of the key ``ratio``, as a factor. Several in
    one panel are stacked where the panel says so, and stand side by side otherwise.
    """

    rows: Rows
    name: str
    value: str
    kind: str = "number"
    label: str = ""
    look: Look = field(default_factory=Look)
    shown: tuple[Shown, ...] = ()
    ratio: str = ""


Mark = Line | Points | Roof | Rule | Zones | Cells | Bars


@dataclass(frozen=True, slots=True)
class Axis:
    """``unit``: what values are divided by before they are drawn; ``kind``: the format of ticks.

    ``ticks`` are the values that get one, in the results' units; empty: the renderer's choice for the scale. ``low``
    and ``high`` are the ends, in the results' units; ``None``: what the marks need.
    """

    label: str
    scale: Scale = "linear"
    unit: float = 1.0
    kind: str = "number"
    ticks: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes and what is drawn in it, the lowest first."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    title: str = ""
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: title, a caption with model, GPU, dtype and whether dense, and panels from left to right."""

    title: str
    caption: str
    panels: tuple[Panel, ...]
    shared: bool = False
    """Whether the panels share both axes' limits."""
