"""SGLang's rules: the attention backend that a release takes by default, and the path that a batch takes.

SGLang decides once per batch: a handler per backend looks at P, the sum of the prefixes, and S, the sum of the
whole lengths (sglang 0.5.23 models/deepseek_common/attention_backend_handler.py). What differs between releases
is data in ``presets/engines``; the predicates here are those that every release read so far has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..costs.chunks import Chunk, equal_chunks
from ..errors import InputError, nearest, shown
from ..hardware.gpu import GPU
from ..models.attention import MLA, Model
from .batch import Decision, PathName, Resolution, Row, Rung
from .preset import AttentionShape, Circumstance, DefaultBackend, Engine, Handler, RuleKind

Platform = Literal["cuda", "rocm"]
Mode = Literal["decode", "extend"]

DENSE_DSA_MAJORS = (9, 10)
"""CUDA majors on which a DSA prefill may be dense (0.5.23 layers/attention/dsa_backend.py:4066-4070)."""
DENSE_DSA_DTYPES = ("bf16", "bf16_padded640", "bfloat16", "auto", "fp8", "fp8_e4m3", "fp8_ds_mla")
"""Cache dtypes with which it may (dsa_backend.py:4073); the scaled rows of ``fp8_ds_mla`` are fp8 to the pool."""
SCALED_DSA_MAJOR = 9
"""CUDA major on which DSA stores fp8 with scales by default."""
FA4_MAJORS = (10, 11)
"""CUDA majors on which fa4 has an absorbed form (0.5.23 attention_backend_handler.py:160-165)."""
FP8_PREFIX_HEADS = 12
FP8_PREFIX_SHAPE = (512, 128, 64, 128)
"""Heads per rank, and r, dn, dr, dv of the prefixes that triton expands on gfx95 (handler.py:214-230)."""


class NamedHandler(NamedTuple):
    """The handler that a backend's name leads to."""

    handler: Handler
    detour: str | None
    """Why it is another's, where the name has none of its own."""


class Verdict(NamedTuple):
    """A path, and the rule that decided it."""

    path: PathName
    rule: str


def is_gfx95(gpu: GPU) -> bool:
    """Whether ``gpu`` is a gfx95 device (CDNA 4: MI350X, MI355X), which some of the rules ask for."""
    return gpu.vendor.lower() == "amd" and gpu.architecture == "CDNA 4"


LAYOUTS = ("bf16", "fp8", "fp4", "fp8_ds_mla")
"""Cache layouts of its pools for MLA (0.5.23 mem_cache/kv_cache_configurator.py:3419-3472, memory_pool.py:5133-5160);
the 656-byte rows of ``fp8_ds_mla`` are what DSA's backends store of fp8 where they scale it."""


def check_layout(engine: Engine, cache_dtype: str) -> None:
    """Refuse a cache layout that no pool of SGLang has. Raises InputError."""
    if cache_dtype not in LAYOUTS:
        raise InputError(f"{engine.name} has no cache of {cache_dtype}; it has {', '.join(LAYOUTS)}")


def verdict(
    engine: Engine, backend: str, *, model: Model, cache_dtype: str, major: int | None
) -> tuple[str | None, str]:
    """Why ``backend`` cannot serve ``model`` (``None``: nothing that was read says so), and the layout it stores.

    DSA's fp8 rows are the scaled ones of 656 B on Hopper (FlashMLA, fa3) and raw ones on Blackwell and ROCm (0.5.23
    kv_cache_configurator.py:3425-3472, overrides.py:707-726).

    Raises:
        InputError: no pool has that layout.
    """
    check_layout(engine, cache_dtype)
    sparse = backend.lower() == "dsa"
    stored = "fp8_ds_mla" if sparse and cache_dtype == "fp8" and major == SCALED_DSA_MAJOR else cache_dtype
    if sparse and model.indexer is None:
        return f"{model.name} has no indexer", stored
    if stored == "fp8_ds_mla" and not sparse:
        return "rows of fp8_ds_mla are those of the dsa backend alone", stored
    return None, stored


# --- the default backend


