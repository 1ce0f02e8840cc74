"""Losses of operations on a random part of the data."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, probability
from discreet.accounting._pairs import Pair, SampledPair
from discreet.accounting._rounding import keep
from discreet.accounting.loss import Loss
from discreet.privacy import Neighbours

__all__ = ["SampledLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLoss(Loss):
    """Describe Poisson sampling: each unit takes part with chance ``rate``, independently.

    Claim: with ``inner`` the loss of the operation on the sample under add/remove (or zero-out),
    the whole is dominated by ((1-r)Q + rP, Q) for removing and (P, (1-r)P + rQ) for adding a unit,
    where (P, Q) dominates ``inner``. It does not hold for batches of fixed size.

    Why: [ZDW22, Theorem 11]. In particular epsilon becomes log(1 + r (exp(epsilon) - 1)).

    >>> from discreet.accounting import PureLoss, epsilon
    >>> round(epsilon(PureLoss(epsilon=0.5).sampled(rate=0.01), delta=0), 5)
    0.00647
    """

    inner: Loss
    rate: Number
    kind: ClassVar[str] = "sampled"
    neighbours: ClassVar[Neighbours | None] = Neighbours.add_remove

    def __post_init__(self) -> None:
        probability(self.rate, name="rate", one=True, hint="It is each unit's chance to take part.")
        object.__setattr__(self, "rate", keep(self.rate))
        self.inner.pairs()  # refuses a composition, which has no single pair

    @property
    def epsilon_pure(self) -> Fraction | float:
        """log(1 + rate (exp(epsilon) - 1)), rounded up."""
        inner = self.inner.epsilon_pure
        if not isinstance(inner, Fraction):
            return math.inf
        if inner > 500:
            return inner
        amplified = math.log1p(float_up(Fraction(self.rate)) * math.expm1(float_up(inner)))
        return min(inner, Fraction(amplified) * (1 + Fraction(1, 10**14)))

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        Why: at a' = 1 + (a - 1) / rate, delta(log a) = rate * inner delta(log a') for removing,
        which is the larger of the two directions at epsilon >= 0 [BBG20, Theorem 8].
        """
        target = Fraction(epsilon)
        if target > 500:
            return self.inner.delta_upper(epsilon=target)
        rate = Fraction(self.rate)
        lifted = math.log1p(math.expm1(float(target)) / float(rate)) * (1 - 1e-14)
        return min(1.0, float_up(rate) * self.inner.delta_upper(epsilon=Fraction(lifted)))

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the two sampled pairs."""
        removing, adding = self.inner.pairs()
        rate = float_up(Fraction(self.rate))
        return SampledPair(removing, rate, removes=True), SampledPair(adding, rate, removes=False)
