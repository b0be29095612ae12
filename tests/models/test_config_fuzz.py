"""Configs broken at random: the outcome is a sound model or one line of refusal, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.data import read_mapping
from mla_calc.errors import InputError
from mla_calc.models.attention import Model
from mla_calc.models.config import model_from_config
from mla_calc.models.spellings import NOT_MODELLED, READ, SPELLINGS

CONFIGS = Path(__file__).parent.parent / "fixtures" / "configs"
VALID = [
    "flat-mla.json",
    "nested-text-config.json",
    "native-deepseek.json",
    "renamed-pangu-keys.json",
    "v-head-dim-absent.json",
    "two-caches-per-layer.json",
    "hybrid-1-indexed.json",
    "hybrid-0-indexed-rope-0.json",
    "layer-group-size.json",
    "indexer-freq.json",
    "window-bits.json",
    "window-period.json",
    "gqa-head-dim-absent.json",
]
RANKS = SPELLINGS["kv_lora_rank"]
JUNK = [None, True, False, 0, -1, 1, 2, 64.0, float("nan"), float("inf"), "", "64", "a\nb", [], [1], [[]], {}]
HUGE = [2**24, 2**24 + 1, 2**63, -(2**63), 10**4000]
KEYS = [*sorted(READ | set(NOT_MODELLED)), "mla_a\nb", "text_config", "language_config", "model_type"]

values = st.sampled_from([*JUNK, *HUGE]) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A valid config after one to four mutations, at the top or in its wrapper."""
    config = copy.deepcopy(fixture(draw(st.sampled_from(VALID))))
    for _ in range(draw(st.integers(1, 4))):
        mappings = [config, *(value for value in config.values() if isinstance(value, dict))]
        target = draw(st.sampled_from(mappings))
        mutate(draw, target)
    return config


def mutate(draw: st.DrawFn, target: dict[str, Any]) -> None:
    key = draw(st.sampled_from(sorted(target) or ["kv_lora_rank"]) | st.sampled_from(KEYS))
    kind = draw(st.sampled_from(["drop", "set", "set", "negate", "nest", "blow up", "copy", "text"]))
    value = target.pop(key, None)
    if kind == "set":
        target[key] = copy.deepcopy(draw(values))
    elif kind == "negate":
        target[key] = -value if isinstance(value, int | float) else [value]
    elif kind == "nest":
        target[draw(st.sampled_from(["text_config", "language_config", "attention", key]))] = {key: value}
    elif kind == "blow up":
        target[key] = value * 10**9 if isinstance(value, int) else [value] * 3
    elif kind == "copy":
        target[key] = target[draw(st.sampled_from(KEYS))] = value
    elif kind == "text":
        target[key] = str(value)


def fixture(name: str) -> dict[str, Any]:
    return read_mapping(CONFIGS / name)


def holds_rank(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(key in value for key in RANKS) or any(map(holds_rank, value.values()))
    return isinstance(value, list) and any(map(holds_rank, value))


def check_message(message: str) -> None:
    assert len(message.splitlines()) == 1
    assert message.startswith("fuzz/config.json: ")
    assert len(message) < 600


def check(config: dict[str, Any]) -> Model | None:
    try:
        model = model_from_config(config, "fuzz/config.json")
    except InputError as error:
        check_message(str(error))
        return None
    may_be_zero = {"qk_rope_head_dim", "mtp_layers"}
    for part in (model.attention, model.windowed, model.recurrent, model.indexer):
        fields = asdict(part) if part else {}
        assert type(fields.pop("rotated", True)) is bool
        for name, number in fields.items():
            assert number is None or type(number) is int
            assert number is None or number > 0 or name in may_be_zero
    assert model.cached_layers > 0
    assert model.gqa is None or not holds_rank(config)
    return model


@pytest.mark.parametrize("name", VALID)
def test_the_configs_to_break_are_whole(name: str) -> None:
    assert check(fixture(name))


def test_no_fixture_is_forgotten() -> None:
    refused = {"kv-lora-rank-null.json", "compress-ratios.json"}
    assert {path.name for path in CONFIGS.glob("*.json")} == {*VALID, *refused}


@settings(max_examples=150, deadline=None)
@given(broken())
def test_broken_configs(config: dict[str, Any]) -> None:
    check(config)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RANKS), values, st.sampled_from(["", "text_config", "attention", "quantization_config"]))
def test_a_config_with_a_rank_is_never_gqa(key: str, value: Any, place: str) -> None:
    more = {place: {"deeper": [{key: value}]}} if place else {key: value}
    config = {**fixture("gqa-head-dim-absent.json"), **more}
    model = check(config)
    assert model is None or model.mla


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=8))
def test_configs_out_of_nothing(config: dict[str, Any]) -> None:
    check(config)