def resolve(engine: Engine, *, model: Model, major: int | None, platform: Platform, heads_per_rank: int) -> Resolution:
    """The attention backend that ``engine`` takes when none is named: the first line whose conditions hold.

    ``major`` is that of the CUDA compute capability. CUDA itself is taken to be new enough (12.3 on Hopper, 12.8
    on Blackwell). ``resolved`` is ``None`` where no line holds.

    Raises:
        InputError: a model without MLA, no line read for this release, or a CUDA GPU without a capability.
    """
    mla = mla_of(model)
    if not engine.default_backends:
        raise InputError(f"{engine.name}: how it chooses an attention backend was not read")
    if platform == "cuda" and major is None:
        raise InputError(f"{engine.name} chooses an attention backend by the GPU's compute capability: none is known")
    ladder: list[Rung] = []
    for line in engine.default_backends:
        facts = _facts(line, model, mla, major, platform, heads_per_rank)
        failed = next((text for holds, text in facts if not holds), None)
        met = ", ".join(text for _, text in facts) or "no line before it holds"
        ladder.append(Rung(name=line.backend, accepted=failed is None, reason=failed or met))
        if failed is None:
            return Resolution(resolved=line.backend, ladder=tuple(ladder))
    return Resolution(resolved=None, ladder=tuple(ladder))


def mla_of(model: Model) -> MLA:
    """The model's MLA. Raises InputError where it has none: the rules here are those for MLA models."""
    if model.mla is None:
        raise InputError(f"{model.name} has no MLA: SGLang's two paths are those of MLA models")
    return model.mla


def _facts(
    line: DefaultBackend, model: Model, mla: MLA, major: int | None, platform: Platform, heads_per_rank: int
) -> list[tuple[bool, str]]:
    """The conditions of ``line``, each with whether it holds and a clause that says so."""
    found: list[tuple[bool, str]] = []
    if line.sparse is not None:
        sparse = model.indexer is not None
        found.append((sparse == line.sparse, f"the model has {'an' if sparse else 'no'} indexer"))
    if line.platform is not None:
        found.append((platform == line.platform, _platform_clause(line.platform, platform)))
    if line.compute_capability_major:
        found.append((major in line.compute_capability_major, _majors_clause(line.compute_capability_major, major)))
    if line.heads:
        found.append((heads_per_rank in line.heads, _heads_clause(line.heads, heads_per_rank)))
    if line.shapes:
        found.append(_shape_fact(line, mla))
    return found


def _platform_clause(wanted: str, platform: Platform) -> str:
    return f"the platform is {platform}" if wanted == platform else f"for {wanted}, and the platform is {platform}"


def _majors_clause(majors: tuple[int, ...], major: int | None) -> str:
    has = f"the compute capability is {major}.x" if major is not None else "there is no compute capability"
    return has if major in majors else f"for {_either(f'{item}.x' for item in majors)}, and {has}"


def _heads_clause(heads: tuple[int, ...], heads_per_rank: int) -> str:
    has = f"a rank has {heads_per_rank} query heads"
    return has if heads_per_rank in heads else f"for {_either(str(item) for item in heads)} query heads, and {has}"


def _shape_fact(line: DefaultBackend, mla: MLA) -> tuple[bool, str]:
    holds = any(_has_shape(mla, shape) for shape in line.shapes)
    dims = (
        f"{mla.heads} heads, hidden {mla.hidden_size}, "
        f"{mla.kv_lora_rank}/{mla.qk_rope_head_dim}/{mla.qk_nope_head_dim}/{mla.v_head_dim}"
    )
    family = line.model or "one family"
    whose = "are those of" if holds else "are none of those of"
    return holds, f"the model's dimensions ({dims}) {whose} {family}"


def _has_shape(mla: MLA, shape: AttentionShape) -> bool:
    return mla.heads in shape.heads and (
        (mla.hidden_size, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim)
        == (shape.hidden_size, shape.kv_lora_rank, shape.qk_nope_head_dim, shape.qk_rope_head_dim, shape.v_head_dim)
    )


def _either(words: Iterable[str]) -> str:
    return " or ".join(words)


# --- the handler


