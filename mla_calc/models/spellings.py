"""The names that configs give to one thing, and the names of what is not modelled: tables.

Three dialects are read: Hugging Face ``config.json`` (``num_attention_heads``), DeepSeek's native json and
Mistral's ``params.json`` (``n_heads``), openPangu's renamed keys (``attention_kv_lora_dim``). Throughout, a
thing is called by its Hugging Face name. What no table here knows is not read, and what a table knows to
change the cache in a way that is not modelled is refused, never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import shown

WRAPPERS = ("text_config", "language_config", "llm_config")
"""Where multimodal configs keep the language model: Kimi-K2.5, DeepSeek-OCR and -VL2, InternVL."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "kv_lora_rank": ("kv_lora_rank", "attention_kv_lora_dim"),
    "q_lora_rank": ("q_lora_rank", "attention_q_lora_dim"),
    "qk_nope_head_dim": ("qk_nope_head_dim", "attention_qk_dim"),
    "qk_rope_head_dim": ("qk_rope_head_dim", "attention_qk_rope_dim"),
    "v_head_dim": ("v_head_dim", "attention_v_dim"),
    "hidden_size": ("hidden_size", "dim"),
    "num_attention_heads": ("num_attention_heads", "n_heads"),
    "num_key_value_heads": ("num_key_value_heads", "n_kv_heads"),
    "num_hidden_layers": ("num_hidden_layers", "n_layers"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
    "sliding_window": ("sliding_window", "sliding_window_size", "_sliding_window"),
    "sliding_window_pattern": ("sliding_window_pattern", "_sliding_window_pattern"),
    "max_position_embeddings": ("max_position_embeddings", "model_max_length"),
    "num_nextn_predict_layers": (
        "num_nextn_predict_layers",
        "num_mtp_layers",
        "num_mtp_modules",
        "n_mtp_layers",
    ),
}

INDEXER = ("index_n_heads", "index_head_dim", "index_topk")
INDEXER_PATTERNS = (
    "indexer_types",
    "index_topk_pattern",
    "index_topk_freq",
    "index_skip_topk_offset",
    "index_kpool",
)
SLIDING = ("swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim")
LAYERS = ("num_layers", "use_sliding_window", "linear_value_head_dim")

MAP_KEYS = (
    "linear_attn_config",
    "layer_group_size",
    "layer_types",
    "hybrid_layer_pattern",
    "sliding_window_pattern",
    "max_window_layers",
)
"""Keys that say which layers are of which kind."""
RECURRENT_MAPS = MAP_KEYS[:4]
"""Those of them that can tell recurrent layers (or MiMo's) apart."""

MLA_ONLY = re.compile(
    r"compress_ratio|(^|_)(kv|q|o)_lora(_|$)|^mla_|(^|_)mla$|^qk_(nope|rope|head)_|^attention_(qk|qk_rope|v)_dim$|^o_groups$"
    r"|kv_latent|latent_attention"
)
"""Keys that only a latent attention has. ``v_head_dim`` is not one: MiMo-V2-Flash, a GQA model, has it."""

