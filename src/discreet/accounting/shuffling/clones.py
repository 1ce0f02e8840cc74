"""The worst pair of a shuffle: one response hidden among a random number of fair coins.

M - 1 people, a binomial number, send a fair sign; one person sends the sign + with probability
(1 + t)/2 under P and (1 - t)/2 under Q, with t = tanh(epsilon0 / 2). The sum S of the signs
is what can be seen, together with M. Given M = m, P(S) = B(S) (1 + t S/m) and Q(S) = B(S)
(1 - t S/m) with B the law of m fair signs, so

    loss = 2 artanh(t S/m),    delta(e) = t (1 + exp(e)) E[(S/M - tanh(e/2)/t)+],

the mean taken under B. Fewer coins hide less, so lowering M is safe. Derived in
docs/proofs/shuffling.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._rounding import above
from discreet.accounting.arithmetic.binomials import log_pmf, window

__all__ = ["Tails", "clone_chance", "clone_sizes", "tails", "tilt"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def tilt(epsilon0: float) -> float:
    """Return t = tanh(epsilon0 / 2), to a relative 4e-16."""
    return math.tanh(epsilon0 / 2)


def clone_chance(epsilon0: float, year: int) -> tuple[float, float]:
    """Return the chance that a person is a clone, and that not."""
    fade = math.exp(-epsilon0)
    if year == 2021:
        return fade, -math.expm1(-epsilon0)
    return 2 * fade / (1 + fade), tilt(epsilon0)


def clone_sizes(
    epsilon0: float, n: int, year: int, *, depth: float, bins: int
) -> tuple[Whole, Floats, float]:
    """Return values of M, upper bounds on their masses, and the mass left out.

    M - 1 is binomial: n - 1 people, each a clone with probability exp(-epsilon0) in the analysis of
    2021 and 2/(exp(epsilon0) + 1) in that of 2023. Where there are many values, runs of them are
    lowered to the first of the run.
    """
    p, q = clone_chance(epsilon0, year)
    if n == 1:
        return np.array([1]), np.ones(1), 0.0
    if q == 0:
        return np.array([n]), np.ones(1), 0.0
    first, last = window(n - 1, p, q, depth=depth)
    clones = np.arange(first, last + 1)
    logs, error = log_pmf(clones, n - 1, p, q)
    masses = np.exp(logs + error)
    starts = np.arange(0, len(clones), max(1, -(-len(clones) // bins)))
    lost = 2 * math.exp(-depth) if last - first < n - 1 else 0.0
    # Summing a run of positive numbers is off by at most its length in units of 1.1e-16.
    return clones[starts] + 1, np.add.reduceat(masses, starts) * (1 + 1e-10), lost


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tails:
    """Sums of binomial tails, from which every delta is read off.

    Row i belongs to M = sizes[i]; column j to A = middle[i] + j plus signs. ``once`` holds
    Pr[A >= a] and ``twice`` the sum of Pr[A >= b] over b > a, both upper bounds up to exp(-depth).
    """

    t: float
    sizes: Whole
    masses: Floats
    middle: Whole
    once: Floats
    twice: Floats
    lost: float
    depth: float

    def delta_upper(self, epsilon: float) -> float:
        """Return delta at ``epsilon``, rounded up."""
        if epsilon > 700:  # no loss is that large: see the limit on epsilon0
            return above(self.lost, relative=0)
        # A lower threshold raises delta. The margin of the quotient is several times its rounding,
        # and so is that of the threshold, which for a small quotient is the larger of the two.
        share = math.tanh(epsilon / 2) / self.t * (1 - 4e-15)
        threshold = self.sizes / 2 * (1 + share) * (1 - 1e-15)
        start = np.ceil(threshold)
        column = np.clip(start - self.middle, 0, self.once.shape[1] - 1).astype(np.int64)
        row = np.arange(len(self.sizes))
        inside = start - self.middle < self.once.shape[1]
        # E[(A - threshold)+], where A > threshold means A >= start
        mean = (start - threshold) * self.once[row, column] + self.twice[row, column]
        mean = np.where(inside & (start <= self.sizes), mean, 0.0)
        factor = self.t * (1 + math.exp(epsilon))
        value = factor * float(np.sum(self.masses * mean * (2 / self.sizes)))
        # Beyond a row's end, (A - threshold)+ <= m/2 on an event of probability exp(-depth).
        left_out = self.lost + factor * math.exp(-self.depth)
        return above(value + left_out, relative=1e-12)


@lru_cache(maxsize=4)
def tails(epsilon0: float, n: int, year: int, depth: float) -> Tails:
    """Tabulate the tails for one shuffle, in a second and a few dozen megabytes at most."""
    bins = min(4096, max(64, math.ceil(1_500_000 / math.sqrt(depth * n / 2))))
    sizes, masses, lost = clone_sizes(epsilon0, n, year, depth=depth, bins=bins)
    middle = (sizes + 1) // 2
    # Hoeffding: Pr[A >= m/2 + x] <= exp(-2 x^2 / m).
    columns = min(math.ceil(math.sqrt(depth * int(sizes[-1]) / 2)), int(sizes[-1]) // 2) + 2
    once = np.zeros((len(sizes), columns))
    twice = np.zeros((len(sizes), columns))
    for i, m in enumerate(sizes.tolist()):
        a = np.arange(middle[i], min(m, int(middle[i]) + columns - 1) + 1)
        logs, error = log_pmf(a, m, 0.5, 0.5)
        # Rounding grows by a unit per addition, that is by less than 1e-15 times the length.
        pmf = np.exp(logs + error) * (1 + 2e-15 * len(a))
        tail = np.cumsum(pmf[::-1])[::-1]
        once[i, : len(a)] = tail
        twice[i, : len(a) - 1] = np.cumsum(tail[:0:-1])[::-1]
    return Tails(
        t=tilt(epsilon0),
        sizes=sizes,
        masses=masses,
        middle=middle,
        once=once,
        twice=twice,
        lost=lost,
        depth=depth,
    )
