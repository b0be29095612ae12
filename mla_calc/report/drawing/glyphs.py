"""Texts as pictures have room for them, in their one font: cut where they are too long, a lacking character by number.

A name that somebody gave a model may have any length; what is cut says so by an ellipsis, and keeps its end, by which
names that begin alike are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from textwrap import wrap
from typing import Any

from ...errors import InputError
from ..direction import MARK, isolated

FONT = "DejaVu Sans"
"""Ships with matplotlib. Another font of the system would make other bytes of the same input elsewhere."""
ELLIPSIS = "\u2026"
LINE_CHARACTERS = 400
"""More than the widest line of a figure has, of the narrowest letter."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def drawable(found: Any) -> Any:
    """A chart or results whose texts are as :func:`drawable_text` has them; keys stay as they are.

    Raises:
        InputError: matplotlib, which draws them, is missing.
    """
    check_matplotlib()
    return with_texts(found, drawable_text)


def check_matplotlib() -> None:
    """Raises InputError where matplotlib, which comes with every whole install, is missing."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise InputError("a figure as a picture needs matplotlib", "pip install matplotlib") from None


def with_texts(found: Any, change: Callable[[str], str]) -> Any:
    """Plain data, or a record of dataclasses, with ``change`` made to every text in it but keys."""
    if isinstance(found, str):
        return change(found)
    if isinstance(found, dict):
        return {key: with_texts(each, change) for key, each in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(with_texts(each, change) for each in found)
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{item.name: with_texts(getattr(found, item.name), change) for item in fields(found)})
    return found


def drawable_text(text: str) -> str:
    """``text`` with characters that the font lacks as ``[U+1F409]``, and right-to-left words kept in their place."""
    if text.isascii():
        return text
    return isolated(_BEYOND_ASCII.sub(lambda match: _drawn(match[0]), text), MARK, MARK)


def folded(text: str, width: int, most: int) -> str:
    """``text`` in at most so many lines of ``width`` characters."""
    return "\n".join(within(most, text, lambda each: wrap(each, width)))


def within(most: int, text: str, lines_of: Callable[[str], list[str]]) -> list[str]:
    """What ``lines_of`` makes of ``text``, abridged until that is at most so many lines."""
    text = abridged(text, most * LINE_CHARACTERS)  # to measure more would take its time
    lines, length = lines_of(text), len(text)
    while len(lines) > most and length > 3:
        length = max(length * 9 // 10, 3)
        lines = lines_of(abridged(text, length))
    return lines


def abridged(text: str, most: int) -> str:
    """At most so many characters of ``text``: its beginning, an ellipsis, and its end."""
    end = most // 3
    return text if len(text) <= most else text[: most - end - 1].rstrip() + ELLIPSIS + text[len(text) - end :].lstrip()


def _drawn(characters: str) -> str:
    runs = groupby(characters, key=lambda char: ord(char) in _characters())
    return "".join("".join(run) if has else f"[{' '.join(f'U+{ord(char):04X}' for char in run)}]" for has, run in runs)


@lru_cache(maxsize=1)
def _characters() -> frozenset[int]:
    """What the font has, in both of its weights."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    weights = (get_font(findfont(FontProperties(family=FONT, weight=weight))) for weight in ("normal", "bold"))
    return frozenset.intersection(*(frozenset(font.get_charmap()) for font in weights))
