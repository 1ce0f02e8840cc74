"""How far a filter may go: limits that a guarantee allows, rounded down."""

import math
from fractions import Fraction
from functools import lru_cache

from discreet._exact import show
from discreet._rounding import log_of, nearest
from discreet.accounting.arithmetic.concentrated import zcdp_delta
from discreet.accounting.arithmetic.search import smallest_float
from discreet.accounting.filters.costs import Track
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

__all__ = ["best_order", "tracks_for"]

# How delta is shared out, once, when a filter is opened.
_FAILURES = Fraction(1, 8)  # zCDP and Renyi: for losses with a chance of failure of their own
_BASIC = Fraction(1, 8)  # combined: for the basic track
_EACH = Fraction(1, 1024)  # for one loss that must be converted to (epsilon, delta) first


def tracks_for(guarantee: Guarantee, kind: str, order: Fraction) -> tuple[Track, ...]:
    """Return the sums that a filter of this kind keeps, with their limits."""
    epsilon, delta = Fraction(guarantee.epsilon), Fraction(guarantee.delta)
    each = _EACH * delta
    if kind == "basic":
        return (Track(kind="basic", divergence=epsilon, failure=delta, each=each),)
    failure, certain = _FAILURES * delta, (1 - _FAILURES) * delta
    if kind == "zcdp":
        rho = _largest_rho(epsilon, certain)
        return (Track(kind="zcdp", divergence=rho, failure=failure, each=each),)
    if kind == "renyi":
        limit = _renyi_limit(epsilon, certain, order)
        return (Track(kind="renyi", divergence=limit, failure=failure, each=each, order=order),)
    # One share lets the sum of epsilons pass epsilon by as much, so that ten times the float 0.1
    # still fits in 1: (epsilon + x, d)-DP implies (epsilon, d + x)-DP.
    first = Track(kind="basic", divergence=epsilon + each, failure=_BASIC * delta - each, each=each)
    limit = _renyi_limit(epsilon, certain - _BASIC * delta, order)
    second = Track(kind="renyi", divergence=limit, failure=failure, each=each, order=order)
    return first, second


@lru_cache(maxsize=64)
def best_order(guarantee: Guarantee, kind: str) -> Fraction:
    """Return a Renyi order that serves Gaussian noise nearly best, short enough to write down."""
    taken = _FAILURES + (_BASIC if kind == "combined" else 0)
    epsilon, delta = Fraction(guarantee.epsilon), (1 - taken) * Fraction(guarantee.delta)
    orders = [Fraction(f"{1 + 2 ** (k / 16):.4g}") for k in range(-128, 960)]
    usable = (order for order in orders if order > 1)
    return max(usable, key=lambda order: _renyi_room(epsilon, delta, order) / nearest(order))


def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho whose certified conversion meets (epsilon, delta)."""
    found = smallest_float(lambda x: zcdp_delta(rho=1 / Fraction(x), epsilon=epsilon) <= delta)
    if found is None:
        raise ParameterError(
            "no rho above 1e-300 meets this guarantee. Allow a larger epsilon or delta.",
            parameter="guarantee",
        )
    return 1 / Fraction(found)


def _renyi_limit(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    limit = _renyi_room(epsilon, delta, order)
    if limit <= 0:
        raise ParameterError(
            f"order={show(nearest(order))} cannot prove this guarantee: even a Renyi divergence of "
            "0 would not meet it. Leave the order out to get the one that serves Gaussians best.",
            parameter="order",
        )
    return Fraction(limit)


def _renyi_room(epsilon: Fraction, delta: Fraction, order: Fraction) -> float:
    """Return the largest divergence of this order that proves (epsilon, delta)-DP, rounded down.

    Why: a divergence r gives delta = exp((a - 1)(r - epsilon)) (1 - 1/a)^a / (a - 1)
    [CKS20, Proposition 12]; solved for r, with x = a - 1.
    """
    x = nearest(order - 1)
    terms = (nearest(epsilon), log_of(delta) / x, math.log1p(x) / x, math.log1p(1 / x))
    return sum(terms) - 1e-14 * (sum(map(abs, terms)))
