"""The report's section on correctness: what was compared with float64, when, and what cells dropped."""

from __future__ import annotations

from ..report import format as fmt
from .checked import is_right
from .compare import Comparison
from .page_markdown import table
from .record import NAIVE_TOLERANCE, Run

BEFORE = "Relative errors in the Frobenius norm against float64. Our kernels were checked before any timing"
IN_CELLS = ", a naive path in its cells, on a sample of what it was timed with"


def correctness_section(run: Run, comparison: Comparison) -> list[str]:
    """Checks before any timing, then what the naive paths' cells found of themselves and dropped."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(check.kernel for check in run.checks):
        mine = [check for check in run.checks if check.kernel == name]
        errors = [check.relative_error for check in mine if check.relative_error is not None]
        worst = f"{max(errors):.2e}" if errors else fmt.NOTHING
        wrong = sum(not is_right(check) for check in mine)
        rows.append((name, str(len(mine)), str(wrong), worst, f"{max(check.tolerance for check in mine):.0e}"))
    in_cells = _checked_in_cells(run)
    rows += in_cells
    blocks = ["No check against float64 is recorded."]
    if rows:
        headers = ("kernel", "checks", "wrong", "worst error", "largest tolerance")
        blocks = [f"{BEFORE}{IN_CELLS if in_cells else ''}.", table(headers, rows)]
    unchecked = [kernel.name for kernel in comparison.kernels if kernel.correct is None]
    if rows and unchecked:
        blocks.append(f"No check is recorded of: {', '.join(unchecked)}.")
    wrong_ones = [check for check in run.checks if not is_right(check)]
    failures = [f"- {c.kernel}, {c.case}: {c.message or _error(c.relative_error)}" for c in wrong_ones]
    if failures:
        blocks.append("\n".join(failures))
    return [*blocks, *_dropped(comparison)]


def _checked_in_cells(run: Run) -> list[tuple[str, ...]]:
    found: dict[str, list[float]] = {}
    for row in run.rows:
        if row.scope == "naive" and row.relative_error is not None:
            found.setdefault(row.kernel, []).append(row.relative_error)
    return [
        (
            name,
            f"{len(errors):,}",
            str(sum(error > NAIVE_TOLERANCE for error in errors)),
            f"{max(errors):.2e}",
            f"{NAIVE_TOLERANCE:.0e}",
        )
        for name, errors in sorted(found.items())
    ]


def _dropped(comparison: Comparison) -> list[str]:
    if not comparison.dropped:
        return []
    rows = [
        (item.kernel, item.implementation, f"{item.cells:,}", "; ".join(item.reasons)) for item in comparison.dropped
    ]
    headers = ("path", "implementation", "cells", "why, most often")
    return ["Implementations that cells tried and dropped:", table(headers, rows, left=2)]


def _error(value: float | None) -> str:
    return "no finite output" if value is None else f"relative error {value:.2e}"
