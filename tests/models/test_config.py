"""Reading a model's own config.

The fixtures have the keys and values of the models' configs; the preset of each model names where that config was
read. Expected bytes are arithmetic on those values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import read_mapping
from mla_calc.errors import InputError
from mla_calc.models.attention import GQA, MLA, Model, Windowed
from mla_calc.models.config import find_config, model_from_config
from mla_calc.models.spellings import NOT_MODELLED

CONFIGS = Path(__file__).parent.parent / "fixtures" / "configs"

GQA_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_hidden_layers": 80,
    "max_position_embeddings": 8192,
}


def fixture(name: str) -> dict[str, Any]:
    return read_mapping(CONFIGS / name)


def read(name: str) -> Model:
    return model_from_config(fixture(name), name)


def mla(**changes: Any) -> dict[str, Any]:
    return {**fixture("flat-mla.json"), **changes}


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys}


def refusal(config: Any) -> str:
    with pytest.raises(InputError) as caught:
        model_from_config(config, "glm/config.json")
    message = str(caught.value)
    assert message.startswith("glm/config.json: ")
    assert "\n" not in message
    return message


# What is accepted. Bytes per token in bf16: caches * values per row * 2, full-attention layers alone.


@pytest.mark.parametrize(
    ("name", "per_token_bf16"),
    [
        ("flat-mla.json", 70272),  # DeepSeek-V3: 61 * 576 * 2
        ("nested-text-config.json", 70272),  # Kimi-K2.5: 61 * 576 * 2, nested in text_config
        ("native-deepseek.json", 31104),  # DeepSeek-V2-Lite: 27 * 576 * 2, n_layers, q_lora_rank 0
        ("params-json/params.json", 70272),  # Mistral-Large-3: 61 * 576 * 2
        ("renamed-pangu-keys.json", 70272),  # openPangu-Ultra-MoE-718B: 61 * 576 * 2
        ("v-head-dim-absent.json", 35712),  # MiniCPM3-4B: 62 * 288 * 2
        ("two-caches-per-layer.json", 64512),  # LongCat-Flash-Chat: 28 * 2 * 576 * 2
        ("hybrid-1-indexed.json", 27648),  # Kimi-K3: 24 of 93 layers, 24 * 576 * 2
        ("hybrid-0-indexed-rope-0.json", 11264),  # GLM-5.3-Flash: 11 of 45 layers, 11 * 512 * 2
        ("layer-group-size.json", 8064),  # Ling-3.0-flash: 7 of 42 layers, 7 * 576 * 2
        ("indexer-freq.json", 89856),  # GLM-5.2: 78 * 576 * 2
        ("gqa-head-dim-absent.json", 131072),  # Mixtral-8x7B: 32 * 8 * 256 * 2
        ("window-bits.json", 23040),  # MiMo-V2-Flash, its full layers only: 9 * 4 * 320 * 2
        ("window-period.json", 81920),  # Gemma-3-27B, its full layers only: 10 * 16 * 256 * 2
    ],
)
def test_cache_per_token(name: str, per_token_bf16: int) -> None:
    model = read(name)
    assert model.cached_layers * model.attention.row_values * 2 == per_token_bf16


def test_deepseek_v3_in_full() -> None:
    assert model_from_config(mla(), "glm/config.json") == Model(
        name="glm",
        status="config",
        mla=MLA(
            heads=128,
            hidden_size=7168,
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            q_lora_rank=1536,
        ),
        cached_layers=61,
        transformer_layers=61,
        mtp_layers=1,
        max_position_embeddings=163840,
        sources={
            "mla": (
                "glm/config.json: num_attention_heads, hidden_size, kv_lora_rank, qk_nope_head_dim,"
                " qk_rope_head_dim, v_head_dim, q_lora_rank",
            ),
            "cached_layers": ("glm/config.json: num_hidden_layers",),
            "transformer_layers": ("glm/config.json: num_hidden_layers",),
            "mtp_layers": ("glm/config.json: num_nextn_predict_layers",),
            "max_position_embeddings": ("glm/config.json: max_position_embeddings",),
            "default": ("glm/config.json",),
        },
    )


def test_nested_sources_name_the_wrapper() -> None:
    assert read("nested-text-config.json").sources["cached_layers"] == (
        "nested-text-config.json: text_config.num_hidden_layers",
    )


def test_nested_keys_may_be_repeated_at_the_top() -> None:
    inner = fixture("nested-text-config.json")["text_config"]
    twice = {**inner, "model_type": "kimi_k25", "text_config": inner}
    assert model_from_config(twice, "x.json").mla == read("nested-text-config.json").mla


@pytest.mark.parametrize("wrapper", ["text_config", "language_config", "llm_config"])
def test_wrappers(wrapper: str) -> None:
    assert model_from_config({wrapper: mla()}, "x.json").mla == read("flat-mla.json").mla


@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
def test_dtype_quantization_and_rope_keys_change_nothing(key: str) -> None:
    more = {
        key: "bfloat16",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "rope_scaling": {"type": "yarn", "factor": 40},
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    }
    assert model_from_config(mla(**more), "x.json") == model_from_config(mla(), "x.json")


@pytest.mark.parametrize("value", [None, 0])
def test_no_query_latent(value: int | None) -> None:
    model = model_from_config(mla(q_lora_rank=value), "x.json")
    assert model.mla
    assert model.mla.q_lora_rank is None
    assert model.notes == ()


def test_absent_query_latent_is_noted() -> None:  # Mistral-Large-4
    model = model_from_config(without(mla(), "q_lora_rank"), "x.json")
    assert model.mla
    assert model.mla.q_lora_rank is None
    assert model.notes == ("q_lora_rank is absent: queries are projected in one step",)


@pytest.mark.parametrize("width", [0, 64, 72, 192, 576, None])
def test_head_dim_is_never_used_under_mla(
    width: int | None,
) -> None:  # GLM-5 has 64, Kimi-Linear 72, GLM-5.2 192, Sarvam 576
    assert model_from_config(mla(head_dim=width), "x.json").mla == read("flat-mla.json").mla


@pytest.mark.parametrize("kv_heads", [1, 8, 999, None])
def test_kv_heads_are_never_used_under_mla(kv_heads: int | None) -> None:
    assert model_from_config(mla(num_key_value_heads=kv_heads), "x.json").mla == read("flat-mla.json").mla


@pytest.mark.parametrize("model_type", ["deepseek_v4", "llama", "sarvam_mla", None, 7])
def test_mla_is_decided_by_keys_not_by_name(model_type: object) -> None:
    assert model_from_config(mla(model_type=model_type), "x.json").mla == read("flat-mla.json").mla


def test_minicpm3_defines_v_head_dim() -> None:
    model = read("v-head-dim-absent.json")
    assert model.mla
    assert model.mla.v_head_dim == 64
    assert model.notes == (
        "v_head_dim is absent; model_type minicpm3 defines it as hidden_size / num_attention_heads = 64",
    )


def test_longcat_counts_twice() -> None:
    model = read("two-caches-per-layer.json")
    assert (model.transformer_layers, model.cached_layers) == (28, 56)
    assert model.notes == ("two MLA caches per layer (num_layers 28)",)


@pytest.mark.parametrize("hidden_layers", [28, 56])
def test_longcat_may_repeat_its_layers(hidden_layers: int) -> None:
    config = {**fixture("two-caches-per-layer.json"), "num_hidden_layers": hidden_layers}
    assert model_from_config(config, "x.json").cached_layers == 56


@pytest.mark.parametrize("key", ["num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules", "n_mtp_layers"])
def test_mtp_layers(key: str) -> None:
    config = {**without(mla(), "num_nextn_predict_layers"), key: 3}
    assert model_from_config(config, "x.json").mtp_layers == 3


def test_no_word_on_mtp_layers() -> None:
    assert model_from_config(without(mla(), "num_nextn_predict_layers"), "x.json").mtp_layers is None


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("hybrid-1-indexed.json", 1048576),  # model_max_length, Kimi
        ("native-deepseek.json", 163840),  # 4096 * 40
        ("params-json/params.json", 294912),  # 8192 * 36
    ],
)
def test_context(name: str, context: int) -> None:
    assert read(name).max_position_embeddings == context


def test_no_word_on_context() -> None:
    config = without(fixture("native-deepseek.json"), "rope_factor")
    assert model_from_config(config, "x.json").max_position_embeddings is None


def test_two_spellings_that_agree() -> None:
    assert model_from_config(mla(dim=7168, n_heads=128, attention_kv_lora_dim=512), "x.json").mla


# GQA


def test_gqa_with_keys_and_values_of_their_own_widths() -> None:  # MiMo-V2-Flash
    model = read("window-bits.json")
    assert model.gqa == GQA(heads=64, hidden_size=4096, kv_heads=4, qk_head_dim=192, v_head_dim=128)
    assert model.windowed == Windowed(layers=39, window=128, kv_heads=8, qk_head_dim=192, v_head_dim=128)
    full, bounded = 9 * model.attention.row_values, 39 * model.windowed.row_values
    assert 2 * (full + bounded) == 222720  # (9 * 4 + 39 * 8) * 320 * 2


def test_gqa_head_dim_is_taken_where_given() -> None:  # Qwen3-32B: 128, where 5120 / 64 is 80
    model = model_from_config({**GQA_CONFIG, "hidden_size": 5120, "head_dim": 128}, "x.json")
    assert model.gqa
    assert model.gqa.qk_head_dim == 128
    assert model.notes == ()


def test_gqa_head_dim_is_counted_where_absent() -> None:  # Llama-3-70B: 327,680 B per token
    model = model_from_config(GQA_CONFIG, "x.json")
    assert model.cached_layers * model.attention.row_values * 2 == 327680
    assert model.notes == ("head_dim is absent: hidden_size / num_attention_heads = 128",)


def test_features_that_are_switched_off_are_no_reason_to_refuse() -> None:
    off = dict.fromkeys(NOT_MODELLED, None) | {"num_kv_shared_layers": 0, "is_encoder_decoder": False}
    off = without(off, "compress_ratios", "mla_layers")
    assert model_from_config({**GQA_CONFIG, **off}, "x.json").gqa


# Names


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("glm/config.json", "glm"),
        ("/data/models/GLM-5/params.json", "GLM-5"),
        ("config.json", "config"),
        ("here/glm-5.json", "glm-5"),
    ],
)
def test_name_from_the_file(where: str, name: str) -> None:
    assert model_from_config(mla(), where).name == name


@pytest.mark.parametrize(
    ("given", "name"),
    [("zai-org/GLM-5", "GLM-5"), ("GLM-5/", "GLM-5"), ("", "glm"), ("./", "glm"), (7, "glm"), (None, "glm")],
)
def test_name_or_path(given: object, name: str) -> None:
    assert model_from_config(mla(_name_or_path=given), "glm/config.json").name == name


# Finding the file


def test_find_config(tmp_path: Path) -> None:
    assert find_config(CONFIGS / "params-json") == CONFIGS / "params-json" / "params.json"
    assert find_config(CONFIGS / "flat-mla.json") == CONFIGS / "flat-mla.json"
    (tmp_path / "params.json").write_text("{}")
    (tmp_path / "config.json").write_text("{}")
    assert find_config(tmp_path) == tmp_path / "config.json"


def test_find_config_in_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json or params\.json in this folder"):
        find_config(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        find_config(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        find_config(Path("x" * 5000))


# Refusals: each names its key.


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (0, "0"),
        (-1, "-1"),
        (True, "true"),
        (512.0, "512.0"),
        ("512", "'512'"),
        ([512], "[512]"),
    ],
)
def test_kv_lora_rank_that_is_no_rank(value: object, shown: str) -> None:
    assert refusal(mla(kv_lora_rank=value)) == (
        f"glm/config.json: kv_lora_rank is {shown}: an MLA config needs a positive integer there"
    )


def test_mla_switched_off_under_an_mla_name() -> None:  # DeepSeek-OCR
    assert "language_config.kv_lora_rank is null" in refusal(fixture("kv-lora-rank-null.json"))


def test_compressed_attention() -> None:  # DeepSeek-V4-Flash
    assert "compress_ratios is [0, 0, 4, 128" in refusal(fixture("compress-ratios.json"))


@pytest.mark.parametrize(
    "key",
    [
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "qk_head_dim",
        "o_lora_rank",
        "use_mla",
        "mla_use_nope",
        "attention_q_lora_dim",
        "compress_ratios",
    ],
)
@pytest.mark.parametrize("value", [None, 64, False])
def test_a_key_of_latent_attention_never_falls_through_to_gqa(key: str, value: object) -> None:
    assert f"{key} is " in refusal({**GQA_CONFIG, key: value})


def test_a_rank_in_the_wrong_place_never_falls_through_to_gqa() -> None:
    assert "kv_lora_rank" in refusal({**GQA_CONFIG, "attention": [{"mla": {"kv_lora_rank": 512}}]})


@pytest.mark.parametrize(
    "key",
    ["num_attention_heads", "hidden_size", "num_hidden_layers", "qk_nope_head_dim", "qk_rope_head_dim"],
)
@pytest.mark.parametrize("change", ["drop", None, True, "64", 64.0, -1, 2**24 + 1, [64]])
def test_mla_dimensions_that_are_missing_or_wrong(key: str, change: object) -> None:
    config = without(mla(), key) if change == "drop" else mla(**{key: change})
    assert key in refusal(config)


def test_a_number_of_more_digits_than_python_prints() -> None:
    assert "kv_lora_rank is " in refusal(mla(kv_lora_rank=10**5000))
    assert "rope_factor is " in refusal({**fixture("native-deepseek.json"), "rope_factor": 10**5000})


def test_keys_that_are_not_used_have_to_be_numbers_all_the_same() -> None:
    assert "num_key_value_heads is [8, 4]" in refusal(mla(num_key_value_heads=[8, 4]))
    assert "head_dim is '64'" in refusal(mla(head_dim="64"))


def test_yarn_that_is_wrong() -> None:
    config = without(fixture("params-json/params.json"), "yarn")
    assert "yarn is 36" in refusal({**config, "yarn": 36})
    yarn = {"original_max_position_embeddings": 8192.0, "factor": 36}
    assert "yarn.original_max_position_embeddings is 8192.0" in refusal({**config, "yarn": yarn})


@pytest.mark.parametrize("value", [True, "1536", 1536.0, -1, [1536]])
def test_q_lora_rank_that_is_wrong(value: object) -> None:
    assert "q_lora_rank is " in refusal(mla(q_lora_rank=value))


def test_v_head_dim_is_not_guessed() -> None:  # Kimi-Linear: 2304 / 32 = 72, where the model has 128
    config = without(mla(model_type="kimi_linear", hidden_size=2304, num_attention_heads=32), "v_head_dim")
    assert "v_head_dim is missing" in refusal(config)


def test_v_head_dim_of_minicpm3_has_to_divide() -> None:
    assert "hidden_size 2561" in refusal({**fixture("v-head-dim-absent.json"), "hidden_size": 2561})


def test_contradictions_under_mla() -> None:
    assert "qk_head_dim is 256" in refusal(mla(qk_head_dim=256))
    assert "use_mla is false" in refusal(mla(use_mla=False))
    assert "swa_kv_lora_rank is 1024" in refusal(mla(swa_kv_lora_rank=1024))  # dots3-note


@pytest.mark.parametrize("key", ["num_attention_heads", "num_key_value_heads", "hidden_size", "num_hidden_layers"])
@pytest.mark.parametrize("change", ["drop", None, False, 0, "8", [8, 8]])
def test_gqa_dimensions_that_are_missing_or_wrong(key: str, change: object) -> None:
    config = without(GQA_CONFIG, key) if change == "drop" else {**GQA_CONFIG, key: change}
    assert key in refusal(config)


def test_gqa_heads_that_do_not_divide() -> None:
    assert "num_key_value_heads is 7" in refusal({**GQA_CONFIG, "num_key_value_heads": 7})
    assert "head_dim is missing" in refusal({**GQA_CONFIG, "hidden_size": 8193})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hybrid_override_pattern", "M-M*"),  # Nemotron-H
        ("layers_block_type", ["mamba", "attention"]),  # Zamba
        ("attn_layer_period", 8),  # Jamba
        ("attn_type_list", [0, 1]),  # MiniMax-01
        ("full_attention_interval", 4),  # Qwen3-Next
        ("linear_num_value_heads", 32),  # Qwen3-Next
        ("num_kv_shared_layers", 20),  # Gemma-3n
        ("kv_source_layer_ids", [2, 8, 14, 20]),  # DeepSeek-V4.1-Flash
        ("kv_source_layers", [0, 0]),  # Mistral-Large-4
        ("use_cla", True),  # Hunyuan-Large
        ("cross_attention_layers", [3, 8]),  # Llama-3.2-Vision
        ("is_encoder_decoder", True),
        ("mamba_d_state", 16),
        ("ssm_state_size", 128),
        ("block_configs", [{"attention": {"n_heads_in_group": 8}}]),  # DeciLM
        ("num_attention_heads_per_layer", [48, 64]),  # Laguna
        ("attention_chunk_size", 8192),  # Llama 4
        ("global_head_dim", 256),  # Gemma 4
        ("sparse_attention_config", {"sparse_num_index_heads": 4}),  # MiniMax-M3
        ("index_topk", 2048),
        ("total_ut_steps", 4),  # Ouro
    ],
)
def test_structures_that_are_not_modelled(key: str, value: object) -> None:
    assert f"{key} is " in refusal({**GQA_CONFIG, key: value})


@pytest.mark.parametrize("wrapper", ["text_config", "language_config", "llm_config"])
@pytest.mark.parametrize("value", [[], "text", 7, False])
def test_a_wrapper_that_is_no_mapping(wrapper: str, value: object) -> None:
    assert f"{wrapper} is " in refusal(mla(**{wrapper: value}))


def test_top_and_nested_that_disagree() -> None:
    nested = {**fixture("nested-text-config.json"), "num_attention_heads": 32}
    assert "num_attention_heads is 32 at the top and 64 in text_config" in refusal(nested)


def test_two_wrappers() -> None:
    message = refusal({"text_config": mla(), "language_config": mla()})
    assert "text_config and language_config both hold attention keys" in message


def test_wrapper_in_a_wrapper() -> None:
    assert "text_config.text_config" in refusal({"text_config": mla(text_config=mla())})


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"dim": 4096}, "hidden_size is 7168: dim"),
        ({"n_heads": 64}, "num_attention_heads is 128: n_heads"),
        ({"attention_kv_lora_dim": 256}, "kv_lora_rank is 512: attention_kv_lora_dim"),
        ({"num_mtp_modules": 3}, "num_nextn_predict_layers is 1: num_mtp_modules"),
        ({"model_max_length": 4096}, "max_position_embeddings is 163840: model_max_length"),
        ({"num_layers": 28}, "num_layers is 28"),
    ],
)
def test_two_spellings_that_disagree(more: dict[str, Any], named: str) -> None:
    assert named in refusal(mla(**more))


def test_num_layers_alone_is_not_read_for_other_models() -> None:
    assert "num_layers is 28" in refusal({**without(mla(), "num_hidden_layers"), "num_layers": 28})


def test_longcat_layers_that_disagree() -> None:
    config = fixture("two-caches-per-layer.json")
    assert "num_hidden_layers is 30" in refusal({**config, "num_hidden_layers": 30})
    assert "num_layers is missing" in refusal({**without(config, "num_layers"), "num_hidden_layers": 28})
    assert "num_layers" in refusal({**GQA_CONFIG, "model_type": "longcat_flash", "num_layers": 80})


@pytest.mark.parametrize("value", [0, True, "131072", 1e6, 2**41])
def test_context_that_is_wrong(value: object) -> None:
    assert "max_position_embeddings is " in refusal(mla(max_position_embeddings=value))


@pytest.mark.parametrize("factor", [True, "40", -1, 0.3, float("nan"), float("inf"), 2.0**60, 1e308])
def test_context_factor_that_is_wrong(factor: object) -> None:
    assert "rope_factor is " in refusal({**fixture("native-deepseek.json"), "rope_factor": factor})


@pytest.mark.parametrize("config", [{}, {"model_type": "bert"}, {"vision_config": GQA_CONFIG}, {"text_config": {}}])
def test_no_attention_at_all(config: dict[str, Any]) -> None:
    message = refusal(config)
    assert "no attention key found; looked for kv_lora_rank" in message
    assert "text_config, language_config" in message


@pytest.mark.parametrize("config", [None, [], "text", 7])
def test_a_config_that_is_no_mapping(config: object) -> None:
    assert "a mapping is expected" in refusal(config)


def test_a_key_with_line_breaks_keeps_the_message_on_one_line() -> None:
    assert "mla_a b is " in refusal({**GQA_CONFIG, "mla_a\nb": 1})


def test_a_rope_slice_that_is_not_rotated() -> None:
    """Kimi Linear's mla_use_nope: the slots are projected and cached, and rotary_emb does not run."""
    plain_model, unrotated = (model_from_config(mla(**more), "x.json") for more in ({}, {"mla_use_nope": True}))
    assert isinstance(plain_model.attention, MLA)
    assert isinstance(unrotated.attention, MLA)
    assert (plain_model.attention.rotated, unrotated.attention.rotated) == (True, False)
    assert unrotated.attention.row_values == plain_model.attention.row_values == 576
