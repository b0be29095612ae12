"""``mla-calc intensity``: FLOP per byte of decode against TP, beside the ridge and other models."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from ..costs.cache import DEFAULT_CONTEXT
from ..costs.intensity import IntensityCost, intensity_cost
from ..costs.layouts import Layout, load_layout
from ..costs.sparse import indexer_of
from ..errors import InputError
from ..hardware.gpu import GPU
from ..hardware.roofline import Ceilings
from ..models.attention import Indexer, Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..sizes import parse_counts
from . import options, request
from . import sparse as dsa
from .command import add_command
from .intensity_figure import chart

app = options.command_app()

TpAxis = Annotated[
    str | None,
    typer.Option("--tp", help="Tensor-parallel ranks: 8, 1,2,4 or 1:8:x2.", show_default="1 to 16"),
]
ContextAxis = Annotated[
    str | None,
    typer.Option(
        "--context", "-s", help="Keys that sparse attention chooses from.", show_default="4096, with --sparse"
    ),
]


def answer(
    model: options.Model,
    *,
    gpu: options.Gpu = None,
    tp: TpAxis = None,
    queries: options.Queries = "1",
    vs: options.Vs = None,
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    sparse: options.Sparse = False,
    context: ContextAxis = None,
    explain: options.Explain = False,
) -> Report:
    """How many FLOP decode does per byte of cache, against TP, and how near the ridge that is.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    card, ceilings = request.ceilings_of(gpu, mma_dtype)
    beside, vs_notes = request.comparators(vs, layout)
    indexer, contexts = indexer_of(loaded, sparse), _contexts(context, sparse)
    tps = _tps(tp, (loaded, *(other for other, _ in beside)))
    costs = [
        intensity_cost(loaded, layout, tps, queries=new, ceilings=ceilings, vs=beside, indexer=indexer, context=keys)
        for new in parse_counts(queries, "--queries")
        for keys in contexts
    ]
    request.check_records(len(costs) * len(tps))
    if costs[0].break_even_note:
        vs_notes.append(f"No break-even TP with {beside[0][0].name}: {costs[0].break_even_note}.")
    report = _report(loaded, layout, card, costs, beside, vs_notes, mma_dtype, indexer)
    if explain:
        report = replace(report, explanations=_explanations(loaded, layout, ceilings, costs, indexer))
    return report


intensity = add_command(app, answer, chart)


def _tps(text: str | None, models: tuple[Model, ...]) -> tuple[int, ...]:
    """The TPs asked for, or those of the usual ones that every model can run at."""
    return request.usual_tps(models) if text is None else parse_counts(text, "--tp", most=request.MAX_TP)


def _contexts(text: str | None, sparse: bool) -> tuple[int, ...]:
    """The contexts asked for: one that no figure depends on where attention is dense."""
    if text is None:
        return (DEFAULT_CONTEXT,)
    if not sparse:
        raise InputError("--context: without --sparse the intensity is that of a long context, and depends on none")
    return parse_counts(text, "--context")


def _report(
    model: Model,
    layout: Layout,
    gpu: GPU | None,
    costs: list[IntensityCost],
    beside: tuple[tuple[Model, Layout], ...],
    vs_notes: list[str],
    mma_dtype: str,
    indexer: Indexer | None,
) -> Report:
    layouts = {layout.name: layout, **{its.name: its for _, its in beside}}
    sources = request.input_sources((model, *(other for other, _ in beside)), layouts.values(), gpu)
    single = len(costs) == 1
    return Report(
        command="intensity",
        title=f"{model.name}   {request.geometry(model)}, {layout.name}",
        subtitle=request.gpu_phrase(gpu, mma_dtype) if gpu else "",
        inputs={
            "model": model.name,
            "gpu": gpu.name if gpu else None,
            "dtype": layout.name,
            "mma_dtype": mma_dtype,
            "tp": [row.tp for row in costs[0].by_tp],
            **request.axes_of(costs, ("queries",)),
            "vs": [other.name for other, _ in beside],
            "sparse": indexer is not None,
            **request.axes_of([cost.sparse for cost in costs if cost.sparse], ("context",) if indexer else ()),
        },
        results=request.results_of([plain(cost) for cost in costs], single),
        tables=tuple(_table(model, cost, "" if single else f"[{index}].") for index, cost in enumerate(costs)),
        sentence=_sentence(model, costs[0]),
        notes=(*_notes(model, gpu, indexer), *vs_notes),
        sources=request.source_list(sources),
        input_sources=sources,
        csv_rows=tuple(row for cost in costs for row in _csv_rows(cost)),
    )


