"""The Gaussian mechanism, exactly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, plain, positive, whole
from discreet._rounding import above, nearest, sum_up
from discreet.accounting import renyi
from discreet.accounting.arithmetic.mills import mills_drop, normal_density
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import GaussianPair, Pair

__all__ = ["GaussianLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianLoss(Loss):
    """Describe Gaussian noise of standard deviation ``noise_multiplier`` times the L2 sensitivity.

    Claim: the operation is (e, delta(e))-DP exactly for delta(e) = Phi(1/(2m) - e m) -
    exp(e) Phi(-1/(2m) - e m), m the noise multiplier, in any dimension, also after rounding or any
    other post-processing. It holds for the neighbouring relation for which the L2 sensitivity was
    computed.

    Why: [BW18, Theorem 8]. With a = e m - 1/(2m), b = a + 1/m and the Mills ratio R it equals
    phi(a) (R(a) - R(b)), which is what is evaluated: nothing overflows and no digits cancel.

    >>> from discreet.accounting import delta, epsilon
    >>> f"{delta(GaussianLoss(noise_multiplier=1), epsilon=8):.3e}"
    '3.651e-15'
    >>> round(epsilon(GaussianLoss(noise_multiplier=3.7306317), delta=1e-5), 5)
    1.0
    """

    noise_multiplier: Number
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        positive(self.noise_multiplier, name="noise_multiplier")
        object.__setattr__(
            self, "noise_multiplier", plain(self.noise_multiplier, name="noise_multiplier")
        )

    @property
    def epsilon_pure(self) -> float:
        """Infinity: Gaussian noise is never pure."""
        return math.inf

    def group(self, k: int) -> "GaussianLoss":
        """Return the loss for k units: the distance is k times as large.

        >>> GaussianLoss(noise_multiplier=2).group(2)
        GaussianLoss(noise_multiplier=Fraction(1, 1))
        """
        return GaussianLoss(noise_multiplier=Fraction(self.noise_multiplier) / whole(k, name="k"))

    @property
    def is_tight(self) -> bool:
        """Yes: the worst shift has this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up by a relative 2e-11.

        >>> round(GaussianLoss(noise_multiplier=2).delta_upper(epsilon=1), 4)
        0.0068
        """
        multiplier = Fraction(self.noise_multiplier)
        # Exact before the one rounding: e m and 1/(2m) may nearly cancel, and phi(a) would
        # amplify the error of their float difference.
        a = nearest(Fraction(epsilon) * multiplier - 1 / (2 * multiplier))
        if a < -8:
            return 1.0  # the truth is above 1 - 1e-14
        if a > 40:
            return above(0.0, relative=0)
        value = normal_density(a) * mills_drop(a, nearest(1 / multiplier))
        return above(value, relative=2e-11)

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """1 / (2 m^2), exactly [BS16, Proposition 1.6]."""
        return 1 / (2 * Fraction(self.noise_multiplier) ** 2), Fraction(0)

    @property
    def gaussian_multiplier(self) -> Number:
        """The noise multiplier."""
        return self.noise_multiplier

    @property
    def mu_squared(self) -> float:
        """1 / m^2: it is Gaussian already."""
        return float(1 / Fraction(self.noise_multiplier) ** 2)

    def renyi_curve(self) -> Curve:
        """Return order / (2 m^2).

        >>> GaussianLoss(noise_multiplier=2).renyi_curve()(4.0)
        0.5
        """
        m = self.noise_multiplier
        return lambda order: renyi.gaussian(noise_multiplier=m, order=order)

    @classmethod
    def join(cls, parts: Sequence[tuple["GaussianLoss", int]]) -> "GaussianLoss":
        """Return one Gaussian for all: 1/m^2 = sum 1/m_i^2, rounded towards less noise.

        Why: their joint likelihood ratio is that of one Gaussian along the direction of the joint
        shift [DRS22, Corollary 3.3].

        >>> GaussianLoss.join([(GaussianLoss(noise_multiplier=2), 4)])
        GaussianLoss(noise_multiplier=0.9999999999999996)
        """
        precision = sum_up(times / Fraction(part.noise_multiplier) ** 2 for part, times in parts)
        # Beyond the doubles it is rounded towards less noise, too.
        variance = min(1 / precision, Fraction(10**300))
        return GaussianLoss(noise_multiplier=math.sqrt(variance) * (1 - 4e-16))

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the Gaussian pair, which is symmetric.

        >>> removing, adding = GaussianLoss(noise_multiplier=2).pairs()
        >>> removing is adding
        True
        """
        pair = GaussianPair(nearest(Fraction(self.noise_multiplier)) * (1 - 1e-15))
        return pair, pair
