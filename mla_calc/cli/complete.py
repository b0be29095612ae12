"""Shell completion of preset names. A name that cannot be completed is simply not offered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..data import names_of, preset_files, read_mapping
from ..errors import InputError


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion of one of ``names``."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def models(incomplete: str) -> list[str]:
    """Model names that begin with ``incomplete``."""
    return _names("models", incomplete)


def gpus(incomplete: str) -> list[str]:
    """GPU names that begin with ``incomplete``, and ``auto``."""
    return _names("gpus", incomplete) + [name for name in ("auto",) if name.startswith(incomplete.lower())]


def engines(incomplete: str) -> list[str]:
    """Engine releases, the last of a list completed."""
    return _listed("engines", incomplete)


def comparators(incomplete: str) -> list[str]:
    """Model names, the last of a list ``a,b`` completed."""
    return _listed("models", incomplete)


def mma_dtypes(incomplete: str) -> list[str]:
    """Dtypes of a product's operands that begin with ``incomplete``."""
    from ..hardware.gpu import DTYPES

    return one_of(DTYPES)(incomplete)


def layouts(incomplete: str) -> list[str]:
    """Cache layouts that begin with ``incomplete``."""
    return _names("layouts", incomplete)


def forms(incomplete: str) -> list[str]:
    """What of MLA may be cached, that begins with ``incomplete``."""
    from ..costs.tokens import CACHE_FORMS

    return one_of(CACHE_FORMS)(incomplete)


def anything(incomplete: str) -> list[str]:
    """Presets of every kind that begin with ``incomplete``."""
    return [name for kind in ("models", "gpus", "engines", "layouts") for name in _names(kind, incomplete)]


formats = one_of(("table", "json", "csv", "markdown"))
"""Output formats."""


def _listed(kind: str, incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _names(kind, last)]


def _names(kind: str, incomplete: str) -> list[str]:
    try:
        known = [name for path in preset_files(kind) for name in names_of(read_mapping(path), path)]
    except InputError:
        return []
    # names with a blank cannot be typed without quotes: their aliases are offered instead
    return sorted({name for name in known if name.lower().startswith(incomplete.lower()) and " " not in name})
