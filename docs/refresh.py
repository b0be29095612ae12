"""Rewrite the console examples of README.md and docs/*.md with what the tool prints now.

Run it after a change of output (`.venv/bin/python docs/refresh.py`) and read the diff before you commit: the
tests compare exactly, so an example must be right, not merely fresh. Where an example leaves lines out with
`...`, each kept line is replaced by the printed one that is most like it.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import conftest  # noqa: E402  (the same runner as the tests)

ELLIPSIS = "..."


def refreshed(text: str) -> str:
    """A page with every console block's output as it is now."""

    def block(match: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            conftest.put_files(text)
            return "```console\n" + "\n".join(_rerun(match[1].splitlines())) + "\n```"

    return conftest.CONSOLE.sub(block, text)


def _rerun(lines: list[str]) -> list[str]:
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")] + [len(lines)]
    fresh: list[str] = []
    code = 0
    for start, end in pairwise(starts):
        printed, code = conftest.run_command(lines[start][2:], code)
        fresh += [lines[start], *_kept(lines[start + 1 : end], printed)]
    return fresh


def _kept(old: list[str], printed: list[str]) -> list[str]:
    """The printed lines, or of an example with ellipses those that are most like the lines it keeps."""
    if ELLIPSIS not in old:
        return printed
    kept, after = [], 0
    for line in old:
        if line == ELLIPSIS:
            kept.append(line)
            continue
        scores = [difflib.SequenceMatcher(None, line, other).ratio() for other in printed[after:]]
        best = after + scores.index(max(scores))
        kept.append(printed[best])
        after = best + 1
    return kept


if __name__ == "__main__":
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        before = page.read_text()
        after = refreshed(before)
        if after != before:
            page.write_text(after)
            print(page.relative_to(ROOT))
