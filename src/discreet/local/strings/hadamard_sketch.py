"""The count-mean sketch's Hadamard form: a hash function, an index and a sign."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.strings.hashed_reports import HashedReports
from discreet.local.strings.hashing import StringHashes, digests
from discreet.local.strings.sketch import HashedSupport, Sketch
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings, as_bytes
from discreet.noise import SYSTEM, Source

__all__ = ["HadamardSketch"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardSketch:
    """Report a random hash function's number and one sign of the string's hash there.

    For strings that no list holds, in few bytes: any string's count can be asked for afterwards.
    ``functions`` are how many hash functions there are, ``width`` how many hashes each has; more
    of either make fewer strings clash, and cost the device nothing but a bit.

    Claim: a report is epsilon-DP when the device's string is replaced by any other.

    Why: given the function, which is drawn without a look at the string, it is
    :class:`HadamardResponse` of the hash [App17, HCMS]. Estimates are unbiased over
    the functions (``key``) and the coins, as strings.sketch.HashedSupport proves.

    >>> randomiser = HadamardSketch(functions=256, width=1024, epsilon=2, key=b"one per collection")
    >>> randomiser.bytes_per_report
    3
    >>> estimate = randomiser.estimate(randomiser.release(["a"] * 9000 + ["b"] * 1000), ["a", "c"])
    >>> estimate.found(confidence=1 - 1e-9).strings
    ('a',)
    """

    functions: int
    width: int
    epsilon: Number
    key: bytes

    def __post_init__(self) -> None:
        self._hashed  # noqa: B018 - refuses what cannot be

    @property
    def _hashed(self) -> HashedReports:
        family = StringHashes(functions=self.functions, width=self.width, key=self.key)
        inner = HadamardResponse(domain=self.width, epsilon=self.epsilon)
        return HashedReports(family=family, randomiser=inner)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return HadamardResponse(domain=self.width, epsilon=self.epsilon).loss

    @property
    def support(self) -> HashedSupport:
        """How often a report supports its own string, and another."""
        return self._hashed.support

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self._hashed.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold any report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def error(self, *, n: int, confidence: Number, popular: Number = 1) -> float:
        """Return a t such that an estimated count is off by at most t with this confidence.

        >>> randomiser = HadamardSketch(functions=256, width=1024, epsilon=2, key=b"2026")
        >>> [round(randomiser.error(n=10_000, confidence=0.95, popular=p)) for p in (0.01, 1)]
        [405, 517]
        """
        return self.support.error(n=n, confidence=confidence, popular=popular)

    def release(self, values: Strings, *, source: Source = SYSTEM) -> npt.NDArray[np.int64]:
        """Return one report for each device's string.

        >>> randomiser = HadamardSketch(functions=256, width=1024, epsilon=2, key=b"2026")
        >>> randomiser.release(["a.example", "b.example"]).shape
        (2,)
        """
        return self._hashed.release(digests(as_bytes(values)), source=source)

    def sketch(self, reports: npt.ArrayLike) -> Sketch:
        """Add reports up; the sketch can be asked for any string.

        >>> randomiser = HadamardSketch(functions=256, width=1024, epsilon=2, key=b"2026")
        >>> sketch = randomiser.sketch(randomiser.release(["a"] * 100))
        >>> sketch.n, sketch.supports.shape
        (100, (256, 1024))
        """
        return self._hashed.sketch(reports)

    def estimate(self, reports: npt.ArrayLike, candidates: Strings) -> StringEstimate:
        """Estimate how many devices have each candidate, without bias.

        >>> randomiser = HadamardSketch(functions=256, width=1024, epsilon=2, key=b"2026")
        >>> estimate = randomiser.estimate(randomiser.release(["a"] * 1000), ["a", "b"])
        >>> bool(abs(estimate.counts[0] - 1000) < 8 * estimate.standard_error[0])
        True
        """
        return self.sketch(reports).estimate(candidates)
