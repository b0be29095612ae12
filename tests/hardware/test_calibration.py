"""Estimates from constants: each worked by hand, and none where nothing was measured."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.errors import InputError
from mla_calc.hardware.calibration import Calibration, Cell, Domain, Fit, Tiling
from mla_calc.hardware.gpu import GPU
from mla_calc.hardware.latency import Estimate, Unknown, at, estimate, estimate_kernel
from mla_calc.hardware.lint import lint
from mla_calc.hardware.schedule import merge_pages, plan_splits
from mla_calc.report.record import plain
from mla_calc.schema import build

CARD = build(
    GPU,
    {
        "name": "Acme One",
        "vendor": "Acme",
        "sms": 10,
        "peak_tflops": {"bf16": 100, "fp16": 50},
        "memory": {"bandwidth_tbs": 1},
        "sources": {"default": ["Acme One datasheet"]},
    },
    "test",
)
CELL = Cell(
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    qk_nope_head_dim=128,
    v_head_dim=128,
    heads=64,
    batch=5,
    queries=1,
    context=576,
)
DOMAIN = Domain(
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    heads=(16, 64),
    batch=(1, 8),
    queries=(1, 4),
    context=(64, 1024),
    flop=(0, 10**12),
    bytes=(0, 10**9),
)
PLAIN = Calibration(
    path="absorbed",
    part="attention",
    kernel="one",
    dtype="bf16",
    cache="bf16",
    run="a run",
    date=datetime.date(2026, 11, 30),
    t0_us=((1, 3.0),),
    compute=((10, 0.5),),
    memory=((1, 0.25), (100, 0.75)),
    domain=DOMAIN,
    fit=Fit(seed=1, holdout=0.3, rows=40, held_out=None),
)
TILED = replace(
    PLAIN,
    kernel="tiled",
    tiling=Tiling(tile_rows=64),
    t0_us=((1, 2.0), (4, 6.0)),
    combine=0.5,
    compute=((5, 0.8),),
    memory=((5, 0.9),),
)


def seconds(found: Estimate | Unknown) -> float:
    assert isinstance(found, Estimate), found
    return found.seconds


def test_a_curve_is_linear_over_the_logarithm_and_held_beyond_its_ends() -> None:
    curve = ((4.0, 1.0), (16.0, 2.0), (64.0, 5.0))
    assert [at(curve, size) for size in (4.0, 16.0, 64.0)] == [1.0, 2.0, 5.0]
    assert at(curve, 8.0) == pytest.approx(1.5)
    assert at(curve, 32.0) == pytest.approx(3.5)
    assert (at(curve, 1.0), at(curve, 1000.0)) == (1.0, 5.0)
    assert at(((7.0, 0.3),), 99.0) == 0.3


@pytest.mark.parametrize(
    ("flop", "moved", "expected_us", "binds"),
    [
        (10**9, 10**6, 3 + 1e9 / (0.5 * 100e12) * 1e6, "compute"),  # 20 us; 1 MB takes 1/0.25 = 4 us
        (10**8, 10**7, 3 + 1e7 / (0.5 * 1e12) * 1e6, "memory"),  # 10 MB is half way between 1 and 100: em 0.5
        (10**7, 10**6, 3 + 1e6 / (0.25 * 1e12) * 1e6, "memory"),
        (10**7, 10**5, 3 + 1e5 / (0.25 * 1e12) * 1e6, "overhead"),
    ],
)
def test_a_plain_kernel(flop: int, moved: int, expected_us: float, binds: str) -> None:
    found = estimate(PLAIN, CELL, flop, moved, CARD)
    assert isinstance(found, Estimate)
    assert found.seconds * 1e6 == pytest.approx(expected_us)
    assert found.binds == binds


def test_a_tiled_kernel_is_priced_by_its_schedule() -> None:
    """5 requests of 9 pages on 10 slots: 2 splits of 5 pages, so that 45 of 50 slot steps are useful."""
    schedule = plan_splits(batch=5, rows=64, pages=9, slots=10, tile_rows=64)
    assert (schedule.splits, schedule.pages_per_split, schedule.waves) == (2, 5, 1)
    flop, moved = 2 * 5 * 576 * 64 * 1088, 5 * 576 * 1152
    t0_us = 2.0 + (6.0 - 2.0) * math.log(2) / math.log(4)
    partial_us = 5 * 64 * 2 * 513 * 4 * 2 / 1e12 * 1e6 / 0.5
    compute_us = flop / (0.8 * 100e12 * 0.9) * 1e6
    memory_us = moved / (0.9 * 1e12) * 1e6
    found = estimate(TILED, CELL, flop, moved, CARD)
    assert isinstance(found, Estimate)
    assert compute_us > memory_us
    assert found.seconds * 1e6 == pytest.approx(t0_us + partial_us + compute_us)
    assert found.memory_s * 1e6 == pytest.approx(memory_us)
    assert found.combine_s * 1e6 == pytest.approx(partial_us)


@settings(deadline=None)
@given(
    heads=st.integers(16, 64),
    batch=st.integers(1, 8),
    queries=st.integers(1, 4),
    context=st.integers(64, 1024),
    share=st.floats(0.01, 1.0),
    measured=st.sampled_from(["compute", "memory", "both"]),
    tiling=st.sampled_from([None, Tiling(tile_rows=64), Tiling(tile_rows=16, blocks_per_sm=2)]),
)
def test_an_estimate_is_never_below_the_bound(
    heads: int, batch: int, queries: int, context: int, share: float, measured: str, tiling: Tiling | None
) -> None:
    cell = replace(CELL, heads=heads, batch=batch, queries=queries, context=context)
    flop, moved = 2 * batch * queries * context * heads * 1088, batch * context * 1152
    item = replace(TILED, tiling=tiling, compute=((5, share),), memory=((5, share),))
    if measured != "both":
        item = replace(item, compute=()) if measured == "memory" else replace(item, memory=())
    assert seconds(estimate(item, cell, flop, moved, CARD)) >= max(flop / 100e12, moved / 1e12)


def test_padding_of_a_tile_and_idle_multiprocessors_count_as_compute() -> None:
    """16 heads fill a quarter of a 64-row tile, one request of one page one slot of ten."""
    small = replace(CELL, heads=16, batch=1, context=64)
    flop = 2 * 64 * 16 * 1088
    found = estimate(TILED, small, flop, 64 * 1152, CARD)
    assert isinstance(found, Estimate)
    assert found.compute_s == pytest.approx(flop / (0.8 * 100e12) / (0.25 * 0.1))
    assert found.combine_s == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"heads": 8}, "heads 8"),
        ({"batch": 9}, "batch 9"),
        ({"queries": 5}, "queries 5"),
        ({"context": 2048}, "context 2,048"),
        ({"kv_lora_rank": 256}, "kv_lora_rank"),
        ({"qk_rope_head_dim": 0}, "qk_rope_head_dim"),
    ],
)
def test_outside_of_what_was_measured_there_is_no_estimate(change: dict[str, int], named: str) -> None:
    assert isinstance(estimate(PLAIN, CELL, 1, 1, CARD), Estimate)
    found = estimate(PLAIN, replace(CELL, **change), 1, 1, CARD)
    assert isinstance(found, Unknown)
    assert named in found.reason


def test_a_domain_limits_flops_and_bytes_too() -> None:
    for flop, moved, named in ((10**12 + 1, 1, "flop"), (1, 10**9 + 1, "bytes")):
        found = estimate(PLAIN, CELL, flop, moved, CARD)
        assert isinstance(found, Unknown)
        assert named in found.reason


def test_widths_that_a_kernel_does_not_know_do_not_matter() -> None:
    other = replace(CELL, v_head_dim=256)
    assert seconds(estimate(PLAIN, other, 1, 1, CARD)) == seconds(estimate(PLAIN, CELL, 1, 1, CARD))
    fold = replace(PLAIN, domain=replace(DOMAIN, v_head_dim=128, tokens=(1, 5), batch=None))
    assert isinstance(estimate(fold, other, 1, 1, CARD), Unknown)
    assert isinstance(estimate(fold, CELL, 1, 1, CARD), Estimate)
    assert isinstance(estimate(fold, replace(CELL, batch=2, queries=3), 1, 1, CARD), Unknown)


def ask(gpu: GPU, **changes: Any) -> Estimate | Unknown:
    given = {"dtype": "bf16", "cache": "bf16", "kernel": None, "cell": CELL} | changes
    return estimate_kernel(gpu, "absorbed", "attention", flop=10**7, bytes_moved=10**6, **given)


def test_without_a_calibration_of_the_kernel_the_reason_is_told() -> None:
    found = ask(CARD)
    assert isinstance(found, Unknown)
    assert "Acme One has no calibration" in found.reason
    card = replace(CARD, calibration=(PLAIN,))
    for changes in ({"kernel": "two"}, {"dtype": "fp16"}, {"cache": "fp8"}):
        assert isinstance(ask(card, **changes), Unknown)
    assert seconds(ask(card, kernel="one")) == seconds(ask(card))


def test_without_a_name_the_fastest_kernel_answers() -> None:
    slow = replace(PLAIN, kernel="slow", t0_us=((1, 9.0),))
    for order in ((PLAIN, slow), (slow, PLAIN)):
        found = ask(replace(CARD, calibration=order))
        assert isinstance(found, Estimate)
        assert found.calibration.kernel == "one"
    assert seconds(ask(replace(CARD, calibration=(PLAIN, slow)), kernel="slow")) * 1e6 == pytest.approx(9 + 4)


def test_a_kernel_answers_from_its_first_calibration_that_measured_such_a_cell() -> None:
    short = replace(PLAIN, t0_us=((1, 9.0),), domain=replace(DOMAIN, context=(64, 512)))
    card = replace(CARD, calibration=(short, PLAIN))
    assert seconds(ask(card)) * 1e6 == pytest.approx(3 + 4)
    assert seconds(ask(card, cell=replace(CELL, context=512))) * 1e6 == pytest.approx(9 + 4)


def mapping(**changes: Any) -> dict[str, Any]:
    """A GPU preset with one calibration, as YAML gives it."""
    card, item = plain(CARD), plain(PLAIN) | changes
    return {**card, "calibration": [{key: value for key, value in item.items() if value is not None}]}


def test_a_preset_holds_calibrations_and_lints_as_before() -> None:
    card = build(GPU, mapping(), "test")
    assert card.calibration == (PLAIN,)
    assert lint(card, [CARD]) == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"run": None}, "run"),
        ({"date": None}, "date"),
        ({"t0_us": []}, "t0_us"),
        ({"memory": [[100, 0.5], [10, 0.6]]}, "memory"),
        ({"memory": [[size, 0.5] for size in range(1, 10)]}, "memory"),
        ({"compute": [[1, 0]]}, "compute"),
        ({"path": "neither"}, "path"),
        ({"efficiency": 0.5}, "efficiency"),
        ({"domain": plain(DOMAIN) | {"heads": [64, 16]}}, "heads"),
        ({"domain": {key: value for key, value in plain(DOMAIN).items() if key != "flop"}}, "flop"),
    ],
)
def test_a_wrong_calibration_is_refused_by_its_key(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        build(GPU, mapping(**changes), "test")


@pytest.mark.parametrize(
    ("batch", "rows", "pages", "slots", "expected"),
    [
        (128, 16, 1024, 132, (1, 1, 1024, 1)),  # nearly every slot has a request: nothing to split
        (1, 16, 16, 132, (1, 16, 1, 1)),  # a page a block
        (1, 128, 1024, 132, (2, 64, 16, 1)),  # two tiles on 132 slots: 64 splits of 16 pages beat 66 of up to 16
        (128, 512, 16, 132, (8, 1, 16, 8)),  # 1024 blocks in 8 rounds of 132
    ],
)
def test_splits(batch: int, rows: int, pages: int, slots: int, expected: tuple[int, ...]) -> None:
    found = plan_splits(batch, rows, pages, slots, tile_rows=64)
    assert (found.tiles, found.splits, found.pages_per_split, found.waves) == expected
    assert found.steps == expected[2] * expected[3]


def test_a_merge_that_counts_its_bytes_splits_less() -> None:
    """32 requests of 4 x 64 rows over 2,048 keys on 132 slots, in pages by hand.

    128 blocks: 1 split is 1 wave of 32 pages and 3 of overhead, 35.02; 4 splits are 4 waves of 8 + 3, 44.08. With 3
    queries there are 96 blocks: 1 split 35.02, 4 splits 3 waves of 11, 33.08. Counting half of the merge's bytes adds
    0.5 * 32 * 192 * 513 * 8 / (132 * 64 * 576 * 2) = 1.295 pages a split.
    """
    assert plan_splits(32, 256, 32, 132, 64).splits == 1
    assert plan_splits(32, 192, 32, 132, 64).splits == 4
    pages = merge_pages(0.5, 32, 192, 132, 512, 64)
    assert pages == pytest.approx(0.5 * 32 * 192 * 513 * 8 / (132 * 64 * 576 * 2))
    assert plan_splits(32, 192, 32, 132, 64, merged_pages=pages).splits == 1
    assert merge_pages(0.0, 32, 192, 132, 512, 64) == 0


def test_a_calibration_keeps_the_schedule_that_it_was_measured_with() -> None:
    """5 requests of 9 pages on 10 slots: 2 splits of 5 pages are 8.04, and 3.5625 for the bytes of their merge; 1 split
    is 12.02."""
    assert 2 * 5 * 64 * 513 * 8 / (10 * 64 * 576 * 2) == 3.5625
    assert combine_s(replace(TILED, tiling=Tiling(tile_rows=64, merge=1.1))) > 0
    assert combine_s(replace(TILED, tiling=Tiling(tile_rows=64, merge=1.2))) == 0
    assert Tiling(tile_rows=64).merge == 0


def combine_s(item: Calibration) -> float:
    found = estimate(item, CELL, 10**8, 10**6, CARD)
    assert isinstance(found, Estimate)
    return float(found.combine_s)


@pytest.mark.parametrize("merged", [0.0, 0.3])
def test_many_calls_are_planned_as_one_by_one(merged: float) -> None:
    rng = random.Random(2)
    calls = [(rng.randint(1, 200), rng.randint(1, 9000), rng.randint(1, 1100)) for _ in range(300)]
    batch, rows, pages = (np.array(axis) for axis in zip(*calls, strict=True))
    found = plan_splits(batch, rows, pages, 132, 64, merged_pages=merged * batch)
    for place, call in enumerate(calls):
        one = plan_splits(*call, 132, 64, merged_pages=merged * call[0])
        assert [getattr(found, name)[place] for name in ("tiles", "splits", "pages_per_split", "waves")] == [
            one.tiles,
            one.splits,
            one.pages_per_split,
            one.waves,
        ]


def test_the_same_kernel_with_other_widths_is_another_calibration() -> None:
    narrow = replace(PLAIN, domain=replace(DOMAIN, kv_lora_rank=256))
    assert narrow.key != PLAIN.key
    assert replace(PLAIN, run="a newer run", domain=replace(DOMAIN, heads=(1, 8))).key == PLAIN.key
    fold = replace(PLAIN, domain=replace(DOMAIN, v_head_dim=128))
    assert fold.key != replace(PLAIN, domain=replace(DOMAIN, v_head_dim=192)).key


def test_the_reason_is_of_the_calibration_with_these_widths() -> None:
    """Whichever stands first in the preset, a cell beyond what was measured is told its own limits."""
    narrow = replace(PLAIN, domain=replace(DOMAIN, kv_lora_rank=256))
    for order in ((PLAIN, narrow), (narrow, PLAIN)):
        found = ask(replace(CARD, calibration=order), cell=replace(CELL, context=2048))
        assert isinstance(found, Unknown)
        assert "context 2,048" in found.reason
