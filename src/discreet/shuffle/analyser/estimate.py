"""Counts of the senders' values, without the dummies among them."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.local import CountEstimate

__all__ = ["ShuffledEstimate", "without_dummies"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ShuffledEstimate:
    """Hold how many senders have each value, where ``dummies`` of the reports were random ones.

    Claim: ``counts`` are unbiased, and :meth:`interval` holds with its confidence.

    Why: a dummy's value is uniform, so dummies add the same expected number to every count, which
    is taken off. To a count's variance they add that of a binomial number beside the coins. A
    dummy supports a value with a fixed chance, whatever the other reports do, so the interval of
    all reports holds, and is moved.

    >>> from discreet import local
    >>> law = local.DirectResponse(domain=2, epsilon=1)
    >>> reports = law.release([1] * 40_000 + [0, 1] * 5_000)
    >>> estimate = without_dummies(law.estimate(reports), dummies=10_000)
    >>> estimate.n, bool(abs(estimate.counts[1] - 40_000) < 8 * estimate.standard_error[1])
    (40000, True)
    """

    of_all: CountEstimate
    dummies: int

    @property
    def n(self) -> int:
        """How many reports are not dummies."""
        return self.of_all.n - self.dummies

    @property
    def counts(self) -> Floats:
        """The estimated number of senders that have each value."""
        return self.of_all.counts - self._added

    @property
    def shares(self) -> Floats:
        """The estimated share of the senders that have each value."""
        return self.counts / self.n

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count, by the coins and by the dummies' values."""
        values = self._added * (1 - 1 / self.of_all.supports.size)
        return np.asarray(np.sqrt(self.of_all.standard_error**2 + values))

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie with at least this confidence.

        >>> from discreet import local
        >>> law = local.DirectResponse(domain=2, epsilon=8)
        >>> estimate = without_dummies(law.estimate([1] * 800 + [0] * 200), dummies=200)
        >>> low, high = estimate.interval(confidence=0.95)
        >>> bool(low[1] < 700 < high[1])
        True
        """
        ends = self.of_all.interval(confidence=confidence, simultaneous=simultaneous)
        low, high = (np.clip(end - self._added, 0.0, self.n) for end in ends)
        return low, high

    @property
    def _added(self) -> float:
        return self.dummies / self.of_all.supports.size

    def __repr__(self) -> str:
        return f"ShuffledEstimate(n={self.n}, dummies={self.dummies}, of_all={self.of_all!r})"


def without_dummies(estimate: Any, *, dummies: int) -> Any:
    """Return an estimate as if the dummies had not been there; unchanged if there were none."""
    return ShuffledEstimate(of_all=estimate, dummies=dummies) if dummies else estimate
