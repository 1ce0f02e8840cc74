"""Exponentials and floats that err on a stated side.

A guarantee may be overstated, never understated, so every inexact step here names its direction.
The exponential goes through ``decimal``, which rounds correctly and alike on every platform;
``math.exp`` promises neither.
"""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from discreet._exact import float_up

_UP = Context(prec=40, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=40, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)

# exp(-5000) is below 1e-2171: far under anything a float can hold, while the exact fraction for
# exp(-1e6) would carry half a million digits through every later step for nothing.
_NEGLIGIBLE = 5000


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


def log_approximate(x: Fraction) -> float:
    """Return log(x) to float accuracy, also where x itself is no float.

    >>> round(log_approximate(Fraction(1, 10**400)), 3)
    -921.034
    """
    return math.log(x.numerator) - math.log(x.denominator)
