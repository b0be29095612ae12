"""Tokens and requests that fit on GPUs (docs/cost-model.md, section 10).

A GPU's memory less its weights, workspace and a reserve is its cache. One formula serves a single placement and
every placement of 4,096 GPUs: sizes are Python's integers or int64 arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import maximum
from ..errors import InputError
from ..hardware.roofline import Ceilings
from ..models.attention import MLA, Model, Stored
from .cache import paged
from .counts import absorbed_core_flop
from .layouts import Layout, latent_row_bytes
from .paths import Kernel, Work, absorbed_kernels, path_bound_s
from .placement import Placement, stage_caches, stage_layers
from .sharding import copies
from .tokens import LATENT, Form, TokenBytes, cached_attention, layers_bytes
from .weights import MAX_INTEGER, weights_bytes
from .workspace import WorkspaceRule, workspace_cost

if TYPE_CHECKING:
    from ..arrays import Floats, Ints, Width

MAX_CACHE_BYTES = 1 << 50
"""Most cache of one GPU: with 4,096 GPUs, every count stays below 2**63."""
STATE_VALUE_BYTES = 4
"""A recurrent state is fp32: vllm-project/vllm@2afe1e8573cf51b73569ae1d35f59078a2032a91
vllm/model_executor/layers/mamba/mamba_utils.py, kda_state_dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one GPU has and what goes before the cache; with ``cache_bytes`` the cache is given instead."""

    cache_bytes: int | None = None
    memory_bytes: int | None = None
    """As the runtime reports it."""
    reserve_bytes: int | None = None
    stored: tuple[Stored, Stored] | None = None
    """How the attention's weights and all others are stored."""
    rule: WorkspaceRule | None = None
    """The engine's rule for the workspace; ``None``: it sets none aside at the start."""
    max_model_len: int | None = None
    max_num_seqs: int = 256
    rows_cap: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is the same in every placement."""

    model: Model
    layout: Layout
    memory: Memory
    context: int
    """Tokens of a request."""
    form: Form = LATENT
    mtp_layers: int = 0
    ep: int | None = None
    """Ranks of a stage that share one copy of all weights but the attention's; ``None``: all of them."""
    indexer_whole: bool = False
    """Whether every DCP rank keeps all indexer keys, as in SGLang; vLLM spreads them like the rows."""
    block_size: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PerGPU:
    """One GPU of the largest pipeline stage, bytes; ``None`` where the cache was given or nothing was read."""

    memory_bytes: Ints | None
    weights_bytes: Ints | None
    workspace_bytes: Ints | None
    reserve_bytes: Ints | None
    cache_bytes: Ints
    bytes_per_token: Ints
    """Of cache, per token that this GPU holds."""
    tokens: Ints
    blocks: Ints
    short_bytes: Ints
    """What is missing where weights, workspace and reserve take more than there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What fits in one placement, or in each of many."""

    per_gpu: PerGPU
    unique_tokens: Ints
    copies: Ints
    requests: Ints | None
    fixed_bytes_per_request: Ints | None


