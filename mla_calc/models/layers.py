"""Layer maps: which layers of a config cache without bound, and which are windowed or recurrent.

A config says it in one of several ways (a list of types, a list of layer numbers, a period). Each way has
a reader here; where a config says it twice, the readings have to agree. Layers are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..schema import MAX_DIMENSION
from .scopes import Scope
from .spellings import quoted

FULL, WINDOWED, RECURRENT = "cached", "windowed", "recurrent"
SPARSE_TYPES = ("deepseek_sparse_attention", "indexed_attention", "sparse_attention")
TYPES: Mapping[bool, Mapping[str, str]] = {
    True: {"full_attention": FULL, "linear_attention": RECURRENT, **dict.fromkeys(SPARSE_TYPES, FULL)},
    False: {"full_attention": FULL, "linear_attention": RECURRENT, "sliding_attention": WINDOWED},
}
"""What the words of ``layer_types`` mean, under MLA and under GQA."""

TRAILING_WINDOWED = ("gemma3", "gemma3_text", "cohere2")
"""Model types whose layers after the last whole period are windowed (transformers 5.24.0). Elsewhere
(EXAONE 4) the documentation and the code disagree about the last layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMap:
    """How many layers are of each kind, and by which key."""

    key: str
    cached: int
    windowed: int = 0
    recurrent: int = 0
    positions: Collection[int] | None = None
    """The cached layers, counted from 0; ``None`` where the config's own numbering has no known start."""
    sparse: int = 0
    """Cached layers that their type calls sparse."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """Cached, windowed and recurrent layers: what two readings have to agree on."""
        return self.cached, self.windowed, self.recurrent


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers of a model: how many the config counts, and what each kind of them caches."""

    key: str
    total: int
    per_layer: int
    """Caches per layer: 2 in LongCat, which has two MLA blocks in each."""
    map: LayerMap | None

    @property
    def cached(self) -> int:
        """Caches that grow with the context."""
        return self.per_layer * (self.map.cached if self.map else self.total)

    @property
    def windowed(self) -> int:
        """Layers whose cache stops at the window."""
        return self.map.windowed if self.map else 0

    @property
    def recurrent(self) -> int:
        """Layers that keep a state of fixed size."""
        return self.map.recurrent if self.map else 0


def read_layers(scope: Scope, mla: bool) -> Layers:
    """The layers of the config in ``scope``; every doubt about them is an InputError that names a key."""
    key, total, per_layer = _layer_count(scope, mla)
    maps = [found for read in MAPS if (found := read(scope, total, mla))]
    for other in maps[1:]:
        if other.counts != maps[0].counts:
            raise scope.error(f"{other.key} gives {_counted(other)}, but {maps[0].key} gives {_counted(maps[0])}")
    # A map whose positions are known serves the indexer; all of them agree on the counts.
    known = [found for found in maps if found.positions is not None]
    layers = Layers(key=key, total=total, per_layer=per_layer, map=(known or maps)[0] if maps else None)
    if not layers.cached:
        raise scope.error(f"{maps[0].key} leaves no layer whose cache grows with the context")
    if layers.cached > MAX_DIMENSION:
        raise scope.wrong(key, f"{per_layer} caches in each are more than {MAX_DIMENSION:,}")
    return layers


def _counted(found: LayerMap) -> str:
    return f"{found.cached} cached, {found.windowed} windowed and {found.recurrent} recurrent layers"


def _layer_count(scope: Scope, mla: bool) -> tuple[str, int, int]:
    """The key that counts the layers, their number, and the caches in each."""
    why = "the number of layers is needed"
    block_pairs = scope.optional("num_layers")
    if scope.model_type.startswith("longcat"):
        return _longcat_count(scope, mla)
    if block_pairs is not None and scope.given("num_hidden_layers") is None:
        raise scope.wrong(
            "num_layers",
            "how many caches a layer holds is not known for this model_type (LongCat has 2)",
        )
    total = scope.required("num_hidden_layers", why)
    if block_pairs not in (None, total):
        raise scope.wrong("num_layers", f"num_hidden_layers says {total}")
    found = scope.find("num_hidden_layers")
    assert found is not None  # required() found it
    return found[0], total, 1


def _longcat_count(scope: Scope, mla: bool) -> tuple[str, int, int]:
    """LongCat: ``num_layers`` layers of two MLA blocks each (transformers 5.24.0, vLLM)."""
    total = scope.required("num_layers", "LongCat counts its layers there, two MLA blocks in each")
    blocks = scope.optional("num_hidden_layers")
    if blocks not in (None, total, 2 * total):
        raise scope.error(f"num_hidden_layers is {blocks}: num_layers {total} allows {total} or {2 * total}")
    if not mla:
        raise scope.wrong("num_layers", "LongCat without kv_lora_rank is not known")
    return "num_layers", total, 2


