"""Shuffles of so many people that their coins are bounded by normal laws instead of counted.

docs/proofs/shuffling.md, "Very many people", has the inequalities.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._rounding import above
from discreet.accounting.arithmetic.binomials import window
from discreet.accounting.arithmetic.mills import mills_slope, normal_density
from discreet.accounting.shuffling.clones import clone_chance, tilt

__all__ = ["CrowdTails", "crowd_atoms", "crowd_tails", "is_crowd"]

Floats = npt.NDArray[np.float64]

_CROWD = 2**25  # coins from which on nothing is counted one by one
_LEVELS = 32
_CELLS = 2**13  # on either side of the middle


def is_crowd(epsilon0: float, n: int, year: int) -> bool:
    """Return whether there are so many coins."""
    return n * clone_chance(epsilon0, year)[0] > _CROWD


def _crowd_sizes(
    epsilon0: float, n: int, year: int, *, depth: float, levels: int
) -> tuple[list[int], list[float], float]:
    """Return values of M, masses, and the mass left out, of a law that is nowhere above M's.

    The chance to be below a number is bounded by Chernoff's inequality at some numbers.
    """
    p, q = clone_chance(epsilon0, year)
    if q == 0:
        return [n], [1.0], 0.0
    depths = [depth * (1 - i / levels) ** 2 for i in range(levels)]
    firsts = [window(n - 1, p, q, depth=d)[0] for d in depths]
    below = [*(math.exp(-d) for d in depths), 1.0]
    masses = [(high - low) * (1 + 1e-12) for low, high in pairwise(below)]
    return [first + 1 for first in firsts], masses, below[0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdTails:
    """As :class:`~discreet.accounting.shuffling.clones.Tails`, without a table."""

    t: float
    sizes: list[int]
    masses: list[float]
    lost: float
    depth: float

    def delta_upper(self, epsilon: float) -> float:
        """Return delta at ``epsilon``, rounded up."""
        if epsilon > 700:  # no loss is that large: see the limit on epsilon0
            return above(self.lost, relative=0)
        share = math.tanh(epsilon / 2) / self.t * (1 - 4e-15)
        mean = math.fsum(
            mass * _mean_beyond(m, share, self.depth)
            for m, mass in zip(self.sizes, self.masses, strict=True)
        )
        factor = self.t * (1 + math.exp(epsilon))
        left_out = self.lost + factor * math.exp(-self.depth)
        return above(factor * mean + left_out, relative=1e-11)


@lru_cache(maxsize=4)
def crowd_tails(epsilon0: float, n: int, year: int, depth: float) -> CrowdTails:
    """Describe the coins of one shuffle."""
    sizes, masses, lost = _crowd_sizes(epsilon0, n, year, depth=depth, levels=_LEVELS)
    return CrowdTails(t=tilt(epsilon0), sizes=sizes, masses=masses, lost=lost, depth=depth)


def _mean_beyond(m: int, share: float, depth: float) -> float:
    """Bound the mean of (S/m - share)+ over m fair signs, but for tails of exp(-depth)."""
    z = share * math.sqrt(m) * (1 - 4e-15)
    if z > 38:  # Hoeffding
        return math.exp(-z * z / 2)
    # The sum over the lattice exceeds the integral by one term at most, itself below exp(-1/2).
    integral = math.sqrt(m) / 2 * normal_density(z) * mills_slope(z)
    return 2 / m * _thicker(m, depth) * (integral + math.exp(-0.5) * normal_density(z))


def _thicker(m: int, depth: float) -> float:
    """Bound binomial over normal density within sqrt(depth m / 2) of the middle."""
    return (1 + 1e-14) / math.sqrt(1 - min(0.5, 2 * (depth + 1) / m))


def crowd_atoms(
    epsilon0: float, n: int, year: int, *, depth: float, levels: int
) -> tuple[Floats, Floats, float]:
    """Return losses, masses and the mass left out: coins in cells, each at its largest loss."""
    from scipy.special import ndtr

    sizes, weights, lost = _crowd_sizes(epsilon0, n, year, depth=depth, levels=levels)
    t = tilt(epsilon0) * (1 + 4e-16)
    losses, masses = [], []
    for size, weight in zip(sizes, weights, strict=True):
        m = size - size % 2  # fewer coins hide less, and an even number has a middle
        reach = math.ceil(math.sqrt(depth * m / 2)) + 1
        # Cells of coins beyond the middle, on either side; a sum of a falling function over whole
        # numbers from the second on is below its integral.
        edges = np.unique(np.linspace(0, reach, _CELLS + 1).astype(np.int64)).astype(float)
        scale = 2 / math.sqrt(m)
        density = _thicker(m, depth) * (1 + 1e-9) * weight
        cells = -np.diff(ndtr(-scale * edges)) * density
        most = np.concatenate([[0.0], edges[1:], -(edges[:-1] + 1)])
        mass = np.concatenate([[density * scale / math.sqrt(2 * math.pi)], cells, cells])
        lean = np.clip(t * 2 * most / m, -1.0, 1.0)
        with np.errstate(divide="ignore"):  # the tilt may round to 1
            loss = np.log1p(lean) - np.log1p(-lean) + 1e-15
        losses.append(np.clip(loss, -epsilon0, epsilon0))
        masses.append(mass * (1 + lean))
    return np.concatenate(losses), np.concatenate(masses), lost + 4 * math.exp(-depth)
