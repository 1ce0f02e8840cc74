"""Counts in an order that is known beforehand."""

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.local.postprocessing.counted import Counts, as_counts

__all__ = ["monotone"]

Floats = npt.NDArray[np.float64]


def monotone(
    counts: Counts, *, increasing: bool = True, weights: npt.ArrayLike | None = None
) -> Floats:
    """Return the nearest counts, in weighted squared distance, that never fall (or never rise).

    For cumulative counts, or values ranked by something that is public. ``weights`` are one over
    the variances; alike unless given.

    Claim: the result is that nearest point, but for rounding; so it is never farther from the true
    counts, if they are in this order, than ``counts`` are. The total stays the same with equal
    weights. It is no longer unbiased.

    Why: neighbours in the wrong order share their mean in the nearest point, so they can be pooled
    one after the other [BBBB72, Section 1.2]. A projection onto a convex set that holds the truth
    comes nearer to it.

    >>> monotone([1, 4, 2, 5])
    array([1., 3., 3., 5.])
    """
    given = as_counts(counts)
    heavy = np.ones_like(given) if weights is None else as_counts(weights)
    if heavy.shape != given.shape or not (heavy > 0).all():
        raise ParameterError(
            "weights must be numbers above 0, one for each count, but are not.",
            parameter="weights",
        )
    turn = slice(None) if increasing else slice(None, None, -1)
    return _pooled(given[turn], heavy[turn])[turn]


def _pooled(given: Floats, weights: Floats) -> Floats:
    means: list[float] = []
    masses: list[float] = []
    lengths: list[int] = []
    for mean, mass in zip(given.tolist(), weights.tolist(), strict=True):
        length = 1
        while means and means[-1] > mean:
            before = masses.pop()
            mean = (means.pop() * before + mean * mass) / (before + mass)
            mass += before
            length += lengths.pop()
        means.append(mean)
        masses.append(mass)
        lengths.append(length)
    return np.repeat(np.array(means), lengths)
