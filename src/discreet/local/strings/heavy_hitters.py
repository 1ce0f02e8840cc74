"""The most frequent strings, none of which is known beforehand, by longer and longer prefixes."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, refusal, whole
from discreet.accounting import RandomizedResponseLoss
from discreet.errors import DataError
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.strings.hashed_reports import HashedReports
from discreet.local.strings.hashing import StringHashes
from discreet.local.strings.prefix_reports import PrefixReports, best
from discreet.local.strings.prefixes import Prefixes
from discreet.local.strings.sketch import HashedSupport
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings
from discreet.noise import SYSTEM, Source

__all__ = ["MOST_CANDIDATES", "HeavyHitters"]

MOST_CANDIDATES: Final = 1 << 20  # a server looks at so many a step, by every hash function


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters:
    """Report the hash of one prefix of the string, at the step that the device draws.

    For the most frequent strings when no list of candidates exists: the server keeps the most
    frequent prefixes of each step and extends them by all bytes, or bits, at the next
    (prefix extension, PEM). Strings are cut to ``length`` bytes of UTF-8, and shorter ones end in
    zeros. Fewer ``steps`` leave more devices to each, and more candidates to look at:
    ``keep`` times 2 to the bits that a step adds.

    Claim: a report is epsilon-DP when the device's string is replaced by any other. Each device
    takes part in exactly one step, drawn without a look at its string, so that one report is all
    it costs; a device asked again, also for another step, pays again.

    Why: given the step and the hash function, it is :class:`DirectResponse` of a hash with the
    best width, local hashing with public functions [WLJ21; WBLJ17, Section 4.3].

    >>> hunt = HeavyHitters(length=3, steps=3, epsilon=4, key=b"one per collection")
    >>> estimate = hunt.estimate(hunt.release(["fox"] * 6000 + ["owl"] * 3000 + ["?"] * 1000))
    >>> estimate.found(confidence=0.99).strings[:2]
    ('fox', 'owl')
    """

    length: int
    steps: int
    epsilon: Number
    key: bytes
    functions: int = 1024
    keep: int = 64

    def __post_init__(self) -> None:
        most = MOST_CANDIDATES >> self._reports.prefixes.longest_step
        if not whole(self.keep, name="keep") <= most:
            hint = "Take more steps, or keep fewer prefixes."
            raise refusal("keep", f"at most {most} with so few steps", self.keep, hint)

    @property
    def _randomiser(self) -> DirectResponse:
        return _best_response(self.epsilon)

    @property
    def _reports(self) -> PrefixReports:
        randomiser = self._randomiser
        family = StringHashes(functions=self.functions, width=randomiser.domain, key=self.key)
        return PrefixReports(
            prefixes=Prefixes(length=self.length, steps=self.steps),
            hashed=HashedReports(family=family, randomiser=randomiser),
        )

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one report costs the device, which takes part in exactly one step."""
        return self._randomiser.loss

    @property
    def support(self) -> HashedSupport:
        """How often a report of a step supports its own prefix, and another."""
        return self._reports.hashed.support

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self._reports.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold any report."""
        return self._reports.bytes_per_report

    def release(self, values: Strings, *, source: Source = SYSTEM) -> npt.NDArray[np.int64]:
        """Return one report for each device's string.

        >>> hunt = HeavyHitters(length=2, steps=2, epsilon=4, key=b"2026")
        >>> reports = hunt.release(["ox", "elk"])
        >>> reports.shape, bool((reports < hunt.outputs).all())
        ((2,), True)
        """
        return self._reports.release(values, source=source)

    def estimate(self, reports: npt.ArrayLike) -> StringEstimate:
        """Find the ``keep`` strings that seem most frequent; ``.found(confidence=)`` are surely.

        Each count is from the last step's devices alone. As those with high counts are shown,
        they are rather too high than too low, by up to about a standard error where it is large.

        >>> hunt = HeavyHitters(length=2, steps=2, epsilon=4, key=b"2026")
        >>> estimate = hunt.estimate(hunt.release(["ox"] * 3000))
        >>> estimate.strings[0], len(estimate.strings)
        ('ox', 64)
        """
        steps = self._reports.steps(reports)
        if steps[0].n == 0:
            raise DataError("reports must hold at least one report, got none.")
        kept = np.zeros((1, self.length), dtype=np.uint8)
        for step in steps:
            candidates = step.extend(kept)
            readings = step.read(candidates)
            chosen = best(readings.estimates, self.keep)
            kept = candidates[chosen]
        return steps[-1].estimate(candidates, readings, chosen)


@lru_cache(maxsize=64, typed=True)
def _best_response(epsilon: Number) -> DirectResponse:
    """Return the response over as many hashes as give a rare string's estimate least variance.

    About exp(epsilon) + 1 [WBLJ17, Section 4.3]; here the best power of two.
    """
    widths = [1 << bits for bits in range(1, 17)]
    return min((DirectResponse(domain=width, epsilon=epsilon) for width in widths), key=_variance)


def _variance(randomiser: DirectResponse) -> float:
    support = HashedSupport(inner=randomiser.support, functions=1, width=randomiser.domain)
    return support.variance(n=1, count=0, pairs=0)
