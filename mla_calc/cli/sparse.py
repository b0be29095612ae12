"""What the commands that take ``--sparse`` say of it: notes, and the tables that only they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.attention import Indexer, Model
from ..report import format as fmt
from ..report.record import Cell, Table

if TYPE_CHECKING:
    from ..costs.crossover import SparseFlopCrossover
    from ..costs.intervals import Interval

LEFT_OUT = "The indexer's projections, its queries and scores as bytes, and the selection of the top-k are not counted."
LEAST_ROWS = "Queries may choose different rows: min(context, top-k) rows a request is the least that is read."


def notes(model: Model, indexer: Indexer | None, with_bounds: bool) -> list[str]:
    """What has to be known of how attention is priced; nothing of a model without an indexer."""
    if indexer is None:
        return (
            [f"{model.name} has an indexer; attention is priced dense (--sparse prices DSA)."] if model.indexer else []
        )
    found = [LEFT_OUT, LEAST_ROWS]
    if indexer.layers < model.cached_layers:
        found.append(
            f"A layer is one that indexes; {indexer.layers} of {model.cached_layers} do, the others reuse a choice."
        )
    if with_bounds:
        found.append(
            "The indexer has the peak of --mma-dtype too; engines score in fp8: where compute binds, its bound is too"
            " high."
        )
    return found


def first_context_notes(first_context_bytes: int | None, first_context_flop: int | None) -> list[str]:
    """Why there is no context at which sparse attention takes less."""
    found = []
    if first_context_bytes is None:
        found.append(
            "An indexer key is no smaller than a row: sparse never reads fewer bytes (first_context_bytes: null)."
        )
    if first_context_flop is None:
        found.append(
            "TP divides attention and not the indexer, which costs no less here: sparse never has fewer FLOPs than"
            " dense (first_context_flop: null)."
        )
    return found


def first_context_phrase(in_bytes: int | None, in_flop: int | None) -> str:
    """``from a context of 2,314 on in bytes and of 2,177 in FLOPs``."""

    def where(context: int | None) -> str:
        return "at no context" if context is None else f"from {context:,} keys on"

    return (
        f"One sparse query reads fewer bytes than a dense one {where(in_bytes)}, and has fewer FLOPs {where(in_flop)}"
    )


def stretches(intervals: tuple[Interval, ...]) -> str:
    """``absorbed to 7, naive to 38, absorbed to 70, naive on``."""
    return ", ".join(
        f"{item.path} on" if item.to_queries is None else f"{item.path} to {item.to_queries:,}" for item in intervals
    )


def flop_table(flop: SparseFlopCrossover) -> Table:
    """The crossovers by FLOPs, which hang on TP."""
    rows: list[tuple[str | Cell, ...]] = []
    for index, point in enumerate(flop.by_context):
        at = f"flop.by_context[{index}]."
        rows.append(
            (
                *(Cell(at + axis) for axis in ("context", "tp")),
                Cell(at + "queries_rectangular", "number"),
                Cell(at + "first_queries_naive_wins_rectangular"),
                Cell(at + "first_queries_naive_wins_causal"),
                stretches(point.causal_intervals),
            )
        )
    headers = ("context", "TP", "equal at", "naive from", "causal: from", "causal: which path wins")
    return Table(headers, tuple(rows), "By FLOPs, in queries (rectangular: context S; causal: prefix P)")


def flop_sentence(flop: SparseFlopCrossover) -> str:
    """The FLOP crossover at the first context and TP."""
    first = flop.by_context[0]
    found = first.first_queries_naive_wins_rectangular
    wins = "nowhere" if found is None else f"first at {found:,} {'query' if found == 1 else 'queries'}"
    return (
        f"By FLOPs at context {first.context:,}, TP {first.tp}, naive wins {wins}; as the context grows it wins"
        " nowhere, since absorbed attention stops at the top-k"
    )


def crossover_notes(model: Model, flop: SparseFlopCrossover, indexer: Indexer, with_bounds: bool) -> list[str]:
    """The notes of ``crossover --sparse``."""
    differs = flop.first_context_absorbed_wins_at_one_query is None
    one_query = ["first_context_absorbed_wins_at_one_query is null: it differs among these TPs."] if differs else []
    return [
        *one_query,
        "No finite limit: queries_limit and first_queries_naive_wins are null.",
        f"Up to {indexer.topk:,} keys the naive path does not score and the indexer hangs on TP; above, both score"
        " and it cancels.",
        "Causal FLOPs jump where the naive path begins to score: whole numbers of queries are given, no root.",
        *notes(model, indexer, with_bounds),
    ]


def intensity_sentence(limit: float) -> str:
    """What sparse intensities tend to."""
    return f". As the context grows it tends to {fmt.number(limit)} at every TP, the indexer's own"
