"""Shell completion of preset names. A name that cannot be completed is simply not offered."""

from __future__ import annotations

from ..data import names_of, preset_files, read_mapping
from ..errors import InputError


def models(incomplete: str) -> list[str]:
    """Model names that begin with ``incomplete``."""
    return _names("models", incomplete)


def gpus(incomplete: str) -> list[str]:
    """GPU names that begin with ``incomplete``, and ``auto``."""
    return _names("gpus", incomplete) + [name for name in ("auto",) if name.startswith(incomplete.lower())]


def layouts(incomplete: str) -> list[str]:
    """Cache layouts that begin with ``incomplete``."""
    return _names("layouts", incomplete)


def anything(incomplete: str) -> list[str]:
    """Presets of every kind that begin with ``incomplete``."""
    return [name for kind in ("models", "gpus", "engines", "layouts") for name in _names(kind, incomplete)]


def formats(incomplete: str) -> list[str]:
    """Output formats that begin with ``incomplete``."""
    return [name for name in ("table", "json", "csv", "markdown") if name.startswith(incomplete)]


def _names(kind: str, incomplete: str) -> list[str]:
    try:
        known = [name for path in preset_files(kind) for name in names_of(read_mapping(path), path)]
    except InputError:
        return []
    # names with a blank cannot be typed without quotes: their aliases are offered instead
    return sorted({name for name in known if name.lower().startswith(incomplete.lower()) and " " not in name})