def handler_of(engine: Engine, backend: str) -> NamedHandler:
    """The handler that ``backend`` leads to: a handler's name or alias, or a backend that has none.

    A backend without a handler takes triton's; that is what the engine's registry does, not a guess
    (0.5.23 attention_backend_handler.py:53-55).

    Raises:
        InputError: the engine takes no backend of that name.
    """
    name = backend.lower()
    for handler in engine.handlers:
        if name in (handler.name, *handler.aliases):
            return NamedHandler(handler, None)
    fallback = next((handler for handler in engine.handlers if handler.name == "triton"), None)
    if fallback is not None and name in engine.backend_choices:
        return NamedHandler(fallback, f"{name} has no handler and takes triton's")
    known = backend_names(engine)
    raise InputError(
        f"{engine.name} has no attention backend {shown(backend)}; it takes {', '.join(known)}", nearest(name, known)
    )


def backend_names(engine: Engine) -> tuple[str, ...]:
    """Every name that :func:`handler_of` takes: handlers, their aliases, then the backends without a handler."""
    named = [name for handler in engine.handlers for name in (handler.name, *handler.aliases)]
    return tuple(dict.fromkeys((*named, *engine.backend_choices)))


# --- the path of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What the predicates look at."""

    engine: Engine
    handler: Handler
    model: Model
    mla: MLA
    rows: Sequence[Row]
    extend: bool
    circumstances: frozenset[Circumstance]
    major: int | None
    platform: Platform
    gfx95: bool
    heads_per_rank: int
    dcp: int
    chunked_prefix: bool
    prefix_threshold: int | None
    chunk_capacity: int | None
    dense_threshold: int | None
    cache_dtype: str

    @property
    def prefixes(self) -> int:
        """P, tokens."""
        return sum(row.prefix for row in self.rows)

    @property
    def lengths(self) -> int:
        """S, tokens."""
        return sum(row.context for row in self.rows)

    @property
    def longest(self) -> int:
        """Tokens of the longest row, the new ones included."""
        return max(row.context for row in self.rows)


def dispatch(
    engine: Engine,
    backend: str,
    rows: Sequence[Row],
    *,
    model: Model,
    mode: Mode | None = None,
    major: int | None = None,
    platform: Platform = "cuda",
    gfx95: bool = False,
    heads_per_rank: int,
    graph: bool = False,
    dcp: int = 1,
    context_parallel: bool = False,
    deterministic: bool = False,
    chunked_prefix: bool = True,
    ragged: bool = True,
    prefix_threshold: int | None = None,
    chunk_capacity: int | None = None,
    dense_threshold: int | None = None,
    cache_dtype: str = "bf16",
) -> tuple[Decision, ...]:
    """The path of a batch: one decision, repeated for each of ``rows``, in the order given.

    A batch of rows of one new token each is a decode unless ``mode`` says ``extend``; any other is an extend
    unless ``mode`` says ``decode``, as for a verification of drafted tokens, which takes the same branch.

    Args:
        engine: a release of SGLang.
        backend: a handler's name or alias, or a backend without one; see :func:`handler_of`. Whether it runs
            on the GPU is not asked.
        rows: the batch.
        model: an MLA model.
        mode: see above.
        major: the major of the CUDA compute capability.
        platform: ``cuda`` or ``rocm``.
        gfx95: whether the GPU is of AMD's gfx95; see :func:`is_gfx95`.
        heads_per_rank: query heads of a rank.
        graph: whether the batch runs inside a prefill graph (piecewise or breakable), captured or replayed.
        dcp: ranks of decode context parallelism.
        context_parallel: whether context parallelism of the prefill is active.
        deterministic: ``--enable-deterministic-inference``.
        chunked_prefix: false with ``--disable-chunked-prefix-cache``.
        ragged: false with ``--flashinfer-mla-disable-ragged``.
        prefix_threshold: tokens, instead of the release's; 0 makes every extend with prefixes eligible for
            expansion and forces nothing onto the absorbed path.
        chunk_capacity: tokens, instead of the release's.
        dense_threshold: tokens, instead of the model's top-k, up to which a DSA prefill is dense.
        cache_dtype: dtype or layout of the cache.

    Raises:
        InputError: an unknown backend, an empty batch, a model without MLA, or a rule that was not read for
            this release.
    """
    if not rows:
        raise InputError("a batch has at least one row")
    _check_overrides(prefix_threshold, chunk_capacity, dense_threshold)
    handler, detour = handler_of(engine, backend)
    if handler.kind is None:
        raise InputError(f"{engine.name}: the rule of {handler.name} was not read")
    mla = mla_of(model)
    present: Mapping[Circumstance, bool] = {
        "graph": graph,
        "context_parallel": context_parallel,
        "deterministic": deterministic,
        "ragged_disabled": not ragged,
        "no_rope": mla.qk_rope_head_dim == 0,
        "dcp": dcp > 1,
    }
    batch = _Batch(
        engine=engine,
        handler=handler,
        model=model,
        mla=mla,
        rows=rows,
        extend=mode == "extend" or (mode is None and any(row.queries > 1 for row in rows)),
        circumstances=frozenset(name for name, holds in present.items() if holds),
        major=major,
        platform=platform,
        gfx95=gfx95,
        heads_per_rank=heads_per_rank,
        dcp=dcp,
        chunked_prefix=chunked_prefix,
        prefix_threshold=prefix_threshold,
        chunk_capacity=chunk_capacity,
        dense_threshold=dense_threshold,
        cache_dtype=cache_dtype.lower(),
    )
    path, rule = PREDICATES[handler.kind](batch)
    return (Decision(path, f"{detour}: {rule}" if detour else rule),) * len(rows)


