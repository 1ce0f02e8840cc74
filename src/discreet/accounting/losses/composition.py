"""Many losses at once, kept short however many there are."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

from discreet._exact import Number, whole
from discreet._rounding import sum_up
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.errors import ParameterError
from discreet.privacy import Neighbours

__all__ = ["ComposedLoss", "compose"]


class _Deferred(Loss):
    """Losses that were added and are not sorted yet: adding up n of them takes n steps."""

    __slots__ = ("_relation", "_terms")

    _relation: Neighbours | None
    _terms: tuple[tuple[Loss, int], ...] | None  # None as soon as the parts are known


@final
@dataclass(frozen=True, slots=True, repr=False)
class ComposedLoss(_Deferred):
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

    def __getattr__(self, name: str) -> Any:
        """Work out the parts, or what follows from them, when they are first asked for."""
        if name == "parts":
            terms = self._terms
            if terms is None:  # another thread was quicker
                return object.__getattribute__(self, name)
            found: Any = _canonical(terms)
        elif name == "_relation":
            found = next((part.neighbours for part, _ in self.parts if part.neighbours), None)
        elif name == "_terms":
            found = None
        else:
            raise AttributeError(f"ComposedLoss has no attribute {name!r}")
        object.__setattr__(self, name, found)
        if name == "parts":
            object.__setattr__(self, "_terms", None)
        return found

    @property
    def relation(self) -> Neighbours | None:
        """The neighbouring relation its parts agree on, None where parameters decide."""
        return self._relation

    @property
    def epsilon_pure(self) -> Fraction | float:
        """The sum over the parts: basic composition; rounded up if there are many fractions."""
        return _sum_up((part.epsilon_pure, times) for part, times in self.parts)

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """The sums over the parts [BS16, Lemma 1.7], rounded up if there are many fractions."""
        costs = [(part.zcdp, times) for part, times in self.parts]
        delta = sum_up(failure * times for (_, failure), times in costs)
        return _sum_up((rho, times) for (rho, _), times in costs), min(delta, Fraction(1))

    @property
    def failure(self) -> Fraction:
        """The sum over the parts, rounded up if there are many fractions."""
        return min(sum_up(part.failure * n for part, n in self.parts), Fraction(1))

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

        return delta_upper(self, epsilon=Fraction(epsilon))

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
    terms = [(loss, whole(times, name="times", minimum=0)) for loss, times in parts]
    terms = [(loss, times) for loss, times in terms if times]
    relations = {loss.relation for loss, _ in terms} - {None}
    if len(relations) > 1:
        raise _misfit(part for loss, _ in terms for part, _ in loss.parts)
    waiting = [loss for loss, _ in terms if isinstance(loss, ComposedLoss) and loss._terms]
    for loss in waiting[1:]:  # at most one may go on waiting, so that they form a chain
        loss.parts  # noqa: B018
    found = ComposedLoss.__new__(ComposedLoss)
    object.__setattr__(found, "_terms", tuple(terms))
    object.__setattr__(found, "_relation", next(iter(relations), None))
    return found


def _canonical(terms: tuple[tuple[Loss, int], ...]) -> tuple[tuple[Loss, int], ...]:
    """Return the single operations behind some losses, each with how often, in order."""
    counts: dict[Loss, int] = {}
    chain: list[tuple[tuple[tuple[Loss, int], ...], int]] = [(terms, 1)]
    while chain:
        some, factor = chain.pop()
        for loss, times in some:
            waiting = loss._terms if isinstance(loss, ComposedLoss) else None
            if waiting is not None:
                chain.append((waiting, factor * times))
                continue
            for part, count in loss.parts:
                counts[part] = counts.get(part, 0) + factor * times * count
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


def _sum_up(amounts: Iterable[tuple[Fraction | float, int]]) -> Fraction | float:
    """Return the sum of amounts, each so many times; infinity if one is."""
    known = list(amounts)
    if any(amount == math.inf for amount, _ in known):
        return math.inf
    return sum_up(Fraction(amount) * times for amount, times in known)


def _misfit(parts: Iterable[Loss]) -> ParameterError:
    named = {part.neighbours: part for part in parts if part.neighbours is not None}
    first, second = sorted(named)[:2]
    return ParameterError(
        f"losses for different neighbouring relations cannot be composed: "
        f"{type(named[first]).__name__} holds for {first}, {type(named[second]).__name__} for "
        f"{second}. Convert one side first: loss.group(2) of an add_remove loss, two units "
        "changing together, covers replace_one.",
        parameter="loss",
    )
