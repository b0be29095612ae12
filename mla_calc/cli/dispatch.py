"""``mla-calc dispatch``: which path each row of a batch takes in an engine, why, and what that loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from ..costs.chunks import equal_share
from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.sparse import indexer_of, paths_of
from ..engines.batch import Row
from ..engines.load import load_engine
from ..engines.preset import Engine
from ..engines.pricing import Setting, price_batch, tabulate
from ..engines.rules import Situation, backend_of, rules_of
from ..errors import InputError, shown
from ..report.record import Report
from ..sizes import parse_count
from . import options, request
from .command import add_command
from .dispatch_report import Case, explanations, report_of
from .rows import read_rows
from .situation import Aiter, Cc, EngineName, situation_of

app = options.command_app()

MOST_TRIED = 64
"""Thresholds that a scan tries."""


def answer(
    model: options.Model,
    *,
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
    context_parallel: Annotated[
        bool, typer.Option("--context-parallel", help="SGLang: context parallelism of the prefill.")
    ] = False,
    no_ragged: Annotated[bool, typer.Option("--no-ragged", help="SGLang: --flashinfer-mla-disable-ragged.")] = False,
    no_chunked_prefix: Annotated[
        bool, typer.Option("--no-chunked-prefix", help="SGLang: --disable-chunked-prefix-cache.")
    ] = False,
    parallel_drafting: Annotated[
        bool, typer.Option("--parallel-drafting", help="vLLM: drafts are verified beside as many masked tokens.")
    ] = False,
    force_mqa: Annotated[bool, typer.Option("--force-mqa", help="vLLM: sparse_mla_force_mqa.")] = False,
    aiter: Aiter = False,
    as_run: Annotated[
        bool, typer.Option("--as-run", help="Price the naive path with its gather, copies and merges.")
    ] = False,
    sparse: options.Sparse = False,
    scan: Annotated[bool, typer.Option("--scan", help="Regret of the batch over the threshold.")] = False,
    explain: options.Explain = False,
    given: frozenset[str] = frozenset(),
) -> Report:
    """Which path each row of a batch takes in vLLM or SGLang, the rule that decided, and the time it loses.

    ``given``: the options that were typed, of which one that does not count is refused.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded = load_engine(engine)
    _refuse_foreign(given, loaded)
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
        context_parallel=context_parallel,
        ragged=not no_ragged,
        chunked_prefix=not no_chunked_prefix,
        parallel_drafting=parallel_drafting,
        force_mqa=force_mqa,
        aiter=aiter,
    )
    case = _case(loaded, situation, read_rows(rows), backend, gpu, mma_dtype, as_run, sparse)
    decisions = rules_of(loaded).dispatch(loaded, case.backend, case.rows, situation)
    scanned = _scan(case) if scan else None
    report = report_of(case, decisions, scanned, as_run)
    if explain:
        assert isinstance(report.results, dict)
        report = replace(report, explanations=explanations(case, decisions, report.results))
    return report


dispatch = add_command(app, answer)


OPTIONS_OF = {
    "vllm": ("threshold", "runner", "spec_tokens", "dcp_interleave", "parallel_drafting", "force_mqa", "aiter"),
    "sglang": (
        "prefix_threshold",
        "mode",
        "graph",
        "deterministic",
        "context_parallel",
        "no_ragged",
        "no_chunked_prefix",
    ),
}
"""Options that one engine's rules look at and no other's."""


def _refuse_foreign(given: frozenset[str], engine: Engine) -> None:
    """Refuse an option that the engine does not know."""
    foreign = [name for owner, names in OPTIONS_OF.items() if owner != engine.engine for name in names]
    for name in foreign:
        if name in given:
            raise InputError(
                f"{options.spelled(name)} is no option of {engine.name}",
                "a verification of drafts takes the branch of --mode decode" if name == "spec_tokens" else None,
            )


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
    as_run: bool,
    sparse: bool,
) -> Case:
    mla, indexer = request.mla_of(situation.model, "dispatch"), indexer_of(situation.model, sparse)
    card, ceilings = request.ceilings_of(gpu, mma_dtype)
    backend, resolution = backend_of(engine, situation, named)
    verdict = rules_of(engine).verdict(engine, backend, situation)
    layout = load_layout(verdict.stored_as)
    setting = Setting(
        mla=mla,
        layers=situation.model.cached_layers,
        row_bytes=latent_row_bytes(layout, mla),
        tp=situation.tp,
        ceilings=ceilings,
        paths=paths_of(indexer),
        as_run=as_run,
        chunks=_chunks(engine, rows),
        indexing=indexer.layers if indexer else None,
    )
    return Case(
        engine=engine,
        backend=backend,
        resolution=resolution,
        situation=situation,
        rows=rows,
        table=tabulate(rows, setting),
        gpu=card,
        mma_dtype=mma_dtype,
        indexer=indexer,
        named=named is not None,
        refusal=verdict.refusal if named is not None else None,
        stored_as=None if layout.name == situation.cache_dtype else layout.name,
    )


def _chunks(engine: Engine, rows: Sequence[Row]) -> int:
    """Chunks in which the batch's prefixes are expanded: each leaves a partial output to merge."""
    prefixes = [row.prefix for row in rows]
    if engine.chunk_capacity is not None and any(prefixes):
        _, count = equal_share(prefixes, engine.chunk_capacity.tokens, sharers=len(rows))
        return count
    cap = engine.workspace.rows_cap if engine.workspace else max(1, sum(prefixes))
    return max(1, -(-sum(prefixes) // cap))


def _scan(case: Case) -> list[dict[str, Any]]:
    """The batch's regret at the thresholds that change anything, and at the one in force."""
    if case.setting.ceilings is None:
        raise InputError("--scan compares times: give --gpu")
    in_force = rules_of(case.engine).threshold(case.engine, case.backend, case.situation)
    if in_force is None:
        raise InputError(f"--scan: {case.backend} compares with no threshold")
    vllm = case.engine.engine == "vllm"
    prefixes = sum(row.prefix for row in case.rows)
    steps = {1, *(row.queries for row in case.rows)} if vllm else {0, prefixes, prefixes + 1}
    found = []
    for value in sorted({*_spread(sorted(steps)), in_force}):
        at = replace(case.situation, **{"threshold" if vllm else "prefix_threshold": value})  # type: ignore[arg-type]
        decisions = rules_of(case.engine).dispatch(case.engine, case.backend, case.rows, at)
        batch = price_batch(case.table, decisions)
        found.append(
            {
                "threshold": value,
                "in_force": value == in_force,
                "absorbed_rows": batch.absorbed_rows,
                "chosen_bound_s": batch.chosen_bound_s,
                "regret_s": batch.regret_s,
            }
        )
    return found


def _spread(values: Sequence[int]) -> list[int]:
    """As many of the values as a scan tries, evenly among them, the ends included.

    A threshold changes nothing between two neighbouring lengths, so that the lengths alone are tried.
    """
    if len(values) <= MOST_TRIED:
        return list(values)
    return [values[place * (len(values) - 1) // (MOST_TRIED - 1)] for place in range(MOST_TRIED)]
