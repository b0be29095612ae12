"""Markdown that also reads as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A padded GitHub table: the first ``left`` columns to the left, numbers after them to the right."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (headers, *rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(headers))]
    rule = ["-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    padded = [
        [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in (padded[0], rule, *padded[1:]))
