"""Which beginnings strings have: a tree of prefixes, each of which is surely there."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability, refusal, whole
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.strings.hashed_reports import HashedReports
from discreet.local.strings.hashing import StringHashes
from discreet.local.strings.heavy_hitters import MOST_CANDIDATES
from discreet.local.strings.prefix_reports import PrefixReports, best
from discreet.local.strings.prefixes import Prefixes
from discreet.local.strings.sketch import HashedSupport
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings
from discreet.noise import SYSTEM, Source

__all__ = ["PrefixTree"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixTree:
    """Report one sign of a row that belongs to one prefix of the string, at a level drawn.

    For beginnings that many strings share, such as words or hosts, also where no whole string is
    frequent: the server goes down from the root, and on below a prefix only if it is surely
    there. Of more than ``keep`` such prefixes on a level it takes the most frequent.
    :class:`HeavyHitters` has smaller errors for whole strings, and does not say what is sure on
    the way.

    Claim: a report is epsilon-DP when the device's string is replaced by any other. Each device
    takes part in exactly one level, drawn without a look at its string, so that one report is all
    it costs; a device asked again, also for another level, pays again.

    Why: given the level and the hash function, it is :class:`HadamardResponse` of a hash; the tree
    is that of [BNST20, TreeHist].

    >>> tree = PrefixTree(length=3, levels=3, epsilon=3, key=b"one per collection")
    >>> reports = tree.release(["cat", "car", "cab", "cop"] * 1500 + ["dog"] * 4000)
    >>> levels = tree.estimate(reports, confidence=1 - 1e-9)
    >>> sorted(levels[0].strings)
    ['c', 'd']
    """

    length: int
    levels: int
    epsilon: Number
    key: bytes
    functions: int = 256
    width: int = 1024
    keep: int = 256

    def __post_init__(self) -> None:
        most = MOST_CANDIDATES >> self._reports.prefixes.longest_step
        if not whole(self.keep, name="keep") <= most:
            hint = "Take more levels, or keep fewer prefixes."
            raise refusal("keep", f"at most {most} with so few levels", self.keep, hint)

    @property
    def _randomiser(self) -> HadamardResponse:
        return HadamardResponse(domain=self.width, epsilon=self.epsilon)

    @property
    def _reports(self) -> PrefixReports:
        family = StringHashes(functions=self.functions, width=self.width, key=self.key)
        return PrefixReports(
            prefixes=Prefixes(length=self.length, steps=self.levels),
            hashed=HashedReports(family=family, randomiser=self._randomiser),
        )

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device, which takes part in exactly one level."""
        return self._randomiser.loss

    @property
    def support(self) -> HashedSupport:
        """How often a report of a level supports its own prefix, and another."""
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

        >>> tree = PrefixTree(length=2, levels=2, epsilon=4, key=b"2026")
        >>> reports = tree.release(["ox", "elk"])
        >>> reports.shape, bool((reports < tree.outputs).all())
        ((2,), True)
        """
        return self._reports.release(values, source=source)

    def estimate(self, reports: npt.ArrayLike, *, confidence: Number) -> tuple[StringEstimate, ...]:
        """Return the prefixes that are surely there, level by level down to where none is.

        Claim: with at least this confidence, no prefix shown at any level is one that nobody has.

        Why: levels have devices of their own, so what was shown above is independent of a level's
        errors; the chances of all candidates of all levels add up (Bonferroni).

        >>> tree = PrefixTree(length=2, levels=2, epsilon=4, key=b"2026")
        >>> levels = tree.estimate(tree.release(["ox"] * 3000), confidence=1 - 1e-9)
        >>> "o" in levels[0].strings, "ox" in levels[1].strings
        (True, True)
        """
        failing: Fraction = (1 - probability(confidence, name="confidence")) / self.levels
        steps = self._reports.steps(reports)
        if steps[0].n == 0:
            raise DataError("reports must hold at least one report, got none.")
        kept = np.zeros((1, self.length), dtype=np.uint8)
        shown: list[StringEstimate] = []
        for step in steps:
            candidates = step.extend(kept)
            readings = step.read(candidates)
            there = np.flatnonzero(readings.p_values <= float(failing / len(candidates)))
            chosen = there[best(readings.estimates[there], self.keep)]
            if not chosen.size:
                break
            shown.append(step.estimate(candidates, readings, chosen))
            kept = candidates[chosen]
        return tuple(shown)
