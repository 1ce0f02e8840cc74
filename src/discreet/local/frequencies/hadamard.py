"""Hadamard response: one random entry of the value's row of signs, and a coin."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.laws.drawing import CHUNK
from discreet.local.laws.numbers import as_codes, as_domain, as_values, code_bytes
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers

__all__ = ["HadamardResponse", "hadamard_transform"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse:
    """Report a random index, and the value's sign there, which a coin may turn round.

    Best for many values and a small epsilon (up to about 1): a report is log2(domain) + 1 bits,
    and reading it takes no time that grows with the domain.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: the signs are the entries of a Hadamard matrix of ``size`` rows. A value owns the pairs
    (index, its sign there), half of all pairs, whence the law of preference; two different values
    share half of theirs, as two columns are orthogonal [ASZ19; App17].

    A report is the number 2 index + sign, with sign 1 for a minus.

    >>> randomiser = HadamardResponse(domain=1000, epsilon=1)
    >>> randomiser.size, randomiser.outputs
    (1024, 2048)
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
    def size(self) -> int:
        """How many rows the matrix has: the next power of two."""
        return 1 << (int(self.domain) - 1).bit_length()

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        size = self.size
        return Preference.calibrated(epsilon=self.epsilon, outputs=2 * size, preferred=size)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        law = self.law
        return Support(hit=law.hit(shared=self.size), miss=law.hit(shared=self.size // 2))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return 2 * self.size

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return code_bytes(self.outputs)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's value.

        >>> randomiser = HadamardResponse(domain=100, epsilon=1)
        >>> reports = randomiser.release([7] * 1000)
        >>> reports.shape, bool(reports.max() < randomiser.outputs)
        ((1000,), True)
        """
        inputs = as_values(values, domain=self.domain)
        reports = np.empty(inputs.size, dtype=np.int64)
        lie = 1 - self.law.keep_chance
        for start in range(0, inputs.size, CHUNK):
            part = inputs[start : start + CHUNK]
            index = uniform_integers(self.size, part.size, source=source)
            minus = np.bitwise_count(index & part) & 1
            reports[start : start + CHUNK] = 2 * index + (
                minus ^ bernoulli(lie, part.size, source=source)
            )
        return reports

    def supports(self, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the reports that support each value.

        >>> HadamardResponse(domain=4, epsilon=1).supports([0, 3])      # plus at 0, minus at 1
        array([1, 2, 1, 2])
        """
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs).reshape(-1, 2)
        agreeing = hadamard_transform(seen[:, 0] - seen[:, 1])[: self.domain]
        return np.asarray((codes.size + agreeing) >> 1)

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> HadamardResponse(domain=2, epsilon=1).estimate([0] * 300 + [2] * 400 + [3] * 300)
        CountEstimate(n=1000, counts=[866 ± 62, 433 ± 65])
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = HadamardResponse(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=n, confidence=0.95)) for n in (10_000, 1_000_000)]
        [593, 5883]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


def hadamard_transform(signed: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Multiply rows by the Hadamard matrix whose entry (i, j) is -1 to the number of bits in i & j.

    Each row of a table by itself.

    >>> hadamard_transform(np.array([3, 1, 0, 0]))
    array([4, 2, 4, 2])
    """
    out = np.array(signed, order="C")
    step = 1
    while step < out.shape[-1]:
        pairs = out.reshape(-1, 2, step)
        pairs[:, 0] += pairs[:, 1]  # a + b
        pairs[:, 1] *= -2
        pairs[:, 1] += pairs[:, 0]  # a + b - 2 b
        step *= 2
    return out
