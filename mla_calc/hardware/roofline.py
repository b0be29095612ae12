"""The roofline: two ceilings, the ridge between them, and the bound that they put on a kernel's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import maximum, ratio
from .gpu import GPU

if TYPE_CHECKING:
    from ..arrays import Floats, Ints

BINDS = ("memory", "compute")


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Peak FLOP/s of one MMA dtype and peak memory bandwidth in B/s, as whole numbers."""

    flop_per_s: int
    bytes_per_s: int

    @property
    def ridge_flop_per_byte(self) -> float:
        """The intensity at which both ceilings take the same time."""
        return self.flop_per_s / self.bytes_per_s


def datasheet_ceilings(gpu: GPU, mma_dtype: str) -> Ceilings:
    """The datasheet's ceilings of ``gpu`` for products of ``mma_dtype`` operands.

    The peak follows the dtype of the product's operands, not that of the cache: an fp8 cache read by a bf16
    product has bf16's peak. Raises InputError where the GPU has no such peak.
    """
    return Ceilings(gpu.peak_flop_per_s(mma_dtype), gpu.bandwidth_bytes_per_s)


def bound_s(flop: Ints, bytes_moved: Ints, ceilings: Ceilings) -> Floats:
    """Least time that the ceilings allow, s: max(FLOP/peak, bytes/bandwidth). A bound, never a latency.

    Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
    """
    return maximum(ratio(flop, ceilings.flop_per_s), ratio(bytes_moved, ceilings.bytes_per_s))


def binds(flop: Ints, bytes_moved: Ints, ceilings: Ceilings) -> Any:
    """Which ceiling sets the bound, ``compute`` or ``memory``, point by point; on the ridge it is ``compute``."""
    compute = flop * ceilings.bytes_per_s >= bytes_moved * ceilings.flop_per_s
    if isinstance(compute, bool):
        return BINDS[compute]
    import numpy as np

    return np.array(BINDS, dtype=object)[np.asarray(compute, dtype=np.int8)]
