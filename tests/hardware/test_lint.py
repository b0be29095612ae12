"""Each known mistake is found, and the figure beside it that is right is not."""

from __future__ import annotations

from typing import Any

import pytest

from mla_calc.data import find_preset, preset_files, read_mapping
from mla_calc.hardware.gpu import GPU
from mla_calc.hardware.lint import lint
from mla_calc.schema import build

KNOWN = [build(GPU, read_mapping(path), str(path)) for path in preset_files("gpus")]


def found(mapping: dict[str, Any]) -> dict[str, str]:
    return dict(lint(build(GPU, mapping, "test"), KNOWN))


def shipped(name: str, **changes: Any) -> dict[str, Any]:
    """A shipped preset with some of its fields replaced; mappings are merged."""
    mapping = find_preset("gpus", name)[1]
    for key, value in changes.items():
        mapping[key] = mapping[key] | value if isinstance(value, dict) else value
    return mapping


def unknown(**changes: Any) -> dict[str, Any]:
    """A GPU that no preset shares a name with."""
    return {
        "name": "Acme One",
        "vendor": "Acme",
        "peak_tflops": {"bf16": 700},
        "memory": {"bandwidth_tbs": 3},
        "sources": {"default": ["Acme One datasheet"]},
    } | changes


@pytest.mark.parametrize("preset", KNOWN, ids=lambda preset: preset.name)
def test_shipped_presets_are_clean(preset: GPU) -> None:
    assert lint(preset, KNOWN) == []


def test_an_unknown_gpu_with_a_source_is_clean() -> None:
    assert found(unknown()) == {}


@pytest.mark.parametrize(
    ("name", "dtype", "sparse"),
    [
        ("h100", "bf16", 1979),  # pytorch's device_info.py, whose header says that sparsity is not considered
        ("h100", "fp8", 3958),
        ("l4", "bf16", 242),
        ("h100-pcie", "bf16", 1513),
        ("l40s", "fp8", 1466),
        ("b200", "fp4", 18000),
        ("thor", "fp8", 1035),
        ("rtx-pro-6000-ws", "bf16", 1007.6),
        ("mi355x", "fp8", 10066),
    ],
)
def test_a_sparse_peak(name: str, dtype: str, sparse: float) -> None:
    findings = found(shipped(name, peak_tflops={dtype: sparse}))
    assert list(findings) == [f"peak_tflops.{dtype}"]
    assert "with-sparsity" in findings[f"peak_tflops.{dtype}"]


def test_the_finding_names_the_dense_figure() -> None:
    assert (
        "(2 x 989.4 of NVIDIA H100 SXM5 80GB)" in found(shipped("h100", peak_tflops={"bf16": 1979}))["peak_tflops.bf16"]
    )


@pytest.mark.parametrize("value", [989, 1970, 1990, 494.7])
def test_not_quite_twice(value: float) -> None:
    assert found(shipped("h100", peak_tflops={"bf16": value})) == {}


def test_int8_and_fp8_at_twice_bf16_are_dense() -> None:
    assert found(unknown(peak_tflops={"bf16": 989.4, "fp8": 1978.9, "int8": 1978.9})) == {}


def test_fp32_has_no_sparse_rate() -> None:
    assert found(unknown(peak_tflops={"fp32": 133.8})) == {}  # 2 x the H100's 66.9


def test_a_sparse_peak_of_a_gpu_that_is_not_known() -> None:
    assert "peak_tflops.bf16" in found(unknown(peak_tflops={"bf16": 1979}))


def test_twice_one_part_and_the_dense_peak_of_another() -> None:
    assert found(unknown(peak_tflops={"bf16": 918})) == {}  # TPU v6e; TPU v5p has 459


@pytest.mark.parametrize("converted", [141_000, 144_384, 134_468])  # x 1000, x 1024, 141e9 / 2**20
def test_a_label_converted(converted: int) -> None:
    assert list(found(shipped("h200", memory={"reported_mib": converted}))) == ["memory.reported_mib"]


