"""Which tensor-parallel degrees a model can run at, and what a rank holds of its heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arrays import maximum
from ..errors import InputError
from ..models.attention import GQA, MLA, Model, Windowed

if TYPE_CHECKING:
    from ..arrays import Ints


def misfit(model: Model, tp: int) -> str | None:
    """Why ``model`` cannot run on ``tp`` ranks, or ``None`` where it can."""
    if tp < 1:
        return "is no number of ranks"
    if model.attention.heads % tp:
        return f"does not divide the {model.attention.heads} heads of {model.name}"
    for heads in (part.kv_heads for part in (model.gqa, model.windowed) if part):
        if heads % tp and tp % heads:
            return f"leaves the {heads} KV heads of {model.name} neither divided nor evenly copied"
    return None


def check_tp(model: Model, tp: int) -> None:
    """Refuse a ``tp`` that does not divide the query heads, or that KV heads cannot follow.

    Raises:
        InputError: with the degrees that fit.
    """
    reason = misfit(model, tp)
    if reason is not None:
        raise InputError(f"TP {tp} {reason}", _degrees(model))


def heads_per_rank(mla: MLA, tp: Ints) -> Ints:
    """Query heads of one of ``tp`` ranks.

    Raises:
        InputError: a ``tp`` that does not divide the heads (arrays are checked before they get here).
    """
    if isinstance(tp, int) and (tp < 1 or mla.heads % tp):
        raise InputError(f"TP {tp} does not divide {mla.heads} heads")
    return mla.heads // tp


def kv_heads_per_rank(attention: GQA | Windowed, tp: Ints) -> Ints:
    """KV heads that a rank stores: its share, or one copy once there are more ranks than heads."""
    return maximum(1, attention.kv_heads // tp)


def copies(attention: MLA | GQA, tp: Ints) -> Ints:
    """Copies of a token that ``tp`` ranks keep: each all of a latent, KV heads once there are more ranks."""
    return tp if isinstance(attention, MLA) else maximum(1, tp // attention.kv_heads)


def _degrees(model: Model, most: int = 12) -> str:
    fitting = [tp for tp in range(1, model.attention.heads + 1) if misfit(model, tp) is None]
    return "what fits: " + ", ".join(map(str, fitting[:most])) + (", ..." if len(fitting) > most else "")
