"""Reports of a local randomizer, shuffled before anybody reads them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, plain, positive, whole
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import AtomsPair, Pair
from discreet.accounting.shuffling import shuffle_delta, shuffle_pair
from discreet.privacy import Neighbours

__all__ = ["ShuffledLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledLoss(Loss):
    """Describe ``n`` people's reports of an ``epsilon0``-DP local randomizer after shuffling.

    Claim: under replace-one, what the shuffler puts out is (e, delta(e))-DP as
    ``shuffling.shuffle_2023`` states, if all n people use the same
    epsilon0-DP randomizer, or the i-th in a random order uses one chosen from the first i - 1
    reports; it may not depend on who the person is, except as part of the data over which it is
    epsilon0-DP. Rounds compose if each has a fresh random order.

    Why: docs/proofs/shuffling.md. The amplification comes from the other people's randomizers, not
    from noise added afterwards.

    >>> from discreet.accounting import epsilon
    >>> round(epsilon(ShuffledLoss(epsilon0=1, n=10_000), delta=1e-6), 4)
    0.0432
    """

    epsilon0: Number
    n: int
    kind: ClassVar[str] = "shuffled"
    is_slow: ClassVar[bool] = True
    neighbours: ClassVar[Neighbours | None] = Neighbours.replace_one

    def __post_init__(self) -> None:
        positive(self.epsilon0, name="epsilon0")
        object.__setattr__(self, "epsilon0", plain(self.epsilon0, name="epsilon0"))
        object.__setattr__(self, "n", whole(self.n, name="n", minimum=2))

    @property
    def epsilon_pure(self) -> Fraction:
        """The local epsilon: shuffling cannot hurt."""
        return Fraction(self.epsilon0)

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> f"{ShuffledLoss(epsilon0=2, n=1000).delta_upper(epsilon=0.25):.3g}"
        '0.000212'
        """
        return shuffle_delta(epsilon0=self.epsilon0, n=self.n, epsilon=epsilon)

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the pair of clones, which is symmetric.

        >>> removing, adding = ShuffledLoss(epsilon0=2, n=1000).pairs()
        >>> removing is adding
        True
        """
        found = shuffle_pair(epsilon0=self.epsilon0, n=self.n)
        pair = AtomsPair(found.losses, found.masses, found.infinite, found.infinite)
        return pair, pair
