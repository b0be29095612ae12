"""Layer maps, windows, recurrent layers and indexers.

Counts are those of the models' configs, as their presets name them; which layers index: vllm 0.33.0
model_executor/models/deepseek_v2.py:1140-1168.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import read_mapping
from mla_calc.errors import InputError
from mla_calc.models.attention import Indexer, Model, Recurrent, Windowed
from mla_calc.models.config import model_from_config

CONFIGS = Path(__file__).parent.parent / "fixtures" / "configs"
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
INDEXER = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}


def fixture(name: str) -> dict[str, Any]:
    return read_mapping(CONFIGS / name)


def model(config: dict[str, Any]) -> Model:
    return model_from_config(config, "glm/config.json")


def read(name: str) -> Model:
    return model(fixture(name))


def mla(**changes: Any) -> dict[str, Any]:
    return {**fixture("flat-mla.json"), **changes}


def gqa(**changes: Any) -> dict[str, Any]:
    return without({**fixture("gqa-head-dim-absent.json"), "num_hidden_layers": 8}, "sliding_window") | changes


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys}


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        model(config)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def indexing(layers: int, **changes: Any) -> int:
    found = model(mla(num_hidden_layers=layers, **INDEXER, **changes)).indexer
    assert found
    return found.layers


# Hybrids


def test_kimi_k3_counts_layers_from_1() -> None:
    k3 = read("hybrid-1-indexed.json")
    assert (k3.transformer_layers, k3.cached_layers) == (93, 24)
    assert k3.recurrent == Recurrent(layers=69, state_values=96 * 128 * 128)
    assert k3.notes == ("69 linear-attention layers keep a fixed state per request, not priced",)


def test_glm_5_3_flash_counts_layers_from_0() -> None:
    flash = read("hybrid-0-indexed-rope-0.json")
    assert (flash.transformer_layers, flash.cached_layers) == (45, 11)
    assert flash.recurrent == Recurrent(layers=34, state_values=64 * 128 * 128)
    assert flash.indexer == Indexer(heads=32, head_dim=128, topk=2048, layers=11, pool=4)
    assert flash.attention.row_values == 512


@pytest.mark.parametrize(("layers", "group", "cached"), [(42, 6, 7), (24, 4, 6), (32, 8, 4), (80, 8, 10)])
def test_ling(layers: int, group: int, cached: int) -> None:  # Ling-3.0-flash, -3.0-tiny, -2.6-flash, -2.5-1T
    config = {**fixture("layer-group-size.json"), "num_hidden_layers": layers, "layer_group_size": group}
    ling = model(config)
    assert ling.cached_layers == cached
    assert ling.recurrent == Recurrent(layers=layers - cached)


def test_ling_trailing_layers_are_disputed() -> None:
    assert "layer_group_size is 6" in refusal({**fixture("layer-group-size.json"), "num_hidden_layers": 43})
    assert "layer_group_size is 61" in refusal(mla(layer_group_size=61))


def test_words_under_mla() -> None:
    words = [FULL, "sparse_attention", "indexed_attention", "deepseek_sparse_attention"]
    plain = model(mla(num_hidden_layers=4, layer_types=[FULL, LINEAR, LINEAR, FULL]))
    assert (plain.cached_layers, plain.recurrent) == (2, Recurrent(layers=2))
    for word in words[1:]:
        sparse = model(mla(num_hidden_layers=4, layer_types=[word, LINEAR, LINEAR, word], **INDEXER))
        assert sparse.cached_layers == 2
        assert sparse.indexer
        assert sparse.indexer.layers == 2


def test_sparse_words_need_an_indexer() -> None:
    types = ["indexed_attention"] * 61
    assert "index_n_heads is missing" in refusal(mla(layer_types=types))
    assert "mixes full and sparse layers" in refusal(mla(layer_types=[FULL, *types[1:]], **INDEXER))


def test_qwen3_next_with_its_layer_types() -> None:
    shape = {"linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 64}
    found = model(gqa(full_attention_interval=4, layer_types=[LINEAR, LINEAR, LINEAR, FULL] * 2, **shape))
    assert found.cached_layers == 2
    assert found.recurrent == Recurrent(layers=6, state_values=32 * 128 * 64)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"layer_types": [SLIDING] * 61}, "layer_types has 'sliding_attention'"),  # dots3-note
        ({"layer_types": ["mamba"] * 61}, "layer_types has 'mamba'"),
        ({"layer_types": [None] * 61}, "layer_types has null"),
        ({"layer_types": [FULL] * 60}, "layer_types has 60 entries for 61 layers"),
        ({"layer_types": "full"}, "layer_types is 'full'"),
        ({"layer_types": [LINEAR] * 61}, "layer_types leaves no layer"),
        ({"hybrid_layer_pattern": [0] * 61}, "hybrid_layer_pattern"),
        ({"sliding_window": 4096}, "sliding_window is 4096"),
        ({"linear_attn_config": []}, "linear_attn_config is []"),
        ({"linear_attn_config": {}}, "linear_attn_config.full_attn_layers is null"),
        ({"linear_attn_config": {"full_attn_layers": [1, 1]}}, "names a layer twice"),
        ({"linear_attn_config": {"full_attn_layers": [62]}}, "full_attn_layers is 62"),
        ({"linear_attn_config": {"full_attn_layers": [-1]}}, "full_attn_layers is -1"),
        ({"linear_attn_config": {"full_attn_layers": [True]}}, "full_attn_layers is true"),
        ({"linear_attn_config": {"full_attn_layers": ["1"]}}, "full_attn_layers is '1'"),
        ({"linear_attn_config": {"full_attn_layers": [0, 61]}}, "one too many"),
        ({"linear_attn_config": {"full_attn_layers": []}}, "full_attn_layers leaves no layer"),
        ({"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2]}}, "do not make up 61 layers"),
        ({"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [1]}}, "do not make up 61 layers"),
    ],
)
def test_maps_under_mla_that_are_refused(change: dict[str, Any], named: str) -> None:
    assert named in refusal(mla(**change))


def test_state_that_is_too_large() -> None:
    config = {"full_attn_layers": [1], "num_heads": 1 << 20, "head_dim": 1 << 20}
    assert "state" in refusal(mla(linear_attn_config=config))


# Windows


def test_gpt_oss_alternates() -> None:  # 36 layers, 18 of them windowed, 36,864 B on the full ones
    found = model(
        gqa(
            hidden_size=2880,
            num_attention_heads=64,
            head_dim=64,
            num_hidden_layers=36,
            layer_types=[SLIDING, FULL] * 18,
            sliding_window=128,
        )
    )
    assert found.cached_layers * found.attention.row_values * 2 == 36864
    assert found.windowed == Windowed(layers=18, window=128, kv_heads=8, qk_head_dim=64, v_head_dim=64)
    assert found.notes == ("18 sliding-window layers keep the last 128 tokens",)


def test_gemma_3_ends_on_windowed_layers() -> None:  # 62 layers, 5 local : 1 global: 10 full
    gemma = read("window-period.json")
    assert (gemma.cached_layers, gemma.windowed and gemma.windowed.layers) == (10, 52)


def test_trailing_layers_of_other_periods_are_not_guessed() -> None:
    assert "sliding_window_pattern is 3" in refusal(gqa(sliding_window_pattern=3, sliding_window=512))
    found = model(gqa(sliding_window_pattern=4, sliding_window=512))
    assert (found.cached_layers, found.windowed and found.windowed.layers) == (2, 6)


def test_qwen_window() -> None:
    off = model(gqa(use_sliding_window=False, sliding_window=131072, max_window_layers=4))
    assert (off.cached_layers, off.windowed) == (8, None)  # Qwen2.5-72B sets a window and switches it off
    on = model(gqa(use_sliding_window=True, sliding_window=4096, max_window_layers=6))
    assert (on.cached_layers, on.windowed and on.windowed.layers) == (6, 2)
    assert "max_window_layers is missing" in refusal(gqa(use_sliding_window=True, sliding_window=4096))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sliding_window": 4096}, "sliding_window is 4096: no key says which layers"),  # Mistral-7B
        ({"sliding_window": 0}, "sliding_window is 0"),
        ({"sliding_window": [4096]}, "sliding_window is [4096]"),
        ({"sliding_window": 512, "sliding_window_size": 128}, "sliding_window is 512: sliding_window_size"),
        ({"layer_types": [FULL, SLIDING] * 4}, "sliding_window is missing"),
        ({"layer_types": [SLIDING] * 8, "sliding_window": 512}, "layer_types leaves no layer"),
        ({"layer_types": ["sparse_attention"] * 8}, "layer_types has 'sparse_attention'"),
        ({"layer_types": ["chunked_attention"] * 8}, "layer_types has 'chunked_attention'"),
        ({"use_sliding_window": 1}, "use_sliding_window is 1"),
        ({"sliding_window_pattern": "LLLG", "sliding_window": 512}, "sliding_window_pattern is 'LLLG'"),
        ({"hybrid_layer_pattern": [0, 2] * 4}, "hybrid_layer_pattern is 2"),
        ({"hybrid_layer_pattern": [0, True] * 4}, "hybrid_layer_pattern is true"),
        ({"hybrid_layer_pattern": [0, 1]}, "hybrid_layer_pattern has 2 entries for 8 layers"),
        ({"hybrid_block_size": 6}, "hybrid_block_size is 6"),
    ],
)
def test_windows_that_are_refused(change: dict[str, Any], named: str) -> None:
    assert named in refusal(gqa(**change))


def test_windows_that_contradict_one_another() -> None:
    types = {"layer_types": [FULL, SLIDING] * 4, "sliding_window": 512}
    assert "use_sliding_window is false" in refusal(gqa(use_sliding_window=False, **types))
    assert "sliding_window_pattern gives 2" in refusal(gqa(sliding_window_pattern=4, **types))
    assert "swa_num_key_value_heads" in refusal(gqa(swa_num_key_value_heads=7, **types))
    assert "swa_head_dim" in refusal(gqa(swa_head_dim=64, head_dim=192, v_head_dim=128, **types))


def test_chunk_size_of_mimo_has_to_be_its_window() -> None:
    assert "attention_chunk_size is 64" in refusal({**fixture("window-bits.json"), "attention_chunk_size": 64})


# Indexers


def test_every_layer_indexes_unless_a_key_says_otherwise() -> None:  # DeepSeek-V3.2
    assert model(mla(**INDEXER)).indexer == Indexer(heads=64, head_dim=128, topk=2048, layers=61)


@pytest.mark.parametrize(
    ("layers", "freq", "offset", "count"),
    [(61, 1, 2, 61), (61, 4, 2, 16), (61, 2, 2, 31), (78, 4, 3, 21), (61, 4, None, 16), (61, None, 3, 61)],
)
def test_closed_forms(layers: int, freq: int | None, offset: int | None, count: int) -> None:
    assert indexing(layers, index_topk_freq=freq, index_skip_topk_offset=offset) == count


def test_glm_5_2() -> None:
    glm = read("indexer-freq.json")
    assert glm.indexer == Indexer(heads=32, head_dim=128, topk=2048, layers=21)
    assert glm.notes == ("21 of 78 layers hold indexer keys",)


def test_longcat_2_shares_an_indexer_between_two_caches() -> None:  # 38 layers, 76 caches, 38 indexers
    config = {**fixture("two-caches-per-layer.json"), "num_layers": 38, **INDEXER}
    longcat = model(config)
    assert longcat.cached_layers == 76
    assert longcat.indexer
    assert longcat.indexer.layers == 38
    assert longcat.notes[1:] == ("one indexer per layer, shared by its two caches",)


def test_lists_go_before_periods() -> None:
    types = ["full", "shared", "shared", "full"]
    assert indexing(4, indexer_types=types, index_topk_pattern="FFFS", index_topk_freq=4) == 2
    assert indexing(4, index_topk_pattern="FFFS", index_topk_freq=4) == 3
    assert indexing(4, index_topk_pattern=["F", "S", "S", "S"]) == 1


def test_lists_may_go_on_over_the_mtp_layers() -> None:  # the config has one
    assert indexing(4, indexer_types=["full", "shared", "shared", "full", "full"]) == 2


def test_periods_of_a_hybrid_need_to_know_where_numbering_starts() -> None:
    kimi = {"full_attn_layers": [2, 4]}
    assert indexing(5, linear_attn_config=kimi) == 2
    assert "index_topk_freq cannot be laid over" in refusal(
        mla(num_hidden_layers=5, linear_attn_config=kimi, index_topk_freq=2, **INDEXER)
    )
    # From 1: layers 1 and 3 attend; freq 2, offset 2 index 0, 1, 3.
    assert indexing(5, linear_attn_config=kimi | {"kda_layers": [1, 3, 5]}, index_topk_freq=2) == 2
    # From 0: layers 2 and 4 attend, and neither indexes.
    assert "leaves no layer that indexes" in refusal(
        mla(
            num_hidden_layers=5,
            linear_attn_config=kimi | {"kda_layers": [0, 1, 3]},
            index_topk_freq=2,
            **INDEXER,
        )
    )


def test_the_last_layer_of_a_group_attends() -> None:  # layers 3 and 7; freq 2, offset 2: 0, 1, 3, 5, 7
    group = {"model_type": "bailing_hybrid", "layer_group_size": 4}
    assert indexing(8, index_topk_freq=2, **group) == 2
    assert "leaves no layer" in refusal(mla(num_hidden_layers=8, index_topk_freq=4, **group, **INDEXER))


@pytest.mark.parametrize("missing", sorted(INDEXER))
def test_half_an_indexer(missing: str) -> None:
    assert f"{missing} is missing" in refusal(mla(**without(INDEXER, missing)))
    assert "needs index_n_heads" in refusal(mla(**INDEXER | {missing: None}))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"indexer_types": ["full"]}, "indexer_types has 1 entries for 61 layers"),
        ({"indexer_types": ["F"] * 61}, "indexer_types has 'F': full or shared"),
        ({"indexer_types": "F" * 61}, "indexer_types is 'FFF"),
        ({"index_topk_pattern": "F" * 60 + "X"}, "index_topk_pattern has 'X'"),
        ({"index_topk_pattern": ["shared"] * 61}, "index_topk_pattern has 'shared'"),
        ({"index_topk_freq": 0}, "index_topk_freq is 0"),
        ({"index_topk_freq": 1.0}, "index_topk_freq is 1.0"),
        ({"index_skip_topk_offset": -1}, "index_skip_topk_offset is -1"),
        ({"index_kpool": 0}, "index_kpool is 0"),
        ({"index_kpool": 3}, "index_kpool is 3: it has to divide index_topk 2048"),
        ({"index_source_layer_ids": [2, 8]}, "index_source_layer_ids is [2, 8]"),
        ({"indexer_types": ["shared"] * 61}, "leaves no layer that indexes"),
    ],
)
def test_indexers_that_are_refused(change: dict[str, Any], named: str) -> None:
    assert named in refusal(mla(**INDEXER, **change))


def test_a_pattern_without_an_indexer() -> None:
    assert "index_topk_freq is given" in refusal(mla(index_topk_freq=4))
