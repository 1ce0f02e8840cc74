"""Hashing with a public family in which all pairs of values meet equally often."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive
from discreet.accounting import PureLoss
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.hadamard import hadamard_transform
from discreet.local.laws.drawing import CHUNK, keep_or_change
from discreet.local.laws.numbers import as_codes, as_domain, as_values, code_bytes
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["POLYNOMIALS", "PublicHashing"]

# An irreducible polynomial over two elements for each degree from 1 to 31, its bits those of the
# number below the leading one: 3 at degree 4 is x**4 + x + 1. The smallest with a constant term.
POLYNOMIALS: Final = (
    *(1, 3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43),
    *(9, 9, 39, 9, 5, 3, 33, 27, 9, 27, 39, 3, 5, 3, 9),
)
_WIDEST: Final = 20  # bits of a cell


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicHashing:
    """Report which function of a public family was drawn, and the value's cell or any other cell.

    Has the error of :class:`OptimizedUnary` and :class:`LocalHashing` up to a few percent, reports
    of log2(domain) bits and those of a cell, and a reader as fast as :class:`HadamardResponse`,
    which is the case of two cells. The first choice for many values.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: the function is drawn without looking at the value, and given the function the cell is a
    law of preference with one own output of ``cells``.

    The family is linear: function a takes v to the bits <a, v>, <x a, v>, <x**2 a, v>, ..., where
    <,> is the parity of the common bits and a is multiplied in the field of 2**degree elements.
    Any two values meet in exactly one of every ``cells`` functions: a combination of the bits is
    <c a, v> with c not 0, so it is 0 for half of all a, whatever v but 0. So the estimates
    are unbiased for this very family and the reports independent. In a small family drawn at random
    [CMM21] some pairs meet more often than others: a bias that more reports do not mend.

    A report is the number cells a + cell.

    >>> randomiser = PublicHashing(domain=1000, epsilon=1)
    >>> randomiser.cells, randomiser.outputs, randomiser.bytes_per_report
    (4, 4096, 2)
    >>> estimate = randomiser.estimate(randomiser.release(np.full(100_000, 7)))
    >>> bool(abs(estimate.counts[7] - 100_000) < 8 * estimate.standard_error[7])
    True
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def degree(self) -> int:
        """How many bits number the functions of the family."""
        return (int(self.domain) - 1).bit_length()

    @property
    def cells(self) -> int:
        """How many cells the functions have: the power of two of least average variance."""
        return _best(int(self.domain), positive(self.epsilon, name="epsilon"))

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        return _law(self.degree, self.cells, self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.law)

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.law.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return code_bytes(self.outputs)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's value.

        >>> randomiser = PublicHashing(domain=100, epsilon=1)
        >>> reports = randomiser.release([7] * 1000)
        >>> reports.shape, bool(reports.max() < randomiser.outputs)
        ((1000,), True)
        """
        inputs, law, cells = as_values(values, domain=self.domain), self.law, self.cells
        reports = np.empty(inputs.size, dtype=np.int64)
        for start in range(0, inputs.size, CHUNK):
            part = inputs[start : start + CHUNK]
            members = uniform_integers(1 << self.degree, part.size, source=source)
            own = self._cell(members, part)
            reports[start : start + CHUNK] = members * cells + keep_or_change(
                law, own, below=cells, source=source
            )
        return reports

    def _cell(
        self, members: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        cell = np.zeros_like(members)
        for bit in range(self.cells.bit_length() - 1):
            cell |= (np.bitwise_count(members & values) & 1).astype(np.int64) << bit
            members = self._times_x(members)
        return cell

    def _times_x(self, members: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        carry = members >> (self.degree - 1)
        return ((members << 1) & ((1 << self.degree) - 1)) ^ (carry * POLYNOMIALS[self.degree - 1])

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        A report supports v if its cell agrees with v's in the parity of every combination c of the
        cells' bits. So its signs there add up to ``cells`` if it does, and to 0 otherwise. Parity c
        of v's cell is <c a, v>: with each sign put at c a, one Hadamard transform adds them up.

        >>> randomiser = PublicHashing(domain=8, epsilon=1)
        >>> randomiser.cells
        4
        >>> randomiser.supports([4 * 1 + 3])      # the lowest bit is 1, and so is the next
        array([0, 0, 0, 1, 0, 0, 0, 1])
        """
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs).reshape(-1, self.cells)
        signs = np.zeros(len(seen), dtype=np.int64)
        columns = hadamard_transform(seen)
        powers = [np.arange(len(seen))]  # x**i a, for every a
        for combination in range(1, self.cells):
            if combination == 1 << len(powers):
                powers.append(self._times_x(powers[-1]))
            chosen = [power for bit, power in enumerate(powers) if combination >> bit & 1]
            signs[np.bitwise_xor.reduce(chosen)] += columns[:, combination]
        agreeing = hadamard_transform(signs)[: self.domain]
        return np.asarray((codes.size + agreeing) // self.cells)

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> PublicHashing(domain=2, epsilon=1).estimate([0] * 300 + [2] * 400 + [3] * 300)
        CountEstimate(n=1000, counts=[866 ± 62, 433 ± 65])
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = PublicHashing(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [607, 528]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


@lru_cache(maxsize=64)
def _best(domain: int, epsilon: Fraction) -> int:
    """Return the cells of least variance."""
    degree = (domain - 1).bit_length()

    def variance(cells: int) -> Fraction:
        return _support(_law(degree, cells, epsilon)).average_variance(domain=domain)

    return min((2 << bit for bit in range(min(degree, _WIDEST))), key=variance)


def _law(degree: int, cells: int, epsilon: Number) -> Preference:
    return Preference.calibrated(epsilon=epsilon, outputs=cells << degree, preferred=1 << degree)


def _support(law: Preference) -> Support:
    shared = law.preferred**2 // law.outputs
    return Support(hit=law.keep_chance, miss=law.hit(shared=shared))
