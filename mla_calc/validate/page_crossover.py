"""The report's section on the crossover: what was found, in numbers of the records, and every place in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..costs.measured_crossover import again_text
from ..report import format as fmt
from .compare import Comparison
from .crossing import Crossing
from .engine_lines import EngineLines
from .figures import cache_label
from .page_markdown import table

INTRODUCTION = (
    "Queries per request from which the naive path first is faster; the context is fixed and counts them. The spread"
    " puts the 10th percentile of one path against the 90th of the other. Predictions are by FLOPs alone and by the"
    " datasheet bounds."
)


def crossover_section(comparison: Comparison, engines: EngineLines) -> list[str]:
    """Blocks of Markdown; none without a shape that both paths were timed at."""
    ordered = sorted(comparison.crossover, key=lambda c: (c.naive, c.dtype, c.cache, c.batch, c.heads, c.context))
    if not ordered:
        return []
    blocks = [INTRODUCTION, _findings(ordered, engines), _ranges(ordered)]
    if engines.texts:
        blocks += ["What the engines use:", "\n".join(f"- {text}" for text in engines.texts)]
    blocks += ["Every place:", _places(ordered)]
    reasons: dict[str, list[str]] = {}
    for item in ordered:
        if item.reason:
            reasons.setdefault(item.reason, []).append(_place(item))
    if reasons:
        blocks.append("\n".join(f"- {reason} ({'; '.join(places)})" for reason, places in reasons.items()))
    return blocks


def _findings(ordered: Sequence[Crossing], engines: EngineLines) -> str:
    """What was found over all places, plainly: numbers of the records beside those of the predictions."""
    met = [item.measured_queries for item in ordered if item.measured_queries is not None]
    if not met:
        return f"The paths did not meet within the measured queries, at none of {fmt.counted(len(ordered), 'place')}."
    sentences = [
        f"The measured crossover lies at {_span(met)} queries over {fmt.counted(len(ordered), 'place')} (naive path,"
        f" heads, context). By FLOPs it is predicted at {_span(item.flop_queries for item in ordered)}, by the"
        f" datasheet bounds of {ordered[0].gpu} at {_span(item.time_queries for item in ordered)}."
    ]
    if len(met) < len(ordered):
        sentences.append(f"At {len(ordered) - len(met):,} of the places the paths did not meet.")
    over = [
        *_above("the prediction by FLOPs", [(item.measured_queries, item.flop_queries) for item in ordered]),
        *_above("the prediction by time", [(item.measured_queries, item.time_queries) for item in ordered]),
    ]
    for queries, names in sorted(engines.labels.items()):
        label = f"the {queries:,} of {names.replace(chr(10), ' ')}"
        over += _above(label, [(item.measured_queries, queries) for item in ordered])
    sentences.append(f"It is above {'; above '.join(over)}.")
    again = [
        f"{_place(item)} {again_text(item.crossed_again, item.last_queries)}" for item in ordered if item.crossed_again
    ]
    if again:
        sentences.append(
            f"At {fmt.counted(len(again), 'place')} the absorbed path was faster again at a larger Q that was measured:"
            f" {'; '.join(again)}."
        )
    return " ".join(sentences)


def _above(label: str, pairs: Iterable[tuple[float | None, int | None]]) -> list[str]:
    known = [(found, told) for found, told in pairs if found is not None and told is not None]
    if not known:
        return []
    return [f"{label} at {sum(found > told for found, told in known):,} of {len(known):,}"]


def _ranges(ordered: Sequence[Crossing]) -> str:
    """Least and most over the contexts, per naive path and heads."""
    groups: dict[tuple[str, str, int, int], list[Crossing]] = {}
    for item in ordered:
        groups.setdefault((item.naive, _kind(item), item.heads, item.batch), []).append(item)
    rows = [
        (
            naive, kind, str(heads), str(batch), _span(item.context for item in mine),
            _span(item.measured_queries for item in mine), _span(item.flop_queries for item in mine),
            _span(item.time_queries for item in mine),
        )
        for (naive, kind, heads, batch), mine in groups.items()
    ]  # fmt: skip
    headers = ("naive path", "products, cache", "heads", "batch", "contexts", "measured", "by FLOPs", "by time")
    return table(headers, rows, left=2)


def _places(ordered: Sequence[Crossing]) -> str:
    rows = [
        (
            item.naive, _kind(item), str(item.heads), str(item.batch), f"{item.context:,}",
            _queries(item.measured_queries), f"{_queries(item.low)} to {_queries(item.high)}",
            _queries(item.flop_queries), _queries(item.time_queries),
        )
        for item in ordered
    ]  # fmt: skip
    place = ("naive path", "products, cache", "heads", "batch", "context")
    return table((*place, "measured", "spread", "by FLOPs", "by time"), rows, left=2)


def _kind(item: Crossing) -> str:
    return f"{item.dtype}, {cache_label(item.cache)}"


def _place(item: Crossing) -> str:
    return f"{item.naive} h={item.heads} b={item.batch} S={item.context:,}"


def _span(values: Iterable[float | None]) -> str:
    """Least and most of those that are known."""
    known = [_queries(value) for value in sorted(value for value in values if value is not None)]
    if not known:
        return fmt.NOTHING
    return known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"


def _queries(value: float | None) -> str:
    return fmt.NOTHING if value is None else f"{value:,.0f}"
