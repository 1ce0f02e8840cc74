"""Estimated counts of strings, and which of them are surely there."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet.errors import DataError

__all__ = ["StringEstimate", "surprise"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StringEstimate:
    """Hold how many devices have each of some strings, as far as ``n`` randomised reports tell.

    ``unbiased`` are the estimates before anything known was used, so they may be below 0 or above
    n; ``counts`` are what the reports' method makes of them, which may be the same. ``tested`` is
    how many strings were looked at to find these.

    Intervals and significance take an estimate's error for normal, which it nearly is as the sum
    of very many coins.

    >>> estimate = StringEstimate(
    ...     values=(b"a.example", b"b.example"), n=1000, counts=np.array([700.0, 20.0]),
    ...     unbiased=np.array([700.0, 20.0]), standard_error=np.array([27.0, 27.0]), tested=2)
    >>> estimate.found(confidence=0.99)
    StringEstimate(n=1000, 'a.example': 700 ± 27)
    """

    values: tuple[bytes, ...]
    n: int
    counts: Floats
    unbiased: Floats
    standard_error: Floats
    tested: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("reports must hold at least one report, got none.")

    @property
    def strings(self) -> tuple[str, ...]:
        """The strings as text; what is cut within a letter ends in U+FFFD."""
        return tuple(value.decode("utf-8", "replace") for value in self.values)

    @property
    def p_values(self) -> Floats:
        """How likely so high an estimate, or a higher one, is for a string that nobody has."""
        from scipy.special import ndtr

        return np.asarray(ndtr(-self.unbiased / self.standard_error))

    def found(self, *, confidence: Number) -> Self:
        """Return the strings that are there, the most frequent first.

        Claim: with at least this confidence none of them is a string that nobody has.

        Why: each of the ``tested`` strings that nobody has passes with chance
        (1 - confidence) / tested; these add up (Bonferroni).
        """
        failing = _failing(confidence) / self.tested
        there = np.flatnonzero(self.p_values <= float(failing))
        return self._only(there[np.argsort(-self.counts[there], kind="stable")])

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie, all at once unless told otherwise."""
        width = surprise(_failing(confidence) / 2, tested=self.tested if simultaneous else 1)
        spread = width * self.standard_error
        low, high = self.unbiased - spread, self.unbiased + spread
        return np.clip(low, 0.0, self.n), np.clip(high, 0.0, self.n)

    def _only(self, chosen: npt.NDArray[np.intp]) -> Self:
        return type(self)(
            values=tuple(self.values[i] for i in chosen),
            n=self.n,
            counts=self.counts[chosen],
            unbiased=self.unbiased[chosen],
            standard_error=self.standard_error[chosen],
            tested=self.tested,
        )

    def __repr__(self) -> str:
        rows = zip(self.strings, self.counts, self.standard_error, strict=True)
        shown = [f"{name!r}: {count:.0f} ± {error:.2g}" for name, count, error in rows]
        more = [f"... {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
        return f"StringEstimate({', '.join([f'n={self.n}', *shown[:_SHOWN], *more])})"


def surprise(failing: Fraction, *, tested: int) -> float:
    """Return how many standard errors one of so many normal estimates exceeds with this chance.

    >>> round(surprise(Fraction(1, 40), tested=1), 2)
    1.96
    """
    from scipy.special import ndtri

    return float(-ndtri(float(failing / tested)))


def _failing(confidence: Number) -> Fraction:
    return 1 - probability(confidence, name="confidence")
