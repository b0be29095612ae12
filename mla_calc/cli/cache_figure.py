"""What ``cache --by-tp`` adds, and the figure of it: bytes per token of every model, per rank and in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..costs.cache_by_tp import TokenAtTp
from ..report import format as fmt
from ..report.chart import Axis, Bars, Chart, Line, Look, Mark, Panel, Rows, Rule, Shown
from ..report.record import Cell, Report, Table, plain

LOOKS = (
    Look("blue", "circle"),
    Look("sky", "circle", "dashed", hollow=True),
    Look("orange", "square"),
    Look("green", "triangle"),
    Look("pink", "diamond", "dashed"),
    Look("red", "star", "dotted"),
    Look("ink", "plus", "dashed"),
)
"""The model, its other form, and the models beside it; further ones begin again."""
KIB = 1024.0
NEEDS = {"by_tp": True}
"""Options of `cache` that add what the figure draws."""


def with_tokens(report: Report, tokens: Sequence[TokenAtTp]) -> Report:
    """The report with the bytes by TP in its results, a table of them, and these as the rows of its CSV."""
    assert isinstance(report.results, dict)
    by_tp = plain(tokens)
    inputs = report.inputs | {"by_tp": list(dict.fromkeys(token.tp for token in tokens))}
    tables = (*report.tables, _table(tokens))
    return replace(
        report, results=report.results | {"by_tp": by_tp}, inputs=inputs, tables=tables, csv_rows=tuple(by_tp)
    )


def _table(tokens: Sequence[TokenAtTp]) -> Table:
    rows = tuple(
        (
            Cell(f"by_tp[{index}].name", "text"),
            Cell(f"by_tp[{index}].tp"),
            Cell(f"by_tp[{index}].per_rank_bytes_per_token", "bytes"),
            Cell(f"by_tp[{index}].cluster_bytes_per_token", "bytes"),
        )
        for index in range(len(tokens))
    )
    return Table(("", "TP", "per rank", "cluster"), rows, "bytes per token by TP")


def chart(report: Report) -> Chart:
    """Bytes per token of each model and form; per rank against TP; in the cluster, with the break-even TP."""
    assert isinstance(report.results, dict)
    results, inputs = report.results, report.inputs
    names = list(dict.fromkeys(record["name"] for record in results["by_tp"]))
    tps = tuple(float(tp) for tp in inputs["by_tp"])
    return Chart(
        title=f"Cache bytes per token: {', '.join([inputs['model'], *inputs['vs']])}",
        caption=_caption(report),
        panels=(
            Panel(
                _size("KiB per token"),
                Axis("", "category", kind="text"),
                tuple(_bars(names, inputs["by_tp"][0])),
                "one copy",
                stacked=True,  # a bar to a category: side by side, each mark would keep a place in all of them
            ),
            Panel(_tp(tps), _size("KiB per token on a rank"), tuple(_lines(names, "per_rank")), "per rank"),
            Panel(
                _tp(tps),
                _size("KiB per token in the cluster"),
                (*_break_even(results), *_lines(names, "cluster")),
                "in the cluster",
            ),
        ),
    )


def _tp(tps: tuple[float, ...]) -> Axis:
    return Axis("tensor-parallel ranks", "log", kind="integer", ticks=tps)


def _size(label: str) -> Axis:
    return Axis(label, "log", unit=KIB)


def _bars(names: Sequence[str], tp: int) -> Iterator[Mark]:
    for look, name in zip(_looks(names), names, strict=True):
        rows = Rows("by_tp", (("tp", tp), ("name", name)))
        shown = (Shown("per token", "bytes_per_token", "bytes"),)
        yield Bars(rows, "name", "bytes_per_token", "binary", look=replace(look, hollow=False), shown=shown)


def _lines(names: Sequence[str], where: str) -> Iterator[Mark]:
    key = f"{where}_bytes_per_token"
    for look, name in zip(_looks(names), names, strict=True):
        shown = (Shown("TP", "tp", "integer"), Shown("per token", key, "bytes"))
        yield Line(Rows("by_tp", (("name", name),)), "tp", key, name, look, shown=shown)


def _looks(names: Sequence[str]) -> list[Look]:
    return [LOOKS[index % len(LOOKS)] for index in range(len(names))]


def _break_even(results: dict[str, Any]) -> Iterator[Mark]:
    """Where the copies of the latent weigh what each of ``vs`` does that has such a TP; those alike once."""
    seen = set()
    for index, beside in enumerate(results["vs"]):
        tp = beside["break_even_tp"]
        if tp is not None and tp not in seen:
            seen.add(tp)
            yield Rule(f"vs[{index}].break_even_tp", "x", "TP {}", label="break-even TP" if len(seen) == 1 else "")


def _caption(report: Report) -> str:
    inputs = report.inputs
    parts = [report.title.replace("   ", ": ", 1)]
    if inputs["mtp_layers"]:
        parts.append(f"{fmt.counted(inputs['mtp_layers'], 'MTP layer')} included")
    parts.append("all layers; expanded: keys and values of every head, in bf16")
    return "  ·  ".join(parts)
