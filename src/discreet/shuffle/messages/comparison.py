"""The error of one count at equal privacy: trusted curator, shuffler, and nobody to trust."""

import math
from fractions import Fraction

from discreet._exact import Number
from discreet.accounting import GaussianLoss, ShuffledLoss, calibrate
from discreet.local import DirectResponse, HadamardResponse
from discreet.shuffle.messages.histogram import MultiMessageHistogram

__all__ = ["standard_errors"]


def standard_errors(*, epsilon: Number, delta: Number, domain: int, n: int) -> dict[str, float]:
    """Return the standard error of the count of a rare value, by who is trusted.

    All are (epsilon, delta)-DP for replace-one, but for discrete Laplace noise and reports that are
    not shuffled, which are epsilon-DP. Of single reports the better of direct and Hadamard response
    is taken, shuffled by the bound of 2023. With few values and very many devices shuffled single
    reports are as good as dummies; with many values they are not.

    >>> found = standard_errors(epsilon=1, delta=1e-6, domain=200, n=1000)
    >>> for name, error in found.items():
    ...     print(f"{name}: {error:.1f}")
    curator, discrete Laplace: 2.8
    curator, Gaussian: 6.0
    shuffler, with dummies: 6.5
    shuffler, single reports: 18.7
    nobody, single reports: 68.4
    """
    protocol = MultiMessageHistogram.calibrated(
        epsilon=epsilon, delta=delta, domain=domain, honest=n
    )
    dummies = float(n * protocol.dummies.mean)
    most = calibrate(
        lambda local_epsilon: ShuffledLoss(epsilon0=local_epsilon, n=n),
        epsilon=epsilon,
        delta=delta,
        largest=True,
    )
    return {
        "curator, discrete Laplace": _laplace(epsilon),
        "curator, Gaussian": math.sqrt(2)
        * calibrate(
            lambda multiplier: GaussianLoss(noise_multiplier=multiplier),
            epsilon=epsilon,
            delta=delta,
        ),
        "shuffler, with dummies": math.sqrt(dummies * (1 - 1 / domain) / domain),
        "shuffler, single reports": _reports(most, domain=domain, n=n),
        "nobody, single reports": _reports(epsilon, domain=domain, n=n),
    }


def _laplace(epsilon: Number) -> float:
    """Return the deviation of two-sided geometric noise of scale 2 / epsilon."""
    q = math.exp(-float(Fraction(epsilon)) / 2)
    return math.sqrt(2 * q) / (1 - q)


def _reports(epsilon: Number, *, domain: int, n: int) -> float:
    ways = DirectResponse, HadamardResponse
    variances = [way(domain=domain, epsilon=epsilon).support.variance(n=n, count=0) for way in ways]
    return math.sqrt(min(variances))
