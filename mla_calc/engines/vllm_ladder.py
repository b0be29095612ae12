"""vLLM's ladder: which MLA backend a release picks on a GPU, and the gate that refused each one above it.

Read in vllm 0.33.0: the order in vllm/platforms/cuda.py:84-155 and rocm.py:531-551. A gate that was not read for
a release leaves the answer open; it is never taken from another release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import InputError, nearest, shown
from ..hardware.gpu import GPU
from ..models.attention import Model
from .batch import Resolution, Rung
from .preset import Backend, Engine, Ladder
from .thresholds import PLATFORM_OF
from .vllm_gates import Ask, chosen_name, refusal, stored_as, unread

CACHE_NAMES: dict[str, tuple[str, ...]] = {
    "bf16": ("bfloat16", "auto"),
    "fp16": ("float16",),
    **{
        name: (name,)
        for name in ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "nvfp4_ds_mla")
    },
}
"""Cache dtypes by our layouts' names and vLLM's own. ``bf16`` is ``auto`` too: that stores the model's dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResolution(Resolution):
    """vLLM's answer: ``resolved`` is ``None`` also where what was read does not tell which backend is taken."""

    stored_as: str | None = None
    """The cache dtype, by vLLM's name, in which the backend stores its rows."""


def resolve(
    engine: Engine,
    *,
    model: Model,
    cache_dtype: str,
    heads_per_rank: int,
    gpu: GPU | None = None,
    compute_capability: str | None = None,
    platform: str | None = None,
    block_size: int | None = None,
    dcp: int = 1,
    aiter: bool = False,
    sparse: bool | None = None,
) -> StoredResolution:
    """The backend that ``engine`` takes for ``model``, with a verdict on every rung of its ladder.

    ``cache_dtype`` is a layout's name or vLLM's; ``compute_capability`` is as ``"9.0"``; ``block_size`` counts
    tokens, ``None``: vLLM's own choice, which refuses no backend; ``aiter`` is ROCm's VLLM_ROCM_USE_AITER;
    ``sparse`` is whether attention is DSA (``None``: where the model has an indexer).

    Raises:
        InputError: no MLA, an unknown cache dtype, or a GPU for which no ladder was read.
    """
    ask = _ask(
        engine, model, cache_dtype, heads_per_rank, _where(gpu, compute_capability, platform), block_size, dcp, sparse
    )
    return _climb(engine, _order(_ladder(engine, ask, aiter), ask), ask)


def verdict(
    engine: Engine,
    name: str,
    *,
    model: Model,
    cache_dtype: str,
    heads_per_rank: int,
    gpu: GPU | None = None,
    compute_capability: str | None = None,
    block_size: int | None = None,
    dcp: int = 1,
) -> tuple[str | None, str]:
    """Why ``engine`` would refuse the backend ``name`` (``None``: it would not), and the cache dtype that it stores.

    The arguments and errors are those of :func:`resolve`.
    """
    where = _where(gpu, compute_capability, None)
    ask = _ask(engine, model, cache_dtype, heads_per_rank, where, block_size, dcp, None)
    backend = backend_named(engine, name)
    if backend.platform != where[0]:
        return f"it is for {backend.platform}", stored_as(backend, ask)
    gap = unread(backend)
    return refusal(backend, ask) or (f"{gap} not read in {ask.release}" if gap else None), stored_as(backend, ask)


def _ask(
    engine: Engine,
    model: Model,
    cache_dtype: str,
    heads_per_rank: int,
    where: tuple[str, tuple[int, int] | None],
    block_size: int | None,
    dcp: int,
    sparse: bool | None,
) -> Ask:
    platform, capability = where
    if model.mla is None:
        raise InputError(f"{model.name} has no latent attention; vLLM's MLA backends are not for it")
    return Ask(
        release=engine.release,
        model=model.name,
        mla=model.mla,
        sparse=model.indexer is not None if sparse is None else sparse,
        index_topk=model.indexer.topk if model.indexer else None,
        cache=cache_names(cache_dtype),
        platform=platform,
        capability=capability,
        heads=heads_per_rank,
        block_size=block_size,
        dcp=dcp,
    )


def cache_names(cache_dtype: str) -> tuple[str, ...]:
    """vLLM's names for a cache dtype, the plainest first. Raises InputError for one that vLLM has not."""
    names = CACHE_NAMES.get(cache_dtype.strip().lower())
    if names is None:
        raise InputError(f"vLLM has no cache dtype {cache_dtype}; it has {', '.join(CACHE_NAMES)}")
    return names


def is_quantised(cache_dtype: str) -> bool:
    """Whether vLLM counts a cache dtype as quantised. Raises InputError for one that it has not."""
    return cache_names(cache_dtype)[0].startswith(("fp8", "nvfp4"))


