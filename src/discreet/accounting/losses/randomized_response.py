"""Randomized response among k answers, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, nonnegative, plain, whole
from discreet._rounding import above, nearest, one_minus_exp
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pairs.response import response_pair
from discreet.privacy import Neighbours

__all__ = ["RandomizedResponseLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseLoss(Loss):
    """Describe k-ary randomized response: the true answer is exp(epsilon) times as likely.

    Claim: the report is epsilon-DP, and (e, delta(e))-DP exactly for delta(e) =
    (exp(epsilon) - exp(e)) / (exp(epsilon) + k - 1) below epsilon. By nature it holds for
    replace-one: one person's answer is exchanged for another.

    Why: two inputs give the same law except that the two answers swap their probabilities, so the
    best event is the single answer that the first input favours [W65; KOV16, Section 4].

    >>> from discreet.accounting import delta, epsilon
    >>> from math import log
    >>> loss = RandomizedResponseLoss(epsilon=log(3), categories=2)   # two fair coins
    >>> round(delta(loss, epsilon=0), 9)                              # 3/4 against 1/4
    0.5
    """

    epsilon: Number
    categories: int
    kind: ClassVar[str] = "randomized_response"
    neighbours: ClassVar[Neighbours | None] = Neighbours.replace_one

    def __post_init__(self) -> None:
        nonnegative(self.epsilon, name="epsilon")
        object.__setattr__(self, "epsilon", plain(self.epsilon, name="epsilon"))
        categories = whole(self.categories, name="categories", minimum=2)
        object.__setattr__(self, "categories", categories)

    @property
    def epsilon_pure(self) -> Fraction:
        """The epsilon it was given."""
        return Fraction(self.epsilon)

    @property
    def is_tight(self) -> bool:
        """Yes: two different answers have this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(RandomizedResponseLoss(epsilon=2, categories=3).delta_upper(epsilon=1), 4)
        0.4975
        """
        excess = Fraction(epsilon) - self.epsilon_pure
        if excess >= 0:
            return 0.0
        # Cut off where exp would overflow: fewer other answers mean a larger delta.
        others = math.exp(min(700.0, math.log(self.categories - 1) - nearest(self.epsilon_pure)))
        return above(one_minus_exp(excess) / (1 + others), relative=1e-12)

    def renyi_curve(self) -> Curve:
        """Return the divergences of two inputs' reports.

        >>> round(RandomizedResponseLoss(epsilon=1, categories=10).renyi_curve()(2.0), 5)
        0.29613
        """
        e, k = self.epsilon, self.categories
        return lambda order: renyi.randomized_response(epsilon=e, categories=k, order=order)

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the pair of two inputs' reports, which is symmetric.

        >>> removing, adding = RandomizedResponseLoss(epsilon=2, categories=3).pairs()
        >>> removing is adding
        True
        """
        pair = response_pair(epsilon=self.epsilon_pure, others=self.categories - 1)
        return pair, pair
