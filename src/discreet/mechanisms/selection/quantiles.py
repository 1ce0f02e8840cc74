"""Several private quantiles at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal
from discreet.accounting import PureLoss, ZCDPLoss
from discreet.errors import ParameterError
from discreet.mechanisms.selection.ranks import (
    as_share,
    choose,
    nearest_share,
    places,
    points,
    value_at,
)
from discreet.mechanisms.selection.scores import worst_shortfall
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source, uniform_integers
from discreet.privacy import Neighbours

__all__ = ["Quantiles"]

_JITTER_BITS: Final = 20


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
    >>> mechanism.levels, mechanism.loss, mechanism.zcdp_loss.rho
    (2, PureLoss(epsilon=1), Fraction(1, 16))
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
        Neighbours.of(self.neighbours)
        points(self.low, self.high, self.grid)

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
        make = partial(
            cls, quantiles=quantiles, low=low, high=high, grid=grid, neighbours=neighbours
        )
        return least_epsilon(make, error=error, confidence=confidence)

    @property
    def levels(self) -> int:
        """How many times the budget is divided: ceil(log2(number of quantiles + 1))."""
        return len(self.quantiles).bit_length()

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        return tuple(as_share(q, name="quantiles") for q in self.quantiles)

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
        coarse = places(values, self.low, self.high, self.grid)
        jitter = uniform_integers(1 << _JITTER_BITS, coarse.size, source=source)
        fine = np.sort((coarse << _JITTER_BITS) + jitter)
        end = (points(self.low, self.high, self.grid) << _JITTER_BITS) - 1
        shares, chosen = self._shares, dict[int, int]()
        # (quantiles still to do, their values, the bounds found so far, what share lies below each)
        todo = [(range(len(self.quantiles)), fine, (0, end), (Fraction(0), Fraction(1)))]
        while todo:
            wanted, inside, (first, last), (below, upto) = todo.pop()
            middle = wanted[len(wanted) // 2]
            cut = shares[middle]
            q = nearest_share((cut - below) / (upto - below))
            rate = self._rate(q) / q.denominator
            place = choose(inside, first=first, last=last, share=q, rate=rate, source=source)
            chosen[middle] = place
            split = int(np.searchsorted(inside, place, side="left"))
            left, right = range(wanted.start, middle), range(middle + 1, wanted.stop)
            if left:
                todo.append((left, inside[:split], (first, place), (below, cut)))
            if right:
                todo.append((right, inside[split:], (place, last), (cut, upto)))
        coarse_places = [chosen[i] >> _JITTER_BITS for i in range(len(self.quantiles))]
        return np.array([value_at(place, self.low, self.grid) for place in coarse_places])

    def _rate(self, q: Fraction) -> Fraction:
        """Return the factor in the exponent of a score counted in records."""
        changes = 1 if Neighbours.of(self.neighbours) is Neighbours.add_remove else 2
        each = positive(self.epsilon, name="epsilon") / (self.levels * changes)
        return each / (2 * max(q, 1 - q))

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
        others = (points(self.low, self.high, self.grid) << _JITTER_BITS) - 1
        # No share has a larger sensitivity than 1, hence none a larger error than this one.
        return self.levels * worst_shortfall(self._rate(Fraction(1)), miss, others=others)
