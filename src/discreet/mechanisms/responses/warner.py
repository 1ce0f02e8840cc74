"""Warner's survey design: yes or no, with coins of any rational probabilities."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, probability, refusal, show, whole
from discreet.accounting import PureLoss, RandomizedResponseLoss
from discreet.errors import ParameterError
from discreet.mechanisms.responses.frequency_estimate import FrequencyEstimate
from discreet.mechanisms.responses.reports import as_yes_no, count_reports
from discreet.mechanisms.values.tails import hoeffding_width
from discreet.noise import SYSTEM, Source, bernoulli
from discreet.noise.enclosure import chance_logistic, log_up

__all__ = ["Warner"]

_CHUNK: Final = 1 << 16
_SMALLEST_BUDGET: Final = Fraction(1, 10**300)
_LARGEST_BUDGET: Final = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Warner:
    """Answer yes with one probability if the truth is yes, and with another if it is no.

    Claim: each entry of ``values`` is one person's answer, and its report is epsilon-DP when that
    answer is replaced by the opposite one (replace-one, the local model), where epsilon is the
    largest absolute log-ratio of the probabilities of yes, and of no, under the two truths. A
    person who answers several times pays each time.

    Why: that is the definition of pure differential privacy on two inputs and two outputs [W65].
    The coins are exact and both are tossed for everybody.

    >>> survey = Warner.coins(truth=Fraction(1, 2), forced_yes=Fraction(1, 2))   # two fair coins
    >>> survey
    Warner(yes_if_yes=Fraction(3, 4), yes_if_no=Fraction(1, 4))
    >>> round(survey.epsilon, 6) == round(math.log(3), 6)
    True
    >>> reports = survey.release(np.arange(100_000) < 30_000)
    >>> bool(abs(survey.estimate(reports).frequencies[1] - 0.3) < 0.03)
    True
    """

    yes_if_yes: Number
    yes_if_no: Number

    def __post_init__(self) -> None:
        hint = "At 0 or 1 some answer would be certain, and its privacy lost."
        probability(self.yes_if_yes, name="yes_if_yes", hint=hint)
        probability(self.yes_if_no, name="yes_if_no", hint=hint)
        yes, no = self._exactly()
        if yes == no:
            raise ParameterError(
                f"yes_if_yes must differ from yes_if_no, got {show(self.yes_if_yes)} for both. "
                "Reports that do not depend on the truth tell nothing.",
                parameter="yes_if_yes",
            )

    @classmethod
    def coins(cls, *, truth: Number, forced_yes: Number) -> Self:
        """Describe two coins: tell the truth if the first shows heads, else what the second says.

        ``truth`` is the first coin's probability, ``forced_yes`` the second's of saying yes.

        >>> Warner.coins(truth=0.5, forced_yes=0.25)
        Warner(yes_if_yes=Fraction(5, 8), yes_if_no=Fraction(1, 8))
        """
        honest = probability(truth, name="truth")
        forced = probability(forced_yes, name="forced_yes")
        no = (1 - honest) * forced
        return cls(yes_if_yes=honest + no, yes_if_no=no)

    @classmethod
    def calibrated(cls, *, epsilon: Number) -> Self:
        """Return the most truthful coins for a budget: symmetric ones.

        The truth has probability e**epsilon / (1 + e**epsilon), rounded down to a fraction.

        >>> survey = Warner.calibrated(epsilon=1)
        >>> round(float(survey.yes_if_yes), 6), survey.epsilon <= 1
        (0.731059, True)
        """
        budget = positive(epsilon, name="epsilon")
        if not _SMALLEST_BUDGET <= budget <= _LARGEST_BUDGET:
            raise refusal("epsilon", "between 1e-300 and 1000", epsilon)
        lie = chance_logistic(budget)
        # Enough digits for a tiny lie, and for one that is nearly 1/2.
        bits = 96 + 2 * math.ceil(budget) + max(0, -math.frexp(float(budget))[1])
        excess = 1
        while True:
            false_yes = Fraction(lie(bits) + excess, 1 << bits)
            coins = cls(yes_if_yes=1 - false_yes, yes_if_no=false_yes)
            if coins.epsilon <= budget:  # which is rounded up, perhaps beyond the budget
                return coins
            excess *= 2

    @property
    def epsilon(self) -> float:
        """The exact epsilon, rounded up to a float."""
        yes, no = self._exactly()
        return log_up(max(yes / no, no / yes, (1 - yes) / (1 - no), (1 - no) / (1 - yes)))

    @property
    def loss(self) -> PureLoss | RandomizedResponseLoss:
        """What one report costs the person who gives it. Touches no data."""
        if sum(self._exactly()) == 1:
            return RandomizedResponseLoss(epsilon=self.epsilon, categories=2)
        return PureLoss(epsilon=self.epsilon)

    @overload
    def release(self, values: bool | int, *, source: Source = ...) -> bool: ...
    @overload
    def release(self, values: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.bool_]: ...
    def release(self, values: Any, *, source: Source = SYSTEM) -> bool | npt.NDArray[np.bool_]:
        """Return one randomized yes or no for each answer.

        >>> Warner(yes_if_yes=0.75, yes_if_no=0.25).release([True, False]).dtype
        dtype('bool')
        """
        answers = as_yes_no(values)
        flat = np.ascontiguousarray(answers).reshape(-1)
        out = np.empty(flat.size, dtype=np.bool_)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            if_yes = bernoulli(self.yes_if_yes, part.size, source=source)
            if_no = bernoulli(self.yes_if_no, part.size, source=source)
            out[start : start + _CHUNK] = (part & if_yes) | (~part & if_no)
        return bool(out[0]) if answers.ndim == 0 else out.reshape(answers.shape)

    def estimate(self, reports: npt.ArrayLike) -> FrequencyEstimate:
        """Estimate the true shares of no (entry 0) and yes (entry 1), without bias.

        >>> Warner(yes_if_yes=0.75, yes_if_no=0.25).estimate([True] * 400 + [False] * 600)
        FrequencyEstimate(reports=1000, frequencies=[0.700 ± 0.031, 0.300 ± 0.031])
        """
        yes, no = (float(p) for p in self._exactly())
        return FrequencyEstimate(
            observed=count_reports(reports, categories=2),
            hit=np.array([1 - no, yes]),
            miss=np.array([1 - yes, no]),
        )

    def error(self, *, confidence: Number, reports: int) -> float:
        """Return a t such that the estimated share is off by at most t with this confidence.

        Why: [Hoe63, Theorem 2], as for :class:`RandomizedResponse`.

        >>> round(Warner(yes_if_yes=0.75, yes_if_no=0.25).error(
        ...     confidence=0.95, reports=10_000), 3)
        0.027
        """
        miss = 1 - probability(confidence, name="confidence")
        width = hoeffding_width(miss, whole(reports, name="reports"))
        yes, no = self._exactly()
        contrast = abs(float(yes - no))
        return width / contrast if contrast else math.inf

    def _exactly(self) -> tuple[Fraction, Fraction]:
        return exact(self.yes_if_yes, name="yes_if_yes"), exact(self.yes_if_no, name="yes_if_no")
