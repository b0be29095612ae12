"""The shipped GPUs: each file is a valid record, and its figures are the published ones."""

from __future__ import annotations

import pytest

from mla_calc.data import find_preset, names_of, preset_files, read_mapping
from mla_calc.hardware.gpu import GPU
from mla_calc.schema import build


def gpu(name: str) -> GPU:
    path, mapping = find_preset("gpus", name)
    return build(GPU, mapping, str(path))


def all_gpus() -> list[GPU]:
    return [build(GPU, read_mapping(path), str(path)) for path in preset_files("gpus")]


def ridge(name: str, dtype: str) -> float:
    preset = gpu(name)
    return preset.peak_flop_per_s(dtype) / preset.bandwidth_bytes_per_s


def test_at_least_thirty_presets_are_valid() -> None:
    assert len(all_gpus()) >= 30


@pytest.mark.parametrize(
    ("alias", "stem"),
    [
        ("a100", "a100-sxm-80gb"),
        ("h100", "h100-sxm5-80gb"),
        ("H100-SXM", "h100-sxm5-80gb"),
        ("h100-pcie", "h100-pcie-80gb"),
        ("h100-nvl", "h100-nvl-94gb"),
        ("h200", "h200-sxm-141gb"),
        ("h20", "h20-96gb"),
        ("h800", "h800-sxm5-80gb"),
        ("gh200", "gh200-96gb"),
        ("b200", "b200-sxm-180gb"),
        ("gb200", "gb200-186gb"),
        ("b300", "b300-sxm-288gb"),
        ("gb300", "gb300-279gb"),
        ("l40s", "l40s-48gb"),
        ("l4", "l4-24gb"),
        ("a10g", "a10g-24gb"),
        ("rtx-pro-6000", "rtx-pro-6000-blackwell-server"),
        ("rtx-4090", "rtx-4090-24gb"),
        ("rtx-5090", "rtx-5090-32gb"),
        ("gb10", "dgx-spark-gb10"),
        ("dgx-spark", "dgx-spark-gb10"),
        ("thor", "jetson-thor-t5000"),
        ("mi250x", "mi250x-gcd"),
        ("mi300x", "mi300x"),
        ("mi325x", "mi325x"),
        ("mi355x", "mi355x"),
        ("gaudi-3", "gaudi3"),
        ("ironwood", "tpu-7x-ironwood"),
    ],
)
def test_alias(alias: str, stem: str) -> None:
    assert find_preset("gpus", alias)[0].stem == stem


def test_no_name_is_claimed_twice() -> None:
    owners: dict[str, str] = {}
    for path in preset_files("gpus"):
        for name in {known.lower() for known in names_of(read_mapping(path), path)}:
            assert owners.setdefault(name, path.stem) == path.stem, name


def test_no_device_name_is_claimed_twice() -> None:
    names = [name for preset in all_gpus() for name in preset.device_names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "flop_per_clock_and_sm", "published"),
    [
        ("a100-sxm-40gb", 2048, 312),
        ("a100", 2048, 312),
        ("a100-pcie-40gb", 2048, 312),
        ("a100-pcie", 2048, 312),
        ("h100", 4096, 989.4),
        ("h200", 4096, 989.4),
        ("h800", 4096, 989.4),
        ("gh200", 4096, 989.4),
        ("gh200-144gb", 4096, 989.4),
        ("thor", 8192, 258.5),
        ("rtx-pro-6000-ws", 1024, 503.8),
        ("rtx-pro-6000", 1024, 467.8),
        ("rtx-4090", 512, 165.2),
        ("mi250x", 1024, 191.5),
        ("mi300x", 2048, 1307.4),
        ("mi325x", 2048, 1307.4),
        ("mi355x", 4096, 2516.6),
    ],
)
def test_the_bf16_peak_is_sms_times_clock(name: str, flop_per_clock_and_sm: int, published: float) -> None:
    preset = gpu(name)
    assert preset.peak_tflops["bf16"] == published
    assert preset.sms is not None
    assert preset.clock_mhz is not None
    computed = preset.sms * flop_per_clock_and_sm * preset.clock_mhz / 1e6
    assert computed == pytest.approx(published, rel=0.003)


def test_each_preset_with_sms_and_a_clock_is_checked_above() -> None:
    both = {preset.name for preset in all_gpus() if preset.sms and preset.clock_mhz}
    assert len(both - {gpu("gaudi3").name}) == 17  # Gaudi 3: its sms are matrix engines of another kind


