"""How large a violation an audit would have found."""

import math

from discreet.audit.evidence.certificate import refutes

__all__ = ["detectable_epsilon"]

_UNLUCKY = 1.645  # of 100 runs, 95 do better than this many standard errors below the mean
_CLOSE = 4e-3
_LEAST = 0.1  # a smaller share is as good as none: it is chance as well as not


def detectable_epsilon(
    likely: int,
    unlikely: int,
    *,
    trials: int,
    epsilon: float,
    delta: float,
    alpha: float,
    proved: float,
) -> float:
    """Return the smallest true epsilon that would be flagged in 95 of 100 such audits.

    The event shows a share of the claimed epsilon, at most all of it; a violation is taken to show
    in the same share, by an event that is as likely as this one. Where nothing or next to nothing
    was proved, no share is known, and no violation could be promised to be found: infinity.
    """
    if proved <= 0:
        return math.inf
    p = likely / trials
    shown = math.log(max(p - delta, 0.5 / trials) * trials / max(unlikely, 0.5))
    share = min(1.0, shown / epsilon) if epsilon > 0 else 1.0
    if share < _LEAST:
        return math.inf

    def is_found(level: float) -> bool:
        q = (p - delta) * math.exp(-level)
        sure, rare = math.sqrt(trials * p * (1 - p)), math.sqrt(trials * q * (1 - q))
        errors = sure / (trials * (p - delta)), rare / (trials * q)
        length = math.hypot(*errors) or 1.0
        x = trials * p - _UNLUCKY * sure * errors[0] / length
        y = trials * q + _UNLUCKY * rare * errors[1] / length
        return refutes(
            math.floor(x), math.ceil(y), epsilon=epsilon, trials=trials, delta=delta, alpha=alpha
        )

    low, high = epsilon, epsilon + 0.05
    limit = math.log(trials) + 1
    while not is_found(high):
        low, high = high, epsilon + 2 * (high - epsilon)
        if high > limit:
            return math.inf
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high / share
