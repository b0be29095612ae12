"""``mla-calc cache``: bytes of cache per token, per layer, per rank, in the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from ..costs.cache import CacheCost, cache_cost, token_bytes
from ..costs.cache_by_tp import tokens_by_tp
from ..costs.layouts import Layout, load_layout
from ..models.attention import Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..sizes import parse_count, parse_counts
from . import options, request
from .cache_figure import NEEDS, chart, with_tokens
from .command import add_command
from .complete import forms

app = options.command_app()


def answer(
    model: options.Model,
    *,
    tp: options.Tp = "1",
    dtype: options.Dtype = "bf16",
    vs: options.Vs = None,
    context: Annotated[str | None, typer.Option("--context", "-s", help="Tokens per request: adds totals.")] = None,
    batch: Annotated[str | None, typer.Option("--batch", "-b", help="Requests: adds totals.")] = None,
    block_size: options.BlockSize = "64",
    mtp_layers: Annotated[str, typer.Option("--mtp-layers", help="MTP layers that cache too.")] = "0",
    cache_form: Annotated[
        str,
        typer.Option(
            "--cache-form",
            help="What is cached of MLA: latent, or expanded keys and values.",
            autocompletion=forms,
        ),
    ] = "latent",
    pad_head_dim: Annotated[
        str | None, typer.Option("--pad-head-dim", help="Expanded: width that keys and values are padded to.")
    ] = None,
    by_tp: Annotated[
        bool, typer.Option("--by-tp", help="Add every model's bytes at the TPs of a list, or 1 to 16: what is drawn.")
    ] = False,
    explain: options.Explain = False,
) -> Report:
    """Bytes of cache: per token, per layer, per rank and in the cluster, beside other models.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    beside, vs_notes = request.comparators(vs, layout)
    tps = parse_counts(tp, "--tp", most=request.MAX_TP)
    contexts = parse_counts(context, "--context") if context is not None else (None,)
    batches = parse_counts(batch, "--batch") if batch is not None else (None,)
    over: tuple[int, ...] = ()
    if by_tp:
        request.one(contexts, "--context")
        request.one(batches, "--batch")
        over, tps = _over(tps, (loaded, *(other for other, _ in beside))), tps[:1]
    request.check_records(len(tps) * len(contexts) * len(batches))
    block = parse_count(block_size, "--block-size", most=request.MAX_BLOCK)
    mtp = parse_count(mtp_layers, "--mtp-layers", least=0, most=1024)
    form = request.cache_form(cache_form, pad_head_dim)
    sizes: dict[str, Any] = {"mtp_layers": mtp, "vs": beside, "block_size": block, "form": form}
    costs = [
        cache_cost(loaded, layout, tp=at, context=length, batch=requests, **sizes)
        for at in tps
        for requests in batches
        for length in contexts
    ]
    report = _report(loaded, layout, costs, beside, vs_notes, mtp)
    if by_tp:
        every = [cache_cost(loaded, layout, tp=at, **sizes) for at in over]
        report = with_tokens(report, tokens_by_tp(loaded.name, every))
    if explain:
        own, others = _explanations(loaded, layout, costs, mtp), _explanations_beside(beside, costs)
        report = replace(report, explanations=(*own, *others))
    return report


cache = add_command(app, answer, chart, NEEDS)


def _over(tps: tuple[int, ...], models: tuple[Model, ...]) -> tuple[int, ...]:
    """The TPs of a list, or the usual ones that every model can run at beside the one that was asked for."""
    return tuple(sorted({*tps, *(request.usual_tps(models) if len(tps) == 1 else ())}))


def _report(
    model: Model,
    layout: Layout,
    costs: list[CacheCost],
    beside: tuple[tuple[Model, Layout], ...],
    vs_notes: list[str],
    mtp: int,
) -> Report:
    single, first = len(costs) == 1, costs[0]
    sources = request.input_sources(
        (model, *(other for other, _ in beside)),
        {layout.name: layout, **{its.name: its for _, its in beside}}.values(),
        None,
    )
    return Report(
        command="cache",
        title=f"{model.name}   {request.geometry(model)}, {layout.name}",
        inputs={
            "model": model.name,
            "dtype": layout.name,
            **request.axes_of(costs, ("tp", "batch", "context")),
            "block_size": first.block_size,
            "vs": [other.name for other, _ in beside],
            "mtp_layers": mtp,
            "cache_form": first.cache_form,
            "pad_head_dim": first.pad_head_dim,
        },
        results=request.results_of([plain(cost) for cost in costs], single),
        tables=_single_tables(model, first) if single else (_list_table(costs),),
        sentence=_sentence(model, first),
        notes=(
            *_notes(model, first),
            *request.errata_notes(
                model,
                (other for other, _ in beside),
                dtype=layout.name,
                context=first.context,
                batch=first.batch,
                mtp_layers=mtp,
            ),
            *request.context_notes(model, (cost.context for cost in costs)),
            *vs_notes,
        ),
        sources=request.source_list(sources),
        input_sources=sources,
    )


