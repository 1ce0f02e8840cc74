"""Report a string's hash, by a public function that the device draws, with a known randomiser."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse, hadamard_transform
from discreet.local.laws.numbers import as_codes
from discreet.local.strings.hashing import StringHashes
from discreet.local.strings.sketch import HashedSupport, Sketch
from discreet.noise import Source, uniform_integers

__all__ = ["HashedReports"]

Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HashedReports:
    """Draw a hash function, and give the string's hash to a randomiser of ``family.width`` values.

    A report is the number function * randomiser.outputs + the randomiser's report.

    Claim: a report costs what the randomiser's costs.

    Why: the function is drawn without a look at the string, and told; given it, the report is the
    randomiser's of a function of the string.
    """

    family: StringHashes
    randomiser: DirectResponse | HadamardResponse

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.family.functions * self.randomiser.outputs

    @property
    def support(self) -> HashedSupport:
        """How often a report supports its own string, and another."""
        return HashedSupport(
            inner=self.randomiser.support,
            functions=self.family.functions,
            width=self.family.width,
        )

    def release(self, hashed: npt.NDArray[np.uint64], *, source: Source) -> Ints:
        """Return one report for each string, given by its digest."""
        function = uniform_integers(self.family.functions, len(hashed), source=source)
        inner = self.randomiser.release(self.family.hashes(hashed, function), source=source)
        return np.asarray(function * self.randomiser.outputs + inner)

    def sketch(self, reports: npt.ArrayLike) -> Sketch:
        """Add reports up."""
        cells = (self.family.functions, self.randomiser.outputs)
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs).reshape(cells)
        devices = seen.sum(axis=1)
        if isinstance(self.randomiser, HadamardResponse):
            agreeing = hadamard_transform(seen[:, 0::2] - seen[:, 1::2])
            seen = (devices[:, None] + agreeing) >> 1
        return Sketch(supports=seen, devices=devices, family=self.family, law=self.support)