def test_h20_is_capped_below_its_sms() -> None:
    preset = gpu("h20")
    assert (preset.sms, preset.clock_mhz) == (78, None)  # 78 x 4096 x 1830 MHz would be 585 TFLOP/s
    assert preset.peak_tflops["bf16"] == 148


@pytest.mark.parametrize(
    ("name", "dtype", "flop_per_byte"),
    [
        ("h100", "bf16", 295.34),  # 989.4 / 3.35
        ("h100", "fp8", 590.72),  # 1978.9 / 3.35
        ("h200", "bf16", 206.13),  # 989.4 / 4.8
        ("h800", "bf16", 295.34),
        ("h20", "bf16", 37.0),  # 148 / 4
        ("a100", "bf16", 153.02),  # 312 / 2.039
        ("b200", "bf16", 292.21),  # 2250 / 7.7
        ("gb200", "bf16", 312.5),  # 2500 / 8
        ("b300", "fp4", 1741.94),  # 13500 / 7.75
        ("l40s", "bf16", 419.04),  # 362.05 / 0.864
        ("rtx-4090", "bf16", 163.89),  # 165.2 / 1.008
        ("mi300x", "fp8", 493.38),  # 2614.9 / 5.3
    ],
)
def test_ridge(name: str, dtype: str, flop_per_byte: float) -> None:
    assert ridge(name, dtype) == pytest.approx(flop_per_byte, abs=0.005)


def test_h100_as_published() -> None:
    preset = gpu("h100")
    assert preset.peak_flop_per_s("bf16") == 989_400_000_000_000
    assert preset.bandwidth_bytes_per_s == 3_350_000_000_000
    assert preset.device_names == ("NVIDIA H100 80GB HBM3",)
    assert preset.compute_capability == "9.0"
    assert preset.memory.reported_mib == 81089
    assert preset.link is not None
    assert preset.link.one_way_gbs == 450
    assert preset.expect[0].value == 295


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("h200", 143156),
        ("b200", 182642),
        ("gb200", 189471),
        ("b300", 275040),
        ("gb300", 284208),
        ("h20", 97285),
    ],
)
def test_reported_memory(name: str, mib: int) -> None:
    assert gpu(name).memory.reported_mib == mib


def test_int8_does_not_follow_fp8_on_blackwell_ultra() -> None:
    assert gpu("b300").peak_tflops["int8"] == 153.5
    assert gpu("gb300").peak_tflops["int8"] == 165


@pytest.mark.parametrize("name", ["a100", "h100", "a10g", "rtx-4090"])
def test_no_fp4_before_blackwell(name: str) -> None:
    assert "fp4" not in gpu(name).peak_tflops


def test_geforce_has_the_halved_rate() -> None:
    assert gpu("rtx-4090").peak_tflops["bf16"] == 165.2
    assert gpu("rtx-5090").peak_tflops["bf16"] == 209.5


def test_two_devices_in_a_package_are_one_device_each() -> None:
    half = gpu("mi250x")
    assert (half.sms, half.peak_tflops["bf16"], half.memory.label_gb) == (110, 191.5, 64)
    die = gpu("910c")
    assert (die.peak_tflops["bf16"], die.memory.bandwidth_tbs, die.memory.label_gb) == (376, 1.6, 64)


def test_only_nvidia_has_a_compute_capability() -> None:
    for preset in all_gpus():
        if preset.vendor != "NVIDIA":
            assert preset.compute_capability is None, preset.name  # gfx942 reads like sm_94


def test_announced_parts_say_so() -> None:
    assert gpu("rubin").status == "announced"
    assert gpu("mi455x").status == "announced"


def test_measurements_stay_below_the_peak_of_their_dtype() -> None:
    for preset in all_gpus():
        for item in preset.measured:
            dtype, _, rest = item.quantity.partition("_")
            if rest == "gemm_tflops":
                assert item.value < preset.peak_tflops[dtype], (preset.name, item.quantity)  # type: ignore[index]
            if item.quantity == "memory_tbs":
                assert item.value < preset.memory.bandwidth_tbs, preset.name


def test_sources_are_spelled_out() -> None:
    for preset in all_gpus():
        for key, listed in preset.sources.items():
            assert all(len(source) > 15 for source in listed), (preset.name, key)
