"""Two engines, one interface: which backend is taken, and which path each row of a batch takes.

A new engine is one more module and one more entry of :data:`RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError
from ..hardware.gpu import GPU
from ..models.attention import Model
from . import sglang, vllm
from .batch import Decision, Resolution, Row
from .preset import Engine
from .thresholds import PLATFORM_OF


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an engine's rules look at, besides the batch."""

    model: Model
    tp: int = 1
    gpu: GPU | None = None
    compute_capability: str | None = None
    """CUDA compute capability, where no GPU is named."""
    cache_dtype: str = "bf16"
    block_size: int | None = None
    dcp: int = 1
    interleave: int = 1
    spec_tokens: int = 0
    runner: Literal["v1", "v2"] | None = None
    threshold: int | None = None
    """vLLM: a decode threshold instead of the backend's own."""
    prefix_threshold: int | None = None
    """SGLang: what SGLANG_CHUNKED_PREFIX_CACHE_THRESHOLD would be set to."""
    mode: Literal["decode", "extend"] | None = None
    graph: bool = False
    deterministic: bool = False
    aiter: bool = False
    """vLLM on ROCm: VLLM_ROCM_USE_AITER."""
    force_mqa: bool = False
    """vLLM: sparse_mla_force_mqa."""
    parallel_drafting: bool = False
    """vLLM: drafted tokens are verified beside as many masked ones."""
    context_parallel: bool = False
    """SGLang: context parallelism of the prefill."""
    ragged: bool = True
    """SGLang: off by --flashinfer-mla-disable-ragged."""
    chunked_prefix: bool = True
    """SGLang: off by --disable-chunked-prefix-cache."""

    @property
    def platform(self) -> Literal["cuda", "rocm"]:
        """Where the engine runs.

        Raises:
            InputError: a GPU of a vendor that no backend of these engines is recorded for.
        """
        if self.gpu is None:
            return "cuda"
        found = PLATFORM_OF.get(self.gpu.vendor.lower())
        if found is None:
            raise InputError(f"no backend of these engines is recorded for a GPU of {self.gpu.vendor}")
        return found

    @property
    def major(self) -> int | None:
        """Major of the CUDA compute capability; ``None`` where there is none."""
        if self.gpu is not None:
            return self.gpu.capability_major
        return int(self.compute_capability.split(".")[0]) if self.compute_capability else None

    @property
    def heads_per_rank(self) -> int:
        """Query heads of one rank."""
        return self.model.attention.heads // self.tp


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an engine makes of one backend, whether or not it would have taken it."""

    refusal: str | None
    """The gate that would refuse it."""
    stored_as: str
    """The layout, by a name of ours, in which it stores the cache."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One engine's rules."""

    resolve: Callable[[Engine, Situation], Resolution]
    dispatch: Callable[[Engine, str, Sequence[Row], Situation], tuple[Decision, ...]]
    threshold: Callable[[Engine, str, Situation], int | None]
    """The constant that the backend's rule compares with, if there is one."""
    verdict: Callable[[Engine, str, Situation], Verdict]
    backends: Callable[[Engine], tuple[str, ...]]
    """Names that ``--backend`` takes."""


def rules_of(engine: Engine) -> Rules:
    """The rules of an engine's family."""
    return RULES[engine.engine]


def backend_of(engine: Engine, situation: Situation, named: str | None) -> tuple[str, Resolution | None]:
    """The backend that was named, or the one that the engine would take, with how it came to it.

    Raises:
        InputError: a name that the engine does not have, or no backend that accepts the model.
    """
    rules = rules_of(engine)
    if named is not None:
        known = {name.lower(): name for name in rules.backends(engine)}
        if not known:
            raise InputError(f"no MLA backend of {engine.name} was read")
        if named.lower() not in known:
            raise InputError(f"{engine.name} has no MLA backend {named!r}", "it has " + ", ".join(known.values()))
        return known[named.lower()], None
    found = rules.resolve(engine, situation)
    if found.resolved is None:
        raise InputError(f"{engine.name} has no backend that takes {situation.model.name} here", "see `backends`")
    return found.resolved, found


