"""The loss of several units together, or of one that is zeroed out, in Poisson samples."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, plain, positive, probability, whole
from discreet._rounding import float_down, nearest
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.mixtures import MixturePair
from discreet.accounting.pairs.pairs import Pair
from discreet.errors import ParameterError

__all__ = ["SampledGroupLoss"]

_MOST = 100  # units: for each way to split them there is a pair


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGroupLoss(Loss):
    """Describe Gaussian noise on the sum of a Poisson sample, for ``size`` units that change.

    Each unit takes part with chance ``rate``, independently, and moves the sum by at most one
    sensitivity in L2 norm. It may be added or removed, or be exchanged for a null that adds nothing
    to the sum, so it holds under add/remove and under zero-out with such a null.

    Claim: if u units are added and d removed (or zeroed out), u + d = ``size``, it is dominated by
    N(A, m^2) against N(-B, m^2), where m is the noise multiplier, A and B count how many of u and
    of d units are drawn. The loss is the worst of all splits.

    Why: docs/proofs/sampled_groups.md, by Kahane's inequality [Kah86]; the case of d = 0 is that of
    [Gan24]. For one unit it is :class:`SampledLoss` of Gaussian noise.

    >>> from discreet.accounting import GaussianLoss, epsilon
    >>> step = SampledGroupLoss(noise_multiplier=4, rate=0.01, size=3)
    >>> everybody = GaussianLoss(noise_multiplier=4).group(3)
    >>> round(epsilon(step * 100, delta=1e-6), 3), round(epsilon(everybody * 100, delta=1e-6), 1)
    (0.313, 63.0)
    """

    noise_multiplier: Number
    rate: Number
    size: int
    kind: ClassVar[str] = "sampled_group"
    is_slow: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.noise_multiplier, name="noise_multiplier")
        multiplier = plain(self.noise_multiplier, name="noise_multiplier")
        object.__setattr__(self, "noise_multiplier", multiplier)
        probability(self.rate, name="rate", one=True, hint="It is each unit's chance to take part.")
        object.__setattr__(self, "rate", plain(self.rate, name="rate"))
        object.__setattr__(self, "size", whole(self.size, name="size"))
        if self.size > _MOST:
            raise ParameterError(
                f"size must be at most {_MOST}, got {self.size}: bound larger groups without "
                "sampling, by GaussianLoss(noise_multiplier=...).group(size).",
                parameter="size",
            )

    @property
    def epsilon_pure(self) -> float:
        """Infinity: Gaussian noise is never pure."""
        return math.inf

    def group(self, k: int) -> "SampledGroupLoss":
        """Return the loss for k times as many units.

        >>> SampledGroupLoss(noise_multiplier=4, rate=0.01, size=3).group(2).size
        6
        """
        size = self.size * whole(k, name="k")
        return SampledGroupLoss(noise_multiplier=self.noise_multiplier, rate=self.rate, size=size)

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon`` for the worst split, rounded up.

        >>> loss = SampledGroupLoss(noise_multiplier=1, rate=0.5, size=2)
        >>> round(loss.delta_upper(epsilon=1), 4)
        0.166
        """
        if epsilon > 600:
            return 1.0  # nobody asks, and the tails below are no doubles
        at = float(epsilon) * (1 - 1e-15)
        worst = 0.0
        for pair in (*self.pairs(), *self.mixed_pairs()):
            under_p, under_q = pair.tail(at)
            worst = max(worst, under_p * (1 + 1e-13) - math.exp(at) * under_q * (1 - 1e-13))
        return min(1.0, worst + 1e-300)

    def renyi_upper(self, *, order: Fraction) -> Fraction | float:
        """Return the divergence for one unit, infinity for more: no bound is proved there.

        >>> loss = SampledGroupLoss(noise_multiplier=4, rate=0.01, size=1)
        >>> round(loss.renyi_upper(order=Fraction(32)), 8)
        0.00010526
        """
        if self.size > 1:
            return math.inf
        multiplier, rate = self.noise_multiplier, self.rate
        return renyi.sampled_gaussian(noise_multiplier=multiplier, rate=rate, order=order)

    def renyi_curve(self) -> Curve | None:
        """Return the same at any order.

        >>> SampledGroupLoss(noise_multiplier=4, rate=0.01, size=2).renyi_curve() is None
        True
        """
        if self.size > 1:
            return None
        return lambda order: float(self.renyi_upper(order=Fraction(order)))

    def pairs(self) -> tuple[MixturePair, MixturePair]:
        """Return the pairs where all units are removed, and where all are added.

        >>> removing, adding = SampledGroupLoss(noise_multiplier=4, rate=0.01, size=3).pairs()
        >>> (removing.up, removing.down), (adding.up, adding.down)
        ((3, 0), (0, 3))
        """
        return self._pair(self.size), self._pair(0)

    def mixed_pairs(self) -> tuple[MixturePair, ...]:
        """Return those where some are removed and others added.

        >>> pairs = SampledGroupLoss(noise_multiplier=4, rate=0.01, size=3).mixed_pairs()
        >>> [(pair.up, pair.down) for pair in pairs]
        [(1, 2), (2, 1)]
        """
        return tuple(self._pair(up) for up in range(1, self.size))

    def attained_pairs(self) -> tuple[Pair, Pair]:
        """Return the same of units that all point in one direction.

        >>> SampledGroupLoss(noise_multiplier=4, rate=0.01, size=3).attained_pairs()[0].up
        3
        """
        multiplier = nearest(Fraction(self.noise_multiplier)) * (1 + 1e-15)
        rate = float_down(Fraction(self.rate))
        return MixturePair(multiplier, rate, self.size, 0), MixturePair(
            multiplier, rate, 0, self.size
        )

    def _pair(self, up: int) -> MixturePair:
        multiplier = nearest(Fraction(self.noise_multiplier)) * (1 - 1e-15)
        return MixturePair(multiplier, float_up(Fraction(self.rate)), up, self.size - up)
