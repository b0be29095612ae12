"""Arithmetic intensity of decode against TP (docs/cost-model.md, section 5; the chapter, section 1).

Context-only: the FLOPs and bytes that grow with the context, which is what long contexts tend to. MLA's falls
as 1/TP, since heads divide and the latent row does not; GQA's holds until its KV heads are one per rank.
Sparse attention reads topk rows at most, so that in the end only the indexer grows: its intensity is one at a
given context, and tends to the indexer's own, which no TP divides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import EXACT_IN_FLOAT, maximum, ratio
from ..hardware.roofline import Ceilings, binds
from ..models.attention import GQA, MLA, Indexer, Model
from .cache import DEFAULT_CONTEXT, break_even, token_bytes
from .counts import absorbed_core_flop
from .layouts import Layout, head_bytes, latent_row_bytes
from .paths import Work, check_step
from .sharding import check_tp, kv_heads_per_rank
from .sparse import decode_bytes, decode_flop, indexer_bytes_per_context_token, indexer_flop_per_pair

if TYPE_CHECKING:
    from ..arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityAtTp:
    """Intensity on one of ``tp`` ranks; ``ridge_share`` above 1 is compute-bound."""

    tp: int
    intensity_flop_per_byte: float
    ridge_share: float | None
    margin: float | None
    """The ridge over the intensity: by how much bandwidth binds (below 1, compute does)."""
    binds: str | None
    by: float | None
    """How many times longer the binding side takes than the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityOf:
    """A comparator's intensity at the same TPs."""

    model: str
    layout: str
    by_tp: tuple[IntensityAtTp, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIntensity:
    """What the intensities of sparse attention are of: indexer and attention of a layer that indexes."""

    context: int
    topk: int
    indexer_layers: int
    limit_flop_per_byte: float
    """What every TP's intensity tends to as the context grows: the indexer's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityCost:
    """Intensity by TP of absorbed decode (or of GQA decode) for ``queries`` tokens per request."""

    queries: int
    layout: str
    ridge_flop_per_byte: float | None
    by_tp: tuple[IntensityAtTp, ...]
    vs: tuple[IntensityOf, ...]
    ridge_heads_times_queries: float | None
    """Query heads per rank times queries at which the intensity reaches the ridge; ``None`` for GQA and under
    sparse attention, whose indexer no TP divides."""
    break_even_tp: float | None
    """The TP at which the cluster's bytes reach those of the first of ``vs``; ``None``: see the note."""
    break_even_note: str | None
    sparse: SparseIntensity | None = None
    """Of sparse attention; ``None``: dense, in the limit of a long context."""


LARGEST = 2**63 - 1
"""Largest of an int64."""


def core_flop_per_context_token(attention: MLA | GQA, tp: int) -> int:
    """FLOP per context token, layer and query of the decode kernel, on one of ``tp`` ranks."""
    heads = attention.heads // tp
    if isinstance(attention, MLA):
        core: int = absorbed_core_flop(attention, heads)
        return core
    return 2 * heads * (attention.qk_head_dim + attention.v_head_dim)


def context_token_bytes(attention: MLA | GQA, layout: Layout, tp: int) -> int:
    """Bytes per context token and layer that the decode kernel reads, on one of ``tp`` ranks."""
    if isinstance(attention, MLA):
        return latent_row_bytes(layout, attention)
    of_heads: int = kv_heads_per_rank(attention, tp) * head_bytes(layout, attention)
    return of_heads


def context_intensity(attention: MLA | GQA, layout: Layout, tp: int, queries: int = 1) -> float:
    """FLOP per byte of attention over the cache as the context grows; DeepSeek-V3 at TP 1 in bf16: 241.8."""
    flop = queries * core_flop_per_context_token(attention, tp)
    return flop / context_token_bytes(attention, layout, tp)


def sparse_intensity_figures(
    mla: MLA, layout: Layout, indexer: Indexer, ceilings: Ceilings | None, *, tp: Ints, queries: Ints, context: Ints
) -> dict[str, Any]:
    """The same of indexer and attention over min(context, topk) rows, over one point or arrays.

    Every query is counted over all of ``context``, as in the dense figure. DeepSeek-V3.2 in bf16 at TP 1 and 4,096
    keys: (16,384 * 4,096 + 278,528 * 2,048) / (132 * 4,096 + 1,152 * 2,048) = 219.8.
    """
    flop = decode_flop(mla, indexer, tp, queries, context)
    return intensity_figures(flop, decode_bytes(indexer, latent_row_bytes(layout, mla), context), ceilings)


def intensity_figures(flop: Ints, bytes_read: Ints, ceilings: Ceilings | None) -> dict[str, Any]:
    """The figures of :class:`IntensityAtTp` but ``tp``, over one point or arrays."""
    intensity = _quotient(flop, bytes_read)
    if ceilings is None:
        return {"intensity_flop_per_byte": intensity, **dict.fromkeys(("ridge_share", "margin", "binds", "by"))}
    ridge = ceilings.ridge_flop_per_byte
    share, margin = intensity / ridge, ridge / intensity
    return {
        "intensity_flop_per_byte": intensity,
        "ridge_share": share,
        "margin": margin,
        "binds": binds(_wide(flop, ceilings.bytes_per_s), _wide(bytes_read, ceilings.flop_per_s), ceilings),
        "by": maximum(share, margin),
    }


def ridge_heads_times_queries(mla: MLA, layout: Layout, ceilings: Ceilings) -> float:
    """Heads per rank times queries at which the intensity is the ridge: 156.4 on an H100 in bf16.

    FlashMLA's write-up (docs/20250422-new-kernel-deep-dive.md) rounds 1088/576 to 2 and gets 148.
    """
    per_head: float = absorbed_core_flop(mla, 1) / latent_row_bytes(layout, mla)
    return ceilings.ridge_flop_per_byte / per_head


def intensity_cost(
    model: Model,
    layout: Layout,
    tps: tuple[int, ...],
    *,
    queries: int = 1,
    ceilings: Ceilings | None = None,
    vs: tuple[tuple[Model, Layout], ...] = (),
    indexer: Indexer | None = None,
    context: int = DEFAULT_CONTEXT,
) -> IntensityCost:
    """Intensity of ``model`` and of each of ``vs`` at every TP of ``tps``.

    With the model's ``indexer``, that of sparse attention over ``context`` keys; the ``vs`` stay dense.

    Raises:
        InputError: a TP does not divide a model's heads, a layout does not fit, or more queries than ``context``.
    """
    if indexer:
        check_step(Work(queries=queries, context=context, row_bytes=0))
    even, why_not = _break_even(model, layout, *vs[0]) if vs else (None, None)
    return IntensityCost(
        queries=queries,
        layout=layout.name,
        ridge_flop_per_byte=ceilings.ridge_flop_per_byte if ceilings else None,
        by_tp=(
            _sparse_by_tp(model, layout, tps, indexer, ceilings, queries=queries, context=context)
            if indexer
            else _by_tp(model, layout, tps, queries, ceilings)
        ),
        vs=tuple(
            IntensityOf(model=other.name, layout=its.name, by_tp=_by_tp(other, its, tps, queries, ceilings))
            for other, its in vs
        ),
        ridge_heads_times_queries=(
            ridge_heads_times_queries(model.mla, layout, ceilings) if model.mla and ceilings and not indexer else None
        ),
        break_even_tp=even,
        break_even_note=why_not,
        sparse=_sparse(indexer, queries, context) if indexer else None,
    )


def _sparse(indexer: Indexer, queries: int, context: int) -> SparseIntensity:
    return SparseIntensity(
        context=context,
        topk=indexer.topk,
        indexer_layers=indexer.layers,
        limit_flop_per_byte=queries * indexer_flop_per_pair(indexer) / indexer_bytes_per_context_token(indexer),
    )


def _break_even(model: Model, layout: Layout, other: Model, its_layout: Layout) -> tuple[float | None, str | None]:
    return break_even(model, token_bytes(model, layout).growing, other, token_bytes(other, its_layout).growing)


def _by_tp(
    model: Model, layout: Layout, tps: tuple[int, ...], queries: int, ceilings: Ceilings | None
) -> tuple[IntensityAtTp, ...]:
    for tp in tps:
        check_tp(model, tp)
    attention = model.attention
    return tuple(
        IntensityAtTp(
            tp=tp,
            **intensity_figures(
                queries * core_flop_per_context_token(attention, tp),
                context_token_bytes(attention, layout, tp),
                ceilings,
            ),
        )
        for tp in tps
    )


def _sparse_by_tp(
    model: Model, layout: Layout, tps: tuple[int, ...], indexer: Indexer, ceilings: Ceilings | None, **step: int
) -> tuple[IntensityAtTp, ...]:
    assert model.mla  # an indexer picks latent rows
    for tp in tps:
        check_tp(model, tp)
    return tuple(
        IntensityAtTp(tp=tp, **sparse_intensity_figures(model.mla, layout, indexer, ceilings, tp=tp, **step))
        for tp in tps
    )


def _wide(count: Ints, rate: int) -> Ints:
    """``count`` such that its product with ``rate`` does not wrap around: int64 as Python integers where it would."""
    if isinstance(count, int) or count.dtype == object or not count.size or int(count.max()) * rate <= LARGEST:
        return count
    return count.astype(object)


def _quotient(count: Ints, by: Ints) -> Floats:
    """As Python divides integers, element by element; see :func:`ratio`, which divides by one number."""
    if isinstance(by, int):
        return ratio(count, by)
    import numpy as np

    if by.dtype == object or max(count.max(), by.max()) <= EXACT_IN_FLOAT:
        return np.asarray(count / by, dtype=np.float64)
    return np.asarray(count.astype(object) / by.astype(object), dtype=np.float64)
