"""How good is a classifier, on test examples that are themselves private?"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, whole
from discreet._rounding import log_of
from discreet.accounting import DiscreteLaplaceLoss
from discreet.errors import DataError
from discreet.mechanisms.values.deviations import two_sided_geometric_deviation
from discreet.noise import SYSTEM, Source, discrete_laplace

__all__ = ["ClassifierAccuracy"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierAccuracy:
    """Release the share of right answers on a private test set of ``examples`` records.

    Claim: if a unit is one test example, one release is epsilon-DP under replace-one (and
    zero-out): the number of examples is public. The classifier must not depend on these examples.

    Why: replacing an example changes the number of right answers by at most 1, and so the accuracy
    by at most 1/examples. The number gets discrete Laplace noise of scale 1/epsilon, is clamped to
    0..examples and divided by a public constant: post-processing [GRS12, Section 2].

    Clamping costs nothing and hides nothing; averages over many releases of an accuracy very close
    to 0 or 1 are slightly pulled inwards by it.

    >>> mechanism = ClassifierAccuracy(epsilon=1, examples=10_000)
    >>> mechanism.loss
    DiscreteLaplaceLoss(noise_multiplier=Fraction(1, 1), sensitivity=1)
    >>> correct = np.arange(10_000) % 10 > 0
    >>> round(mechanism.release(correct), 1)
    0.9
    >>> mechanism.error(confidence=0.95)
    0.0003
    """

    epsilon: Number
    examples: int

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon")
        whole(self.examples, name="examples")

    @classmethod
    def calibrated(cls, *, error: Number, confidence: Number, examples: int) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error`` in accuracy.

        >>> mechanism = ClassifierAccuracy.calibrated(error=0.01, confidence=0.95, examples=1000)
        >>> round(mechanism.epsilon, 3), mechanism.error(confidence=0.95)
        (0.284, 0.01)
        """
        miss = 1 - probability(confidence, name="confidence")
        allowed = math.floor(positive(error, name="error") * whole(examples, name="examples"))
        # Pr[abs(noise) > t] = 2 p^(t+1) / (1 + p) falls with epsilon, where p = exp(-epsilon).
        low, high = 0.0, log_of(2 / miss)
        for _ in range(100):
            middle = (low + high) / 2
            is_enough = _errors(Fraction(middle), miss) <= allowed
            low, high = (low, middle) if is_enough else (middle, high)
        return cls(epsilon=high, examples=examples)

    @property
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release costs. Touches no data."""
        return DiscreteLaplaceLoss(noise_multiplier=self._scale)

    @property
    def standard_deviation(self) -> float:
        """That of the noise on the accuracy; clamping to [0, 1] takes some of it off.

        >>> round(ClassifierAccuracy(epsilon=0.1, examples=1000).standard_deviation, 4)
        0.0141
        """
        return two_sided_geometric_deviation(float(self._scale)) / int(self.examples)

    @property
    def _scale(self) -> Fraction:
        return 1 / positive(self.epsilon, name="epsilon")

    def release(self, correct: npt.ArrayLike, *, source: Source = SYSTEM) -> float:
        """Return the noisy accuracy, given for every example whether the answer was right.

        >>> ClassifierAccuracy(epsilon=1, examples=3).release([True, False])
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: correct must hold 3 booleans, got shape (2,) of bool. ...
        """
        answers = np.asarray(correct)
        if answers.dtype != np.bool_ or answers.shape != (int(self.examples),):
            raise DataError(
                f"correct must hold {int(self.examples)} booleans, got shape {answers.shape} of "
                f"{answers.dtype}. Pass one per example, or use release_predictions."
            )
        noisy = discrete_laplace(self._scale, centre=int(answers.sum()), source=source)
        return max(0, min(int(self.examples), noisy)) / int(self.examples)

    def release_predictions(
        self, predictions: npt.ArrayLike, labels: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> float:
        """Return the noisy accuracy, given what was predicted and what was true.

        >>> mechanism = ClassifierAccuracy(epsilon=1, examples=1000)
        >>> mechanism.release_predictions(["cat"] * 1000, ["cat"] * 1000) > 0.9
        True
        """
        predicted, true = np.asarray(predictions), np.asarray(labels)
        if predicted.shape != true.shape:
            raise DataError(
                f"predictions and labels must have the same shape, got {predicted.shape} and "
                f"{true.shape}. Pass one of each per example."
            )
        return self.release(np.asarray(predicted == true, dtype=np.bool_), source=source)

    def error(self, *, confidence: Number) -> float:
        """Return t so that the released accuracy is within t of the true one; never above 1.

        >>> ClassifierAccuracy(epsilon=0.1, examples=1000).error(confidence=0.95)
        0.03
        """
        miss = 1 - probability(confidence, name="confidence")
        examples = int(self.examples)
        return min(examples, _errors(positive(self.epsilon, name="epsilon"), miss)) / examples


def _errors(epsilon: Fraction, miss: Fraction) -> int:
    """Return the smallest t with Pr[abs(noise) > t] <= miss, as many answers."""
    ratio = math.exp(-min(epsilon, Fraction(1000)))
    log_tail = math.log(2) - math.log1p(ratio) - log_of(miss)
    return max(0, math.ceil(Fraction(log_tail) / epsilon) - 1)
