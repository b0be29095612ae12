"""The texts of ``crossover --explain`` for whole numbers of queries: both sides of the crossing, priced.

A first number of queries is found exactly, by intervals; what shows it right is that the naive path costs less
there, and not yet with one query fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Indexer
from .crossover import FlopCrossover, SparseFlopAtContext, SparseFlopCrossover, TimeCrossover
from .flops import ROUNDING
from .formulas import Formula, Names
from .paths import Work, path_bound_s, total_flop
from .sparse import paths_of

CITE = "docs/cost-model.md, section 4: the first number of queries at which the naive path costs less"
Explained = tuple[str, Formula, Names]
"""The key of a figure, and its formula over names of its own."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared: a model's two paths, under a GPU's ceilings or by FLOPs alone."""

    mla: MLA
    work: Work
    """Layout and byte widths; context, TP and batch are those of the point."""
    ceilings: Ceilings | None = None
    indexer: Indexer | None = None

    def flop_firsts(self, found: FlopCrossover | SparseFlopCrossover) -> list[Explained]:
        """Of the first context (and TP), by FLOPs."""
        first = found.by_context[0]
        ranks = first.tp if isinstance(first, SparseFlopAtContext) else 1
        alone = replace(self, ceilings=None, work=replace(self.work, context=first.context, tp=ranks, batch=1))
        rectangular, causal = (
            first.first_queries_naive_wins_rectangular,
            first.first_queries_naive_wins_causal,
        )
        path = "flop.by_context[0].first_queries_naive_wins"
        return [
            *alone.explained(f"{path}_rectangular", rectangular, alone.rectangular),
            *alone.explained(f"{path}_causal", causal, alone.causal),
        ]

    def time_firsts(self, found: TimeCrossover) -> list[Explained]:
        """Of the first context, TP and batch, by bound."""
        first = found.by_context[0]
        at = replace(self, work=replace(self.work, context=first.context, tp=first.tp, batch=first.batch))
        path = "time.by_context[0].first_queries_naive_wins"
        return [
            *at.explained(path, first.first_queries_naive_wins, at.rectangular),
            *at.explained(f"{path}_causal", first.first_queries_naive_wins_causal, at.causal),
        ]

    def rectangular(self, queries: int) -> Work:
        """So many queries, each over the whole context."""
        return replace(self.work, queries=queries, causal=False)

    def causal(self, queries: int) -> Work:
        """So many queries behind a prefix as long as the context."""
        return replace(self.work, queries=queries, context=self.work.context + queries, causal=True)

    def explained(self, path: str, first: int | None, at: Callable[[int], Work]) -> list[Explained]:
        """Nothing where the naive path never wins, or where doubles do not tell the two apart."""
        if first is None:
            return []
        unit = "flop" if self.ceilings is None else "bound_s"
        names: dict[str, int | float] = {"queries": first}
        names |= {f"{name}_{unit}": self._price(name, at(first)) for name in ("absorbed", "naive")}
        text = f"queries * (naive_{unit} < absorbed_{unit})"
        held = _less(names[f"naive_{unit}"], names[f"absorbed_{unit}"])
        if first > 1:
            fewer = {f"{name}_{unit}_one_fewer": self._price(name, at(first - 1)) for name in ("absorbed", "naive")}
            names |= fewer
            text += f" * (absorbed_{unit}_one_fewer <= naive_{unit}_one_fewer)"
            held = held and _less(*fewer.values())
        return [(path, Formula(text, CITE), names)] if held else []

    def _price(self, path: str, work: Work) -> int | float:
        kernels = paths_of(self.indexer)[path](self.mla, work)
        cost: int | float = total_flop(kernels) if self.ceilings is None else path_bound_s(kernels, self.ceilings)
        return cost


def _less(less: int | float, more: int | float) -> bool:
    """Whether it is, or is equal in whole numbers: of doubles by more than the rounding of their sums."""
    if isinstance(less, int) and isinstance(more, int):
        return less <= more
    return more - less > ROUNDING * more
