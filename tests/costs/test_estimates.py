"""A path's estimate is the sum over its implementation's measured steps, and a crossover is where two sums cross."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mla_calc.costs import step_estimates
from mla_calc.costs.estimated_crossover import EstimatedAtContext, estimated_crossover
from mla_calc.costs.estimates import (
    PARTS,
    PathEstimate,
    PathEstimator,
    estimate_path,
    implementation_kernels,
    implementations,
)
from mla_calc.costs.flops import flops_cost, with_estimates
from mla_calc.costs.paths import Work, absorbed_kernels
from mla_calc.costs.step_estimates import Step
from mla_calc.hardware.calibration import Boundary, Calibration, Domain, Errors, Fit, Tiling
from mla_calc.hardware.gpu import GPU
from mla_calc.hardware.latency import Unknown
from mla_calc.hardware.load import load_gpu
from tests.shapes import DSV3

WORK = Work(queries=4, context=4096, row_bytes=1152, batch=2, tp=8)
DOMAIN = Domain(
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    heads=(16, 128),
    batch=(1, 8),
    queries=(1, 1024),
    context=(64, 65536),
    flop=(0, 1 << 60),
    bytes=(0, 1 << 60),
)


def constants(path: str, part: str, kernel: str | None, t0_us: float, em: float = 1.0, ec: float = 1.0) -> Calibration:
    """Shares of both peaks, and a t0: the estimate is t0 plus the bound over the share."""
    return Calibration(
        path=path,  # type: ignore[arg-type]
        part=part,
        kernel=kernel,
        dtype="bf16",
        cache="bf16",
        run=f"run of {kernel}",
        date=datetime.date(2026, 11, 30),
        t0_us=((1, t0_us),),
        compute=((1, ec),),
        memory=((1, em),),
        domain=DOMAIN,
        fit=Fit(seed=1, holdout=0.3, rows=40, held_out=None),
    )


ABSORBED = (
    constants("absorbed", "q_fold", None, 1),
    constants("absorbed", "attention", "fast", 10),
    constants("absorbed", "v_up", None, 2),
)
NAIVE = (constants("naive", "up_proj", "naive", 4), constants("naive", "attention", "naive", 5))


def card(*calibrations: Calibration) -> GPU:
    return replace(load_gpu("h200"), calibration=calibrations, boundaries=(), crossovers=())


def ask(gpu: GPU, path: Any, work: Work = WORK, **changes: Any) -> PathEstimate | Unknown:
    return estimate_path(gpu, path, DSV3, work, **({"dtype": "bf16", "cache": "bf16"} | changes))


def bound_s(flop: int, moved: int) -> float:
    return max(flop / 989.4e12, moved / 4.8e12)


def test_a_path_is_the_sum_over_its_kernels() -> None:
    found = ask(card(*ABSORBED), "absorbed")
    assert isinstance(found, PathEstimate)
    assert [name for name, _ in found.parts] == ["q_fold", "attention", "v_up"]
    bounds = [bound_s(kernel.flop, kernel.bytes) for kernel in absorbed_kernels(DSV3, WORK)]
    assert found.seconds == pytest.approx(13e-6 + sum(bounds))
    assert found.kernel == "fast"
    assert {source.run for source in found.sources} == {"run of None", "run of fast"}


def test_the_copies_of_the_naive_path() -> None:
    """16 heads on the rank, 8192 keys, 2 B: rows read and written; keys of 128 + 64 built from 128 and a shared 64."""
    gather, up_proj, assemble, attention = implementation_kernels("naive", DSV3, WORK, "naive")
    keys = 2 * 4096
    assert gather.bytes == 2 * keys * 1152
    assert assemble.bytes == keys * 2 * (16 * 128 + 64 + 16 * 192)
    assert (gather.flop, assemble.flop) == (0, 0)
    assert (up_proj.name, attention.name) == ("up_proj", "attention")
    in_place = implementation_kernels("naive", DSV3, WORK, "naive_in_place")[2]
    assert in_place.bytes == keys * 2 * (64 + 16 * 64)  # the rotary columns alone


def test_steps_that_a_run_measured_are_in_the_sum_and_others_are_not() -> None:
    bare = ask(card(*NAIVE), "naive")
    whole = ask(card(*NAIVE, constants("naive", "gather", "naive", 7)), "naive")
    assert isinstance(bare, PathEstimate)
    assert isinstance(whole, PathEstimate)
    assert [name for name, _ in whole.parts] == ["gather", "up_proj", "attention"]
    assert whole.seconds - bare.seconds == pytest.approx(7e-6 + 2 * 2 * 4096 * 1152 / 4.8e12)
    assert whole.part("gather")
    assert bare.part("gather") is None


def test_a_path_with_a_kernel_that_was_not_measured_has_no_estimate() -> None:
    found = ask(card(*ABSORBED[:2]), "absorbed")
    assert isinstance(found, Unknown)
    assert "v_up" in found.reason
    assert isinstance(ask(card(), "naive"), Unknown)


@pytest.mark.parametrize(
    "change", [{"causal": False}, {"weight_bytes": Fraction(1, 2)}, {"activation_bytes": 1}, {"context": 100_000}]
)
def test_what_no_run_measures_has_no_estimate(change: dict[str, Any]) -> None:
    assert isinstance(ask(card(*ABSORBED), "absorbed", replace(WORK, **change)), Unknown)


def test_one_rectangular_query_is_a_causal_one() -> None:
    gpu, one = card(*ABSORBED), replace(WORK, queries=1)
    assert ask(gpu, "absorbed", replace(one, causal=False)) == ask(gpu, "absorbed", one)


def test_the_fastest_implementation_answers_unless_one_is_named() -> None:
    gpu = card(*ABSORBED, constants("absorbed", "attention", "slow", 30))
    fastest, named = ask(gpu, "absorbed"), ask(gpu, "absorbed", kernel="slow")
    assert isinstance(fastest, PathEstimate)
    assert isinstance(named, PathEstimate)
    assert (fastest.kernel, named.kernel) == ("fast", "slow")
    assert named.seconds - fastest.seconds == pytest.approx(20e-6)


def test_the_naive_path_is_the_one_that_engines_run_unless_the_other_is_named() -> None:
    """The one in place is 3 us faster here, and no engine runs it."""
    other = [replace(item, kernel="naive_in_place", t0_us=((1, item.t0_us[0][1] - 1.5),)) for item in NAIVE]
    for order in ((*NAIVE, *other), (*other, *NAIVE)):
        usual, in_place = ask(card(*order), "naive"), ask(card(*order), "naive", kernel="naive_in_place")
        assert isinstance(usual, PathEstimate)
        assert isinstance(in_place, PathEstimate)
        assert (usual.kernel, in_place.kernel) == ("naive", "naive_in_place")
        assert usual.seconds - in_place.seconds == pytest.approx(3e-6)
    assert isinstance(ask(card(*other), "naive"), Unknown)


def ours(hopper_us: float, small_us: float) -> GPU:
    parts = (
        constants("absorbed", "attention", "hopper", hopper_us),
        constants("absorbed", "attention", "small", small_us),
    )
    return card(ABSORBED[0], *parts, ABSORBED[2])


@pytest.mark.parametrize(("hopper_us", "small_us"), [(5.0, 50.0), (50.0, 5.0)])
def test_of_our_kernels_the_one_that_is_taken_is_estimated(hopper_us: float, small_us: float) -> None:
    """Whichever is estimated to be the faster: 16 rows are small's up to 262,144 tokens, 64 up to 8,192."""
    for queries, batch, context, taken in (
        (1, 8, 32_768, "small"),
        (1, 8, 32_832, "hopper"),
        (4, 2, 4096, "small"),
        (4, 2, 4160, "hopper"),
    ):
        work = replace(WORK, queries=queries, batch=batch, context=context)  # 16 heads a rank
        found = ask(ours(hopper_us, small_us), "absorbed", work)
        assert isinstance(found, PathEstimate)
        assert found.kernel == taken
        attention = found.part("attention")
        assert attention
        assert attention.t0_s * 1e6 == pytest.approx(hopper_us if taken == "hopper" else small_us)


