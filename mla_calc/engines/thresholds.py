"""The engines' constants that stand where a crossover should: what counts as decode, and from which prefix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..hardware.gpu import GPU
from .preset import Engine, runs_on, thresholds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineThreshold:
    """One constant of one engine release."""

    engine: str
    backend: str
    threshold: int
    heads_per_rank: int | None
    """The query heads per rank that the threshold was looked up for; ``None``: it does not depend on them."""
    compute_capability_major: tuple[int, ...]
    """The majors that the threshold is for, where a backend has several; empty: all that it runs on."""
    counts: Literal["queries", "prefix"]
    """``queries``: rows of up to so many query tokens are absorbed. ``prefix``: batches whose prefixes sum to
    so many or more are expanded."""
    source: str


NEWEST = ("vllm", "sglang")
"""The newest release read of each engine, by the name that finds it."""
PLATFORM_OF: dict[str, Literal["cuda", "rocm"]] = {"nvidia": "cuda", "amd": "rocm"}
"""Which backends a vendor's GPUs run; those of no other vendor are in the presets."""


def engine_thresholds(
    engine: Engine, heads_per_rank: int, gpu: GPU | None, sparse: bool
) -> tuple[EngineThreshold, ...]:
    """The thresholds of ``engine`` for an MLA model, on one GPU, or on NVIDIA GPUs of any kind.

    ``sparse`` takes the backends for DSA models instead of the dense ones. Backends whose threshold was not
    read, or that the GPU does not run, are left out; for a GPU of a vendor without backends all are.
    """
    platform = PLATFORM_OF.get(gpu.vendor.lower()) if gpu else "cuda"
    major = gpu.capability_major if gpu else None
    kind = "sparse" if sparse else "dense"
    backends = [backend for backend in engine.backends if backend.kind == kind and backend.platform == platform]
    found = [
        EngineThreshold(
            engine=engine.name,
            backend=backend.name,
            threshold=threshold,
            heads_per_rank=None if isinstance(backend.decode_threshold, int) else heads_per_rank,
            compute_capability_major=majors,
            counts="queries",
            source=backend.source,
        )
        for backend in backends
        if major is None or runs_on(backend, major)
        for majors, threshold in thresholds_of(backend, heads_per_rank, major)
    ]
    prefix = engine.prefix_threshold
    if prefix and not sparse and platform == "cuda":
        found.append(
            EngineThreshold(
                engine=engine.name,
                backend=", ".join(prefix.handlers),
                threshold=prefix.tokens,
                heads_per_rank=None,
                compute_capability_major=(),
                counts="prefix",
                source=prefix.source,
            )
        )
    return tuple(found)


def distinct_thresholds(
    engines: Iterable[Engine], asked: Iterable[tuple[int, GPU | None, bool]]
) -> tuple[EngineThreshold, ...]:
    """The thresholds of every engine for each (heads per rank, GPU, sparse), each of them once."""
    cases = list(asked)
    return tuple(
        dict.fromkeys(
            threshold
            for engine in engines
            for heads, gpu, sparse in cases
            for threshold in engine_thresholds(engine, heads, gpu, sparse=sparse)
        )
    )
