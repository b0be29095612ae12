"""How `capacity` shows its answer: tables, the sentence, notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..costs.capacity import Plan, caches_latent
from ..costs.capacity_memory import layout_name
from ..costs.search import CapacityCost, Step
from ..costs.tokens import indexing_layers
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, flattened, plain
from . import request

if TYPE_CHECKING:
    from ..engines.preset import Engine
    from ..hardware.gpu import GPU

SHOWN_LAYOUTS = 10
SHOWN_REFUSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for, as it was understood."""

    plan: Plan
    step: Step
    gpu: GPU | None
    engine: Engine
    reserve: str
    wanted: int | None
    """Requests that are to fit."""
    searched: bool
    context_unknown: bool = False
    """Whether the requests' length was neither given nor known."""


def report_of(asked: Asked, cost: CapacityCost, explain: bool) -> Report:
    """The record as every format shows it."""
    plan = asked.plan
    model, memory = plan.model, plan.memory
    sources = request.input_sources((model,), (plan.layout,), asked.gpu)
    if asked.gpu and "memory.reported_mib" in asked.gpu.sources:
        sources[f"{asked.gpu.name}, reported memory"] = asked.gpu.sources["memory.reported_mib"]
    rule = (memory.rule.source,) if memory.rule else ()
    given = memory.cache_bytes is not None
    report = Report(
        command="capacity",
        title=f"{model.name}   {request.geometry(model)}, cache in {plan.layout.name}",
        subtitle=_subtitle(asked, cost),
        inputs={
            "model": model.name,
            "gpu": asked.gpu.name if asked.gpu else None,
            "engine": asked.engine.name,
            "dtype": plan.layout.name,
            "weights_dtype": _weights_dtype(plan),
            "cache_budget_bytes": memory.cache_bytes,
            "reserve": None if given else asked.reserve.strip(),
            "max_model_len": memory.max_model_len,
            "max_num_seqs": None if given else memory.max_num_seqs,
            "rows_cap": memory.rows_cap,
            "requests_wanted": asked.wanted,
            "search": asked.searched,
        },
        results=plain(cost),
        tables=(*_tables(asked, cost), *((_layout_table(asked, cost),) if asked.searched else ())),
        sentence=_sentence(asked, cost),
        notes=tuple(_notes(asked, cost)),
        sources=(*rule, *request.source_list(sources)),
        input_sources=sources,
        csv_rows=tuple(plain(cost.layouts)) if asked.searched else (_one_row(cost),),
    )
    return replace(report, explanations=_explanations(asked, cost)) if explain else report


def _weights_dtype(plan: Plan) -> str | None:
    """How the weights are stored, attention's apart where it is another way; ``None`` where they do not count."""
    if plan.memory.stored is None:
        return None
    own, others = (f"{one.bytes / one.per:g} B each" if one.dtype == "as given" else one.dtype
                   for one in plan.memory.stored)  # fmt: skip
    return others if own == others else f"{others}, attention's {own}"


def _one_row(cost: CapacityCost) -> dict[str, object]:
    """The answer as one row of CSV, without the list of layouts, which is of this one alone."""
    record = plain(cost)
    del record["layouts"]
    return flattened(record)


def _subtitle(asked: Asked, cost: CapacityCost) -> str:
    ranks = ", ".join(f"{name.upper()} {getattr(cost, name)}" for name in ("tp", "dp", "dcp", "pp"))
    gpu = asked.gpu.name if asked.gpu else "GPU"
    form = "" if cost.cache_form == "latent" else ", keys and values expanded"
    return f"{cost.gpus:,} x {gpu}: {ranks}{form}"


def _tables(asked: Asked, cost: CapacityCost) -> tuple[Table, ...]:
    here = cost.per_gpu
    labels = {
        "memory_bytes": "memory, as reported",
        "weights_bytes": "weights",
        "workspace_bytes": "workspace for chunked prefill",
        "reserve_bytes": f"reserve, {asked.reserve.strip()}",
        "cache_bytes": "left for the cache" if here.memory_bytes is not None else "cache, as given",
    }
    rows: list[tuple[str | Cell, ...]] = [
        (label, Cell(f"per_gpu.{name}", "bytes"), Cell(f"per_gpu.{name}", "binary"))
        for name, label in labels.items()
        if getattr(here, name) is not None
    ]
    if cost.fixed_bytes_per_request:
        rows.append(
            (
                "of a request, fixed",
                Cell("fixed_bytes_per_request", "bytes"),
                Cell("fixed_bytes_per_request", "binary"),
            )
        )
    rows.append(("of a token", Cell("per_gpu.bytes_per_token", "bytes"), Cell("per_gpu.bytes_per_token", "binary")))
    held: list[tuple[str | Cell, ...]] = [
        ("unique tokens", Cell("unique_tokens"), ""),
        ("copies of each", Cell("copies"), ""),
        *([("of each indexer key", Cell("indexer_copies"), "")] if _keys_differ(cost) else []),
        ("one copy of all", Cell("stored_bytes", "bytes"), Cell("stored_bytes", "binary")),
        ("with the copies", Cell("cluster_stored_bytes", "bytes"), Cell("cluster_stored_bytes", "binary")),
        (f"requests of {cost.context:,}", Cell("requests"), ""),
    ]
    if cost.total_decode_bound_s is not None:
        held.append((f"decode of {cost.batch:,}, bound", Cell("total_decode_bound_s", "seconds"), ""))
    headers = ("", "bytes", "")
    return (
        Table(headers, tuple(rows), "on a GPU" + (" of the largest stage" if cost.pp > 1 else "")),
        Table(("", "held", ""), tuple(held), f"on {fmt.counted(cost.gpus, 'GPU')}"),
    )


