"""Polynomials of degree 2 at most in exact fractions: through values at whole numbers, and where they are 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

FAR = 1000
"""How far beyond the values that a polynomial goes through it is checked."""
ROOT_BITS = 128
"""Bits after the point of a square root that is not whole."""


class NotPolynomialError(ValueError):
    """Values that no polynomial of degree 2 goes through."""


@dataclass(frozen=True, slots=True)
class Quadratic:
    """c0 + c1 x + c2 x^2."""

    c0: Fraction
    c1: Fraction
    c2: Fraction

    def __call__(self, x: Fraction | int) -> Fraction:
        """Its value at ``x``."""
        return self.c0 + x * (self.c1 + x * self.c2)

    def roots(self) -> tuple[Fraction, ...]:
        """Where the sign changes, rising: none of a constant, and none where it only touches 0."""
        if self.c2 == 0:
            return (-self.c0 / self.c1,) if self.c1 else ()
        square = self.c1 * self.c1 - 4 * self.c2 * self.c0
        if square <= 0:
            return ()
        root = square_root(square)
        return tuple(sorted((-self.c1 + sign * root) / (2 * self.c2) for sign in (-1, 1)))


def square_root(square: Fraction) -> Fraction:
    """The root of ``square``, below by no more than 2**-128 of its denominator's unit; exact where it is rational."""
    inside = square.numerator * square.denominator  # sqrt(n / d) = sqrt(n d) / d
    whole = isqrt(inside)
    if whole * whole == inside:
        return Fraction(whole, square.denominator)
    return Fraction(isqrt(inside << 2 * ROOT_BITS), square.denominator << ROOT_BITS)


def through(value: Callable[[int], int], low: int, high: int | None) -> Quadratic:
    """The polynomial that ``value`` is from ``low`` to ``high`` (``None``: without end).

    It goes through the first three whole numbers, or through all where there are fewer, and is checked at another.

    Raises:
        NotPolynomialError: the value at the other one is not the polynomial's.
    """
    count = 3 if high is None else min(3, high - low + 1)
    values = [Fraction(value(low + step)) for step in range(count)]
    c2 = (values[2] - 2 * values[1] + values[0]) / 2 if count == 3 else Fraction(0)
    slope = values[1] - values[0] - c2 if count > 1 else Fraction(0)  # in x - low
    found = Quadratic(values[0] - low * slope + low * low * c2, slope - 2 * low * c2, c2)
    beyond = low + 3 + FAR if high is None else min(high, low + 3 + FAR)
    if found(beyond) != value(beyond):
        raise NotPolynomialError(f"at {beyond} it is {value(beyond)}, not {found(beyond)}")
    return found
