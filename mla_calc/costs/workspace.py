"""What chunked prefill sets aside and what it builds on top (docs/cost-model.md, section 6).

vLLM's dense rule, read in vllm 0.33.0: rows and alignment in model_executor/layers/attention/
mla_attention.py:2329-2354 and :2014-2026, the transients at :3043 and :2952, the profile run at :934-947.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arrays import maximum, minimum
from ..models.attention import MLA
from ..schema import STRICT, Dimension, Text
from .sharding import heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Ints

ROWS_CAP = 65536
"""vLLM's own limit, "64k tokens" in its comment (128k until vllm#25290)."""
FULL_LENGTH_REQUESTS = 8
PAGES_PER_REQUEST = 4
VALUE_BYTES = 2
"""The gathered rows and what is built from them are 16-bit, whatever the cache stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRule:
    """How an engine sizes the workspace of chunked prefill; a release's own is in its preset."""

    __pydantic_config__ = STRICT

    rows_cap: Dimension
    """Most rows, whatever is asked for."""
    full_length_requests: Dimension
    """Requests of the longest length that are to fit."""
    pages_per_request: Dimension
    """Pages for each of the most requests at a time that are to fit."""
    sparse_cap: bool = False
    """Whether DSA models have no more than ``max_num_seqs * index_topk`` rows."""
    at_least_a_page_per_request: bool = False
    """Whether the cap gives way to one page per request (vLLM up to 0.26)."""
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCost:
    """Rows and buffers of one rank; one layer's at a time, shared by all layers."""

    tp: int
    max_model_len: int
    max_num_seqs: int
    block_size: int
    rows_cap: int
    rows: int
    latent_bytes: int
    """The gathered rows, allocated once."""
    k_bytes: int
    v_bytes: int
    kv_nope_bytes: int
    """The up-projection's output: nope keys and values together."""
    transient_peak_bytes: int
    """kv_nope and the assembled keys at once; values are a view of kv_nope."""
    reserved_bytes: int
    """What the profile run sets aside of the transients: kv_nope, not the keys."""
    held_bytes: int
    """What the cache cannot have: the latent buffer and the reserve."""
    expansion_ratio: float
    """The keys alone over the latent rows that they come from."""
    cache_tokens_worth: int
    """Tokens of cache that the latent buffer and what is reserved take the place of."""
    cache_tokens_given_back: int | None
    """Tokens of cache gained against vLLM's own cap, fewer than none for a larger one; ``None`` without one."""
    chunks: None


def workspace_rows(max_model_len: Ints, max_num_seqs: Ints, block_size: Ints, rows_cap: Ints = ROWS_CAP) -> Ints:
    """Rows of the workspace: min(max(8 * length, 4 * requests * block), cap), rounded up to the block."""
    wanted = maximum(FULL_LENGTH_REQUESTS * max_model_len, PAGES_PER_REQUEST * max_num_seqs * block_size)
    return -(-minimum(wanted, rows_cap) // block_size) * block_size


def workspace_cost(
    mla: MLA,
    *,
    max_model_len: int,
    cache_bytes_per_token: int,
    tp: int = 1,
    max_num_seqs: int = 256,
    block_size: int = 64,
    rows_cap: int | None = None,
) -> WorkspaceCost:
    """Price the workspace of one rank; ``cache_bytes_per_token`` turns bytes into tokens of cache."""
    cap = ROWS_CAP if rows_cap is None else rows_cap
    rows = workspace_rows(max_model_len, max_num_seqs, block_size, cap)
    default_rows = workspace_rows(max_model_len, max_num_seqs, block_size)
    heads = heads_per_rank(mla, tp)
    row = held_row_bytes(mla, heads)
    k = rows * heads * mla.qk_head_dim * VALUE_BYTES
    kv_nope = rows * kv_nope_row_bytes(mla, heads)
    latent = rows * mla.row_values * VALUE_BYTES
    return WorkspaceCost(
        tp=tp,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        block_size=block_size,
        rows_cap=cap,
        rows=rows,
        latent_bytes=latent,
        k_bytes=k,
        v_bytes=rows * heads * mla.v_head_dim * VALUE_BYTES,
        kv_nope_bytes=kv_nope,
        transient_peak_bytes=kv_nope + (k if mla.qk_rope_head_dim else 0),
        reserved_bytes=kv_nope,
        held_bytes=rows * row,
        expansion_ratio=heads * mla.qk_head_dim / mla.row_values,
        cache_tokens_worth=rows * row // cache_bytes_per_token,
        cache_tokens_given_back=(None if rows_cap is None else (default_rows - rows) * row // cache_bytes_per_token),
        chunks=None,
    )


def kv_nope_row_bytes(mla: MLA, heads: int) -> int:
    """Bytes that one row takes in the up-projection's output, on a rank of ``heads`` heads."""
    return heads * (mla.qk_nope_head_dim + mla.v_head_dim) * VALUE_BYTES


def held_row_bytes(mla: MLA, heads: int) -> int:
    """Bytes per row that the cache cannot have: the latent buffer and the reserved up-projection."""
    return mla.row_values * VALUE_BYTES + kv_nope_row_bytes(mla, heads)
