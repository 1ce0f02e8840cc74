"""Reports of one prefix a device, at the one step that the device draws."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.local.laws.numbers import as_codes
from discreet.local.strings.hashed_reports import HashedReports
from discreet.local.strings.prefixes import Prefixes
from discreet.local.strings.readings import Readings
from discreet.local.strings.sketch import Sketch
from discreet.local.strings.string_estimate import StringEstimate
from discreet.local.strings.text import Strings, as_padded
from discreet.noise import Source, uniform_integers

__all__ = ["PrefixReports", "Step", "best"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixReports:
    """Draw a step, and report the hash of the string's prefix at that step.

    A report is the number step * hashed.outputs + the hash's report.

    Claim: a report costs what ``hashed`` costs, however many steps there are.

    Why: the device takes part in one step, which it draws without a look at the string, and
    tells; given it, the report is that of a function of the string.
    """

    prefixes: Prefixes
    hashed: HashedReports

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.prefixes.steps * self.hashed.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold any report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(self, values: Strings, *, source: Source) -> Ints:
        """Return one report for each device's string."""
        strings = as_padded(values, length=self.prefixes.length)
        steps = uniform_integers(self.prefixes.steps, len(strings), source=source)
        hashed = self.prefixes.digests(self.prefixes.cut(strings, steps), steps)
        return np.asarray(steps * self.hashed.outputs + self.hashed.release(hashed, source=source))

    def steps(self, reports: npt.ArrayLike) -> list["Step"]:
        """Add up the reports of each step."""
        codes = as_codes(reports, below=self.outputs)
        step, inner = np.divmod(codes, self.hashed.outputs)
        return [
            Step(
                number=number,
                prefixes=self.prefixes,
                sketch=self.hashed.sketch(inner[step == number]),
                n=codes.size,
            )
            for number in range(self.prefixes.steps)
        ]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """Estimate prefixes from the reports of one step, for all ``n`` devices."""

    number: int
    prefixes: Prefixes
    sketch: Sketch
    n: int

    def extend(self, kept: Octets) -> Octets:
        """Return the prefixes of this step that continue those kept at the step before."""
        return self.prefixes.extend(kept, self.number)

    def read(self, candidates: Octets) -> Readings:
        """Estimate how many of all devices have each prefix; without reports, nothing is known.

        Why: the devices of a step are a random sample. Of those with a prefix it has the share of
        all, unbiased, with the variance of draws without replacement, to which the reports' adds.
        """
        numbers = np.full(len(candidates), self.number)
        taken = self.sketch.read(self.prefixes.digests(candidates, numbers))
        taking = self.sketch.n
        if not taking:
            unknown = np.full(len(candidates), np.inf)
            return replace(taken, standard_error=unknown, null_error=unknown)
        share = np.clip(taken.estimates / taking, 0, 1)
        sampled = taking * share * (1 - share) * (1 - taking / self.n)
        scale = self.n / taking
        return Readings(
            estimates=taken.estimates * scale,
            standard_error=np.sqrt(taken.standard_error**2 + sampled) * scale,
            null_error=taken.null_error * scale,
            reach=taken.reach * scale,
        )

    def estimate(self, candidates: Octets, readings: Readings, chosen: Places) -> StringEstimate:
        """Return the chosen among the candidates, the most frequent first."""
        order = chosen[np.argsort(-readings.estimates[chosen], kind="stable")]
        return StringEstimate(
            values=self.prefixes.texts(candidates[order]),
            n=self.n,
            counts=readings.estimates[order],
            readings=readings.only(order),
            tested=len(candidates),
        )


def best(counts: Floats, keep: int) -> Places:
    """Return where the largest counts are, in order of place."""
    return np.sort(np.argsort(-counts, kind="stable")[:keep])
