"""Logarithms of moments E[(P/Q)^order] under Q, kept exact where they hardly exceed 1.

With r = P/Q, E[r] = 1, so E[r^a] - 1 = E[r^a - 1 - a (r - 1)]: a sum of terms that are never
negative. Losses of 1e-9 keep their digits that way, and only sums of positive numbers have to be
bounded.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.accounting.arithmetic.binomials import log_pmf

__all__ = [
    "Floats",
    "atoms",
    "divergence",
    "laplace_excess",
    "lattice_laplace",
    "sampled_gaussian_fractional",
    "sampled_gaussian_integer",
]

Floats = npt.NDArray[np.float64]

_DEPTH = 100.0  # quadrature leaves out a share of about exp(-100)
_MOST_NODES = 200_000


def divergence(log_excess: float, order: Fraction) -> float:
    """Return log(1 + exp(log_excess)) / (order - 1), rounded up."""
    value = float(np.logaddexp(0.0, log_excess))
    return value / float(order - 1) * (1 + 4e-15) + 2e-323


def atoms(losses: Floats, log_masses: Floats, order: Fraction) -> float:
    """Return the log of E[r^a] - 1 for a finite Q with the given log masses, rounded up.

    The losses are log r, right to a relative 4e-16, and the masses to a relative 4e-15.
    """
    a, less = float(order), float(order - 1)
    value = _log_sum(log_masses + _log_term(losses, a))
    # The difference of two terms near a (a - 1)/2 loses at most (a + 1)/(a - 1) of its accuracy;
    # an error in a loss is multiplied by order and loss.
    reach = a * float(np.max(np.abs(losses), initial=0.0))
    return value + 4e-15 * (8 + reach) * ((a + 1) / less)


def _log_term(losses: Floats, a: float) -> Floats:
    """Return log(r^a - 1 - a (r - 1)) for r = exp(loss)."""
    scaled = a * losses
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        small = _past_linear(scaled) - a * _past_linear(losses)
        middle = np.expm1(np.minimum(scaled, 40.0)) - a * np.expm1(np.minimum(losses, 40.0))
        far = np.maximum(losses, 0.0)
        drop = a * np.exp(-(a - 1) * far) - (a - 1) * np.exp(-a * far)
        large = scaled + np.log1p(-np.minimum(drop, 1 - 1e-16))
        near = np.log(np.maximum(np.where(np.abs(scaled) < 1, small, middle), 0.0))
    return np.where(scaled > 30.0, large, near)


def _past_linear(x: Floats) -> Floats:
    """Return exp(x) - 1 - x by its series, for |x| < 1 (nothing useful elsewhere)."""
    t = np.clip(x, -1.0, 1.0)
    total = np.ones_like(t)
    for n in range(20, 2, -1):
        total = 1 + total * t / n
    return t * t / 2 * total


def _log_sum(logs: Floats) -> float:
    peak = float(np.max(logs, initial=-math.inf))
    if peak == -math.inf:
        return peak
    return peak + math.log(float(np.sum(np.exp(logs - peak)))) + 1e-15 * len(logs)


def sampled_gaussian_integer(s: float, rate: float, spared: float, order: int) -> float:
    """Return the log of E[r^order] - 1 for r = 1 - rate + rate N(1, s^2)/N(0, s^2), rounded up.

    The binomial formula of [MTZ19, Section 3.3], less its terms 0 and 1 and less the sum of the
    binomial probabilities, which is 1.
    """
    j = np.arange(2, order + 1)
    logs, error = log_pmf(j, order, rate, spared)
    growth = j * (j - 1.0) / (2 * s * s)
    with np.errstate(over="ignore"):
        excess = np.where(
            growth < 30, np.log(np.expm1(np.minimum(growth, 30.0))), growth + _log_less(growth)
        )
    # growth is right to four units, of which its logarithm keeps as many and its exponential more.
    return _log_sum(logs + error + excess + 1e-15 * (4 + growth))


def _log_less(growth: Floats) -> Floats:
    """Return log(1 - exp(-growth))."""
    return np.log1p(-np.exp(-np.maximum(growth, 1e-3)))


def sampled_gaussian_fractional(s: float, rate: float, order: Fraction) -> float | None:
    """Return the same for any order by the trapezoidal rule, rounded up; none if it takes too long.

    In units of s the integrand is analytic where |Im z| < pi s, and there its modulus is at most
    exp(Im(z)^2 / 2) times that of each of its three terms on the real line. With step h the rule
    is therefore off by at most 2 exp(y^2/2 - 2 pi y/h) (1 + ...) (E[r^a] + 1 + 2a) for every
    y < pi s. See docs/proofs/composition_theorems.md.
    """
    a = float(order)
    y = min(0.999 * math.pi * s, 14.0)
    step = 2 * math.pi * y / (_DEPTH + y * y / 2)
    right = a / s + 39.0
    count = math.ceil((39.0 + right) / step) + 1
    if not count < _MOST_NODES:
        return None
    z = -39.0 + step * np.arange(count)
    exponent = (2 * s * z - 1) / (2 * s * s)
    # The integrand grows away from exponent 0, so push outwards by more than the rounding.
    exponent += np.copysign(5e-16 * (np.abs(z) / s + 1 / (2 * s * s)), exponent)
    with np.errstate(over="ignore"):
        losses = np.where(
            exponent > 500.0,
            exponent + math.log(rate),
            np.log1p(rate * np.expm1(np.minimum(exponent, 500.0))),
        )
    masses = math.log(step / math.sqrt(2 * math.pi)) - z * z / 2
    terms = _log_term(losses, a) + 4e-15 * (8 + a * np.abs(losses)) * ((a + 1) / (a - 1))
    found = _log_sum(masses + 1e-15 * (z * z + 4) + terms)
    size = float(np.logaddexp(0.0, found))
    left_out = -_DEPTH + math.log(4.0) + float(np.logaddexp(size, math.log(2 + 2 * a)))
    return float(np.logaddexp(found, left_out)) + 1e-14


def laplace_excess(t: float, order: Fraction) -> float:
    """Return the log of E[r^a] - 1 for Laplace noise moved by t scales, rounded up.

    The two exponentials of the closed form, less their constant and linear parts, which cancel.
    """
    a, less = float(order), float(order - 1)
    rise = math.log(a / (2 * a - 1)) + _log_past_linear(less * t)
    fall = math.log(less / (2 * a - 1)) + _log_past_linear(-a * t)
    return float(np.logaddexp(rise, fall)) + 4e-15 * (4 + a * t)


def _log_past_linear(x: float) -> float:
    """Return log(exp(x) - 1 - x)."""
    if x == 0:
        return -math.inf
    if abs(x) < 1:
        return math.log(float(_past_linear(np.array([x]))[0]))
    if x > 30:
        return x + math.log1p(-(1 + x) * math.exp(-x))
    return math.log(math.expm1(x) - x)


def lattice_laplace(t: float, shift: int, order: Fraction) -> float:
    """Return the log of E[r^a] - 1 for discrete Laplace noise, rate t, moved by ``shift``.

    The closed form: unlike the sum over atoms it loses digits where the result is tiny, by an
    absolute 1e-14 or so, which is added.
    """
    a = float(order)
    c = (2 * a - 1) * t
    both = math.log1p(math.exp(-t))
    between = math.log(-math.expm1(-t)) - both - a * shift * t + c * (shift - 1)
    between += math.log(-math.expm1(-c * (shift - 1))) - math.log(-math.expm1(-c))
    logs = np.array([(a - 1) * shift * t - both, -a * shift * t - both, between])
    error = 4e-15 * (8 + 2 * a * shift * t - math.log(-math.expm1(-t)))
    log_moment = float(np.logaddexp.reduce(logs)) + error
    return math.log(math.expm1(log_moment)) if log_moment < 30 else log_moment
