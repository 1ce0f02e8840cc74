"""Counts of keys nobody listed beforehand: noise, and a threshold that hides lonely keys."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Self, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, probability, whole
from discreet._rounding import log_of
from discreet.accounting import ApproximateLoss
from discreet.errors import DataError
from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.histograms.contributions import (
    cells_touched,
    least_epsilon_for_cells,
    most_per_cell,
    share_of_budget,
)
from discreet.mechanisms.histograms.key_order import array_order, in_order
from discreet.mechanisms.values.arrays import as_integers
from discreet.noise import SYSTEM, Source
from discreet.noise.enclosure import exp_bounds

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

    @classmethod
    def calibrated(
        cls, *, error: int, confidence: Number, delta: Number, l0: int, linf: int
    ) -> Self:
        """Return the mechanism with the smallest epsilon that reaches an ``error`` in a count.

        >>> mechanism = StabilityHistogram.calibrated(
        ...     error=10, confidence=0.95, delta=1e-6, l0=1, linf=1)
        >>> round(mechanism.epsilon, 3), mechanism.error(confidence=0.95)
        (0.284, 10)
        """
        wanted = whole(error, name="error", minimum=0)
        probability(confidence, name="confidence")
        make = partial(cls, delta=delta, l0=l0, linf=linf)
        return least_epsilon_for_cells(
            make, l0=l0, error=error, wanted=wanted, confidence=confidence
        )

    @property
    def mechanism(self) -> DiscreteLaplace:
        """The noise on each count."""
        l1 = cells_touched(self.l0) * most_per_cell(self.linf)
        return DiscreteLaplace.calibrated(epsilon=self.epsilon, sensitivity=l1)

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is shown."""
        _, share = share_of_budget(self.epsilon, self.delta, self.l0)
        return most_per_cell(self.linf) + _reach(exact(self.mechanism.scale, name="scale"), share)

    @property
    def loss(self) -> ApproximateLoss:
        """What one release costs. Touches no data."""
        return ApproximateLoss(epsilon=self.epsilon, delta=self.delta)

    def release(self, counts: Mapping[Key, int], *, source: Source = SYSTEM) -> dict[Key, int]:
        """Return noisy counts of the keys shown, sorted by type and value.

        The order in which the data brought the keys would tell who came first, so keys must have
        an order of their own: numbers (not NaN), strings, bytes, dates, times, Enum members, None,
        and tuples of these. Keys that are equal, such as 1, 1.0 and True, are one key to a mapping,
        which shows the first that came: convert them to one type before counting.

        >>> StabilityHistogram(epsilon=1, delta=1e-6, l0=2, linf=3).release({"a": 0})
        {}
        """
        found = list(counts)
        keys = [found[i] for i in in_order(found)]
        kept, noisy = self._noisy([counts[key] for key in keys], source)
        shown = zip(keys, kept.tolist(), noisy.tolist(), strict=True)
        return {key: count for key, is_kept, count in shown if is_kept}

    def release_arrays(
        self, keys: npt.ArrayLike, counts: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the keys shown, sorted, and their noisy counts.

        Arrays of strings come back just as wide as the keys shown need. Of a plain list the keys
        shown alone decide the type: objects, unless all are of one type that NumPy has.

        >>> keys, counts = StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1).release_arrays(
        ...     np.array([7, 3, 5]), np.array([500, 800, 0]))
        >>> keys
        array([3, 7])
        """
        names, values = _plain_array(keys), as_integers(counts)
        if names.ndim != 1 or names.shape != values.shape:
            raise DataError(
                f"keys and counts must be one-dimensional and equally long, got shapes "
                f"{names.shape} and {values.shape}."
            )
        order = array_order(names)
        names = names[order]
        if _has_equal(names):
            raise DataError("keys must be distinct: add up the counts of equal keys first.")
        kept, noisy = self._noisy(values[order], source)
        shown = names[kept]
        return (_own_type(shown) if isinstance(keys, list | tuple) else _narrowed(shown)), noisy[
            kept
        ]

    def error(self, *, confidence: Number) -> int:
        """Return a t such that the noise on one count is at most t with this confidence.

        Whether a key is shown depends on its noise too: counts shown near the threshold tend to
        be too high, and a key is missing if its count was below the threshold plus t or so.

        >>> StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1).error(confidence=0.95)
        3
        """
        return self.mechanism.error(confidence=cast("float", confidence))

    def _noisy(
        self, counts: npt.ArrayLike, source: Source
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        values = as_integers(counts) if np.size(counts) else np.zeros(0, dtype=np.int64)
        noisy = self.mechanism.release(values, source=source)
        # A key with count 0 is a key that is not there.
        return (values > 0) & (noisy >= self.threshold), noisy


def _plain_array(keys: npt.ArrayLike) -> npt.NDArray[Any]:
    if np.ma.isMaskedArray(keys):
        raise DataError("keys must not be a masked array: its mask would be ignored.")
    if isinstance(keys, list | tuple):  # NumPy would make texts of numbers for one text among them
        objects = np.empty(len(keys), dtype=object)
        for i, key in enumerate(keys):  # assigned at once, tuples would be taken apart
            objects[i] = key
        return objects
    try:
        return np.asarray(keys)
    except (ValueError, TypeError):  # ragged
        raise DataError("keys must be a one-dimensional array with one key per count.") from None


def _has_equal(names: npt.NDArray[Any]) -> bool:
    if names.dtype == object:
        keys = names.tolist()  # 1 and 1.0 are two keys here: one must not fail for the other
        return any(type(a) is type(b) and a == b for a, b in pairwise(keys))
    return bool((names[1:] == names[:-1]).any())


def _own_type(shown: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of the one type that all of these objects have, or the objects."""
    keys = shown.tolist()
    kinds = {type(key) for key in keys}
    if len(kinds) != 1 or kinds == {tuple}:
        return shown
    plain = np.array(keys)
    return shown if kinds == {int} and plain.dtype != np.int64 else plain


def _narrowed(names: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Forget how long the longest key was, which may be one that is not shown."""
    kind = names.dtype.kind
    return np.array(names.tolist(), dtype=kind) if kind in "US" else names


@lru_cache(maxsize=256)
def _reach(scale: Fraction, share: Fraction) -> int:
    """Return the smallest m >= 1 that is certain to have Pr[noise >= m] <= share.

    With r = exp(-1 / scale) that probability is r**m / (1 + r).
    """
    # log(share) + log(1 + r) by doubles, to 12 digits; integers decide within that margin.
    decay = math.exp(-min(1 / scale, Fraction(1000)))
    guess = scale * Fraction(max(0.0, -log_of(share) - math.log1p(decay)))
    margin = guess / 10**12 + 2
    low, high = max(0, math.floor(guess - margin)), math.ceil(guess + margin)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_rare(scale, share, middle) else (middle, high)
    return high


def _is_rare(scale: Fraction, share: Fraction, m: int) -> bool:
    bits = 128 + share.denominator.bit_length() + sum(map(int.bit_length, scale.as_integer_ratio()))
    tail = exp_bounds(m / scale, bits)[1]
    step = exp_bounds(1 / scale, bits)[0]
    return tail <= share * ((1 << bits) + step)