def _vllm_resolve(engine: Engine, at: Situation) -> Resolution:
    return vllm.resolve(
        engine,
        model=at.model,
        cache_dtype=at.cache_dtype,
        gpu=at.gpu,
        compute_capability=at.compute_capability,
        heads_per_rank=at.heads_per_rank,
        block_size=at.block_size,
        dcp=at.dcp,
        aiter=at.aiter,
    )


def _vllm_dispatch(engine: Engine, backend: str, rows: Sequence[Row], at: Situation) -> tuple[Decision, ...]:
    return vllm.dispatch(
        engine,
        vllm.backend_named(engine, backend),
        rows,
        model=at.model,
        heads_per_rank=at.heads_per_rank,
        tp=at.tp,
        major=at.major,
        spec_tokens=at.spec_tokens,
        dcp=at.dcp,
        interleave=at.interleave,
        runner=at.runner,
        threshold_override=at.threshold,
        cache_quantised=vllm.is_quantised(at.cache_dtype),
        parallel_drafting=at.parallel_drafting,
        force_mqa=at.force_mqa,
    )


def _vllm_threshold(engine: Engine, backend: str, at: Situation) -> int:
    return vllm.effective_threshold(
        engine,
        vllm.backend_named(engine, backend),
        heads_per_rank=at.heads_per_rank,
        major=at.major,
        spec_tokens=at.spec_tokens,
        parallel_drafting=at.parallel_drafting,
        dcp=at.dcp,
        interleave=at.interleave,
        runner=at.runner or engine.model_runner,
        override=at.threshold,
    )[0]


def _vllm_verdict(engine: Engine, backend: str, at: Situation) -> Verdict:
    refusal, stored = vllm.verdict(
        engine,
        backend,
        model=at.model,
        cache_dtype=at.cache_dtype,
        gpu=at.gpu,
        compute_capability=at.compute_capability,
        heads_per_rank=at.heads_per_rank,
        block_size=at.block_size,
        dcp=at.dcp,
    )
    return Verdict(refusal, stored)


def _sglang_threshold(engine: Engine, backend: str, at: Situation) -> int | None:
    threshold = engine.prefix_threshold
    if threshold is None or backend not in threshold.handlers:
        return None
    return threshold.tokens if at.prefix_threshold is None else at.prefix_threshold


def _sglang_verdict(engine: Engine, backend: str, at: Situation) -> Verdict:
    refusal, stored = sglang.verdict(engine, backend, model=at.model, cache_dtype=at.cache_dtype, major=at.major)
    return Verdict(refusal, stored)


def _sglang_resolve(engine: Engine, at: Situation) -> Resolution:
    sglang.check_layout(engine, at.cache_dtype)
    return sglang.resolve(
        engine, model=at.model, major=at.major, platform=at.platform, heads_per_rank=at.heads_per_rank
    )


def _sglang_dispatch(engine: Engine, backend: str, rows: Sequence[Row], at: Situation) -> tuple[Decision, ...]:
    return sglang.dispatch(
        engine,
        backend,
        rows,
        model=at.model,
        mode=at.mode,
        major=at.major,
        platform=at.platform,
        heads_per_rank=at.heads_per_rank,
        gfx95=at.gpu is not None and sglang.is_gfx95(at.gpu),
        graph=at.graph,
        dcp=at.dcp,
        deterministic=at.deterministic,
        context_parallel=at.context_parallel,
        ragged=at.ragged,
        chunked_prefix=at.chunked_prefix,
        prefix_threshold=at.prefix_threshold,
        cache_dtype=at.cache_dtype,
    )


RULES = {
    "vllm": Rules(
        resolve=_vllm_resolve,
        dispatch=_vllm_dispatch,
        threshold=_vllm_threshold,
        verdict=_vllm_verdict,
        backends=lambda engine: tuple(backend.name for backend in engine.backends),
    ),
    "sglang": Rules(
        resolve=_sglang_resolve,
        dispatch=_sglang_dispatch,
        threshold=_sglang_threshold,
        verdict=_sglang_verdict,
        backends=sglang.backend_names,
    ),
}
