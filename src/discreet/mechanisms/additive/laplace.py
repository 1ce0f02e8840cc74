"""Real numbers with Laplace noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, plain, positive, probability, whole
from discreet._rounding import log_one_over
from discreet.accounting import LaplaceLoss
from discreet.mechanisms.additive.continuous import check_grid, release_rounded, widened
from discreet.mechanisms.values.calibration import readable_up
from discreet.mechanisms.values.deviations import rounded_laplace_deviation
from discreet.mechanisms.values.grid import Grid
from discreet.noise import SYSTEM, Source, rounded_laplace

__all__ = ["Laplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Add Laplace noise to a real number, or to every entry of an array.

    Claim: if neighbouring inputs differ by at most ``sensitivity`` in L1 norm, one release is
    epsilon-DP with epsilon = sensitivity / scale, for the unit and the neighbouring relation
    that the sensitivity was computed for.

    Why: [DR14, Theorem 3.6] for the textbook mechanism, of which this is a post-processing: value
    and noise live on a power-of-two ``grid`` (2**-34 of the scale or the sensitivity unless
    declared), the noise is drawn exactly, and the sum is exact up to one final conversion. For what
    rounding can add to the sensitivity the noise is widened, by about 2**-34 of itself per
    coordinate on that grid. So low-order bits tell nothing, unlike those of
    ``value + numpy.random.laplace()`` [Mir12].

    >>> mechanism = Laplace.calibrated(epsilon=0.5, sensitivity=10)
    >>> mechanism
    Laplace(sensitivity=10, scale=20, grid=None)
    >>> mechanism.loss
    LaplaceLoss(noise_multiplier=Fraction(2, 1))
    >>> type(mechanism.release(1234.5)), mechanism.release(np.zeros((2, 3))).shape
    (<class 'float'>, (2, 3))
    >>> round(mechanism.error(confidence=0.95), 3)
    59.915
    """

    sensitivity: Number
    scale: Number
    grid: Number | None = None

    def __post_init__(self) -> None:
        positive(
            self.sensitivity,
            name="sensitivity",
            hint="It is the largest change of the whole vector in L1 norm.",
        )
        positive(
            self.scale,
            name="scale",
            hint="Pick one from a budget with Laplace.calibrated(epsilon=..., sensitivity=...).",
        )
        for name in ("sensitivity", "scale"):
            object.__setattr__(self, name, plain(getattr(self, name), name=name))
        check_grid(self.scale, self.sensitivity, self.grid)

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, sensitivity: Number, grid: Number | None = None
    ) -> Self:
        """Return the least noise that is ``epsilon``-DP.

        >>> Laplace.calibrated(epsilon=1, sensitivity=0.5).scale
        Fraction(1, 2)
        """
        budget = positive(epsilon, name="epsilon")
        distance = positive(sensitivity, name="sensitivity")
        return cls(sensitivity=sensitivity, scale=readable_up(distance / budget), grid=grid)

    @property
    def loss(self) -> LaplaceLoss:
        """What one release costs. Touches no data."""
        return LaplaceLoss(noise_multiplier=Fraction(self.scale) / Fraction(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """That of the noise on one number, rounding to the grid included.

        Entries of an array get hardly more, except on a coarse declared ``grid``.

        >>> round(Laplace(sensitivity=1, scale=10).standard_deviation, 2)
        14.14
        """
        grid, steps = self._noise(1)
        return rounded_laplace_deviation(steps) * float(grid.spacing)

    @overload
    def release(self, value: float, *, source: Source = ...) -> float: ...
    @overload
    def release(self, value: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.float64]: ...
    def release(self, value: Any, *, source: Source = SYSTEM) -> float | npt.NDArray[np.float64]:
        """Return ``value`` plus noise, on the grid.

        >>> Laplace(sensitivity=1, scale=2, grid=0.25).release(7.1) % 0.25
        0.0
        """
        return release_rounded(value, noise_for=self._noise, draw=rounded_laplace, source=source)

    def error(self, *, confidence: float, coordinates: int = 1) -> float:
        """Return a t with Pr[abs(released - value) <= t] >= confidence for each entry.

        ``coordinates`` is how many are released together; it hardly matters.

        >>> round(Laplace(sensitivity=1, scale=10).error(confidence=0.95), 2)
        29.96
        """
        decays = log_one_over(1 - probability(confidence, name="confidence"))
        grid, steps = self._noise(whole(coordinates, name="coordinates"))
        # Value and noise are each rounded by at most half a step.
        return (steps * decays + 1) * float(grid.spacing)

    def log_weight(self, x: Number) -> Fraction:
        """Return the log-density at ``x`` of the noise on one number up to a constant, exactly.

        It is that of the noise before it is rounded to the grid.

        >>> round(float(Laplace(sensitivity=1, scale=2).log_weight(-3)), 6)
        -1.5
        """
        grid, steps = self._noise(1)
        return -abs(exact(x, name="x")) / (Fraction(steps) * grid.spacing)

    def _noise(self, coordinates: int) -> tuple[Grid, float]:
        # A power of two, so that arrays of like size share one sampler.
        rounding = 1 << (coordinates - 1).bit_length()
        return widened(self.scale, self.sensitivity, self.grid, rounding)
