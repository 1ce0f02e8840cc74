"""Does a sampler follow its law? A test with a stated probability of a false alarm."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._exact import probability, whole

__all__ = ["cdf_gap", "dkw_band"]


def dkw_band(samples: int, *, false_alarm: float) -> float:
    """Return how far an empirical distribution function may stray from the true one.

    Why: Pr[gap > band] <= 2 exp(-2 samples band**2) for every law, discrete ones included
    [Mas90, Corollary 1].

    >>> round(dkw_band(100_000, false_alarm=1e-9), 4)
    0.0103
    """
    count = whole(samples, name="samples")
    chance = float(probability(false_alarm, name="false_alarm"))
    return math.sqrt(math.log(2 / chance) / (2 * count))


def cdf_gap(
    samples: npt.ArrayLike, cdf: Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]
) -> float:
    """Return the largest distance between the distribution of integer ``samples`` and ``cdf``.

    ``cdf`` takes an array of integers k and returns Pr[X <= k].

    >>> cdf_gap([0, 1], lambda k: np.clip((k + 1) / 2, 0, 1))
    0.0
    """
    values, counts = np.unique(np.asarray(samples), return_counts=True)
    after = np.cumsum(counts) / counts.sum()
    before = after - counts / counts.sum()
    return float(max(np.abs(after - cdf(values)).max(), np.abs(before - cdf(values - 1)).max()))
