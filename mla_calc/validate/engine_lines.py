"""The engines' constants that a measured crossover is put beside, as lines of a figure and as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..engines.load import load_engine
from ..engines.thresholds import NEWEST, EngineThreshold, distinct_thresholds
from ..hardware.gpu import GPU
from ..report import format as fmt


@dataclass(frozen=True, slots=True)
class EngineLines:
    """Thresholds in queries; ``prefix`` ones count something else and are told in words alone."""

    labels: Mapping[int, str]
    """The backends of a threshold in queries, joined."""
    texts: tuple[str, ...]
    """One for each constant: engine, backend, number, and what it counts."""


def engine_lines(heads: Iterable[int], gpu: GPU) -> EngineLines:
    """The constants that the newest releases read have on ``gpu``, for any of the head counts per rank."""
    found = distinct_thresholds(map(load_engine, NEWEST), ((count, gpu, False) for count in sorted(heads)))
    labels: dict[int, list[str]] = {}
    for item in found:
        if item.counts == "queries":
            names = labels.setdefault(item.threshold, [])
            names += [item.backend] if item.backend not in names else []
    texts = dict.fromkeys(_text(item) for item in found)
    return EngineLines({queries: ",\n".join(names) for queries, names in labels.items()}, tuple(texts))


def _text(item: EngineThreshold) -> str:
    if item.counts == "prefix":
        return f"{item.engine} ({item.backend}): expanded from {item.threshold:,} prefix tokens of the batch on"
    heads = f" at {item.heads_per_rank} heads" if item.heads_per_rank is not None else ""
    return f"{item.engine} {item.backend}: absorbed up to {fmt.counted(item.threshold, 'query', 'queries')}{heads}"