def backend_named(engine: Engine, name: str) -> Backend:
    """The backend of ``engine`` by its name in the enum, in any case.

    Raises:
        InputError: no such backend was read for this release.
    """
    for backend in engine.backends:
        if backend.name == name.strip().upper():
            return backend
    known = [backend.name for backend in engine.backends]
    raise InputError(f"{engine.name} has no MLA backend {name} that was read", nearest(name, known))


def _where(gpu: GPU | None, compute_capability: str | None, platform: str | None) -> tuple[str, tuple[int, int] | None]:
    if gpu is not None:
        platform = platform or PLATFORM_OF.get(gpu.vendor.lower())
        if platform is None:
            raise InputError(f"no ladder of vLLM was read for GPUs of {gpu.vendor}")
        compute_capability = compute_capability or gpu.compute_capability
    platform = platform or "cuda"
    if platform not in ("cuda", "rocm"):
        raise InputError(f"no ladder of vLLM was read for {platform}; there are cuda and rocm")
    if platform == "rocm":
        return platform, None
    if compute_capability is None:
        raise InputError(
            "vLLM chooses a backend by the GPU's compute capability; "
            + (f"that of {gpu.name} is not known" if gpu is not None else "none is given"),
            "write compute_capability into a GPU file of your own; backends and dispatch take --cc 9.0 instead",
        )
    major, dot, minor = compute_capability.partition(".")
    if not ((major + minor).isascii() and major.isdigit() and (minor.isdigit() or not dot)):
        raise InputError(f"{shown(compute_capability)} is no compute capability; write it as 9.0")
    return platform, (int(major), int(minor or 0))


def _ladder(engine: Engine, ask: Ask, aiter: bool) -> Ladder:
    for ladder in engine.ladder:
        majors = ladder.compute_capability_major
        if (
            ladder.platform == ask.platform
            and (not majors or ask.major in majors)
            and (ladder.aiter is None or ladder.aiter == aiter)
        ):
            return ladder
    if not engine.ladder:
        raise InputError(f"{engine.name}: which backends it takes was not read", next(iter(engine.notes), None))
    raise InputError(f"{engine.name}: no ladder was read for {ask.platform} {ask.on}")


def _order(ladder: Ladder, ask: Ask) -> tuple[str, ...]:
    """The names in the order in which they are tried: dense, then the sparse ones whose conditions hold."""
    kind = "quantised" if ask.cache[0].startswith(("fp8", "nvfp4")) else "unquantised"
    tail: tuple[str, ...] = ()
    for option in ladder.sparse:
        if (
            option.cache in (None, kind)
            and (option.most_heads is None or ask.heads <= option.most_heads)
            and option.head_size in (None, ask.mla.row_values)
        ):
            tail = option.backends
            break
    if ladder.kinds_apart:
        return tail if ask.sparse else ladder.dense
    return (*ladder.dense, *tail)


def _climb(engine: Engine, names: Sequence[str], ask: Ask) -> StoredResolution:
    """Try the backends in order. Nothing is reached past the one that is taken, or that might be."""
    known = {backend.name: backend for backend in engine.backends}
    rungs: list[Rung] = []
    for at, name in enumerate(names):
        backend = known.get(name)
        refused = refusal(backend, ask) if backend else None
        if refused is not None:
            rungs.append(Rung(name=name, accepted=False, reason=refused))
            continue
        below = [Rung(name=later, accepted=False, reason="not reached") for later in names[at + 1 :]]
        gap = unread(backend)
        if backend is None or gap:
            sentence = f"{gap} not read in {ask.release}: whether it is taken is not known"
            open_rung = Rung(name=name, accepted=False, reason=sentence)
            return StoredResolution(resolved=None, ladder=(*rungs, open_rung, *below))
        stored = stored_as(backend, ask)
        taken = Rung(name=name, accepted=True, reason=_praise(backend, ask, stored))
        return StoredResolution(resolved=name, ladder=(*rungs, taken, *below), stored_as=stored)
    return StoredResolution(resolved=None, ladder=tuple(rungs))


def _praise(backend: Backend, ask: Ask, stored: str) -> str:
    """Why the accepted backend is taken, and what that assumes."""
    return "; ".join(_clauses(backend, ask, stored))


def _clauses(backend: Backend, ask: Ask, stored: str) -> Iterator[str]:
    yield f"the first that takes {ask.model} on {ask.on}"
    chosen = chosen_name(backend, ask)
    if stored != chosen:
        yield f"{chosen} is stored as {stored}"
    if backend.requires:
        yield f"assumed: {', '.join(backend.requires)}"
