"""What chunked prefill sets aside and what it builds on top (docs/cost-model.md, section 6).

The sizes are an engine's: a release's rule is in its preset. The buffers are read in vllm 0.33.0
model_executor/layers/attention/mla_attention.py: the gathered rows at :2463-2496, the transients at :3043 and
:2952, the profile run at :934-947; those of sparse models in v1/attention/backends/mla/flashmla_sparse.py:336-344
and indexer.py:916-927.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from ..arrays import maximum, minimum
from ..models.attention import MLA, Indexer
from ..schema import STRICT, Count, Dimension, Text
from .cache import indexer_bytes_per_token_per_layer
from .sharding import heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Ints

VALUE_BYTES = 2
"""The gathered rows and what is built from them are 16-bit, whatever the cache stores, unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseScratch:
    """What vLLM's FlashMLA sparse prefill keeps besides: so many times the longest length."""

    __pydantic_config__ = STRICT

    prefill_factor: Dimension
    """Lengths of latent rows in the prefill workspace."""
    indexer_factor: Dimension
    """Lengths of indexer keys in the indexer's buffer."""
    long_length: Dimension | None = None
    """Beyond this length the ``long_`` factors hold."""
    long_prefill_factor: Count = 0
    long_indexer_factor: Count = 0
    source: Text


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
    sparse_scratch: SparseScratch | None = None
    source: Text


VLLM = WorkspaceRule(
    rows_cap=65536,
    full_length_requests=8,
    pages_per_request=4,
    sparse_cap=True,
    sparse_scratch=SparseScratch(
        prefill_factor=5,
        indexer_factor=40,
        long_length=262_144,
        long_prefill_factor=2,
        long_indexer_factor=16,
        source="vllm 0.33.0 vllm/v1/attention/backends/mla/flashmla_sparse.py:336-344, indexer.py:916-927",
    ),
    source="vllm 0.33.0 vllm/model_executor/layers/attention/mla_attention.py:2329-2354",
)
"""The rule where no engine is named: vLLM 0.33's; vllm#25290 had halved its cap of 128k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCost:
    """Rows and buffers of one rank; one layer's at a time, shared by all layers."""

    tp: int
    dcp: int
    max_model_len: int
    max_num_seqs: int
    block_size: int
    rows_cap: int
    rows: int
    buffer_rows: int
    """Rows of the buffer: under DCP a share for the local gather on top of those all-gathered."""
    latent_bytes: int
    """The buffer of gathered rows, allocated once."""
    k_bytes: int
    v_bytes: int
    kv_nope_bytes: int
    """The up-projection's output: nope keys and values together."""
    transient_peak_bytes: int
    """kv_nope and the assembled keys at once; values are a view of kv_nope."""
    reserved_rows: int
    """Rows that the profile run reckons with: those of the dense rule, also for a DSA model (vllm#57170)."""
    reserved_bytes: int
    """What the profile run sets aside of the transients: kv_nope by the dense rule, not the keys."""
    sparse_prefill_bytes: int | None
    """0 for a dense model; ``None`` where what a release keeps for a DSA model was not read."""
    indexer_buffer_bytes: int | None
    held_bytes: int
    """What the cache cannot have: the buffers and the reserve, as far as they were read."""
    expansion_ratio: float
    """The keys alone over the latent rows that they come from."""
    cache_tokens_worth: int
    """Tokens of cache that the buffers and the reserve take the place of."""
    cache_tokens_given_back: int | None
    """Tokens of cache gained against the engine's own cap, fewer than none for a larger one; ``None`` without one."""


