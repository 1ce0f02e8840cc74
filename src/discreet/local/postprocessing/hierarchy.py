"""Counts of a hierarchy whose parts add up to the whole."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, nonnegative
from discreet.errors import ParameterError
from discreet.local.postprocessing.counted import Counts, as_counts

__all__ = ["hierarchical"]

Floats = npt.NDArray[np.float64]


def hierarchical(levels: Sequence[Counts], *, variances: Sequence[Number]) -> list[Floats]:
    """Return the best counts in which every node is the sum of its children.

    ``levels`` go from the coarsest to the finest; each node has equally many children, which stand
    beside each other in the next level. ``variances[i]`` is the variance of a count of level i;
    0 says that these counts are known, as the number of reports is for a level of one node.

    Claim: the result adds up, but for rounding. If the given counts are unbiased, with independent
    errors of these variances, it is the best linear unbiased estimate of every node and of every
    range at once.

    Why: least squares under linear constraints (Gauss and Markov), which a hierarchy allows to
    solve in two passes [HRMS10, Section 4.2, for equal variances]: upwards, a node's own count and
    its children's sum are averaged by the inverse of their variances; downwards, what still lacks
    is shared among children equally, as theirs have equal variances.

    >>> hierarchical([[10], [8, 4]], variances=[0, 1])
    [array([10.]), array([7., 3.])]
    """
    given = [as_counts(level) for level in levels]
    spreads = [float(nonnegative(variance, name="variances")) for variance in variances]
    fits = all(low.size % high.size == 0 for high, low in pairwise(given))
    if not given or len(spreads) != len(given) or not fits or 0 in spreads[1:]:
        raise ParameterError(
            "levels must go from coarse to fine, each with a multiple of the level above, and have "
            "one variance each, above 0 but for the first.",
            parameter="levels",
        )
    upward, spread = [given[-1]], spreads[-1]
    for level, own in zip(given[-2::-1], spreads[-2::-1], strict=True):
        below = upward[0].reshape(level.size, -1)
        spread *= below.shape[1]
        share = spread / (spread + own)
        upward.insert(0, share * level + (1 - share) * below.sum(axis=1))
        spread *= 1 - share
    best = upward[:1]
    for level in upward[1:]:
        children = level.reshape(best[-1].size, -1)
        lacking = best[-1] - children.sum(axis=1)
        best.append((children + lacking[:, None] / children.shape[1]).ravel())
    return best