def _by_layer_lists(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """``linear_attn_config``: Kimi counts its layers from 1, GLM-5.3-Flash from 0."""
    del mla
    config = scope.given("linear_attn_config")
    if config is None:
        return None
    if not isinstance(config, Mapping):
        raise scope.wrong("linear_attn_config", "a mapping is expected")
    if config.get("full_attn_layers") is None and scope.given("layer_types") is not None:
        return None
    key = scope.path("linear_attn_config")
    full = _numbers(scope, f"{key}.full_attn_layers", config.get("full_attn_layers"), total)
    start = _first_number(scope, key, config, full, total)
    return LayerMap(
        key=f"{key}.full_attn_layers",
        cached=len(full),
        recurrent=total - len(full),
        positions=None if start is None else frozenset(layer - start for layer in full),
    )


def _first_number(scope: Scope, key: str, config: Mapping[str, Any], full: set[int], total: int) -> int | None:
    """The number of the first layer, 0 or 1, if the lists tell; lists that do not fit are refused."""
    named = full
    if config.get("kda_layers") is not None:
        kda = _numbers(scope, f"{key}.kda_layers", config["kda_layers"], total)
        named = full | kda
        if full & kda or len(named) != total:
            raise scope.error(
                f"{key}: {len(full)} full_attn_layers and {len(kda)} kda_layers do not make up {total} layers"
            )
    if {0, total} <= named:
        raise scope.error(f"{key}: layers are numbered from 0 and up to {total}: that is one too many")
    return 0 if 0 in named else 1 if total in named else None


def _numbers(scope: Scope, key: str, value: object, total: int) -> set[int]:
    """A list of layer numbers, distinct, from 0 or from 1."""
    if not isinstance(value, list | tuple):
        raise scope.error(f"{key} is {quoted(value)}: a list of layer numbers is expected")
    numbers = [scope.whole(key, number, 0, total) for number in value]
    if len(set(numbers)) < len(numbers):
        raise scope.error(f"{key} names a layer twice")
    return set(numbers)


def _by_group(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """``layer_group_size`` (Ling, Ring): the last layer of each group attends, the others are linear."""
    del mla
    group = scope.optional("layer_group_size")
    if group is None:
        return None
    if not scope.model_type.startswith("bailing"):
        raise scope.wrong("layer_group_size", "known for bailing models only")
    if total % group:
        raise scope.wrong(
            "layer_group_size",
            f"it does not divide {total} layers, and engines disagree about the layers left over",
        )
    full = range(group - 1, total, group)
    return LayerMap(key=scope.path("layer_group_size"), cached=len(full), recurrent=total - len(full), positions=full)


def _by_types(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """``layer_types``: a word for each layer."""
    types = scope.listed("layer_types", total)
    if types is None:
        return None
    known = TYPES[mla]
    for word in types:
        if not isinstance(word, str) or word not in known:
            raise scope.error(
                f"{scope.path('layer_types')} has {quoted(word)}, which is not modelled"
                f" {'under MLA' if mla else 'without MLA'} (known: {', '.join(known)})"
            )
    kinds = [known[word] for word in types]
    sparse = sum(word in SPARSE_TYPES for word in types)
    return _of_kinds(scope.path("layer_types"), kinds, sparse)


def _of_kinds(key: str, kinds: Sequence[str], sparse: int = 0) -> LayerMap:
    return LayerMap(
        key=key,
        cached=kinds.count(FULL),
        windowed=kinds.count(WINDOWED),
        recurrent=kinds.count(RECURRENT),
        positions=frozenset(layer for layer, kind in enumerate(kinds) if kind == FULL),
        sparse=sparse,
    )


def _by_bits(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """``hybrid_layer_pattern`` (MiMo): 0 is a full layer, 1 a windowed one."""
    bits = scope.listed("hybrid_layer_pattern", total)
    if bits is None:
        return None
    if mla:
        raise scope.error(f"{scope.path('hybrid_layer_pattern')} is not known under MLA")
    kinds = [(FULL, WINDOWED)[scope.whole("hybrid_layer_pattern", bit, 0, 1)] for bit in bits]
    return _of_kinds(scope.path("hybrid_layer_pattern"), kinds)


def _by_period(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """``sliding_window_pattern`` p (Gemma 3, Cohere 2): layer i is full where (i + 1) % p == 0."""
    del mla
    period = scope.optional("sliding_window_pattern")
    if period is None:
        return None
    if total % period and scope.model_type not in TRAILING_WINDOWED:
        raise scope.wrong(
            "sliding_window_pattern",
            f"it does not divide {total} layers, and whether the last ones are windowed is not known",
        )
    full = range(period - 1, total, period)
    key = scope.path("sliding_window_pattern")
    return LayerMap(key=key, cached=len(full), windowed=total - len(full), positions=full)


def _by_max_window_layers(scope: Scope, total: int, mla: bool) -> LayerMap | None:
    """Qwen's ``use_sliding_window``: layers from ``max_window_layers`` on (transformers 5.24.0)."""
    del mla
    if not scope.flag("use_sliding_window") or scope.given("layer_types") is not None:
        return None
    first = scope.optional("max_window_layers", 0)
    if first is None:
        raise scope.missing("max_window_layers", "use_sliding_window is true: from which layer on?")
    full = range(min(first, total))
    key = scope.path("max_window_layers")
    return LayerMap(key=key, cached=len(full), windowed=total - len(full), positions=full)


MAPS: Sequence[Callable[[Scope, int, bool], LayerMap | None]] = (
    _by_types,  # first, since it alone tells sparse layers apart
    _by_layer_lists,
    _by_group,
    _by_bits,
    _by_period,
    _by_max_window_layers,
)
