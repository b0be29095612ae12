"""The one record that every format is made from.

A table holds no numbers of its own: its cells are paths into ``results``, so what a table shows is in the
JSON by construction. This package knows nothing of attention; it renders what it is given.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from ..errors import InputError
from .chart import Chart

Results = dict[str, Any] | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that shows the value at ``path`` in the results, in one of the formats of format.py."""

    path: str
    kind: str = "integer"


@dataclass(frozen=True, slots=True)
class Table:
    """Headers and rows; a row's entries are texts or cells. ``caption`` stands above it, if any."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one figure comes about: its formula over ``names``, and where the inputs were read."""

    path: str
    formula: str
    names: Mapping[str, int | float]
    cite: str


@dataclass(frozen=True, slots=True)
class Report:
    """What one command answers. ``results`` holds plain values under the keys of the JSON schema."""

    command: str
    title: str
    inputs: dict[str, Any]
    results: Results
    tables: tuple[Table, ...]
    sentence: str
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    input_sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subtitle: str = ""
    show_sources: bool = False
    """Whether a terminal lists the sources too; other formats always do."""
    csv_rows: tuple[dict[str, Any], ...] = ()
    """The rows of the CSV where they are no one list of the results."""
    csv_columns: tuple[str, ...] = ()
    """Columns that a CSV has even without a row."""
    rows_path: str = ""
    """The list in ``results`` whose entries are the rows of the CSV; empty: the results are one row."""
    schema_version: int = 1
    chart: Chart | None = None
    """What ``--output`` draws into a figure's file; set where one is asked for."""
    chart_on_terminal: bool = False
    """Whether a terminal shows the chart too, below the tables."""

    @property
    def schema(self) -> str:
        """``mla-calc/<command>/1``."""
        return f"mla-calc/{self.command}/{self.schema_version}"


def plain(record: Any) -> Any:
    """A record of dataclasses as plain values: dataclasses become dicts, tuples lists, dates ISO texts."""
    if record is None or isinstance(record, str | int | float):
        return record  # most are, and the questions below take longer
    if is_dataclass(record):
        return {name: plain(getattr(record, name)) for name in _names(record.__class__)}
    if isinstance(record, Mapping):
        return {str(key): plain(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [plain(value) for value in record]
    return record.isoformat() if isinstance(record, datetime.date) else record


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def lookup(results: Results, path: str) -> Any:
    """The value at a dotted path: ``absorbed.kernels[1].flop``.

    Raises:
        InputError: nothing stands at ``path``.
    """
    value: Any = results
    for name, index in _steps(path):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"the results hold nothing at {path!r}") from None
    return value


@lru_cache(maxsize=1 << 12)
def _steps(path: str) -> tuple[tuple[str, str], ...]:
    """A path in steps; kept, since a figure looks up the same keys of thousands of records."""
    return tuple(_STEP.findall(path))


def flattened(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested results by dotted path, in order; lists by index."""
    items: Sequence[tuple[str, Any]]
    if isinstance(value, dict):
        items = [(f"{prefix}.{key}" if prefix else key, child) for key, child in value.items()]
    elif isinstance(value, list):
        if all(isinstance(child, int) for child in value):
            return {prefix: "x".join(map(str, value))} if value else {}
        items = [(f"{prefix}[{index}]", child) for index, child in enumerate(value)]
    else:
        return {prefix: value}
    return {path: leaf for key, child in items for path, leaf in flattened(child, key).items()}