def _csv_rows(cost: IntensityCost) -> list[dict[str, Any]]:
    """One row per TP, with the intensity of every comparator beside."""
    beside: dict[str, Any] = {"queries": cost.queries, "ridge_flop_per_byte": cost.ridge_flop_per_byte}
    if cost.sparse:
        beside |= {"context": cost.sparse.context, "limit_flop_per_byte": cost.sparse.limit_flop_per_byte}
    return [
        {
            **beside,
            **plain(row),
            **{f"vs.{other.model}": other.by_tp[index].intensity_flop_per_byte for other in cost.vs},
        }
        for index, row in enumerate(cost.by_tp)
    ]


def _table(model: Model, cost: IntensityCost, record: str) -> Table:
    with_gpu = cost.ridge_flop_per_byte is not None
    headers = ("TP", f"{model.name} FLOP/B") + (("of ridge", "binds", "margin") if with_gpu else ())
    headers += tuple(f"{other.model} FLOP/B" for other in cost.vs)
    rows = []
    for index in range(len(cost.by_tp)):
        at = f"{record}by_tp[{index}]."
        cells = [Cell(at + "tp"), Cell(at + "intensity_flop_per_byte", "number")]
        if with_gpu:
            cells += [Cell(at + "ridge_share", "percent"), Cell(at + "binds", "text"), Cell(at + "by", "factor")]
        for number in range(len(cost.vs)):
            cells.append(Cell(f"{record}vs[{number}].by_tp[{index}].intensity_flop_per_byte", "number"))
        rows.append(tuple(cells))
    tokens = fmt.counted(cost.queries, "query", "queries")
    over = f" over {cost.sparse.context:,} keys, sparse (top {cost.sparse.topk:,})" if cost.sparse else ""
    return Table(headers, tuple(rows), f"decode of {tokens} a request{over}, per byte of cache read")


def _sentence(model: Model, cost: IntensityCost) -> str:
    first = cost.by_tp[0]
    text = f"At TP {first.tp} decode does {fmt.number(first.intensity_flop_per_byte)} FLOP per byte of cache"
    if cost.ridge_flop_per_byte is not None and first.ridge_share is not None:
        ridge = fmt.number(cost.ridge_flop_per_byte)
        share, by = fmt.percent(first.ridge_share), fmt.factor(first.by or 0)
        text += f", {share} of the ridge at {ridge}: {first.binds} binds, by {by}"
    if cost.ridge_heads_times_queries is not None:
        text += f". The ridge is reached at {cost.ridge_heads_times_queries:.1f} heads per rank times queries"
    if cost.sparse:
        text += dsa.intensity_sentence(cost.sparse.limit_flop_per_byte)
    elif model.mla and len(cost.by_tp) > 1:
        text += ". It falls as 1/TP, since heads divide and the latent row does not"
    return text + "."


def _notes(model: Model, gpu: GPU | None, indexer: Indexer | None) -> list[str]:
    what = "indexer and attention over the cache" if indexer else "what grows with the context"
    notes = [f"Context-only: {what}; query and output bytes come on top (see `flops`)."]
    if gpu is None:
        notes.append("No --gpu: the ridge is left out.")
    notes += dsa.notes(model, indexer, with_bounds=gpu is not None)
    if indexer:
        notes.append(
            "No heads times queries reach the ridge alone, the context counts too (null); --vs models are dense."
        )
    if model.windowed:
        notes.append("Sliding-window layers are left out: past their window they read no more.")
    return [*notes, *request.model_notes(model)]


def _explanations(
    model: Model, layout: Layout, ceilings: Ceilings | None, costs: list[IntensityCost], indexer: Indexer | None
) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    names = {
        **formulas.attention_names(model, layout, tp=costs[0].by_tp[0].tp),
        **formulas.ceiling_names(ceilings),
        "queries": costs[0].queries,
    }
    texts = formulas.intensity_formulas(model, ceilings is not None)
    if indexer and costs[0].sparse:
        from ..costs import sparse_formulas

        texts = sparse_formulas.sparse_intensity_formulas(costs[0])
        names |= {**sparse_formulas.sparse_names(indexer), "context": costs[0].sparse.context}
    return request.explanations(texts, names, single=len(costs) == 1)
