"""Sparse attention (DSA), held against hand-written tables, double loops and scans.

Sources: docs/cost-model.md, section 9 (DeepSeek-V3.2: 64 indexer heads of 128, top 2048, 132 B a key); the presets
of GLM-5.2 (21 of 78 layers index, sgl-project/sglang#30531) and GLM-5.3-Flash (keys pooled over 4 tokens).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.costs.counts import attended_pairs
from mla_calc.costs.crossover import (
    causal_intervals,
    rectangular_intervals,
    sparse_flop_crossover,
    sparse_rectangular_flop_queries,
    time_crossover,
)
from mla_calc.costs.flops import flops_cost
from mla_calc.costs.grid import Setting, check_grid, chunks
from mla_calc.costs.intensity import intensity_cost
from mla_calc.costs.intervals import Interval
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.paths import PATHS, Work, total_bytes, total_flop
from mla_calc.costs.sparse import (
    decode_bytes,
    decode_flop,
    first_contexts,
    indexer_bytes_per_context_token,
    indexer_flop_per_pair,
    indexer_of,
    paths_of,
)
from mla_calc.costs.sweeps import SPARSE_SWEEPS, SWEEPS
from mla_calc.errors import InputError
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import MLA, Indexer
from mla_calc.models.load import load_model
from mla_calc.report.record import flattened, lookup, plain
from tests.shapes import (
    CHEAP_CORE,
    DSV3,
    GPUS,
    H20,
    H100,
    UNEVEN,
    ceilings,
    divisors,
    kernel_table,
    mlas,
    model,
    spelled_out,
)

V32 = Indexer(heads=64, head_dim=128, topk=2048, layers=61)
POOLED = Indexer(heads=32, head_dim=128, topk=2048, layers=11, pool=4)
BF16 = load_layout("bf16")
TINY = MLA(
    heads=2, hidden_size=8, kv_lora_rank=6, q_lora_rank=None, qk_nope_head_dim=4, qk_rope_head_dim=1, v_head_dim=3
)


def key_bytes(x: Indexer) -> int:
    """An fp8 value each and one fp32 scale per 128 begun; an n-th of it for pooled keys, rounded up."""
    return -(-(x.head_dim + 4 * -(-x.head_dim // 128)) // x.pool)


def pair_flop(x: Indexer) -> int:
    return -(-2 * x.heads * x.head_dim // x.pool)


def brute_attended(queries: int, context: int, topk: int, causal: bool) -> int:
    """Query i has the keys up to position context - queries + i (causal) or all of them, and attends topk at most."""
    return sum(min(context - queries + i + 1 if causal else context, topk) for i in range(queries))


def sparse_table(
    m: MLA, x: Indexer, q: int, s: int, causal: bool, **sizes: int
) -> dict[str, list[tuple[str, int, int]]]:
    """Section 9's kernels beside the dense table of shapes.py: row by row, with loops for the pairs."""
    pairs = brute_attended(q, s, s, causal)
    dense = kernel_table(m, q, s, pairs, **sizes)
    b = sizes.get("b", 1)
    fold, (name, _, moved), up = dense["absorbed"]
    _, core, _ = kernel_table(m, q, s, brute_attended(q, s, x.topk, causal), **sizes)["absorbed"]
    indexer = ("indexer", b * pairs * pair_flop(x), b * s * key_bytes(x))
    unread = b * max(s - x.topk, 0) * sizes["row"]
    return {
        "absorbed": [fold, indexer, (name, core[1], moved - unread), up],
        "naive": [*([indexer] if s > x.topk else []), *dense["naive"]],
    }


def indexers() -> st.SearchStrategy[Indexer]:
    return st.builds(
        Indexer,
        heads=st.integers(1, 64),
        head_dim=st.integers(1, 200),
        topk=st.integers(1, 40),
        layers=st.just(1),
        pool=st.sampled_from([1, 1, 2, 4, 7, 300]),
    )


# --- counts


@given(q=st.integers(1, 30), prefix=st.integers(0, 40), topk=st.integers(1, 60), causal=st.booleans())
def test_attended_pairs_by_counting(q: int, prefix: int, topk: int, causal: bool) -> None:
    assert attended_pairs(q, prefix + q, topk, causal) == brute_attended(q, prefix + q, topk, causal)


