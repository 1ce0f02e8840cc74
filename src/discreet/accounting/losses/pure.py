"""Guarantees taken at their word: pure and approximate differential privacy."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, nonnegative, plain, probability
from discreet._rounding import above, nearest, one_minus_exp
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pairs.response import response_pair
from discreet.accounting.renyi.quick import pure_upper
from discreet.privacy import Guarantee

__all__ = ["ApproximateLoss", "PureLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureLoss(Loss):
    """State that an operation is epsilon-DP, and nothing more.

    Claim: the operation is (e, delta(e))-DP for every e >= 0, where delta(e) is 0 from epsilon on
    and (exp(epsilon) - exp(e)) / (1 + exp(epsilon)) below. It holds for the neighbouring relation
    for which epsilon was proved.

    Why: every epsilon-DP pair of distributions is a post-processing of binary randomized response
    with the same epsilon [KOV17, Theorem 2.1 and its proof], whose profile this is.

    >>> from discreet.accounting import delta, epsilon
    >>> epsilon(PureLoss(epsilon=1), delta=0)
    1.0
    >>> round(delta(PureLoss(epsilon=1), epsilon=0), 4)  # tanh(1/2), the best attacker's advantage
    0.4621
    """

    epsilon: Number
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        nonnegative(self.epsilon, name="epsilon")
        object.__setattr__(self, "epsilon", plain(self.epsilon, name="epsilon"))

    @property
    def epsilon_pure(self) -> Fraction:
        """The epsilon it was given."""
        return Fraction(self.epsilon)

    @property
    def is_tight(self) -> bool:
        """Yes: randomized response has this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(PureLoss(epsilon=2).delta_upper(epsilon=1), 4)
        0.5568
        """
        return _response_delta(Fraction(self.epsilon), Fraction(epsilon))

    def pairs(self) -> tuple[Pair, Pair]:
        """Return binary randomized response, which is symmetric.

        >>> removing, adding = PureLoss(epsilon=2).pairs()
        >>> removing is adding
        True
        """
        pair = response_pair(epsilon=Fraction(self.epsilon), others=1)
        return pair, pair


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateLoss(Loss):
    """State that an operation is (epsilon, delta)-DP, and nothing more.

    Claim: the operation is (e, delta)-DP for every e >= epsilon, and below epsilon it is
    (e, delta + (1 - delta) r)-DP with r the delta of randomized response. No epsilon is claimed
    for a smaller delta, and delta = 1 claims nothing. It holds for the neighbouring relation for
    which it was proved.

    Why: every (epsilon, delta)-DP pair is a post-processing of "reveal the input with probability
    delta, otherwise answer by randomized response" [KOV17, Theorem 3.1 and its proof].

    >>> from discreet.accounting import delta, epsilon
    >>> loss = ApproximateLoss(epsilon=1, delta=1e-6)
    >>> epsilon(loss, delta=1e-6), epsilon(loss, delta=1e-7)
    (1.0, inf)
    """

    epsilon: Number
    delta: Number
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        nonnegative(self.epsilon, name="epsilon")
        probability(self.delta, name="delta", zero=True, one=True)
        object.__setattr__(self, "epsilon", plain(self.epsilon, name="epsilon"))
        object.__setattr__(self, "delta", plain(self.delta, name="delta"))

    @property
    def epsilon_pure(self) -> Fraction | float:
        """The epsilon it was given if delta is 0, else infinity."""
        return math.inf if self.delta else Fraction(self.epsilon)

    def group(self, k: int) -> "ApproximateLoss":
        """Return the loss for k units: k epsilon and k exp((k - 1) epsilon) delta.

        >>> ApproximateLoss(epsilon=2, delta=0.001).group(2)
        ApproximateLoss(epsilon=4, delta=0.014778112197861301)
        """
        grouped = Guarantee(epsilon=self.epsilon, delta=self.delta).group(k)
        return ApproximateLoss(epsilon=grouped.epsilon, delta=grouped.delta)

    @property
    def is_tight(self) -> bool:
        """Yes: randomized response that sometimes reveals the input has it."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(ApproximateLoss(epsilon=2, delta=0.001).delta_upper(epsilon=1), 4)
        0.5572
        """
        failure = Fraction(self.delta)
        rest = _response_delta(Fraction(self.epsilon), Fraction(epsilon))
        return min(1.0, float_up(failure + (1 - failure) * Fraction(rest)))

    @property
    def failure(self) -> Fraction:
        """The delta it was given."""
        return Fraction(self.delta)

    @property
    def approximate_dp(self) -> tuple[Fraction, Fraction]:
        """The epsilon and delta it was given."""
        return Fraction(self.epsilon), Fraction(self.delta)

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """delta-approximate epsilon^2 / 2-zCDP: given that nothing is revealed, it is pure."""
        return Fraction(self.epsilon) ** 2 / 2, Fraction(self.delta)

    def renyi_upper(self, *, order: Fraction) -> Fraction:
        """Return the divergence of randomized response, given that nothing is revealed.

        >>> loss = ApproximateLoss(epsilon=1, delta=1e-6)
        >>> round(float(loss.renyi_upper(order=Fraction(2))), 4)
        0.7353
        """
        return pure_upper(epsilon=Fraction(self.epsilon), order=order)

    def renyi_curve(self) -> Curve:
        """Return the divergences of randomized response, given that nothing is revealed.

        >>> round(ApproximateLoss(epsilon=1, delta=1e-6).renyi_curve()(2.0), 4)
        0.7353
        """
        e = self.epsilon
        return lambda order: renyi.pure(epsilon=e, order=order)

    def pairs(self) -> tuple[Pair, Pair]:
        """Return randomized response that sometimes reveals the input, which is symmetric.

        >>> removing, adding = ApproximateLoss(epsilon=2, delta=0.001).pairs()
        >>> removing is adding
        True
        """
        pair = response_pair(epsilon=Fraction(self.epsilon), others=1, failure=Fraction(self.delta))
        return pair, pair


def _response_delta(ours: Fraction, epsilon: Fraction) -> float:
    """Return the delta of binary randomized response with parameter ``ours``, rounded up."""
    if epsilon >= ours:
        return 0.0
    value = one_minus_exp(epsilon - ours) / (1 + math.exp(-nearest(ours)))
    return above(value, relative=1e-14)
