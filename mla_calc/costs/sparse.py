"""Sparse attention (DSA): an indexer scores every key, attention reads the best ``topk`` rows.

Source: docs/cost-model.md, section 9; DeepSeek-V3.2 (vllm 0.33.0 model_executor/models/deepseek_v2.py:658-666 for
the keys). Projections of the indexer and the selection of the top-k are not counted, nor are its queries and scores
as bytes: what is counted is the least that any kernel does, so a bound stays a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arrays import minimum
from ..errors import InputError
from ..models.attention import MLA, Indexer, Model
from .cache import indexer_bytes_per_token_per_layer
from .counts import absorbed_core_flop, attended_pairs, pairs
from .paths import PATHS, Kernel, Path, Work, absorbed_kernels, naive_kernels
from .sharding import heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseCost:
    """What sparse attention adds to a step's figures; per rank, of a layer that indexes."""

    topk: int
    indexer_layers: int
    """Layers that run the indexer; the other ones reuse the choice of the layer before."""
    indexer_flop_per_pair: int
    indexer_bytes_per_context_token: int
    attended_pairs: int
    """Of one request in the absorbed path; the indexer scores all ``pairs``."""
    first_context_bytes: int | None
    """Smallest context at which one query reads fewer bytes than dense attention; ``None``: at none."""
    first_context_flop: int | None
    """The same for FLOPs, at this TP."""


def indexer_of(model: Model, sparse: bool) -> Indexer | None:
    """The indexer to price with: ``None`` for dense attention, which is what is not asked for otherwise.

    Raises:
        InputError: sparse attention is asked for and the model has no indexer.
    """
    if sparse and model.indexer is None:
        raise InputError(f"--sparse: {model.name} has no indexer (index_topk), its attention is dense")
    return model.indexer if sparse else None


def paths_of(indexer: Indexer | None) -> dict[str, Path]:
    """The two paths: dense ones, or those of sparse attention where an ``indexer`` is given."""
    if indexer is None:
        return PATHS
    return {
        "absorbed": partial(sparse_absorbed_kernels, indexer=indexer),
        "naive": partial(sparse_naive_kernels, indexer=indexer),
    }


def indexer_flop_per_pair(indexer: Indexer) -> int:
    """FLOP of one query's score for one context token: 2 * heads * head_dim; DeepSeek-V3.2: 16,384.

    Of keys that are pooled over n tokens a token has an n-th, rounded up to a whole FLOP (GLM-5.3-Flash: 2,048).
    """
    return -(-2 * indexer.heads * indexer.head_dim // indexer.pool)


def indexer_bytes_per_context_token(indexer: Indexer) -> int:
    """Bytes of indexer keys per context token and layer: 132 at width 128.

    Of keys that are pooled over n tokens a token has an n-th, rounded up to a whole byte (GLM-5.3-Flash: 33).
    """
    return -(-indexer_bytes_per_token_per_layer(indexer.head_dim) // indexer.pool)


def indexer_kernel(indexer: Indexer, work: Work, runs: Any = True) -> Kernel:
    """Every query scores all of its keys. TP does not split it: each rank scores with all of its heads.

    ``runs`` is whether it does at all, a bool or an array of them.
    """
    query_pairs = pairs(work.queries, work.context, work.causal)
    return Kernel(
        "indexer",
        flop=runs * (work.batch * query_pairs * indexer_flop_per_pair(indexer)),
        cache_bytes=runs * (work.batch * work.context * indexer_bytes_per_context_token(indexer)),
        weight_bytes=0,
        activation_bytes=0,
        indexes=True,
    )


def sparse_absorbed_kernels(mla: MLA, work: Work, *, indexer: Indexer) -> tuple[Kernel, ...]:
    """The absorbed form over the indexer's choice: fold, score, attend over min(S, topk) rows, bring values up.

    The queries of a request may choose different rows. Their union is not known before it runs, but the last
    query alone attends min(S, topk): so many rows are read by any kernel, and they are what is counted.
    """
    q_fold, attention, v_up = absorbed_kernels(mla, work)
    attended = attended_pairs(work.queries, work.context, indexer.topk, work.causal)
    sparse = Kernel(
        attention.name,
        flop=work.batch * attended * absorbed_core_flop(mla, heads_per_rank(mla, work.tp)),
        cache_bytes=work.batch * minimum(work.context, indexer.topk) * work.row_bytes,
        weight_bytes=0,
        activation_bytes=attention.activation_bytes,
    )
    return q_fold, indexer_kernel(indexer, work), sparse, v_up


def sparse_naive_kernels(mla: MLA, work: Work, *, indexer: Indexer) -> tuple[Kernel, ...]:
    """The naive form over all S keys; above topk with the indexer, whose choice masks the rest.

    Up to topk keys every key is chosen: plain MHA, nothing is scored. Above, the scores become a mask on MHA
    over all keys, which saves no work. Source: vllm 0.33.0 sparse_mla_attention.py:99-144 ("dense MHA" up to
    index_topk, masked MHA above).
    """
    return indexer_kernel(indexer, work, runs=work.context > indexer.topk), *naive_kernels(mla, work)


def first_contexts(mla: MLA, indexer: Indexer, row_bytes: int, tp: int) -> tuple[int | None, int | None]:
    """Smallest contexts from which one query of sparse attention takes (fewer bytes, fewer FLOP) than dense.

    Indexer and attention over min(S, topk) rows against attention over S; the folds are the same. Sparse is
    below for S > topk * dense / (dense - indexer), with the bytes or the FLOP per context token of either.
    ``None`` where the indexer's are no fewer than dense attention's. DeepSeek-V3.2 in bf16 at TP 1: 2314, 2177.

    Raises:
        InputError: ``tp`` does not divide the heads.
    """
    core = absorbed_core_flop(mla, heads_per_rank(mla, tp))
    return (
        _first_below(indexer.topk, row_bytes, indexer_bytes_per_context_token(indexer)),
        _first_below(indexer.topk, core, indexer_flop_per_pair(indexer)),
    )


def sparse_cost(mla: MLA, indexer: Indexer, work: Work) -> SparseCost:
    """The figures of :class:`SparseCost` for one point."""
    in_bytes, in_flop = first_contexts(mla, indexer, work.row_bytes, work.tp)
    return SparseCost(
        topk=indexer.topk,
        indexer_layers=indexer.layers,
        indexer_flop_per_pair=indexer_flop_per_pair(indexer),
        indexer_bytes_per_context_token=indexer_bytes_per_context_token(indexer),
        attended_pairs=attended_pairs(work.queries, work.context, indexer.topk, work.causal),
        first_context_bytes=in_bytes,
        first_context_flop=in_flop,
    )


def decode_flop(mla: MLA, indexer: Indexer, tp: int, queries: Ints, context: Ints) -> Ints:
    """FLOP per request and layer of the indexer and of attention, every query over all of ``context``."""
    core = minimum(context, indexer.topk) * absorbed_core_flop(mla, heads_per_rank(mla, tp))
    return queries * (context * indexer_flop_per_pair(indexer) + core)


def decode_bytes(indexer: Indexer, row_bytes: int, context: Ints) -> Ints:
    """Bytes per request and layer that they read of the two caches."""
    return context * indexer_bytes_per_context_token(indexer) + minimum(context, indexer.topk) * row_bytes


def _first_below(topk: int, dense: int, indexer: int) -> int | None:
    """Smallest S > topk with topk * dense + S * indexer < S * dense."""
    return topk * dense // (dense - indexer) + 1 if dense > indexer else None
