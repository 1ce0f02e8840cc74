"""Which groups found in the data may be shown at all: optimal partition selection."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self, final, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, whole
from discreet.accounting import ApproximateLoss
from discreet.errors import DataError
from discreet.mechanisms.histograms.contributions import (
    least_epsilon_for_cells,
    share_of_budget,
)
from discreet.mechanisms.histograms.keep_probability import KeepProbability, keep_probability
from discreet.mechanisms.values.arrays import as_integers
from discreet.noise import SYSTEM, Source

__all__ = ["PartitionSelection"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    """Decide which partitions (keys of a GROUP BY) are safe to show, keeping as many as possible.

    Claim: if one user is counted in at most ``l0`` partitions, once in each, the set of partitions
    kept is (epsilon, delta)-DP for adding or removing a user. A partition without users is never
    kept, so it does not matter which empty partitions are listed. For l0 = 1 no mechanism with this
    guarantee keeps any partition with a higher probability.

    Why: each partition of n users is kept with the largest probability pi(n) that pi(0) = 0 and
    (epsilon / l0, delta / l0)-DP between n and n + 1 users allow [DVGM22, Section 3];
    partitions are decided independently, a user moves at most l0 of them by one, and those l0
    guarantees add up by basic composition. It is much like adding truncated geometric noise to n
    and comparing with a threshold. docs/proofs/partition_selection.md has the details.

    The positions of the result follow those of ``counts``: publish the kept keys in an order that
    does not come from the data, such as sorted.

    >>> selection = PartitionSelection(epsilon=1, delta=1e-6, l0=1)
    >>> selection.loss
    ApproximateLoss(epsilon=1, delta=1e-06)
    >>> selection.select([0, 1000, 0, 50])
    array([False,  True, False,  True])
    >>> selection.kept_from(confidence=0.5), selection.kept_from(confidence=0.999)
    (14, 20)
    """

    epsilon: Number
    delta: Number
    l0: int

    def __post_init__(self) -> None:
        share_of_budget(self.epsilon, self.delta, self.l0)

    @classmethod
    def calibrated(cls, *, error: int, confidence: Number, delta: Number, l0: int) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error``, in users.

        >>> selection = PartitionSelection.calibrated(
        ...     error=20, confidence=0.95, delta=1e-6, l0=1)
        >>> round(selection.epsilon, 3), selection.error(confidence=0.95)
        (0.738, 20)
        """
        wanted = whole(error, name="error", hint="A single user is kept with chance delta only.")
        make = partial(cls, delta=delta, l0=l0)
        return least_epsilon_for_cells(
            make, l0=l0, error=error, wanted=wanted, confidence=confidence
        )

    @property
    def loss(self) -> ApproximateLoss:
        """What one selection over all partitions costs. Touches no data."""
        return ApproximateLoss(epsilon=self.epsilon, delta=self.delta)

    @overload
    def select(self, counts: int, *, source: Source = ...) -> bool: ...
    @overload
    def select(self, counts: npt.ArrayLike, *, source: Source = ...) -> npt.NDArray[np.bool_]: ...
    def select(self, counts: Any, *, source: Source = SYSTEM) -> bool | npt.NDArray[np.bool_]:
        """Tell for each partition, given its number of distinct users, whether to keep it.

        >>> PartitionSelection(epsilon=1, delta=1e-6, l0=3).select(0)
        False
        """
        users = _users(counts)
        kept = self._pi().select(users.reshape(-1), source=source)
        return bool(kept[0]) if users.ndim == 0 else kept.reshape(users.shape)

    def keep_probability(self, counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the probability with which partitions of so many users are kept.

        >>> PartitionSelection(epsilon=1, delta=0.01, l0=1).keep_probability([0, 1, 2, 8])
        array([0.        , 0.01      , 0.03718282, 0.993...])
        """
        return self._pi().floats(_users(counts))

    def error(self, *, confidence: Number) -> int:
        """Return t so that a partition of more than t users is kept with this confidence.

        >>> PartitionSelection(epsilon=1, delta=1e-6, l0=1).error(confidence=0.95)
        15
        """
        return self.kept_from(confidence=confidence) - 1

    def kept_from(self, *, confidence: Number) -> int:
        """Return the smallest number of users that keeps a partition with this probability.

        >>> PartitionSelection(epsilon=1, delta=1e-6, l0=4).kept_from(confidence=0.95)
        63
        """
        wanted = float(probability(confidence, name="confidence"))
        pi = self._pi()

        def is_enough(users: int) -> bool:
            return bool(pi.floats(np.array([users]))[0] >= wanted)

        low, high = 0, 1
        while not is_enough(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high

    def _pi(self) -> KeepProbability:
        return keep_probability(*share_of_budget(self.epsilon, self.delta, self.l0))


def _users(counts: object) -> npt.NDArray[np.int64]:
    users = as_integers(counts)
    if users.size and users.min() < 0:
        raise DataError("counts must be numbers of users, but some are negative.")
    return users
