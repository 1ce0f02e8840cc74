"""A few bits of the value's row, drawn once: small changes of a value do not show at all."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet._rounding import log_one_over
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.estimates.sampled import SampledEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.chained import ChainedCoins
from discreet.local.laws.numbers import as_code_rows, as_domain, as_values, code_bytes
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers

__all__ = ["BitFlip"]

Codes = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlip:
    """Answer every day whether the value is one of a few that the device drew once.

    A device draws ``bits`` of the ``domain`` values for good, without looking at its own: its
    :meth:`enrol`. For each of them that it ever has it keeps a row of random bits, and one more row
    for all values that it did not draw: those it never tells apart, not even by a change. Also
    called dBitFlip. Numbers are put into buckets first, as for a histogram.

    A report has ``bits`` numbers, 2 value + bit, in rising order.

    Claim: an observer of all reports of a value, for ever, has ``loss`` when the value is replaced
    by another of the domain; one of a single report has ``first_loss``. A device that has had all
    values has paid ``loss`` no more than ``responses`` = min(bits + 1, domain) times. What it drew
    is public, and names it in all its reports. *When* its value changes from one drawn to another
    is another matter, see :func:`~discreet.local.exposure`.

    Why: docs/proofs/repeated_answers.md; [DKY17, Section 4], [APPG23, Section 2.4]. For
    a single bit two values differ in that one only, so its coin has all of epsilon.

    >>> randomiser = BitFlip(domain=32, bits=4, epsilon=2, first=2)
    >>> randomiser.responses, randomiser.bytes_per_report
    (5, 4)
    >>> estimate = randomiser.estimate(randomiser.release(np.full(50_000, 9)))
    >>> bool(abs(estimate.counts[9] - 50_000) < 8 * estimate.standard_error[9])
    True
    """

    domain: int
    bits: int
    epsilon: Number
    first: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        if whole(self.bits, name="bits") > self.domain:
            raise refusal("bits", f"at most the domain, which is {self.domain}", self.bits)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> ChainedCoins:
        """The law of a bit in both stages, in whole numbers."""
        differing = min(2, int(self.bits))
        return ChainedCoins.calibrated(
            epsilon=self.epsilon, first=self.first, differing=differing, optimized=False
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
        """What one more report costs whatever values came before; None if nothing bounds it."""
        further = self.law.further
        return None if further is None else PureLoss(epsilon=Fraction(further) * self.bits)

    def loss_after(self, *, reports: int) -> PureLoss:
        """Return what this many reports of one value cost, exactly.

        >>> randomiser = BitFlip(domain=32, bits=4, epsilon=2, first=0.5)
        >>> [round(randomiser.loss_after(reports=days).epsilon, 2) for days in (1, 7, 100)]
        [0.5, 1.9, 2.0]
        """
        return PureLoss(epsilon=self.law.epsilon_after(reports))

    @property
    def responses(self) -> int:
        """How many permanent responses a device can come to need."""
        return min(int(self.bits) + 1, int(self.domain))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another, if it tells about them."""
        return Support(hit=self.law.hit, miss=self.law.miss)

    @property
    def outputs(self) -> int:
        """The numbers in reports are below this."""
        return 2 * self.domain

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return int(self.bits) * code_bytes(self.outputs)

    def error(self, *, n: int, confidence: float) -> float:
        """Return a t such that a count estimated from one day is off by at most t.

        Why: half of what may fail goes to how many are asked about a value, a binomial number, and
        half to Hoeffding's inequality for these, see ``SampledEstimate``.

        >>> randomisers = [BitFlip(domain=32, bits=bits, epsilon=2, first=2) for bits in (4, 32)]
        >>> [round(randomiser.error(n=100_000, confidence=0.95)) for randomiser in randomisers]
        [2889, 1013]
        """
        from scipy.stats import binom

        failing = (1 - probability(confidence, name="confidence")) / 2
        asked = int(binom.ppf(float(failing), whole(n, name="n"), self.bits / self.domain))
        if not asked:
            return float(n)
        width = math.sqrt(log_one_over(failing / 2) / (2 * asked))
        return min(float(n), n * width / float(self.support.contrast))

    def enrol(self, devices: int, *, source: Source = SYSTEM) -> Codes:
        """Return the values that each device will tell about, in rising order.

        Why: Floyd's sampling [BF87] makes every set as likely; it never looks at values.

        >>> drawn = BitFlip(domain=32, bits=3, epsilon=1, first=1).enrol(1000)
        >>> drawn.shape, bool((np.diff(drawn) > 0).all())
        ((1000, 3), True)
        """
        chosen = np.empty((devices, self.bits), dtype=np.int64)
        for at, last in enumerate(range(self.domain - self.bits, self.domain)):
            drawn = uniform_integers(last + 1, devices, source=source)
            again = (chosen[:, :at] == drawn[:, None]).any(axis=1)
            chosen[:, at] = np.where(again, last, drawn)
        return np.sort(chosen, axis=1)

    def response_keys(self, values: npt.ArrayLike, *, enrolled: Codes) -> Codes:
        """Return which permanent response answers: the value's place, or -1 if it was not drawn.

        >>> randomiser = BitFlip(domain=32, bits=3, epsilon=1, first=1)
        >>> randomiser.response_keys([5, 6, 9], enrolled=np.array([[2, 5, 9]] * 3))
        array([ 1, -1,  2])
        """
        is_own = as_values(values, domain=self.domain)[:, None] == enrolled
        return np.where(is_own.any(axis=1), is_own.argmax(axis=1), -1)

    def permanent(
        self, values: npt.ArrayLike, *, enrolled: Codes | None = None, source: Source = SYSTEM
    ) -> Codes:
        """Draw the response that each device keeps for its value, for ever.

        >>> randomiser = BitFlip(domain=32, bits=3, epsilon=1, first=1)
        >>> kept = randomiser.permanent([5, 6], enrolled=np.array([[2, 5, 9]] * 2))
        >>> kept >> 1      # the values; the bits are random
        array([[2, 5, 9],
               [2, 5, 9]])
        """
        inputs = as_values(values, domain=self.domain)
        places = self.enrol(inputs.size, source=source) if enrolled is None else enrolled
        # Both coins are tossed for every bit, so that the randomness read tells nothing.
        own = bernoulli(self.law.own_chance, places.shape, source=source)
        other = bernoulli(self.law.other_chance, places.shape, source=source)
        return np.asarray(2 * places + np.where(inputs[:, None] == places, own, other))

    def instant(self, permanent: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return one report of each kept response.

        >>> randomiser = BitFlip(domain=32, bits=3, epsilon=1, first=1)
        >>> randomiser.instant([[4, 11, 18]])      # as kept: first is epsilon
        array([[ 4, 11, 18]])
        """
        kept = self._checked(permanent)
        return np.asarray(kept ^ bernoulli(1 - self.law.keep_chance, kept.shape, source=source))

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return the first report of new devices.

        >>> BitFlip(domain=32, bits=3, epsilon=2, first=1).release([5, 6]).shape
        (2, 3)
        """
        return self.instant(self.permanent(values, source=source), source=source)

    def estimate(self, reports: npt.ArrayLike) -> SampledEstimate:
        """Estimate how many devices have each value, from one report of each, without bias.

        >>> randomiser = BitFlip(domain=3, bits=2, epsilon=2, first=2)
        >>> estimate = randomiser.estimate([[1, 2], [1, 4], [2, 5]])
        >>> estimate.asked, estimate.supports
        (array([2, 2, 2]), array([2, 0, 1]))
        """
        codes = self._checked(reports)
        seen = np.bincount(codes.ravel(), minlength=self.outputs).reshape(-1, 2)
        return SampledEstimate(
            supports=seen[:, 1], asked=seen.sum(axis=1), n=len(codes), support=self.support
        )

    def _checked(self, reports: npt.ArrayLike) -> Codes:
        codes = as_code_rows(reports, width=self.bits, below=self.outputs)
        if (np.diff(codes >> 1, axis=1) <= 0).any():
            raise DataError("reports must tell about different values in rising order.")
        return codes
