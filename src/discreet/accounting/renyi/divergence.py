"""Renyi divergences of the usual mechanisms, and what sampling makes of them.

Each function returns an upper bound, rounded up, on the divergence of a real order above 1 in the
worse of the two directions. Divergences of one order add up under composition;
:mod:`discreet.accounting.renyi.orders` turns them into (epsilon, delta).
"""

import math
from fractions import Fraction

import numpy as np

from discreet._exact import Number, float_up, nonnegative, positive, probability, whole
from discreet.accounting.renyi.moments import (
    Floats,
    atoms,
    divergence,
    laplace_excess,
    lattice_laplace,
    sampled_gaussian_fractional,
    sampled_gaussian_integer,
)
from discreet.accounting.renyi.orders import checked_order, log_chance
from discreet.accounting.renyi.sampling import chord

__all__ = [
    "discrete_laplace",
    "gaussian",
    "laplace",
    "moments_epsilon",
    "pure",
    "randomized_response",
    "sampled_gaussian",
    "sampled_pure",
]

_MOST_ATOMS = 100_000


def gaussian(*, noise_multiplier: Number, order: Number) -> float:
    """Return order / (2 noise_multiplier^2), the divergence of the Gaussian mechanism.

    Why: [Mir17, Proposition 7]. Exact but for rounding up.

    >>> gaussian(noise_multiplier=2, order=4)
    0.5
    """
    s = positive(noise_multiplier, name="noise_multiplier")
    return float_up(checked_order(order) / (2 * s * s))


def laplace(*, noise_multiplier: Number, order: Number) -> float:
    """Return the divergence of the Laplace mechanism with scale over sensitivity as given.

    Claim: log(a/(2a-1) exp((a-1)t) + (a-1)/(2a-1) exp(-a t)) / (a-1), with a the order and t
    = 1/noise_multiplier, but for rounding up.

    Why: [Mir17, Proposition 6].

    >>> round(laplace(noise_multiplier=1, order=2), 6)
    0.619124
    """
    t = float_up(1 / positive(noise_multiplier, name="noise_multiplier"))
    a = checked_order(order)
    return divergence(laplace_excess(t, a), a)


def discrete_laplace(*, noise_multiplier: Number, order: Number, sensitivity: int = 1) -> float:
    """Return the divergence of the discrete Laplace mechanism for an integer shift.

    Claim: exactly that of noise with Pr[k] proportional to exp(-|k| / scale), scale =
    noise_multiplier * sensitivity, moved by ``sensitivity``, but for rounding up. A smaller shift
    has a smaller divergence.

    Why: the loss takes sensitivity + 1 values, over which the definition is summed. At sensitivity
    1 it is randomized response; for large ones it approaches :func:`laplace` from above.

    >>> discrete_laplace(noise_multiplier=1, order=2) == pure(epsilon=1, order=2)
    True
    """
    multiplier = positive(noise_multiplier, name="noise_multiplier")
    shift = whole(sensitivity, name="sensitivity")
    a = checked_order(order)
    t = float_up(1 / (multiplier * shift))
    if shift > _MOST_ATOMS:
        return divergence(lattice_laplace(t, shift, a), a)
    if shift == 1:
        return pure(epsilon=t, order=a)
    losses: Floats = np.arange(-shift, shift + 1, 2).astype(np.float64) * t
    log_masses: Floats = -np.arange(shift + 1).astype(np.float64) * t - math.log1p(math.exp(-t))
    log_masses[1:-1] += math.log(-math.expm1(-t))  # the ends stand for whole half-lines
    return divergence(atoms(losses, log_masses, a), a)


def pure(*, epsilon: Number, order: Number) -> float:
    """Return the largest divergence that an epsilon-DP mechanism can have.

    Why: every epsilon-DP pair is a post-processing of randomized response [KOV17, Theorem 2.1],
    which has this divergence and cannot gain by post-processing. It is below both epsilon and
    order * epsilon^2 / 2 [BS16, Proposition 3.3].

    >>> round(pure(epsilon=1, order=2), 6), round(pure(epsilon=1, order=1000), 6)
    (0.735326, 0.999686)
    """
    return randomized_response(epsilon=epsilon, categories=2, order=order)


def randomized_response(*, epsilon: Number, categories: int, order: Number) -> float:
    """Return the divergence of k-ary randomized response; replace-one by nature.

    Why: two answers swap their probabilities and the others keep theirs, so the definition is a
    sum of two terms.

    >>> round(randomized_response(epsilon=1, categories=10, order=2), 6)
    0.29613
    """
    e = float_up(nonnegative(epsilon, name="epsilon"))
    others = whole(categories, name="categories", minimum=2) - 1
    a = checked_order(order)
    if e == 0:
        return 0.0
    favoured = -math.log1p(math.exp(min(700.0, math.log(others) - e)))
    return divergence(atoms(np.array([e, -e]), np.array([favoured - e, favoured]), a), a)