def held(plan: Plan, at: Placement) -> Held:
    """What fits. Placements have to be legal; sizes are of a GPU of the largest pipeline stage.

    Raises:
        InputError: the layout or form does not fit the model, or its parameters are not known.
    """
    model = plan.model
    caches = stage_caches(model, at.pp, plan.mtp_layers)
    token = layers_bytes(model, plan.layout, caches, at.tp, plan.form)
    per_token = growing_bytes(plan, token, at)
    per_gpu = _per_gpu(plan, at, per_token)
    fixed = fixed_bytes(plan, token, at)
    requests = None
    if fixed is not None:
        window = model.windowed.window if model.windowed else 0
        bounded = paged(min(plan.context, window), plan.block_size) - paged(window, plan.block_size)
        growing = paged(-(-plan.context // at.dcp), plan.block_size) * per_token
        requests = at.dp * (per_gpu.cache_bytes // (growing + bounded * token.windowed + fixed))
    return Held(
        per_gpu=per_gpu,
        unique_tokens=per_gpu.tokens * at.dp * at.dcp,
        copies=copies(cached_attention(model, plan.form), at.tp) // at.dcp,
        requests=requests,
        fixed_bytes_per_request=fixed,
    )


def growing_bytes(plan: Plan, token: TokenBytes, at: Placement) -> Ints:
    """Bytes per token that a GPU holds of its own: DCP times the indexer keys where every rank keeps all.

    SGLang 0.5.23 model_executor/pool_configurator.py:400-409.
    """
    return token.main + (at.dcp if plan.indexer_whole else 1) * token.indexer


def fixed_bytes(plan: Plan, token: TokenBytes, at: Placement) -> Ints | None:
    """Bytes that a long request takes on a GPU whatever its context: full windows and recurrent states.

    ``None`` where a recurrent state's size is not known. Convolution states are left out.
    """
    model = plan.model
    windows = token.windowed * paged(model.windowed.window, plan.block_size) if model.windowed else 0
    if model.recurrent is None:
        return windows
    if model.recurrent.state_values is None:
        return None
    state = -(-model.recurrent.state_values // at.tp) * STATE_VALUE_BYTES
    return windows + -(-model.recurrent.layers // at.pp) * state


def _per_gpu(plan: Plan, at: Placement, per_token: Ints) -> PerGPU:
    memory = plan.memory
    weights = workspace = None
    cache, short = memory.cache_bytes, 0
    if cache is None:
        assert memory.memory_bytes is not None
        assert memory.reserve_bytes is not None
        assert memory.stored is not None
        weights = weights_bytes(
            plan.model,
            memory.stored,
            tp=at.tp,
            ep=at.stage_ranks if plan.ep is None else plan.ep,
            caches=stage_caches(plan.model, at.pp).cached,
            layers=stage_layers(plan.model, at.pp),
        )
        workspace = _workspace(plan, at)
        left = memory.memory_bytes - memory.reserve_bytes - weights - (0 if workspace is None else workspace)
        cache, short = maximum(left, 0), maximum(-left, 0)
    return PerGPU(
        memory_bytes=memory.memory_bytes,
        weights_bytes=weights,
        workspace_bytes=workspace,
        reserve_bytes=memory.reserve_bytes,
        cache_bytes=cache,
        bytes_per_token=per_token,
        tokens=cache // per_token,
        blocks=cache // per_token // plan.block_size,
        short_bytes=short,
    )


def _workspace(plan: Plan, at: Placement) -> Ints | None:
    """Bytes that chunked prefill keeps from the cache; 0 where there is no latent to expand."""
    mla, memory = plan.model.mla, plan.memory
    if mla is None or plan.form.name != "latent":
        return 0
    if memory.rule is None:
        return None
    rule = memory.rule

    def of_ranks(tp: int, dcp: int) -> int:
        assert memory.max_model_len is not None
        return workspace_cost(
            mla,
            max_model_len=memory.max_model_len,
            cache_bytes_per_token=1,
            tp=tp,
            dcp=dcp,
            max_num_seqs=memory.max_num_seqs,
            block_size=plan.block_size,
            rows_cap=memory.rows_cap,
            rule=rule,
            indexer=plan.model.indexer,
        ).held_bytes

    return _by_ranks(of_ranks, at)


def _by_ranks(of_ranks: Any, at: Placement) -> Ints:
    """A figure that TP and DCP decide, worked out once for each pair of them."""
    if isinstance(at.tp, int):
        return of_ranks(at.tp, at.dcp)
    import numpy as np

    pairs, which = np.unique(np.stack([at.tp, at.dcp]), axis=1, return_inverse=True)
    return np.array([of_ranks(tp, dcp) for tp, dcp in pairs.T.tolist()], dtype=np.int64)[which.ravel()]


def total_decode_bound_s(plan: Plan, at: Placement, batch: int, ceilings: Ceilings, weight_bytes: Width = 2) -> Floats:
    """Bound of one absorbed decode step through all layers, s: ``batch`` requests spread over the DP groups.

    Under DCP a rank attends for DCP times its heads over a DCP-th of the rows; the folds stay its own. Pipeline
    stages run one after another. Only for MLA models that cache the latent.

    Raises:
        InputError: more FLOPs than a 64-bit count holds.
    """
    mla = plan.model.mla
    assert mla is not None
    if batch * plan.context * absorbed_core_flop(mla, mla.heads) > MAX_INTEGER:
        raise InputError(f"a batch of {batch:,} requests of {plan.context:,} tokens is more than can be counted")
    return plan.model.cached_layers * path_bound_s(decode_kernels(plan, at, batch, weight_bytes), ceilings)


def decode_kernels(plan: Plan, at: Placement, batch: int, weight_bytes: Width = 2) -> tuple[Kernel, ...]:
    """The absorbed kernels of one layer's decode step on a rank, as :func:`total_decode_bound_s` prices them."""
    mla = plan.model.mla
    assert mla is not None
    step = {"queries": 1, "batch": -(-batch // at.dp), "weight_bytes": weight_bytes}
    step["row_bytes"] = latent_row_bytes(plan.layout, mla)
    own = absorbed_kernels(mla, Work(context=plan.context, tp=at.tp, **step))
    shared = absorbed_kernels(mla, Work(context=-(-plan.context // at.dcp), tp=at.tp // at.dcp, **step))
    return tuple(two if one.name == "attention" else one for one, two in zip(own, shared, strict=True))


def cluster_bytes_per_token(plan: Plan, at: Placement) -> int:
    """Bytes that the cluster stores for one token: its copies, over all layers; windowed layers apart."""
    attention = cached_attention(plan.model, plan.form)
    whole = layers_bytes(plan.model, plan.layout, stage_caches(plan.model, 1, plan.mtp_layers), 1, plan.form)
    main: int = whole.main * (copies(attention, at.tp) // at.dcp)
    keys: int = whole.indexer * (indexer_copies(plan, at) or 0)
    return main + keys


def indexer_copies(plan: Plan, at: Placement) -> int | None:
    """Copies of an indexer key: it has no head axis, so TP copies it, and DCP spreads it where it is not kept whole.

    ``None`` where there is no indexer.
    """
    if plan.model.indexer is None:
        return None
    keys: int = at.tp if plan.indexer_whole else at.tp // at.dcp
    return keys


def caches_latent(plan: Plan) -> bool:
    """Whether what is cached is a latent: only then is there a decode bound."""
    return isinstance(cached_attention(plan.model, plan.form), MLA)
