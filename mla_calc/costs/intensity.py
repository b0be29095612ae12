"""Arithmetic intensity of decode against TP (docs/cost-model.md, section 5; the chapter, section 1).

Context-only: the FLOPs and bytes that grow with the context, which is what long contexts tend to. MLA's falls
as 1/TP, since heads divide and the latent row does not; GQA's holds until its KV heads are one per rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import maximum, ratio
from ..hardware.roofline import Ceilings, binds
from ..models.attention import GQA, MLA, Model
from .cache import break_even, token_bytes
from .counts import absorbed_core_flop
from .layouts import Layout, head_bytes, latent_row_bytes
from .sharding import check_tp, kv_heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Ints


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
class IntensityCost:
    """Intensity by TP of absorbed decode (or of GQA decode) for ``queries`` tokens per request."""

    queries: int
    layout: str
    ridge_flop_per_byte: float | None
    by_tp: tuple[IntensityAtTp, ...]
    vs: tuple[IntensityOf, ...]
    ridge_heads_times_queries: float | None
    """Query heads per rank times queries at which the intensity reaches the ridge; ``None`` for GQA."""
    break_even_tp: float | None
    """The TP at which the cluster's bytes reach those of the first of ``vs``; ``None``: see the note."""
    break_even_note: str | None


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
    return kv_heads_per_rank(attention, tp) * head_bytes(layout, attention)


def context_intensity(attention: MLA | GQA, layout: Layout, tp: int, queries: int = 1) -> float:
    """FLOP per byte of attention over the cache as the context grows; DeepSeek-V3 at TP 1 in bf16: 241.8."""
    flop = queries * core_flop_per_context_token(attention, tp)
    return flop / context_token_bytes(attention, layout, tp)


def intensity_figures(flop: Ints, bytes_read: int, ceilings: Ceilings | None) -> dict[str, Any]:
    """The figures of :class:`IntensityAtTp` but ``tp``, over one point or arrays of FLOPs."""
    intensity = ratio(flop, bytes_read)
    if ceilings is None:
        return {"intensity_flop_per_byte": intensity, **dict.fromkeys(("ridge_share", "margin", "binds", "by"))}
    ridge = ceilings.ridge_flop_per_byte
    share, margin = intensity / ridge, ridge / intensity
    return {
        "intensity_flop_per_byte": intensity,
        "ridge_share": share,
        "margin": margin,
        "binds": binds(flop, bytes_read, ceilings),
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
) -> IntensityCost:
    """Intensity of ``model`` and of each of ``vs`` at every TP of ``tps``.

    Raises:
        InputError: a TP does not divide a model's heads, or a layout does not fit.
    """
    even, why_not = _break_even(model, layout, *vs[0]) if vs else (None, None)
    return IntensityCost(
        queries=queries,
        layout=layout.name,
        ridge_flop_per_byte=ceilings.ridge_flop_per_byte if ceilings else None,
        by_tp=_by_tp(model, layout, tps, queries, ceilings),
        vs=tuple(
            IntensityOf(model=other.name, layout=its.name, by_tp=_by_tp(other, its, tps, queries, ceilings))
            for other, its in vs
        ),
        ridge_heads_times_queries=(
            ridge_heads_times_queries(model.mla, layout, ceilings) if model.mla and ceilings else None
        ),
        break_even_tp=even,
        break_even_note=why_not,
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