def _single_tables(model: Model, cost: CacheCost) -> tuple[Table, ...]:
    tables = [_token_table(model, cost)]
    if cost.total_bytes is not None:
        tables.append(_total_table(cost))
    return tuple(tables)


def _token_table(model: Model, cost: CacheCost) -> Table:
    def row(label: str, copy: str, rank: str = "", cluster: str = "") -> tuple[str | Cell, ...]:
        entries: list[str | Cell] = [label, Cell(copy, "bytes"), Cell(copy, "binary"), Cell(copy, "decimal")]
        if cost.tp > 1:
            entries += [Cell(path, "bytes") if path else "" for path in (rank, cluster)]
        return tuple(entries)

    rank, cluster = "per_rank_bytes_per_token", "cluster_bytes_per_token"
    rows = []
    if cost.cache_form == "expanded":
        padded = f", {cost.pad_head_dim} wide" if cost.pad_head_dim else ""
        keys = " and indexer keys" if cost.indexer_layers else ""
        rows.append(row(f"keys and values{padded}{keys}", "bytes_per_token", rank, cluster))
        apart = ", without indexer keys" if keys else ""
        rows.append(row(f"the latent in their place{apart}", "latent_bytes_per_token"))
    elif cost.indexer_layers and model.mla:
        rows.append(row("latent", "latent_bytes_per_token"))
        rows.append(row(f"indexer keys, {cost.indexer_layers} layers", "indexer_bytes_per_token"))
        rows.append(row("all, cached", "bytes_per_token", rank, cluster))
    elif model.mla:
        rows.append(row("latent, cached", "bytes_per_token", rank, cluster))
    else:
        rows.append(row("keys and values", "bytes_per_token", rank, cluster))
    if cost.windowed_layers:
        label = f"{cost.windowed_layers} layers, window {cost.window:,}"
        rows.append(row(label, "windowed_bytes_per_token", "windowed_per_rank_bytes_per_token"))
    if model.mla and cost.cache_form == "latent":
        rows.append(
            row(
                "if expanded, in bf16",
                "expanded_bytes_per_token",
                "expanded_per_rank_bytes_per_token",
                "expanded_bytes_per_token",
            )
        )
    for index, other in enumerate(cost.vs):
        at = f"vs[{index}]."
        rows.append(row(other.model, at + "bytes_per_token", at + rank, at + cluster))
    headers = ("", "per token", "", "") + ((f"rank, TP {cost.tp}", "cluster") if cost.tp > 1 else ())
    return Table(headers, tuple(rows))


def _total_table(cost: CacheCost) -> Table:
    labels = {
        "total_bytes": "one copy",
        "allocated_bytes": f"one copy, pages of {cost.block_size}",
        "per_rank_total_bytes": "on each rank",
        "cluster_total_bytes": f"in the cluster, TP {cost.tp}",
    }
    rows = tuple(
        (label, Cell(path, "bytes"), Cell(path, "binary"), Cell(path, "decimal")) for path, label in labels.items()
    )
    caption = f"{fmt.counted(cost.batch or 0, 'request')} of {cost.context:,} tokens"
    return Table(("", "bytes", "", ""), rows, caption)


def _list_table(costs: list[CacheCost]) -> Table:
    totals, vs = costs[0].total_bytes is not None, costs[0].vs
    headers: tuple[str, ...] = ("TP", "per token", "per rank", "cluster")
    if totals:
        headers = ("TP", "batch", "context", "per token", "per rank", "one copy", "on each rank", "cluster")
    rows = []
    for index in range(len(costs)):
        at = f"[{index}]."
        cells = [Cell(at + "bytes_per_token", "bytes"), Cell(at + "per_rank_bytes_per_token", "bytes")]
        if totals:
            names = ("total_bytes", "per_rank_total_bytes", "cluster_total_bytes")
            axes = [Cell(at + "tp"), Cell(at + "batch"), Cell(at + "context")]
            cells = axes + cells + [Cell(at + name, "binary") for name in names]
        else:
            beside = [Cell(f"{at}vs[{number}].cluster_bytes_per_token", "bytes") for number in range(len(vs))]
            cells = [Cell(at + "tp"), *cells, Cell(at + "cluster_bytes_per_token", "bytes"), *beside]
        rows.append(tuple(cells))
    named = () if totals else tuple(f"{other.model}, cluster" for other in vs)
    return Table(headers + named, tuple(rows))


