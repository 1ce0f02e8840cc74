"""How good is a model, on people who are themselves private? For a price, with an error bar."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from discreet._exact import Number, probability
from discreet.accounting import Loss
from discreet.errors import ParameterError
from discreet.learn.recipes.encoding import EncodedRows, LabelledRows
from discreet.mechanisms import Histogram
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers
from discreet.privacy import Neighbours

__all__ = ["Accuracy", "PrivateAccuracy", "correct", "set_apart"]

_AT_A_TIME = 4_096  # rows computed together, as memory allows


def correct(model: nn.Module, rows: LabelledRows) -> npt.NDArray[np.bool_]:
    """Say for each row whether the model finds its class. NOT PRIVATE, unless the rows are public.

    >>> model = nn.Linear(1, 2)
    >>> with torch.no_grad():
    ...     _ = model.weight.copy_(torch.tensor([[-1.0], [1.0]])), model.bias.zero_()
    >>> rows = EncodedRows(names=("x",), matrix=np.array([[-3], [4]], np.float32),
    ...                    labels=np.array([0, 0]))
    >>> correct(model, rows)
    array([ True, False])
    """
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            found = [
                model(torch.from_numpy(part).to(device)).argmax(1).cpu().numpy()
                for part in _parts(rows.matrix)
            ]
    finally:
        model.train(was_training)
    guesses = np.concatenate(found) if found else np.empty(0, np.int64)
    return np.asarray(guesses == rows.labels)


def _parts(matrix: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
    starts = range(0, len(matrix), _AT_A_TIME)
    return [np.ascontiguousarray(matrix[at : at + _AT_A_TIME]) for at in starts]


def set_apart(
    rows: EncodedRows, *, share: Number, source: Source = SYSTEM
) -> tuple[EncodedRows, EncodedRows]:
    """Split rows into those to train on and those to evaluate on, by a coin for each unit.

    Claim: neighbouring rows make neighbouring parts: a unit changes the part that it is in, and
    the other one not at all.

    Why: every unit is in one part with all its rows, by a coin that depends on nobody.

    >>> rows = EncodedRows(names=("x",), matrix=np.zeros((1000, 1), np.float32),
    ...                    labels=np.zeros(1000, np.int64))
    >>> train, test = set_apart(rows, share=0.1)
    >>> 30 < len(test.labels) < 200
    True
    """
    chance = probability(share, name="share")
    if rows.units is None:
        is_apart = np.asarray(bernoulli(chance, len(rows.labels), source=source))
    else:
        units, owner = np.unique(rows.units, return_inverse=True)
        is_apart = np.asarray(bernoulli(chance, len(units), source=source))[owner]
    return rows.take(~is_apart), rows.take(is_apart)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """A share of right answers, and how far the noise may have moved it.

    >>> print(Accuracy(value=0.913, error=0.004))
    91.3% \N{PLUS-MINUS SIGN} 0.4%
    """

    value: float | None  # None where there are too few examples to tell
    error: float | None = None  # None where no noise was added

    def __str__(self) -> str:
        if self.value is None:
            return "too few to tell"
        told = f"{self.value:.1%}"
        return told if self.error is None else f"{told} \N{PLUS-MINUS SIGN} {self.error:.1%}"

    @classmethod
    def on_public(cls, model: nn.Module, rows: LabelledRows) -> Self:
        """Return the share of right answers on rows that are public.

        >>> rows = EncodedRows(names=("x",), matrix=np.zeros((3, 1), np.float32),
        ...                    labels=np.zeros(3, np.int64))
        >>> Accuracy.on_public(nn.Linear(1, 1), rows).value
        1.0
        """
        right = correct(model, rows)
        return cls(value=float(right.mean()) if right.size else None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateAccuracy:
    """Release how often a model is right about private examples, one for each unit.

    Claim: one release is epsilon-DP for the unit of the rows, under ``neighbours``.

    Why: every unit has one vote, right or wrong, on one of its rows, chosen by a coin of its own.
    Adding or removing a unit changes one of the two counts by 1, replacing one changes at most
    both of them: a histogram with that many cells touched (:class:`discreet.mechanisms.Histogram`).
    The accuracy and its error follow from the noisy counts.

    >>> mechanism = PrivateAccuracy(epsilon=1, neighbours=Neighbours.add_remove)
    >>> mechanism.loss
    DiscreteLaplaceLoss(noise_multiplier=Fraction(1, 1), sensitivity=1)
    >>> mechanism.release(np.arange(10_000) % 10 > 0).value > 0.88
    True
    """

    epsilon: Number
    neighbours: Neighbours
    confidence: Number = Fraction(95, 100)

    def __post_init__(self) -> None:
        if self.neighbours not in (Neighbours.add_remove, Neighbours.replace_one):
            raise ParameterError(
                "neighbours must be add_remove or replace_one.", parameter="neighbours"
            )
        probability(self.confidence, name="confidence")
        self._histogram  # noqa: B018  # refuses a bad epsilon

    @property
    def _histogram(self) -> Histogram:
        cells = 1 if self.neighbours is Neighbours.add_remove else 2
        return Histogram.calibrated(epsilon=self.epsilon, delta=0, l0=cells, linf=1)

    @property
    def loss(self) -> Loss:
        """What one release costs. Touches no data."""
        return self._histogram.loss

    def release(
        self,
        correct: npt.NDArray[np.bool_],
        *,
        units: npt.NDArray[Any] | None = None,
        source: Source = SYSTEM,
    ) -> Accuracy:
        """Return the share of right answers with noise, and its error bar.

        >>> mechanism = PrivateAccuracy(epsilon=1, neighbours=Neighbours.replace_one)
        >>> of_two = np.repeat(np.arange(5_000), 2)
        >>> abs(mechanism.release(np.ones(10_000, bool), units=of_two).value - 1) < 0.02
        True
        """
        votes = correct if units is None else _one_each(correct, units, source)
        right = int(votes.sum())
        counts = self._histogram.release([right, len(votes) - right], source=source)
        total = int(counts.sum())
        # Each count may miss with half the chance, so that both hold with the confidence asked.
        each = 1 - (1 - Fraction(self.confidence)) / 2
        off = self._histogram.error(confidence=each)
        if total <= 2 * off:
            return Accuracy(value=None)
        # The true share is furthest away where the counts are off to opposite sides, and then the
        # total is right: (right - off) / total or (right + off) / total.
        return Accuracy(value=min(1.0, max(0.0, int(counts[0]) / total)), error=off / total)


def _one_each(
    correct: npt.NDArray[np.bool_], units: npt.NDArray[Any], source: Source
) -> npt.NDArray[np.bool_]:
    """Pick one row of every unit at random."""
    order = np.argsort(uniform_integers(2**62, len(correct), source=source), kind="stable")
    _, first = np.unique(units[order], return_index=True)
    return correct[order[first]]