def test_another_kernel_does_not_stand_in_where_the_one_that_is_taken_was_not_measured() -> None:
    gpu = ours(5, 50)
    small = next(item for item in gpu.calibration if item.kernel == "small")
    short = replace(small, domain=replace(DOMAIN, context=(64, 2048)))
    gpu = replace(gpu, calibration=tuple(short if item is small else item for item in gpu.calibration))
    found = ask(gpu, "absorbed", replace(WORK, queries=1))
    assert isinstance(found, Unknown)
    assert "small attention: context 4,096" in found.reason
    assert isinstance(ask(gpu, "absorbed", replace(WORK, queries=1), kernel="hopper"), PathEstimate)


def boundary(kernel: str, us: float, **changes: Any) -> Boundary:
    widths = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
    return Boundary(
        path="absorbed",
        kernel=kernel,
        dtype="bf16",
        cache="bf16",
        run="run of wholes",
        date=datetime.date(2026, 11, 30),
        us=us,
        fit=Fit(seed=1, holdout=0.3, rows=40),
        **(widths | changes),
    )


def test_a_path_takes_its_boundary_beyond_its_parts() -> None:
    bare = ask(card(*ABSORBED), "absorbed")
    gpu = replace(card(*ABSORBED), boundaries=(boundary("other", -9.0), boundary("fast", -3.5)))
    whole = ask(gpu, "absorbed")
    assert isinstance(bare, PathEstimate)
    assert isinstance(whole, PathEstimate)
    assert whole.seconds - bare.seconds == pytest.approx(-3.5e-6)
    assert whole.parts == bare.parts
    assert "run of wholes" in {source.run for source in whole.sources}
    cost, _ = with_estimates(flops_cost(DSV3, 61, WORK), gpu, DSV3, 61, WORK, dtype="bf16", cache="bf16")
    assert cost.absorbed.estimated
    told = {part.name: part.estimate_s for part in cost.absorbed.estimated.parts}
    assert told["boundary"] == pytest.approx(-3.5e-6)
    assert sum(told.values()) == pytest.approx(cost.absorbed.estimate_s)


