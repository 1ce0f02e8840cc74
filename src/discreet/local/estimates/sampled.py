"""Estimated counts where each device was asked about a few values only, drawn beforehand."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet._rounding import log_one_over
from discreet.errors import DataError
from discreet.local.estimates.intervals import chance_interval
from discreet.local.estimates.support import Support

__all__ = ["SampledEstimate"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SampledEstimate:
    """Hold how many of ``n`` devices have each value, of which ``asked[v]`` told about value v.

    ``supports[v]`` of these said that they have it, by coins of the chances ``support``.

    Claim: if whom one asks about a value is drawn without looking at values, ``counts`` are
    unbiased, and :meth:`interval` holds. A value that nobody was asked about has the count nan.
    ``standard_error`` is the effect of the coins and of who was asked.

    Why: given how many are asked, they are a uniform sample without replacement, so their share is
    that of all. Sums of such samples have no heavier tails than with replacement [Hoe63,
    Theorem 4], where the asked show independent coins of the mean chance.

    >>> from fractions import Fraction
    >>> estimate = SampledEstimate(
    ...     supports=np.array([300, 100]), asked=np.array([500, 400]), n=1000,
    ...     support=Support(hit=Fraction(3, 4), miss=Fraction(1, 4)))
    >>> estimate
    SampledEstimate(n=1000, counts=[700 ± 41, 0 ± 43])
    """

    supports: npt.NDArray[np.int64]
    asked: npt.NDArray[np.int64]
    n: int
    support: Support

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("reports must hold at least one report, got none.")

    @property
    def counts(self) -> Floats:
        """The estimated number of devices that have each value."""
        with np.errstate(invalid="ignore"):
            return self._solve(self.supports / self.asked)

    @property
    def shares(self) -> Floats:
        """The estimated share of the devices that have each value."""
        return self.counts / self.n

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count."""
        hit, miss = float(self.support.hit), float(self.support.miss)
        share = np.clip(self.shares, 0, 1)
        coins = share * hit * (1 - hit) + (1 - share) * miss * (1 - miss)
        left_out = (self.n - self.asked) / max(1, self.n - 1)
        who = share * (1 - share) * left_out * float(self.support.contrast) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(
                self.n / float(self.support.contrast) * np.sqrt((coins + who) / self.asked)
            )

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie with at least this confidence.

        All of them at once, unless ``simultaneous`` is false: then each by itself.

        >>> from fractions import Fraction
        >>> estimate = SampledEstimate(
        ...     supports=np.array([300, 100]), asked=np.array([500, 400]), n=1000,
        ...     support=Support(hit=Fraction(3, 4), miss=Fraction(1, 4)))
        >>> low, high = estimate.interval(confidence=0.95)
        >>> np.round(low), np.round(high)
        (array([569.,   0.]), array([827., 135.]))
        """
        failing = (1 - probability(confidence, name="confidence")) / 2
        if simultaneous:
            failing /= self.supports.size
        some = np.maximum(self.asked, 1)
        low, high = chance_interval(self.supports, n=some, depth=log_one_over(failing))
        low, high = np.where(self.asked, low, 0.0), np.where(self.asked, high, 1.0)
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
        return f"SampledEstimate(n={self.n}, counts=[{', '.join(shown)}])"
