"""Certified bounds on probabilities, and on epsilon, from counts; attacks and audits share them."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Rates", "epsilon_lower", "interval", "rate_lower", "rate_upper"]

Counts: TypeAlias = NDArray[np.int64]
Rates: TypeAlias = NDArray[np.float64]

_SLACK = 1e-9  # far more than the inverse beta function errs by, relatively


def rate_lower(hits: Counts, *, trials: int, alpha: float) -> Rates:
    """Return the Clopper-Pearson lower bound: above the true rate with probability <= alpha.

    >>> rate_lower(np.array([0, 10]), trials=10, alpha=0.05).round(4)
    array([0.    , 0.7411])
    """
    from scipy.special import betaincinv

    bound = betaincinv(np.maximum(hits, 1), trials - hits + 1, alpha)
    return np.asarray(np.where(hits == 0, 0.0, bound * (1 - _SLACK)), dtype=np.float64)


def rate_upper(hits: Counts, *, trials: int, alpha: float) -> Rates:
    """Return the Clopper-Pearson upper bound: below the true rate with probability <= alpha.

    >>> rate_upper(np.array([0, 10]), trials=10, alpha=0.05).round(4)
    array([0.2589, 1.    ])
    """
    from scipy.special import betainccinv

    bound = betainccinv(hits + 1, np.maximum(trials - hits, 1), alpha)
    return np.asarray(np.where(hits == trials, 1.0, np.minimum(1.0, bound * (1 + _SLACK))))


def epsilon_lower(likely: Rates, unlikely: Rates, *, delta: float) -> Rates:
    """Return the epsilon that an event proves, given bounds on its two probabilities.

    (epsilon, delta)-DP demands likely <= exp(epsilon) unlikely + delta.

    >>> epsilon_lower(np.array([0.75, 0.1]), np.array([0.25, 0.2]), delta=0).round(4)
    array([1.0986, 0.    ])
    """
    # Clopper-Pearson upper bounds are positive, so only the numerator needs care.
    ratio = np.maximum(likely - delta, 0) / unlikely
    return np.asarray(np.log(np.maximum(ratio, 1.0)), dtype=np.float64)


def interval(hits: int, *, trials: int, confidence: float) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate [CP34].

    >>> low, high = interval(8, trials=10, confidence=0.95)
    >>> round(low, 3), round(high, 3)
    (0.444, 0.975)
    """
    alpha = (1 - confidence) / 2
    counts = np.array([hits])
    low = rate_lower(counts, trials=trials, alpha=alpha)
    high = rate_upper(counts, trials=trials, alpha=alpha)
    return float(low[0]), float(high[0])
