"""Real numbers with Gaussian noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, plain, positive, probability, whole
from discreet.accounting import GaussianLoss, calibrate
from discreet.mechanisms.additive.continuous import check_grid, release_rounded, widened
from discreet.mechanisms.values.deviations import rounded_gaussian_deviation
from discreet.mechanisms.values.grid import Grid
from discreet.mechanisms.values.tails import normal_quantile
from discreet.noise import SYSTEM, Source, rounded_gaussian

__all__ = ["Gaussian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Add Gaussian noise to a real number, or to every entry of an array.

    Claim: if neighbouring inputs differ by at most ``sensitivity`` in L2 norm, one release has
    the exact profile of the Gaussian mechanism with noise multiplier sigma / sensitivity, for the
    unit and the neighbouring relation that the sensitivity was computed for.

    Why: [BW18, Theorem 8] for the textbook mechanism, of which this is a post-processing: value
    and noise live on a power-of-two ``grid`` (2**-34 of sigma or the sensitivity unless declared),
    the noise is drawn exactly, and the sum is exact up to one final conversion. For what rounding
    can add to the sensitivity the noise is widened, by about 2**-34 of itself times the root of the
    number of coordinates on that grid.

    >>> mechanism = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
    >>> round(mechanism.sigma, 4)
    3.7306
    >>> type(mechanism.release(1234.5)), mechanism.release(np.zeros((2, 3))).shape
    (<class 'float'>, (2, 3))
    >>> round(mechanism.error(confidence=0.95), 3)
    7.312
    """

    sensitivity: Number
    sigma: Number
    grid: Number | None = None

    def __post_init__(self) -> None:
        positive(
            self.sensitivity,
            name="sensitivity",
            hint="It is the largest change of the whole vector in L2 norm.",
        )
        positive(
            self.sigma,
            name="sigma",
            hint="Pick one from a budget with "
            "Gaussian.calibrated(epsilon=..., delta=..., sensitivity=...).",
        )
        for name in ("sensitivity", "sigma"):
            object.__setattr__(self, name, plain(getattr(self, name), name=name))
        check_grid(self.sigma, self.sensitivity, self.grid)

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, delta: Number, sensitivity: Number, grid: Number | None = None
    ) -> Self:
        """Return the least noise that is (epsilon, delta)-DP, for any epsilon [BW18, Algorithm 1].

        >>> round(Gaussian.calibrated(epsilon=10, delta=1e-6, sensitivity=0.5).sigma, 4)
        0.2705
        """
        distance = positive(sensitivity, name="sensitivity")
        positive(epsilon, name="epsilon")
        probability(delta, name="delta", hint="Only noise without a tail could reach delta = 0.")
        # Searched for in sigma itself, so that the very loss this mechanism will state fits.
        sigma = calibrate(
            lambda sigma: GaussianLoss(noise_multiplier=Fraction(sigma) / distance),
            epsilon=epsilon,
            delta=delta,
        )
        return cls(sensitivity=sensitivity, sigma=sigma, grid=grid)

    @property
    def loss(self) -> GaussianLoss:
        """What one release costs. Touches no data."""
        return GaussianLoss(noise_multiplier=Fraction(self.sigma) / Fraction(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """That of the noise on one number, rounding to the grid included.

        Entries of an array get hardly more, except on a coarse declared ``grid``.

        >>> round(Gaussian(sensitivity=1, sigma=10).standard_deviation, 2)
        10.0
        """
        grid, steps = self._noise(1)
        return rounded_gaussian_deviation(steps) * float(grid.spacing)

    @overload
    def release(self, value: float, *, source: Source = ...) -> float: ...
    @overload
    def release(self, value: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.float64]: ...
    def release(self, value: Any, *, source: Source = SYSTEM) -> float | npt.NDArray[np.float64]:
        """Return ``value`` plus noise, on the grid.

        >>> Gaussian(sensitivity=1, sigma=2, grid=0.25).release(7.1) % 0.25
        0.0
        """
        return release_rounded(value, noise_for=self._noise, draw=rounded_gaussian, source=source)

    def error(self, *, confidence: float, coordinates: int = 1) -> float:
        """Return a t with Pr[abs(released - value) <= t] >= confidence for each entry.

        ``coordinates`` is how many are released together; it hardly matters.

        >>> round(Gaussian(sensitivity=1, sigma=10).error(confidence=0.95), 2)
        19.6
        """
        deviations = normal_quantile(probability(confidence, name="confidence"))
        grid, steps = self._noise(whole(coordinates, name="coordinates"))
        # Value and noise are each rounded by at most half a step.
        return (steps * deviations + 1) * float(grid.spacing)

    def log_weight(self, x: Number) -> Fraction:
        """Return the log-density at ``x`` of the noise on one number up to a constant, exactly.

        It is that of the noise before it is rounded to the grid.

        >>> round(float(Gaussian(sensitivity=1, sigma=2).log_weight(-3)), 6)
        -1.125
        """
        grid, steps = self._noise(1)
        return -(exact(x, name="x") ** 2) / (2 * (Fraction(steps) * grid.spacing) ** 2)

    def _noise(self, coordinates: int) -> tuple[Grid, float]:
        # The root of a power of four, so that arrays of like size share one sampler.
        rounding = 1 << -(-(coordinates - 1).bit_length() // 2)
        return widened(self.sigma, self.sensitivity, self.grid, rounding)
