"""The shipped engine releases: valid records, and the constants that were read in their sources."""

from __future__ import annotations

import datetime

import pytest

from mla_calc.data import find_preset, names_of, preset_files, read_mapping
from mla_calc.engines.preset import Backend, Engine, runs_on, threshold_for
from mla_calc.errors import InputError
from mla_calc.schema import build, problems


def engine(name: str) -> Engine:
    path, mapping = find_preset("engines", name)
    return build(Engine, mapping, str(path))


def backend(release: str, name: str) -> Backend:
    return next(item for item in engine(release).backends if item.name == name)


def test_the_releases() -> None:
    assert {path.stem for path in preset_files("engines")} == {
        "sglang-0.5.18",
        "sglang-0.5.23",
        "vllm-0.26",
        "vllm-0.29",
        "vllm-0.33",
    }


@pytest.mark.parametrize(
    ("name", "release", "date"),
    [
        ("vllm", "0.33.0", datetime.date(2026, 11, 1)),
        ("vLLM@0.33", "0.33.0", datetime.date(2026, 11, 1)),
        ("vllm@0.29", "0.29.0", datetime.date(2026, 9, 9)),
        ("vllm-0.29", "0.29.0", datetime.date(2026, 9, 9)),
        ("sglang", "0.5.23", datetime.date(2026, 10, 30)),
        ("sglang@0.5.18", "0.5.18", datetime.date(2026, 8, 21)),
    ],
)
def test_names(name: str, release: str, date: datetime.date) -> None:
    found = engine(name)
    assert (found.release, found.date) == (release, date)


def test_no_name_is_claimed_twice() -> None:
    owners: dict[str, str] = {}
    for path in preset_files("engines"):
        for name in {known.lower() for known in names_of(read_mapping(path), path)}:
            assert owners.setdefault(name, path.stem) == path.stem, name


@pytest.mark.parametrize(
    ("release", "name", "tokens", "support"),
    [
        ("vllm@0.33", "FLASH_ATTN_MLA", 512, "varlen"),
        ("vllm@0.33", "FLASHMLA", 128, "uniform"),
        ("vllm@0.33", "FLASHINFER_MLA", 1, "varlen"),
        ("vllm@0.33", "TOKENSPEED_MLA", 1, "uniform"),
        ("vllm@0.33", "CUTLASS_MLA", 1, "single_only"),
        ("vllm@0.33", "TRITON_MLA", 1, "uniform"),
        ("vllm@0.29", "FLASH_ATTN_MLA", 512, "varlen"),
        ("vllm@0.29", "FLASHMLA", 128, "uniform"),
        ("vllm@0.29", "FLASHINFER_MLA", 1, "uniform"),
        ("vllm@0.29", "TRITON_MLA", 1, "single_only"),
    ],
)
def test_dense_thresholds(release: str, name: str, tokens: int, support: str | None) -> None:
    found = backend(release, name)
    assert (found.kind, found.query_len_support) == ("dense", support)
    assert threshold_for(found, 16, 9) == tokens


@pytest.mark.parametrize(
    ("name", "major", "heads", "tokens"),
    [
        ("FLASHMLA_SPARSE", 10, 8, 128),
        ("FLASHMLA_SPARSE", 10, 64, 256),
        ("FLASHMLA_SPARSE", 10, 128, 1024),
        ("FLASHMLA_SPARSE", 10, 4, 1024),
        ("FLASHMLA_SPARSE", 9, 16, 128),
        ("FLASHMLA_SPARSE", 9, 64, 256),
        ("FLASHMLA_SPARSE", 9, 128, 256),
        ("FLASHMLA_SPARSE", 9, 8, 256),
        ("FLASHINFER_MLA_SPARSE", 10, 32, 128),
        ("FLASHINFER_MLA_SPARSE", 10, 128, 1024),
        ("FLASHINFER_MLA_SPARSE_SM120", 12, 64, 256),
        ("FLASH_ATTN_MLA_SPARSE", 9, 32, 128),
        ("FLASH_ATTN_MLA_SPARSE", 9, 128, 256),
        ("FLASH_ATTN_MLA_SPARSE_FA4", 10, 16, 128),
        ("FLASHMLA_SPARSE_DSV4", 9, 64, 1),
    ],
)
def test_thresholds_by_heads(name: str, major: int, heads: int, tokens: int) -> None:
    assert threshold_for(backend("vllm", name), heads, major) == tokens


