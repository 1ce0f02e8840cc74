"""Direct response: the value itself, or any other one."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import RandomizedResponseLoss
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.drawing import keep_or_change
from discreet.local.laws.numbers import as_codes, as_domain, as_values, code_bytes
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source

__all__ = ["DirectResponse"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DirectResponse:
    """Report the value itself with a certain chance, otherwise any other value.

    Best for few values (fewer than about 3 exp(epsilon) + 2). Also called generalised or k-ary
    randomized response.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: a law of preference with one own output [KOV16, Section 4]; its coin is a comparison of
    whole numbers, and ``loss`` is computed from them.

    >>> randomiser = DirectResponse(domain=4, epsilon=2)
    >>> reports = randomiser.release(np.repeat([0, 1, 2, 3], [40_000, 30_000, 20_000, 10_000]))
    >>> estimate = randomiser.estimate(reports)
    >>> bool(abs(estimate.counts[0] - 40_000) < 8 * estimate.standard_error[0])
    True
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        return Preference.calibrated(epsilon=self.epsilon, outputs=self.domain, preferred=1)

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one report costs the device that gives it."""
        epsilon = min(self.epsilon, self.law.epsilon)
        return RandomizedResponseLoss(epsilon=epsilon, categories=self.domain)

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return Support(hit=self.law.hit(shared=1), miss=self.law.hit(shared=0))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.domain

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return code_bytes(self.outputs)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's value.

        >>> randomiser = DirectResponse(domain=4, epsilon=2)
        >>> reports = randomiser.release(np.full(10_000, 3))      # e**2 / (e**2 + 3) of them stay
        >>> bool(abs((reports == 3).mean() - float(randomiser.law.keep_chance)) < 0.04)
        True
        """
        inputs = as_values(values, domain=self.domain)
        return keep_or_change(self.law, inputs, below=self.domain, source=source)

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> DirectResponse(domain=4, epsilon=2).supports([0, 2, 2])
        array([1, 0, 2, 0])
        """
        return np.bincount(as_codes(reports, below=self.outputs), minlength=self.domain)

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> DirectResponse(domain=2, epsilon=1).estimate([0] * 600 + [1] * 400)
        CountEstimate(n=1000, counts=[716 ± 30, 284 ± 30])
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = DirectResponse(domain=4, epsilon=2)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [202, 133]
        """
        return self.support.error(n=n, confidence=confidence, share=share)
