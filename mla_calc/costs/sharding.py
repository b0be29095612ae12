"""Which tensor-parallel degrees a model can run at, and what a rank holds of its heads."""

from __future__ import annotations

from ..errors import InputError
from ..models.attention import GQA, MLA, Model, Windowed


def check_tp(model: Model, tp: int) -> None:
    """Refuse a ``tp`` that does not divide the query heads, or that KV heads cannot follow.

    Raises:
        InputError: with the degrees that do divide.
    """
    attention = model.attention
    if attention.heads % tp:
        raise InputError(f"--tp {tp} does not divide the {attention.heads} heads of {model.name}", _degrees(attention))
    for heads in (part.kv_heads for part in (model.gqa, model.windowed) if part):
        if heads % tp and tp % heads:
            raise InputError(
                f"--tp {tp}: the {heads} KV heads of {model.name} neither divide by it nor replicate evenly"
            )


def kv_heads_per_rank(attention: GQA | Windowed, tp: int) -> int:
    """KV heads that a rank stores: its share, or one copy once there are more ranks than heads."""
    return max(1, attention.kv_heads // tp)


def _degrees(attention: MLA | GQA) -> str:
    degrees = [str(tp) for tp in range(1, attention.heads + 1) if attention.heads % tp == 0]
    return "it divides by " + ", ".join(degrees[:12]) + (", ..." if len(degrees) > 12 else "")
