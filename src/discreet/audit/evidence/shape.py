"""A second opinion, under an assumption: that the two distributions of a score are Gaussian."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["gaussian_epsilon"]

_DOUBT = 4.5  # standard errors at which the assumption is rejected


def gaussian_epsilon(
    first: NDArray[np.float64], second: NDArray[np.float64], *, delta: float, alpha: float
) -> float | None:
    """Return a lower bound on epsilon at ``delta`` if both samples are Gaussian with one variance.

    Under the assumption a pair of Gaussians at distance mu is what they are [DRS22], and mu is
    bounded from below by the difference of the means in standard errors. None where the samples
    contradict the assumption, or where it promises no finite epsilon.
    """
    if delta <= 0 or not _could_be_gaussian(first, second):
        return None
    from scipy.special import ndtr, ndtri

    n = len(first)
    spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    distance = abs(float(second.mean() - first.mean())) / spread
    error = math.sqrt(2 / n + distance**2 / (4 * n))
    if 2 * float(ndtr(-distance / error)) > alpha:  # it could be nought, on either side
        return 0.0
    return _epsilon_of(distance + float(ndtri(max(alpha, 1e-300))) * error, delta)


def _could_be_gaussian(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    scales = []
    for x in (first, second):
        if not np.isfinite(x).all() or x.std() == 0:
            return False
        z = (x - x.mean()) / x.std()
        skew, kurtosis = float((z**3).mean()), float((z**4).mean()) - 3
        if abs(skew) > _DOUBT * math.sqrt(6 / len(x)):
            return False
        if abs(kurtosis) > _DOUBT * math.sqrt(24 / len(x)):
            return False
        scales.append(math.log(float(x.std())))
    return abs(scales[0] - scales[1]) <= _DOUBT * math.sqrt(1 / len(first))


def _epsilon_of(mu: float, delta: float) -> float:
    """Return the epsilon at which Gaussians at distance mu are (epsilon, delta) apart."""
    from scipy.special import log_ndtr, ndtr

    def spent(epsilon: float) -> float:
        far = float(log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
        return float(ndtr(mu / 2 - epsilon / mu)) - math.exp(far)

    low, high = 0.0, 1.0
    if spent(0.0) <= delta:
        return 0.0
    while spent(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return low
