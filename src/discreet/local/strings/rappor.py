"""RAPPOR, once: a Bloom filter of the string, each bit turned round by a coin."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, whole
from discreet.accounting import PureLoss
from discreet.local.estimates.support import Support
from discreet.local.strings.bit_reports import BitReports
from discreet.local.strings.decoding import CohortCounts, decode
from discreet.local.strings.hashing import StringHashes, digests
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings, as_bytes
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["Rappor"]

Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor:
    """Report a cohort's number and a Bloom filter whose bits coins may turn round.

    For strings that no list holds, when candidates for them are known later. Each device draws one
    of ``cohorts``; in each, a string sets ``hashes`` of ``bits`` bits, other ones in every cohort.
    This is the answer to be given once: each further answer costs as much again.

    Claim: a report is epsilon-DP when the device's string is replaced by any other.

    Why: the cohort is drawn without a look at the string, and told; given it, the filters of two
    strings differ in at most 2 * hashes bits, each turned round with the odds of
    epsilon / (2 * hashes) [EPK14, Theorem 1].

    >>> randomiser = Rappor(bits=32, hashes=2, cohorts=16, epsilon=4, key=b"one per collection")
    >>> reports = randomiser.release(["a.example"] * 7000 + ["b.example"] * 3000)
    >>> estimate = randomiser.estimate(reports, ["a.example", "b.example", "c.example"])
    >>> estimate.found(confidence=1 - 1e-9).strings
    ('a.example', 'b.example')
    """

    bits: int
    hashes: int
    cohorts: int
    epsilon: Number
    key: bytes

    def __post_init__(self) -> None:
        self._family, self._reports  # noqa: B018 - refuse what cannot be

    @property
    def _family(self) -> StringHashes:
        functions = whole(self.cohorts, name="cohorts") * whole(self.hashes, name="hashes")
        return StringHashes(functions=functions, width=self.bits, key=self.key)

    @property
    def _reports(self) -> BitReports:
        changes = min(2 * self.hashes, self.bits)
        return BitReports.calibrated(
            epsilon=self.epsilon, groups=self.cohorts, bits=self.bits, changes=changes
        )

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self._reports.epsilon))

    @property
    def bit(self) -> Support:
        """How often a reported bit is 1 where the filter has a 1, and where it has a 0."""
        keep = self._reports.law.keep_chance
        return Support(hit=keep, miss=1 - keep)

    @property
    def bytes_per_report(self) -> int:
        """How many bytes a report has."""
        return self._reports.bytes_per_report

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that an estimated count is off by at most t with this confidence.

        It is the coins' part for a string whose bits no other one sets: the least there is. What
        other strings add is in an estimate's ``standard_error``.

        >>> randomiser = Rappor(bits=32, hashes=2, cohorts=16, epsilon=4, key=b"2026")
        >>> round(randomiser.error(n=10_000, confidence=0.95))
        186
        """
        return self.bit.error(n=whole(n, name="n") * self.hashes, confidence=confidence) / (
            self.hashes
        )

    def release(self, values: Strings, *, source: Source = SYSTEM) -> npt.NDArray[np.uint8]:
        """Return one row of bytes for each device's string.

        >>> randomiser = Rappor(bits=32, hashes=2, cohorts=16, epsilon=4, key=b"2026")
        >>> randomiser.release(["a.example", "b.example"]).shape
        (2, 5)
        """
        hashed = digests(as_bytes(values))
        cohorts = uniform_integers(self.cohorts, len(hashed), source=source)
        return self._reports.release(cohorts, self._set_bits(hashed, cohorts), source=source)

    def estimate(self, reports: npt.ArrayLike, candidates: Strings) -> StringEstimate:
        """Estimate how many devices have each candidate, by non-negative least squares.

        >>> randomiser = Rappor(bits=32, hashes=2, cohorts=16, epsilon=4, key=b"2026")
        >>> estimate = randomiser.estimate(randomiser.release(["a"] * 1000), ["a", "b"])
        >>> estimate.n, estimate.strings, bool((estimate.counts >= 0).all())
        (1000, ('a', 'b'), True)
        """
        devices, ones = self._reports.count(reports)
        values = tuple(as_bytes(candidates))
        counted = CohortCounts(devices=devices, ones=ones, hashes=self.hashes, bit=self.bit)
        return decode(counted, self._filters(digests(values)), values)

    def _set_bits(self, hashed: npt.NDArray[np.uint64], cohorts: Ints) -> Ints:
        """Return which bits each string sets in the cohort beside it, one row a string."""
        first = cohorts * self.hashes
        return np.stack(
            [self._family.hashes(hashed, first + i) for i in range(self.hashes)], axis=1
        )

    def _filters(self, hashed: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        """Return the Bloom filters of all strings in all cohorts: [cohort, bit, string]."""
        filters = np.zeros((self.cohorts, self.bits, len(hashed)))
        strings = np.arange(len(hashed))[:, None]
        for cohort in range(self.cohorts):
            bits = self._set_bits(hashed, np.full(len(hashed), cohort))
            filters[cohort, bits, strings] = 1
        return filters
