"""The formulas as text, for ``--explain``: what each figure is of, and where the formula comes from.

The engine computes with functions; these texts only explain. A test evaluates every text with its numbers put
in and compares it with the figure, for many models, so the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..hardware.roofline import Ceilings
from ..models.attention import GQA, MLA, Model
from .cache import indexer_bytes_per_token_per_layer, indexing_layers
from .flops import FlopsCost
from .layouts import Layout, head_bytes, latent_row_bytes, row_formula
from .paths import Work
from .sharding import kv_heads_per_rank
from .workspace import WorkspaceCost, WorkspaceRule

V2 = "DeepSeek-V2, arXiv:2405.04434"
CHAPTER = "MLA in full detail, "
VLLM_WORKSPACE = "vllm 0.33.0 model_executor/layers/attention/mla_attention.py"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula over names, in Python's arithmetic, and who states it."""

    text: str
    cite: str


Formulas = Mapping[str, Formula]
Names = Mapping[str, int | float]


def cache_formulas(model: Model, layout: Layout, with_totals: bool) -> dict[str, Formula]:
    """Formulas of the ``cache`` figures that this kind of model has."""
    formulas: dict[str, Formula] = {}
    if model.mla:
        row = row_formula(layout.latent)
        formulas |= {
            "latent_bytes_per_token_per_layer": Formula(row, f"layout {layout.name}: one row is K and V of all heads"),
            "latent_bytes_per_token": Formula(
                "layers * row_bytes", f"{V2}, section 2.1: no factor 2, no factor of heads"
            ),
            "expanded_bytes_per_token": Formula(
                "layers * heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim) * 2",
                CHAPTER + "asymmetric widths: keys 192, values 128 in DeepSeek-V3",
            ),
            "expanded_to_latent_ratio": Formula(
                "heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim) * 2 / row_bytes",
                CHAPTER + "step 1",
            ),
            "never_cached_bytes_per_token_per_layer": Formula(
                "heads * (qk_nope_head_dim + v_head_dim) * 2", CHAPTER + "what is cached"
            ),
        }
        formulas["bytes_per_token"] = Formula("layers * row_bytes + indexer_bytes_per_token", "all that one token adds")
    else:
        formulas["bytes_per_token"] = Formula(
            "layers * kv_heads * bytes_per_kv_head", "GQA: keys and values of every KV head"
        )
    if model.windowed:
        formulas["windowed_bytes_per_token"] = Formula(
            "windowed_layers * windowed_kv_heads * bytes_per_windowed_kv_head",
            "sliding-window layers, up to the window",
        )
    if model.indexer:
        formulas["indexer_bytes_per_token"] = Formula(
            "-(-indexer_layers * bytes_per_indexer_key // indexer_pool)",
            "vllm v1/attention/backends/mla/indexer.py",
        )
    per_rank = (
        "layers * row_bytes + indexer_bytes_per_token"
        if model.mla
        else "layers * kv_heads_per_rank * bytes_per_kv_head"
    )
    formulas["per_rank_bytes_per_token"] = Formula(per_rank, "a latent row has no head axis; KV heads shard over TP")
    formulas["cluster_bytes_per_token"] = Formula(f"tp * ({per_rank})", "every rank's share together")
    if model.mla:
        formulas["expanded_per_rank_bytes_per_token"] = Formula(
            "layers * heads_per_rank * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim) * 2", "heads divide over TP"
        )
    if with_totals:
        formulas |= _total_formulas(bool(model.windowed))
    return formulas


def _total_formulas(windowed: bool) -> dict[str, Formula]:
    """Formulas of the totals; a windowed layer holds no more than its window."""
    page = "-(-{0} // block_size) * block_size"
    kept = "min(context, window)"
    copy = "context * bytes_per_token"
    paged = f"{page.format('context')} * bytes_per_token"
    rank = "context * per_rank_bytes_per_token"
    if windowed:
        bounded = "windowed_layers * windowed_kv_heads_per_rank * bytes_per_windowed_kv_head"
        copy += f" + {kept} * windowed_bytes_per_token"
        paged += f" + {page.format(kept)} * windowed_bytes_per_token"
        rank += f" + {kept} * {bounded}"
    return {
        "total_bytes": Formula(f"batch * ({copy})", "one copy"),
        "allocated_bytes": Formula(f"batch * ({paged})", "one copy, each request in whole pages"),
        "per_rank_total_bytes": Formula(f"batch * ({rank})", "what one rank holds of it"),
        "cluster_total_bytes": Formula(f"tp * batch * ({rank})", "every rank's share together"),
    }


