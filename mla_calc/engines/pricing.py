"""What a batch costs on the path that an engine chose for each row, and on the better one.

Per row the weights are left out: they are read once per path, not per row. In the batch the rows of a path share its
kernels, and with them its weights. Regret is time lost against the better choice, by roofline bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..arrays import stored_bytes
from ..costs.flops import ROUNDING, cheaper
from ..costs.paths import Kernel, Path, Work, path_bound_s, total_bytes, total_flop
from ..hardware.roofline import Ceilings, bound_s
from ..models.attention import MLA
from .batch import Decision, PathName, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPath:
    """One path for one row, per rank and layer, without weights."""

    flop: int
    bytes: int
    bound_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCost:
    """A row, what was decided for it, and what both paths cost."""

    queries: int
    prefix: int
    path: PathName
    rule: str
    absorbed: RowPath
    naive: RowPath
    absorbed_bound_s: float | None
    naive_bound_s: float | None
    absorbed_estimate_s: float | None = None
    """Of the row as a step of its own, weights included (row_estimates.py); ``None`` without a calibration for it."""
    absorbed_estimate_kernel: str | None = None
    """The attention kernel that is estimated."""
    naive_estimate_s: float | None = None
    naive_estimate_kernel: str | None = None
    """The naive implementation that is estimated."""
    better: str | None
    """``absorbed`` or ``naive``, whichever has the lower bound; ``equal``; ``None`` without a GPU."""
    regret_s: float | None


class RowEstimated(NamedTuple):
    """A row's estimates (row_estimates.py), s, and the implementations that they are of."""

    absorbed_s: float | None = None
    absorbed_kernel: str | None = None
    naive_s: float | None = None
    naive_kernel: str | None = None


NOT_ESTIMATED = RowEstimated()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCost:
    """The whole batch, per rank and layer, the weights of each path that is used included once."""

    queries: int
    absorbed_rows: int
    naive_rows: int
    chosen_flop: int
    chosen_bytes: int
    chosen_bound_s: float | None
    best_bound_s: float | None
    regret_s: float | None
    total_regret_s: float | None
    """Over all layers that cache."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for every row: shapes, layout, ranks, GPU, and the paths with their as-run extras."""

    mla: MLA
    layers: int
    """Layers that cache."""
    row_bytes: int
    tp: int
    ceilings: Ceilings | None
    paths: Mapping[str, Path]
    as_run: bool = False
    chunks: int = 1
    """Chunks in which the prefixes are expanded, where the naive path is priced as it runs."""
    indexing: int | None = None
    """Layers among them that run an indexer; ``None``: as many as there are."""


@dataclass(frozen=True, slots=True)
class Table:
    """A batch before anything is decided about it."""

    rows: tuple[Row, ...]
    setting: Setting
    kinds: tuple[int, ...]
    """Of each row, which of the different ones it is: rows that are alike are counted once."""
    kernels: Mapping[str, tuple[tuple[Kernel, ...], ...]]
    """By path, the kernels of each different row, without weights."""
    weights: Mapping[str, tuple[int, ...]]
    """The weights' bytes of each kernel."""
    best_s: float | None
    """See :func:`best_bound_s`; ``None`` without a GPU."""


def tabulate(rows: Sequence[Row], setting: Setting) -> Table:
    """Count both paths of every different row; what is decided about them is priced from this."""
    different = {row: kind for kind, row in enumerate(dict.fromkeys(rows))}
    table = Table(
        rows=tuple(rows),
        setting=setting,
        kinds=tuple(different[row] for row in rows),
        kernels={name: tuple(row_kernels(name, row, setting) for row in different) for name in setting.paths},
        weights={
            name: tuple(kernel.weight_bytes for kernel in row_kernels(name, Row(1, 1), setting, weight_bytes=2))
            for name in setting.paths
        },
        best_s=None,
    )
    return replace(table, best_s=best_bound_s(table, setting.ceilings)) if setting.ceilings else table


def price_rows(
    table: Table, decisions: Sequence[Decision], estimates: Sequence[RowEstimated] = ()
) -> tuple[RowCost, ...]:
    """Every row with both paths' costs, in the order given; ``estimates`` are of all rows or of none.

    Rows that are alike, and for which the same was decided, are one record.
    """
    listed = list(zip(table.kinds, decisions, estimates or [NOT_ESTIMATED] * len(decisions), strict=True))
    first = {each: index for index, each in reversed(list(enumerate(listed)))}
    priced = {each: _row_cost(table, index, *each[1:]) for each, index in first.items()}
    return tuple(priced[each] for each in listed)


