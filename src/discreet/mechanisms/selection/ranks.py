"""Ranks on a grid of public points: what one quantile and several have in common."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, probability, refusal
from discreet.errors import DataError
from discreet.mechanisms.values.arrays import as_reals
from discreet.noise import Source, exponential_race, uniform_below_secret

__all__ = ["Places", "as_share", "choose", "nearest_share", "places", "points", "value_at"]

_MOST_POINTS: Final = 1 << 40
_LARGEST: Final = Fraction(2**900)  # doubles end near there
_FINEST: Final = 10**6  # denominator of a quantile: more would only overflow integer ranks

Places = npt.NDArray[np.int64]


def as_share(value: object, *, name: str) -> Fraction:
    """Return a quantile as the nearest fraction that ranks are computed with.

    >>> as_share(0.3, name="quantile")
    Fraction(3, 10)
    """
    hint = "The extremes themselves cannot be told privately; try 0.01 or 0.99."
    nearest = nearest_share(probability(value, name=name, hint=hint))
    if not 0 < nearest < 1:
        raise refusal(name, "between a millionth and one minus a millionth", value, hint)
    return nearest


@lru_cache(maxsize=1024)
def nearest_share(value: Fraction) -> Fraction:
    """Return the nearest fraction with a denominator of at most a million."""
    return value.limit_denominator(_FINEST)


def points(low: Number, high: Number, grid: Number) -> int:
    """Return how many grid points there are from ``low`` to ``high``.

    >>> points(0, 1, 0.25)
    5
    """
    start, end = exact(low, name="low"), exact(high, name="high")
    spacing = positive(grid, name="grid")
    for name, bound, size in (("low", low, abs(start)), ("high", high, abs(end))):
        if size > _LARGEST:
            raise refusal(name, "between -2**900 and 2**900", bound)
    if start > end:
        raise refusal("high", "at least low", high)
    steps = (end - start) / spacing
    if steps.denominator != 1 or steps >= _MOST_POINTS or not 1 / _LARGEST < spacing < _LARGEST:
        raise refusal(
            "grid",
            "an exact divisor of high - low, of at least a 2**-40th of it",
            grid,
            "A power of two such as 1 or 2**-10 divides exactly; 0.01 as a float does not, "
            "but Fraction(1, 100) does.",
        )
    return int(steps) + 1


def places(values: npt.ArrayLike, low: Number, high: Number, grid: Number) -> Places:
    """Return the number of the grid point nearest to each value, each by itself.

    >>> places([-5, 7, 3], 0, 4, 2), places([0.9, 1.0], 0, 4, 2)
    (array([0, 2, 2]), array([0, 1]))
    """
    reals = as_reals(values)
    if reals.ndim != 1:
        raise DataError(
            f"values must be a one-dimensional array, got shape {reals.shape}. "
            "Pass one value per record."
        )
    last = points(low, high, grid) - 1
    if reals.dtype.kind == "i":
        steps = _integer_steps(reals, exact(low, name="low"), exact(grid, name="grid"), last)
        return np.asarray(np.clip(steps, 0, last), dtype=np.int64)
    # Rounding errors here move a value to the next point at worst. They are the same for equal
    # values wherever they stand in the array, so one record still moves one place only.
    start = float(low)
    steps = (np.clip(reals, start, float(high)) - start) / float(grid)
    return np.asarray(np.clip(np.floor(steps + 0.5), 0, last), dtype=np.int64)


def _integer_steps(
    values: npt.NDArray[np.int64], low: Fraction, grid: Fraction, last: int
) -> npt.NDArray[Any]:
    """Return floor((value - low) / grid + 1/2), exactly, for values between the bounds.

    Doubles would merge integers beyond 2**53, such as times in nanoseconds.
    """
    limits = np.iinfo(np.int64)
    base = max(math.floor(low), limits.min)
    top = min(math.ceil(low + last * grid), limits.max)
    if base > top:  # no int64 lies between the bounds: all values are on one side
        return np.full(values.shape, 0 if base > 0 else last)
    above: npt.NDArray[Any] = np.clip(values, base, top)
    # (base + above - low) / grid + 1/2 = (factor * above + start) / unit, all whole numbers.
    ratio, offset = 1 / grid, (base - low) / grid + Fraction(1, 2)
    unit = math.lcm(ratio.denominator, offset.denominator)
    factor, start = int(ratio * unit), int(offset * unit)
    # Which arithmetic will do depends on the bounds alone, never on the values.
    if max(factor * max(1, top - base) + abs(start), unit) < 1 << 63:
        return (factor * (above - base) + start) // unit
    wide: npt.NDArray[Any] = (factor * (above.astype(object) - base) + start) // unit
    return wide


def value_at(place: int, low: Number, grid: Number) -> float:
    """Return a grid point as a double.

    >>> value_at(3, 10, 0.5)
    11.5
    """
    return float(exact(low, name="low") + place * exact(grid, name="grid"))


def choose(
    inside: Places, *, first: int, last: int, share: Fraction, rate: Fraction, source: Source
) -> int:
    """Draw from first..last with weight exp(rate * score), for sorted places ``inside``.

    The score is -max(0, b L - a n, b G - (b - a) n) for share = a / b: whole numbers.

    >>> from discreet.noise import SYSTEM
    >>> wanted = {"share": Fraction(1, 2), "rate": Fraction(10**6), "source": SYSTEM}
    >>> choose(np.array([1, 2, 2, 5]), first=0, last=9, **wanted)
    2
    """
    n = inside.size
    a, b = share.numerator, share.denominator
    rank = np.arange(n + 1)
    is_first = np.ones(n, dtype=np.bool_)
    is_first[1:] = inside[1:] != inside[:-1]
    is_last = np.ones(n, dtype=np.bool_)
    is_last[:-1] = is_first[1:]
    upto = np.minimum.accumulate(np.where(is_last, rank[1:], n)[::-1])[::-1]
    # Cells: the open intervals between neighbouring values, then the values themselves, of which
    # repetitions count nothing. The cells are as many whatever the values are.
    start = np.concatenate(([first], inside + 1, inside))
    end = np.concatenate((inside, [last + 1], inside + is_first))
    below = np.concatenate((rank, rank[:-1]))
    above = n - np.concatenate((rank, upto))
    score = -np.maximum(0, np.maximum(b * below - a * n, b * above - (b - a) * n))
    size = np.maximum(0, end - start)
    cell = exponential_race(score, rate=rate, multiplicity=size, source=source)
    return int(start[cell]) + uniform_below_secret(int(size[cell]), source=source)
