"""The tables of ``roofline`` and its one sentence: cells are paths into the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..costs.ridge import Axis
from ..report import format as fmt
from ..report.record import Cell, Table
from .request import Axes
from .roofline_options import View

AXIS_NAMES: dict[Axis, str] = {"tp": "TP", "batch": "batch", "context": "context", "queries": "queries"}
MOST_ABOVE = 5
"""Points above a roof that the table lists; the JSON has all."""
NOWHERE = "none"
"""What stands for the values at which the ridge is reached where it never is."""
STEP = ("tp", "batch", "queries", "context")

Row = tuple[str | Cell, ...]
Results = dict[str, Any]


def tables_of(results: Results, view: View, axes: Axes) -> tuple[Table, ...]:
    """Roofs and ridges; the kernels of the first step; the axes that were listed; crossings; points above a roof.

    Of several GPUs, which differ in rates alone, a table has a column for each.
    """
    gpus = _gpus(results)
    listed: list[Axis] = [axis for axis in view.over if len(getattr(axes, axis)) > 1]
    tables = [_ridge_table(results, view, len(gpus) == 1)]
    if len(gpus) > 1:
        from .roofline_gpus import side_by_side

        return (*tables, *side_by_side(results, view, gpus, listed), *_above(results))
    tables += _kernel_tables(results, gpus[0])
    tables += [_followed(results, view, gpus[0], axis) for axis in listed]
    return (*tables, _crossings(results, view, gpus[0]), *_above(results))


def _gpus(results: Results) -> list[str]:
    return [item["gpu"] for item in results["ridge_heads_times_queries"]]


def short_names(gpus: Sequence[str]) -> dict[str, str]:
    """What a GPU is called where there is little room: ``H100``, or its whole name without its vendor's."""
    plain = {gpu: gpu.removeprefix("NVIDIA ").removeprefix("AMD Instinct ").removeprefix("AMD ") for gpu in gpus}
    words = {gpu: name.split()[0].rstrip(",;") for gpu, name in plain.items()}
    alone = len(set(words.values())) == len(words) and all(any(map(str.isdigit, word)) for word in words.values())
    return words if alone else plain


def _ridge_table(results: Results, view: View, one: bool) -> Table:
    rows: list[Row] = []
    names = short_names(_gpus(results))
    for index, ridge in enumerate(results["ridges"]):
        if ridge["level"] not in view.levels:
            continue
        at = f"ridges[{index}]."
        name = f"{ridge['dtype']}, {ridge['level']}, {ridge['kind']}"
        rows.append(
            (
                name if one else f"{names[ridge['gpu']]}: {name}",
                Cell(at + "flop_per_s", "tera"),
                Cell(at + "bytes_per_s", "tera"),
                Cell(at + "ridge_flop_per_byte", "number"),
            )
        )
    rates = fmt.rate_unit(*(ridge["dtype"] for ridge in results["ridges"]))
    return Table(("roofs, dense", rates, "TB/s", "ridge FLOP/B"), tuple(rows))


def rate_of(results: Results) -> str:
    """What the kernels' rates are in: those of products of the first dtype."""
    return fmt.rate_unit(results["ridge_heads_times_queries"][0]["dtype"])


def first_step(results: Results) -> dict[str, Any]:
    """The axes of the first grid point, which tables and figure show the kernels of."""
    first = results["points"][0]
    return {axis: first[axis] for axis in STEP}


def step_phrase(results: Results) -> str:
    """``1 request, 1 query over 4,096 keys, TP 1``."""
    step = first_step(results)
    requests, queries = fmt.counted(step["batch"], "request"), fmt.counted(step["queries"], "query", "queries")
    return f"{requests}, {queries} over {fmt.counted(step['context'], 'key')}, TP {step['tp']}"


def indices(results: Results, gpu: str, kind: str) -> Iterator[int]:
    """Where the kernels of the first grid point stand among the points."""
    step = first_step(results)
    for index, point in enumerate(results["points"]):
        if (point["gpu"], point["kind"]) == (gpu, kind) and all(point[axis] == step[axis] for axis in STEP):
            yield index


