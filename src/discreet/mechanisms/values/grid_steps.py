"""Scores and queries as whole numbers of grid steps, also where 64 bits cannot hold them."""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.values.grid import Grid

__all__ = ["FARTHEST", "clamped_step", "clamped_steps", "exact_steps"]

FARTHEST: Final = 3 << 60  # steps; leaves room for noise before 64 bits end


def clamped_steps(grid: Grid, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the nearest multiples, halves up; values beyond FARTHEST steps are moved to there.

    Clamping brings values closer, so it adds no sensitivity, and keeps their order.

    >>> clamped_steps(Grid(-1), np.array([0.25, 1e300])), clamped_steps(Grid(0), np.array([2**53]))
    (array([                  1, 3458764513820540928]), array([9007199254740992]))
    """
    low, high = _limits(grid, values.dtype)
    steps = _steps(grid, np.clip(values, low, high))
    steps[values < low] = -FARTHEST
    steps[values > high] = FARTHEST
    return steps


def clamped_step(grid: Grid, value: float) -> int:
    """Return the same for one int or float, by Python's integers.

    >>> clamped_step(Grid(-1), 0.25), clamped_step(Grid(1), 3), clamped_step(Grid(0), -1e300)
    (1, 2, -3458764513820540928)
    """
    if isinstance(value, int):
        halves = value << max(0, 1 - grid.exponent) >> max(0, grid.exponent - 1)
        steps = (halves + 1) >> 1
    else:
        x = max(-FARTHEST, min(FARTHEST, value * 2.0**-grid.exponent))
        whole = math.floor(x)
        steps = whole + (x - whole >= 0.5)
    return max(-FARTHEST, min(FARTHEST, steps))


def exact_steps(grid: Grid, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the nearest multiples, halves up: int64, or Python integers if one lies beyond.

    >>> exact_steps(Grid(0), np.array([0.5, 1e300])).dtype
    dtype('O')
    """
    low, high = _limits(grid, values.dtype)
    if values.size == 0 or (values.min() >= low and values.max() <= high):
        return _steps(grid, values)
    steps = np.empty(values.size, dtype=object)
    half = Fraction(1, 2)
    steps[:] = [math.floor(Fraction(x) / grid.spacing + half) for x in values.ravel().tolist()]
    return steps.reshape(values.shape)


def _steps(grid: Grid, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if values.dtype.kind == "i" and grid.exponent > 63:  # no int64 reaches half a step
        return np.zeros_like(values)
    return grid.steps(values)


def _limits(grid: Grid, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the outermost values, of the given type, within FARTHEST steps of zero."""
    if dtype.kind == "f":
        try:
            end = math.ldexp(float(FARTHEST), grid.exponent)  # exact: 3 times a power of two
        except OverflowError:
            end = float(np.finfo(np.float64).max)
        return -end, end
    limits = np.iinfo(np.int64)
    reach = math.floor(FARTHEST * grid.spacing)
    return max(-reach, limits.min), min(reach, limits.max)