def _check_overrides(prefix_threshold: int | None, chunk_capacity: int | None, dense_threshold: int | None) -> None:
    for name, value in (("prefix threshold", prefix_threshold), ("dense threshold", dense_threshold)):
        if value is not None and value < 0:
            raise InputError(f"the {name} is 0 or more tokens, found {value:,}")
    if chunk_capacity is not None and chunk_capacity < 1:
        raise InputError(f"the chunk capacity is at least 1 token, found {chunk_capacity:,}")


_CLAUSES: Mapping[Circumstance, str] = {
    "graph": "inside a captured prefill graph {name} keeps one path",
    "context_parallel": "{name} keeps the latent form under context parallelism of the prefill",
    "deterministic": "{name} keeps the latent form in deterministic inference",
    "ragged_disabled": "ragged prefill is disabled with {name}",
    "no_rope": "{name} has no ragged prefill for a model without rope slice",
    "dcp": "{name} keeps the sparse form under decode context parallelism",
}


def _pinned(batch: _Batch) -> Verdict | None:
    """Absorbed because the batch is a decode, or because of a circumstance that the handler asks about."""
    if not batch.extend:
        return _absorbed("the batch is a decode")
    for name in batch.handler.absorbed_when:
        if name in batch.circumstances:
            return _absorbed(_CLAUSES[name].format(name=batch.handler.name))
    return None


def _absorbed(why: str) -> Verdict:
    return Verdict("absorbed", f"{why}: absorbed")


def _shared(batch: _Batch) -> Verdict:
    """The rule with the threshold (0.5.23 attention_backend_handler.py:108-140; 0.5.18 :99-132)."""
    pinned = _pinned(batch)
    if pinned is not None:
        return pinned
    if batch.prefixes == 0:
        return _expanded("no row has a prefix", batch)
    sums = f"the prefixes sum to {batch.prefixes:,}"
    if not _chunked_prefix(batch):
        return _absorbed(f"{sums} and {_chunked_off(batch)}")
    threshold = _prefix_threshold(batch)
    if batch.prefixes >= threshold:
        return _expanded(f"{sums} >= {threshold:,}", batch)
    return _absorbed(f"{sums}, which is more than 0 and less than {threshold:,}")


def _expanded(why: str, batch: _Batch) -> Verdict:
    """One shot where the handler has it and the batch fits (attention_backend_handler.py:100-105), else chunks."""
    if not batch.handler.one_shot:
        return _in_chunks(f"{why}: expanded, in chunks since {batch.handler.name} has no one-shot form", batch)
    capacity, lengths = _chunk_capacity(batch), batch.lengths
    if lengths <= capacity:
        return Verdict("mha_one_shot", f"{why}: expanded, in one shot since {lengths:,} <= {capacity:,}")
    return _in_chunks(f"{why}: expanded, in chunks since {lengths:,} > {capacity:,}", batch)


def _in_chunks(rule: str, batch: _Batch) -> Verdict:
    # Without prefixes there is nothing to cut: forward_batch_deepseek_mha_mixin.py:193-195 plans 0 chunks.
    return Verdict("mha_chunked", rule if batch.prefixes else f"{rule}; there is no prefix to cut")


