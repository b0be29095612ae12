"""The roofline of MLA's two paths: roofs, ridges, and a point for every kernel (docs/cost-model.md, section 5).

Roofs are those of a GPU's preset: the datasheet's, and apart from them what was measured. A point's bound puts it on
its roof; an estimate or a measurement puts it below, and what stands above a roof is an error somewhere: of the count,
of the time, or of what it is compared with. Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..hardware.gpu import DTYPES, GPU, Measured
from ..hardware.roofline import Ceilings, binds, bound_s
from .flops import FlopsCost, KernelCost, PathCost
from .paths import Kernel

Kind = Literal["bound", "estimate", "measured"]
LEVELS = ("memory", "link", "pcie")
"""Where bytes come from: the GPU's memory, the other GPUs of the node, the host."""
SLACK = 1e-9
"""Relative slack of a roof: what turning seconds into rates may lose."""
_GEMM = re.compile(r"(" + "|".join(DTYPES) + r")_gemm_tflops")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One ceiling: of compute, whose ``level`` is ``None``, or of a memory level, whose ``dtype`` is."""

    gpu: str
    dtype: str | None
    level: str | None
    kind: str
    """``datasheet`` or ``measured``."""
    value: float
    unit: str
    """``flop_per_s``, dense; or ``byte_per_s``, of a link in one direction."""
    source: str | None
    date: str | None
    """Of a measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """Where a compute roof and a memory roof of one kind meet; of several measured values the highest."""

    gpu: str
    dtype: str
    level: str
    kind: str
    ridge_flop_per_byte: float
    flop_per_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsTimesQueries:
    """Heads per rank times queries at which absorbed attention reaches the ridge."""

    gpu: str
    dtype: str
    by_context: float | None
    """By what grows with the context alone; ``None`` under sparse attention, whose indexer no TP divides."""
    with_query_and_output: float | None
    """With the query's and the output's bytes at this context; ``None``: at no number of queries up to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One kernel's place under the roofs of a GPU, per rank and layer."""

    gpu: str
    kind: Kind
    path: str
    kernel: str
    implementation: str | None
    """Whose kernel was measured; ``None``: a bound, or an estimate."""
    dtype: str
    """Of the products' operands: whose peak is the roof."""
    tp: int | None
    """``None``: the heads that were measured are no whole share of the model's."""
    heads: int
    batch: int
    queries: int
    context: int
    flop: int
    bytes: int
    cache_bytes: int
    weight_bytes: int
    activation_bytes: int
    intensity_flop_per_byte: float
    time_s: float
    flop_per_s: float
    bound_s: float
    binds: str
    time_share: float | None
    """Of the time of its path's parts; ``None``: the kernel was measured alone."""
    roof_share: float
    """The rate over the roof at this intensity: 1 for a bound."""
    peak_share: float
    above_roof: bool
    cause: str | None
    """What may be behind a point above its roof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The axes of a point; ``heads`` are those of one rank."""

    tp: int | None
    heads: int
    batch: int
    queries: int
    context: int


def roofs_of(gpu: GPU, dtypes: Iterable[str]) -> tuple[Roof, ...]:
    """The datasheet's roofs of ``gpu`` for products of ``dtypes``, every memory level, and the measured ones.

    Raises:
        InputError: the GPU has no peak of a dtype.
    """
    dtypes = tuple(dtypes)
    sheet = [
        _sheet(gpu, "peak_tflops", gpu.peak_flop_per_s(dtype), dtype=dtype, level=None, unit="flop_per_s")
        for dtype in dtypes
    ]
    sheet.append(
        _sheet(gpu, "memory", gpu.bandwidth_bytes_per_s, dtype=None, level="memory", unit="byte_per_s")
    )  # fmt: skip
    for level, field, gbs in (
        ("link", "link", gpu.link.one_way_gbs if gpu.link else None),
        ("pcie", "pcie_one_way_gbs", gpu.pcie_one_way_gbs),
    ):
        if gbs is not None:
            sheet.append(_sheet(gpu, field, round(gbs * 1e9), dtype=None, level=level, unit="byte_per_s"))
    measured = [roof for item in gpu.measured if (roof := _measured(gpu, item, dtypes))]
    return (*sheet, *measured)


def _sheet(gpu: GPU, field: str, value: int, *, dtype: str | None, level: str | None, unit: str) -> Roof:
    read = gpu.sources.get(field) or gpu.sources.get("default") or ()
    return Roof(
        gpu=gpu.name,
        dtype=dtype,
        level=level,
        kind="datasheet",
        value=value,
        unit=unit,
        source="; ".join(read) or None,
        date=None,
    )


def _measured(gpu: GPU, item: Measured, dtypes: Sequence[str]) -> Roof | None:
    """The roof that a measured ceiling is, if it is one of these dtypes or of memory."""
    gemm = _GEMM.fullmatch(item.quantity)
    if item.quantity != "memory_tbs" and (gemm is None or gemm[1] not in dtypes):
        return None
    return measured_roof(
        gpu.name, gemm[1] if gemm else None, round(item.value * 1e12), item.source, item.date.isoformat()
    )


