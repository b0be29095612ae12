"""``mla-calc workspace``: what chunked prefill sets aside, and what a smaller workspace gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Annotated, Any

import typer

from ..costs.cache import token_bytes
from ..costs.chunks import Chunk, equal_chunks, greedy_chunks
from ..costs.layouts import Layout, load_layout
from ..costs.sharding import check_tp
from ..costs.workspace import ExpansionCost, WorkspaceCost, WorkspaceRule, expansion_cost, workspace_cost
from ..engines.batch import Row
from ..engines.load import load_engine
from ..engines.preset import Engine, SparsePrefill
from ..errors import InputError
from ..models.attention import Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from ..sizes import parse_count, parse_counts
from . import complete, options, request
from .command import add_command
from .rows import read_rows

app = options.command_app()

MOST_SHOWN = 20
"""Chunks of a plan that a table lists; the JSON has all of them."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was asked for: the engine with its rule, and the sizes that the rule takes."""

    model: Model
    layout: Layout
    engine: Engine
    dcp: int
    interleave: int
    buffer_value_bytes: int
    rows: tuple[Row, ...]
    """The batch, empty where none was given."""

    @property
    def prefixes(self) -> tuple[int, ...]:
        """Tokens that each row has cached."""
        return tuple(row.prefix for row in self.rows)

    @property
    def rule(self) -> WorkspaceRule:
        """The engine's rule. Raises InputError where none was read for the release."""
        if self.engine.workspace is None:
            raise InputError(f"no workspace rule was read for {self.engine.name}")
        return self.engine.workspace


