"""Dominating pairs in the form the privacy-loss accountant computes with.

A pair (P, Q) is seen through the law of its privacy loss L = log P/Q under P: point masses, a
smooth part that is integrated numerically between given losses, and mass that no loss describes.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "AtomsPair",
    "Floats",
    "GaussianPair",
    "LaplacePair",
    "MixedPair",
    "Pair",
    "SampledPair",
    "quadrature",
    "within",
]

Floats = npt.NDArray[Any]


class Pair(Protocol):
    """The loss of one direction of one mechanism."""

    @property
    def infinite(self) -> float:
        """P's mass where Q has none."""
        ...

    @property
    def missing(self) -> float:
        """Q's mass where P has none."""
        ...

    @property
    def lattice(self) -> tuple[float, float] | None:
        """(origin, spacing) of a lattice that holds all losses, if there is one."""
        ...

    @property
    def anchors(self) -> tuple[float, float] | None:
        """The lowest and the highest loss where both are heavy, so that a lattice can fit them."""
        ...

    def cut(self, reach: float) -> float:
        """Return a bound on P's mass left out by ``nodes``: beyond ``reach`` deviations."""
        ...

    def span(self, reach: float) -> tuple[float, float]:
        """Return the smallest and largest loss that ``nodes`` gives."""
        ...

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        """Return losses and masses that stand for P in every cell between increasing ``edges``.

        Sums over the nodes of a cell of mass times a function that is smooth on the cell, such as
        1 or exp(-loss), are right to a relative 1e-14.
        """
        ...


_LEGENDRE = {order: np.polynomial.legendre.leggauss(order) for order in (3, 5, 8)}


def within(edges: Floats, first: float, last: float) -> Floats:
    """Return the increasing ``edges`` that lie between two ends, and the ends."""
    inner = edges[(edges > first) & (edges < last)]
    every = np.concatenate([[first], inner, [last]])
    kept: Floats = every[np.append(True, np.diff(every) > 0)]
    return kept


def quadrature(edges: Floats, widest: float) -> tuple[Floats, Floats]:
    """Return points and weights of Gauss-Legendre rules on the cells between ``edges``.

    Cells wider than ``widest`` are cut, and narrow ones get fewer points.
    """
    width = np.diff(edges)
    pieces = np.maximum(1, np.ceil(width / widest)).astype(np.int64)
    small = np.repeat(width / pieces, pieces)
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    middle = np.repeat(edges[:-1], pieces) + small * (number + 0.5)
    points, weights = [], []
    narrow, wide = small <= widest / 32, small > widest / 4
    for order, chosen in ((3, narrow), (5, ~(narrow | wide)), (8, wide)):
        if chosen.any():
            at, weight = _LEGENDRE[order]
            half = small[chosen, None] / 2
            points.append((middle[chosen, None] + half * at).ravel())
            weights.append((half * weight).ravel())
    return np.concatenate(points), np.concatenate(weights)


@final
@dataclass(frozen=True, slots=True)
class GaussianPair:
    """P = N(1, s^2) and Q = N(0, s^2), which is symmetric.

    At t deviations, cells of w deviations are integrated to a relative (t w)^(2n) (n!)^4 /
    ((2n+1) (2n)!^3) by the rule of n points (its remainder, and f^(2n) is about t^(2n) f): below
    1e-13 within 10 deviations for eight points on cells of s/4, five on s/16 and three on s/128,
    and within 40 for cells a fifth of that. The masses are raised by as much.
    """

    s: float

    infinite = 0.0
    missing = 0.0
    lattice = None
    anchors = None

    def cut(self, reach: float) -> float:
        return math.erfc(reach / math.sqrt(2))

    def span(self, reach: float) -> tuple[float, float]:
        far = reach * self.s + 0.5
        return -far / self.s**2, far / self.s**2

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        first, last = -reach * self.s, 1 + reach * self.s
        near = max(first, 1 - 10 * self.s), min(last, 1 + 10 * self.s)
        at = self.s**2 * edges + 0.5
        parts = [
            quadrature(within(at, low, high), widest)
            for low, high, widest in (
                (first, near[0], self.s / 20), (*near, self.s / 4), (near[1], last, self.s / 20)
            )
            if low < high
        ]  # fmt: skip
        x, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        t = (x - 1) / self.s
        density = np.exp(-t * t / 2) / (self.s * math.sqrt(2 * math.pi))
        return (x - 0.5) / self.s**2, density * weight * (1 + 3e-13)


