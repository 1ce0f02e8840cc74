"""What an attacker gains from a release, straight from its loss.

The functions of the same names in :mod:`discreet.privacy` know one (epsilon, delta) and answer for
the worst mechanism that has it. A loss knows the whole profile, so the answers here are smaller,
often by far. For a single :class:`~discreet.accounting.ApproximateLoss` both agree.

All results are upper bounds, rounded up, for an attacker who knows everything but one unit.
"""

import math
from fractions import Fraction

from discreet._exact import Number, float_up, probability
from discreet.accounting.curves import profile, tradeoff
from discreet.accounting.guarantees import epsilon as epsilon_of
from discreet.accounting.losses.loss import Loss
from discreet.privacy import Guarantee
from discreet.privacy import posterior as posterior_of

__all__ = ["advantage", "detection", "posterior", "reconstruction", "success"]


def advantage(loss: Loss) -> float:
    """Return the best attacker's true-positive rate less the false-positive rate, at most.

    Claim: no attack on membership has a larger difference.

    Why: the difference of an event's probabilities is at most the total variation distance, which
    is delta at epsilon = 0.

    >>> from discreet.accounting import GaussianLoss
    >>> round(advantage(GaussianLoss(noise_multiplier=1)), 4)
    0.3829
    """
    return float(profile(loss, epsilons=[0])[0])


def success(loss: Loss, *, prior: Number) -> float:
    """Return the best attacker's chance of a right guess, starting from a prior belief.

    Claim: who gives "took part" a probability of ``prior`` = p up to 1/2 beforehand guesses right
    with probability at most 1 - p + p delta(log((1 - p)/p)), and likewise with 1 - p above.

    Why: a guess is right with probability (1 - p)(1 - a) + p b, where a and b are the rates of
    false and true positives, and b - a (1 - p)/p is at most delta at the logarithm of (1 - p)/p by
    definition.

    >>> from discreet.accounting import GaussianLoss
    >>> round(success(GaussianLoss(noise_multiplier=1), prior=0.5), 4)  # half the advantage more
    0.6915
    >>> success(GaussianLoss(noise_multiplier=1), prior=0.0001)  # all but no gain: say no
    0.9999...
    """
    belief = probability(prior, name="prior", zero=True, one=True)
    rare = min(belief, 1 - belief)
    if rare == 0:
        return 1.0
    odds = (1 - rare) / rare
    # Lowered by more than the rounding of the logarithm: a smaller epsilon has a larger delta.
    at = max(0.0, math.log(odds) * (1 - 1e-15) - 1e-15) if odds < 2**1000 else 690.0
    delta = Fraction(float(profile(loss, epsilons=[at])[0]))
    return min(1.0, float_up(1 - rare + rare * delta))


def detection(loss: Loss, *, false_alarms: Number) -> float:
    """Return the best true-positive rate of an attacker with this rate of false alarms.

    Claim: no attack does better; ``1 - tradeoff(loss)``.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> round(detection(steps, false_alarms=0.001), 4)  # its (1, 4.3e-6) alone says 0.0027
    0.0023
    """
    probability(false_alarms, name="false_alarms", zero=True, one=True)
    misses = float(tradeoff(loss, false_positive_rates=[false_alarms])[0])
    return float_up(1 - Fraction(misses))


def posterior(loss: Loss, *, prior: Number, delta: Number) -> float:
    """Return how far a belief can rise after the release, outside an accident of chance ``delta``.

    Claim: with epsilon that of the loss at ``delta``, prior / (prior + (1 - prior) exp(-epsilon)).

    Why: that of :func:`discreet.privacy.posterior`, for the guarantee at ``delta``. A mechanism
    that is not pure needs an accident to be left aside: with Gaussian noise any belief may come
    to certainty, if only with a tiny chance. :func:`success` needs no exception.

    >>> from discreet.accounting import GaussianLoss
    >>> round(posterior(GaussianLoss(noise_multiplier=4), prior=0.1, delta=1e-5), 4)
    0.2191
    """
    belief = probability(prior, name="prior", zero=True, one=True)
    allowed = probability(delta, name="delta", zero=True)
    epsilon = epsilon_of(loss, delta=allowed)
    if math.isinf(epsilon):
        return 1.0 if belief else 0.0
    return posterior_of(Guarantee(epsilon=epsilon, delta=allowed), prior=belief)


def reconstruction(loss: Loss, *, baseline: Number) -> float:
    """Return the best chance of reconstructing a record that chance alone finds with ``baseline``.

    ``baseline`` is the probability that the best guess made without the release counts as a
    success: 1/10 for a digit, 1/k for one of k candidates.

    Claim: an attacker who knows all other records, and whose prior on the record is independent of
    them, reconstructs it (to within whatever counts as a success) with at most this probability,
    1 - T(baseline) with T the trade-off curve, for the neighbouring relation that removes the
    record or replaces it by a fixed one.

    Why: let E(z) be the outputs from which the attack recovers z. Without z the output does not
    depend on z, so the mean over z of its probability of E(z) is at most ``baseline``. With z the
    probability is at most 1 - T of that, and 1 - T is concave and grows, so Jensen's inequality
    gives the claim [HMB23].

    >>> from discreet.accounting import GaussianLoss
    >>> round(reconstruction(GaussianLoss(noise_multiplier=1), baseline=0.1), 4)
    0.3891
    """
    probability(baseline, name="baseline", zero=True, one=True)
    return detection(loss, false_alarms=baseline)
