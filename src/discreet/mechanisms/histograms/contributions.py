"""The bounds on what one unit adds to many counts, checked in one way everywhere."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from discreet._exact import Number, positive, probability, refusal, whole
from discreet.mechanisms.values.calibration import M, search_epsilon

__all__ = [
    "cells_touched",
    "least_epsilon_for_cells",
    "most_per_cell",
    "share_of_budget",
]

# Beyond these, doubles that guess a threshold lose their digits; nobody has such a budget.
_SMALLEST_EPSILON: Final = Fraction(1, 1 << 40)
_LARGEST_EPSILON: Final = Fraction(1 << 20)
_SMALLEST_DELTA: Final = Fraction(1, 10**300)


def cells_touched(l0: object) -> int:
    """Return a checked ``l0``.

    >>> cells_touched(3)
    3
    """
    return whole(l0, name="l0", hint="It is the largest number of cells or keys one unit touches.")


def most_per_cell(linf: object) -> int:
    """Return a checked ``linf``.

    >>> most_per_cell(1)
    1
    """
    return whole(linf, name="linf", hint="It is the most that one unit adds to one cell or key.")


def share_of_budget(epsilon: object, delta: object, l0: object) -> tuple[Fraction, Fraction]:
    """Return epsilon / l0 and delta / l0, exactly, for keys that are found in the data.

    >>> share_of_budget(1, 0.5, 4)
    (Fraction(1, 4), Fraction(1, 8))
    """
    touched = cells_touched(l0)
    first = positive(epsilon, name="epsilon") / touched
    hint = "At delta = 0 a key found in the data could never be shown."
    second = probability(delta, name="delta", hint=hint) / touched
    if not _SMALLEST_EPSILON <= first <= _LARGEST_EPSILON:
        raise refusal("epsilon", "between l0 * 2**-40 and l0 * 2**20", epsilon)
    if second < _SMALLEST_DELTA:
        raise refusal("delta", "at least l0 * 1e-300", delta)
    return first, second


def least_epsilon_for_cells(
    make: Callable[..., M], *, l0: object, error: Number, wanted: int, confidence: Number
) -> M:
    """Return ``make(epsilon=...)`` with the smallest epsilon whose error is at most ``wanted``."""
    touched = cells_touched(l0)
    epsilon = search_epsilon(
        lambda e: make(epsilon=e).error(confidence=confidence) <= wanted,
        error=error,
        start=float(touched),
        lowest=float(touched * _SMALLEST_EPSILON),
        highest=float(touched * _LARGEST_EPSILON),
    )
    return make(epsilon=epsilon)