def _chunked_prefix(batch: _Batch) -> bool:
    """Whether prefixes may be expanded in chunks: not disabled, and on a backend of the engine's list."""
    if batch.handler.chunked_prefix is None:
        raise InputError(f"{batch.engine.name}: whether {batch.handler.name} has chunked prefixes was not read")
    return batch.chunked_prefix and batch.handler.chunked_prefix


def _chunked_off(batch: _Batch) -> str:
    return f"chunked prefixes are off with {batch.handler.name}" if batch.chunked_prefix else "they are not chunked"


def _prefix_threshold(batch: _Batch) -> int:
    if batch.prefix_threshold is not None:
        return batch.prefix_threshold
    if batch.engine.prefix_threshold is None:
        raise InputError(f"{batch.engine.name}: its threshold for prefixes was not read")
    return batch.engine.prefix_threshold.tokens


def _chunk_capacity(batch: _Batch) -> int:
    return batch.chunk_capacity if batch.chunk_capacity is not None else _capacity_of(batch.engine)


def _capacity_of(engine: Engine) -> int:
    if engine.chunk_capacity is None:
        raise InputError(f"{engine.name}: its chunk capacity was not read")
    return engine.chunk_capacity.tokens


def _fa4(batch: _Batch) -> Verdict:
    """The shared rule where fa4 has an absorbed form; elsewhere no question is asked, of no batch (:159-168)."""
    if batch.platform == "cuda" and batch.major is None:
        raise InputError(f"{batch.engine.name}: fa4's rule needs the GPU's compute capability")
    if batch.platform == "cuda" and batch.major in FA4_MAJORS:
        return _shared(batch)
    where = f"{batch.major}.x" if batch.platform == "cuda" else batch.platform
    return _in_chunks(f"fa4 has no absorbed form on {where}: expanded, in chunks, whatever the batch", batch)


def _no_threshold(batch: _Batch) -> Verdict:
    """Every extend in chunks; P matters only where chunked prefixes are off (:171-181)."""
    pinned = _pinned(batch)
    if pinned is not None:
        return pinned
    name = batch.handler.name
    if batch.prefixes and not _chunked_prefix(batch):
        return _absorbed(f"the prefixes sum to {batch.prefixes:,} and {_chunked_off(batch)}")
    return _in_chunks(f"{name} has no threshold: every extend is expanded, in chunks", batch)


def _aiter(batch: _Batch) -> Verdict:
    """Every extend is expanded, inside a graph too; in 0.5.18 always at once, later by S and DCP (:184-197)."""
    if "graph" in batch.circumstances:
        return Verdict("mha", "inside a captured prefill graph aiter has no absorbed kernels: expanded")
    if not batch.extend:
        return _absorbed("the batch is a decode")
    if not batch.handler.one_shot:
        return Verdict("mha", "aiter has no threshold: every extend is expanded")
    capacity, lengths = _chunk_capacity(batch), batch.lengths
    if lengths > capacity:
        return _in_chunks(f"aiter has no threshold: expanded, in chunks since {lengths:,} > {capacity:,}", batch)
    if batch.dcp > 1:
        rule = f"aiter has no threshold: expanded, in one shot under DCP {batch.dcp} since {lengths:,} <= {capacity:,}"
        return Verdict("mha_one_shot", rule)
    return Verdict("mha", f"aiter has no threshold: expanded, and {lengths:,} <= {capacity:,} needs no chunks")


def _triton(batch: _Batch) -> Verdict:
    """Expanded only without prefixes (:233-252)."""
    pinned = _pinned(batch)
    if pinned is not None:
        return pinned
    if batch.prefixes == 0:
        return Verdict("mha", "no row has a prefix: expanded")
    if _packs_fp8_prefix(batch):
        rule = f"a prefix in fp8 and {FP8_PREFIX_HEADS} heads per rank on gfx95: expanded, in chunks"
        return Verdict("mha_chunked", rule)
    name = batch.handler.name
    return _absorbed(f"the prefixes sum to {batch.prefixes:,} and {name} expands only batches without")


