"""Writing what a run gave into a GPU preset: sections of its own, every other byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..data import kind_of, parse_yaml, read_mapping
from ..errors import InputError
from ..hardware.calibration import Boundary, Calibration
from ..hardware.crossovers import Crossovers
from ..hardware.gpu import GPU
from ..report.record import plain
from ..report.write import replacing
from ..schema import build
from .newer import merged, narrower

SECTIONS = {
    "calibration": "# Written by `mla-calc validate --calibrate`: fitted to the runs named, see docs/cost-model.md",
    "boundaries": "# Written by `mla-calc validate --calibrate`: measured in the runs named, see docs/cost-model.md",
    "crossovers": "# Written by `mla-calc validate --calibrate`: measured in the runs named, see docs/cost-model.md",
}
"""What is written, each under a line that says so."""
WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def write_calibration(
    path: Path,
    calibrations: Sequence[Calibration],
    crossovers: Sequence[Crossovers] = (),
    boundaries: Sequence[Boundary] = (),
) -> tuple[str, ...]:
    """Put what a run gave into the GPU preset at ``path``: constants in place of older ones of the same kernels and
    paths, crossovers in place of older ones, each of the same attention, dtype and cache.

    Constants of an attention kernel that was timed by itself leave those from whole paths, and the other way round:
    they hold for other cells. A path whose parts are new and whose boundary is not loses the old one, which belongs to
    the old parts. A section is written at the end of the file, or where it stands; the file is replaced in one step,
    and only if what it then holds is a GPU preset with these records and otherwise what it held before.

    Returns:
        Notes on what the preset holds less of than before: fits of fewer rows or fewer cells, fewer crossovers.

    Raises:
        InputError: no file, one that is no GPU preset, or one whose sections cannot be told from the rest.
    """
    path = path.resolve()  # a link stays, what it points to is replaced
    before = _preset(path)
    if not calibrations:
        raise InputError(f"{path}: there is no calibration to write")
    after = merged(before, calibrations, crossovers, boundaries)
    text = path.read_bytes().decode("utf-8")
    for section in SECTIONS:
        records = getattr(after, section)
        if records != getattr(before, section) or (section == "calibration"):
            text = _with_section(text, section, records)
    _check(path, text, after)
    with replacing(path, "--calibrate") as temporary:
        temporary.write_bytes(text.encode())
    return narrower(before, after)


def _preset(path: Path) -> GPU:
    mapping = read_mapping(path)
    if kind_of(mapping) != "gpus" or path.suffix.lower() == ".json":
        raise InputError(f"{path}: is no GPU preset in YAML; nothing was written")
    return build(GPU, mapping, str(path))


def _with_section(raw: str, section: str, records: Sequence[Calibration | Boundary | Crossovers]) -> str:
    """The text with these records under ``section``."""
    newline = "\r\n" if "\r\n" in raw else "\n"
    lines = [line for record in records for line in _lines(record)]
    head, tail = _around_section(raw, section, newline)
    if not lines:
        return head + tail
    return head + newline.join([SECTIONS[section], f"{section}:", *lines]) + newline + tail


def _around_section(raw: str, section: str, newline: str) -> tuple[str, str]:
    """What stands before the section and after it; all of the file and nothing where it has none."""
    lines = raw.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.startswith(f"{section}:")]
    if not starts:
        return raw + ("" if raw.endswith("\n") else newline), ""
    start = starts[0]
    inside = takewhile(lambda line: line[:1] in (" ", "-") or not line.strip(), lines[start + 1 :])
    end = start + 1 + len(list(inside))
    while not lines[end - 1].strip():
        end -= 1  # blank lines before the next key are its own
    if start and lines[start - 1].rstrip() == SECTIONS[section]:
        start -= 1
    return "".join(lines[:start]), "".join(lines[end:])


def _check(path: Path, text: str, expected: GPU) -> None:
    """Refuse to write what does not read back: a section in another YAML style would be cut in the wrong place."""
    try:
        after = build(GPU, parse_yaml(text, str(path)), str(path))
    except InputError:
        after = None
    if after != expected:
        raise InputError(
            f"{path}: its `calibration` or `crossovers` section is not in block style, as this tool writes it; "
            "nothing was written",
            "take the section out and calibrate again",
        )


def _lines(record: Calibration | Boundary | Crossovers) -> list[str]:
    """A record in a few lines: one for each field, longer ones folded; a list of records in lines of their own."""
    fields = {key: value for key, value in plain(record).items() if value not in (None, [])}
    lines: list[str] = []
    for key, value in fields.items():
        if key == "date":
            lines.append(f"    date: {value}")
        elif isinstance(value, list) and isinstance(value[0], dict):
            lines += [f"    {key}:", *(f"      - {_flow(item)}" for item in value)]
        else:
            lines += _folded(f"    {key}: {_flow(value)}")
    return ["  - " + lines[0].lstrip(), *lines[1:]]


def _folded(line: str) -> list[str]:
    """``line`` in pieces of at most :data:`WIDTH` columns, cut behind commas: YAML reads them as one.

    A curve is cut between its pairs. Where there is no comma, in one long text, a piece stays as long as it is.
    """
    pieces = []
    pairs = "[[" in line
    while len(line) > WIDTH and (cut := line.rfind("], [" if pairs else ", ", 0, WIDTH) + pairs) > pairs:
        pieces.append(line[: cut + 1])
        line = " " * 6 + line[cut + 2 :]
    return [*pieces, line]


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items() if item not in (None, [])) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return _number(value)


def _number(value: int | float) -> str:
    """Digits that YAML 1.1 reads as the number: an exponent wants a point and a sign."""
    if isinstance(value, int):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def _text(value: str) -> str:
    """The text itself where YAML reads it as one, double quotes around any other."""
    plain_text = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if plain_text else json.dumps(value)