def _keys_differ(cost: CapacityCost) -> bool:
    return cost.indexer_copies is not None and cost.indexer_copies != cost.copies


def _shown_legal(cost: CapacityCost) -> list[int]:
    """The legal layouts of the table: of those that hold nothing one, since all say the same."""
    legal = [index for index, one in enumerate(cost.layouts) if one.legal]
    holds = sum(bool(cost.layouts[index].unique_tokens) for index in legal)
    return [*legal[:holds], *legal[holds : holds + 1]][:SHOWN_LAYOUTS]


def _layout_table(asked: Asked, cost: CapacityCost) -> Table:
    legal = _shown_legal(cost)
    refused = [index for index, one in enumerate(cost.layouts) if not one.legal][:SHOWN_REFUSED]
    rows = tuple(
        (
            *(Cell(f"layouts[{index}].{name}") for name in ("tp", "dp", "dcp", "pp")),
            Cell(f"layouts[{index}].unique_tokens"),
            Cell(f"layouts[{index}].total_decode_bound_s", "seconds"),
            Cell(f"layouts[{index}].reason", "text"),
        )
        for index in legal + refused
    )
    return Table(("TP", "DP", "DCP", "PP", "unique tokens", "decode", "why not"), rows, _layouts_title(asked))


def _layouts_title(asked: Asked) -> str:
    if asked.wanted is None:
        return "layouts, the best first"
    return f"layouts, those that hold {fmt.counted(asked.wanted, 'request')} first"


def _sentence(asked: Asked, cost: CapacityCost) -> str:
    if not cost.unique_tokens:
        return _nothing(asked, cost)
    fits = f"{fmt.counted(cost.unique_tokens, 'different token')} {'fits' if cost.unique_tokens == 1 else 'fit'}"
    if cost.requests:
        fits += f", or {fmt.counted(cost.requests, 'request')} of {cost.context:,}"
    elif cost.requests == 0:
        fits += f", but not one request of {cost.context:,}"
    if asked.wanted is not None:
        need = "needs" if asked.wanted == 1 else "need"
        fits = (
            f"{fmt.counted(asked.wanted, 'request')} of {fmt.counted(cost.context, 'token')} {need}"
            f" {fmt.counted(cost.gpus, 'GPU')} at least; on {'it' if cost.gpus == 1 else 'those'} {fits}"
        )
    if _keys_differ(cost):
        main = "latent row" if caches_latent(asked.plan) else "key and value"
        stored = f"each {main} is stored {_times(cost.copies)}, each indexer key {_times(cost.indexer_copies)}."
    elif cost.copies > 1:
        stored = f"each is stored {_times(cost.copies)}, since TP copies what DCP does not spread."
    else:
        stored = "each is stored once."
    return f"{fits}; {stored}{_beyond(cost)}"


def _beyond(cost: CapacityCost) -> str:
    """That the step which the decode bound is of has more requests than fit; empty where it has not."""
    if cost.total_decode_bound_s is None or not cost.requests or cost.batch <= cost.requests:
        return ""
    return f" The step asked for, of {fmt.counted(cost.batch, 'request')}, does not fit."


def _times(copies: int | None) -> str:
    return "once" if copies == 1 else f"{copies:,} times"


def _nothing(asked: Asked, cost: CapacityCost) -> str:
    """Why nothing fits: less than no memory is left, or less than a token takes; of a search, in the first layout."""
    here = cost.per_gpu
    anywhere = "Nothing fits in any layout" if asked.searched else "Nothing fits"
    where = f"with {layout_name(cost.layouts[0])}, " if asked.searched else ""
    if here.short_bytes:
        missing = fmt.binary_bytes(here.short_bytes)
        lacking = f"{where}{missing} are missing on each"
        return f"{anywhere}: weights, workspace and reserve take the memory of the GPUs: {lacking}."
    what = "the cache given" if here.memory_bytes is None else "what weights, workspace and reserve leave of a GPU"
    return f"{anywhere}: {where}{what} is {here.cache_bytes:,} B, and a token takes {here.bytes_per_token:,} B."


