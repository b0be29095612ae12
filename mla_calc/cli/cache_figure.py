"""What ``cache --by-tp`` adds, and the figure of it: bytes per token of every model, per rank and in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..costs.cache_by_tp import TokenAtTp
from ..report import format as fmt
from ..report.chart import Axis, Bars, Chart, Dash, Line, Look, Mark, Marker, Panel, Rows, Rule, Shown
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
"""The model, its other form, and the models beside it; further ones begin again with another marker and dash."""
MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "star", "plus", "cross")
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
MOST_IN_TITLE = 6
"""Models that a title names."""
MOST_NAMED = 4
"""Break-even TPs that have their numbers beside them; of more, nobody could tell whose they are."""
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
        title=f"Cache bytes per token: {_named(inputs)}",
        caption=_caption(report, names),
        panels=(
            Panel(
                Axis("KiB per token", unit=KIB),
                Axis("", "category", kind="text"),
                tuple(_bars(results, names, inputs["by_tp"][0])),
                "one copy" if len(names) == 1 else f"one copy; times {_base(names)}",
                stacked=True,  # a bar to a category: side by side, each mark would keep a place in all of them
            ),
            Panel(_tp(tps), _size("KiB per token on a rank"), tuple(_lines(results, names, "per_rank")), "per rank"),
            Panel(
                _tp(tps),
                _size("KiB per token in the cluster"),
                (*_break_even(results), *_lines(results, names, "cluster")),
                "in the cluster",
            ),
        ),
    )


def _named(inputs: dict[str, Any]) -> str:
    names = [inputs["model"], *inputs["vs"]]
    if len(names) <= MOST_IN_TITLE:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} other models"


def _base(names: Sequence[str]) -> str:
    """What the factors beside the bars are of."""
    return "the latent" if any(name.endswith(", latent") for name in names[:2]) else "the first"


def _tp(tps: tuple[float, ...]) -> Axis:
    return Axis("tensor-parallel ranks", "log", kind="integer", ticks=tps)


def _size(label: str) -> Axis:
    return Axis(label, "log", unit=KIB)


def _bars(results: dict[str, Any], names: Sequence[str], tp: int) -> Iterator[Mark]:
    looks = {name: look for look, alike in _looked(results, names) for name in alike}
    for name in names:
        rows = Rows("by_tp", (("tp", tp), ("name", name)))
        shown = (Shown("per token", "bytes_per_token", "bytes"), Shown("times the first", "ratio", "factor"))
        filled = replace(looks[name], hollow=False)
        yield Bars(
            rows, "name", "bytes_per_token", "binary", look=filled, shown=shown, ratio="ratio" if len(names) > 1 else ""
        )


def _lines(results: dict[str, Any], names: Sequence[str], where: str) -> Iterator[Mark]:
    """One line for those that are alike at every TP: the first drawn would not be seen."""
    key = f"{where}_bytes_per_token"
    for look, alike in _looked(results, names):
        shown = (Shown("TP", "tp", "integer"), Shown("per token", key, "bytes"))
        yield Line(Rows("by_tp", (("name", alike[0]),)), "tp", key, " = ".join(alike), look, shown=shown)


def _looked(results: dict[str, Any], names: Sequence[str]) -> list[tuple[Look, list[str]]]:
    """The looks, each with the names of what has the same bytes at every TP, on a rank and in the cluster."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        found = [record for record in results["by_tp"] if record["name"] == name]
        figures = [record[key] for record in found for key in ("per_rank_bytes_per_token", "cluster_bytes_per_token")]
        groups.setdefault(tuple(figures), []).append(name)
    return [(_look(*divmod(index, len(LOOKS))), alike) for index, alike in enumerate(groups.values())]


def _look(again: int, at: int) -> Look:
    """The look at a place; when the looks begin again, with the next marker and dash, so that no two are alike."""
    look = LOOKS[at]
    if not again:
        return look
    marker = MARKERS[(MARKERS.index(look.marker) + again) % len(MARKERS)]
    return replace(look, marker=marker, dash=DASHES[(DASHES.index(look.dash) + again) % len(DASHES)])


def _break_even(results: dict[str, Any]) -> Iterator[Mark]:
    """Where the copies of the latent weigh what each of ``vs`` does that has such a TP; those alike once."""
    first = {beside["break_even_tp"]: index for index, beside in reversed(list(enumerate(results["vs"])))}
    places = sorted(index for tp, index in first.items() if tp is not None)
    text = "TP {}" if len(places) <= MOST_NAMED else ""
    for index in places:
        yield Rule(f"vs[{index}].break_even_tp", "x", text, label="break-even TP" if index == places[0] else "")


def _caption(report: Report, names: Sequence[str]) -> str:
    inputs = report.inputs
    parts = [report.title.replace("   ", ": ", 1)]
    if inputs["mtp_layers"]:
        parts.append(f"{fmt.counted(inputs['mtp_layers'], 'MTP layer')} included")
    expanded = any(name.endswith(", expanded") for name in names[:2])
    parts.append("all layers" + ("; expanded: keys and values of every head, in bf16" if expanded else ""))
    return "  ·  ".join(parts)
