"""A private median, or another quantile."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability
from discreet.accounting import BoundedRangeLoss
from discreet.mechanisms.selection.ranks import as_share, choose, places, points, value_at
from discreet.mechanisms.selection.scores import worst_shortfall
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours

__all__ = ["Quantile"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Select a grid point whose rank among the values is close to a wanted share.

    The possible results are low, low + grid, ..., high. Values are clipped to the bounds and
    rounded to the grid, each by itself; integers exactly, whatever their size. A point with L
    values below it and G above it, out of n, scores -max(0, L - q n, G - (1 - q) n): how many
    records it misses the ``quantile`` q by.

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
        as_share(self.quantile, name="quantile")
        positive(self.epsilon, name="epsilon")
        Neighbours.of(self.neighbours)
        points(self.low, self.high, self.grid)

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
        make = partial(cls, quantile=quantile, low=low, high=high, grid=grid, neighbours=neighbours)
        return least_epsilon(make, error=error, confidence=confidence)

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
        inside = np.sort(places(values, self.low, self.high, self.grid))
        last = points(self.low, self.high, self.grid) - 1
        q = as_share(self.quantile, name="quantile")
        rate = self._rate(q) / q.denominator
        place = choose(inside, first=0, last=last, share=q, rate=rate, source=source)
        return value_at(place, self.low, self.grid)

    def _rate(self, q: Fraction) -> Fraction:
        """Return the factor in the exponent of a score counted in records."""
        is_unbounded = Neighbours.of(self.neighbours) is Neighbours.add_remove
        sensitivity = max(q, 1 - q) if is_unbounded else Fraction(1)
        return positive(self.epsilon, name="epsilon") / (2 * sensitivity)

    def error(self, *, confidence: Number) -> float:
        """Return t so that the result misses the wanted rank by at most t records.

        Ranks are those of the clipped and rounded values, where some point misses by nothing.

        >>> m = Quantile(quantile=0.5, low=0, high=120, grid=1, epsilon=1, neighbours="add_remove")
        >>> round(m.error(confidence=0.95), 2)
        7.73
        """
        miss = 1 - probability(confidence, name="confidence")
        rate = self._rate(as_share(self.quantile, name="quantile"))
        return worst_shortfall(rate, miss, others=points(self.low, self.high, self.grid) - 1)
