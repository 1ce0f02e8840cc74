"""The total loss of different randomized responses, on a lattice, never understated."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.accounting._rounding import above
from discreet.accounting._shuffle_binomials import log_pmf, window

__all__ = ["Lattice"]

Floats = npt.NDArray[np.float64]

_ONE_BY_ONE = 64  # up to this many equal parts, two additions each beat one long convolution


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lattice:
    """Upper bounds on the mass at losses step * (first + i), and on what lies above them all.

    Mass below the lattice is lifted to its first cell, which can only raise a delta.
    """

    step: Fraction
    first: int
    masses: Floats
    above_all: float
    additions: int

    @classmethod
    def of(cls, parts: list[tuple[Fraction, int]], *, cells: int, spare: float) -> "Lattice":
        """Add up the losses of ``parts`` (epsilon, count), wide enough for deltas near ``spare``."""
        spread = math.sqrt(math.fsum(n * float(e) ** 2 for e, n in parts))
        mean = math.fsum(n * float(e) * math.tanh(float(e) / 2) for e, n in parts)
        # Hoeffding: the loss is beyond mean + reach with a chance below 1e-9 of spare. That only
        # picks the range: what in fact falls outside is measured and paid for.
        reach = spread * math.sqrt(2 * (21 - math.log(max(spare, 1e-320))))
        largest = max(e for e, _ in parts)
        total = float(sum(e * n for e, n in parts))
        width = min(mean + reach, total) + min(reach, total)
        step = largest / math.ceil(largest / Fraction(width / cells))
        sizes: Counter[int] = Counter()
        for e, n in parts:
            sizes[math.ceil(e / step)] += n
        low = -math.ceil(Fraction(min(reach, 2 * total)) / step)
        high = math.ceil(Fraction(min(mean + reach, 2 * total)) / step)
        start = cls(step=step, first=0, masses=np.ones(1), above_all=0.0, additions=0)
        for size, count in sorted(sizes.items(), reverse=True):
            start = start._plus(size, count, low=low, high=high)
        return start

    def _plus(self, size: int, count: int, *, low: int, high: int) -> "Lattice":
        """Add ``count`` randomized responses whose epsilon is ``size`` steps."""
        if 1 < count <= _ONE_BY_ONE:
            result = self
            for _ in range(count):
                result = result._plus(size, 1, low=low, high=high)
            return result
        tail = math.exp(-float(size * self.step))
        p, q = max(tail / (1 + tail), 5e-324), 1 / (1 + tail)
        first, last = window(count, p, q, depth=120.0)
        untrue = np.arange(first, last + 1)
        logs, error = log_pmf(untrue, count, p, q)
        weights = np.exp(logs + error)
        stride = 2 * size
        wide = np.zeros(len(self.masses) + stride * (len(weights) - 1))
        for i, weight in enumerate(weights[::-1]):
            wide[i * stride : i * stride + len(self.masses)] += weight * self.masses
        bottom = self.first + size * (count - 2 * last)
        lost = 2 * math.exp(-120.0) if len(weights) <= count else 0.0
        return self._clipped(wide, bottom, low, high, lost, self.additions + len(weights))

    def _clipped(
        self, wide: Floats, bottom: int, low: int, high: int, lost: float, additions: int
    ) -> "Lattice":
        """Lift what is below ``low`` and set aside what is above ``high``."""
        lift = max(0, min(low - bottom, len(wide) - 1))
        masses = wide[lift:].copy()
        masses[0] += wide[:lift].sum()
        first = bottom + lift
        keep = max(1, high - first + 1)
        over = float(masses[keep:].sum())
        return Lattice(
            step=self.step,
            first=first,
            masses=masses[:keep],
            above_all=self.above_all + over + lost,
            additions=additions,
        )

    def delta_upper(self, epsilon: float) -> float:
        """Return the mean of (1 - exp(epsilon - loss))+, rounded up."""
        cells = np.arange(self.first, self.first + len(self.masses))
        losses = cells * float(self.step)
        gap = losses - epsilon + 6e-16 * (np.abs(losses) + epsilon)
        value = float(np.sum(self.masses * -np.expm1(-np.maximum(gap, 0.0)))) + self.above_all
        # Every addition of positive numbers is off by at most 2^-53 of its result, every product
        # likewise; what is lost below the normal floats is far less than the constant.
        return above(value + 1e-290, relative=1e-12 + 1e-15 * self.additions)
