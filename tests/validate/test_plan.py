"""What a run measures: which cells, by which kernel, in what order, as far as memory allows."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mla_calc.errors import InputError
from mla_calc.hardware.load import load_gpu
from mla_calc.models.load import load_model
from mla_calc.validate.case import Case
from mla_calc.validate.kernels import Device, Schedule, Shape
from mla_calc.validate.plan import Plan, make_plan

H200 = Device(sms=132, capability=(9, 0), shared_bytes=232_448)
GIB = 1 << 30


@dataclass(frozen=True)
class FakeKernel:
    """A kernel that refuses an fp8 cache, or everything."""

    fp8: bool = True
    why_not: str | None = None
    splits: int = 1

    def refusal(self, shape: Shape, device: Device) -> str | None:
        assert device == H200
        if self.why_not:
            return self.why_not
        return None if self.fp8 or shape.cache_dtype != "fp8" else "reads no fp8"

    def schedule(self, shape: Shape, device: Device) -> Schedule:
        return Schedule(tiles=1, splits=self.splits, pages_per_split=shape.pages, waves=1 + 0 * device.sms)


KERNELS = {"few": FakeKernel(), "many": FakeKernel(fp8=False)}


def pick(shape: Shape, device: Device) -> str:
    name = "few" if shape.rows <= 16 or shape.cache_dtype == "fp8" else "many"
    reason = KERNELS[name].refusal(shape, device)
    assert reason is None
    return name


def plan_of(kind: Any = "full", model: str = "dsv3", **changes: Any) -> Plan:
    options: dict[str, Any] = {
        "model": load_model(model),
        "gpu": load_gpu("h200"),
        "device": H200,
        "free_bytes": 139 * GIB,
        "seed": 3,
        "kernels": KERNELS,
        "pick": pick,
        **changes,
    }
    return make_plan(kind, **options)


@pytest.fixture(scope="module")
def full() -> Plan:
    return plan_of()


def cells(plan: Plan, **wanted: Any) -> list[Case]:
    return [case for case in plan.cases if all(getattr(case, key) == value for key, value in wanted.items())]


def test_decode_covers_the_axes_that_the_issue_names(full: Plan) -> None:
    # heads 128/64/32/16 (TP 1 to 8), batch 1 to 128, context 1k to 64k, Q 1 to 4
    picked = [case for case in cells(full, scope="attention", dtype="bf16", cache="bf16") if _picked(case)]
    taken = [case for case in picked if case.context % 1024 == 0]
    assert {case.heads for case in taken} == {128, 64, 32, 16}
    assert {case.batch for case in taken} == {1, 2, 4, 8, 16, 32, 64, 128}
    assert {case.context for case in taken} == {1024 * 2**step for step in range(7)}
    assert {case.queries for case in taken} == {1, 2, 3, 4}
    assert len(taken) == 4 * 8 * 7 * 4
    # and cells between the powers of two, on which nobody tunes
    between = [case for case in picked if case.context % 1024]
    assert {case.batch for case in between} == {3, 12, 48, 96}
    assert len(between) == 4 * 4 * 2 * 4


def _picked(case: Case) -> bool:
    return case.kernel == ("few" if case.queries * case.heads <= 16 else "many")


def test_every_kernel_meets_the_anchors(full: Plan) -> None:
    # the cells that both engines' kernels were measured on: 4 heads, 4 batches, 4 contexts
    for name in KERNELS:
        anchors = {
            (case.heads, case.batch, case.context)
            for case in cells(full, kernel=name, scope="attention", dtype="bf16", cache="bf16", queries=1)
        }
        wanted = {
            (heads, batch, context)
            for heads in (16, 32, 64, 128)
            for batch in (1, 8, 64, 128)
            for context in (1024, 4096, 16384, 65536)
        }
        assert wanted <= anchors


def test_the_crossover_cells_have_both_paths_and_the_better_naive(full: Plan) -> None:
    paths = {
        name: {(case.heads, case.queries, case.context) for case in full.cases if (case.scope, case.kernel) in keys}
        for name, keys in {
            "absorbed": {("absorbed", "few"), ("absorbed", "many")},
            "naive": {("naive", "naive")},
            "in place": {("naive", "naive_in_place")},
        }.items()
    }
    assert paths["absorbed"] == paths["naive"] == paths["in place"]
    for heads in (128, 16):
        found = {queries for count, queries, context in paths["naive"] if (count, context) == (heads, 4096)}
        assert found == {1, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024}
    assert {context for _, _, context in paths["naive"]} == {1024 * 2**step for step in range(7)}
    assert {count for count, _, _ in paths["naive"]} == {128, 64, 32, 16}


def test_no_case_has_more_queries_than_context_nor_is_there_twice(full: Plan) -> None:
    assert all(case.queries <= case.context for case in full.cases)
    assert max(Counter(full.cases).values()) == 1


def test_fp16_and_fp8_are_there_more_thinly(full: Plan) -> None:
    fp16, fp8 = cells(full, dtype="fp16"), cells(full, cache="fp8")
    bf16 = cells(full, scope="attention", dtype="bf16", cache="bf16")
    assert 0 < len(fp16) < len(bf16) / 2
    assert 0 < len(fp8) < len(bf16) / 2
    assert {case.cache for case in fp16} == {"bf16"}  # the layout's name: two bytes a value
    assert {case.cache_dtype for case in fp16} == {"fp16"}
    assert {case.kernel for case in fp8} == {"few"}


def test_both_sides_of_the_ridge(full: Plan) -> None:
    # docs/cost-model.md, section 5: h*Q*(2r+dr)*2/row FLOP/B; an H200's ridge is 989.4/4.8 = 206
    intensities = [case.heads * case.queries * 1088 * 2 / 1152 for case in cells(full, scope="attention", cache="bf16")]
    assert min(intensities) < 206 / 4
    assert max(intensities) > 206 * 4


def test_the_order_is_the_seeds() -> None:
    one, again, other = plan_of(seed=1), plan_of(seed=1), plan_of(seed=2)
    assert one.cases == again.cases
    assert one.cases != other.cases
    assert sorted(map(str, one.cases)) == sorted(map(str, other.cases))


def test_heat_does_not_follow_an_axis(full: Plan) -> None:
    # of a shuffled thousand, the first and last fifths differ little in their mean heads
    heads = [case.heads for case in cells(full, scope="attention")]
    fifth = len(heads) // 5
    first, last = sum(heads[:fifth]) / fifth, sum(heads[-fifth:]) / fifth
    assert abs(first - last) < 15  # sorted, it would be 112


def test_pools_are_as_large_as_the_largest_case(full: Plan) -> None:
    # 128 requests of 65,536 rows in pages of 64
    assert full.pool_pages == {"bf16": 131_072, "fp16": 131_072, "fp8": 131_072}


def test_what_does_not_fit_is_skipped_and_told() -> None:
    small = plan_of(free_bytes=10 * GIB)
    kept = {str(case) for case in small.cases}
    lost = [item for item in small.skipped if "too little memory" in item.reason]
    assert (
        "many bf16 h=128 b=128 Q=1 S=65536" not in kept
    )  # its cache alone is 9 GiB of 9 usable, the fp8 one beside it
    assert "many bf16 h=128 b=1 Q=1 S=65536" in kept
    assert {str(case) for case in plan_of().cases} == kept | {item.case for item in lost}
    assert any("GiB free" in item.reason for item in lost)


@pytest.mark.parametrize("gib", [2, 6, 10, 24, 80])
def test_the_caches_and_the_largest_case_leave_a_gibibyte(gib: int) -> None:
    plan = plan_of(free_bytes=gib * GIB)
    width = {"bf16": 1152, "fp16": 1152, "fp8": 576}
    pools = sum(pages * 64 * width[dtype] for dtype, pages in plan.pool_pages.items())
    # keys and values of DeepSeek-V3's naive path: heads * (128 + 64 + 128) values of 2 bytes for each token
    expanded = max(case.batch * case.context * case.heads * 320 * 2 for case in plan.cases if case.scope == "naive")
    assert pools + 3 * expanded <= (gib - 1) * GIB


def test_partial_outputs_of_the_splits_count() -> None:
    # 16 splits of 128 x 4 x 128 rows of 513 floats: 2.0 GiB that one split does not take
    case = "many bf16 h=128 b=128 Q=4 S=1024"
    options: dict[str, Any] = {"free_bytes": 3 * GIB}
    without = plan_of(**options)
    split = plan_of(kernels={"few": FakeKernel(), "many": FakeKernel(fp8=False, splits=16)}, **options)
    assert case in {str(kept) for kept in without.cases}
    assert case not in {str(kept) for kept in split.cases}


def test_one_kernel_alone() -> None:
    plan = plan_of(kernel="many")
    assert plan.kernels == ("many",)
    assert {case.kernel for case in plan.cases} == {"many", "naive", "naive_in_place"}
    refused = [item for item in plan.skipped if item.reason == "reads no fp8"]
    assert len(refused) == 1  # once, not for each cell
    assert "fp8" in refused[0].case


def test_an_unknown_kernel_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="few, many") as caught:
        plan_of(kernel="manny")
    assert caught.value.hint == "did you mean many?"


def test_a_shape_that_no_kernel_takes_is_told() -> None:
    def none(shape: Shape, device: Device) -> str:
        assert device.sms
        if shape.dtype == "fp16":
            raise InputError("no kernel runs this shape: few: no fp16")
        return "few"

    plan = plan_of(pick=none)
    assert not cells(plan, dtype="fp16")
    assert [item.reason for item in plan.skipped if "fp16" in item.case] == ["no kernel runs this shape: few: no fp16"]


def test_products_without_a_peak_are_not_measured_and_told() -> None:
    # there is no bound to compare them with; bf16 and its rows in fp8 stay
    gpu = load_gpu("h200")
    plan = plan_of(gpu=replace(gpu, peak_tflops={"bf16": gpu.peak_tflops["bf16"]}))
    assert not cells(plan, dtype="fp16")
    assert cells(plan, cache="fp8")
    assert "fp16" not in plan.pool_pages
    [told] = [item for item in plan.skipped if "fp16" in item.case]
    assert told.case == "every cell of fp16"
    assert "gives no fp16 peak" in told.reason
    assert {case.dtype for case in plan.cases} == {"bf16"}


def test_a_gpu_without_a_bf16_peak_is_refused() -> None:
    with pytest.raises(InputError, match="no bf16 peak"):
        plan_of(gpu=replace(load_gpu("h200"), peak_tflops={"fp16": 100.0}))


def test_a_plan_and_the_loop_import_no_torch() -> None:
    # as their docstrings say: replaying and planning work where torch is not installed
    code = """