NOT_MODELLED: Mapping[str, str] = {
    "compress_ratios": "compressed attention as in DeepSeek-V4 is neither MLA nor GQA",
    "kv_source_layer_ids": "layers that read the cache of another layer are not modelled",
    "kv_source_layers": "layers that read the cache of another layer are not modelled",
    "num_kv_shared_layers": "layers that read the cache of another layer are not modelled",
    "use_cla": "layers that read the cache of another layer are not modelled",
    "cla_share_factor": "layers that read the cache of another layer are not modelled",
    "index_source_layer_ids": "indexers that are shared by a list of layers are not modelled",
    "index_source_layers": "indexers that are shared by a list of layers are not modelled",
    "index_topk_blocks": "block-sparse attention is not modelled",
    "index_block_size": "block-sparse attention is not modelled",
    "sparse_attention_config": "block-sparse attention is not modelled",
    "sparse_config": "block-sparse attention is not modelled",
    "mla_layers": "a list of the layers that are MLA, the rest of another kind, is not modelled",
    "hybrid_override_pattern": "layers of different kinds, mixed by this pattern, are not modelled",
    "layers_block_type": "layers of different kinds, mixed by this list, are not modelled",
    "layer_block_types": "layers of different kinds, mixed by this list, are not modelled",
    "block_types": "layers of different kinds, mixed by this list, are not modelled",
    "attn_type_list": "layers of different kinds, mixed by this list, are not modelled",
    "attention_types": "layers of different kinds, mixed by this list, are not modelled",
    "attn_layer_period": "layers of different kinds, mixed by this period, are not modelled",
    "attn_layer_indices": "layers of different kinds, mixed by this list, are not modelled",
    "full_attn_idxs": "layers of different kinds, mixed by this list, are not modelled",
    "attn_layer_idxs": "layers of different kinds, mixed by this list, are not modelled",
    "mixer_types": "layers of different kinds, mixed by this list, are not modelled",
    "kda_layers": "layers of different kinds are read in linear_attn_config only",
    "full_attn_layers": "layers of different kinds are read in linear_attn_config only",
    "mb_per_layer": "layers of different kinds, mixed by this period, are not modelled",
    "block_configs": "attention that differs from layer to layer is not modelled",
    "per_layer_config": "attention that differs from layer to layer is not modelled",
    "num_attention_heads_per_layer": "attention that differs from layer to layer is not modelled",
    "num_key_value_heads_per_layer": "attention that differs from layer to layer is not modelled",
    "attn_module_list_cfg": "attention that differs from layer to layer is not modelled",
    "global_head_dim": "global layers with dimensions of their own are not modelled",
    "hidden_size_global": "global layers with dimensions of their own are not modelled",
    "num_global_key_value_heads": "global layers with dimensions of their own are not modelled",
    "global_attn_every_n_layers": "this spelling of a sliding-window pattern is not understood",
    "attention_k_eq_v": "one cached row that serves as key and value is not modelled for GQA",
    "attention_chunk_size": "chunked attention (Llama 4) is not modelled",
    "attention_window": "this spelling of a sliding window is not understood",
    "use_bidirectional_attention": "bidirectional attention keeps no cache of this kind",
    "cross_attention_layers": "cross-attention layers are not modelled",
    "cross_attention_frequency": "cross-attention layers are not modelled",
    "cross_layer_interval": "cross-attention layers are not modelled",
    "add_cross_attention": "cross-attention layers are not modelled",
    "is_encoder_decoder": "encoder-decoder models are not modelled",
    "total_ut_steps": "looped layers, which cache once per loop, are not modelled",
    "n_recurrent_loops": "looped layers, which cache once per loop, are not modelled",
}
"""Keys that change what is cached, with the reason they are refused wherever they are switched on."""

NOT_MODELLED_PREFIXES: Mapping[str, str] = {
    "mamba_": "Mamba layers are not modelled",
    "ssm_": "state-space layers are not modelled",
    "rwkv_": "RWKV layers are not modelled",
}

NEEDS_LAYER_MAP = (
    "full_attention_interval",
    "linear_num_value_heads",
    "linear_num_key_heads",
    "linear_num_heads",
    "linear_key_head_dim",
    "linear_head_dim",
    "hybrid_block_size",
)
"""Keys that say some layers cache otherwise; which ones, only a layer map says."""

READ = frozenset(
    {key for keys in SPELLINGS.values() for key in keys}
    | {*INDEXER, *INDEXER_PATTERNS, *SLIDING, *LAYERS, *MAP_KEYS, *NEEDS_LAYER_MAP, *NOT_MODELLED}
    | {"original_seq_len", "rope_factor", "yarn"}
)
"""Every key whose value matters here; where one stands at the top and nested, the two have to agree."""

ATTENTION = tuple(
    key
    for name in ("kv_lora_rank", "num_attention_heads", "num_key_value_heads", "q_lora_rank")
    for key in SPELLINGS[name]
)
"""A mapping that holds one of these describes an attention."""


def matters(key: object) -> bool:
    """Whether ``key`` is one that this reader acts upon, read or refused."""
    return isinstance(key, str) and (
        key in READ or bool(MLA_ONLY.search(key)) or key.startswith(("swa_", *NOT_MODELLED_PREFIXES))
    )


def switched_on(value: object) -> bool:
    """Whether a value turns its key on: ``null``, ``false``, 0 and empty lists leave a feature off."""
    return value is not None and value is not False and value != 0 and value not in ("", [], {})


def same(one: object, other: object) -> bool:
    """Equality that keeps 1, 1.0 and ``true`` apart."""
    return type(one) is type(other) and one == other


def quoted(value: object) -> str:
    """``value`` as a message shows it, in JSON's words, on one line, whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        return shown(value)
    except (ValueError, RecursionError):  # an int with more digits than Python prints; endless nesting
        return "a value too long to show"
