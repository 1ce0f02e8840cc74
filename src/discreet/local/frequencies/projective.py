"""Projective response: lines through a finite space instead of all sets of values."""

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

__all__ = ["LinearForms", "ProjectiveResponse"]

_MOST_CELLS: Final = 1 << 12
_WASTE: Final = 64  # times the domain; the most that the space may be, as the reader fills it
_NEAREST: Final = 8  # primes that are compared

Codes = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearForms:
    """The linear forms on vectors of ``places`` numbers modulo a prime, up to a factor.

    A vector is the number with these digits in base ``prime``, the first digit lowest. Of all
    multiples of a form the one whose highest nonzero digit is 1 is taken; they are numbered in
    order.

    >>> forms = LinearForms(prime=3, places=2)
    >>> forms.count, forms.vectors(np.arange(4)).tolist()     # 01, 10, 11, 12 in base 3
    (4, [1, 3, 4, 5])
    >>> forms.at(np.arange(4), np.full(4, 5)).tolist()        # their values at 12
    [2, 1, 0, 2]
    """

    prime: int
    places: int

    @property
    def points(self) -> int:
        """How many vectors there are."""
        return int(self.prime**self.places)

    @property
    def count(self) -> int:
        """How many there are."""
        return (self.points - 1) // (self.prime - 1)

    @property
    def starts(self) -> list[int]:
        """The number of the first form whose highest digit is at each place."""
        return [(self.prime**place - 1) // (self.prime - 1) for place in range(self.places)]

    def vectors(self, forms: Codes) -> Codes:
        """Return the digits of numbered forms, each as one number.

        >>> LinearForms(prime=5, places=2).vectors(np.arange(6))      # 01, 10, 11, ... in base 5
        array([1, 5, 6, 7, 8, 9])
        """
        starts = np.array(self.starts)
        place = np.searchsorted(starts, forms, side="right") - 1
        return np.asarray(forms - starts[place] + self.prime**place)

    def at(self, forms: Codes, points: Codes) -> Codes:
        """Return the values of forms at points.

        >>> LinearForms(prime=3, places=2).at(np.full(9, 2), np.arange(9))      # 11: sums of digits
        array([0, 1, 2, 1, 2, 0, 2, 0, 1])
        """
        prime, left, right = self.prime, self.vectors(forms), points
        total = np.zeros_like(left)
        for _ in range(self.places):
            rest, other = left // prime, right // prime
            total += (left - prime * rest) * (right - prime * other)
            left, right = rest, other
        return np.asarray(total - prime * (total // prime))

    def sums(self, seen: Codes) -> Codes:
        """Return for each point the sum over all forms of ``seen[form, value of the form there]``.

        Why: with w = exp(2 pi i / prime), the sum over c of w**(c (form(x) - d)) is ``prime`` if
        the form is d at x and 0 otherwise. c = 0 gives the sum of all of ``seen``. The multiples of
        forms by the other c are all vectors but 0, each once, so the rest is one Fourier transform.
        It is a whole number, far from the next beside what doubles lose.

        >>> forms, seen = LinearForms(prime=3, places=2), np.zeros((4, 3), dtype=np.int64)
        >>> seen[2, 1] = 5      # the form 11 was 1 five times
        >>> forms.sums(seen)
        array([0, 5, 0, 5, 0, 0, 0, 0, 5])
        """
        prime, places = self.prime, self.places
        spectrum = np.fft.fft(seen, axis=1)
        waves = np.zeros(self.points, dtype=np.complex128)
        for factor in range(1, prime):
            multiple = np.zeros(1, dtype=np.int64)  # by the factor, of all vectors
            digits = np.arange(prime) * factor % prime
            for start in self.starts:
                part = spectrum[start : start + multiple.size, factor]
                waves[factor * multiple.size + multiple] = part
                multiple = np.add.outer(digits * multiple.size, multiple).ravel()
        waves = np.fft.ifftn(waves.reshape((prime,) * places), norm="forward")
        return np.asarray(np.rint((seen.sum() + waves.real.ravel()) / prime).astype(np.int64))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveResponse:
    """Report a random linear form, and its value at the device's point or another number.

    Has the error of :class:`SubsetSelection` with reports of about log2(domain) bits, and a reader
    that is fast for millions of values. The errors of different values are not independent: the
    error of a sum over many of them may be larger than their variances added up say.

    Claim: a report is epsilon-DP when the device's value is replaced by any other of the domain.

    Why: a law of preference. Form and number are a point of projective space [FNNT22];
    a value owns the points of a hyperplane, one for each form. Two values share those whose form is
    0 at their difference, the same number for any two; that leaves out only the one point that no
    value of the domain owns. The prime, near exp(epsilon) + 1, is the one of least average
    variance.

    A report is the number prime form + number.

    >>> randomiser = ProjectiveResponse(domain=1000, epsilon=1)
    >>> randomiser.forms, randomiser.outputs, randomiser.bytes_per_report
    (LinearForms(prime=3, places=7), 3279, 2)
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
    def forms(self) -> LinearForms:
        """The forms that devices draw from."""
        return _best(int(self.domain), positive(self.epsilon, name="epsilon"))

    @property
    def law(self) -> Preference:
        """The law of one report, in whole numbers."""
        return _law(self.forms, self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def support(self) -> Support:
        """How often a report supports its own value, and another."""
        return _support(self.forms, self.law)

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

        >>> randomiser = ProjectiveResponse(domain=100, epsilon=1)
        >>> reports = randomiser.release([7] * 1000)
        >>> reports.shape, bool(reports.max() < randomiser.outputs)
        ((1000,), True)
        """
        inputs, law, forms = as_values(values, domain=self.domain), self.law, self.forms
        reports = np.empty(inputs.size, dtype=np.int64)
        for start in range(0, inputs.size, CHUNK):
            part = inputs[start : start + CHUNK]
            drawn = uniform_integers(forms.count, part.size, source=source)
            own = forms.at(drawn, part)
            reports[start : start + CHUNK] = drawn * forms.prime + keep_or_change(
                law, own, below=forms.prime, source=source
            )
        return reports

    def supports(self, reports: npt.ArrayLike) -> Codes:
        """Count the reports that support each value.

        >>> randomiser = ProjectiveResponse(domain=9, epsilon=1)
        >>> randomiser.forms
        LinearForms(prime=3, places=2)
        >>> randomiser.supports([2, 2])      # the lowest digit in base 3 is 2
        array([0, 0, 2, 0, 0, 2, 0, 0, 2])
        """
        codes = as_codes(reports, below=self.outputs)
        seen = np.bincount(codes, minlength=self.outputs).reshape(-1, self.forms.prime)
        return self.forms.sums(seen)[: self.domain]

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> ProjectiveResponse(domain=3, epsilon=1).estimate([0] * 500 + [1] * 300 + [2] * 200)
        CountEstimate(n=1000, counts=[791 ± 41, 242 ± 37, -33 ± 35])
        """
        codes = np.asarray(reports)
        return CountEstimate(supports=self.supports(codes), n=codes.size, support=self.support)

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence, as ``support.error`` does.

        >>> randomiser = ProjectiveResponse(domain=100, epsilon=1)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (1, 0.01)]
        [556, 530]
        """
        return self.support.error(n=n, confidence=confidence, share=share)


@lru_cache(maxsize=64)
def _best(domain: int, epsilon: Fraction) -> LinearForms:
    """Return the forms of least variance whose space is not too large to fill."""
    middle = math.exp(float(min(epsilon, Fraction(30)))) + 1
    fitting = (forms for forms in _spaces(domain, middle) if forms.points <= _WASTE * domain)
    nearest = [forms for forms, _ in zip(fitting, range(_NEAREST), strict=False)]

    def variance(forms: LinearForms) -> Fraction:
        return _support(forms, _law(forms, epsilon)).average_variance(domain=domain)

    return min(nearest, key=variance)


def _spaces(domain: int, middle: float) -> list[LinearForms]:
    """Return the smallest space over each prime, those of primes near the middle first."""
    sieve = np.ones(_MOST_CELLS, dtype=np.bool_)
    for step in range(2, math.isqrt(_MOST_CELLS) + 1):
        sieve[step * step :: step] = False
    primes = sorted(np.flatnonzero(sieve)[2:].tolist(), key=lambda p: abs(math.log(p / middle)))
    return [LinearForms(prime=prime, places=_places(domain, prime)) for prime in primes]


def _places(domain: int, prime: int) -> int:
    places = 1
    while prime**places < domain:
        places += 1
    return places


def _law(forms: LinearForms, epsilon: Number) -> Preference:
    return Preference.calibrated(
        epsilon=epsilon, outputs=forms.count * forms.prime, preferred=forms.count
    )


def _support(forms: LinearForms, law: Preference) -> Support:
    shared = (forms.prime ** (forms.places - 1) - 1) // (forms.prime - 1)
    return Support(hit=law.keep_chance, miss=law.hit(shared=shared))
