"""What two counts prove about epsilon: an exact test of one event, turned into a bound."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet._rates import rate_lower, rate_upper

__all__ = ["certified_epsilon", "refutes"]

_NUISANCE = 0.02  # the share of alpha that pays for the interval of the unlikely rate
_CELLS, _BLOCKS = 48, 160  # finer is sharper by less than a thousandth of epsilon
_CLOSE = 1e-4
_LARGEST = 700.0  # beyond it exp(epsilon) is no double, and no count comes near
_SLACK = 1 + 1e-9  # far more than the incomplete beta function errs by, relatively


def certified_epsilon(
    likely: int, unlikely: int, *, trials: int, delta: float, alpha: float
) -> float:
    """Return a lower bound on epsilon from how often an event occurred on each of two inputs.

    Claim: if the two counts are independent and binomial with ``trials`` each, their rates obey
    p <= exp(epsilon) q + delta, and the event was chosen without looking at them, the bound exceeds
    epsilon with probability at most ``alpha``.

    Why: it is the least epsilon that :func:`refutes` does not refute, and whatever is refuted
    for one epsilon is refuted for every smaller one; docs/proofs/audit.md.

    >>> round(certified_epsilon(75_000, 27_700, trials=150_000, delta=0, alpha=0.001), 2)
    0.98
    >>> certified_epsilon(10, 10, trials=100, delta=0, alpha=0.05)
    0.0
    """
    is_refuted = _test(likely, unlikely, trials=trials, delta=delta, alpha=alpha)
    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, math.log((likely + 1) / (unlikely + 0.5)) + 1
    while high < _LARGEST and is_refuted(high):  # without confidence everything is refuted
        low, high = high, 2 * high
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def refutes(
    likely: int, unlikely: int, *, epsilon: float, trials: int, delta: float, alpha: float
) -> bool:
    """Whether the counts refute p <= exp(epsilon) q + delta at level ``alpha``.

    >>> refutes(9, 1, epsilon=0.5, trials=20, delta=0, alpha=0.05)
    True
    """
    return _test(likely, unlikely, trials=trials, delta=delta, alpha=alpha)(epsilon)


def _test(
    likely: int, unlikely: int, *, trials: int, delta: float, alpha: float
) -> Callable[[float], bool]:
    """Return the test of each epsilon.

    Outcomes (x, y) are ordered by (x - delta trials) / u(y), where u(y) is the Clopper-Pearson
    upper bound [CP34] of a rate seen y times. The probability of all that are at least as telling
    as the one seen is bounded for every q in a confidence interval of the unlikely rate, and the
    level of that interval is added [BB94].
    """
    from scipy.special import bdtr, bdtrc, ndtri

    alpha = min(alpha, 1 - 2.0**-53)  # at 1 no rate would have an upper bound
    spared, beta = delta * trials, _NUISANCE * alpha
    if likely <= spared:
        return lambda epsilon: False

    def upper(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        return rate_upper(counts, trials=trials, alpha=alpha)  # type: ignore[arg-type]

    seen = np.array([unlikely])
    bottom = float(rate_lower(seen, trials=trials, alpha=beta / 2)[0])
    top = float(rate_upper(seen, trials=trials, alpha=beta / 2)[0])
    edges = np.linspace(bottom, top, _CELLS + 1)
    q = edges[:-1, None]
    # Y falls into blocks, each counted as if it were at its start, where least of X is needed.
    # What lies further away is one block, and negligible.
    reach = -float(ndtri(max(alpha / 1000, 1e-300)))
    ends = [
        trials * rate + sign * reach * (math.sqrt(trials * rate * (1 - rate)) + 1)
        for sign, rate in ((-1, bottom), (1, top))
    ]
    starts = np.unique(np.clip(np.ceil(np.linspace(ends[0], ends[1], _BLOCKS)), 0, trials))
    starts[0] = 0
    before = np.where(starts > 0, bdtr(np.maximum(starts - 1, 0), trials, q), 0.0)
    mass = np.maximum(np.diff(before, axis=1, append=1.0), 0.0)
    slope = (likely - spared) / upper(seen.astype(np.float64))[0]
    needed = np.ceil((spared + slope * upper(starts)) * (1 - 1e-11))

    def is_refuted(epsilon: float) -> bool:
        # Within a cell of rates the probability is largest at the greatest p and the least q.
        p = np.minimum(1.0, math.exp(min(epsilon, _LARGEST)) * edges[1:, None] + delta)
        above = np.where(needed <= trials, bdtrc(np.minimum(needed, trials + 1) - 1, trials, p), 0)
        return float((mass * above).sum(axis=1).max()) * _SLACK + beta <= alpha

    return is_refuted
