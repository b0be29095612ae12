"""What an engine does as one release of it has it: backends, thresholds, ladder; each read in its source.

A release is one file of ``presets/engines``. A fact that was not read for that release is absent from its
file, and ``None`` here: absent never means "as in the other release".
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import StringConstraints

from ..costs.workspace import WorkspaceRule
from ..errors import InputError
from ..schema import STRICT, Count, Dimension, Large, Text

Heads = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,6}$")]
"""A number of query heads as the key of a mapping: YAML keys are strings here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadThreshold:
    """A decode threshold that hangs on the query heads of a rank: a table and what holds outside it."""

    __pydantic_config__ = STRICT

    by_heads: Annotated[Mapping[Heads, Dimension], MinLen(1)]
    """Query tokens, by the exact number of query heads per rank."""
    otherwise: Dimension
    """Query tokens for any other number of heads."""
    compute_capability_major: tuple[Dimension, ...] = ()
    """Majors for which this table is used; none: all that no table before it names."""


Capability = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}\.[0-9]$")]
"""A CUDA compute capability, as ``8.9``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """What a backend refuses although it takes each part of it: a combination of which all that is given holds."""

    __pydantic_config__ = STRICT

    reason: Text
    """The refusal, in a few words that follow the backend's name."""
    head_size: Dimension | None = None
    """Width of the cached row, values."""
    rope: bool | None = None
    """Whether the model has a rope slice."""
    kv_cache_dtypes: tuple[Text, ...] = ()
    kv_cache_dtypes_other_than: tuple[Text, ...] = ()
    majors_other_than: tuple[Dimension, ...] = ()
    qk_nope_head_dims_other_than: tuple[Dimension, ...] = ()
    kv_lora_ranks_other_than: tuple[Dimension, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One of vLLM's MLA backends."""

    __pydantic_config__ = STRICT

    name: Text
    """The enum member, as ``--attention-backend`` takes it."""
    kind: Literal["dense", "sparse", "deepseek_v4", "deepseek_v41"]
    platform: Literal["cuda", "rocm", "cpu", "xpu"] = "cuda"
    source: Text
    """File and line, in the wheel of the release."""
    decode_threshold: Dimension | tuple[HeadThreshold, ...] | None = None
    """The longest query, in tokens, that is still a decode row and takes the absorbed path."""
    query_len_support: Literal["single_only", "uniform", "varlen"] | None = None
    """Which decode rows fit one kernel call: of 1 token, of one length, of any length up to the threshold."""
    threshold_under_dcp: Literal["kept", "kept_if_interleave_1", "one"] | None = None
    """What becomes of the threshold under decode context parallelism."""
    supports_dcp: bool | None = None
    compute_capability_major: tuple[Dimension, ...] = ()
    """Majors that it runs on; none: any."""
    declared_majors: tuple[Dimension, ...] = ()
    """Majors that it declares, where its kernel then refuses some of them."""
    least_capability: Mapping[Text, Capability] = field(default_factory=dict)
    """The lowest compute capability at which its kernel reads a cache dtype."""
    gates_read: bool = True
    """False where only its entry in the registry was read: on which GPUs it runs is then not known."""
    kv_cache_dtypes: tuple[Text, ...] | None = None
    head_sizes: tuple[Dimension, ...] | Literal["any"] | None = None
    """Accepted widths of the cached row, values."""
    block_sizes: tuple[Dimension, ...] | None = None
    """Accepted page sizes, tokens."""
    block_multiple: Dimension | None = None
    """Accepted page sizes are the multiples of this, tokens."""
    qk_nope_head_dims: tuple[Count, ...] | None = None
    qk_rope_head_dims: tuple[Count, ...] | None = None
    v_head_dims: tuple[Count, ...] | None = None
    kv_lora_ranks: tuple[Dimension, ...] | None = None
    index_topk: Dimension | None = None
    """The only number of selected rows that it takes."""
    index_topk_multiple: Dimension | None = None
    """The number of selected rows is to be a multiple of this."""
    gathered_heads: tuple[Dimension, ...] | None = None
    """Query heads that its kernel takes: those of a rank, times DCP, which gathers the queries."""
    gathered_heads_under_dcp: tuple[Dimension, ...] | None = None
    refuses: tuple[Combination, ...] = ()
    cache_becomes: Mapping[Text, Text] = field(default_factory=dict)
    """Cache dtypes that it stores as another one."""
    dcp_interleave: Dimension | None = None
    """The only interleave of the cache, tokens, at which it starts under DCP."""
    absorbed_prefill: bool = False
    """Whether the rows that are no decode rows run in the latent space too."""
    requires: tuple[Text, ...] = ()
    """What else it asks for, in words."""
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseTail:
    """An ordering of the sparse backends, used where its conditions hold."""

    __pydantic_config__ = STRICT

    backends: Annotated[tuple[Text, ...], MinLen(1)]
    cache: Literal["quantised", "unquantised"] | None = None
    most_heads: Dimension | None = None
    """Query heads per rank up to which this ordering is used."""
    head_size: Dimension | None = None
    """Width of the cached row, values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The order in which vLLM tries backends on some GPUs; the first that accepts wins."""

    __pydantic_config__ = STRICT

    dense: Annotated[tuple[Text, ...], MinLen(1)]
    sparse: tuple[SparseTail, ...] = ()
    """Tried after the dense ones; the first whose conditions hold."""
    platform: Literal["cuda", "rocm"] = "cuda"
    aiter: bool | None = None
    """ROCm: whether AITER's MLA is enabled; absent: either."""
    kinds_apart: bool = False
    """Whether a DSA model is offered the sparse ones alone, and any other model the dense ones."""
    compute_capability_major: tuple[Dimension, ...] = ()
    """Majors that this ladder is for; none: all that no ladder before it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """How many attention backends the engine's enum has, and how many of them are for MLA."""

    __pydantic_config__ = STRICT

    total: Dimension
    mla: Dimension
    mla_directory: Dimension
    """Those that resolve into the shared MLA directory."""
    model_directories: Dimension
    """Those that models register from their own directories."""
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedMha:
    """Where vLLM's sparse prefill takes masked MHA: the first pair whose length covers the row decides.

    A published measurement of the crossover, in the tree of vLLM, for DSA models.
    """

    __pydantic_config__ = STRICT

    qk_head_dim: Dimension
    v_head_dim: Dimension
    backend: Text
    tp: Dimension
    pairs: Annotated[tuple[tuple[Dimension, Dimension], ...], MinLen(1)]
    """(longest sequence, least queries), tokens: MHA where the row has at least so many queries."""
    context_pairs: tuple[tuple[Dimension, Dimension], ...] | None = None
    """The pairs where a row has a prefix; none: no MHA there; absent: the same pairs."""
    also: tuple[Text, ...] = ()
    """Other backends whose prefill runs on the same kernel and looks here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsePrefill:
    """When the rows that are no decode rows of a DSA model take the MHA form in vLLM."""

    __pydantic_config__ = STRICT

    masked_mha: tuple[MaskedMha, ...] = ()
    masked_mha_majors: tuple[Dimension, ...] = ()
    """CUDA capability majors on which masked MHA exists."""
    masked_mha_dims: tuple[tuple[Dimension, Dimension, Dimension, Count, Dimension], ...] = ()
    """Models for which it exists: query heads, kv_lora_rank, nope, rope and value dimension per head."""
    mask_bytes: Large | None = None
    """Size of the buffer for the bit masks of one batch, bytes: a batch that needs more stays absorbed."""
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """Dimensions by which a family of models is known; a config's architecture is not kept in a model's record."""

    __pydantic_config__ = STRICT

    heads: Annotated[tuple[Dimension, ...], MinLen(1)]
    """Query heads of the whole model, one of these."""
    hidden_size: Dimension
    kv_lora_rank: Dimension
    qk_nope_head_dim: Dimension
    qk_rope_head_dim: Count
    v_head_dim: Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultBackend:
    """One line of SGLang's choice of an attention backend; the first whose conditions hold is taken."""

    __pydantic_config__ = STRICT

    backend: Text
    sparse: bool | None = None
    """Whether the model is a DSA one; absent: any."""
    platform: Literal["cuda", "rocm"] | None = None
    compute_capability_major: tuple[Dimension, ...] = ()
    heads: tuple[Dimension, ...] = ()
    """Query heads per rank for which it holds; none: any."""
    model: Text | None = None
    """A family of models, in words, where the rule names one."""
    shapes: tuple[AttentionShape, ...] = ()
    """The dimensions of the models of that family; one of them has to fit. None: any model."""
    source: Text


RuleKind = Literal["shared", "fa4", "no_threshold", "aiter", "triton", "dsa", "ascend"]
"""SGLang's predicates, each a function of engines/sglang.py; which handler has which is data."""

Circumstance = Literal["graph", "context_parallel", "deterministic", "ragged_disabled", "no_rope", "dcp"]
"""What keeps a handler of SGLang on the absorbed path whatever the batch: a prefill graph being captured or
replayed, context parallelism of the prefill, deterministic inference, ``--flashinfer-mla-disable-ragged``, a model
without rope slice, decode context parallelism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """SGLang's rule for one attention backend: which batches leave the absorbed path."""

    __pydantic_config__ = STRICT

    name: Text
    source: Text
    aliases: tuple[Text, ...] = ()
    kind: RuleKind | None = None
    """The predicate that it is; ``None`` where it was not read for this release."""
    rule: Text | None = None
    """The predicate in words. P and S are sums over the batch: of prefixes, and of whole lengths."""
    one_shot: bool | None = None
    """Whether it may take the whole context in one call where that fits the chunk capacity."""
    chunked_prefix: bool | None = None
    """Whether chunked prefixes stay enabled with it; without them only P = 0 leaves the absorbed path."""
    page_sizes: tuple[Dimension, ...] | None = None
    """Page sizes that it is forced to, tokens."""
    absorbed_when: tuple[Circumstance, ...] = ()
    """What keeps it absorbed whatever the batch."""
    packs_fp8_prefix: bool | None = None
    """Whether it expands prefixes of Kimi-K3's shape out of an fp8 cache on gfx95 (12 heads per rank)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixThreshold:
    """SGLang's threshold: a batch whose prefixes sum to it or more is worth expanding."""

    __pydantic_config__ = STRICT

    tokens: Dimension
    """Compared with the sum of the prefixes of the batch."""
    handlers: Annotated[tuple[Text, ...], MinLen(1)]
    """The handlers that compare with it; the others do not know it."""
    environment: Text
    """The variable that changes it. 0 widens the expanded path; it never forces the absorbed one."""
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCapacity:
    """Tokens of context that SGLang expands in one piece."""

    __pydantic_config__ = STRICT

    tokens: Dimension
    environment: Text
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One release of an inference engine."""

    __pydantic_config__ = STRICT

    name: Text
    aliases: tuple[Text, ...] = ()
    engine: Literal["vllm", "sglang"]
    release: Text
    commit: Text | None = None
    date: datetime.date
    """When the files of the release were built."""
    backends: tuple[Backend, ...] = ()
    ladder: tuple[Ladder, ...] = ()
    registry: Registry | None = None
    model_runner: Literal["v1", "v2"] | None = None
    """Which of vLLM's runners, and so which order of the batch, is the default."""
    parallel_drafting_runners: tuple[Literal["v1", "v2"], ...] | None = None
    """The runners under which parallel drafting widens a verified request by its draft tokens once more."""
    sparse_prefill: SparsePrefill | None = None
    workspace: WorkspaceRule | None = None
    chunk_plan: Literal["greedy", "equal"] | None = None
    """How prefixes are cut to fit the workspace: packed greedily, or in equal shares of it per request."""
    handlers: tuple[Handler, ...] = ()
    prefix_threshold: PrefixThreshold | None = None
    chunk_capacity: ChunkCapacity | None = None
    default_backends: tuple[DefaultBackend, ...] = ()
    backend_choices: tuple[Text, ...] = ()
    """What SGLang's ``--attention-backend`` takes; a name here without a handler takes triton's."""
    dense_attention_threshold: Dimension | None = None
    """SGLang, DSA: the longest sequence up to which a prefill is dense, where the model's top-k does not set it."""
    class_chain: Mapping[Text, Text] = field(default_factory=dict)
    """SGLang's backend classes: each with the class that it inherits from."""
    notes: tuple[Text, ...] = ()
    sources: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)


