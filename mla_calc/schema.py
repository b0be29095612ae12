"""From a mapping out of YAML to a frozen record, checked once: types, ranges, unknown keys, all named.

Records are standard dataclasses whose fields carry their limits; pydantic checks a mapping against them
here, at the edge, and writes their JSON Schema. Inside, records are trusted.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, ConfigDict, Strict, TypeAdapter, ValidationError

from .errors import InputError, nearest, shown

Record = TypeVar("Record")

MAX_DIMENSION = 1 << 24


def _printable(text: str) -> str:
    """Refuse blank texts and control characters, which a terminal would obey."""
    if not text.strip():
        raise ValueError("is blank")
    if not text.isprintable():
        raise ValueError(f"holds a character that cannot be printed: {shown(text)}")
    return text


Text = Annotated[str, Strict(), AfterValidator(_printable)]
Dimension = Annotated[int, Strict(), Gt(0), Le(MAX_DIMENSION)]
"""A size that is at least 1: heads, a rank, a width, a number of layers."""
Count = Annotated[int, Strict(), Ge(0), Le(MAX_DIMENSION)]
"""A number that may be 0: rope width, MTP layers."""
Quantity = Annotated[float, Strict(), Ge(1e-6), Le(1e9)]
"""A measured or published figure: finite, positive, and of a size that its unit is used for."""
Large = Annotated[int, Strict(), Gt(0), Le(1 << 50)]
"""A count that is no dimension: tokens of context, parameters."""

_ADAPTERS: dict[type, TypeAdapter[Any]] = {}

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)
"""What every record read from YAML sets as ``__pydantic_config__``."""


def adapter(record: type[Record]) -> TypeAdapter[Record]:
    """The pydantic adapter of a record type (built once: building is the slow part)."""
    known: TypeAdapter[Record] | None = _ADAPTERS.get(record)
    if known is None:
        known = _ADAPTERS[record] = TypeAdapter(record)
    return known


def build(record: type[Record], mapping: dict[str, Any], where: str) -> Record:
    """``mapping`` as a ``record``; the first thing wrong with it, named by its key, is an InputError."""
    try:
        return adapter(record).validate_python(mapping)
    except ValidationError as error:
        raise InputError(*_first_problem(error, record, where)) from None


def problems(record: type[Record], mapping: dict[str, Any]) -> list[tuple[str, str]]:
    """Everything wrong with ``mapping``, as pairs of a dotted key and a sentence."""
    try:
        adapter(record).validate_python(mapping)
    except ValidationError as error:
        return [(_key(item), _sentence(item)) for item in error.errors(include_url=False)]
    return []


def _first_problem(error: ValidationError, record: type, where: str) -> tuple[str, str | None]:
    item = error.errors(include_url=False)[0]
    hint = None
    if item["type"] in ("unexpected_keyword_argument", "extra_forbidden") and len(item["loc"]) == 1:
        hint = nearest(str(item["loc"][-1]), adapter(record).json_schema().get("properties", ()))
    more = error.error_count() - 1
    also = f" (and {more} more)" if more else ""
    return f"{where}: {_key(item)}: {_sentence(item)}{also}", hint


def _key(item: Any) -> str:
    return ".".join(str(part) for part in item["loc"]) or "the file"


def _sentence(item: Any) -> str:
    kind, value = item["type"], item.get("input")
    if kind in ("missing", "missing_argument"):
        return "is missing"
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return "is not a key that is known here"
    if kind == "value_error":
        return str(item["ctx"]["error"])
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{message}, found {shown(value)}"
