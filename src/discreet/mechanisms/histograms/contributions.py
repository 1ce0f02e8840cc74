"""The bounds on what one unit adds to many counts, checked in one way everywhere."""

from fractions import Fraction
from typing import Final

from discreet._exact import positive, probability, refusal, whole

__all__ = [
    "LARGEST_EPSILON",
    "SMALLEST_EPSILON",
    "cells_touched",
    "most_per_cell",
    "share_of_budget",
]

# Beyond these, doubles that guess a threshold lose their digits; nobody has such a budget.
SMALLEST_EPSILON: Final = Fraction(1, 1 << 40)
LARGEST_EPSILON: Final = Fraction(1 << 20)
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
    if not SMALLEST_EPSILON <= first <= LARGEST_EPSILON:
        raise refusal("epsilon", "between l0 * 2**-40 and l0 * 2**20", epsilon)
    if second < _SMALLEST_DELTA:
        raise refusal("delta", "at least l0 * 1e-300", delta)
    return first, second