def answer(
    model: options.Model,
    *,
    tp: options.Tp = "1",
    max_model_len: options.MaxModelLen = None,
    max_num_seqs: options.MaxNumSeqs = "256",
    block_size: options.BlockSize = "64",
    rows_cap: Annotated[
        str | None, typer.Option("--rows-cap", help="Rows instead of the engine's own cap; a list sweeps it.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", help="Prefills, 600:60000,31x600:16 or a CSV or JSON file: plans chunks.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Engine release: vllm, sglang, vllm@0.29.", autocompletion=complete.engines)
    ] = "vllm",
    dcp: Annotated[str, typer.Option("--dcp", help="Decode-context-parallel ranks.")] = "1",
    dcp_interleave: Annotated[str, typer.Option("--dcp-interleave", help="Tokens that stay together under DCP.")] = "1",
    fp8_prefill: Annotated[
        bool, typer.Option("--fp8-prefill", help="Rows are gathered in fp8 (fp8 cache, quantised queries, SM10x).")
    ] = False,
    dtype: options.Dtype = "bf16",
    explain: options.Explain = False,
) -> Report:
    """Chunked prefill's buffers by an engine's rule, its chunks for a batch, and cache tokens in their place.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    mla = request.mla_of(loaded, "workspace")
    tps = parse_counts(tp, "--tp", most=request.MAX_TP)
    for ranks in tps:
        check_tp(loaded, ranks)
    plan = _Plan(
        model=loaded,
        layout=layout,
        engine=load_engine(engine),
        dcp=parse_count(dcp, "--dcp", most=request.MAX_TP),
        interleave=parse_count(dcp_interleave, "--dcp-interleave", most=request.MAX_BLOCK),
        buffer_value_bytes=1 if fp8_prefill else 2,
        rows=read_rows(rows) if rows is not None else (),
    )
    if any(ranks % plan.dcp for ranks in tps):
        raise InputError(f"--dcp {plan.dcp} does not divide --tp {', '.join(map(str, tps))}")
    if plan.engine.engine == "sglang":
        if rows_cap is not None or plan.dcp > 1 or fp8_prefill:
            raise InputError("--rows-cap, --dcp and --fp8-prefill are of vLLM's workspace; SGLang sets none aside")
        costs: list[Any] = [expansion_cost(mla, rows=_capacity(plan.engine), tp=ranks) for ranks in tps]
        return _report(plan, costs, None)
    if fp8_prefill and layout.name != "fp8":
        raise InputError(
            f"--fp8-prefill: rows of the cache layout {layout.name} are not gathered in fp8",
            "those of --dtype fp8 are, with quantised queries on SM10x",
        )
    length = request.one(request.max_model_lens(max_model_len, loaded), "--max-model-len")
    requests = parse_count(max_num_seqs, "--max-num-seqs", most=request.MAX_SEQS)
    block = parse_count(block_size, "--block-size", most=request.MAX_BLOCK)
    caps = parse_counts(rows_cap, "--rows-cap") if rows_cap is not None else (None,)
    request.check_records(len(tps) * len(caps))
    costs = [
        workspace_cost(
            mla,
            max_model_len=length,
            cache_bytes_per_token=token_bytes(loaded, layout, tp=ranks).growing,
            tp=ranks,
            max_num_seqs=requests,
            block_size=block,
            rows_cap=cap,
            rule=plan.rule,
            indexer=loaded.indexer,
            dcp=plan.dcp,
            interleave=plan.interleave,
            buffer_value_bytes=plan.buffer_value_bytes,
        )
        for ranks in tps
        for cap in caps
    ]
    report = _report(plan, costs, block)
    if explain:
        report = replace(report, explanations=_explanations(plan, costs))
    return report


workspace = add_command(app, answer)


def _capacity(engine: Engine) -> int:
    if engine.chunk_capacity is None:
        raise InputError(f"no chunk capacity was read for {engine.name}")
    return engine.chunk_capacity.tokens


def _chunks(plan: _Plan, cost: WorkspaceCost | ExpansionCost, block: int | None) -> tuple[Chunk, ...] | None:
    """The chunks of the batch, or ``None`` where none was given or the engine has no chunks for the model."""
    if not plan.rows:
        return None
    if isinstance(cost, ExpansionCost):
        if plan.model.indexer:
            return None
        return equal_chunks(plan.prefixes, cost.rows, sharers=len(plan.rows))
    assert block is not None
    step = lcm(block, plan.dcp * plan.interleave) if plan.dcp > 1 else block
    if plan.engine.chunk_plan == "greedy":
        return greedy_chunks(plan.prefixes, cost.rows, step)
    if plan.engine.chunk_plan == "equal":
        return equal_chunks(plan.prefixes, cost.rows, step)
    raise InputError(f"how {plan.engine.name} cuts a batch into chunks was not read")


def _report(plan: _Plan, costs: Sequence[WorkspaceCost | ExpansionCost], block: int | None) -> Report:
    single, first = len(costs) == 1, costs[0]
    sources = request.input_sources((plan.model,), (plan.layout,), None)
    planned = [_chunks(plan, cost, block) for cost in costs]
    records = [
        {**plain(cost), "chunk_count": None if chunks is None else len(chunks), "chunks": plain(chunks)}
        for cost, chunks in zip(costs, planned, strict=True)
    ]
    names = ("tp", "max_model_len", "max_num_seqs", "block_size", "rows_cap")
    return Report(
        command="workspace",
        title=f"{plan.model.name}   {request.geometry(plan.model)}, cache in {plan.layout.name}",
        subtitle=f"{plan.engine.name}, {'DSA' if plan.model.indexer else 'dense MLA'}",
        inputs={
            "model": plan.model.name,
            "dtype": plan.layout.name,
            "engine": plan.engine.name,
            "dcp": plan.dcp,
            "rows": [f"{row.queries}:{row.prefix}" for row in plan.rows],
            **request.axes_of(costs, tuple(name for name in names if hasattr(first, name))),
        },
        results=request.results_of(records, single),
        tables=tuple(_tables(plan, costs, planned)),
        sentence=_sentence(first, planned[0], single),
        notes=tuple(_notes(plan, costs)),
        sources=(*_rule_sources(plan.engine), *request.source_list(sources)),
        input_sources=sources,
        csv_rows=tuple({key: value for key, value in record.items() if key != "chunks"} for record in records),
    )


def _rule_sources(engine: Engine) -> list[str]:
    return [part.source for part in (engine.workspace, engine.chunk_capacity) if part is not None]


_LABELS = {
    "latent_bytes": "latent rows, allocated once",
    "kv_nope_bytes": "kv_nope: the up-projection's output",
    "v_bytes": "  of which values (a view of it)",
    "k_bytes": "keys, assembled from it",
    "transient_peak_bytes": "transients at their peak",
    "reserved_bytes": "reserved by the profile run",
    "sparse_prefill_bytes": "sparse prefill workspace",
    "indexer_buffer_bytes": "indexer's key buffer",
}


def _tables(
    plan: _Plan, costs: Sequence[WorkspaceCost | ExpansionCost], planned: Sequence[tuple[Chunk, ...] | None]
) -> list[Table]:
    if len(costs) > 1:
        return [_list_table(costs, sparse=plan.model.indexer is not None, with_chunks=planned[0] is not None)]
    cost, chunks = costs[0], planned[0]
    rows = tuple(
        (label, Cell(path, "bytes"), Cell(path, "binary"), Cell(path, "decimal"))
        for path, label in _LABELS.items()
        if getattr(cost, path, 0)
    )
    tables = [Table(("", "bytes", "", ""), rows, f"{cost.rows:,} rows, TP {cost.tp}; per rank")]
    if chunks:
        tables.append(_chunk_table(chunks))
    return tables


def _chunk_table(chunks: tuple[Chunk, ...]) -> Table:
    rows = tuple(
        (str(index), Cell(f"chunks[{index}].tokens"), _pieces(chunk)) for index, chunk in enumerate(chunks[:MOST_SHOWN])
    )
    more = f"; the first {MOST_SHOWN}" if len(chunks) > MOST_SHOWN else ""
    return Table(("chunk", "tokens", "rows: stretch"), rows, fmt.counted(len(chunks), "chunk") + more)


def _pieces(chunk: Chunk, most: int = 3) -> str:
    texts = [f"{piece.row}: {piece.start:,} to {piece.start + piece.tokens:,}" for piece in chunk.pieces[:most]]
    more = len(chunk.pieces) - most
    return "; ".join(texts) + (f"; {more:,} more" if more > 0 else "")


def _list_table(costs: Sequence[WorkspaceCost | ExpansionCost], *, sparse: bool, with_chunks: bool) -> Table:
    columns = [("TP", "tp", "integer"), ("rows", "rows", "integer")]
    if isinstance(costs[0], WorkspaceCost):
        columns += [
            ("latent", "latent_bytes", "binary"),
            ("reserved", "reserved_bytes", "binary"),
            ("peak", "transient_peak_bytes", "binary"),
        ]
        if sparse:  # of a dense model it is latent and reserved, which stand there
            columns.append(("held", "held_bytes", "binary"))
        columns += [
            ("worth", "cache_tokens_worth", "integer"),
            ("freed", "cache_tokens_given_back", "integer"),
        ]
    else:
        columns += [("kv_nope", "kv_nope_bytes", "binary"), ("keys", "k_bytes", "binary")]
    if with_chunks:
        columns.append(("chunks", "chunk_count", "integer"))
    rows = tuple(tuple(Cell(f"[{index}].{path}", kind) for _, path, kind in columns) for index in range(len(costs)))
    caption = "per rank; worth and freed in tokens of cache" if isinstance(costs[0], WorkspaceCost) else "per rank"
    return Table(tuple(name for name, _, _ in columns), rows, caption)


def _sentence(cost: WorkspaceCost | ExpansionCost, chunks: tuple[Chunk, ...] | None, single: bool) -> str:
    where = "" if single else f"At TP {cost.tp} and {cost.rows:,} rows, "
    if isinstance(cost, ExpansionCost):
        # every entry of such a list has the same rows
        up_to = "Up to" if single else f"At TP {cost.tp}, up to"
        text = f"{up_to} {cost.rows:,} tokens are expanded at a time; nothing is set aside for them"
    else:
        held = fmt.binary_bytes(cost.held_bytes)
        text = (
            f"{where}{fmt.binary_bytes(cost.latent_bytes)} of latent rows become {fmt.binary_bytes(cost.k_bytes)} "
            f"of keys ({fmt.factor(cost.expansion_ratio)}). Buffer and reserve, {held} together, take the place "
            f"of {cost.cache_tokens_worth:,} tokens of cache"
        )
        back = cost.cache_tokens_given_back
        if back is not None:
            gives = f"gives back {back:,}" if back >= 0 else f"takes {-back:,} more"
            text += f"; against the engine's own cap this one {gives}"
    if chunks is not None:
        text += f". The batch's prefixes take {fmt.counted(len(chunks), 'chunk')}"
    return text + "."


COMMENTED_BYTES = 2 * 576 * 65536
"""The buffer that the comment in vLLM's source works out."""


