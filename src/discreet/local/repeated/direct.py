"""Direct response that is drawn once for ever, and answered about again and again."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.chained import ChainedPreference
from discreet.local.laws.drawing import CHUNK
from discreet.local.laws.numbers import as_codes, as_domain, as_values, code_bytes
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers

__all__ = ["RepeatedDirect"]

Codes = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedDirect:
    """Answer the same question every day: a permanent direct response, and a coin each time.

    Best for few values. A device draws :meth:`permanent` once for each value that it ever has,
    keeps it (:class:`~discreet.local.Device` does), and reports :meth:`instant` of it. Also called
    L-GRR. If ``first`` equals ``epsilon``, a report is the permanent response itself.

    Claim: an observer of all reports of a value, for ever, has ``loss`` when the value is replaced
    by another of the domain; one of a single report has ``first_loss``. Each further value that a
    device ever has costs ``loss`` again. *When* its value changes is another matter, see
    :func:`~discreet.local.exposure`.

    Why: docs/proofs/repeated_answers.md; [ACBX22, Section 3.2] has the coins.

    >>> randomiser = RepeatedDirect(domain=4, epsilon=3, first=1)
    >>> kept = randomiser.permanent(np.full(50_000, 2))
    >>> monday, tuesday = randomiser.instant(kept), randomiser.instant(kept)
    >>> estimate = randomiser.estimate(monday)
    >>> bool(abs(estimate.counts[2] - 50_000) < 8 * estimate.standard_error[2])
    True
    >>> randomiser.loss_after(reports=1), round(randomiser.loss_after(reports=4).epsilon, 2)
    (PureLoss(epsilon=1.0), 2.83)
    """

    domain: int
    epsilon: Number
    first: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> ChainedPreference:
        """The law of both stages, in whole numbers."""
        return ChainedPreference.calibrated(
            epsilon=self.epsilon, first=self.first, outputs=self.domain
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
        return None if further is None else PureLoss(epsilon=further)

    def loss_after(self, *, reports: int) -> PureLoss:
        """Return what this many reports of one value cost, exactly.

        >>> randomiser = RepeatedDirect(domain=4, epsilon=2, first=0.5)
        >>> [round(randomiser.loss_after(reports=days).epsilon, 2) for days in (1, 7, 100)]
        [0.5, 1.96, 2.0]
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
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.domain

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return code_bytes(self.outputs)

    def error(self, *, n: int, confidence: float) -> float:
        """Return a t such that a count estimated from one day is off by at most t.

        >>> randomisers = [RepeatedDirect(domain=4, epsilon=2, first=first) for first in (0.5, 2)]
        >>> [round(randomiser.error(n=100_000, confidence=0.95)) for randomiser in randomisers]
        [2954, 635]
        """
        return self.support.error(n=n, confidence=confidence)

    def enrol(self, devices: int, *, source: Source = SYSTEM) -> Codes:
        """Return what each device draws before all else: nothing here.

        >>> RepeatedDirect(domain=4, epsilon=2, first=1).enrol(3).shape
        (3, 0)
        """
        return np.empty((devices, 0), dtype=np.int64)

    def response_keys(self, values: npt.ArrayLike, *, enrolled: Codes) -> Codes:
        """Return which permanent response answers for each value: its own.

        >>> randomiser = RepeatedDirect(domain=4, epsilon=2, first=1)
        >>> randomiser.response_keys([3, 0], enrolled=randomiser.enrol(2))
        array([3, 0])
        """
        return as_values(values, domain=self.domain)

    def permanent(
        self, values: npt.ArrayLike, *, enrolled: Codes | None = None, source: Source = SYSTEM
    ) -> Codes:
        """Draw the response that each device keeps for its value, for ever.

        >>> randomiser = RepeatedDirect(domain=4, epsilon=2, first=1)
        >>> kept = randomiser.permanent(np.full(10_000, 3))      # e**2 / (e**2 + 3) of them stay
        >>> bool(abs((kept == 3).mean() - float(randomiser.law.permanent.keep_chance)) < 0.04)
        True
        """
        inputs = as_values(values, domain=self.domain)
        return self._moved(inputs, 1 - self.law.permanent.keep_chance, source)

    def instant(self, permanent: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return one report of each kept response.

        >>> randomiser = RepeatedDirect(domain=4, epsilon=2, first=2)
        >>> randomiser.instant([3, 0])      # as kept: first is epsilon
        array([3, 0])
        """
        kept = as_codes(permanent, below=self.domain)
        return self._moved(kept, 1 - self.law.keep_chance, source)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> Codes:
        """Return the first report of new devices.

        >>> randomiser = RepeatedDirect(domain=4, epsilon=2, first=1)
        >>> reports = randomiser.release(np.full(10_000, 3))      # e / (e + 3) of them stay
        >>> bool(abs((reports == 3).mean() - float(randomiser.support.hit)) < 0.04)
        True
        """
        return self.instant(self.permanent(values, source=source), source=source)

    def _moved(self, codes: Codes, chance: Any, source: Source) -> Codes:
        """Move each code to a uniform other one with this chance."""
        out = np.empty(codes.size, dtype=np.int64)
        for start in range(0, codes.size, CHUNK):
            part = codes[start : start + CHUNK]
            moves = bernoulli(chance, part.size, source=source)
            ahead = uniform_integers(self.domain - 1, part.size, source=source)
            out[start : start + CHUNK] = np.where(moves, ahead + (ahead >= part), part)
        return out

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> RepeatedDirect(domain=4, epsilon=2, first=1).supports([0, 2, 2])
        array([1, 0, 2, 0])
        """
        return np.bincount(as_codes(reports, below=self.outputs), minlength=self.domain)

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, from one report of each, without bias.

        >>> RepeatedDirect(domain=2, epsilon=2, first=1).estimate([0] * 600 + [1] * 400)
        CountEstimate(n=1000, counts=[716 ± 30, 284 ± 30])
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)