@pytest.mark.parametrize("reported", [143_156, 143_771])  # CUDA runtime, nvidia-smi
def test_memory_that_a_device_reports(reported: int) -> None:
    assert found(shipped("h200", memory={"reported_mib": reported})) == {}


def test_a_bandwidth_in_gb_per_second() -> None:
    assert "GB/s written as TB/s" in found(unknown(memory={"bandwidth_tbs": 3350}))["memory.bandwidth_tbs"]


def test_the_fastest_announced_memory_is_possible() -> None:
    assert found(unknown(memory={"bandwidth_tbs": 23.3})) == {}


def test_the_bandwidth_of_two_devices() -> None:
    assert list(found(shipped("mi250x", memory={"bandwidth_tbs": 3.277}))) == ["memory.bandwidth_tbs"]


def test_another_bandwidth_in_circulation() -> None:
    assert found(shipped("b200", memory={"bandwidth_tbs": 8.0})) == {}


@pytest.mark.parametrize(("name", "both"), [("h100", 900), ("h800", 400), ("b200", 1800), ("tpu-v6e", 800)])
def test_a_link_in_both_directions(name: str, both: float) -> None:
    assert list(found(shipped(name, link={"one_way_gbs": both}))) == ["link.one_way_gbs"]


def test_a_link_of_an_unknown_gpu_is_known_by_its_name() -> None:
    assert list(found(unknown(link={"one_way_gbs": 900, "name": "NVLink4"}))) == ["link.one_way_gbs"]
    assert found(unknown(link={"one_way_gbs": 900, "name": "NVLink5"})) == {}
    assert found(unknown(link={"one_way_gbs": 900})) == {}


def test_pcie_in_both_directions() -> None:
    assert list(found(shipped("h100", pcie_one_way_gbs=128))) == ["pcie_one_way_gbs"]
    assert found(shipped("b300", pcie_one_way_gbs=128)) == {}


@pytest.mark.parametrize("pattern", ["NVIDIA H100*", "NVIDIA H?00"])
def test_a_wildcard(pattern: str) -> None:
    findings = found(shipped("h100", device_names=[pattern]))
    assert "wildcard" in findings["device_names"]


@pytest.mark.parametrize(("name", "cut"), [("a100", "NVIDIA A100"), ("gh200", "NVIDIA GH200")])
def test_a_name_cut_short(name: str, cut: str) -> None:
    assert "matched by prefix" in found(shipped(name, device_names=[cut]))["device_names"]


@pytest.mark.parametrize("name", ["h20", "l4", "rtx-4090"])
def test_a_real_name_that_begins_another(name: str) -> None:
    assert found(shipped(name)) == {}  # NVIDIA H20 and NVIDIA H200, NVIDIA L4 and NVIDIA L40S


def test_figures_without_a_source() -> None:
    bare = unknown(tdp_w=300, sources={})
    assert list(found(bare)) == ["peak_tflops", "memory.bandwidth_tbs", "tdp_w"]
    named = unknown(tdp_w=300, sources={"peak_tflops": ["a"], "memory.bandwidth_tbs": ["b"], "tdp_w": []})
    assert list(found(named)) == ["tdp_w"]
    assert found(unknown(tdp_w=300)) == {}
    # a source for one figure of the memory is none for the others
    half = unknown(
        memory={"bandwidth_tbs": 3.0, "reported_mib": 81089},
        sources={"peak_tflops": ["a"], "memory.reported_mib": ["b"]},
    )
    assert list(found(half)) == ["memory.bandwidth_tbs"]


def test_a_source_of_no_field() -> None:
    assert "sources.tpd_w" in found(unknown(sources={"default": ["a"], "tpd_w": ["b"]}))


def test_without_known_gpus_only_the_figures_themselves_are_judged() -> None:
    sparse = build(GPU, unknown(peak_tflops={"bf16": 1979}), "test")
    assert lint(sparse, []) == []
