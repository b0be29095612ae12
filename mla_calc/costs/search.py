"""Finding a placement: every layout of N GPUs ranked, and the fewest GPUs that hold what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..hardware.roofline import Ceilings
from .capacity import (
    Held,
    PerGPU,
    Plan,
    caches_latent,
    cluster_bytes_per_token,
    held,
    indexer_copies,
    total_decode_bound_s,
)
from .placement import MAX_GPUS, Placement, check_axes, legal_placements, placements_of, reasons
from .tokens import token_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import Width


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The decode step whose bound ranks what holds equally many tokens."""

    ceilings: Ceilings | None
    batch: int = 1
    weight_bytes: Width = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCost:
    """One way to lay out the GPUs."""

    tp: int
    dp: int
    dcp: int
    pp: int
    legal: bool
    reason: str | None
    """Why it is not legal, why nothing fits, or how many of the requests asked for do not."""
    unique_tokens: int | None
    total_decode_bound_s: float | None
    """``None`` too where nothing fits: there is no such step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityCost:
    """What fits in one placement, the best of those asked for, and the list of all."""

    gpus: int
    tp: int
    dp: int
    dcp: int
    pp: int
    ep: int
    layout: str
    cache_form: str
    pad_head_dim: int | None
    mtp_layers: int
    unique_tokens: int
    copies: int
    """Copies in the cluster of a token's latent rows, or of its keys and values."""
    indexer_copies: int | None
    """Copies of its indexer keys, which can be more; ``None`` without an indexer."""
    bytes_per_token: int
    """One copy, all layers, windowed ones apart."""
    stored_bytes: int
    """One copy of all unique tokens."""
    cluster_stored_bytes: int
    """The same with its copies."""
    per_gpu: PerGPU
    context: int
    block_size: int
    requests: int | None
    """Requests of ``context`` tokens, each in whole pages."""
    concurrency: float
    """Unique tokens over ``context``."""
    fixed_bytes_per_request: int | None
    """On one GPU, whatever the context."""
    batch: int
    total_decode_bound_s: float | None
    gpus_needed: int | None
    layouts: tuple[LayoutCost, ...]


NOTHING_FITS = "weights, workspace and reserve leave no room for a token"
TOO_SMALL = "the cache as given is smaller than a token"


def why_not(plan: Plan, unique: int, requests: int | None, wanted: int | None = None) -> str | None:
    """Why a legal layout does not hold what was asked for, or ``None`` where it does."""
    if not unique:
        return NOTHING_FITS if plan.memory.cache_bytes is None else TOO_SMALL
    if wanted is not None and requests is not None and requests < wanted:
        return f"requests that fit: {requests:,} of {wanted:,}"
    return None


def capacity_cost(plan: Plan, at: Placement, step: Step) -> CapacityCost:
    """What fits in one legal placement. Raises InputError as :func:`mla_calc.costs.capacity.held` does."""
    fits = held(plan, at)
    bound = _bound(plan, at, step) if fits.unique_tokens else None
    copy = token_bytes(plan.model, plan.layout, mtp_layers=plan.mtp_layers, form=plan.form).growing
    reason = why_not(plan, fits.unique_tokens, fits.requests)
    return CapacityCost(
        gpus=at.gpus,
        tp=at.tp,
        dp=at.dp,
        dcp=at.dcp,
        pp=at.pp,
        ep=at.stage_ranks if plan.ep is None else plan.ep,
        layout=plan.layout.name,
        cache_form=plan.form.name,
        pad_head_dim=plan.form.pad_head_dim,
        mtp_layers=plan.mtp_layers,
        unique_tokens=fits.unique_tokens,
        copies=fits.copies,
        indexer_copies=indexer_copies(plan, at),
        bytes_per_token=copy,
        stored_bytes=fits.unique_tokens * copy,
        cluster_stored_bytes=fits.unique_tokens * cluster_bytes_per_token(plan, at),
        per_gpu=fits.per_gpu,
        context=plan.context,
        block_size=plan.block_size,
        requests=fits.requests,
        concurrency=fits.unique_tokens / plan.context,
        fixed_bytes_per_request=fits.fixed_bytes_per_request,
        batch=step.batch,
        total_decode_bound_s=bound,
        gpus_needed=None,
        layouts=(_layout(at, True, reason, fits.unique_tokens, bound),),
    )


