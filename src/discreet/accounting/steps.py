"""How often a budget allows an operation."""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet._exact import Number, nonnegative, probability, show
from discreet.accounting.guarantees import epsilon as epsilon_of
from discreet.accounting.losses.loss import Loss
from discreet.errors import ParameterError

__all__ = ["most_steps"]

_MOST = 10**12


def most_steps(step: Loss | Callable[[int], Loss], *, epsilon: Number, delta: Number) -> int:
    """Return the largest number of steps that a budget buys, 0 if not even one.

    ``step`` is the loss of one step, to be composed with itself, or a function from a number of
    steps to their loss (for a training run that also pays for an evaluation, say).

    Claim: ``epsilon(step * result, delta=delta) <= epsilon`` as evaluated, so the answer is safe
    however the search went. It is the largest such number as far as the upper bounds on epsilon
    grow with the steps, which the truth does and they do up to their tolerance of about 1e-5.

    >>> from discreet.accounting import GaussianLoss, PureLoss
    >>> most_steps(PureLoss(epsilon=0.25), epsilon=1, delta=0)
    4
    >>> most_steps(GaussianLoss(noise_multiplier=10), epsilon=1, delta=1e-5)
    7
    """
    budget = nonnegative(epsilon, name="epsilon")
    allowed = probability(delta, name="delta", zero=True)
    make = step.__mul__ if isinstance(step, Loss) else step

    def cost(steps: int) -> float:
        return epsilon_of(make(steps), delta=allowed)

    low, at_low = 0, 0.0
    high, at_high = 1, cost(1)
    while at_high <= budget:
        if high >= _MOST:
            raise ParameterError(
                f"{_MOST:.0e} steps and more cost at most epsilon={show(epsilon)}: the step costs "
                "next to nothing, so there is no number to find.",
                parameter="step",
            )
        low, at_low = high, at_high
        # Epsilon grows at least like a small power of the steps and at most in proportion, or so.
        factor = (float(budget) / at_low) ** 1.5 * 1.1 if at_low > 0 else 64.0
        high = min(_MOST, max(low + 1, int(low * min(64.0, factor))))
        at_high = cost(high)
    halve = False
    while high - low > 1:
        width = high - low
        middle = (low + high) // 2 if halve else _between(low, at_low, high, at_high, budget)
        at_middle = cost(middle)
        if at_middle <= budget:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        halve = high - low > 0.5 * width  # little headway
    return low


def _between(low: int, at_low: float, high: int, at_high: float, target: Fraction) -> int:
    """Return a number of steps where epsilon may reach ``target``, strictly between the two.

    Interpolated in the logarithms, which a law such as epsilon ~ sqrt(steps) makes exact.
    """
    if not (0 < at_low < at_high < math.inf) or low == 0 or high - low <= 4:
        return (low + high) // 2
    share = math.log(float(target) / at_low) / math.log(at_high / at_low)
    guess = round(low * math.exp(share * math.log(high / low)))
    margin = max(1, (high - low) // 50)
    return min(high - margin, max(low + margin, guess))
