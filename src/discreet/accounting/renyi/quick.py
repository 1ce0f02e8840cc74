"""Renyi divergences in microseconds, for filters that price a loss before every answer.

:mod:`discreet.accounting.renyi.divergence` has the same to more digits.
"""

import math
from fractions import Fraction

from discreet._rounding import nearest

__all__ = ["laplace_upper", "pure_upper"]


def pure_upper(*, epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the largest Renyi divergence of an epsilon-DP operation, rounded up.

    Why: the worst is randomized response [KOV17, Theorem 2.1 and its proof], for which the
    divergence is e - (log(1 + exp(-e)) - log(1 + exp(-(2 order - 1) e))) / (order - 1). For tiny e
    its digits cancel, and order e^2 / 2 is smaller.
    """
    e, x = nearest(epsilon), nearest(order - 1)
    log = math.log1p(math.exp(-(2 * x + 1) * e)) - math.log1p(math.exp(-e))
    return _upper(epsilon, order, e, x, log)


def laplace_upper(*, epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the Renyi divergence of the Laplace mechanism, rounded up.

    Why: e + log(1 + (a-1)/(2a-1) (exp(-(2a-1) e) - 1)) / (a-1) at order a [Mir17, Proposition 6].
    """
    e, x = nearest(epsilon), nearest(order - 1)
    log = math.log1p(x / (2 * x + 1) * math.expm1(-(2 * x + 1) * e))
    return _upper(epsilon, order, e, x, log)


def _upper(epsilon: Fraction, order: Fraction, e: float, x: float, log: float) -> Fraction:
    """Return e + log / x, rounded up, or order epsilon^2 / 2 where that is smaller."""
    bound = e + log / x + 1e-15 * (e + 4 / x)
    if bound == math.inf:
        return epsilon
    return Fraction(bound) if e * e * (x + 1) / 2 > bound else order * epsilon * epsilon / 2
