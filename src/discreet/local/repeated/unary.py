"""One bit a value, each with a permanent response, answered about again and again."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, refusal
from discreet.accounting import PureLoss
from discreet.local.estimates.columns import column_sums
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.bits import BitCoins
from discreet.local.laws.chained import ChainedCoins
from discreet.local.laws.numbers import as_domain, as_rows, as_values
from discreet.local.laws.packed import packed_coins
from discreet.local.laws.preference import ONE
from discreet.noise import SYSTEM, Source

__all__ = ["RepeatedUnary"]

Codes = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedUnary:
    """Answer the same question every day with one bit a value, twice randomised.

    A device draws all bits of :meth:`permanent` once for each value that it ever has, keeps them
    (:class:`~discreet.local.Device` does), and reports :meth:`instant` of them: every bit may be
    turned round once more. ``optimized`` chooses the permanent coins: those of L-OSUE, which err
    less about values that few devices have, or those of RAPPOR without Bloom filters (L-SUE). A
    report is a row of ``bytes_per_report`` bytes, value 0 in the lowest bit of the first.

    Claim: an observer of all reports of a value, for ever, has ``loss`` when the value is replaced
    by another of the domain; one of a single report has ``first_loss``. Each further value that a
    device ever has costs ``loss`` again. *When* its value changes is another matter, see
    :func:`~discreet.local.exposure`.

    Why: docs/proofs/repeated_answers.md; the coins are those of [EPK14, Section 3] and
    [ACBX22, Section 3.2].

    >>> randomiser = RepeatedUnary(domain=10, epsilon=3, first=1, optimized=True)
    >>> kept = randomiser.permanent(np.full(20_000, 2))
    >>> estimate = randomiser.estimate(randomiser.instant(kept))
    >>> bool(abs(estimate.counts[2] - 20_000) < 8 * estimate.standard_error[2])
    True
    >>> [round(randomiser.loss_after(reports=days).epsilon, 2) for days in (1, 2, 7, 30)]
    [1.0, 1.87, 2.99, 3.0]
    """

    domain: int
    epsilon: Number
    first: Number
    optimized: bool

    def __post_init__(self) -> None:
        as_domain(self.domain)
        if self.optimized not in (0, 1):
            raise refusal("optimized", "True or False", self.optimized)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> ChainedCoins:
        """The law of a bit in both stages, in whole numbers."""
        return ChainedCoins.calibrated(
            epsilon=self.epsilon, first=self.first, differing=2, optimized=self.optimized
        )

    @property
    def loss(self) -> PureLoss:
        """What all reports of one value cost, for ever."""
        return PureLoss(epsilon=min(self.epsilon, self.law.lasting))

    @property
    def first_loss(self) -> PureLoss:
        """What a single report costs."""
        return PureLoss(epsilon=min(self.first, self.law.epsilon_after(1)))

    @property
    def further_loss(self) -> PureLoss | None:
        """What one more report costs whatever values came before; None if nothing bounds it.

        A change of value draws all bits anew, so each of them counts.
        """
        further = self.law.further
        return None if further is None else PureLoss(epsilon=Fraction(further) * self.domain)

    def loss_after(self, *, reports: int) -> PureLoss:
        """Return what this many reports of one value cost, exactly.

        >>> randomiser = RepeatedUnary(domain=10, epsilon=2, first=0.5, optimized=False)
        >>> [round(randomiser.loss_after(reports=days).epsilon, 2) for days in (1, 7, 100)]
        [0.5, 1.9, 2.0]
        """
        return PureLoss(epsilon=self.law.epsilon_after(reports))

    @property
    def responses(self) -> int:
        """How many permanent responses a device can come to need: one for each value."""
        return self.domain

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another, over both stages."""
        return Support(hit=self.law.hit, miss=self.law.miss)

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return (self.domain + 7) // 8

    def error(self, *, n: int, confidence: float) -> float:
        """Return a t such that a count estimated from one day is off by at most t.

        >>> randomiser = RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True)
        >>> [round(randomiser.error(n=n, confidence=0.95)) for n in (10_000, 1_000_000)]
        [593, 5883]
        """
        return self.support.error(n=n, confidence=confidence)

    def enrol(self, devices: int, *, source: Source = SYSTEM) -> Codes:
        """Return what each device draws before all else: nothing here.

        >>> RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True).enrol(3).shape
        (3, 0)
        """
        return np.empty((devices, 0), dtype=np.int64)

    def response_keys(self, values: npt.ArrayLike, *, enrolled: Codes) -> Codes:
        """Return which permanent response answers for each value: its own.

        >>> randomiser = RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True)
        >>> randomiser.response_keys([3, 0], enrolled=randomiser.enrol(2))
        array([3, 0])
        """
        return as_values(values, domain=self.domain)

    def permanent(
        self, values: npt.ArrayLike, *, enrolled: Codes | None = None, source: Source = SYSTEM
    ) -> Codes:
        """Draw the bits that each device keeps for its value, for ever.

        >>> randomiser = RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True)
        >>> kept = randomiser.supports(randomiser.permanent([3] * 10_000)) / 10_000
        >>> bool(abs(kept[3] - 1 / 2) < 0.04)
        True
        """
        coins = BitCoins(own=self.law.own, other=self.law.other)
        inputs = as_values(values, domain=self.domain)
        return coins.release(inputs, domain=self.domain, source=source)

    def instant(self, permanent: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return one report of each kept response.

        >>> randomiser = RepeatedUnary(domain=10, epsilon=2, first=2, optimized=True)
        >>> randomiser.instant(np.array([[5, 2]], dtype=np.uint8))      # as kept: first is epsilon
        array([[5, 2]], dtype=uint8)
        """
        kept = as_rows(permanent, width=self.domain)
        if self.law.keep == ONE:
            return kept.copy()
        turned = packed_coins(ONE - self.law.keep, kept.size, source=source).reshape(kept.shape)
        turned[:, -1] &= 255 >> (-self.domain % 8)
        return kept ^ turned

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return the first report of new devices.

        >>> reports = RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True).release([3, 0])
        >>> reports.shape, reports.dtype
        ((2, 2), dtype('uint8'))
        """
        return self.instant(self.permanent(values, source=source), source=source)

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> reports = np.array([[5, 0], [4, 2]], dtype=np.uint8)      # 0, 2 and 2, 9
        >>> RepeatedUnary(domain=10, epsilon=2, first=1, optimized=True).supports(reports)
        array([1, 0, 2, 0, 0, 0, 0, 0, 0, 1])
        """
        return column_sums(as_rows(reports, width=self.domain))[: self.domain]

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, from one report of each, without bias.

        >>> randomiser = RepeatedUnary(domain=2, epsilon=2, first=1, optimized=True)
        >>> randomiser.estimate(np.array([[1]] * 400 + [[2]] * 300 + [[0]] * 300, dtype=np.uint8))
        CountEstimate(n=1000, counts=[567 ± 65, 134 ± 62])
        """
        rows = np.asarray(reports)
        return CountEstimate(supports=self.supports(rows), n=len(rows), support=self.support)
