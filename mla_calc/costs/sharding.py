"""Which tensor-parallel degrees a model can run at, and what a rank holds of its heads."""

from __future__ import annotations

from ..errors import InputError
from ..models.attention import GQA, MLA, Windowed


def check_tp(name: str, attention: MLA | GQA, tp: int) -> None:
    """Refuse a ``tp`` that does not divide the query heads, or that GQA's KV heads cannot follow.

    Raises:
        InputError: with the degrees that do divide.
    """
    if attention.heads % tp:
        raise InputError(f"--tp {tp} does not divide the {attention.heads} heads of {name}", _degrees(attention))
    if isinstance(attention, GQA) and attention.kv_heads % tp and tp % attention.kv_heads:
        raise InputError(
            f"--tp {tp}: the {attention.kv_heads} KV heads of {name} neither divide by it nor replicate evenly"
        )


def kv_heads_per_rank(attention: GQA | Windowed, tp: int) -> int:
    """KV heads that a rank stores: its share, or one copy once there are more ranks than heads."""
    return max(1, attention.kv_heads // tp)


def _degrees(attention: MLA | GQA) -> str:
    degrees = [str(tp) for tp in range(1, attention.heads + 1) if attention.heads % tp == 0]
    return "it divides by " + ", ".join(degrees[:12]) + (", ..." if len(degrees) > 12 else "")
