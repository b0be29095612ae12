"""The model presets: every file is a valid record, and its cache is what its sources say, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from mla_calc.data import find_preset, names_of, preset_files, read_mapping
from mla_calc.models.attention import Model
from mla_calc.schema import build

FILES = preset_files("models")

# Bytes per token of the main cache in bf16 (full-attention layers alone, MTP layers and indexer keys apart),
# transformer layers, query heads. Written by hand, as caches * values per row * 2, from the configs that
# each preset names under `sources` (read on 2026-11-29).
FACTS = {
    "a.x-k1": (70_272, 61, 64),
    "deepseek-67b": (389_120, 95, 64),
    "deepseek-ocr": (61_440, 12, 10),
    "deepseek-r1": (70_272, 61, 128),
    "deepseek-v2": (69_120, 60, 128),
    "deepseek-v2-lite": (31_104, 27, 16),
    "deepseek-v3": (70_272, 61, 128),
    "deepseek-v3.2": (70_272, 61, 128),
    "gemma-3-27b": (81_920, 62, 32),
    "glm-4.5": (376_832, 92, 96),
    "glm-4.7-flash": (54_144, 47, 20),
    "glm-5": (89_856, 78, 64),
    "glm-5.2": (89_856, 78, 64),
    "glm-5.3-flash": (11_264, 45, 64),
    "gpt-oss-120b": (36_864, 36, 64),
    "gpt-oss-20b": (24_576, 24, 64),
    "hy4-preview": (89_856, 78, 64),
    "kimi-k2": (70_272, 61, 64),
    "kimi-k2-thinking": (70_272, 61, 64),
    "kimi-k2.5": (70_272, 61, 64),
    "kimi-k3": (27_648, 93, 96),
    "kimi-linear-48b": (8_064, 27, 32),
    "kimi-vl": (31_104, 27, 16),
    "ling-2.6-flash": (4_608, 32, 32),
    "ling-3.0-flash": (8_064, 42, 32),
    "ling-3.0-tiny": (6_912, 24, 16),
    "llama2-7b": (524_288, 32, 32),
    "llama3-70b": (327_680, 80, 64),
    "llama3-8b": (131_072, 32, 32),
    "llama3.1-405b": (516_096, 126, 128),
    "longcat-2.0": (87_552, 38, 64),
    "longcat-flash": (64_512, 28, 64),
    "mimo-v2-flash": (23_040, 48, 64),
    "minicpm3-4b": (35_712, 62, 40),
    "minimax-m2": (253_952, 62, 48),
    "mistral-large-3": (70_272, 61, 128),
    "mistral-small-4": (23_040, 36, 32),
    "mixtral-8x7b": (131_072, 32, 32),
    "moonlight-16b": (31_104, 27, 16),
    "openpangu-718b": (70_272, 61, 128),
    "plm-1.8b": (36_864, 32, 16),
    "qwen2.5-72b": (327_680, 80, 64),
    "qwen3-235b": (192_512, 94, 64),
    "qwen3-32b": (262_144, 64, 64),
    "sarvam-105b": (36_864, 32, 64),
    "youtu-llm-2b": (36_864, 32, 16),
}

# The same, with every sliding-window layer's bytes added as if no window were full.
WITH_WINDOWED = {
    "gemma-3-27b": 507_904,
    "gpt-oss-120b": 73_728,
    "gpt-oss-20b": 49_152,
    "mimo-v2-flash": 222_720,
}

# fp8 indexer keys of 128 values and one fp32 scale: 132 B per token and indexing layer, pooled keys divided.
INDEXER_BYTES = {
    "deepseek-v3.2": 8_052,
    "glm-5": 10_296,
    "glm-5.2": 2_772,
    "glm-5.3-flash": 363,
    "hy4-preview": 2_772,
    "longcat-2.0": 5_016,
}

RESOLVES = {
    "dsv3": "deepseek-v3",
    "DSV3": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "dsv32": "deepseek-v3.2",
    "dsv3.2": "deepseek-v3.2",
    "deepseek-v32": "deepseek-v3.2",
    "dsv2": "deepseek-v2",
    "deepseek-v2": "deepseek-v2",
    "deepseek-v2-lite": "deepseek-v2-lite",
    "dsr1": "deepseek-r1",
    "kimi-k2": "kimi-k2",
    "kimi-k3": "kimi-k3",
    "kimi-linear-48b": "kimi-linear-48b",
    "glm-5": "glm-5",
    "glm-5.2": "glm-5.2",
    "glm-4.7-flash": "glm-4.7-flash",
    "longcat-flash": "longcat-flash",
    "minicpm3-4b": "minicpm3-4b",
    "mistral-large-3": "mistral-large-3",
    "mistral-small-4": "mistral-small-4",
    "llama3-70b": "llama3-70b",
    "llama-3-70b": "llama3-70b",
    "Llama-3-70B": "llama3-70b",
    "llama3.1-405b": "llama3.1-405b",
    "qwen2.5-72b": "qwen2.5-72b",
}


def load(path: Path) -> Model:
    return build(Model, read_mapping(path), str(path))


def preset(stem: str) -> Model:
    return load(next(path for path in FILES if path.stem == stem))


def test_every_preset_stands_in_the_table():
    assert {path.stem for path in FILES} == set(FACTS)


def test_there_are_presets_of_both_kinds():
    models = [load(path) for path in FILES]
    assert sum(model.mla is not None for model in models) >= 27
    assert sum(model.gqa is not None for model in models) >= 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_preset_has_the_cache_of_its_config(path: Path):
    model = load(path)
    bytes_per_token = model.cached_layers * model.attention.row_values * 2
    assert (bytes_per_token, model.transformer_layers, model.attention.heads) == FACTS[path.stem]


@pytest.mark.parametrize(("stem", "expected"), WITH_WINDOWED.items())
def test_windowed_layers_add_what_their_configs_say(stem: str, expected: int):
    model = preset(stem)
    windowed = model.windowed
    assert windowed is not None
    growing = model.cached_layers * model.attention.row_values * 2
    assert growing + windowed.layers * windowed.row_values * 2 == expected


@pytest.mark.parametrize(("stem", "expected"), INDEXER_BYTES.items())
def test_indexers_cache_what_their_configs_say(stem: str, expected: int):
    indexer = preset(stem).indexer
    assert indexer is not None
    assert indexer.layers * (indexer.head_dim + 4) == expected * indexer.pool


def test_no_other_preset_has_windows_or_an_indexer():
    models = {path.stem: load(path) for path in FILES}
    assert {stem for stem, model in models.items() if model.windowed} == set(WITH_WINDOWED)
    assert {stem for stem, model in models.items() if model.indexer} == set(INDEXER_BYTES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_kinds_of_layers_add_up(path: Path):
    model = load(path)
    others = sum(part.layers for part in (model.windowed, model.recurrent) if part)
    blocks = 2 if path.stem.startswith("longcat") else 1
    assert model.cached_layers + others == blocks * model.transformer_layers


def test_no_name_is_claimed_by_two_presets():
    owners: dict[str, str] = {}
    for path in FILES:
        for name in names_of(read_mapping(path), path):
            assert owners.setdefault(name.lower(), path.stem) == path.stem, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_preset_names_itself_once(path: Path):
    model = load(path)
    listed = [path.stem, *(name.lower() for name in (*model.aliases, *model.hf))]
    assert len(listed) == len(set(listed))
    assert path.stem == path.stem.lower()
    assert all("/" in name and " " not in name for name in model.hf)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_preset_says_where_its_figures_come_from(path: Path):
    model = load(path)
    assert model.sources.get("default")
    assert all(model.sources.values())
    assert set(model.sources) <= {"default", *Model.__dataclass_fields__}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_preset_is_tidy_text(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(len(line) <= 110 and line == line.rstrip() for line in lines)
    order = list(Model.__dataclass_fields__)
    order.remove("notes")
    order.insert(order.index("errata") + 1, "notes")
    keys = list(read_mapping(path))
    assert keys == sorted(keys, key=order.index)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_active_parameters_are_some_of_the_total(path: Path):
    model = load(path)
    total, active = model.parameters.total, model.parameters.active
    assert active is None or (total is not None and active <= total)
    assert total is not None or "parameters" not in model.sources


@pytest.mark.parametrize(("name", "stem"), RESOLVES.items())
def test_a_name_that_people_type_finds_its_preset(name: str, stem: str):
    path, _ = find_preset("models", name)
    assert path.stem == stem
