"""Counts that are not negative and add up to what is known."""

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.local.postprocessing.counted import Counts, as_counts, as_total

__all__ = ["norm_sub", "onto_simplex"]

Floats = npt.NDArray[np.float64]


def onto_simplex(counts: Counts, *, total: Number | None = None) -> Floats:
    """Return the nearest counts, in squared distance, of at least 0 that add up to ``total``.

    For a whole known domain: pass its :class:`CountEstimate`, whose number of reports is the total.

    Claim: the result is that nearest point, but for rounding; so it is never farther from the true
    counts than ``counts`` are. It is no longer unbiased.

    Why: the nearest point subtracts one number from all counts and raises to 0 what falls below
    [DSSC08, Lemma 2]; the number follows from how many counts stay above. The true counts lie in
    this convex set, and a projection onto one brings no point of it farther.

    >>> onto_simplex([6, 5, -1], total=10)
    array([5.5, 4.5, 0. ])
    """
    given = as_counts(counts)
    falling = np.sort(given)[::-1]
    # Subtracted if only the first j + 1 stay above 0; they do as long as the last of them does.
    subtracted = (np.cumsum(falling) - as_total(total, counts)) / np.arange(1, given.size + 1)
    staying = np.flatnonzero(falling >= subtracted)[-1]
    return np.asarray(np.maximum(given - subtracted[staying], 0.0))


def norm_sub(counts: Counts, *, total: Number | None = None) -> Floats:
    """Set negative counts to 0, and add one number to those that stay positive, to reach ``total``.

    Claim: the result is at least 0 and adds up to ``total``, and a count of at most 0 stays at 0.
    It is ``onto_simplex`` if the positive counts add up to ``total`` or more, as noisy counts of
    many values do; or if no count is positive.

    Why: to subtract until nothing is negative, again and again, ends at the number that the
    projection subtracts [WLLSL20, Norm-Sub]. If the positive counts add up to less, that number is
    negative, and only the projection gives to all others too.

    >>> norm_sub([6, 5, -1], total=10), norm_sub([6, 2, -1], total=10)
    (array([5.5, 4.5, 0. ]), array([7., 3., 0.]))
    """
    given, wanted = as_counts(counts), as_total(total, counts)
    positive = given > 0
    missing = wanted - given[positive].sum()
    if missing <= 0 or not positive.any():
        return onto_simplex(given, total=wanted)
    return np.where(positive, given + missing / positive.sum(), 0.0)