def _notes(asked: Asked, cost: CapacityCost) -> list[str]:
    plan, model = asked.plan, asked.plan.model
    notes = []
    if plan.memory.cache_bytes is not None:
        notes.append("--cache-budget stands for memory, weights, workspace and reserve (null).")
    else:
        notes += _weight_notes(plan)
    if cost.per_gpu.workspace_bytes is None and plan.memory.cache_bytes is None:
        notes.append(f"{asked.engine.name} sets no workspace aside at the start (null): the reserve has to hold it.")
    if cost.per_gpu.workspace_bytes and model.indexer and plan.memory.rule and not plan.memory.rule.sparse_scratch:
        notes.append(
            f"What {asked.engine.name} keeps besides for sparse attention was not read: the reserve has to hold it."
        )
    if cost.requests is None:
        notes.append(f"How large the recurrent state of {model.name} is is not known: requests are not sized (null).")
    elif cost.fixed_bytes_per_request:
        notes.append("unique_tokens leaves out what a request takes whatever its context; requests counts it.")
    notes += [*_cached_notes(asked, cost), *_bound_notes(plan, cost), *_layout_notes(asked, cost)]
    if asked.wanted is None:
        notes.append("How many GPUs are needed (null) is what --for-context and --for-requests ask.")
    if asked.context_unknown:
        notes.append(f"The longest context of {model.name} is not known: requests are taken as {cost.context:,} long.")
    return [*notes, *request.context_notes(model, (cost.context,)), *request.model_notes(model)]


def _cached_notes(asked: Asked, cost: CapacityCost) -> list[str]:
    """What has to be known of the layers that cache, and of their copies."""
    plan, model = asked.plan, asked.plan.model
    notes = []
    if model.mtp_layers and not plan.mtp_layers:
        notes.append(
            f"MTP layers ({model.mtp_layers}) are left out: they cache under speculative decoding alone;"
            " --mtp-layers adds them."
        )
    if cost.pp > 1:
        counts = {
            "cache": model.cached_layers,
            "have a window": model.windowed.layers if model.windowed else 0,
            "hold indexer keys": indexing_layers(model),
        }
        uneven = [what for what, count in counts.items() if count % model.transformer_layers]
        if uneven:
            notes.append(
                f"The layers that {' or '.join(uneven)} are taken as spread evenly over the stages; a stage that has"
                " more of them holds fewer tokens."
            )
    if _keys_differ(cost) and not caches_latent(plan):
        notes.append("Keys and values shard over TP by their heads; an indexer key has none and stands on every rank.")
    elif _keys_differ(cost):
        notes.append(f"{asked.engine.name} keeps all indexer keys on every rank; DCP spreads the latent rows alone.")
    return notes


def _bound_notes(plan: Plan, cost: CapacityCost) -> list[str]:
    """Whose the decode bound is, or why there is none."""
    if cost.total_decode_bound_s is None:
        if not cost.unique_tokens:
            return ["No decode bound (null): nothing fits."]
        return ["No decode bound (null): it needs --gpu and an MLA model whose latent is cached."]
    notes = []
    if plan.model.indexer:
        notes.append(f"{plan.model.name} has an indexer; the decode bound is dense attention's.")
    if cost.requests is not None and cost.batch > cost.requests:
        fit = f"{cost.requests:,} {'fits' if cost.requests == 1 else 'fit'}" if cost.requests else "not one fits"
        asked = f"{fmt.counted(cost.batch, 'request')} of {cost.context:,}"
        notes.append(f"The decode bound is of a step that does not fit: {asked}, and {fit}.")
    return notes


def _weight_notes(plan: Plan) -> list[str]:
    assert plan.memory.stored
    own, others = plan.memory.stored
    width = f"{others.bytes / others.per:.5g} B each"
    if own != others:
        width += f", attention's {own.bytes / own.per:.5g} B"
    total = plan.model.parameters.total or 0
    notes = [f"{total / 1e9:,.4g} G parameters, {others.dtype}: {width}."]
    if plan.mtp_layers:
        notes.append("The weights of MTP layers are not in that total.")
    return notes


def _layout_notes(asked: Asked, cost: CapacityCost) -> list[str]:
    if not asked.searched:
        return []
    legal = sum(one.legal for one in cost.layouts)
    refused = len(cost.layouts) - legal
    empty = sum(one.legal and not one.unique_tokens for one in cost.layouts)
    shown = len(_shown_legal(cost))
    text = fmt.counted(legal, "legal layout")
    if empty:
        text += f" ({empty:,} {'holds' if empty == 1 else 'hold'} nothing)"
    text += f", {refused:,} refused"
    if legal > shown or refused > SHOWN_REFUSED:
        text += f"; the table has the first {shown} and {min(refused, SHOWN_REFUSED)}, the JSON all"
    return [text + "."]


def _explanations(asked: Asked, cost: CapacityCost) -> tuple[Explanation, ...]:
    from ..costs import capacity_formulas as formulas  # only where they are asked for: start-up counts

    found = request.explanations(formulas.capacity_formulas(asked.plan), formulas.capacity_names(asked.plan, cost))
    return (*found, *request.explanations(*formulas.bound_formulas(asked.plan, cost, asked.step)))
