"""The engines' constants that stand where a crossover should: what counts as decode, and from which prefix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .preset import Backend, Engine, runs_on, threshold_for


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineThreshold:
    """One constant of one engine release."""

    engine: str
    backend: str
    threshold: int
    heads_per_rank: int | None
    """The query heads per rank that the threshold was looked up for; ``None``: it does not depend on them."""
    counts: Literal["queries", "prefix"]
    """``queries``: rows of up to so many query tokens are absorbed. ``prefix``: batches whose prefixes sum to
    so many or more are expanded."""
    source: str


def engine_thresholds(
    engine: Engine, heads_per_rank: int, compute_capability_major: int | None, sparse: bool
) -> tuple[EngineThreshold, ...]:
    """The thresholds of ``engine`` for an MLA model, on GPUs of one compute capability or on all.

    ``sparse`` takes the backends for DSA models instead of the dense ones. Backends whose threshold was not
    read are left out.
    """
    found = [
        EngineThreshold(
            engine=engine.name,
            backend=backend.name,
            threshold=threshold_for(backend, heads_per_rank, major),
            heads_per_rank=None if isinstance(backend.decode_threshold, int) else heads_per_rank,
            counts="queries",
            source=backend.source,
        )
        for backend, major in _backends(engine.backends, compute_capability_major, sparse)
    ]
    prefix = engine.prefix_threshold
    if prefix and not sparse:
        found.append(
            EngineThreshold(
                engine=engine.name,
                backend=", ".join(prefix.handlers),
                threshold=prefix.tokens,
                heads_per_rank=None,
                counts="prefix",
                source=prefix.source,
            )
        )
    return tuple(found)


def _backends(backends: Iterable[Backend], major: int | None, sparse: bool) -> Iterable[tuple[Backend, int]]:
    """Backends of the kind, each with the compute capability at which its threshold is looked up."""
    kind = "sparse" if sparse else "dense"
    for backend in backends:
        if backend.kind != kind or backend.platform != "cuda" or backend.decode_threshold is None:
            continue
        if major is not None and not runs_on(backend, major):
            continue
        yield backend, major if major is not None else next(iter(backend.compute_capability_major), 9)
