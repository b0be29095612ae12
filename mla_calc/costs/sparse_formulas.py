"""The texts of ``--explain`` for sparse attention; see formulas.py, whose tables these ones extend."""

from __future__ import annotations

from ..models.attention import Indexer
from .cache import indexer_bytes_per_token_per_layer
from .crossover import SparseFlopCrossover
from .flops import FlopsCost
from .formulas import CHAPTER, FLOPS_CONSTANTS, KERNELS, LATENT, Formula, KernelTexts, flops_formulas
from .intensity import IntensityCost

V32_INDEXER = "vllm 0.33.0 model_executor/models/deepseek_v2.py:658-666"

_FLOP_PER_PAIR = "-(-2 * indexer_heads * indexer_head_dim // indexer_pool)"
_TOKEN_BYTES = "-(-bytes_per_indexer_key // indexer_pool)"
_CORE = f"2 * heads_per_rank * {LATENT}"


def sparse_flops_formulas(cost: FlopsCost, with_bounds: bool) -> dict[str, Formula]:
    """Formulas of ``flops --sparse``, with the kernels that ``cost`` has."""
    formulas = flops_formulas(with_bounds, cost.causal, _kernels(cost))
    text = FLOPS_CONSTANTS["fold_to_core_ratio"].replace("pairs", "attended_pairs")
    formulas["fold_to_core_ratio"] = Formula(text, CHAPTER + "what it costs")
    whole = "max(0, min(queries, topk - (context - queries)))"
    formulas["sparse.attended_pairs"] = Formula(
        f"{whole} * (context - queries) + {whole} * ({whole} + 1) // 2 + (queries - {whole}) * topk"
        if cost.causal
        else "queries * min(context, topk)",
        "each query attends min(its keys, topk)",
    )
    formulas["sparse.indexer_flop_per_pair"] = Formula(_FLOP_PER_PAIR, "each head of the indexer scores each key")
    formulas["sparse.indexer_bytes_per_context_token"] = Formula(_TOKEN_BYTES, V32_INDEXER)
    if cost.sparse and cost.sparse.first_context_bytes is not None:
        formulas["sparse.first_context_bytes"] = Formula(
            f"topk * row_bytes // (row_bytes - {_TOKEN_BYTES}) + 1", "topk * row + S * indexer < S * row"
        )
    if cost.sparse and cost.sparse.first_context_flop is not None:
        formulas["sparse.first_context_flop"] = Formula(
            f"topk * ({_CORE}) // ({_CORE} - {_FLOP_PER_PAIR}) + 1",
            "topk * core + S * indexer < S * core",
        )
    return formulas


def sparse_intensity_formulas(cost: IntensityCost) -> dict[str, Formula]:
    """Formulas of ``intensity --sparse`` at the first TP."""
    rows = "min(context, topk)"
    text = (
        f"queries * ({_FLOP_PER_PAIR} * context + {_CORE} * {rows}) / ({_TOKEN_BYTES} * context + row_bytes * {rows})"
    )
    formulas = {
        "by_tp[0].intensity_flop_per_byte": Formula(text, "FLOP and bytes of indexer and attention at this context"),
        "sparse.limit_flop_per_byte": Formula(f"queries * {_FLOP_PER_PAIR} / {_TOKEN_BYTES}", "the indexer alone"),
    }
    if cost.ridge_flop_per_byte is not None:
        ridge = "peak_flop_per_s / bandwidth_bytes_per_s"
        formulas["ridge_flop_per_byte"] = Formula(ridge, "roofline")
        formulas["by_tp[0].ridge_share"] = Formula(f"{text} / ({ridge})", "roofline")
    return formulas


def sparse_crossover_formulas(flop: SparseFlopCrossover, indexer: Indexer) -> dict[str, Formula]:
    """Formulas of ``crossover --sparse``: where the FLOPs are equal, at the first context and TP."""
    first = flop.by_context[0]
    if first.queries_rectangular is None:
        return {}
    fixed, absorbed, naive = (
        FLOPS_CONSTANTS[name].replace("heads_per_rank", "heads")
        for name in ("fold_flop_per_query_token", "absorbed_core_flop_per_pair", "naive_core_flop_per_pair")
    )
    if first.context <= indexer.topk:
        text = f"{fixed} * context / ({fixed} + ({absorbed} - {naive} + tp * {_FLOP_PER_PAIR}) * context)"
        cite = "up to topk keys only the absorbed path scores them"
    else:
        text = f"{fixed} * context / ({fixed} + {absorbed} * topk - {naive} * context)"
        cite = "above topk keys both paths score them"
    return {"flop.by_context[0].queries_rectangular": Formula(text, cite)}


def sparse_names(indexer: Indexer) -> dict[str, int | float]:
    """The indexer's values under the names that the formulas use, beside those of the model."""
    return {
        "topk": indexer.topk,
        "indexer_layers": indexer.layers,
        "indexer_heads": indexer.heads,
        "indexer_head_dim": indexer.head_dim,
        "indexer_pool": indexer.pool,
        "bytes_per_indexer_key": indexer_bytes_per_token_per_layer(indexer.head_dim),
    }


def _kernels(cost: FlopsCost) -> KernelTexts:
    """The dense tables with the indexer, and attention over no more than topk rows."""
    indexer = (f"batch * pairs * {_FLOP_PER_PAIR}", f"batch * context * {_TOKEN_BYTES}")
    absorbed, naive = KERNELS["absorbed"], KERNELS["naive"]
    flop, moved = absorbed["attention"]
    attention = (flop.replace("pairs", "attended_pairs"), moved.replace("context", "min(context, topk)"))
    scored = {"indexer": indexer} if any(kernel.name == "indexer" for kernel in cost.naive.kernels) else {}
    return {
        "absorbed": {
            "q_fold": absorbed["q_fold"],
            "indexer": indexer,
            "attention": attention,
            "v_up": absorbed["v_up"],
        },
        "naive": {**scored, **naive},
    }
