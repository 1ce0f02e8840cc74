"""Integers with discrete Gaussian noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, plain, positive, probability, whole
from discreet.accounting import DiscreteGaussianLoss, calibrate
from discreet.errors import DataError
from discreet.mechanisms.values.arrays import add_drawn, as_integers, is_scalar
from discreet.mechanisms.values.deviations import lattice_gaussian_deviation
from discreet.mechanisms.values.tails import normal_quantile
from discreet.noise import SYSTEM, Source, discrete_gaussian

__all__ = ["DiscreteGaussian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to an integer, or to every entry of an integer array.

    Claim: if neighbouring inputs differ by at most ``sensitivity`` in L2 norm, one release is
    rho-zCDP with rho = (sensitivity / sigma)**2 / 2 [CKS20, Theorem 14], and
    (epsilon, delta)-DP as ``loss`` states: exactly for ``dimension=1`` [CKS20, Theorem 7]
    and whenever ``sensitivity**2 < 2``, where one entry changes by one.

    Why not the Gaussian's own profile: for vectors the discrete law depends on the shift and not
    on its norm alone, and can be slightly worse than the continuous one.

    ``dimension=None`` accepts a number or an array of any shape. Int64 arrays saturate at the ends
    of the range; Python integers are unbounded.

    >>> mechanism = DiscreteGaussian(sensitivity=1, sigma=4)
    >>> mechanism.loss
    DiscreteGaussianLoss(sigma=4, sensitivity=1, dimension=None)
    >>> type(mechanism.release(42)), mechanism.release(np.zeros(3, dtype=np.int64)).dtype
    (<class 'int'>, dtype('int64'))
    >>> mechanism.error(confidence=0.95)
    8
    """

    sensitivity: Number
    sigma: Number
    dimension: int | None = None

    def __post_init__(self) -> None:
        positive(
            self.sensitivity,
            name="sensitivity",
            hint="It is the largest change of the whole integer vector in L2 norm.",
        )
        positive(
            self.sigma,
            name="sigma",
            hint="Pick one from a budget with "
            "DiscreteGaussian.calibrated(epsilon=..., delta=..., sensitivity=...).",
        )
        if self.dimension is not None:
            whole(self.dimension, name="dimension", hint="Leave it out to allow any shape.")
        for name in ("sensitivity", "sigma"):
            object.__setattr__(self, name, plain(getattr(self, name), name=name))

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, delta: Number, sensitivity: Number, dimension: int | None = None
    ) -> Self:
        """Return the least noise that is certified to be (epsilon, delta)-DP.

        >>> mechanism = DiscreteGaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
        >>> round(mechanism.sigma, 3)
        3.74
        """
        positive(epsilon, name="epsilon")
        probability(delta, name="delta", hint="Only noise without a tail could reach delta = 0.")
        positive(sensitivity, name="sensitivity")

        def at(sigma: float) -> DiscreteGaussianLoss:
            return DiscreteGaussianLoss(sigma=sigma, sensitivity=sensitivity, dimension=dimension)

        sigma = calibrate(at, epsilon=epsilon, delta=delta)
        return cls(sensitivity=sensitivity, sigma=sigma, dimension=dimension)

    @property
    def loss(self) -> DiscreteGaussianLoss:
        """What one release costs. Touches no data."""
        return DiscreteGaussianLoss(
            sigma=self.sigma, sensitivity=self.sensitivity, dimension=self.dimension
        )

    @property
    def standard_deviation(self) -> float:
        """That of the noise on each entry: sigma, or less where sigma is below 1.

        >>> DiscreteGaussian(sensitivity=1, sigma=10).standard_deviation
        10.0
        """
        return lattice_gaussian_deviation(float(self.sigma))

    @overload
    def release(self, value: int, *, source: Source = ...) -> int: ...
    @overload
    def release(self, value: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.int64]: ...
    def release(self, value: Any, *, source: Source = SYSTEM) -> int | npt.NDArray[np.int64]:
        """Return ``value`` plus noise drawn exactly, never through floats.

        >>> DiscreteGaussian(sensitivity=3, sigma=9, dimension=1).release([1, 2])
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: values must have 1 entry for dimension=1, got 2. ...
        """
        if type(value) is int and self.dimension in (None, 1):
            return discrete_gaussian(self.sigma, centre=value, source=source)
        values = as_integers(value)
        if self.dimension is not None and values.size != self.dimension:
            entries = "entry" if self.dimension == 1 else "entries"
            raise DataError(
                f"values must have {self.dimension} {entries} for dimension={self.dimension}, "
                f"got {values.size}. Leave dimension out to allow any shape."
            )
        if is_scalar(value):
            return discrete_gaussian(self.sigma, centre=int(values), source=source)
        return add_drawn(
            values, lambda n: discrete_gaussian(self.sigma, n, source=source), source=source
        )

    def error(self, *, confidence: float) -> int:
        """Return a t with Pr[abs(noise) <= t] >= confidence for one entry; at most one too many.

        Why: a sum over k > t of a decreasing function is below its integral from t, and the whole
        sum is at least sigma * sqrt(2 pi) by Poisson summation, so the discrete tail is lighter.

        >>> DiscreteGaussian(sensitivity=1, sigma=100).error(confidence=0.95)
        196
        """
        deviations = normal_quantile(probability(confidence, name="confidence"))
        return math.ceil(Fraction(self.sigma) * Fraction(deviations))

    def log_weight(self, k: int) -> Fraction:
        """Return log Pr[noise = k] up to a constant, exactly.

        >>> DiscreteGaussian(sensitivity=1, sigma=2).log_weight(-3)
        Fraction(-9, 8)
        """
        return -Fraction(k * k) / (2 * Fraction(self.sigma) ** 2)
