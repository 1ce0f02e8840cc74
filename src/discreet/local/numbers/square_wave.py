"""Square wave: a cell near the device's bin, for the whole histogram of the numbers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, refusal, whole
from discreet._rounding import exp_lower
from discreet.accounting import PureLoss
from discreet.local.estimates.smoothing import HistogramEstimate, smoothed_shares
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.ruler import Ruler, as_numbers
from discreet.local.laws.window import Window
from discreet.noise import SYSTEM, Source

__all__ = ["SquareWave"]

_SERIES: Final = Fraction(1, 1000)  # below this epsilon the width is its limit, to 3 digits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave:
    """Report a cell near the number's bin, to estimate the histogram of the devices' numbers.

    For shapes, quantiles and the like of numbers between ``low`` and ``high``, cut into ``bins`` of
    equal width. Numbers outside are clipped, and NaN counts as the middle.

    Claim: a report is epsilon-DP when the device's number is replaced by any other.

    Why: a bin has a window of cells for its own, a law of preference (``laws.window``). The window
    is as wide as tells most about the bin [LWLLS20, Section 5.3], with cells for its continuum.

    >>> randomiser = SquareWave(low=0, high=100, epsilon=2, bins=64)
    >>> estimate = randomiser.estimate(randomiser.release(np.full(50_000, 30.0)))
    >>> 25 < estimate.quantile(0.5) < 35
    True
    """

    low: Number
    high: Number
    epsilon: Number
    bins: int = 256

    def __post_init__(self) -> None:
        if whole(self.bins, name="bins", minimum=2) > 1 << 16:
            raise refusal("bins", f"at most {1 << 16}", self.bins)
        self.ruler  # noqa: B018 - refuses what cannot be
        self.window  # noqa: B018

    @property
    def ruler(self) -> Ruler:
        """The ends of the bins."""
        return Ruler(low=self.low, high=self.high, steps=self.bins)

    @property
    def window(self) -> Window:
        """The law of one report about a bin, in whole numbers."""
        width = max(1, round(_width(positive(self.epsilon, name="epsilon")) * self.bins))
        outputs = self.bins + width - 1
        return Window.calibrated(epsilon=self.epsilon, outputs=outputs, preferred=width)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.window.law.epsilon))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.window.law.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's number.

        >>> randomiser = SquareWave(low=0, high=100, epsilon=2, bins=64)
        >>> reports = randomiser.release([30.0, 99.0])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        return self.window.draw(self.bin(values), source=source)

    def bin(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the bin that each number is in; at an edge, rounding of doubles decides.

        >>> SquareWave(low=0, high=100, epsilon=2, bins=4).bin([-3, 30, 99, np.nan])
        array([0, 1, 3, 2])
        """
        numbers, ruler = as_numbers(values), self.ruler
        low, high = float(self.low), float(self.high)
        inside = np.clip(np.where(np.isnan(numbers), float(ruler.middle), numbers), low, high)
        cells = ((inside - low) / float(ruler.step)).astype(np.int64)
        return np.clip(cells, 0, self.bins - 1)

    def estimate(self, reports: npt.ArrayLike, *, smooth: bool = True) -> HistogramEstimate:
        """Estimate the histogram of the devices' numbers; without smoothing, the likeliest one.

        >>> randomiser = SquareWave(low=0, high=100, epsilon=2, bins=4)
        >>> estimate = randomiser.estimate(randomiser.release(np.full(1000, 30.0)))
        >>> estimate.shares.shape, round(float(estimate.shares.sum()), 6)
        ((4,), 1.0)
        """
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs)
        return self._estimate(seen, smooth)

    def rehearse(
        self, shares: npt.ArrayLike, *, n: int, times: int = 20, source: Source = SYSTEM
    ) -> npt.NDArray[np.float64]:
        """Return what estimates from ``n`` devices would be if the bins had these shares.

        One row an estimate. No data is needed, so it costs nothing.

        >>> randomiser = SquareWave(low=0, high=1, epsilon=2, bins=16)
        >>> randomiser.rehearse(np.ones(16) / 16, n=10_000, times=3).shape
        (3, 16)
        """
        expected = np.asarray(shares, dtype=np.float64)
        if expected.shape != (self.bins,) or not (expected.min() >= 0 and expected.sum() > 0):
            raise refusal("shares", f"{self.bins} numbers of at least 0, not all 0", "others")
        ends = np.round(np.cumsum(expected) / expected.sum() * whole(n, name="n")).astype(np.int64)
        held = np.repeat(np.arange(self.bins), np.diff(ends, prepend=0))
        rows = []
        for _ in range(whole(times, name="times")):
            reports = self.window.draw(held, source=source)
            rows.append(self.estimate(reports).shares)
        return np.array(rows)

    def _estimate(self, seen: npt.NDArray[np.int64], smooth: bool) -> HistogramEstimate:
        shares = smoothed_shares(seen, window=self.window, smooth=smooth)
        edges = np.linspace(float(self.low), float(self.high), self.bins + 1)
        return HistogramEstimate(n=int(seen.sum()), shares=shares, edges=edges)


def _width(epsilon: Fraction) -> Fraction:
    """Return the best width of the window, as a share of that of the bounds.

    >>> round(float(_width(Fraction(1))), 4), float(_width(Fraction(1, 10**6)))
    (0.5122, 1.0)
    """
    if epsilon < _SERIES:
        return Fraction(1)
    e = 1 / exp_lower(-epsilon)  # 40 digits, the same everywhere
    return (epsilon * e - e + 1) / (e * (e - 1 - epsilon))
