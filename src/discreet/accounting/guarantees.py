"""From a loss to a guarantee: ``epsilon`` at a delta, ``delta`` at an epsilon, and brackets."""

from discreet._exact import Number, nonnegative, probability
from discreet.accounting.losses.certified import (
    Bracket,
    delta_upper,
    epsilon_bracket,
    epsilon_upper,
)
from discreet.accounting.losses.loss import Loss, require_loss

__all__ = ["bracket", "delta", "epsilon"]


def delta(loss: Loss, *, epsilon: Number) -> float:
    """Return a certified upper bound on delta: the operation is (epsilon, delta)-DP.

    The bound is exact, up to rounding upwards, for every loss whose class says so.

    >>> from discreet.accounting import LaplaceLoss
    >>> delta(LaplaceLoss(noise_multiplier=1), epsilon=1)
    0.0
    """
    require_loss(loss)
    return delta_upper(loss, epsilon=nonnegative(epsilon, name="epsilon"))


def epsilon(loss: Loss, *, delta: Number) -> float:
    """Return a certified upper bound on epsilon: the operation is (epsilon, delta)-DP.

    At delta = 0 this is the pure epsilon, or ``math.inf`` where there is none.

    Why: for a single operation the search ends at an epsilon whose own upper bound on delta was
    evaluated and found to be at most ``delta``; for a composition, see
    docs/proofs/privacy_loss_distributions.md.

    >>> from discreet.accounting import GaussianLoss
    >>> round(epsilon(GaussianLoss(noise_multiplier=1), delta=1e-6), 4)
    4.8866
    >>> epsilon(GaussianLoss(noise_multiplier=1), delta=0)
    inf
    """
    require_loss(loss)
    return epsilon_upper(loss, delta=probability(delta, name="delta", zero=True))


def bracket(loss: Loss, *, delta: Number) -> Bracket:
    """Return certified bounds on both sides of the smallest epsilon for this loss.

    The truth meant is that of the worst operation that the loss describes. Where that is not known
    (zCDP, many losses of bounded range), the lower bound is that of a bad one, such as Gaussian
    noise; where none is known (shuffling), it is 0.

    >>> from discreet.accounting import GaussianLoss
    >>> found = bracket(GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000, delta=1e-5)
    >>> round(found.lower, 3), round(found.upper, 3), found.upper - found.lower < 1e-4
    (0.947, 0.947, True)
    """
    require_loss(loss)
    return epsilon_bracket(loss, delta=probability(delta, name="delta", zero=True))