def test_attended_pairs_by_hand() -> None:
    assert attended_pairs(3, 8, 7, True) == 6 + 7 + 7
    assert attended_pairs(3, 8, 7, False) == 21
    assert attended_pairs(1, 65_536, 2048, True) == 2048


def test_indexer_rates_of_the_sources() -> None:
    assert (indexer_flop_per_pair(V32), indexer_bytes_per_context_token(V32)) == (16_384, 132)
    assert (indexer_flop_per_pair(POOLED), indexer_bytes_per_context_token(POOLED)) == (2048, 33)
    third = replace(V32, pool=16)  # 8.25 B are 9: a whole byte per token, and no fewer than none
    assert indexer_bytes_per_context_token(third) == 9
    assert indexer_bytes_per_context_token(replace(V32, pool=2048)) == 1


@settings(max_examples=200)
@given(mla=mlas(), x=indexers(), q=st.integers(1, 30), prefix=st.integers(0, 60), causal=st.booleans(), data=st.data())
def test_kernels_of_section_9(mla: MLA, x: Indexer, q: int, prefix: int, causal: bool, data: st.DataObject) -> None:
    s, tp, batch = prefix + q, data.draw(st.sampled_from(divisors(mla.heads))), data.draw(st.integers(1, 5))
    work = Work(queries=q, context=s, row_bytes=37, batch=batch, tp=tp, causal=causal)
    table = sparse_table(mla, x, q, s, causal, row=37, b=batch, t=tp)
    for name, path in paths_of(x).items():
        kernels = [(kernel.name, kernel.flop, kernel.bytes) for kernel in path(mla, work) if kernel.bytes]
        assert kernels == table[name], name


@given(mla=mlas(), x=indexers(), q=st.integers(1, 30), prefix=st.integers(0, 40), causal=st.booleans())
def test_it_is_dense_while_everything_fits(mla: MLA, x: Indexer, q: int, prefix: int, causal: bool) -> None:
    """Up to topk keys, the indexer left out, every kernel is the dense one; above, no count is more than it."""
    work = Work(queries=q, context=prefix + q, row_bytes=20, causal=causal)
    for name, path in paths_of(x).items():
        sparse = [kernel for kernel in path(mla, work) if not kernel.indexes]
        dense = list(PATHS[name](mla, work))
        if work.context <= x.topk or name == "naive":
            assert sparse == dense
        assert all(a.flop <= b.flop and a.bytes <= b.bytes for a, b in zip(sparse, dense, strict=True))


def test_tp_does_not_split_the_indexer() -> None:
    for tp in (1, 8, 128):
        indexer = paths_of(V32)["absorbed"](DSV3, Work(queries=1, context=4096, row_bytes=1152, tp=tp))[1]
        assert (indexer.flop, indexer.bytes) == (16_384 * 4096, 132 * 4096)


def test_dense_is_the_default() -> None:
    v32 = load_model("dsv32")
    assert paths_of(None) is PATHS
    assert indexer_of(v32, sparse=False) is None
    assert indexer_of(v32, sparse=True) == V32
    with pytest.raises(InputError, match="DeepSeek-V3 has no indexer"):
        indexer_of(load_model("dsv3"), sparse=True)


# --- where sparse is less than dense


@pytest.mark.parametrize(("row", "first"), [(1152, 2314), (656, 2564), (132, None), (64, None), (133, 2048 * 133 + 1)])
def test_first_context_in_bytes(row: int, first: int | None) -> None:
    # cost-model.md, section 9: topk * row / (row - 132) is 2313.03 and 2563.9
    assert first_contexts(DSV3, V32, row, 1)[0] == first


@pytest.mark.parametrize(("tp", "first"), [(1, 2177), (8, 3869), (16, 34_817), (32, None), (128, None)])
def test_first_context_in_flop(tp: int, first: int | None) -> None:
    # above topk * ca / (ca - 16384): exactly 2176 at TP 1, 3868.4 at 8
    assert first_contexts(DSV3, V32, 1152, tp)[1] == first


