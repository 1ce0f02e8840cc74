"""The standard deviation of noise on whole numbers, in closed form or summed.

With q = exp(-1 / scale) the two-sided geometric law has variance 2 q / (1 - q)^2 and a rounded
Laplace variable has sqrt(q) (1 + q) / (1 - q)^2: both sum k^2 q^k. A Gaussian of three or more
steps, rounded or on the integers, differs from the continuous one (and the 1/12 that rounding adds)
by a relative exp(-2 pi^2 9) < 1e-76, by Poisson summation; a narrower one is summed.
"""

import math

__all__ = [
    "lattice_gaussian_deviation",
    "rounded_gaussian_deviation",
    "rounded_laplace_deviation",
    "two_sided_geometric_deviation",
]

_WIDE = 3.0
_REACH = 40  # 12 standard deviations of the widest one that is summed


def two_sided_geometric_deviation(scale: float) -> float:
    """Return that of discrete Laplace noise.

    >>> round(two_sided_geometric_deviation(100), 2), round(two_sided_geometric_deviation(1), 4)
    (141.42, 1.357)
    """
    return math.sqrt(2) * math.exp(-1 / (2 * scale)) / -math.expm1(-1 / scale)


def rounded_laplace_deviation(scale: float) -> float:
    """Return that of Laplace noise rounded to whole numbers.

    >>> round(rounded_laplace_deviation(100), 2)
    141.42
    """
    root = math.exp(-1 / (2 * scale))
    return math.sqrt(root * (1 + root * root)) / -math.expm1(-1 / scale)


def lattice_gaussian_deviation(sigma: float) -> float:
    """Return that of discrete Gaussian noise; never above sigma.

    >>> lattice_gaussian_deviation(10), round(lattice_gaussian_deviation(0.3), 4)
    (10, 0.0876)
    """
    if sigma >= _WIDE:
        return sigma
    weights = [math.exp(-((k / sigma) ** 2) / 2) for k in range(1, _REACH)]
    moment = math.fsum(2 * k * k * w for k, w in enumerate(weights, 1))
    return math.sqrt(moment / (1 + 2 * math.fsum(weights)))


def rounded_gaussian_deviation(sigma: float) -> float:
    """Return that of Gaussian noise rounded to whole numbers.

    >>> round(rounded_gaussian_deviation(10), 4)
    10.0042
    """
    if sigma >= _WIDE:
        return math.hypot(sigma, math.sqrt(1 / 12))
    # E[K^2] is the sum of 2 (2 k - 1) Pr[K >= k] over k >= 1.
    root = sigma * math.sqrt(2)
    tails = (math.erfc((k - 0.5) / root) / 2 for k in range(1, _REACH))
    return math.sqrt(math.fsum(2 * (2 * k - 1) * tail for k, tail in enumerate(tails, 1)))
