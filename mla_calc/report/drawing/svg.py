"""The ids of an SVG: each once in a document, and in a page of several under a name of its own."""

from __future__ import annotations

import re
from collections import Counter

_ID = re.compile(r'(?<=\sid=")([^"]*)')
_REFERENCE = re.compile(r'((?:xlink:)?href="#|url\(#)')


def unique_ids(text: str, prefix: str = "") -> str:
    """``text`` with its ids and references beginning with ``prefix``, the second of an id ending in ``-2``, and so on.

    The parts of one mark share an id, which nothing refers to: references go on meaning the first.
    """
    seen: Counter[str] = Counter()
    every = set(_ID.findall(text))

    def unique(match: re.Match[str]) -> str:
        seen[match[1]] += 1
        name = match[1]
        while seen[match[1]] > 1 and (name := f"{match[1]}-{seen[match[1]]}") in every:
            seen[match[1]] += 1  # another mark has that name
        return prefix + name

    return _REFERENCE.sub(lambda match: match[1] + prefix, _ID.sub(unique, text))
