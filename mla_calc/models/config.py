"""A model's own config (``config.json``, DeepSeek's native json, Mistral's ``params.json``) as a record.

The contract: what a figure is, a key says. Nothing is guessed and nothing falls back: MLA is decided by
``kv_lora_rank`` alone, never by ``model_type`` or the number of KV heads, and a config that hints at
anything not modelled here is refused in one line that names the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from ..errors import InputError
from .attention import GQA, MLA, Model
from .bounded import STATE, read_recurrent, read_windowed
from .indexers import indexer_pattern, read_indexer
from .layers import Layers, read_layers
from .scopes import Scope, nothing_found, read_scope, refuse_latent, refuse_unmodelled
from .spellings import INDEXER, SLIDING, quoted, switched_on

FILES = ("config.json", "params.json")
MAX_CONTEXT = 1 << 40

NATIVE_CONTEXT = ("original_seq_len", "rope_factor")

MLA_KEYS = (
    "num_attention_heads",
    "hidden_size",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "q_lora_rank",
)
GQA_KEYS = ("num_attention_heads", "hidden_size", "num_key_value_heads", "head_dim", "v_head_dim")
V_HEAD_DIM_BY_DEFINITION = ("minicpm3",)
"""Model types that define ``v_head_dim`` as hidden_size / num_attention_heads and leave the key out. For
any other (Kimi-Linear: 72, where the model has 128) that quotient is wrong."""


def find_config(path: Path) -> Path:
    """The config at ``path``: the file itself, or ``config.json`` or ``params.json`` in a folder.

    Raises:
        InputError: there is no such file or folder, or the folder holds neither.
    """
    try:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        candidates = [path / name for name in FILES] if path.is_dir() else [path]
        found = next((file for file in candidates if not file.is_dir() and file.exists()), None)
    except OSError as error:  # a name too long, a folder that may not be searched
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if found is None:
        raise InputError(f"{path}: no {' or '.join(FILES)} in this folder")
    return found


def model_from_config(config: Mapping[str, Any], where: str) -> Model:
    """The model that ``config`` describes; ``where`` is the file's name, for messages and sources.

    Raises:
        InputError: a key is missing, wrong, contradicted by another, or means something not modelled.
    """
    scope = read_scope(config, where)
    refuse_unmodelled(scope)
    mla = _mla(scope)
    if mla is None:
        refuse_latent(scope, config)
    gqa = _gqa(scope) if mla is None else None
    layers = read_layers(scope, mla is not None)
    return _model(scope, mla, gqa, layers)


def _model(scope: Scope, mla: MLA | None, gqa: GQA | None, layers: Layers) -> Model:
    """The record, once the attention and the layers are known."""
    mtp_layers = scope.optional("num_nextn_predict_layers", 0)
    context, context_keys = _context(scope)
    model = Model(
        name=_name(scope),
        status="config",
        mla=mla,
        gqa=gqa,
        cached_layers=layers.cached,
        transformer_layers=layers.total,
        windowed=read_windowed(scope, gqa, layers),
        recurrent=read_recurrent(scope, layers),
        indexer=read_indexer(scope, layers, mtp_layers or 0) if mla else None,
        mtp_layers=mtp_layers,
        max_position_embeddings=context,
    )
    notes = tuple(_notes(scope, model, layers, context_keys))
    return replace(model, notes=notes, sources=_sources(scope, model, layers, context_keys))


def _sources(scope: Scope, model: Model, layers: Layers, context_keys: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Per field that is set, the keys it was read from."""
    by_map = (layers.map.key,) if layers.map else ()
    keys: dict[str, tuple[str, ...]] = {
        "mla": scope.paths(*MLA_KEYS),
        "gqa": scope.paths(*GQA_KEYS),
        "cached_layers": scope.paths(layers.key) + by_map,
        "transformer_layers": scope.paths(layers.key),
        "windowed": by_map + scope.paths("sliding_window", *SLIDING),
        "recurrent": by_map + scope.paths(*STATE),
        "indexer": scope.paths(*INDEXER, "index_kpool", *indexer_pattern(scope)),
        "mtp_layers": scope.paths("num_nextn_predict_layers"),
        "max_position_embeddings": scope.paths(*context_keys),
    }
    sources = {
        name: (f"{scope.where}: {', '.join(found)}",)
        for name, found in keys.items()
        if getattr(model, name) is not None
    }
    return {**sources, "default": (scope.where,)}


