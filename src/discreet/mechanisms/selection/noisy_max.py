"""Add noise to every score and report which is largest."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal, Self, final, get_args

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet.accounting import BoundedRangeLoss, PureLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.laplace_steps import LaplaceSteps, laplace_winners
from discreet.mechanisms.selection.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection.scores import check_choice, choice_rate
from discreet.mechanisms.values.arrays import as_scores
from discreet.mechanisms.values.calibration import least_epsilon
from discreet.noise import SYSTEM, Source

__all__ = ["NoisyMax"]

Noise = Literal["laplace", "gumbel", "exponential"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax:
    """Report the candidate whose score plus noise is largest; never the noisy score itself.

    ``noise`` is a choice between costs. "gumbel" is the exponential mechanism and composes best.
    "exponential" is permute-and-flip and errs least at a pure epsilon. "laplace" errs most, but
    gives the gap to the runner-up for free.

    Claim: if every score moves by at most ``sensitivity`` between neighbouring inputs (and, with
    ``monotone=True``, no score rises while another falls), one selection is epsilon-DP, for the
    unit and the neighbouring relation that the sensitivity was computed for. With Gumbel noise
    the loss also stays within a range of epsilon.

    Why: fix the others' noise. The winner must exceed a threshold which moves, against its own
    score, by at most 2 sensitivity (monotone: sensitivity), and the noise has scale that distance
    over epsilon. For the integers that Laplace noise is drawn from, ties included, see
    docs/proofs/noisy_max.md. Gumbel noise is the exponential mechanism [DR19, Section 4.1] and
    exponential noise permute-and-flip [DKSSWXZ21]: both are drawn from the exact law of the
    winner, without drawing the noise.

    The value of the noisy maximum is not offered: it would cost extra. Pay for a second release.

    >>> mechanism = NoisyMax(epsilon=1, sensitivity=1, noise="laplace")
    >>> mechanism.select([0, 10, 2000])
    2
    >>> mechanism.loss, NoisyMax(epsilon=1, sensitivity=1, noise="gumbel").loss
    (PureLoss(epsilon=1), BoundedRangeLoss(epsilon=1))
    """

    epsilon: Number
    sensitivity: Number
    monotone: bool = False
    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        check_choice(self.epsilon, self.sensitivity, self.monotone)
        if self.noise not in get_args(Noise):
            raise refusal("noise", "'laplace', 'gumbel' or 'exponential'", self.noise)
        if self.noise == "laplace":
            _ = self._steps  # refuses magnitudes that no grid can hold

    @classmethod
    def calibrated(
        cls,
        *,
        error: Number,
        confidence: Number,
        candidates: int,
        sensitivity: Number,
        monotone: bool = False,
        noise: Noise = "laplace",
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``.

        >>> mechanism = NoisyMax.calibrated(
        ...     error=20, confidence=0.95, candidates=100, sensitivity=1)
        >>> round(mechanism.epsilon, 3)
        0.856
        """
        make = partial(cls, sensitivity=sensitivity, monotone=monotone, noise=noise)
        return least_epsilon(make, error=error, confidence=confidence, candidates=candidates)

    @property
    def loss(self) -> PureLoss | BoundedRangeLoss:
        """What one selection costs. Touches no data."""
        return PureLoss(epsilon=self.epsilon) if self.noise == "laplace" else self._law.loss

    @property
    def _law(self) -> Exponential | PermuteAndFlip:
        law = Exponential if self.noise == "gumbel" else PermuteAndFlip
        return law(epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone)

    @property
    def _steps(self) -> LaplaceSteps:
        return LaplaceSteps.of(self.epsilon, self.sensitivity, self.monotone, winners=1)

    def select(self, scores: npt.ArrayLike, *, source: Source = SYSTEM) -> int:
        """Return the index of the winner; of the lowest one, should noisy scores be equal.

        >>> NoisyMax(epsilon=1, sensitivity=1, noise="exponential").select([3])
        0
        """
        if self.noise != "laplace":
            return self._law.select(scores, source=source)
        return int(np.argmax(self._steps.noisy_below_best(as_scores(scores), source=source)))

    def select_with_gap(
        self, scores: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> tuple[int, float]:
        """Return the winner's index and by how much it won, at the price of the index alone.

        The gap is the noisy distance to the runner-up, or to losing where the runner-up would win
        a tie: one step less, a millionth of the noise. Gaps end at some 10**12 noise scales. It
        needs Laplace noise.

        Why: given the others' noise, shifting the winner's by its own change plus the threshold's
        maps each outcome to the same outcome for the neighbour (docs/proofs/noisy_max.md,
        after [DWXZK23]).

        >>> index, gap = NoisyMax(epsilon=1, sensitivity=1).select_with_gap([0, 1000, 20])
        >>> index, 900 < gap < 1060
        (1, True)
        """
        if self.noise != "laplace":
            raise ParameterError(
                f"noise must be 'laplace' for a gap, got {self.noise!r}. The law of the winner "
                "alone is drawn there and no gap is offered; ask for noise='laplace', or pay for a "
                "release of the scores.",
                parameter="noise",
            )
        values = as_scores(scores)
        if values.size < 2:
            raise DataError("scores must have two entries or more for a gap, got 1.")
        steps = self._steps
        noisy = steps.noisy_below_best(values, source=source)
        winner = int(np.argmax(noisy))
        gap = int(noisy[winner]) - steps.to_beat(np.delete(noisy, winner), before=winner)
        return winner, steps.in_scores(gap)

    def error(self, *, confidence: Number, candidates: int) -> float:
        """Return t so that the chosen score is within t of the best with this confidence.

        For Laplace noise this is a union bound over the candidates.

        >>> round(NoisyMax(epsilon=1, sensitivity=1).error(confidence=0.95, candidates=100), 1)
        17.1
        """
        if self.noise != "laplace":
            return self._law.error(confidence=confidence, candidates=candidates)
        miss = 1 - probability(confidence, name="confidence")
        rivals = whole(candidates, name="candidates") - 1
        return self._steps.shortfall(miss, pairs=rivals)

    def probabilities(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return each candidate's chance. Not private: for tests and teaching, never to be shown.

        For Laplace noise it is that of the noise before it is rounded to the grid, which moves a
        chance by less than a millionth per candidate.

        Why: candidate i wins at x with the density of its noise at x - s_i times the chance that
        all others stay below x. Between scores that is a sum of exponentials of x, which Gauss's
        rule integrates to the last digits over pieces as long as the noise is wide.

        >>> NoisyMax(epsilon=2, sensitivity=1).probabilities([1, 0]).round(4)
        array([0.7241, 0.2759])
        """
        if self.noise != "laplace":
            return self._law.probabilities(scores)
        values = as_scores(scores)
        best = Fraction(values.max().item())
        rate = choice_rate(self.epsilon, self.sensitivity, self.monotone)
        places = np.array([float(rate * (Fraction(s) - best)) for s in values.tolist()])
        return laplace_winners(places)