def price_batch(table: Table, decisions: Sequence[Decision]) -> BatchCost:
    """The batch's totals, and the least of the other ways to split its rows between the paths.

    The rows of a path share its kernels: FLOPs and bytes are summed kernel by kernel, the weights are read once,
    and each kernel takes the longer of its two times. One row alone so has the bound that ``flops`` gives.
    """
    chosen = [_path_of(decision.path) for decision in decisions]
    sums = list(_sums(table, chosen).values())
    setting = table.setting
    taken = best = None
    if setting.ceilings and table.best_s is not None:
        taken = _bound_s(sums, setting.ceilings)
        best = min(taken, table.best_s)
    lost = None if taken is None or best is None else _lost(taken, best)
    return BatchCost(
        queries=sum(row.queries for row in table.rows),
        absorbed_rows=chosen.count("absorbed"),
        naive_rows=chosen.count("naive"),
        chosen_flop=sum(flop for flop, _ in sums),
        chosen_bytes=sum(moved for _, moved in sums),
        chosen_bound_s=taken,
        best_bound_s=best,
        regret_s=lost,
        total_regret_s=None if lost is None else _over_layers(lost, table, decisions),
    )


def batch_sums(table: Table, decisions: Sequence[Decision]) -> dict[tuple[str, str], tuple[int, int]]:
    """By path and kernel, FLOP and bytes of the rows on that path, weights included: what a batch is priced by."""
    return _sums(table, [_path_of(decision.path) for decision in decisions])


def best_bound_s(table: Table, ceilings: Ceilings) -> float:
    """The least bound of the splits that absorb the rows which gain most by it, from none to all of them, s.

    Each path alone and each row on its better path are among them. Kernels shared by rows of both kinds may hide
    a row's bytes behind another's FLOPs, so that a split of another kind can be a little better still.
    """
    counts = Counter(table.kinds)
    gains = [
        path_bound_s(absorbed, ceilings) - path_bound_s(naive, ceilings)
        for absorbed, naive in zip(table.kernels["absorbed"], table.kernels["naive"], strict=True)
    ]
    absorbed, naive = _Running(table, "absorbed"), _Running(table, "naive")
    for kind, count in counts.items():
        naive.add(kind, count)
    least = naive.bound_s(ceilings)
    for kind in sorted(counts, key=gains.__getitem__):

        def split(taken: int, kind: int = kind) -> float:
            return absorbed.bound_s(ceilings, kind, taken) + naive.bound_s(ceilings, kind, -taken)

        least = min(least, _least_split(split, counts[kind]))
        absorbed.add(kind, counts[kind])
        naive.add(kind, -counts[kind])
    return least


def _least_split(split: Callable[[int], float], count: int) -> float:
    """The least of ``split`` over 1 to ``count`` rows that are alike.

    Short of the last row, with which the naive path and its weights may fall away, it is a sum of the greater of
    two straight lines, so convex: its slope changes sign once.
    """
    if count == 1:
        return split(1)
    lowest = 1 + bisect_left(range(1, count - 1), 0.0, key=lambda taken: split(taken + 1) - split(taken))
    return min(split(lowest), split(count))


class _Running:
    """Sums of one path's kernels over a set of rows that grows and shrinks."""

    __slots__ = ("count", "kernels", "sums")

    def __init__(self, table: Table, name: str) -> None:
        self.kernels = table.kernels[name]
        self.sums = [(0, weight) for weight in table.weights[name]]
        self.count = 0

    def add(self, kind: int, count: int) -> None:
        """``count`` more rows of a kind, or fewer where it is negative."""
        self.sums = self._with(kind, count)
        self.count += count

    def bound_s(self, ceilings: Ceilings, kind: int = 0, count: int = 0) -> float:
        """Of the rows, or of them and ``count`` more of a kind."""
        if not self.count + count:
            return 0.0
        return _bound_s(self._with(kind, count) if count else self.sums, ceilings)

    def _with(self, kind: int, count: int) -> list[tuple[int, int]]:
        return [
            (flop + count * kernel.flop, moved + count * kernel.bytes)
            for (flop, moved), kernel in zip(self.sums, self.kernels[kind], strict=True)
        ]


