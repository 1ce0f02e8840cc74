"""Reproducible integers for demo data. Not noise: nothing here protects anybody.

numpy promises the raw words of a seeded ``PCG64`` for ever, but may change what ``Generator``
makes of them, and floating-point results differ between processors in the last bit. So demo data
is made from raw words by integer arithmetic alone, and is the same everywhere.
"""

from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet._exact import whole

Integers: TypeAlias = NDArray[np.int64]
Table: TypeAlias = dict[str, NDArray[np.generic]]

_STEPS = 1024  # resolution of the bell curve's table


class Dice:
    """Roll whole numbers from a seed.

    >>> Dice(seed=1).below(6, size=4).tolist() == Dice(seed=1).below(6, size=4).tolist()
    True
    """

    def __init__(self, *, seed: int) -> None:
        self._words = np.random.PCG64(whole(seed, name="seed", minimum=0))

    def below(self, bound: int, *, size: int) -> Integers:
        """Return whole numbers from 0 to bound - 1; the tiny bias (bound / 2^32) is harmless."""
        words = self._words.random_raw(size) >> np.uint64(32)
        return ((words * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)

    def between(self, low: int, high: int, *, size: int) -> Integers:
        """Return whole numbers from low to high, both included."""
        return low + self.below(high - low + 1, size=size)

    def chance(self, percent: int | Integers, *, size: int) -> NDArray[np.bool_]:
        """Return True with the given chance in percent, one for all or one for each."""
        return np.asarray(self.below(100, size=size) < percent)

    def pick(self, weights: Sequence[int] | Integers, *, size: int) -> Integers:
        """Return indices, each as likely as its weight says."""
        ends = np.cumsum(np.asarray(weights, dtype=np.int64))
        found = np.searchsorted(ends, self.below(int(ends[-1]), size=size), side="right")
        return found.astype(np.int64)

    def bell(self, *, size: int) -> Integers:
        """Return draws from a bell curve with mean 0 and standard deviation 1000."""
        return _bell_table()[self.below(_STEPS, size=size)]


@cache
def _bell_table() -> Integers:
    # The table passes through floats, but rounds a thousand fixed numbers to integers: none lies
    # near enough to a half for the last bit of a logarithm to matter.
    normal = NormalDist(sigma=1000)
    middles = ((2 * i + 1) / (2 * _STEPS) for i in range(_STEPS))
    return np.array([round(normal.inv_cdf(p)) for p in middles], dtype=np.int64)


def lognormal_table(sigma: float, *, reach: int = 3500) -> Integers:
    """Return 1000 * exp(sigma * z) for z = -reach/1000 ... reach/1000, to look skewed factors up.

    >>> lognormal_table(0.5)[3500].item()
    1000
    """
    # As above: fixed numbers, rounded to integers.
    z = np.arange(-reach, reach + 1) / 1000
    return np.asarray(np.rint(1000 * np.exp(sigma * z)), dtype=np.int64)
