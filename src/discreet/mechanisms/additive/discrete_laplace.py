"""Integers with two-sided geometric noise: the discrete Laplace mechanism."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, plain, positive, probability, whole
from discreet._rounding import log_one_over
from discreet.accounting import DiscreteLaplaceLoss
from discreet.mechanisms.values.arrays import add_drawn, as_integers, is_scalar
from discreet.mechanisms.values.calibration import readable_up
from discreet.mechanisms.values.deviations import two_sided_geometric_deviation
from discreet.noise import SYSTEM, Source, discrete_laplace

__all__ = ["DiscreteLaplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Add two-sided geometric noise to an integer, or to every entry of an integer array.

    Claim: if neighbouring inputs differ by at most ``sensitivity`` in L1 norm, one release is
    epsilon-DP with epsilon = sensitivity / scale, for the unit and the neighbouring relation
    that the sensitivity was computed for.

    Why: log Pr[noise = k] is -abs(k) / scale plus a constant, so moving the centre by d moves
    every log-probability by at most sum(abs(d)) / scale [GRS12, Section 2]. Its profile is that of
    the scalar shift ``sensitivity``, the worst vector of that norm (docs/proofs/laplace_vectors).

    Int64 arrays saturate at the ends of the range; Python integers are unbounded.

    >>> mechanism = DiscreteLaplace.calibrated(epsilon=0.5, sensitivity=1)
    >>> mechanism
    DiscreteLaplace(sensitivity=1, scale=2)
    >>> mechanism.loss
    DiscreteLaplaceLoss(noise_multiplier=Fraction(2, 1), sensitivity=1)
    >>> type(mechanism.release(42)), mechanism.release(np.array([3, 4])).shape
    (<class 'int'>, (2,))
    >>> mechanism.error(confidence=0.95)
    6
    """

    sensitivity: int
    scale: Number

    def __post_init__(self) -> None:
        whole(
            self.sensitivity,
            name="sensitivity",
            hint="It is the largest change of the whole integer vector in L1 norm.",
        )
        positive(
            self.scale,
            name="scale",
            hint="Pick one from a budget with "
            "DiscreteLaplace.calibrated(epsilon=..., sensitivity=...).",
        )
        for name in ("sensitivity", "scale"):
            object.__setattr__(self, name, plain(getattr(self, name), name=name))

    @classmethod
    def calibrated(cls, *, epsilon: Number, sensitivity: int) -> Self:
        """Return the least noise that is ``epsilon``-DP.

        >>> DiscreteLaplace.calibrated(epsilon=Fraction(1, 3), sensitivity=2)
        DiscreteLaplace(sensitivity=2, scale=6)
        """
        budget = positive(epsilon, name="epsilon")
        distance = whole(sensitivity, name="sensitivity")
        return cls(sensitivity=sensitivity, scale=readable_up(distance / budget))

    @property
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release costs. Touches no data."""
        multiplier = Fraction(self.scale) / int(self.sensitivity)
        return DiscreteLaplaceLoss(noise_multiplier=multiplier, sensitivity=int(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """That of the noise on each entry.

        >>> round(DiscreteLaplace(sensitivity=1, scale=10).standard_deviation, 2)
        14.14
        """
        return two_sided_geometric_deviation(float(self.scale))

    @overload
    def release(self, value: int, *, source: Source = ...) -> int: ...
    @overload
    def release(self, value: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.int64]: ...
    def release(self, value: Any, *, source: Source = SYSTEM) -> int | npt.NDArray[np.int64]:
        """Return ``value`` plus noise drawn exactly, never through floats.

        >>> DiscreteLaplace(sensitivity=1, scale=2).release(2.5)
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: values must be integers, got float64. Round them first, ...
        """
        if type(value) is int:
            return discrete_laplace(self.scale, centre=value, source=source)
        values = as_integers(value)
        if is_scalar(value):
            return discrete_laplace(self.scale, centre=int(values), source=source)
        return add_drawn(
            values, lambda n: discrete_laplace(self.scale, n, source=source), source=source
        )

    def error(self, *, confidence: float) -> int:
        """Return the smallest t with Pr[abs(noise) <= t] >= confidence, for one entry.

        >>> DiscreteLaplace(sensitivity=1, scale=10).error(confidence=0.95)
        30
        """
        decays = log_one_over(1 - probability(confidence, name="confidence"))
        # Pr[abs(noise) > t] = 2 ratio**(t + 1) / (1 + ratio)
        ratio = math.exp(-float(min(1 / Fraction(self.scale), Fraction(745))))
        above = Fraction(self.scale) * Fraction(decays + math.log(2 / (1 + ratio)))
        return max(0, math.ceil(above) - 1)

    def log_weight(self, k: int) -> Fraction:
        """Return log Pr[noise = k] up to a constant, exactly.

        >>> DiscreteLaplace(sensitivity=1, scale=2).log_weight(-3)
        Fraction(-3, 2)
        """
        return -abs(k) / Fraction(self.scale)
