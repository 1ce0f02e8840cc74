"""What sampling makes of any mechanism, given its Renyi curve at whole orders."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet._exact import Number, nonnegative, probability
from discreet.accounting.arithmetic.binomials import log_pmf
from discreet.accounting.renyi.moments import divergence
from discreet.accounting.renyi.orders import checked_order

__all__ = ["chord", "sampled", "sampled_without_replacement"]

Curve = Callable[[float], float]


def chord(below: float, above: float, a: Fraction) -> float:
    """Return log(moment - 1) on the chord between whole orders, given both ends in that form."""
    part = float(a - math.floor(a))
    moments = [float(np.logaddexp(0.0, end)) for end in (below, above)]
    log_moment = ((1 - part) * moments[0] + part * moments[1]) * (1 + 1e-15)
    if log_moment < 1e-300:  # below the floats, and a chord is nowhere above both its ends
        return max(below, above)
    return math.log(math.expm1(log_moment)) if log_moment < 30 else log_moment


def sampled(curve: Curve, *, rate: Number, order: Number) -> float:
    """Return a bound on the divergence of any mechanism on a Poisson sample.

    Claim: if ``curve(j)`` bounds the mechanism's divergence at the whole orders j from 2 to the
    order (rounded up), in both directions, for add/remove, then this bounds that of the mechanism
    run on a sample that keeps each unit with probability ``rate``.

    Why: [ZW19, Theorem 6] at whole orders, whose sum less 1 is a sum of positive terms; below the
    chord in between; and sampling never costs more than not sampling.

    >>> from discreet.accounting.renyi import gaussian
    >>> round(sampled(lambda j: gaussian(noise_multiplier=4, order=j), rate=0.01, order=8), 8)
    4.453e-05
    """
    share = probability(rate, name="rate", zero=True, one=True)
    a = checked_order(order)
    if share == 0:
        return 0.0
    plain = curve(float(a)) * (1 + 1e-15)
    if share == 1:
        return plain
    low, high = math.floor(a), math.ceil(a)
    top = _poisson_excess(curve, share, high)
    if low == high:
        return min(plain, divergence(top, a))
    bottom = _poisson_excess(curve, share, low) if low > 1 else -math.inf
    return min(plain, divergence(chord(bottom, top, a), a))


def _poisson_excess(curve: Curve, share: Fraction, order: int) -> float:
    """Return the log of the bound of [ZW19, Theorem 6] on the moment, less 1."""
    orders = np.arange(2, order + 1)
    logs, error = log_pmf(orders, order, float(share), float(1 - share))
    growth = np.array([(j - 1) * curve(int(j)) for j in orders])
    factor = np.where(orders == 2, 1.0, 3.0)
    with np.errstate(over="ignore", divide="ignore"):
        excess = np.where(
            growth < 30,
            np.log(np.maximum(factor * np.expm1(np.minimum(growth, 30.0)) + (factor - 1), 0.0)),
            growth + np.log(factor),
        )
    return float(np.logaddexp.reduce(logs + error + excess + 1e-14 + 1e-15 * growth))


def sampled_without_replacement(
    curve: Curve, *, rate: Number, order: Number, pure_epsilon: Number | None = None
) -> float:
    """Return a bound on the divergence of any mechanism on a random subset of fixed size.

    Claim: if ``curve(j)`` bounds the mechanism's divergence for replace-one at the whole orders
    from 2 to the order (rounded up), then this bounds, for replace-one, that of the mechanism run
    on a uniformly random subset of m out of n units, where ``rate`` = m/n. ``pure_epsilon`` says
    that the mechanism is also that pure.

    Why: [WBK19, Theorem 9] at whole orders; below the chord in between; never more than without
    sampling.

    >>> from discreet.accounting.renyi import gaussian
    >>> curve = lambda j: gaussian(noise_multiplier=4, order=j)
    >>> round(sampled_without_replacement(curve, rate=0.01, order=8), 7)
    0.0001227
    """
    share = probability(rate, name="rate", zero=True, one=True)
    a = checked_order(order)
    limit = math.inf if pure_epsilon is None else nonnegative(pure_epsilon, name="pure_epsilon")
    if share == 0:
        return 0.0
    plain = curve(float(a)) * (1 + 1e-15)
    base = math.inf if limit > 700 else math.expm1(float(limit)) * (1 + 1e-15)
    low, high = math.floor(a), math.ceil(a)
    top = _subset_excess(curve, share, high, base)
    if low == high:
        return min(plain, divergence(top, a))
    bottom = _subset_excess(curve, share, low, base) if low > 1 else -math.inf
    return min(plain, divergence(chord(bottom, top, a), a))


def _subset_excess(curve: Curve, share: Fraction, order: int, base: float) -> float:
    """Return the log of the bound of [WBK19, Theorem 9] on the moment, less 1."""
    if base == 0:
        return -math.inf
    second = curve(2)
    log_base = math.log(base)
    fourfold = math.log(4) + (
        math.log(math.expm1(second)) if 0 < second < 30 else second or -math.inf
    )
    total = -math.inf
    log_choose = 0.0
    for j in range(1, order + 1):
        log_choose += math.log((order - j + 1) / j)
        if j == 1:
            continue
        growth = (j - 1) * curve(j) + min(math.log(2), j * log_base)
        term = min(fourfold, growth) if j == 2 else growth
        slack = 1e-15 * (j * (4 - math.log(share)) + abs(term) + 4)
        total = float(np.logaddexp(total, log_choose + j * math.log(share) + term + slack))
    return total + 1e-15 * order
