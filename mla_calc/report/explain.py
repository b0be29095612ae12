"""The formula under each figure, with the numbers put in."""

from __future__ import annotations

import re
from typing import Any

from .record import Explanation, Report, lookup

_NAME = re.compile(r"\b[A-Za-z_][A-Za-z_0-9]*\b")
FUNCTIONS = frozenset({"min", "max"})


def numbers_in(explanation: Explanation) -> str:
    """The formula with every name replaced by its value: ``layers * row_bytes`` -> ``61 * 1152``."""

    def value(match: re.Match[str]) -> str:
        name = match.group()
        return name if name in FUNCTIONS else _number(explanation.names[name])

    return _NAME.sub(value, explanation.formula)


def explained(report: Report) -> list[dict[str, Any]]:
    """Every explanation of the report with its value, as the JSON shows it."""
    return [
        {
            "key": item.path,
            "value": lookup(report.results, item.path),
            "formula": item.formula,
            "numbers": numbers_in(item),
            "cite": item.cite,
        }
        for item in report.explanations
    ]


def input_lines(report: Report) -> list[str]:
    """Where each input was read, one line each."""
    return [f"{name}: {'; '.join(sources)}" for name, sources in report.input_sources.items() if sources]


def _number(value: int | float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.17g}"
