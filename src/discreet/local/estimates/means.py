"""Means of numbers from reports that read as the numbers themselves, but for their coins."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, whole
from discreet._rounding import log_one_over
from discreet.errors import DataError

__all__ = ["MeanEstimate", "Spread", "mean_and_error"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """State how far readings of reports are from the numbers that devices had.

    The reading of a report is a number whose expectation, over the device's coins, is the device's
    own number. ``variance`` is the largest that it has for any number, and ``reach`` is the most
    that it can be off.

    >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
    >>> spread.standard_error(n=10_000), round(spread.error(n=10_000, confidence=0.95), 3)
    (0.02, 0.055)
    """

    variance: Fraction
    reach: Fraction

    def standard_error(self, *, n: int) -> float:
        """Return the largest standard error of the mean of ``n`` readings.

        >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
        >>> spread.standard_error(n=100), spread.standard_error(n=10_000)      # 2 / n**0.5
        (0.2, 0.02)
        """
        return math.sqrt(self.variance / whole(n, name="n"))

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean is off by at most t with this confidence.

        Why: Bernstein's inequality [BLM13, Corollary 2.11] for n independent readings, each of at
        most this variance and at most this far off.

        >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
        >>> [round(spread.error(n=n, confidence=0.95), 4) for n in (100, 10_000)]
        [0.5814, 0.0547]
        """
        surely = log_one_over((1 - probability(confidence, name="confidence")) / 2)
        reach, n = surely * float(self.reach) / 3, whole(n, name="n")
        return (reach + math.sqrt(reach**2 + 2 * n * float(self.variance) * surely)) / n


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MeanEstimate:
    """Hold the estimated mean of the numbers that ``n`` devices have.

    Claim: ``mean`` is unbiased, so it may lie outside of the bounds. ``standard_error`` comes from
    how the readings differ. It covers the devices' coins and, as it cannot tell them apart from
    that, who was asked; for the coins alone it is a little too large. :meth:`interval` always
    holds.

    >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
    >>> estimate = MeanEstimate(n=10_000, mean=0.5, standard_error=0.019, spread=spread)
    >>> estimate
    MeanEstimate(n=10000, mean=0.5 ± 0.019)
    >>> estimate.interval(confidence=0.95)
    (0.445..., 0.554...)
    """

    n: int
    mean: float
    standard_error: float
    spread: Spread

    def interval(self, *, confidence: Number) -> tuple[float, float]:
        """Return ends between which the devices' mean lies with at least this confidence.

        >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
        >>> estimate = MeanEstimate(n=10_000, mean=0.5, standard_error=0.02, spread=spread)
        >>> [round(end, 3) for end in estimate.interval(confidence=0.99)]
        [0.434, 0.566]
        """
        off = self.spread.error(n=self.n, confidence=confidence)
        return self.mean - off, self.mean + off

    @classmethod
    def of(cls, readings: Floats, *, spread: Spread) -> "MeanEstimate":
        """Return the mean of readings.

        >>> spread = Spread(variance=Fraction(4), reach=Fraction(3))
        >>> MeanEstimate.of(np.array([2.0, -1.0, 2.0, -1.0]), spread=spread)
        MeanEstimate(n=4, mean=0.5 ± 0.87)
        """
        mean, error = mean_and_error(readings, variance=float(spread.variance))
        return cls(n=readings.size, mean=mean, standard_error=error, spread=spread)

    def __repr__(self) -> str:
        return f"MeanEstimate(n={self.n}, mean={self.mean:.6g} ± {self.standard_error:.2g})"


def mean_and_error(readings: Floats, *, variance: float) -> tuple[float, float]:
    """Return the readings' mean and its standard error; ``variance`` stands in for a single one's.

    >>> mean_and_error(np.array([1.0, 3.0]), variance=5.0)
    (2.0, 1.0)
    """
    if readings.size == 0:
        raise DataError("reports must hold at least one report, got none.")
    if readings.size > 1:
        variance = float(readings.var(ddof=1))
    return float(readings.mean()), math.sqrt(variance / readings.size)
