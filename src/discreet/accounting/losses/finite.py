"""Any two distributions on finitely many outcomes, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet._exact import Number, float_up, nonnegative, plain
from discreet._rounding import exp_lower, log_of
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import AtomsPair, Pair
from discreet.errors import ParameterError

__all__ = ["FinitePairLoss"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FinitePairLoss(Loss):
    """Describe an operation by a dominating pair: two laws ``p`` and ``q`` of the same outcomes.

    Claim: the operation is (e, delta(e))-DP for delta(e) = sum of max(0, p - exp(e) q), and the
    same with p and q exchanged, if (p, q) dominates it. It holds for the neighbouring relation for
    which it does. Probabilities are taken exactly and must sum to 1, as Fractions do.

    Why: the definition of a dominating pair [ZDW22, Definition 7].

    >>> from discreet.accounting import delta
    >>> third = Fraction(1, 3)
    >>> loss = FinitePairLoss(p=(2 * third, third), q=(third, 2 * third))
    >>> round(delta(loss, epsilon=0), 6)
    0.333333
    """

    p: Sequence[Number]
    q: Sequence[Number]
    kind: ClassVar[str] = "finite_pair"
    is_slow: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            values = tuple(plain(value, name=name) for value in getattr(self, name))
            if sum(nonnegative(value, name=name) for value in values) != 1:
                raise ParameterError(
                    f"{name} must sum to exactly 1. Use Fractions: floats such as 0.1 rarely do.",
                    parameter=name,
                )
            object.__setattr__(self, name, values)
        if len(self.p) != len(self.q):
            raise ParameterError(
                f"p and q must have the same outcomes, got {len(self.p)} and {len(self.q)}.",
                parameter="q",
            )

    @property
    def epsilon_pure(self) -> Fraction | float:
        """The largest log-ratio, rounded up; infinity where an outcome is possible for one only."""
        largest = Fraction(1)
        for one, other in self._both_ways():
            for a, b in zip(one, other, strict=True):
                if a and not b:
                    return float("inf")
                if a:
                    largest = max(largest, a / b)
        log = np.log1p(float_up(largest - 1)) * (1 + 1e-15)
        return Fraction(float(log))

    @property
    def is_tight(self) -> bool:
        """Yes: the pair itself has this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> round(FinitePairLoss(p=(0.75, 0.25), q=(0.25, 0.75)).delta_upper(epsilon=1), 4)
        0.0704
        """
        ratio = exp_lower(min(Fraction(epsilon), self._highest_loss))
        return max(
            float_up(
                sum(
                    (max(Fraction(0), a - ratio * b) for a, b in zip(one, other, strict=True)),
                    start=Fraction(0),
                )
            )
            for one, other in self._both_ways()
        )

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the pair in both directions.

        >>> removing, adding = FinitePairLoss(p=(1, 0), q=(0.25, 0.75)).pairs()
        >>> removing.missing, adding.infinite
        (0.75, 0.75)
        """
        first, second = (_atoms(one, other) for one, other in self._both_ways())
        return first, second

    @property
    def _highest_loss(self) -> Fraction:
        """A number above all finite losses: from there on delta is what has no finite loss."""
        ratios = [Fraction(a) / Fraction(b) for a, b in zip(self.p, self.q, strict=True) if a and b]
        return 1 + max((abs(Fraction(log_of(ratio))) for ratio in ratios), default=Fraction(0))

    def _both_ways(self) -> tuple[tuple[list[Fraction], list[Fraction]], ...]:
        p, q = [Fraction(a) for a in self.p], [Fraction(b) for b in self.q]
        return (p, q), (q, p)


def _atoms(p: list[Fraction], q: list[Fraction]) -> AtomsPair:
    shared = [(a, b) for a, b in zip(p, q, strict=True) if a and b]
    losses = np.array([np.log(float(a / b)) for a, b in shared])
    losses += np.abs(losses) * 1e-15 + 1e-300
    masses = np.array([float_up(a) for a, _ in shared])
    infinite = float_up(sum((a for a, b in zip(p, q, strict=True) if not b), start=Fraction(0)))
    missing = float_up(sum((b for a, b in zip(p, q, strict=True) if not a), start=Fraction(0)))
    return AtomsPair(losses, masses, infinite, missing)
