"""Choose limits and bounds from released profiles, where nobody declared them.

A limit is the outer edge of the last bin in which people were found, or a tighter one where so few
lie beyond that noise would cost more than cutting them. All of it is post-processing of profiles
(:mod:`discreet.tables.algorithms.noisy_profile`): it costs nothing more, and says what it does not
know. Where people were found nowhere, there is no choice: too few are in the data for its price.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, whole
from discreet.tables.algorithms.clipping import NOTHING, SURE, Tail, tail_beyond
from discreet.tables.algorithms.noise import Noise
from discreet.tables.algorithms.noisy_profile import NoisyProfile

__all__ = [
    "ChosenBounds",
    "ChosenLimit",
    "choose_bounds",
    "choose_limit",
    "good_rank",
    "limit_edges",
    "total_edges",
    "value_edges",
]

_LARGEST: Final = 10**6
_SMALLEST: Final = Fraction(1, 10**6)
_NEAR: Final = 4  # a bound so many times closer to 0 than the other is moved to 0
_CLEAR: Final = 1.64  # deviations that are no chance: values on the other side of 0
_VALUE_REACH, _LIMIT_REACH = 2, 4  # bins that a tail is judged by
_LIMIT_SURE: Final = 1.8  # as SURE: one person with very many rows moves more than one large value

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLimit:
    """A limit on units, and what is ``beyond`` it, of ``size`` rows (groups, pairs) in all.

    >>> ChosenLimit(limit=Fraction(5), beyond=NOTHING, units=100.0, size=300.0).share
    0.0
    """

    limit: Fraction
    beyond: Tail
    units: float
    size: float

    @property
    def share(self) -> float:
        """The part that is cut of all rows, about, relative to what is left of them."""
        return self.beyond.first / self.size if self.size > 0 else math.inf


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBounds:
    """Bounds of a value, and what is ``below`` and ``above`` them, among so many ``units``.

    >>> ChosenBounds(low=Fraction(0), high=Fraction(9), below=NOTHING, above=NOTHING,
    ...              units=100.0).spread
    0.0
    """

    low: Fraction
    high: Fraction
    below: Tail
    above: Tail
    units: float

    @property
    def spread(self) -> float:
        """How far squared distances from a mean between the bounds are cut, in all."""
        ends = max(-float(self.low), 0.0), max(float(self.high), 0.0)
        tails = ((self.above, ends[0]), (self.below, ends[1]))
        return math.fsum(tail.second + 2 * end * tail.first for tail, end in tails if tail.units)


def choose_limit(profile: NoisyProfile, *, above: float) -> ChosenLimit | None:
    """Return a limit that about ``above`` units exceed, or hardly any; None: too few were found.

    >>> from discreet.tables.algorithms.noisy_profile import release_profile
    >>> edges, noise = limit_edges(), Noise(kind="laplace", multiplier=1)
    >>> units = np.zeros(len(edges) + 1, dtype=np.int64)
    >>> units[:4] = 500, 300, 150, 50  # of up to four rows
    >>> choose_limit(release_profile(units, edges=edges, noise=noise, sensitivity=Fraction(1)),
    ...              above=2).limit
    Fraction(4, 1)
    """
    hull = profile.hull
    if hull is None:
        return None
    edges = np.array([float(edge) for edge in profile.edges])
    first, last = hull
    cut = _trimmed(profile.bins, first, last, above=above, deviation=profile.deviation)
    cut = min(cut, len(edges) - 1)
    tail = tail_beyond(
        edges,
        profile.bins,
        cut=cut,
        last=last,
        deviation=profile.deviation,
        reach=_LIMIT_REACH,
        sure=_LIMIT_SURE,
    )
    sizes = np.minimum(edges, (np.append([0.0], edges[:-1]) + edges + 1) / 2)
    counts = np.maximum(profile.bins[: len(edges)], 0)[first : last + 1]
    kept = np.minimum(sizes[first : last + 1], edges[cut])
    return ChosenLimit(
        limit=profile.edges[cut],
        beyond=tail,
        units=float(profile.bins[first : last + 1].sum()),
        size=float(counts @ kept),
    )


def choose_bounds(
    smallest: NoisyProfile, largest: NoisyProfile, *, above: float
) -> ChosenBounds | None:
    """Return bounds that about ``above`` units exceed on each side; None: too few were found.

    The profiles are of the smallest and the largest values of units, with the same edges of both
    signs; where a unit has a single value, one profile serves as both.

    >>> from discreet.tables.algorithms.noisy_profile import release_profile
    >>> edges, noise = value_edges(), Noise(kind="laplace", multiplier=1)
    >>> units = np.zeros(len(edges) + 1, dtype=np.int64)
    >>> units[[edges.index(20), edges.index(50), edges.index(100)]] = 300, 900, 500
    >>> profile = release_profile(units, edges=edges, noise=noise, sensitivity=Fraction(1))
    >>> found = choose_bounds(profile, profile, above=2)
    >>> int(found.low), int(found.high)
    (0, 100)
    """
    below, beyond = smallest.hull, largest.hull
    if below is None or beyond is None:
        return None
    edges = np.array([float(edge) for edge in largest.edges])
    units = float(largest.bins[beyond[0] : beyond[1] + 1].sum())
    up = _End(edges, largest.bins, *beyond, largest.deviation)
    down = _End(-edges[::-1], smallest.bins[::-1], *_mirrored(below, edges), smallest.deviation)
    high = largest.edges[min(up.cut(above), len(edges) - 1)]
    low = largest.edges[max(0, len(edges) - 1 - down.cut(above))]
    if low == -_SMALLEST:  # the bin that ends at 0 holds zeros
        low = Fraction(0)
    low, high = min(low, high), max(low, high)
    if 0 < low <= high / _NEAR:
        low = Fraction(0)
    if 0 < -high <= -low / _NEAR:
        high = Fraction(0)
    if low == high == 0:  # the scale of anything else is unknown
        anywhere = Tail(seen=0.0, units=units, first=math.inf, second=math.inf)
        return ChosenBounds(low=low, high=Fraction(1), below=NOTHING, above=anywhere, units=units)
    if low == high:  # beyond all edges
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    return ChosenBounds(
        low=low,
        high=high,
        below=down.tail(-float(low), -float(high), above=above),
        above=up.tail(float(high), float(low), above=above),
        units=units,
    )


@final
@dataclass(frozen=True, slots=True)
class _End:
    """One end of values: edges and bins from the other end outwards."""

    edges: Array
    bins: Array
    first: int
    last: int
    deviation: float

    def cut(self, above: float) -> int:
        return _trimmed(self.bins, self.first, self.last, above=above, deviation=self.deviation)

    def tail(self, bound: float, other: float, *, above: float) -> Tail:
        """Return what is beyond ``bound``; the ``other`` bound is on the other side."""
        if bound > 0:
            cut = min(self.cut(above), len(self.edges) - 1)
            return tail_beyond(
                self.edges, self.bins, cut=cut, last=self.last, deviation=self.deviation,
                reach=_VALUE_REACH,
            )  # fmt: skip
        size = abs(other)
        if bound == 0:  # most values simply end there: count only what is no chance
            at = int(np.searchsorted(self.edges, size))
            few = self.bins[max(0, at - 5) : at + 1]
            least = self.deviation * math.sqrt(len(few))
            seen = float(few.sum())
            if seen <= _CLEAR * least:
                return NOTHING
            units = seen + least
            first = units * size / 2
        else:  # towards 0, and no farther: on the other side of 0 many would be seen
            ahead = self.bins[self.last + 1 : self.last + 1 + _VALUE_REACH]
            seen = max(0.0, float(ahead.sum()))
            units = seen + SURE * self.deviation * math.sqrt(_VALUE_REACH)
            first = units * -bound
        return Tail(seen=seen, units=units, first=first, second=2 * size * first)


def _mirrored(hull: tuple[int, int], edges: Array) -> tuple[int, int]:
    return len(edges) - hull[1], len(edges) - hull[0]


def _trimmed(bins: Array, first: int, last: int, *, above: float, deviation: float) -> int:
    """Return the last bin that is kept: those beyond it hold few units, or hardly any."""
    cut = last
    for length in range(1, last - first + 1):
        beyond = float(bins[last - length + 1 : last + 1].sum())
        if beyond <= max(above, deviation * math.sqrt(length)):
            cut = last - length
    return cut


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


def total_edges() -> tuple[Fraction, ...]:
    """Return limits of whole sums to choose from, in rows of the largest value.

    >>> len(total_edges()), float(total_edges()[0]), float(total_edges()[-1])
    (90, 0.0009765625, 786432.0)
    """
    return tuple(Fraction(n, 4) * Fraction(2) ** k for k in range(-10, 20) for n in (4, 5, 6))


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
