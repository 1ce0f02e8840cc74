"""Estimated counts of strings, and which of them are surely there."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet.errors import DataError
from discreet.local.strings.readings import Readings

__all__ = ["StringEstimate"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StringEstimate:
    """Hold how many devices have each of some strings, as far as ``n`` randomised reports tell.

    ``readings`` are unbiased, and may be below 0 or above n; ``counts`` are what the reports'
    method makes of them, which may be the same. ``tested`` is how many strings were looked at to
    find these.

    >>> estimate = StringEstimate(
    ...     values=(b"a.example", b"b.example"), n=1000, counts=np.array([700.0, 20.0]),
    ...     readings=Readings(
    ...         estimates=np.array([700.0, 20.0]), standard_error=np.array([27.0, 27.0]),
    ...         null_error=np.array([27.0, 27.0]), reach=np.array([2.0, 2.0])),
    ...     tested=2)
    >>> estimate.found(confidence=0.99)
    StringEstimate(n=1000, 'a.example': 700 ± 27)
    """

    values: tuple[bytes, ...]
    n: int
    counts: Floats
    readings: Readings
    tested: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("reports must hold at least one report, got none.")

    @property
    def strings(self) -> tuple[str, ...]:
        """The strings as text; what is cut within a letter ends in U+FFFD."""
        return tuple(value.decode("utf-8", "replace") for value in self.values)

    @property
    def unbiased(self) -> Floats:
        """The estimates before anything known was used."""
        return self.readings.estimates

    @property
    def standard_error(self) -> Floats:
        """The standard error of each unbiased estimate."""
        return self.readings.standard_error

    @property
    def p_values(self) -> Floats:
        """At least the chance of so high an estimate, or a higher one, where nobody has it."""
        return self.readings.p_values

    def found(self, *, confidence: Number) -> Self:
        """Return the strings that are there, the most frequent first.

        Claim: with at least this confidence none of them is a string that nobody has.

        Why: each of the ``tested`` strings that nobody has passes with a chance of at most
        (1 - confidence) / tested; these add up (Bonferroni).

        >>> readings = Readings(
        ...     estimates=np.array([20.0, 700.0]), standard_error=np.array([27.0, 27.0]),
        ...     null_error=np.array([27.0, 27.0]), reach=np.array([2.0, 2.0]))
        >>> estimate = StringEstimate(
        ...     values=(b"a", b"b"), n=1000, counts=readings.estimates, readings=readings, tested=2)
        >>> estimate.found(confidence=0.99).strings
        ('b',)
        """
        failing = _failing(confidence) / self.tested
        there = np.flatnonzero(self.p_values <= float(failing))
        chosen = there[np.argsort(-self.counts[there], kind="stable")]
        return type(self)(
            values=tuple(self.values[i] for i in chosen),
            n=self.n,
            counts=self.counts[chosen],
            readings=self.readings.only(chosen),
            tested=self.tested,
        )

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie, all at once unless told otherwise.

        >>> readings = Readings(
        ...     estimates=np.array([20.0, 700.0]), standard_error=np.array([27.0, 27.0]),
        ...     null_error=np.array([27.0, 27.0]), reach=np.array([2.0, 2.0]))
        >>> estimate = StringEstimate(
        ...     values=(b"a", b"b"), n=1000, counts=readings.estimates, readings=readings, tested=2)
        >>> low, high = estimate.interval(confidence=0.95)
        >>> np.round(low), np.round(high)
        (array([  0., 617.]), array([103., 783.]))
        """
        failing = _failing(confidence) / (2 * self.tested if simultaneous else 2)
        width = self.readings.width(failing)
        low, high = self.unbiased - width, self.unbiased + width
        return np.clip(low, 0.0, self.n), np.clip(high, 0.0, self.n)

    def __repr__(self) -> str:
        rows = zip(self.strings, self.counts, self.standard_error, strict=True)
        shown = [f"{name!r}: {count:.0f} ± {error:.2g}" for name, count, error in rows]
        more = [f"... {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
        return f"StringEstimate({', '.join([f'n={self.n}', *shown[:_SHOWN], *more])})"


def _failing(confidence: Number) -> Fraction:
    return 1 - probability(confidence, name="confidence")
