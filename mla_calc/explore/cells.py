"""Texts by the columns that they take on a terminal, where a character of Chinese or an emoji takes two."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

_BLANKS = str.maketrans("\t\n\x0b\x0c\r", " " * 5)


def folded(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` columns: broken at blanks, and within what is longer than a line."""
    text = text.translate(_BLANKS)
    if cell_len(text) <= width:
        return [text.rstrip()] if text.strip() else []
    lines, line = [], ""
    for word in re.split("( +)", text):
        rest = word
        while cell_len(line + rest) > width:
            part = _start(rest, width - cell_len(line)) if cell_len(rest) > width else ""
            lines.append((line + part).rstrip())
            line, rest = "", rest[len(part) :].lstrip(" ")
        if line or not lines or rest.strip():
            line += rest
    return [each for each in (*lines, line.rstrip()) if each]


def _start(text: str, room: int) -> str:
    """As much of ``text`` as ``room`` columns take; nothing where not a character fits."""
    part = chop_cells(text, room)[0] if room > 0 else ""
    return part if cell_len(part) <= room else ""


def placed(text: str, width: int, right: bool = False) -> str:
    """``text`` with blanks to ``width`` columns: after it, or before it."""
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def ending(text: str, width: int) -> str:
    """``text``, or as much of its end as ``width`` columns take behind a mark that something is missing."""
    if cell_len(text) <= width:
        return text
    while cell_len(text) > width - 1:
        text = text[1:]
    return f"~{text}"
