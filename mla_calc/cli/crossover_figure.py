"""What ``crossover --map`` adds, and the figure of it: which path takes less over queries and context, and by how much.

Pairs are causal and S is held fixed, as in the measured crossovers and those by estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..report import format as fmt
from ..report.chart import Axis, Cells, Chart, Line, Look, Mark, Panel, Rows, Rule, Shown
from ..report.chart_data import matches, number_at
from ..report.record import Report, plain
from .request import Axes, check_records

if TYPE_CHECKING:
    from ..arrays import Width
    from ..costs.layouts import Layout
    from ..hardware.roofline import Ceilings
    from ..models.attention import Indexer, Model

NEEDS: dict[str, Any] = {"with_map": True}
"""Options of `crossover` that add what the figure draws."""
MAP_CONTEXTS = "1k:128k:x2"
"""Contexts of a map, unless others are asked for."""
MOST_PANELS = 3
MOST_ABOVE = 3
"""Contexts that a caption names each."""
AS_ENGINES_RUN = "naive"
"""The naive path as engines run it: of those that were measured or calibrated, the one that is drawn."""
FLOP, BOUND = Look("ink"), Look("ink", dash="dashed")
ESTIMATE, MEASURED = Look("green", "triangle", "dashed"), Look("pink", "diamond")
THRESHOLD = Look("ink", dash="dotted")


def add_map(
    report: Report,
    axes: Axes,
    model: Model,
    layout: Layout,
    ceilings: Ceilings | None,
    weight_bytes: Width,
    indexer: Indexer | None,
) -> Report:
    """The report with ``map`` and ``map_boundary`` in its results, and the map's cells as the rows of its CSV."""
    from ..costs.crossover_map import crossover_map, map_boundary  # only where it is asked for: start-up counts
    from ..costs.grid import Setting

    assert isinstance(report.results, dict)
    setting = Setting(model=model, layout=layout, ceilings=ceilings, weight_bytes=weight_bytes, indexer=indexer)
    where = (axes.context, axes.tp, axes.batch)
    cells = crossover_map(setting, *where)
    check_records(len(cells))
    grid = plain(cells)
    results = report.results | {"map": grid, "map_boundary": plain(map_boundary(setting, *where))}
    return replace(report, results=results, csv_rows=tuple(grid))


def chart(report: Report) -> Chart:
    """A panel for every TP and batch.

    Raises:
        InputError: more of them than a figure has room for.
    """
    assert isinstance(report.results, dict)
    inputs = report.inputs
    points = [(tp, batch) for tp in inputs["tp"] for batch in inputs["batch"]]
    if len(points) > MOST_PANELS:
        raise InputError(
            f"a figure has room for {MOST_PANELS} maps; {len(points)} pairs of --tp and --batch are asked for"
        )
    what = f"bound on {inputs['gpu']}" if inputs["gpu"] else "FLOPs"
    return Chart(
        title=f"Which path takes less by {what}: absorbed or naive",
        caption=_caption(report, points),
        panels=tuple(_panel(report, point, points) for point in points),
        shared=len(points) > 1,
    )


def _panel(report: Report, point: tuple[int, int], points: list[tuple[int, int]]) -> Panel:
    assert isinstance(report.results, dict)
    results, (tp, batch) = report.results, point
    contexts = sorted({record["context"] for record in results["map"]})
    queries = sorted({record["queries"] for record in results["map"]})
    title = f"TP {tp}, {fmt.counted(batch, 'request')}" if len(points) > 1 else ""
    return Panel(
        Axis("context S, tokens", "log", kind="integer", ticks=tuple(map(float, contexts))),
        Axis("new tokens per request, Q", "log", kind="integer", ticks=tuple(map(float, queries))),
        (
            _cells(report, tp, batch),
            *_named(_thresholds(results, tp), None if point == points[-1] else _thresholds(results, points[-1][0])),
            *_predicted(report, tp, batch),
            *_estimated(results, tp, batch),
            *_measured(results, tp, batch),
        ),
        title,
    )


def _at(tp: int, batch: int, *more: tuple[str, Any]) -> tuple[tuple[str, Any], ...]:
    return (("tp", tp), ("batch", batch), *more)


def _cells(report: Report, tp: int, batch: int) -> Mark:
    kind, figure = ("seconds", "bound_s") if report.inputs["gpu"] else ("flop", "flop")
    return Cells(
        Rows("map", _at(tp, batch)),
        "context",
        "queries",
        "naive_over_absorbed",
        below="naive takes less (factor)",
        above="absorbed takes less (factor)",
        text="by",
        kind="short_factor",
        shown=(
            Shown("naive over absorbed", "naive_over_absorbed", "factor"),
            *(Shown(path, f"{path}_{figure}", kind) for path in ("absorbed", "naive")),
        ),
    )


def _predicted(report: Report, tp: int, batch: int) -> Iterator[Mark]:
    rows = Rows("map_boundary", _at(tp, batch))
    kinds = [("flop_queries", "naive from, by FLOPs", FLOP)]
    if report.inputs["gpu"]:
        kinds.append(("bound_queries", "by bound", BOUND))
    for key, label, look in kinds:
        yield Line(rows, "context", key, label, look, markers=False, shown=(Shown("naive from", key, "integer"),))


