"""Sums whose sensitivity is what the bounds say, to the last bit."""

import math
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, refusal
from discreet.errors import DataError
from discreet.mechanisms.values.clipping import clip
from discreet.mechanisms.values.grid import Grid
from discreet.mechanisms.values.grid_steps import clamped_steps
from discreet.privacy import Neighbours

__all__ = ["exact_sum", "sum_sensitivity"]

_MOST_STEPS: Final = 1 << 40  # of one record
_CHUNK: Final = 1 << 20  # records; 2**20 times 2**40 steps stay below 2**63


def exact_sum(
    values: npt.ArrayLike,
    *,
    low: Number,
    high: Number,
    grid: Number,
    missing: Number | None = None,
) -> int:
    """Clip values to [low, high], round them to multiples of ``grid``, and add them up exactly.

    The result is a whole number of grid steps. It is not private: give it to
    :class:`DiscreteLaplace` or :class:`DiscreteGaussian` with the :func:`sum_sensitivity`, and
    multiply what they release by ``grid``, a power of two. NaN and infinities are treated as in
    :func:`clip`.

    Claim: one record moves the result by at most ``sum_sensitivity(...)`` steps.

    Why: each record becomes a whole number of steps by itself, and rounding (halves up) keeps
    order, so that number lies between those of ``low`` and ``high``. Integers are added, so no
    rounding depends on other records, which in a floating-point sum it does [CSVW22]. Parts of
    2**20 records, of at most 2**40 steps each, stay below 2**63; Python's integers add the parts.

    >>> exact_sum([0.5, 2.25, 99.0], low=0, high=10, grid=0.25)    # 2 + 9 + 40 steps
    51
    >>> from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
    >>> steps = sum_sensitivity(low=0, high=10, grid=0.25, neighbours="add_remove")
    >>> mechanism = DiscreteLaplace.calibrated(epsilon=1, sensitivity=steps)
    >>> private = 0.25 * mechanism.release(exact_sum([5.0] * 1000, low=0, high=10, grid=0.25))
    >>> abs(private - 5000) < 500
    True
    """
    points = _checked(low, high, grid)[0]
    clipped = np.asarray(clip(values, low=low, high=high, missing=missing))
    if clipped.ndim != 1:
        raise DataError(
            f"values must be a one-dimensional array, got shape {clipped.shape}. "
            "Pass one value per record."
        )
    starts = range(0, clipped.size, _CHUNK)
    return sum(int(clamped_steps(points, clipped[i : i + _CHUNK]).sum()) for i in starts)


def sum_sensitivity(
    *, low: Number, high: Number, grid: Number, neighbours: Neighbours | str
) -> int:
    """Return how many steps one record can move an :func:`exact_sum`, for one record per unit.

    Under ``zero_out`` the null record must add nothing to the sum.

    >>> common = {"low": -10, "high": 50, "grid": 0.5}
    >>> sum_sensitivity(neighbours="add_remove", **common)
    100
    >>> sum_sensitivity(neighbours="replace_one", **common)
    120
    """
    _, lowest, highest = _checked(low, high, grid)
    if Neighbours.of(neighbours) is Neighbours.replace_one:
        return highest - lowest
    return max(abs(lowest), abs(highest))


def _checked(low: Number, high: Number, grid: Number) -> tuple[Grid, int, int]:
    """Return the grid, and the bounds in steps."""
    start, end = exact(low, name="low"), exact(high, name="high")
    if start > end:
        raise refusal("high", "at least low", high)
    points = Grid.of(grid)
    lowest, highest = (math.floor(x / points.spacing + Fraction(1, 2)) for x in (start, end))
    if max(abs(lowest), abs(highest)) > _MOST_STEPS:
        raise refusal("grid", "at least a 2**-40th of both bounds", grid)
    return points, lowest, highest
