"""The exponential mechanism and its kin: privacy losses that stay within a range."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, nonnegative, plain
from discreet._rounding import above, one_minus_exp
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.losses.zcdp import ZCDPLoss
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pairs.response import response_pair
from discreet.accounting.renyi.quick import pure_upper

__all__ = ["BoundedRangeLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRangeLoss(Loss):
    """Describe an operation whose privacy loss lies in some interval of length ``epsilon``.

    The exponential mechanism and Gumbel noisy max are of this kind; permute-and-flip is not.

    Claim: a single use is epsilon-DP, and (e, delta(e))-DP for delta(e) =
    (1 - exp((e - epsilon) / 2))^2 / (1 - exp(-epsilon)) below epsilon, which no bound that knows
    only the range can beat. It holds for the neighbouring relation for which epsilon was proved.

    Why: let the loss lie in [t - epsilon, t]. Its exponential has mean 1 under the second law, and
    delta is the mean of a convex function of it, so the worst case sits on the two ends; that
    two-point law has delta (1 - exp(t - epsilon)) (1 - exp(e - t)) / (1 - exp(-epsilon)), largest
    at t = (e + epsilon) / 2 [DDR20, Section 4]. It is also epsilon^2/8-zCDP [CR21, Lemma 3.2].

    >>> from discreet.accounting import delta, epsilon
    >>> epsilon(BoundedRangeLoss(epsilon=1), delta=0)
    1.0
    >>> round(delta(BoundedRangeLoss(epsilon=1), epsilon=0), 4)  # randomized response has 0.4621
    0.2449
    """

    epsilon: Number
    kind: ClassVar[str] = "bounded_range"

    def __post_init__(self) -> None:
        nonnegative(self.epsilon, name="epsilon")
        object.__setattr__(self, "epsilon", plain(self.epsilon, name="epsilon"))

    @property
    def epsilon_pure(self) -> Fraction:
        """The epsilon it was given."""
        return Fraction(self.epsilon)

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter epsilon^2 / 8, exactly."""
        return self.epsilon_pure**2 / 8

    @property
    def is_tight(self) -> bool:
        """Yes: for each epsilon there is a two-point law."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(BoundedRangeLoss(epsilon=2).delta_upper(epsilon=1), 4)
        0.179
        """
        excess = Fraction(epsilon) - self.epsilon_pure
        if excess >= 0:
            return 0.0
        whole_range = one_minus_exp(-self.epsilon_pure)
        if whole_range == 0:
            return above(0.0, relative=0)  # below the floats, and delta is at most a quarter of it
        return above(one_minus_exp(excess / 2) ** 2 / whole_range, relative=1e-14)

    def attained_pairs(self) -> tuple[Pair, Pair]:
        """Return randomized response with half the epsilon, whose losses are epsilon apart.

        >>> BoundedRangeLoss(epsilon=2).attained_pairs()[0].span(1)[1]
        1.0...
        """
        pair = response_pair(epsilon=self.epsilon_pure / 2, others=1)
        return pair, pair

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """epsilon^2 / 8 [CR21, Lemma 3.2]."""
        return self.rho, Fraction(0)

    @property
    def in_bulk(self) -> ZCDPLoss:
        """zCDP: many losses of bounded range are better taken so, few are not."""
        return ZCDPLoss(rho=self.rho)

    def renyi_upper(self, *, order: Fraction) -> Fraction:
        """Return the smaller of what epsilon tells and what rho, a quarter of that, does.

        >>> float(BoundedRangeLoss(epsilon=1).renyi_upper(order=Fraction(2)))
        0.25
        """
        return min(pure_upper(epsilon=self.epsilon_pure, order=order), order * self.rho)

    def renyi_curve(self) -> Curve:
        """Return the smaller of what epsilon tells and what rho does.

        >>> round(BoundedRangeLoss(epsilon=1).renyi_curve()(2.0), 4)
        0.25
        """
        epsilon, slope = self.epsilon_pure, float_up(self.rho)
        return lambda order: min(
            renyi.pure(epsilon=epsilon, order=order), slope * order * (1 + 4e-16)
        )
