"""Words as GitHub's Markdown shows them: whatever a name or a note holds, none of its characters is markup.

Only what would be markup is escaped, so that the source stays legible: ``q_fold`` and ``2 < 3`` are as they were.
"""

from __future__ import annotations

import re

from .direction import isolated

_MARKUP = re.compile(
    r"(?P<kept>https?://[\w./~%#?=+-]+)"  # an address is a link as it is
    r"|(?P<odd>"
    r"[\\`|$~]"
    r"|\*(?!(?<=\s\*)\s)"  # emphasis, unless it stands alone
    r"|_(?!(?<=[^\W_]_)[^\W_])"  # emphasis, unless within a word
    r"|<(?=[A-Za-z/!?])"  # a tag or an address
    r"|\](?=[(\[:])"  # the end of a link's text
    r"|&(?=#?\w+;)"
    r"|(?<=\s)#(?=#*$)"  # the end of a heading
    r")"
)
_BLOCK = re.compile(r"(?P<list>\d{1,9}(?=[.)](?:\s|$)))|(?=[-+*](?:\s|$)|[>#]|\[.?\]|[-+=_]{2})")
"""What makes a line a heading, a list, a quotation, a rule or a box to tick."""
_BRACKET = re.compile(r"(?<!\\)(?:\\\\)*(?P<bracket>[\[\]])")
"""A bracket that no backslash escapes: before one that escapes there is an odd number of them."""


def inline(words: str) -> str:
    """A text within a line, a table, or the brackets of a link or an image: on one line, and no character markup."""
    line = _MARKUP.sub(lambda match: match["kept"] or f"\\{match['odd']}", " ".join(isolated(words).split()))
    return _paired(line)


def _paired(line: str) -> str:
    """The line with brackets escaped that have no partner: in a link's text they would end it, or begin it anew."""
    alone: list[int] = []
    for match in _BRACKET.finditer(line):
        if match["bracket"] == "]" and alone and line[alone[-1]] == "[":
            alone.pop()
        else:
            alone.append(match.start("bracket"))
    return "".join(f"\\{character}" if place in alone else character for place, character in enumerate(line))


def text(words: str) -> str:
    """A text that begins a line."""
    line = inline(words)
    start = _BLOCK.match(line)
    return line if start is None else f"{start['list'] or ''}\\{line[start.end() :]}"


def code(words: str) -> str:
    """A text as code, on one line, whatever backticks it holds."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{space}{' '.join(words.splitlines())}{space}{fence}"