def _notes(plan: _Plan, costs: Sequence[WorkspaceCost | ExpansionCost]) -> list[str]:
    cost, notes = costs[0], []
    if isinstance(cost, ExpansionCost):
        notes.append("SGLang reserves no buffer: latent_bytes, reserved_bytes and tokens given back are null.")
    else:
        notes += _vllm_notes(plan, [each for each in costs if isinstance(each, WorkspaceCost)])
    return [*notes, *_chunk_notes(plan, cost), *request.model_notes(plan.model)]


def _chunk_notes(plan: _Plan, cost: WorkspaceCost | ExpansionCost) -> list[str]:
    indexer = plan.model.indexer
    if indexer and isinstance(cost, ExpansionCost):
        return [
            f"SGLang's dsa handler expands in one shot where no sequence is longer than the top-k of {indexer.topk:,}, "
            "and is absorbed otherwise: nothing is cut into chunks (chunks: null)."
        ]
    if not plan.rows:
        return ["A batch to cut into chunks is given by --rows (chunks: null)."]
    notes = ["Every row with a prefix is taken to be expanded; which rows are, `dispatch` says."]
    lengths = sum(row.context for row in plan.rows)
    if isinstance(cost, ExpansionCost) and lengths <= cost.rows:
        handlers = plan.engine.handlers
        # aiter's one shot is under DCP alone, the dsa one's is of other models
        one_shot = [handler.name for handler in handlers if handler.one_shot and handler.kind == "shared"]
        chunked = [handler.name for handler in handlers if handler.chunked_prefix and not handler.one_shot]
        notes.append(
            f"The rows' lengths sum to {lengths:,}, which fits the chunk capacity: a handler with a one-shot form "
            f"({', '.join(one_shot)}) takes them in one call. The plan is that of a handler without one "
            f"({', '.join(chunked)}); which one it is, `dispatch` says."
        )
    return notes


