"""Which kernels of a recording were compared with float64, and what its cells tried and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .operands import OUR_KERNELS
from .record import EVERY_CELL, NAIVE_TOLERANCE, Check, Row, Run

MOST_REASONS = 3
"""A relative error is in many of them, so that they differ from cell to cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChecked:
    """A kernel, and whether it was right; both ``None`` where nothing was recorded about that."""

    name: str
    checks: int
    """Comparisons with float64: before any timing, or of a naive path in its own cells."""
    correct: bool | None
    relative_error: float | None
    """The worst, in the Frobenius norm against float64."""
    must: bool
    """Whether it has to be checked: one of our own in a run of this tool, which times none unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """An implementation of a path that cells tried and dropped."""

    kernel: str
    implementation: str
    cells: int
    reasons: tuple[str, ...]
    """The most frequent ones, at most :data:`MOST_REASONS`."""


def kernels_checked(rows: Sequence[Row], run: Run | None) -> tuple[KernelChecked, ...]:
    """Every kernel that was checked, timed, or that has been left out of every cell; ``run``: ``None`` for a CSV."""
    checks = run.checks if run else ()
    left_out = [item.kernel for item in run.skipped if item.case == EVERY_CELL] if run else []
    timed: dict[str, list[Row]] = {}
    for row in rows:
        timed.setdefault(row.kernel, []).append(row)
    names = dict.fromkeys([*(check.kernel for check in checks), *left_out, *timed])
    return tuple(
        _checked(name, [check for check in checks if check.kernel == name], timed.get(name, ()), run is not None)
        for name in names
    )


def _checked(name: str, checks: Sequence[Check], rows: Sequence[Row], of_this_tool: bool) -> KernelChecked:
    in_cells = [row.relative_error for row in rows if row.scope == "naive" and row.relative_error is not None]
    errors = [*in_cells, *(check.relative_error for check in checks if check.relative_error is not None)]
    right = [*(is_right(check) for check in checks), *(error <= NAIVE_TOLERANCE for error in in_cells)]
    return KernelChecked(
        name=name,
        checks=len(right),
        correct=all(right) if right else None,
        relative_error=max(errors, default=None),
        must=of_this_tool and name in OUR_KERNELS,
    )


def is_right(check: Check) -> bool:
    """Whether a check holds by its own numbers: what a record says of itself is not taken for granted."""
    return check.correct and check.relative_error is not None and 0 <= check.relative_error <= check.tolerance


def dropped(rows: Iterable[Row]) -> tuple[Dropped, ...]:
    """What the cells of each kernel dropped, by kernel and implementation."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for name, reason in row.dropped.items():
            found.setdefault((row.kernel, name), Counter())[reason] += 1
    return tuple(
        Dropped(
            kernel=kernel,
            implementation=name,
            cells=reasons.total(),
            reasons=tuple(reason for reason, _ in reasons.most_common(MOST_REASONS)),
        )
        for (kernel, name), reasons in sorted(found.items())
    )
