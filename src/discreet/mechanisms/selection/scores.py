"""What all selection by scores has in common: its parameters, its rate, and how far off it is."""

import math
from fractions import Fraction

import numpy as np

from discreet._exact import Number, positive, refusal
from discreet._rounding import log_of

__all__ = ["check_choice", "choice_rate", "in_scores", "worst_shortfall"]


def check_choice(epsilon: Number, sensitivity: Number, monotone: bool) -> None:
    """Refuse the parameters that no mechanism for selection can take.

    >>> check_choice(1, 0.5, False)
    """
    positive(epsilon, name="epsilon")
    positive(
        sensitivity,
        name="sensitivity",
        hint="It is the largest change of any one score between neighbouring inputs.",
    )
    if not isinstance(monotone, bool | np.bool_):
        raise refusal("monotone", "True or False", monotone)


def choice_rate(epsilon: Number, sensitivity: Number, monotone: bool) -> Fraction:
    """Return epsilon / (2 sensitivity), or epsilon / sensitivity for monotone scores.

    >>> choice_rate(1, 2, False)
    Fraction(1, 4)
    """
    budget = positive(epsilon, name="epsilon") / positive(sensitivity, name="sensitivity")
    return budget if monotone else budget / 2


def worst_shortfall(rate: Fraction, miss: Fraction, *, others: int) -> float:
    """Return the t that a choice by weights exp(rate * score) misses by with at most ``miss``.

    Why: candidates worse than the best by more than t number at most ``others`` and weigh less
    than w = others exp(-rate t) against the best one's 1, so they win with probability below
    w / (1 + w).

    >>> round(worst_shortfall(Fraction(1), Fraction(1, 100), others=1), 4)  # log 99
    4.5951
    """
    odds = others * (1 - miss) / miss
    return 0.0 if odds <= 1 else in_scores(log_of(odds), rate)


def in_scores(exponent: float, rate: Fraction) -> float:
    """Return the distance in score that makes a difference of ``exponent``.

    >>> in_scores(3.0, Fraction(1, 2)), in_scores(1.0, Fraction(1, 10**400))
    (6.0, inf)
    """
    distance = Fraction(exponent) / rate
    return float(distance) if distance < 2**1023 else math.inf
