"""What ``crossover`` says of the crossovers that were measured: notes, the sentence, and columns of the CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..costs.measured_crossover import MeasuredAtContext, again_notes, again_text

MOST_NAMED = 8
"""Places that a note names."""
COLUMNS = ("queries", "low", "high", "last_queries")
"""What the CSV has of a measured crossover."""


def measured_notes(measured: tuple[MeasuredAtContext, ...], reason: str | None) -> list[str]:
    """Whose times they are, where the paths crossed more than once, and why points were not measured."""
    notes = []
    if measured:
        runs = dict.fromkeys(f"run {item.run} of {item.date}" for item in measured)
        notes.append(
            f"Measured: {', '.join(runs)}, both paths as this tool runs them; low and high are of p10 and p90 times."
        )
        notes += again_notes(measured, MOST_NAMED)
    if reason:
        others = "of the other points " if measured else ""
        notes.append(f"No measured crossover {others}({'' if measured else 'measured: null; '}{reason}).")
    return notes


def csv_measured(results: dict[str, Any], point: list[int]) -> dict[str, Any]:
    """What was measured at a point, by naive path; the keys are those of every point, so that columns are whole."""
    measured = results["measured"] or []
    found: dict[str, Any] = {item["naive"]: dict.fromkeys(COLUMNS) for item in measured}
    for item in measured:
        if [item["context"], item["tp"], item["batch"]] == point:
            found[item["naive"]] = {key: item[key] for key in COLUMNS}
    return found


def measured_text(there: Sequence[MeasuredAtContext]) -> str:
    """Where the paths crossed, by naive path, for a sentence on one point."""
    first = "first from" if any(at.crossed_again for at in there) else "from"
    return f"{first} {' and '.join(map(_from, there))}"


def _from(at: MeasuredAtContext) -> str:
    again = f", absorbed again {again_text(at.crossed_again, at.last_queries)}" if at.crossed_again else ""
    return f"{at.queries:,.0f} ({at.naive}{again})"
