"""Many losses at once, kept short however many there are."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, whole
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.errors import ParameterError
from discreet.privacy import Neighbours

__all__ = ["ComposedLoss", "compose"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class ComposedLoss(Loss):
    """The loss of doing several things, each so many times. Make one with ``+`` and ``*``.

    Claim: the guarantees hold for operations fixed in advance, in any order, each with fresh
    randomness. Whoever chooses the next parameters after seeing answers needs a filter.

    ``parts`` are run-length encoded and in a canonical order, so that a million equal steps stay
    one entry and the order of adding does not matter.

    >>> from discreet.accounting import LaplaceLoss, PureLoss
    >>> loss = PureLoss(epsilon=1) + LaplaceLoss(noise_multiplier=2) * 3
    >>> loss.epsilon_pure
    Fraction(5, 2)
    >>> loss == LaplaceLoss(noise_multiplier=2) * 3 + PureLoss(epsilon=1)
    True
    """

    parts: tuple[tuple[Loss, int], ...] = field()  # no default, though Loss has such a property
    kind: ClassVar[str] = "composed"
    is_composed: ClassVar[bool] = True
    is_slow: ClassVar[bool] = True

    @property
    def relation(self) -> Neighbours | None:
        """The neighbouring relation its parts agree on, None where parameters decide."""
        return next((part.neighbours for part, _ in self.parts if part.neighbours), None)

    @property
    def epsilon_pure(self) -> Fraction | float:
        """The sum over the parts: basic composition."""
        total: Fraction | float = Fraction(0)
        for part, times in self.parts:
            total += part.epsilon_pure * times
        return total

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """The sums over the parts [BS16, Lemma 1.7]."""
        rho: Fraction | float = Fraction(0)
        delta = Fraction(0)
        for part, times in self.parts:
            one, failure = part.zcdp
            rho += one * times
            delta += failure * times
        return rho, min(delta, Fraction(1))

    @property
    def failure(self) -> Fraction:
        """The sum over the parts."""
        return min(sum((part.failure * n for part, n in self.parts), Fraction(0)), Fraction(1))

    def renyi_curve(self) -> Curve | None:
        """Return the sums over the parts, None where one of them has no bound.

        >>> from discreet.accounting import GaussianLoss
        >>> round((GaussianLoss(noise_multiplier=2) * 3).renyi_curve()(4.0), 4)
        1.5
        """
        curves = [(part.renyi_curve(), times) for part, times in self.parts]
        known = [(curve, times) for curve, times in curves if curve is not None]
        if len(known) < len(curves):
            return None
        return lambda order: math.fsum(n * curve(order) for curve, n in known) * (1 + 1e-15)

    def noisier(self, factor: float) -> "ComposedLoss | None":
        """Return the composition of the parts with more noise, where that is known of each.

        >>> from discreet.accounting import PureLoss
        >>> (PureLoss(epsilon=1) * 3).noisier(2.0)
        ComposedLoss(3 x PureLoss(epsilon=0.5))
        """
        parts = [(part.noisier(factor), times) for part, times in self.parts]
        known = [(part, times) for part, times in parts if part is not None]
        return compose(known) if len(known) == len(parts) else None

    def group(self, k: int) -> "ComposedLoss":
        """Return the loss for k units, part by part.

        >>> from discreet.accounting import PureLoss
        >>> (PureLoss(epsilon=1) * 2).group(2)
        ComposedLoss(2 x PureLoss(epsilon=2))
        """
        return compose([(part.group(k), times) for part, times in self.parts])

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up, from the privacy loss distributions.

        >>> from discreet.accounting import PureLoss
        >>> round((PureLoss(epsilon=1) * 2).delta_upper(epsilon=1), 4)
        0.3378
        """
        from discreet.accounting.losses.certified import delta_upper

        return delta_upper(self, Fraction(epsilon))

    def pairs(self) -> tuple[Pair, Pair]:
        """Refuse: a composition has as many pairs as parts.

        >>> from discreet.accounting import PureLoss
        >>> (PureLoss(epsilon=1) * 2).pairs()
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: a composed loss has no single dominating pair. ...
        """
        raise ParameterError(
            "a composed loss has no single dominating pair. Use epsilon, delta or bracket.",
            parameter="loss",
        )

    def __repr__(self) -> str:
        shown = (f"{times} x {part}" if times != 1 else repr(part) for part, times in self.parts)
        return f"ComposedLoss({', '.join(shown)})"


def compose(parts: Iterable[tuple[Loss, int]]) -> ComposedLoss:
    """Compose losses, each so many times, into one canonical loss.

    >>> from discreet.accounting import PureLoss
    >>> compose([(PureLoss(epsilon=1), 2), (PureLoss(epsilon=1) * 3, 4)])
    ComposedLoss(14 x PureLoss(epsilon=1))
    """
    counts: dict[Loss, int] = {}
    for loss, times in parts:
        repeat = whole(times, name="times", minimum=0)
        for part, count in loss.parts:
            if repeat * count:
                counts[part] = counts.get(part, 0) + repeat * count
    _require_one_relation(counts)
    return ComposedLoss(tuple(sorted(counts.items(), key=lambda item: repr(item[0]))))


def _require_one_relation(parts: Iterable[Loss]) -> None:
    named = {part.neighbours: part for part in parts if part.neighbours is not None}
    if len(named) > 1:
        first, second = sorted(named)[:2]
        raise ParameterError(
            f"losses for different neighbouring relations cannot be composed: "
            f"{type(named[first]).__name__} holds for {first}, {type(named[second]).__name__} for "
            f"{second}. Convert one side first: loss.group(2) of an add_remove loss, two units "
            "changing together, covers replace_one.",
            parameter="loss",
        )
