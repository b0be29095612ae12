"""The formulas of `capacity`, and of a cache of expanded keys and values, as text for ``--explain``."""

from __future__ import annotations

from ..models.attention import MLA, Model
from .capacity import Plan
from .formulas import Formula
from .layouts import Layout, row_formula
from .placement import stage_caches, stage_layers
from .search import CapacityCost
from .tokens import cached_attention
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
    return found


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
