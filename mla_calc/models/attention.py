"""What a model's attention looks like: the shapes that every cost is counted from.

Names are those of the configs (``kv_lora_rank``, ``qk_nope_head_dim``); the letters of the papers stand in
brackets. A model holds one kind of attention on its cached layers and, besides, may hold windowed layers
(bounded by their window), recurrent layers (a fixed state) and indexer keys (sparse attention).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..expected import Erratum, Expected
from ..schema import STRICT, Count, Dimension, Large, Text

Sources = Mapping[str, tuple[Text, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MLA:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): one latent row per token, for all heads."""

    __pydantic_config__ = STRICT

    heads: Dimension
    """Query heads (h)."""
    hidden_size: Dimension
    """Width of the residual stream (H)."""
    kv_lora_rank: Dimension
    """Width of the latent that replaces keys and values (r)."""
    qk_nope_head_dim: Dimension
    """Width per head of the part of a key that is rebuilt from the latent (dn)."""
    qk_rope_head_dim: Count
    """Width of the rotated part of a key, shared by all heads and cached as it is (dr); may be 0."""
    v_head_dim: Dimension
    """Width per head of a value (dv); need not equal ``qk_nope_head_dim``."""
    q_lora_rank: Dimension | None
    """Width of the query's own latent (Lq), or ``None``: the query is projected in one step."""
    rotated: bool = True
    """Whether the rope slice is rotated; Kimi Linear and Kimi K3 project and cache it as it is."""

    @property
    def row_values(self) -> int:
        """Values in a cached row: the latent and the rotated slice, r + dr."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def qk_head_dim(self) -> int:
        """Width per head of a whole key in the naive form, dn + dr."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def expanded_head_values(self) -> int:
        """Values per head and token once expanded: the key and the value, dn + dr + dv."""
        return self.qk_head_dim + self.v_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class GQA:
    """Grouped-query attention; multi-head attention where ``kv_heads`` equals ``heads``."""

    __pydantic_config__ = STRICT

    heads: Dimension
    hidden_size: Dimension
    kv_heads: Dimension
    qk_head_dim: Dimension
    v_head_dim: Dimension

    @property
    def row_values(self) -> int:
        """Values cached per token and layer over all KV heads: keys and values."""
        return self.kv_heads * (self.qk_head_dim + self.v_head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """Sliding-window layers: their cache grows up to ``window`` tokens per request and stops there."""

    __pydantic_config__ = STRICT

    layers: Dimension
    window: Dimension
    kv_heads: Dimension
    qk_head_dim: Dimension
    v_head_dim: Dimension

    @property
    def row_values(self) -> int:
        """Values cached per token and layer while the window is not full."""
        return self.kv_heads * (self.qk_head_dim + self.v_head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """Linear-attention layers: a state of fixed size per request, whatever its context."""

    __pydantic_config__ = STRICT

    layers: Dimension
    state_values: Dimension | None = None
    """Values of the state per layer and request (convolution left out), or ``None`` where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """DeepSeek sparse attention's indexer: it scores every cached position, attention reads the top-k."""

    __pydantic_config__ = STRICT

    heads: Dimension
    head_dim: Dimension
    topk: Dimension
    layers: Dimension
    """Layers that hold indexer keys; the others reuse the choice of the layer before."""
    pool: Dimension = 1
    """Keys are mean-pooled over this many tokens before they are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of the whole model, as its authors count them."""

    __pydantic_config__ = STRICT

    total: Large | None = None
    active: Large | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How parameters are stored: ``bytes`` for every ``per`` of them, their scales included."""

    __pydantic_config__ = STRICT

    dtype: Text
    bytes: Dimension
    per: Dimension = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights(Stored):
    """How the checkpoint stores its parameters, all of them or all but those of attention."""

    __pydantic_config__ = STRICT

    attention: Stored | None = None
    """The attention's projections where they are stored otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: one attention, on how many layers, and what else caches; see the fields.

    Exactly one of ``mla`` and ``gqa`` is set; :attr:`attention` is that one.
    """

    __pydantic_config__ = STRICT

    name: Text
    aliases: tuple[Text, ...] = ()
    hf: tuple[Text, ...] = ()
    """Hugging Face ids that answer to this preset."""
    status: Literal["verified", "secondary", "config"] = "verified"
    """``secondary``: read in a third party's copy of the config; ``config``: read just now from a config."""
    mla: MLA | None = None
    gqa: GQA | None = None
    cached_layers: Dimension
    """Layers that hold a cache of ``attention`` (L): LongCat has two per transformer layer, hybrids few."""
    transformer_layers: Dimension
    """Layers as the config counts them (``num_hidden_layers``), MTP layers apart."""
    windowed: Windowed | None = None
    recurrent: Recurrent | None = None
    indexer: Indexer | None = None
    mtp_layers: Count | None = None
    """Multi-token-prediction layers in the checkpoint; they cache only where speculative decoding runs."""
    max_position_embeddings: Large | None = None
    parameters: Parameters = field(default_factory=Parameters)
    weights: Weights | None = None
    """How the checkpoint stores its parameters, or ``None`` where that was not read."""
    notes: tuple[Text, ...] = ()
    expect: tuple[Expected, ...] = ()
    errata: tuple[Erratum, ...] = ()
    """Published figures of this model that are wrong."""
    sources: Sources = field(default_factory=dict)
    """Where each figure was read, by field name; ``default`` covers the fields not named."""

    def __post_init__(self) -> None:
        if (self.mla is None) == (self.gqa is None):
            raise ValueError("exactly one of `mla` and `gqa` describes the attention")
        if self.indexer is not None and self.indexer.layers > self.cached_layers:
            raise ValueError("indexer.layers is more than cached_layers")
        if self.gqa is not None and self.gqa.heads % self.gqa.kv_heads:
            raise ValueError("gqa.kv_heads does not divide gqa.heads")

    @property
    def attention(self) -> MLA | GQA:
        """The attention of the cached layers."""
        attention = self.mla or self.gqa
        assert attention is not None  # __post_init__ holds it
        return attention