def figures_of(cost: Any) -> dict[str, int | float]:
    """The figures of a record under their own names, for formulas that build on one another."""
    values = {item.name: getattr(cost, item.name) for item in fields(cost)}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


KernelTexts = Mapping[str, Mapping[str, tuple[str, str]]]
"""By path and kernel: (FLOP, bytes)."""


def flops_formulas(with_bounds: bool, causal: bool, kernels_of: KernelTexts | None = None) -> dict[str, Formula]:
    """Formulas of the ``flops`` figures; kernels' own figures are named like ``absorbed_q_fold_flop``.

    ``kernels_of`` has the texts of other kernels than the dense ones; one called indexer runs on its own layers.
    """
    formulas = {path: Formula(text, CHAPTER + "what it costs") for path, text in FLOPS_CONSTANTS.items()}
    triangle = "queries * (context - queries) + queries * (queries + 1) // 2"
    formulas["pairs"] = Formula(triangle if causal else "queries * context", "query-key pairs of one request")
    for path, kernels in (kernels_of or KERNELS).items():
        for index, (kernel, (flop, moved)) in enumerate(kernels.items()):
            at, name = f"{path}.kernels[{index}]", f"{path}_{kernel}"
            formulas[f"{at}.flop"] = Formula(flop, f"kernel {kernel}")
            formulas[f"{at}.bytes"] = Formula(moved, f"kernel {kernel}: what it reads and writes")
            formulas[f"{at}.intensity_flop_per_byte"] = Formula(f"{name}_flop / {name}_bytes", f"kernel {kernel}")
            if with_bounds:
                formulas[f"{at}.bound_s"] = Formula(bound_text(name), "Williams et al., Roofline, CACM 52(4), 2009")
        for figure in ("flop", "bytes"):
            summed = " + ".join(f"{path}_{kernel}_{figure}" for kernel in kernels)
            formulas[f"{path}.{figure}"] = Formula(summed, "the sum over the path's kernels")
            terms = {kernel: f"{path}_{kernel}_{figure}" for kernel in kernels}
            formulas[f"{path}.total_{figure}"] = _over_layers(terms)
        if with_bounds:
            summed = " + ".join(bound_text(f"{path}_{kernel}") for kernel in kernels)
            formulas[f"{path}.bound_s"] = Formula(summed, "one kernel after another")
            formulas[f"{path}.total_bound_s"] = _over_layers(
                {kernel: bound_text(f"{path}_{kernel}") for kernel in kernels}
            )
            flop, moved = (
                " + ".join(f"{path}_{kernel}_{figure}" for kernel in kernels) for figure in ("flop", "bytes")
            )
            overlapped = f"max(({flop}) / peak_flop_per_s, ({moved}) / bandwidth_bytes_per_s)"
            formulas[f"{path}.overlapped_bound_s"] = Formula(overlapped, "all compute over all traffic")
    if with_bounds:
        absorbed, naive = formulas["absorbed.bound_s"].text, formulas["naive.bound_s"].text
        formulas["bound_ratio"] = Formula(
            f"max({absorbed}, {naive}) / min({absorbed}, {naive})", "the higher bound over the lower"
        )
    return formulas


def estimate_formulas(cost: FlopsCost) -> dict[str, Formula]:
    """Formulas of the paths' estimates, where they have one: the parts are measured steps of the path."""
    formulas = {}
    for path, priced in (("absorbed", cost.absorbed), ("naive", cost.naive)):
        if priced.estimated:
            summed = " + ".join(f"{path}_{part.name}_estimate_s" for part in priced.estimated.parts)
            runs = " and ".join(dict.fromkeys(f"{part.run} of {part.date}" for part in priced.estimated.parts))
            formulas[f"{path}.estimate_s"] = Formula(summed, f"each by constants of run {runs} (docs/validate.md)")
            formulas[f"{path}.total_estimate_s"] = Formula(f"layers * ({summed})", "all layers that cache")
    return formulas


