"""Intervals for the mean chance of independent coins, from how many showed heads."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["chance_interval"]

Floats = npt.NDArray[np.float64]

_HALVINGS = 60


def chance_interval(
    heads: npt.NDArray[np.int64], *, n: int | npt.NDArray[np.int64], depth: float
) -> tuple[Floats, Floats]:
    """Return ends between which the coins' mean chance lies, each with a miss of exp(-depth).

    Claim: for ``n`` independent coins of any chances, each end is on the wrong side of their mean
    with probability at most exp(-depth). ``n`` may differ from one count of heads to the next.

    Why: with s the share of heads, Pr[s >= x] <= exp(-n D(x, mean)) for x above the mean, where D
    is the relative entropy of coins, and alike below [Hoe63, Theorem 1, (2.1)], which allows
    unlike coins. The ends are where n D(s, end) is depth, found by halving and then rounded
    outwards by the last halving's width.

    >>> low, high = chance_interval(np.array([0, 500]), n=1000, depth=3.0)
    >>> np.round(low, 3), np.round(high, 3)
    (array([0.   , 0.461]), array([0.003, 0.539]))
    """
    back: Any = slice(None)
    counts = heads
    if isinstance(n, int):  # few counts differ where there are many
        counts, back = np.unique(heads, return_inverse=True)
    share = counts / n
    low = _end(share, np.zeros_like(share), depth / n)
    high = 1 - _end(1 - share, np.zeros_like(share), depth / n)
    return low[back], high[back]


def _end(share: Floats, start: Floats, depth: float | Floats) -> Floats:
    """Return the smallest mean, at most the share, from which it is not too far; rounded down."""
    low, high = start, share.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_far = _entropy(share, middle) > depth
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return low * (1 - 1e-12)


def _entropy(share: Floats, mean: Floats) -> Floats:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(share, mean) + rel_entr(1 - share, 1 - mean))
