"""How far noise reaches with a stated confidence: bounds on tails, rounded up."""

import math
from fractions import Fraction

from discreet._rounding import log_of, log_one_over

__all__ = ["hoeffding_width", "normal_quantile"]


def hoeffding_width(miss: Fraction, count: int) -> float:
    """Return a t so that a share of ``count`` independent coins is off by t with chance ``miss``.

    Why: [Hoe63, Theorem 2], both sides: t = sqrt(log(2 / miss) / (2 count)).

    >>> round(hoeffding_width(Fraction(1, 20), 10_000), 4)
    0.0136
    """
    return math.sqrt(Fraction(log_of(2 / miss)) / (2 * count))


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
