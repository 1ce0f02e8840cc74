"""What zero-concentrated differential privacy says about delta."""

import math
from fractions import Fraction

from discreet._rounding import above, nearest

__all__ = ["zcdp_delta"]


def zcdp_delta(*, rho: Fraction, epsilon: Fraction) -> float:
    """Return the delta of rho-zCDP at ``epsilon``, rounded up."""
    if rho == 0:
        return 0.0
    x = _best_order_minus_one(nearest(rho), nearest(epsilon))
    # The two large terms nearly cancel, so their sum is taken exactly; the logarithms do not.
    linear = nearest(Fraction(x) * ((1 + Fraction(x)) * rho - epsilon))
    exponent = linear - x * math.log1p(1 / x) - math.log1p(x)
    if exponent >= 0:
        return 1.0
    return above(math.exp(exponent), relative=1e-12 + 1e-15 * abs(exponent))


def _best_order_minus_one(rho: float, epsilon: float) -> float:
    """Return x = order - 1 where the derivative (2x + 1) rho - epsilon - log(1 + 1/x) changes sign.

    The exponent is convex in x, so bisecting the sign (in the logarithm of x, which may be
    anywhere from 1e-300 to 1e300) finds its minimum.
    """
    low, high = -690.0, 690.0
    for _ in range(64):
        middle = (low + high) / 2
        x = math.exp(middle)
        if (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)
