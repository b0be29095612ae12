"""What one run measured of one kernel, or of one path, on one GPU: constants of the cost model, as a preset holds them.

What is estimated from them is in latency.py. Every constant was fitted to one run, which is named; there is no
default one.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le, Lt, MaxLen, MinLen
from pydantic import AfterValidator, Strict

from ..schema import STRICT, Count, Dimension, Quantity, Text
from .schedule import OVERHEAD_PAGES

if TYPE_CHECKING:
    from ..arrays import Ints

PathName = Literal["absorbed", "naive"]
Scope = Literal["attention", "path"]


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if any(left[0] >= right[0] for left, right in pairwise(points)):
        raise ValueError("sizes of a curve must rise")
    return points


def _in_order(limits: tuple[int, int]) -> tuple[int, int]:
    if limits[0] > limits[1]:
        raise ValueError("the least is above the most")
    return limits


Curve = Annotated[tuple[tuple[Quantity, Quantity], ...], MaxLen(8), AfterValidator(_rising)]
"""[size, value] pairs by rising size: linear in between over log(size), and held beyond both ends."""
Whole = Annotated[int, Strict(), Ge(0), Le(1 << 60)]
Between = Annotated[tuple[Whole, Whole], AfterValidator(_in_order)]
"""Least and most, both included."""
Share = Annotated[float, Strict(), Ge(0)]
Signed = Annotated[float, Strict(), Ge(-1e9), Le(1e9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One layer's call on one rank: the attention's widths and the axes of a measurement. Queries are causal.

    An axis may be an array: a cell is then as many calls.
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    heads: Ints
    """Of the rank."""
    batch: Ints
    queries: Ints
    context: Ints

    @property
    def tokens(self) -> Ints:
        """New tokens of all requests."""
        return self.batch * self.queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The cells that the run measured the kernel on; an estimate outside is not given.

    ``None``: the kernel does not know this axis. A fold knows its tokens and not how many requests they are of.
    """

    __pydantic_config__ = STRICT

    kv_lora_rank: Dimension
    qk_rope_head_dim: Count
    qk_nope_head_dim: Dimension | None = None
    v_head_dim: Dimension | None = None
    heads: Between
    tokens: Between | None = None
    batch: Between | None = None
    queries: Between | None = None
    context: Between | None = None
    flop: Between
    bytes: Between

    def covers(self, other: Domain) -> bool:
        """Whether every cell of ``other`` is in it; both of the same kernel and widths."""
        axes = (
            (self.heads, other.heads),
            (self.tokens, other.tokens),
            (self.batch, other.batch),
            (self.queries, other.queries),
            (self.context, other.context),
            (self.flop, other.flop),
            (self.bytes, other.bytes),
        )
        return all(own is None or (of and own[0] <= of[0] and of[1] <= own[1]) for own, of in axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How the kernel cuts a call into blocks (schedule.py)."""

    __pydantic_config__ = STRICT

    tile_rows: Dimension
    """Score rows (heads times queries) of a block."""
    blocks_per_sm: Dimension = 1
    overhead_pages: Quantity = OVERHEAD_PAGES
    merge: Share = 0.0
    """Weight of the merge's bytes in the choice of the splits (``schedule.merge_pages``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Absolute relative errors of estimates against measured times; 0.05 is 5 %."""

    __pydantic_config__ = STRICT

    count: Dimension
    median_ape: Share
    mean_ape: Share
    p90_ape: Share
    median_error: Signed | None = None
    """With its sign: above 0 where estimates are mostly too long. ``None``: not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the constants were found: which rows of the run were kept out of the fit, and the errors on them."""

    __pydantic_config__ = STRICT

    seed: int
    holdout: Annotated[float, Strict(), Ge(0), Lt(1)]
    """Share of the launches kept out, by seed: rows that are the same launch stay together."""
    rows: Dimension
    """Rows used."""
    held_out: Errors | None = None
    """``None``: no row was kept out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The measured constants of one kernel. Never mixed with the peaks."""

    __pydantic_config__ = STRICT

    path: PathName
    part: Text
    """The cost model's name of the kernel: ``attention``, ``q_fold``, ``v_up``, ``up_proj``, ``assemble``."""
    kernel: Text | None = None
    """The implementation; ``None``: the path's implementations share this part."""
    dtype: Text
    """Of the products' operands: its peak is the one that ``compute`` is a share of."""
    cache: Text | None = None
    """Cache layout; ``None``: the part does not read the cache."""
    scope: Scope | None = None
    """Whether an absorbed attention kernel was timed by itself or within whole paths, whose cells are others; ``None``:
    a part that is timed in paths alone."""
    run: Text
    date: datetime.date
    tiling: Tiling | None = None
    t0_us: Annotated[Curve, MinLen(1)]
    """Over the splits of a request; one point without ``tiling``."""
    combine: Quantity | None = None
    """Share of the bandwidth at which partial outputs are written and read; above 1 where L2 holds them."""
    compute: Curve = ()
    """Share of the peak (ec) over pages of a block, or GFLOP; empty: it bound no row, and the peak itself counts."""
    memory: Curve = ()
    """Share of the bandwidth (em) over pages of a block, or MB; empty: it bound no row, and the peak itself counts."""
    domain: Domain
    fit: Fit

    @property
    def key(self) -> tuple[str, ...]:
        """The kernel and its widths: what a newer calibration of the same ``scope`` replaces."""
        return (self.path, self.part, self.kernel or "", self.dtype, self.cache or "", *self.widths)

    @property
    def widths(self) -> tuple[str, ...]:
        """r, dr, dn and dv of the attention that was measured; ``-`` where the kernel does not know one."""
        domain = self.domain
        known = (domain.kv_lora_rank, domain.qk_rope_head_dim, domain.qk_nope_head_dim, domain.v_head_dim)
        return tuple("-" if width is None else str(width) for width in known)

    def measured_widths_of(self, cell: Cell) -> bool:
        """Whether the kernel was measured with the widths of ``cell``."""
        domain = self.domain
        return (
            (domain.kv_lora_rank, domain.qk_rope_head_dim) == (cell.kv_lora_rank, cell.qk_rope_head_dim)
            and domain.qk_nope_head_dim in (None, cell.qk_nope_head_dim)
            and domain.v_head_dim in (None, cell.v_head_dim)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What a path takes beyond the sum of its parts, each of which was timed alone; below 0 where it takes less.

    A part on its own is timed from one event to the next, with a launch's gap at its end and nothing of it in the
    cache; parts that follow each other have one such gap in all. Measured in the run that timed the parts.
    """

    __pydantic_config__ = STRICT

    path: PathName
    kernel: Text
    """The implementation: the absorbed path's attention kernel, or the naive path's name."""
    dtype: Text
    cache: Text
    kv_lora_rank: Dimension
    qk_rope_head_dim: Count
    qk_nope_head_dim: Dimension
    v_head_dim: Dimension
    run: Text
    date: datetime.date
    us: Signed
    fit: Fit
    """Its errors are those of the whole path's estimates."""

    @property
    def key(self) -> tuple[str, ...]:
        """What a newer boundary of the same path, with the same widths, replaces."""
        widths = (self.kv_lora_rank, self.qk_rope_head_dim, self.qk_nope_head_dim, self.v_head_dim)
        return (self.path, self.kernel, self.dtype, self.cache, *map(str, widths))
