"""A config as one flat set of keys: nesting undone, spellings known, and what is not modelled refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..schema import MAX_DIMENSION
from .spellings import (
    ATTENTION,
    MLA_ONLY,
    NEEDS_LAYER_MAP,
    NOT_MODELLED,
    NOT_MODELLED_PREFIXES,
    RECURRENT_MAPS,
    SPELLINGS,
    WRAPPERS,
    matters,
    quoted,
    same,
    switched_on,
)


def problem(where: str, message: str, hint: str | None = None) -> InputError:
    """The error for the file ``where``, on one line, whatever a config's own keys hold."""
    return InputError(" ".join(f"{where}: {message}".split()), hint)


@dataclass(frozen=True, slots=True)
class Scope:
    """The keys that describe one attention: the top of a config and, over it, its text config."""

    where: str
    values: Mapping[str, Any]
    wrapper: str = ""
    """The key under which the nested keys stand, or nothing."""
    nested: frozenset[str] = frozenset()

    @property
    def model_type(self) -> str:
        """The (nested) ``model_type``, or an empty string."""
        value = self.values.get("model_type")
        return value if isinstance(value, str) else ""

    def path(self, key: str) -> str:
        """``key`` as it is found in the file: ``text_config.kv_lora_rank``."""
        return f"{self.wrapper}.{key}" if key in self.nested else key

    def error(self, message: str, hint: str | None = None) -> InputError:
        """The error to raise, with the file's name before ``message``."""
        return problem(self.where, message, hint)

    def wrong(self, key: str, need: str, value: object = None) -> InputError:
        """The error for a key whose value is refused; ``need`` says why or what is accepted."""
        value = self.values.get(key) if value is None else value
        return self.error(f"{self.path(key)} is {quoted(value)}: {need}")

    def missing(self, name: str, why: str) -> InputError:
        """The error for a key that has to be there and is not, or is null."""
        found = self.find(name)
        if found:
            return self.wrong(found[0], why)
        others = [key for key in SPELLINGS.get(name, ()) if key != name]
        also = f" (nor {', '.join(others)})" if others else ""
        return self.error(f"{name} is missing{also}: {why}")

    def find(self, name: str) -> tuple[str, Any] | None:
        """The key by which ``name`` is spelt here and its value; two that differ are refused."""
        keys = [key for key in SPELLINGS.get(name, (name,)) if key in self.values]
        for other in keys[1:]:
            if not same(self.values[keys[0]], self.values[other]):
                raise self.wrong(
                    keys[0],
                    f"{self.path(other)} is another spelling of it and says {quoted(self.values[other])}",
                )
        return (keys[0], self.values[keys[0]]) if keys else None

    def given(self, name: str) -> Any:
        """The value of ``name``, ``None`` where it is absent or null."""
        found = self.find(name)
        return found[1] if found else None

    def optional(self, name: str, least: int = 1, most: int = MAX_DIMENSION) -> int | None:
        """The whole number ``name``, or ``None`` where it is absent or null."""
        found = self.find(name)
        if found is None or found[1] is None:
            return None
        return self.whole(found[0], found[1], least, most)

    def required(self, name: str, why: str, least: int = 1) -> int:
        """The whole number ``name``; ``why`` ends the message where it is absent or null."""
        value = self.optional(name, least)
        if value is None:
            raise self.missing(name, why)
        return value

    def whole(self, key: str, value: object, least: int = 1, most: int = MAX_DIMENSION) -> int:
        """``value`` checked: an int, not a bool, from ``least`` to ``most``."""
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most:,} is expected", value)
        return int(value)

    def flag(self, key: str) -> bool | None:
        """A key that is true or false, ``None`` where it is absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false is expected")
        return value

    def listed(self, key: str, length: int | None = None) -> Sequence[Any] | None:
        """A key that holds a list, of ``length`` entries where given; ``None`` where absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.wrong(key, "a list is expected")
        if length is not None and len(value) != length:
            raise self.error(f"{self.path(key)} has {len(value)} entries for {length} layers")
        return value

    def paths(self, *names: str) -> tuple[str, ...]:
        """Those of ``names`` that are given here, as they are spelt; a null q_lora_rank tells too."""
        keys = (found for name in names if (found := self.find(name)))
        told = (key for key, value in keys if value is not None or key in SPELLINGS["q_lora_rank"])
        return tuple(self.path(key) for key in told)


