"""Cache layouts as data: how many bytes a cached row takes, part by part (docs/cost-model.md, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import MinLen

from ..data import kept, read_preset
from ..errors import InputError, either
from ..models.attention import GQA, MLA, Windowed
from ..schema import STRICT, Count, Dimension, Text, build


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a row: ``bytes`` for every ``per`` values of the dimension ``of``."""

    __pydantic_config__ = STRICT

    of: Literal["row", "kv_lora_rank", "qk_rope_head_dim", "once"]
    """``row`` is all of a row's values (of a head's key and value in a GQA cache); ``once`` is one."""
    bytes: Dimension
    per: Dimension = 1
    """Values that share the ``bytes``: 1 for a plain value, the group's size for a scale."""
    pad_to: Dimension = 1
    """The dimension is rounded up to a multiple of this first."""
    what: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one token's row is stored. A layout that has no ``heads`` parts is for latent caches alone."""

    __pydantic_config__ = STRICT

    name: Text
    aliases: tuple[Text, ...] = ()
    latent: Annotated[tuple[Part, ...], MinLen(1)]
    heads: tuple[Part, ...] = ()
    """The parts of one KV head's key and value in a GQA cache; empty: not defined for one."""
    only: Mapping[Literal["kv_lora_rank", "qk_rope_head_dim"], tuple[Count, ...]] = field(default_factory=dict)
    """Values of ``kv_lora_rank`` and ``qk_rope_head_dim`` that the layout is defined for; empty: any."""
    notes: tuple[Text, ...] = ()
    sources: Mapping[str, tuple[Text, ...]]


@kept
def load_layout(name: str | Path) -> Layout:
    """The cache layout that ``name`` means: a preset's name or alias, or a YAML file's path.

    Raises:
        InputError: nothing of that name, or a file that cannot be read or is not understood.
    """
    where, mapping = read_preset("layouts", name)
    return build(Layout, mapping, where)


def latent_row_bytes(layout: Layout, mla: MLA) -> int:
    """Bytes of one cached latent row (one token, one layer). DeepSeek-V3 in bf16: 576 values, 1,152 B.

    Raises:
        InputError: the layout is not defined for these widths, or its groups do not divide them.
    """
    widths: dict[str, int] = {"kv_lora_rank": mla.kv_lora_rank, "qk_rope_head_dim": mla.qk_rope_head_dim}
    for key, allowed in layout.only.items():
        if widths[key] not in allowed:
            raise InputError(
                f"the cache layout {layout.name} is defined for {key} {either(allowed)}, this model has {widths[key]}"
            )
    return _parts_bytes(layout, layout.latent, {**widths, "row": mla.row_values})


def head_bytes(layout: Layout, attention: GQA | Windowed) -> int:
    """Bytes of one KV head's key and value (one token, one layer).

    Raises:
        InputError: the layout stores latent rows alone, or its groups do not divide the widths.
    """
    if not layout.heads:
        raise InputError(f"the cache layout {layout.name} stores MLA rows, not keys and values per head")
    return _parts_bytes(layout, layout.heads, {"row": attention.qk_head_dim + attention.v_head_dim})


def _parts_bytes(layout: Layout, parts: tuple[Part, ...], widths: dict[str, int]) -> int:
    total = 0
    for part in parts:
        values = {**widths, "once": 1}[part.of]
        values = -(-values // part.pad_to) * part.pad_to
        if values % part.per:
            raise InputError(
                f"the cache layout {layout.name} stores {part.what} per {part.per} values; {values} do not divide"
            )
        total += values // part.per * part.bytes
    return total


def row_formula(parts: tuple[Part, ...]) -> str:
    """The bytes of a row as an expression over ``kv_lora_rank``, ``qk_rope_head_dim`` and ``row``."""
    terms = []
    for part in parts:
        values: str = "1" if part.of == "once" else part.of
        if part.pad_to > 1:
            values = f"-(-{values} // {part.pad_to}) * {part.pad_to}"
        terms.append(f"{values} // {part.per} * {part.bytes}" if part.per > 1 else f"{values} * {part.bytes}")
    return " + ".join(terms)
