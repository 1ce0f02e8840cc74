"""Find the smallest float that satisfies a condition which, once true, stays true."""

import math
from collections.abc import Callable

__all__ = ["smallest_enough", "smallest_float"]

_LIMIT = 2.0**1000


def smallest_float(holds: Callable[[float], bool], *, zero: bool = False) -> float | None:
    """Return the smallest positive float for which ``holds``; ``None`` if it is beyond 2^1000.

    ``zero`` also tries 0. The answer always satisfies ``holds`` itself: where the condition
    flickers in its last digits the answer may miss the smallest float, never the condition.
    """
    if zero and holds(0.0):
        return 0.0
    low, high = _bracket(holds)
    if high > _LIMIT:
        return None
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        if holds(middle):
            high = middle
        else:
            low = middle


def _bracket(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return (low, high) a factor of at most 2 apart (or low = 0), failing at low, true at high.

    Strides grow while they succeed, so that 1e-300 takes dozens of steps rather than a thousand.
    """
    exponent, stride = 0, 1
    direction = -1 if holds(1.0) else 1
    while True:
        ahead = exponent + direction * stride
        if abs(ahead) > 1000:
            ahead = direction * 1001
        if holds(2.0**ahead) == (direction > 0):
            break
        if abs(ahead) > 1000:
            return (0.0, 2.0**ahead) if direction < 0 else (2.0**1000, 2.0**1001)
        exponent, stride = ahead, stride * 2
    low, high = sorted((exponent, ahead))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(2.0**middle) else (middle, high)
    return 2.0**low, 2.0**high


def smallest_enough(excess: Callable[[float], float], *, relative: float) -> float | None:
    """Return a positive x with ``excess(x) <= 0``, at most a factor 1 + ``relative`` too large.

    For a decreasing function that is dear to evaluate: the bracket is narrowed by interpolating in
    the logarithm of x, and halved whenever that makes too little headway.
    """
    low = high = 1.0
    at_low = at_high = excess(1.0)
    while at_high > 0:
        low, at_low, high = high, at_high, high * 2
        if high > _LIMIT:
            return None
        at_high = excess(high)
    while at_low <= 0:
        high, at_high, low = low, at_low, low / 2
        if low < 1 / _LIMIT:
            return high
        at_low = excess(low)
    while high / low > 1 + relative:
        share = at_low / (at_low - at_high) if math.isfinite(at_low) else 0.5
        # A little beyond the root, so that the bracket shrinks from the far side as well.
        for aim in (min(0.98, max(0.02, share * 1.02)), 0.5):
            middle = low * (high / low) ** aim
            if not low < middle < high:
                return high
            before, value = high / low, excess(middle)
            low, at_low, high, at_high = (
                (middle, value, high, at_high) if value > 0 else (low, at_low, middle, value)
            )
            if math.log(high / low) < 0.3 * math.log(before) or high / low <= 1 + relative:
                break
    return high
