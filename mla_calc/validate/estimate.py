"""What the calibrations of a GPU say that a measured row should take; without torch."""

from __future__ import annotations

import hashlib
from functools import cache

from ..costs.estimates import PathEstimate, cell_of, estimate_path
from ..costs.layouts import Layout, latent_row_bytes, load_layout
from ..costs.paths import Work, absorbed_kernels
from ..hardware.calibration import Estimate, Unknown, estimate_kernel
from ..hardware.gpu import GPU
from ..models.attention import MLA
from .record import Geometry, Row


def row_id(row: Row) -> str:
    """What a row timed, in one line: its identity, whatever the time was."""
    return (
        f"{row.scope} {row.kernel} {row.dtype}/{row.cache} h={row.heads} b={row.batch} q={row.queries} s={row.context}"
    )


def is_held_out(row: Row, seed: int, fraction: float) -> bool:
    """Whether a fit with ``seed`` that keeps out ``fraction`` of the rows keeps this one out.

    It hangs on the seed and on what the row timed alone: a replay of the run finds the same rows.
    """
    digest = hashlib.sha256(f"{seed} {row_id(row)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < fraction * 2**64


def row_mla(row: Row, geometry: Geometry) -> MLA:
    """The attention that a row measured, with the rank's heads as all there are."""
    return MLA(
        heads=row.heads,
        hidden_size=row.heads * geometry.v_head_dim,  # no kernel here reads the residual stream
        kv_lora_rank=geometry.kv_lora_rank,
        qk_nope_head_dim=geometry.qk_nope_head_dim,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        v_head_dim=geometry.v_head_dim,
        q_lora_rank=None,
    )


def row_work(row: Row, geometry: Geometry) -> Work:
    """The step that a row timed, as the cost model counts it.

    Raises:
        InputError: the row's cache is no layout, or one that is not defined for these widths.
    """
    return Work(
        queries=row.queries,
        context=row.context,
        row_bytes=latent_row_bytes(_layout(row.cache), row_mla(row, geometry)),
        batch=row.batch,
    )


@cache
def _layout(name: str) -> Layout:
    """The layout of that name, read once: a run has thousands of rows of a few."""
    return load_layout(name)


def estimate_row(
    gpu: GPU, row: Row, geometry: Geometry, kernel: str | None = None
) -> Estimate | PathEstimate | Unknown:
    """The estimate of a row: of the attention kernel, or of a whole path by the sum over its kernels.

    Args:
        gpu: the GPU whose calibrations are used.
        row: what was timed.
        geometry: the attention's widths.
        kernel: price the row as this kernel instead of its own.
    """
    mla, work, name = row_mla(row, geometry), row_work(row, geometry), kernel or row.kernel
    if row.scope != "attention":
        return estimate_path(gpu, row.scope, mla, work, dtype=row.dtype, cache=row.cache, kernel=name)
    attention = absorbed_kernels(mla, work)[1]
    cell = cell_of(mla, work)
    return estimate_kernel(
        gpu, "absorbed", attention.name, row.dtype, row.cache, name, cell, attention.flop, attention.bytes
    )


def estimate_row_s(gpu: GPU, row: Row, geometry: Geometry, kernel: str | None = None) -> float | None:
    """The estimate of a row, s; ``None`` without a calibration of its kernel, or outside of what that measured."""
    found = estimate_row(gpu, row, geometry, kernel)
    return None if isinstance(found, Unknown) else found.seconds
