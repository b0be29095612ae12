"""The boundary with S held fixed, against every Q tried; and the map against the point that it is a grid of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mla_calc.costs.crossover import first_causal_queries
from mla_calc.costs.crossover_map import MAP_QUERIES, crossover_map
from mla_calc.costs.flops import flops_cost
from mla_calc.costs.grid import Setting
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.paths import Kernel, Work
from mla_calc.costs.sparse import paths_of
from mla_calc.hardware.load import load_gpu
from mla_calc.hardware.roofline import Ceilings, datasheet_ceilings
from mla_calc.models.load import load_model


def time_of(kernels: tuple[Kernel, ...], ceilings: Ceilings | None) -> int:
    """FLOPs, or the bound times both ceilings: a whole number."""
    if ceilings is None:
        return sum(kernel.flop for kernel in kernels)
    return sum(max(kernel.flop * ceilings.bytes_per_s, kernel.bytes * ceilings.flop_per_s) for kernel in kernels)


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("gpu", [None, "h100"])
@pytest.mark.parametrize(
    ("name", "context"),
    [("dsv3", 5), ("dsv3", 700), ("dsv32", 100), ("dsv32", 2047), ("dsv32", 2048), ("dsv32", 2049), ("dsv32", 2200)],
)
def test_the_first_queries_are_those_of_trying_all(name: str, context: int, gpu: str | None, tp: int) -> None:
    model = load_model(name)
    mla, indexer = model.mla, model.indexer
    assert mla
    paths = paths_of(indexer)
    ceilings = datasheet_ceilings(load_gpu(gpu), "bf16") if gpu else None
    work = Work(queries=1, context=context, row_bytes=1152, tp=tp)

    def naive_wins(queries: int) -> bool:
        step = replace(work, queries=queries)
        absorbed, naive = (time_of(paths[path](mla, step), ceilings) for path in ("absorbed", "naive"))
        return naive < absorbed

    tried = next((queries for queries in range(1, context + 1) if naive_wins(queries)), None)
    assert first_causal_queries(mla, work, ceilings, indexer) == tried


def test_a_cell_is_the_point() -> None:
    model, layout = load_model("dsv3"), load_layout("bf16")
    ceilings = datasheet_ceilings(load_gpu("h200"), "bf16")
    cells = crossover_map(Setting(model=model, layout=layout, ceilings=ceilings), (256, 4096), (1, 8), (1, 4))
    assert len(cells) == 4 * (9 + 11)  # 256 keys leave out 512 and 1,024 queries
    assert {cell.queries for cell in cells} == set(MAP_QUERIES)
    assert model.mla
    for cell in cells:
        work = Work(queries=cell.queries, context=cell.context, row_bytes=1152, tp=cell.tp, batch=cell.batch)
        cost = flops_cost(model.mla, model.cached_layers, work, ceilings)
        assert (cell.absorbed_flop, cell.naive_flop) == (cost.absorbed.flop, cost.naive.flop)
        assert (cell.absorbed_bound_s, cell.naive_bound_s) == (cost.absorbed.bound_s, cost.naive.bound_s)
