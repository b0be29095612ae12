"""Writing constants into a GPU preset: its ``calibration:`` section alone, every other byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..data import kind_of, parse_yaml, read_mapping
from ..errors import InputError
from ..hardware.calibration import Calibration
from ..hardware.gpu import GPU
from ..report.record import plain
from ..report.write import replacing
from ..schema import build

SECTION = "calibration"
COMMENT = "# Written by `mla-calc validate --calibrate`: fitted to the runs named, see docs/cost-model.md"

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def write_calibration(path: Path, calibrations: Sequence[Calibration]) -> None:
    """Put ``calibrations`` into the GPU preset at ``path``, in place of older ones of the same kernels.

    The section is written at the end of the file, or where it stands; the file is replaced in one step, and only
    if what it then holds is a GPU preset with these constants and otherwise what it held before.

    Raises:
        InputError: no file, one that is no GPU preset, or one whose section cannot be told from the rest.
    """
    path = path.resolve()  # a link stays, what it points to is replaced
    before = _preset(path)
    if not calibrations:
        raise InputError(f"{path}: there is no calibration to write")
    keys = {item.key for item in calibrations}
    kept = [item for item in before.calibration if item.key not in keys]
    raw = path.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in raw else "\n"
    section = newline.join([COMMENT, f"{SECTION}:", *_lines([*kept, *calibrations])]) + newline
    head, tail = _around_section(raw, newline)
    text = head + section + tail
    _check(path, text, before, [*kept, *calibrations])
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def _preset(path: Path) -> GPU:
    mapping = read_mapping(path)
    if kind_of(mapping) != "gpus" or path.suffix.lower() == ".json":
        raise InputError(f"{path}: is no GPU preset in YAML; nothing was written")
    return build(GPU, mapping, str(path))


def _around_section(raw: str, newline: str) -> tuple[str, str]:
    """What stands before the section and after it; all of the file and nothing where it has none."""
    lines = raw.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.startswith(f"{SECTION}:")]
    if not starts:
        return raw + ("" if raw.endswith("\n") else newline), ""
    start = starts[0]
    inside = takewhile(lambda line: line[:1] in (" ", "-") or not line.strip(), lines[start + 1 :])
    end = start + 1 + len(list(inside))
    while not lines[end - 1].strip():
        end -= 1  # blank lines before the next key are its own
    if start and lines[start - 1].rstrip() == COMMENT:
        start -= 1
    return "".join(lines[:start]), "".join(lines[end:])


def _check(path: Path, text: str, before: GPU, expected: Sequence[Calibration]) -> None:
    """Refuse to write what does not read back: a section in another YAML style would be cut in the wrong place."""
    try:
        after = build(GPU, parse_yaml(text, str(path)), str(path))
    except InputError:
        after = None
    if after is None or after.calibration != tuple(expected) or _rest(after) != _rest(before):
        raise InputError(
            f"{path}: its `{SECTION}` section is not in block style, as this tool writes it; nothing was written",
            "take the section out and calibrate again",
        )


def _rest(gpu: GPU) -> dict[str, Any]:
    return {key: value for key, value in plain(gpu).items() if key != SECTION}


def _lines(calibrations: Iterable[Calibration]) -> list[str]:
    return [line for item in calibrations for line in _entry(item)]


def _entry(item: Calibration) -> list[str]:
    """One calibration in a few lines: curves as lists of [size, value], records in braces; absent fields left out."""
    fields = {key: value for key, value in plain(item).items() if value not in (None, [])}
    lines = [f"{key}: {value if key == 'date' else _flow(value)}" for key, value in fields.items()]
    return [f"  {'- ' if index == 0 else '  '}{line}" for index, line in enumerate(lines)]


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items() if item is not None) + "}"
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
