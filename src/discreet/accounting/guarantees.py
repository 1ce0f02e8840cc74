"""From a loss to a guarantee: ``epsilon`` at a delta and ``delta`` at an epsilon."""

import math
from fractions import Fraction

from discreet._exact import Number, float_up, nonnegative, probability
from discreet.accounting._search import smallest_float
from discreet.accounting.loss import Loss
from discreet.errors import ParameterError

__all__ = ["delta", "epsilon"]


def delta(loss: Loss, *, epsilon: Number) -> float:
    """Return a certified upper bound on delta: the operation is (epsilon, delta)-DP.

    The bound is exact, up to rounding upwards, for every loss whose class says so.

    >>> from discreet.accounting import LaplaceLoss
    >>> delta(LaplaceLoss(noise_multiplier=1), epsilon=1)
    0.0
    """
    _require_loss(loss)
    return loss.delta_upper(epsilon=nonnegative(epsilon, name="epsilon"))


def epsilon(loss: Loss, *, delta: Number) -> float:
    """Return a certified upper bound on epsilon: the operation is (epsilon, delta)-DP.

    At delta = 0 this is the pure epsilon, or ``math.inf`` where there is none.

    Why: the search ends at an epsilon whose own upper bound on delta was evaluated and found to be
    at most ``delta``, so the answer is a proof whatever path led there.

    >>> from discreet.accounting import GaussianLoss
    >>> round(epsilon(GaussianLoss(noise_multiplier=1), delta=1e-6), 4)
    4.8866
    >>> epsilon(GaussianLoss(noise_multiplier=1), delta=0)
    inf
    """
    _require_loss(loss)
    target = probability(delta, name="delta", zero=True)
    pure = loss.epsilon_pure
    ceiling = float_up(pure) if isinstance(pure, Fraction) else math.inf
    if target == 0 or ceiling == 0:
        return ceiling
    found = smallest_float(lambda e: loss.delta_upper(epsilon=Fraction(e)) <= target, zero=True)
    return min(ceiling, math.inf if found is None else found)


def _require_loss(loss: object) -> None:
    if not isinstance(loss, Loss):
        raise ParameterError(
            f"loss must be a loss such as GaussianLoss(noise_multiplier=...), got an object of "
            f"type {type(loss).__name__}. A mechanism has one as its .loss.",
            parameter="loss",
        )
