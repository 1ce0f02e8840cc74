"""Estimated counts of the values of a known domain."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet._rounding import log_one_over
from discreet.errors import DataError
from discreet.local.estimates.intervals import chance_interval
from discreet.local.estimates.support import Support

__all__ = ["CountEstimate"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountEstimate:
    """Hold how many devices have each value, as far as ``n`` randomised reports tell.

    ``supports[v]`` is the number of reports that support value v. All else follows from it, so it
    is post-processing and costs nothing.

    Claim: ``counts`` are unbiased, and may therefore be below 0 or above n. ``standard_error`` is
    the effect of the devices' coins alone; the people stay as they are. It takes the estimated
    count for the true one, which matters little when reports are many; :meth:`interval` always
    holds.

    >>> from fractions import Fraction
    >>> estimate = CountEstimate(
    ...     supports=np.array([600, 400]), n=1000,
    ...     support=Support(hit=Fraction(3, 4), miss=Fraction(1, 4)))
    >>> estimate
    CountEstimate(n=1000, counts=[700 ± 27, 300 ± 27])
    >>> estimate.counts
    array([700., 300.])
    """

    supports: npt.NDArray[np.int64]
    n: int
    support: Support

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("reports must hold at least one report, got none.")

    @property
    def counts(self) -> Floats:
        """The estimated number of devices that have each value."""
        return self._solve(self.supports / self.n)

    @property
    def shares(self) -> Floats:
        """The estimated share of the devices that have each value."""
        return self.counts / self.n

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count."""
        hit, miss = float(self.support.hit), float(self.support.miss)
        held = np.clip(self.counts, 0, self.n)
        coins = held * hit * (1 - hit) + (self.n - held) * miss * (1 - miss)
        return np.asarray(np.sqrt(coins) / float(self.support.contrast))

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie with at least this confidence.

        All of them at once, unless ``simultaneous`` is false: then each by itself.

        Why: the mean chance of a report to support a value, miss + share (hit - miss), lies in an
        interval that fails with a stated chance (``estimates.intervals``); the chances of all
        values add up to at most 1 - confidence.

        >>> from fractions import Fraction
        >>> estimate = CountEstimate(
        ...     supports=np.array([600, 400]), n=1000,
        ...     support=Support(hit=Fraction(3, 4), miss=Fraction(1, 4)))
        >>> low, high = estimate.interval(confidence=0.95)
        >>> np.round(low), np.round(high)
        (array([607., 210.]), array([790., 393.]))
        """
        failing = (1 - probability(confidence, name="confidence")) / 2
        if simultaneous:
            failing /= self.supports.size
        low, high = chance_interval(self.supports, n=self.n, depth=log_one_over(failing))
        return np.clip(self._solve(low), 0.0, self.n), np.clip(self._solve(high), 0.0, self.n)

    def _solve(self, chance: Floats) -> Floats:
        return np.asarray(
            (chance - float(self.support.miss)) * (self.n / float(self.support.contrast))
        )

    def __repr__(self) -> str:
        pairs = zip(self.counts[:_SHOWN], self.standard_error[:_SHOWN], strict=True)
        shown = [f"{count:.0f} ± {error:.2g}" for count, error in pairs]
        if self.supports.size > _SHOWN:
            shown.append(f"... {self.supports.size - _SHOWN} more")
        return f"CountEstimate(n={self.n}, counts=[{', '.join(shown)}])"
