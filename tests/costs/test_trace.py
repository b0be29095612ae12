"""One step through one layer. Source: the chapter's seven steps of layer 30 (TP 1, S = 4096)."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import pytest

from mla_calc.costs.paths import Work
from mla_calc.costs.trace import Step, TraceCost, trace_cost
from mla_calc.models.attention import MLA
from tests.shapes import DSV3, NOPE, UNEVEN, V2_LITE, brute_pairs, kernel_table

LAYER_30 = trace_cost(DSV3, Work(queries=1, context=4096, row_bytes=1152))


def step(cost: TraceCost, name: str) -> Step:
    return next(item for item in cost.steps if item.name == name)


def test_the_steps_in_order() -> None:
    assert [item.name for item in LAYER_30.steps] == [
        "fused_qkv_a_proj",
        "q_b_proj",
        "rotary_emb",
        "cache_write",
        "q_fold",
        "attention",
        "v_up",
        "o_proj",
    ]


@pytest.mark.parametrize(
    ("name", "shape", "weights"),
    [
        # 1. fused_qkv_a_proj: 1536 + 576 = 2112 values
        ("fused_qkv_a_proj", (1, 2112), (7168, 2112)),
        # 2. q_b_proj maps q_c to 128 x 192 = 24,576 values; rotary turns 64 columns of q and k_pe
        ("q_b_proj", (1, 24_576), (1536, 24_576)),
        ("rotary_emb", (1, 129, 64), None),
        # 3. the 576-wide row into the paged cache
        ("cache_write", (1, 576), None),
        # 4. bmm of [128, 1, 128] with [128, 128, 512] -> [128, 1, 512]
        ("q_fold", (128, 1, 512), (128, 128, 512)),
        # 5. [1, 128, 576] against the paged latent -> [1, 128, 512]
        ("attention", (1, 128, 512), None),
        # 6. bmm of [128, 1, 512] with W_UV [128, 512, 128] -> [1, 128, 128] = 16,384 values
        ("v_up", (1, 128, 128), (128, 512, 128)),
        # 7. o_proj maps those 16,384 values to 7,168
        ("o_proj", (1, 7168), (16_384, 7168)),
    ],
)
def test_layer_30_of_the_chapter(name: str, shape: tuple[int, ...], weights: tuple[int, ...] | None) -> None:
    found = step(LAYER_30, name)
    assert (found.shape, found.weight_shape) == (shape, weights)


def test_geometries_of_the_chapter() -> None:
    # attn_mqa is (576, 1, 512), attn_mha is (192, 128, 128)
    assert LAYER_30.geometries.mqa == (576, 1, 512)
    assert LAYER_30.geometries.mha == (192, 128, 128)


def test_folds_and_core_of_the_chapter() -> None:
    # "33.55 MFLOP together, under 3 % of the 1.14 GFLOP attention core"
    fold, core, up = (step(LAYER_30, name).flop for name in ("q_fold", "attention", "v_up"))
    assert fold is not None
    assert core is not None
    assert up is not None
    assert fold + up == 33_554_432
    assert core == 1_140_850_688
    assert (fold + up) / core < 0.03


def parts(item: Step) -> dict[str, int]:
    """The parts that an output is split into: name -> width."""
    return {text.split()[0]: int(re.findall(r"\d+", text)[-1]) for text in item.splits}


def test_splits_of_the_chapter() -> None:
    # kv_lora splits into kv_c [512] and k_pe [64], q_c has 1536; q is viewed as [128, 192]
    assert parts(step(LAYER_30, "fused_qkv_a_proj")) == {"q_c": 1536, "kv_c": 512, "k_pe": 64}
    assert "[128, 192]" in " ".join(step(LAYER_30, "q_b_proj").splits)
    assert "576" in " ".join(step(LAYER_30, "q_fold").splits)


def test_flop_and_bytes_of_layer_30_by_hand() -> None:
    flop = {
        "fused_qkv_a_proj": 2 * 7168 * 2112,
        "q_b_proj": 2 * 1536 * 24_576,
        "rotary_emb": None,  # left out of the counts (docs/cost-model.md, section 1)
        "cache_write": 0,
        "q_fold": 2 * 128 * 128 * 512,
        "attention": 2 * 4096 * 128 * (576 + 512),
        "v_up": 2 * 128 * 512 * 128,
        "o_proj": 2 * 16_384 * 7168,
    }
    moved = {
        "fused_qkv_a_proj": (7168 * 2112 + 7168 + 2112) * 2,
        "q_b_proj": (1536 * 24_576 + 1536 + 24_576) * 2,
        "rotary_emb": 2 * 129 * 64 * 2,  # read and written in place
        "cache_write": 576 * 2 + 1152,
        "q_fold": (128 * 128 * 512 + 128 * 128 + 128 * 512) * 2,
        "attention": 4096 * 1152 + (128 * 576 + 128 * 512) * 2,
        "v_up": (128 * 512 * 128 + 128 * 512 + 128 * 128) * 2,
        "o_proj": (16_384 * 7168 + 16_384 + 7168) * 2,
    }
    assert {item.name: item.flop for item in LAYER_30.steps} == flop
    assert {item.name: item.bytes for item in LAYER_30.steps} == moved
    assert LAYER_30.layer_flop == sum(value for value in flop.values() if value)
    assert LAYER_30.layer_bytes == sum(moved.values())


def test_weights_are_all_of_attentions_parameters() -> None:
    # deepseek-ai/DeepSeek-V3@9b4e9788 inference/configs/config_671B.json:
    # H*Lq + Lq*h*(dn+dr) + H*(r+dr) + r*h*(dn+dv) + h*dv*H = 187.1 M
    parameters = sum(prod(item.weight_shape) for item in LAYER_30.steps if item.weight_shape)
    assert parameters == 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert parameters / 1e6 == pytest.approx(187.1, abs=0.05)


def test_without_q_lora_rank_the_query_is_projected_in_one_step() -> None:
    # DeepSeek-V2-Lite: kv_a_proj_with_mqa [2048, 576] and q_proj [2048, 16 * 192]
    cost = trace_cost(V2_LITE, Work(queries=1, context=100, row_bytes=1152))
    assert [item.name for item in cost.steps][:2] == ["kv_a_proj_with_mqa", "q_proj"]
    down, query = cost.steps[:2]
    assert (down.shape, down.weight_shape, down.flop) == ((1, 576), (2048, 576), 2 * 2048 * 576)
    assert (query.shape, query.weight_shape, query.flop) == ((1, 3072), (2048, 3072), 2 * 2048 * 3072)
    assert parts(down) == {"kv_c": 512, "k_pe": 64}


def test_without_rope_nothing_is_rotated() -> None:
    cost = trace_cost(NOPE, Work(queries=1, context=100, row_bytes=1024))
    assert "rotary_emb" not in [item.name for item in cost.steps]
    assert cost.geometries.mqa == (512, 1, 512)
    assert cost.geometries.mha == (256, 64, 256)
    assert step(cost, "cache_write").shape == (1, 512)
    assert parts(step(cost, "fused_qkv_a_proj")) == {"q_c": 1536, "kv_c": 512}


def test_tp_8_splits_heads_and_nothing_else() -> None:
    cost = trace_cost(DSV3, Work(queries=1, context=4096, row_bytes=1152, tp=8))
    assert cost.geometries.mqa == (576, 1, 512)
    assert cost.geometries.mha == (192, 16, 128)
    # the down-projection has no head axis: its outputs are the latents, which every rank needs whole
    assert step(cost, "fused_qkv_a_proj").weight_shape == (7168, 2112)
    assert step(cost, "q_b_proj").shape == (1, 16 * 192)
    assert step(cost, "q_fold").shape == (16, 1, 512)
    assert step(cost, "o_proj").weight_shape == (16 * 128, 7168)
    assert step(cost, "cache_write").bytes == step(LAYER_30, "cache_write").bytes


def test_the_cache_row_is_written_in_its_layout() -> None:
    # bf16 activations in, 656 bytes of fp8_ds_mla out
    cost = trace_cost(DSV3, Work(queries=2, context=4096, row_bytes=656, batch=3))
    assert step(cost, "cache_write").bytes == 6 * (576 * 2 + 656)
    assert step(cost, "attention").bytes == 3 * 4096 * 656 + 6 * 128 * 1088 * 2


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("q", "s", "b", "t"), [(1, 9, 1, 1), (5, 9, 3, 1), (9, 9, 2, 4)])
@pytest.mark.parametrize("mla", [DSV3, NOPE, V2_LITE, UNEVEN], ids=["dsv3", "nope", "v2-lite", "uneven"])
def test_any_step_by_the_products_it_makes(mla: MLA, q: int, s: int, b: int, t: int, causal: bool) -> None:
    row = 2 * mla.row_values
    cost = trace_cost(mla, Work(queries=q, context=s, row_bytes=row, batch=b, tp=t, causal=causal))
    table = kernel_table(mla, q, s, brute_pairs(q, s, causal), row=row, b=b, t=t)["absorbed"]
    kernels = [
        (item.name, item.flop, item.bytes) for item in cost.steps if item.name in ("q_fold", "attention", "v_up")
    ]
    assert kernels == table
    tokens = q * b
    for item in cost.steps:
        if item.name.endswith(("_proj", "_mqa")):
            assert item.weight_shape is not None
            wide, out = item.weight_shape
            assert item.shape == (tokens, out)
            assert item.flop == 2 * tokens * wide * out
            assert item.bytes == 2 * (wide * out + tokens * wide + tokens * out)
    assert (cost.tp, cost.batch, cost.queries, cost.context) == (t, b, q, s)
    assert cost.layer_flop == sum(item.flop or 0 for item in cost.steps)
    assert cost.layer_bytes == sum(item.bytes for item in cost.steps)


def test_nothing_rotates_where_the_slice_is_not_rotated() -> None:
    names = [
        step.name for step in trace_cost(replace(DSV3, rotated=False), Work(queries=1, context=9, row_bytes=1152)).steps
    ]
    assert "rotary_emb" not in names
    assert names[:3] == ["fused_qkv_a_proj", "q_b_proj", "cache_write"]
