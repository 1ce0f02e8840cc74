"""Ranges of expressions, from public bounds alone: exact, and never too narrow."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

__all__ = [
    "ANY",
    "Interval",
    "absolute",
    "add",
    "bounded",
    "divide",
    "greatest",
    "hull",
    "least",
    "monotone",
    "multiply",
    "negate",
    "point",
    "rounded",
    "subtract",
]

Interval = tuple[Fraction | None, Fraction | None]
"""The least and the greatest value; None where there is no bound."""

ANY: Final[Interval] = (None, None)
_MOST_BITS: Final = 4096  # of a bound: no question can make arithmetic on bounds slow


def point(value: Fraction) -> Interval:
    """Return the interval that holds one number.

    >>> point(Fraction(3))
    (Fraction(3, 1), Fraction(3, 1))
    """
    return (value, value)


def bounded(interval: Interval) -> tuple[Fraction, Fraction] | None:
    """Return both ends where both are finite doubles.

    >>> bounded((Fraction(0), None)) is None
    True
    """
    low, high = interval
    if low is None or high is None or max(abs(low), abs(high)) > Fraction(2) ** 1000:
        return None
    return (low, high)


def negate(x: Interval) -> Interval:
    """Return the range of -x.

    >>> negate((Fraction(1), None))
    (None, Fraction(-1, 1))
    """
    low, high = x
    return (None if high is None else -high, None if low is None else -low)


def add(x: Interval, y: Interval) -> Interval:
    """Return the range of x + y.

    >>> add((Fraction(0), Fraction(1)), (Fraction(2), None))
    (Fraction(2, 1), None)
    """
    return _tame(
        None if x[0] is None or y[0] is None else x[0] + y[0],
        None if x[1] is None or y[1] is None else x[1] + y[1],
    )


def subtract(x: Interval, y: Interval) -> Interval:
    """Return the range of x - y.

    >>> subtract(point(Fraction(5)), (Fraction(1), Fraction(2)))
    (Fraction(3, 1), Fraction(4, 1))
    """
    return add(x, negate(y))


def multiply(x: Interval, y: Interval) -> Interval:
    """Return the range of x * y.

    >>> multiply((Fraction(-1), Fraction(2)), (Fraction(3), Fraction(4)))
    (Fraction(-4, 1), Fraction(8, 1))
    """
    finite = [*x, *y]
    if any(end is None for end in finite):
        low_x, low_y = x[0], y[0]
        if low_x is not None and low_y is not None and low_x >= 0 and low_y >= 0:
            return _tame(low_x * low_y, None)
        return ANY
    ends = [a * b for a in x for b in y if a is not None and b is not None]
    return _tame(min(ends), max(ends))


def divide(x: Interval, y: Interval) -> Interval:
    """Return the range of x / y, which is NULL where y is 0.

    >>> divide((Fraction(0), Fraction(10)), point(Fraction(4)))
    (Fraction(0, 1), Fraction(5, 2))
    """
    low, high = y
    if low is None or high is None or low <= 0 <= high:
        return ANY
    return multiply(x, (1 / high, 1 / low))


def absolute(x: Interval) -> Interval:
    """Return the range of the size of x.

    >>> absolute((Fraction(-3), Fraction(2)))
    (Fraction(0, 1), Fraction(3, 1))
    """
    low, high = x
    top = None if low is None or high is None else max(-low, high)
    if low is not None and low >= 0:
        return (low, high)
    if high is not None and high <= 0:
        return negate(x)
    return (Fraction(0), top)


def hull(parts: Sequence[Interval]) -> Interval:
    """Return the range of something that is one of the parts.

    >>> hull([point(Fraction(1)), point(Fraction(5))])
    (Fraction(1, 1), Fraction(5, 1))
    """
    if not parts:
        return ANY
    lows, highs = [p[0] for p in parts], [p[1] for p in parts]
    return (_extreme(lows, min), _extreme(highs, max))


def least(parts: Sequence[Interval], always: Sequence[bool]) -> Interval:
    """Return the range of LEAST, which leaves NULLs out; ``always`` says which are never NULL.

    >>> least([ANY, point(Fraction(9))], [False, True])
    (None, Fraction(9, 1))
    """
    low, high = hull(parts)
    sure = [p[1] for p, there in zip(parts, always, strict=True) if there and p[1] is not None]
    return (low, min(sure) if sure else high)


def greatest(parts: Sequence[Interval], always: Sequence[bool]) -> Interval:
    """Return the range of GREATEST, which leaves NULLs out.

    >>> greatest([ANY, point(Fraction(0))], [False, True])
    (Fraction(0, 1), None)
    """
    return negate(least([negate(p) for p in parts], always))


def rounded(x: Interval) -> Interval:
    """Return the range of x rounded to a whole number in any direction.

    >>> rounded((Fraction(1, 2), Fraction(3)))
    (Fraction(0, 1), Fraction(3, 1))
    """
    low, high = x
    return (
        None if low is None else Fraction(math.floor(low)),
        None if high is None else Fraction(math.ceil(high)),
    )


def monotone(function: Callable[[float], float], x: Interval, *, least: float) -> Interval:
    """Return the range of an increasing function whose values are at least ``least``.

    Floats are rounded outwards by two steps, more than the error of the C library's functions.

    >>> low, high = monotone(math.sqrt, (Fraction(-1), Fraction(4)), least=0.0)
    >>> low == 0 and 2 <= high < 2.00001
    True
    """

    def end(value: Fraction | None, direction: float) -> Fraction | None:
        if value is None:
            return None
        try:
            result = function(float(value))
        except (ValueError, OverflowError):
            return None
        for _ in range(2):
            result = math.nextafter(result, direction)
        return Fraction(result) if math.isfinite(result) else None

    low, high = end(x[0], -math.inf), end(x[1], math.inf)
    if math.isfinite(least):
        low = max(low, Fraction(least)) if low is not None else Fraction(least)
    return (low, high)


def _extreme(
    ends: Sequence[Fraction | None], choose: Callable[[list[Fraction]], Fraction]
) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return choose(known) if len(known) == len(ends) else None


def _tame(low: Fraction | None, high: Fraction | None) -> Interval:
    def size(end: Fraction) -> int:
        return end.numerator.bit_length() + end.denominator.bit_length()

    return (
        None if low is None or size(low) > _MOST_BITS else low,
        None if high is None or size(high) > _MOST_BITS else high,
    )
