"""Hybrid response: Piecewise or Duchi's by a public coin, better than either."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive
from discreet.accounting import PureLoss
from discreet.local.estimates.means import MeanEstimate, Spread
from discreet.local.laws.drawing import CHUNK
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.ruler import as_numbers
from discreet.local.numbers.duchi import Duchi
from discreet.local.numbers.piecewise import Piecewise
from discreet.noise import SYSTEM, Source, bernoulli
from discreet.noise.enclosure import exp_bounds

__all__ = ["Hybrid"]

_WORTH_MIXING: Final = Fraction(61, 100)  # below this epsilon Duchi's response is best alone


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """Report a number between ``low`` and ``high``, with the smallest worst error of the three.

    The choice for means at any epsilon. Numbers outside are clipped, and NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other, and the reading
    of a report has exactly the device's number, as a double, for its expectation.

    Why: a coin that does not depend on the number chooses between two such responses, and the
    report shows which. With chance 1 - exp(-epsilon / 2) of Piecewise the variance is the same for
    every number [WXYZ19, Section III-C]; up to an epsilon of 0.61 that chance is 0.

    Reports below ``cells`` are Piecewise's, the next two are Duchi's.

    >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
    >>> round(float(randomiser.spread.variance), 2)
    4.29
    >>> estimate = randomiser.estimate(randomiser.release(np.full(100_000, 0.25)))
    >>> bool(abs(estimate.mean - 0.25) < 8 * estimate.standard_error)
    True
    """

    low: Number
    high: Number
    epsilon: Number
    cells: int = (1 << 16) - 2  # reports are two bytes

    def __post_init__(self) -> None:
        self.piecewise  # noqa: B018 - refuses what cannot be
        self.duchi  # noqa: B018

    @property
    def piecewise(self) -> Piecewise:
        """The response that is taken with chance ``mix``."""
        return Piecewise(low=self.low, high=self.high, epsilon=self.epsilon, cells=self.cells)

    @property
    def duchi(self) -> Duchi:
        """The response that is taken otherwise."""
        return Duchi(low=self.low, high=self.high, epsilon=self.epsilon)

    @property
    def mix(self) -> Fraction:
        """The chance of Piecewise, a multiple of 2**-64."""
        epsilon = positive(self.epsilon, name="epsilon")
        if epsilon <= _WORTH_MIXING:
            return Fraction(0)
        return 1 - Fraction(exp_bounds(epsilon / 2, 64)[1], 1 << 64)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=max(self.piecewise.loss.epsilon, self.duchi.loss.epsilon))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.cells + 2

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    @property
    def spread(self) -> Spread:
        """How far readings are from numbers, at most."""
        # At the points the variance is a parabola, largest in the middle (which NaN stands for) or
        # at an end. Between two of them Piecewise's parabola, of second difference
        # slope (1 - slope) in outputs, is cut short, and the point's coin comes on top.
        worst = max(self.variance(math.nan), self.variance(math.inf))
        coin = self.mix * self.piecewise.ruler.step**2 / self.piecewise.window.slope / 4
        parts = [self.duchi.spread, self.piecewise.spread][: 2 if self.mix else 1]
        return Spread(variance=worst + coin, reach=max(part.reach for part in parts))

    def variance(self, value: float) -> Fraction:
        """Return the variance of the reading of one report about this number, exactly.

        >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
        >>> [round(float(randomiser.variance(value)), 2) for value in (-1, 0, 1)]
        [4.29, 4.29, 4.29]
        """
        mix = self.mix
        return mix * self.piecewise.variance(value) + (1 - mix) * self.duchi.variance(value)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's number.

        >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
        >>> reports = randomiser.release([0.2, -0.7])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        numbers, mix = as_numbers(values), self.mix
        near, far = self.piecewise, self.duchi
        reports = np.empty(numbers.size, dtype=np.int64)
        for start in range(0, numbers.size, CHUNK):
            part = numbers[start : start + CHUNK]
            coins = bernoulli(mix, part.size, source=source)
            bits = far.release(part, source=source)
            if mix:  # both are drawn, so that the randomness read tells nothing
                cells = near.release(part, source=source)
                bits = np.where(coins, cells, self.cells + bits)
            else:
                bits = self.cells + bits
            reports[start : start + CHUNK] = bits
        return reports

    def read(self, reports: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the number that each report stands for: the device's own, but for its coins.

        >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
        >>> np.round(randomiser.read([0, 65_533, 65_534, 65_535]), 2)
        array([-4.08,  4.08, -2.16,  2.16])
        """
        codes = as_codes(reports, below=self.outputs)
        first, by = self.piecewise.scale
        minus, plus = (float(end) for end in self.duchi.readings)
        bits = np.where(codes > self.cells, plus, minus)
        return np.where(codes < self.cells, float(first) + codes * float(by), bits)

    def estimate(self, reports: npt.ArrayLike) -> MeanEstimate:
        """Estimate the mean of the devices' numbers, without bias.

        >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
        >>> randomiser.estimate([30_000, 40_000, 65_535])
        MeanEstimate(n=3, mean=0.906857 ± 0.72)
        """
        return MeanEstimate.of(self.read(reports), spread=self.spread)

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean of n devices is off by at most t with this confidence.

        >>> randomiser = Hybrid(low=-1, high=1, epsilon=1)
        >>> round(randomiser.error(n=10_000, confidence=0.95), 3)
        0.057
        """
        return self.spread.error(n=n, confidence=confidence)
