"""Duchi's response: one bit for a number, best for a small epsilon."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import RandomizedResponseLoss
from discreet.local.estimates.means import MeanEstimate, Spread
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.preference import Preference
from discreet.local.laws.ruler import Ruler
from discreet.noise import SYSTEM, Source

__all__ = ["Duchi"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi:
    """Report one bit for a number between ``low`` and ``high``, to estimate the devices' mean.

    Best up to an epsilon of about 0.6, and where a report must be one bit. It is also the one-bit
    mean of Windows telemetry [DKY17]. Numbers outside are clipped, and NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other, and the reading
    of a report has exactly the device's number, as a double, for its expectation.

    Why: the number is rounded at random to an end, such that the mean is right, and the end is
    told by randomized response. Together a report is 1 with a chance that is affine in the number
    and has the extremes 1 / (1 + exp(epsilon)) and one minus that, as in [DJW18, Section 4.2.3].

    >>> randomiser = Duchi(low=-1, high=1, epsilon=1)
    >>> round(float(randomiser.spread.variance), 2)
    4.68
    >>> estimate = randomiser.estimate(randomiser.release(np.full(100_000, 0.25)))
    >>> bool(abs(estimate.mean - 0.25) < 8 * estimate.standard_error)
    True
    """

    low: Number
    high: Number
    epsilon: Number

    def __post_init__(self) -> None:
        self.ruler  # noqa: B018 - refuses what cannot be
        self.law  # noqa: B018

    @property
    def ruler(self) -> Ruler:
        """The two ends."""
        return Ruler(low=self.low, high=self.high, steps=1)

    @property
    def response(self) -> DirectResponse:
        """How the end is told."""
        return DirectResponse(domain=2, epsilon=self.epsilon)

    @property
    def law(self) -> Preference:
        """The law of telling an end, in whole numbers."""
        return self.response.law

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one report costs the device that gives it."""
        return self.response.loss

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return 2

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return 1

    @property
    def spread(self) -> Spread:
        """How far readings are from numbers, at most."""
        variance = self.variance(math.nan)  # as in the middle
        reach = self.readings[1] - Fraction(self.low)
        return Spread(variance=variance, reach=reach)

    @property
    def readings(self) -> tuple[Fraction, Fraction]:
        """The numbers that the reports 0 and 1 stand for."""
        support = self.response.support
        beyond = self.ruler.width * support.miss / support.contrast
        return Fraction(self.low) - beyond, Fraction(self.high) + beyond

    def variance(self, value: float) -> Fraction:
        """Return the variance of the reading of one report about this number, exactly.

        >>> randomiser = Duchi(low=-1, high=1, epsilon=1)
        >>> [round(float(randomiser.variance(value)), 2) for value in (-1, 0, 1)]
        [3.68, 4.68, 3.68]
        """
        chance = self.response.support.miss
        chance += self.response.support.contrast * self.ruler.position(value)
        minus, plus = self.readings
        return chance * (1 - chance) * (plus - minus) ** 2

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.int64]:
        """Return one report for each device's number.

        >>> reports = Duchi(low=-1, high=1, epsilon=1).release([0.2, -0.7])
        >>> reports.shape, bool(np.isin(reports, [0, 1]).all())
        ((2,), True)
        """
        return self.response.release(self.ruler.place(values, source=source), source=source)

    def read(self, reports: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the number that each report stands for: the device's own, but for its coins.

        >>> randomiser = Duchi(low=-1, high=1, epsilon=1)
        >>> np.round(randomiser.read([0, 1]), 2)
        array([-2.16,  2.16])
        """
        return np.array([float(end) for end in self.readings])[as_codes(reports, below=2)]

    def estimate(self, reports: npt.ArrayLike) -> MeanEstimate:
        """Estimate the mean of the devices' numbers, without bias.

        >>> randomiser = Duchi(low=-1, high=1, epsilon=1)
        >>> randomiser.estimate([0, 1, 1, 1])
        MeanEstimate(n=4, mean=1.08198 ± 1.1)
        """
        return MeanEstimate.of(self.read(reports), spread=self.spread)

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean of n devices is off by at most t with this confidence.

        >>> randomiser = Duchi(low=-1, high=1, epsilon=1)
        >>> round(randomiser.error(n=10_000, confidence=0.95), 3)
        0.059
        """
        return self.spread.error(n=n, confidence=confidence)