@final
@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Laplace noise of scale b around 0 and around 1, which is symmetric.

    The loss is 1/b with probability 1/2, -1/b with exp(-1/b)/2, and has density exp((l - 1/b)/2)/4
    in between.
    """

    b: float

    infinite = 0.0
    missing = 0.0
    lattice = None

    @property
    def anchors(self) -> tuple[float, float] | None:
        return -1 / self.b, 1 / self.b

    def cut(self, reach: float) -> float:
        return 0.0

    def span(self, reach: float) -> tuple[float, float]:
        return -1 / self.b, 1 / self.b

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        top = 1 / self.b
        loss, weight = quadrature(within(edges, -top, top), 0.25)
        mass = weight * np.exp((loss - top) / 2) / 4
        ends = np.array([top, -top]), np.array([0.5, math.exp(-top) / 2])
        return np.append(loss, ends[0]), np.append(mass, ends[1]) * (1 + 1e-14)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtomsPair:
    """Finitely many losses with their masses under P."""

    losses: Floats
    masses: Floats
    infinite: float = 0.0
    missing: float = 0.0
    lattice: tuple[float, float] | None = None
    anchors: tuple[float, float] | None = None

    def cut(self, reach: float) -> float:
        return 0.0

    def span(self, reach: float) -> tuple[float, float]:
        if not self.losses.size:  # two laws without a common outcome
            return 0.0, 0.0
        return float(self.losses.min()), float(self.losses.max())

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        return self.losses, self.masses * (1 + 1e-15)


@final
@dataclass(frozen=True, slots=True)
class SampledPair:
    """A pair after Poisson sampling: (1-r)Q + rP against Q, or P against (1-r)P + rQ.

    Those are the worst pairs for removing and for adding a unit [ZDW22, Theorem 11].
    """

    inner: Pair
    rate: float
    removes: bool

    @property
    def infinite(self) -> float:
        return self.rate * self.inner.infinite if self.removes else 0.0

    @property
    def missing(self) -> float:
        return self.inner.missing if self.removes else self.rate * self.inner.missing

    @property
    def lattice(self) -> tuple[float, float] | None:
        if self.inner.lattice is None:
            return None
        losses, _ = self.nodes(np.zeros(0), 1.0)
        # Two points always lie on a lattice; more seldom do.
        return (float(losses.min()), float(np.ptp(losses))) if losses.size == 2 else None

    @property
    def anchors(self) -> tuple[float, float] | None:
        if self.inner.anchors is None:
            return None
        low, high = self._forward(np.array(self.inner.anchors)).tolist()
        return low, high

    def cut(self, reach: float) -> float:
        return self.inner.cut(reach)

    def span(self, reach: float) -> tuple[float, float]:
        low, high = self._forward(np.array(self.inner.span(reach)))
        if self.removes and self.inner.missing:
            low = min(low, math.log1p(-self.rate))
        if not self.removes and self.inner.infinite:
            high = max(high, -math.log1p(-self.rate))
        return float(low), float(high)

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        loss, mass = self.inner.nodes(self._backward(edges), reach)
        after = self._forward(loss)
        if not self.removes:
            if self.inner.infinite:
                after = np.append(after, -math.log1p(-self.rate))
                mass = np.append(mass, self.inner.infinite)
            return after, mass
        mass = mass * ((1 - self.rate) * np.exp(-loss) + self.rate)
        if self.inner.missing:
            after = np.append(after, math.log1p(-self.rate))
            mass = np.append(mass, (1 - self.rate) * self.inner.missing)
        return after, mass

    def _forward(self, loss: Floats) -> Floats:
        return _mix(loss, self.rate) if self.removes else -_mix(-loss, self.rate)

    def _backward(self, loss: Floats) -> Floats:
        return _unmix(loss, self.rate) if self.removes else -_unmix(-loss, self.rate)


@final
@dataclass(frozen=True, slots=True)
class MixedPair:
    """One pair or, with probability ``chance``, another, and it is told which.

    A bound on ``chance`` from above is safe where the second pair dominates the first.
    """

    first: Pair
    second: Pair
    chance: float

    lattice = None
    anchors = None

    @property
    def infinite(self) -> float:
        return self._mean(self.first.infinite, self.second.infinite)

    @property
    def missing(self) -> float:
        return self._mean(self.first.missing, self.second.missing)

    def cut(self, reach: float) -> float:
        return self._mean(self.first.cut(reach), self.second.cut(reach))

    def span(self, reach: float) -> tuple[float, float]:
        (low, high), (lower, higher) = self.first.span(reach), self.second.span(reach)
        return min(low, lower), max(high, higher)

    def nodes(self, edges: Floats, reach: float) -> tuple[Floats, Floats]:
        losses, masses = zip(
            *(pair.nodes(edges, reach) for pair in (self.first, self.second)), strict=True
        )
        weighted = masses[0] * (1 - self.chance), masses[1] * self.chance
        return np.concatenate(losses), np.concatenate(weighted) * (1 + 4e-16)

    def _mean(self, first: float, second: float) -> float:
        return ((1 - self.chance) * first + self.chance * second) * (1 + 4e-16)


def _mix(loss: Floats, rate: float) -> Floats:
    """Return log(1 - rate + rate * exp(loss)) without overflow or cancellation."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, 500.0)))
    return np.where(loss > 500.0, loss + math.log(rate), small)


def _unmix(loss: Floats, rate: float) -> Floats:
    """Return the inverse of ``_mix``, minus infinity where there is none."""
    odds = np.expm1(np.minimum(loss, 500.0)) / rate
    with np.errstate(divide="ignore"):
        small = np.log1p(np.maximum(odds, -1.0))
    return np.where(loss > 500.0, loss - math.log(rate), small)
