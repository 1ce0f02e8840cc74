"""The discrete Gaussian mechanism: exact for scalars, the worst integer shift for vectors."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet._exact import Number, plain, positive, whole
from discreet._rounding import nearest
from discreet.accounting.arithmetic.concentrated import zcdp_delta
from discreet.accounting.arithmetic.integer_shifts import enumerated_shift_delta, is_enumerable
from discreet.accounting.arithmetic.lattice_gaussian import lattice_gaussian_delta
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import AtomsPair, Pair

__all__ = ["DiscreteGaussianLoss"]

_WIDEST_ATOMS = 2000  # sigma up to which every integer is listed
_NARROWEST, _WIDEST = Fraction(1, 10**90), Fraction(10**90)  # variances, for bounds from below
_LARGEST_ENUMERATED = 16  # sensitivity up to which every kind of integer shift is looked at


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianLoss(Loss):
    """Describe integer noise Pr[k] ~ exp(-k^2 / (2 sigma^2)) on each coordinate independently.

    ``sensitivity`` bounds the L2 distance of neighbouring integer vectors, in the same units as
    ``sigma``; ``dimension`` says how many coordinates there are, ``None`` any number.

    Claim: with dimension 1 the operation is (e, delta(e))-DP with delta(e) exact for the largest
    whole shift within the sensitivity. Otherwise delta(e) is the worst over all integer shifts
    (exact when sensitivity^2 < 2, or below 26 with sigma up to 8), or the bound that follows
    from sensitivity^2 / (2 sigma^2)-zCDP where that is smaller or the shifts are too many. It
    holds for the neighbouring relation for which the sensitivity was computed.

    Why: the scalar profile is [CKS20, Theorem 7] and grows with the shift
    (docs/proofs/laplace_vectors.md); the zCDP bound is [CKS20, Theorem 14]; the reduction of a
    vector shift to a scalar one is in :func:`_worst_shift_delta`. The vector loss depends on the
    shift, not on its norm alone, so the continuous formula must not be used.

    >>> from discreet.accounting import delta
    >>> f"{delta(DiscreteGaussianLoss(sigma=4, sensitivity=1, dimension=1), epsilon=1):.4g}"
    '3.055e-06'
    """

    sigma: Number
    sensitivity: Number
    dimension: int | None = None
    kind: ClassVar[str] = "discrete_gaussian"

    def __post_init__(self) -> None:
        positive(self.sigma, name="sigma")
        positive(self.sensitivity, name="sensitivity")
        object.__setattr__(self, "sigma", plain(self.sigma, name="sigma"))
        object.__setattr__(self, "sensitivity", plain(self.sensitivity, name="sensitivity"))
        if self.dimension is not None:
            object.__setattr__(self, "dimension", whole(self.dimension, name="dimension"))

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter: the largest squared integer shift over 2 sigma^2, exactly."""
        return self._squared_shift / (2 * Fraction(self.sigma) ** 2)

    @property
    def epsilon_pure(self) -> Fraction | float:
        """Infinity, except that below a sensitivity of 1 no integer can move at all."""
        return math.inf if self._squared_shift else Fraction(0)

    def group(self, k: int) -> "DiscreteGaussianLoss":
        """Return the loss for k units: the distance is k times as large.

        >>> DiscreteGaussianLoss(sigma=2, sensitivity=1).group(2)
        DiscreteGaussianLoss(sigma=2, sensitivity=Fraction(2, 1), dimension=None)
        """
        return DiscreteGaussianLoss(
            sigma=self.sigma,
            sensitivity=Fraction(self.sensitivity) * whole(k, name="k"),
            dimension=self.dimension,
        )

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(DiscreteGaussianLoss(sigma=2, sensitivity=1).delta_upper(epsilon=1), 4)
        0.0072
        """
        target, variance = Fraction(epsilon), Fraction(self.sigma) ** 2
        squared = int(self._squared_shift)
        if squared == 0:
            return 0.0
        if self.dimension == 1 or squared == 1:
            shift = math.isqrt(squared)
            return lattice_gaussian_delta(variance=variance, shift=shift, epsilon=target)
        concentrated = zcdp_delta(rho=self.rho, epsilon=target)
        if is_enumerable(variance=variance, squared=squared):
            worst = enumerated_shift_delta(
                variance=variance, squared=squared, dimension=self.dimension, epsilon=target
            )
        else:
            worst = _worst_shift_delta(variance=variance, squared=squared, epsilon=target)
        return min(concentrated, worst)

    @property
    def is_tight(self) -> bool:
        """Whether all shifts are looked at, or the worst is known and fits the dimension."""
        variance, squared = Fraction(self.sigma) ** 2, int(self._squared_shift)
        if not _NARROWEST < variance * squared <= variance * squared**2 < _WIDEST:
            return False
        if self.dimension == 1 or squared == 1 or is_enumerable(variance=variance, squared=squared):
            return True
        return self._fits_ones and _is_worst_shift_known(variance=variance, squared=squared)

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return the pair of a shift along (1, ..., 1) where it is known, else along one axis.

        >>> pair, _ = DiscreteGaussianLoss(sigma=3, sensitivity=2).attained_pairs()
        >>> round(pair.lattice[1], 4)  # 1 / sigma^2
        0.1111
        """
        squared, sigma = int(self._squared_shift), nearest(Fraction(self.sigma))
        if not squared or not 1e-2 < sigma * math.sqrt(squared) < _WIDEST_ATOMS or sigma <= 1e-2:
            return None
        shift, entries = math.isqrt(squared), 1
        known = _is_worst_shift_known(variance=Fraction(self.sigma) ** 2, squared=squared)
        if squared > 1 and self._fits_ones and known:
            shift = entries = squared
        pair = _shifted(sigma * math.sqrt(entries) * (1 + 1e-15), shift)
        return pair, pair

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the law and its shift where that is the whole truth; else go by the profile.

        >>> removing, adding = DiscreteGaussianLoss(sigma=2, sensitivity=1).pairs()
        >>> removing is adding
        True
        """
        squared, sigma = int(self._squared_shift), nearest(Fraction(self.sigma))
        if (self.dimension == 1 or squared == 1) and squared and 1e-2 < sigma < _WIDEST_ATOMS:
            pair = _shifted(sigma, math.isqrt(squared))
            return pair, pair
        return Loss.pairs(self)

    @property
    def _fits_ones(self) -> bool:
        """Whether there are coordinates enough for a shift by 1 in each."""
        return self.dimension is None or self.dimension >= self._squared_shift

    @property
    def _squared_shift(self) -> Fraction:
        if self.dimension == 1:
            return Fraction(math.floor(self.sensitivity) ** 2)
        return Fraction(math.floor(Fraction(self.sensitivity) ** 2))

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """The rho above [CKS20, Theorem 14]."""
        return self.rho, Fraction(0)


def _shifted(sigma: float, shift: int) -> AtomsPair:
    """Return the pair of a discrete Gaussian and its shift: losses (D^2/2 - k D) / sigma^2."""
    reach = math.ceil(38 * sigma) + 2  # beyond, less than 1e-300 is left
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-((k / sigma) ** 2) / 2)
    spacing = shift / sigma**2 * (1 + 1e-15)
    losses = (shift / 2 - k) * spacing
    origin = float(losses[-1])
    return AtomsPair(
        origin + spacing * (reach - k),
        weight / weight.sum() * (1 + 1e-12),
        infinite=1e-300,
        missing=1e-300,
        lattice=(origin, spacing),
    )


def _worst_shift_delta(*, variance: Fraction, squared: int, epsilon: Fraction) -> float:
    """Return the largest delta over integer shifts d with |d|^2 <= squared; 1.0 if not provable.

    Write d = g c with g the greatest common divisor, M = |c|^2. The privacy loss depends on the
    noise x only through y = <c, x>, and the law of y is the discrete Gaussian of variance
    M sigma^2 up to a factor 1 +- t: the points x with <c, x> = y form a shifted lattice orthogonal
    to c, and Poisson summation over its dual (the projection of the integer grid, whose vectors
    have squared length at least 1/M) gives

        t <= exp(-(2 pi^2 sigma^2 - 1) / M + 0.8226 M).

    So delta is that of the scalar shift g M at variance M sigma^2. For one g it grows with M,
    because c = (1, ..., 1) with one entry more is the same mechanism with one more coordinate
    shown. That leaves one M for each g. docs/proofs/laplace_vectors.md has the details.
    """
    if not _is_worst_shift_known(variance=variance, squared=squared):
        return 1.0
    return max(
        lattice_gaussian_delta(
            variance=variance * (squared // g**2), shift=g * (squared // g**2), epsilon=epsilon
        )
        for g in range(1, math.isqrt(squared) + 1)
    )


def _is_worst_shift_known(*, variance: Fraction, squared: int) -> bool:
    """Say whether t is small enough: the margin of the scalar profile covers up to 1.7e-15."""
    if math.isqrt(squared) > _LARGEST_ENUMERATED:
        return False
    return -(2 * math.pi**2 * nearest(variance) - 1) / squared + 0.8226 * squared <= -34