def _sentence(model: Model, cost: CacheCost) -> str:
    if model.mla is None:
        return f"{request.kind(model)} shards its KV heads over TP until there are more ranks than heads."
    if cost.cache_form == "expanded":
        assert cost.latent_bytes_per_token is not None
        heads = cost.bytes_per_token - (cost.indexer_bytes_per_token or 0)
        ratio = fmt.factor(heads / cost.latent_bytes_per_token)
        return f"Keys and values of every head are cached, {ratio} the bytes of the latent; their heads shard over TP."
    latent = "The latent has no head axis: every rank stores all of it"
    ends = [
        f"over {other.model} ends at TP {other.break_even_tp:.2f}"
        for other in cost.vs
        if other.break_even_tp is not None
    ]
    if ends:
        return f"{latent}, so the cluster-wide advantage {', '.join(ends)}."
    assert cost.expanded_to_latent_ratio is not None
    ratio = fmt.factor(cost.expanded_to_latent_ratio)
    what = "its bytes, and the indexer keys stay" if cost.indexer_layers else "the bytes"
    return f"{latent}; expanded into per-head keys and values, in bf16, it would take {ratio} {what}."


def _notes(model: Model, cost: CacheCost) -> list[str]:
    lacking = [other for other in cost.vs if other.break_even_note]
    notes = [f"No break-even TP with {other.model}: {other.break_even_note}." for other in lacking]
    if cost.cache_form == "expanded":
        notes.append("never_cached_bytes_per_token_per_layer is null: here they are cached.")
    described = model.status == "config"  # the config reader's own notes speak of its layers
    if cost.windowed_layers and not described:
        notes.append(
            f"bytes_per_token is what grows without end; {cost.windowed_layers} sliding-window layers add "
            f"{cost.windowed_bytes_per_token:,} B per token up to {cost.window:,} tokens per request."
        )
    if model.recurrent and not described:
        notes.append(
            f"{model.recurrent.layers} linear-attention layers keep a fixed state per request, which is not counted."
        )
    if model.mtp_layers and not cost.mtp_layers:
        notes.append(
            f"MTP layers ({model.mtp_layers}) are left out: they cache under speculative decoding alone; "
            "--mtp-layers adds them."
        )
    notes += request.model_notes(model)
    return notes


def _explanations(model: Model, layout: Layout, costs: list[CacheCost], mtp: int) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    cost = costs[0]
    names = formulas.attention_names(model, layout, tp=cost.tp, mtp_layers=mtp)
    names |= formulas.figures_of(cost)
    texts = dict(formulas.cache_formulas(model, layout, cost.total_bytes is not None))
    if cost.cache_form == "expanded":
        from ..costs.capacity_formulas import expanded_cache_formulas

        texts = {key: text for key, text in texts.items() if not key.startswith("never_cached")}
        texts |= expanded_cache_formulas(model, layout)
        width = cost.pad_head_dim
        names["values_per_head"] = 2 * width if width else model.mla.expanded_head_values if model.mla else 0
    return request.explanations(texts, names, single=len(costs) == 1)


BESIDE = ("bytes_per_token", "per_rank_bytes_per_token", "cluster_bytes_per_token")
"""Figures of a model beside that have the formulas of the model's own."""


def _explanations_beside(beside: tuple[tuple[Model, Layout], ...], costs: list[CacheCost]) -> Iterator[Explanation]:
    """The figures of the models beside, each over its own model's values."""
    from ..costs import formulas

    at = "" if len(costs) == 1 else "[0]."
    for index, (other, its) in enumerate(beside):
        names = formulas.attention_names(other, its, tp=costs[0].tp)
        names["indexer_bytes_per_token"] = token_bytes(other, its).indexer
        texts = formulas.cache_formulas(other, its, with_totals=False)
        for key in BESIDE:
            yield Explanation(f"{at}vs[{index}].{key}", texts[key].text, names, f"{other.name}: {texts[key].cite}")
