"""A GPU as the cost model sees it: ceilings from the datasheet, and, apart from them, what was measured."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from annotated_types import MinLen
from pydantic import StringConstraints

from ..errors import InputError
from ..expected import Expected
from ..schema import STRICT, Dimension, Quantity, Text
from .calibration import Boundary, Calibration
from .crossovers import Crossovers

Dtype = Literal["bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32"]
DTYPES: tuple[str, ...] = get_args(Dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Device memory. The label is marketing; what fits is decided by what the runtime reports."""

    __pydantic_config__ = STRICT

    bandwidth_tbs: Quantity
    """Peak bandwidth, decimal TB/s."""
    type: Text | None = None
    label_gb: Quantity | None = None
    """The number in the product's name. It follows no one convention of units."""
    reported_mib: Dimension | None = None
    """What the driver reports, MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The link to the other GPUs of the node."""

    __pydantic_config__ = STRICT

    one_way_gbs: Quantity
    """Decimal GB/s in one direction; marketing mostly quotes the sum of both."""
    name: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured ceiling. Never mixed with the peaks."""

    __pydantic_config__ = STRICT

    quantity: Text
    """What was measured, with its unit: ``bf16_gemm_tflops``, ``memory_tbs``, ``mla_decode_bf16_tflops``."""
    value: Quantity
    source: Text
    date: datetime.date
    """When it was measured or, where only that is known, when the source that reports it was written."""
    note: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GPU:
    """A GPU as software sees one device. Peaks are dense (no 2:4 sparsity) with fp32 accumulation."""

    __pydantic_config__ = STRICT

    name: Text
    aliases: tuple[Text, ...] = ()
    device_names: tuple[Text, ...] = ()
    """Exactly what the runtime reports; matched whole, since ``NVIDIA H20`` begins ``NVIDIA H200``."""
    vendor: Text
    architecture: Text | None = None
    status: Text | None = None
    compute_capability: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}\.[0-9]$")] | None = None
    sms: Dimension | None = None
    """Streaming multiprocessors, compute units or cores."""
    clock_mhz: Quantity | None = None
    """The clock at which the peaks hold."""
    peak_tflops: Annotated[Mapping[Dtype, Quantity], MinLen(1)]
    """Dense peak per dtype of the matrix product's operands, TFLOP/s (TOP/s for int8)."""
    memory: Memory
    l2_mib: Quantity | None = None
    shared_memory_per_sm_kib: Quantity | None = None
    link: Link | None = None
    pcie_one_way_gbs: Quantity | None = None
    tdp_w: Quantity | None = None
    measured: tuple[Measured, ...] = ()
    calibration: tuple[Calibration, ...] = ()
    """Constants of the estimate, of kernels that were measured on this GPU; written by `validate --calibrate`."""
    boundaries: tuple[Boundary, ...] = ()
    """What whole paths took beyond the sum of their parts; written by `validate --calibrate`."""
    crossovers: tuple[Crossovers, ...] = ()
    """Where the naive path overtook the absorbed one in runs on this GPU; written by `validate --calibrate`."""
    notes: tuple[Text, ...] = ()
    expect: tuple[Expected, ...] = ()
    sources: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    """Where each figure was read, by field name; ``default`` covers the fields not named."""

    def peak_flop_per_s(self, dtype: str) -> int:
        """Dense peak for products of ``dtype`` operands, FLOP/s.

        Raises:
            InputError: this GPU has no such peak (``InputError`` lists those that it has).
        """
        peaks: Mapping[str, float] = self.peak_tflops  # type: ignore[assignment]  # a key of another type is absent
        if dtype not in peaks:
            raise InputError(f"{self.name} has no {dtype} peak; it has {', '.join(peaks)}")
        return round(peaks[dtype] * 1e12)

    @property
    def capability_major(self) -> int | None:
        """The major of the CUDA compute capability; ``None`` for a GPU that has none."""
        return int(self.compute_capability.split(".")[0]) if self.compute_capability else None

    @property
    def bandwidth_bytes_per_s(self) -> int:
        """Peak memory bandwidth, B/s."""
        return round(self.memory.bandwidth_tbs * 1e12)
