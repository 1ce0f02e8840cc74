"""Whole numbers that add up: round the parts of a whole together, not one by one."""

import numpy as np
import numpy.typing as npt

__all__ = ["apportioned"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def apportioned(values: Floats, variances: Floats, parent: Integers, totals: Integers) -> Integers:
    """Round each family of values, whose sum is the whole number ``totals``, keeping that sum.

    Claim: the parts of a family add up to their total exactly; each value is rounded up or down,
    and a whole one stays; of all such roundings this one is nearest in squares weighted by
    1 / variance. Parts that are not negative stay so. If the variances of a family are equal and
    its values are the nearest ones to some others x with this sum (and without negative values,
    or with), the result is the nearest to x of *all* families of whole numbers with this sum (and
    without negative values, or with).

    Why: with weights w = 1 / variance and fractions f, rounding up instead of down adds
    w (1 - f)^2 - w f^2 = w (1 - 2 f) to the sum of squares. How many go up is given: as many as the
    fractions add up to, which is less than the number of fractions above 0, or both are 0. So those
    with the least w (1 - 2 f) go up, and no whole one does.

    For equal variances that is the method of the largest remainder, and no family of whole numbers
    is nearer to the values p: if one has a part that is below floor(p) or above ceil(p), another
    part errs to the other side, and moving one unit between the two brings it nearer. Let p be
    nearest to x. Karush, Kuhn and Tucker: p - x is the same number m wherever p > 0, and
    -x >= m where p was cut to 0. For y with the same sum and without negative values,
    |y - x|^2 = |y - p|^2 + 2 (y - p)(p - x) + |p - x|^2, and since the parts of y - p add up to 0
    the middle term is 2 sum over cut parts of y (-x - m) >= 0; it is 0 if y is 0 wherever p is. The
    rounding of p is so, and makes the first term least. Without a cut the middle term is always 0.

    >>> parts = apportioned(np.array([1.4, 0.3, 0.3, 0.0]), np.ones(4), np.zeros(4, dtype=np.int64),
    ...                     np.array([2]))
    >>> parts.tolist()
    [2, 0, 0, 0]
    """
    made = np.floor(values)
    fractions = values - made
    with np.errstate(over="ignore"):  # an exact value: others are rounded first
        costs = np.where(fractions > 0, (1 - 2 * fractions) / np.maximum(variances, 1e-300), np.inf)
    whole = made.astype(np.int64)
    size, cheapest = len(totals), np.lexsort((costs, parent))
    for _ in range(64):
        lacking = totals - _sums(parent, whole, size)
        if not lacking.any():
            break
        # One round in exact arithmetic. Sums of floats may be off by a unit or more where numbers
        # are huge; then further rounds give or take what is left.
        whole += _dealt(lacking, whole, parent, cheapest)
    return whole


def _sums(parent: Integers, parts: Integers, size: int) -> Integers:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, parent, parts)
    return sums


def _dealt(lacking: Integers, whole: Integers, parent: Integers, cheapest: Integers) -> Integers:
    """Give one to as many parts of each family as it lacks, the cheapest first; or take one."""
    step = np.sign(lacking)[parent]
    order = cheapest[(step > 0)[cheapest] | ((step < 0) & (whole != 0))[cheapest]]
    families = parent[order]
    starts = np.searchsorted(families, np.arange(len(lacking)))
    place = np.arange(len(order)) - starts[families]
    chosen = order[place < np.abs(lacking)[families]]
    dealt = np.zeros_like(whole)
    dealt[chosen] = step[chosen]
    return dealt
