"""Numbers a calibration hands back: safe, and pleasant to read."""

import math
from fractions import Fraction

from discreet._exact import Number, float_up

__all__ = ["log_one_over", "normal_quantile", "readable_up"]


def readable_up(value: Fraction) -> Number:
    """Return ``value`` as an int or short Fraction if it is one, else as a double above it.

    >>> readable_up(Fraction(10)), readable_up(Fraction(1, 3)), readable_up(1 / Fraction(0.3))
    (10, Fraction(1, 3), 3.3333333333333335)
    """
    if value.denominator == 1:
        return int(value)
    return value if value.denominator <= 10**6 else float_up(value)


def log_one_over(miss: Fraction) -> float:
    """Return log(1 / miss) for any chance above 0, also one that no double can hold.

    >>> round(log_one_over(Fraction(1, 10**400)), 3)
    921.034
    """
    return (math.log(miss.denominator) - math.log(miss.numerator)) * (1 + 1e-15)


def normal_quantile(confidence: Fraction) -> float:
    """Return a t with Pr[abs(Z) <= t] >= confidence for a standard Gaussian Z.

    Why: beyond a double's precision, Pr[abs(Z) > t] <= exp(-t**2 / 2).

    >>> round(normal_quantile(Fraction(95, 100)), 4)
    1.96
    """
    from statistics import NormalDist

    level = float(1 + confidence) / 2
    if level < 1 - 1e-12:
        return NormalDist().inv_cdf(level) * (1 + 1e-9)
    return math.sqrt(2 * log_one_over(1 - confidence))