def measured_roof(gpu: str, dtype: str | None, value: float, source: str, date: str) -> Roof:
    """A measured ceiling in FLOP/s of a ``dtype`` or, without one, of memory in B/s."""
    return Roof(
        gpu=gpu,
        dtype=dtype,
        level=None if dtype else "memory",
        kind="measured",
        value=value,
        unit="flop_per_s" if dtype else "byte_per_s",
        source=source,
        date=date,
    )


def ridges_of(roofs: Sequence[Roof]) -> tuple[Ridge, ...]:
    """The ridge of every dtype with every memory level, datasheet with datasheet and measured with measured."""
    highest: dict[tuple[str, str, str | None, str | None], float] = {}
    for roof in roofs:
        key = (roof.gpu, roof.kind, roof.dtype, roof.level)
        highest[key] = max(roof.value, highest.get(key, 0.0))
    return tuple(
        Ridge(
            gpu=gpu,
            dtype=dtype,
            level=level,
            kind=kind,
            ridge_flop_per_byte=peak / bandwidth,
            flop_per_s=peak,
            bytes_per_s=bandwidth,
        )
        for (gpu, kind, dtype, _), peak in highest.items()
        if dtype
        for (other, its_kind, _, level), bandwidth in highest.items()
        if level and (other, its_kind) == (gpu, kind)
    )


def points_of(cost: FlopsCost, gpu: GPU, dtype: str, ceilings: Ceilings, heads: int) -> list[Point]:
    """Both paths' kernels at their bounds, and at their estimates where there are any; ``heads`` are a rank's."""
    step = Step(tp=cost.tp, heads=heads, batch=cost.batch, queries=cost.queries, context=cost.context)
    return [
        point
        for name, path in (("absorbed", cost.absorbed), ("naive", cost.naive))
        for point in _of_path(name, path, step, gpu, dtype, ceilings)
    ]


def _of_path(name: str, path: PathCost, step: Step, gpu: GPU, dtype: str, ceilings: Ceilings) -> list[Point]:
    assert path.bound_s is not None
    parts = sum(part.estimate_s for part in path.estimated.parts if part.estimate_s > 0) if path.estimated else 0.0
    kinds: tuple[Kind, ...] = ("bound", "estimate")
    found = []
    for kind in kinds:
        whole = path.bound_s if kind == "bound" else parts
        for kernel in path.kernels:
            seconds = kernel.bound_s if kind == "bound" else kernel.estimate_s
            if seconds is not None:
                share = seconds / whole
                found.append(
                    point(kernel, step, gpu, ceilings, kind, path=name, dtype=dtype, seconds=seconds, time_share=share)
                )
    return found


def point(
    kernel: Kernel | KernelCost,
    step: Step,
    gpu: GPU,
    ceilings: Ceilings,
    kind: Kind,
    *,
    path: str,
    dtype: str,
    seconds: float,
    time_share: float | None = None,
    implementation: str | None = None,
    l2_bytes: float | None = None,
) -> Point:
    """A kernel that takes ``seconds``, under the roof of ``ceilings``; ``l2_bytes`` other than the preset's."""
    flop, moved = kernel.flop, kernel.bytes
    bound: float = bound_s(flop, moved, ceilings)
    rate = flop / seconds
    above = seconds < bound * (1 - SLACK)
    held = l2_bytes or (gpu.l2_mib * (1 << 20) if gpu.l2_mib else None)
    return Point(
        gpu=gpu.name,
        kind=kind,
        path=path,
        kernel=kernel.name,
        implementation=implementation,
        dtype=dtype,
        tp=step.tp,
        heads=step.heads,
        batch=step.batch,
        queries=step.queries,
        context=step.context,
        flop=flop,
        bytes=moved,
        cache_bytes=kernel.cache_bytes,
        weight_bytes=kernel.weight_bytes,
        activation_bytes=kernel.activation_bytes,
        intensity_flop_per_byte=flop / moved,
        time_s=seconds,
        flop_per_s=rate,
        bound_s=bound,
        binds=binds(flop, moved, ceilings),
        time_share=time_share,
        roof_share=bound / seconds,
        peak_share=rate / ceilings.flop_per_s,
        above_roof=above,
        cause=likely_cause(rate / ceilings.flop_per_s, moved, held) if above else None,
    )


def likely_cause(peak_share: float, bytes_moved: int, l2_bytes: float | None) -> str:
    """What may be behind a rate above the roof: a cache saves bytes, and nothing but a wrong number saves FLOPs."""
    if peak_share > 2 * (1 + SLACK):
        return "over twice the dense peak: a wrong dtype, device or unit"
    if peak_share > 1 + SLACK:
        return "up to twice the dense peak: a sparse (2:4) peak, a narrower dtype, or FLOPs counted twice"
    moved = f"{bytes_moved / 1e6:,.1f} MB"
    if l2_bytes is None:
        return f"cache hits, if L2, whose size is not known, holds the {moved}; else a wrong time or byte count"
    cache = f"the {l2_bytes / 1e6:,.1f} MB of L2"
    if bytes_moved <= l2_bytes:
        return f"cache hits: {moved} fit into {cache}"
    return f"a wrong time, device or byte count: {moved} do not fit into {cache}"
