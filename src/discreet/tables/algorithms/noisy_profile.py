"""Profiles of units, released with noise: which bins hold people, and how sure that is.

Units are counted by the size of something about each of them, one bin per unit (``Profile`` of
``model.statements``), and every bin gets noise. All else is post-processing: where people were
found at all, between which edges they lie, how many may lie beyond, and how far.

(docs/proofs/private_limits.md)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet._rounding import log_one_over
from discreet.errors import DataError
from discreet.noise import SYSTEM, Source
from discreet.tables.algorithms.noise import Noise, in_rows
from discreet.tables.model.bounds import WEIGHT_STEPS

__all__ = ["LONGEST", "NoisyProfile", "enough_units", "release_profile"]

LONGEST: Final = 6  # neighbouring bins that are looked at together: two powers of ten of values
MISS: Final = Fraction(1, 200)  # chance that people are found where there are none
_LOST: Final = Fraction(1, 20)  # chance that enough people are not found
_MOST: Final = 1 << 40  # units that are counted in one bin

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyProfile:
    """How many units have a size between neighbouring ``edges``, noise included: one more bin.

    >>> noise = Noise(kind="laplace", multiplier=1)
    >>> profile = NoisyProfile(edges=(Fraction(1), Fraction(2)), bins=np.array([0.5, 800.2, -1.0]),
    ...                        noise=noise, sensitivity=Fraction(1))
    >>> profile.hull
    (1, 1)
    """

    edges: tuple[Fraction, ...]
    bins: Array
    noise: Noise
    sensitivity: Fraction

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of one bin, in units."""
        return self.noise.deviation(sensitivity=self.sensitivity)

    @property
    def hull(self) -> tuple[int, int] | None:
        """The first and the last bin in which people were found; None: nowhere.

        People are found in a run of at most LONGEST bins whose sum is larger than noise alone gives
        to any run, but for a chance of 0.5%, and that meets no shorter such run.
        """
        sums = np.concatenate([[0.0], np.cumsum(self.bins)])
        first, last = len(self.bins), -1
        taken = np.zeros(len(self.bins), dtype=bool)
        for length in range(1, min(LONGEST, len(self.bins)) + 1):
            least = _run_threshold(self.noise, self.sensitivity, length, bins=len(self.bins))
            found = taken.copy()
            for at in np.flatnonzero(sums[length:] - sums[:-length] >= least):
                if not taken[at : at + length].any():
                    first, last = min(first, int(at)), max(last, int(at) + length - 1)
                    found[at : at + length] = True
            taken = found
        return (first, last) if last >= 0 else None


def release_profile(
    bins: npt.NDArray[np.int64],
    *,
    edges: Sequence[Fraction],
    noise: Noise,
    sensitivity: Fraction,
    source: Source = SYSTEM,
) -> NoisyProfile:
    """Add ``noise`` to all bins; ``bins[i]`` units have exactly i of the edges below them.

    Claim: if every unit is in one bin at most, and ``sensitivity`` is that of a vector to which
    each unit adds 1 in one place (1 under add/remove; with Laplace noise 2, with Gaussian noise
    sqrt(2) where a unit is replaced; k times that for k units), the loss is that of the noise.

    Why: so the bins move by at most the sensitivity in the norm of the noise (:class:`Noise`).
    Cutting counts off at a constant moves no two of them apart. (private_limits.md, Theorem 1)

    >>> noise = Noise(kind="laplace", multiplier=1)
    >>> release_profile(np.array([0, 900, 0]), edges=[Fraction(1), Fraction(2)], noise=noise,
    ...                 sensitivity=Fraction(1)).hull
    (1, 1)
    """
    counts = np.asarray(bins)
    if counts.dtype != np.int64 or counts.shape != (len(edges) + 1,) or counts.min() < 0:
        raise DataError("bins must be an int64 array of one more number than there are edges.")
    steps = np.minimum(counts, _MOST) * WEIGHT_STEPS
    noisy = in_rows(noise.add(steps, sensitivity=sensitivity, source=source))
    return NoisyProfile(edges=tuple(edges), bins=noisy, noise=noise, sensitivity=sensitivity)


def enough_units(noise: Noise, sensitivity: Number, *, bins: int) -> float:
    """Return how many units are enough: found with 95%, if they are in LONGEST neighbouring bins.

    >>> round(enough_units(Noise(kind="laplace", multiplier=10), 1, bins=152))
    252
    """
    length = min(LONGEST, bins)
    reach = Fraction(sensitivity)
    slack = _run_reach(noise, reach, length, _LOST)
    return _run_threshold(noise, reach, length, bins=bins) + slack


def _run_threshold(noise: Noise, sensitivity: Fraction, length: int, *, bins: int) -> float:
    """Return what the noise of a run of bins exceeds nowhere, but for its part of MISS.

    At least half a unit, since there are no smaller parts of people: with hardly any noise, what
    is left of it in a far bin would be found, and bounds so wide that answers drown in them.
    """
    part = Fraction(1, 2) if length == 1 else Fraction(1, 2 * (LONGEST - 1))
    return max(0.5, _run_reach(noise, sensitivity, length, MISS * part / bins))


def _run_reach(noise: Noise, sensitivity: Fraction, length: int, miss: Fraction) -> float:
    """Return an x with Pr[sum of the noise of so many bins > x] <= miss.

    Sums of Gaussian noise are Gaussian. The sum of L Laplace variables of scale 1 is the difference
    of two sums of L exponential ones. Let these happen in one after the other as in a race: each
    event is of either kind with chance 1/2. The second kind is used up while j of the first are
    left with the chance of L - j heads before L tails that end in tails, and then the difference
    is a sum of j exponential variables, so that

    Pr[sum > t] = sum over j of C(2 L - j - 1, L - 1) 2**(j - 2 L) Pr[Poisson(t) < j].
    """
    rounding = length / 2 / WEIGHT_STEPS
    if noise.kind == "gaussian" or length == 1:
        return math.sqrt(length) * noise.reach(miss, sensitivity=sensitivity) + rounding
    return _laplace_reach(length, miss) * noise.scale(sensitivity=sensitivity) + rounding


@lru_cache(maxsize=256)  # of few numbers, for every question anew
def _laplace_reach(length: int, miss: Fraction) -> float:
    wanted = float(log_one_over(miss))
    low, high = 0.0, 2 * wanted + 4 * length
    while high - low > 1e-9 * high:
        t = (low + high) / 2
        low, high = (low, t) if t - math.log(_laplace_factor(t, length)) >= wanted else (t, high)
    return high * (1 + 1e-8)


def _laplace_factor(t: float, length: int) -> float:
    """Return exp(t) times the chance that a sum of so many Laplace variables exceeds t."""
    total, powers, term = 0.0, 0.0, 1.0
    for j in range(1, length + 1):
        powers += term  # of t**i / i! for i < j
        term *= t / j
        total += math.comb(2 * length - j - 1, length - 1) * 2.0 ** (j - 2 * length) * powers
    return total
