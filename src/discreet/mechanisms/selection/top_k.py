"""Choose the k best candidates, one after the other or all at once."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Literal, Self, final, get_args

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal, whole
from discreet.accounting import PureLoss, ZCDPLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.laplace_steps import LaplaceSteps, Steps
from discreet.mechanisms.selection.scores import check_choice, choice_rate, worst_shortfall
from discreet.mechanisms.values.arrays import as_scores
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source, exponential_race

__all__ = ["TopK"]

Method = Literal["peeling", "one_shot"]
Indices = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64] | npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Select ``k`` candidates, best first.

    "peeling" runs the exponential mechanism k times, each at epsilon / k, without the candidates
    already chosen. "one_shot" adds discrete Laplace noise of scale 2 k sensitivity / epsilon to
    every score once and reports the k largest, with the gaps between them if wanted.

    Claim: if every score moves by at most ``sensitivity`` between neighbouring inputs (and, with
    ``monotone=True``, no score rises while another falls; the noise is then halved), both are
    epsilon-DP in total, for the unit and the neighbouring relation that the sensitivity was
    computed for. Their concentrated costs differ: peeling is epsilon^2 / (8k)-zCDP, one-shot is
    only known to be epsilon^2 / 2-zCDP. So, when many releases are composed, peeling is 4k times
    cheaper; and for a fixed rho its noise grows with sqrt(k) instead of k.

    Why: peeling composes k rounds, each of range epsilon / k and so (epsilon/k)^2/8-zCDP
    [CR21, Lemma 3.2], whatever the earlier rounds chose [BS16, Lemma 2.3]; it has the law of one
    draw of Gumbel noise and the k largest [DR19]. One-shot: shift the noise of the k winners by at
    most 2 sensitivity each (monotone: 1) and the same winners, order and gaps come out for the
    neighbour (docs/proofs/noisy_max.md, after [DWXZK23]); epsilon-DP is epsilon^2/2-zCDP
    [BS16, Proposition 1.4].

    >>> mechanism = TopK(k=2, epsilon=1, sensitivity=1)
    >>> mechanism.select([0, 1000, 20, 2000])
    array([3, 1])
    >>> mechanism.loss, mechanism.zcdp_loss.rho
    (PureLoss(epsilon=1), Fraction(1, 16))
    >>> TopK(k=2, epsilon=1, sensitivity=1, method="one_shot").zcdp_loss.rho
    Fraction(1, 2)
    """

    k: int
    epsilon: Number
    sensitivity: Number
    monotone: bool = False
    method: Method = "peeling"

    def __post_init__(self) -> None:
        whole(self.k, name="k")
        check_choice(self.epsilon, self.sensitivity, self.monotone)
        if self.method not in get_args(Method):
            raise refusal("method", "'peeling' or 'one_shot'", self.method)
        if self.method == "one_shot":
            _ = self._steps  # refuses magnitudes that no grid can hold

    @classmethod
    def calibrated(
        cls,
        *,
        k: int,
        error: Number,
        confidence: Number,
        candidates: int,
        sensitivity: Number,
        monotone: bool = False,
        method: Method = "peeling",
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``.

        >>> mechanism = TopK.calibrated(
        ...     k=5, error=50, confidence=0.95, candidates=100, sensitivity=1)
        >>> round(mechanism.epsilon, 2)
        1.83
        """
        make = partial(cls, k=k, sensitivity=sensitivity, monotone=monotone, method=method)
        return least_epsilon(make, error=error, confidence=confidence, candidates=candidates)

    @property
    def rate(self) -> Fraction:
        """The factor of the score in each round's exponent; one over the noise of one-shot."""
        return choice_rate(self.epsilon, self.sensitivity, self.monotone) / int(self.k)

    @property
    def _steps(self) -> LaplaceSteps:
        return LaplaceSteps.of(self.epsilon, self.sensitivity, self.monotone, winners=int(self.k))

    @property
    def loss(self) -> PureLoss:
        """What one selection costs, all k choices together. Touches no data."""
        return PureLoss(epsilon=self.epsilon)

    @property
    def zcdp_loss(self) -> ZCDPLoss:
        """The same cost as zCDP: the better one to charge where many releases are composed."""
        budget = positive(self.epsilon, name="epsilon") ** 2
        return ZCDPLoss(rho=budget / (8 * int(self.k) if self.method == "peeling" else 2))

    def select(self, scores: npt.ArrayLike, *, source: Source = SYSTEM) -> Indices:
        """Return the indices of the chosen candidates, best first.

        >>> TopK(k=1, epsilon=1, sensitivity=1, method="one_shot").select([0, 1000])
        array([1])
        """
        values = self._checked(scores)
        if self.method == "one_shot":
            return _largest(self._steps.noisy(values, source=source), int(self.k))
        left = np.arange(values.size)
        chosen = []
        for _ in range(int(self.k)):
            place = exponential_race(values[left], rate=self.rate, source=source)
            chosen.append(left[place])
            left = np.delete(left, place)
        return np.array(chosen, dtype=np.int64)

    def select_with_gaps(
        self, scores: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> tuple[Indices, npt.NDArray[np.float64]]:
        """Return the chosen candidates and how far each is above the next, at no extra cost.

        The last gap is the distance to the best candidate not chosen (see
        :meth:`NoisyMax.select_with_gap`), so there must be more than k. It needs ``one_shot``.

        >>> mechanism = TopK(k=2, epsilon=1, sensitivity=1, method="one_shot")
        >>> chosen, gaps = mechanism.select_with_gaps([0, 1000, 20, 2000])
        >>> chosen, bool(np.abs(gaps - [1000, 980]).max() < 300)
        (array([3, 1]), True)
        """
        if self.method != "one_shot":
            raise ParameterError(
                "method must be 'one_shot' for gaps, got 'peeling', which draws the law of the "
                "winners alone. Ask for method='one_shot', or pay for a release of the scores.",
                parameter="method",
            )
        values = self._checked(scores, beyond=1)
        steps = self._steps
        noisy = steps.noisy(values, source=source)
        chosen = _largest(noisy, int(self.k))
        last = int(chosen[-1])
        before = last - int((chosen < last).sum())
        bar = steps.to_beat(np.delete(noisy, chosen), before=before)
        levels = [int(noisy[i]) for i in chosen] + [bar]
        gaps = [steps.in_scores(high - low) for high, low in pairwise(levels)]
        return chosen, np.array(gaps)

    def error(self, *, confidence: Number, candidates: int) -> float:
        """Return t so that every chosen score is within t of the k-th best with this confidence.

        Why: at most candidates - k scores are too low. In each round of peeling one of the k best
        is left, so the round fails with at most its share of a union bound over rounds; for
        one-shot, some loser's noise must exceed that of one of the k best by t.

        >>> mechanism = TopK(k=5, epsilon=1, sensitivity=1)
        >>> round(mechanism.error(confidence=0.95, candidates=100), 1)
        91.5
        """
        miss = 1 - probability(confidence, name="confidence")
        k = int(self.k)
        losers = whole(candidates, name="candidates", minimum=k) - k
        if self.method == "one_shot":
            return self._steps.shortfall(miss, pairs=k * losers)
        return worst_shortfall(self.rate, miss / k, others=losers)

    def _checked(self, scores: npt.ArrayLike, beyond: int = 0) -> Scores:
        values = as_scores(scores)
        if values.size < int(self.k) + beyond:
            raise DataError(
                f"scores must have {int(self.k) + beyond} entries or more for k={int(self.k)}, got "
                f"{values.size}. Ask for fewer, or pass one score per candidate."
            )
        return values


def _largest(noisy: Steps, k: int) -> Indices:
    """Return the k largest, best first; among equals the lower index comes first."""
    bar = np.partition(noisy, noisy.size - k)[noisy.size - k]
    pool = np.flatnonzero(noisy >= bar)
    order = np.argsort(-noisy[pool], kind="stable")
    return pool[order[:k]].astype(np.int64)
