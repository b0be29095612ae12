"""How far estimates are off, in one figure for many cells: of a fit's held-out rows and of a comparison alike."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median, quantiles

from ..hardware.calibration import Errors


def errors_of(pairs: Iterable[tuple[float, float]]) -> Errors | None:
    """Absolute relative errors of (estimated, measured) pairs, in one unit; ``None`` without any pair.

    The 90th percentile interpolates between two of them.
    """
    signed = [(estimated - measured) / measured for estimated, measured in pairs]
    if not signed:
        return None
    errors = [abs(error) for error in signed]
    p90 = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    return Errors(
        count=len(errors),
        median_ape=median(errors),
        mean_ape=fmean(errors),
        p90_ape=p90,
        median_error=median(signed),
    )
