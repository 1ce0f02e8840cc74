"""Scores and queries as whole numbers of grid steps, also where 64 bits cannot hold them."""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.values.grid import Grid

__all__ = ["FARTHEST", "clamped_step", "clamped_steps", "exact_steps", "steps_below_best"]

FARTHEST: Final = 3 << 60  # steps; leaves room for noise before 64 bits end
_CHUNK: Final = 1 << 16  # entries; keeps the intermediate arrays in the processor's cache


def clamped_steps(grid: Grid, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the nearest multiples, halves up; values beyond FARTHEST steps are moved to there.

    Clamping brings values closer, so it adds no sensitivity, and keeps their order.

    >>> clamped_steps(Grid(-1), np.array([0.25, 1e300])), clamped_steps(Grid(0), np.array([2**53]))
    (array([                  1, 3458764513820540928]), array([9007199254740992]))
    """
    low, high = _limits(grid, values.dtype)
    steps = _steps(grid, np.clip(values, low, high))
    # Not by a mask, whose time tells how many there are.
    steps = np.where(values < low, -FARTHEST, steps)
    return np.where(values > high, FARTHEST, steps)


def clamped_step(grid: Grid, value: float) -> tuple[int, int]:
    """Return the same for one int or float, raised to a fixed width as by :meth:`Grid.raised`.

    >>> [steps - base for steps, base in (clamped_step(Grid(1), 3), clamped_step(Grid(0), -1e300))]
    [2, -3458764513820540928]
    """
    steps, base = grid.raised(value)
    return max(base - FARTHEST, min(base + FARTHEST, steps)), base


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


def steps_below_best(grid: Grid, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many steps the nearest multiple of each value lies below the largest one.

    More than FARTHEST steps below count as FARTHEST. That is as if each had been raised to
    ``best - FARTHEST``, so if no value moves by more than d steps, none does so afterwards. The
    same operations run whatever the values are.

    Why: doubles of 2**52 steps or more are multiples of the spacing already. The difference of
    two doubles is the rounded one plus an error that is a double, too [Knu97, Theorem 4.2.2B].

    >>> steps_below_best(Grid(-1), np.array([1e300, 3.0, 2.75])).tolist() == [0, FARTHEST, FARTHEST]
    True
    >>> steps_below_best(Grid(-1), np.array([3.0, 2.75, 1.0]))
    array([0, 0, 4])
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    below = _integers_below if values.dtype.kind == "i" else _floats_below
    best = flat.max(keepdims=True)
    parts = [below(grid, flat[i : i + _CHUNK], best) for i in range(0, flat.size, _CHUNK)]
    return np.concatenate(parts).reshape(values.shape)


def _floats_below(
    grid: Grid, values: npt.NDArray[np.float64], best: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    scale, reach = 2.0**-grid.exponent, math.ldexp(float(FARTHEST), grid.exponent)
    with np.errstate(over="ignore", invalid="ignore"):
        high, low = _nearest(best, scale), _nearest(values, scale)
        below = high - low
        back = below - high
        error = (high - (below - back)) - (low + back)
        error = np.where(below <= reach, error, 0.0) * scale
    steps = (np.minimum(below, reach) * scale).astype(np.int64)
    steps += error.astype(np.int64)
    return np.minimum(steps, FARTHEST)


def _nearest(values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    x = values * scale
    whole = np.floor(x)
    whole += x - whole >= 0.5
    whole *= 1.0 / scale
    return np.where(np.isfinite(x), whole, values)


def _integers_below(
    grid: Grid, values: npt.NDArray[np.int64], best: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    coarse, fine = min(max(0, grid.exponent), 64), min(max(0, -grid.exponent), 62)
    high, low = (x if coarse == 0 else _halved(x, coarse) for x in (best, values))
    # The difference of two int64 fits an unsigned word, although it may wrap on the way there.
    below = (high - low).view(np.uint64)
    within = np.uint64(FARTHEST >> fine)
    steps = np.minimum(below, within).astype(np.int64) << fine
    return np.where(below > within, FARTHEST, steps)


def _halved(values: npt.NDArray[np.int64], times: int) -> npt.NDArray[np.int64]:
    """Return values / 2**times rounded halves up; beyond 2**63 no int64 reaches half a step."""
    if times > 63:
        return np.zeros_like(values)
    rounded: npt.NDArray[np.int64] = (values >> times) + ((values >> (times - 1)) & 1)
    return rounded


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
