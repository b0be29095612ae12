"""The gates of vLLM's ladder: what an MLA backend takes, and the sentence with which it refuses.

Read in vllm 0.33.0: vllm/v1/attention/backend.py:185-275 and each backend's ``supports_*``; what they compare with
is data of the preset. A page may span several of the kernel's: backend.py:122-138.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import either
from ..models.attention import MLA
from .preset import Backend, Combination


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the gates are asked about."""

    release: str
    model: str
    mla: MLA
    sparse: bool
    index_topk: int | None
    cache: tuple[str, ...]
    platform: str
    capability: tuple[int, int] | None
    heads: int
    block_size: int | None
    dcp: int

    @property
    def on(self) -> str:
        """The GPU, as the sentences name it."""
        return "ROCm" if self.capability is None else ".".join(map(str, self.capability))

    @property
    def major(self) -> int | None:
        """The major of the compute capability; ``None`` on ROCm."""
        return self.capability[0] if self.capability else None


def unread(backend: Backend | None) -> str:
    """What was not read of a backend that its verdict hangs on; empty where all was."""
    if backend is None or not backend.gates_read:
        return "its gates were"
    if backend.kv_cache_dtypes is None:
        return "its cache dtypes were"
    return "its head sizes were" if backend.head_sizes is None else ""


def refusal(backend: Backend, ask: Ask) -> str | None:
    """The first gate that refuses, in one sentence, or ``None`` where none does."""
    return next((sentence for gate in GATES if (sentence := gate(backend, ask))), None)


def _kind(backend: Backend, ask: Ask) -> str | None:
    if ask.sparse and backend.kind != "sparse":
        return f"attention of {ask.model} is sparse (DSA), and this backend is {backend.kind}"
    if not ask.sparse and backend.kind != "dense":
        return f"attention of {ask.model} is dense, and this backend is for sparse models (DSA)"
    return None


def _capability(backend: Backend, ask: Ask) -> str | None:
    majors = backend.compute_capability_major
    if not majors or ask.major is None or ask.major in majors:
        return None
    runs = " and ".join(f"{major}.x" for major in majors)
    if ask.major in backend.declared_majors:
        return f"it declares {ask.major}.x, but its dense kernel refuses all but {runs}"
    return f"it runs on compute capability {runs}, this GPU is {ask.on}"


def _cache(backend: Backend, ask: Ask) -> str | None:
    taken = backend.kv_cache_dtypes
    if taken is None or chosen_name(backend, ask):
        return None
    return f"cache dtype {' or '.join(ask.cache)} is not among those that it takes: {', '.join(taken)}"


def _least(backend: Backend, ask: Ask) -> str | None:
    chosen = chosen_name(backend, ask)
    least = backend.least_capability.get(chosen or "")
    if least is None or ask.capability is None or ask.capability >= tuple(map(int, least.split("."))):
        return None
    return f"its kernel reads {chosen} from compute capability {least} on, this GPU is {ask.on}"


def _head_size(backend: Backend, ask: Ask) -> str | None:
    sizes = backend.head_sizes
    if sizes is None or sizes == "any" or ask.mla.row_values in sizes:
        return None
    return f"it takes rows of {either(sizes)} values, this model's have {ask.mla.row_values}"


def _dimensions(backend: Backend, ask: Ask) -> str | None:
    for what, taken, value in (
        ("qk_nope_head_dim", backend.qk_nope_head_dims, ask.mla.qk_nope_head_dim),
        ("qk_rope_head_dim", backend.qk_rope_head_dims, ask.mla.qk_rope_head_dim),
        ("v_head_dim", backend.v_head_dims, ask.mla.v_head_dim),
        ("kv_lora_rank", backend.kv_lora_ranks, ask.mla.kv_lora_rank),
    ):
        if taken is not None and value not in taken:
            return f"it takes {what} {either(taken)}, this model has {value}"
    return None


def _topk(backend: Backend, ask: Ask) -> str | None:
    found, only, multiple = ask.index_topk, backend.index_topk, backend.index_topk_multiple
    if only is not None and found != only:
        return f"it takes index_topk {only}, this model has {found or 'none'}"
    if multiple is not None and (found is None or found % multiple):
        return f"it takes an index_topk that {multiple} divides, this model has {found or 'none'}"
    return None


def _heads(backend: Backend, ask: Ask) -> str | None:
    taken = backend.gathered_heads_under_dcp if ask.dcp > 1 else backend.gathered_heads
    if taken is None or ask.heads * ask.dcp in taken:
        return None
    gathered = f"{ask.heads} * DCP {ask.dcp} = {ask.heads * ask.dcp}" if ask.dcp > 1 else str(ask.heads)
    return f"it takes {either(taken)} query heads, here are {gathered} per rank"


def _block(backend: Backend, ask: Ask) -> str | None:
    units = (*(backend.block_sizes or ()), *((backend.block_multiple,) if backend.block_multiple else ()))
    if ask.block_size is None or not units or any(ask.block_size % unit == 0 for unit in units):
        return None
    return f"it takes pages of a multiple of {either(units)} tokens, not of {ask.block_size}"


def _dcp(backend: Backend, ask: Ask) -> str | None:
    if ask.dcp > 1 and backend.supports_dcp is False:
        return "it has no decode context parallelism"
    return None


def _combination(backend: Backend, ask: Ask) -> str | None:
    for item in backend.refuses:
        if _holds(item, chosen_name(backend, ask), ask):
            return f"it {item.reason}"
    return None


def _holds(item: Combination, cache: str | None, ask: Ask) -> bool:
    """Whether everything that a refused combination names is so."""
    mla = ask.mla
    return all(
        (
            item.head_size in (None, mla.row_values),
            item.rope in (None, mla.qk_rope_head_dim > 0),
            not item.kv_cache_dtypes or cache in item.kv_cache_dtypes,
            not item.kv_cache_dtypes_other_than or cache not in item.kv_cache_dtypes_other_than,
            not item.majors_other_than or ask.major not in item.majors_other_than,
            not item.qk_nope_head_dims_other_than or mla.qk_nope_head_dim not in item.qk_nope_head_dims_other_than,
            not item.kv_lora_ranks_other_than or mla.kv_lora_rank not in item.kv_lora_ranks_other_than,
        )
    )


GATES: tuple[Callable[[Backend, Ask], str | None], ...] = (
    _kind,
    _capability,
    _cache,
    _least,
    _head_size,
    _dimensions,
    _topk,
    _heads,
    _block,
    _dcp,
    _combination,
)
"""All are asked of every backend; the first to refuse gives the reason."""


def chosen_name(backend: Backend, ask: Ask) -> str | None:
    """The first of vLLM's names for the cache dtype that the backend lists."""
    return next((name for name in ask.cache if name in (backend.kv_cache_dtypes or ())), None)


def stored_as(backend: Backend, ask: Ask) -> str:
    """The cache dtype, by vLLM's name, in which the backend stores what was asked for."""
    chosen = chosen_name(backend, ask) or ask.cache[0]
    return backend.cache_becomes.get(chosen, chosen)