def _kernel_tables(results: Results, gpu: str) -> list[Table]:
    bounds: list[Row] = []
    for index in indices(results, gpu, "bound"):
        at, point = f"points[{index}].", results["points"][index]
        bounds.append(
            (
                f"{point['path']}: {point['kernel']}",
                Cell(at + "flop", "short_flop"),
                Cell(at + "bytes", "decimal"),
                Cell(at + "intensity_flop_per_byte", "number"),
                Cell(at + "flop_per_s", "tera"),
                Cell(at + "peak_share", "percent"),
                Cell(at + "binds", "text"),
            )
        )
    headers = ("path: kernel", "FLOP", "bytes", "FLOP/B", rate_of(results), "of peak", "binds")
    tables = [Table(headers, tuple(bounds), f"{step_phrase(results)}; at the bound")]
    estimates: list[Row] = []
    for index in indices(results, gpu, "estimate"):
        at, point = f"points[{index}].", results["points"][index]
        estimates.append(
            (
                f"{point['path']}: {point['kernel']}",
                Cell(at + "bound_s", "seconds"),
                Cell(at + "time_s", "short_seconds"),
                Cell(at + "flop_per_s", "tera"),
                Cell(at + "roof_share", "percent"),
            )
        )
    if estimates:
        timed = ("path: kernel", "bound", "estimate", rate_of(results), "of roof")
        tables.append(Table(timed, tuple(estimates), "by estimate"))
    return tables


def followed_of(results: Results, view: View, gpu: str) -> list[tuple[int, dict[str, Any]]]:
    """The trajectories of what is followed, with their places."""
    every = enumerate(results["trajectories"])
    return [(at, item) for at, item in every if item["gpu"] == gpu and item["kernel"] == view.follow]


def _followed(results: Results, view: View, gpu: str, axis: Axis) -> Table:
    """What is followed at each listed value of an axis, both paths side by side."""
    found = [(at, item) for at, item in followed_of(results, view, gpu) if item["axis"] == axis]
    rows = []
    for index in range(len(found[0][1]["points"])):
        cells: list[str | Cell] = [Cell(f"trajectories[{found[0][0]}].points[{index}].value")]
        for at, _ in found:
            vertex = f"trajectories[{at}].points[{index}]."
            cells += [
                Cell(vertex + "intensity_flop_per_byte", "number"),
                Cell(vertex + "flop_per_s", "tera"),
                Cell(vertex + "binds", "text"),
            ]
        rows.append(tuple(cells))
    headers = (
        AXIS_NAMES[axis],
        *(name for _, item in found for name in (f"{item['path']} FLOP/B", rate_of(results), "binds")),
    )
    return Table(headers, tuple(rows), f"{subject_phrase(view)} over {AXIS_NAMES[axis]}")


def _crossings(results: Results, view: View, gpu: str) -> Table:
    rows: list[Row] = [
        (
            AXIS_NAMES[item["axis"]],
            item["path"],
            Cell(f"trajectories[{at}].ridge_crossing", "number"),
            Cell(f"trajectories[{at}].ridge_crossing_note", "text"),
        )
        for at, item in followed_of(results, view, gpu)
    ]
    caption = f"where {subject_phrase(view)} crosses the ridge"
    return Table(("over", "path", "crosses at", "what binds"), tuple(rows), caption)


def subject_phrase(view: View) -> str:
    """What is followed."""
    return "attention" if view.follow == "attention" else "the whole path"


def _above(results: Results) -> list[Table]:
    """The points that stand highest above their roof."""
    above = [(at, item) for at, item in enumerate(results["points"]) if item["above_roof"]]
    if not above:
        return []
    above.sort(key=lambda entry: -entry[1]["roof_share"])
    several = [
        key
        for key in ("gpu", "implementation")
        if len({item[key] for item in results["points"] if item["kind"] == "measured"}) > 1
    ]
    names = short_names(_gpus(results))
    rows: list[Row] = [
        (
            *(names[item["gpu"]] if key == "gpu" else Cell(f"points[{at}].{key}", "text") for key in several),
            Cell(f"points[{at}].heads"),
            Cell(f"points[{at}].batch"),
            Cell(f"points[{at}].queries"),
            Cell(f"points[{at}].context"),
            Cell(f"points[{at}].roof_share", "percent"),
            Cell(f"points[{at}].cause", "text"),
        )
        for at, item in above[:MOST_ABOVE]
    ]
    caption = f"above the roof: {fmt.counted(len(above), 'point')}" + (
        f", the highest {MOST_ABOVE}" if len(above) > MOST_ABOVE else ""
    )
    whose = ("GPU" if key == "gpu" else "kernel" for key in several)
    headers = (*whose, "heads", "batch", "queries", "context", "of roof", "likely cause")
    return [Table(headers, tuple(rows), caption)]


