"""What reports of hashed strings add up to, and what it says about any string."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, whole
from discreet.local.estimates.support import Support
from discreet.local.strings.hashing import StringHashes, digests
from discreet.local.strings.readings import Readings
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings, as_bytes

__all__ = ["HashedSupport", "Sketch"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_AT_A_TIME: Final = 1 << 20  # hashes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HashedSupport:
    """State how often a report supports its own string, and another one that may share its hash.

    Each device draws one of ``functions`` hash functions and reports the hash of its string, which
    the report supports with chance ``inner.hit``, and any other hash with ``inner.miss``.

    Claim: over the draw of the hash functions and the coins, the estimate of a string's count is
    unbiased; ``variance`` is exact.

    Why: another string has the same hash with chance 1 / width, by pairwise independence, so that
    a report supports it with chance miss + (hit - miss) / width, which ``marginal`` has for
    ``miss``. Devices with one string and one function share its hash or do not, together; others
    are uncorrelated by the independence of three hashes. Together, pairs add
    (hit - miss)**2 (1 / width) (1 - 1 / width) / functions each [App17 has the same estimator].

    >>> inner = Support(hit=Fraction(3, 4), miss=Fraction(1, 4))
    >>> HashedSupport(inner=inner, functions=64, width=2).marginal
    Support(hit=Fraction(3, 4), miss=Fraction(1, 2))
    """

    inner: Support
    functions: int
    width: int

    @property
    def marginal(self) -> Support:
        """The chances over the draw of the hash functions too."""
        miss = self.inner.miss + self.inner.contrast / self.width
        return Support(hit=self.inner.hit, miss=miss)

    @property
    def _clash(self) -> Fraction:
        """The variance that one device's shared hash adds, in units of reports squared."""
        return self.inner.contrast**2 * Fraction(1, self.width) * (1 - Fraction(1, self.width))

    def variance(self, *, n: int, count: Number, pairs: Number) -> float:
        """Return the variance of the estimate of a string that ``count`` of ``n`` devices have.

        ``pairs`` is how many ordered pairs of the other devices hold one and the same string.
        """
        clashes = self._clash * Fraction(pairs) / self.functions
        return self.marginal.variance(n=n, count=count) + float(clashes / self._slope**2)

    def error(self, *, n: int, confidence: Number, popular: Number = 1) -> float:
        """Return a t such that an estimated count is off by at most t with this confidence.

        It holds for each string by itself if none is held by more than a share ``popular``.

        Why: half of the failures go to the hashes, by Chebyshev's inequality, as there are at most
        popular n**2 pairs; the other half to the coins, by Bernstein's (``Support.error``).
        """
        failing = (1 - probability(confidence, name="confidence")) / 2
        most = probability(popular, name="popular", one=True)
        clashes = self._clash * most * whole(n, name="n") ** 2 / self.functions
        hashes = math.sqrt(float(clashes / failing)) / float(self._slope)
        return hashes + self.marginal.error(n=n, confidence=1 - failing)

    @property
    def _slope(self) -> Fraction:
        return self.marginal.contrast

    def standard_error(self, counts: Floats, *, n: int, pairs: float) -> Floats:
        """Return the standard errors of estimated counts.

        ``pairs`` is as in ``variance``, but within one function, and counts each string's own.
        """
        hit, miss = float(self.marginal.hit), float(self.marginal.miss)
        held = np.clip(counts, 0, n)
        coins = held * hit * (1 - hit) + (n - held) * miss * (1 - miss)
        others = np.maximum(pairs - held * np.maximum(held - 1, 0) / self.functions, 0)
        return np.asarray(np.sqrt(coins + float(self._clash) * others) / float(self._slope))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """Hold, for each hash function, how many of its reports support each hash.

    ``supports[j, b]`` counts the reports of the ``devices[j]`` devices with function j that support
    hash b. It is enough to estimate any string's count; reports can be forgotten.
    """

    supports: Ints
    devices: Ints
    family: StringHashes
    law: HashedSupport

    @property
    def n(self) -> int:
        """How many reports it holds."""
        return int(self.devices.sum())

    def read(self, hashed: npt.NDArray[np.uint64]) -> Readings:
        """Return estimates for strings, given by their digests."""
        rows = np.arange(self.family.functions)[:, None]
        supporting = np.zeros(len(hashed), dtype=np.int64)
        step = max(1, _AT_A_TIME // self.family.functions)
        for start in range(0, len(hashed), step):
            columns = self.family.table(hashed[start : start + step])
            supporting[start : start + step] = self.supports[rows, columns].sum(axis=0)
        support, pairs = self.law.marginal, self._pairs()
        excess = supporting - self.n * float(support.miss)
        counts: Floats = np.asarray(excess / float(support.contrast))
        return Readings(
            estimates=counts,
            standard_error=self.law.standard_error(counts, n=self.n, pairs=pairs),
            null_error=self.law.standard_error(np.zeros_like(counts), n=self.n, pairs=pairs),
            reach=np.full(len(hashed), float((1 - support.miss) / support.contrast)),
        )

    def estimate(self, candidates: Strings) -> StringEstimate:
        """Estimate how many devices have each of the candidates."""
        values = tuple(as_bytes(candidates))
        readings = self.read(digests(values))
        return StringEstimate(
            values=values,
            n=self.n,
            counts=readings.estimates,
            readings=readings,
            tested=max(1, len(values)),
        )

    def _pairs(self) -> float:
        """Estimate how many ordered pairs of devices have one function and one string.

        Why: the squared estimates of a function's hashes add up to the squares of what is there,
        plus the coins' variance; and those to the pairs with one string, plus 1 / width of all
        other pairs, plus each device with itself.
        """
        hit, miss = float(self.law.inner.hit), float(self.law.inner.miss)
        width = self.family.width
        there = (self.supports - self.devices[:, None] * miss) / (hit - miss)
        coins = (hit * (1 - hit) + (width - 1) * miss * (1 - miss)) / (hit - miss) ** 2
        squares = float((there**2).sum() - self.n * coins)
        every = float((self.devices.astype(np.float64) ** 2).sum())
        return max(0.0, (squares - every / width) / (1 - 1 / width) - self.n)
