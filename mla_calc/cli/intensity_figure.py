"""The figure of ``intensity``: FLOP per byte of decode against TP, of every model, below the ridge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..report import format as fmt
from ..report.chart import Axis, Chart, Dash, Line, Look, Mark, Marker, Panel, Rows, Rule, Shown
from ..report.record import Report
from .cache_figure import layouts_beside

NEEDS: dict[str, Any] = {}
"""Options of `intensity` that add what the figure draws: none."""
LOOKS = (Look("blue", "circle"), Look("orange", "square"), Look("green", "triangle"), Look("pink", "diamond"),
         Look("sky", "plus"), Look("red", "star"))  # fmt: skip
"""The model and those beside it; further ones begin again with another marker."""
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
"""Of the first, second and third step asked for; further ones begin again with another marker."""
MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "plus", "star", "cross")


def chart(report: Report) -> Chart:
    """A line for every model and number of queries (sparse: and context), and the ridge of the GPU."""
    inputs, results = report.inputs, report.results
    records = [("", results)] if isinstance(results, dict) else [(f"[{at}].", each) for at, each in enumerate(results)]
    marks = _marks(report, records)
    ridge = _ridge(records[0][0], records[0][1])
    return Chart(
        title=f"Arithmetic intensity of decode: {', '.join([inputs['model'], *inputs['vs']])}",
        caption=_caption(report, records[0][1]),
        panels=(
            Panel(
                Axis("tensor-parallel ranks", "log", kind="integer", ticks=tuple(float(tp) for tp in inputs["tp"])),
                Axis("FLOP per byte of cache read", "log"),
                (*ridge, *marks),
            ),
        ),
    )


def _ridge(at: str, record: dict[str, Any]) -> tuple[Mark, ...]:
    if record["ridge_flop_per_byte"] is None:
        return ()
    return (Rule(f"{at}ridge_flop_per_byte", "y", "ridge: {} FLOP/B", look=Look("ink", dash="dashed")),)


def _marks(report: Report, records: list[tuple[str, dict[str, Any]]]) -> list[Mark]:
    """A line for each model and step; one for those that are alike at every TP, or the first would not be seen.

    Raises:
        InputError: more models and steps than lines that can be told apart.
    """
    models, again = _rounds(1 + len(records[0][1]["vs"]), len(LOOKS)), _rounds(len(records), len(DASHES))
    if models * again > len(MARKERS):
        raise InputError(
            f"a figure cannot tell {1 + len(records[0][1]['vs'])} models at {len(records)} steps apart",
            "fewer of --vs, or of --queries and --context",
        )
    groups: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    for index, (_, record) in enumerate(records):
        for number, rows in enumerate([record["by_tp"], *(other["by_tp"] for other in record["vs"])]):
            groups.setdefault(tuple(row["intensity_flop_per_byte"] for row in rows), []).append((number, index))
    return [_line(report, records, alike, _look(*alike[0], again)) for alike in groups.values()]


def _rounds(count: int, looks: int) -> int:
    """How many times looks begin, so that each of ``count`` has one."""
    return -(-count // looks)


def _line(
    report: Report, records: list[tuple[str, dict[str, Any]]], alike: list[tuple[int, int]], look: Look
) -> Line:  # fmt: skip
    """The line of the first of ``alike``: the places of models, and of records, of one course."""
    number, index = alike[0]
    at, record = records[index]
    shown = [Shown("TP", "tp", "integer")]
    if record["ridge_flop_per_byte"] is not None:
        shown += [Shown("of the ridge", "ridge_share", "percent"), Shown("binds", "binds")]
    return Line(
        Rows(f"{at}vs[{number - 1}].by_tp" if number else f"{at}by_tp"),
        "tp",
        "intensity_flop_per_byte",
        _label(report, records, alike),
        look,
        text="intensity_flop_per_byte",
        kind="number",
        shown=tuple(shown),
        ends=index > 0 or number > 0,
    )


def _label(report: Report, records: list[tuple[str, dict[str, Any]]], alike: list[tuple[int, int]]) -> str:
    """``DeepSeek-V3, 2 queries``; a model's name alone where all its steps are alike."""
    names = [report.inputs["model"], *(other["model"] for other in records[0][1]["vs"])]
    found: list[str] = []
    for number in dict.fromkeys(number for number, _ in alike):
        steps = [index for other, index in alike if other == number]
        every = len(steps) == len(records)
        found += [names[number]] if every and len(steps) > 1 else [
            f"{names[number]}{_step(report, records[index][1])}" for index in steps
        ]  # fmt: skip
    return " = ".join(found)


def _look(model: int, step: int, again: int) -> Look:
    """A colour for each model; a dash for each step, and another marker where colours or dashes begin again.

    ``again``: how many times the dashes begin, for each of which a model has a marker of its own.
    """
    look = LOOKS[model % len(LOOKS)]
    further = model // len(LOOKS) * again + step // len(DASHES)
    marker = MARKERS[(MARKERS.index(look.marker) + further) % len(MARKERS)]
    return replace(look, dash=DASHES[step % len(DASHES)], hollow=step > 0, marker=marker)


def _step(report: Report, record: dict[str, Any]) -> str:
    """What tells this record's lines from the others': ``, 2 queries``."""
    several = {name: isinstance(report.inputs.get(name), list) for name in ("queries", "context")}
    text = f", {fmt.counted(record['queries'], 'query', 'queries')}" if several["queries"] else ""
    return text + (f", {record['sparse']['context']:,} keys" if several["context"] and record["sparse"] else "")


def _caption(report: Report, record: dict[str, Any]) -> str:
    inputs = report.inputs
    parts = [report.title.replace("   ", ": ", 1), *layouts_beside(record)]
    parts.append(report.subtitle or f"{inputs['mma_dtype']}, no GPU: no ridge")
    if not isinstance(inputs["queries"], list):
        parts.append(f"{fmt.counted(inputs['queries'], 'query', 'queries')} a request")
    parts.append(_attention(report, record))
    return "  ·  ".join(parts)


def _attention(report: Report, record: dict[str, Any]) -> str:
    sparse: dict[str, Any] | None = record["sparse"]
    if sparse is None:
        return "dense, the limit of a long context"
    over = "" if isinstance(report.inputs["context"], list) else f" over {sparse['context']:,} keys"
    beside = "; models beside it dense" if report.inputs["vs"] else ""
    return f"sparse (top {sparse['topk']:,}) with its indexer{over}{beside}"
