"""What lies beyond a bound or a limit, as far as a released profile tells: post-processing.

Few units beyond a bound cannot be seen under the noise, and nobody can tell how far out they are.
So their number is taken as what was seen and some noise more, and their sizes as those of a power
law that falls off as steeply as the profile does before it ends: a multiple of its mean, the larger
the more few units may differ from it. That is an estimate, no bound: one unit may always be farther
out, and a few that noise hides need not fall off as all others do. Where the profile falls off so
slowly that such a law has hardly a mean, what was cut is unknown, and infinite here.
"""

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

__all__ = ["NOTHING", "Tail", "tail_beyond"]

SURE: Final = 1.3  # deviations of the noise that are added to what is seen beyond a bound
_STEEP: Final = 1.1  # exponent from which on a law is taken to have a mean; 1 more: a variance

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What is beyond one end: units, how far all of them together, and how far in squares.

    ``seen`` units were seen there, up to noise; ``units`` allows for it. ``first`` is the sum of
    their sizes less the bound, ``second`` the sum of the differences of squares.

    >>> NOTHING.first
    0.0
    """

    seen: float
    units: float
    first: float
    second: float

    @property
    def is_known(self) -> bool:
        """Whether what was cut can be estimated."""
        return math.isfinite(self.first)


NOTHING: Final = Tail(seen=0.0, units=0.0, first=0.0, second=0.0)


def tail_beyond(
    edges: Array,
    bins: Array,
    *,
    cut: int,
    last: int,
    deviation: float,
    reach: int,
    sure: float = SURE,
) -> Tail:
    """Return what lies beyond ``edges[cut]``; people were found up to bin ``last``.

    Edges increase outwards, from where they are positive; ``bins[i]`` lies before ``edges[i]``.
    ``reach`` is how many bins are looked at beyond the last, and at most before its end; ``sure``
    is how many deviations of the noise are added to what is seen there.

    >>> edges = np.array([1.0, 2.0, 5.0, 10.0])
    >>> found = tail_beyond(edges, np.array([0, 500.0, 900, 200, 3]), cut=3, last=3, deviation=2.0,
    ...                     reach=1)
    >>> round(found.units, 1), round(found.first)
    (5.6, 17)
    """
    if last >= len(edges):  # beyond all edges
        seen = float(bins[last])
        return Tail(seen=seen, units=seen, first=math.inf, second=math.inf)
    bound, end = float(edges[cut]), float(edges[last])
    between, ahead = bins[cut + 1 : last + 1], bins[last + 1 : last + 1 + reach]
    further = max(0.0, float(ahead.sum())) + sure * deviation * math.sqrt(max(1, len(ahead)))
    steepness = max(_steepness(edges, bins, last, n, further) for n in range(1, reach + 1))
    counts, sizes = np.maximum(between, 0), edges[cut + 1 : last + 1]
    first = float(counts @ (sizes - bound)) + further * (end - bound)
    second = float(counts @ (sizes**2 - bound**2)) + further * (end**2 - bound**2)
    first += further * end * _excess(steepness, 1)
    second += 2 * further * end**2 * _excess(steepness, 2)
    seen = max(0.0, float(between.sum() + ahead.sum()))
    return Tail(seen=seen, units=float(counts.sum()) + further, first=first, second=second)


def _excess(steepness: float, power: int) -> float:
    """Return how far one unit is beyond the end, of 1, in a mean of powers, and as much again.

    A law of exponent a has the mean excess 1 / (a - 1), and half of 1 / (a - 2) of squares. A sum
    of few terms of a flat law is often far above what is expected of it: 1 / (a - 1) times more is
    allowed for that, which covers nine of ten sums.
    """
    above = steepness - power
    return (1 + 1 / above) / above if above > _STEEP - 1 else math.inf


def _steepness(edges: Array, bins: Array, last: int, length: int, further: float) -> float:
    """Return the exponent of a law with so many units in the last bins, and ``further`` beyond.

    Of a power law every number of bins gives its exponent, and less of it the larger ``further``
    is: so the largest is taken, which sees where a law ends that falls off faster and faster.
    """
    start = float(edges[last - length]) if last >= length else 0.0
    end = float(edges[last])
    start = start if start > 0 else min(float(edges[0]) if edges[0] > 0 else end, end) / 2
    inside = max(0.0, float(bins[max(0, last - length + 1) : last + 1].sum()))
    return math.log1p(inside / further) / math.log(end / start)
