"""``mla-calc workspace``: what chunked prefill sets aside, and what a smaller workspace gives back."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ..costs.cache import token_bytes
from ..costs.layouts import Layout, load_layout
from ..costs.sharding import check_tp
from ..costs.workspace import WorkspaceCost, workspace_cost
from ..models.attention import Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..report.write import emit
from ..sizes import parse_count, parse_counts
from . import options, request

app = options.command_app()


@app.command()
def workspace(
    model: options.Model,
    tp: options.Tp = "1",
    max_model_len: options.MaxModelLen = None,
    max_num_seqs: options.MaxNumSeqs = "256",
    block_size: options.BlockSize = "64",
    rows_cap: Annotated[
        str | None, typer.Option("--rows-cap", help="Rows instead of vLLM's 64k at most; a list sweeps it.")
    ] = None,
    dtype: options.Dtype = "bf16",
    format_name: options.Format = None,
    output: options.Output = None,
    explain: options.Explain = False,
) -> None:
    """Chunked prefill's buffers in vLLM, the up-projection's transients, and cache tokens in their place."""
    loaded, layout = load_model(model), load_layout(dtype)
    mla = request.mla_of(loaded, "workspace")
    length = request.one(request.max_model_lens(max_model_len, loaded), "--max-model-len")
    requests = parse_count(max_num_seqs, "--max-num-seqs", most=request.MAX_SEQS)
    block = parse_count(block_size, "--block-size", most=request.MAX_BLOCK)
    tps = parse_counts(tp, "--tp", most=request.MAX_TP)
    caps = parse_counts(rows_cap, "--rows-cap") if rows_cap is not None else (None,)
    request.check_records(len(tps) * len(caps))
    costs = []
    for ranks in tps:
        check_tp(loaded, ranks)
        per_token = token_bytes(loaded, layout, tp=ranks).growing
        costs += [
            workspace_cost(
                mla,
                max_model_len=length,
                cache_bytes_per_token=per_token,
                tp=ranks,
                max_num_seqs=requests,
                block_size=block,
                rows_cap=cap,
            )
            for cap in caps
        ]
    report = _report(loaded, layout, costs)
    if explain:
        report = replace(report, explanations=_explanations(loaded, layout, costs))
    emit(report, format_name, output, explain)


def _report(model: Model, layout: Layout, costs: list[WorkspaceCost]) -> Report:
    single, first = len(costs) == 1, costs[0]
    sources = request.input_sources((model,), (layout,), None)
    return Report(
        command="workspace",
        title=f"{model.name}   {request.geometry(model)}, cache in {layout.name}",
        subtitle="vLLM's rule for dense MLA",
        inputs={
            "model": model.name,
            "dtype": layout.name,
            "max_model_len": first.max_model_len,
            "max_num_seqs": first.max_num_seqs,
            "block_size": first.block_size,
            **request.axes_of(costs, ("tp", "rows_cap")),
        },
        results=request.results_of([plain(cost) for cost in costs], single),
        tables=(_single_table(first) if single else _list_table(costs),),
        sentence=_sentence(first),
        notes=tuple(_notes(model, first)),
        sources=(
            "vllm 0.33.0 (PyPI) vllm/model_executor/layers/attention/mla_attention.py",
            *request.source_list(sources),
        ),
        input_sources=sources,
    )


COMMENTED_BYTES = 2 * 576 * 65536
"""The buffer that the comment in vLLM's source works out."""

_LABELS = {
    "latent_bytes": "latent rows, allocated once",
    "kv_nope_bytes": "kv_nope: the up-projection's output",
    "v_bytes": "  of which values (a view of it)",
    "k_bytes": "keys, assembled from it",
    "transient_peak_bytes": "transients at their peak",
    "reserved_bytes": "reserved by the profile run",
}


def _single_table(cost: WorkspaceCost) -> Table:
    rows = tuple(
        (label, Cell(path, "bytes"), Cell(path, "binary"), Cell(path, "decimal")) for path, label in _LABELS.items()
    )
    return Table(("", "bytes", "", ""), rows, f"{cost.rows:,} rows, TP {cost.tp}; per rank")


def _list_table(costs: list[WorkspaceCost]) -> Table:
    rows = tuple(
        (
            Cell(f"[{index}].tp"),
            Cell(f"[{index}].rows"),
            *(
                Cell(f"[{index}].{name}", "binary")
                for name in ("latent_bytes", "reserved_bytes", "transient_peak_bytes")
            ),
            Cell(f"[{index}].cache_tokens_worth"),
            Cell(f"[{index}].cache_tokens_given_back"),
        )
        for index in range(len(costs))
    )
    return Table(("TP", "rows", "latent", "reserved", "peak", "worth, tokens", "given back"), rows)


def _sentence(cost: WorkspaceCost) -> str:
    held = fmt.binary_bytes(cost.held_bytes)
    text = (
        f"{fmt.binary_bytes(cost.latent_bytes)} of latent rows become {fmt.binary_bytes(cost.k_bytes)} of keys "
        f"({fmt.factor(cost.expansion_ratio)}). Buffer and reserve, {held} together, take the place "
        f"of {cost.cache_tokens_worth:,} tokens of cache"
    )
    back = cost.cache_tokens_given_back
    if back is not None:
        gives = f"gives back {back:,}" if back >= 0 else f"takes {-back:,} more"
        text += f"; against vLLM's own cap this one {gives}"
    return text + "."


def _notes(model: Model, cost: WorkspaceCost) -> list[str]:
    notes = []
    if cost.latent_bytes == COMMENTED_BYTES:
        notes.append("vLLM's comment labels this buffer 144mb, twice its own formula: 2*576*65536 B are 72 MiB.")
    if cost.cache_tokens_given_back is None:
        notes.append("A smaller workspace to compare with is set by --rows-cap (cache_tokens_given_back: null).")
    if cost.transient_peak_bytes > cost.reserved_bytes:
        notes.append("The profile run does not reserve the keys: they come from what memory is left.")
    else:
        notes.append("Without rope the keys are a view of kv_nope: nothing is copied.")
    notes.append("How a batch is cut into chunks is not planned here (chunks: null).")
    if model.indexer:
        notes.append(f"{model.name} has an indexer: vLLM's sparse backends cap the rows further, which is not applied.")
    return [*notes, *request.model_notes(model)]


def _explanations(model: Model, layout: Layout, costs: list[WorkspaceCost]) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    cost = costs[0]
    names = {
        **formulas.attention_names(model, layout, tp=cost.tp),
        **{key: getattr(cost, key) for key in ("rows", "rows_cap", "max_model_len", "max_num_seqs", "block_size")},
        "bytes_per_token": token_bytes(model, layout, tp=cost.tp).growing,
    }
    texts = formulas.workspace_formulas(bool(model.mla and model.mla.qk_rope_head_dim))
    return request.explanations(texts, names, single=len(costs) == 1)
