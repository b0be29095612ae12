"""What a batch costs on the path that an engine chose for each row, and on the better one.

Per row the weights are left out: they are read once per path, not per row. The batch's totals add them once for
each path that is used. Regret is time lost against the better choice, by roofline bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..arrays import stored_bytes
from ..costs.paths import Kernel, Path, Work, path_bound_s, total_bytes, total_flop
from ..hardware.roofline import Ceilings
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
    better: str | None
    """``absorbed`` or ``naive``, whichever has the lower bound; ``equal``; ``None`` without a GPU."""
    regret_s: float | None


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


def price_rows(rows: Sequence[Row], decisions: Sequence[Decision], setting: Setting) -> tuple[RowCost, ...]:
    """Every row with both paths' costs, in the order given."""
    return tuple(_row_cost(row, decision, setting) for row, decision in zip(rows, decisions, strict=True))


def price_batch(costs: Sequence[RowCost], setting: Setting) -> BatchCost:
    """The batch's totals, and the least that any assignment of its rows to paths could take."""
    chosen = [_path_of(cost.path) for cost in costs]
    weights = {name: _weights(name, setting) for name in setting.paths}
    used = set(chosen)
    bytes_read = sum(getattr(cost, name).bytes for cost, name in zip(costs, chosen, strict=True))
    taken = _assigned(costs, chosen, weights, setting)
    best = _best(costs, weights, setting)
    lost = None if taken is None or best is None else taken - best
    return BatchCost(
        queries=sum(cost.queries for cost in costs),
        absorbed_rows=chosen.count("absorbed"),
        naive_rows=chosen.count("naive"),
        chosen_flop=sum(getattr(cost, name).flop for cost, name in zip(costs, chosen, strict=True)),
        chosen_bytes=bytes_read + sum(weights[name] for name in used),
        chosen_bound_s=taken,
        best_bound_s=best,
        regret_s=lost,
        total_regret_s=None if lost is None else _over_layers(lost, costs, setting),
    )


def _over_layers(lost: float, costs: Sequence[RowCost], setting: Setting) -> float:
    """The regret of all layers: ``lost`` on those that index, and what the others lose, which score nothing."""
    indexing = setting.layers if setting.indexing is None else setting.indexing
    reusing = setting.layers - indexing
    if not reusing:
        return lost * indexing
    bare = replace(setting, paths={name: _unindexed(path) for name, path in setting.paths.items()}, indexing=None)
    rows = [Row(cost.queries, cost.prefix) for cost in costs]
    decisions = [Decision(cost.path, cost.rule) for cost in costs]
    rest = price_batch(price_rows(rows, decisions, bare), replace(bare, layers=reusing)).total_regret_s
    assert rest is not None
    return lost * indexing + rest


def _unindexed(path: Path) -> Path:
    """A path on a layer that reuses the choice of an earlier one."""

    def kernels(mla: MLA, work: Work) -> tuple[Kernel, ...]:
        return tuple(kernel for kernel in path(mla, work) if not kernel.indexes)

    return kernels


def _row_cost(row: Row, decision: Decision, setting: Setting) -> RowCost:
    priced = {name: _price(name, row, setting) for name in setting.paths}
    absorbed, naive = priced["absorbed"], priced["naive"]
    regret = better = None
    if absorbed.bound_s is not None and naive.bound_s is not None:
        least = min(absorbed.bound_s, naive.bound_s)
        chosen = priced[_path_of(decision.path)].bound_s
        assert chosen is not None
        regret = chosen - least
        better = "equal" if absorbed.bound_s == naive.bound_s else min(priced, key=lambda name: _bound(priced[name]))
    return RowCost(
        queries=row.queries,
        prefix=row.prefix,
        path=decision.path,
        rule=decision.rule,
        absorbed=absorbed,
        naive=naive,
        absorbed_bound_s=absorbed.bound_s,
        naive_bound_s=naive.bound_s,
        better=better,
        regret_s=regret,
    )


def _price(name: str, row: Row, setting: Setting) -> RowPath:
    kernels = row_kernels(name, row, setting)
    return RowPath(
        flop=total_flop(kernels),
        bytes=total_bytes(kernels),
        bound_s=path_bound_s(kernels, setting.ceilings) if setting.ceilings else None,
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


def _weights(name: str, setting: Setting) -> int:
    """Bytes of a path's weights on one rank."""
    kernels = row_kernels(name, Row(1, 1), setting, weight_bytes=2)
    return sum(kernel.weight_bytes for kernel in kernels)


def _path_of(path: str) -> str:
    return "absorbed" if path == "absorbed" else "naive"


def _bound(path: RowPath) -> float:
    assert path.bound_s is not None
    return path.bound_s


def _assigned(
    costs: Sequence[RowCost], names: Sequence[str], weights: Mapping[str, int], setting: Setting
) -> float | None:
    """Bound of an assignment of rows to paths, s."""
    if setting.ceilings is None:
        return None
    rows = sum(_bound(getattr(cost, name)) for cost, name in zip(costs, names, strict=True))
    return rows + sum(weights[name] for name in set(names)) / setting.ceilings.bytes_per_s


def _best(costs: Sequence[RowCost], weights: Mapping[str, int], setting: Setting) -> float | None:
    """The least bound of all assignments: all on one path, or each row on its better one with both weights."""
    if setting.ceilings is None:
        return None
    each = [min(setting.paths, key=lambda name: _bound(getattr(cost, name))) for cost in costs]
    options = [each, *([name] * len(costs) for name in setting.paths)]
    found = [_assigned(costs, names, weights, setting) for names in options]
    return min(bound for bound in found if bound is not None)
