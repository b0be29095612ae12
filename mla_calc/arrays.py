"""Numbers that are one number or a grid of them.

The formulas of the engine are written once, over Python integers for one answer and over int64 arrays for a
million. This module has the little that differs between the two; numpy is imported only where arrays are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

EXACT_IN_FLOAT = 2**53
"""Up to here every integer is a float64."""

if TYPE_CHECKING:
    from fractions import Fraction

    # A checker cannot follow one formula over both kinds (int * int is int, int64[] * int is some array), so
    # these are Any with a name; the records of costs/ are typed plainly, and tests compare both kinds.
    Ints: TypeAlias = Any
    """Exact counts: a Python integer, or an int64 array that broadcasts."""
    Floats: TypeAlias = Any
    """Seconds and ratios: a float, or a float64 array that broadcasts."""
    Width: TypeAlias = int | Fraction
    """Bytes per value: 2 for bf16, 1/2 for 4-bit weights."""


def maximum(left: Any, right: Any) -> Any:
    """The larger of two, element by element where either is an array."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return max(left, right)
    import numpy as np

    return np.maximum(left, right)


def minimum(left: Any, right: Any) -> Any:
    """The smaller of two, element by element where either is an array."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return min(left, right)
    import numpy as np

    return np.minimum(left, right)


def ratio(count: Ints, rate: int) -> Floats:
    """``count`` over ``rate`` as Python divides integers: rounded once, to the last bit.

    numpy rounds an int64 above 2**53 to a float before it divides, and the quotient once more; those entries
    are divided as Python integers.
    """
    if isinstance(count, int | float):
        return count / rate
    import numpy as np

    quotient = np.asarray(count / rate, dtype=np.float64)
    large = np.asarray(count > EXACT_IN_FLOAT, dtype=bool)
    if large.any():
        quotient[large] = np.asarray(count)[large].astype(object) / rate
    return quotient


def stored_bytes(values: Ints, width: Width) -> Ints:
    """Bytes of ``values`` values of ``width`` bytes each; a last half byte is dropped."""
    return values * width.numerator // width.denominator
