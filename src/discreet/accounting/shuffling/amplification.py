"""Amplification by shuffling and by sampling without replacement: replace-one, from local epsilons.

Each of n people sends one report of the same epsilon0-DP local randomizer, a shuffler forgets who
sent what, and the multiset of reports is much more private than any report. Proofs, and what they
assume, are in ``docs/proofs/shuffling.md``.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, float_up, nonnegative, positive, probability, whole
from discreet.accounting.arithmetic.binomials import log_pmf
from discreet.accounting.arithmetic.search import smallest_float
from discreet.accounting.shuffling.clones import Tails, clone_sizes, tails, tilt
from discreet.accounting.shuffling.crowds import CrowdTails, crowd_atoms, crowd_tails, is_crowd
from discreet.errors import ParameterError

__all__ = [
    "ShufflePair",
    "shuffle_2021",
    "shuffle_2023",
    "shuffle_delta",
    "shuffle_pair",
    "without_replacement_pure",
]

Year = Literal[2021, 2023]
Floats = npt.NDArray[np.float64]

_SMALLEST = 1e-290  # a positive epsilon0 is raised to this at least
_LARGEST = 300  # beyond this epsilon0 a clone is rarer than 1e-130: none are counted on


def shuffle_2021(*, epsilon0: Number, n: int, delta: Number) -> float:
    """Return the epsilon of a shuffle of n reports by the analysis of 2021, rounded up.

    Claim: the n reports after shuffling are (epsilon, delta)-DP for replace-one, if all n people
    use the same epsilon0-DP randomizer, or the i-th in a random order uses one chosen from the
    first i - 1 reports; it may not depend on who the person is, except as part of the data over
    which it is epsilon0-DP.

    Why: every report is with probability exp(-epsilon0) a fair draw from the two reports that the
    changed person might send, a clone that hides it [FMT21, Section 3]. The delta is the exact
    one of that pair, computed numerically, not the closed form.

    >>> shuffle_2021(epsilon0=1, n=10_000, delta=1e-6)
    0.05300...
    """
    return _epsilon(epsilon0, n, delta, 2021)


def shuffle_2023(*, epsilon0: Number, n: int, delta: Number) -> float:
    """Return the epsilon of a shuffle of n reports by the stronger analysis of 2023, rounded up.

    Claim: the n reports after shuffling are (epsilon, delta)-DP for replace-one, if all n people
    use the same epsilon0-DP randomizer, or the i-th in a random order uses one chosen from the
    first i - 1 reports; it may not depend on who the person is, except as part of the data over
    which it is epsilon0-DP. The analysis of 2021 never gives a smaller epsilon.

    Why: as there, with clones of probability 2/(exp(epsilon0) + 1) [FMT23, Theorems 3.1 and 3.2].
    An erratum of that paper reports a gap in its proof and restricts the theorems to a class of
    randomizers; docs/proofs/shuffling.md proves the claim by another way for all.

    >>> shuffle_2023(epsilon0=1, n=10_000, delta=1e-6)
    0.04320...
    """
    return _epsilon(epsilon0, n, delta, 2023)


def shuffle_delta(*, epsilon0: Number, n: int, epsilon: Number, year: Year = 2023) -> float:
    """Return the delta of a shuffle at ``epsilon``, rounded up.

    The claims are those of :func:`shuffle_2021` and :func:`shuffle_2023`.

    >>> shuffle_delta(epsilon0=1, n=10_000, epsilon=0.0433)
    9.7...e-07
    """
    local, people, year = _checked(epsilon0, n, year)
    e = nonnegative(epsilon, name="epsilon")
    if e >= local or local > _LARGEST:
        return float(e < local)
    found = _tails(local, people, year, 80.0).delta_upper(_down(e))
    if found < 1e-20:  # the table might end too early for this: make it deep enough for any float
        found = _tails(local, people, year, 720.0).delta_upper(_down(e))
    return min(1.0, found)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShufflePair:
    """The privacy loss of a dominating pair: losses, their masses under P, and the mass left out.

    ``infinite`` is mass of P for which no loss is claimed. Exchanging P and Q gives the same law,
    so one object serves both directions.

    >>> pair = shuffle_pair(epsilon0=1, n=100, year=2023)
    >>> bool(np.all(np.abs(pair.losses) <= 1)), pair.infinite < 1e-40
    (True, True)
    """

    losses: Floats
    masses: Floats
    infinite: float


def shuffle_pair(
    *, epsilon0: Number, n: int, year: Year = 2023, depth: Number = 100, bins: int = 64
) -> ShufflePair:
    """Return a dominating pair of one shuffle, to be composed with other losses or itself.

    Claim: the pair dominates a shuffle as described in :func:`shuffle_2021`: at every real epsilon,
    in either direction, its delta is at least that of the shuffle. So rounds of shuffling, with
    randomizers chosen adaptively from round to round and a fresh random order in each, are
    dominated by its compositions.

    Why: docs/proofs/shuffling.md, and [ZDW22, Theorem 10] for the composition.

    Mass below exp(-depth) is moved to ``infinite``; numbers of clones are lowered to one of
    ``bins`` values, which costs epsilon a relative (window / bins) / (4 * clones) or so. Masses are
    rounded up.

    >>> pair = shuffle_pair(epsilon0=1, n=1000, year=2021)
    >>> round(float(pair.masses.sum()), 9), len(pair.losses)
    (1.0, ...)
    """
    local, people, year = _checked(epsilon0, n, year)
    deep = float(positive(depth, name="depth"))
    parts = whole(bins, name="bins")
    e0 = _raised(local)
    t = tilt(e0) * (1 + 4e-16)
    people = people if local <= _LARGEST else 1
    if is_crowd(e0, people, year):
        atoms, chances, left = crowd_atoms(e0, people, year, depth=deep, levels=min(parts, 8))
        return ShufflePair(losses=atoms, masses=chances, infinite=left)
    sizes, weights, lost = clone_sizes(e0, people, year, depth=deep, bins=parts)
    losses, masses = [], []
    for m, weight in zip(sizes.tolist(), weights.tolist(), strict=True):
        half = math.ceil(math.sqrt(deep * m / 2)) + 1  # Hoeffding, as on the way to the tails
        a = np.arange(max(0, m // 2 - half), min(m, m // 2 + half) + 1)
        lean = np.clip(t * (2 * a - m) / m, -1.0, 1.0)
        logs, error = log_pmf(a, m, 0.5, 0.5)
        with np.errstate(divide="ignore"):  # the tilt may round to 1
            loss = np.log1p(lean) - np.log1p(-lean) + 1e-15
        losses.append(np.clip(loss, -e0, e0))
        masses.append(weight * np.exp(logs + error) * (1 + lean) * (1 + 1e-15))
    # Under P a tail has at most twice its mass under fair coins, and there are two tails.
    infinite = lost + 4 * math.exp(-deep)
    return ShufflePair(
        losses=np.concatenate(losses), masses=np.concatenate(masses), infinite=infinite
    )


def without_replacement_pure(*, epsilon: Number, rate: Number) -> float:
    """Return log(1 + rate (exp(epsilon) - 1)), rounded up: sampling a fixed number of units.

    Claim: an epsilon-DP mechanism (replace-one) on a uniformly random subset of m of n units, with
    ``rate`` = m/n and n public, has this epsilon for replace-one.

    Why: let P0, P1 and P1' be the laws given that the changed unit is not drawn, or drawn before
    and after the change. Exchanging it for another unit shows P1 <= exp(epsilon) min(P0, P1'), so
    P1 - P1' <= (exp(epsilon) - 1) min(P0, P1'), and the mixtures P = (1 - rate) P0 + rate P1 and Q
    satisfy P - Q = rate (P1 - P1') <= rate (exp(epsilon) - 1) Q. See also [BBG20].

    >>> round(without_replacement_pure(epsilon=0.5, rate=0.01), 6)
    0.006466
    """
    e = nonnegative(epsilon, name="epsilon")
    share = probability(rate, name="rate", zero=True, one=True)
    if e == 0 or share == 0:
        return 0.0
    x, q = float_up(e), float_up(share)
    value = x + math.log(q + (1 - q) * math.exp(-x)) if x > 500 else math.log1p(q * math.expm1(x))
    return min(x, value * (1 + 1e-14))


def _epsilon(epsilon0: Number, n: int, delta: Number, year: Year) -> float:
    local, people, year = _checked(epsilon0, n, year)
    target = probability(delta, name="delta", zero=True)
    ceiling = float_up(local)
    if target == 0 or local == 0 or local > _LARGEST:
        return ceiling
    depth = min(720.0, 45.0 - math.log(max(float(target), 1e-300)))
    table = _tails(local, people, year, depth)
    found = smallest_float(lambda e: table.delta_upper(e) <= target, zero=True)
    return ceiling if found is None else min(ceiling, found)


def _tails(local: Fraction, people: int, year: Year, depth: float) -> Tails | CrowdTails:
    e0 = _raised(local)
    return (crowd_tails if is_crowd(e0, people, year) else tails)(e0, people, year, depth)


def _raised(local: Fraction) -> float:
    """Return a float that is at least ``local``, and not so small that its tilt underflows."""
    return max(_SMALLEST, float_up(local)) if local else 0.0


def _checked(epsilon0: Number, n: int, year: Year) -> tuple[Fraction, int, Year]:
    local = nonnegative(epsilon0, name="epsilon0")
    people = whole(n, name="n", hint="n is the number of people whose reports are shuffled.")
    if people > 2**40:
        raise ParameterError("n must be at most 2^40.", parameter="n")
    if year not in (2021, 2023):
        raise ParameterError(f"year must be 2021 or 2023, got {year!r}.", parameter="year")
    return local, people, year


def _down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    return -float_up(-value)
