"""Private medians and other quantiles, one or several at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, probability, refusal
from discreet.accounting import BoundedRangeLoss, PureLoss, ZCDPLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms._values import as_floats
from discreet.mechanisms.exponential import smallest_epsilon, worst_shortfall
from discreet.noise import SYSTEM, Source, exponential_race, uniform_integers
from discreet.privacy import Neighbours

__all__ = ["Quantile", "Quantiles"]

_MOST_POINTS: Final = 1 << 40
_JITTER_BITS: Final = 20
_LARGEST: Final = Fraction(2**900)  # doubles end near there
_FINEST: Final = 10**6  # denominator of a quantile: more would only overflow integer ranks

Places = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Select a grid point whose rank among the values is close to a wanted share.

    The possible results are low, low + grid, ..., high. Values are clipped to the bounds and
    rounded to the grid, each by itself. A point with L values below it and G above it, out of n,
    scores -max(0, L - q n, G - (1 - q) n): how many records it misses the ``quantile`` q by.

    Claim: the privacy loss lies in an interval of length ``epsilon``: one release is epsilon-DP
    and epsilon^2/8-zCDP if a unit is one record, for the stated ``neighbours``.

    Why: it is the exponential mechanism [Smi11, Algorithm 2; MT07, Theorem 6] on that score. Under
    add/remove one record moves L - q n by 1 - q or -q, and G - (1 - q) n by q or q - 1, so the
    score by at most max(q, 1 - q); n is never used as if it were public. Replacing a record, or
    zeroing it, leaves n alone and moves L and G by at most 1, so the score by at most 1. Points
    between two values share a score and are drawn together, weighted by their number, exactly.

    ``quantile`` is taken as the nearest fraction with a denominator of at most a million, which
    the score and its sensitivity then use. Sorting takes a time that depends on the order of the
    values; do not let outsiders measure it.

    >>> mechanism = Quantile(
    ...     quantile=0.5, low=0, high=120, grid=1, epsilon=1, neighbours="add_remove")
    >>> ages = np.arange(20_000) % 81
    >>> abs(mechanism.release(ages) - 40) <= 1
    True
    >>> mechanism.loss
    BoundedRangeLoss(epsilon=1)
    """

    quantile: Number
    low: Number
    high: Number
    grid: Number
    epsilon: Number
    neighbours: Neighbours | str

    def __post_init__(self) -> None:
        _share(self.quantile, name="quantile")
        positive(self.epsilon, name="epsilon")
        _relation(self.neighbours)
        _points(self.low, self.high, self.grid)

    @classmethod
    def calibrated(
        cls,
        *,
        error: Number,
        confidence: Number,
        quantile: Number,
        low: Number,
        high: Number,
        grid: Number,
        neighbours: Neighbours | str,
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``, in records.

        >>> mechanism = Quantile.calibrated(error=50, confidence=0.95, quantile=0.5, low=0,
        ...                                 high=120, grid=1, neighbours="add_remove")
        >>> round(mechanism.epsilon, 4)
        0.1546
        """

        def at(epsilon: Number) -> Self:
            return cls(
                quantile=quantile,
                low=low,
                high=high,
                grid=grid,
                epsilon=epsilon,
                neighbours=neighbours,
            )

        return at(smallest_epsilon(lambda e: at(e).error(confidence=confidence), error=error))

    @property
    def loss(self) -> BoundedRangeLoss:
        """What one release costs. Touches no data."""
        return BoundedRangeLoss(epsilon=self.epsilon)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> float:
        """Return the chosen grid point. No values at all are fine: every point is then as good.

        >>> m = Quantile(quantile=0.5, low=3, high=3, grid=1, epsilon=1, neighbours="add_remove")
        >>> m.release([])
        3.0
        """
        places = np.sort(_places(values, self.low, self.high, self.grid))
        points = _points(self.low, self.high, self.grid)
        share = _share(self.quantile, name="quantile")
        rate = self._rate(share) / share.denominator
        place = _choose(places, first=0, last=points - 1, share=share, rate=rate, source=source)
        return _value(place, self.low, self.grid)

    def _rate(self, share: Fraction) -> Fraction:
        """Return the factor in the exponent of a score counted in records."""
        is_unbounded = _relation(self.neighbours) is Neighbours.add_remove
        sensitivity = max(share, 1 - share) if is_unbounded else Fraction(1)
        return positive(self.epsilon, name="epsilon") / (2 * sensitivity)

    def error(self, *, confidence: Number) -> float:
        """Return t so that the result misses the wanted rank by at most t records.

        Ranks are those of the clipped and rounded values, where some point misses by nothing.

        >>> m = Quantile(quantile=0.5, low=0, high=120, grid=1, epsilon=1, neighbours="add_remove")
        >>> round(m.error(confidence=0.95), 2)
        7.73
        """
        miss = 1 - probability(confidence, name="confidence")
        rate = self._rate(_share(self.quantile, name="quantile"))
        return worst_shortfall(rate, miss, others=_points(self.low, self.high, self.grid) - 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Select several quantiles at once, by bisection: the middle one first, then on either side.

    The result never decreases. For m quantiles there are L = ceil(log2(m + 1)) levels, and each
    level costs as much as one quantile, so the budget is divided by L and not by m.

    Claim: one release is epsilon-DP, and epsilon^2 / (8 L)-zCDP, if a unit is one record, for the
    stated ``neighbours``.

    Why: a level splits the values at the points released before, each value by itself, so adding
    or removing a record changes a single subproblem per level: the level has that one's loss, of
    range epsilon / L, and the levels compose adaptively [KSS22, Section 3]. Where a record is
    replaced or zeroed, two subproblems may change, or one changes twice, so each runs at half the
    epsilon. Values at the same grid point would have to go to one side together, against the rank
    that the split stands for; so each value first gets random lower digits of its own (uniform,
    ``grid`` * 2**-20 apart), which depend on nothing and are cut off from the results. Shares are
    taken as fractions, as in :class:`Quantile`.

    >>> mechanism = Quantiles(quantiles=[0.25, 0.5, 0.75], low=0, high=120, grid=1, epsilon=1,
    ...                       neighbours="add_remove")
    >>> mechanism.levels, mechanism.loss, mechanism.zcdp_loss
    (2, PureLoss(epsilon=1), ZCDPLoss(rho=Fraction(1, 16)))
    >>> ages = np.arange(50_000) % 81
    >>> bool(np.abs(mechanism.release(ages) - [20, 40, 60]).max() <= 2)
    True
    """

    quantiles: Sequence[Number]
    low: Number
    high: Number
    grid: Number
    epsilon: Number
    neighbours: Neighbours | str

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "quantiles", tuple(self.quantiles))
        except TypeError:
            raise refusal("quantiles", "a list of numbers", self.quantiles) from None
        shares = self._shares
        if not shares or any(a >= b for a, b in pairwise(shares)):
            raise ParameterError(
                "quantiles must be one or more numbers in (0, 1), each above the one before by "
                "at least a millionth.",
                parameter="quantiles",
            )
        positive(self.epsilon, name="epsilon")
        _relation(self.neighbours)
        _points(self.low, self.high, self.grid)

    @classmethod
    def calibrated(
        cls,
        *,
        error: Number,
        confidence: Number,
        quantiles: Sequence[Number],
        low: Number,
        high: Number,
        grid: Number,
        neighbours: Neighbours | str,
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``, in records.

        >>> mechanism = Quantiles.calibrated(error=500, confidence=0.95, quantiles=[0.25, 0.75],
        ...                                  low=0, high=120, grid=1, neighbours="add_remove")
        >>> round(mechanism.error(confidence=0.95))
        500
        """

        def at(epsilon: Number) -> Self:
            return cls(
                quantiles=quantiles,
                low=low,
                high=high,
                grid=grid,
                epsilon=epsilon,
                neighbours=neighbours,
            )

        return at(smallest_epsilon(lambda e: at(e).error(confidence=confidence), error=error))

    @property
    def levels(self) -> int:
        """How many times the budget is divided: ceil(log2(number of quantiles + 1))."""
        return len(self.quantiles).bit_length()

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        return tuple(_share(q, name="quantiles") for q in self.quantiles)

    @property
    def loss(self) -> PureLoss:
        """What one release costs, all quantiles together. Touches no data."""
        return PureLoss(epsilon=self.epsilon)

    @property
    def zcdp_loss(self) -> ZCDPLoss:
        """The same cost as zCDP: the better one to charge where many releases are composed."""
        return ZCDPLoss(rho=positive(self.epsilon, name="epsilon") ** 2 / (8 * self.levels))

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.float64]:
        """Return one grid point per quantile, in order.

        >>> m = Quantiles(
        ...     quantiles=[0.1, 0.9], low=3, high=3, grid=1, epsilon=1, neighbours="replace_one")
        >>> m.release([3, 3, 3])
        array([3., 3.])
        """
        coarse = _places(values, self.low, self.high, self.grid)
        jitter = uniform_integers(1 << _JITTER_BITS, coarse.size, source=source)
        places = np.sort((coarse << _JITTER_BITS) + jitter)
        end = (_points(self.low, self.high, self.grid) << _JITTER_BITS) - 1
        shares, chosen = self._shares, dict[int, int]()
        # (quantiles still to do, their values, the bounds found so far, what share lies below each)
        todo = [(range(len(self.quantiles)), places, (0, end), (Fraction(0), Fraction(1)))]
        while todo:
            wanted, inside, (first, last), (below, upto) = todo.pop()
            middle = wanted[len(wanted) // 2]
            cut = shares[middle]
            share = ((cut - below) / (upto - below)).limit_denominator(_FINEST)
            rate = self._rate(share) / share.denominator
            place = _choose(inside, first=first, last=last, share=share, rate=rate, source=source)
            chosen[middle] = place
            split = int(np.searchsorted(inside, place, side="left"))
            left, right = range(wanted.start, middle), range(middle + 1, wanted.stop)
            if left:
                todo.append((left, inside[:split], (first, place), (below, cut)))
            if right:
                todo.append((right, inside[split:], (place, last), (cut, upto)))
        points = [chosen[i] >> _JITTER_BITS for i in range(len(self.quantiles))]
        return np.array([_value(point, self.low, self.grid) for point in points])

    def _rate(self, share: Fraction) -> Fraction:
        """Return the factor in the exponent of a score counted in records."""
        changes = 1 if _relation(self.neighbours) is Neighbours.add_remove else 2
        each = positive(self.epsilon, name="epsilon") / (self.levels * changes)
        return each / (2 * max(share, 1 - share))

    def error(self, *, confidence: Number) -> float:
        """Return t so that, with this confidence, no result misses its rank by more than t records.

        It is a union bound over all quantiles and adds up the levels, so usual errors are far
        smaller. Ranks are those of the clipped, rounded values with their random lower digits.
        Two equal values share these with chance 2**-20; such coincidences, each good for an error
        of one record, are not counted.

        >>> m = Quantiles(quantiles=[0.25, 0.5, 0.75], low=0, high=120, grid=1, epsilon=1,
        ...               neighbours="add_remove")
        >>> round(m.error(confidence=0.95))
        182
        """
        miss = (1 - probability(confidence, name="confidence")) / len(self.quantiles)
        others = (_points(self.low, self.high, self.grid) << _JITTER_BITS) - 1
        # No share has a larger sensitivity than 1, hence none a larger error than this one.
        return self.levels * worst_shortfall(self._rate(Fraction(1)), miss, others=others)


def _share(value: object, *, name: str) -> Fraction:
    hint = "The extremes themselves cannot be told privately; try 0.01 or 0.99."
    share = probability(value, name=name, hint=hint).limit_denominator(_FINEST)
    if not 0 < share < 1:
        raise refusal(name, "between a millionth and one minus a millionth", value, hint)
    return share


def _relation(neighbours: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(neighbours)
    except ValueError:
        allowed = " or ".join(repr(relation.value) for relation in Neighbours)
        raise refusal("neighbours", allowed, neighbours) from None


def _points(low: Number, high: Number, grid: Number) -> int:
    """Return how many grid points there are from ``low`` to ``high``."""
    start, end = exact(low, name="low"), exact(high, name="high")
    spacing = positive(grid, name="grid")
    steps = (end - start) / spacing
    for name, bound, size in (("low", low, abs(start)), ("high", high, abs(end))):
        if size > _LARGEST:
            raise refusal(name, "between -2**900 and 2**900", bound)
    if steps < 0:
        raise refusal("high", "at least low", high)
    if steps.denominator != 1 or steps >= _MOST_POINTS or not 1 / _LARGEST < spacing < _LARGEST:
        raise refusal(
            "grid",
            "an exact divisor of high - low, of at least a 2**-40th of it",
            grid,
            "A power of two such as 1 or 2**-10 divides exactly; 0.01 as a float does not, "
            "but Fraction(1, 100) does.",
        )
    return int(steps) + 1


def _places(values: npt.ArrayLike, low: Number, high: Number, grid: Number) -> Places:
    """Return the number of the grid point nearest to each value, each by itself."""
    floats = as_floats(values)
    if floats.ndim != 1:
        raise DataError(
            f"values must be a one-dimensional array, got shape {floats.shape}. "
            "Pass one value per record."
        )
    last = _points(low, high, grid) - 1
    # Rounding errors here move a value to the next point at worst. They are the same for equal
    # values wherever they stand in the array, so one record still moves one place only.
    steps = (np.clip(floats, float(low), float(high)) - float(low)) / float(grid)
    return np.clip(np.floor(steps + 0.5), 0, last).astype(np.int64)


def _value(place: int, low: Number, grid: Number) -> float:
    return float(exact(low, name="low") + place * exact(grid, name="grid"))


def _choose(
    places: Places, *, first: int, last: int, share: Fraction, rate: Fraction, source: Source
) -> int:
    """Draw from first..last with weight exp(rate * score), for sorted ``places`` within.

    The score is -max(0, b L - a n, b G - (b - a) n) for share = a / b: whole numbers.
    """
    n = places.size
    a, b = share.numerator, share.denominator
    rank = np.arange(n + 1)
    is_first = np.ones(n, dtype=np.bool_)
    is_first[1:] = places[1:] != places[:-1]
    is_last = np.roll(is_first, -1)
    upto = np.minimum.accumulate(np.where(is_last, rank[1:], n)[::-1])[::-1]
    # Cells: the open intervals between neighbouring values, then the values themselves, of which
    # repetitions count nothing. The cells are as many whatever the values are.
    start = np.concatenate(([first], places + 1, places))
    end = np.concatenate((places, [last + 1], places + is_first))
    below = np.concatenate((rank, rank[:-1]))
    above = n - np.concatenate((rank, upto))
    score = -np.maximum(0, np.maximum(b * below - a * n, b * above - (b - a) * n))
    size = np.maximum(0, end - start)
    cell = exponential_race(score, rate=rate, multiplicity=size, source=source)
    return int(start[cell]) + _uniform_below(int(size[cell]), source)


def _uniform_below(bound: int, source: Source) -> int:
    """Draw from 0..bound-1 by scaling a uniform real, of which 128 bits nearly always decide.

    The number of bits read tells nothing about ``bound``, which is secret here; rejection would.
    """
    known, drawn = 128, int.from_bytes(source.read(16), "little")
    while (drawn * bound) >> known != ((drawn + 1) * bound - 1) >> known:
        known, drawn = known + 128, (drawn << 128) + int.from_bytes(source.read(16), "little")
    return (drawn * bound) >> known
