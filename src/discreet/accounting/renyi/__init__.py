"""Renyi divergences of mechanisms, what sampling makes of them, and their way to (epsilon, delta).

>>> from discreet.accounting import renyi
>>> curve = lambda order: 100 * renyi.gaussian(noise_multiplier=20, order=order)
>>> round(renyi.best_epsilon(curve, delta=1e-6), 4)
2.4191
"""

from discreet.accounting.renyi.divergence import (
    discrete_laplace,
    gaussian,
    laplace,
    moments_epsilon,
    pure,
    randomized_response,
    sampled_gaussian,
    sampled_pure,
)
from discreet.accounting.renyi.orders import (
    best_delta,
    best_epsilon,
    conversion,
    conversion_delta,
)
from discreet.accounting.renyi.sampling import sampled, sampled_without_replacement

__all__ = [
    "best_delta",
    "best_epsilon",
    "conversion",
    "conversion_delta",
    "discrete_laplace",
    "gaussian",
    "laplace",
    "moments_epsilon",
    "pure",
    "randomized_response",
    "sampled",
    "sampled_gaussian",
    "sampled_pure",
    "sampled_without_replacement",
]
