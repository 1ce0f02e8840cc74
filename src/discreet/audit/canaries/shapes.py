"""How many right guesses a whole trade-off curve allows: claims with a shape.

The proofs are in docs/proofs/one_run_auditing.md.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import GaussianLoss, Loss, profile
from discreet.accounting import epsilon as epsilon_of

__all__ = ["GaussianShape", "LossShape", "Shape", "is_refuted", "mu_proved", "shape_of"]

_NORMAL = NormalDist()
_EPSILONS = 128  # lines that a curve is made of
_MOST_MU = 20.0
_HALVINGS = 40
_ROUNDING = 1e-9


class Shape(Protocol):
    """A claim: how rarely the unlikelier of two neighbours may have an event."""

    def least(self, chance: float, /) -> float:
        """Return the least chance that a neighbour has of an event of this chance."""
        ...


@final
@dataclass(frozen=True, slots=True)
class GaussianShape:
    """The shape of Gaussian noise at a distance of ``mu`` standard deviations.

    >>> round(GaussianShape(1.0).least(0.5), 4)
    0.1587
    """

    mu: float

    def least(self, chance: float, /) -> float:
        if not 0 < chance < 1:
            return chance
        return 0.5 * math.erfc((self.mu - _NORMAL.inv_cdf(chance)) / math.sqrt(2))

    def epsilon(self, *, delta: float) -> float:
        """Return the epsilon of this shape."""
        if self.mu <= 0:
            return 0.0
        return epsilon_of(GaussianLoss(noise_multiplier=1 / self.mu), delta=delta)


@final
@dataclass(frozen=True, slots=True)
class LossShape:
    """A claim of (epsilons[i], deltas[i]) for every i.

    >>> LossShape(np.array([math.log(2)]), np.array([0.1])).least(0.5)
    0.2
    """

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]

    def least(self, chance: float, /) -> float:
        lower = np.exp(-self.epsilons) * (chance - self.deltas)
        upper = 1 - self.deltas - np.exp(self.epsilons) * (1 - chance)
        return max(0.0, float(lower.max()), float(upper.max()))


def shape_of(loss: Loss, *, epsilon: float) -> LossShape:
    """Return the curve of a loss, by certified bounds, about twice as far as ``epsilon``.

    >>> curve = shape_of(GaussianLoss(noise_multiplier=1), epsilon=4)
    >>> GaussianShape(1.0).least(0.01) * 0.99 < curve.least(0.01) <= GaussianShape(1.0).least(0.01)
    True
    """
    far = 2 * epsilon + 1
    epsilons = np.concatenate([[0.0], np.geomspace(far / 1000, far, _EPSILONS - 1)])
    return LossShape(epsilons, np.asarray(profile(loss, epsilons=epsilons.tolist())))


def is_refuted(shape: Shape, right: int, *, guesses: int, pool: float, alpha: float) -> bool:
    """Whether ``right`` or more right guesses would have a chance below ``alpha``.

    ``pool`` is the number of canaries, or half of it where every guess is "included".

    Why: theorem 3 of the proof, after [MMC24]. Suppose the chance were alpha. A canary's coin
    turned over makes a right guess a wrong one, so the shape says how likely one right guess fewer
    must be, at least; and so on downwards. If the chances add up to more than 1, it was not alpha.

    >>> is_refuted(GaussianShape(0.5), 90, guesses=100, pool=1000, alpha=0.05)
    True
    >>> is_refuted(GaussianShape(2.0), 90, guesses=100, pool=1000, alpha=0.05)
    False
    """
    hits, misses, most = alpha * right / pool, alpha * (guesses - right) / pool, guesses / pool
    for count in range(right - 1, -1, -1):
        needed = shape.least(hits) * (1 - _ROUNDING)
        if needed <= misses:
            return False  # what is there is enough: nothing is added from here on
        hits += count / (guesses - count) * (needed - misses)
        misses = needed
        if hits + misses > most:
            return True
    return False


def mu_proved(right: int, *, guesses: int, pool: float, alpha: float) -> float:
    """Return the largest Gaussian shape that is refuted."""

    def refuted(mu: float) -> bool:
        return is_refuted(GaussianShape(mu), right, guesses=guesses, pool=pool, alpha=alpha)

    low, high = 0.0, _MOST_MU
    if not refuted(low):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
