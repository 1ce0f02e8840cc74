"""Numbers a calibration hands back: safe, and pleasant to read."""

from fractions import Fraction

from discreet._exact import Number, float_up

__all__ = ["readable_up"]


def readable_up(value: Fraction) -> Number:
    """Return ``value`` as an int or short Fraction if it is one, else as a double above it.

    >>> readable_up(Fraction(10)), readable_up(Fraction(1, 3)), readable_up(1 / Fraction(0.3))
    (10, Fraction(1, 3), 3.3333333333333335)
    """
    if value.denominator == 1:
        return int(value)
    return value if value.denominator <= 10**6 else float_up(value)
