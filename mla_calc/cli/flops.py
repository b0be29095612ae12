"""``mla-calc flops``: both paths' FLOPs, bytes and bounds for one step."""

from __future__ import annotations

from dataclasses import replace

from ..costs.estimates import Source
from ..costs.flops import EstimatedPart, FlopsCost, PathCost, flops_cost, with_estimates
from ..costs.layouts import Layout, latent_row_bytes, load_layout
from ..costs.paths import Work
from ..costs.sharding import check_tp
from ..costs.sparse import indexer_of
from ..hardware.gpu import GPU
from ..hardware.roofline import Ceilings
from ..models.attention import Indexer, Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from . import estimates, options, request
from . import sparse as dsa
from .command import add_command

app = options.command_app()


def answer(
    model: options.Model,
    *,
    gpu: options.Gpu = None,
    tp: options.Tp = "1",
    batch: options.Batch = "1",
    queries: options.Queries = "1",
    context: options.Context = "4096",
    causal: options.Causal = True,
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    weight_bytes: options.WeightBytes = "2",
    sparse: options.Sparse = False,
    explain: options.Explain = False,
) -> Report:
    """What the absorbed and the naive path cost: FLOPs, bytes, and bounds on a GPU.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    mla, indexer = request.mla_of(loaded, "flops"), indexer_of(loaded, sparse)
    card, ceilings = request.ceilings_of(gpu, mma_dtype)
    axes = request.axes(tp, batch, queries, context)
    row, width = latent_row_bytes(layout, mla), request.weight_width(weight_bytes)
    costs: list[tuple[Work, FlopsCost]] = []
    unknown: list[str] = []
    for work in axes.works(row_bytes=row, causal=causal, weight_bytes=width):
        check_tp(loaded, work.tp)
        cost = flops_cost(mla, loaded.cached_layers, work, ceilings, indexer=indexer)
        if card:
            cost, reasons = with_estimates(
                cost, card, mla, loaded.cached_layers, work, dtype=mma_dtype, cache=layout.name
            )
            unknown += reasons
        costs.append((work, cost))
    report = _report(loaded, layout, card, costs, mma_dtype, weight_bytes, indexer)
    if card:
        sources = [Source(part.run, part.date) for _, cost in costs for part in _estimated_parts(cost)]
        kernels = [path.estimated.kernel for _, cost in costs for path in _paths(cost) if path.estimated]
        report = replace(report, notes=(*report.notes, *estimates.notes(card, sources, unknown, kernels)))
    if explain:
        report = replace(report, explanations=_explanations(loaded, layout, ceilings, costs, indexer))
    return report


flops = add_command(app, answer)


def _report(
    model: Model,
    layout: Layout,
    gpu: GPU | None,
    costs: list[tuple[Work, FlopsCost]],
    mma_dtype: str,
    weight_bytes: str,
    indexer: Indexer | None,
) -> Report:
    single, first = len(costs) == 1, costs[0][1]
    records = [cost for _, cost in costs]
    sources = request.input_sources((model,), (layout,), gpu)
    return Report(
        command="flops",
        title=f"{model.name}   {request.geometry(model)}, {layout.name}",
        subtitle=request.gpu_phrase(gpu, mma_dtype) if gpu else "",
        inputs={
            "model": model.name,
            "gpu": gpu.name if gpu else None,
            "dtype": layout.name,
            "mma_dtype": mma_dtype,
            "weight_bytes": request.as_json(request.weight_width(weight_bytes)),
            **request.axes_of(records, ("tp", "batch", "queries", "context")),
            "pairs": "causal" if first.causal else "rectangular",
            "sparse": indexer is not None,
        },
        results=request.results_of([plain(cost) for cost in records], single),
        tables=_single_tables(first) if single else _list_tables(records),
        sentence=_sentence(first) if single else "",
        notes=(
            *_notes(model, gpu, indexer, records),
            *request.context_notes(model, (cost.context for cost in records)),
        ),
        sources=request.source_list(sources),
        input_sources=sources,
    )


def _single_tables(cost: FlopsCost) -> tuple[Table, ...]:
    constants = Table(
        ("", "absorbed", "naive"),
        (
            ("once per query token (folds)", Cell("fold_flop_per_query_token", "flop"), "-"),
            ("once per context token (up-projection)", "-", Cell("fold_flop_per_query_token", "flop")),
            (
                "attention core, per pair",
                Cell("absorbed_core_flop_per_pair"),
                Cell("naive_core_flop_per_pair"),
            ),
            ("materialized per context token", "-", Cell("materialized_bytes_per_context_token", "bytes")),
        ),
        f"{_step(cost)}; per rank and layer",
    )
    return constants, *([_sparse_table()] if cost.sparse else []), _kernel_table(cost)


def _sparse_table() -> Table:
    rows: tuple[tuple[str | Cell, ...], ...] = (
        ("pairs of a request", Cell("pairs"), Cell("sparse.attended_pairs")),
        ("FLOP per pair", Cell("sparse.indexer_flop_per_pair"), Cell("absorbed_core_flop_per_pair")),
        ("bytes per context token", Cell("sparse.indexer_bytes_per_context_token", "bytes"), ""),
    )
    return Table(("absorbed, sparse", "indexer", "attention"), rows)


def _kernel_table(cost: FlopsCost) -> Table:
    bounds = cost.absorbed.bound_s is not None
    estimated = _any_estimate([cost])
    headers = ("kernel", "FLOP", "bytes", "FLOP/B", *(("bound", "binds") if bounds else ()))
    rows = []
    for path, priced in (("absorbed", cost.absorbed), ("naive", cost.naive)):
        rows += _path_rows(path, priced, bounds, estimated)
    return Table((*headers, *(("estimate",) if estimated else ())), tuple(rows))


def _path_rows(path: str, priced: PathCost, bounds: bool, estimated: bool) -> list[tuple[str | Cell, ...]]:
    """A path's kernels, what its estimate holds besides, and the sums.

    Beside a column of estimates there is room for three digits on 80 columns, and an estimate has no more.
    """
    flop, seconds = ("short_flop", "short_seconds") if estimated else ("flop", "seconds")

    def times(at: str, bound: str, binds: str | Cell, estimate: str) -> tuple[str | Cell, ...]:
        shown: tuple[str | Cell, ...] = (Cell(at + bound, seconds), binds) if bounds else ()
        return (*shown, Cell(at + estimate, seconds)) if estimated else shown

    rows: list[tuple[str | Cell, ...]] = []
    for index, kernel in enumerate(priced.kernels):
        at = f"{path}.kernels[{index}]."
        intensity = Cell(at + "intensity_flop_per_byte", "number")
        ends = times(at, "bound_s", Cell(at + "binds", "text"), "estimate_s")
        rows.append(
            (f"{path}: {kernel.name}", Cell(at + "flop", flop), Cell(at + "bytes", "decimal"), intensity, *ends)
        )
    bound = {kernel.name for kernel in priced.kernels}
    for index, part in enumerate(priced.estimated.parts if priced.estimated else ()):
        if part.name not in bound:
            estimate = Cell(f"{path}.estimated.parts[{index}].estimate_s", seconds)
            rows.append((f"{path}: {part.name}", "", "", "", "", "", estimate))
    at = f"{path}."
    for label, prefix in (("sum", ""), ("all layers", "total_")):
        counts = (Cell(f"{at}{prefix}flop", flop), Cell(f"{at}{prefix}bytes", "decimal"), "")
        rows.append((f"{path}, {label}", *counts, *times(at, f"{prefix}bound_s", "", f"{prefix}estimate_s")))
    return rows


def _list_tables(costs: list[FlopsCost]) -> tuple[Table, ...]:
    """Bounds, or FLOPs without a GPU; and estimates where there is any."""
    bounds = costs[0].absorbed.bound_s is not None
    first = (
        _list_table(costs, "bound", "bound_s", "lower_bound")
        if bounds
        else _list_table(costs, "FLOP", "flop", "fewer_flop")
    )
    if not _any_estimate(costs):
        return (first,)
    return first, _list_table(costs, "estimate", "estimate_s", "lower_estimate")


def _list_table(costs: list[FlopsCost], what: str, figure: str, winner: str) -> Table:
    rows = tuple(
        (
            *(Cell(f"[{index}].{axis}") for axis in ("tp", "batch", "queries", "context")),
            *(
                Cell(f"[{index}].{path}.{figure}", "flop" if figure == "flop" else "seconds")
                for path in ("absorbed", "naive")
            ),
            Cell(f"[{index}].{winner}", "text"),
        )
        for index in range(len(costs))
    )
    return Table(("TP", "batch", "queries", "context", f"absorbed {what}", f"naive {what}", "less"), rows)


def _any_estimate(costs: list[FlopsCost]) -> bool:
    return any(_estimated_parts(cost) for cost in costs)


def _estimated_parts(cost: FlopsCost) -> list[EstimatedPart]:
    return [part for path in _paths(cost) if path.estimated for part in path.estimated.parts]


def _paths(cost: FlopsCost) -> tuple[PathCost, PathCost]:
    return cost.absorbed, cost.naive


def _step(cost: FlopsCost) -> str:
    pairs = "causal" if cost.causal else "rectangular"
    requests = fmt.counted(cost.batch, "request")
    new = fmt.counted(cost.queries, "query", "queries")
    return f"{requests}, {new} over {fmt.counted(cost.context, 'key')} ({pairs}), TP {cost.tp}"


def _sentence(cost: FlopsCost) -> str:
    core = f"The absorbed core is {fmt.factor(cost.core_ratio)} as dear per pair"
    folds = f"its folds are {fmt.percent(cost.fold_to_core_ratio)} of that core here"
    if cost.sparse:
        folds += f". {dsa.first_context_phrase(cost.sparse.first_context_bytes, cost.sparse.first_context_flop)}"
    if cost.bound_ratio is None:
        return f"{core}, {folds}; by FLOPs {_wins(cost.fewer_flop)}, by bytes {_wins(cost.fewer_bytes)}."
    return f"{core}, {folds}. By bound {_wins(cost.lower_bound)}, by {fmt.factor(cost.bound_ratio)}."


def _wins(path: str | None) -> str:
    return "neither path wins" if path == "equal" else f"the {path} path wins"


def _notes(model: Model, gpu: GPU | None, indexer: Indexer | None, costs: list[FlopsCost]) -> list[str]:
    notes = [request.LEFT_OUT, request.PER_RANK]
    notes.append("A bound is the least time that the ceilings allow, never a latency." if gpu else request.NO_GPU)
    notes += dsa.notes(model, indexer, with_bounds=gpu is not None)
    for sparse in dict.fromkeys(
        (cost.sparse.first_context_bytes, cost.sparse.first_context_flop) for cost in costs if cost.sparse
    ):
        notes += [note for note in dsa.first_context_notes(*sparse) if note not in notes]
    return [*notes, *request.model_notes(model)]


def _explanations(
    model: Model,
    layout: Layout,
    ceilings: Ceilings | None,
    costs: list[tuple[Work, FlopsCost]],
    indexer: Indexer | None,
) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    work, cost = costs[0]
    texts = formulas.flops_formulas(ceilings is not None, work.causal)
    names = {
        **formulas.attention_names(model, layout, tp=cost.tp),
        **formulas.work_names(work, cost.pairs),
        **formulas.kernel_names(cost),
        **formulas.ceiling_names(ceilings),
    }
    if indexer and cost.sparse:
        from ..costs import sparse_formulas

        texts = sparse_formulas.sparse_flops_formulas(cost, ceilings is not None)
        names |= {**sparse_formulas.sparse_names(indexer), "attended_pairs": cost.sparse.attended_pairs}
    texts |= formulas.estimate_formulas(cost)
    names |= formulas.estimate_names(cost)
    return request.explanations(texts, names, single=len(costs) == 1)
