"""Local hashing: a random hash function of the device's own, and the value's cell under it."""

import math
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
from discreet.local.laws.drawing import CHUNK, keep_or_change
from discreet.local.laws.numbers import as_codes, as_domain, as_values, code_bytes
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["HashFamily", "LocalHashing"]

_CODE_BITS: Final = 63  # of a report
_SPARE_BITS: Final = 6  # of a hash beyond what tells the cells apart; makes them all but equal
_BLOCK: Final = 1 << 15  # reports read at a time; stay in the processor's cache


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HashFamily:
    """Hash whole numbers to ``cells`` cells by multiplying, adding and shifting.

    A member is a pair (a, b) of ``word_bits`` bits. It takes v to the top ``hash_bits`` bits of
    a v + b mod 2**word_bits, and these to a cell by scaling.

    Claim: for a uniform pair, the hashes of two different values are independent and uniform.

    Why: as b is uniform, x = a u + b is uniform and independent of a. The difference u - v is an
    odd number times 2**j, with j below the bits of a value, so the bits of a (u - v) from the j-th
    upwards are uniform and independent of x, hence those of a v + b too. The hash takes its bits
    from these, as word_bits is at least the bits of a value + hash_bits - 1 [Die96].

    Cells hold unequal numbers of hashes unless ``cells`` is a power of two; ``meeting`` knows.

    >>> HashFamily(cells=3, hash_bits=4, word_bits=9).meeting      # (6**2 + 5**2 + 5**2) / 16**2
    Fraction(43, 128)
    """

    cells: int
    hash_bits: int
    word_bits: int

    @property
    def members(self) -> int:
        """How many hash functions there are."""
        return 1 << 2 * self.word_bits

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where the cells' hashes start, and where the last one's end."""
        cells = np.arange(self.cells + 1, dtype=np.int64)
        return -(-(cells << self.hash_bits) // self.cells)

    @property
    def meeting(self) -> Fraction:
        """The chance that two different values lie in one cell of a random member."""
        sizes = np.diff(self.starts).tolist()
        return Fraction(sum(size * size for size in sizes), 1 << 2 * self.hash_bits)

    def cell(
        self, members: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the values' cells, each under its own member, which is a 2**word_bits + b.

        >>> family = HashFamily(cells=4, hash_bits=2, word_bits=4)
        >>> family.cell(np.full(8, (3 << 4) + 1), np.arange(8))      # 3 v + 1 mod 16, by 4
        array([0, 1, 1, 2, 3, 0, 0, 1])
        """
        mask = (1 << self.word_bits) - 1
        a, b = members >> self.word_bits, members & mask
        hashes = ((a * values + b) & mask) >> (self.word_bits - self.hash_bits)
        return (hashes * self.cells) >> self.hash_bits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHashing:
    """Report a random hash function, and the value's cell under it or any other cell.

    Also called OLH. It has the error of :class:`OptimizedUnary` in a few bytes, but reading n
    reports takes n times domain steps: :class:`PublicHashing` reads them much faster.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: the function is drawn without looking at the value, and given the function the cell is a
    law of preference with one own output of ``family.cells`` [WBLJ17]. The chance that
    another value is supported is exact, since any two values' cells are independent. The number of
    cells, near exp(epsilon) + 1, is the one of least average variance.

    A report is the number member cells + cell.

    >>> randomiser = LocalHashing(domain=100, epsilon=1)
    >>> randomiser.family
    HashFamily(cells=4, hash_bits=2, word_bits=8)
    >>> estimate = randomiser.estimate(randomiser.release([7] * 10_000))
    >>> bool(abs(estimate.counts[7] - 10_000) < 8 * estimate.standard_error[7])
    True
    """

    domain: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.domain)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def family(self) -> HashFamily:
        """The hash functions that devices draw from."""
        return _best(int(self.domain), positive(self.epsilon, name="epsilon"))

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        return _law(self.family, self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.family, self.law)

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

        >>> randomiser = LocalHashing(domain=100, epsilon=1)
        >>> reports = randomiser.release([7] * 1000)
        >>> reports.shape, bool(reports.max() < randomiser.outputs)
        ((1000,), True)
        """
        inputs, law, family = as_values(values, domain=self.domain), self.law, self.family
        reports = np.empty(inputs.size, dtype=np.int64)
        for start in range(0, inputs.size, CHUNK):
            part = inputs[start : start + CHUNK]
            members = uniform_integers(family.members, part.size, source=source)
            own = family.cell(members, part)
            cells = keep_or_change(law, own, below=family.cells, source=source)
            reports[start : start + CHUNK] = members * family.cells + cells
        return reports

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> randomiser = LocalHashing(domain=4, epsilon=1)
        >>> member = 128 << 9      # 128 v mod 512, in three cells
        >>> randomiser.family.cell(np.full(4, member), np.arange(4))
        array([0, 0, 1, 2])
        >>> randomiser.supports([3 * member, 3 * member, 3 * member + 2])
        array([2, 2, 0, 1])
        """
        codes = as_codes(reports, below=self.outputs)
        counts = np.zeros(self.domain, dtype=np.int64)
        for start in range(0, codes.size, _BLOCK):
            _count(self.family, codes[start : start + _BLOCK], counts)
        return counts

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> randomiser = LocalHashing(domain=4, epsilon=1)
        >>> estimate = randomiser.estimate(randomiser.release([3] * 10_000))
        >>> bool(abs(estimate.counts[3] - 10_000) < 8 * estimate.standard_error[3])
        True
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = LocalHashing(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [607, 528]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


def _count(family: HashFamily, codes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
    """Add one to the count of every value that lies in a report's cell, report by report.

    In 32-bit words with the hash on top, a value is in the cell if a v + b - start is below the
    cell's width; one addition leads from a value to the next.
    """
    members, cells = np.divmod(codes, family.cells)
    starts, top = family.starts, 32 - family.hash_bits
    widths = (np.diff(starts)[cells] << top).astype(np.uint32)
    lift = 32 - family.word_bits
    steps = (members >> family.word_bits << lift).astype(np.uint32)
    offsets = (members & ((1 << family.word_bits) - 1)) << lift
    places = ((offsets - (starts[cells] << top)) & 0xFFFFFFFF).astype(np.uint32)
    inside = np.empty(codes.size, dtype=np.bool_)
    for value in range(counts.size):
        np.less(places, widths, out=inside)
        counts[value] += np.count_nonzero(inside)
        np.add(places, steps, out=places)


@lru_cache(maxsize=64)
def _best(domain: int, epsilon: Fraction) -> HashFamily:
    """Return the family of least variance among those that fit a report."""
    bits = (domain - 1).bit_length()
    widest = (_CODE_BITS + 2 - 2 * bits) // 3  # bits of a cell
    middle = min(int(math.exp(float(min(epsilon, Fraction(30))))) + 1, (1 << widest) - 1)
    low = 1 << (middle.bit_length() - 1)  # a power of two, and the next one, have equal cells
    sizes = sorted({max(2, size) for size in (low, middle, middle + 1, 2 * low)})
    families = [_family(size, bits) for size in sizes]

    def variance(family: HashFamily) -> Fraction:
        return _support(family, _law(family, epsilon)).average_variance(domain=domain)

    return min(families, key=variance)


def _family(cells: int, bits: int) -> HashFamily:
    least = (cells - 1).bit_length()
    widest = (_CODE_BITS - least) // 2 - bits + 1
    hash_bits = least if cells == 1 << least else min(least + _SPARE_BITS, widest)
    return HashFamily(cells=cells, hash_bits=hash_bits, word_bits=bits + hash_bits - 1)


def _law(family: HashFamily, epsilon: Number) -> Preference:
    return Preference.calibrated(
        epsilon=epsilon, outputs=family.members * family.cells, preferred=family.members
    )


def _support(family: HashFamily, law: Preference) -> Support:
    shared = family.meeting * family.members
    return Support(hit=law.keep_chance, miss=law.hit(shared=int(shared)))