def _mla(scope: Scope) -> MLA | None:
    """The latent attention, or ``None`` where no key of it is there at all."""
    if not _has_rank(scope):
        return None
    why = "an MLA config (it has kv_lora_rank) needs it"
    mla = MLA(
        kv_lora_rank=scope.required("kv_lora_rank", why),
        heads=scope.required("num_attention_heads", why),
        hidden_size=scope.required("hidden_size", why),
        qk_nope_head_dim=scope.required("qk_nope_head_dim", why),
        qk_rope_head_dim=scope.required("qk_rope_head_dim", why, least=0),
        v_head_dim=_v_head_dim(scope, why),
        q_lora_rank=scope.optional("q_lora_rank", 0) or None,
        rotated=not scope.flag("mla_use_nope"),
    )
    _check_mla(scope, mla)
    return mla


def _has_rank(scope: Scope) -> bool:
    """Whether this is MLA: a ``kv_lora_rank`` is there, and is a positive number; else it is refused."""
    found = scope.find("kv_lora_rank")
    if found is None:
        return False
    key, rank = found
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise scope.wrong(key, "an MLA config needs a positive integer there")
    if scope.flag("use_mla") is False:
        raise scope.wrong("use_mla", f"{key} is {quoted(rank)}: one of the two is wrong")
    return True


def _v_head_dim(scope: Scope, why: str) -> int:
    """The width of a value; only MiniCPM3 defines it by other keys."""
    if scope.given("v_head_dim") is None and scope.model_type in V_HEAD_DIM_BY_DEFINITION:
        return _quotient(scope, "v_head_dim")
    return scope.required("v_head_dim", f"{why}; hidden_size / num_attention_heads would be a guess")


def _quotient(scope: Scope, name: str) -> int:
    """hidden_size / num_attention_heads, where ``name`` is defined so; it has to divide."""
    why = f"{name} is missing, and is counted from it"
    hidden, heads = (scope.required(key, why) for key in ("hidden_size", "num_attention_heads"))
    if hidden % heads:
        raise scope.error(f"{name} is missing, and hidden_size {hidden} / num_attention_heads {heads} leaves a rest")
    return hidden // heads


def _check_mla(scope: Scope, mla: MLA) -> None:
    """Refuse keys that contradict the dimensions read, or that describe a second attention."""
    for name in ("num_key_value_heads", "head_dim"):
        scope.optional(name, 0)  # neither is used, but a list or a string there is no plain MLA
    width = scope.optional("qk_head_dim")
    if width not in (None, mla.qk_head_dim):
        raise scope.wrong("qk_head_dim", f"qk_nope_head_dim and qk_rope_head_dim add up to {mla.qk_head_dim}")
    for key, value in scope.values.items():
        if key.startswith("swa_") and switched_on(value):
            raise scope.wrong(key, "sliding-window layers with an MLA of their own are not modelled")


def _gqa(scope: Scope) -> GQA:
    """Grouped-query attention; every count of heads has to be given, since class defaults differ."""
    if not any(scope.find(name) for name in ("num_attention_heads", "num_key_value_heads")):
        raise nothing_found(scope.where)
    heads = scope.required("num_attention_heads", "the number of query heads is needed")
    kv_heads = scope.required("num_key_value_heads", "without kv_lora_rank the number of KV heads is needed")
    if heads % kv_heads:
        key = (scope.find("num_key_value_heads") or ("num_key_value_heads",))[0]
        raise scope.wrong(key, f"it does not divide num_attention_heads {heads}")
    width = scope.optional("head_dim") or _quotient(scope, "head_dim")
    return GQA(
        heads=heads,
        hidden_size=scope.required("hidden_size", "the hidden size is needed"),
        kv_heads=kv_heads,
        qk_head_dim=width,
        v_head_dim=scope.optional("v_head_dim") or width,
    )


