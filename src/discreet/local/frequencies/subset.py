"""Subset selection: a random set of values of one size, likelier with the device's own in it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.estimates.columns import column_sums
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.bits import set_bits
from discreet.local.laws.numbers import as_domain, as_rows, as_values
from discreet.local.laws.packed import packed_coins
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers

__all__ = ["SubsetSelection"]

_BLOCK: Final = 1 << 20  # bytes of rows made or read at a time

Rows = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection:
    """Report a random set of ``size`` values, which a coin may make hold the device's own.

    Its error is the least for many devices, to first order [YB18], but a report takes a bit for
    each value: use :class:`PublicHashing` or :class:`ProjectiveResponse` beyond some hundreds.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: a value owns the sets that hold it, a share size / domain of all; hence the law of
    preference [YB18; WHWNXYLQ16]. Of a value's sets, a share
    (size - 1) / (domain - 1) holds a given other value. ``law`` counts sets in a unit that makes
    these numbers small: domain (domain - 1) for all.

    A report is a row of bytes, value v in bit v % 8 of byte v // 8, lowest bit first.

    >>> randomiser = SubsetSelection(domain=10, epsilon=1)
    >>> randomiser.size
    3
    >>> estimate = randomiser.estimate(randomiser.release([3] * 10_000))
    >>> bool(abs(estimate.counts[3] - 10_000) < 8 * estimate.standard_error[3])
    True
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def size(self) -> int:
        """How many values a report holds: the number of least average variance."""
        return _best(int(self.domain), positive(self.epsilon, name="epsilon"))

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        return _law(int(self.domain), self.size, self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.size, self.law)

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return -(-self.domain // 8)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> Rows:
        """Return one report for each device's value.

        >>> reports = SubsetSelection(domain=10, epsilon=1).release([3] * 5)
        >>> reports.shape, np.bitwise_count(reports).sum(axis=1).tolist()      # three values each
        ((5, 2), [3, 3, 3, 3, 3])
        """
        inputs = as_values(values, domain=self.domain)
        size, keep = self.size, self.law.keep_chance
        rows = np.empty((inputs.size, self.bytes_per_report), dtype=np.uint8)
        step = max(1, _BLOCK // rows.shape[1])
        for start in range(0, inputs.size, step):
            part = inputs[start : start + step]
            keeps = bernoulli(keep, part.size, source=source)
            without = self._about(size, part, source)
            _settle(without, size - 1, part, self.domain, source)
            own = without.copy()
            set_bits(own, part, np.ones_like(part))
            # Drawn for every row: how much is read would tell the coin, and so the own value.
            _settle(without, size, part, self.domain, source)
            rows[start : start + step] = np.where(keeps[:, None], own, without)
        return rows

    def _about(self, size: int, values: Codes, source: Source) -> Rows:
        """Return sets of about the right size, without the value itself."""
        chance = (size << 16) // self.domain << 48  # 16 digits are few to toss and near enough
        width = self.bytes_per_report
        rows = packed_coins(chance, values.size * width, source=source).reshape(-1, width)
        rows[:, -1] &= 255 >> (-self.domain % 8)
        set_bits(rows, values, np.zeros_like(values))
        return rows

    def supports(self, reports: npt.ArrayLike) -> Codes:
        """Count the reports that support each value.

        >>> reports = np.array([[7, 0], [130, 1]], dtype=np.uint8)      # 0, 1, 2 and 1, 7, 8
        >>> SubsetSelection(domain=10, epsilon=1).supports(reports)
        array([1, 2, 1, 0, 0, 0, 0, 1, 1, 0])
        """
        rows = as_rows(reports, width=self.domain)
        step = max(1, _BLOCK // rows.shape[1])
        for start in range(0, len(rows), step):
            if (_sizes(rows[start : start + step]) != self.size).any():
                raise DataError(
                    f"reports must hold {self.size} values each, but some do not. Drop those that "
                    "another collection, or nobody, made: a collector counts and drops them."
                )
        return column_sums(rows)[: self.domain]

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> reports = np.array([[1]] * 500 + [[2]] * 300 + [[4]] * 200, dtype=np.uint8)
        >>> SubsetSelection(domain=3, epsilon=1).estimate(reports)
        CountEstimate(n=1000, counts=[791 ± 41, 242 ± 37, -33 ± 35])
        """
        supports = self.supports(reports)
        return CountEstimate(supports=supports, n=len(np.asarray(reports)), support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = SubsetSelection(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [586, 521]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


def _settle(rows: Rows, wanted: int, values: Codes, domain: int, source: Source) -> None:
    """Add or take away random values, never the own one, until each set has the wanted size.

    Nothing here tells the other values apart, so among the sets of a size each is as likely as any
    other, and how many draws it takes does not depend on the own value.
    """
    missing = wanted - _sizes(rows)
    open_rows = np.flatnonzero(missing)
    while open_rows.size:
        place = uniform_integers(domain, open_rows.size, source=source)
        spot, bit = (open_rows, place >> 3), (1 << (place & 7)).astype(np.uint8)
        surplus = missing[open_rows] < 0
        fits = (place != values[open_rows]) & (((rows[spot] & bit) != 0) == surplus)
        rows[spot] ^= bit * fits
        missing[open_rows] += np.where(surplus, fits, -fits.astype(np.int64))
        open_rows = open_rows[missing[open_rows] != 0]


def _sizes(rows: Rows) -> Codes:
    return np.asarray(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))


@lru_cache(maxsize=64)
def _best(domain: int, epsilon: Fraction) -> int:
    """Return the size of least variance."""
    near = int(domain / (math.exp(float(min(epsilon, Fraction(30)))) + 1))

    def variance(size: int) -> Fraction:
        law = _law(domain, size, epsilon)
        return _support(size, law).average_variance(domain=domain)

    return min({min(max(1, size), domain - 1) for size in (near, near + 1)}, key=variance)


def _law(domain: int, size: int, epsilon: Number) -> Preference:
    return Preference.calibrated(
        epsilon=epsilon, outputs=domain * (domain - 1), preferred=size * (domain - 1)
    )


def _support(size: int, law: Preference) -> Support:
    return Support(hit=law.keep_chance, miss=law.hit(shared=size * (size - 1)))
