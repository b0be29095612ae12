"""Numbers as people read them. Every table, sentence and note formats through here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NOTHING = "-"

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
FLOP_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


def integer(value: int) -> str:
    """70272 -> 70,272."""
    return f"{value:,}"


def number(value: float) -> str:
    """Four significant digits, in full where that is short: 241.8, 0.8186, 12,345."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def exact_bytes(value: int) -> str:
    """70272 -> 70,272 B."""
    return f"{value:,} B"


def binary_bytes(value: float) -> str:
    """70272 -> 68.6 KiB."""
    return _bytes(value, 1024, BINARY)


def gib(value: float) -> str:
    """15010994585 -> 14.0, below a heading that says GiB."""
    return f"{value / 1024**3:,.1f}"


def decimal_bytes(value: float) -> str:
    """70272 -> 70.3 kB."""
    return _bytes(value, 1000, DECIMAL)


def flop(value: float, digits: int = 4) -> str:
    """33554432 -> 33.55 MFLOP."""
    value, prefix = _scaled(value, 1000, FLOP_PREFIXES)
    return f"{_significant(value, digits)} {prefix}FLOP"


def short_flop(value: float) -> str:
    """33554432 -> 33.6 MFLOP: for a table that has no room for more."""
    return flop(value, 3)


def tera(value: float) -> str:
    """7.647e14 -> 764.7, below a heading that says TFLOP/s or TB/s."""
    return number(value / 1e12)


def flop_rate(value: float) -> str:
    """7.647e14 -> 764.7 TFLOP/s."""
    return f"{flop(value)}/s"


def byte_rate(value: float) -> str:
    """3.35e12 -> 3.35 TB/s."""
    value, unit = _scaled(value, 1000, DECIMAL)
    return f"{value:.4g} {unit}/s"


def seconds(value: float, digits: int = 4) -> str:
    """1.16e-05 -> 11.61 us."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if abs(value) * scale >= 1 or unit == "ns":
            return f"{_significant(value * scale, digits)} {unit}"
    raise AssertionError("unreachable")


def short_seconds(value: float) -> str:
    """1.16e-05 -> 11.6 us: for an estimate, and for a table that has no room for more."""
    return seconds(value, 3)


def percent(value: float) -> str:
    """0.8186 -> 82 %; below a tenth with one more digit; beyond ten as a factor."""
    if value >= 10:
        return factor(value)
    return f"{value * 100:.0f} %" if value >= 0.1 else f"{value * 100:.2g} %"


def error_percent(value: float) -> str:
    """0.0218 -> 2.2 %, 13.26 -> 1,326 %: in percent however large, as its column is."""
    return f"{value * 100:,.0f} %" if value >= 10 else percent(value)


def factor(value: float) -> str:
    """71.111 -> 71.11x."""
    return f"{value:,.4g}x"


def short_factor(value: float) -> str:
    """1.3867 -> 1.4x, 152.04 -> 152x: two digits where a cell of a map has no room for more."""
    return f"{value:,.0f}x" if value >= 10 else f"{value:.2g}x"


def counted(count: int, noun: str, plural: str = "") -> str:
    """1 request, 2 requests; ``plural`` where an s does not make it."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def text(value: object) -> str:
    """A text as it is, a list of dimensions as [1, 128, 512]."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)


FORMATS: dict[str, Callable[[Any], str]] = {
    "integer": integer,
    "number": number,
    "bytes": exact_bytes,
    "binary": binary_bytes,
    "gib": gib,
    "decimal": decimal_bytes,
    "flop": flop,
    "short_flop": short_flop,
    "short_seconds": short_seconds,
    "tera": tera,
    "flop_rate": flop_rate,
    "byte_rate": byte_rate,
    "seconds": seconds,
    "percent": percent,
    "error_percent": error_percent,
    "factor": factor,
    "short_factor": short_factor,
    "text": text,
}


def shown(value: object, kind: str) -> str:
    """``value`` in one of :data:`FORMATS`; what is not known is a dash, never a zero."""
    return NOTHING if value is None else FORMATS[kind](value)


def _significant(value: float, digits: int) -> str:
    """So many digits, without an exponent for what rounds to a thousand: 999.7 with three is 1000."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


def _bytes(value: float, step: int, units: tuple[str, ...]) -> str:
    value, unit = _scaled(value, step, units)
    return f"{value:.0f} {unit}" if unit == units[0] else f"{value:.1f} {unit}"


def _scaled(value: float, step: int, units: tuple[str, ...]) -> tuple[float, str]:
    """The value in the largest of the units, each ``step`` times the one before, in which it is 1 or more."""
    power = 0
    while abs(value) >= step and power < len(units) - 1:
        value, power = value / step, power + 1
    return value, units[power]


def rate_unit(*dtypes: str) -> str:
    """What peaks of products of these dtypes are in: ``TFLOP/s``; ``TOP/s`` of integers; both where they differ."""
    units = {"TOP/s" if dtype.startswith("int") else "TFLOP/s" for dtype in dtypes}
    return ", ".join(sorted(units))
