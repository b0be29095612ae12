"""The texts of ``--explain`` for the roofline; see formulas.py and sparse_formulas.py, which they are built from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import lcm

from .flops import FlopsCost
from .formulas import CHAPTER, LATENT, Formula, Names, flops_formulas
from .quadratics import Quadratic, square_root
from .ridge import NOUNS, Axis, Subject, stretches
from .sparse_formulas import sparse_flops_formulas

ROOFLINE = "Williams et al., Roofline, CACM 52(4), 2009"
RIDGE = "peak_flop_per_s / bandwidth_bytes_per_s"


def point_formulas(cost: FlopsCost, places: Mapping[tuple[str, str], int]) -> dict[str, Formula]:
    """Formulas of the points of one step at their bounds; ``places`` has the index of each path's kernels."""
    texts = sparse_flops_formulas(cost, True) if cost.sparse else flops_formulas(True, cost.causal)
    found: dict[str, Formula] = {}
    for path, kernels in (("absorbed", cost.absorbed.kernels), ("naive", cost.naive.kernels)):
        for index, kernel in enumerate(kernels):
            place = places.get((path, kernel.name))
            if place is None:
                continue
            own, at, name = f"{path}.kernels[{index}]", f"points[{place}]", f"{path}_{kernel.name}"
            found |= {f"{at}.{figure}": texts[f"{own}.{figure}"] for figure in ("flop", "bytes")}
            found[f"{at}.intensity_flop_per_byte"] = Formula(f"{name}_flop / {name}_bytes", ROOFLINE)
            bound = texts[f"{own}.bound_s"]
            found[f"{at}.bound_s"] = bound
            found[f"{at}.flop_per_s"] = Formula(f"{name}_flop / {bound.text}", "at the bound")
    return found


def ridge_formulas(dense: bool, ridge: int) -> dict[str, Formula]:
    """Formulas of the ridge at this index and, of dense attention, of the heads times queries that reach it."""
    found = {f"ridges[{ridge}].ridge_flop_per_byte": Formula(RIDGE, ROOFLINE)}
    if dense:
        found["ridge_heads_times_queries[0].by_context"] = Formula(
            f"{RIDGE} * row_bytes / (2 * {LATENT})", CHAPTER + "section 1: FLOP and bytes per context token"
        )
    return found


def crossing_formula(subject: Subject, axis: Axis, crossing: float) -> tuple[Formula, Names] | None:
    """How the ridge crossing of a trajectory is solved, with its numbers; ``None`` where the counts jump over it."""
    heads = subject.mla.heads
    for polynomial in (stretch.polynomial for stretch in stretches(subject, axis)):
        for root in polynomial.roots():
            if float(heads / root if axis == "tp" and root else root) == crossing:
                return _solved(polynomial, root, axis, heads)
    return None


def _solved(polynomial: Quadratic, root: Fraction, axis: Axis, heads: int) -> tuple[Formula, Names]:
    c0, c1, c2 = _whole(polynomial)
    what = "heads per rank" if axis == "tp" else NOUNS[axis]
    cite = f"flop * bandwidth - bytes * peak = c2 x^2 + c1 x + c0 = 0 in x, the {what}; p = -c1"
    names: dict[str, int | float] = {"heads": heads, "c0": c0, "p": -c1}
    if c2 == 0:
        text = "c0 / p"
    else:
        text = _root_text(polynomial, root)
        names |= {"c2": c2, "d": c1 * c1 - 4 * c2 * c0}
        cite += ", d = c1^2 - 4 c2 c0"
    return Formula(f"heads / ({text})" if axis == "tp" else text, cite), names


def _root_text(polynomial: Quadratic, root: Fraction) -> str:
    """The root of a quadratic in the form in which nothing is cancelled."""
    square = square_root(polynomial.c1 * polynomial.c1 - 4 * polynomial.c2 * polynomial.c0)
    sign = "-" if polynomial.c1 > 0 else "+"  # that of -c1
    larger = (-polynomial.c1 + (-square if sign == "-" else square)) / (2 * polynomial.c2)
    return f"(p {sign} d ** 0.5) / (2 * c2)" if root == larger else f"2 * c0 / (p {sign} d ** 0.5)"


def _whole(polynomial: Quadratic) -> Iterator[int]:
    """The coefficients as whole numbers: a common multiple has the same roots."""
    parts = (polynomial.c0, polynomial.c1, polynomial.c2)
    common = lcm(*(part.denominator for part in parts))
    return (int(part * common) for part in parts)
