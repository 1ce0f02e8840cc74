"""How often a report supports a value, and what follows for an estimate's error."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, nonnegative, probability, refusal, whole
from discreet._rounding import log_one_over
from discreet.errors import ParameterError

__all__ = ["Support"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """State how often a report supports the value it was made from, and any other value.

    Each report supports some values. It supports the device's own with chance ``hit`` and each
    other one with chance ``miss``, exactly. If c of n devices have a value, its number of
    supporting reports is a sum of c coins of chance ``hit`` and n - c of chance ``miss``, so
    (supporting - n miss) / (hit - miss) estimates c without bias [WBLJ17].

    >>> support = Support(hit=Fraction(3, 4), miss=Fraction(1, 4))
    >>> support.variance(n=1000, count=0)
    750.0
    """

    hit: Fraction
    miss: Fraction

    def __post_init__(self) -> None:
        if not 0 <= self.miss < self.hit <= 1:
            raise ParameterError(
                "hit must be above miss, and both chances; else reports tell nothing. "
                "Use a larger epsilon.",
                parameter="hit",
            )

    @property
    def contrast(self) -> Fraction:
        """The difference that one device's value makes to the expected number of supports."""
        return self.hit - self.miss

    def variance(self, *, n: int, count: Number) -> float:
        """Return the variance of the estimate of a value that ``count`` of ``n`` devices have.

        Why: the coins are independent, so their variances add up.

        >>> support = Support(hit=Fraction(1, 2), miss=Fraction(1, 4))
        >>> [support.variance(n=1000, count=count) for count in (0, 1000)]
        [3000.0, 4000.0]
        """
        holders = nonnegative(count, name="count")
        if holders > whole(n, name="n"):
            raise refusal("count", f"at most n, which is {n}", count)
        coins = holders * _spread(self.hit) + (n - holders) * _spread(self.miss)
        return float(coins / self.contrast**2)

    def average_variance(self, *, domain: int) -> Fraction:
        """Return the variance that one report adds to a count, averaged over all values, exactly.

        It does not depend on who has what: a report has its own value, and ``domain - 1`` others.

        >>> Support(hit=Fraction(1, 2), miss=Fraction(1, 4)).average_variance(domain=4)
        Fraction(13, 4)
        """
        spread = _spread(self.hit) + (domain - 1) * _spread(self.miss)
        return spread / (domain * self.contrast**2)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Return a t such that an estimated count is off by at most t with this confidence.

        It holds for each value that at most a ``share`` of the devices have, by itself.

        Why: Bernstein's inequality [BLM13, Corollary 2.11] for ``n`` coins whose variances add up
        to at most n times the largest that the share allows.

        >>> support = Support(hit=Fraction(3, 4), miss=Fraction(1, 4))
        >>> round(support.error(n=10_000, confidence=0.95), 1)
        237.7
        """
        surely = log_one_over((1 - probability(confidence, name="confidence")) / 2)
        most = probability(share, name="share", zero=True, one=True)
        ends = _spread(self.miss), (1 - most) * _spread(self.miss) + most * _spread(self.hit)
        variance = whole(n, name="n") * float(max(ends))
        width = surely / 3 + math.sqrt(surely**2 / 9 + 2 * variance * surely)
        return width / float(self.contrast)


def _spread(chance: Fraction) -> Fraction:
    return chance * (1 - chance)
