"""A path's estimate is the sum over its implementation's measured steps, and a crossover is where two sums cross."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from mla_calc.costs.estimated_crossover import estimated_crossover
from mla_calc.costs.estimates import PathEstimate, estimate_path, implementation_kernels
from mla_calc.costs.flops import flops_cost, with_estimates
from mla_calc.costs.paths import Work, absorbed_kernels
from mla_calc.hardware.calibration import Calibration, Domain, Fit, Unknown
from mla_calc.hardware.gpu import GPU
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
    return replace(load_gpu("h200"), calibration=calibrations)


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
    assert (found.searched_from_queries, found.searched_to_queries) == (1, 1024)
    assert (found.absorbed_kernel, found.naive_kernel) == ("fast", "naive")


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