def sampled_gaussian(*, noise_multiplier: Number, rate: Number, order: Number) -> float:
    """Return the divergence of the Gaussian mechanism on a Poisson sample.

    Claim: if each unit is kept with probability ``rate``, independently, the Gaussian mechanism on
    what is kept has this divergence for add/remove, exactly but for rounding up (at orders that
    are not whole: for orders above some hundreds or noise multipliers below some hundredths, the
    chord between the two whole orders next to it, which is above it).

    Why: the worst pair is the mixture against N(0, s^2), in that direction [MTZ19, Theorems 4
    and 5]. Whole orders by the binomial formula, others by quadrature with a proved error. Between
    whole orders, (order - 1) * divergence is convex, so below its chord.

    >>> round(sampled_gaussian(noise_multiplier=4, rate=0.01, order=32), 8)
    0.00010526
    """
    s = positive(noise_multiplier, name="noise_multiplier")
    fraction = probability(rate, name="rate", zero=True, one=True)
    a = checked_order(order)
    if fraction == 0:
        return 0.0
    if fraction == 1:
        return gaussian(noise_multiplier=s, order=a)
    return divergence(_sampled_gaussian_excess(s, fraction, a), a)


def _sampled_gaussian_excess(s: Fraction, fraction: Fraction, a: Fraction) -> float:
    """Return the log of the moment less 1."""
    # A larger rate and less noise cost more, so round either that way.
    share = min(float_up(fraction), math.nextafter(1.0, 0.0))
    spared = max(float(1 - fraction), 5e-324)
    noise = -float_up(-s)
    if a.denominator == 1:
        return sampled_gaussian_integer(noise, share, spared, int(a))
    found = sampled_gaussian_fractional(noise, share, a)
    if found is None:
        low, high = math.floor(a), math.ceil(a)
        below = sampled_gaussian_integer(noise, share, spared, low) if low > 1 else -math.inf
        return chord(below, sampled_gaussian_integer(noise, share, spared, high), a)
    return found


def sampled_pure(*, epsilon: Number, rate: Number, order: Number) -> float:
    """Return the largest divergence of an epsilon-DP mechanism on a Poisson sample.

    Claim: for add/remove, in the worse direction; no bound that knows only epsilon is smaller.

    Why: randomized response dominates every epsilon-DP pair [KOV17, Theorem 2.1], sampling keeps
    domination in either direction [ZDW22, Theorem 11], and divergences are integrals of the
    profiles that domination compares.

    >>> round(sampled_pure(epsilon=1, rate=0.01, order=2), 9)
    0.00010861
    """
    e = float_up(nonnegative(epsilon, name="epsilon"))
    share = float_up(probability(rate, name="rate", zero=True, one=True))
    a = checked_order(order)
    if e == 0 or share == 0:
        return 0.0
    favoured = -math.log1p(math.exp(-e))
    masses = np.array([favoured - e, favoured])
    up = e + math.log(share) if e > 500 else math.log1p(share * math.expm1(e))
    # Against rounding in the second logarithm where the rate is 1 and all of it cancels.
    down = -e if share == 1 else math.log1p(share * math.expm1(-e))
    losses = np.array([up, down])
    removing = atoms(losses, masses, a)
    adding = atoms(-losses, masses + losses, a)
    return divergence(max(removing, adding), a)


def moments_epsilon(
    *, noise_multiplier: Number, rate: Number, steps: int, delta: Number, highest: int = 32
) -> float:
    """Return epsilon by the classic moments accountant, kept for comparison.

    Claim: ``steps`` Gaussian mechanisms on Poisson samples are together (epsilon, delta)-DP for
    add/remove, with epsilon the least over whole moments m up to ``highest`` of
    (steps * log-moment + log(1/delta)) / m.

    Why: [ACGMMTZ16, Theorem 2]: the moment m is (m times) the divergence of order m + 1, and
    Markov's inequality does the rest. ``best_epsilon`` is never worse.

    >>> setting = {"noise_multiplier": 4, "rate": 0.01, "delta": 1e-5}
    >>> moments_epsilon(steps=10_000, **setting), moments_epsilon(steps=40_000, **setting)
    (1.258..., 2.57...)
    """
    chance = probability(delta, name="delta")
    steps = whole(steps, name="steps")
    logarithm = -log_chance(chance)
    return min(
        steps * sampled_gaussian(noise_multiplier=noise_multiplier, rate=rate, order=m + 1)
        + logarithm / m
        for m in range(1, whole(highest, name="highest") + 1)
    ) * (1 + 1e-14)
