"""From Renyi divergences to (epsilon, delta)."""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet._exact import Number, exact, nonnegative, probability, refusal
from discreet._rounding import above, log_of, nearest

__all__ = [
    "best_delta",
    "best_epsilon",
    "checked_order",
    "conversion",
    "conversion_delta",
    "log_chance",
]

# Orders tried first: order - 1 from 0.01 to 1e5, five per decade. Then the best is refined.
_COARSE = [10 ** (i / 5) for i in range(-10, 26)]
_REFINEMENTS = 24
_GOLDEN = (math.sqrt(5) - 1) / 2


def checked_order(order: object) -> Fraction:
    """Return a Renyi order exactly, or refuse it unless it is finite and above 1."""
    number = exact(order, name="order", wanted="a finite number above 1")
    if number <= 1:
        raise refusal("order", "a finite number above 1", order)
    return number


def log_chance(chance: Fraction) -> float:
    """Return log(chance), off by at most 1e-15 and a relative 1e-15, also far below the floats."""
    if chance > Fraction(1, 2**1000):
        return math.log(float(chance))
    return log_of(chance)


def _checked_divergence(renyi: object) -> float:
    if isinstance(renyi, float) and renyi == math.inf:
        return math.inf
    return nearest(nonnegative(renyi, name="renyi"))


def conversion(*, order: Number, renyi: Number, delta: Number) -> float:
    """Return an epsilon for ``delta`` from one Renyi divergence, rounded up.

    Claim: an operation whose divergence of that order is at most ``renyi`` in both directions is
    (epsilon, delta)-DP.

    Why: the best that one order gives [CKS20, Proposition 12; BBGHS20, Theorem 21]; and epsilon 0
    where even the total variation distance, at most sqrt(1 - exp(-renyi)) [BH79], is below delta.

    >>> round(conversion(order=10, renyi=0.5, delta=1e-6), 6)
    1.673853
    """
    a, r = checked_order(order), _checked_divergence(renyi)
    chance = probability(delta, name="delta")
    if r == math.inf:
        return math.inf
    if above(-math.expm1(-r), relative=1e-14) <= chance * chance:
        return 0.0
    less = float(a - 1)
    logarithm = -log_chance(chance)
    gain = math.log(float(a)) / less
    drop = _log_share(a)
    error = 2e-15 * (r - drop + (logarithm + 1) / less + gain + 1)
    return max(0.0, r + drop + logarithm / less - gain + error)


def conversion_delta(*, order: Number, renyi: Number, epsilon: Number) -> float:
    """Return a delta for ``epsilon`` from one Renyi divergence, rounded up.

    The same conversion read the other way.

    >>> round(conversion_delta(order=10, renyi=0.5, epsilon=1.673853), 9)
    1e-06
    """
    a, r = checked_order(order), _checked_divergence(renyi)
    e = nonnegative(epsilon, name="epsilon")
    if r == math.inf:
        return 1.0
    drop = float(a - 1) * _log_share(a)
    exponent = nearest((a - 1) * (Fraction(r) - e)) + drop - math.log(float(a))
    error = 2e-15 * (abs(exponent) - drop + math.log(float(a)) + 1)
    distance = math.sqrt(-math.expm1(-r))
    return above(min(1.0, distance, math.exp(min(0.0, exponent + error))), relative=1e-14)


def _log_share(a: Fraction) -> float:
    """Return log(1 - 1/a), keeping its digits next to 1 and far above."""
    less = float(a - 1)
    return math.log1p(-1 / float(a)) if less > 0.5 else math.log(less) - math.log(float(a))


def best_epsilon(curve: Callable[[float], float], *, delta: Number) -> float:
    """Return the least epsilon that any order of a Renyi curve gives for ``delta``.

    ``curve(order)`` bounds the divergence at that order, of one operation or (added up) of many.

    Why: every order is a proof, so the search need not be exact. It tries 36 orders from 1.01 to
    100,001 and refines around the best.

    >>> from discreet.accounting.renyi import gaussian
    >>> round(best_epsilon(lambda a: gaussian(noise_multiplier=1, order=a), delta=1e-6), 4)
    5.2215
    """
    probability(delta, name="delta")
    return _least(lambda a: conversion(order=a, renyi=curve(a), delta=delta))


def best_delta(curve: Callable[[float], float], *, epsilon: Number) -> float:
    """Return the least delta that any order of a Renyi curve gives for ``epsilon``.

    >>> from discreet.accounting.renyi import gaussian
    >>> best_delta(lambda a: gaussian(noise_multiplier=1, order=a), epsilon=5.2215)
    1.000...e-06
    """
    nonnegative(epsilon, name="epsilon")
    return _least(lambda a: conversion_delta(order=a, renyi=curve(a), epsilon=epsilon))


def _least(cost: Callable[[float], float]) -> float:
    """Return the least value met in a search over orders, by a grid and golden sections."""
    values = [cost(1 + x) for x in _COARSE]
    best = min(range(len(values)), key=values.__getitem__)
    low = math.log(_COARSE[max(0, best - 1)])
    high = math.log(_COARSE[min(len(_COARSE) - 1, best + 1)])
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = cost(1 + math.exp(left)), cost(1 + math.exp(right))
    least = min(values[best], at_left, at_right)
    for _ in range(_REFINEMENTS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = cost(1 + math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = cost(1 + math.exp(right))
        least = min(least, at_left, at_right)
    return least
