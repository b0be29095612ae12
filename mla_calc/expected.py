"""A published figure that a preset must reproduce, as its ``expect:`` block holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from .schema import STRICT, Text

UNITS: Mapping[str, float] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "FLOP": 1,
    "FLOP/B": 1,
    "tokens": 1,
    "heads": 1,
    "x": 1,
}

Unit = Literal["B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "FLOP", "FLOP/B", "tokens", "heads", "x"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One published figure: the command and options that recompute it, the value, and who published it."""

    __pydantic_config__ = STRICT

    command: Literal["cache", "flops", "intensity", "crossover", "workspace"]
    key: Text
    """Dotted path into the command's ``results``: ``latent_bytes_per_token``, ``flop.queries_limit``."""
    value: float
    unit: Unit
    rel: Annotated[float, Ge(0), Le(0.1)] = 0.0
    """Relative tolerance: 0 for a figure printed in full, else what its rounding allows."""
    options: Mapping[str, int | float | str] = field(default_factory=dict)
    source: Text
    note: Text | None = None
