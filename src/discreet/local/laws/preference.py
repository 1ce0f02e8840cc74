"""The law most randomisers share: each value prefers its own outputs to all others."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self, final

from discreet._exact import Number, positive, refusal, whole
from discreet.noise.enclosure import chance_odds, log_up

__all__ = ["ONE", "Preference"]

ONE: Final = 1 << 64  # a coin compares 64 random bits with a whole number
_ENOUGH: Final = Fraction(100)  # from here on the chance of a lie is below 2**-64 in any case


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Give an output of the value's own set with a certain chance, otherwise one outside it.

    There are ``outputs`` outputs. Each value has ``preferred`` of them for its own. An output is
    drawn uniformly among these with chance ``keep / 2**64``, otherwise uniformly among the others.

    Claim: one output is epsilon-DP when the value is replaced by any other, for the property
    ``epsilon``, which is computed from the whole numbers that the coin uses and rounded up.

    Why: an output has one of two probabilities, keep / (2**64 preferred) in the value's own set and
    (1 - keep / 2**64) / (outputs - preferred) outside. ``ratio`` is their ratio, and is above 1.

    >>> law = Preference.calibrated(epsilon=1, outputs=4, preferred=1)
    >>> law.keep, law.epsilon
    (8768971294881393556, 1.0)
    >>> float(law.keep_chance)      # e / (e + 3)
    0.4753668864186717
    """

    outputs: int
    preferred: int
    keep: int

    def __post_init__(self) -> None:
        outputs = whole(self.outputs, name="outputs", minimum=2)
        if not whole(self.preferred, name="preferred") < outputs:
            raise refusal("preferred", f"below outputs, which is {outputs}", self.preferred)
        if not 0 < whole(self.keep, name="keep") < ONE or self.ratio <= 1:
            wanted = "such that an own output is likelier than another, and none is certain"
            raise refusal("keep", wanted, self.keep, "Take it from Preference.calibrated(...).")

    @classmethod
    def calibrated(cls, *, epsilon: Number, outputs: int, preferred: int) -> Self:
        """Return the law with the largest ``keep`` whose loss is at most ``epsilon``.

        >>> float(Preference.calibrated(epsilon=2, outputs=2, preferred=1).keep_chance)
        0.8807970779778824
        """
        budget = min(positive(epsilon, name="epsilon"), _ENOUGH)
        odds = Fraction(whole(preferred, name="preferred"), outputs - preferred)
        # The odds of an own output are exp(budget) * odds to 1, and floors only lower them.
        keep = _largest_keep(budget, odds)
        if Fraction(keep, preferred) <= Fraction(ONE - keep, outputs - preferred):
            hint = "Reports would tell nothing."
            raise refusal("epsilon", "large enough to move 64-bit coins", epsilon, hint)
        return cls(outputs=outputs, preferred=preferred, keep=keep)

    @property
    def keep_chance(self) -> Fraction:
        """The chance that the output is one of the value's own."""
        return Fraction(self.keep, ONE)

    @property
    def ratio(self) -> Fraction:
        """How much likelier an own output is than another, exactly."""
        return Fraction(
            self.keep * (self.outputs - self.preferred), (ONE - self.keep) * self.preferred
        )

    @property
    def epsilon(self) -> float:
        """The logarithm of ``ratio``, rounded up."""
        return log_up(self.ratio)

    def hit(self, *, shared: int) -> Fraction:
        """Return the chance that an output lies in a set of which ``shared`` outputs are own ones.

        >>> law = Preference(outputs=4, preferred=2, keep=3 << 62)
        >>> law.hit(shared=2), law.hit(shared=1), law.hit(shared=0)
        (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
        """
        own = self.keep_chance * Fraction(shared, self.preferred)
        foreign = Fraction(self.preferred - shared, self.outputs - self.preferred)
        return own + (1 - self.keep_chance) * foreign


@lru_cache(maxsize=256)
def _largest_keep(budget: Fraction, odds: Fraction) -> int:
    return min(chance_odds(-budget, odds)(64), ONE - 1)
