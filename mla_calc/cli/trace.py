"""``mla-calc trace``: one step through one layer, shape by shape."""

from __future__ import annotations

from ..costs.layouts import Layout, latent_row_bytes, load_layout
from ..costs.paths import Work
from ..costs.sharding import check_tp
from ..costs.trace import TraceCost, trace_cost
from ..models.attention import Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..report.write import emit
from ..sizes import parse_count
from . import options, request

app = options.command_app()


@app.command()
def trace(
    model: options.Model,
    tp: options.Tp = "1",
    batch: options.Batch = "1",
    queries: options.Queries = "1",
    context: options.Context = "4096",
    causal: options.Causal = True,
    dtype: options.Dtype = "bf16",
    weight_bytes: options.WeightBytes = "2",
    format_name: options.Format = None,
    output: options.Output = None,
    explain: options.Explain = False,
) -> None:
    """One step through one layer, from the first projection to o_proj: shapes, FLOPs, bytes."""
    loaded, layout = load_model(model), load_layout(dtype)
    mla = request.mla_of(loaded, "trace")
    ranks = parse_count(tp, "--tp", most=request.MAX_TP)
    check_tp(loaded, ranks)
    work = Work(
        queries=parse_count(queries, "--queries"),
        context=parse_count(context, "--context"),
        row_bytes=latent_row_bytes(layout, mla),
        batch=parse_count(batch, "--batch"),
        tp=ranks,
        causal=causal,
        weight_bytes=request.weight_width(weight_bytes),
    )
    cost = trace_cost(mla, work)
    emit(_report(loaded, layout, cost, causal), format_name, output, explain)


def _report(model: Model, layout: Layout, cost: TraceCost, causal: bool) -> Report:
    sources = request.input_sources((model,), (layout,), None)
    return Report(
        command="trace",
        title=f"{model.name}   {request.geometry(model)}, {layout.name}",
        inputs={
            "model": model.name,
            "dtype": layout.name,
            "tp": cost.tp,
            "batch": cost.batch,
            "queries": cost.queries,
            "context": cost.context,
            "pairs": "causal" if causal else "rectangular",
        },
        results=plain(cost),
        tables=(_table(cost),),
        sentence=_sentence(cost),
        notes=(*_notes(model, cost), *request.context_notes(model, (cost.context,))),
        sources=request.source_list(sources),
        explanations=_explanations(cost),
        input_sources=sources,
        rows_path="steps",
    )


def _table(cost: TraceCost) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for index, step in enumerate(cost.steps):
        at = f"steps[{index}]."
        figures = (Cell(at + "flop", "flop"), Cell(at + "bytes", "decimal"))
        rows.append((step.name, Cell(at + "shape", "text"), *figures, "; ".join(step.splits)))
    rows.append(("one layer", "", Cell("layer_flop", "flop"), Cell("layer_bytes", "decimal"), ""))
    tokens = fmt.counted(cost.batch * cost.queries, "token")
    caption = f"{tokens} over {fmt.counted(cost.context, 'key')}, TP {cost.tp}; per rank"
    return Table(("step", "output", "FLOP", "bytes", "as"), tuple(rows), caption)


def _sentence(cost: TraceCost) -> str:
    mqa, mha = fmt.text(cost.geometries.mqa), fmt.text(cost.geometries.mha)
    return (
        f"The two folds are {fmt.flop(cost.folds_flop)}, {fmt.percent(cost.fold_to_core_ratio)} of the "
        f"{fmt.flop(cost.core_flop)} core. "
        f"Kernel geometry (QK width, KV heads, V width): absorbed {mqa}, naive {mha}."
    )


def _notes(model: Model, cost: TraceCost) -> list[str]:
    notes = [request.LEFT_OUT, "The down-projections are whole on every rank; the rest divides by TP."]
    if cost.tp > 1:
        notes.append("o_proj leaves a partial sum: the all-reduce over the ranks is not priced.")
    if model.indexer:
        notes.append(f"{model.name} has an indexer, which is not walked; attention is dense.")
    return [*notes, *request.model_notes(model)]


def _explanations(cost: TraceCost) -> tuple[Explanation, ...]:
    """Each projection's FLOPs from its weight, each kernel's sum."""
    found = []
    for index, step in enumerate(cost.steps):
        if step.weight_shape is not None and len(step.weight_shape) == 2:
            names = {
                "tokens": cost.batch * cost.queries,
                "wide": step.weight_shape[0],
                "out": step.weight_shape[1],
            }
            found.append(
                Explanation(f"steps[{index}].flop", "2 * tokens * wide * out", names, f"{step.name}: a dense product")
            )
        elif step.weight_shape is not None:
            heads, wide, out = step.weight_shape
            names = {"tokens": cost.batch * cost.queries, "heads": heads, "wide": wide, "out": out}
            text = f"{step.name}: one product per head"
            found.append(Explanation(f"steps[{index}].flop", "2 * tokens * heads * wide * out", names, text))
    names = {step.name: step.flop for step in cost.steps if step.flop}
    found.append(Explanation("layer_flop", " + ".join(names), names, "the sum over the steps"))
    return tuple(found)
