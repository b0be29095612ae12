"""Whether the model can be trusted, by stated tolerances: each with its reason, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..report import format as fmt
from .compare import Compared, Comparison, errors_over

MEDIAN_APE = 0.05
"""Half of all decode cells within 5 %: cards of one kind and heat alone move a time by that much."""
P90_APE = 0.12
"""Nine of ten within 12 %: a schedule that falls between two waves of blocks costs no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """One condition of the verdict; ``limit`` is the most that ``quantity`` may be."""

    quantity: str
    limit: float
    why: str


TOLERANCES = (
    Tolerance(
        quantity="bound_violations", limit=0, why="a datasheet's bound holds for every kernel, or our counts are wrong"
    ),
    Tolerance(quantity="incorrect_or_unchecked_kernels", limit=0, why="the time of a wrong result says nothing"),
    Tolerance(quantity="decode_median_ape", limit=MEDIAN_APE, why="cards and heat alone move a time by as much"),
    Tolerance(quantity="decode_p90_ape", limit=P90_APE, why="the steps between two waves of blocks cost no more"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``reasons`` says of every tolerance what was found, or why it could not be judged."""

    passed: bool
    tolerances: tuple[Tolerance, ...]
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 where everything that could be judged holds, else 1."""
        return 0 if self.passed else 1


def judge(comparison: Comparison) -> Verdict:
    """The verdict on a comparison. What was not recorded or not calibrated is said and does not fail it.

    A run of this tool records the checks of its own kernels: there, one without a check fails.
    """
    findings = (_bounds(comparison), _correctness(comparison), *_estimates(comparison))
    return Verdict(
        passed=all(holds for holds, _ in findings),
        tolerances=TOLERANCES,
        reasons=tuple(reason for _, reason in findings),
    )


Finding = tuple[bool, str]


def _bounds(comparison: Comparison) -> Finding:
    count = len(comparison.violations)
    rows = fmt.counted(len(comparison.rows), "row")
    if not count:
        return True, f"no measurement is below its datasheet bound ({rows})"
    return False, f"{fmt.counted(count, 'measurement')} of {rows} below the datasheet bound"


def _correctness(comparison: Comparison) -> Finding:
    wrong = [kernel.name for kernel in comparison.kernels if kernel.correct is False]
    missing = [kernel.name for kernel in comparison.kernels if kernel.must and kernel.correct is None]
    if wrong or missing:
        found = (("wrong results", wrong), ("no check of results", missing))
        return False, "; ".join(f"{what}: {', '.join(names)}" for what, names in found if names)
    right = [kernel for kernel in comparison.kernels if kernel.correct]
    if not right:
        return True, "correctness is not recorded and not judged"
    unknown = [kernel.name for kernel in comparison.kernels if kernel.correct is None]
    more = f"; none recorded of {', '.join(unknown)}" if unknown else ""
    return True, f"{fmt.counted(len(right), 'kernel')} right against float64{more}"


def _estimates(comparison: Comparison) -> tuple[Finding, ...]:
    rows, what = judged_rows(comparison)
    errors = errors_over(rows)
    if errors is None:
        return ((True, f"{what}: none is judged"),)
    found = (("median", errors.median_ape, MEDIAN_APE), ("90th percentile", errors.p90_ape, P90_APE))
    return tuple(
        (
            error <= limit,
            f"estimate, {name} over {fmt.counted(errors.count, what)}: {_percent(error)}, at most {_percent(limit)}",
        )
        for name, error, limit in found
    )


def faults_of_run(comparison: Comparison) -> tuple[str, ...]:
    """What does not hold whatever the estimates are: times below a bound, kernels wrong or unchecked."""
    return tuple(reason for holds, reason in (_bounds(comparison), _correctness(comparison)) if not holds)


def judged_rows(comparison: Comparison) -> tuple[Sequence[Compared], str]:
    """The decode rows whose estimate is judged, and what they are or, where there are none, why.

    They are those that the calibration did not see; where it is of another run, it saw none of them.
    """
    own = [
        item
        for item in comparison.rows
        if item.is_decode and item.is_judged and item.prediction and item.prediction.kernel == item.row.kernel
    ]
    if not own:
        return (), "no decode row has an estimate by its own kernel's calibration"
    unseen = [item for item in own if item.is_unseen]
    if not unseen:
        return (), "every decode row with an estimate is one that its fit was made from"
    held_out = any(item.prediction and item.prediction.held_out for item in unseen)
    return unseen, "held-out decode row" if held_out else "decode row"


def _percent(value: float) -> str:
    return f"{value * 100:.1f} %"
