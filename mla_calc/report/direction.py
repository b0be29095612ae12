"""Right-to-left words within a line that runs left to right: they keep their place, and so does what follows them."""

from __future__ import annotations

import re

_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
"""Of the scripts that run right to left."""
_WORDS = re.compile(rf"[{_LETTERS}]+(?:[\W\d_]+[{_LETTERS}]+)*")
"""From the first such letter to the last with no other letter between."""
ISOLATE, POP = "\u2068", "\u2069"
"""What browsers take as the ends of a text with a direction of its own."""
MARK = "\u200e"
"""A letter that runs left to right and is not seen."""


def isolated(text: str, before: str = ISOLATE, after: str = POP) -> str:
    """``text`` with right-to-left words between ``before`` and ``after``; other texts as they are."""
    return text if text.isascii() else _WORDS.sub(lambda match: f"{before}{match[0]}{after}", text)
