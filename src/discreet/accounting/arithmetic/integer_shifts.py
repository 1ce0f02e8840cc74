"""The worst integer shift of small discrete Gaussian noise, found by looking at all of them.

The privacy loss of a shift d is (y + |d|^2 / 2) / sigma^2 with y = <d, noise>, so the law of y is
all there is to know: a convolution of positive terms, which floats hold to a relative 1e-12.
docs/proofs/laplace_vectors.md has the argument, in section 5.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._rounding import above, float_down, nearest

__all__ = ["enumerated_shift_delta", "is_enumerable"]

_LARGEST = 25  # squared norm: 19 shifts
_NARROWEST, _WIDEST = Fraction(1, 10**6), Fraction(70)  # variances
_REACH = 38  # deviations: the rest is below 1e-310, for the noise is subgaussian

Floats = npt.NDArray[Any]


def is_enumerable(*, variance: Fraction, squared: int) -> bool:
    """Say whether there are few enough shifts, and values of the noise."""
    return squared <= _LARGEST and _NARROWEST < variance < _WIDEST


def enumerated_shift_delta(
    *, variance: Fraction, squared: int, dimension: int | None, epsilon: Fraction
) -> float:
    """Return the largest delta at ``epsilon`` over all integer shifts, rounded up.

    ``squared`` bounds their squared norm, ``dimension`` how many entries are not 0.

    >>> at = {"variance": Fraction(1), "squared": 4, "epsilon": Fraction(4)}
    >>> [round(enumerated_shift_delta(dimension=n, **at), 4) for n in (1, 2, None)]
    [0.0512, 0.0512, 0.0753]
    """
    e = float_down(epsilon)
    worst = 0.0
    for losses, masses in _laws(variance, squared, dimension):
        # Raised by more than what rounding takes from either term.
        gap = losses - e + 4.5e-16 * (np.abs(losses) + e)
        worst = max(worst, float(np.sum(masses * -np.expm1(-np.maximum(gap, 0.0)))))
    return above(worst + 1e-300, relative=1e-11)


@lru_cache(maxsize=128)
def _laws(
    variance: Fraction, squared: int, dimension: int | None
) -> tuple[tuple[Floats, Floats], ...]:
    """Return losses and masses of every shift that no other one exceeds."""
    sigma2 = nearest(variance)
    sigma = math.sqrt(sigma2)
    reach = math.ceil(_REACH * sigma) + 2
    noise = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * sigma2))
    noise /= noise.sum()
    furthest = math.ceil(_REACH * sigma * math.sqrt(squared)) + 2
    found = []
    for shift in _largest_shifts(squared, squared if dimension is None else dimension):
        law = np.ones(1)
        for entry in shift:
            spread = np.zeros(2 * reach * entry + 1)
            spread[::entry] = noise
            law = np.convolve(law, spread)
            middle = law.size // 2
            law = law[max(0, middle - furthest) : middle + furthest + 1]
        y = np.arange(law.size) - law.size // 2
        norm = sum(entry * entry for entry in shift)
        found.append(((y + norm / 2) / sigma2, law))
    return tuple(found)


def _largest_shifts(squared: int, dimension: int) -> Iterator[tuple[int, ...]]:
    """Yield the shifts, up to order and signs, that cannot grow in any coordinate.

    A larger entry, or one more, costs more: a scalar shift does (docs/proofs/laplace_vectors.md,
    section 1), and so does it beside other coordinates, since domination composes.

    >>> list(_largest_shifts(5, 3)), list(_largest_shifts(3, 1))
    ([(1, 1, 1), (2, 1)], [(1,)])
    """

    def grow(shift: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        room = len(shift) < dimension
        if shift and not (room and left) and all(2 * entry + 1 > left for entry in shift):
            yield shift
        for entry in range(1, math.isqrt(left) + 1 if room else 0):
            if not shift or entry <= shift[-1]:
                yield from grow((*shift, entry), left - entry * entry)

    yield from grow((), squared)
