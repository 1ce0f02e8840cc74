"""The distinguishing game: is one person in the data or not, judged by a single number."""

from collections.abc import Callable
from numbers import Real

import numpy as np

from discreet._exact import probability, whole
from discreet._rates import interval
from discreet.attacks.report import AttackReport
from discreet.errors import DataError
from discreet.privacy import Guarantee, success

__all__ = ["distinguish"]


def distinguish(
    world: Callable[[bool], float],
    *,
    threshold: float,
    trials: int,
    guarantee: Guarantee | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Play a game: a coin says whether somebody is in the data, and a number must tell it.

    ``world`` makes the data afresh, with the person or without, attacks it, and returns what it
    found; above the ``threshold`` the guess is "with". ``allowed`` is the best that a
    ``guarantee`` for adding or removing one person lets anybody do
    (:func:`discreet.privacy.success`).

    >>> print(distinguish(lambda is_in: 3.0 * is_in, threshold=1.5, trials=50))
    differencing: 50 of 50 times it is told whether somebody is in the data.
      worlds told apart   100% (92.9% to 100% at 95% confidence, 50 trials)
      without the attack  50%
    """
    confidence = float(probability(confidence, name="confidence"))
    coins = np.random.default_rng(seed).integers(2, size=whole(trials, name="trials")) == 1
    right = 0
    for coin in coins:
        found: object = world(bool(coin))
        if not isinstance(found, Real) or np.isnan(float(found)):
            raise DataError("world must return a number, also where it was refused an answer.")
        right += (float(found) > threshold) == bool(coin)
    return AttackReport(
        attack="differencing",
        measure="worlds told apart",
        success=right / len(coins),
        baseline=0.5,
        interval=interval(right, trials=len(coins), confidence=confidence),
        confidence=confidence,
        trials=len(coins),
        allowed=None if guarantee is None else success(guarantee, prior=0.5),
        summary=f"{right:,} of {len(coins):,} times it is told whether somebody is in the data.",
    )
