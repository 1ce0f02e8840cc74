"""Exponentials, logarithms and floats that err on a stated side; every room may use them.

A guarantee may be overstated, never understated, so every inexact step here names its direction.
The exponential goes through ``decimal``, which rounds correctly and alike on every platform;
``math.exp`` promises neither.
"""

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from discreet._exact import float_up

__all__ = [
    "above",
    "exp_lower",
    "exp_upper",
    "float_down",
    "log_of",
    "log_one_over",
    "nearest",
    "one_minus_exp",
    "sum_up",
]

_UP = Context(prec=40, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=40, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)

# exp(-5000) is below 1e-2171: far under anything a float can hold, while the exact fraction for
# exp(-1e6) would carry half a million digits through every later step for nothing.
_NEGLIGIBLE = 5000

_LONG = 2048  # binary digits of a denominator that sums do not grow beyond
_KEPT = 256  # binary digits of what is rounded instead

# Every chance below this is reported as this: a mechanism that is not pure is never said to be.
_SMALLEST = 2e-323


def exp_upper(x: Fraction) -> Fraction:
    """Return a number slightly above e**x; x is at most a few thousand.

    >>> float(exp_upper(Fraction(0))), float(exp_upper(Fraction(1)))
    (1.0, 2.718281828459045)
    """
    if x == 0:
        return Fraction(1)
    x = max(x, Fraction(-_NEGLIGIBLE))
    argument = _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    # Decimal's exp always rounds to nearest, whatever the context says: step once further.
    return Fraction(_UP.next_plus(_UP.exp(argument)))


def exp_lower(x: Fraction) -> Fraction:
    """Return a number slightly below e**x, and 0 where e**x is far below every float.

    >>> exp_lower(Fraction(-10**6))
    Fraction(0, 1)
    """
    if x == 0:
        return Fraction(1)
    if x < -_NEGLIGIBLE:
        return Fraction(0)
    argument = _DOWN.divide(Decimal(x.numerator), Decimal(x.denominator))
    return Fraction(_DOWN.next_minus(_DOWN.exp(argument)))


def float_down(x: Fraction) -> float:
    """Return the largest float that is at most x.

    >>> float_down(Fraction(1, 3)) < Fraction(1, 3), float_down(Fraction(1, 2))
    (True, 0.5)
    """
    return 0.0 - float_up(-x)  # not a bare minus, which would turn 0 into -0.0


def log_of(x: Fraction) -> float:
    """Return the logarithm of a positive number, to nearest, however far outside the doubles.

    >>> round(log_of(Fraction(1, 10**400)), 3)
    -921.034
    """
    return math.log(x.numerator) - math.log(x.denominator)


def log_one_over(chance: Fraction) -> float:
    """Return at least log(1 / chance), for any chance above 0, also one that no double can hold.

    >>> round(log_one_over(Fraction(1, 10**400)), 3)
    921.034
    """
    return log_of(1 / chance) * (1 + 1e-15)


def nearest(value: Fraction) -> float:
    """Return the float nearest to ``value``; beyond the floats, an infinity of its sign.

    >>> nearest(Fraction(1, 3)), nearest(Fraction(-(10**400)))
    (0.3333333333333333, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def one_minus_exp(exponent: Fraction) -> float:
    """Return 1 - exp(exponent) for an exact exponent of at most 0, to a relative 1e-15.

    >>> one_minus_exp(Fraction(-1, 10**9))
    9.999999995e-10
    """
    return -math.expm1(nearest(exponent))


def above(probability: float, *, relative: float) -> float:
    """Return a probability no smaller than the truth, given the relative error of ``probability``.

    The constant covers what is lost below the normal floats, where relative bounds fail.

    >>> above(0.25, relative=0.01), above(0.999, relative=0.01), above(0.0, relative=0.01)
    (0.2525, 1.0, 2e-323)
    """
    return min(1.0, probability * (1 + relative) + _SMALLEST)


def sum_up(amounts: Iterable[Fraction]) -> Fraction:
    """Add up amounts of at least 0, exactly as long as the denominator stays short, then upwards.

    Exact sums of many unlike fractions take time that grows with the square of their number. What
    would lengthen the denominator beyond measure is rounded up in its 256th digit first; decimals
    and floats never are.

    >>> sum_up([Fraction(1, 10)] * 10)
    Fraction(1, 1)
    >>> sum_up(Fraction(1, n) for n in range(1, 5000)).denominator.bit_length() < 4000
    True
    """
    top, bottom = 0, 1
    for amount in amounts:
        over, under = amount.numerator, amount.denominator
        common = math.lcm(bottom, under)
        if common.bit_length() > max(_LONG, bottom.bit_length()) and under & (under - 1):
            shift = max(0, _KEPT + under.bit_length() - over.bit_length())
            over, under = -(-(over << shift) // under), 1 << shift
            common = math.lcm(bottom, under)
        top, bottom = top * (common // bottom) + over * (common // under), common
    return Fraction(top, bottom)
