"""A rough look at a composition, to choose how to compute it. Nothing certified rests on it."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from discreet.accounting.pairs.pairs import Floats, GaussianPair, Pair

__all__ = ["Pilot", "Plan", "order_from"]

Parts = Sequence[tuple[Pair, int]]
_MOST_NODES = 96
_MOST_FINE = 6000  # cells of one step's width that the tilted bulk may ask for
_LEAST_LOG_DELTA = -16.0
_AT_ONCE = 1 << 21  # numbers
_ORDERS = np.geomspace(1e-3, 1e6, 91)  # minus one
_TILTS = np.geomspace(1e-2, 1e7, 28)
_BEYOND = np.array([0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 40.0, 80.0])


class Plan(NamedTuple):
    """How to compute near one epsilon."""

    tilt: float
    step: float
    window: float
    order: int
    cap: float
    bulks: list[tuple[float, float]]


@final
class Pilot:
    """Moments of the summed loss from a few dozen nodes of each part, a row for each."""

    def __init__(self, parts: Parts, reach: float) -> None:
        nodes = max(24, min(_MOST_NODES, 10_000 // len(parts)))
        self._loss = np.zeros((len(parts), nodes))
        self._log_mass = np.full((len(parts), nodes), -np.inf)
        for row, (pair, _) in enumerate(parts):
            low, high = pair.span(reach)
            inner = low + (high - low) * np.arange(1, nodes) / nodes
            loss, log_mass = _thinned(*pair.nodes(inner, reach), nodes)
            self._loss[row, : loss.size] = loss
            self._loss[row, loss.size :] = loss[0]
            self._log_mass[row, : loss.size] = log_mass
        self._counts = np.array([float(times) for _, times in parts])
        self._times = float(self._counts.sum())
        normal = [n / pair.s**2 for pair, n in parts if isinstance(pair, GaussianPair)]
        self._normal = math.fsum(normal)  # variance, beyond the reach as well

    def epsilon_near(self, delta: float) -> float:
        """Return roughly the epsilon at this delta: where a saddle point says, or less."""
        logs, means, variances = self.moments(_ORDERS)
        log_delta = math.log(delta)
        best = (logs - log_delta + _ORDERS * np.log(_ORDERS / (_ORDERS + 1))) / _ORDERS
        best -= np.log1p(_ORDERS) / _ORDERS
        renyi = max(0.0, float(np.nanmin(best)))
        # Under the tilt that centres the sum at its mean, delta is about this.
        spread = np.sqrt(2 * math.pi * variances) * _ORDERS * (_ORDERS + 1)
        found = logs - _ORDERS * means - np.log(spread + 1)
        place = int(np.argmax(found < log_delta))
        if place == 0 or not np.isfinite(found[place - 1 : place + 1]).all():
            return renyi
        left, right = found[place - 1], found[place]
        share = (left - log_delta) / (left - right)
        guess = means[place - 1] + share * (means[place] - means[place - 1])
        return min(max(float(guess), renyi / 4), renyi)

    def log_delta_near(self, epsilon: float) -> tuple[float, float]:
        """Return roughly the logarithm of delta, unless that is very small, and its slope."""
        tilt = self._tilt_for(epsilon, math.inf)
        logs, _, variances = self.moments(np.array([tilt]))
        spread = math.sqrt(2 * math.pi * float(variances[0])) * tilt * (tilt + 1)
        found = float(logs[0]) - tilt * epsilon - math.log1p(spread)
        return min(-1.0, max(found, _LEAST_LOG_DELTA)), tilt

    def plan(self, epsilon: float, delta: float, *, tolerance: float) -> Plan:
        """Choose tilt, step and window so that epsilon comes out about ``tolerance`` too large."""
        saddle = self._tilt_for(epsilon, math.inf)
        cap = self._cap(epsilon, delta * min(1e-3, tolerance * saddle))
        tilts = np.append(0.0, saddle * 0.8 ** np.arange(48.0))
        _, mean, variance = self.moments(tilts, cap)
        spread = np.sqrt(variance)
        natural, centre = float(spread[0]), max(epsilon, float(mean[0]))
        # Between one deviation's worth, as less would need a long window, and what keeps the
        # window from shrinking to nothing where epsilon is all but the largest loss.
        if not 1 / natural <= saddle <= 100 / natural or cap < math.inf:
            saddle = min(max(self._tilt_for(epsilon, cap), 1 / natural), 100 / natural)
            tilts[1:] = saddle * 0.8 ** np.arange(48.0)
            _, mean, variance = self.moments(tilts, cap)
            spread = np.sqrt(variance)
        # Where single losses are heavy-tailed, the tilt that centres the sum also spreads it thin.
        is_modest = (spread[1:] <= 1.7 * natural) & (mean[1:] <= centre + 3 * natural)
        modest = np.flatnonzero(is_modest)
        pick = 1 + int(modest[0]) if modest.size else tilts.size - 1
        tilt, deviation = float(tilts[pick]), float(spread[pick])
        step = math.sqrt(12 * tolerance / (max(saddle, 1.0) * self._times))
        beyond = max(0.0, float(mean[pick]) - epsilon)  # an epsilon below the bulk sees all of it
        window = max(16 * deviation + 2 * beyond, natural, (14 - math.log(delta)) / tilt)
        step = min(step, natural / 6)
        # Smoothing of this order costs about a quarter of the tolerance where the sum is smooth.
        kink = 0.15 + 0.01 * deviation * (2 * tilt + 1)
        order = order_from(window * math.sqrt((tilt + 1) * kink / tolerance))
        return Plan(tilt, step, window, order, cap, self._bulks(tilt, step, cap))

    def moments(self, tilts: Floats, cap: float = math.inf) -> tuple[Floats, Floats, Floats]:
        """Return log-moment generating function, mean and variance of the tilted sum."""
        logs, means, variances = (np.zeros(tilts.size) for _ in range(3))
        for rows in self._blocks(tilts.size):
            loss, count = self._loss[rows], self._counts[rows]
            log_mass = self._capped(cap)[rows]
            exponent = log_mass + tilts[:, None, None] * loss
            top = exponent.max(axis=2)
            weight = np.exp(exponent - top[:, :, None])
            total = weight.sum(axis=2)
            mean = np.einsum("tpn,pn->tp", weight, loss) / total
            square = np.einsum("tpn,pn->tp", weight, loss * loss) / total
            logs += (top + np.log(total)) @ count
            means += mean @ count
            variances += np.maximum(square - mean**2, 1e-30) @ count
        return logs, means, variances

    def _capped(self, cap: float) -> Floats:
        """Return the logarithms of the masses up to the cap, or of the lowest loss alone."""
        if cap == math.inf:
            return self._log_mass
        caps = np.maximum(cap, self._loss.min(axis=1))[:, None]
        return np.where(self._loss <= caps, self._log_mass, -np.inf)

    def _blocks(self, tilts: int) -> Iterator[slice]:
        rows, nodes = self._loss.shape
        size = max(1, _AT_ONCE // (tilts * nodes))
        return (slice(start, start + size) for start in range(0, rows, size))

    def _tilt_for(self, epsilon: float, cap: float) -> float:
        """Return the tilt under which the mean of the sum is ``epsilon``.

        A tilt moves normal losses by their variance, and the mean of the others up from above 0.
        """
        most = max(epsilon / self._normal, float(_TILTS[0])) if self._normal else math.inf
        return min(most, self._tilt_of_nodes(epsilon, cap))

    def _tilt_of_nodes(self, epsilon: float, cap: float) -> float:
        tilts = _TILTS
        for _ in range(3):
            place = int(np.searchsorted(self.moments(tilts, cap)[1], epsilon))
            if place in (0, tilts.size):
                return float(tilts[min(place, tilts.size - 1)])
            tilts = tilts[place - 1] * (tilts[place] / tilts[place - 1]) ** (np.arange(9.0) / 8)
        return float(tilts[4])

    def _cap(self, epsilon: float, allowed: float) -> float:
        """Return a loss so large that calling any larger one infinite costs little."""
        if epsilon + _BEYOND[0] >= self._loss.max():
            return math.inf
        mass = self._counts[:, None] * np.exp(self._log_mass)
        for beyond in _BEYOND.tolist():
            above = float(mass[self._loss > epsilon + beyond].sum())
            if above * math.exp(-beyond) <= allowed:
                return float(epsilon + beyond)
        return math.inf

    def _bulks(self, tilt: float, step: float, cap: float) -> list[tuple[float, float]]:
        """Return for each part where a single loss mostly lies, before and after tilting."""
        logs, ends = self._capped(cap), []
        for pull in (0.0, tilt):
            exponent = logs + pull * self._loss
            weight = np.exp(exponent - exponent.max(axis=1)[:, None])
            weight /= weight.sum(axis=1)[:, None]
            mean = (weight * self._loss).sum(axis=1)
            spread = np.sqrt((weight * (self._loss - mean[:, None]) ** 2).sum(axis=1))
            ends.append((mean - 6 * spread, mean + 6 * spread))
        (low, high), (_, tilted_high) = ends
        # Where few operations make the sum, its tail is the tail of one of them.
        tops = np.maximum(high, np.minimum(tilted_high, low + _MOST_FINE * step))
        return list(zip(low.tolist(), tops.tolist(), strict=True))


def order_from(wanted: float) -> int:
    """Return the next order that is a power of two or three times one: docs/proofs checks these."""
    order = 32
    while order < wanted:
        order = order * 3 // 2 if order & (order - 1) == 0 else order * 4 // 3
    return order


def _thinned(loss: Floats, mass: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return a few dozen losses in place of many, with the logarithms of their masses."""
    kept = np.flatnonzero(mass > 0)
    order = kept[np.argsort(loss[kept], kind="stable")]
    starts = np.unique(np.arange(nodes) * order.size // nodes)
    total = np.add.reduceat(mass[order], starts)
    middle = np.add.reduceat(mass[order] * loss[order], starts) / total
    return middle, np.log(total)
