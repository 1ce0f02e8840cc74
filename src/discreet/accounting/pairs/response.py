"""Randomized response as a dominating pair."""

import math
from fractions import Fraction

import numpy as np

from discreet._exact import float_up
from discreet._rounding import nearest
from discreet.accounting.pairs.pairs import AtomsPair

__all__ = ["response_pair"]


def response_pair(*, epsilon: Fraction, others: int, failure: Fraction = Fraction(0)) -> AtomsPair:
    """Return the loss of telling one of ``others`` + 1 answers, the true one exp(epsilon) likelier.

    With probability ``failure`` the input is revealed instead.
    """
    top = min(nearest(epsilon) * (1 + 1e-15), 700.0)
    weight = np.array([1.0, math.exp(-top), (others - 1) * math.exp(-top)])
    losses = np.array([top, -top, 0.0])
    used = weight > 0 if others > 1 else np.array([True, True, False])
    chance = float_up(failure)
    masses = weight[used] / weight.sum() * (1 - chance) * (1 + 1e-15)
    spacing = 2 * top if others == 1 else top
    return AtomsPair(losses[used], masses, chance, chance, (-top, spacing) if top else None)
