"""What becomes of a DSA model's rows that are no decode rows: dense MHA, masked MHA, or absorbed with the others.

Read in vllm 0.33.0: vllm/model_executor/layers/attention/mla_attention.py:992-997,1215-1240, the table of masked
MHA at :1786-1900, and sparse_mla_attention.py:70-144 beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError
from ..models.attention import MLA, Model
from .batch import Decision, Row
from .preset import Backend, Engine, MaskedMha, SparsePrefill


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rules are asked under."""

    engine: Engine
    backend: Backend
    model: Model
    mla: MLA
    tp: int
    major: int | None
    dcp: int
    cache_quantised: bool
    force_mqa: bool


def sparse_rest(rest: Sequence[Row], setting: Setting) -> Decision:
    """What becomes of the rows that are no decode rows under a sparse backend: all of them take one path.

    Masked MHA is decided on the longest query and the longest sequence of them, so one row decides for all.
    """
    prefill, indexer = setting.engine.sparse_prefill, setting.model.indexer
    if prefill is None or indexer is None:
        lacks = "its sparse prefill was not read" if indexer else f"{setting.model.name} has no indexer"
        raise InputError(f"{setting.engine.name}, {setting.backend.name}: {lacks}")
    longest = max(row.context for row in rest)
    if setting.force_mqa:
        return Decision("absorbed", "no decode row, and sparse_mla_force_mqa keeps those absorbed")
    if longest <= indexer.topk:
        return Decision("mha", f"the longest prefill has {longest:,} keys <= index_topk {indexer.topk:,}: dense MHA")
    ahead = f"the longest prefill has {longest:,} keys > index_topk {indexer.topk:,}"
    reason = _no_mask(prefill, setting)
    if reason is not None:
        return Decision("absorbed", f"{ahead}, and no masked MHA, since {reason}: absorbed")
    return _masked(rest, longest, ahead, prefill, setting)


def _no_mask(prefill: SparsePrefill, setting: Setting) -> str | None:
    """Why masked MHA does not exist in this setting, whatever the batch; ``None`` where it does."""
    mla = setting.mla
    dims = (mla.heads, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim)
    if setting.major not in prefill.masked_mha_majors:
        majors = " and ".join(f"{major}.x" for major in prefill.masked_mha_majors)
        return f"that needs compute capability {majors or 'that was not read'}"
    if setting.cache_quantised:
        return "that needs an unquantised cache"
    if setting.dcp > 1:
        return "there is none under DCP"
    if dims not in prefill.masked_mha_dims:
        return f"there is none for the dimensions of {setting.model.name}"
    if _table(prefill, setting) is None:
        return f"vLLM's table has no row for {setting.backend.name} at TP {setting.tp}"
    return None


def _table(prefill: SparsePrefill, setting: Setting) -> MaskedMha | None:
    for table in prefill.masked_mha:
        if (
            (table.qk_head_dim, table.v_head_dim) == (setting.mla.qk_head_dim, setting.mla.v_head_dim)
            and setting.backend.name in (table.backend, *table.also)
            and table.tp == setting.tp
        ):
            return table
    return None


def _masked(rest: Sequence[Row], longest: int, ahead: str, prefill: SparsePrefill, setting: Setting) -> Decision:
    """By the table: the first pair whose length covers the longest sequence says how many queries MHA takes."""
    table = _table(prefill, setting)
    assert table is not None  # _no_mask has asked
    has_context = any(row.prefix for row in rest)
    pairs = table.context_pairs if has_context and table.context_pairs is not None else table.pairs
    most = max(row.queries for row in rest)
    pair = next((pair for pair in pairs if longest <= pair[0]), None)
    if pair is None:
        covered = f"ends at {pairs[-1][0]:,}" if pairs else "has none with a prefix"
        return Decision("absorbed", f"{ahead}, and vLLM's table of masked MHA {covered}: absorbed")
    limit = f"the {pair[1]:,} from which vLLM's table takes masked MHA up to {pair[0]:,} keys"
    if most < pair[1]:
        return Decision("absorbed", f"{ahead}, and its {counted(most)} < {limit}: absorbed")
    if prefill.mask_bytes is not None and _mask_bytes(rest, most, setting) > prefill.mask_bytes:
        return Decision("absorbed", f"{ahead}, and the batch's masks outgrow their {prefill.mask_bytes:,} B: absorbed")
    return Decision("mha", f"{ahead}, and its {counted(most)} >= {limit}: masked MHA")


def _mask_bytes(rest: Sequence[Row], most: int, setting: Setting) -> int:
    """Bytes of a batch's bit masks (vllm 0.33.0, sparse_mla_attention.py:70-97): queries by keys, both padded.

    The keys are the new tokens or the longest piece of a prefix; a prefix is taken to be gathered in one piece
    as far as the workspace's cap lets it be.
    """
    workspace = setting.engine.workspace
    piece = max(row.prefix for row in rest)
    if workspace is not None:
        piece = min(piece, workspace.rows_cap)
    tile = 128 if most <= 128 else 256
    words = -(-max(most, piece) // 32)
    return 4 * len(rest) * (-(-most // tile) * tile) * (-(-words // 4) * 4)


def counted(count: int) -> str:
    """A number of queries in words."""
    return f"{count:,} {'query' if count == 1 else 'queries'}"
