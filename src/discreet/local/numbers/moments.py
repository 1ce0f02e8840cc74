"""Mean and variance of the devices' numbers together: half of the devices report squares."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.estimates.means import MeanEstimate
from discreet.local.laws.drawing import CHUNK
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.ruler import as_numbers
from discreet.local.numbers.hybrid import Hybrid
from discreet.noise import SYSTEM, Source, bernoulli

__all__ = ["Moments", "MomentsEstimate"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Report a number between ``low`` and ``high``, to estimate the devices' mean and variance.

    A public coin asks a device for its number or for the square of its distance from the middle,
    by :class:`Hybrid`. Numbers outside are clipped, and NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other.

    Why: the coin does not depend on the number, and what it asks for is reported with epsilon-DP.

    Reports are Hybrid's for numbers; those for squares follow, so they are ``offset`` larger.

    >>> randomiser = Moments(low=0, high=10, epsilon=2)
    >>> estimate = randomiser.estimate(randomiser.release(np.repeat([3.0, 7.0], 100_000)))
    >>> bool(abs(estimate.variance - 4) < 8 * estimate.variance_standard_error)
    True
    """

    low: Number
    high: Number
    epsilon: Number

    def __post_init__(self) -> None:
        self.numbers  # noqa: B018 - refuses what cannot be

    @property
    def numbers(self) -> Hybrid:
        """How numbers are reported."""
        return Hybrid(low=self.low, high=self.high, epsilon=self.epsilon, cells=(1 << 15) - 2)

    @property
    def squares(self) -> Hybrid:
        """How squared distances from the middle are reported."""
        numbers = self.numbers
        most = (numbers.duchi.ruler.width / 2) ** 2
        return Hybrid(low=0, high=most, epsilon=self.epsilon, cells=numbers.cells)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return self.numbers.loss

    @property
    def offset(self) -> int:
        """The first report that is about a square."""
        return self.numbers.outputs

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return 2 * self.offset

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's number.

        >>> randomiser = Moments(low=0, high=10, epsilon=2)
        >>> reports = randomiser.release([3.0, 7.0])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        given, middle = as_numbers(values), float(self.numbers.duchi.ruler.middle)
        inside = np.clip(
            np.where(np.isnan(given), middle, given), float(self.low), float(self.high)
        )
        reports = np.empty(inside.size, dtype=np.int64)
        for start in range(0, inside.size, CHUNK):
            part = inside[start : start + CHUNK]
            coins = bernoulli(Fraction(1, 2), part.size, source=source)
            plain = self.numbers.release(part, source=source)
            squared = self.squares.release((part - middle) ** 2, source=source)
            reports[start : start + CHUNK] = np.where(coins, self.offset + squared, plain)
        return reports

    def estimate(self, reports: npt.ArrayLike) -> "MomentsEstimate":
        """Estimate the mean and the variance of the devices' numbers.

        >>> randomiser = Moments(low=0, high=10, epsilon=2)
        >>> estimate = randomiser.estimate(randomiser.release(np.full(10_000, 4.0)))
        >>> bool(abs(estimate.mean - 4) < 8 * estimate.standard_error)
        True
        """
        codes = as_codes(reports, below=self.outputs)
        plain, squared = codes[codes < self.offset], codes[codes >= self.offset] - self.offset
        if not (plain.size and squared.size):
            raise DataError("reports must hold some about numbers and some about squares.")
        return MomentsEstimate(
            numbers=self.numbers.estimate(plain),
            squares=self.squares.estimate(squared),
            middle=float(self.numbers.duchi.ruler.middle),
        )

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean is off by at most t with this confidence.

        It holds where at least n / 2 devices were asked for their number.

        >>> round(Moments(low=0, high=10, epsilon=2).error(n=10_000, confidence=0.95), 2)
        0.2
        """
        return self.numbers.error(n=max(1, n // 2), confidence=confidence)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MomentsEstimate:
    """Hold the estimated mean and variance of the numbers that devices have.

    Claim: both are unbiased for the people that the devices asked are a random choice of; the
    variance may be below 0. Standard errors are the first order of the delta method.

    Why: the variance is E (x - m)**2 - (E x - m)**2 for the middle m, and the square of an unbiased
    estimate is too large by its own variance, which is taken off again.

    >>> asked = Moments(low=0, high=10, epsilon=2)
    >>> numbers = MeanEstimate(n=5000, mean=6.0, standard_error=0.1, spread=asked.numbers.spread)
    >>> squares = MeanEstimate(n=5000, mean=5.0, standard_error=0.2, spread=asked.squares.spread)
    >>> MomentsEstimate(numbers=numbers, squares=squares, middle=5.0)
    MomentsEstimate(n=10000, mean=6 ± 0.1, variance=4.01 ± 0.28)
    """

    numbers: MeanEstimate
    squares: MeanEstimate
    middle: float

    @property
    def n(self) -> int:
        """How many reports there were."""
        return self.numbers.n + self.squares.n

    @property
    def mean(self) -> float:
        """The estimated mean."""
        return self.numbers.mean

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.numbers.standard_error

    @property
    def variance(self) -> float:
        """The estimated variance of the devices' numbers."""
        off = (self.mean - self.middle) ** 2 - self.standard_error**2
        return self.squares.mean - off

    @property
    def variance_standard_error(self) -> float:
        """The standard error of the variance."""
        by_mean = 2 * (self.mean - self.middle) * self.standard_error
        # The last term matters where the mean is near the middle.
        last = math.sqrt(2) * self.standard_error**2
        return math.hypot(self.squares.standard_error, by_mean, last)

    def __repr__(self) -> str:
        mean = f"{self.mean:.6g} ± {self.standard_error:.2g}"
        variance = f"{self.variance:.6g} ± {self.variance_standard_error:.2g}"
        return f"MomentsEstimate(n={self.n}, mean={mean}, variance={variance})"