def search(plan: Plan, gpus: int, step: Step, fixed: Mapping[str, int], requests: int | None = None) -> CapacityCost:
    """The best placement of ``gpus`` GPUs, with all of them ranked: most unique tokens, then least bound.

    Those that hold ``requests`` requests of the plan's context, where so many are asked for, come before the others:
    a request takes whole pages and a fixed part, so that most tokens need not be most requests.

    Raises:
        InputError: none is legal (the reason names the axis), or see :func:`mla_calc.costs.capacity.held`.
    """
    import numpy as np

    check_axes(plan.model, fixed, plan.form, plan.ep, gpus)
    every = placements_of(plan.model, gpus, fixed)
    why = reasons(plan.model, every, plan.form, plan.ep)
    legal = np.array([reason is None for reason in why], dtype=bool)
    if not legal.any():
        if plan.ep is not None and None in reasons(plan.model, every, plan.form):
            raise InputError(f"EP {plan.ep:,} divides no stage of any layout of --gpus {gpus:,}")
        if not why:  # a TP or PP that is illegal stands there without its DCPs
            free = {name: value for name, value in fixed.items() if name != "dcp"}
            why = reasons(plan.model, placements_of(plan.model, gpus, free), plan.form)
        raise InputError(f"no layout of --gpus {gpus:,} is legal: {'; '.join([*dict.fromkeys(filter(None, why))][:3])}")
    at = every.only(legal)
    fits, bounds = held(plan, at), _bound(plan, at, step)
    order = _ranking(at, fits, bounds, requests)
    unique = fits.unique_tokens.tolist()
    counts = [None] * len(unique) if fits.requests is None else np.asarray(fits.requests).tolist()
    times = [None] * len(unique) if bounds is None else bounds.tolist()
    layouts = [
        _layout(
            at.at(index),
            True,
            why_not(plan, unique[index], counts[index], requests),
            unique[index],
            times[index] if unique[index] else None,
        )
        for index in order.tolist()
    ]
    left = np.flatnonzero(~legal).tolist()
    layouts += [_layout(every.at(index), False, why[index], None, None) for index in left]
    return replace(capacity_cost(plan, at.at(int(order[0])), step), layouts=tuple(layouts))


def fewest_gpus(plan: Plan, requests: int, step: Step, fixed: Mapping[str, int]) -> Placement | None:
    """The best placement of the fewest GPUs that hold ``requests`` requests of the plan's context, exactly.

    Every legal placement of up to 4,096 GPUs is tried; ``None`` where none of them holds as many.

    Raises:
        InputError: how much a request takes is not known, or no placement has the ``fixed`` axes.
    """
    import numpy as np

    check_axes(plan.model, fixed, plan.form, plan.ep)
    at = legal_placements(plan.model, plan.form, plan.ep, fixed)
    if plan.ep is not None and not at.tp.size:  # the axes alone are fine
        raise InputError(f"EP {plan.ep:,} divides no stage of any such layout of up to {MAX_GPUS:,} GPUs")
    fits = held(plan, at)
    if fits.requests is None:
        raise InputError(f"{plan.model.name}: how large its recurrent state is is not known, so no request is sized")
    enough = np.flatnonzero(np.asarray(fits.requests) >= requests)
    if not enough.size:
        return None
    fewest = enough[at.gpus[enough] == at.gpus[enough].min()]
    some = at.only(fewest)
    return some.at(int(_ranking(some, held(plan, some), _bound(plan, some, step))[0]))


def _ranking(at: Placement, fits: Held, bounds: NDArray[Any] | None, requests: int | None = None) -> NDArray[Any]:
    """Indices, the best first: most unique tokens, least bound, then fewest stages and ranks to a group.

    Before all that, whether ``requests`` requests fit.
    """
    import numpy as np

    ties = np.zeros(at.tp.size) if bounds is None else bounds
    short = np.zeros(at.tp.size, dtype=bool)
    if requests is not None and fits.requests is not None:
        short = np.asarray(fits.requests) < requests
    return np.lexsort((at.dcp, at.tp, at.pp, ties, -fits.unique_tokens, short))


def _bound(plan: Plan, at: Placement, step: Step) -> Any:
    if step.ceilings is None or not caches_latent(plan):
        return None
    return total_decode_bound_s(plan, at, step.batch, step.ceilings, step.weight_bytes)


def _layout(at: Placement, legal: bool, reason: str | None, unique: int | None, bound: float | None) -> LayoutCost:
    return LayoutCost(
        tp=at.tp,
        dp=at.dp,
        dcp=at.dcp,
        pp=at.pp,
        legal=legal,
        reason=reason,
        unique_tokens=unique,
        total_decode_bound_s=bound,
    )
