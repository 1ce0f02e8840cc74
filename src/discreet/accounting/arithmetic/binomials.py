"""Binomial probabilities in logarithms, with a stated error, for millions of trials."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["log_pmf", "window"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_SERIES_FROM = 32
_TWO_PI = Decimal("6.283185307179586476925286766559005768394")


def log_pmf(x: Whole, trials: int, p: float, q: float) -> tuple[Floats, Floats]:
    """Return log Pr[X = x] for X binomial, and a bound on its absolute error.

    ``p`` and ``q`` = 1 - p are positive and right to a relative 4e-16 each (both are asked for,
    since either may be tiny). The method is Loader's: Stirling's formula, whose corrections are
    tiny, times exp(-deviance). The deviance is where digits are lost: a few units in the last place
    of |x - trials p| and of itself. The bound is measured, with a factor of four to spare, not
    proved (docs/proofs/shuffling.md).
    """
    k = x.astype(np.float64)
    rest = trials - k
    gap, deviance = _gap_and_deviance(k, trials, p, q)
    inside = (k > 0) & (rest > 0)
    safe_k, safe_rest = np.where(inside, k, 1.0), np.where(inside, rest, 1.0)
    whole = _corrections(np.array([float(trials)]))[0]
    shape = whole - _corrections(safe_k) - _corrections(safe_rest)
    # The two square roots must not be multiplied before division: both may be near 1e9.
    shape += 0.5 * (np.log(trials / safe_k) - np.log(2 * math.pi * safe_rest))
    error = 1e-15 * (16 + 8 * np.abs(gap) + 8 * deviance)
    return np.where(inside, shape, 0.0) - deviance, error


def window(trials: int, p: float, q: float, *, depth: float) -> tuple[int, int]:
    """Return the first and last x such that either tail outside has mass at most exp(-depth).

    Chernoff: Pr[X >= x] <= exp(-deviance(x)) for x above the mean, and likewise below.
    """
    centre = min(trials, max(0, round(trials * p)))

    def deep(x: int) -> bool:
        gap, deviance = _gap_and_deviance(np.array([float(x)]), trials, p, q)
        # The margin covers the rounding of the deviance itself.
        return bool(deviance[0] >= depth * (1 + 1e-9) + 1e-14 * abs(gap[0]) + 1e-9)

    return _edge(centre, -1, 0, deep), _edge(centre, 1, trials, deep)


def _edge(centre: int, step: int, limit: int, deep: Callable[[int], bool]) -> int:
    """Return the last x from ``centre`` on, in the direction of ``step``, that is not deep."""
    inside, outside = 0, abs(limit - centre) + 1  # distances; one past the limit counts as deep
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if deep(centre + step * middle):
            outside = middle
        else:
            inside = middle
    return centre + step * inside


def _gap_and_deviance(k: Floats, trials: int, p: float, q: float) -> tuple[Floats, Floats]:
    """Return k - trials p, and the deviance of k and trials - k from their means together."""
    rest = trials - k
    # From the smaller mean: the rounding of the larger one may be large next to the smaller.
    gap = k - trials * p if p <= q else trials * q - rest
    return gap, _deviance(k, trials * p, gap) + _deviance(rest, trials * q, -gap)


def _deviance(x: Floats, mean: float, gap: Floats) -> Floats:
    """Return x log(x / mean) + mean - x, which is at least 0, given ``gap`` = x - mean."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.maximum(gap / mean, -1.0)
        value = x * np.log1p(ratio) - gap
    return np.where(x == 0, mean, np.maximum(value, 0.0))


def _corrections(n: Floats) -> Floats:
    """Return log n! minus Stirling's formula: log n! - (n + 1/2) log n + n - log(2 pi) / 2."""
    m = np.maximum(n, _SERIES_FROM)
    square = m * m
    # The next term of the series is 1/(1188 n^9): below 3e-17 from n = 32 on.
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / m
    table = _small_corrections()[np.minimum(n, _SERIES_FROM - 1).astype(np.int64)]
    return np.where(n < _SERIES_FROM, table, series)


@lru_cache
def _small_corrections() -> Floats:
    # From the factorials themselves, in forty digits: in doubles the large terms would cancel.
    with localcontext() as context:
        context.prec = 40
        exact = [
            Decimal(math.factorial(n)).ln()
            - (n + Decimal("0.5")) * Decimal(n).ln()
            + n
            - _TWO_PI.ln() / 2
            for n in range(1, _SERIES_FROM)
        ]
    return np.array([0.0, *map(float, exact)])
