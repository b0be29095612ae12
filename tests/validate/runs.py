"""Small recordings for the tests of the comparison: every number is made up, and nothing was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mla_calc.validate.record import Check, Geometry, Machine, MeasuredCeilings, Row, Run, Telemetry
from mla_calc.validate.recorded import Fill, Recorded, Recording, recording_of_run

HEADER = "gpu,kernel,dtype,heads,batch,queries,context,time_us"
H200_PEAK, H200_FP8_PEAK, H200_BANDWIDTH = 989.4e12, 1978.9e12, 4.8e12
"""The datasheet's figures, FLOP/s and B/s."""


def a_row(**changes: Any) -> Row:
    """A decode row: 128 heads, 32 requests, one query, 4096 keys."""
    row = Row(kernel="hopper", dtype="bf16", cache="bf16", heads=128, batch=32, queries=1, context=4096, time_us=100.0)
    return replace(row, **changes)


def a_run(*rows: Row, **changes: Any) -> Run:
    """A run of ``rows`` on an H200."""
    run = Run(
        id="20261130T013000Z-h200",
        started="2026-11-30T01:30:00+00:00",
        finished="2026-11-30T01:36:12+00:00",
        version="0.0",
        plan="full",
        seed=4,
        machine=Machine(
            gpu="NVIDIA H200 SXM 141GB",
            device_name="NVIDIA H200",
            compute_capability="9.0",
            sms=132,
            memory_bytes=150_754_820_096,
            l2_bytes=62_914_560,
            driver="580.159",
            cuda="13.0",
            torch="2.11.0",
            triton="3.6.0",
            python="3.12.3",
        ),
        geometry=Geometry(
            model="DeepSeek-V3", kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128
        ),
        ceilings=MeasuredCeilings(
            copy_bytes_per_s=4.28e12,
            read_bytes_per_s=4.51e12,
            gemm_flop_per_s={"bf16": 7.69e14},
            gemm_shapes={"bf16": (8192, 8192, 8192)},
            launch_s=2.1e-6,
        ),
        before=Telemetry(sm_mhz=1980, power_w=118.4),
        checks=(Check(kernel="hopper", case="bf16 h=16", relative_error=1.9e-3, tolerance=3e-3, correct=True),),
        rows=rows or (a_row(),),
    )
    return replace(run, **changes)


def recording(*rows: Row, **changes: Any) -> Recording:
    """The recording of such a run."""
    return recording_of_run(a_run(*rows, **changes), "run.json", Fill())


def recorded(*rows: Row) -> tuple[Recorded, ...]:
    """Its rows."""
    return recording(*rows).rows


def csv_file(folder: Path, *lines: str, header: str = HEADER) -> Path:
    """A CSV file of ``lines`` under ``header``."""
    path = folder / "rows.csv"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return path
