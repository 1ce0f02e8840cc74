"""Piecewise response: a number near the device's own with a certain chance, on a fine grid."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, refusal, whole
from discreet.accounting import PureLoss
from discreet.local.estimates.means import MeanEstimate, Spread
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.ruler import Ruler
from discreet.local.laws.window import Window
from discreet.noise import SYSTEM, Source
from discreet.noise.enclosure import chance_logistic

__all__ = ["Piecewise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise:
    """Report a cell near the number between ``low`` and ``high``, to estimate the devices' mean.

    Best for a large epsilon; :class:`Hybrid` is never worse than it. Numbers outside are clipped,
    and NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other, and the reading
    of a report has exactly the device's number, as a double, for its expectation.

    Why: there are ``cells`` outputs. A number is put on a grid of positions at random, such that
    the mean is right, and its position has a window of them for its own: a law of preference
    (``laws.window``), whose expected output is affine in the position. With window and outputs in
    the ratio of 1 / (1 + exp(epsilon / 2)) it is the mechanism of [WXYZ19, Section III-B], but for
    the grid, which adds less than 1 / cells**2 of the squared width to the variance.

    >>> randomiser = Piecewise(low=-1, high=1, epsilon=1)
    >>> round(float(randomiser.spread.variance), 2)
    5.22
    >>> estimate = randomiser.estimate(randomiser.release(np.full(100_000, 0.25)))
    >>> bool(abs(estimate.mean - 0.25) < 8 * estimate.standard_error)
    True
    """

    low: Number
    high: Number
    epsilon: Number
    cells: int = 1 << 16

    def __post_init__(self) -> None:
        if whole(self.cells, name="cells", minimum=3) > 1 << 20:
            raise refusal("cells", f"at most {1 << 20}", self.cells)
        self.ruler  # noqa: B018 - refuses what cannot be

    @property
    def window(self) -> Window:
        """The law of one report about a position, in whole numbers."""
        share = chance_logistic(positive(self.epsilon, name="epsilon") / 2)(64)
        preferred = max(1, (share * self.cells) >> 64)
        return Window.calibrated(epsilon=self.epsilon, outputs=self.cells, preferred=preferred)

    @property
    def ruler(self) -> Ruler:
        """The positions that numbers are put on."""
        return Ruler(low=self.low, high=self.high, steps=self.window.positions - 1)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.window.law.epsilon))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.cells

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    @property
    def spread(self) -> Spread:
        """How far readings are from numbers, at most."""
        window, ruler = self.window, self.ruler
        # Between two points the variance is at most the larger one's and that of a fair coin.
        variance = window.variance(0) * (ruler.step / window.slope) ** 2 + ruler.step**2 / 4
        first, by = self.scale
        reach = max(first + by * (self.cells - 1) - Fraction(self.low), Fraction(self.high) - first)
        return Spread(variance=variance, reach=reach)

    @property
    def scale(self) -> tuple[Fraction, Fraction]:
        """What report 0 stands for, and how much more each next one does."""
        by = self.ruler.step / self.window.slope
        return Fraction(self.low) - self.window.mean(0) * by, by

    def variance(self, value: float) -> Fraction:
        """Return the variance of the reading of one report about this number, exactly.

        >>> randomiser = Piecewise(low=-1, high=1, epsilon=1)
        >>> [round(float(randomiser.variance(value)), 2) for value in (-1, 0, 1)]
        [5.22, 3.68, 5.22]
        """
        place = self.ruler.position(value)
        floor = min(place.numerator // place.denominator, self.window.positions - 2)
        up = place - floor
        of_outputs = (1 - up) * self.window.variance(floor) + up * self.window.variance(floor + 1)
        return of_outputs * self.scale[1] ** 2 + up * (1 - up) * self.ruler.step**2

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's number.

        >>> reports = Piecewise(low=-1, high=1, epsilon=1, cells=256).release([0.2, -0.7])
        >>> reports.shape, bool((reports < 256).all())
        ((2,), True)
        """
        return self.window.draw(self.ruler.place(values, source=source), source=source)

    def read(self, reports: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the number that each report stands for: the device's own, but for its coins.

        >>> randomiser = Piecewise(low=-1, high=1, epsilon=1)
        >>> np.round(randomiser.read([0, 65_535]), 2)
        array([-4.08,  4.08])
        """
        first, by = self.scale
        return np.asarray(float(first) + as_codes(reports, below=self.outputs) * float(by))

    def estimate(self, reports: npt.ArrayLike) -> MeanEstimate:
        """Estimate the mean of the devices' numbers, without bias.

        >>> randomiser = Piecewise(low=-1, high=1, epsilon=1)
        >>> randomiser.estimate([30_000, 40_000])
        MeanEstimate(n=2, mean=0.278176 ± 0.62)
        """
        return MeanEstimate.of(self.read(reports), spread=self.spread)

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean of n devices is off by at most t with this confidence.

        >>> randomiser = Piecewise(low=-1, high=1, epsilon=1)
        >>> round(randomiser.error(n=10_000, confidence=0.95), 3)
        0.063
        """
        return self.spread.error(n=n, confidence=confidence)
