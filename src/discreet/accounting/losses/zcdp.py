"""Zero-concentrated differential privacy and its best conversion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, nonnegative, plain, probability, whole
from discreet._rounding import sum_up
from discreet.accounting.arithmetic.concentrated import zcdp_delta
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import GaussianPair, Pair

__all__ = ["ZCDPLoss"]

_SMALLEST = Fraction(1, 10**100)  # rho beyond which no pair is worth the trouble


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDPLoss(Loss):
    """State that an operation is rho-zCDP, but for an event of probability ``delta``, at most 1.

    Claim: the operation is (e, delta + d)-DP for every e >= 0 with d the infimum over orders
    a > 1 of exp((a - 1)(a rho - e)) (1 - 1/a)^a / (a - 1). It holds for the neighbouring relation
    for which rho was proved.

    Why: rho-zCDP bounds the Renyi divergence of every order a by a rho, and each order gives that
    delta [CKS20, Proposition 12 and Corollary 13]. The search for the best order need not be exact:
    whichever order it ends at is a proof.

    >>> from discreet.accounting import epsilon
    >>> round(epsilon(ZCDPLoss(rho=0.5), delta=1e-6), 4)
    5.2215
    >>> round(epsilon(ZCDPLoss(rho=0.5, delta=1e-7), delta=1e-6), 4)
    5.243
    """

    rho: Number
    delta: Number = 0
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        nonnegative(self.rho, name="rho")
        probability(self.delta, name="delta", zero=True, one=True)
        object.__setattr__(self, "rho", plain(self.rho, name="rho"))
        object.__setattr__(self, "delta", plain(self.delta, name="delta"))

    @property
    def epsilon_pure(self) -> Fraction | float:
        """Zero at rho = 0, otherwise infinity."""
        return math.inf if self.rho or self.delta else Fraction(0)

    def group(self, k: int) -> "Loss":
        """Return the loss for k units: rho grows with k squared [BS16, Proposition 1.9].

        >>> ZCDPLoss(rho=0.1).group(2)
        ZCDPLoss(rho=Fraction(3602879701896397, 9007199254740992), delta=0)
        """
        if self.delta:
            return Loss.group(self, k)
        return ZCDPLoss(rho=Fraction(self.rho) * whole(k, name="k") ** 2)

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(ZCDPLoss(rho=0.1).delta_upper(epsilon=1), 4)
        0.0089
        """
        failure = Fraction(self.delta)
        rest = Fraction(zcdp_delta(rho=Fraction(self.rho), epsilon=Fraction(epsilon)))
        return min(1.0, float_up(failure + (1 - failure) * rest))

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return those of Gaussian noise with this rho, which never fails.

        >>> ZCDPLoss(rho=0.5).attained_pairs()[0].s
        1.0000000000000...
        """
        if not _SMALLEST < self.rho < 1 / _SMALLEST:
            return None
        pair = GaussianPair(math.sqrt(1 / (2 * self.rho)) * (1 + 1e-14))
        return pair, pair

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """The rho and delta it was given."""
        return Fraction(self.rho), Fraction(self.delta)

    @property
    def failure(self) -> Fraction:
        """The delta it was given."""
        return Fraction(self.delta)

    @classmethod
    def join(cls, parts: Sequence[tuple["ZCDPLoss", int]]) -> "ZCDPLoss":
        """Return the statement for all: rho and delta add up [BS16, Lemma 1.7].

        >>> ZCDPLoss.join([(ZCDPLoss(rho=1), 2), (ZCDPLoss(rho=3), 1)])
        ZCDPLoss(rho=Fraction(5, 1), delta=Fraction(0, 1))
        """
        rho = sum_up(times * Fraction(part.rho) for part, times in parts)
        failure = sum_up(times * Fraction(part.delta) for part, times in parts)
        return ZCDPLoss(rho=rho, delta=min(failure, Fraction(1)))
