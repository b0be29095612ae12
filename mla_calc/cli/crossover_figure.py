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
from ..report.chart_data import drawn, edges, matches, number_at, value
from ..report.record import Report, plain
from .crossover_tables import map_tables
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
FLOP, BOUND = Look("ink", "square", hollow=True), Look("ink", "cross", "dashed")  # seen on each other
ESTIMATE, MEASURED = Look("green", "triangle", "dashed"), Look("pink", "diamond")
QUERIES = Axis("new tokens per request Q", "log", kind="integer")
THRESHOLD = Look("ink", dash="dotted")
NAIVE_FROM = "naive from, "
"""What the first line's label begins with; those of the others go on from it."""


def check_map(axes: Axes) -> None:
    """Refuse a map of more cells than one answer lists, before any is computed."""
    from ..costs.crossover_map import map_size  # only where it is asked for: start-up counts

    check_records(map_size(axes.context, axes.tp, axes.batch))


def add_map(
    report: Report,
    axes: Axes,
    model: Model,
    layout: Layout,
    ceilings: Ceilings | None,
    weight_bytes: Width,
    indexer: Indexer | None,
) -> Report:
    """The report with ``map`` and ``map_boundary`` in its results, the map as tables, and its cells as the CSV."""
    from ..costs.crossover_map import crossover_map, map_boundary  # only where it is asked for: start-up counts
    from ..costs.grid import Setting

    assert isinstance(report.results, dict)
    setting = Setting(model=model, layout=layout, ceilings=ceilings, weight_bytes=weight_bytes, indexer=indexer)
    where = (axes.context, axes.tp, axes.batch)
    grid = plain(crossover_map(setting, *where))
    results = report.results | {"map": grid, "map_boundary": plain(map_boundary(setting, *where))}
    tables = (*report.tables, *map_tables(grid, "bound" if ceilings else "FLOPs"))
    return replace(report, results=results, tables=tables, csv_rows=tuple(grid))


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
    panels = tuple(_panel(report, point, points) for point in points)
    return Chart(
        title=f"Which path takes less by {what}: absorbed or naive",
        caption=_caption(report, points, [mark for panel in panels for mark in panel.marks if isinstance(mark, Line)]),
        panels=panels,
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
        replace(QUERIES, ticks=tuple(map(float, queries))),
        (
            _cells(report, tp, batch),
            *_named(_thresholds(results, tp), None if point == points[-1] else _thresholds(results, points[-1][0])),
            *(line for line in _lines(report, tp, batch) if _seen(results, line)),
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


def _lines(report: Report, tp: int, batch: int) -> list[Line]:
    """Every boundary that is known somewhere; on the map those of which a point lies there."""
    assert isinstance(report.results, dict)
    results = report.results
    lines = (*_predicted(report, tp, batch), *_estimated(results, tp, batch), *_measured(results, tp, batch))
    return [line for line in lines if drawn(results, line)]


def _seen(results: dict[str, Any], line: Line) -> bool:
    """Whether a point of the line lies on the map; none is below it."""
    return any(value(record, line.y) <= _top(results) for record in drawn(results, line))


def _predicted(report: Report, tp: int, batch: int) -> Iterator[Line]:
    """By FLOPs and by bound, as plain lines; a point that is alone has a marker, or nothing would be drawn."""
    assert isinstance(report.results, dict)
    rows = Rows("map_boundary", _at(tp, batch))
    kinds = [("flop_queries", "by FLOPs", FLOP)]
    if report.inputs["gpu"]:
        kinds.append(("bound_queries", "by bound", BOUND))
    named = False
    for key, label, look in kinds:
        line = Line(rows, "context", key, label, look, shown=(Shown("naive from", key, "integer"),))
        line = replace(line, markers=len(drawn(report.results, line)) == 1)
        if not named and drawn(report.results, line) and _seen(report.results, line):
            line, named = replace(line, label=f"{NAIVE_FROM}{label}"), True
        yield line


def _estimated(results: dict[str, Any], tp: int, batch: int) -> Iterator[Line]:
    """Where by estimate the naive path wins first."""
    if results["estimated"]:
        only = _at(tp, batch, ("naive_kernel", AS_ENGINES_RUN))
        key = "first_queries_naive_wins"
        shown = (Shown("naive from", key, "integer"), Shown("for good", "naive_wins_to_end_from", "integer"))
        yield Line(Rows("estimated.by_context", only), "context", key, "by estimate", ESTIMATE, shown=shown)


def _measured(results: dict[str, Any], tp: int, batch: int) -> Iterator[Line]:
    """Where both paths took the same time first, with bars between the same by the 10th and 90th percentiles."""
    if not results["measured"]:
        return
    rows = Rows("measured", _at(tp, batch, ("naive", AS_ENGINES_RUN)))
    shown = tuple(Shown(label, key, "number") for label, key in
                  (("equal at", "queries"), ("p10", "low"), ("p90", "high")))  # fmt: skip
    yield Line(rows, "context", "queries", "measured", MEASURED, shown=shown, spread=("low", "high"))


def _named(rules: list[Rule], last: list[Rule] | None) -> list[Rule]:
    """The rules as they are, or without their texts where the last panel has the same."""
    return [replace(rule, text="") for rule in rules] if rules == last else rules


def _thresholds(results: dict[str, Any], tp: int) -> list[Rule]:
    """A level line for every value of the engines' thresholds in queries at this TP, with the backends that have it."""
    heads = next(record["heads"] for record in results["map_boundary"] if record["tp"] == tp)
    found: dict[int, list[int]] = {}
    for index, item in enumerate(results["engines"]):
        if item["counts"] == "queries" and item["heads_per_rank"] in (None, heads):
            found.setdefault(item["threshold"], []).append(index)
    releases = _releases(results)
    label = _absorb_up_to(releases)
    rules: list[Rule] = []
    for here, places in found.items():
        names = _backends([results["engines"][place] for place in places], releases)
        shown = here <= _top(results) and not any(rule.label for rule in rules)
        path = f"engines[{places[0]}].threshold"
        rules.append(Rule(path, "y", f"{{}}: {names}", "integer", label if shown else "", THRESHOLD))
    return rules


def _releases(results: dict[str, Any]) -> list[str]:
    """The engine releases that have thresholds in queries."""
    return list(dict.fromkeys(item["engine"] for item in results["engines"] if item["counts"] == "queries"))


def _absorb_up_to(releases: list[str]) -> str:
    """``vLLM 0.33.0 absorbs up to``."""
    return f"{', '.join(releases)} absorb{'s' if len(releases) == 1 else ''} up to"


def _backends(items: list[dict[str, Any]], releases: list[str]) -> str:
    """The backends that share a threshold in a few words; with their releases where not all have it so."""
    having: dict[str, dict[str, None]] = {}
    for item in items:
        majors = item["compute_capability_major"]
        name = f"{item['backend']} {'/'.join(map(str, majors))}.x" if majors else item["backend"]
        having.setdefault(name, {})[item["engine"]] = None
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, those in having.items():
        alike.setdefault(tuple(those), []).append(name)
    texts = []
    for engines, (first, *others) in alike.items():
        more = f" and {len(others)} more" if others else ""
        where = "" if len(engines) == len(releases) else f" ({', '.join(engines)})"
        texts.append(f"{first}{more}{where}")
    return "; ".join(texts)


def _unseen(report: Report, tp: int, batch: int) -> Iterator[str]:
    """What the map does not show of the boundary that its colours change at: above it, or nowhere."""
    assert isinstance(report.results, dict)
    key = "bound_queries" if report.inputs["gpu"] else "flop_queries"
    rows = [record for record in report.results["map_boundary"] if matches(record, _at(tp, batch))]
    found = [(record["context"], record[key]) for record in sorted(rows, key=lambda record: record["context"])]
    top = _top(report.results)
    above = [(context, queries) for context, queries in found if queries is not None and queries > top]
    if above:
        yield f"above the map: naive takes less from {_listed(above)}"
    for line in _lines(report, tp, batch):
        if line.y != key and not _seen(report.results, line):
            places = [(record["context"], record[line.y]) for record in drawn(report.results, line)]
            yield f"above the map: {line.label}, naive from {_listed(places)}"
    never = [context for context, queries in found if queries is None]
    if never:
        yield f"absorbed takes less at every Q up to S{_where(never, [context for context, _ in found])}"
    beyond = [rule for rule in _thresholds(report.results, tp) if (number_at(report.results, rule.path) or 0) > top]
    if beyond:
        named = ", ".join(rule.text.replace("{}", f"{number_at(report.results, rule.path):,}") for rule in beyond)
        yield f"above the map: {_absorb_up_to(_releases(report.results))} {named}"


def _listed(places: list[tuple[int, float]]) -> str:
    """Places of a boundary, each with its context; of many the first and the last."""
    few = places if len(places) <= MOST_ABOVE else [places[0], places[-1]]
    return (", " if few == places else " to ").join(f"Q {fmt.number(q)} at S {context:,}" for context, q in few)


def _top(results: dict[str, Any]) -> float:
    """Where the map ends: the upper edge of its highest cells."""
    return edges((record["queries"] for record in results["map"]), QUERIES)[-1]


def _where(some: list[int], contexts: list[int]) -> str:
    """Which contexts, in as few words: of rising ``contexts`` all, the last, the first, or those named."""
    if some == contexts:
        return ""
    if some == contexts[-len(some) :]:
        return f", for S from {some[0]:,} on"
    if some == contexts[: len(some)]:
        return f", for S up to {some[-1]:,}"
    return f", for S {', '.join(f'{context:,}' for context in some)}"


def _caption(report: Report, points: list[tuple[int, int]], lines: list[Line]) -> str:
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
    looks = [line.look for line in lines]
    ours = [word for word, look in (("measured", MEASURED), ("estimated", ESTIMATE)) if look in looks]
    if ours:
        parts.append(f"{' and '.join(ours)}: first crossing, naive as an engine runs it")
    if any(_has_bars(report.results, line) for line in lines):
        parts.append("bars: p10 to p90")
    for point in points:
        parts += [f"TP {point[0]}, {fmt.counted(point[1], 'request')}: {text}" if len(points) > 1 else text
                  for text in _unseen(report, *point)]  # fmt: skip
    parts += [f"{item['engine']} expands from {item['threshold']:,} prefix tokens on"
              for item in report.results["engines"] if item["counts"] == "prefix"]  # fmt: skip
    return "  ·  ".join(parts)


def _has_bars(results: dict[str, Any], line: Line) -> bool:
    """Whether a point of the line has both ends of its spread."""
    ends = line.spread or ()
    return any(ends and None not in [value(record, end) for end in ends] for record in drawn(results, line))
