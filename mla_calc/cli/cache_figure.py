"""What ``cache --by-tp`` adds, and the figure of it: bytes per token of every model, per rank and in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..costs.cache_by_tp import TokenAtTp
from ..errors import InputError
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
MOST_BARS = 24
"""Caches whose bars and names have room below each other on a slide."""
MOST_TOLD = 3
"""Models that a caption names for one reason."""
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
    """Bytes per token of each model and form; per rank against TP; in the cluster, with the break-even TP.

    Raises:
        InputError: more bars than have room below each other.
    """
    assert isinstance(report.results, dict)
    results, inputs = report.results, report.inputs
    names = list(dict.fromkeys(record["name"] for record in results["by_tp"]))
    if len(names) > MOST_BARS:
        raise InputError(
            f"a figure of {len(names)} caches: one has room for {MOST_BARS} at most",
            "name fewer models in --vs; tables and --format json list any number",
        )
    tps = tuple(float(tp) for tp in inputs["by_tp"])
    return Chart(
        title=f"Cache bytes per token: {_named(inputs)}",
        caption=_caption(report),
        panels=(
            Panel(
                Axis("KiB per token", unit=KIB),
                Axis("", "category", kind="text"),
                tuple(_bars(results, names, inputs["by_tp"][0])),
                "one copy" if len(names) == 1 else f"one copy; times {_base(results)}",
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


def _base(results: dict[str, Any]) -> str:
    """What the factors beside the bars are of."""
    if results["latent_bytes_per_token"] is None:
        return "the first"
    return "latent and keys" if results["indexer_layers"] else "the latent"


def _tp(tps: tuple[float, ...]) -> Axis:
    return Axis("tensor-parallel ranks", "log", kind="integer", ticks=tps)


def _size(label: str) -> Axis:
    return Axis(label, "log", unit=KIB)


def _bars(results: dict[str, Any], names: Sequence[str], tp: int) -> Iterator[Mark]:
    looks = {name: look for look, alike in _looked(results, names) for name in alike}
    for name in names:
        rows = Rows("by_tp", (("tp", tp), ("name", name)))
        ratios = (Shown(f"times {_base(results)}", "ratio", "factor"),) if len(names) > 1 else ()
        shown = (Shown("per token", "bytes_per_token", "bytes"), *ratios)
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


def _caption(report: Report) -> str:
    """What is counted, and of which model what is priced otherwise: dtypes, layers, padding."""
    assert isinstance(report.results, dict)
    inputs, results = report.inputs, report.results
    models = [{"model": inputs["model"]} | results, *results["vs"]]
    parts = [report.title.replace("   ", ": ", 1), *layouts_beside(results)]
    if inputs["mtp_layers"]:
        whose = f" of {inputs['model']}" if results["vs"] else ""
        parts.append(f"{fmt.counted(inputs['mtp_layers'], 'MTP layer')}{whose} included")
    parts += _each([f"{one['model']} with indexer keys" for one in results["vs"] if one["indexer_layers"]],
                   "{} of the others with indexer keys")  # fmt: skip
    parts += _layers(models)
    if results["expanded_bytes_per_token"] is not None:
        parts.append(_expanded(results))
    return "  ·  ".join(parts)


def _each(texts: list[str], many: str) -> list[str]:
    """A part of the caption for each, since lines break between parts alone; of more than a few their number."""
    return texts if len(texts) <= MOST_TOLD else [many.format(len(texts))]


def layouts_beside(results: dict[str, Any]) -> Iterator[str]:
    """What a caption says of the models beside that are priced in another layout than the model."""
    others: dict[str, list[str]] = {}
    for beside in results["vs"]:
        if beside["layout"] != results["layout"]:
            others.setdefault(beside["layout"], []).append(beside["model"])
    for layout, names in others.items():
        yield from _each([f"{name} in {layout}" for name in names], f"{{}} of the others in {layout}")


def _layers(models: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Whether all layers are drawn; otherwise those that are not, since what they hold stops growing."""
    windows = [
        f"without {fmt.counted(one['windowed_layers'], 'sliding-window layer')} of {one['model']}"
        f" ({fmt.binary_bytes(one['windowed_bytes_per_token'])} more)"
        for one in models
        if one["windowed_layers"]
    ]
    states = [
        f"without {fmt.counted(one['recurrent_layers'], 'linear-attention layer')} of {one['model']}"
        for one in models
        if one["recurrent_layers"]
    ]
    yield "bytes that grow with the context" if windows or states else "all layers"
    yield from _each(windows, "without the sliding-window layers of {} models")
    yield from _each(states, "without the linear-attention layers of {} models")


def _expanded(results: dict[str, Any]) -> str:
    """The expanded form: where it is what is cached, in the layout and as wide as asked; in bf16 otherwise."""
    text = "expanded: keys and values of every head"
    if results["cache_form"] != "expanded":
        return f"{text}, in bf16"
    width = results["pad_head_dim"]
    return f"{text}, in {results['layout']}" + (f", padded to a width of {width}" if width else "")
