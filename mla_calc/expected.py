"""Published figures, as a preset holds them: those that it must reproduce, and those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Strict

from .schema import STRICT, Count, Dimension, Large, Text

UNITS: Mapping[str, float] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "FLOP": 1,
    "FLOP/B": 1,
    "tokens": 1,
    "heads": 1,
    "x": 1,
}

Unit = Literal["B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "FLOP", "FLOP/B", "tokens", "heads", "x"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command's long options, with underscores; what is not given has the command's default."""

    __pydantic_config__ = STRICT

    model: Text | None = None
    gpu: Text | None = None
    vs: Text | None = None
    dtype: Text | None = None
    mma_dtype: Text | None = None
    tp: Dimension | None = None
    batch: Dimension | None = None
    queries: Dimension | None = None
    context: Large | None = None
    mtp_layers: Count | None = None
    block_size: Dimension | None = None
    max_model_len: Large | None = None
    max_num_seqs: Dimension | None = None
    rows_cap: Large | None = None

    def given(self) -> dict[str, int | str]:
        """The options that are set, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One published figure: the command and options that recompute it, the value, and who published it."""

    __pydantic_config__ = STRICT

    command: Literal["cache", "flops", "intensity", "crossover", "workspace"]
    key: Text
    """Dotted path into the command's ``results``: ``latent_bytes_per_token``, ``flop.queries_limit``."""
    value: Annotated[float, Strict()]
    unit: Unit
    rel: Annotated[float, Strict(), Ge(0), Le(0.1)] = 0.0
    """Relative tolerance: 0 for a figure printed in full, else what its rounding allows."""
    options: Options = field(default_factory=Options)
    source: Text
    note: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erratum:
    """A published figure that is wrong: a note beside the command's own where all these options are in force."""

    __pydantic_config__ = STRICT

    command: Literal["cache"]
    options: Options = field(default_factory=Options)
    note: Text
    """What was printed, what it should be, and why, in one sentence."""
    source: Text
    """Who printed it."""
