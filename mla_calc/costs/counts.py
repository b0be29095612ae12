"""The FLOP counts that everything else is built from (docs/cost-model.md, section 3; the chapter, "What it costs").

One multiply-add is 2 FLOP. Softmax, RoPE and norms are left out. ``heads`` is the number of query heads that
the rank holds: pass ``mla.heads`` for one GPU, ``mla.heads // tp`` per rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arrays import maximum, minimum
from ..models.attention import MLA

if TYPE_CHECKING:
    from ..arrays import Ints


def pairs(queries: Ints, context: Ints, causal: bool) -> Ints:
    """Query-key pairs of one request. ``context`` counts all keys attended, the new ones included.

    Rectangular: every query meets every key. Causal: the prefix in full and the new tokens as a triangle;
    prefix 5 and 3 queries are 21 pairs.
    """
    if not causal:
        return queries * context
    return queries * (context - queries) + queries * (queries + 1) // 2


def attended_pairs(queries: Ints, context: Ints, topk: int, causal: bool) -> Ints:
    """Query-key pairs of one request under sparse attention: each query attends min(its keys, ``topk``).

    A causal query has its prefix and the new tokens up to itself: the first ones may still attend all of
    their keys. With prefix 5, 3 queries and top-7: 6 + 7 + 7 = 20.
    """
    if not causal:
        return queries * minimum(context, topk)
    prefix = context - queries
    whole = minimum(queries, maximum(topk - prefix, 0))  # queries that have no more than topk keys
    return whole * prefix + whole * (whole + 1) // 2 + (queries - whole) * topk


def fold_flop(mla: MLA, heads: Ints) -> Ints:
    """FLOP of both folds for one query token, W_UK into the query and W_UV after attention.

    The same product as up-projecting one context token (DeepSeek-V3: 33,554,432): absorption moves a fixed
    cost from the context axis to the query axis.
    """
    return 2 * mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)


def naive_core_flop(mla: MLA, heads: Ints) -> Ints:
    """FLOP per query-key pair of attention over expanded keys and values (DeepSeek-V3: 81,920)."""
    return 2 * heads * mla.expanded_head_values


def absorbed_core_flop(mla: MLA, heads: Ints) -> Ints:
    """FLOP per query-key pair of attention over latent rows (DeepSeek-V3: 278,528)."""
    return 2 * heads * (mla.row_values + mla.kv_lora_rank)


def expanded_values(mla: MLA, heads: Ints) -> Ints:
    """Values that one context token takes once expanded into keys and values (DeepSeek-V3: 40,960)."""
    return heads * mla.expanded_head_values