import sys
sys.modules["torch"] = sys.modules["triton"] = None
import mla_calc.validate.measure, mla_calc.validate.plan, mla_calc.validate.device, mla_calc.validate.kernels
from mla_calc.validate.kernels import PAGE, Shape
try:
    mla_calc.validate.kernels.absorbed_decode
except ImportError as error:
    print(PAGE, "torch" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("64 True\n", "")


def test_the_kernels_have_their_names_and_no_others() -> None:
    from mla_calc.validate import kernels
    from mla_calc.validate.kernels import absorbed_decode, decode

    assert absorbed_decode is decode.absorbed_decode
    assert {name for name in kernels.__all__ if getattr(kernels, name, None) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'absorbed'"):
        _ = kernels.absorbed


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing can be measured"):
        plan_of(free_bytes=GIB)


def test_a_model_without_mla_is_refused() -> None:
    with pytest.raises(InputError, match="grouped-query"):
        plan_of(model="llama3-70b")


def test_ranks_follow_the_models_heads() -> None:
    # DeepSeek-V2-Lite: 16 heads; MiniCPM3: 40
    assert {case.heads for case in plan_of(model="deepseek-v2-lite").cases} == {16, 8, 4, 2}
    assert {case.heads for case in plan_of(model="minicpm3-4b").cases} == {40, 20, 10, 5}


def test_a_quick_plan_is_quick_and_still_has_every_kind() -> None:
    plan = plan_of("quick")
    assert plan.estimate_s < 60
    assert plan.budget_s < 60
    assert {case.scope for case in plan.cases} == {"attention", "absorbed", "naive"}
    assert cells(plan, cache="fp8")
    assert cells(plan, dtype="fp16")
    assert {case.batch for case in plan.cases} >= {1, 128}


def test_a_full_plan_fits_eight_minutes(full: Plan) -> None:
    assert full.estimate_s < full.budget_s < 8 * 60
    assert len(full.cases) > 1500
