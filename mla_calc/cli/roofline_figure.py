"""The figure of ``roofline``: roofs, ridges, zones, both paths' kernels and where they go; all of it looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..report import format as fmt
from ..report.chart import Axis, Chart, Dash, Line, Look, Mark, Marker, Panel, Points, Rows, Shown
from ..report.chart_data import matches
from ..report.record import Report
from .roofline_roofs import MOST_GPUS, Scene, ceilings, ridges, roofs, zones
from .roofline_tables import AXIS_NAMES, first_step, is_main, short_names, step_phrase

PATH_LOOKS: Mapping[str, Look] = {"absorbed": Look("blue", "circle"), "naive": Look("orange", "square")}
AXIS_LOOKS: Mapping[str, tuple[Dash, Marker]] = {
    "tp": ("solid", "triangle"),
    "batch": ("dashed", "plus"),
    "context": ("dotted", "star"),
    "queries": ("dashed", "diamond"),
}
MEASURED_LOOK = Look("green", "plus")
CLOUD = 60
"""Measured points of which one more hide one another, and are drawn faint."""
ABOVE_LOOK = Look("red", "cross")
MOST_NAMED = 3
"""Measured kernels that the key names."""
LEAST_MOVE = 1.02
"""A trajectory whose intensities are all within this factor is a place, and is not drawn."""

COUNTS = (
    Shown("FLOPs", "flop", "flop"),
    Shown("cache", "cache_bytes", "decimal"),
    Shown("weights", "weight_bytes", "decimal"),
    Shown("activations", "activation_bytes", "decimal"),
    Shown("bytes, all", "bytes", "decimal"),
    Shown("intensity, FLOP/B", "intensity_flop_per_byte", "number"),
)
STEP_SHOWN = (
    Shown("TP", "tp", "integer"),
    Shown("heads per rank", "heads", "integer"),
    Shown("batch", "batch", "integer"),
    Shown("queries", "queries", "integer"),
    Shown("context", "context", "integer"),
)
POINT_SHOWN = (
    Shown("path", "path"),
    Shown("kernel", "kernel"),
    *COUNTS,
    Shown("bound", "bound_s", "seconds"),
    Shown("binds", "binds"),
    Shown("rate", "flop_per_s", "flop_rate"),
    Shown("share of roof", "roof_share", "percent"),
    Shown("share of peak", "peak_share", "percent"),
    Shown("share of the path's time", "time_share", "percent"),
)
ESTIMATE_SHOWN = (*POINT_SHOWN[:2], Shown("estimate", "time_s", "short_seconds"), *POINT_SHOWN[2:])
MEASURED_SHOWN = (
    Shown("kernel", "implementation"),
    *STEP_SHOWN,
    Shown("measured", "time_s", "short_seconds"),
    *COUNTS,
    Shown("bound", "bound_s", "seconds"),
    Shown("rate", "flop_per_s", "flop_rate"),
    Shown("share of roof", "roof_share", "percent"),
)
ABOVE_SHOWN = (*MEASURED_SHOWN, Shown("likely cause", "cause"))
PLACE_SHOWN = (
    Shown("at", "tick"),
    Shown("FLOPs", "flop", "flop"),
    Shown("bytes", "bytes", "decimal"),
    Shown("intensity, FLOP/B", "intensity_flop_per_byte", "number"),
    Shown("binds", "binds"),
    Shown("rate at the bound", "flop_per_s", "flop_rate"),
)

Results = dict[str, Any]


def chart(report: Report) -> Chart:
    """The roofline of a ``roofline`` report: one panel, or one for each GPU where panels were asked for.

    Raises:
        InputError: more GPUs than colours, or than panels that leave one another room.
    """
    assert isinstance(report.results, dict)
    results, inputs = report.results, report.inputs
    gpus = tuple(inputs["gpu"])
    if len(gpus) > MOST_GPUS:
        raise InputError(
            f"a figure cannot tell {len(gpus)} GPUs apart",
            f"at most {MOST_GPUS} of --gpu in one figure; tables and --format json have any number",
        )
    split = inputs["layout"] == "panels" and len(gpus) > 1
    groups = tuple((gpu,) for gpu in gpus) if split else (gpus,)
    panels = tuple(_panel(Scene(results, inputs, group, len(group) > 1), group[0] if split else "") for group in groups)
    return Chart(
        title=f"{inputs['model']} under the roofline of {_listed(short_names(gpus).values())}",
        caption=_caption(inputs, results),
        panels=panels,
        shared=split,
    )


def _listed(names: Iterable[str]) -> str:
    """``H100``; ``H100 and H200``; ``H100, H200 and B200``."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _caption(inputs: Mapping[str, Any], results: Results) -> str:
    attention = "sparse attention" if inputs["sparse"] else f"{inputs['pairs']} pairs"
    measured = [point for point in results["points"] if point["kind"] == "measured"]
    parts = (
        *(_gpu_part(gpu, inputs, results) for gpu in inputs["gpu"]),
        f"{', '.join(inputs['mma_dtype'])} products, dense peaks",
        f"{inputs['dtype']} cache",
        f"kernels of {step_phrase(results)}; measured: {_steps_phrase(measured)}" if measured else step_phrase(results),
        attention,
        "per rank and layer",
    )
    return "  ·  ".join(parts)


