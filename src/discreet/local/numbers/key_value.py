"""Key-value pairs: how many devices have a key, and the mean of its values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet.accounting import PureLoss
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.laws.numbers import MOST
from discreet.local.laws.ruler import Ruler, as_double
from discreet.local.numbers.oracles import Oracle, best_oracle
from discreet.noise import SYSTEM, Source, uniform_below_secret

__all__ = ["KeyValue", "KeyValueEstimate"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """Report one of a device's key-value pairs, to estimate each key's frequency and mean value.

    Keys are numbered from 0 to ``keys`` - 1, values lie between ``low`` and ``high``. A device is
    taken to have ``pairs`` pairs: if it has fewer, the rest are empty; if more, all are equally
    likely to be reported, but such a device counts for less than one. A larger ``pairs`` makes
    errors larger in proportion. Keys beyond are left out, values outside are clipped, and NaN
    counts as the middle.

    Claim: a report is epsilon-DP when all of the device's pairs are replaced by any others.

    Why: whatever pair is drawn and to whichever end its value is rounded, which is the drawing and
    rounding of [GLCXW20, Section 4], what follows is one of 2 * keys + 1 values (a key with an end,
    or nothing), told by direct or Hadamard response with all of epsilon. A mixture of reports that
    are epsilon-DP for every pair of values is epsilon-DP. So a key and its value share one report,
    and nothing has to be added up.

    >>> randomiser = KeyValue(keys=10, low=1, high=5, epsilon=3, pairs=2)
    >>> estimate = randomiser.estimate(randomiser.release([{7: 4.0}, {7: 2.0, 1: 5.0}] * 20_000))
    >>> bool(abs(estimate.counts[7] - 40_000) < 8 * estimate.standard_error[7])
    True
    >>> bool(abs(estimate.means[7] - 3.0) < 8 * estimate.mean_standard_error[7])
    True
    """

    keys: int
    low: Number
    high: Number
    epsilon: Number
    pairs: int = 1

    def __post_init__(self) -> None:
        if whole(self.keys, name="keys") > MOST // 2 - 1:
            raise refusal("keys", f"at most {MOST // 2 - 1}", self.keys)
        whole(self.pairs, name="pairs")
        self.ruler  # noqa: B018 - refuses what cannot be
        self.oracle  # noqa: B018

    @property
    def ruler(self) -> Ruler:
        """The ends that values are rounded to."""
        return Ruler(low=self.low, high=self.high, steps=1)

    @property
    def oracle(self) -> Oracle:
        """How a key and an end are told: 2 key + end, or the last value for nothing."""
        return best_oracle(domain=2 * self.keys + 1, epsilon=self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=self.oracle.loss.epsilon)

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.oracle.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(
        self, devices: Sequence[Mapping[int, float]], *, source: Source = SYSTEM
    ) -> npt.NDArray[Any]:
        """Return one report for each device, which is given by its values by key.

        >>> randomiser = KeyValue(keys=3, low=1, high=5, epsilon=1)
        >>> reports = randomiser.release([{0: 4.0}, {}])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        keys = np.full(len(devices), -1, dtype=np.int64)
        values = np.full(len(devices), math.nan)
        for index, held in enumerate(devices):
            known = [key for key in held if self._is_key(key)]
            # As many random bytes are read whatever the device has.
            slot = uniform_below_secret(max(len(known), self.pairs), source=source)
            if slot < len(known):
                keys[index] = known[slot]
                values[index] = as_double(held[known[slot]])
        ends = self.ruler.place(values, source=source)
        return self.oracle.release(
            np.where(keys < 0, 2 * self.keys, 2 * keys + ends), source=source
        )

    def _is_key(self, key: object) -> bool:
        return isinstance(key, int | np.integer) and 0 <= int(key) < self.keys

    def estimate(self, reports: npt.ArrayLike) -> "KeyValueEstimate":
        """Estimate each key's number of devices and mean value.

        >>> randomiser = KeyValue(keys=3, low=1, high=5, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 50 + [1] * 50 + [6] * 100)  # 6 is for no key
        >>> round(float(estimate.counts[0])), round(float(estimate.means[0]), 6)
        (100, 3.0)
        """
        return KeyValueEstimate(randomiser=self, told=self.oracle.estimate(reports))

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Return a t such that a key's count is off by at most t with this confidence.

        It holds for each key that at most a ``share`` of the devices have, by itself, and for the
        coins alone: which pair each device reports is not covered.

        >>> randomiser = KeyValue(keys=10, low=1, high=5, epsilon=3, pairs=2)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (0.01, 1)]
        [418, 1256]
        """
        each = (1 + probability(confidence, name="confidence")) / 2  # both ends at once
        by_end = self.oracle.support.error(n=n, confidence=each, share=share)
        return 2 * self.pairs * by_end


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class KeyValueEstimate:
    """Hold how many devices have each key, and the mean of the values that it has.

    Claim: ``counts`` are unbiased where no device has more pairs than was declared. ``means`` are
    ratios of unbiased estimates, good where a count is many times its standard error; they are
    clipped to the bounds, and NaN where nobody seems to have the key. Standard errors cover coins,
    roundings and which pair was drawn; those of means are the first order of the delta method.

    >>> randomiser = KeyValue(keys=2, low=0, high=10, epsilon=8)
    >>> told = randomiser.oracle.estimate([0] * 100 + [1] * 300 + [2] * 100)
    >>> estimate = KeyValueEstimate(randomiser=randomiser, told=told)
    >>> np.round(estimate.counts), np.round(estimate.means, 1) + 0.0
    (array([400., 100.]), array([7.5, 0. ]))
    """

    randomiser: KeyValue
    told: CountEstimate

    @property
    def n(self) -> int:
        """How many reports there were."""
        return self.told.n

    @property
    def counts(self) -> Floats:
        """The estimated number of devices that have each key."""
        low, high = self._ends
        return (low + high) * (self.n * self.randomiser.pairs)

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count."""
        of_sum, _, _ = self._variances
        return np.asarray(np.sqrt(of_sum * self.n) * self.randomiser.pairs)

    @property
    def means(self) -> Floats:
        """The estimated mean of the values of each key."""
        bounds = float(self.randomiser.low), float(self.randomiser.high)
        return np.clip(float(self.randomiser.ruler.middle) + self._half * self._tilt, *bounds)

    @property
    def mean_standard_error(self) -> Floats:
        """The standard error of each mean."""
        low, high = self._ends
        of_sum, of_difference, of_both = self._variances
        tilt = np.clip(self._tilt, -1, 1)
        variance = np.maximum(of_difference - 2 * tilt * of_both + tilt**2 * of_sum, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self._half * np.sqrt(variance / self.n) / np.abs(low + high))

    @property
    def _half(self) -> float:
        return float(self.randomiser.ruler.width / 2)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """The shares of devices that drew each key and rounded its value down, and up."""
        shares = self.told.shares[:-1]
        return shares[0::2], shares[1::2]

    @property
    def _tilt(self) -> Floats:
        """How much more often values went up than down, from -1 to 1 but for noise."""
        low, high = self._ends
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(low + high > 0, (high - low) / (low + high), np.nan)

    @property
    def _variances(self) -> tuple[Floats, Floats, Floats]:
        """Of one report about high + low, about high - low, and their covariance.

        Reports are independent and, for people chosen at random, alike.
        """
        oracle = self.randomiser.oracle
        supported = self.told.supports[:-1] / self.n
        down, up = supported[0::2], supported[1::2]
        together = np.zeros_like(up)  # how often a report supports both ends of a key
        if not isinstance(oracle, DirectResponse):
            held = np.clip(sum(self._ends), 0, 1)
            together = 0.25 + held * (float(oracle.support.hit) / 2 - 0.25)
        scale = float(oracle.support.contrast) ** 2
        own, cross = up * (1 - up) + down * (1 - down), 2 * (together - up * down)
        both = up * (1 - up) - down * (1 - down)
        return (own + cross) / scale, (own - cross) / scale, both / scale

    def __repr__(self) -> str:
        return f"KeyValueEstimate(n={self.n}, keys={self.randomiser.keys})"