@settings(max_examples=200)
@given(mla=mlas(most=12), x=indexers(), row=st.integers(1, 300))
def test_first_contexts_by_scanning(mla: MLA, x: Indexer, row: int) -> None:
    tp = divisors(mla.heads)[-1]
    core = 2 * (mla.heads // tp) * (2 * mla.kv_lora_rank + mla.qk_rope_head_dim)
    contexts = range(1, 3000)
    for first, dense, key in zip(
        first_contexts(mla, x, row, tp), (row, core), (key_bytes(x), pair_flop(x)), strict=True
    ):
        found = next((s for s in contexts if min(s, x.topk) * dense + s * key < s * dense), None)
        assert first == found or (found is None and first is not None and first > contexts[-1])
        if first is not None and first > contexts[-1]:  # whole numbers on either side, without a scan
            assert x.topk * dense + first * key < first * dense
            assert x.topk * dense + (first - 1) * key >= (first - 1) * dense


def test_the_paths_agree_with_first_contexts() -> None:
    first_bytes, first_flop = first_contexts(DSV3, V32, 1152, 8)
    for first, total in ((first_bytes, total_bytes), (first_flop, total_flop)):
        assert first is not None
        below, above = (
            total(paths_of(V32)["absorbed"](DSV3, work)) < total(PATHS["absorbed"](DSV3, work))
            for work in (Work(queries=1, context=s, row_bytes=1152, tp=8) for s in (first - 1, first))
        )
        assert (below, above) == (False, True)


# --- flops


def test_totals_have_the_indexer_on_the_layers_that_index() -> None:
    glm = load_model("glm-5.2")
    assert glm.mla
    assert glm.indexer
    work = Work(queries=1, context=65_536, row_bytes=1152, tp=8)
    cost = flops_cost(glm.mla, 78, work, H100, indexer=glm.indexer)
    for path in (cost.absorbed, cost.naive):
        indexer = next(kernel for kernel in path.kernels if kernel.name == "indexer")
        assert (indexer.flop, indexer.bytes) == (2 * 32 * 128 * 65_536, 132 * 65_536)
        assert path.total_flop == 78 * (path.flop - indexer.flop) + 21 * indexer.flop
        assert path.total_bytes == 78 * (path.bytes - indexer.bytes) + 21 * indexer.bytes
        assert path.total_bound_s is not None
        assert path.bound_s is not None
        assert indexer.bound_s is not None
        assert path.total_bound_s == pytest.approx(78 * path.bound_s - 57 * indexer.bound_s, rel=1e-12)
    # cached bytes that are read: 78 layers of 2048 rows, 21 layers of all keys
    rest = cost.absorbed.total_bytes - 78 * sum(k.weight_bytes + k.activation_bytes for k in cost.absorbed.kernels)
    assert rest == 78 * 2048 * 1152 + 21 * 65_536 * 132
    assert cost.sparse
    assert (cost.sparse.topk, cost.sparse.indexer_layers) == (2048, 21)


def test_flops_of_v32_by_hand() -> None:
    cost = flops_cost(DSV3, 61, Work(queries=1, context=65_536, row_bytes=1152), indexer=V32)
    fold, indexer, attention, up = cost.absorbed.kernels
    assert [fold.name, indexer.name, attention.name, up.name] == ["q_fold", "indexer", "attention", "v_up"]
    assert indexer.flop == 16_384 * 65_536
    assert attention.flop == 278_528 * 2048
    assert attention.cache_bytes == 2048 * 1152
    assert cost.pairs == 65_536
    assert cost.fold_to_core_ratio == 33_554_432 / (278_528 * 2048)
    assert plain(cost.sparse) == {
        "topk": 2048,
        "indexer_layers": 61,
        "indexer_flop_per_pair": 16_384,
        "indexer_bytes_per_context_token": 132,
        "attended_pairs": 2048,
        "first_context_bytes": 2314,
        "first_context_flop": 2177,
    }
    assert flops_cost(DSV3, 61, Work(queries=1, context=4096, row_bytes=1152)).sparse is None


def test_nothing_is_scored_where_naive_fits() -> None:
    def names(context: int) -> list[str]:
        cost = flops_cost(DSV3, 61, Work(queries=1, context=context, row_bytes=1152), H100, indexer=V32)
        return [kernel.name for kernel in cost.naive.kernels]

    assert names(2048) == ["up_proj", "attention"]
    assert names(2049) == ["indexer", "up_proj", "attention"]


# --- crossovers


def winner(table: dict[str, list[tuple[str, int, int]]], roof: Ceilings | None) -> str:
    """Exact: a time is scaled by peak and bandwidth; by FLOPs without a roof."""
    naive, absorbed = (
        sum(max(f * roof.bytes_per_s, b * roof.flop_per_s) if roof else f for _, f, b in table[path])
        for path in ("naive", "absorbed")
    )
    return "equal" if naive == absorbed else "naive" if naive < absorbed else "absorbed"


def scan(mla: MLA, x: Indexer, context: int, causal: bool, roof: Ceilings | None, last: int, **sizes: int) -> list[str]:
    return [
        winner(sparse_table(mla, x, q, context + q if causal else context, causal, **sizes), roof)
        for q in range(1, last + 1)
    ]


@settings(max_examples=250, deadline=None)
@given(
    mla=mlas(most=12),
    x=indexers(),
    context=st.integers(1, 60),
    roof=st.none() | ceilings(),
    batch=st.integers(1, 3),
    row=st.integers(1, 60),
    data=st.data(),
)
def test_crossovers_by_scanning(
    mla: MLA, x: Indexer, context: int, roof: Ceilings | None, batch: int, row: int, data: st.DataObject
) -> None:
    tp = data.draw(st.sampled_from(divisors(mla.heads)))
    work = Work(queries=1, context=context, row_bytes=row, batch=batch, tp=tp)
    sizes = {"row": row, "b": batch, "t": tp}
    found = spelled_out(rectangular_intervals(mla, work, roof, x), context)
    assert found == scan(mla, x, context, False, roof, context, **sizes)
    assert spelled_out(causal_intervals(mla, work, roof, x), 110) == scan(mla, x, context, True, roof, 110, **sizes)


# topk against the prefix: far below, one below, at, one and two above (pieces of 1 and 2 queries), far above
@pytest.mark.parametrize("topk", [1, 19, 20, 21, 22, 23, 60])
@pytest.mark.parametrize("gpu", [None, "h20", "small"])
@pytest.mark.parametrize("mla", [TINY, UNEVEN, CHEAP_CORE], ids=["tiny", "uneven", "cheap-core"])
def test_the_kink_at_topk(mla: MLA, gpu: str | None, topk: int) -> None:
    roof = {"h20": H20, "small": Ceilings(7, 2)}.get(gpu or "")
    for heads, width in ((1, 1), (4, 16), (64, 128)):
        x = Indexer(heads=heads, head_dim=width, topk=topk, layers=1)
        work = Work(queries=1, context=20, row_bytes=14)
        found = spelled_out(causal_intervals(mla, work, roof, x), 150)
        assert found == scan(mla, x, 20, True, roof, 150, row=14)


@pytest.mark.parametrize("gpu", GPUS)
def test_v32_around_every_change_of_winner(gpu: str) -> None:
    """At real sizes a scan is long: the winners on both sides of every change, and between, by closed pairs."""
    work = Work(queries=1, context=4096, row_bytes=1152)
    for intervals, causal in (
        (rectangular_intervals(DSV3, work, GPUS[gpu], V32), False),
        (causal_intervals(DSV3, work, GPUS[gpu], V32), True),
    ):
        for item in intervals:
            end = item.to_queries or item.from_queries + 5000
            for q in {item.from_queries, (item.from_queries + end) // 2, end}:
                assert [item.path] == [
                    winner(sparse_table(DSV3, V32, q, 4096 + q if causal else 4096, causal, row=1152), GPUS[gpu])
                ]


def test_v32_by_flops() -> None:
    """Above top-k both paths score: A Q + ca topk Q = A S + cn S Q, so Q = A S / (A + ca topk - cn S)."""
    at = {
        (row.context, row.tp): row for row in sparse_flop_crossover(DSV3, (1024, 4096, 65_536), (1, 8), V32).by_context
    }
    # 2**25 * 4096 / (2**25 + 278528 * 2048 - 81920 * 4096) = 512, at any TP
    for tp in (1, 8):
        assert at[4096, tp].queries_rectangular == 512
        assert at[4096, tp].first_queries_naive_wins_rectangular == 513
        # beyond (A + ca topk - cn S = A: S = 6963.2) naive would need more queries than there are keys
        assert at[65_536, tp].queries_rectangular is None
        assert at[65_536, tp].first_queries_naive_wins_rectangular is None
        assert at[65_536, tp].causal_intervals == (Interval(path="absorbed", from_queries=1, to_queries=None),)
    # up to top-k only absorption scores, with T times the heads: A S / (A + (ca - cn + T * 16384) S)
    for tp in (1, 8):
        fold = Fraction(2**25 * 1024, 2**25 + (196_608 + tp * 16_384) * 1024)
        assert at[1024, tp].queries_rectangular == float(fold)
        assert at[1024, tp].first_queries_naive_wins_rectangular == int(fold) + 1


@settings(max_examples=150, deadline=None)
@given(mla=mlas(most=12), x=indexers(), context=st.integers(1, 60), data=st.data())
def test_flop_crossover_by_scanning(mla: MLA, x: Indexer, context: int, data: st.DataObject) -> None:
    tp = data.draw(st.sampled_from(divisors(mla.heads)))
    cost = sparse_flop_crossover(mla, (context,), (tp,), x)
    at = cost.by_context[0]
    rectangular = scan(mla, x, context, False, None, context, row=1, t=tp)
    naive = [q for q, path in enumerate(rectangular, 1) if path == "naive"]
    assert at.first_queries_naive_wins_rectangular == (naive[0] if naive else None)
    # with S fixed both sides are lines in Q: one stretch, from the equality on
    equal = sparse_rectangular_flop_queries(mla, context, tp, x)
    assert naive == ([] if equal is None else list(range(int(equal) + 1, context + 1)))
    first = next(
        s for s in range(1, 10**6) if winner(sparse_table(mla, x, 1, s, False, row=1, t=tp), None) == "absorbed"
    )
    assert cost.first_context_absorbed_wins_at_one_query == first


def test_time_crossover_takes_the_indexer() -> None:
    work = Work(queries=1, context=1, row_bytes=1152)
    (at,) = time_crossover(DSV3, (4096,), work, (8,), (2,), H20, indexer=V32).by_context
    point = replace(work, context=4096, tp=8, batch=2)
    assert at.intervals == rectangular_intervals(DSV3, point, H20, V32)
    assert at.causal_intervals == causal_intervals(DSV3, point, H20, V32)
    assert at.intervals != rectangular_intervals(DSV3, point, H20)


# --- intensity


def test_intensity_of_v32_by_hand() -> None:
    v32 = load_model("dsv32")
    cost = intensity_cost(v32, BF16, (1, 8), ceilings=H100, indexer=v32.indexer, context=65_536)
    read = 132 * 65_536 + 1152 * 2048
    assert [row.intensity_flop_per_byte for row in cost.by_tp] == [
        (16_384 * 65_536 + 278_528 * 2048) / read,
        (16_384 * 65_536 + 34_816 * 2048) / read,
    ]
    assert cost.sparse
    assert cost.sparse.limit_flop_per_byte == 16_384 / 132
    assert cost.ridge_heads_times_queries is None
    far = intensity_cost(v32, BF16, (1, 8), indexer=v32.indexer, context=10**12)
    assert [row.intensity_flop_per_byte for row in far.by_tp] == pytest.approx([16_384 / 132] * 2, rel=1e-6)


@given(mla=mlas(), x=indexers(), q=st.integers(1, 5), context=st.integers(1, 100))
def test_decode_is_the_sum_of_two_kernels(mla: MLA, x: Indexer, q: int, context: int) -> None:
    """Of a rectangular step: FLOP of the kernels, and what they read of the caches."""
    work = Work(queries=q, context=context, row_bytes=33, causal=False)
    _, indexer, attention, _ = paths_of(x)["absorbed"](mla, work)
    assert decode_flop(mla, x, 1, q, context) == indexer.flop + attention.flop
    assert decode_bytes(x, 33, context) == indexer.cache_bytes + attention.cache_bytes


def test_intensity_refuses_more_queries_than_keys() -> None:
    v32 = load_model("dsv32")
    with pytest.raises(InputError, match="5 queries are more than the context of 4"):
        intensity_cost(v32, BF16, (1,), queries=5, indexer=v32.indexer, context=4)


# --- sweeps


def rows_of(command: str, setting: Setting, **axes: tuple[int, ...]) -> list[dict[str, Any]]:
    sweep = SPARSE_SWEEPS[command]
    check_grid(sweep, setting, axes)
    found = []
    for columns in chunks(sweep, setting, axes):
        lists = {name: np.asarray(column).tolist() for name, column in columns.items()}
        found += [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return found


@settings(max_examples=60, deadline=None)
@given(mla=mlas(), x=indexers(), roof=ceilings(), causal=st.booleans())
def test_sweep_equals_single_answers(mla: MLA, x: Indexer, roof: Ceilings, causal: bool) -> None:
    setting = Setting(model=model(mla, 7, indexer=x), layout=BF16, ceilings=roof, causal=causal, indexer=x)
    axes = {"tp": tuple(divisors(mla.heads)[:2]), "batch": (1, 3), "queries": (1, 2, 30), "context": (1, 40, 41, 10**6)}
    for row in rows_of("flops", setting, **axes):
        sizes: dict[str, int] = {name: row[name] for name in axes}
        work = Work(row_bytes=2 * mla.row_values, causal=causal, **sizes)
        expected = plain(flops_cost(mla, 7, work, roof, indexer=x))
        for name, value in row.items():
            assert type(value) is type(lookup(expected, name)), name
            assert value == lookup(expected, name), name
        assert set(row) <= set(flattened(expected))


# counts below and above 2**53, and products with a peak beyond 2**63
@pytest.mark.parametrize("gpu", [None, *GPUS])
def test_intensity_sweep_equals_single_answers(gpu: str | None) -> None:
    v32 = load_model("dsv32")
    roof = GPUS[gpu] if gpu else None
    setting = Setting(model=v32, layout=BF16, ceilings=roof, indexer=v32.indexer)
    contexts = (1, 2048, 2049, 100_003, 10**9 + 7, 10**11 + 3)
    for row in rows_of("intensity", setting, tp=(1, 8), queries=(1, 2, 64, 999), context=contexts):
        cost = intensity_cost(
            v32,
            BF16,
            (row["tp"],),
            queries=row["queries"],
            ceilings=roof,
            indexer=v32.indexer,
            context=row["context"],
        )
        expected = plain(cost.by_tp[0])
        assert {name: expected[name] for name in row if name in expected} == {
            name: value for name, value in row.items() if name in expected
        }


def test_dense_intensity_sweep_does_not_wrap_around() -> None:
    """64 queries times 278,528 FLOP times an H100's 3.35 TB/s are more than 2**63 - 1; they bind by compute."""
    setting = Setting(model=model(DSV3, 61), layout=BF16, ceilings=H100)
    (columns,) = chunks(SWEEPS["intensity"], setting, {"tp": (1,), "queries": (1, 2, 10, 20, 64, 100)})
    assert columns["binds"].tolist() == ["memory"] + ["compute"] * 5


@pytest.mark.parametrize("command", ["flops", "intensity"])
def test_corners_hold_the_largest_figures(command: str) -> None:
    """What check_grid looks at is what is largest: no column of the whole grid exceeds its corners' largest."""
    from mla_calc.costs import grid

    x = Indexer(heads=3, head_dim=5, topk=9, layers=2)
    setting = Setting(model=model(UNEVEN, 5, indexer=x), layout=BF16, ceilings=H100, indexer=x)
    axes = {"tp": (1, 2, 4), "batch": (1, 2), "queries": tuple(range(1, 12)), "context": tuple(range(1, 25))}
    sweep = SPARSE_SWEEPS[command]
    axes = {name: axes[name] for name in sweep.axes}
    corners = {name: np.array(values) for name, values in grid._corners(sweep, axes).items()}
    largest = sweep.columns(setting, corners)
    for row in rows_of(command, setting, **axes):
        for name, value in row.items():
            if isinstance(value, int):
                assert value <= largest[name].max(), name


def test_a_grid_too_large_is_refused() -> None:
    setting = Setting(model=model(DSV3, 61, indexer=V32), layout=BF16, indexer=V32)
    with pytest.raises(InputError, match=r"more than 2\*\*63 - 1"):
        rows_of("flops", setting, tp=(1,), batch=(1,), queries=(2**30,), context=(2**30,))