def estimate_names(cost: FlopsCost) -> dict[str, int | float]:
    """The estimated parts of both paths under the names that the sums use."""
    return {
        f"{path}_{part.name}_estimate_s": part.estimate_s
        for path, priced in (("absorbed", cost.absorbed), ("naive", cost.naive))
        for part in (priced.estimated.parts if priced.estimated else ())
    }


def _over_layers(terms: Mapping[str, str]) -> Formula:
    everywhere = " + ".join(text for kernel, text in terms.items() if kernel != "indexer")
    if "indexer" not in terms:
        return Formula(f"layers * ({everywhere})", "all layers that cache")
    text = f"layers * ({everywhere}) + indexer_layers * {terms['indexer']}"
    return Formula(text, "all layers that cache, the indexer on those that index")


def bound_text(kernel: str) -> str:
    """The bound of a kernel whose figures have the names ``kernel_flop`` and ``kernel_bytes``, s."""
    return f"max({kernel}_flop / peak_flop_per_s, {kernel}_bytes / bandwidth_bytes_per_s)"


def kernel_names(cost: FlopsCost) -> dict[str, int | float]:
    """Every kernel's figures under the names that the sums and bounds use."""
    paths = {"absorbed": cost.absorbed, "naive": cost.naive}
    return {
        f"{path}_{kernel.name}_{figure}": getattr(kernel, figure)
        for path, priced in paths.items()
        for kernel in priced.kernels
        for figure in ("flop", "bytes")
    }


EXPANDED = "(qk_nope_head_dim + qk_rope_head_dim + v_head_dim)"
LATENT = "(2 * kv_lora_rank + qk_rope_head_dim)"
FLOPS_CONSTANTS = {
    "fold_flop_per_query_token": "2 * kv_lora_rank * heads_per_rank * (qk_nope_head_dim + v_head_dim)",
    "naive_core_flop_per_pair": f"2 * heads_per_rank * {EXPANDED}",
    "absorbed_core_flop_per_pair": f"2 * heads_per_rank * {LATENT}",
    "core_ratio": f"{LATENT} / {EXPANDED}",
    "materialized_bytes_per_context_token": f"heads_per_rank * {EXPANDED} * activation_bytes",
    "fold_to_core_ratio": f"kv_lora_rank * (qk_nope_head_dim + v_head_dim) * queries / ({LATENT} * pairs)",
    "merged_output_projection_ratio": "kv_lora_rank / v_head_dim",
}
KERNELS = {
    "absorbed": {
        "q_fold": (
            "2 * batch * queries * heads_per_rank * qk_nope_head_dim * kv_lora_rank",
            "heads_per_rank * qk_nope_head_dim * kv_lora_rank * weight_bytes"
            " + batch * queries * heads_per_rank * (qk_nope_head_dim + kv_lora_rank) * activation_bytes",
        ),
        "attention": (
            f"2 * batch * pairs * heads_per_rank * {LATENT}",
            f"batch * context * row_bytes + batch * queries * heads_per_rank * {LATENT} * activation_bytes",
        ),
        "v_up": (
            "2 * batch * queries * heads_per_rank * v_head_dim * kv_lora_rank",
            "heads_per_rank * kv_lora_rank * v_head_dim * weight_bytes"
            " + batch * queries * heads_per_rank * (kv_lora_rank + v_head_dim) * activation_bytes",
        ),
    },
    "naive": {
        "up_proj": (
            "2 * batch * context * kv_lora_rank * heads_per_rank * (qk_nope_head_dim + v_head_dim)",
            "batch * context * row_bytes"
            " + kv_lora_rank * heads_per_rank * (qk_nope_head_dim + v_head_dim) * weight_bytes"
            f" + batch * context * heads_per_rank * {EXPANDED} * activation_bytes",
        ),
        "attention": (
            f"2 * batch * pairs * heads_per_rank * {EXPANDED}",
            f"batch * (context + queries) * heads_per_rank * {EXPANDED} * activation_bytes",
        ),
    },
}