def _context(scope: Scope) -> tuple[int | None, tuple[str, ...]]:
    """The longest context in tokens, and the keys that gave it; ``None`` where no key does."""
    given = scope.optional("max_position_embeddings", most=MAX_CONTEXT)
    if given is not None:
        return given, ("max_position_embeddings",)
    yarn = scope.given("yarn")
    if yarn is None:
        return _extended(scope, scope.values, NATIVE_CONTEXT), NATIVE_CONTEXT
    if not isinstance(yarn, Mapping):
        raise scope.wrong("yarn", "a mapping is expected")
    return _extended(scope, yarn, ("original_max_position_embeddings", "factor"), "yarn."), ("yarn",)


def _extended(scope: Scope, holder: Mapping[str, Any], keys: tuple[str, str], prefix: str = "") -> int | None:
    """A trained length times the factor that stretches it, or ``None`` where one is absent."""
    length, factor = (holder.get(key) for key in keys)
    if length is None or factor is None:
        return None
    length = scope.whole(prefix + keys[0], length, most=MAX_CONTEXT)
    is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
    product = length * factor if is_number else 0
    if not 1 <= product <= MAX_CONTEXT or product != int(product):
        raise scope.wrong(prefix + keys[1], f"{length} times that is no number of tokens", factor)
    return int(product)


def _name(scope: Scope) -> str:
    """A name: the last part of ``_name_or_path``, else the folder's or the file's."""
    given = scope.values.get("_name_or_path")
    file = PurePath(scope.where)
    fallback = file.parent.name if file.name in FILES and file.parent.name else file.stem
    parts = given.replace("\\", "/").split("/") if isinstance(given, str) else []
    usable = [part.strip() for part in parts if part.strip(" .") and part.isprintable()]
    return usable[-1] if usable else fallback or "config"


def _notes(scope: Scope, model: Model, layers: Layers, context_keys: tuple[str, ...]) -> Iterator[str]:
    """Sentences on everything that was decided by other than a plain reading."""
    yield from _notes_on_dimensions(scope, model)
    if layers.per_layer > 1:
        yield f"two MLA caches per layer (num_layers {layers.total})"
    if layers.per_layer > 1 and model.indexer:
        yield "one indexer per layer, shared by its two caches"
    if model.recurrent:
        yield f"{model.recurrent.layers} linear-attention layers keep a fixed state per request, not priced"
    if model.windowed:
        yield f"{model.windowed.layers} sliding-window layers keep the last {model.windowed.window} tokens"
    attending = model.cached_layers // layers.per_layer
    if model.indexer and model.indexer.layers < attending:
        yield f"{model.indexer.layers} of {attending} layers hold indexer keys"
    if model.max_position_embeddings and context_keys != ("max_position_embeddings",):
        yield f"context {model.max_position_embeddings} = trained length times factor ({context_keys[0]})"


def _notes_on_dimensions(scope: Scope, model: Model) -> Iterator[str]:
    quotient = "hidden_size / num_attention_heads"
    if model.mla and scope.given("v_head_dim") is None:
        defined = f"model_type {scope.model_type} defines it as {quotient} = {model.mla.v_head_dim}"
        yield f"v_head_dim is absent; {defined}"
    if model.mla and scope.find("q_lora_rank") is None:
        yield "q_lora_rank is absent: queries are projected in one step"
    if model.gqa and scope.given("head_dim") is None:
        yield f"head_dim is absent: {quotient} = {model.gqa.qk_head_dim}"
