"""A yes or no that is reported with different errors on its two sides, exactly."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, plain, probability
from discreet._rounding import above, exp_lower, log_of
from discreet.accounting.losses.loss import Loss
from discreet.privacy import Neighbours

__all__ = ["TwoSidedLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedLoss(Loss):
    """Describe a bit that is reported as 1 with one chance if it is 1, and another if it is 0.

    Claim: the report is (e, delta(e))-DP exactly for the largest delta(e) = max(0, P - exp(e) Q)
    over the events "1" and "0" and both directions, under replace-one.

    Why: the output has two values, so the best event is one of them, for one of the two inputs.

    >>> from discreet.accounting import epsilon
    >>> round(epsilon(TwoSidedLoss(yes_if_yes=0.5, yes_if_no=0.25), delta=0), 4)  # ln 2
    0.6931
    """

    yes_if_yes: Number
    yes_if_no: Number
    kind: ClassVar[str] = "two_sided"
    neighbours: ClassVar[Neighbours | None] = Neighbours.replace_one

    def __post_init__(self) -> None:
        for name in ("yes_if_yes", "yes_if_no"):
            probability(getattr(self, name), name=name)
            object.__setattr__(self, name, plain(getattr(self, name), name=name))

    @property
    def epsilon_pure(self) -> Fraction:
        """The logarithm of the largest ratio of two chances, rounded up."""
        ratio = max(p / q for p, q in self._chances())
        return Fraction(log_of(ratio) * (1 + 1e-12))

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up."""
        if epsilon >= self.epsilon_pure:
            return 0.0
        factor = exp_lower(Fraction(epsilon))
        return above(float(max(p - factor * q for p, q in self._chances())), relative=1e-12)

    def _chances(self) -> list[tuple[Fraction, Fraction]]:
        p, q = Fraction(self.yes_if_yes), Fraction(self.yes_if_no)
        return [(p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)]