def _packs_fp8_prefix(batch: _Batch) -> bool:
    """Kimi-K3 at 12 heads per rank (0.5.23 attention_backend_handler.py:214-230), its variable left as it is."""
    mla = batch.mla
    return (
        bool(batch.handler.packs_fp8_prefix)
        and batch.platform == "rocm"
        and batch.gfx95
        and batch.cache_dtype in ("fp8", "fp8_e4m3")
        and batch.heads_per_rank == FP8_PREFIX_HEADS
        and (mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim) == FP8_PREFIX_SHAPE
        and batch.dcp == 1
    )


def _dsa(batch: _Batch) -> Verdict:
    """Dense while every row is short (0.5.23 layers/attention/dsa_backend.py:4039-4080; 0.5.18 :3300-3342).

    HiSparse, sharded pools and TileLang over raw fp8 rows keep a batch sparse too; they are not asked about.
    """
    pinned = _pinned(batch)
    if pinned is not None:
        return pinned
    threshold, capacity = _dense_threshold(batch), _chunk_capacity(batch)
    if not _runs_dense(batch):
        return _absorbed(f"dense attention of a DSA prefill runs on 9.0, 10.x and gfx95, not on {_gpu(batch)}")
    if batch.longest > threshold:
        return _absorbed(f"the longest row has {batch.longest:,} > {threshold:,}")
    if batch.cache_dtype not in DENSE_DSA_DTYPES:
        return _absorbed(f"dense attention of a DSA prefill reads a bf16 or fp8 cache, not {batch.cache_dtype}")
    if batch.lengths > capacity:
        return _absorbed(
            f"the longest row has {batch.longest:,} <= {threshold:,}, but {batch.lengths:,} > {capacity:,}"
        )
    fits = f"the longest row has {batch.longest:,} <= {threshold:,}, and {batch.lengths:,} <= {capacity:,}"
    return Verdict("mha_one_shot", f"{fits}: expanded, dense and in one shot")


def _dense_threshold(batch: _Batch) -> int:
    """The model's top-k, which is put in where nothing sets the variable (0.5.23 arg_groups/model_hook.py:282-296)."""
    if batch.dense_threshold is not None:
        return batch.dense_threshold
    if batch.model.indexer is not None:
        return batch.model.indexer.topk
    if batch.engine.dense_attention_threshold is None:
        raise InputError(f"{batch.engine.name}: up to which length a DSA prefill is dense was not read")
    return batch.engine.dense_attention_threshold


def _runs_dense(batch: _Batch) -> bool:
    if batch.platform == "rocm":
        return batch.gfx95
    if batch.major is None:
        raise InputError(f"{batch.engine.name}: the rule of {batch.handler.name} needs the GPU's compute capability")
    return batch.major in DENSE_DSA_MAJORS


def _gpu(batch: _Batch) -> str:
    return f"{batch.major}.x" if batch.platform == "cuda" else "another AMD GPU"


def _ascend(batch: _Batch) -> Verdict:
    """Every extend of a dense model is expanded; DSA keeps its own, latent form (:75-89)."""
    if batch.model.indexer is not None:
        return _absorbed("ascend runs DSA models over the latent rows, decode and extend")
    if not batch.extend:
        return _absorbed("the batch is a decode")
    return Verdict("mha", "ascend has no threshold: every extend is expanded")


PREDICATES: Mapping[RuleKind, Callable[[_Batch], Verdict]] = {
    "shared": _shared,
    "fa4": _fa4,
    "no_threshold": _no_threshold,
    "aiter": _aiter,
    "triton": _triton,
    "dsa": _dsa,
    "ascend": _ascend,
}


# --- the chunks


def chunk_plan(engine: Engine, rows: Sequence[Row], capacity: int | None = None) -> tuple[Chunk, ...]:
    """The chunks in which the prefixes of ``rows`` are expanded, and the tokens that each takes of each row.

    Every row gets capacity // rows tokens per chunk, those without a prefix too, until the longest prefix is
    through (0.5.23 model_executor/forward_batch_deepseek_mha_mixin.py:193-215). ``capacity`` in tokens.

    Raises:
        InputError: a release that cuts otherwise or was not read, or more rows than the capacity has tokens.
    """
    if engine.chunk_plan != "equal":
        raise InputError(f"{engine.name}: it is not known to cut prefixes in equal shares")
    if not any(row.prefix for row in rows):
        return ()
    whole = capacity if capacity is not None else _capacity_of(engine)
    return equal_chunks([row.prefix for row in rows], whole, sharers=len(rows))
