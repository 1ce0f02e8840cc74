"""Histograms from a window's outputs, by expectation maximisation with smoothing."""

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet.errors import DataError
from discreet.local.laws.window import Window

__all__ = ["HistogramEstimate", "smoothed_shares"]

Floats = npt.NDArray[np.float64]

_ROUNDS: Final = 10_000
_CLOSE: Final = 1e-3  # gain in log-likelihood at which rounds end, as in the paper


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HistogramEstimate:
    """Hold the estimated histogram of the numbers that ``n`` devices have.

    The bins have the inner ``edges`` and ends of a histogram, ``shares`` add up to 1 and are never
    negative. They are likely values, smoothed, so not unbiased; how far off they are is known from
    simulation only, which :meth:`SquareWave.rehearse` does for a histogram that you expect.

    >>> estimate = HistogramEstimate(
    ...     n=1000, shares=np.array([0.2, 0.8]), edges=np.array([0.0, 1.0, 2.0]))
    >>> estimate.counts, round(estimate.mean, 6), round(estimate.quantile(0.5), 6)
    (array([200., 800.]), 1.3, 1.375)
    """

    n: int
    shares: Floats
    edges: Floats

    @property
    def counts(self) -> Floats:
        """The estimated number of devices in each bin."""
        return self.shares * self.n

    @property
    def mean(self) -> float:
        """The mean, with every device in the middle of its bin."""
        return float(self.shares @ self._middles)

    @property
    def variance(self) -> float:
        """The variance, with every device in the middle of its bin."""
        return float(self.shares @ (self._middles - self.mean) ** 2)

    def quantile(self, share: Number) -> float:
        """Return the number below which this share of the devices lies.

        >>> estimate = HistogramEstimate(
        ...     n=1000, shares=np.array([0.25, 0.75]), edges=np.array([0.0, 1.0, 4.0]))
        >>> [round(estimate.quantile(share), 6) for share in (0, 0.25, 0.5, 1)]
        [0.0, 1.0, 2.0, 4.0]
        """
        wanted = float(probability(share, name="share", zero=True, one=True))
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return float(np.interp(wanted, below / below[-1], self.edges))

    @property
    def _middles(self) -> Floats:
        return (self.edges[1:] + self.edges[:-1]) / 2

    def __repr__(self) -> str:
        low, median, high = (self.quantile(share) for share in (0.25, 0.5, 0.75))
        quartiles = f"{low:.4g}, {median:.4g}, {high:.4g}"
        return f"HistogramEstimate(n={self.n}, bins={self.shares.size}, quartiles=[{quartiles}])"


def smoothed_shares(seen: npt.NDArray[np.int64], *, window: Window, smooth: bool) -> Floats:
    """Return how likely each position is, given how often each output was ``seen``.

    Each round divides the outputs among positions by their present shares, and averages each
    position with its neighbours by (1/4, 1/2, 1/4), which keeps noise from growing into peaks
    [LWLLS20, Section 5.5]. Rounds end when the log-likelihood gains less than 0.001, or without
    smoothing 0.001 exp(epsilon).

    >>> window = Window.calibrated(epsilon=4, outputs=8, preferred=3)
    >>> shares = smoothed_shares(np.array([2, 40, 41, 42, 3, 2, 2, 2]), window=window, smooth=True)
    >>> int(shares.argmax()), round(float(shares.sum()), 6)
    (1, 1.0)
    """
    if not seen.any():
        raise DataError("reports must hold at least one report, got none.")
    size, positions = window.law.preferred, window.positions
    outside = float(window.outside)
    contrast = float(window.inside) - outside
    close = _CLOSE if smooth else _CLOSE * math.exp(min(window.law.epsilon, 20.0))
    shares, before = np.full(positions, 1 / positions), -math.inf
    for _ in range(_ROUNDS):
        likely = outside + contrast * _windows(np.pad(shares, size - 1), size)
        weights = seen / likely
        shares = shares * (outside * weights.sum() + contrast * _windows(weights, size))
        shares /= shares.sum()
        if smooth:
            shares = _averaged(shares)
        now = float(seen @ np.log(likely))
        if now - before < close:
            break
        before = now
    return shares


def _windows(numbers: Floats, size: int) -> Floats:
    """Return the sums of ``size`` numbers in a row."""
    sums = np.concatenate([[0.0], np.cumsum(numbers)])
    return np.asarray(sums[size:] - sums[:-size])


def _averaged(shares: Floats) -> Floats:
    sides = np.pad(shares, 1, mode="edge")
    out = (sides[:-2] + 2 * shares + sides[2:]) / 4
    return np.asarray(out / out.sum())
