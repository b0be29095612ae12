"""Reading a batch: ``--rows 1:4096,100:4096``, or a CSV or JSON file of it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data import parse_json, read_text
from ..engines.batch import Row
from ..errors import InputError, shown
from ..sizes import MAX_TOKENS, parse_count

MAX_ROWS = 100_000
COLUMNS = ("queries", "prefix")

_REPEATED = re.compile(r"([0-9]+)x(.*)")


def read_rows(text: str) -> tuple[Row, ...]:
    """The rows that ``text`` lists as ``queries:prefix`` pairs, or that the file at ``text`` holds.

    A CSV file has the columns ``queries`` and ``prefix``; a JSON file is a list of objects with these keys, or
    of pairs. ``k`` is 1024 in all of them; a pair may be repeated as ``8x1:4096``.

    Raises:
        InputError: a row that is not understood, no row, or too many of them.
    """
    if not text.strip():
        raise InputError(f"--rows {shown(text)}: holds no row")
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".json"):
        rows = list(_csv_rows(path) if suffix == ".csv" else _json_rows(path))
    else:
        rows = [row for entry in text.split(",") for row in _listed(entry)]
    if not rows:
        raise InputError(f"--rows {shown(text)}: holds no row")
    if len(rows) > MAX_ROWS:
        raise InputError(f"--rows {shown(text)}: {len(rows):,} rows; at most {MAX_ROWS:,} are accepted")
    return tuple(rows)


def _listed(entry: str) -> list[Row]:
    if not entry.strip():
        raise InputError("--rows: an entry between commas is empty")
    match = _REPEATED.fullmatch(entry.strip())
    pair = match[2] if match else entry
    count = parse_count(match[1], "--rows, repeats", most=MAX_ROWS) if match else 1
    queries, colon, prefix = pair.partition(":")
    if not colon:
        raise InputError(f"--rows {shown(entry)}: a row is queries:prefix, such as 1:4096 or 8x1:4096")
    return [_row(queries, prefix, "--rows")] * count


def _row(queries: str, prefix: str, where: str) -> Row:
    new = parse_count(queries, f"{where}, queries")
    old = parse_count(prefix, f"{where}, prefix", least=0)
    if new + old > MAX_TOKENS:
        raise InputError(f"{where}: a row of {new + old:,} keys; at most {MAX_TOKENS:,} are accepted")
    return Row(new, old)


def _csv_rows(path: Path) -> Iterator[Row]:
    lines = csv.DictReader(io.StringIO(read_text(path)), strict=True)
    try:
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]!r}; queries and prefix are needed")
        repeated = [name for name in COLUMNS if (lines.fieldnames or []).count(name) > 1]
        if repeated:
            raise InputError(f"{path}: has the column {repeated[0]!r} more than once")
        for line in lines:
            if None in line:
                raise InputError(f"{path}:{lines.line_num}: has more values than there are columns")
            yield _row(line["queries"] or "", line["prefix"] or "", f"{path}:{lines.line_num}")
    except csv.Error as error:
        raise InputError(f"{path}:{lines.line_num}: not valid CSV: {error}") from None


def _json_rows(path: Path) -> Iterator[Row]:
    entries = parse_json(read_text(path), str(path))
    if not isinstance(entries, list):
        raise InputError(f"{path}: a list of rows is expected")
    for index, entry in enumerate(entries):
        where = f"{path}: row {index}"
        queries, prefix = _pair(entry, where)
        yield _row(str(queries), str(prefix), where)


def _pair(entry: Any, where: str) -> tuple[Any, Any]:
    values = [entry.get(name) for name in COLUMNS] if isinstance(entry, dict) else entry
    whole = isinstance(values, list) and len(values) == 2
    if not whole or any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise InputError(f"{where}: {shown(entry)}: queries and prefix are expected, both whole numbers")
    return values[0], values[1]