def _estimated(results: dict[str, Any], tp: int, batch: int) -> Iterator[Mark]:
    """Where by estimate the naive path wins first."""
    only = _at(tp, batch, ("naive_kernel", AS_ENGINES_RUN))
    known = results["estimated"]["by_context"] if results["estimated"] else []
    key = "first_queries_naive_wins"
    if any(matches(record, only) and record[key] is not None for record in known):
        shown = (Shown("naive from", key, "integer"), Shown("for good", "naive_wins_to_end_from", "integer"))
        yield Line(Rows("estimated.by_context", only), "context", key, "by estimate", ESTIMATE, shown=shown)


def _measured(results: dict[str, Any], tp: int, batch: int) -> Iterator[Mark]:
    """Where both paths took the same time first, with bars between the same by the 10th and 90th percentiles."""
    only = _at(tp, batch, ("naive", AS_ENGINES_RUN))
    if not any(matches(record, only) for record in results["measured"] or ()):
        return
    rows = Rows("measured", only)
    shown = tuple(Shown(label, key, "number") for label, key in
                  (("equal at", "queries"), ("p10", "low"), ("p90", "high")))  # fmt: skip
    yield Line(rows, "context", "queries", "measured", MEASURED, shown=shown, spread=("low", "high"))


def _named(rules: list[Rule], last: list[Rule] | None) -> list[Rule]:
    """The rules as they are, or without their texts where the last panel has the same."""
    return [replace(rule, text="") for rule in rules] if rules == last else rules


def _thresholds(results: dict[str, Any], tp: int) -> list[Rule]:
    """A level line for every value of the engines' thresholds in queries at this TP, with the backends that have it."""
    heads = next(record["heads"] for record in results["map_boundary"] if record["tp"] == tp)
    backends: dict[int, dict[str, int]] = {}
    for index, item in enumerate(results["engines"]):
        if item["counts"] == "queries" and item["heads_per_rank"] in (None, heads):
            backends.setdefault(item["threshold"], {}).setdefault(item["backend"], index)
    found: list[Rule] = []
    top, labelled = _top(results), False
    for here, named in backends.items():
        first, *others = named
        more = f" and {len(others)} more" if others else ""
        label = "engine absorbs up to" if here <= top and not labelled else ""
        labelled = labelled or bool(label)
        rule = Rule(f"engines[{named[first]}].threshold", "y", f"{{}}: {first}{more}", "integer", label, THRESHOLD)
        found.append(rule)
    return found


def _unseen(report: Report, tp: int, batch: int) -> Iterator[str]:
    """What the map does not show of the boundary that its colours change at: above it, or nowhere."""
    assert isinstance(report.results, dict)
    key = "bound_queries" if report.inputs["gpu"] else "flop_queries"
    rows = [record for record in report.results["map_boundary"] if matches(record, _at(tp, batch))]
    found = [(record["context"], record[key]) for record in sorted(rows, key=lambda record: record["context"])]
    top = _top(report.results)
    above = [(context, queries) for context, queries in found if queries is not None and queries > top]
    if above:
        places = above if len(above) <= MOST_ABOVE else [above[0], above[-1]]
        listed = (", " if places == above else " to ").join(f"Q {q:,} at S {context:,}" for context, q in places)
        yield f"above the map: naive takes less from {listed}"
    never = [context for context, queries in found if queries is None]
    if never:
        yield f"absorbed takes less at every Q up to S{_where(never, [context for context, _ in found])}"
    beyond = [rule for rule in _thresholds(report.results, tp) if (number_at(report.results, rule.path) or 0) > top]
    if beyond:
        named = ", ".join(rule.text.replace("{}", f"{number_at(report.results, rule.path):,}") for rule in beyond)
        yield f"above the map: engine absorbs up to {named}"


def _top(results: dict[str, Any]) -> int:
    """The most queries of the map."""
    return int(max(record["queries"] for record in results["map"]))


def _where(some: list[int], contexts: list[int]) -> str:
    """Which contexts, in as few words: of rising ``contexts`` all, the last, the first, or those named."""
    if some == contexts:
        return ""
    if some == contexts[-len(some) :]:
        return f", for S from {some[0]:,} on"
    if some == contexts[: len(some)]:
        return f", for S up to {some[-1]:,}"
    return f", for S {', '.join(f'{context:,}' for context in some)}"


def _caption(report: Report, points: list[tuple[int, int]]) -> str:
    inputs = report.inputs
    assert isinstance(report.results, dict)
    parts = [report.title.replace("   ", ": ", 1)]
    if report.subtitle:
        parts.append("dense peak: " + report.subtitle.split(": ", 1)[1].replace(" dense ", " ", 1))
    if len(points) == 1:
        tp, batch = points[0]
        parts.append(f"TP {tp}, {fmt.counted(batch, 'request')}")
    parts.append("sparse attention" if inputs["sparse"] else "dense attention")
    parts.append("causal pairs, S fixed")
    if report.results["measured"] or report.results["estimated"]:
        parts.append("measured and estimated: naive as an engine runs it")
    if report.results["measured"]:
        parts.append("bars: p10 to p90")
    for point in points:
        parts += [f"TP {point[0]}, {fmt.counted(point[1], 'request')}: {text}" if len(points) > 1 else text
                  for text in _unseen(report, *point)]  # fmt: skip
    parts += [f"{item['engine']} expands from {item['threshold']:,} prefix tokens on"
              for item in report.results["engines"] if item["counts"] == "prefix"]  # fmt: skip
    return "  ·  ".join(parts)