def _steps_phrase(points: list[dict[str, Any]]) -> str:
    """What steps measured points are of: ``16 heads, 1 request, 1 query over 4,096 keys``, or their number."""
    steps = {(point["heads"], *(point[axis] for axis in ("batch", "queries", "context"))) for point in points}
    if len(steps) > 1:
        return f"{len(steps):,} steps"
    ((heads, batch, queries, context),) = steps
    requests, asked = fmt.counted(batch, "request"), fmt.counted(queries, "query", "queries")
    return f"{fmt.counted(heads, 'head')}, {requests}, {asked} over {context:,} keys"


def _gpu_part(gpu: str, inputs: Mapping[str, Any], results: Results) -> str:
    """The GPU, and its ceilings where panels have no room for them."""
    if inputs["layout"] != "panels" or len(inputs["gpu"]) == 1:
        return gpu
    main = next(ridge for ridge in results["ridges"] if is_main(ridge, gpu, inputs["mma_dtype"][0]))
    return f"{gpu}: {ceilings(main)}"


def _panel(scene: Scene, title: str) -> Panel:
    marks = [
        *zones(scene),
        *ridges(scene),
        *roofs(scene),
        *_measured(scene),
        *_trajectories(scene),
        *_points(scene),
    ]
    return Panel(
        x=Axis("intensity, FLOP/byte", "log"),
        y=Axis(fmt.rate_unit(*scene.inputs["mma_dtype"]), "log", unit=1e12),
        marks=tuple(marks),
        title=title,
    )


def _points(scene: Scene) -> Iterator[Mark]:
    """The kernels of the first step: filled at the bound, hollow at the estimate.

    Estimates are left out where measurements, or several GPUs, take their room.
    """
    step = tuple(first_step(scene.results).items())
    estimated = not scene.together and not _any(scene.results["points"], (("kind", "measured"),))
    for gpu in scene.gpus:
        for path, look in PATH_LOOKS.items():
            for kind in ("bound", "estimate") if estimated else ("bound",):
                only = (("gpu", gpu), ("kind", kind), ("path", path), *step)
                if not _any(scene.results["points"], only):
                    continue
                yield Points(
                    Rows("points", only),
                    x="intensity_flop_per_byte",
                    y="flop_per_s",
                    label=scene.once(gpu, f"{path} kernels, at the {kind}"),
                    look=scene.look(gpu, replace(look, hollow=kind == "estimate")),
                    area="time_share",
                    text="kernel" if kind == "bound" and not scene.gpus.index(gpu) else "",
                    shown=POINT_SHOWN if kind == "bound" else ESTIMATE_SHOWN,
                    key=scene.key,
                )


def _measured(scene: Scene) -> Iterator[Mark]:
    """Measured kernels; those above their roof in red."""
    for gpu in scene.gpus:
        for above in (False, True):
            only = (("gpu", gpu), ("kind", "measured"), ("above_roof", above))
            if _any(scene.results["points"], only):
                yield Points(
                    Rows("points", only),
                    x="intensity_flop_per_byte",
                    y="flop_per_s",
                    label=scene.named(gpu, "measured, above the roof" if above else _measured_label(scene, only)),
                    look=ABOVE_LOOK if above else scene.look(gpu, replace(MEASURED_LOOK, faint=_is_cloud(scene, only))),
                    shown=ABOVE_SHOWN if above else MEASURED_SHOWN,
                    rank=2 if above else 1,
                )


def _is_cloud(scene: Scene, only: tuple[tuple[str, Any], ...]) -> bool:
    return sum(matches(point, only) for point in scene.results["points"]) > CLOUD


def _measured_label(scene: Scene, only: tuple[tuple[str, Any], ...]) -> str:
    """``measured absorbed attention: hopper, small``; their number where they are many."""
    points = [point for point in scene.results["points"] if matches(point, only)]
    paths = " and ".join(dict.fromkeys(point["path"] for point in points))
    names = list(dict.fromkeys(point["implementation"] for point in points))
    return f"measured {paths} attention: {', '.join(names) if len(names) <= MOST_NAMED else f'{len(names)} kernels'}"


def _any(records: list[dict[str, Any]], only: tuple[tuple[str, Any], ...]) -> bool:
    return any(matches(record, only) for record in records)


def _trajectories(scene: Scene) -> Iterator[Mark]:
    for index, item in enumerate(scene.results["trajectories"]):
        if item["gpu"] not in scene.gpus or item["kernel"] != scene.inputs["follow"]:
            continue
        if item["axis"] not in scene.inputs["drawn"] or not moves(item):
            continue
        dash, marker = AXIS_LOOKS[item["axis"]]
        path = PATH_LOOKS[item["path"]]
        what = "attention" if item["kernel"] == "attention" else "path"
        yield Line(
            Rows(f"trajectories[{index}].course"),
            x="intensity_flop_per_byte",
            y="flop_per_s",
            label=scene.once(item["gpu"], f"{item['path']} {what} over {AXIS_NAMES[item['axis']]}"),
            look=scene.look(
                item["gpu"], Look(path.colour, marker, dash, hollow=scene.together and item["path"] == "naive")
            ),
            text="label",
            arrow=True,
            shown=PLACE_SHOWN,
            must="at_ridge",
            key=scene.key,
        )


def moves(item: dict[str, Any]) -> bool:
    """Whether a trajectory goes anywhere."""
    at = [vertex["intensity_flop_per_byte"] for vertex in item["points"]]
    return bool(max(at) > LEAST_MOVE * min(at))
