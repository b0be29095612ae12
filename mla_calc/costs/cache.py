"""Bytes of cache per token, per layer, per rank and in the cluster (docs/cost-model.md, section 2).

The latent has no head axis: every rank of a tensor-parallel group stores all of it, so MLA's bytes per rank
do not fall with TP and the cluster holds TP copies. GQA's KV heads shard until there are more ranks than
heads, and replicate after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import minimum
from ..models.attention import GQA, MLA, Model
from .layouts import Layout, latent_row_bytes
from .tokens import LATENT, Form, TokenBytes, check_mtp
from .tokens import gqa_bytes_per_token as gqa_bytes_per_token
from .tokens import indexer_bytes_per_token_per_layer as indexer_bytes_per_token_per_layer
from .tokens import indexing_layers as indexing_layers
from .tokens import latent_bytes_per_token as latent_bytes_per_token
from .tokens import token_bytes as token_bytes

if TYPE_CHECKING:
    from ..arrays import Ints

DEFAULT_CONTEXT = 4096
EXPANDED_VALUE_BYTES = 2
"""Expanded keys and values are activations: bf16, whatever the cache stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A model beside the one asked for, at the same TP."""

    model: str
    layout: str
    bytes_per_token: int
    indexer_layers: int
    windowed_layers: int
    windowed_bytes_per_token: int
    recurrent_layers: int
    per_rank_bytes_per_token: int
    cluster_bytes_per_token: int
    ratio: float
    """Its bytes per token over those of the model asked for."""
    break_even_tp: float | None
    """The TP at which MLA's copies reach this model's cluster-wide bytes; ``None``: there is none."""
    break_even_note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCost:
    """What a model caches. Bytes per token are for all its layers and one copy unless a name says more."""

    tp: int
    layout: str
    cache_form: str
    pad_head_dim: int | None
    bytes_per_token: int
    """What one more token adds: main layers, MTP layers and indexer keys; windowed layers apart."""
    latent_bytes_per_token: int | None
    latent_bytes_per_token_per_layer: int | None
    expanded_bytes_per_token: int | None
    expanded_per_rank_bytes_per_token: int | None
    expanded_to_latent_ratio: float | None
    never_cached_bytes_per_token_per_layer: int | None
    indexer_bytes_per_token: int
    indexer_layers: int
    windowed_layers: int
    windowed_bytes_per_token: int
    """Added per token by the sliding-window layers while their window is not full."""
    windowed_per_rank_bytes_per_token: int
    window: int | None
    recurrent_layers: int
    """Linear-attention layers: a fixed state per request, which is not counted."""
    mtp_layers: int
    per_rank_bytes_per_token: int
    cluster_bytes_per_token: int
    break_even_tp: float | None
    vs: tuple[Comparison, ...]
    context: int | None = None
    batch: int | None = None
    block_size: int | None = None
    total_bytes: int | None = None
    """One copy of the caches of ``batch`` requests of ``context`` tokens."""
    allocated_bytes: int | None = None
    """The same, each request rounded up to whole pages."""
    per_rank_total_bytes: int | None = None
    cluster_total_bytes: int | None = None


def break_even_tp(mla_bytes: int, gqa: GQA, gqa_bytes: int) -> tuple[float | None, str | None]:
    """The TP at which TP copies of MLA's cache weigh what GQA's one sharded copy does, or why there is none.

    It holds while it is at most ``gqa.kv_heads``: beyond that GQA replicates too, and both grow alike.
    """
    even = gqa_bytes / mla_bytes
    if even > gqa.kv_heads:
        return None, f"beyond TP {gqa.kv_heads} its KV heads replicate too, so MLA stays smaller at every TP"
    if even < 1:
        return None, "it is smaller at TP 1 already"
    return even, None


def cache_cost(
    model: Model,
    layout: Layout,
    *,
    form: Form = LATENT,
    tp: int = 1,
    mtp_layers: int = 0,
    vs: tuple[tuple[Model, Layout], ...] = (),
    context: int | None = None,
    batch: int | None = None,
    block_size: int = 64,
) -> CacheCost:
    """Bytes per token of ``model`` cached in ``layout``, with totals if ``context`` or ``batch`` is given.

    Raises:
        InputError: ``tp``, ``layout`` or ``form`` does not fit the model, or it has fewer than ``mtp_layers``.
    """
    check_mtp(model, mtp_layers)
    copy = token_bytes(model, layout, tp=1, mtp_layers=mtp_layers, form=form)
    rank = token_bytes(model, layout, tp=tp, mtp_layers=mtp_layers, form=form)
    comparisons = tuple(_compare(model, form, copy.growing, other, its_layout, tp) for other, its_layout in vs)
    return CacheCost(
        tp=tp,
        layout=layout.name,
        cache_form=form.name,
        pad_head_dim=form.pad_head_dim,
        bytes_per_token=copy.growing,
        **_latent_against_expanded(model.mla, layout, form, model.cached_layers + mtp_layers, tp),
        indexer_bytes_per_token=copy.indexer,
        indexer_layers=indexing_layers(model, mtp_layers),
        **_layers_apart(model),
        windowed_bytes_per_token=copy.windowed,
        windowed_per_rank_bytes_per_token=rank.windowed,
        window=model.windowed.window if model.windowed else None,
        mtp_layers=mtp_layers,
        per_rank_bytes_per_token=rank.growing,
        cluster_bytes_per_token=rank.growing * tp,
        break_even_tp=comparisons[0].break_even_tp if comparisons else None,
        vs=comparisons,
        **_asked_totals(model, copy, rank, tp, context, batch, block_size),
    )


def request_bytes(token: TokenBytes, context: Ints, window: int | None, block_size: Ints = 1) -> Ints:
    """Bytes of one request of ``context`` tokens, in whole pages of ``block_size`` tokens."""
    bounded = minimum(context, window) if window else 0
    return paged(context, block_size) * token.growing + paged(bounded, block_size) * token.windowed


_LATENT_FIGURES = (
    "latent_bytes_per_token",
    "latent_bytes_per_token_per_layer",
    "expanded_bytes_per_token",
    "expanded_per_rank_bytes_per_token",
    "expanded_to_latent_ratio",
    "never_cached_bytes_per_token_per_layer",
)


def _latent_against_expanded(mla: MLA | None, layout: Layout, form: Form, layers: int, tp: int) -> dict[str, Any]:
    if mla is None:
        return dict.fromkeys(_LATENT_FIGURES)
    row = latent_row_bytes(layout, mla)
    latent = latent_bytes_per_token(layers, row)
    expanded = layers * mla.heads * mla.expanded_head_values * EXPANDED_VALUE_BYTES
    never = None  # where the expansion is cached
    if form.name == "latent":
        never = mla.heads * (mla.qk_nope_head_dim + mla.v_head_dim) * EXPANDED_VALUE_BYTES
    figures = (latent, row, expanded, expanded // tp, expanded / latent, never)
    return dict(zip(_LATENT_FIGURES, figures, strict=True))


def _layers_apart(model: Model) -> dict[str, Any]:
    """The layers whose bytes do not grow with the context."""
    return {
        "windowed_layers": model.windowed.layers if model.windowed else 0,
        "recurrent_layers": model.recurrent.layers if model.recurrent else 0,
    }


def _compare(model: Model, form: Form, copy_bytes: int, other: Model, layout: Layout, tp: int) -> Comparison:
    copy = token_bytes(other, layout)
    rank = token_bytes(other, layout, tp=tp)
    even, why_not = break_even(model, copy_bytes, other, copy.growing)
    if form.name != "latent":
        even, why_not = None, "an expanded cache shards its heads over TP"
    return Comparison(
        model=other.name,
        layout=layout.name,
        bytes_per_token=copy.growing,
        indexer_layers=indexing_layers(other),
        **_layers_apart(other),
        windowed_bytes_per_token=copy.windowed,
        per_rank_bytes_per_token=rank.growing,
        cluster_bytes_per_token=rank.growing * tp,
        ratio=copy.growing / copy_bytes,
        break_even_tp=even,
        break_even_note=why_not,
    )


def break_even(model: Model, copy_bytes: int, other: Model, other_bytes: int) -> tuple[float | None, str | None]:
    """:func:`break_even_tp` of two models' bytes per token, where the one is MLA and the other GQA."""
    if model.mla is None or other.gqa is None:
        same = "both replicate over TP" if model.mla else "both shard their KV heads over TP"
        return None, same if (model.mla is None) == (other.mla is None) else f"ask for {other.name} --vs {model.name}"
    return break_even_tp(copy_bytes, other.gqa, other_bytes)


