"""Bytes of cache.

Sources: docs/cost-model.md, section 2; the chapter; papers, threads and files named below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mla_calc.costs.cache import (
    break_even_tp,
    cache_cost,
    indexer_bytes_per_token_per_layer,
    request_bytes,
    token_bytes,
)
from mla_calc.costs.layouts import Layout, Part, load_layout
from mla_calc.errors import InputError
from mla_calc.models.attention import GQA, Indexer, Model, Windowed
from mla_calc.models.load import load_model
from tests.shapes import DSV3, LLAMA3_70B, NOPE, model

BF16 = load_layout("bf16")
FP8 = load_layout("fp8")
DS_MLA = load_layout("fp8_ds_mla")
V3 = model(DSV3, 61, name="DeepSeek-V3", mtp_layers=1)
V32 = replace(V3, name="DeepSeek-V3.2", indexer=Indexer(heads=64, head_dim=128, topk=2048, layers=61))
LLAMA = model(LLAMA3_70B, 80, name="Llama-3-70B")


def gqa(layers: int, kv_heads: int, head_dim: int, heads: int = 64) -> Model:
    return model(GQA(heads=heads, hidden_size=8, kv_heads=kv_heads, qk_head_dim=head_dim, v_head_dim=head_dim), layers)


def test_dsv3_of_the_chapter() -> None:
    cost = cache_cost(V3, BF16)
    assert cost.latent_bytes_per_token_per_layer == 1152
    assert cost.latent_bytes_per_token == cost.bytes_per_token == 70_272
    assert cost.latent_bytes_per_token / 1024 == 68.625  # KiB
    assert cost.expanded_bytes_per_token == 4_997_120
    assert cost.expanded_bytes_per_token / 2**20 == 4.765625  # MiB
    assert cost.expanded_to_latent_ratio == pytest.approx(71.11, abs=0.005)
    # "65,536 bytes, 57x larger than the thing you cached"
    assert cost.never_cached_bytes_per_token_per_layer == 65_536
    assert round(65_536 / 1152) == 57
    assert (cost.total_bytes, cost.allocated_bytes, cost.break_even_tp, cost.vs) == (None, None, None, ())


@pytest.mark.parametrize("preset", ["dsv3", "DeepSeek-V3", "deepseek-ai/DeepSeek-V3"])
def test_the_preset_is_the_chapters_model(preset: str) -> None:
    assert cache_cost(load_model(preset), BF16).bytes_per_token == 70_272


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("bf16", 70_272), ("fp8", 35_136), ("fp8_ds_mla", 40_016), ("nvfp4_ds_mla", 21_472), ("fp4", 61 * 324)],
)
def test_dsv3_by_layout(layout: str, expected: int) -> None:
    # rows of vllm 0.33.0 model_executor/layers/attention/mla_attention.py:1371-1401; fp4: sglang 0.5.23
    # mem_cache/memory_pool.py:5133-5160
    cost = cache_cost(V3, load_layout(layout))
    assert (cost.bytes_per_token, cost.layout) == (expected, layout)
    # expanded keys and values are bf16 whatever the cache stores
    assert cost.expanded_bytes_per_token == 4_997_120
    assert cost.expanded_to_latent_ratio == 4_997_120 / expected


@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_dim", "expected"),
    [
        (80, 8, 128, 327_680),  # Llama-3-70B; arXiv 2505.09343 Table 1: Qwen-2.5-72B, 327.68 kB
        (126, 8, 128, 516_096),  # arXiv 2505.09343 Table 1: Llama-3.1-405B, 516.096 kB
        (95, 8, 128, 389_120),  # DeepSeek-67B, deepseek-ai/DeepSeek-LLM@6712a86b README.md
        (27, 16, 256, 442_368),  # vllm#10927: DeepSeek-V2-Lite's expanded cache padded to 256
    ],
)
def test_gqa_published(layers: int, kv_heads: int, head_dim: int, expected: int) -> None:
    assert cache_cost(gqa(layers, kv_heads, head_dim), BF16).bytes_per_token == expected


def test_erratum_of_the_isca_paper() -> None:
    # arXiv 2505.09343 Table 1 prints 7.28x; its own rows give 7.344
    cost = cache_cost(V3, BF16, vs=((gqa(126, 8, 128), BF16),))
    assert cost.vs[0].ratio == pytest.approx(7.344, abs=5e-4)


def test_deepseek_v2_small_moe_elements() -> None:
    # arXiv 2405.04434, appendix: 110.6 K elements per token of MHA, 27 layers, 16 heads of 128
    assert cache_cost(gqa(27, 16, 128, heads=16), BF16).bytes_per_token / 2 == pytest.approx(110.6e3, rel=0.005)


def test_deepseek_v2_equivalent_groups() -> None:
    # arXiv 2405.04434 Table 1: one latent row weighs as much as GQA with 2.25 groups of 128
    row = cache_cost(V3, BF16).latent_bytes_per_token_per_layer
    one_group = cache_cost(gqa(1, 1, 128), BF16).bytes_per_token
    assert row is not None
    assert row / one_group == 2.25


def test_deepseek_v2_93_percent_needs_6_bits() -> None:
    # arXiv:2405.04434, abstract: 93.3 %. That takes 25,920 B, 6 bits per value; at equal precision it is 82.2 %
    v2, ds67b = model(DSV3, 60), gqa(95, 8, 128)
    six = Layout(name="6-bit", latent=(Part(of="row", bytes=3, per=4, what="6-bit values"),), sources={})
    whole = cache_cost(ds67b, BF16).bytes_per_token
    assert cache_cost(v2, six).bytes_per_token == 25_920
    assert 100 * (1 - cache_cost(v2, six).bytes_per_token / whole) == pytest.approx(93.3, abs=0.05)
    assert 100 * (1 - cache_cost(v2, BF16).bytes_per_token / whole) == pytest.approx(82.2, abs=0.05)


def test_padded_cache_of_vllm_10927() -> None:
    # 35.42 GiB in blocks of 16 tokens were 5,373 blocks; the latent would be 14.2x smaller
    padded = cache_cost(gqa(27, 16, 256, heads=16), BF16).bytes_per_token
    assert abs(int(35.42 * 2**30) // padded // 16 - 5373) <= 1
    latent = cache_cost(model(DSV3, 27), BF16).bytes_per_token
    assert latent == 31_104
    assert padded / latent == pytest.approx(14.2, abs=0.05)


# --- tensor parallelism


@pytest.mark.parametrize("tp", [1, 2, 8, 128])
def test_every_rank_stores_all_of_the_latent(tp: int) -> None:
    cost = cache_cost(V3, BF16, tp=tp)
    assert cost.per_rank_bytes_per_token == cost.bytes_per_token == 70_272
    assert cost.cluster_bytes_per_token == tp * 70_272  # 562,176 at TP 8
    assert cost.expanded_per_rank_bytes_per_token == 4_997_120 // tp  # 624,640 at TP 8


@pytest.mark.parametrize(
    ("tp", "rank", "cluster"),
    [
        (1, 327_680, 327_680),
        (2, 163_840, 327_680),
        (8, 40_960, 327_680),
        (16, 40_960, 655_360),
        (64, 40_960, 2_621_440),
    ],
)
def test_gqa_shards_then_replicates(tp: int, rank: int, cluster: int) -> None:
    cost = cache_cost(LLAMA, BF16, tp=tp)
    assert (cost.per_rank_bytes_per_token, cost.cluster_bytes_per_token) == (rank, cluster)
    beside = cache_cost(V3, BF16, tp=tp, vs=((LLAMA, BF16),)).vs[0]
    assert (beside.per_rank_bytes_per_token, beside.cluster_bytes_per_token) == (rank, cluster)


def test_break_even_tp_of_the_chapter() -> None:
    # 327,680 / 70,272 = 4.663; the chapter rounds it to 4.7
    cost = cache_cost(V3, BF16, vs=((LLAMA, BF16),))
    assert cost.break_even_tp == cost.vs[0].break_even_tp == pytest.approx(4.66302, abs=5e-6)
    assert cost.vs[0].break_even_note is None
    assert cost.vs[0].ratio == pytest.approx(4.663, abs=5e-4)


@pytest.mark.parametrize(
    ("layers", "kv_heads", "even"),
    [
        (137, 2, 140_288 / 70_272),  # 1.996: just within its 2 heads
        (138, 2, None),  # 2.011: just beyond
        (69, 2, 70_656 / 70_272),
        (100, 8, 409_600 / 70_272),
        (300, 8, None),
        (300, 1, None),
        (20, 1, None),  # lighter than the latent at TP 1 already
    ],
)
def test_break_even_tp_by_trying_every_tp(layers: int, kv_heads: int, even: float | None) -> None:
    """It holds while it is at most kv_heads: beyond, GQA replicates too (docs/cost-model.md, section 2)."""
    found = cache_cost(V3, BF16, vs=((gqa(layers, kv_heads, 128), BF16),)).vs[0]
    assert found.break_even_tp == (None if even is None else pytest.approx(even, rel=1e-15))
    assert (found.break_even_note is None) == (even is not None)
    whole = layers * kv_heads * 512
    # MLA's copies against GQA's, at every TP that GQA can run at, up to 64
    reached = [tp for tp in (1, 2, 4, 8, 16, 32, 64) if tp * 70_272 >= max(whole, tp * whole // kv_heads)]
    if even is None:
        # never, beyond kv_heads; or from TP 1 on, where GQA is the lighter one already
        assert reached == ([] if whole >= 70_272 else [1, 2, 4, 8, 16, 32, 64])
    else:
        assert reached
        assert reached[0] >= even
        assert all(tp < even for tp in (1, 2, 4, 8, 16, 32, 64) if tp < reached[0])


def test_break_even_exactly_at_kv_heads_counts() -> None:
    attention = replace(LLAMA3_70B, kv_heads=4)
    assert break_even_tp(100, attention, 400) == (4.0, None)
    assert break_even_tp(100, attention, 401)[0] is None
    assert break_even_tp(100, attention, 100) == (1.0, None)


def test_no_break_even_between_two_of_a_kind() -> None:
    for left, right in ((LLAMA, LLAMA), (V3, V3), (LLAMA, V3)):
        found = cache_cost(left, BF16, vs=((right, BF16),)).vs[0]
        assert found.break_even_tp is None
        assert found.break_even_note


@pytest.mark.parametrize("tp", [3, 5, 256])
def test_tp_that_does_not_divide_the_heads_is_refused(tp: int) -> None:
    with pytest.raises(InputError, match=f"TP {tp} ") as caught:
        cache_cost(V3, BF16, tp=tp)
    assert "1, 2, 4, 8, 16, 32, 64, 128" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("tp", "fine"), [(1, True), (2, True), (3, True), (6, True), (12, True), (4, False), (8, False)]
)
def test_kv_heads_divide_or_replicate_evenly(tp: int, fine: bool) -> None:
    other = gqa(1, 6, 128, heads=48)
    if fine:
        rank = cache_cost(other, BF16, tp=tp).per_rank_bytes_per_token
        assert rank == max(1, 6 // tp) * 512
    else:
        with pytest.raises(InputError, match=f"TP {tp} "):
            cache_cost(other, BF16, tp=tp)


# --- layouts of comparators, sliding windows


WINDOWED = model(
    GQA(heads=64, hidden_size=8, kv_heads=4, qk_head_dim=192, v_head_dim=128),
    9,
    name="MiMo-like",
    windowed=Windowed(layers=39, window=128, kv_heads=8, qk_head_dim=192, v_head_dim=128),
)


def test_windowed_layers_are_apart() -> None:
    # by hand: 9*4*320*2 grow, 39*8*320*2 are bounded by the window
    cost = cache_cost(WINDOWED, BF16, tp=8)
    assert cost.bytes_per_token == 23_040
    assert (cost.windowed_layers, cost.window, cost.windowed_bytes_per_token) == (39, 128, 199_680)
    # main heads replicate at TP 8 (one of 4 on each), windowed ones shard
    assert cost.per_rank_bytes_per_token == 9 * 1 * 640
    assert cost.cluster_bytes_per_token == 8 * 9 * 640
    assert cache_cost(V3, BF16, vs=((WINDOWED, BF16),)).vs[0].windowed_bytes_per_token == 199_680


@pytest.mark.parametrize(
    ("context", "total"),
    [(1, 23_040 + 199_680), (128, 128 * (23_040 + 199_680)), (1000, 1000 * 23_040 + 128 * 199_680)],
)
def test_a_window_stops_growing(context: int, total: int) -> None:
    cost = cache_cost(WINDOWED, BF16, tp=8, context=context, batch=3)
    assert cost.total_bytes == 3 * total
    windowed = min(context, 128)
    # per rank: 1 of 4 main heads, 1 of 8 windowed heads
    assert cost.per_rank_total_bytes == 3 * (context * 9 * 640 + windowed * 39 * 640)
    assert cost.cluster_total_bytes == 8 * cost.per_rank_total_bytes


def test_windowed_heads_that_tp_does_not_divide_are_refused() -> None:
    """Rounding them down would lose heads: the cluster would hold less than one copy."""
    odd = model(
        GQA(heads=24, hidden_size=8, kv_heads=4, qk_head_dim=64, v_head_dim=64),
        2,
        windowed=Windowed(layers=2, window=128, kv_heads=6, qk_head_dim=64, v_head_dim=64),
    )
    whole = token_bytes(odd, BF16).windowed
    assert whole == 2 * 6 * 256
    with pytest.raises(InputError) as caught:
        token_bytes(odd, BF16, tp=4)
    assert str(caught.value) == "TP 4 leaves the 6 KV heads of a model neither divided nor evenly copied"
    # where they divide, the cluster holds exactly one copy
    assert 2 * token_bytes(odd, BF16, tp=2).windowed == whole


# --- totals and pages


@pytest.mark.parametrize(
    ("context", "batch", "block", "total", "allocated"),
    [
        (1, 1, 64, 70_272, 64 * 70_272),
        (64, 2, 64, 128 * 70_272, 128 * 70_272),
        (65, 2, 64, 130 * 70_272, 256 * 70_272),
        (1000, 3, 16, 3000 * 70_272, 3 * 1008 * 70_272),
        (1000, 3, 1, 3000 * 70_272, 3000 * 70_272),
        (4096, 1, 4097, 4096 * 70_272, 4097 * 70_272),
    ],
)
def test_pages_round_a_request_up(context: int, batch: int, block: int, total: int, allocated: int) -> None:
    cost = cache_cost(V3, BF16, tp=8, context=context, batch=batch, block_size=block)
    assert (cost.total_bytes, cost.allocated_bytes) == (total, allocated)
    assert (cost.per_rank_total_bytes, cost.cluster_total_bytes) == (total, 8 * total)
    assert (cost.context, cost.batch, cost.block_size) == (context, batch, block)


def test_one_of_context_and_batch_is_enough() -> None:
    # docs/cost-model.md, section 2, "Totals": context 4096 and batch 1 by default
    assert cache_cost(V3, BF16, batch=2).total_bytes == 2 * 4096 * 70_272
    assert cache_cost(V3, BF16, context=10).total_bytes == 10 * 70_272


def test_windows_are_paged_too() -> None:
    token = token_bytes(WINDOWED, BF16)
    by_hand = -(-1000 // 48) * 48 * 23_040 + -(-128 // 48) * 48 * 199_680
    assert request_bytes(token, 1000, 128, 48) == by_hand


# --- MTP and the indexer


def test_mtp_layers_cache_only_when_asked() -> None:
    # FlashMLA docs/20250929: 62 layers (61 and MTP), 131,072 tokens, 8.72 GiB
    cost = cache_cost(V3, BF16, mtp_layers=1, context=131_072, batch=1)
    assert cost.total_bytes == 576 * 2 * 62 * 128 * 1024
    assert cost.total_bytes is not None
    assert cost.total_bytes / 2**30 == pytest.approx(8.72, abs=0.005)
    assert cost.mtp_layers == 1
    assert cost.expanded_bytes_per_token == 62 * 128 * 320 * 2
    assert cache_cost(V3, BF16).mtp_layers == 0


@pytest.mark.parametrize(("holder", "asked"), [(V3, 2), (model(DSV3, 61), 1), (model(DSV3, 61, mtp_layers=0), 1)])
def test_more_mtp_layers_than_there_are(holder: Model, asked: int) -> None:
    with pytest.raises(InputError, match="--mtp-layers"):
        cache_cost(holder, BF16, mtp_layers=asked)


@pytest.mark.parametrize(
    ("width", "expected"),
    [(128, 132), (256, 264), (64, 68), (1, 5), (129, 129 + 8)],  # a scale of 4 B for every 128 begun
)
def test_indexer_key(width: int, expected: int) -> None:
    # the chapter: 128 fp8 bytes and 4 scale bytes, 132
    assert indexer_bytes_per_token_per_layer(width) == expected


def test_indexer_of_dsv32() -> None:
    # the chapter: 132 B x 61 = 8,052 B = 7.86 KiB, an 11.5 % increase
    cost = cache_cost(V32, BF16)
    assert (cost.indexer_bytes_per_token, cost.indexer_layers) == (8052, 61)
    assert cost.indexer_bytes_per_token / 1024 == pytest.approx(7.86, abs=0.005)
    assert cost.bytes_per_token == 70_272 + 8052
    assert cost.latent_bytes_per_token == 70_272
    assert 100 * cost.indexer_bytes_per_token / 70_272 == pytest.approx(11.5, abs=0.05)
    # 20.1 % of 656-byte rows (sgl-project/sglang#11309)
    fp8 = cache_cost(V32, DS_MLA)
    assert fp8.latent_bytes_per_token is not None
    assert 100 * fp8.indexer_bytes_per_token / fp8.latent_bytes_per_token == pytest.approx(20.1, abs=0.05)


@pytest.mark.parametrize(("tokens", "gib"), [(975_424, 43.67), (1_462_784, 65.49)])
def test_pools_of_sglang_11309(tokens: int, gib: float) -> None:
    # the log's GB are GiB
    cost = cache_cost(V32, DS_MLA, context=tokens, batch=1)
    assert cost.bytes_per_token == 61 * (656 + 132)
    assert cost.total_bytes is not None
    assert cost.total_bytes / 2**30 == pytest.approx(gib, rel=0.0005)


def test_indexer_keys_are_on_every_rank_and_on_mtp_layers() -> None:
    cost = cache_cost(V32, BF16, tp=8, mtp_layers=1)
    assert cost.indexer_bytes_per_token == 62 * 132
    assert cost.per_rank_bytes_per_token == 62 * (1152 + 132)
    assert cost.cluster_bytes_per_token == 8 * 62 * (1152 + 132)


@pytest.mark.parametrize(("layers", "expected"), [(16, 2112), (31, 4092), (61, 8052)])
def test_fewer_indexing_layers(layers: int, expected: int) -> None:
    # vllm 0.33.0 model_executor/models/deepseek_v2.py:1140-1168: 61 layers with freq 4 and offset 2 index on 16,
    # with freq 2 on 31
    indexer = Indexer(heads=64, head_dim=128, topk=2048, layers=layers)
    assert cache_cost(replace(V32, indexer=indexer), BF16).indexer_bytes_per_token == expected


@pytest.mark.parametrize(
    ("freq", "offset", "total", "indexing"), [(1, 2, 61, 61), (4, 2, 61, 16), (2, 2, 61, 31), (4, 3, 78, 21)]
)
def test_the_predicate_of_vllm(freq: int, offset: int, total: int, indexing: int) -> None:
    """A layer indexes iff max(layer - offset + 1, 0) % freq == 0; counted here, then by the config reader."""
    from mla_calc.models.config import model_from_config

    assert sum(max(layer - offset + 1, 0) % freq == 0 for layer in range(total)) == indexing
    config: dict[str, Any] = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "num_hidden_layers": total,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "q_lora_rank": 1536,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 2048,
        "index_topk_freq": freq,
        "index_skip_topk_offset": offset,
    }
    read = model_from_config(config, "config.json")
    assert read.indexer is not None
    assert read.indexer.layers == indexing
    assert cache_cost(read, BF16).indexer_bytes_per_token == indexing * 132


def test_pooled_indexer_keys() -> None:
    # GLM-5.3-Flash: 11 layers, keys pooled over 4 tokens: 11 * 132 / 4 = 363
    pooled = model(NOPE, 11, indexer=Indexer(heads=32, head_dim=128, topk=2048, layers=11, pool=4))
    cost = cache_cost(pooled, BF16)
    assert cost.indexer_bytes_per_token == 363
    assert cost.bytes_per_token == 11 * 1024 + 363


def test_pooled_indexer_keys_that_do_not_divide_round_up() -> None:
    # 11 * 132 / 5 = 290.4
    pooled = model(NOPE, 11, indexer=Indexer(heads=32, head_dim=128, topk=2000, layers=11, pool=5))
    assert cache_cost(pooled, BF16).indexer_bytes_per_token == 291


def test_nope_rows_have_no_rope_part() -> None:
    cost = cache_cost(model(NOPE, 11), BF16)
    assert cost.latent_bytes_per_token_per_layer == 512 * 2
    assert cost.expanded_bytes_per_token == 11 * 64 * (256 + 0 + 256) * 2
    assert cost.never_cached_bytes_per_token_per_layer == 64 * 512 * 2


def test_gqa_has_no_latent() -> None:
    cost = cache_cost(LLAMA, FP8)
    assert cost.bytes_per_token == 163_840
    assert (
        cost.latent_bytes_per_token,
        cost.latent_bytes_per_token_per_layer,
        cost.expanded_bytes_per_token,
        cost.expanded_to_latent_ratio,
        cost.never_cached_bytes_per_token_per_layer,
    ) == (None, None, None, None, None)
    assert (cost.indexer_bytes_per_token, cost.windowed_bytes_per_token) == (0, 0)


def test_a_latent_layout_is_refused_for_gqa() -> None:
    with pytest.raises(InputError, match="fp8_ds_mla"):
        cache_cost(LLAMA, DS_MLA)


def test_comparators_keep_their_own_layout() -> None:
    cost = cache_cost(V3, DS_MLA, vs=((LLAMA, BF16), (gqa(126, 8, 128), FP8)))
    found = [(other.layout, other.bytes_per_token) for other in cost.vs]
    assert found == [("bf16", 327_680), ("fp8", 258_048)]
    # 327,680 / 40,016 = 8.19 is beyond Llama's 8 heads: none; 258,048 / 40,016 = 6.45 is within
    assert cost.break_even_tp is None
    assert cost.vs[1].break_even_tp == pytest.approx(258_048 / 40_016, rel=1e-15)
