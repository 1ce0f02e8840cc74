"""Choose among candidates by score, with fewer bad choices: permute-and-flip."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, whole
from discreet._rounding import log_of
from discreet.accounting import PureLoss
from discreet.mechanisms.selection.scores import check_choice, choice_rate, in_scores
from discreet.mechanisms.values.arrays import as_scores
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source, permute_and_flip

__all__ = ["PermuteAndFlip"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Visit candidates in random order; take the first whose coin shows heads.

    The coin shows heads with probability exp(r (score - best)), where r is
    epsilon / (2 sensitivity), or epsilon / sensitivity for ``monotone`` scores.

    Claim: if every score moves by at most ``sensitivity`` between neighbouring inputs (and, with
    ``monotone=True``, no score rises while another falls), one selection is epsilon-DP, for the
    unit and the neighbouring relation that the sensitivity was computed for. Only the pure epsilon
    is claimed: unlike :class:`Exponential` its loss need not stay within a range of epsilon, so it
    does not compose at the rate epsilon^2/8. At equal pure epsilon its choice is never worse than
    the exponential mechanism's on average.

    Why: it has the law of adding one-sided exponential noise of scale 1/r and taking the largest
    [DKSSWXZ21]. Fix the others' noise: i wins if its own noise exceeds a threshold u, with
    probability min(1, exp(-r u)), and u moves by at most 2 sensitivity (monotone: sensitivity)
    between neighbours. See docs/proofs/noisy_max.md; on the error, [MS20].

    >>> mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    >>> mechanism.select([0, 10, 2000])
    2
    >>> mechanism.loss
    PureLoss(epsilon=1)
    >>> mechanism.probabilities([5, 4, 3, 2]).round(2)
    array([0.54, 0.25, 0.14, 0.08])
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

        >>> mechanism = PermuteAndFlip.calibrated(
        ...     error=20, confidence=0.95, candidates=100, sensitivity=1)
        >>> round(mechanism.epsilon, 3)
        0.686
        """
        make = partial(cls, sensitivity=sensitivity, monotone=monotone)
        return least_epsilon(make, error=error, confidence=confidence, candidates=candidates)

    @property
    def rate(self) -> Fraction:
        """The factor of the score in the coins' exponent, exactly."""
        return choice_rate(self.epsilon, self.sensitivity, self.monotone)

    @property
    def loss(self) -> PureLoss:
        """What one selection costs. Touches no data."""
        return PureLoss(epsilon=self.epsilon)

    def select(self, scores: npt.ArrayLike, *, source: Source = SYSTEM) -> int:
        """Return the index of the chosen candidate, drawn exactly.

        >>> PermuteAndFlip(epsilon=1, sensitivity=1).select([3])
        0
        """
        return permute_and_flip(as_scores(scores), rate=self.rate, source=source)

    def error(self, *, confidence: Number, candidates: int) -> float:
        """Return t so that the chosen score is within t of the best with this confidence.

        Why: the worst case is one leader and n - 1 candidates a distance t behind, with coins p.
        With S of those heads, a bad one wins with chance S / (S + 1), so a good one does with
        E[1 / (1 + S)] = (1 - (1 - p)^n) / (n p), and p is found by bisection. Never worse than
        the exponential mechanism's, by Jensen's inequality.

        >>> round(PermuteAndFlip(epsilon=1, sensitivity=1).error(confidence=.95, candidates=100), 2)
        13.73
        """
        miss = 1 - probability(confidence, name="confidence")
        n = whole(candidates, name="candidates")
        if n * (1 - miss) <= 1:
            return 0.0
        # In terms of x = rate * t, so that the coin is exp(-x); success is likelier for larger x.
        # S / (S + 1) <= S / 2 gives the start, which for a tiny miss is as good as the end.
        low, high = 0.0, max(0.0, log_of((n - 1) / (2 * miss)))
        is_ordinary = miss > Fraction(1, 10**6) and n < 10**300
        for _ in range(60 if is_ordinary else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if _success(middle, n) >= 1 - miss else (middle, high)
        return in_scores(high, self.rate)

    def probabilities(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return each candidate's chance. Not private: for tests and teaching, never to be shown.

        Why: give every candidate a uniform place in the order. Candidate i, at place u, is chosen
        if its coin shows heads and no earlier one's does: c_i times the integral over u of the
        product of (1 - u c_j). That is a polynomial, which Gauss's rule integrates exactly.

        >>> PermuteAndFlip(epsilon=2, sensitivity=1).probabilities([0, 0])
        array([0.5, 0.5])
        """
        values = as_scores(scores)
        best = Fraction(values.max().item())
        coins = np.exp([float(self.rate * (Fraction(s) - best)) for s in values.tolist()])
        nodes, weights = np.polynomial.legendre.leggauss(values.size // 2 + 1)
        kept = 1 - np.outer((nodes + 1) / 2, coins)
        others = np.prod(kept, axis=1, keepdims=True) / kept
        return np.asarray(coins * (weights / 2 @ others), dtype=np.float64)


def _success(x: float, n: int) -> float:
    p = math.exp(-x)
    return 1 / n if p == 1 else -math.expm1(n * math.log1p(-p)) / (n * p)