def totals(
    model: Model, copy: TokenBytes, rank: TokenBytes, tp: Ints, context: Ints, batch: Ints, block_size: Ints
) -> dict[str, Any]:
    """Bytes of ``batch`` requests of ``context`` tokens, over one point or arrays.

    ``copy`` and ``rank`` are the bytes per token of one whole copy and of one of ``tp`` ranks.
    """
    window = model.windowed.window if model.windowed else None
    rank_total = batch * request_bytes(rank, context, window)
    return {
        "total_bytes": batch * request_bytes(copy, context, window),
        "allocated_bytes": batch * request_bytes(copy, context, window, block_size),
        "per_rank_total_bytes": rank_total,
        "cluster_total_bytes": rank_total * tp,
    }


def _asked_totals(
    model: Model, copy: TokenBytes, rank: TokenBytes, tp: int, context: int | None, batch: int | None, block: int
) -> dict[str, Any]:
    """The totals with the sizes they are for, or nothing where neither context nor batch is asked for."""
    if context is None and batch is None:
        return {}
    context = DEFAULT_CONTEXT if context is None else context
    batch = 1 if batch is None else batch
    sizes = {"context": context, "batch": batch, "block_size": block}
    return sizes | totals(model, copy, rank, tp, context, batch, block)


def paged(tokens: Ints, block_size: Ints) -> Ints:
    """``tokens`` rounded up to whole pages of ``block_size``."""
    return -(-tokens // block_size) * block_size
