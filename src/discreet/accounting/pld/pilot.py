"""A rough look at a composition, to choose how to compute it. Nothing certified rests on it."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from discreet.accounting.pairs.pairs import Floats, Pair

__all__ = ["Pilot", "Plan"]

Parts = Sequence[tuple[Pair, int]]
_MOST_NODES = 96
_MOST_FINE = 6000  # cells of one step's width that the tilted bulk may ask for


class Plan(NamedTuple):
    """How to compute near one epsilon."""

    tilt: float
    step: float
    window: float
    cap: float
    bulks: list[tuple[float, float]]


@final
class Pilot:
    """Moments of the summed loss from a few hundred nodes of each part."""

    def __init__(self, parts: Parts, reach: float) -> None:
        self._parts: list[tuple[Floats, Floats, int]] = []
        nodes = max(24, min(_MOST_NODES, 10_000 // len(parts)))
        for pair, times in parts:
            low, high = pair.span(reach)
            loss, mass = pair.nodes(np.linspace(low, high, 66)[1:-1], reach)
            self._parts.append((*_thinned(loss, mass, nodes), times))
        self._times = sum(times for _, _, times in self._parts)

    def renyi_epsilon(self, delta: float) -> float:
        """Return roughly the epsilon that the best Renyi order gives."""
        order = np.geomspace(1e-3, 1e6, 91)  # minus one
        logs, _, _ = self.moments(order)
        bound = (
            logs - math.log(delta) + order * np.log(order / (order + 1)) - np.log1p(order)
        ) / order
        return max(0.0, float(np.nanmin(bound)))

    def plan(self, epsilon: float, delta: float, *, tolerance: float) -> Plan:
        """Choose tilt, step and window so that epsilon comes out about ``tolerance`` too large."""
        saddle = self._tilt_for(epsilon, math.inf)
        cap = self._cap(epsilon, delta * min(1e-3, tolerance * saddle))
        _, untilted, spare = self.moments(np.zeros(1), cap)
        natural, centre = math.sqrt(float(spare[0])), max(epsilon, float(untilted[0]))
        # Between one deviation's worth, as less would need a long window, and what keeps the
        # window from shrinking to nothing where epsilon is all but the largest loss.
        saddle = min(max(self._tilt_for(epsilon, cap), 1 / natural), 100 / natural)
        tilts = saddle * 0.8 ** np.arange(48)
        _, mean, variance = self.moments(tilts, cap)
        spread = np.sqrt(variance)
        # Where single losses are heavy-tailed, the tilt that centres the sum also spreads it thin.
        modest = np.flatnonzero((spread <= 1.7 * natural) & (mean <= centre + 3 * natural))
        pick = int(modest[0]) if modest.size else tilts.size - 1
        tilt, deviation = float(tilts[pick]), float(spread[pick])
        step = math.sqrt(12 * tolerance / (max(saddle, 1.0) * self._times))
        beyond = max(0.0, float(mean[pick]) - epsilon)  # an epsilon below the bulk sees all of it
        window = max(16 * deviation + 2 * beyond, natural, (14 - math.log(delta)) / tilt)
        step = min(step, natural / 6)
        return Plan(tilt, step, window, cap, self._bulks(tilt, step, cap))

    def moments(self, tilts: Floats, cap: float = math.inf) -> tuple[Floats, Floats, Floats]:
        """Return log-moment generating function, mean and variance of the tilted sum."""
        logs, means, variances = (np.zeros(tilts.size) for _ in range(3))
        for loss, log_mass, times in self._parts:
            used = loss[loss <= cap]
            exponent = log_mass[loss <= cap] + tilts[:, None] * used
            top = exponent.max(axis=1)
            weight = np.exp(exponent - top[:, None])
            total = weight.sum(axis=1)
            mean = weight @ used / total
            logs += times * (top + np.log(total))
            means += times * mean
            variances += times * np.maximum(weight @ used**2 / total - mean**2, 1e-30)
        return logs, means, variances

    def _tilt_for(self, epsilon: float, cap: float) -> float:
        """Return the tilt under which the mean of the sum is ``epsilon``."""
        tilts = np.geomspace(1e-2, 1e7, 28)
        for _ in range(3):
            place = int(np.searchsorted(self.moments(tilts, cap)[1], epsilon))
            if place in (0, tilts.size):
                return float(tilts[min(place, tilts.size - 1)])
            tilts = np.geomspace(tilts[place - 1], tilts[place], 9)
        return float(tilts[4])

    def _cap(self, epsilon: float, allowed: float) -> float:
        """Return a loss so large that calling any larger one infinite costs little."""
        for beyond in (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 40.0, 80.0):
            above = sum(
                times * float(np.exp(log_mass[loss > epsilon + beyond]).sum())
                for loss, log_mass, times in self._parts
            )
            if above * math.exp(-beyond) <= allowed:
                return epsilon + beyond
        return math.inf

    def _bulks(self, tilt: float, step: float, cap: float) -> list[tuple[float, float]]:
        """Return for each part where a single loss mostly lies, before and after tilting."""
        bulks = []
        for loss, log_mass, _ in self._parts:
            used, logs = loss[loss <= cap], log_mass[loss <= cap]
            ends = []
            for pull in (0.0, tilt):
                weight = np.exp(logs + pull * used - (logs + pull * used).max())
                weight /= weight.sum()
                mean = float(weight @ used)
                deviation = math.sqrt(float(weight @ (used - mean) ** 2))
                ends.append((mean - 6 * deviation, mean + 6 * deviation))
            (low, high), (_, tilted_high) = ends
            # Where few operations make the sum, its tail is the tail of one of them.
            bulks.append((low, max(high, min(tilted_high, low + _MOST_FINE * step))))
        return bulks


def _thinned(loss: Floats, mass: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return a few dozen losses in place of many, with the logarithms of their masses."""
    kept = np.flatnonzero(mass > 0)
    order = kept[np.argsort(loss[kept], kind="stable")]
    starts = np.unique(np.linspace(0, order.size, nodes + 1).astype(np.int64)[:-1])
    total = np.add.reduceat(mass[order], starts)
    middle = np.add.reduceat(mass[order] * loss[order], starts) / total
    return middle, np.log(total)
