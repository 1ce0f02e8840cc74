"""Randomized response: every person flips the coins, so nobody has to be trusted."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal, whole
from discreet.accounting import RandomizedResponseLoss
from discreet.mechanisms.responses.frequency_estimate import FrequencyEstimate
from discreet.mechanisms.responses.reports import as_categories, count_reports
from discreet.mechanisms.values.tails import hoeffding_width
from discreet.noise import SYSTEM, Source, bernoulli_logistic, bernoulli_odds, uniform_integers

__all__ = ["RandomizedResponse"]

_CHUNK: Final = 1 << 16  # answers; keeps coins and answers in the processor's cache
_MOST_CATEGORIES: Final = 1 << 31


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Report a category truthfully with a certain probability, otherwise any other one.

    Claim: each entry of ``values`` is one person's answer among ``categories`` known ones, and its
    report is epsilon-DP when that answer is replaced by any other (replace-one, the local model:
    no curator sees the answers). A person who answers several times pays each time.

    Why: the truth is kept with probability e**epsilon / (e**epsilon + k - 1) and every other
    category has probability 1 / (e**epsilon + k - 1), so the probabilities of one report under two
    answers have ratio e**epsilon at most [W65] [KOV16, Section 4]. The coins are exact, and the
    same ones are drawn whatever the answers are.

    Give booleans (if there are two categories) or numbers from 0 to k - 1; the same kind returns.

    >>> survey = RandomizedResponse(epsilon=1, categories=2)
    >>> survey.loss
    RandomizedResponseLoss(epsilon=1, categories=2)
    >>> reports = survey.release(np.arange(100_000) < 30_000)
    >>> bool(abs(survey.estimate(reports).frequencies[1] - 0.3) < 0.03)
    True
    >>> RandomizedResponse(epsilon=2, categories=5).release(4) in range(5)
    True
    """

    epsilon: Number
    categories: int

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon", hint="It is what one person's one report may leak.")
        hint = "It is the number of possible answers, known beforehand."
        if whole(self.categories, name="categories", minimum=2, hint=hint) > _MOST_CATEGORIES:
            wanted = f"at most {_MOST_CATEGORIES}"
            raise refusal("categories", wanted, self.categories, "Hash the answers to fewer.")

    @classmethod
    def calibrated(
        cls, *, error: Number, confidence: Number, reports: int, categories: int
    ) -> Self:
        """Return the survey with the smallest epsilon that reaches an ``error`` in a frequency.

        However large epsilon is, so many reports leave an error; a smaller one is refused.

        >>> survey = RandomizedResponse.calibrated(
        ...     error=0.05, confidence=0.95, reports=10_000, categories=2)
        >>> round(survey.epsilon, 3), round(survey.error(confidence=0.95, reports=10_000), 6)
        (0.557, 0.05)
        """
        wanted = positive(error, name="error")
        miss = 1 - probability(confidence, name="confidence")
        k = whole(categories, name="categories", minimum=2)
        least = Fraction(hoeffding_width(miss, whole(reports, name="reports")))
        if wanted <= least:
            hint = "Ask more people, or accept a larger error."
            raise refusal("error", f"above {float(least):.3g} for so many reports", error, hint)
        # contrast = (1 - x) / (1 + (k - 1) x) with x = exp(-epsilon), solved for epsilon.
        contrast = least / wanted
        epsilon = max(math.log1p(contrast * k / (1 - contrast)), 5e-324)
        excess = 2.0**-52
        while (
            cls(epsilon=epsilon, categories=k).error(confidence=confidence, reports=reports)
            > wanted
        ):
            epsilon *= 1 + excess
            excess *= 2
        return cls(epsilon=epsilon, categories=categories)

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one report costs the person who gives it. Touches no data."""
        return RandomizedResponseLoss(epsilon=self.epsilon, categories=self.categories)

    @property
    def truth_probability(self) -> float:
        """The probability that a report is the true answer."""
        return 1 / (1 + (int(self.categories) - 1) * math.exp(-self._epsilon))

    @property
    def other_probability(self) -> float:
        """The probability of each particular false report."""
        return math.exp(-self._epsilon) * self.truth_probability

    @property
    def _epsilon(self) -> float:
        """Epsilon as a double; far out its exponential is 0 or 1 anyway."""
        return float(min(positive(self.epsilon, name="epsilon"), Fraction(10**6)))

    @overload
    def release(self, values: bool, *, source: Source = ...) -> bool: ...
    @overload
    def release(self, values: int, *, source: Source = ...) -> int: ...
    @overload
    def release(self, values: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[Any]: ...
    def release(self, values: Any, *, source: Source = SYSTEM) -> bool | int | npt.NDArray[Any]:
        """Return one randomized report for each answer.

        >>> RandomizedResponse(epsilon=1, categories=3).release([0, 1, 2, 2]).shape
        (4,)
        """
        k = int(self.categories)
        answers = as_categories(values, categories=k)
        flat = np.ascontiguousarray(answers).reshape(-1)
        # A small integer type may hold the answers at hand but not all reports.
        holds_all = flat.dtype.kind == "b" or k - 1 <= np.iinfo(flat.dtype).max
        out = np.empty(flat.size, dtype=flat.dtype if holds_all else np.int64)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = self._randomized(flat[part], source)
        if answers.ndim == 0:
            return bool(out[0]) if out.dtype.kind == "b" else int(out[0])
        return out.reshape(answers.shape)

    def _randomized(self, answers: npt.NDArray[Any], source: Source) -> npt.NDArray[Any]:
        k = int(self.categories)
        reports: npt.NDArray[Any]
        if k == 2:
            reports = answers ^ bernoulli_logistic(self.epsilon, answers.size, source=source)
            return reports
        lies = bernoulli_odds(self.epsilon, answers.size, factor=k - 1, source=source)
        # Drawn for the truthful ones too, lest the amount of randomness depend on anything.
        ahead = uniform_integers(k - 1, answers.size, source=source) + 1
        reports = answers.astype(np.int64) + ahead * lies
        reports -= k * (reports >= k)
        return reports

    def estimate(self, reports: npt.ArrayLike) -> FrequencyEstimate:
        """Estimate the true frequency of each category, without bias.

        >>> RandomizedResponse(epsilon=3, categories=3).estimate([0] * 20 + [1] * 10 + [2] * 70)
        FrequencyEstimate(reports=100, frequencies=[0.179 ± 0.047, 0.063 ± 0.037, 0.758 ± 0.053])
        """
        k = int(self.categories)
        return FrequencyEstimate(
            observed=count_reports(reports, categories=k),
            hit=np.full(k, self.truth_probability),
            miss=np.full(k, self.other_probability),
        )

    def error(self, *, confidence: Number, reports: int) -> float:
        """Return a t such that one estimated frequency is off by at most t with this confidence.

        Why: the share of a category among independent reports is within
        sqrt(log(2 / (1 - confidence)) / (2 reports)) of its mean [Hoe63, Theorem 2]; the estimate
        divides that by the difference of the two probabilities.

        >>> round(RandomizedResponse(epsilon=1, categories=2).error(
        ...     confidence=0.95, reports=10_000), 3)
        0.029
        """
        miss = 1 - probability(confidence, name="confidence")
        width = hoeffding_width(miss, whole(reports, name="reports"))
        contrast = -math.expm1(-self._epsilon) * self.truth_probability
        return width / contrast if contrast else math.inf
