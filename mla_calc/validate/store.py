"""A run as a JSON file: written whole or not at all, and checked against the schema when it is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..data import parse_json, read_text
from ..errors import InputError, shown
from ..report.record import plain
from ..report.write import replacing, write_utf8
from ..schema import build
from .record import SCHEMA, Row, Run

LEAST_US, MOST_US = 1e-3, 1e9
"""No kernel takes less than a nanosecond, and no call that is timed as often as it must be takes 17 minutes."""
MAX_RECORDING_BYTES = 64 << 20
"""A row takes some 350 B as JSON."""
MAX_ROWS = 100_000
MOST_NAME = 60
"""Characters of a kernel's name."""
ANSWER = "mla-calc/validate/"


def write_run(run: Run, path: Path) -> None:
    """Write ``run`` to ``path`` as JSON; reading it back gives an equal record, to the last bit of every float.

    Raises:
        InputError: the file cannot be written.
    """
    text = json.dumps(plain(run), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with replacing(path, option=None) as temporary:
        write_utf8(temporary, text)


def read_run(path: Path) -> Run:
    """The run at ``path``.

    Raises:
        InputError: the file cannot be read, or holds no run of the schema that this version writes.
    """
    return run_of_text(read_text(path, MAX_RECORDING_BYTES, "a recording"), str(path))


def run_of_text(text: str, where: str) -> Run:
    """The run that ``text`` holds; ``where`` is the file that errors name.

    Raises:
        InputError: not JSON, another schema, or a record with something wrong in it, named by its key.
    """
    value = parse_json(text, where)
    if not isinstance(value, dict):
        raise InputError(f"{where}: a run of `mla-calc validate` is expected: one JSON object")
    _check_schema(value.get("schema"), where)
    rows = value.get("rows")
    if isinstance(rows, list) and len(rows) > MAX_ROWS:
        raise InputError(f"{where}: more than {MAX_ROWS:,} rows")
    run = build(Run, value, where)
    _check_times(run, where)
    for index, row in enumerate(run.rows):
        check_row(row, f"{where}: rows[{index}]")
    return run


def check_row(row: Row, where: str) -> None:
    """Refuse a row that cannot have been measured, or a name that no table has room for. Raises InputError."""
    if len(row.kernel) > MOST_NAME:
        raise InputError(f"{where}: kernel has {len(row.kernel):,} characters; at most {MOST_NAME} are read")
    if row.queries > row.context:
        raise InputError(
            f"{where}: {row.queries:,} queries are more than the context of {row.context:,}, "
            "which counts the new tokens too"
        )
    times = [(name, value) for name in ("p10_us", "time_us", "p90_us") if (value := getattr(row, name)) is not None]
    for name, value in times:
        if not LEAST_US <= value <= MOST_US:
            raise InputError(f"{where}: {name} is {value:g}: {LEAST_US:g} to {MOST_US:g} us is accepted")
    for (low, least), (high, most) in pairwise(times):
        if least > most:
            raise InputError(f"{where}: {low} is {least:g} and {high} is {most:g}: they do not rise")


def _check_times(run: Run, where: str) -> None:
    """Refuse a start or an end that is no time, and an end before the start."""
    times = {}
    for name in ("started", "finished"):
        text = getattr(run, name)
        if text is None:
            continue
        try:
            times[name] = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"{where}: {name} is {shown(text)}: a time is expected, such as 2026-11-30T01:30:00+00:00"
            ) from None
        if times[name].tzinfo is None:
            times[name] = times[name].replace(tzinfo=UTC)
    if "finished" in times and times["finished"] < times["started"]:
        raise InputError(f"{where}: finished, {run.finished}, is before started, {run.started}")


def _check_schema(schema: Any, where: str) -> None:
    if schema == SCHEMA:
        return
    if schema is None:
        raise InputError(f"{where}: holds no run of `mla-calc validate`: the key 'schema' is missing")
    hint = None
    if str(schema).startswith(ANSWER):
        hint = "this is the comparison that was printed; the run itself is the file that --record names"
    raise InputError(f"{where}: the schema {shown(schema)} is not known here; {SCHEMA} is read", hint)