def _sums(table: Table, chosen: Sequence[str]) -> dict[tuple[str, str], tuple[int, int]]:
    """FLOP and bytes of each kernel of the paths that are used, over the rows on them, weights included."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for name in table.setting.paths:
        running = _Running(table, name)
        taken = Counter(kind for kind, path in zip(table.kinds, chosen, strict=True) if path == name)
        for kind, count in taken.items():
            running.add(kind, count)
        if running.count:
            names = (kernel.name for kernel in table.kernels[name][0])
            found |= {(name, kernel): total for kernel, total in zip(names, running.sums, strict=True)}
    return found


def _lost(taken: float, best: float) -> float:
    """The difference, unless it is no more than the rounding of the sums."""
    return 0.0 if taken - best <= ROUNDING * taken else taken - best


def _bound_s(sums: Sequence[tuple[int, int]], ceilings: Ceilings) -> float:
    return float(sum(bound_s(flop, moved, ceilings) for flop, moved in sums))


def _over_layers(lost: float, table: Table, decisions: Sequence[Decision]) -> float:
    """The regret of all layers: ``lost`` on those that index, and what the others lose, which score nothing."""
    setting = table.setting
    indexing = setting.layers if setting.indexing is None else setting.indexing
    reusing = setting.layers - indexing
    if not reusing:
        return lost * indexing
    bare = replace(setting, paths={name: _unindexed(path) for name, path in setting.paths.items()}, indexing=None)
    rest = price_batch(tabulate(table.rows, replace(bare, layers=reusing)), decisions).total_regret_s
    assert rest is not None
    return lost * indexing + rest


def _unindexed(path: Path) -> Path:
    """A path on a layer that reuses the choice of an earlier one."""

    def kernels(mla: MLA, work: Work) -> tuple[Kernel, ...]:
        return tuple(kernel for kernel in path(mla, work) if not kernel.indexes)

    return kernels


def _row_cost(table: Table, index: int, decision: Decision, found: RowEstimated) -> RowCost:
    row, kind, ceilings = table.rows[index], table.kinds[index], table.setting.ceilings
    priced = {name: _price(kernels[kind], ceilings) for name, kernels in table.kernels.items()}
    absorbed, naive = priced["absorbed"], priced["naive"]
    regret = better = None
    if absorbed.bound_s is not None and naive.bound_s is not None:
        chosen = priced[_path_of(decision.path)].bound_s
        assert chosen is not None
        better = cheaper(absorbed.bound_s, naive.bound_s)
        regret = _lost(chosen, min(absorbed.bound_s, naive.bound_s))
    return RowCost(
        queries=row.queries,
        prefix=row.prefix,
        path=decision.path,
        rule=decision.rule,
        absorbed=absorbed,
        naive=naive,
        absorbed_bound_s=absorbed.bound_s,
        naive_bound_s=naive.bound_s,
        absorbed_estimate_s=found.absorbed_s,
        absorbed_estimate_kernel=found.absorbed_kernel,
        naive_estimate_s=found.naive_s,
        naive_estimate_kernel=found.naive_kernel,
        better=better,
        regret_s=regret,
    )


def _price(kernels: tuple[Kernel, ...], ceilings: Ceilings | None) -> RowPath:
    return RowPath(
        flop=total_flop(kernels),
        bytes=total_bytes(kernels),
        bound_s=path_bound_s(kernels, ceilings) if ceilings else None,
    )


def row_kernels(name: str, row: Row, setting: Setting, weight_bytes: int = 0) -> tuple[Kernel, ...]:
    """The kernels of one path for one row, per rank and layer; without weights unless their width is given."""
    work = Work(
        queries=row.queries,
        context=row.context,
        row_bytes=setting.row_bytes,
        tp=setting.tp,
        causal=True,
        weight_bytes=weight_bytes,
    )
    kernels = setting.paths[name](setting.mla, work)
    if name == "naive" and setting.as_run:
        return (*kernels, *as_run_kernels(setting.mla, row, setting.tp, setting.chunks))
    return kernels


def as_run_kernels(mla: MLA, row: Row, tp: int, chunks: int) -> tuple[Kernel, ...]:
    """What an engine moves on top of the naive path's own kernels, as bytes.

    The cached rows gathered into the workspace and read from there, the assembled keys written and read once
    more, and, where there is a prefix, one partial output per chunk merged with what came before.

    These are what a bound lacks, beside the path's own kernels, whose bytes are the first read of cached rows and
    one write of keys. ``implementation_kernels`` (costs/estimates.py) counts copies too, but as this tool times
    them: whole kernels, of all keys, that read the cache themselves and the rotary part once for all heads.
    """
    heads, width = mla.heads // tp, 2
    gathered = 2 * row.prefix * mla.row_values
    keys = 2 * row.context * heads * mla.qk_head_dim if mla.qk_rope_head_dim else 0
    merged = 3 * chunks * row.queries * heads * mla.v_head_dim if row.prefix else 0
    moved = {"gather": gathered, "assemble_k": keys, "merge": merged}
    return tuple(
        Kernel(name, flop=0, cache_bytes=0, weight_bytes=0, activation_bytes=stored_bytes(values, width))
        for name, values in moved.items()
    )


def _path_of(path: str) -> str:
    return "absorbed" if path == "absorbed" else "naive"
