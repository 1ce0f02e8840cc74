"""Bit pushing: one binary digit of the number, for bounds that may be far too wide."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet._rounding import log_one_over
from discreet.accounting import RandomizedResponseLoss
from discreet.errors import DataError
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.ruler import Ruler
from discreet.noise import SYSTEM, Source, choice

__all__ = ["BitPushing", "BitsEstimate"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitPushing:
    """Report one of the ``bits`` binary digits of a number, to estimate the devices' mean.

    Best where ``high`` has to be chosen without knowing how large numbers get: digits that nobody
    seems to have are left out of the estimate afterwards, and their noise with them. Otherwise it
    errs up to 15% more than :class:`Duchi`. Numbers outside are clipped, NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other.

    Why: which digit is asked for does not depend on the number, and it is told by randomized
    response. Digit j is asked for with a chance in proportion to the root of 2**j, so that errors
    are small for large and for small numbers [CM21, Section 3].

    A report about digit j is the number 2 j + digit.

    >>> randomiser = BitPushing(low=0, high=1023, epsilon=1, bits=10)
    >>> estimate = randomiser.estimate(randomiser.release(np.full(200_000, 5)))
    >>> bool(abs(estimate.mean - 5) < 8 * estimate.standard_error)
    True
    >>> estimate.squashed().standard_error < estimate.standard_error / 4
    True
    """

    low: Number
    high: Number
    epsilon: Number
    bits: int

    def __post_init__(self) -> None:
        if whole(self.bits, name="bits") > 32:
            raise refusal("bits", "at most 32", self.bits)
        self.ruler  # noqa: B018 - refuses what cannot be
        self.response  # noqa: B018

    @property
    def ruler(self) -> Ruler:
        """The points that digits number."""
        return Ruler(low=self.low, high=self.high, steps=(1 << self.bits) - 1)

    @property
    def response(self) -> DirectResponse:
        """How a digit is told."""
        return DirectResponse(domain=2, epsilon=self.epsilon)

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one report costs the device that gives it."""
        return self.response.loss

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return 2 * self.bits

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    @property
    def weights(self) -> list[int]:
        """How likely each digit is to be asked for, relative to the others."""
        return [math.isqrt(1 << (20 + digit)) for digit in range(self.bits)]

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's number.

        >>> reports = BitPushing(low=0, high=255, epsilon=1, bits=8).release([3, 200])
        >>> reports.shape, bool((reports < 16).all())
        ((2,), True)
        """
        points = self.ruler.place(values, source=source)
        digit = choice(self.weights, points.size, source=source)
        told = self.response.release((points >> digit) & 1, source=source)
        return np.asarray(2 * digit + told)

    def estimate(self, reports: npt.ArrayLike) -> "BitsEstimate":
        """Estimate the mean of the devices' numbers, without bias.

        >>> randomiser = BitPushing(low=0, high=15, epsilon=4, bits=4)
        >>> estimate = randomiser.estimate(np.arange(8))  # of each digit, one says 0 and one says 1
        >>> round(estimate.mean, 6)
        7.5
        """
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs).reshape(-1, 2)
        if not seen.sum(axis=1).all():
            raise DataError("reports must hold at least one about each binary digit.")
        return BitsEstimate(randomiser=self, ones=seen[:, 1], asked=seen.sum(axis=1))

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean is off by at most t with this confidence.

        It takes each digit to be asked for as often as expected; the estimate's interval does not.

        >>> randomiser = BitPushing(low=0, high=1023, epsilon=1, bits=10)
        >>> round(randomiser.error(n=10_000, confidence=0.95), 1)
        34.0
        """
        expected = np.array(self.weights) * (whole(n, name="n") / sum(self.weights))
        return self.width_of(expected, confidence=confidence)

    def width_of(self, asked: Floats, *, confidence: Number) -> float:
        """Return how far the mean is off at most when digits are asked for so often.

        Why: the mean is a sum of independent bits with these weights [Hoe63, Theorem 2].

        >>> randomiser = BitPushing(low=0, high=1023, epsilon=1, bits=10)
        >>> round(randomiser.width_of(np.full(10, 1000.0), confidence=0.95), 1)
        54.9
        """
        surely = log_one_over((1 - probability(confidence, name="confidence")) / 2)
        worth = float(self.ruler.step) * 2.0 ** np.arange(self.bits)
        weight = np.linalg.norm(worth / np.sqrt(asked)) / float(self.response.support.contrast)
        return float(weight * np.sqrt(surely / 2))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BitsEstimate:
    """Hold the estimated mean of numbers, from what devices said about their binary digits.

    ``ones[j]`` of the ``asked[j]`` reports about digit j said 1. Digits that are not in ``kept``
    count as 0 for everybody.

    >>> randomiser = BitPushing(low=0, high=3, epsilon=2, bits=2)
    >>> BitsEstimate(randomiser=randomiser, ones=np.array([60, 50]), asked=np.array([100, 100]))
    BitsEstimate(n=200, mean=1.6313 ± 0.15)
    """

    randomiser: BitPushing
    ones: npt.NDArray[np.int64]
    asked: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        """How many reports there were."""
        return int(self.asked.sum())

    @property
    def shares(self) -> Floats:
        """The estimated share of devices that have each digit, without bias."""
        support = self.randomiser.response.support
        return (self.ones / self.asked - float(support.miss)) / float(support.contrast)

    @property
    def share_standard_errors(self) -> Floats:
        """The standard error of each share, at most: as if every second report said 1."""
        contrast = float(self.randomiser.response.support.contrast)
        return np.asarray(1 / (2 * contrast * np.sqrt(self.asked)))

    @property
    def mean(self) -> float:
        """The estimated mean; unbiased unless digits were left out."""
        return float(self.randomiser.low) + float(self._worth @ self.shares)

    @property
    def standard_error(self) -> float:
        """The standard error of the mean, at most."""
        return float(np.linalg.norm(self._worth * self.share_standard_errors))

    def interval(self, *, confidence: Number) -> tuple[float, float]:
        """Return ends between which the devices' mean lies with at least this confidence.

        With digits left out it is about the mean of what the kept ones say.

        >>> randomiser = BitPushing(low=0, high=1, epsilon=2, bits=1)
        >>> ones, asked = np.array([500]), np.array([1000])
        >>> estimate = BitsEstimate(randomiser=randomiser, ones=ones, asked=asked)
        >>> low, high = estimate.interval(confidence=0.95)
        >>> round(low, 3), round(high, 3)
        (0.444, 0.556)
        """
        off = self.randomiser.width_of(self.asked.astype(np.float64), confidence=confidence)
        return self.mean - off, self.mean + off

    def squashed(self, *, errors: float = 3.0) -> "BitsEstimate":
        """Leave out the digits above the last one whose share is beyond so many standard errors.

        It is post-processing and costs nothing. A digit that few devices have goes unseen, and the
        mean is then too small by its share.

        >>> randomiser = BitPushing(low=0, high=3, epsilon=2, bits=2)
        >>> ones, asked = np.array([800, 120]), np.array([1000, 1000])
        >>> estimate = BitsEstimate(randomiser=randomiser, ones=ones, asked=asked)
        >>> estimate.squashed().kept
        array([ True, False])
        """
        seen = np.flatnonzero(self.shares > errors * self.share_standard_errors)
        kept = np.arange(self.ones.size) <= (seen[-1] if seen.size else -1)
        return BitsEstimate(randomiser=self.randomiser, ones=self.ones, asked=self.asked, kept=kept)

    @property
    def _worth(self) -> Floats:
        worth = float(self.randomiser.ruler.step) * 2.0 ** np.arange(self.ones.size)
        return np.asarray(worth if self.kept is None else np.where(self.kept, worth, 0.0))

    def __repr__(self) -> str:
        return f"BitsEstimate(n={self.n}, mean={self.mean:.6g} ± {self.standard_error:.2g})"
