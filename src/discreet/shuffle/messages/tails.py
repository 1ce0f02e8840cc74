"""How far dummies may lead an estimate astray."""

import math
from fractions import Fraction

from discreet._exact import Number, probability, whole
from discreet._rounding import log_one_over
from discreet.accounting import GaussianLoss, calibrate

__all__ = ["dummy_width", "first_guess"]


def dummy_width(tosses: int, heads: Fraction, *, kinds: int, confidence: Number) -> float:
    """Return a t such that an estimate is off by at most t, with this confidence.

    Why: the error is the sum over all ``tosses`` of what a dummy of the kind adds, 1 - 1 / kinds,
    or one of another kind, -1 / kinds. Each has mean 0, a size of at most 1 - 1 / kinds and
    variance heads (1 - 1 / kinds) / kinds; that is Bernstein's inequality [BLM13, Corollary 2.11].

    >>> round(dummy_width(1000, Fraction(1, 2), kinds=2, confidence=0.95), 1)
    31.0
    """
    surely = log_one_over((1 - probability(confidence, name="confidence")) / 2)
    largest = 1 - 1 / kinds
    variance = float(whole(tosses, name="n") * heads) * largest / kinds
    start = surely * largest / 3
    return start + math.sqrt(start**2 + 2 * variance * surely)


def first_guess(*, epsilon: Number, delta: Number, shift: int) -> float:
    """Return about how many fair coins hide a shift: as many as have the Gaussian deviation.

    >>> round(first_guess(epsilon=1, delta=1e-6, shift=1))
    71
    """
    deviation = calibrate(
        lambda multiplier: GaussianLoss(noise_multiplier=multiplier), epsilon=epsilon, delta=delta
    )
    return 4 * (deviation * shift) ** 2
