"""Crossovers that a run measured on a GPU: at how many queries its naive path first beat the absorbed one."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from annotated_types import MinLen

from ..schema import STRICT, Count, Dimension, Large, Quantity, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """One crossover: causal queries at a fixed context that counts them."""

    __pydantic_config__ = STRICT

    naive: Text
    """Which naive path: ``naive`` as an engine runs it, ``naive_in_place``."""
    heads: Dimension
    """Per rank."""
    batch: Dimension
    context: Large
    queries: Quantity
    """Where both paths first took the same time, by medians: at the next Q that was measured the naive one is faster,
    and at all above where ``crossed_again`` is empty."""
    low: Quantity | None = None
    """The same where the naive path is as fast as its 10th percentile and the absorbed as slow as its 90th."""
    high: Quantity | None = None
    """The same the other way round. ``None``: the spread reaches beyond the queries that were measured."""
    crossed_again: tuple[Dimension, ...] = ()
    """Measured Q above ``queries`` at which the naive path was not the faster one."""
    last_queries: Quantity | None = None
    """Where ``crossed_again`` has any: where both took the same time for the last time; above, the naive path was the
    faster one at every Q that was measured. ``None``: it was not at the most measured, or they crossed once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossovers:
    """What one run found for one attention geometry. Written by `validate --calibrate`, never by hand."""

    __pydantic_config__ = STRICT

    run: Text
    date: datetime.date
    kv_lora_rank: Dimension
    qk_rope_head_dim: Count
    qk_nope_head_dim: Dimension
    v_head_dim: Dimension
    dtype: Text
    """Of the products' operands."""
    cache: Text
    """Cache layout."""
    at: Annotated[tuple[Crossed, ...], MinLen(1)]

    @property
    def key(self) -> tuple[int | str, ...]:
        """What newer crossovers of the same geometry replace."""
        widths = (self.kv_lora_rank, self.qk_rope_head_dim, self.qk_nope_head_dim, self.v_head_dim)
        return (*widths, self.dtype, self.cache)
