"""The estimate of a measured row, by what its GPU's preset holds of calibrations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..hardware.latency import Estimate, Unknown
from .estimate import estimate_row, is_held_out
from .operands import OUR_KERNELS
from .recorded import Recorded

SIXTEEN_BIT = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """An estimate of one row, s."""

    time_s: float
    constant_s: float
    """The part that does not grow with the FLOPs and bytes that the roofline counts: t0, the merge of splits, and what
    a whole path takes beyond its parts."""
    memory_s: float
    """What memory takes where it binds; of a path, over its kernels."""
    compute_s: float
    kernel: str
    """Whose calibration it is: the row's own kernel, or the one asked for."""
    runs: tuple[str, ...] = ()
    """The runs that the constants were fitted to."""
    held_out: bool | None = None
    """Whether the fit left this row out; ``None``: the constants are of another run."""

    @property
    def regime(self) -> str:
        """``latency`` where the estimate is mostly its constant part, else what takes more of the rest."""
        if self.constant_s > self.time_s / 2:
            return "latency"
        return "memory" if self.memory_s > self.compute_s else "compute"


Predict = Callable[[Recorded], Prediction | None]
"""The estimate of a row; ``None`` where nothing is calibrated for it."""


def predictor(kernel: str | None, run: str | None) -> Predict:
    """Estimates by the calibration of each row's kernel on its GPU.

    Args:
        kernel: whose calibration stands in for rows whose own kernel has none; a naive path, which has no
            attention kernel of ours in it, is not estimated so. ``None``: nothing stands in.
        run: id of the run that the rows are of: of its rows a fit may have left some out.
    """

    def predict(item: Recorded) -> Prediction | None:
        if not any(known.cache == item.row.cache for known in item.gpu.calibration):
            return None
        found = _prediction(item, item.row.kernel, run)
        if found is None and kernel is not None and item.row.scope != "naive":
            found = _prediction(item, kernel, run)
        return found

    return predict


def _prediction(item: Recorded, kernel: str, run: str | None) -> Prediction | None:
    widened = kernel in OUR_KERNELS and item.row.dtype not in SIXTEEN_BIT
    row = replace(item.row, kernel=kernel, dtype="bf16") if widened else replace(item.row, kernel=kernel)
    found = estimate_row(item.gpu, row, item.geometry)
    if isinstance(found, Unknown):
        return None
    parts = (found,) if isinstance(found, Estimate) else tuple(part for _, part in found.parts)
    beyond_s = 0.0 if isinstance(found, Estimate) else found.boundary_s
    fits = [part.calibration.fit for part in parts if part.calibration.run == run]
    return Prediction(
        time_s=found.seconds,
        constant_s=sum(part.t0_s + part.combine_s for part in parts) + beyond_s,
        memory_s=sum(part.memory_s for part in parts if part.memory_s > part.compute_s),
        compute_s=sum(part.compute_s for part in parts if part.compute_s >= part.memory_s),
        kernel=kernel,
        runs=tuple(dict.fromkeys(part.calibration.run for part in parts)),
        held_out=is_held_out(row, fits[0].seed, fits[0].holdout) if fits else None,
    )
