"""The figure of ``intensity``: FLOP per byte of decode against TP, of every model, below the ridge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..report import format as fmt
from ..report.chart import Axis, Chart, Dash, Line, Look, Mark, Marker, Panel, Rows, Rule, Shown
from ..report.record import Report

NEEDS: dict[str, Any] = {}
"""Options of `intensity` that add what the figure draws: none."""
LOOKS = (Look("blue", "circle"), Look("orange", "square"), Look("green", "triangle"), Look("pink", "diamond"),
         Look("sky", "plus"), Look("red", "star"))  # fmt: skip
"""The model and those beside it; further ones begin again."""
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
"""Of the first, second and third step asked for; further ones begin again with another marker."""
MARKERS: tuple[Marker, ...] = ("diamond", "cross", "star", "plus")


def chart(report: Report) -> Chart:
    """A line for every model and number of queries (sparse: and context), and the ridge of the GPU."""
    inputs, results = report.inputs, report.results
    records = [("", results)] if isinstance(results, dict) else [(f"[{at}].", each) for at, each in enumerate(results)]
    marks = [mark for index, (at, record) in enumerate(records) for mark in _lines(report, record, at, index)]
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


def _lines(report: Report, record: dict[str, Any], at: str, index: int) -> Iterator[Mark]:
    step = _step(report, record)
    names = [report.inputs["model"], *(other["model"] for other in record["vs"])]
    paths = [f"{at}by_tp", *(f"{at}vs[{number}].by_tp" for number in range(len(record["vs"])))]
    shown = [Shown("TP", "tp", "integer")]
    if record["ridge_flop_per_byte"] is not None:
        shown += [Shown("of the ridge", "ridge_share", "percent"), Shown("binds", "binds")]
    for number, (name, path) in enumerate(zip(names, paths, strict=True)):
        look = _look(number, index)
        yield Line(
            Rows(path),
            "tp",
            "intensity_flop_per_byte",
            f"{name}{step}",
            look,
            text="intensity_flop_per_byte",
            kind="number",
            shown=tuple(shown),
            ends=index > 0 or number > 0,
        )


def _look(model: int, step: int) -> Look:
    """A colour for each model; a dash for each step, and a marker where its dashes begin again."""
    look = replace(LOOKS[model % len(LOOKS)], dash=DASHES[step % len(DASHES)], hollow=step > 0)
    again = step // len(DASHES)
    return replace(look, marker=MARKERS[(again - 1) % len(MARKERS)]) if again else look


def _step(report: Report, record: dict[str, Any]) -> str:
    """What tells this record's lines from the others': ``, 2 queries``."""
    several = {name: isinstance(report.inputs.get(name), list) for name in ("queries", "context")}
    text = f", {fmt.counted(record['queries'], 'query', 'queries')}" if several["queries"] else ""
    return text + (f", {record['sparse']['context']:,} keys" if several["context"] and record["sparse"] else "")


def _caption(report: Report, record: dict[str, Any]) -> str:
    inputs = report.inputs
    parts = [report.title.replace("   ", ": ", 1)]
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
