"""Bytes that one token adds to a cache: latent rows or keys and values, indexer keys, windowed layers apart.

The same functions take one point or arrays (docs/cost-model.md, sections 2 and 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError, shown
from ..models.attention import GQA, MLA, Model, Windowed
from .layouts import Layout, head_bytes, latent_row_bytes
from .sharding import check_tp, kv_heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Ints

INDEXER_SCALE_GROUP = 128
INDEXER_SCALE_BYTES = 4
CACHE_FORMS = ("latent", "expanded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What an engine caches of an MLA token: its latent row, or the keys and values expanded from it.

    Hugging Face's reference classes cache the expansion, and so did vLLM before vllm#10927.
    """

    name: str = "latent"
    pad_head_dim: int | None = None
    """Width that every head's key and value is padded to: 256 in vllm#10927."""


LATENT = Form()


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Bytes that one token adds, over all layers, to one copy or to one rank."""

    main: Ints
    indexer: Ints
    windowed: Ints

    @property
    def growing(self) -> Ints:
        """What is added without end: windowed layers stop at their window."""
        return self.main + self.indexer


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers that cache, of a whole model or of one pipeline stage, the MTP layers included."""

    cached: Ints
    indexing: Ints
    windowed: Ints


def token_bytes(model: Model, layout: Layout, *, tp: int = 1, mtp_layers: int = 0, form: Form = LATENT) -> TokenBytes:
    """Bytes that one token adds on one of ``tp`` ranks; with ``tp`` 1, to one whole copy.

    Raises:
        InputError: ``tp``, ``layout`` or ``form`` does not fit the model.
    """
    check_tp(model, tp)
    windowed = model.windowed.layers if model.windowed else 0
    layers = Layers(model.cached_layers + mtp_layers, indexing_layers(model, mtp_layers), windowed)
    return layers_bytes(model, layout, layers, tp, form)


def layers_bytes(model: Model, layout: Layout, layers: Layers, tp: Ints, form: Form = LATENT) -> TokenBytes:
    """Bytes that one token adds on one of ``tp`` ranks of ``layers``; over one point or arrays."""
    attention = cached_attention(model, form)
    if isinstance(attention, MLA):
        main = latent_bytes_per_token(layers.cached, latent_row_bytes(layout, attention))
    else:
        main = _gqa_token_bytes(layers.cached, attention, layout, tp)
    windowed = model.windowed
    bounded = _gqa_token_bytes(layers.windowed, windowed, layout, tp) if windowed else 0
    return TokenBytes(main, _indexer_token_bytes(model, layers.indexing), bounded)


def cached_attention(model: Model, form: Form = LATENT) -> MLA | GQA:
    """The attention as it is cached: an MLA model's expansion is multi-head keys and values.

    Raises:
        InputError: a form that the model does not have, or a padding narrower than its heads.
    """
    if form.name not in CACHE_FORMS:
        raise InputError(f"--cache-form {shown(form.name)}: {' or '.join(CACHE_FORMS)} is accepted")
    if form.name == "latent":
        if form.pad_head_dim is not None:
            raise InputError("--pad-head-dim is for --cache-form expanded: a latent row has no heads")
        return model.attention
    if model.mla is None:
        raise InputError(f"{model.name} has no latent, so nothing to expand: --cache-form is for MLA models")
    return _expanded(model.mla, form.pad_head_dim)


def _expanded(mla: MLA, pad_head_dim: int | None) -> GQA:
    widest = max(mla.qk_head_dim, mla.v_head_dim)
    if pad_head_dim is not None and pad_head_dim < widest:
        raise InputError(f"--pad-head-dim {pad_head_dim}: keys are {mla.qk_head_dim} wide, values {mla.v_head_dim}")
    return GQA(
        heads=mla.heads,
        hidden_size=mla.hidden_size,
        kv_heads=mla.heads,
        qk_head_dim=pad_head_dim or mla.qk_head_dim,
        v_head_dim=pad_head_dim or mla.v_head_dim,
    )


def indexing_layers(model: Model, mtp_layers: int = 0) -> int:
    """Layers that hold indexer keys; MTP layers index too, as in vLLM."""
    return model.indexer.layers + mtp_layers if model.indexer else 0


def indexer_bytes_per_token_per_layer(head_dim: int) -> int:
    """Bytes of one indexer key: fp8 values and one fp32 scale per 128 of them; 132 B for a width of 128.

    Source: vllm/v1/attention/backends/mla/indexer.py and SGLang's DSATokenToKVPool, as the chapter quotes.
    """
    return head_dim + -(-head_dim // INDEXER_SCALE_GROUP) * INDEXER_SCALE_BYTES


def latent_bytes_per_token(layers: Ints, row_bytes: int) -> Ints:
    """Bytes that a token takes in the latent cache of ``layers`` layers: no factor 2, no factor of heads."""
    return layers * row_bytes


def gqa_bytes_per_token(layers: Ints, kv_heads: Ints, bytes_per_head: int) -> Ints:
    """Bytes that a token takes in a GQA cache; ``bytes_per_head`` is of one head's key and value."""
    return layers * kv_heads * bytes_per_head


def _gqa_token_bytes(layers: Ints, attention: GQA | Windowed, layout: Layout, tp: Ints) -> Ints:
    return gqa_bytes_per_token(layers, kv_heads_per_rank(attention, tp), head_bytes(layout, attention))


def _indexer_token_bytes(model: Model, layers: Ints) -> Ints:
    if not model.indexer:
        return 0
    whole = layers * indexer_bytes_per_token_per_layer(model.indexer.head_dim)
    return -(-whole // model.indexer.pool)


def check_mtp(model: Model, mtp_layers: int) -> None:
    """Refuse more MTP layers than the model has. Raises InputError."""
    if mtp_layers and model.mtp_layers is None:
        raise InputError(f"--mtp-layers {mtp_layers}: how many MTP layers {model.name} has is not known")
    if mtp_layers > (model.mtp_layers or 0):
        raise InputError(f"--mtp-layers {mtp_layers}: {model.name} has {model.mtp_layers}")
