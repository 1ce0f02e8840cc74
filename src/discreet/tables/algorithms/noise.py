"""Noise for the engine's integers: one kind, one price, whatever the number of cells."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, float_up, positive, probability, refusal
from discreet._rounding import above, log_one_over
from discreet.accounting import GaussianLoss, LaplaceLoss
from discreet.mechanisms.parts import add_drawn, as_integers
from discreet.noise import SYSTEM, Source, rounded_gaussian, rounded_laplace
from discreet.tables.model.bounds import WEIGHT_STEPS

__all__ = ["Noise", "in_rows"]

_FAR = 37.0  # normal deviations: the chance of more is below 1e-298


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Add real noise, rounded to whole steps, to every cell of a table of whole steps.

    Claim: let neighbouring tables of integers differ by at most ``sensitivity`` rows (of
    WEIGHT_STEPS steps each) in the norm of order :attr:`order`, over all their cells together: 1
    for Laplace, 2 for Gaussian noise. Then one release has exactly the loss :attr:`loss`, for the
    neighbouring relation that the sensitivity was computed for, whatever the number of cells.

    Why: for an integer V and real noise Z, V + round(Z) = round(V + Z), so the release is a
    post-processing of the textbook mechanism with noise of scale ``multiplier`` times the
    sensitivity. For Gaussian noise that mechanism has one profile for all shifts of one length
    [BW18, Theorem 8]; a discrete Gaussian has not: its profile depends on the direction of the
    shift, and for vectors only a worse bound is known. For Laplace noise the worst shift is that of
    a single cell (docs/proofs/laplace_vectors.md). The scale is rounded up to a double.

    >>> noise = Noise(kind="gaussian", multiplier=2)
    >>> noise.loss
    GaussianLoss(noise_multiplier=2)
    >>> noise.add(np.zeros((2, 3), dtype=np.int64), sensitivity=Fraction(5)).shape
    (2, 3)
    >>> round(noise.deviation(sensitivity=Fraction(5)), 6)
    10.0
    """

    kind: Literal["laplace", "gaussian"]
    multiplier: Number

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise refusal("kind", "'laplace' or 'gaussian'", self.kind)
        positive(self.multiplier, name="multiplier")

    @property
    def order(self) -> Literal[1, 2]:
        """The norm that the sensitivity is measured in."""
        return 1 if self.kind == "laplace" else 2

    @property
    def loss(self) -> LaplaceLoss | GaussianLoss:
        """What noise on one table costs, all of its cells together. Touches no data."""
        if self.kind == "laplace":
            return LaplaceLoss(noise_multiplier=self.multiplier)
        return GaussianLoss(noise_multiplier=self.multiplier)

    def add(
        self, values: npt.NDArray[np.int64], *, sensitivity: Number, source: Source = SYSTEM
    ) -> npt.NDArray[np.int64]:
        """Return ``values``, in steps, with noise; sums stop at the ends of int64.

        >>> Noise(kind="laplace", multiplier=1).add(
        ...     np.array([2**62]), sensitivity=Fraction(3)).dtype
        dtype('int64')
        """
        scale, steps = self._scale(sensitivity), as_integers(values)
        draw = rounded_laplace if self.kind == "laplace" else rounded_gaussian
        return add_drawn(steps, lambda n: draw(scale, n, source=source), source=source)

    def deviation(self, sensitivity: Number) -> float:
        """Return the standard deviation of the noise on one cell, in rows.

        >>> round(Noise(kind="laplace", multiplier=1).deviation(sensitivity=3), 4)  # 3 sqrt(2)
        4.2426
        """
        scale = self._scale(sensitivity)
        variance = scale**2 * (2 if self.kind == "laplace" else 1) + 1 / 12
        return math.sqrt(variance) / WEIGHT_STEPS

    def quantile(self, confidence: Number, sensitivity: Number) -> float:
        """Return a t with Pr[abs(noise) <= t] >= confidence, in rows.

        >>> round(Noise(kind="gaussian", multiplier=1).quantile(confidence=0.95, sensitivity=1), 4)
        1.96
        """
        miss = 1 - probability(confidence, name="confidence")
        return self.reach(miss / 2, sensitivity=sensitivity)

    def reach(self, miss: Number, sensitivity: Number) -> float:
        """Return an x >= 0 with Pr[noise > x] <= miss and Pr[noise < -x] <= miss, in rows.

        >>> round(Noise(kind="laplace", multiplier=1).reach(0.05, sensitivity=1), 4)  # log 10
        2.3026
        """
        chance = min(probability(miss, name="miss"), Fraction(1, 2))
        decays = log_one_over(2 * chance) if chance < Fraction(1, 2) else 0.0
        if self.kind == "laplace":
            size = decays
        elif chance > Fraction(1, 10**12):
            size = -NormalDist().inv_cdf(float(chance)) * (1 + 1e-9)
        else:  # Pr[Z > x] <= exp(-x**2 / 2) / 2
            size = math.sqrt(2 * decays)
        return (size * self._scale(sensitivity) + 0.5) / WEIGHT_STEPS  # rounding adds half a step

    def tail(self, x: float, sensitivity: Number) -> float:
        """Return an upper bound on Pr[noise >= x], x in rows.

        Why: the rounded noise reaches x only if the real noise reaches x less half a step. The
        formulas are right to a few units in the last place of a double, which the margin covers:
        a relative error e in the argument z costs e z in log for Laplace and e z**2 for Gaussian
        noise, and z is at most 710 and 37 before the result is below all other doubles.

        >>> noise = Noise(kind="laplace", multiplier=1)
        >>> round(noise.tail(10, sensitivity=1) * math.exp(10), 5), noise.tail(-50, sensitivity=1)
        (0.5, 1.0)
        """
        z = (x * WEIGHT_STEPS - 0.5) / self._scale(sensitivity)
        return self.tail_at(z)

    def tail_at(self, z: float) -> float:
        """Return an upper bound on Pr[real noise >= z], z in its scales.

        >>> Noise(kind="gaussian", multiplier=1).tail_at(100) < 1e-290
        True
        """
        if self.kind == "laplace":
            value = math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2
        else:
            value = math.erfc(min(z, _FAR) * math.sqrt(0.5)) / 2
        return min(1.0, above(value, relative=1e-11))

    def scale(self, sensitivity: Number) -> float:
        """Return the scale of the real noise, in rows.

        >>> Noise(kind="gaussian", multiplier=2).scale(sensitivity=3)
        6.0
        """
        return self._scale(sensitivity) / WEIGHT_STEPS

    def _scale(self, sensitivity: Number) -> float:
        """Return the scale of the real noise in steps."""
        reach = positive(sensitivity, name="sensitivity") * WEIGHT_STEPS
        return float_up(Fraction(self.multiplier) * reach)


def in_rows(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return noisy steps as rows, which is post-processing.

    >>> in_rows(np.array([WEIGHT_STEPS * 3 // 2]))
    array([1.5])
    """
    return steps / WEIGHT_STEPS
