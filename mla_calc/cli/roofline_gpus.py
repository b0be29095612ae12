"""The tables of ``roofline`` for several GPUs: what is counted once, and a column of rates for each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..report.record import Cell, Table
from . import roofline_tables as tables

if TYPE_CHECKING:
    from ..costs.ridge import Axis
    from .roofline_options import View


def side_by_side(results: dict[str, Any], view: View, gpus: Sequence[str], listed: Sequence[Axis]) -> list[Table]:
    """Kernels, listed axes and crossings, the GPUs beside one another."""
    found = [_kernels(results, gpus)]
    for axis in listed:
        found += [_followed(results, view, gpus, axis, path) for path in view.paths]
    return [*found, _crossings(results, view, gpus)]


def _headers(gpus: Sequence[str]) -> tuple[str, ...]:
    return tuple(tables.short_names(gpus).values())


def _kernels(results: dict[str, Any], gpus: Sequence[str]) -> Table:
    places = [list(tables.indices(results, gpu, "bound")) for gpu in gpus]
    rows: list[tuple[str | Cell, ...]] = []
    for same in zip(*places, strict=True):
        point, at = results["points"][same[0]], f"points[{same[0]}]."
        rows.append(
            (
                f"{point['path']}: {point['kernel']}",
                Cell(at + "flop", "short_flop"),
                Cell(at + "bytes", "decimal"),
                Cell(at + "intensity_flop_per_byte", "number"),
                *(Cell(f"points[{index}].flop_per_s", "tera") for index in same),
            )
        )
    headers = ("path: kernel", "FLOP", "bytes", "FLOP/B", *_headers(gpus))
    return Table(headers, tuple(rows), f"{tables.step_phrase(results)}; {tables.rate_of(results)} at the bound")


def _followed(results: dict[str, Any], view: View, gpus: Sequence[str], axis: Axis, path: str) -> Table:
    wanted = (axis, path)
    places = [
        at
        for gpu in gpus
        for at, item in tables.followed_of(results, view, gpu)
        if (item["axis"], item["path"]) == wanted
    ]
    rows = tuple(
        (
            Cell(f"trajectories[{places[0]}].points[{index}].value"),
            Cell(f"trajectories[{places[0]}].points[{index}].intensity_flop_per_byte", "number"),
            *(Cell(f"trajectories[{at}].points[{index}].flop_per_s", "tera") for at in places),
        )
        for index in range(len(results["trajectories"][places[0]]["points"]))
    )
    name = tables.AXIS_NAMES[axis]
    caption = f"{path}, {tables.subject_phrase(view)} over {name}; {tables.rate_of(results)} at the bound"
    return Table((name, "FLOP/B", *_headers(gpus)), rows, caption)


def _crossings(results: dict[str, Any], view: View, gpus: Sequence[str]) -> Table:
    rows = tuple(
        (
            tables.AXIS_NAMES[same[0][1]["axis"]],
            same[0][1]["path"],
            *(Cell(f"trajectories[{at}].ridge_crossing", "number") for at, _ in same),
        )
        for same in zip(*(tables.followed_of(results, view, gpu) for gpu in gpus), strict=True)
    )
    caption = f"where {tables.subject_phrase(view)} crosses the ridge; JSON says what binds on either side"
    return Table(("over", "path", *_headers(gpus)), rows, caption)
