"""What lies beyond a bound or a limit, as far as a released profile tells: post-processing.

Few units beyond a bound cannot be seen under the noise, and nobody can tell how far out they are.
So their number is taken as what was seen and some noise more, and their sizes as those of a power
law that falls off as steeply as the profile does before it ends. That is an estimate, no bound:
one unit may always be farther out. Where the profile falls off so slowly that such a law has hardly
a mean, what was cut is unknown, and infinite here.
"""

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

__all__ = ["NOTHING", "Tail", "tail_beyond"]

SURE: Final = 1.3  # deviations of the noise that are added to what is seen beyond a bound
_STEEP: Final = 1.5  # exponent from which on a law is taken to have a mean; 1 more: a variance

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
    edges: Array, bins: Array, *, cut: int, last: int, deviation: float, reach: int
) -> Tail:
    """Return what lies beyond ``edges[cut]``; people were found up to bin ``last``.

    Edges increase outwards, from where they are positive; ``bins[i]`` lies before ``edges[i]``.
    ``reach`` is how many bins are looked at beyond the last, and before its end.

    >>> edges = np.array([1.0, 2.0, 5.0, 10.0])
    >>> found = tail_beyond(edges, np.array([0, 500.0, 900, 200, 3]), cut=3, last=3, deviation=2.0,
    ...                     reach=1)
    >>> round(found.units, 1), round(found.first)
    (5.6, 13)
    """
    if last >= len(edges):  # beyond all edges
        seen = float(bins[last])
        return Tail(seen=seen, units=seen, first=math.inf, second=math.inf)
    bound, end = float(edges[cut]), float(edges[last])
    between, ahead = bins[cut + 1 : last + 1], bins[last + 1 : last + 1 + reach]
    inner = bins[max(0, last - reach + 1) : last + 1]
    start = float(edges[last - reach]) if last >= reach else 0.0
    start = start if start > 0 else min(float(edges[0]) if edges[0] > 0 else end, end) / 2
    further = max(0.0, float(ahead.sum())) + SURE * deviation * math.sqrt(max(1, len(ahead)))
    inside = max(0.0, float(inner.sum()))
    steepness = math.log1p(inside / further) / math.log(end / start)
    counts, sizes = np.maximum(between, 0), edges[cut + 1 : last + 1]
    first = float(counts @ (sizes - bound)) + further * (end - bound)
    second = float(counts @ (sizes**2 - bound**2)) + further * (end**2 - bound**2)
    first += further * end / (steepness - 1) if steepness > _STEEP else math.inf
    second += 2 * further * end**2 / (steepness - 2) if steepness > _STEEP + 1 else math.inf
    seen = max(0.0, float(between.sum() + ahead.sum()))
    return Tail(seen=seen, units=float(counts.sum()) + further, first=first, second=second)
