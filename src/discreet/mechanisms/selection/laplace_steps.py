"""Scores on a fine grid with discrete Laplace noise, for the one and for the k best of them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, refusal
from discreet._rounding import log_of
from discreet.mechanisms.selection.scores import choice_rate
from discreet.mechanisms.values.grid import Grid
from discreet.mechanisms.values.grid_steps import exact_steps, steps_below_best
from discreet.noise import Source, discrete_laplace

__all__ = ["LaplaceSteps", "Steps", "laplace_winners"]

_FARTHEST_WINNER: Final = 60.0  # noise scales
_WIDE: Final = 1 << 45  # steps; scores up to 2**16 noise scales apart are told apart

Scores = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Steps = npt.NDArray[Any]  # int64, or Python integers where 64 bits could not hold them


@final
@dataclass(frozen=True, slots=True)
class LaplaceSteps:
    """Hold scores as integer steps of a fine grid and the discrete Laplace noise they get.

    Claim: scores that move by at most the sensitivity move by at most ``reach / 2`` steps (reach
    if monotone), and the noise has scale winners * reach / epsilon steps.

    >>> steps = LaplaceSteps.of(1, 1, False, winners=1)
    >>> steps.reach, steps.scale, steps.grid
    (2097152, Fraction(2097152, 1), Grid(exponent=-20))
    """

    grid: Grid
    reach: int
    scale: Fraction

    @classmethod
    @lru_cache(maxsize=64, typed=True)
    def of(cls, epsilon: Number, sensitivity: Number, monotone: bool, *, winners: int) -> Self:
        """Choose a grid so fine that neither ties nor rounding up the sensitivity matter."""
        distance = positive(sensitivity, name="sensitivity")
        scale = 1 / choice_rate(epsilon, sensitivity, monotone)
        # Finer than the noise, and finer than the sensitivity unless that would take the noise
        # to more than 2**45 steps.
        grid = Grid.below(min(scale, max(distance, scale / 2**24)), bits=20)
        reach = math.ceil(distance / grid.spacing) * (1 if monotone else 2)
        steps = winners * reach / positive(epsilon, name="epsilon")
        if steps > 2**900:
            raise refusal("epsilon", "a number above 1e-250", epsilon)
        return cls(grid, reach, steps)

    def noisy(self, scores: Scores, *, source: Source) -> Steps:
        """Return scores plus noise in steps, exactly, whatever their size.

        Scores some 10**12 noise scales from zero, and noise as wide, take the slow way through
        Python's integers. An outsider who measures time may learn that a score lies there.
        """
        return self._plus_noise(exact_steps(self.grid, scores), source)

    def noisy_below_best(self, scores: Scores, *, source: Source) -> Steps:
        """Return the same less the best score, where those too far below it count as FARTHEST.

        That is the one to take where only differences to the winner matter: it does the same work
        for all scores. Its law is that of scores none of which moves further than before
        (see :func:`steps_below_best`), less one number from all of them. Noise that may not fit 64
        bits, which depends on the parameters alone, is added to exact scores instead.
        """
        if self.scale > _WIDE:
            return self.noisy(scores, source=source)
        return self._plus_noise(-steps_below_best(self.grid, scores), source)

    def _plus_noise(self, steps: Steps, source: Source) -> Steps:
        noise: Steps = discrete_laplace(self.scale, steps.shape, source=source)
        is_narrow = steps.dtype != object and noise.dtype != object
        if is_narrow and max(int(noise.max()), -int(noise.min())) < 1 << 62:
            return steps + noise
        wide: Steps = steps.astype(object) + noise.astype(object)
        return wide

    def to_beat(self, others: Steps, *, before: int) -> int:
        """Return the least value that wins against ``others``, the first ``before`` in ties."""
        sides = ((others[:before], 1), (others[before:], 0))
        return max(int(side.max()) + edge for side, edge in sides if side.size)

    def in_scores(self, steps: int) -> float:
        """Return a number of steps as a difference of scores: one rounding, after the choice."""
        distance = steps * self.grid.spacing
        return float(distance) if abs(distance) < 2**1023 else math.copysign(math.inf, steps)

    def shortfall(self, miss: Fraction, *, pairs: int) -> float:
        """Return t so that none of ``pairs`` differences of noise reaches t, except with ``miss``.

        Why: with p = exp(-1/scale), the difference of two discrete Laplace variables is at least
        k >= 0 with probability p^k ((1 - p) k + p + (1 + p^2) / (1 + p)) / (1 + p)^2. Scores
        more than k steps apart are k steps apart or more after rounding.
        """
        if pairs == 0:
            return 0.0
        inverse = float(1 / self.scale)
        p, q = math.exp(-inverse), -math.expm1(-inverse)
        wanted = log_of(miss / pairs)

        def log_tail(k: int) -> float:
            front = (q * k + p + (1 + p * p) / (1 + p)) / (1 + p) ** 2
            return math.log(front) - k * inverse

        high = 1
        while log_tail(high) > wanted:
            high *= 2
        low = 0 if high == 1 else high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if log_tail(middle) <= wanted else (middle, high)
        return self.in_scores(0 if log_tail(0) <= wanted else high)


def laplace_winners(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return who is largest with which chance, where each place gets Laplace noise of scale 1.

    >>> laplace_winners(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    # Nobody wins further from the best place than this, but with a chance that doubles drop.
    known = np.clip(places - places.max(), -_FARTHEST_WINNER, 0.0)
    corners = np.unique(np.concatenate([known, np.arange(-_FARTHEST_WINNER, _FARTHEST_WINNER + 1)]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    middle, half = (corners[1:] + corners[:-1]) / 2, np.diff(corners) / 2
    at = (middle[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel()
    apart = at[:, None] - known
    tail = np.exp(-np.abs(apart)) / 2  # the density, and the chance beyond
    below = np.where(apart < 0, tail, 1 - tail)
    others = np.exp(np.log(below).sum(axis=1, keepdims=True) - np.log(below))
    chances = mass @ (tail * others)
    return np.asarray(chances / chances.sum(), dtype=np.float64)
