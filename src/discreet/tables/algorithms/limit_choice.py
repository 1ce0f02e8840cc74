"""Choose limits and bounds privately, where nobody declared them.

Units are counted by the size of something about each of them, one bin per unit
(``Profile`` of ``model.statements``). The limit is chosen such that about a public number T
of units exceed it, with the exponential mechanism.

With few units it goes wrong quietly, in one direction: where fewer than T units exist, or not many
more, the smallest limit is as good as any, and much is clamped away; where T is too small for
epsilon, a limit far beyond all units could win, and noise drown the answer. The second is worse, so
T is raised where epsilon needs it. Declaring a limit costs nothing and never goes wrong so.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, nonnegative, positive, whole
from discreet.errors import DataError
from discreet.mechanisms.parts import worst_shortfall
from discreet.noise import SYSTEM, Source, exponential_race
from discreet.privacy import Neighbours
from discreet.tables.algorithms.noise import Noise

__all__ = [
    "choose_limit",
    "findable",
    "good_rank",
    "just_below",
    "limit_edges",
    "value_edges",
]

_PARTS: Final = 1 << 10  # T is rounded to these parts of a unit
_MOST: Final = 1 << 50  # units that are counted in one bin
_LARGEST: Final = 10**6
_MISS: Final = Fraction(1, 200)


def choose_limit(
    bins: npt.NDArray[np.int64],
    *,
    edges: Sequence[Fraction],
    above: Number,
    epsilon: Number,
    neighbours: Neighbours | str,
    group_size: int = 1,
    from_below: bool = False,
    source: Source = SYSTEM,
) -> Fraction:
    """Return one of the ``edges``, such that about ``above`` units lie above it.

    ``bins[i]`` is the number of units that have exactly i of the edges below them, as in a Profile.
    ``above`` is raised to what this epsilon can look for (:func:`findable`).

    ``from_below`` asks for a bound on the other side, with so many units below it. A Profile counts
    a unit at an edge as below it, so give the engine :func:`just_below` of the edges then.

    Claim: if every unit is in one bin at most, the privacy loss of the choice lies in an interval
    of length ``epsilon`` (BoundedRangeLoss), for all neighbouring relations and ``group_size``
    units.

    Why: it is the exponential mechanism on the scores -max(0, N_j - T, T - M_j), where N_j units
    are beyond edge j and M_j beyond the next edge inwards, so that the best edge is the tightest
    that leaves out T units at most. A unit that is added, removed, or replaced by another moves
    each N_j and M_j by at most 1, and so each score [MT07, Theorem 6]. (-abs(N_j - T) would be as
    private, but finds all larger edges equally good where all units are of one size.)
    (docs/proofs/private_limits.md)

    >>> units = np.array([0, 500, 300, 150, 50])  # 50 above 4, 200 above 3, ...
    >>> choose_limit(units, edges=[Fraction(n) for n in (1, 2, 3, 4)], above=60, epsilon=2,
    ...              neighbours="add_remove")
    Fraction(4, 1)
    """
    budget, size = positive(epsilon, name="epsilon"), whole(group_size, name="group_size")
    least = findable(epsilon=budget, edges=len(edges), group_size=size)
    wanted = max(nonnegative(above, name="above"), Fraction(min(least, float(_MOST))))
    Neighbours.of(neighbours)
    counts = np.asarray(bins)
    if counts.dtype != np.int64 or counts.shape != (len(edges) + 1,) or counts.min() < 0:
        raise DataError("bins must be an int64 array of one more number than there are edges.")
    capped = np.minimum(counts, _MOST // counts.size)  # so that the sums below cannot overflow
    if not from_below:
        capped = capped[::-1]
    outside = np.cumsum(capped)[:-1]  # from the outermost edge inwards
    inwards = np.append(outside[1:], _MOST)  # nothing is tighter than the last
    target = min(math.floor(wanted * _PARTS + Fraction(1, 2)), _MOST * _PARTS)
    score = -np.maximum(0, np.maximum(outside * _PARTS - target, target - inwards * _PARTS))
    chosen = exponential_race(score, rate=budget / (2 * size * _PARTS), source=source)
    return edges[chosen if from_below else -1 - chosen]


def findable(*, epsilon: Number, edges: int, group_size: int = 1) -> float:
    """Return the smallest number of units beyond a limit that an ``epsilon`` can look for.

    With a confidence of 99.5% the limit chosen is then no larger than the largest unit needs: edges
    further out miss that number by all of it, while some edge misses it by nothing (unless more
    units than that exceed them all).

    >>> round(findable(epsilon=1, edges=50), 2)
    18.37
    """
    rate = positive(epsilon, name="epsilon") / (2 * whole(group_size, name="group_size"))
    return worst_shortfall(rate, _MISS, others=whole(edges, name="edges") - 1)


def good_rank(noise: Noise, *, groups: int, sensitivity: Number = 1) -> float:
    """Return how many units should exceed a limit for the least error under this ``noise``.

    ``sensitivity`` is that of a limit of one row: more than 1 if units are replaced, for example.

    Why: the standard deviation of the noise in each of the groups is s times the limit. Raising
    the limit by one row adds sqrt(2 / pi) s to the expected error of each group (about, for
    Laplace noise), while each unit above the limit gains up to one row. So the sum of all errors is
    least where as many units exceed the limit as the noise adds [AKMV19].

    >>> round(good_rank(Noise(kind="gaussian", multiplier=1.4), groups=50), 2)
    55.85
    """
    each = noise.deviation(sensitivity=sensitivity) * math.sqrt(2 / math.pi)
    return whole(groups, name="groups") * each


def limit_edges(order: Literal[1, 2] = 1) -> tuple[Fraction, ...]:
    """Return limits to choose from: rows, groups or pairs (order 1), or norms of rows (order 2).

    Neighbours differ by a third at most from 3 on, up to a million.

    >>> [int(edge) for edge in limit_edges()[:12]]
    [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24]
    >>> [float(edge) for edge in limit_edges(2)[:5]]
    [1.0, 1.5, 2.0, 2.5, 3.0]
    """
    edges = [Fraction(n) for n in (1, 2, 3)]
    size = 4
    while size <= _LARGEST:
        edges += [Fraction(size * n, 4) for n in (4, 5, 6)]
        size *= 2
    if order == 2:
        edges += [Fraction(3, 2), Fraction(5, 2)]
    return tuple(sorted(edges))


def value_edges(*, smallest: int = -6, largest: int = 18) -> tuple[Fraction, ...]:
    """Return bounds of values to choose from: 0 and 1, 2, 5 times powers of ten, of both signs.

    >>> [float(edge) for edge in value_edges(smallest=-1, largest=0)]
    [-5.0, -2.0, -1.0, -0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    >>> len(value_edges())
    151
    """
    powers = range(smallest, largest + 1)
    sizes = [Fraction(digit) * Fraction(10) ** power for power in powers for digit in (1, 2, 5)]
    return (*(-size for size in reversed(sizes)), Fraction(0), *sizes)


def just_below(edges: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return for each edge the next double below it: what is at most that is below the edge.

    A Profile of the smallest values counts a unit with the value 0 as at most 0. For a bound from
    below the units of interest are those *below* it, or a column without negative numbers could
    never get the bound 0.

    >>> just_below([Fraction(0), Fraction(1)])[1] < 1
    True
    """
    found = []
    for edge in edges:
        bound = exact(edge, name="edges")
        nearest = float(bound)
        is_below = Fraction(nearest) < bound
        found.append(Fraction(nearest if is_below else math.nextafter(nearest, -math.inf)))
    return tuple(found)