def intensity_formulas(model: Model, with_gpu: bool) -> dict[str, Formula]:
    """Formulas of the ``intensity`` figures at the first TP."""
    if model.mla:
        text = "queries * 2 * heads_per_rank * (2 * kv_lora_rank + qk_rope_head_dim) / row_bytes"
    else:
        text = "queries * 2 * heads_per_rank * (qk_head_dim + v_head_dim) / (kv_heads_per_rank * bytes_per_kv_head)"
    formulas = {
        "by_tp[0].intensity_flop_per_byte": Formula(text, CHAPTER + "section 1: FLOP and bytes per context token")
    }
    if with_gpu:
        formulas["ridge_flop_per_byte"] = Formula("peak_flop_per_s / bandwidth_bytes_per_s", "roofline")
        formulas["by_tp[0].ridge_share"] = Formula(f"({text}) / (peak_flop_per_s / bandwidth_bytes_per_s)", "roofline")
        if model.mla:
            formulas["ridge_heads_times_queries"] = Formula(
                "peak_flop_per_s / bandwidth_bytes_per_s * row_bytes / (2 * (2 * kv_lora_rank + qk_rope_head_dim))",
                "FlashMLA docs/20250422-new-kernel-deep-dive.md rounds this to half the ridge",
            )
    return formulas


def crossover_formulas(has_limit: bool) -> dict[str, Formula]:
    """Formulas of the ``crossover`` figures by FLOPs."""
    fold = "kv_lora_rank * (qk_nope_head_dim + v_head_dim)"
    dearer = "(2 * kv_lora_rank - qk_nope_head_dim - v_head_dim)"
    cite = CHAPTER + "the rectangular comparison; heads and TP cancel"
    product = f"2 * {fold} * context / {dearer}"
    formulas = {
        "flop.first_context_absorbed_wins_at_one_query": Formula(f"{fold} // ({fold} - {dearer}) + 1", cite),
    }
    if has_limit:
        formulas |= {
            "flop.queries_limit": Formula(f"{fold} / {dearer}", cite),
            "flop.first_queries_naive_wins": Formula(f"{fold} // {dearer} + 1", cite),
            "flop.by_context[0].queries_rectangular": Formula(f"{fold} / ({fold} / context + {dearer})", cite),
            "flop.by_context[0].queries_causal": Formula(
                f"{product} / (((context + 0.5) ** 2 + {product}) ** 0.5 + context + 0.5)",
                "the positive root of the causal comparison, written without cancellation",
            ),
        }
    return formulas


def workspace_formulas(cost: WorkspaceCost, has_rope: bool, sparse: bool) -> dict[str, Formula]:
    """Formulas of the ``workspace`` figures; without rope the keys need no buffer of their own."""
    kv_nope = "heads_per_rank * (qk_nope_head_dim + v_head_dim) * 2"
    keys = "heads_per_rank * (qk_nope_head_dim + qk_rope_head_dim) * 2"
    row = "(kv_lora_rank + qk_rope_head_dim)"
    wanted = "min(max(full_length_requests * max_model_len, pages_per_request * max_num_seqs * block_size), rows_cap)"
    capped = f"min({wanted}, max_num_seqs * index_topk)" if sparse else wanted
    aligned = "-(-max({}, 1) // alignment) * alignment"
    rule = f"{VLLM_WORKSPACE}:2329-2354"
    return {
        "rows": Formula(aligned.format(capped), rule),
        "buffer_rows": Formula("rows + rows // dcp" if cost.dcp > 1 else "rows", f"{VLLM_WORKSPACE}:2463-2481"),
        "latent_bytes": Formula(f"buffer_rows * {row} * buffer_value_bytes", f"{VLLM_WORKSPACE}:2488-2496"),
        "kv_nope_bytes": Formula(f"rows * {kv_nope}", f"{VLLM_WORKSPACE}:3043-3045"),
        "v_bytes": Formula("rows * heads_per_rank * v_head_dim * 2", "a view of kv_nope"),
        "k_bytes": Formula(f"rows * {keys}", f"{VLLM_WORKSPACE}:2952"),
        "transient_peak_bytes": Formula(
            f"rows * ({kv_nope} + {keys})" if has_rope else f"rows * {kv_nope}", "both at once, in one layer"
        ),
        "reserved_rows": Formula(aligned.format(wanted), "the dense rule, also for a DSA model: vllm#57170"),
        "reserved_bytes": Formula(f"reserved_rows * {kv_nope}", f"{VLLM_WORKSPACE}:934-947, the profile run"),
        "held_bytes": Formula("latent_bytes + reserved_bytes", "what was read of it for this release")
        if cost.sparse_prefill_bytes is None
        else Formula(
            "latent_bytes + reserved_bytes + sparse_prefill_bytes + indexer_buffer_bytes", "what the cache cannot have"
        ),
        "expansion_ratio": Formula(f"{keys} / ({row} * 2)", CHAPTER + "section 1"),
        "cache_tokens_worth": Formula("held_bytes // bytes_per_token", "what is held, in tokens"),
    }


