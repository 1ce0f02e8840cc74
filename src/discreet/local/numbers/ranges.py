"""Ranges of ordered values: each device reports one level of a tree of ranges."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.laws.numbers import as_codes, as_domain, as_values
from discreet.local.numbers.oracles import Oracle, best_oracle, weighted_share
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["Ranges", "RangesEstimate"]

Floats = npt.NDArray[np.float64]

_LARGEST: Final = 1 << 24  # values; estimates hold a few numbers for each


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Report which range of ordered values the device's own is in, to count any range later.

    Values are numbered from 0 to ``domain`` - 1 in their order. Level l of a tree cuts them into
    ``fan_out``**l ranges of equal length. A device reports its range on one level, chosen in
    public. A range of values is then put together from few ranges of the tree, so that its error
    grows with the logarithm of its length, and quantiles follow.

    Claim: a report is epsilon-DP when the device's value is replaced by any other.

    Why: the level does not depend on the value, and the range on it is told with epsilon-DP by
    direct or Hadamard response [CKS19, Section 4].

    Reports of a level follow those of the levels above it: they begin at its ``offsets``.

    >>> randomiser = Ranges(domain=1000, epsilon=2)
    >>> estimate = randomiser.estimate(randomiser.release(np.arange(100_000) % 1000))
    >>> count, error = estimate.range(250, 749)
    >>> bool(abs(count - 50_000) < 8 * error)
    True
    """

    domain: int
    epsilon: Number
    fan_out: int = 4

    def __post_init__(self) -> None:
        if as_domain(self.domain) > _LARGEST:
            hint = "Join neighbouring values to fewer."
            raise refusal("domain", f"at most {_LARGEST}", self.domain, hint)
        whole(self.fan_out, name="fan_out", minimum=2)
        self.levels  # noqa: B018 - refuses what cannot be

    @property
    def depth(self) -> int:
        """How many levels there are, without the one of a single range."""
        depth = 1
        while self.fan_out**depth < self.domain:
            depth += 1
        return depth

    @property
    def levels(self) -> tuple[Oracle, ...]:
        """How a range is told on each level."""
        sizes = [self.fan_out**level for level in range(1, self.depth + 1)]
        return tuple(best_oracle(domain=size, epsilon=self.epsilon) for size in sizes)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=max(level.loss.epsilon for level in self.levels))

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first report of each level, and the number of all."""
        return tuple(np.cumsum([0, *(level.outputs for level in self.levels)]).tolist())

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.offsets[-1]

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's value.

        >>> randomiser = Ranges(domain=16, epsilon=2)
        >>> reports = randomiser.release([3, 14])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        inputs = as_values(values, domain=self.domain)
        asked = uniform_integers(self.depth, inputs.size, source=source)
        reports = np.empty(inputs.size, dtype=np.int64)
        for index, (level, offset) in enumerate(zip(self.levels, self.offsets, strict=False)):
            chosen = np.flatnonzero(asked == index)
            nodes = inputs[chosen] // self.fan_out ** (self.depth - 1 - index)
            reports[chosen] = offset + level.release(nodes, source=source)
        return reports

    def estimate(self, reports: npt.ArrayLike) -> "RangesEstimate":
        """Estimate how many devices are in any range, without bias.

        >>> randomiser = Ranges(domain=16, epsilon=2)
        >>> estimate = randomiser.estimate(randomiser.release(np.full(1000, 3)))
        >>> round(float(estimate.counts.sum()), 6)
        1000.0
        """
        codes = as_codes(reports, below=self.outputs)
        ends = self.offsets
        parts = [codes[(codes >= first) & (codes < end)] - first for first, end in pairwise(ends)]
        if not parts[-1].size:
            raise DataError("reports must hold at least one of the finest level.")
        return RangesEstimate(randomiser=self, n=codes.size, reports=tuple(parts))

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Return about how much a range's count is off at most, with this confidence.

        It holds for each range of at most this share of the domain, by itself. It is a normal
        approximation for the worst range, without what consistency gains.

        >>> randomiser = Ranges(domain=1000, epsilon=2)
        >>> [round(randomiser.error(n=100_000, confidence=0.95, share=s)) for s in (0.001, 0.1)]
        [2574, 7767]
        """
        from scipy.special import ndtri

        length = max(1, math.ceil(self.domain * probability(share, name="share", one=True)))
        sure = -float(ndtri(float((1 - probability(confidence, name="confidence")) / 2)))
        variance = 0.0
        for index, level in enumerate(self.levels):
            # At both ends of the range, fewer than fan_out of its parts are of this level.
            size = self.fan_out ** (self.depth - 1 - index)
            parts = min(2 * (self.fan_out - 1), length // size)
            variance += parts * level.support.variance(n=1, count=0)
        return sure * math.sqrt(variance * self.depth * whole(n, name="n"))


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RangesEstimate:
    """Hold how many devices have values in any range, as far as ``n`` reports tell.

    Claim: ``counts`` and every range's count are unbiased for the people whom the devices asked are
    a random choice of, add up with each other, and to ``n`` in all. Standard errors come from how
    the readings of reports differ, so they cover the devices' coins and who was asked what.

    Why: each level tells each of its ranges without bias, with errors that hardly depend on each
    other and are of equal size. Of all weights on ranges of the tree that make up the asked range,
    those of least squares have the smallest error (Gauss and Markov) [HRMS10, Section 4]. Sums over
    ranges of one level are nested projections, so the least squares are solved by projecting.

    >>> randomiser = Ranges(domain=16, epsilon=2)
    >>> randomiser.estimate(randomiser.release(np.full(1000, 3)))
    RangesEstimate(n=1000, values=16)
    """

    randomiser: Ranges
    n: int
    reports: tuple[npt.NDArray[np.int64], ...]

    @cached_property
    def counts(self) -> Floats:
        """The estimated number of devices that have each value."""
        total = np.zeros(self._size)
        for level, codes, precision in zip(
            self.randomiser.levels, self.reports, self._precisions, strict=True
        ):
            if codes.size:
                shares = level.estimate(codes).shares
                total += precision * np.repeat(shares, self._size // shares.size)
        details = self._solve(total)
        # All devices together are known.
        leaves = details + (1 - details.sum()) / self._size
        return np.asarray(leaves[: self.randomiser.domain] * self.n)

    def range(self, first: int, last: int) -> tuple[float, float]:
        """Return how many devices have values from ``first`` to ``last``, and the standard error.

        >>> randomiser = Ranges(domain=16, epsilon=4)
        >>> randomiser.estimate(randomiser.release(np.zeros(1000, dtype=int))).range(0, 15)
        (1000.0, 0.0)
        """
        low = whole(first, name="first", minimum=0)
        high = whole(last, name="last", minimum=low)
        if high >= self.randomiser.domain:
            raise refusal("last", f"below the domain, which is {self.randomiser.domain}", last)
        asked = np.zeros(self._size)
        asked[low : high + 1] = 1
        if high + 1 == self.randomiser.domain:
            asked[high + 1 :] = 1  # nobody is beyond
        return self.total(asked)

    def total(self, weights: npt.ArrayLike) -> tuple[float, float]:
        """Return the sum of weights over devices, each by its value, and the standard error.

        >>> randomiser = Ranges(domain=16, epsilon=2)
        >>> estimate = randomiser.estimate(randomiser.release(np.full(1000, 3)))
        >>> total, error = estimate.total(np.arange(16))
        >>> bool(abs(total - 3000) < 8 * error)
        True
        """
        wanted = np.zeros(self._size)
        given = np.asarray(weights, dtype=np.float64)
        wanted[: given.size] = given
        known = float(wanted.mean())
        solved = self._solve(wanted - known)
        mean, variance = known, 0.0
        for level, codes, precision in zip(
            self.randomiser.levels, self.reports, self._precisions, strict=True
        ):
            if codes.size:
                parts = precision * solved.reshape(level.domain, -1).sum(axis=1)
                share, error = weighted_share(level, codes, parts)
                mean, variance = mean + share, variance + error**2
        return mean * self.n, math.sqrt(variance) * self.n

    def quantile(self, share: Number) -> int:
        """Return the smallest value up to which at least this share of the devices lies.

        Estimated counts up to a value are made to grow first, which is post-processing.

        >>> randomiser = Ranges(domain=16, epsilon=8)
        >>> estimate = randomiser.estimate(randomiser.release(np.full(1000, 3)))
        >>> estimate.quantile(0.5)
        3
        """
        wanted = float(probability(share, name="share", zero=True, one=True)) * self.n
        upto = np.maximum.accumulate(np.cumsum(self.counts))
        return min(int(np.searchsorted(upto, wanted)), self.randomiser.domain - 1)

    @property
    def _size(self) -> int:
        return int(self.randomiser.fan_out**self.randomiser.depth)

    @property
    def _precisions(self) -> list[float]:
        """One over the variance of a range's share on each level."""
        pairs = zip(self.randomiser.levels, self.reports, strict=True)
        return [codes.size / level.support.variance(n=1, count=0) for level, codes in pairs]

    def _solve(self, weights: Floats) -> Floats:
        """Return s with mean 0 such that each level's sums of s, put together, are the weights."""
        fan_out, solved = self.randomiser.fan_out, np.zeros(self._size)
        fine, length, strength = weights, 1, 0.0
        for precision in reversed(self._precisions):  # from the finest level upwards
            strength += precision * length
            coarse = fine.reshape(-1, fan_out).mean(axis=1)
            details = fine - np.repeat(coarse, fan_out)
            solved += np.repeat(details, length) / strength
            fine, length = coarse, length * fan_out
        return solved

    def __repr__(self) -> str:
        return f"RangesEstimate(n={self.n}, values={self.randomiser.domain})"