def workspace_rows(
    rule: WorkspaceRule,
    max_model_len: Ints,
    max_num_seqs: Ints,
    block_size: Ints,
    rows_cap: Ints | None = None,
    *,
    topk: int | None = None,
    alignment: Ints | None = None,
) -> Ints:
    """Rows of the workspace: min(max(8 * length, 4 * requests * block), cap), rounded up to the alignment.

    ``topk`` is of a DSA model, whose rows a rule may cap further; ``alignment`` is the block unless DCP asks
    for more.
    """
    step = block_size if alignment is None else alignment
    wanted = maximum(rule.full_length_requests * max_model_len, rule.pages_per_request * max_num_seqs * block_size)
    rows = minimum(wanted, rule.rows_cap if rows_cap is None else rows_cap)
    if topk is not None and rule.sparse_cap:
        rows = minimum(rows, max_num_seqs * topk)
    if rule.at_least_a_page_per_request:
        rows = maximum(rows, max_num_seqs * block_size)
    return -(-maximum(rows, 1) // step) * step


@dataclass(frozen=True, slots=True)
class _Buffers:
    """The buffers at one cap of rows, bytes."""

    rows: Ints
    buffer_rows: Ints
    reserved_rows: Ints
    latent: Ints
    reserved: Ints
    held: Ints


def workspace_cost(
    mla: MLA,
    *,
    max_model_len: int,
    cache_bytes_per_token: int,
    tp: int = 1,
    max_num_seqs: int = 256,
    block_size: int = 64,
    rows_cap: int | None = None,
    rule: WorkspaceRule = VLLM,
    indexer: Indexer | None = None,
    dcp: int = 1,
    interleave: int = 1,
    buffer_value_bytes: int = VALUE_BYTES,
) -> WorkspaceCost:
    """Price the workspace of one rank; ``cache_bytes_per_token`` turns bytes into tokens of cache.

    ``indexer`` makes the model a DSA one, with the rule's further cap and scratch. Under ``dcp`` the buffer has
    the model's dtype; without it ``buffer_value_bytes`` is 1 where an fp8 prefill gathers fp8 rows.

    Raises:
        InputError: a TP that does not divide the heads.
    """
    heads = heads_per_rank(mla, tp)
    step = lcm(block_size, dcp * interleave) if dcp > 1 else block_size
    width = VALUE_BYTES if dcp > 1 else buffer_value_bytes
    prefill, keys = _scratch(rule, mla, indexer, max_model_len)
    besides = 0 if prefill is None or keys is None else prefill + keys
    sizes = (max_model_len, max_num_seqs, block_size)

    def buffers(cap: int | None) -> _Buffers:
        rows = workspace_rows(rule, *sizes, cap, topk=indexer.topk if indexer else None, alignment=step)
        buffer_rows = rows + rows // dcp if dcp > 1 else rows
        reserved_rows = workspace_rows(rule, *sizes, cap, alignment=step)
        latent, reserved = buffer_rows * mla.row_values * width, reserved_rows * kv_nope_row_bytes(mla, heads)
        return _Buffers(rows, buffer_rows, reserved_rows, latent, reserved, latent + reserved + besides)

    own = buffers(rows_cap)
    rows = own.rows
    k, kv_nope = rows * heads * mla.qk_head_dim * VALUE_BYTES, rows * kv_nope_row_bytes(mla, heads)
    freed = None if rows_cap is None else buffers(None).held - own.held
    return WorkspaceCost(
        tp=tp,
        dcp=dcp,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        block_size=block_size,
        rows_cap=rule.rows_cap if rows_cap is None else rows_cap,
        rows=rows,
        buffer_rows=own.buffer_rows,
        latent_bytes=own.latent,
        k_bytes=k,
        v_bytes=rows * heads * mla.v_head_dim * VALUE_BYTES,
        kv_nope_bytes=kv_nope,
        transient_peak_bytes=kv_nope + (k if mla.qk_rope_head_dim else 0),
        reserved_rows=own.reserved_rows,
        reserved_bytes=own.reserved,
        sparse_prefill_bytes=prefill,
        indexer_buffer_bytes=keys,
        held_bytes=own.held,
        expansion_ratio=heads * mla.qk_head_dim / mla.row_values,
        cache_tokens_worth=own.held // cache_bytes_per_token,
        cache_tokens_given_back=None if freed is None else freed // cache_bytes_per_token,
    )


def _scratch(
    rule: WorkspaceRule, mla: MLA, indexer: Indexer | None, max_model_len: Ints
) -> tuple[Ints, Ints] | tuple[None, None]:
    """Bytes of the sparse prefill workspace and of the indexer's key buffer; ``None`` where they were not read."""
    scratch = rule.sparse_scratch
    if indexer is None:
        return 0, 0
    if scratch is None:
        return None, None
    prefill: Ints = scratch.prefill_factor
    keys: Ints = scratch.indexer_factor
    if scratch.long_length is not None:
        long = max_model_len > scratch.long_length  # a bool or an array of them: either way 0 or 1
        prefill = prefill + long * (scratch.long_prefill_factor - prefill)
        keys = keys + long * (scratch.long_indexer_factor - keys)
    key_bytes = indexer_bytes_per_token_per_layer(indexer.head_dim)
    return prefill * max_model_len * mla.row_values * VALUE_BYTES, keys * max_model_len * key_bytes


def kv_nope_row_bytes(mla: MLA, heads: Ints) -> Ints:
    """Bytes that one row takes in the up-projection's output, on a rank of ``heads`` heads."""
    return heads * (mla.qk_nope_head_dim + mla.v_head_dim) * VALUE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionCost:
    """What an engine that sets no workspace aside expands at a time, on one rank."""

    tp: int
    rows: int
    latent_bytes: None
    k_bytes: int
    v_bytes: int
    kv_nope_bytes: int
    transient_peak_bytes: int
    reserved_bytes: None
    cache_tokens_given_back: None


def expansion_cost(mla: MLA, *, rows: int, tp: int = 1) -> ExpansionCost:
    """The transients of expanding ``rows`` tokens at once, as SGLang does up to its chunk capacity.

    Source: sglang 0.5.23 forward_batch_deepseek_mha_mixin.py:69, 204-216; at 131,072 rows and TP 1 kv 8 GiB and
    k 6 GiB.
    """
    heads = heads_per_rank(mla, tp)
    k, kv_nope = rows * heads * mla.qk_head_dim * VALUE_BYTES, rows * kv_nope_row_bytes(mla, heads)
    return ExpansionCost(
        tp=tp,
        rows=rows,
        latent_bytes=None,
        k_bytes=k,
        v_bytes=rows * heads * mla.v_head_dim * VALUE_BYTES,
        kv_nope_bytes=kv_nope,
        transient_peak_bytes=kv_nope + (k if mla.qk_rope_head_dim else 0),
        reserved_bytes=None,
        cache_tokens_given_back=None,
    )
