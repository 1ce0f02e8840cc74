"""The exact privacy profile of scalar discrete Gaussian noise, for any sigma.

For Pr[k] ~ exp(-k^2 / (2 s2)) and an integer shift D, [CKS20, Theorem 7] gives

    delta(e) = sum over k >= m of g(k),   g(k) = p(k) (1 - exp(eta(k))),
    eta(k) = e - (k D + D^2/2) / s2,      m = the first integer with eta < 0.

All terms are positive. For small sigma they are summed one by one; for large sigma the sum is an
integral (a difference of Mills ratios) plus Euler-Maclaurin corrections at m, with the remainder
bounded and added. docs/explanation/accounting.md tells the same at leisure.
"""

import math
from fractions import Fraction

import numpy as np

from discreet._rounding import above, nearest, one_minus_exp
from discreet.accounting.arithmetic.concentrated import zcdp_delta
from discreet.accounting.arithmetic.mills import mills, mills_drop

__all__ = ["lattice_gaussian_delta"]

_SUM_UP_TO = 1000  # sigma from which Euler-Maclaurin takes over: its remainder is below 1e-11 there
_NARROWEST, _WIDEST = Fraction(1, 10**100), Fraction(10**100)
_CELLS = np.linspace(0, 1, 97)


def lattice_gaussian_delta(*, variance: Fraction, shift: int, epsilon: Fraction) -> float:
    """Return delta at ``epsilon`` for one integer shift of at least 1, rounded up.

    ``variance`` is the parameter sigma^2 of the discrete Gaussian, exactly.

    >>> f"{lattice_gaussian_delta(variance=Fraction(1), shift=1, epsilon=Fraction(8)):.4g}"
    '1.989e-15'
    """
    if not _NARROWEST < variance < _WIDEST:  # floats cannot hold the sum; its zCDP bound they can
        return zcdp_delta(rho=shift * shift / (2 * variance), epsilon=epsilon)
    first = math.floor(epsilon * variance / shift - Fraction(shift, 2)) + 1
    sigma = math.sqrt(nearest(variance))
    if first < -8 * sigma:
        return 1.0  # the truth is above 1 - 1e-14
    peak = nearest(-Fraction(first * first) / (2 * variance))
    if first > 0 and peak < -760:
        return above(0.0, relative=0)
    # What p(first) is short of 1: computed exactly at `first`, where it may nearly vanish.
    deficit = (first * shift + Fraction(shift * shift, 2)) / variance - epsilon
    add_up = _direct_sum if sigma < _SUM_UP_TO else _euler_maclaurin
    total = add_up(first=first, sigma=sigma, shift=shift, deficit=deficit)
    log_value = peak + math.log(total) - math.log(_normaliser_lower(sigma))
    return above(math.exp(min(0.0, log_value)), relative=1e-11)


def _normaliser_lower(sigma: float) -> float:
    """Return sum over k of exp(-k^2 / (2 sigma^2)), short by at most a relative 1e-15."""
    if sigma >= 1:  # by Poisson summation, of which two terms are left out, both positive
        return sigma * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * sigma) ** 2))
    return 1 + 2 * sum(math.exp(-((k / sigma) ** 2) / 2) for k in range(12, 0, -1))


def _direct_sum(*, first: int, sigma: float, shift: int, deficit: Fraction) -> float:
    """Return sum of g(k) / p(first) over k >= first, term by term plus a bound on the rest."""
    u = first / sigma
    # Far enough out that p has fallen by exp(-80) since `first`, and ten terms more.
    reach = math.ceil((math.sqrt(u * u + 160) - u) * sigma) + 10
    step = np.arange(reach + 1, dtype=np.float64)
    exponents = -step * (step + 2 * first) / (2 * sigma * sigma)
    # Differences from `first` only ever add numbers of one sign, so nothing cancels.
    losses = nearest(deficit) + step * (shift / sigma**2)
    terms = np.exp(exponents) * -np.expm1(-losses)
    rest = math.exp(exponents[-1]) * (1 + sigma * math.sqrt(math.pi / 2))
    return float(np.sum(terms[::-1])) + rest + 1e-300


def _euler_maclaurin(*, first: int, sigma: float, shift: int, deficit: Fraction) -> float:
    """Return sum of g(k) / p(first) over k >= first, from its integral and derivatives at first.

    The n-th derivative of p is (-1)^n He_n(x / sigma) p(x) / sigma^n, He_n the Hermite polynomials.
    """
    u, w = first / sigma, shift / sigma
    v = u + w
    gone = one_minus_exp(-deficit)  # 1 - exp(eta(first)), between 0 and shift / sigma^2
    integral = sigma * (mills_drop(u, w) + mills(v) * gone)
    h3, h5 = v**3 - 3 * v, v**5 - 10 * v**3 + 15 * v
    squares = u * u + u * v + v * v
    fourths = u**4 + u**3 * v + (u * v) ** 2 + u * v**3 + v**4
    d1 = (w - v * gone) / sigma
    d3 = (w * (squares - 3) - h3 * gone) / sigma**3
    d5 = (w * (fourths - 10 * squares + 15) - h5 * gone) / sigma**5
    total = integral + gone / 2 - d1 / 12 + d3 / 720 - d5 / 30240
    return total + _remainder(u=u, w=w, gone=nearest(deficit), sigma=sigma)


def _remainder(*, u: float, w: float, gone: float, sigma: float) -> float:
    """Bound what Euler-Maclaurin leaves out: 2 zeta(6) / (2 pi)^6 times the integral of |g^(6)|.

    At z standard deviations beyond u, |g^(6)| sigma^6 / p(first) is at most exp(-u z - z^2/2) times
    6 w H5(y) + (gone + w z) H6(y), where H_n is He_n with all coefficients made positive and
    y = |u| + z + w (mean value theorem for the first part, 1 - exp(-t) <= t for the second). The
    integral is bounded by the larger end of each factor on each cell; beyond the last cell, where
    the exponential is below exp(-60), the integrand falls faster than exp(-z).
    """
    last = math.sqrt(u * u + 120) - u
    z = last * _CELLS
    y = abs(u) + z[1:] + w
    h5 = y**5 + 10 * y**3 + 15 * y
    h6 = y**6 + 15 * y**4 + 45 * y**2 + 15
    bound = 6 * w * h5 + (gone + w * z[1:]) * h6
    weight = np.exp(-u * z - z * z / 2)
    # On a cell the exponential is largest at an end, unless its peak z = -u lies inside.
    ends = np.maximum(weight[:-1], weight[1:])
    if u < 0:
        inside = (z[:-1] < -u) & (-u < z[1:])
        ends = np.where(inside, math.exp(u * u / 2), ends)
    integral = float(np.sum(ends * bound)) * last / len(y) + math.exp(-60) * float(bound[-1])
    return 3.31e-5 * integral / sigma**5
