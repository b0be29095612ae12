"""The axes of a quick and of a full run, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

K = 1024
CONTEXTS = (K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K)
FEW_CONTEXTS = (K, 4 * K, 16 * K, 64 * K)
QUERIES = (1, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024)
"""Of the crossover: dense from 64 to 256, where it lies by FLOPs (171) and by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """A grid over batch, queries and context, and over some of the heads per rank."""

    batch: tuple[int, ...]
    queries: tuple[int, ...]
    context: tuple[int, ...]
    every_rank: bool = True
    """Every degree of tensor parallelism, or the least and the most alone."""

    def cells(self, heads: Sequence[int]) -> list[dict[str, int]]:
        """Each cell by the names of its axes; ``heads`` are the counts per rank."""
        counts = heads if self.every_rank else dict.fromkeys((heads[0], heads[-1]))
        return [
            {"heads": count, "batch": batch, "queries": queries, "context": context}
            for count in counts
            for batch in self.batch
            for queries in self.queries
            for context in self.context
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What one kind of run measures."""

    decode: Axes
    """bf16, by the kernel that is picked."""
    between: Axes
    """The same between the powers of two, which no schedule was made for."""
    fp16: Axes
    fp8: Axes
    """bf16 products over fp8 rows."""
    others: Axes
    """Every kernel that runs the shape, the picked one or not: the anchors."""
    crossover_ends: Axes
    """Both paths, at the least and the most tensor parallelism."""
    crossover_between: Axes
    budget_s: float
    visits: int = 1
    """Passes over all cells."""


_ANCHORS = Axes(batch=(1, 8, 64, 128), queries=(1,), context=FEW_CONTEXTS)

FULL = Grid(
    decode=Axes(batch=(1, 2, 4, 8, 16, 32, 64, 128), queries=(1, 2, 3, 4), context=CONTEXTS),
    between=Axes(batch=(3, 12, 48, 96), queries=(1, 2), context=(1500, 5000, 20_000, 50_000)),
    fp16=Axes(batch=(1, 2, 4, 8, 16, 32, 64, 128), queries=(1, 2, 4), context=FEW_CONTEXTS),
    fp8=Axes(batch=(1, 2, 4, 8, 16, 32, 64, 128), queries=(1, 2, 4), context=FEW_CONTEXTS),
    others=_ANCHORS,
    crossover_ends=Axes(batch=(1,), queries=QUERIES, context=CONTEXTS),
    crossover_between=Axes(batch=(1,), queries=(1, 64, 128, 192, 256, 512), context=(4 * K, 16 * K, 64 * K)),
    budget_s=450.0,
    visits=2,
)

QUICK = Grid(
    decode=Axes(batch=(1, 8, 32, 128), queries=(1,), context=FEW_CONTEXTS, every_rank=False),
    between=Axes(batch=(12,), queries=(1,), context=(5000,), every_rank=False),
    fp16=Axes(batch=(1, 32), queries=(1,), context=(4 * K,), every_rank=False),
    fp8=Axes(batch=(1, 32), queries=(1,), context=(4 * K, 16 * K), every_rank=False),
    others=Axes(batch=(1, 128), queries=(1,), context=(4 * K,), every_rank=False),
    crossover_ends=Axes(batch=(1,), queries=(64, 128, 192, 256, 512), context=(4 * K,)),
    crossover_between=Axes(batch=(1,), queries=(), context=()),
    budget_s=44.0,
)
