"""Crossovers by FLOPs and by time, held against scans over Q.

Sources: docs/cost-model.md, section 4; the chapter.

The scans evaluate the table of its section 5 as ``tests.shapes`` writes it down, in whole numbers: a time is
scaled by peak and bandwidth, so nothing is rounded and a tie is a tie.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from mla_calc.costs.crossover import (
    causal_flop_queries,
    causal_intervals,
    flop_crossover,
    rectangular_flop_queries,
    rectangular_intervals,
    time_crossover,
)
from mla_calc.costs.intervals import Interval, first_naive
from mla_calc.costs.paths import Work
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import MLA
from tests.shapes import CHEAP_CORE, DSV3, EVEN_CORES, GPUS, H20, H100, H200, MLAS, spelled_out, winner

FINITE = {name: mla for name, mla in MLAS.items() if name not in ("even-cores", "cheap-core")}


def fixed_and_dearer(mla: MLA) -> tuple[int, int]:
    """A and ca - cn, with all heads."""
    h, r, dn, dr, dv = mla.heads, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    return 2 * r * h * (dn + dv), 2 * h * ((r + dr) + r) - 2 * h * (dn + dr + dv)


def flop(mla: MLA, queries: int, context: int, pairs: int) -> tuple[int, int]:
    """(absorbed, naive) by docs/cost-model.md, section 3: A*Q + ca*pairs against A*S + cn*pairs."""
    h, r, dn, dr, dv = mla.heads, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    fold = 2 * r * h * (dn + dv)
    return fold * queries + 2 * h * (2 * r + dr) * pairs, fold * context + 2 * h * (dn + dr + dv) * pairs


def scan(mla: MLA, context: int, causal: bool, ceilings: Ceilings, last: int, **work: int) -> list[str]:
    return [winner(mla, queries, context, causal, ceilings, **work) for queries in range(1, last + 1)]


# --- by FLOPs


def test_flop_crossover_of_the_chapter() -> None:
    found = flop_crossover(DSV3, (4096,))
    # 170.67 = r(dn+dv)/(2r-dn-dv), naive first at 171, absorbed from context 2 (S* = 1.0059)
    assert found.queries_limit == pytest.approx(170.67, abs=0.005)
    assert found.queries_limit == float(Fraction(512 * 256, 1024 - 256))
    assert found.first_queries_naive_wins == 171
    assert found.first_context_absorbed_wins_at_one_query == 2
    fixed, dearer = fixed_and_dearer(DSV3)
    assert fixed / (fixed - dearer) == pytest.approx(1.0059, abs=5e-5)
    at = found.by_context[0]
    assert at.queries_rectangular == pytest.approx(163.84, abs=0.005)
    assert at.queries_causal == pytest.approx(167.23, abs=0.005)
    assert (at.first_queries_naive_wins_rectangular, at.first_queries_naive_wins_causal) == (164, 168)


def test_flashinfer_551_without_rope() -> None:
    # flashinfer#551 derives 512 / (4 - 1) for a model without rope; rope cancels
    no_rope = MLA(
        heads=128,
        hidden_size=5120,
        kv_lora_rank=512,
        q_lora_rank=1536,
        qk_nope_head_dim=128,
        qk_rope_head_dim=0,
        v_head_dim=128,
    )
    assert flop_crossover(no_rope, ()).queries_limit == float(Fraction(512, 3))


def test_a_cold_prefill_never_favours_absorption() -> None:
    # docs/cost-model.md, section 4: P = 0 gives 0
    at = flop_crossover(DSV3, (0,)).by_context[0]
    assert (at.queries_causal, at.first_queries_naive_wins_causal) == (0, 1)


@pytest.mark.parametrize("mla", FINITE.values(), ids=FINITE)
def test_the_limit_is_where_long_contexts_tend(mla: MLA) -> None:
    found = flop_crossover(mla, ())
    fixed, dearer = fixed_and_dearer(mla)
    assert found.queries_limit == float(Fraction(fixed, dearer))
    first = next(q for q in range(1, 100_000) if Fraction(dearer * q) > fixed)
    assert found.first_queries_naive_wins == first
    # just below the limit absorption wins at some context, from the limit on at none
    far = 10**12
    below, naive = flop(mla, first - 1, far, (first - 1) * far)
    assert below < naive or dearer * (first - 1) == fixed
    above, naive = flop(mla, first, far, first * far)
    assert above > naive


@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_first_context_by_trying_them(mla: MLA) -> None:
    first = next(s for s in range(1, 1000) if flop(mla, 1, s, s)[0] < flop(mla, 1, s, s)[1])
    assert flop_crossover(mla, ()).first_context_absorbed_wins_at_one_query == first


# at S = 40 the FLOPs of "uneven" are equal at Q = 20
@pytest.mark.parametrize("context", [1, 2, 3, 16, 40, 100, 171, 513, 4096])
@pytest.mark.parametrize("mla", FINITE.values(), ids=FINITE)
def test_rectangular_flops_by_scanning(mla: MLA, context: int) -> None:
    at = flop_crossover(mla, (context,)).by_context[0]
    wins = [
        q
        for q in range(1, context + 1)
        if flop(mla, q, context, q * context)[1] < flop(mla, q, context, q * context)[0]
    ]
    assert at.first_queries_naive_wins_rectangular == wins[0]
    assert wins == list(range(wins[0], context + 1))
    # Q*(S) = A / (A/S + (ca - cn)), equal FLOPs there
    fixed, dearer = fixed_and_dearer(mla)
    assert at.queries_rectangular == float(fixed / (Fraction(fixed, context) + dearer))
    exact = rectangular_flop_queries(mla, context)
    assert exact is not None
    assert fixed * exact + dearer * exact * context == fixed * context


# at P = 66, 126 and 780 the FLOPs of "uneven" are equal at a whole Q: naive wins from the next one
@pytest.mark.parametrize("prefix", [0, 1, 2, 16, 66, 100, 126, 513, 780, 4096, 65_536])
@pytest.mark.parametrize("mla", FINITE.values(), ids=FINITE)
def test_causal_flops_by_scanning(mla: MLA, prefix: int) -> None:
    at = flop_crossover(mla, (prefix,)).by_context[0]
    first, pairs = 0, 0
    while True:  # pairs grow by P + Q with every query
        first += 1
        pairs += prefix + first
        absorbed, naive = flop(mla, first, prefix + first, pairs)
        if naive < absorbed:
            break
    assert at.first_queries_naive_wins_causal == first
    assert at.queries_causal is not None
    assert first - 1 <= at.queries_causal < first


@pytest.mark.parametrize("prefix", [0, 1, 16, 4096, 65_536, 1 << 20, 1 << 30])
@pytest.mark.parametrize("mla", FINITE.values(), ids=FINITE)
def test_the_causal_root_to_twelve_digits(mla: MLA, prefix: int) -> None:
    """The positive root of (ca-cn)/2 Q^2 + (ca-cn)(P+1/2) Q - A P = 0, with 60 digits."""
    fixed, dearer = fixed_and_dearer(mla)
    with localcontext() as context:
        context.prec = 60
        a, b, c = Decimal(dearer) / 2, Decimal(dearer) * (Decimal(prefix) + Decimal("0.5")), -Decimal(fixed * prefix)
        root = (-b + (b * b - 4 * a * c).sqrt()) / (2 * a)
    assert causal_flop_queries(mla, prefix) == pytest.approx(float(root), rel=1e-12)


@pytest.mark.parametrize(("mla", "first"), [(EVEN_CORES, 2), (CHEAP_CORE, 1)], ids=["ca = cn", "ca < cn"])
def test_without_a_dearer_core_there_is_no_crossover(mla: MLA, first: int) -> None:
    # docs/cost-model.md, section 4: no finite limit, absorption wins wherever it wins at all
    found = flop_crossover(mla, (16, 4096))
    assert (found.queries_limit, found.first_queries_naive_wins) == (None, None)
    assert found.first_context_absorbed_wins_at_one_query == first
    for at in found.by_context:
        assert (at.queries_rectangular, at.queries_causal) == (None, None)
        assert (at.first_queries_naive_wins_rectangular, at.first_queries_naive_wins_causal) == (None, None)
    for q in range(1, 17):
        assert flop(mla, q, 16, 16 * q)[0] <= flop(mla, q, 16, 16 * q)[1]


# --- by time


@pytest.mark.parametrize(
    ("ceilings", "context", "first"),
    [(H200, 4096, 168), (H200, 65_536, 181), (H100, 4096, 187), (H100, 65_536, 206)],
    ids=["h200-4k", "h200-64k", "h100-4k", "h100-64k"],
)
def test_time_crossovers_of_section_4(ceilings: Ceilings, context: int, first: int) -> None:
    found = rectangular_intervals(DSV3, Work(queries=1, context=context, row_bytes=1152), ceilings)
    assert first_naive(found) == first
    scanned = scan(DSV3, context, False, ceilings, 1000, row=1152)
    assert scanned.index("naive") + 1 == first
    assert spelled_out(found, 1000) == scanned


def test_three_intervals_on_an_h20() -> None:
    # docs/cost-model.md, section 4: causal, P = 16: naive from 8, absorbed again from 39, naive from 71
    found = causal_intervals(DSV3, Work(queries=1, context=16, row_bytes=1152), H20)
    assert [(interval.path, interval.from_queries, interval.to_queries) for interval in found] == [
        ("absorbed", 1, 7),
        ("naive", 8, 38),
        ("absorbed", 39, 70),
        ("naive", 71, None),
    ]
    assert first_naive(found) == 8
    assert spelled_out(found, 500) == scan(DSV3, 16, True, H20, 500, row=1152)


@pytest.mark.parametrize(("tp", "batch"), [(1, 1), (4, 1), (1, 64), (4, 3)])
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("context", [1, 2, 16, 300])
@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_time_intervals_by_scanning(mla: MLA, context: int, gpu: str, tp: int, batch: int) -> None:
    row = mla.row_values * 2
    work = Work(queries=1, context=context, row_bytes=row, tp=tp, batch=batch)
    rectangular = rectangular_intervals(mla, work, GPUS[gpu])
    assert rectangular[-1].to_queries == context
    assert spelled_out(rectangular, context) == scan(mla, context, False, GPUS[gpu], context, row=row, b=batch, t=tp)
    causal = causal_intervals(mla, work, GPUS[gpu])
    assert causal[-1].to_queries is None
    assert spelled_out(causal, 600) == scan(mla, context, True, GPUS[gpu], 600, row=row, b=batch, t=tp)


@pytest.mark.parametrize("row", [324, 352, 576, 656])
def test_the_layout_moves_the_crossover(row: int) -> None:
    found = rectangular_intervals(DSV3, Work(queries=1, context=2000, row_bytes=row), H100)
    assert spelled_out(found, 2000) == scan(DSV3, 2000, False, H100, 2000, row=row)


@pytest.mark.parametrize("prefix", [0, 1, 4096, 65_536, 1 << 20])
@pytest.mark.parametrize("gpu", GPUS)
def test_the_last_causal_interval_has_no_end(gpu: str, prefix: int) -> None:
    """Held against the table up to a Q of 2**40, in steps of a twentieth."""
    found = causal_intervals(DSV3, Work(queries=1, context=prefix, row_bytes=1152), GPUS[gpu])
    assert spelled_out(found, 1000) == scan(DSV3, prefix, True, GPUS[gpu], 1000, row=1152)
    queries = 1000
    while queries < 1 << 40:
        (interval,) = (
            item
            for item in found
            if item.from_queries <= queries and (item.to_queries is None or queries <= item.to_queries)
        )
        assert interval.path == winner(DSV3, queries, prefix, True, GPUS[gpu], row=1152)
        queries += queries // 20


def test_exact_ties_are_called_equal() -> None:
    """Small whole ceilings and widths make ties common; the scan of the table says where they are."""
    tiny = MLA(
        heads=1,
        hidden_size=1,
        kv_lora_rank=2,
        q_lora_rank=None,
        qk_nope_head_dim=1,
        qk_rope_head_dim=1,
        v_head_dim=1,
    )
    ties = 0
    for flop_per_s in range(1, 9):
        for bytes_per_s in range(1, 9):
            for context in range(1, 12):
                ceilings = Ceilings(flop_per_s, bytes_per_s)
                work = Work(queries=1, context=context, row_bytes=6)
                found = spelled_out(rectangular_intervals(tiny, work, ceilings), context)
                assert found == scan(tiny, context, False, ceilings, context, row=6)
                ties += found.count("equal")
                causal = spelled_out(causal_intervals(tiny, work, ceilings), 60)
                assert causal == scan(tiny, context, True, ceilings, 60, row=6)
                ties += causal.count("equal")
    assert ties > 0


def test_time_crossover_lists_every_point() -> None:
    work = Work(queries=1, context=1, row_bytes=1152)
    found = time_crossover(DSV3, (16, 4096), work, (1, 8), (1, 4), H20).by_context
    assert [(at.context, at.tp, at.batch) for at in found] == [
        (context, tp, batch) for context in (16, 4096) for tp in (1, 8) for batch in (1, 4)
    ]
    for at in found:
        point = Work(queries=1, context=at.context, row_bytes=1152, tp=at.tp, batch=at.batch)
        assert at.intervals == rectangular_intervals(DSV3, point, H20)
        assert at.causal_intervals == causal_intervals(DSV3, point, H20)
        firsts = [
            next((item.from_queries for item in intervals if item.path == "naive"), None)
            for intervals in (at.intervals, at.causal_intervals)
        ]
        assert firsts == [at.first_queries_naive_wins, at.first_queries_naive_wins_causal]


def test_without_a_naive_interval_there_is_no_first() -> None:
    assert first_naive((Interval(path="absorbed", from_queries=1, to_queries=None),)) is None
    assert first_naive(()) is None
