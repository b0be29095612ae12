"""Other people's measurements: a CSV file as checked lines of text, each with the place that errors name."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import InputError, nearest, shown
from .store import MAX_ROWS

FILLED_BY = {"gpu": "--gpu", "dtype": "--dtype"}
"""Columns that an option fills where the file lacks them."""
REQUIRED = ("gpu", "kernel", "dtype", "heads", "batch", "queries", "context", "time_us")
OPTIONAL = ("scope", "model", "p10_us", "p90_us")

_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: the texts of the columns that are read; a column that the file lacks is not in it."""

    values: Mapping[str, str]
    where: str


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines, the known columns that the file has, and those that nothing here reads."""

    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    ignored: tuple[str, ...]


def read_lines(text: str, source: str, filled: frozenset[str]) -> Lines:
    """The lines of the CSV ``text``; columns in ``filled`` have an option that stands for them.

    Raises:
        InputError: a separator other than the comma, a column that is missing or stands twice, a line with more
            or fewer values than columns, no line, or too many.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next((line for line in reader if line), [])]
        _check_header(header, f"{source}:{reader.line_num}", filled)
        lines = tuple(_lines(reader, header, source))
    except csv.Error as error:
        raise InputError(f"{source}:{reader.line_num}: not valid CSV: {error}") from None
    if not lines:
        raise InputError(f"{source}: holds no row below its header")
    known = (*REQUIRED, *OPTIONAL)
    return Lines(
        lines,
        columns=tuple(name for name in known if name in header),
        ignored=tuple(dict.fromkeys(name for name in header if name and name not in known)),
    )


def number(text: str, where: str, column: str) -> float:
    """A positive decimal number. Raises InputError for anything else, infinities and NaN included."""
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0 < value < float("inf"):
        raise InputError(f"{where}: {column} is {shown(text)}: a time in us is expected, such as 16.3")
    return value


def _check_header(header: list[str], where: str, filled: frozenset[str]) -> None:
    """``where`` is the header's file and line."""
    known = (*REQUIRED, *OPTIONAL)
    if header and header[0].startswith("#"):
        raise InputError(f"{where}: is a comment, where the header is expected; a CSV has none")
    if len(header) == 1 and header[0] not in known:
        separator = next((name for mark, name in ((";", "semicolons"), ("\t", "tabs")) if mark in header[0]), None)
        if separator:
            raise InputError(f"{where}: the columns are separated by {separator}; commas are expected")
    for name in known:
        if header.count(name) > 1:
            raise InputError(f"{where}: has the column {name!r} more than once")
    for name in REQUIRED:
        if name in header or name in filled:
            continue
        option = FILLED_BY.get(name)
        hint = f"{option} fills it for every row" if option else _hint(name, header)
        needed = ", ".join(column for column in REQUIRED if column not in filled)
        raise InputError(f"{where}: has no column {name!r}; {needed} are needed", hint)


def _hint(name: str, header: list[str]) -> str | None:
    """A column that may be meant. One of times in another unit is none: a new name would change what they say."""
    times = [other for other in header if "time" in other or "latency" in other]
    if name == "time_us" and times:
        return f"times are in us: is {shown(times[0])} in another unit, its numbers have to be converted too"
    return nearest(name, [other for other in header if other])


def _lines(reader: Iterator[list[str]], header: list[str], source: str) -> Iterator[Line]:
    count = 0
    start: int = reader.line_num + 1  # type: ignore[attr-defined]
    for values in reader:
        where = f"{source}:{start}"  # the line that it begins in: a quoted value may hold line breaks
        start = reader.line_num + 1  # type: ignore[attr-defined]
        if not values:
            continue
        count += 1
        if count > MAX_ROWS:
            raise InputError(f"{source}: more than {MAX_ROWS:,} rows")
        if len(values) != len(header):
            raise InputError(f"{where}: has {len(values)} values, the header has {len(header)}")
        yield Line({name: value.strip() for name, value in zip(header, values, strict=True)}, where)
