"""What a report says about estimates: where their constants come from, and why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..costs.estimated_crossover import PathErrors
from ..costs.estimates import Source
from ..hardware.gpu import GPU
from ..report import format as fmt

MOST_REASONS = 3


def notes(gpu: GPU, sources: Iterable[Source], unknown: Iterable[str], kernels: Iterable[str | None] = ()) -> list[str]:
    """The notes of a report on ``gpu``.

    Args:
        gpu: the GPU asked for.
        sources: the runs that estimates rest on.
        unknown: why a path or step has no estimate.
        kernels: the implementations that estimates are of.
    """
    if not gpu.calibration:
        return [f"No calibration of {gpu.name} in its preset: there is no estimate of a latency, only bounds."]
    listed = [f"run {source.run} of {source.date}" for source in dict.fromkeys(sources)]
    found = []
    if listed:
        found.append(f"An estimate is a latency, by constants measured on {gpu.name}: {', '.join(listed)}.")
        names = ", ".join(dict.fromkeys(name for name in kernels if name))
        found.append(f"It is of the kernels that this tool ran there ({names}), not of an engine's own.")
    reasons = list(dict.fromkeys(unknown))
    found += [f"No estimate where {reason}." for reason in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        further = fmt.counted(len(reasons) - MOST_REASONS, "further reason")
        found.append(f"No estimate for {further} of that kind.")
    return found


def error_notes(errors: Sequence[PathErrors]) -> list[str]:
    """How far the estimates of two paths are off, beside where they cross."""
    if not errors:
        return ["How far estimates of whole paths are off is not stated in the GPU's preset."]
    each = (
        f"{item.kernel} {fmt.error_percent(item.median_ape)} and {fmt.error_percent(item.p90_ape)}" for item in errors
    )
    return [
        "Estimates of whole paths were off, in the median and at the 90th percentile of held-out cells, by: "
        f"{', '.join(each)}. Where two paths take nearly the same over many Q, their crossover is off by more."
    ]