@pytest.mark.parametrize(("release", "name"), [("vllm", "XPU_MLA_SPARSE")])
def test_a_threshold_that_was_not_read(release: str, name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: no decode threshold is recorded"):
        threshold_for(backend(release, name), 16, 9)


@pytest.mark.parametrize(
    ("name", "majors"),
    [
        ("FLASH_ATTN_MLA", [9]),
        ("FLASHMLA", [9]),  # it declares 10 too, and its dense kernel refuses it
        ("FLASHINFER_MLA", [10]),
        ("TRITON_MLA", [8, 9, 10, 11, 12]),
        ("FLASHMLA_SPARSE", [9, 10]),
        ("FLASHINFER_MLA_SPARSE_SM120", [12]),
        ("ROCM_AITER_MLA", []),
        ("FLASHMLA_SPARSE_DSV41", []),  # only its registry entry was read
    ],
)
def test_where_a_backend_runs(name: str, majors: list[int]) -> None:
    found = backend("vllm", name)
    assert [major for major in range(8, 13) if runs_on(found, major)] == majors


@pytest.mark.parametrize(
    ("release", "total", "mla", "shared", "models"),
    [("vllm@0.33", 50, 25, 18, 7), ("vllm@0.29", 37, 19, 16, 3)],
)
def test_registry(release: str, total: int, mla: int, shared: int, models: int) -> None:
    registry = engine(release).registry
    assert registry is not None
    assert (registry.total, registry.mla) == (total, mla)
    assert (registry.mla_directory, registry.model_directories) == (shared, models)


def test_every_mla_backend_of_the_registry_is_listed_once() -> None:
    names = [item.name for item in engine("vllm").backends]
    assert len(names) == len(set(names)) == 25


def test_the_ladder_names_listed_backends() -> None:
    release = engine("vllm")
    names = {item.name for item in release.backends}
    for ladder in release.ladder:
        assert names.issuperset(ladder.dense)
        for tail in ladder.sparse:
            assert names.issuperset(tail.backends)


def test_the_first_rung_on_each_gpu() -> None:
    first = {ladder.compute_capability_major: ladder.dense[0] for ladder in engine("vllm").ladder}
    assert first == {(10,): "FLASHINFER_MLA", (12,): "TRITON_MLA", (): "FLASH_ATTN_MLA"}


def test_sm120_has_two_rungs_in_both_releases() -> None:
    for name in ("vllm@0.29", "vllm@0.33"):
        ladder = next(item for item in engine(name).ladder if item.compute_capability_major == (12,))
        assert [*ladder.dense, *ladder.sparse[0].backends] == ["TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"]


@pytest.mark.parametrize(
    ("name", "handlers"),
    [
        ("sglang@0.5.23", ("flashinfer", "flashmla", "fa3", "fa4")),
        ("sglang@0.5.18", ("flashinfer", "flashmla", "fa3", "cutlass_mla", "fa4")),
    ],
)
def test_prefix_threshold(name: str, handlers: tuple[str, ...]) -> None:
    release = engine(name)
    assert release.prefix_threshold is not None
    assert release.prefix_threshold.tokens == 8192
    assert release.prefix_threshold.handlers == handlers
    assert {item.name for item in release.handlers}.issuperset(handlers)


def test_chunk_capacity() -> None:
    capacity = engine("sglang").chunk_capacity
    assert capacity is not None
    assert capacity.tokens == 131072


@pytest.mark.parametrize("stem", [path.stem for path in preset_files("engines")])
def test_every_entry_names_its_source_and_release(stem: str) -> None:
    release = engine(stem)
    parts = [*release.backends, *release.handlers, *((release.workspace,) if release.workspace else ())]
    sources = [item.source for item in parts]
    assert sources
    assert all(source.startswith(f"{release.engine} {release.release}, {release.engine}/") for source in sources)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"decode_threshold": 0}, "backends.0.decode_threshold"),
        ({"decode_threshold": [{"by_heads": {"16": 128}}]}, "backends.0.decode_threshold"),
        ({"decode_threshold": [{"by_heads": {"x": 128}, "otherwise": 1}]}, "backends.0.decode_threshold"),
        ({"query_len_support": "any"}, "backends.0.query_len_support"),
        ({"treshold": 1}, "backends.0.treshold"),
    ],
)
def test_a_wrong_entry_is_refused(change: dict[str, object], key: str) -> None:
    entry = {"name": "X", "kind": "dense", "source": "x.py:1"} | change
    mapping = {
        "name": "E",
        "engine": "vllm",
        "release": "1",
        "date": datetime.date(2026, 1, 1),
        "backends": [entry],
    }
    assert any(found.startswith(key) for found, _ in problems(Engine, mapping))
