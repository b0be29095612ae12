"""Command lines as a shell takes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

PLAIN = set(map(chr, range(0x20, 0x7F))) - set("'\\")
"""Characters that stand for themselves between bash's quotes."""


def joined(words: Iterable[str]) -> str:
    """A command line of ``words``; one with control characters, or that is no UTF-8, in bash's quotes with escapes."""
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    """``$'nl\\x0a'``: bytes, since a path need not be text."""
    taken = (chr(byte) if chr(byte) in PLAIN else f"\\x{byte:02x}" for byte in os.fsencode(word))
    return f"$'{''.join(taken)}'"
