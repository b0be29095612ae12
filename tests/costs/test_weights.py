"""Parameters of attention and what of all weights a GPU stores.

Sources: docs/cost-model.md, section 10; shapes of the chapter's seven steps; deepseek-ai/DeepSeek-V3@b4e06d8
README_WEIGHTS.md (fp8 in blocks of 128x128, one fp32 scale each).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, prod

import pytest

from mla_calc.costs.paths import Work
from mla_calc.costs.trace import trace_cost
from mla_calc.costs.weights import attention_parameters, other_parameters, stored_weights, weights_bytes
from mla_calc.data import preset_files, read_mapping
from mla_calc.errors import InputError
from mla_calc.models.attention import Parameters, Stored
from mla_calc.models.load import load_model
from tests.shapes import DSV3, LLAMA3_70B, MLAS, V2_LITE, divisors, model

DOWN = 7168 * 1536 + 7168 * 576
SPLIT = 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168


def test_dsv3_attention() -> None:
    # docs/cost-model.md, section 10: 187.1 M a layer, of which 15.1 M are the down-projections
    assert attention_parameters(DSV3) == DOWN + SPLIT == 187_105_280
    assert DOWN == 15_138_816


@pytest.mark.parametrize("tp", divisors(128))
def test_down_projections_are_copied(tp: int) -> None:
    assert attention_parameters(DSV3, tp) == DOWN + SPLIT // tp


def test_without_a_query_latent() -> None:
    assert attention_parameters(V2_LITE) == 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048


def test_gqa_copies_kv_heads_beyond_their_number() -> None:
    # Llama-3-70B: 64 query heads, 8 KV heads, 128 wide, hidden 8192
    query_output, key_value = 2 * 8192 * 64 * 128, 2 * 8192 * 8 * 128
    assert attention_parameters(LLAMA3_70B) == query_output + key_value
    assert attention_parameters(LLAMA3_70B, 8) == (query_output + key_value) // 8
    assert attention_parameters(LLAMA3_70B, 16) == query_output // 16 + key_value // 8


@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_the_weights_are_those_of_trace(mla) -> None:
    steps = trace_cost(mla, Work(queries=1, context=8, row_bytes=mla.row_values * 2)).steps
    assert sum(prod(step.weight_shape) for step in steps if step.weight_shape) == attention_parameters(mla)


def test_dsv3_weights_by_hand() -> None:
    dsv3 = load_model("dsv3")
    scaled = Fraction(128 * 128 + 4, 128 * 128)
    rest = 671_000_000_000 - 61 * 187_105_280
    assert other_parameters(dsv3) == rest
    stored = stored_weights(dsv3, None)
    found = weights_bytes(dsv3, stored, tp=8, ep=8, caches=61, layers=61)
    assert found == ceil(61 * (DOWN + SPLIT // 8) * scaled) + ceil(ceil(Fraction(rest, 8)) * scaled)
    # a stage of 16 of the 61 layers, its experts over 2 ranks
    found = weights_bytes(dsv3, stored, tp=2, ep=2, caches=16, layers=16)
    assert found == ceil(16 * (DOWN + SPLIT // 2) * scaled) + ceil(ceil(Fraction(rest * 16, 61 * 2)) * scaled)


def test_kimi_k25_keeps_attention_in_16_bits() -> None:
    # its config.json: int4 in groups of 32 with a 16-bit scale, self_attn ignored
    own, others = stored_weights(load_model("kimi-k2.5"), None)
    assert (own.bytes, own.per) == (2, 1)
    assert Fraction(others.bytes, others.per) == Fraction(16 + 2, 32)


def test_a_width_replaces_what_is_stored() -> None:
    own, others = stored_weights(load_model("dsv3"), Fraction(1, 2))
    assert own == others == Stored(dtype="as given", bytes=1, per=2)


def test_what_is_not_known_is_asked_for() -> None:
    with pytest.raises(InputError, match="--weight-bytes"):
        stored_weights(load_model("glm-5.2"), None)
    with pytest.raises(InputError, match="how many parameters"):
        other_parameters(load_model("llama3-70b"))
    small = replace(model(DSV3, 61), parameters=Parameters(total=10_000_000_000))
    with pytest.raises(InputError, match="less than its attention"):
        other_parameters(small)
    endless = replace(model(DSV3, 61), parameters=Parameters(total=1 << 50))
    with pytest.raises(InputError, match="more than can be placed"):
        weights_bytes(endless, (Stored(dtype="x", bytes=1 << 24),) * 2, tp=1, ep=1, caches=61, layers=61)


def test_every_stored_dtype_names_a_source_of_its_own() -> None:
    said = [(path, read_mapping(path)) for path in preset_files("models")]
    with_weights = {path.stem: mapping for path, mapping in said if "weights" in mapping}
    assert {"deepseek-v3", "deepseek-r1", "deepseek-v3.2", "kimi-k2", "kimi-k2.5"} <= set(with_weights)
    assert all(mapping["sources"].get("weights") for mapping in with_weights.values())
    assert all(mapping["parameters"]["total"] for mapping in with_weights.values())