def _vllm_notes(plan: _Plan, costs: Sequence[WorkspaceCost]) -> list[str]:
    notes, cost = [], costs[0]
    if cost.latent_bytes == COMMENTED_BYTES:
        notes.append("vLLM's comment labels this buffer 144mb, twice its own formula: 2*576*65536 B are 72 MiB.")
    if cost.cache_tokens_given_back is None:
        notes.append("A smaller workspace to compare with is set by --rows-cap (cache_tokens_given_back: null).")
    if plan.dcp > 1 and plan.buffer_value_bytes == 1:
        notes.append("Under DCP the buffer has the model's dtype, whatever --fp8-prefill says.")
    notes.append(_reserve_note(plan, costs))
    if plan.model.indexer:
        notes += _sparse_notes(plan, costs)
    return notes


def _reserve_note(plan: _Plan, costs: Sequence[WorkspaceCost]) -> str:
    """What the profile run's reserve leaves out of the peak."""
    if plan.model.mla and not plan.model.mla.qk_rope_head_dim:
        return "Without rope the keys are a view of kv_nope: nothing is copied."
    over = [max(0, cost.transient_peak_bytes - cost.reserved_bytes) for cost in costs]
    if not any(over):
        return "The profile run does not reckon with the keys, but what it reserves covers the peak."
    if len(costs) == 1:
        return (
            f"The profile run does not reserve the keys: {fmt.binary_bytes(over[0])} of the peak come from what memory "
            "is left."
        )
    which = "" if all(over) else " where it is above the reserve"
    return f"The profile run does not reserve the keys: the rest of the peak{which} comes from what memory is left."


def _sparse_notes(plan: _Plan, costs: Sequence[WorkspaceCost]) -> list[str]:
    notes = []
    if any(cost.rows != cost.reserved_rows for cost in costs):
        notes.append("The profile run reckons with the dense rule's rows, not with the sparse ones (vllm#57170).")
    if plan.rule.sparse_scratch is None:
        notes.append(
            f"What sparse backends keep besides was not read for {plan.engine.name}: sparse_prefill_bytes and "
            "indexer_buffer_bytes are null, and held_bytes and tokens are without them."
        )
    else:
        notes.append("The sparse prefill workspace is FLASHMLA_SPARSE's; other sparse backends may keep other scratch.")
    prefill = plan.engine.sparse_prefill
    if prefill and prefill.mask_bytes and plan.dcp == 1 and _has_masked_mha(plan.model, prefill):
        majors = ", ".join(f"{major}.x" for major in prefill.masked_mha_majors)
        notes.append(
            f"Masked MHA (compute capability {majors}, an unquantised cache) keeps "
            f"{fmt.binary_bytes(prefill.mask_bytes)} for its masks besides; held_bytes is without them."
        )
    return notes


def _has_masked_mha(model: Model, prefill: SparsePrefill) -> bool:
    mla = model.mla
    assert mla is not None
    dims = (mla.heads, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim)
    return dims in prefill.masked_mha_dims


def _explanations(plan: _Plan, costs: list[WorkspaceCost]) -> tuple[Explanation, ...]:
    from ..costs import formulas  # only where they are asked for: start-up counts

    cost, indexer = costs[0], plan.model.indexer
    step = lcm(cost.block_size, plan.dcp * plan.interleave) if plan.dcp > 1 else cost.block_size
    names = {
        **formulas.attention_names(plan.model, plan.layout, tp=cost.tp),
        **formulas.workspace_names(
            cost,
            plan.rule,
            index_topk=indexer.topk if indexer else 0,
            alignment=step,
            buffer_value_bytes=2 if plan.dcp > 1 else plan.buffer_value_bytes,
        ),
        "bytes_per_token": token_bytes(plan.model, plan.layout, tp=cost.tp).growing,
    }
    has_rope = bool(plan.model.mla and plan.model.mla.qk_rope_head_dim)
    texts = formulas.workspace_formulas(cost, has_rope, sparse=indexer is not None and plan.rule.sparse_cap)
    return request.explanations(texts, names, single=len(costs) == 1)
