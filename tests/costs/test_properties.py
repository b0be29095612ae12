"""What holds of every geometry. Source: docs/cost-model.md, sections 2 to 6; each law is stated at its test."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.costs.cache import cache_cost
from mla_calc.costs.counts import absorbed_core_flop, fold_flop, naive_core_flop, pairs
from mla_calc.costs.crossover import (
    causal_intervals,
    flop_crossover,
    rectangular_intervals,
)
from mla_calc.costs.flops import flops_cost
from mla_calc.costs.intensity import context_intensity
from mla_calc.costs.intervals import Interval, first_naive
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.parity import parity
from mla_calc.costs.paths import PATHS, Work, overlapped_bound_s, path_bound_s, total_bytes, total_flop
from mla_calc.costs.trace import trace_cost
from mla_calc.costs.workspace import VLLM, workspace_cost, workspace_rows
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import GQA, MLA
from tests.shapes import ceilings, divisors, kernel_table, mlas, model, scaled_time, winner

BF16 = load_layout("bf16")
MOST = settings(max_examples=150)
WIDTHS = (1, 2, 4)


@st.composite
def steps(draw: st.DrawFn, longest: int = 1 << 17) -> tuple[MLA, Work]:
    """A geometry and a step that it can take."""
    mla = draw(mlas())
    context = draw(st.integers(1, longest))
    work = Work(
        queries=draw(st.integers(1, context)),
        context=context,
        row_bytes=draw(st.integers(1, 2 * mla.row_values)),
        batch=draw(st.integers(1, 64)),
        tp=draw(st.sampled_from(divisors(mla.heads))),
        causal=draw(st.booleans()),
        activation_bytes=draw(st.sampled_from(WIDTHS)),
        weight_bytes=draw(st.sampled_from(WIDTHS)),
    )
    return mla, work


def moved(work: Work, **changes: Any) -> Work:
    names = ("queries", "context", "row_bytes", "batch", "tp", "causal", "activation_bytes", "weight_bytes")
    return Work(**{name: getattr(work, name) for name in names} | changes)


def table_of(mla: MLA, work: Work) -> dict[str, list[tuple[str, int, int]]]:
    q, s = work.queries, work.context
    assert isinstance(q, int)
    assert isinstance(s, int)
    seen = q * (s - q) + q * (q + 1) // 2 if work.causal else q * s
    widths = {"bw": work.weight_bytes, "ba": work.activation_bytes}
    return kernel_table(mla, q, s, seen, row=work.row_bytes, b=work.batch, t=work.tp, **widths)  # type: ignore[arg-type]


# --- counts and paths


@given(steps())
@MOST
def test_any_step_is_the_table_of_section_5(step: tuple[MLA, Work]) -> None:
    mla, work = step
    expected = table_of(mla, work)
    for path, kernels in PATHS.items():
        assert [(item.name, item.flop, item.bytes) for item in kernels(mla, work)] == expected[path]


@given(steps())
@MOST
def test_the_folds_cost_one_tokens_up_projection(step: tuple[MLA, Work]) -> None:
    """A both times (docs/cost-model.md, section 3): a query token's folds, a context token's up-projection."""
    mla, work = step
    one = moved(work, queries=1, context=1, batch=1)
    fold, _, up = PATHS["absorbed"](mla, one)
    up_proj, _ = PATHS["naive"](mla, one)
    assert fold.flop + up.flop == up_proj.flop == fold_flop(mla, mla.heads // work.tp)


@given(steps())
@MOST
def test_total_flop_identities(step: tuple[MLA, Work]) -> None:
    """absorbed = B (A Q + ca pairs), naive = B (A S + cn pairs), with the heads of one rank."""
    mla, work = step
    heads = mla.heads // work.tp
    seen = pairs(work.queries, work.context, work.causal)
    fold = fold_flop(mla, heads)
    absorbed = total_flop(PATHS["absorbed"](mla, work))
    naive = total_flop(PATHS["naive"](mla, work))
    assert absorbed == work.batch * (fold * work.queries + absorbed_core_flop(mla, heads) * seen)
    assert naive == work.batch * (fold * work.context + naive_core_flop(mla, heads) * seen)


@given(steps(), st.integers(1, 1000), ceilings())
@MOST
def test_more_context_never_costs_less(step: tuple[MLA, Work], more: int, roof: Ceilings) -> None:
    mla, work = step
    longer = moved(work, context=work.context + more)
    for kernels in PATHS.values():
        before, after = kernels(mla, work), kernels(mla, longer)
        assert total_flop(before) < total_flop(after)
        assert total_bytes(before) < total_bytes(after)
        for short, long in zip(before, after, strict=True):
            assert short.flop <= long.flop
            assert short.bytes <= long.bytes
        assert path_bound_s(before, roof) <= path_bound_s(after, roof)
        assert overlapped_bound_s(before, roof) <= overlapped_bound_s(after, roof)


@given(steps())
@MOST
def test_ranks_share_the_flop_and_copy_the_cache(step: tuple[MLA, Work]) -> None:
    """T ranks do the FLOPs of one; weights and activations split too; every rank reads every cached row."""
    mla, work = step
    for kernels in PATHS.values():
        for whole, rank in zip(kernels(mla, moved(work, tp=1)), kernels(mla, work), strict=True):
            assert rank.flop * work.tp == whole.flop
            assert rank.weight_bytes * work.tp == whole.weight_bytes
            assert rank.activation_bytes * work.tp == whole.activation_bytes
            assert rank.cache_bytes == whole.cache_bytes


@given(steps(), st.integers(2, 9))
@MOST
def test_a_batch_shares_the_weights_alone(step: tuple[MLA, Work], times: int) -> None:
    mla, work = step
    for kernels in PATHS.values():
        few, many = kernels(mla, work), kernels(mla, moved(work, batch=work.batch * times))
        for small, large in zip(few, many, strict=True):
            assert large.flop == times * small.flop
            assert large.cache_bytes == times * small.cache_bytes
            assert large.activation_bytes == times * small.activation_bytes
            assert large.weight_bytes == small.weight_bytes


@given(steps(), ceilings())
@MOST
def test_a_bound_is_never_below_the_overlapped_one(step: tuple[MLA, Work], roof: Ceilings) -> None:
    """Both are held to exact fractions; between them, a sum of floats may be off by its rounding alone."""
    mla, work = step
    table = table_of(mla, work)
    for path, kernels in PATHS.items():
        rows = table[path]
        bound = Fraction(scaled_time(rows, roof), roof.flop_per_s * roof.bytes_per_s)
        flop, transferred = sum(f for _, f, _ in rows), sum(m for _, _, m in rows)
        overlapped = max(Fraction(flop, roof.flop_per_s), Fraction(transferred, roof.bytes_per_s))
        assert overlapped <= bound
        found = path_bound_s(kernels(mla, work), roof)
        together = overlapped_bound_s(kernels(mla, work), roof)
        assert found == pytest.approx(float(bound), rel=1e-15)
        assert together == pytest.approx(float(overlapped), rel=1e-15)
        assert together <= found * (1 + 1e-15)


@given(steps())
@MOST
def test_flops_cost_and_trace_price_the_same_kernels(step: tuple[MLA, Work]) -> None:
    mla, work = step
    cost, walk = flops_cost(mla, 7, work), trace_cost(mla, work)
    traced = [item for item in walk.steps if item.name in ("q_fold", "attention", "v_up")]
    assert [(item.flop, item.bytes) for item in traced] == [(item.flop, item.bytes) for item in cost.absorbed.kernels]
    assert cost.absorbed.total_flop == 7 * cost.absorbed.flop
    assert cost.core_ratio == absorbed_core_flop(mla, 1) / naive_core_flop(mla, 1)


@given(mlas(), st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 5000)), min_size=1, max_size=20), st.data())
@MOST
def test_arrays_give_what_scalars_give(mla: MLA, lines: list[tuple[int, int]], data: st.DataObject) -> None:
    """int64 arrays and Python integers: identical counts, bytes and seconds, to the last bit."""
    roof = data.draw(ceilings())
    batch, tp = data.draw(st.integers(1, 8)), data.draw(st.sampled_from(divisors(mla.heads)))
    causal = data.draw(st.booleans())
    queries = [q for q, _ in lines]
    contexts = [q + p for q, p in lines]
    shared = {"row_bytes": 2 * mla.row_values, "causal": causal}
    grid = Work(
        queries=np.array(queries),
        context=np.array(contexts),
        batch=np.full(len(lines), batch),
        tp=np.full(len(lines), tp),
        **shared,  # type: ignore[arg-type]
    )
    for kernels in PATHS.values():
        columns = kernels(mla, grid)
        bounds, overlapped = path_bound_s(columns, roof), overlapped_bound_s(columns, roof)
        flop, transferred = total_flop(columns), total_bytes(columns)
        for at, (q, s) in enumerate(zip(queries, contexts, strict=True)):
            single = kernels(mla, Work(queries=q, context=s, batch=batch, tp=tp, **shared))  # type: ignore[arg-type]
            for column, one in zip(columns, single, strict=True):
                assert np.broadcast_to(column.flop, len(lines))[at] == one.flop
                assert np.broadcast_to(column.bytes, len(lines))[at] == one.bytes
            assert (flop[at], transferred[at]) == (total_flop(single), total_bytes(single))
            assert bounds[at] == path_bound_s(single, roof)
            assert overlapped[at] == overlapped_bound_s(single, roof)


# --- cache, intensity, workspace


@given(mlas(), st.integers(1, 200))
@MOST
def test_latent_bytes_are_the_same_on_every_rank(mla: MLA, layers: int) -> None:
    whole = layers * (mla.kv_lora_rank + mla.qk_rope_head_dim) * 2
    for tp in divisors(mla.heads):
        cost = cache_cost(model(mla, layers), BF16, tp=tp)
        assert cost.bytes_per_token == cost.per_rank_bytes_per_token == whole
        assert cost.cluster_bytes_per_token == tp * whole
        expanded = layers * mla.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim) * 2
        assert cost.expanded_bytes_per_token == expanded == tp * (cost.expanded_per_rank_bytes_per_token or 0)


@given(
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.integers(1, 99),
    st.integers(1, 256),
    st.integers(1, 256),
)
@MOST
def test_gqa_shards_until_there_are_more_ranks_than_heads(
    kv_heads: int, group: int, layers: int, key: int, value: int
) -> None:
    attention = GQA(heads=kv_heads * group, hidden_size=1, kv_heads=kv_heads, qk_head_dim=key, v_head_dim=value)
    whole = layers * kv_heads * (key + value) * 2
    for tp in divisors(attention.heads):
        cost = cache_cost(model(attention, layers), BF16, tp=tp)
        assert cost.bytes_per_token == whole
        assert cost.cluster_bytes_per_token == tp * cost.per_rank_bytes_per_token
        assert cost.cluster_bytes_per_token == whole * max(Fraction(1), Fraction(tp, kv_heads))
        # decode's intensity: query heads per KV head in bf16, fewer once heads replicate
        share = Fraction(attention.heads, max(kv_heads, tp))
        assert context_intensity(attention, BF16, tp) == pytest.approx(float(share), rel=1e-15)


@given(mlas(), st.integers(1, 1 << 18), st.integers(1, 4096), st.integers(1, 300), st.integers(1, 1 << 17))
@MOST
def test_workspace_rows_are_the_rule_rounded_up(mla: MLA, length: int, requests: int, block: int, cap: int) -> None:
    rows = workspace_rows(VLLM, length, requests, block, cap)
    wanted = min(max(8 * length, 4 * requests * block), cap)
    assert rows % block == 0
    assert wanted <= rows < wanted + block
    for tp in divisors(mla.heads):
        cost = workspace_cost(
            mla,
            max_model_len=length,
            cache_bytes_per_token=100,
            tp=tp,
            max_num_seqs=requests,
            block_size=block,
            rows_cap=cap,
        )
        assert cost.kv_nope_bytes * tp == rows * mla.heads * (mla.qk_nope_head_dim + mla.v_head_dim) * 2
        extra = cost.k_bytes if mla.qk_rope_head_dim else 0
        assert cost.transient_peak_bytes == cost.kv_nope_bytes + extra


# --- crossovers


def at_flop(mla: MLA, queries: int, context: int, seen: int) -> int:
    """naive - absorbed, per head pair of FLOPs: r(dn+dv)(S - Q) - (2r - dn - dv) pairs."""
    fold = mla.kv_lora_rank * (mla.qk_nope_head_dim + mla.v_head_dim)
    return fold * (context - queries) - (2 * mla.kv_lora_rank - mla.qk_nope_head_dim - mla.v_head_dim) * seen


@given(mlas(), st.integers(1, 1 << 20))
@settings(max_examples=200)
def test_flop_crossovers_just_below_and_above(mla: MLA, context: int) -> None:
    """The first Q that naive wins: it does, and one query fewer does not. Rectangular, causal and the limit."""
    found = flop_crossover(mla, (context,))
    at = found.by_context[0]
    dearer = 2 * mla.kv_lora_rank - mla.qk_nope_head_dim - mla.v_head_dim
    firsts = (
        at.first_queries_naive_wins_rectangular,
        at.first_queries_naive_wins_causal,
        found.first_queries_naive_wins,
    )
    if dearer <= 0:  # no finite limit, naive never wins
        assert firsts == (None, None, None)
        for q in {1, (context + 1) // 2, context}:
            assert at_flop(mla, q, context, q * context) >= 0
            assert at_flop(mla, q, context, q * (context - q) + q * (q + 1) // 2) >= 0
    else:
        rectangular, causal, limit = firsts
        assert rectangular is not None
        assert causal is not None
        assert limit is not None
        assert 1 <= rectangular <= context
        assert at_flop(mla, rectangular, context, rectangular * context) < 0
        assert rectangular == 1 or at_flop(mla, rectangular - 1, context, (rectangular - 1) * context) >= 0
        for q, negative in ((causal, True), (causal - 1, False)):
            if q >= 1:
                seen = q * context + q * (q + 1) // 2  # the context is the prefix here
                assert (at_flop(mla, q, context + q, seen) < 0) == negative
        fold = mla.kv_lora_rank * (mla.qk_nope_head_dim + mla.v_head_dim)
        assert dearer * limit > fold
        assert dearer * (limit - 1) <= fold
    first = found.first_context_absorbed_wins_at_one_query
    assert first is not None
    assert at_flop(mla, 1, first, first) > 0
    assert first == 1 or at_flop(mla, 1, first - 1, first - 1) <= 0


def check_intervals(
    found: tuple[Interval, ...], at: Callable[[int], str], last: int | None, scanned: int, probes: list[int]
) -> None:
    """Intervals join up, end where they should, and hold at, below and above every boundary and between."""
    assert found[0].from_queries == 1
    assert found[-1].to_queries == last
    for before, after in pairwise(found):
        assert before.to_queries is not None
        assert before.from_queries <= before.to_queries == after.from_queries - 1
        assert before.path != after.path
    for interval in found:
        end = interval.to_queries
        inside = {interval.from_queries, interval.from_queries + 1}
        inside |= {end - 1, end, (interval.from_queries + end) // 2} if end is not None else set()
        for q in inside:
            if q >= interval.from_queries and (end is None or q <= end):
                assert at(q) == interval.path
    for q in [*range(1, scanned + 1), *probes]:
        if last is not None and q > last:
            continue
        (holds,) = (
            item for item in found if item.from_queries <= q and (item.to_queries is None or q <= item.to_queries)
        )
        assert at(q) == holds.path
    naive = [item.from_queries for item in found if item.path == "naive"]
    assert first_naive(found) == (naive[0] if naive else None)


PROBES = sorted({int(1.3**power) for power in range(1, 120)})
CONTEXTS = st.integers(1, 300) | st.integers(1, 1 << 20)


@given(mlas(), CONTEXTS, ceilings(), st.integers(1, 64), st.data())
@settings(max_examples=200)
def test_rectangular_time_intervals(mla: MLA, context: int, roof: Ceilings, batch: int, data: st.DataObject) -> None:
    tp = data.draw(st.sampled_from(divisors(mla.heads)))
    row = data.draw(st.sampled_from([2 * mla.row_values, mla.row_values, 1]))
    work = Work(queries=1, context=context, row_bytes=row, batch=batch, tp=tp)
    found = rectangular_intervals(mla, work, roof)

    def at(queries: int) -> str:
        return winner(mla, queries, context, False, roof, row=row, b=batch, t=tp)

    check_intervals(found, at, last=context, scanned=120, probes=PROBES)


@given(mlas(), st.just(0) | CONTEXTS, ceilings(), st.integers(1, 64), st.data())
@settings(max_examples=200)
def test_causal_time_intervals(mla: MLA, prefix: int, roof: Ceilings, batch: int, data: st.DataObject) -> None:
    tp = data.draw(st.sampled_from(divisors(mla.heads)))
    row = data.draw(st.sampled_from([2 * mla.row_values, mla.row_values, 1]))
    work = Work(queries=1, context=prefix, row_bytes=row, batch=batch, tp=tp)
    found = causal_intervals(mla, work, roof)

    def at(queries: int) -> str:
        return winner(mla, queries, prefix, True, roof, row=row, b=batch, t=tp)

    check_intervals(found, at, last=None, scanned=120, probes=PROBES)


@given(mlas(), st.integers(1, 400), ceilings(), st.sampled_from([Fraction(1, 2), 1, 4]))
@settings(max_examples=100)
def test_time_intervals_at_other_weight_widths(mla: MLA, context: int, roof: Ceilings, width: int | Fraction) -> None:
    """Half-byte weights included: a last half byte is dropped, and Q leaves that alone."""
    row = 2 * mla.row_values
    work = Work(queries=1, context=context, row_bytes=row, weight_bytes=width)
    fold, up = (mla.heads * mla.kv_lora_rank * side for side in (mla.qk_nope_head_dim, mla.v_head_dim))
    weights = {("absorbed", "q_fold"): fold, ("absorbed", "v_up"): up, ("naive", "up_proj"): fold + up}

    def at(queries: int) -> str:
        table = kernel_table(mla, queries, context, queries * context, row=row, bw=0)
        times = {
            path: scaled_time(
                [
                    (name, flop, transferred + int(weights.get((path, name), 0) * width))
                    for name, flop, transferred in rows
                ],
                roof,
            )
            for path, rows in table.items()
        }
        naive, absorbed = times["naive"], times["absorbed"]
        return "equal" if naive == absorbed else "naive" if naive < absorbed else "absorbed"

    check_intervals(rectangular_intervals(mla, work, roof), at, last=context, scanned=400, probes=[])


# --- parity


@given(mlas(most=24), st.integers(1, 6), st.integers(0, 12), st.integers(1, 3), st.integers(0, 1 << 31))
@settings(max_examples=100)
def test_both_forms_agree_whatever_the_shape(mla: MLA, queries: int, prefix: int, heads: int, seed: int) -> None:
    found = parity(mla, queries=queries, context=prefix + queries, heads=heads, seed=seed)
    assert found.holds
    assert max(found.max_abs_error.scores, found.max_abs_error.probabilities, found.max_abs_error.output) <= 1e-12
    assert found.rope_folds_needed == prefix + queries
    assert found.rope_per_distance_error <= 1e-12
