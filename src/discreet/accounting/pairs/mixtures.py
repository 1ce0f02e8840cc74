"""Gaussian noise on sums of which nobody knows how many of some units are in them."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.accounting.pairs.pairs import Floats, quadrature, within

__all__ = ["MixturePair"]

_HALVINGS = 64
_CUTS, _POINTS = 11, 66


@final
@dataclass(frozen=True, slots=True)
class MixturePair:
    """P = N(A, s^2) and Q = N(-B, s^2), A and B binomial: of ``up`` and of ``down`` at ``rate``.

    The loss grows with the output x. It is log(1 + a) - log(1 + b) with a = E[exp(u(A)) - 1], b =
    E[exp(u(-B)) - 1] and u(m) = (m x - m^2 / 2) / s^2, so that small losses keep their digits.

    Cells are at most a twentieth of s wide, and narrower where outputs lie more than 40 deviations
    from a centre; there each centre's density is integrated to a relative 1e-13 (GaussianPair), and
    so is their sum.
    """

    s: float
    rate: float
    up: int
    down: int

    infinite = 0.0
    missing = 0.0
    lattice = None
    anchors = None

    def cut(self, reach: float) -> float:
        return math.erfc(reach / math.sqrt(2))

    def span(self, reach: float) -> tuple[float, float]:
        low, high = self._loss(np.array(self._ends(reach))).tolist()
        return low, high

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        first, last = self._ends(reach)
        farthest = (last - first) / self.s
        at = within(self._output(edges, first, last), first, last)
        x, weight = quadrature(at, self.s / max(20.0, farthest / 2))
        density = np.zeros(x.size)
        for m, chance in enumerate(_chances(self.up, self.rate)):
            t = (x - m) / self.s
            density += chance * np.exp(-t * t / 2)
        density /= self.s * math.sqrt(2 * math.pi)
        return self._loss(x), density * weight * (1 + 4e-13)

    def tail(self, loss: float) -> tuple[float, float]:
        """Return the chances under P and under Q of a larger loss."""
        from scipy.special import ndtr

        low, at = self._ends(60.0)
        for _ in range(_CUTS):  # one loss is found sooner by many points at once
            points = np.linspace(low, at, _POINTS)
            place = int(np.searchsorted(self._loss(points), loss))
            low, at = points[max(0, place - 1)], points[min(place, _POINTS - 1)]
        above, below = (
            math.fsum(
                chance * float(ndtr((sign * m - at) / self.s))
                for m, chance in enumerate(_chances(count, self.rate))
            )
            for sign, count in ((1, self.up), (-1, self.down))
        )
        return above, below

    def _ends(self, reach: float) -> tuple[float, float]:
        return -self.down - reach * self.s, self.up + reach * self.s

    def _loss(self, x: Floats) -> Floats:
        return self._log_moment(x, self.up) - self._log_moment(-x, self.down)

    def _log_moment(self, x: Floats, count: int) -> Floats:
        """Return log E[exp((m x - m^2 / 2) / s^2)] for m binomial, to all its digits."""
        excess, logs = np.zeros(x.size), []
        for m, chance in enumerate(_chances(count, self.rate)):
            if chance:
                exponent = (m * x - m * m / 2) / self.s**2
                excess += chance * np.expm1(np.minimum(exponent, 700.0))
                logs.append(exponent + math.log(chance))
        is_small = np.abs(excess) < 0.5  # where digits would cancel
        top = np.max(logs, axis=0)
        large = top + np.log(np.exp(np.array(logs) - top).sum(axis=0))
        return np.where(is_small, np.log1p(np.where(is_small, excess, 0.0)), large)

    def _output(self, losses: Floats, low: float, high: float) -> Floats:
        """Return the outputs with these losses, or the ends where they lie beyond."""
        below, above = np.full(losses.size, low), np.full(losses.size, high)
        for _ in range(_HALVINGS):
            middle = (below + above) / 2
            is_low = self._loss(middle) < losses
            below, above = np.where(is_low, middle, below), np.where(is_low, above, middle)
        return above


def _chances(count: int, rate: float) -> list[float]:
    """Return the binomial law of how many of ``count`` units are drawn."""
    return [math.comb(count, m) * rate**m * (1 - rate) ** (count - m) for m in range(count + 1)]
