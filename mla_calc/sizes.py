"""Reading numbers as people type them: ``128k``, ``1,2,4``, ``1k:64k:x2``, ``64GiB``."""

from __future__ import annotations

import re

from .errors import InputError, shown

MAX_TOKENS = 1 << 30
"""Largest context, batch or length that is taken for a real one."""
MAX_POINTS = 1_000_000
"""Most values that one option may list."""

MAX_DIGITS = 15
"""Digits of a number, zeros before it left out: one with more is outside any limit, and is not worked out."""

_COUNT = re.compile(r"(-?)0*([0-9]+)([kKmM]?)")
_MULTIPLES = {"": 1, "k": 1 << 10, "m": 1 << 20}
_SIZE = re.compile(r"0*([0-9]+(?:\.[0-9]{1,9})?)\s*(?:([kKMGTP])(i?))?B")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def parse_count(text: str, option: str, least: int = 1, most: int = MAX_TOKENS) -> int:
    """One whole number; ``k`` is 1024 and ``m`` 1024 squared.

    Raises:
        InputError: not a number, or outside ``least`` to ``most``.
    """
    match = _COUNT.fullmatch(text.strip())
    if not match:
        raise InputError(f"{option} {shown(text)}: a whole number is expected, such as 4096 or 4k")
    value = int(match[2]) * _MULTIPLES[match[3].lower()] if len(match[2]) <= MAX_DIGITS else None
    if value is None or match[1] or not least <= value <= most:
        raise InputError(f"{option} {_cut(text.strip())}: {least:,} to {most:,} is accepted")
    return value


def _cut(text: str, most: int = 40) -> str:
    """``text`` in an error about its value, cut where it has more digits than anybody reads."""
    return text if len(text) <= most else text[: most - 3] + "..."


def parse_counts(text: str, option: str, least: int = 1, most: int = MAX_TOKENS) -> tuple[int, ...]:
    """One value, a list ``1,2,4``, or ranges ``1k:64k:x2`` (times two) and ``1:9:+2``, ends included.

    Values come in the order given, each once.

    Raises:
        InputError: an entry that is not understood, an empty or reversed range, or too many values.
    """
    values: dict[int, None] = {}
    for entry in text.split(","):
        found = _range(entry, option, least, most) if ":" in entry else [parse_count(entry, option, least, most)]
        values.update(dict.fromkeys(found))
        if len(values) > MAX_POINTS:
            raise InputError(f"{option} {shown(text)}: more than {MAX_POINTS:,} values")
    return tuple(values)


SIZE_EXPECTED = "a size with its unit is expected, such as 64GiB or 1.5GB"


def parse_size(text: str, option: str, expected: str = SIZE_EXPECTED) -> int:
    """Bytes: ``64GiB``, ``1.5GB``, ``512 MiB``; a number without a unit is refused.

    Published sizes are rounded (35.42GiB), so what is not whole is rounded down to whole bytes.
    ``expected`` ends the error about what is no size, for an option that takes something else too.

    Raises:
        InputError: not a size, a part of a byte, bytes with decimals, or more digits than any size has.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise InputError(f"{option} {shown(text)}: {expected}")
    step = 1024 if match[3] else 1000
    whole, _, decimals = match[1].partition(".")
    if len(whole) > MAX_DIGITS:
        raise InputError(f"{option} {_cut(text.strip())}: at most {MAX_DIGITS} digits before the unit are accepted")
    scaled = int(whole + decimals) * step ** _POWERS[match[2] or ""]
    whole_bytes: int
    whole_bytes, rest = divmod(scaled, 10 ** len(decimals))
    if rest and (not match[2] or not whole_bytes):
        raise InputError(f"{option} {_cut(text.strip())}: is not a whole number of bytes")
    return whole_bytes


def _range(text: str, option: str, least: int, most: int) -> list[int]:
    parts = text.split(":")
    if len(parts) != 3 or parts[2][:1] not in ("x", "+") or not parts[2][1:]:
        raise InputError(f"{option} {shown(text)}: a range is first:last:xFACTOR or first:last:+STEP")
    first, last = (parse_count(part, option, least, most) for part in parts[:2])
    multiply = parts[2][0] == "x"
    step = parse_count(parts[2][1:], option, 2 if multiply else 1, most)
    if first > last:
        raise InputError(f"{option} {shown(text)}: the range is reversed")
    if multiply:
        if first == 0:
            raise InputError(f"{option} {shown(text)}: a range that multiplies cannot start at 0")
        values = [first]
        while values[-1] * step <= last:
            values.append(values[-1] * step)
        return values
    points = (last - first) // step + 1
    if points > MAX_POINTS:
        raise InputError(f"{option} {shown(text)}: {points:,} values; at most {MAX_POINTS:,} are accepted")
    return list(range(first, last + 1, step))
