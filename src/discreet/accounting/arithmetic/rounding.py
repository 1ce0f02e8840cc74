"""Between exact numbers and floats, with the direction of every rounding in view."""

import math
from fractions import Fraction

from discreet._exact import Number, exact

__all__ = ["keep", "nearest", "one_minus_exp"]


def keep(value: object) -> Number:
    """Return a checked number as a plain int, float or Fraction, so that reprs stay readable.

    Equal numbers of different types compare and hash alike, so nothing is lost for dictionaries.
    """
    if isinstance(value, int | Fraction):
        return value
    if isinstance(value, float):
        return float(value)  # numpy's float64 is a float too; drop its type
    number = exact(value, name="number")
    return int(number) if number.denominator == 1 else number


def nearest(value: Fraction) -> float:
    """Return the float nearest to ``value``; beyond the floats, an infinity of its sign."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def one_minus_exp(exponent: Fraction) -> float:
    """Return 1 - exp(exponent) for an exact exponent of at most 0, to a relative 1e-15."""
    return -math.expm1(nearest(exponent))
