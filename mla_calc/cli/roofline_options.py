"""The options that only ``roofline`` has, with their completion, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..costs.ridge import AXES, Axis
from ..costs.roofline import LEVELS
from ..costs.trajectories import FOLLOWED
from ..errors import InputError, nearest, shown
from ..hardware.gpu import DTYPES, GPU
from . import complete
from .request import Axes, parts

LAYOUTS = ("overlay", "panels")
PATHS = ("absorbed", "naive", "both")
DRAWN: tuple[Axis, ...] = ("tp", "queries")
"""The axes that the figure shows where none are asked for: more would hide one another."""


def _list_of(one: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Completion of the last entry of a list with commas."""

    def entries(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in one(last)]

    return entries


Gpus = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        "-g",
        help="GPU presets or YAML files, with commas; auto takes this machine's.",
        autocompletion=_list_of(complete.gpus),
        show_default=False,
    ),
]
Over = Annotated[
    str | None,
    typer.Option(
        "--over",
        help="Axes to follow: tp, batch, context, queries.",
        autocompletion=_list_of(complete.one_of(AXES)),
        show_default="those with a list, else all",
    ),
]
MmaDtypes = Annotated[
    str,
    typer.Option(
        "--mma-dtype",
        help="Dtypes of the products' operands: a roof each, points under the first.",
        autocompletion=_list_of(complete.mma_dtypes),
    ),
]
Levels = Annotated[
    str,
    typer.Option(
        "--levels", help="Roofs beside memory's: link, pcie.", autocompletion=_list_of(complete.one_of(LEVELS))
    ),
]
Layout = Annotated[
    str,
    typer.Option("--layout", help="Several GPUs: overlay or panels.", autocompletion=complete.one_of(LAYOUTS)),
]
MeasuredFile = Annotated[
    Path | None,
    typer.Option("--measured", help="Draw measured kernels: a validate run's JSON, or a CSV.", show_default=False),
]
WhichPath = Annotated[
    str, typer.Option("--path", help="Kernels of absorbed, naive or both.", autocompletion=complete.one_of(PATHS))
]
Follow = Annotated[
    str,
    typer.Option(
        "--follow", help="What trajectories show: attention or path.", autocompletion=complete.one_of(FOLLOWED)
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """What of an answer is shown: none of it changes a number."""

    over: tuple[Axis, ...]
    """Axes that are followed."""
    drawn: tuple[Axis, ...]
    levels: tuple[str, ...]
    layout: str
    follow: str
    paths: tuple[str, ...]


def view_of(over: str | None, levels: str, layout: str, path: str, follow: str, axes: Axes) -> View:
    """The view that these options ask for. Raises InputError for a name that there is not."""
    listed = tuple(axis for axis in AXES if len(getattr(axes, axis)) > 1)
    asked = None if over is None else tuple(axis for axis in AXES if axis in entries(over, AXES, "--over"))
    chosen = one_of(path, PATHS, "--path")
    return View(
        over=asked or listed or AXES,
        drawn=asked or listed or DRAWN,
        levels=_levels(levels),
        layout=one_of(layout, LAYOUTS, "--layout"),
        follow=one_of(follow, FOLLOWED, "--follow"),
        paths=PATHS[:2] if chosen == "both" else (chosen,),
    )


def _levels(text: str) -> tuple[str, ...]:
    """The levels asked for, and memory's, which points stand under."""
    asked = entries(text, LEVELS, "--levels")
    return tuple(level for level in LEVELS if level == "memory" or level in asked)


def one_of(text: str, names: Sequence[str], option: str) -> str:
    """``text`` as one of ``names``. Raises InputError for another."""
    name = text.strip().lower()
    if name not in names:
        raise InputError(f"{option} {shown(text)}: one of {', '.join(names)} is accepted", nearest(name, names))
    return name


def entries(text: str, names: Sequence[str], option: str) -> tuple[str, ...]:
    """A list of ``names`` with commas, each once. Raises InputError for another name."""
    return tuple(dict.fromkeys(one_of(entry, names, option) for entry in text.split(",")))


def cards_of(gpu: str | None) -> tuple[GPU, ...]:
    """The GPUs asked for, each once.

    Raises:
        InputError: none, an unknown one, or two that differ and have one name, which would hide one another.
    """
    if gpu is None or not gpu.strip():
        raise InputError(
            "a roofline needs a GPU: --gpu h100, or several as h100,h200,b200", "`mla-calc presets list` has the names"
        )
    from ..hardware.load import load_gpu

    found: dict[str, GPU] = {}
    for asked in parts(gpu):
        card = load_gpu(asked)
        if found.setdefault(card.name, card) != card:
            raise InputError(
                f"--gpu {shown(gpu)}: two different GPUs have the name {shown(card.name)}",
                "give the one in your YAML file a `name` of its own",
            )
    return tuple(found.values())


def dtypes_of(text: str, cards: Iterable[GPU]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]], list[str]]:
    """The dtypes asked for, those that each GPU has a peak of, and notes on those it has not.

    Raises:
        InputError: a dtype that there is not, or a GPU without a peak of the first one, which points stand under.
    """
    asked = entries(text, DTYPES, "--mma-dtype")
    has: dict[str, tuple[str, ...]] = {}
    notes = []
    for card in cards:
        card.peak_flop_per_s(asked[0])
        has[card.name] = tuple(dtype for dtype in asked if dtype in card.peak_tflops)
        missing = [dtype for dtype in asked if dtype not in card.peak_tflops]
        if missing:
            notes.append(f"{card.name} has no {' or '.join(missing)} peak: its roof is left out.")
    return asked, has, notes
