"""The formulas of `capacity`, and of a cache of expanded keys and values, as text for ``--explain``."""

from __future__ import annotations

from ..models.attention import MLA, Model
from .capacity import Plan, decode_kernels
from .formulas import Formula, bound_text, ceiling_names
from .layouts import Layout, row_formula
from .placement import Placement, stage_caches, stage_layers
from .search import CapacityCost, Step
from .tokens import cached_attention, layers_bytes
from .weights import attention_parameters, other_parameters

SECTION = "docs/cost-model.md, section 10"


def capacity_formulas(plan: Plan) -> dict[str, Formula]:
    """Formulas of the figures that this plan has."""
    found: dict[str, Formula] = {}
    if plan.memory.cache_bytes is None:
        found["per_gpu.weights_bytes"] = Formula(
            "-(-caches * attention_parameters_per_rank * attention_bytes // attention_per)"
            " - (-(-(-other_parameters * layers // (all_layers * ep))) * other_bytes // other_per)",
            f"{SECTION}: attention over TP, the rest over the stage",
        )
        held = " - workspace_bytes" if plan.memory.rule else ""
        found["per_gpu.cache_bytes"] = Formula(
            f"max(memory_bytes - weights_bytes{held} - reserve_bytes, 0)", f"{SECTION}: what is left"
        )
    found["per_gpu.tokens"] = Formula("cache_bytes // bytes_per_token_here", f"{SECTION}: the largest stage decides")
    found["unique_tokens"] = Formula("tokens * dp * dcp", f"{SECTION}: TP stores copies, DP and DCP do not")
    if isinstance(cached_attention(plan.model, plan.form), MLA):
        found["copies"] = Formula("tp // dcp", "a latent row has no head axis")
    else:
        found["copies"] = Formula("max(1, tp // kv_heads) // dcp", "KV heads shard first, then they are copied")
    if plan.model.indexer:
        found["indexer_copies"] = (
            Formula("tp", "an indexer key has no head axis, and every DCP rank keeps all of them")
            if plan.indexer_whole
            else Formula("tp // dcp", "an indexer key has no head axis")
        )
    found["stored_bytes"] = Formula("unique_tokens * bytes_per_token", "one copy, all layers")
    keys = " + indexer_bytes_per_token * indexer_copies" if plan.model.indexer else ""
    found["cluster_stored_bytes"] = Formula(
        f"unique_tokens * (main_bytes_per_token * copies{keys})", "all copies of all layers"
    )
    found["concurrency"] = Formula("unique_tokens / context", "tokens over a request's, no pages")
    if plan.model.recurrent is None or plan.model.recurrent.state_values is not None:
        found["requests"] = Formula(_requests(plan), f"{SECTION}: whole pages on each DCP rank, and what does not grow")
    return found


def _requests(plan: Plan) -> str:
    page = "-(-{0} // block_size) * block_size"
    request = f"{page.format('(-(-context // dcp))')} * bytes_per_token_here + fixed_bytes_per_request"
    if plan.model.windowed:
        shorter = f"{page.format('window')} - {page.format('min(context, window)')}"
        request += f" - ({shorter}) * windowed_bytes_per_token_here"
    return f"dp * (cache_bytes // ({request}))"


def bound_formulas(plan: Plan, cost: CapacityCost, step: Step) -> tuple[dict[str, Formula], dict[str, int | float]]:
    """The formula of the decode bound and its names; none where there is no bound."""
    if cost.total_decode_bound_s is None or step.ceilings is None:
        return {}, {}
    at = Placement(cost.tp, cost.dp, cost.dcp, cost.pp)
    kernels = decode_kernels(plan, at, step.batch, step.weight_bytes)
    terms = (bound_text(kernel.name) for kernel in kernels)
    names = {
        **{f"{kernel.name}_flop": kernel.flop for kernel in kernels},
        **{f"{kernel.name}_bytes": kernel.bytes for kernel in kernels},
        **ceiling_names(step.ceilings),
        "layers": plan.model.cached_layers,
    }
    cite = "one rank's absorbed step of a DP group's requests, kernel after kernel, all layers that cache"
    return {"total_decode_bound_s": Formula(f"layers * ({' + '.join(terms)})", cite)}, names


def capacity_names(plan: Plan, cost: CapacityCost) -> dict[str, int | float]:
    """What the formulas are over."""
    model, here = plan.model, cost.per_gpu
    names: dict[str, int | float] = {name: getattr(cost, name) for name in ("tp", "dp", "dcp", "pp", "ep")}
    names |= {
        "unique_tokens": cost.unique_tokens,
        "bytes_per_token": cost.bytes_per_token,
        "bytes_per_token_here": here.bytes_per_token,
        "cache_bytes": here.cache_bytes,
        "tokens": here.tokens,
        "copies": cost.copies,
        "indexer_copies": cost.indexer_copies or 0,
        "context": cost.context,
        "block_size": cost.block_size,
        "fixed_bytes_per_request": cost.fixed_bytes_per_request or 0,
        "window": model.windowed.window if model.windowed else 0,
    }
    whole = layers_bytes(model, plan.layout, stage_caches(model, 1, plan.mtp_layers), 1, plan.form)
    stage = layers_bytes(model, plan.layout, stage_caches(model, cost.pp, plan.mtp_layers), cost.tp, plan.form)
    names |= {
        "main_bytes_per_token": whole.main,
        "indexer_bytes_per_token": whole.indexer,
        "windowed_bytes_per_token_here": stage.windowed,
    }
    attention = cached_attention(model, plan.form)
    if not isinstance(attention, MLA):
        names["kv_heads"] = attention.kv_heads
    if plan.memory.stored:
        own, others = plan.memory.stored
        names |= {
            "caches": stage_caches(model, cost.pp).cached,
            "attention_parameters_per_rank": attention_parameters(model.attention, cost.tp),
            "attention_bytes": own.bytes,
            "attention_per": own.per,
            "other_parameters": other_parameters(model),
            "other_bytes": others.bytes,
            "other_per": others.per,
            "layers": stage_layers(model, cost.pp),
            "all_layers": model.transformer_layers,
            "weights_bytes": here.weights_bytes or 0,
            "workspace_bytes": here.workspace_bytes or 0,
            "memory_bytes": here.memory_bytes or 0,
            "reserve_bytes": here.reserve_bytes or 0,
        }
    return names


def expanded_cache_formulas(model: Model, layout: Layout) -> dict[str, Formula]:
    """Formulas of `cache`'s figures that differ where the expansion is cached."""
    keys = " + indexer_bytes_per_token" if model.indexer else ""
    head = row_formula(layout.heads).replace("row", "values_per_head")
    cite = "a head's key and value in the layout, for every head"
    return {
        "bytes_per_token": Formula(f"layers * heads * ({head}){keys}", cite),
        "per_rank_bytes_per_token": Formula(f"layers * heads_per_rank * ({head}){keys}", "heads shard over TP"),
        "cluster_bytes_per_token": Formula(
            f"tp * (layers * heads_per_rank * ({head}){keys})", "every rank's share together"
        ),
    }
