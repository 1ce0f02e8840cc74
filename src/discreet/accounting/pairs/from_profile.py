"""A finite pair that dominates whatever has a given profile."""

from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet._exact import Number
from discreet.accounting.pairs.pairs import AtomsPair, Floats

__all__ = ["profile_pair"]

_POINTS = 400
_NEGLIGIBLE = 1e-60


class _Profiled(Protocol):
    @property
    def epsilon_pure(self) -> Fraction | float: ...

    def delta_upper(self, *, epsilon: Number) -> float: ...


@lru_cache(maxsize=256)
def profile_pair(loss: _Profiled) -> AtomsPair:
    """Return a pair of distributions on finitely many points whose profile is above the loss's.

    Why: the true profile h, as a function of a = exp(e), is convex and below the bound at each of
    the chosen points, so it lies below the chords between them and below the convex envelope of
    those. Any convex decreasing function above (1 - a)+ with h(0) = 1 is the profile of a pair: Q
    has as mass at log(a) the change of slope at a, P has a times that [ZDW22, Proposition 7].
    Where nothing but delta at e >= 0 is known, h(a) = 1 - a + a h(1/a) for a < 1, by symmetry. What
    is left of delta at the last point is called infinite.
    """
    last = _last(loss)
    positive = last * np.linspace(0.0, 1.0, _POINTS) ** 1.5
    deltas = np.array([loss.delta_upper(epsilon=Fraction(e)) for e in positive.tolist()])
    a = np.exp(positive)
    mirrored = 1 - 1 / a[:0:-1] + deltas[:0:-1] / a[:0:-1]
    points = np.concatenate([[0.0], 1 / a[:0:-1], a])
    values = np.concatenate([[1.0], mirrored, deltas])
    kept = _envelope(points, values)
    points, values = points[kept], values[kept]
    slope = np.append(np.diff(values) / np.diff(points), 0.0)
    q = np.maximum(np.diff(slope), 0.0)
    p = points[1:] * q
    infinite = float(values[-1])
    missing = max(0.0, 1 + float(slope[0]))
    return AtomsPair(np.log(points[1:]), p * (1 + 1e-12), infinite, missing)


def _last(loss: _Profiled) -> float:
    """Return the largest epsilon worth looking at."""
    pure = loss.epsilon_pure
    if isinstance(pure, Fraction):
        return min(float(pure) * (1 + 1e-15), 500.0)
    high = 1e-3
    while loss.delta_upper(epsilon=Fraction(high)) > _NEGLIGIBLE and high < 500:
        high *= 1.5
    return min(high, 500.0)


def _envelope(x: Floats, y: Floats) -> list[int]:
    """Return which points lie on the lower convex envelope."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) >= 2:
            j, k = kept[-2], kept[-1]
            if (y[k] - y[j]) * (x[i] - x[k]) < (y[i] - y[k]) * (x[k] - x[j]):
                break
            kept.pop()
        kept.append(i)
    return kept
