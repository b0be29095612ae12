"""What the best layouts keep on one GPU and hold in all: what the figure of `capacity` draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from .capacity import Plan, held
from .placement import AXES, Placement
from .search import LayoutCost

MOST_LAYOUTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutMemory:
    """One legal layout; bytes are of one GPU of the largest pipeline stage, ``None`` where they were not worked out."""

    name: str
    """The axes that are not 1."""
    label: str
    """The same, and in brackets that nothing fits, or the requests that do where they are known."""
    tp: int
    dp: int
    dcp: int
    pp: int
    weights_bytes: int | None
    workspace_bytes: int | None
    reserve_bytes: int | None
    cache_bytes: int
    unique_tokens: int
    requests: int | None
    """Of the context asked for; ``None`` where how large one is is not known."""
    total_decode_bound_s: float | None


def best_layouts(plan: Plan, layouts: Iterable[LayoutCost], most: int = MOST_LAYOUTS) -> tuple[LayoutMemory, ...]:
    """The first ``most`` of the legal ``layouts``, in their order, which is the best first."""
    return tuple(_memory(plan, one) for one in islice((one for one in layouts if one.legal), most))


def layout_name(layout: LayoutCost) -> str:
    """The axes that are not 1: ``TP 8, DCP 8``; ``TP 1`` where all are."""
    ranks = [f"{axis.upper()} {getattr(layout, axis)}" for axis in AXES if getattr(layout, axis) > 1]
    return ", ".join(ranks) or "TP 1"


def _memory(plan: Plan, layout: LayoutCost) -> LayoutMemory:
    fits = held(plan, Placement(*(getattr(layout, axis) for axis in AXES)))
    here, name = fits.per_gpu, layout_name(layout)
    requests = "does not fit" if not fits.unique_tokens else None if fits.requests is None else f"{fits.requests:,}"
    return LayoutMemory(
        name=name,
        label=name if requests is None else f"{name} ({requests})",
        tp=layout.tp,
        dp=layout.dp,
        dcp=layout.dcp,
        pp=layout.pp,
        weights_bytes=here.weights_bytes,
        workspace_bytes=here.workspace_bytes,
        reserve_bytes=here.reserve_bytes,
        cache_bytes=here.cache_bytes,
        unique_tokens=fits.unique_tokens,
        requests=fits.requests,
        total_decode_bound_s=layout.total_decode_bound_s,
    )
