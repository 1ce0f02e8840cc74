"""Counts of keys nobody listed beforehand: noise, and a threshold that hides lonely keys."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import ApproximateLoss
from discreet.errors import DataError
from discreet.mechanisms._contributions import cells_touched, most_per_cell, share_of_budget
from discreet.mechanisms._values import as_integers
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.noise import SYSTEM, Source
from discreet.noise._enclosure import exp_bounds

__all__ = ["StabilityHistogram"]

Key = TypeVar("Key", bound=Hashable)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityHistogram:
    """Release noisy counts of the keys found in the data, leaving out those near zero.

    Claim: if one unit adds to at most ``l0`` keys, and at most ``linf`` to each, the keys and
    counts released are (epsilon, delta)-DP for adding or removing a unit.

    Why: keys that both neighbours have get discrete Laplace noise for an L1 change of l0 * linf:
    epsilon. A key that only one of them has belongs to one unit and counts linf at most; it is
    shown only if its noise reaches ``threshold`` - linf, which has probability delta / l0 at
    most. There are l0 such keys at most: delta [KKMN09] [BV19]. The proof for discrete noise, both
    directions, is in docs/proofs/partition_selection.md.

    >>> words = StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1)
    >>> words.threshold
    15
    >>> list(words.release({"the": 1000, "of": 900, "my": 0}))
    ['of', 'the']
    """

    epsilon: Number
    delta: Number
    l0: int
    linf: int

    def __post_init__(self) -> None:
        share_of_budget(self.epsilon, self.delta, self.l0)
        most_per_cell(self.linf)

    @property
    def mechanism(self) -> DiscreteLaplace:
        """The noise on each count."""
        l1 = cells_touched(self.l0) * most_per_cell(self.linf)
        return DiscreteLaplace.calibrated(epsilon=self.epsilon, sensitivity=l1)

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is shown."""
        _, share = share_of_budget(self.epsilon, self.delta, self.l0)
        return most_per_cell(self.linf) + _reach(Fraction(self.mechanism.scale), share)

    @property
    def loss(self) -> ApproximateLoss:
        """What one release costs. Touches no data."""
        return ApproximateLoss(epsilon=self.epsilon, delta=self.delta)

    def release(self, counts: Mapping[Key, int], *, source: Source = SYSTEM) -> dict[Key, int]:
        """Return noisy counts of the keys shown, in sorted order.

        The order in which the data brought the keys would tell who came first.

        >>> StabilityHistogram(epsilon=1, delta=1e-6, l0=2, linf=3).release({"a": 0})
        {}
        """
        keys = _sorted(list(counts))
        kept, noisy = self._noisy([counts[key] for key in keys], source)
        shown = zip(keys, kept.tolist(), noisy.tolist(), strict=True)
        return {key: count for key, is_kept, count in shown if is_kept}

    def release_arrays(
        self, keys: npt.ArrayLike, counts: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the keys shown, sorted, and their noisy counts.

        >>> keys, counts = StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1).release_arrays(
        ...     np.array([7, 3, 5]), np.array([500, 800, 0]))
        >>> keys
        array([3, 7])
        """
        names, values = np.asarray(keys), as_integers(counts)
        if names.ndim != 1 or names.shape != values.shape:
            raise DataError(
                f"keys and counts must be one-dimensional and equally long, got shapes "
                f"{names.shape} and {values.shape}."
            )
        order = np.argsort(names, kind="stable")
        names = names[order]
        if names.size and (names[1:] == names[:-1]).any():
            raise DataError("keys must be distinct: add up the counts of equal keys first.")
        kept, noisy = self._noisy(values[order], source)
        return names[kept], noisy[kept]

    def error(self, *, confidence: float) -> int:
        """Return a t such that the noise on one count is at most t with this confidence.

        Whether a key is shown depends on its noise too: counts shown near the threshold tend to
        be too high, and a key is missing if its count was below the threshold plus t or so.

        >>> StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1).error(confidence=0.95)
        3
        """
        return self.mechanism.error(confidence=confidence)

    def _noisy(
        self, counts: npt.ArrayLike, source: Source
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        values = as_integers(counts) if np.size(counts) else np.zeros(0, dtype=np.int64)
        noisy = self.mechanism.release(values, source=source)
        # A key with count 0 is a key that is not there.
        return (values > 0) & (noisy >= self.threshold), noisy


def _sorted(keys: list[Key]) -> list[Key]:
    try:
        return sorted(keys)  # type: ignore[type-var]
    except TypeError:  # keys of several types; any order will do that does not depend on data
        return sorted(keys, key=lambda key: (type(key).__name__, repr(key)))


@lru_cache(maxsize=256)
def _reach(scale: Fraction, share: Fraction) -> int:
    """Return the smallest m >= 1 that is certain to have Pr[noise >= m] <= share.

    With r = exp(-1 / scale) that probability is r**m / (1 + r).
    """
    decay = math.exp(-1 / scale)
    guess = -float(scale) * (math.log(float(share)) + math.log1p(decay))
    m = max(1, math.floor(guess) - 1)
    while not _is_rare(scale, share, m):
        m += 1
    return m


def _is_rare(scale: Fraction, share: Fraction, m: int) -> bool:
    bits = 128 + share.denominator.bit_length() + scale.denominator.bit_length()
    tail = exp_bounds(m / scale, bits)[1]
    step = exp_bounds(1 / scale, bits)[0]
    return tail <= share * ((1 << bits) + step)
