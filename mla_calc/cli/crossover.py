"""``mla-calc crossover``: from how many queries the naive path is cheaper, by FLOPs and by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..costs.crossover import (
    FlopCrossover,
    SparseFlopCrossover,
    TimeCrossover,
    flop_crossover,
    sparse_flop_crossover,
    time_crossover,
)
from ..costs.estimated_crossover import EstimatedCrossover, estimated_crossover
from ..costs.layouts import Layout, latent_row_bytes, load_layout
from ..costs.measured_crossover import MeasuredAtContext, measured_crossover
from ..costs.paths import Work
from ..costs.sharding import check_tp
from ..costs.sparse import indexer_of
from ..engines.load import load_engine
from ..engines.thresholds import NEWEST, EngineThreshold, distinct_thresholds
from ..hardware.gpu import GPU
from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Indexer, Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Explanation, Report, plain
from . import complete, estimates, options, request
from . import sparse as dsa
from .command import add_command
from .crossover_figure import MAP_CONTEXTS, NEEDS, add_map, chart, check_map
from .crossover_measured import csv_measured, measured_notes, measured_text
from .crossover_tables import tables_of

if TYPE_CHECKING:
    from ..engines.preset import Engine

app = options.command_app()

Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        help="Engine releases whose thresholds stand beside: vllm@0.29, ...",
        autocompletion=complete.engines,
    ),
]
ContextAxis = Annotated[
    str | None,
    typer.Option(
        "--context",
        "-s",
        help="Keys attended, the new ones included; k is 1024.",
        show_default=f"4096; {MAP_CONTEXTS} with --map",
    ),
]
_AXES = ("context", "tp", "batch")


def answer(
    model: options.Model,
    *,
    gpu: options.Gpu = None,
    tp: options.Tp = "1",
    batch: options.Batch = "1",
    context: ContextAxis = None,
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    weight_bytes: options.WeightBytes = "2",
    sparse: options.Sparse = False,
    engine: Engines = None,
    with_map: Annotated[
        bool, typer.Option("--map", help="Add both paths over queries and context: what a figure draws.")
    ] = False,
    explain: options.Explain = False,
) -> Report:
    """Where the naive path overtakes the absorbed one, beside the engines' own thresholds.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    mla, indexer = request.mla_of(loaded, "crossover"), indexer_of(loaded, sparse)
    card, ceilings = request.ceilings_of(gpu, mma_dtype)
    if context is None:
        context = MAP_CONTEXTS if with_map else "4096"
    axes = request.axes(tp=tp, batch=batch, context=context)
    axes.points()
    if with_map:
        check_map(axes)
    for ranks in axes.tp:
        check_tp(loaded, ranks)
    flop = sparse_flop_crossover(mla, axes.context, axes.tp, indexer) if indexer else flop_crossover(mla, axes.context)
    work = Work(
        queries=1,
        context=1,
        row_bytes=latent_row_bytes(layout, mla),
        weight_bytes=request.weight_width(weight_bytes),
    )
    time = time_crossover(mla, axes.context, work, axes.tp, axes.batch, ceilings, indexer=indexer) if ceilings else None
    points = [(keys, ranks, requests) for keys in axes.context for ranks in axes.tp for requests in axes.batch]
    estimated = (
        estimated_crossover(card, mla, work, points, dtype=mma_dtype, cache=layout.name)
        if card and card.calibration and not indexer
        else None
    )
    measured, unmeasured = _measured(card, mla, work, points, mma_dtype, layout.name, sparse)
    names = list(request.listed(engine or NEWEST, "--engine"))
    engines = [load_engine(name) for name in names]
    thresholds = _thresholds(engines, loaded, card, [mla.heads // ranks for ranks in axes.tp])
    inputs = {
        "model": loaded.name,
        "gpu": card.name if card else None,
        "dtype": layout.name,
        "mma_dtype": mma_dtype,
        "weight_bytes": request.as_json(request.weight_width(weight_bytes)),
        "tp": list(axes.tp),
        "batch": list(axes.batch),
        "context": list(axes.context),
        "engine": names,
        "sparse": sparse,
    }
    report = _report(loaded, layout, card, flop, time, estimated, measured, thresholds, inputs)
    report = replace(report, notes=(*report.notes, *_without_threshold(engines, thresholds)))
    if card:
        report = replace(report, notes=(*report.notes, *measured_notes(measured, unmeasured)))
    if with_map:
        report = add_map(report, axes, loaded, layout, ceilings, work.weight_bytes, indexer)
    if explain:
        explained = _explanations(loaded, layout, flop, axes, indexer)
        report = replace(report, explanations=(*explained, *_firsts(mla, work, ceilings, indexer, flop, time)))
    return report


crossover = add_command(app, answer, chart, NEEDS)


def _measured(
    gpu: GPU | None,
    mla: MLA,
    work: Work,
    points: list[tuple[int, int, int]],
    dtype: str,
    cache: str,
    sparse: bool,
) -> tuple[tuple[MeasuredAtContext, ...], str | None]:
    """What was measured of the points asked for, and why not of all."""
    if gpu is None:
        return (), None
    if sparse:
        return (), "attention is sparse: dense attention was measured"
    return measured_crossover(gpu, mla, work, points, dtype=dtype, cache=cache)


def _thresholds(
    engines: Sequence[Engine], model: Model, gpu: GPU | None, heads_per_rank: list[int]
) -> tuple[EngineThreshold, ...]:
    return distinct_thresholds(engines, ((heads, gpu, bool(model.indexer)) for heads in heads_per_rank))


def _report(
    model: Model,
    layout: Layout,
    gpu: GPU | None,
    flop: FlopCrossover | SparseFlopCrossover,
    time: TimeCrossover | None,
    estimated: EstimatedCrossover | None,
    measured: tuple[MeasuredAtContext, ...],
    thresholds: tuple[EngineThreshold, ...],
    inputs: dict[str, Any],
) -> Report:
    sources = request.input_sources((model,), (layout,), gpu)
    results = {
        "flop": plain(flop),
        "time": plain(time),
        "estimated": plain(estimated),
        "engines": plain(thresholds),
        "measured": plain(measured) or None,
    }
    return Report(
        command="crossover",
        title=f"{model.name}   {request.geometry(model)}, {layout.name}",
        subtitle=request.gpu_phrase(gpu, inputs["mma_dtype"]) if gpu else "",
        inputs=inputs,
        results=results,
        tables=tuple(tables_of(flop, time, estimated, measured, thresholds)),
        sentence=_sentence(flop, time, measured, gpu),
        notes=(*_notes(model, flop, time, thresholds), *_estimate_notes(gpu, estimated, inputs["sparse"])),
        sources=(*request.source_list(sources), *dict.fromkeys(item.source for item in thresholds)),
        input_sources=sources,
        csv_rows=_csv_rows(results),
    )


def _csv_rows(results: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """One row per context, TP and batch; the FLOP figures, which hang on the context (sparse: and TP), repeat."""
    flop = {"queries_limit": results["flop"]["queries_limit"]}
    by_context = {(row["context"], row.get("tp")): {**flop, **row} for row in results["flop"]["by_context"]}
    if results["time"] is None:
        return tuple({"context": row["context"], "flop": row} for row in by_context.values())
    rows = results["time"]["by_context"]
    at = _AXES
    return tuple(
        {
            **{axis: row[axis] for axis in at},
            "flop": by_context.get((row["context"], row["tp"])) or by_context[row["context"], None],
            "time": {key: value for key, value in row.items() if key not in at},
            **({"estimated": found} if (found := _csv_estimated(results, [row[axis] for axis in at])) else {}),
            **({"measured": measured} if (measured := csv_measured(results, [row[axis] for axis in at])) else {}),
        }
        for row in rows
    )


def _estimate_notes(gpu: GPU | None, estimated: EstimatedCrossover | None, sparse: bool) -> list[str]:
    if gpu is None:
        return []
    if estimated is None:
        reasons = ["attention is sparse: it was not measured"] if sparse else []
        return estimates.notes(gpu, (), reasons)
    sources = [source for point in estimated.by_context for source in point.sources]
    known = [point for point in estimated.by_context if point.searched_from_queries is not None]
    kernels = [name for point in known for name in (point.absorbed_kernel, point.naive_kernel)]
    unknown = [point.reason for point in estimated.by_context if point.reason]
    return estimates.notes(gpu, sources, unknown, kernels) + (estimates.error_notes(estimated.errors) if known else [])


def _csv_estimated(results: dict[str, Any], point: list[int]) -> dict[str, Any]:
    """What was estimated at a point, by naive path."""
    by_context = results["estimated"]["by_context"] if results["estimated"] else []
    return {
        item["naive_kernel"]: {key: item[key] for key in item if key not in (*_AXES, "naive_kernel", "intervals")}
        for item in by_context
        if item["naive_kernel"] and [item[axis] for axis in _AXES] == point
    }


def _sentence(
    flop: FlopCrossover | SparseFlopCrossover,
    time: TimeCrossover | None,
    measured: tuple[MeasuredAtContext, ...],
    gpu: GPU | None,
) -> str:
    if isinstance(flop, SparseFlopCrossover):
        text = dsa.flop_sentence(flop)
    elif flop.queries_limit is None:
        text = "The absorbed core is no dearer per pair than the naive one: by FLOPs naive wins at no length"
    else:
        limit = f"{fmt.number(flop.queries_limit)} queries, so naive wins first at {flop.first_queries_naive_wins:,}"
        text = f"By FLOPs a long context tends to {limit}; heads and TP cancel"
    if time and gpu:
        first = time.by_context[0]
        found = first.first_queries_naive_wins
        where = f"on {gpu.name} at context {first.context:,}, TP {first.tp}"
        text += f". By bound {where}, naive wins {'nowhere' if found is None else f'first at {found:,}'}"
        there = [at for at in measured if (at.context, at.tp, at.batch) == (first.context, first.tp, first.batch)]
        if there:
            text += f"; measured there, {measured_text(there)}"
    return text + "."


def _notes(
    model: Model,
    flop: FlopCrossover | SparseFlopCrossover,
    time: TimeCrossover | None,
    thresholds: tuple[EngineThreshold, ...],
) -> list[str]:
    notes = ["A cold prefill (prefix 0) never favours absorption: its causal crossover is at 0."]
    if isinstance(flop, SparseFlopCrossover) and model.indexer:
        notes = dsa.crossover_notes(model, flop, model.indexer, time is not None)
    elif flop.queries_limit is None:
        notes[0] = "2r <= dn + dv here: there is no finite FLOP crossover, and null stands for it."
    if time is None:
        notes.append("No --gpu: the crossover by time is left out (time: null).")
    if thresholds:
        notes.append("A vLLM threshold is the longest query that is absorbed; SGLang's is on the sum of prefixes.")
        notes.append("Every backend for such a GPU is shown: cache dtype and row width may rule some of them out.")
    if model.indexer and isinstance(flop, FlopCrossover):
        notes.append(
            f"{model.name} has an indexer: attention is priced dense (--sparse prices DSA), the thresholds are"
            " those of sparse backends."
        )
    return [*notes, *request.model_notes(model)]


def _without_threshold(engines: Sequence[Engine], thresholds: Sequence[EngineThreshold]) -> Iterator[str]:
    """What is to be said of engines that were asked for and stand in no table."""
    known = {threshold.engine for threshold in thresholds}
    lacking = dict.fromkeys(engine.name for engine in engines if engine.name not in known)
    if lacking:
        yield f"No threshold of {' or '.join(lacking)} was read for this model and GPU."


def _firsts(
    mla: MLA,
    work: Work,
    ceilings: Ceilings | None,
    indexer: Indexer | None,
    flop: FlopCrossover | SparseFlopCrossover,
    time: TimeCrossover | None,
) -> Iterator[Explanation]:
    """Both paths on either side of each first number of queries, of the first point."""
    from ..costs.crossover_formulas import Compared  # only where they are asked for: start-up counts

    compared = Compared(mla, work, ceilings, indexer)
    for path, formula, names in (*compared.flop_firsts(flop), *(compared.time_firsts(time) if time else ())):
        yield Explanation(path, formula.text, names, formula.cite)


def _explanations(
    model: Model,
    layout: Layout,
    flop: FlopCrossover | SparseFlopCrossover,
    axes: request.Axes,
    indexer: Indexer | None,
) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    names = {**formulas.attention_names(model, layout, tp=1), "context": axes.context[0]}
    if isinstance(flop, SparseFlopCrossover):
        from ..costs import sparse_formulas

        assert indexer
        names |= {**sparse_formulas.sparse_names(indexer), "tp": axes.tp[0]}
        return request.explanations(sparse_formulas.sparse_crossover_formulas(flop, indexer), names)
    return request.explanations(formulas.crossover_formulas(flop.queries_limit is not None), names)
