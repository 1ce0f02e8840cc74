"""Unary encodings: one bit for each value of the domain, each turned by a coin of its own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.local.estimates.columns import column_sums
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.bits import BitCoins
from discreet.local.laws.numbers import as_domain, as_rows, as_values
from discreet.local.laws.preference import ONE
from discreet.noise import SYSTEM, Source

__all__ = ["OptimizedUnary", "SymmetricUnary"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnary:
    """Report one bit for each value, 1 for the device's own, every bit turned with one chance.

    This is basic RAPPOR. :class:`OptimizedUnary` errs less at the same epsilon and size; this one
    treats ones and zeros alike, which memoisation in two steps leans on.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: the law :class:`BitCoins`, with coins of odds exp(epsilon / 2) to 1 [EPK14].

    A report is a row of bytes, value v in bit v % 8 of byte v // 8, lowest bit first.

    >>> randomiser = SymmetricUnary(domain=10, epsilon=2)
    >>> reports = randomiser.release([3] * 10_000)
    >>> reports.shape, reports.dtype
    ((10000, 2), dtype('uint8'))
    >>> estimate = randomiser.estimate(reports)
    >>> bool(abs(estimate.counts[3] - 10_000) < 8 * estimate.standard_error[3])
    True
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> BitCoins:
        """The law of one report, in whole numbers."""
        return BitCoins.symmetric(epsilon=self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.law)

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return -(-self.domain // 8)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.uint8]:
        """Return one report for each device's value.

        >>> randomiser = SymmetricUnary(domain=8, epsilon=2)
        >>> ones = randomiser.supports(randomiser.release([3] * 10_000)) / 10_000
        >>> bool(abs(ones[3] - float(randomiser.support.hit)) < 0.04)      # e / (e + 1)
        True
        """
        inputs = as_values(values, domain=self.domain)
        return self.law.release(inputs, domain=self.domain, source=source)

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> reports = np.array([[5, 0], [4, 2]], dtype=np.uint8)      # 0, 2 and 2, 9
        >>> SymmetricUnary(domain=10, epsilon=1).supports(reports)
        array([1, 0, 2, 0, 0, 0, 0, 0, 0, 1])
        """
        return column_sums(as_rows(reports, width=self.domain))[: self.domain]

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> reports = np.array([[1]] * 600 + [[2]] * 400, dtype=np.uint8)
        >>> SymmetricUnary(domain=2, epsilon=2).estimate(reports)
        CountEstimate(n=1000, counts=[716 ± 30, 284 ± 30])
        """
        supports = self.supports(reports)
        return CountEstimate(supports=supports, n=len(np.asarray(reports)), support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = SymmetricUnary(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=n, confidence=0.95)) for n in (10_000, 1_000_000)]
        [543, 5381]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnary:
    """Report one bit for each value: a fair coin for the own one, rare ones for all others.

    No other unary encoding errs less for rare values, but a report takes a bit for each value of
    the domain: use :class:`PublicHashing` or :class:`ProjectiveResponse` beyond some hundreds.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: the law :class:`BitCoins`, with a fair own coin and others of odds 1 to exp(epsilon)
    [WBLJ17].

    A report is a row of bytes, value v in bit v % 8 of byte v // 8, lowest bit first.

    >>> randomiser = OptimizedUnary(domain=10, epsilon=1)
    >>> estimate = randomiser.estimate(randomiser.release([3] * 10_000))
    >>> bool(abs(estimate.counts[3] - 10_000) < 8 * estimate.standard_error[3])
    True
    >>> randomiser.support.variance(n=1, count=0)      # 4 e / (e - 1)**2
    3.682694...
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> BitCoins:
        """The law of one report, in whole numbers."""
        return BitCoins.optimized(epsilon=self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.law)

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return -(-self.domain // 8)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.uint8]:
        """Return one report for each device's value.

        >>> randomiser = OptimizedUnary(domain=8, epsilon=1)
        >>> ones = randomiser.supports(randomiser.release([3] * 10_000)) / 10_000
        >>> bool(abs(ones[3] - 1 / 2) < 0.04)
        True
        """
        inputs = as_values(values, domain=self.domain)
        return self.law.release(inputs, domain=self.domain, source=source)

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> reports = np.array([[5, 0], [4, 2]], dtype=np.uint8)      # 0, 2 and 2, 9
        >>> OptimizedUnary(domain=10, epsilon=1).supports(reports)
        array([1, 0, 2, 0, 0, 0, 0, 0, 0, 1])
        """
        return column_sums(as_rows(reports, width=self.domain))[: self.domain]

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> reports = np.array([[1]] * 400 + [[2]] * 300 + [[0]] * 300, dtype=np.uint8)
        >>> OptimizedUnary(domain=2, epsilon=1).estimate(reports)
        CountEstimate(n=1000, counts=[567 ± 65, 134 ± 62])
        """
        supports = self.supports(reports)
        return CountEstimate(supports=supports, n=len(np.asarray(reports)), support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = OptimizedUnary(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [593, 527]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


def _support(law: BitCoins) -> Support:
    return Support(hit=Fraction(law.own, ONE), miss=Fraction(law.other, ONE))
