"""Bytes of a cached row by layout.

Sources: docs/cost-model.md, section 2; vllm 0.33.0 model_executor/layers/attention/mla_attention.py:1371-1401;
v1/attention/backends/mla/flashmla_sparse.py of the same; deepseek-ai/FlashMLA@9241ae3 README.md:118-121.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mla_calc.costs.layouts import Layout, Part, head_bytes, latent_row_bytes, load_layout, row_formula
from mla_calc.data import preset_files
from mla_calc.errors import InputError
from mla_calc.models.attention import GQA, MLA, Windowed
from tests.shapes import DSV3, LLAMA3_70B, NOPE, UNEVEN

SMALL = replace(DSV3, kv_lora_rank=256, qk_rope_head_dim=32)  # MiniCPM3-4B's widths


@pytest.mark.parametrize(
    ("layout", "row"),
    [
        ("bf16", 1152),
        ("fp8", 576),
        ("fp8_ds_mla", 656),  # 512 fp8 + 4 fp32 scales + 64 bf16
        ("nvfp4_ds_mla", 352),  # 256 + 32 scales + 64 fp8 rope: flashmla_sparse.py:111-120
        ("bf16_padded640", 1280),  # vllm-project/vllm#12676: 640 values for 576, 1,280 B for 1,152 B
        ("q8_0", 612),  # 18 blocks of 34 B: ggml-org/llama.cpp ggml/src/ggml-common.h
        ("q4_0", 324),  # 18 blocks of 18 B
        ("fp4", 324),  # 288 + 36: sglang 0.5.23 mem_cache/memory_pool.py:5133-5160
    ],
)
def test_dsv3_rows(layout: str, row: int) -> None:
    # docs/cost-model.md, section 2, which names a line of vLLM or SGLang for each
    assert latent_row_bytes(load_layout(layout), DSV3) == row


@pytest.mark.parametrize(
    ("mla", "layout", "row"),
    [
        (NOPE, "bf16", 1024),
        (NOPE, "fp8", 512),
        (NOPE, "fp8_ds_mla", 656),  # flashmla_sparse.py:757-762: the rope slot is kept, zeroed
        (NOPE, "fp4", 256 + 32),
        (SMALL, "bf16", 576),
        (SMALL, "fp8", 288),
        (SMALL, "fp4", 144 + 18),
        (SMALL, "q8_0", 9 * 34),
        (NOPE, "q4_0", 16 * 18),
    ],
)
def test_other_widths_by_hand(mla: MLA, layout: str, row: int) -> None:
    assert latent_row_bytes(load_layout(layout), mla) == row


@pytest.mark.parametrize(
    ("mla", "layout"),
    [
        (SMALL, "fp8_ds_mla"),
        (SMALL, "nvfp4_ds_mla"),
        (NOPE, "nvfp4_ds_mla"),
        (SMALL, "bf16_padded640"),
        (NOPE, "bf16_padded640"),
        (UNEVEN, "q8_0"),  # 46 values in blocks of 32
        (replace(DSV3, qk_rope_head_dim=32), "fp8_ds_mla"),
        (UNEVEN, "fp4"),  # 46 values in groups of 16
    ],
)
def test_a_layout_says_where_it_does_not_hold(mla: MLA, layout: str) -> None:
    with pytest.raises(InputError, match=layout):
        latent_row_bytes(load_layout(layout), mla)


@pytest.mark.parametrize(("layout", "expected"), [("bf16", 512), ("fp8", 256), ("q8_0", 8 * 34), ("q4_0", 8 * 18)])
def test_bytes_of_a_kv_head(layout: str, expected: int) -> None:
    # 128 values of key and 128 of value
    assert head_bytes(load_layout(layout), LLAMA3_70B) == expected


def test_key_and_value_widths_both_count() -> None:
    uneven = GQA(heads=4, hidden_size=8, kv_heads=2, qk_head_dim=192, v_head_dim=128)
    windowed = Windowed(layers=1, window=128, kv_heads=2, qk_head_dim=192, v_head_dim=128)
    assert head_bytes(load_layout("bf16"), uneven) == 640
    assert head_bytes(load_layout("bf16"), windowed) == 640


@pytest.mark.parametrize("layout", ["fp8_ds_mla", "nvfp4_ds_mla", "fp4", "bf16_padded640"])
def test_a_latent_layout_has_no_gqa_rows(layout: str) -> None:
    with pytest.raises(InputError, match=layout):
        head_bytes(load_layout(layout), LLAMA3_70B)


@pytest.mark.parametrize(
    ("alias", "name"), [("FP8_E4M3", "fp8"), ("fp8_e5m2", "fp8"), ("auto", "bf16"), ("half", "bf16"), ("BF16", "bf16")]
)
def test_aliases_in_any_case(alias: str, name: str) -> None:
    assert load_layout(alias).name == name


def test_an_unknown_layout_offers_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        load_layout("fp8_ds_mal")
    assert "fp8_ds_mla" in (caught.value.hint or "")


def layout_of(*parts: Part) -> Layout:
    return Layout(name="made up", latent=parts, sources={})


@pytest.mark.parametrize(
    ("parts", "row"),
    [
        # 512 padded to 512 and 64 to 128, 2 B each
        (
            (
                Part(of="kv_lora_rank", bytes=2, what="latent"),
                Part(of="qk_rope_head_dim", bytes=2, pad_to=128, what="rope"),
            ),
            1280,
        ),
        # 576 up to 640: 320 B of fp4, 5 scales of 4 B per 128
        (
            (
                Part(of="row", bytes=1, per=2, pad_to=128, what="fp4"),
                Part(of="row", bytes=4, per=128, pad_to=128, what="scales"),
            ),
            340,
        ),
        ((Part(of="once", bytes=16, what="a header"), Part(of="row", bytes=3, per=4, what="6-bit values")), 16 + 432),
    ],
)
def test_parts_by_hand(parts: tuple[Part, ...], row: int) -> None:
    layout = layout_of(*parts)
    assert latent_row_bytes(layout, DSV3) == row
    # the formula that --explain shows is the same number
    names = {"row": 576, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert eval(row_formula(layout.latent), {}, names) == row


def test_groups_that_do_not_divide_are_refused() -> None:
    layout = layout_of(Part(of="kv_lora_rank", bytes=4, per=100, what="scales"))
    with pytest.raises(InputError, match="100"):
        latent_row_bytes(layout, DSV3)


def test_every_layout_file_is_covered_here() -> None:
    assert [path.stem for path in preset_files("layouts")] == [
        "bf16",
        "bf16_padded640",
        "fp4",
        "fp8",
        "fp8_ds_mla",
        "nvfp4_ds_mla",
        "q4_0",
        "q8_0",
    ]
