"""One line of the catalogue: a mechanism, two neighbouring inputs, and the claim."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, final

from discreet._exact import Number
from discreet.accounting import Loss
from discreet.accounting import epsilon as certified_epsilon
from discreet.audit._low_bits import low_bits
from discreet.audit._mechanism import mechanism as audit_mechanism
from discreet.audit._result import Audit

__all__ = ["CatalogueEntry", "Lossy"]


class Lossy(Protocol):
    """A mechanism that states its loss."""

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """Describe one audit: ``release(mechanism, value, n)`` makes n outputs for an input.

    ``epsilon`` is what the mechanism was made for, at ``delta``; ``certified`` is what the
    accountant makes of the mechanism's own loss, and what the audit tries to refute.

    >>> from discreet import mechanisms as m
    >>> def reports(mechanism, value, n):
    ...     return mechanism.release([value] * n)
    >>> entry = CatalogueEntry(
    ...     name="a survey", mechanism=m.RandomizedResponse(epsilon=1, categories=2),
    ...     release=reports, pair=(0, 1), epsilon=1, samples=2000,
    ... )
    >>> entry.certified
    1.0
    >>> entry.audit(samples=1000, confidence=0.999999).passed
    True
    """

    name: str
    mechanism: Lossy
    release: Callable[[Any, Any, int], object]
    pair: tuple[object, object]
    epsilon: Number = 1
    delta: Number = 0
    samples: int = 200_000
    is_low_bits: bool = False

    @property
    def certified(self) -> float:
        """The accountant's upper bound on epsilon."""
        return certified_epsilon(self.mechanism.loss, delta=self.delta)

    def audit(self, *, samples: int, confidence: Number) -> Audit:
        """Audit the mechanism on this entry's pair, against what the accountant certifies.

        >>> from discreet import audit
        >>> audit.CATALOGUE[0].audit(samples=2000, confidence=0.999999).passed
        True
        """
        look = low_bits if self.is_low_bits else audit_mechanism
        return look(
            partial(self.release, self.mechanism),
            pair=self.pair,
            epsilon=self.certified,
            delta=self.delta,
            samples=samples,
            confidence=confidence,
            batch=True,
        )