def workspace_names(
    cost: WorkspaceCost, rule: WorkspaceRule, *, index_topk: int, alignment: int, buffer_value_bytes: int
) -> dict[str, int | float]:
    """The rule's numbers and the record's figures under the names that the formulas use."""
    return {
        **figures_of(cost),
        "full_length_requests": rule.full_length_requests,
        "pages_per_request": rule.pages_per_request,
        "index_topk": index_topk,
        "alignment": alignment,
        "buffer_value_bytes": buffer_value_bytes,
    }


def attention_names(model: Model, layout: Layout, *, tp: int, mtp_layers: int = 0) -> dict[str, int | float]:
    """The model's and layout's values under the names that the formulas use."""
    attention = model.attention
    names: dict[str, int | float] = {
        "layers": model.cached_layers + mtp_layers,
        "heads": attention.heads,
        "heads_per_rank": attention.heads // tp,
        "tp": tp,
        "v_head_dim": attention.v_head_dim,
    }
    if isinstance(attention, MLA):
        names |= {
            "kv_lora_rank": attention.kv_lora_rank,
            "qk_nope_head_dim": attention.qk_nope_head_dim,
            "qk_rope_head_dim": attention.qk_rope_head_dim,
            "row": attention.row_values,
            "row_bytes": latent_row_bytes(layout, attention),
        }
    else:
        names |= _gqa_names(attention, layout, tp)
    if model.windowed:
        names |= {
            "windowed_layers": model.windowed.layers,
            "windowed_kv_heads": model.windowed.kv_heads,
            "windowed_kv_heads_per_rank": kv_heads_per_rank(model.windowed, tp),
            "bytes_per_windowed_kv_head": head_bytes(layout, model.windowed),
        }
    names["window"] = model.windowed.window if model.windowed else 0
    if model.indexer:
        names |= {
            "indexer_layers": indexing_layers(model, mtp_layers),
            "bytes_per_indexer_key": indexer_bytes_per_token_per_layer(model.indexer.head_dim),
            "indexer_pool": model.indexer.pool,
        }
    return names


def _gqa_names(attention: GQA, layout: Layout, tp: int) -> dict[str, int | float]:
    return {
        "qk_head_dim": attention.qk_head_dim,
        "kv_heads": attention.kv_heads,
        "kv_heads_per_rank": kv_heads_per_rank(attention, tp),
        "bytes_per_kv_head": head_bytes(layout, attention),
    }


def work_names(work: Work, pairs: int) -> dict[str, int | float]:
    """A step's sizes under the names that the formulas use; ``pairs`` are those of one request."""
    named = {name: getattr(work, name) for name in ("batch", "queries", "context", "activation_bytes")}
    return {**named, "pairs": pairs, "weight_bytes": float(work.weight_bytes)}


def ceiling_names(ceilings: Ceilings | None) -> dict[str, int | float]:
    """The GPU's ceilings under the names that the formulas use."""
    if ceilings is None:
        return {}
    return {"peak_flop_per_s": ceilings.flop_per_s, "bandwidth_bytes_per_s": ceilings.bytes_per_s}
