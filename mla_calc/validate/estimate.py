"""What the calibrations of a GPU say that a measured row should take; without torch."""

from __future__ import annotations

import hashlib

from ..costs.estimates import PathEstimate, cell_of, estimate_path
from ..costs.paths import absorbed_kernels
from ..hardware.choice import TILE_ROWS
from ..hardware.gpu import GPU
from ..hardware.latency import Estimate, Unknown, estimate_kernel
from .record import Geometry, Row
from .timed import step_of

UNKNOWN_TILE = 64
"""Score rows by which the rows of a kernel are grouped whose tile is not known."""


def row_id(row: Row) -> str:
    """What a row timed, in one line: its identity, whatever the time was."""
    return (
        f"{row.scope} {row.kernel} {row.dtype}/{row.cache} h={row.heads} b={row.batch} q={row.queries} s={row.context}"
    )


def is_held_out(row: Row, seed: int, fraction: float) -> bool:
    """Whether a fit with ``seed`` that keeps out ``fraction`` of the launches keeps this row out.

    It hangs on the seed and on what was launched alone: a replay of the run finds the same rows, and rows that are
    the same launch are all kept out or all not, so that none that is kept out has a twin in the fit. Heads and
    queries count by the tiles that they fill, and a path's row goes with that of its attention kernel alone.
    """
    tiles = -(-row.heads * row.queries // TILE_ROWS.get(row.kernel, UNKNOWN_TILE))
    scope = "naive" if row.scope == "naive" else "absorbed"
    launch = f"{scope} {row.kernel} {row.dtype}/{row.cache} tiles={tiles} b={row.batch} s={row.context}"
    digest = hashlib.sha256(f"{seed} {launch}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < fraction * 2**64


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
    (mla, work), name = step_of(row, geometry), kernel or row.kernel
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