def thresholds_of(
    backend: Backend, heads_per_rank: int, compute_capability_major: int | None
) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The decode thresholds of ``backend``, query tokens, before speculation or context parallelism change them.

    Each with the majors that it is for (none: all that no table before names). Of one GPU there is one at
    most; without a major every table's. Empty where no threshold was read.
    """
    threshold = backend.decode_threshold
    if threshold is None:
        return ()
    if isinstance(threshold, int):
        return (((), threshold),)
    read = [
        (table.compute_capability_major, table.by_heads.get(str(heads_per_rank), table.otherwise))
        for table in threshold
    ]
    if compute_capability_major is None:
        return tuple(read)
    return tuple((majors, tokens) for majors, tokens in read if not majors or compute_capability_major in majors)[:1]


def threshold_for(backend: Backend, heads_per_rank: int, compute_capability_major: int) -> int:
    """The one decode threshold of ``backend`` on a GPU of this major; see :func:`thresholds_of`.

    Whether the backend runs on that GPU at all is another question: see :func:`runs_on`.

    Raises:
        InputError: no threshold was read for this backend in this release.
    """
    found = thresholds_of(backend, heads_per_rank, compute_capability_major)
    if not found:
        raise InputError(
            f"{backend.name}: no decode threshold is recorded for compute capability {compute_capability_major}.x"
        )
    return found[0][1]


def runs_on(backend: Backend, compute_capability_major: int) -> bool:
    """Whether ``backend`` is known to accept NVIDIA GPUs of this major, its other demands aside."""
    if backend.platform != "cuda" or not backend.gates_read:
        return False
    majors = backend.compute_capability_major
    return not majors or compute_capability_major in majors
