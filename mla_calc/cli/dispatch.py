"""``mla-calc dispatch``: which path each row of a batch takes in an engine, why, and what that loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from ..costs.chunks import equal_chunks
from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.sparse import first_contexts, indexer_of, paths_of
from ..engines.batch import Decision, Resolution, Row
from ..engines.load import load_engine
from ..engines.preset import Engine
from ..engines.pricing import BatchCost, RowCost, Setting, price_batch, price_rows, row_kernels
from ..engines.rules import Situation, backend_of, rules_of
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..models.attention import Indexer
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..report.write import emit
from ..sizes import parse_count
from . import options, request
from . import sparse as dsa
from .rows import read_rows
from .situation import Cc, EngineName, situation_of

app = options.command_app()

MOST_SHOWN = 40
"""Rows that a table lists; the JSON has all of them."""
BAR = 30
"""Characters of the longest bar of a scan."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A batch with what decides and prices it."""

    engine: Engine
    backend: str
    resolution: Resolution | None
    situation: Situation
    rows: tuple[Row, ...]
    setting: Setting
    gpu: GPU | None
    mma_dtype: str
    indexer: Indexer | None
    """Of sparse attention, where that is what is priced."""


@app.command()
def dispatch(
    model: options.Model,
    rows: Annotated[
        str, typer.Option("--rows", help="queries:prefix rows: 1:4096,8x1:8192,100:4096; or a CSV or JSON file.")
    ],
    gpu: options.Gpu = None,
    cc: Cc = None,
    engine: EngineName = "vllm",
    backend: Annotated[str | None, typer.Option("--backend", help="Instead of the one that the engine takes.")] = None,
    tp: Annotated[str, typer.Option("--tp", help="Tensor-parallel ranks.")] = "1",
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    dcp: Annotated[str, typer.Option("--dcp", help="Decode-context-parallel ranks.")] = "1",
    dcp_interleave: Annotated[str, typer.Option("--dcp-interleave", help="Tokens that stay together under DCP.")] = "1",
    spec_tokens: Annotated[str, typer.Option("--spec-tokens", help="Speculative tokens per step.")] = "0",
    runner: Annotated[str | None, typer.Option("--runner", help="vLLM's model runner: v1 or v2.")] = None,
    threshold: Annotated[str | None, typer.Option("--threshold", help="vLLM: decode threshold, in queries.")] = None,
    prefix_threshold: Annotated[
        str | None, typer.Option("--prefix-threshold", help="SGLang: chunked-prefix threshold, in tokens; may be 0.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="SGLang: decode or extend, where one-token rows leave it open.")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="SGLang: inside a captured CUDA graph.")] = False,
    deterministic: Annotated[bool, typer.Option("--deterministic", help="SGLang: deterministic inference.")] = False,
    as_run: Annotated[
        bool, typer.Option("--as-run", help="Price the naive path with its gather, copies and merges.")
    ] = False,
    sparse: options.Sparse = False,
    scan: Annotated[bool, typer.Option("--scan", help="Regret of the batch over the threshold.")] = False,
    format_name: options.Format = None,
    output: options.Output = None,
    explain: options.Explain = False,
) -> None:
    """Which path each row of a batch takes in vLLM or SGLang, the rule that decided, and the time it loses."""
    loaded = load_engine(engine)
    _refuse_foreign(loaded, threshold=threshold, runner=runner, prefix_threshold=prefix_threshold, mode=mode)
    situation = situation_of(
        model,
        gpu,
        cc,
        tp=tp,
        dtype=dtype,
        dcp=dcp,
        interleave=parse_count(dcp_interleave, "--dcp-interleave", most=request.MAX_BLOCK),
        spec_tokens=parse_count(spec_tokens, "--spec-tokens", least=0, most=1024),
        runner=_one_of(runner, "--runner", ("v1", "v2")),
        threshold=None if threshold is None else parse_count(threshold, "--threshold"),
        prefix_threshold=None
        if prefix_threshold is None
        else parse_count(prefix_threshold, "--prefix-threshold", least=0),
        mode=_one_of(mode, "--mode", ("decode", "extend")),
        graph=graph,
        deterministic=deterministic,
    )
    case = _case(loaded, situation, read_rows(rows), backend, gpu, mma_dtype, dtype, as_run, sparse)
    decisions = rules_of(loaded).dispatch(loaded, case.backend, case.rows, situation)
    scanned = _scan(case) if scan else None
    report = _report(case, decisions, scanned, as_run)
    if explain:
        report = replace(report, explanations=_explanations(case))
    emit(report, format_name, output, explain)


def _refuse_foreign(engine: Engine, **given: str | None) -> None:
    """Refuse an option that the engine does not know."""
    foreign = ("prefix_threshold", "mode") if engine.engine == "vllm" else ("threshold", "runner")
    for name in foreign:
        if given[name] is not None:
            raise InputError(f"--{name.replace('_', '-')} is no option of {engine.name}")


def _one_of(text: str | None, option: str, accepted: tuple[str, ...]) -> str | None:
    if text is not None and text not in accepted:
        raise InputError(f"{option} {shown(text)}: one of {', '.join(accepted)} is accepted")
    return text


def _case(
    engine: Engine,
    situation: Situation,
    rows: tuple[Row, ...],
    named: str | None,
    gpu: str | None,
    mma_dtype: str,
    dtype: str,
    as_run: bool,
    sparse: bool,
) -> _Case:
    mla, indexer = request.mla_of(situation.model, "dispatch"), indexer_of(situation.model, sparse)
    card, ceilings = request.ceilings_of(gpu, mma_dtype)
    backend, resolution = backend_of(engine, situation, named)
    setting = Setting(
        mla=mla,
        layers=situation.model.cached_layers,
        row_bytes=latent_row_bytes(load_layout(dtype), mla),
        tp=situation.tp,
        ceilings=ceilings,
        paths=paths_of(indexer),
        as_run=as_run,
        chunks=_chunks(engine, rows),
        indexing=indexer.layers if indexer else None,
    )
    return _Case(engine, backend, resolution, situation, rows, setting, card, mma_dtype, indexer)


def _chunks(engine: Engine, rows: Sequence[Row]) -> int:
    """Chunks in which the batch's prefixes are expanded: each leaves a partial output to merge."""
    prefixes = [row.prefix for row in rows]
    if engine.chunk_capacity is not None and any(prefixes):
        return len(equal_chunks(prefixes, engine.chunk_capacity.tokens, sharers=len(rows)))
    cap = engine.workspace.rows_cap if engine.workspace else max(1, sum(prefixes))
    return max(1, -(-sum(prefixes) // cap))


def _priced(case: _Case, decisions: Sequence[Decision]) -> tuple[tuple[RowCost, ...], BatchCost]:
    costs = price_rows(case.rows, decisions, case.setting)
    return costs, price_batch(costs, case.setting)


def _scan(case: _Case) -> list[dict[str, Any]]:
    """The batch's regret at every threshold that changes anything: the lengths of its rows, and around them."""
    if case.setting.ceilings is None:
        raise InputError("--scan compares times: give --gpu")
    vllm = case.engine.engine == "vllm"
    lengths = [row.queries for row in case.rows] if vllm else [sum(row.prefix for row in case.rows)]
    found = []
    for value in _edges(lengths, 1 if vllm else 0):
        at = replace(case.situation, **{"threshold" if vllm else "prefix_threshold": value})  # type: ignore[arg-type]
        decisions = rules_of(case.engine).dispatch(case.engine, case.backend, case.rows, at)
        batch = _priced(case, decisions)[1]
        found.append(
            {
                "threshold": value,
                "absorbed_rows": batch.absorbed_rows,
                "chosen_bound_s": batch.chosen_bound_s,
                "regret_s": batch.regret_s,
            }
        )
    return found


def _edges(lengths: Sequence[int], least: int) -> list[int]:
    """Thresholds on either side of every length: between two of them nothing changes."""
    return sorted({max(least, length + step) for length in lengths for step in (-1, 0, 1)} | {least})


def _report(case: _Case, decisions: Sequence[Decision], scanned: list[dict[str, Any]] | None, as_run: bool) -> Report:
    costs, batch = _priced(case, decisions)
    model, situation = case.situation.model, case.situation
    sources = request.input_sources((model,), (), case.gpu)
    return Report(
        command="dispatch",
        title=f"{model.name} in {case.engine.name}   {case.backend}, {situation.cache_dtype} cache, TP {situation.tp}",
        subtitle=request.gpu_phrase(case.gpu, case.mma_dtype) if case.gpu else "",
        inputs=_inputs(case, as_run),
        results={
            "backend": case.backend,
            "resolved": case.resolution is not None,
            "threshold": _threshold(case),
            "rows": plain(costs),
            "batch": plain(batch),
            "sparse": _sparse(case),
            "scan": scanned,
        },
        tables=tuple(_tables(case, costs, scanned)),
        sentence=_sentence(batch),
        notes=tuple(_notes(case, costs, as_run)),
        sources=request.source_list(sources),
        input_sources=sources,
        rows_path="rows",
    )


def _sparse(case: _Case) -> dict[str, Any] | None:
    """From which context on one sparse query takes less than a dense one; ``None`` where dense ones are priced."""
    if case.indexer is None:
        return None
    in_bytes, in_flop = first_contexts(case.setting.mla, case.indexer, case.setting.row_bytes, case.setting.tp)
    return {"first_context_bytes": in_bytes, "first_context_flop": in_flop}


def _inputs(case: _Case, as_run: bool) -> dict[str, Any]:
    at = case.situation
    return {
        "model": at.model.name,
        "engine": case.engine.name,
        "gpu": case.gpu.name if case.gpu else None,
        "mma_dtype": case.mma_dtype,
        "dtype": at.cache_dtype,
        "tp": at.tp,
        "dcp": at.dcp,
        "spec_tokens": at.spec_tokens,
        "mode": at.mode,
        "graph": at.graph,
        "as_run": as_run,
        "sparse": case.indexer is not None,
        "rows": [f"{row.queries}:{row.prefix}" for row in case.rows],
    }


def _threshold(case: _Case) -> int | None:
    """The constant that the engine compares with here, if there is one."""
    at, engine = case.situation, case.engine
    if engine.engine == "vllm":
        from ..engines.vllm import effective_threshold

        backend = next(backend for backend in engine.backends if backend.name == case.backend)
        return effective_threshold(
            engine,
            backend,
            heads_per_rank=at.heads_per_rank,
            major=at.major,
            spec_tokens=at.spec_tokens,
            dcp=at.dcp,
            interleave=at.interleave,
            override=at.threshold,
        )[0]
    if engine.prefix_threshold is None or case.backend not in engine.prefix_threshold.handlers:
        return None
    return engine.prefix_threshold.tokens if at.prefix_threshold is None else at.prefix_threshold


def _tables(case: _Case, costs: Sequence[RowCost], scanned: list[dict[str, Any]] | None) -> list[Table]:
    timed = case.setting.ceilings is not None
    figures = (("absorbed_bound_s", "seconds"), ("naive_bound_s", "seconds"), ("regret_s", "seconds"))
    counts = (("absorbed.flop", "flop"), ("naive.flop", "flop"))
    rows = tuple(
        (
            Cell(f"rows[{index}].queries"),
            Cell(f"rows[{index}].prefix"),
            Cell(f"rows[{index}].path", "text"),
            *(Cell(f"rows[{index}].{path}", kind) for path, kind in (figures if timed else counts)),
        )
        for index in range(min(len(costs), MOST_SHOWN))
    )
    named = ("absorbed", "naive", "regret") if timed else ("absorbed", "naive")
    caption = "per rank and layer, weights left out"
    tables = [Table(("queries", "prefix", "path", *named), rows, caption), _rule_table(costs)]
    if scanned:
        tables.append(_scan_table(scanned))
    return tables


def _rule_table(costs: Sequence[RowCost]) -> Table:
    """Every rule once, with the rows that it decided."""
    decided: dict[str, list[int]] = {}
    for index, cost in enumerate(costs):
        decided.setdefault(cost.rule, []).append(index)
    rows = tuple((_numbers(indices), Cell(f"rows[{indices[0]}].rule", "text")) for indices in decided.values())
    return Table(("row", "rule"), rows)


def _numbers(indices: list[int], most: int = 4) -> str:
    text = ", ".join(map(str, indices[:most]))
    return text + (f", {len(indices) - most} more" if len(indices) > most else "")


def _scan_table(scanned: list[dict[str, Any]]) -> Table:
    worst = max(entry["regret_s"] for entry in scanned) or 1.0
    rows = tuple(
        (
            Cell(f"scan[{index}].threshold"),
            Cell(f"scan[{index}].absorbed_rows"),
            Cell(f"scan[{index}].regret_s", "seconds"),
            "#" * round(BAR * entry["regret_s"] / worst),
        )
        for index, entry in enumerate(scanned)
    )
    return Table(("threshold", "absorbed rows", "regret", ""), rows, "Regret of the batch by threshold")


def _sentence(batch: BatchCost) -> str:
    split = f"{fmt.counted(batch.absorbed_rows, 'row')} absorbed, {batch.naive_rows:,} expanded"
    if batch.chosen_bound_s is None or batch.best_bound_s is None or batch.regret_s is None:
        return f"{split}."
    taken, best = fmt.seconds(batch.chosen_bound_s), fmt.seconds(batch.best_bound_s)
    if batch.regret_s <= 0:
        return f"{split}. The batch takes {taken} a layer at least, and no other choice is better."
    share = fmt.percent(batch.regret_s / batch.best_bound_s)
    return f"{split}. The batch takes {taken} a layer at least, {best} by the best choice: a regret of {share}."


def _notes(case: _Case, costs: Sequence[RowCost], as_run: bool) -> list[str]:
    notes = ["Rows are put into the engine's own order before it decides, and listed in the order given."]
    if case.setting.ceilings is None:
        notes.append("No --gpu: times and regret are left out.")
    else:
        notes.append("Regret is time lost against the better path, by bounds; the batch adds each path's weights once.")
    if not as_run:
        notes.append(
            "The gather of cached rows, the copy of the keys and the merge of chunks are not priced: --as-run."
        )
    found = _sparse(case)
    if found:
        notes += dsa.first_context_notes(**found)
    notes += dsa.notes(case.situation.model, case.indexer, case.setting.ceilings is not None)
    if len(costs) > MOST_SHOWN:
        notes.append(f"The first {MOST_SHOWN} of {len(costs):,} rows are listed; the JSON has all.")
    return [*notes, *request.model_notes(case.situation.model)]


def _explanations(case: _Case) -> tuple[Explanation, ...]:
    """How the first row's figures come about: its kernels' counts, and the bounds that they give."""
    found = []
    ceilings = case.setting.ceilings
    for name in case.setting.paths:
        kernels = row_kernels(name, case.rows[0], case.setting)
        names: dict[str, int | float] = {f"{kernel.name}_flop": kernel.flop for kernel in kernels}
        names |= {f"{kernel.name}_bytes": kernel.bytes for kernel in kernels}
        for figure in ("flop", "bytes"):
            summed = " + ".join(f"{kernel.name}_{figure}" for kernel in kernels)
            found.append(Explanation(f"rows[0].{name}.{figure}", summed, names, "the sum over the path's kernels"))
        if ceilings:
            names |= {"peak_flop_per_s": ceilings.flop_per_s, "bandwidth_bytes_per_s": ceilings.bytes_per_s}
            bounds = " + ".join(
                f"max({kernel.name}_flop / peak_flop_per_s, {kernel.name}_bytes / bandwidth_bytes_per_s)"
                for kernel in kernels
            )
            cite = "one kernel after another, weights left out"
            found.append(Explanation(f"rows[0].{name}_bound_s", bounds, names, cite))
    return tuple(found)
