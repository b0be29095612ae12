"""The mistakes that GPU figures are known for, found by holding a preset against those already known.

Each is a real one: peaks with 2:4 sparsity printed as dense, both directions of a link printed as one, a
label converted instead of read from the device, ``NVIDIA H20`` matching an H200. A finding is a suspicion
with its reason, worth a look at the source; the presets shipped here have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from .gpu import GPU

Finding = tuple[str, str]
"""The field, dotted, and what is suspicious about it."""

TOLERANCE = 0.002
"""Figures closer than this, relatively, are the same one, rounded in two ways (1979 and 2 x 989.4)."""
MOST_BANDWIDTH_TBS = 100.0
"""No announced device reaches a third of it, and the slowest one in GB/s is above it."""

_NOT_FIGURES = frozenset(
    {
        *("name", "aliases", "vendor", "architecture", "status", "notes", "expect", "sources"),
        *("measured", "calibration", "boundaries", "crossovers"),  # each names its source or run itself
    }
)


def lint(gpu: GPU, known: Sequence[GPU]) -> list[Finding]:
    """Everything suspicious about ``gpu``, field by field; empty for a clean preset.

    ``known`` are presets that are trusted, ``gpu`` itself among them or not. Those that share a name,
    alias or device name with ``gpu`` count as the same device.
    """
    same = [other for other in known if _names(gpu) & _names(other)]
    return [
        *_sparse_peaks(gpu, known, same),
        *_converted_label(gpu),
        *_bandwidth(gpu, same),
        *_both_directions(gpu, known, same),
        *_device_names(gpu, known),
        *_sources(gpu),
    ]


def _names(gpu: GPU) -> frozenset[str]:
    return frozenset(name.lower() for name in (gpu.name, *gpu.aliases, *gpu.device_names))


def _equal(value: float, other: float) -> bool:
    return abs(value - other) <= TOLERANCE * other


def _sparse_peaks(gpu: GPU, known: Sequence[GPU], same: Sequence[GPU]) -> Iterator[Finding]:
    """A peak that is twice a dense one of the same dtype: of this device, or of any if it is a new one."""
    for dtype, peak in gpu.peak_tflops.items():
        if dtype == "fp32":
            continue  # no matrix unit skips zeros in fp32
        dense = [(other, other.peak_tflops[dtype]) for other in same or known if dtype in other.peak_tflops]
        if any(_equal(peak, value) for _, value in dense):
            continue  # a known device has it, dense: the T of one part is 2T of a smaller one
        for other, value in dense:
            if _equal(peak, 2 * value):
                yield (
                    f"peak_tflops.{dtype}",
                    f"looks like a with-sparsity figure (2 x {value:g} of {other.name}); peaks are dense",
                )
                break


def _converted_label(gpu: GPU) -> Iterator[Finding]:
    """A reported size that is only the label in other units: devices report something less round."""
    label, reported = gpu.memory.label_gb, gpu.memory.reported_mib
    if label is None or reported is None:
        return
    conversions = {
        "GB x 1000": label * 1000,
        "GB x 1024": label * 1024,
        "GB x 10**9 / 2**20": round(label * 1e9 / 2**20),
    }
    for how, value in conversions.items():
        if reported == value:
            yield (
                "memory.reported_mib",
                f"is the label converted ({how}), not what a runtime reports; leave it out if not known",
            )
            return


def _bandwidth(gpu: GPU, same: Sequence[GPU]) -> Iterator[Finding]:
    """Bandwidth in the wrong unit, or with both directions counted."""
    value = gpu.memory.bandwidth_tbs
    if value > MOST_BANDWIDTH_TBS:
        yield "memory.bandwidth_tbs", f"{value:g} TB/s is more than any memory has; GB/s written as TB/s?"
        return
    for other in same:
        if _equal(value, 2 * other.memory.bandwidth_tbs):
            yield (
                "memory.bandwidth_tbs",
                f"is twice the {other.memory.bandwidth_tbs:g} TB/s of {other.name}: two devices, or both "
                "directions, counted as one",
            )
            return


def _both_directions(gpu: GPU, known: Sequence[GPU], same: Sequence[GPU]) -> Iterator[Finding]:
    """A link, or PCIe, that is twice a known one-way figure."""
    if gpu.link is not None:
        # A link's generation fixes its speed, so a device that is new is held against links of its name.
        peers = same or [other for other in known if _link_name(other) == _link_name(gpu) != ""]
        one_way = [other.link.one_way_gbs for other in peers if other.link is not None]
        yield from _twice("link.one_way_gbs", gpu.link.one_way_gbs, one_way)
    if gpu.pcie_one_way_gbs is not None:
        one_way = [other.pcie_one_way_gbs for other in same if other.pcie_one_way_gbs is not None]
        yield from _twice("pcie_one_way_gbs", gpu.pcie_one_way_gbs, one_way)


def _link_name(gpu: GPU) -> str:
    return (gpu.link.name or "").lower() if gpu.link else ""


def _twice(field: str, value: float, one_way: Sequence[float]) -> Iterator[Finding]:
    if any(_equal(value, single) for single in one_way):
        return
    for single in one_way:
        if _equal(value, 2 * single):
            yield field, f"{value:g} GB/s is twice the known {single:g}: the sum of both directions?"
            return


def _device_names(gpu: GPU, known: Sequence[GPU]) -> Iterator[Finding]:
    """Names that would match other devices: with a wildcard in them, or cut short."""
    real = {name for other in known for name in other.device_names}
    for name in gpu.device_names:
        if "*" in name or "?" in name:
            yield "device_names", f"{name!r} holds a wildcard; names are matched whole, give each of them"
        elif name not in real:
            longer = sorted(other for other in real if other.startswith(name))
            if longer:
                yield (
                    "device_names",
                    f"{name!r} begins {longer[0]!r}: matched by prefix it takes that device for this one; "
                    "give the whole name that the device reports",
                )


def _sources(gpu: GPU) -> Iterator[Finding]:
    """Figures that no source stands behind, and sources of figures that do not exist."""
    named = {field.name for field in fields(gpu)}
    given = {key for key, listed in gpu.sources.items() if listed}
    for key in sorted(given):
        if key != "default" and key.partition(".")[0] not in named:
            yield f"sources.{key}", "names no field of a GPU"
    for field in fields(gpu):
        if field.name in _NOT_FIGURES or given & {"default", field.name}:
            continue
        value = getattr(gpu, field.name)
        if is_dataclass(value):
            yield from _nested_sources(field.name, value, given)
        elif value not in (None, ()):
            yield field.name, "has no source: name where it was read under sources, or give a default there"


def _nested_sources(name: str, record: Any, given: set[str]) -> Iterator[Finding]:
    """Figures of a nested record: a source for one of them is not one for the others."""
    for field in fields(record):
        path = f"{name}.{field.name}"
        if getattr(record, field.name) is not None and path not in given:
            yield path, f"has no source: neither sources.default nor sources.{name} nor its own"
