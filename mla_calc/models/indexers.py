"""The indexer of sparse attention (DSA), and which layers hold its keys.

Three kinds of key say which layers index; lists go before periods, as in vLLM and SGLang. A layer that
does not index reuses the choice of the last one that did, and caches no indexer keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attention import Indexer
from .layers import Layers
from .scopes import Scope
from .spellings import INDEXER, INDEXER_PATTERNS, quoted

PATTERNS = ("indexer_types", "index_topk_pattern", "index_topk_freq", "index_skip_topk_offset")


def read_indexer(scope: Scope, layers: Layers, mtp_layers: int) -> Indexer | None:
    """The sparse-attention indexer, or ``None``; keys that describe half of one are refused."""
    said = [name for name in (*INDEXER, *INDEXER_PATTERNS) if scope.given(name) is not None]
    sparse = layers.map.sparse if layers.map else 0
    if not said and not sparse:
        return None
    why = f"{said[0]} is given" if said else "layer_types has sparse layers"
    why += f", and an indexer needs {', '.join(INDEXER)}"
    heads, width, topk = (scope.required(name, why) for name in INDEXER)
    if sparse and layers.map and sparse < layers.map.cached:
        raise scope.error("layer_types mixes full and sparse layers: which of them index is not known")
    pool = scope.optional("index_kpool") or 1
    if topk % pool:
        raise scope.wrong("index_kpool", f"it has to divide index_topk {topk}")
    count = _indexing_layers(scope, layers, mtp_layers)
    if not count:
        raise scope.error(f"{indexer_pattern(scope)[0]} leaves no layer that indexes")
    return Indexer(heads=heads, head_dim=width, topk=topk, layers=count, pool=pool)


def indexer_pattern(scope: Scope) -> tuple[str, ...]:
    """The keys that say which layers index: the first kind that is given, lists before the period."""
    if scope.given(PATTERNS[0]) is not None:
        return PATTERNS[:1]
    return PATTERNS[1:2] if scope.given(PATTERNS[1]) is not None else PATTERNS[2:]


def _indexing_layers(scope: Scope, layers: Layers, mtp_layers: int) -> int:
    """How many layers hold indexer keys; LongCat's two caches per layer share one indexer."""
    indexes = _index_rule(scope, layers.total, mtp_layers)
    found = layers.map
    positions = range(layers.total) if found is None else found.positions
    if indexes is None:
        return found.cached if found else layers.total
    if positions is None:
        raise scope.error(f"{indexer_pattern(scope)[0]} cannot be laid over layers of unknown numbering")
    return sum(map(indexes, positions))


def _index_rule(scope: Scope, total: int, mtp_layers: int) -> Callable[[int], bool] | None:
    """Whether a layer indexes, as a function of its number; ``None`` where all of them do."""
    key = indexer_pattern(scope)[0]
    if key == "indexer_types":
        return _words(scope, key, ("full", "shared"), total, mtp_layers)
    if key == "index_topk_pattern":
        return _words(scope, key, ("F", "S"), total, mtp_layers)
    freq = scope.optional("index_topk_freq") or 1
    offset = scope.optional("index_skip_topk_offset", 0)
    start = (2 if offset is None else offset) - 1
    return None if freq == 1 else lambda layer: max(layer - start, 0) % freq == 0


def _words(scope: Scope, key: str, words: tuple[str, str], total: int, mtp_layers: int) -> Callable[[int], bool]:
    """The rule of a list of words, one per layer; it may go on over the MTP layers, which are cut off."""
    value: Any = scope.given(key)
    entries = list(value) if isinstance(value, str) and key == "index_topk_pattern" else scope.listed(key)
    assert entries is not None
    if len(entries) not in (total, total + mtp_layers):
        raise scope.error(f"{scope.path(key)} has {len(entries)} entries for {total} layers")
    for word in entries:
        if word not in words:
            raise scope.error(f"{scope.path(key)} has {quoted(word)}: {' or '.join(words)} is expected")
    return lambda layer: bool(entries[layer] == words[0])