def test_a_boundary_saves_no_more_than_the_parts_wait_and_is_of_these_widths() -> None:
    """t0 are 1, 10 and 2 us: what is left is the bound."""
    gpu = replace(card(*ABSORBED), boundaries=(boundary("fast", -30.0),))
    found = ask(gpu, "absorbed")
    assert isinstance(found, PathEstimate)
    bounds = [bound_s(kernel.flop, kernel.bytes) for kernel in absorbed_kernels(DSV3, WORK)]
    assert found.seconds == pytest.approx(sum(bounds))
    other = ask(replace(gpu, boundaries=(boundary("fast", -3.0, kv_lora_rank=256),)), "absorbed")
    assert isinstance(other, PathEstimate)
    assert other.seconds == pytest.approx(13e-6 + sum(bounds))


def test_calibrations_of_other_widths_have_no_part_in_an_estimate() -> None:
    """Neither their kernels nor the steps that they alone measured."""
    narrow = [
        replace(item, kernel="narrow", domain=replace(DOMAIN, kv_lora_rank=256))
        for item in (*ABSORBED, constants("naive", "gather", "naive", 7), *NAIVE)
    ]
    gather = replace(constants("naive", "gather", "naive", 7), domain=replace(DOMAIN, kv_lora_rank=256))
    gpu = card(*narrow, gather, *ABSORBED, *NAIVE)
    for path in ("absorbed", "naive"):
        both = ask(gpu, path), ask(card(*ABSORBED, *NAIVE), path)
        assert isinstance(both[0], PathEstimate)
        assert isinstance(both[1], PathEstimate)
        assert both[0].kernel == both[1].kernel
        assert both[0].seconds >= both[1].seconds
    assert [item.name for item in implementation_kernels("naive", DSV3, WORK, "naive")] == list(PARTS["naive"])
    assert [item.name for item in implementation_kernels("absorbed", DSV3, WORK, "fast")] == list(PARTS["absorbed"])
    assert implementations(gpu, "absorbed", DSV3, dtype="bf16", cache="bf16") == ("fast",)


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize(("path", "kernel"), [("absorbed", None), ("naive", None), ("absorbed", "small")])
def test_many_steps_are_estimated_as_one_by_one(
    path: Any, kernel: str | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiled kernels and others, two calibrations of one, steps within, outside, and of no sense."""
    monkeypatch.setattr(step_estimates, "FEW", few)
    gpu = ours(5, 6)
    tiled = [
        replace(item, tiling=Tiling(tile_rows=64), combine=0.5, domain=replace(DOMAIN, queries=(1, 64)))
        for item in gpu.calibration
    ]
    gpu = replace(gpu, calibration=(*tiled, *gpu.calibration, *NAIVE), boundaries=(boundary("hopper", -2.0),))
    steps = [
        Step(queries, context, batch, tp)
        for queries in (1, 3, 64, 65, 300, 1024, 2000)
        for context in (1, 100, 4096, 65536, 70_000, 1 << 40)
        for batch in (1, 8, 9)
        for tp in (1, 8)
    ]
    estimator = PathEstimator(gpu, path, DSV3, dtype="bf16", cache="bf16", kernel=kernel)
    work = Work(queries=1, context=1, row_bytes=1152)
    found = step_estimates.estimate_steps(estimator, steps, work)
    known = 0
    for step, item in zip(steps, found.found, strict=True):
        one = estimator.at(replace(work, **step._asdict()))
        if isinstance(one, PathEstimate):
            assert item
            assert (item.kernel, item.seconds) == (one.kernel, pytest.approx(one.seconds, rel=1e-12))
            known += 1
        else:
            assert item is None
            assert step_estimates.why_unknown(estimator, step, work) == one.reason
    assert 20 < known < len(steps)
    assert {source.run for source in found.sources} >= {f"run of {item.kernel}" for item in found.found if item}


def test_a_crossover_of_each_naive_implementation() -> None:
    """The one in place is faster, so that it overtakes earlier; both are found, as the engine's own first."""
    other = [replace(item, kernel="naive_in_place", memory=((1, 2.0),), compute=((1, 2.0),)) for item in NAIVE]
    work = Work(queries=1, context=1, row_bytes=1152)
    found = estimated_crossover(
        card(*ABSORBED, *NAIVE, *other), DSV3, work, [(4096, 1, 1), (8192, 8, 1)], dtype="bf16", cache="bf16"
    ).by_context
    assert [(item.context, item.tp, item.naive_kernel) for item in found] == [
        (4096, 1, "naive"),
        (4096, 1, "naive_in_place"),
        (8192, 8, "naive"),
        (8192, 8, "naive_in_place"),
    ]
    alone = estimated_crossover(card(*ABSORBED, *NAIVE), DSV3, work, [(4096, 1, 1)], dtype="bf16", cache="bf16")
    assert found[0] == alone.by_context[0]
    assert found[1].first_queries_naive_wins
    assert found[0].first_queries_naive_wins
    assert found[1].first_queries_naive_wins < found[0].first_queries_naive_wins


def test_flops_has_estimates_beside_bounds() -> None:
    gpu = card(*ABSORBED, *NAIVE)
    plain = flops_cost(DSV3, 61, WORK)
    cost, reasons = with_estimates(plain, gpu, DSV3, 61, WORK, dtype="bf16", cache="bf16")
    assert reasons == ()
    assert cost.absorbed.estimate_s == pytest.approx(sum(kernel.estimate_s or 0 for kernel in cost.absorbed.kernels))
    assert cost.absorbed.estimate_s
    assert cost.absorbed.total_estimate_s == pytest.approx(61 * cost.absorbed.estimate_s)
    assert cost.lower_estimate == "absorbed"
    assert replace(cost, absorbed=plain.absorbed, naive=plain.naive, lower_estimate=None) == plain


def test_flops_without_one_of_two_estimates() -> None:
    cost, reasons = with_estimates(
        flops_cost(DSV3, 61, WORK), card(*ABSORBED), DSV3, 61, WORK, dtype="bf16", cache="bf16"
    )
    assert cost.absorbed.estimate_s
    assert (cost.naive.estimate_s, cost.naive.estimated, cost.lower_estimate) == (None, None, None)
    assert len(reasons) == 1
    assert "naive" in reasons[0]


@pytest.mark.parametrize(("context", "tp"), [(1024, 1), (4096, 1), (4096, 8), (65536, 1)])
def test_the_crossover_is_where_the_sums_cross(context: int, tp: int) -> None:
    """Every query length up to the most that was measured, one by one."""
    gpu = card(*ABSORBED, *NAIVE)
    (found,) = estimated_crossover(
        gpu, DSV3, Work(queries=1, context=1, row_bytes=1152), [(context, tp, 1)], dtype="bf16", cache="bf16"
    ).by_context
    wins = []
    for queries in range(1, 1025):
        work = Work(queries=queries, context=context, row_bytes=1152, tp=tp)
        absorbed, naive = ask(gpu, "absorbed", work), ask(gpu, "naive", work)
        assert isinstance(absorbed, PathEstimate)
        assert isinstance(naive, PathEstimate)
        wins.append(naive.seconds < absorbed.seconds)
    assert found.first_queries_naive_wins == 1 + wins.index(True)
    assert [path for path, start, end in stretches(found) for _ in range(start, end + 1)] == [
        "naive" if won else "absorbed" for won in wins
    ]
    assert (found.searched_from_queries, found.searched_to_queries) == (1, 1024)
    assert (found.absorbed_kernel, found.naive_kernel) == ("fast", "naive")


def stretches(found: EstimatedAtContext) -> list[tuple[str | None, int, int]]:
    return [(item.path, item.from_queries, item.to_queries) for item in found.intervals]


def crossed(gpu: GPU, *points: tuple[int, int, int]) -> tuple[EstimatedAtContext, ...]:
    work = Work(queries=1, context=1, row_bytes=1152)
    return estimated_crossover(gpu, DSV3, work, points, dtype="bf16", cache="bf16").by_context


def in_steps() -> tuple[Calibration, ...]:
    """Attention whose blocks take 10 us a wave of 132 and nothing else: 66 queries of 128 heads are a wave."""
    fold, attention, up = ABSORBED
    page = replace(
        attention,
        tiling=Tiling(tile_rows=64, blocks_per_sm=1, merge=0.0),
        t0_us=((1, 0.001),),
        combine=1.0,
        compute=((1, 0.5),),
        memory=((1, 1e6),),
    )
    return fold, page, up


def test_every_stretch_is_listed_and_the_last_is_not_the_first() -> None:
    """Absorbed steps up with each wave of blocks, naive rises evenly: they cross back and forth. One by one."""
    naive = tuple(replace(item, compute=((1, 0.35),)) for item in NAIVE)
    gpu = card(*in_steps(), *naive)
    (found,) = crossed(gpu, (1024, 1, 1))
    wins = []
    for queries in range(1, 1025):
        work = Work(queries=queries, context=1024, row_bytes=1152)
        absorbed, other = ask(gpu, "absorbed", work), ask(gpu, "naive", work)
        assert isinstance(absorbed, PathEstimate)
        assert isinstance(other, PathEstimate)
        wins.append(other.seconds < absorbed.seconds)
    changes = [queries for queries in range(2, 1025) if wins[queries - 1] != wins[queries - 2]]
    assert len(changes) > 1
    assert [start for _, start, _ in stretches(found)] == [1, *changes]
    assert [end for _, _, end in stretches(found)] == [*(queries - 1 for queries in changes), 1024]
    assert found.first_queries_naive_wins == changes[0]
    assert wins[-1]
    assert found.naive_wins_to_end_from == changes[-1] > changes[0]


def test_a_path_that_loses_at_the_end_has_no_last_crossover() -> None:
    """A naive path that nothing but its t0 tells from the absorbed one, and none where it never wins."""
    slow = [replace(item, t0_us=((1, 1e6),)) for item in NAIVE]
    (found,) = crossed(card(*ABSORBED, *slow), (4096, 1, 1))
    assert stretches(found) == [("absorbed", 1, 1024)]
    assert (found.first_queries_naive_wins, found.naive_wins_to_end_from) == (None, None)


@pytest.mark.parametrize(
    ("lower", "upper", "holes", "searched"),
    [((1, 4), (16, 1024), [(5, 15)], (1, 1024)), ((3, 4), (6, 700), [(5, 5)], (3, 700))],
)
def test_holes_between_what_was_measured_are_listed(
    lower: tuple[int, int], upper: tuple[int, int], holes: list[tuple[int, int]], searched: tuple[int, int]
) -> None:
    """Two fits of the attention, for few and for many queries: in between nothing is said, and none is bridged."""
    fold, attention, up = ABSORBED
    parts = [replace(attention, domain=replace(attention.domain, queries=limits)) for limits in (lower, upper)]
    (found,) = crossed(card(fold, *parts, up, *NAIVE), (4096, 1, 1))
    listed = stretches(found)
    assert [(start, end) for path, start, end in listed if path is None] == holes
    assert (found.searched_from_queries, found.searched_to_queries) == searched == (listed[0][1], listed[-1][2])
    (whole,) = crossed(card(*ABSORBED, *NAIVE), (4096, 1, 1))
    assert found.first_queries_naive_wins == whole.first_queries_naive_wins


def test_beyond_the_grid_is_searched_between_its_steps() -> None:
    """With runs of up to 20,000 queries crossings beyond 1,024 are found to the query."""
    far = [
        replace(item, domain=replace(item.domain, queries=item.domain.queries and (1, 20_000)))
        for item in (*ABSORBED, *NAIVE)
    ]
    late = [replace(item, t0_us=((1, 3000.0),)) if item.path == "naive" else item for item in far]
    gpu = card(*late)
    (found,) = crossed(gpu, (65536, 8, 1))
    first = found.first_queries_naive_wins
    assert first
    assert first > 1024
    for queries, naive_wins in ((first - 1, False), (first, True)):
        work = Work(queries=queries, context=65536, row_bytes=1152, tp=8)
        absorbed, naive = ask(gpu, "absorbed", work), ask(gpu, "naive", work)
        assert isinstance(absorbed, PathEstimate)
        assert isinstance(naive, PathEstimate)
        assert (naive.seconds < absorbed.seconds) is naive_wins


def test_the_errors_of_both_paths_stand_beside() -> None:
    """Those of the boundaries' fits, of the paths compared; none where the preset states none."""
    held = Errors(count=9, median_ape=0.05, mean_ape=0.06, p90_ape=0.3)
    stated = boundary("fast", -2.0)
    stated = replace(stated, fit=replace(stated.fit, held_out=held))
    gpu = card(*ABSORBED, *NAIVE)
    work = Work(queries=1, context=1, row_bytes=1152)
    points = [(4096, 1, 1)]
    assert estimated_crossover(gpu, DSV3, work, points, dtype="bf16", cache="bf16").errors == ()
    gpu = replace(gpu, boundaries=(stated,))
    (errors,) = estimated_crossover(gpu, DSV3, work, points, dtype="bf16", cache="bf16").errors
    assert (errors.path, errors.kernel, errors.run) == ("absorbed", "fast", stated.run)
    assert (errors.count, errors.median_ape, errors.p90_ape) == (9, 0.05, 0.3)
    assert estimated_crossover(gpu, DSV3, work, [(1 << 20, 1, 1)], dtype="bf16", cache="bf16").errors == ()


def test_a_crossover_that_was_not_measured_says_why() -> None:
    work = Work(queries=1, context=1, row_bytes=1152)
    for gpu, named in ((card(*ABSORBED), "naive"), (card(*ABSORBED, *NAIVE), "context")):
        (found,) = estimated_crossover(gpu, DSV3, work, [(100_000, 1, 1)], dtype="bf16", cache="bf16").by_context
        assert found.first_queries_naive_wins is None
        assert found.searched_from_queries is None
        assert found.reason
        assert named in found.reason or "context" in found.reason


def test_a_part_of_one_implementation_alone_is_no_others() -> None:
    """Parts that all implementations share are priced once; one that an implementation has of its own is its own."""
    other = constants("absorbed", "attention", "other", 10.5)
    shared = ask(card(*ABSORBED, other), "absorbed")
    own = ask(card(*ABSORBED, other, constants("absorbed", "q_fold", "other", 0.1)), "absorbed")
    assert isinstance(shared, PathEstimate)
    assert isinstance(own, PathEstimate)
    assert (shared.kernel, own.kernel) == ("fast", "other")  # 10 + 1 against 10.5 + 1, and against 10.5 + 0.1
    assert shared.seconds - own.seconds == pytest.approx(0.4e-6)


def test_many_points_cross_where_each_alone_does() -> None:
    """Sixteen points are searched as arrays, one is not."""
    gpu = replace(card(*ABSORBED, *NAIVE), boundaries=(boundary("fast", -2.0),))
    work = Work(queries=1, context=1, row_bytes=1152)
    points = [(context, tp, 1) for context in (128, 1024, 4096, 65536) for tp in (1, 2, 4, 8)]
    found = estimated_crossover(gpu, DSV3, work, points, dtype="bf16", cache="bf16").by_context
    for point, item in zip(points, found, strict=True):
        assert estimated_crossover(gpu, DSV3, work, [point], dtype="bf16", cache="bf16").by_context == (item,)
    assert len({item.first_queries_naive_wins for item in found}) > 4
