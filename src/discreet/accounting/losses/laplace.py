"""The continuous Laplace mechanism, exactly."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, plain, positive, whole
from discreet._rounding import above, nearest, one_minus_exp
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import LaplacePair, Pair
from discreet.accounting.renyi.quick import laplace_upper

__all__ = ["LaplaceLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceLoss(Loss):
    """Describe Laplace noise of scale ``noise_multiplier`` times the L1 sensitivity.

    Claim: the operation is (e, delta(e))-DP exactly for delta(e) = max(0, 1 - exp((e - 1/m) / 2)),
    m the noise multiplier; in particular it is 1/m-DP. It holds in any dimension (independent
    noise on each coordinate), after rounding or any other post-processing, and for the
    neighbouring relation for which the L1 sensitivity was computed.

    Why: for a scalar shift of 1 and scale m the likelihood ratio falls from exp(1/m) to exp(-1/m),
    so the best event is a half-line; integrating it gives the formula [BBG20, Theorem 3]. A vector
    shift is dominated by the scalar shift of the same L1 norm: see docs/proofs/laplace_vectors.md.

    >>> from discreet.accounting import delta, epsilon
    >>> epsilon(LaplaceLoss(noise_multiplier=2), delta=0)
    0.5
    >>> round(delta(LaplaceLoss(noise_multiplier=2), epsilon=0.25), 4)
    0.1175
    """

    noise_multiplier: Number
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        positive(self.noise_multiplier, name="noise_multiplier")
        object.__setattr__(
            self, "noise_multiplier", plain(self.noise_multiplier, name="noise_multiplier")
        )

    @property
    def epsilon_pure(self) -> Fraction:
        """One over the noise multiplier."""
        return 1 / Fraction(self.noise_multiplier)

    def group(self, k: int) -> "LaplaceLoss":
        """Return the loss for k units: the distance is k times as large.

        >>> LaplaceLoss(noise_multiplier=0.5).group(2)
        LaplaceLoss(noise_multiplier=Fraction(1, 4))
        """
        return LaplaceLoss(noise_multiplier=Fraction(self.noise_multiplier) / whole(k, name="k"))

    @property
    def is_tight(self) -> bool:
        """Yes: a shift of one coordinate has this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(LaplaceLoss(noise_multiplier=0.5).delta_upper(epsilon=1), 4)
        0.3935
        """
        excess = Fraction(epsilon) - self.epsilon_pure
        if excess >= 0:
            return 0.0
        return above(one_minus_exp(excess / 2), relative=1e-14)

    def renyi_upper(self, *, order: Fraction) -> Fraction:
        """Return the divergence [Mir17, Proposition 6], rounded up.

        >>> round(float(LaplaceLoss(noise_multiplier=1).renyi_upper(order=Fraction(2))), 6)
        0.619124
        """
        return laplace_upper(epsilon=self.epsilon_pure, order=order)

    def renyi_curve(self) -> Curve:
        """Return the divergences, to more digits.

        >>> round(LaplaceLoss(noise_multiplier=1).renyi_curve()(2.0), 6)
        0.619124
        """
        m = self.noise_multiplier
        return lambda order: renyi.laplace(noise_multiplier=m, order=order)

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the Laplace pair, which is symmetric.

        >>> removing, adding = LaplaceLoss(noise_multiplier=0.5).pairs()
        >>> removing is adding
        True
        """
        pair = LaplacePair(nearest(Fraction(self.noise_multiplier)) * (1 - 1e-15))
        return pair, pair
