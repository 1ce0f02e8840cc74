"""Choose among candidates by score: the exponential mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, whole
from discreet.accounting import BoundedRangeLoss
from discreet.mechanisms.selection.scores import check_choice, choice_rate, worst_shortfall
from discreet.mechanisms.values.arrays import as_scores
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source, exponential_race

__all__ = ["Exponential"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Select one candidate, with probability proportional to exp(epsilon score / (2 sensitivity)).

    Claim: if every score moves by at most ``sensitivity`` between neighbouring inputs, the privacy
    loss of one selection lies in an interval of length ``epsilon``: it is epsilon-DP and
    epsilon^2/8-zCDP, for the unit and the neighbouring relation that the sensitivity was computed
    for. With ``monotone=True``, a promise that between any two neighbours no score rises while
    another falls (counts under add/remove, for example), the 2 in the exponent is dropped and the
    same holds. The scores are taken as the exact numbers they are: the sensitivity is theirs,
    rounding errors of whatever computed them included.

    Why: with r the factor in the exponent, the log-ratio of the two probabilities of candidate i is
    r (s_i - t_i) plus a constant that does not depend on i. The differences s_i - t_i span at most
    2 sensitivity, or 1 sensitivity if they share a sign [MT07, Theorem 6; DDR20, Section 2.1]; and
    a loss of range epsilon is epsilon^2/8-zCDP [CR21, Lemma 3.2].

    >>> mechanism = Exponential(epsilon=1, sensitivity=1)
    >>> mechanism.select([0, 10, 2000])
    2
    >>> mechanism.loss
    BoundedRangeLoss(epsilon=1)
    >>> mechanism.probabilities([5, 4, 3, 2]).round(2)
    array([0.46, 0.28, 0.17, 0.1 ])
    """

    epsilon: Number
    sensitivity: Number
    monotone: bool = False

    def __post_init__(self) -> None:
        check_choice(self.epsilon, self.sensitivity, self.monotone)

    @classmethod
    def calibrated(
        cls,
        *,
        error: Number,
        confidence: Number,
        candidates: int,
        sensitivity: Number,
        monotone: bool = False,
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``.

        >>> mechanism = Exponential.calibrated(
        ...     error=20, confidence=0.95, candidates=100, sensitivity=1)
        >>> round(mechanism.epsilon, 3), round(mechanism.error(confidence=0.95, candidates=100), 6)
        (0.754, 20.0)
        """
        make = partial(cls, sensitivity=sensitivity, monotone=monotone)
        return least_epsilon(make, error=error, confidence=confidence, candidates=candidates)

    @property
    def rate(self) -> Fraction:
        """The factor of the score in the exponent, exactly."""
        return choice_rate(self.epsilon, self.sensitivity, self.monotone)

    @property
    def loss(self) -> BoundedRangeLoss:
        """What one selection costs. Touches no data."""
        return BoundedRangeLoss(epsilon=self.epsilon)

    def select(self, scores: npt.ArrayLike, *, source: Source = SYSTEM) -> int:
        """Return the index of the chosen candidate, drawn exactly.

        >>> Exponential(epsilon=1, sensitivity=1).select([])
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: ...
        """
        return exponential_race(as_scores(scores), rate=self.rate, source=source)

    def error(self, *, confidence: Number, candidates: int) -> float:
        """Return t so that the chosen score is within t of the best with this confidence.

        No smaller t would do for all scores: it is attained where one candidate leads all others
        by the same distance.

        >>> round(Exponential(epsilon=1, sensitivity=1).error(confidence=0.95, candidates=100), 2)
        15.08
        """
        miss = 1 - probability(confidence, name="confidence")
        return worst_shortfall(self.rate, miss, others=whole(candidates, name="candidates") - 1)

    def probabilities(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return each candidate's chance. Not private: for tests and teaching, never to be shown.

        >>> Exponential(epsilon=2, sensitivity=1).probabilities([0, 0])
        array([0.5, 0.5])
        """
        values = as_scores(scores)
        best = Fraction(values.max().item())
        exponents = [float(self.rate * (Fraction(score) - best)) for score in values.tolist()]
        weights = np.exp(exponents)
        return np.asarray(weights / weights.sum(), dtype=np.float64)