def read_scope(config: Mapping[str, Any], where: str) -> Scope:
    """The keys of the language model: the top of the config and what its text config lays over it."""
    if not isinstance(config, Mapping):
        raise problem(where, f"a mapping is expected, found {quoted(config)}")
    wrapper = _wrapper(config, where)
    inner: Mapping[str, Any] = config[wrapper] if wrapper else {}
    for key in inner:
        if matters(key) and key in config and not same(config[key], inner[key]):
            raise problem(
                where,
                f"{key} is {quoted(config[key])} at the top"
                f" and {quoted(inner[key])} in {wrapper}: which one holds is not known",
            )
    name = {"_name_or_path": config.get("_name_or_path") or inner.get("_name_or_path")}
    scope = Scope(where, _strings({**config, **inner, **name}), wrapper, frozenset(inner))
    if not any(matters(key) for key in scope.values):
        raise nothing_found(where)
    return scope


def _strings(config: Mapping[Any, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if isinstance(key, str)}


def nothing_found(where: str) -> InputError:
    """The error for a config without an attention: which keys were looked for, and where."""
    return problem(
        where,
        f"no attention key found; looked for {', '.join(ATTENTION)} at the top and in {', '.join(WRAPPERS)}",
    )


def _wrapper(config: Mapping[str, Any], where: str) -> str:
    """The one key of ``WRAPPERS`` whose mapping holds attention keys, or an empty string."""
    holders = [key for key in WRAPPERS if _matters_inside(config, key, where)]
    if len(holders) > 1:
        raise problem(where, f"{' and '.join(holders)} both hold attention keys: which one is meant is not known")
    for key in WRAPPERS if holders else ():
        if _matters_inside(config[holders[0]], key, where):
            raise problem(where, f"{holders[0]}.{key} holds attention keys, one level too deep")
    return holders[0] if holders else ""


def _matters_inside(config: Mapping[str, Any], key: str, where: str) -> bool:
    inner = config.get(key)
    if inner is not None and not isinstance(inner, Mapping):
        raise problem(where, f"{key} is {quoted(inner)}: a mapping is expected")
    return inner is not None and any(map(matters, inner))


def refuse_unmodelled(scope: Scope) -> None:
    """Refuse every key that changes what is cached in a way that is not modelled."""
    for key, value in scope.values.items():
        prefixed = (why for prefix, why in NOT_MODELLED_PREFIXES.items() if key.startswith(prefix))
        reason = NOT_MODELLED.get(key) or next(prefixed, None)
        if reason and switched_on(value) and not _is_mimo_window(scope, key):
            raise scope.wrong(key, reason)
    _refuse_without_map(scope)


def _is_mimo_window(scope: Scope, key: str) -> bool:
    """MiMo-V2 repeats its window as ``attention_chunk_size``; its layers are windowed, not chunked."""
    pattern = scope.given("hybrid_layer_pattern")
    return key == "attention_chunk_size" and bool(pattern) and same(scope.values[key], scope.given("sliding_window"))


def _refuse_without_map(scope: Scope) -> None:
    if any(scope.given(key) is not None for key in RECURRENT_MAPS):
        return
    for key in NEEDS_LAYER_MAP:
        if switched_on(scope.given(key)):
            raise scope.wrong(key, "which layers it leaves to attend is not known without layer_types")


def refuse_latent(scope: Scope, config: Mapping[str, Any]) -> None:
    """Refuse what hints at latent or sparse attention, before a config is read as GQA."""
    for key, value in scope.values.items():
        if MLA_ONLY.search(key):
            raise scope.wrong(key, "only latent attention has this key, but there is no kv_lora_rank", value)
        if key.startswith(("index_", "indexer_")) and switched_on(value):
            raise scope.wrong(key, "an indexer is known for MLA only, and there is no kv_lora_rank")
    stray = _stray(config)
    if stray:
        raise scope.error(f"{stray} stands in a place where it is not read: {', '.join(WRAPPERS)} or the top is")


def _stray(config: Mapping[str, Any]) -> str | None:
    """A spelling of ``kv_lora_rank`` anywhere in ``config``, however deep."""
    level: list[object] = [config]
    while level:
        mappings = [item for item in level if isinstance(item, Mapping)]
        for key in SPELLINGS["kv_lora_rank"]:
            if any(key in item for item in mappings):
                return key
        level = [child for item in level for child in _children(item)]
    return None


def _children(item: object) -> list[object]:
    if isinstance(item, Mapping):
        return list(item.values())
    return list(item) if isinstance(item, list | tuple) else []