def sentence_of(results: Results, view: View) -> str:
    """The ridge, what binds attention of the first step, and where attention of the paths shown reaches the ridge."""
    first = results["ridge_heads_times_queries"][0]
    gpu, dtype = first["gpu"], first["dtype"]
    ridge = next(item for item in results["ridges"] if is_main(item, gpu, dtype))
    many = len(results["ridge_heads_times_queries"]) > 1
    text = f"The ridge{' of ' + gpu if many else ''} lies at {fmt.number(ridge['ridge_flop_per_byte'])} FLOP/B"
    places = [results["points"][index] for index in indices(results, gpu, "bound")]
    attention = [point for point in places if point["kernel"] == "attention"]
    # heads times queries are the absorbed path's: naively each head has keys and values of its own, and they cancel
    reached = _products(results) if "absorbed" in view.paths else _naive_queries(results)
    return f"{text}: {_binding(attention)}.{reached}"


def _binding(points: Sequence[dict[str, Any]]) -> str:
    """``memory binds attention, absorbed at 228.3 and naive at 0.9998``."""
    at = {point["path"]: fmt.number(point["intensity_flop_per_byte"]) for point in points}
    if len({point["binds"] for point in points}) == 1:
        return f"{points[0]['binds']} binds attention, {' and '.join(f'{path} at {x}' for path, x in at.items())}"
    return ", ".join(f"{point['binds']} binds {point['path']} attention at {at[point['path']]}" for point in points)


def is_main(ridge: dict[str, Any], gpu: str, dtype: str) -> bool:
    """Whether it is the datasheet's ridge of a dtype with the GPU's memory."""
    wanted = (gpu, dtype, "memory", "datasheet")
    return (ridge["gpu"], ridge["dtype"], ridge["level"], ridge["kind"]) == wanted


def _products(results: Results) -> str:
    """Heads times queries at which absorbed attention reaches the ridge of each GPU."""
    found = results["ridge_heads_times_queries"]
    over = _over(results)
    each = {item["gpu"]: text for item in found if (text := _product(item, over))}
    if not each:
        return ""
    if len(found) == 1:
        return f" Absorbed attention reaches it at heads x queries = {each[found[0]['gpu']]}."
    return f" Heads x queries at which absorbed attention reaches it: {_by_gpu(results, each)}."


def _over(results: Results) -> str:
    """``over 4,096 keys``, of the first grid point."""
    return f"over {fmt.counted(first_step(results)['context'], 'key')}"


def _product(item: dict[str, Any], over: str) -> str:
    """``156.4 by context alone, 168.5 with query and output bytes``; empty where neither is known."""
    context, whole = item["by_context"], item["with_query_and_output"]
    parts = [f"{context:.1f} by context alone"] if context else []
    if whole:
        parts.append(f"{whole:.1f} with query and output bytes")
    elif context:
        parts.append(f"with query and output bytes at no number of queries {over}")
    return ", ".join(parts)


def _naive_queries(results: Results) -> str:
    """How many queries take naive attention to the ridge of each GPU; nothing where queries were not followed."""
    wanted = ("queries", "naive", "attention")
    found = [item for item in results["trajectories"] if (item["axis"], item["path"], item["kernel"]) == wanted]
    each = {item["gpu"]: text for item in found if (text := _crossed(item))}
    if not each:
        return ""
    over = _over(results)
    if len(_gpus(results)) == 1:
        at = each[found[0]["gpu"]]
        queries = "no number of queries" if at == NOWHERE else f"{at} {'query' if at == '1' else 'queries'}"
        return f" Naive attention reaches it at {queries} {over}."
    return f" Queries {over} at which naive attention reaches it: {_by_gpu(results, each)}."


def _crossed(item: dict[str, Any]) -> str:
    """The values at which a trajectory crosses the ridge; empty where none was solved, or compute binds all along."""
    if item["ridge_crossings"]:
        return " and ".join(map(fmt.number, item["ridge_crossings"]))
    return NOWHERE if item["ridge_crossing_note"].startswith("memory binds") else ""


def _by_gpu(results: Results, each: dict[str, str]) -> str:
    """``H100 332.8; H200 223.4``: a text for each GPU that has one."""
    names = short_names(_gpus(results))
    return "; ".join(f"{names[gpu]} {text}" for gpu, text in each.items())
