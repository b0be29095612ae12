"""What fits on GPUs, and in which layout.

Sources: docs/cost-model.md, section 10; public threads, each named where its figure stands.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from mla_calc.costs.capacity import Memory, Plan, caches_latent, fixed_bytes, held, total_decode_bound_s
from mla_calc.costs.capacity_formulas import capacity_formulas, capacity_names
from mla_calc.costs.layouts import Layout, Part, load_layout
from mla_calc.costs.paths import Work, absorbed_kernels, path_bound_s
from mla_calc.costs.placement import (
    Placement,
    check_placement,
    legal_placements,
    placements_of,
    reasons,
    stage_caches,
)
from mla_calc.costs.search import CapacityCost, Step, capacity_cost, fewest_gpus, search
from mla_calc.costs.tokens import Form, cached_attention, layers_bytes, token_bytes
from mla_calc.costs.weights import stored_weights
from mla_calc.costs.workspace import VLLM
from mla_calc.errors import InputError
from mla_calc.models.attention import Indexer, Model
from mla_calc.models.load import load_model
from tests.shapes import DSV3, H200, LLAMA3_70B, model

GIB = 2**30
H200_BYTES = 143_156 * 2**20
V3, V32, GLM52 = load_model("dsv3"), load_model("dsv32"), load_model("glm-5.2")
BF16, FP8, DS_MLA = load_layout("bf16"), load_layout("fp8"), load_layout("fp8_ds_mla")
EXPANDED = Form(name="expanded")
STEP = Step(ceilings=H200)


def plan(this: Model = V3, layout: Layout = BF16, budget: int = 40 * GIB, **more: Any) -> Plan:
    return Plan(**{"model": this, "layout": layout, "memory": Memory(cache_bytes=budget), "context": 4096} | more)


def on_h200(this: Model = V3, **more: Any) -> Plan:
    memory = Memory(
        memory_bytes=H200_BYTES,
        reserve_bytes=H200_BYTES // 10,
        stored=stored_weights(this, None),
        rule=VLLM,
        max_model_len=163_840,
    )
    return plan(this, memory=memory, **more)


def cost_of(this: Plan, tp: int = 1, dp: int = 1, dcp: int = 1, pp: int = 1) -> CapacityCost:
    return capacity_cost(this, Placement(tp, dp, dcp, pp), STEP)


# what others have published


@pytest.mark.parametrize(("tokens", "gib"), [(975_424, 43.67), (1_462_784, 65.48)])
def test_sglang_11309(tokens: int, gib: float) -> None:
    # sgl-project/sglang#11309, DeepSeek-V3.2 with 656-byte rows and the indexer on DP ranks: what the log calls GB
    cost = cost_of(plan(V32, DS_MLA, tokens * 61 * (656 + 132)), dp=8)
    assert cost.per_gpu.tokens == tokens
    assert cost.unique_tokens == 8 * tokens
    assert cost.per_gpu.cache_bytes / GIB == pytest.approx(gib, abs=0.005)


def test_sglang_11309_left_the_indexer_out() -> None:
    # the same thread: 1,462,784 tokens were reported as 54.52, which is the rows alone
    rows = token_bytes(V32, DS_MLA)
    assert 1_462_784 * rows.main / GIB == pytest.approx(54.52, abs=0.01)
    assert 1_462_784 * rows.growing / GIB == pytest.approx(65.48, abs=0.005)


def test_sglang_30531() -> None:
    # sgl-project/sglang#30531, GLM-5.2 in fp8: 21 of 78 layers index, 55,225 -> 47,702 B a token by its pools;
    # before, 2,574,848 tokens took 132.43 (GiB). Its 3,002,752 tokens after are 133.40: a pool of another size.
    every = replace(GLM52, indexer=replace(GLM52.indexer, layers=78))
    assert GLM52.indexer is not None
    assert GLM52.indexer.layers == 21
    assert token_bytes(every, FP8).growing == 55_224
    assert token_bytes(GLM52, FP8).growing == 47_700
    assert pytest.approx(132.43, abs=0.01) == 2_574_848 * 55_224 / GIB
    assert cost_of(plan(every, FP8, round(132.43 * GIB))).unique_tokens == pytest.approx(2_574_848, rel=0.0001)
    assert pytest.approx(133.40, abs=0.01) == 3_002_752 * 47_700 / GIB


def test_vllm_10927() -> None:
    # vllm-project/vllm#10927, DeepSeek-V2-Lite before its latent was cached: keys and values padded to 256,
    # 5,373 blocks of 16 in 35.42 GiB, a concurrency of 10.49 at 8,192 tokens
    lite, form = load_model("dsv2-lite"), Form(name="expanded", pad_head_dim=256)
    cost = cost_of(plan(lite, budget=round(35.42 * GIB), form=form, block_size=16, context=8192))
    assert cost.bytes_per_token == 27 * 16 * 2 * 256 * 2 == 442_368
    assert cost.per_gpu.blocks == 5_373
    assert cost.per_gpu.blocks * 16 / 8192 == pytest.approx(10.49, abs=0.005)


@pytest.mark.parametrize(("indexing", "ratio"), [(21, 1.890), (78, 1.686)])
def test_sglang_31821(indexing: int, ratio: float) -> None:
    # sgl-project/sglang#31821: under DCP 2 tokens do not double, since each rank keeps all indexer keys;
    # 2 (a + i) / (a + 2 i) with a = 78 * 576 and i = 132 a layer that indexes
    this = replace(GLM52, indexer=replace(GLM52.indexer, layers=indexing))
    one, two = (cost_of(plan(this, FP8, indexer_whole=True), tp=8, dcp=dcp) for dcp in (1, 2))
    assert two.unique_tokens / one.unique_tokens == pytest.approx(ratio, abs=0.0005)
    spread = cost_of(plan(this, FP8), tp=8, dcp=2)  # vLLM spreads the keys too: they double
    assert spread.unique_tokens == 2 * cost_of(plan(this, FP8), tp=8).unique_tokens


def test_vllm_26877() -> None:
    # vllm-project/vllm#26877 (its documentation): DeepSeek-R1 under -tp 8 stores the cache 8 times, -dcp 8 once
    r1 = load_model("deepseek-r1")
    copied, spread = (cost_of(plan(r1), tp=8, dcp=dcp) for dcp in (1, 8))
    assert (copied.copies, spread.copies) == (8, 1)
    assert spread.unique_tokens == 8 * copied.unique_tokens
    assert copied.cluster_stored_bytes == 8 * copied.stored_bytes
    assert spread.cluster_stored_bytes == spread.stored_bytes == copied.cluster_stored_bytes


def test_flashmla_8_72_gib() -> None:
    # deepseek-ai/FlashMLA@9241ae3 docs/20250929-hopper-fp8-sparse-deep-dive.md: 131,072 tokens in 62 layers, bf16
    this = plan(V3, budget=round(8.72 * GIB), mtp_layers=1, context=131_072)
    assert cost_of(this).unique_tokens == pytest.approx(131_072, rel=0.0005)
    # README.md:118-121 of the same: a row of 656 B
    assert token_bytes(V3, DS_MLA).main == 61 * 656


def test_deepseek_v2_against_67b() -> None:
    # arXiv:2405.04434: 93.3 % less than DeepSeek-67B, with 6-bit values; at equal precision 82.2 %
    six = Layout(name="6 bits", latent=(Part(of="row", bytes=3, per=4, what="6-bit values"),), sources={})
    other = cost_of(plan(load_model("deepseek-67b"))).unique_tokens
    equal, narrow = (cost_of(plan(load_model("dsv2"), layout)).unique_tokens for layout in (BF16, six))
    assert 1 - other / equal == pytest.approx(0.822, abs=0.0005)
    assert 1 - other / narrow == pytest.approx(0.933, abs=0.0005)


# by hand


def test_tokens_by_hand() -> None:
    cost = cost_of(plan(budget=40 * GIB), tp=4, dp=3, dcp=2, pp=2)
    here = 40 * GIB // (31 * 1152)  # 61 layers over 2 stages: 31 and 30
    assert cost.per_gpu.tokens == here
    assert cost.unique_tokens == here * 3 * 2
    assert cost.copies == 2
    assert cost.gpus == 24
    assert cost.stored_bytes == cost.unique_tokens * 70_272
    assert cost.cluster_stored_bytes == 2 * cost.stored_bytes


def test_dsv3_on_eight_h200_by_hand() -> None:
    cost = cost_of(on_h200(), tp=8)
    here = cost.per_gpu
    assert here.memory_bytes == 150_109_945_856
    assert here.reserve_bytes == 15_010_994_585
    assert here.workspace_bytes == 65_536 * (1_152 + 16 * 256 * 2)  # docs/cost-model.md, section 6
    assert here.weights_bytes == pytest.approx(671e9 / 8 + 61 * 15_138_816 * 7 / 8, rel=0.001)
    assert here.cache_bytes == (
        here.memory_bytes - here.reserve_bytes - here.workspace_bytes - (here.weights_bytes or 0)
    )
    assert cost.unique_tokens == here.cache_bytes // 70_272


def test_dp_attention_copies_the_attention_and_not_the_cache() -> None:
    spread, copied = cost_of(on_h200(), dp=8), cost_of(on_h200(), tp=8)
    attention = 61 * (187_105_280 - 36_634_624)  # all of it on each rank instead of an eighth of what has heads
    more = (spread.per_gpu.weights_bytes or 0) - (copied.per_gpu.weights_bytes or 0)
    assert more == pytest.approx(attention, rel=0.001)
    assert spread.copies == 1


def test_what_does_not_fit() -> None:
    this = on_h200()
    cost = cost_of(this)
    assert cost.unique_tokens == cost.requests == cost.per_gpu.cache_bytes == 0
    weights, workspace = cost.per_gpu.weights_bytes or 0, cost.per_gpu.workspace_bytes or 0
    assert cost.per_gpu.short_bytes == weights + workspace + H200_BYTES // 10 - H200_BYTES
    assert cost.layouts[0].legal
    assert "no room" in (cost.layouts[0].reason or "")


def test_gqa_shards_and_then_copies() -> None:
    llama = model(LLAMA3_70B, 80)
    for tp, per_token, copied in ((1, 327_680, 1), (8, 40_960, 1), (16, 40_960, 2), (64, 40_960, 8)):
        cost = cost_of(plan(llama), tp=tp)
        assert (cost.per_gpu.bytes_per_token, cost.copies) == (per_token, copied)
    assert cost_of(plan(llama), tp=16, dcp=2).copies == 1
    assert not caches_latent(plan(llama))


def test_expanded_shards_by_heads() -> None:
    one, eight = (cost_of(plan(form=EXPANDED), tp=tp) for tp in (1, 8))
    assert one.per_gpu.bytes_per_token == 61 * 128 * (192 + 128) * 2 == 4_997_120
    assert eight.per_gpu.bytes_per_token * 8 == 4_997_120
    assert eight.copies == 1
    assert eight.total_decode_bound_s is None
    fp8 = token_bytes(V3, FP8, form=EXPANDED)
    assert fp8.main == 61 * 128 * 320


def test_forms_that_do_not_hold() -> None:
    for form in (Form(name="wide"), Form(pad_head_dim=256), Form(name="expanded", pad_head_dim=128)):
        with pytest.raises(InputError):
            cached_attention(V3, form)
    with pytest.raises(InputError, match="no latent"):
        cached_attention(model(LLAMA3_70B, 80), EXPANDED)
    with pytest.raises(InputError, match="fp8_ds_mla"):
        token_bytes(V3, DS_MLA, form=EXPANDED)


def test_windowed_layers_are_a_fixed_part() -> None:
    # gpt-oss-120b: 18 full and 18 windowed layers of 8 KV heads, 64 wide, window 128
    oss = load_model("gpt-oss-120b")
    layer = 8 * (64 + 64) * 2
    cost = cost_of(plan(oss, context=65_536))
    assert cost.fixed_bytes_per_request == 18 * layer * 128
    assert cost.per_gpu.bytes_per_token == 18 * layer
    assert cost.requests == 40 * GIB // (18 * layer * 65_536 + 18 * layer * 128)
    short = cost_of(plan(oss, context=64))  # half a window
    assert short.requests == 40 * GIB // (36 * layer * 64)


def test_recurrent_states_are_a_fixed_part() -> None:
    # Kimi-Linear: 20 layers of 32 heads with a 128x128 state, fp32 in vLLM; 7 MLA layers
    linear = load_model("kimi-linear-48b")
    cost = cost_of(plan(linear, context=4096), tp=2)
    assert cost.fixed_bytes_per_request == 20 * 32 * 128 * 128 * 4 // 2
    assert cost.requests == 40 * GIB // (7 * 1152 * 4096 + 20 * 32 * 128 * 128 * 2)


def test_a_state_of_unknown_size_leaves_requests_open() -> None:
    ling = load_model("ling-2.6-flash")
    cost = cost_of(plan(ling))
    assert cost.requests is cost.fixed_bytes_per_request is None
    assert cost.unique_tokens == 40 * GIB // (4 * 1152)
    with pytest.raises(InputError, match="recurrent state"):
        fewest_gpus(plan(ling), 1, STEP, {})


def test_requests_take_whole_pages() -> None:
    row = 61 * 1152
    assert cost_of(plan(budget=128 * row * 5, context=65)).requests == 5
    assert cost_of(plan(budget=128 * row * 5 - 1, context=65)).requests == 4
    # DCP 4: ceil(65 / 4) = 17 tokens on a rank, a page of 64
    assert cost_of(plan(budget=64 * row * 5, context=65), tp=4, dcp=4).requests == 5


@pytest.mark.parametrize(
    ("name", "pp", "mtp", "caches"),
    [
        ("dsv3", 1, 0, 61),
        ("dsv3", 1, 1, 62),
        ("dsv3", 2, 1, 31),  # 31 and 30, and the MTP layer with the 30
        ("dsv3", 61, 1, 2),
        ("longcat-flash", 3, 0, 20),  # 10 of 28 layers, two caches in each
        ("longcat-flash", 28, 0, 2),
        ("kimi-linear-48b", 4, 0, 2),  # 7 layers over 4 stages
    ],
)
def test_caches_of_the_largest_stage(name: str, pp: int, mtp: int, caches: int) -> None:
    assert stage_caches(load_model(name), pp, mtp).cached == caches


# which layouts


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (Placement(3, 1, 1, 1), "TP 3 does not divide the 128 heads"),
        (Placement(8, 1, 3, 1), "DCP 3 does not divide TP 8"),
        (Placement(1, 1, 1, 62), "PP 62 is more than the 61 layers"),
        (Placement(8, 1, 8, 61), None),
    ],
)
def test_legality(at: Placement, why: str | None) -> None:
    if why is None:
        check_placement(V3, at)
        return
    with pytest.raises(InputError, match=why):
        check_placement(V3, at)


def test_pipeline_stages_count_transformer_layers() -> None:
    longcat = load_model("longcat-flash")  # 56 caches in 28 layers
    check_placement(longcat, Placement(1, 1, 1, 28))
    with pytest.raises(InputError, match="28 layers"):
        check_placement(longcat, Placement(1, 1, 1, 29))


def test_dcp_needs_copies() -> None:
    llama = model(LLAMA3_70B, 80)
    check_placement(llama, Placement(16, 1, 2, 1))
    for this, form in ((llama, Form()), (V3, EXPANDED)):
        with pytest.raises(InputError, match="copies of a KV head"):
            check_placement(this, Placement(8, 1, 2, 1), form)


def test_ep_divides_a_stage() -> None:
    check_placement(V3, Placement(8, 2, 1, 1), ep=4)
    with pytest.raises(InputError, match="EP 3"):
        check_placement(V3, Placement(8, 2, 1, 1), ep=3)
    less, more = (cost_of(on_h200(ep=ep), tp=8, dp=2).per_gpu.weights_bytes or 0 for ep in (8, 16))
    assert less - more == pytest.approx(659_586_577_920 / 16, rel=0.001)


def test_every_layout_of_eight_gpus() -> None:
    # TP 1: 4 splits of DP and PP; TP 2: 3 with 2 DCPs; TP 4: 2 with 3; TP 8: 1 with 4
    found = search(on_h200(), 8, STEP, {})
    assert len(found.layouts) == 4 + 6 + 6 + 4
    assert all(one.legal and one.tp * one.dp * one.pp == 8 for one in found.layouts)
    assert len({(one.tp, one.dp, one.dcp, one.pp) for one in found.layouts}) == 20


@pytest.mark.parametrize("gpus", [1, 8, 12, 60])
@pytest.mark.parametrize("this", [V3, V32, load_model("kimi-k2.5")], ids=lambda this: this.name)
def test_a_search_equals_its_points(gpus: int, this: Model) -> None:
    found = search(on_h200(this), gpus, STEP, {})
    keys = [(-(one.unique_tokens or 0), one.total_decode_bound_s or 0.0) for one in found.layouts if one.legal]
    assert keys == sorted(keys)
    for one in found.layouts:
        at = Placement(one.tp, one.dp, one.dcp, one.pp)
        if one.legal:
            check_placement(this, at)
            single = capacity_cost(on_h200(this), at, STEP)
            assert single.layouts == (one,)
        else:
            with pytest.raises(InputError) as caught:
                check_placement(this, at)
            assert str(caught.value) == one.reason
    assert found.unique_tokens == found.layouts[0].unique_tokens


def test_fixed_axes_are_kept() -> None:
    found = search(on_h200(), 16, STEP, {"tp": 4, "pp": 2})
    assert {(one.tp, one.pp) for one in found.layouts} == {(4, 2)}


@pytest.mark.parametrize(
    ("gpus", "fixed", "ep", "why"),
    [
        (8, {"tp": 3}, None, "TP 3 does not divide the 128 heads"),
        (8, {"tp": 16}, None, "TP 16 does not divide --gpus 8"),
        (16, {"dp": 3}, None, "DP 3 does not divide --gpus 16"),
        (8, {"tp": 4, "dp": 4}, None, "TP 4 x DP 4 = 16 does not divide --gpus 8"),
        (8, {"tp": 2, "dp": 2, "pp": 1}, None, "TP 2 x DP 2 x PP 1 are 4 GPUs; --gpus says 8"),
        (8, {"dcp": 16}, None, "DCP 16 divides no TP that DeepSeek-V3 can have on 8 GPUs"),
        (8, {"dcp": 4, "dp": 4}, None, "DCP 4 divides no TP .* on 8 GPUs, DP 4"),
        (8, {"tp": 4, "dcp": 8}, None, "DCP 8 does not divide TP 4"),
        (128, {"pp": 64}, None, "PP 64 is more than the 61 layers"),
        (4096, {"tp": 2, "dp": 1, "dcp": 2}, None, "PP 2048 is more than the 61 layers"),  # 4096 / (2 * 1)
        (67, {"dp": 1}, None, "PP 67 is more than the 61 layers.*TP 67 does not divide"),
        (8, {}, 3, "EP 3 divides no stage of any layout of --gpus 8"),
        (8, {"tp": 2, "dp": 2}, 3, "EP 3 does not divide the GPUs of a stage: 4"),
        (None, {"tp": 3}, None, "TP 3 does not divide the 128 heads"),
        (None, {"dcp": 3}, None, "DCP 3 divides no TP that DeepSeek-V3 can have on up to 4,096 GPUs"),
        (None, {"tp": 8, "dcp": 16}, None, "DCP 16 does not divide TP 8"),
        (None, {"pp": 100}, None, "PP 100 is more than the 61 layers"),
        (None, {"tp": 128, "pp": 61}, None, "TP 128 x PP 61 are 7,808 GPUs; at most 4,096"),
        (None, {"dcp": 128, "pp": 61}, None, "DCP 128 divides no TP .* on up to 4,096 GPUs, PP 61"),
        (None, {"tp": 8}, 4095, "EP 4,095 divides no stage"),  # 8 * 4095 GPUs at least
    ],
)
def test_axes_that_no_layout_has_are_named(gpus: int | None, fixed: dict[str, int], ep: int | None, why: str) -> None:
    this = plan(ep=ep)
    with pytest.raises(InputError, match=why):
        _ = fewest_gpus(this, 1, STEP, fixed) if gpus is None else search(this, gpus, STEP, fixed)


def test_axes_of_a_model_whose_kv_heads_shard() -> None:
    # 8 KV heads: two copies of each at TP 16 are the first that DCP 2 can spread
    llama = model(LLAMA3_70B, 80)
    with pytest.raises(InputError, match="DCP 2 divides no number of copies of a KV head"):
        search(plan(llama), 8, STEP, {"dcp": 2})
    assert search(plan(llama), 16, STEP, {"dcp": 2}).tp == 16


def test_a_search_for_requests_takes_a_layout_that_holds_them() -> None:
    # a page of 64 rows in 61 layers is 64 * 70,272 B; under DCP 8 a rank keeps ceil(64 / 8) = 8 rows of a request in a
    # page of its own, so TP 8 / DCP 8 has 8 times the tokens of one GPU and no more requests. PP 8 has
    # ceil(61 / 8) = 8 layers on a stage: 61 / 8 times the requests of one GPU.
    page = 64 * 61 * 1152
    this = plan(budget=10 * page, context=64)
    most = search(this, 8, STEP, {"dp": 1})
    assert (most.tp, most.dcp, most.unique_tokens, most.requests) == (8, 8, 8 * 640, 10)
    found = search(this, 8, STEP, {"dp": 1}, requests=76)
    assert (found.tp, found.dcp, found.pp, found.requests) == (1, 1, 8, 76)  # 10 * 61 // 8 requests
    assert len(found.layouts) == len(most.layouts)
    assert found.layouts[0].reason is None
    by_axes = {(one.tp, one.dcp, one.pp): one.reason for one in found.layouts}
    assert by_axes[8, 8, 1] == "requests that fit: 10 of 76"


def test_the_best_of_the_fewest_gpus_is_the_searchs() -> None:
    this = on_h200(context=64)
    found = fewest_gpus(this, 70_000, STEP, {})
    assert found is not None
    cost = search(this, found.gpus, STEP, {}, requests=70_000)
    assert Placement(cost.tp, cost.dp, cost.dcp, cost.pp) == found
    assert (cost.requests or 0) >= 70_000


def test_copies_of_indexer_keys() -> None:
    # SGLang spreads rows over DCP and keeps all keys on every rank: 128 / 128 rows, 128 keys
    cost = cost_of(plan(V32, indexer_whole=True), tp=128, dcp=128)
    assert (cost.copies, cost.indexer_copies) == (1, 128)
    assert cost.cluster_stored_bytes == cost.unique_tokens * 61 * (1152 + 128 * 132)
    cost = cost_of(plan(V32), tp=8, dcp=2)
    assert (cost.copies, cost.indexer_copies) == (4, 4)
    cost = cost_of(plan(V32, form=EXPANDED), tp=8)  # heads shard, keys do not
    assert (cost.copies, cost.indexer_copies) == (1, 8)
    assert cost_of(plan(), tp=8).indexer_copies is None


def test_a_budget_smaller_than_a_token() -> None:
    cost = cost_of(plan(budget=70_271))
    assert cost.unique_tokens == 0
    assert cost.layouts[0].reason == "the cache as given is smaller than a token"
    assert cost.total_decode_bound_s is cost.layouts[0].total_decode_bound_s is None
    assert cost_of(plan(budget=70_272)).unique_tokens == 1
    searched = search(plan(budget=8 * 1152 - 1), 8, STEP, {})  # 8 layers on the largest of 8 stages
    assert {one.total_decode_bound_s for one in searched.layouts} == {None}
    assert searched.unique_tokens == 0


def test_all_legal_placements_are_those_of_each_number() -> None:
    at = legal_placements(V3, Form(), None, {})
    for gpus in (1, 6, 64, 4096):
        one = placements_of(V3, gpus, {})
        legal = {
            (tp, dp, dcp, pp)
            for tp, dp, dcp, pp, why in zip(one.tp, one.dp, one.dcp, one.pp, reasons(V3, one), strict=True)
            if why is None
        }
        which = at.gpus == gpus
        assert set(zip(at.tp[which], at.dp[which], at.dcp[which], at.pp[which], strict=True)) == legal


@pytest.mark.parametrize(("context", "requests"), [(131_072, 1), (131_072, 100), (4096, 3000), (1_000_000, 7)])
def test_the_fewest_gpus_are_the_fewest(context: int, requests: int) -> None:
    this = on_h200(context=context)
    found = fewest_gpus(this, requests, STEP, {})
    assert found is not None
    assert (held(this, found).requests or 0) >= requests
    for gpus in range(1, found.gpus):
        every = placements_of(V3, gpus, {})
        legal = [index for index, why in enumerate(reasons(V3, every)) if why is None]
        assert max(held(this, every.at(index)).requests or 0 for index in legal) < requests


def test_more_than_any_number_of_gpus_hold() -> None:
    assert fewest_gpus(on_h200(context=1 << 30), 1 << 29, STEP, {}) is None


# the decode bound


def test_the_bound_of_one_gpu_is_that_of_flops() -> None:
    this = plan(context=8192)
    work = Work(queries=1, context=8192, row_bytes=1152, batch=16)
    assert total_decode_bound_s(this, Placement(1, 1, 1, 1), 16, H200) == pytest.approx(
        61 * path_bound_s(absorbed_kernels(DSV3, work), H200)
    )


def test_dcp_reads_its_share_and_keeps_the_products() -> None:
    this = plan(context=1 << 20)
    whole, spread = (total_decode_bound_s(this, Placement(8, 1, dcp, 1), 64, H200) for dcp in (1, 8))
    reads = 61 * 64 * 2**20 * 1152 / H200.bytes_per_s
    products = 61 * 64 * 2**20 * 2 * 16 * 1088 / H200.flop_per_s
    assert whole == pytest.approx(reads, rel=0.01)
    assert spread == pytest.approx(products, rel=0.01)  # 128 heads over an eighth of the rows: compute binds


def test_the_bound_takes_the_larger_dp_group() -> None:
    this = plan(context=8192)
    assert total_decode_bound_s(this, Placement(1, 8, 1, 1), 9, H200) == total_decode_bound_s(
        this, Placement(1, 1, 1, 1), 2, H200
    )
    with pytest.raises(InputError, match="more than can be counted"):
        total_decode_bound_s(replace(this, context=1 << 30), Placement(1, 1, 1, 1), 1 << 30, H200)


# the texts of --explain


@pytest.mark.parametrize(
    "this",
    [
        on_h200(),
        on_h200(V32),
        on_h200(load_model("kimi-k2.5")),
        plan(),
        plan(form=EXPANDED),
        on_h200(ep=2),
        plan(V32, indexer_whole=True),
    ],
    ids=["dsv3", "dsv3.2", "kimi", "given", "expanded", "ep", "keys kept whole"],
)
def test_formulas_give_the_figures(this: Plan) -> None:
    for tp, dp, pp in product((2, 8), (1, 3), (1, 3)):
        cost = capacity_cost(this, Placement(tp, dp, 1, pp), STEP)
        names = capacity_names(this, cost)
        for path, formula in capacity_formulas(this).items():
            value: Any = cost
            for part in path.split("."):
                value = getattr(value, part)
            assert eval(formula.text, {"max": max}, names) == value, path


def test_fixed_bytes_of_plain_models_are_none_at_all() -> None:
    token = layers_bytes(V3, BF16, stage_caches(V3, 1), 1)
    assert fixed_bytes(plan(), token, Placement(1, 1, 1, 1)) == 0


def test_an_expanded_cache_of_an_indexed_model() -> None:
    indexed = replace(V3, indexer=Indexer(heads=64, head_dim=128, topk=2048, layers=61))
    assert token_bytes(indexed, BF16, form=EXPANDED).growing == 4_997_120 + 61 * 132
