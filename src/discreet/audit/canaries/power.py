"""What an audit of training would have found."""

import math

from discreet.audit.canaries.guessing import Coins, Scores, likely_right
from discreet.audit.canaries.shapes import GaussianShape

__all__ = ["distance_seen", "smallest_flagged"]

_OFTEN = 0.95
_MOST_MU = 20.0
_HALVINGS = 30


def distance_seen(scores: Scores, coins: Coins) -> float:
    """Return how far apart the scores of both kinds are, in standard deviations of a Gaussian.

    Ranks alone are looked at: it is the distance at which an included canary outdoes one left out
    as often as here.

    >>> import numpy as np
    >>> round(distance_seen(np.array([0.0, 2, 1, 3]), np.array([False, True, False, True])), 1)
    5.3
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    inside, outside = int(coins.sum()), int((~coins).sum())
    if not inside or not outside:
        return 0.0
    pairs = inside * outside
    won = rankdata(scores)[coins].sum() - inside * (inside + 1) / 2
    share = min(max(float(won / pairs), 1e-4), 1 - 1e-4)
    return math.sqrt(2) * float(ndtri(share))


def smallest_flagged(
    *, guesses: int, needed: int, canaries: int, delta: float, efficiency: float
) -> float:
    """Return the least true epsilon at which ``needed`` guesses are right 95 times in 100.

    ``efficiency`` is how much of the true distance the scores show.

    >>> round(smallest_flagged(
    ...     guesses=100, needed=95, canaries=10_000, delta=1e-5, efficiency=1), 1)
    5.0
    >>> smallest_flagged(guesses=100, needed=95, canaries=10_000, delta=1e-5, efficiency=0)
    inf
    """
    from scipy.special import bdtrc

    def is_flagged(mu: float) -> bool:
        share = likely_right(guesses, canaries=canaries, mu=mu * efficiency)
        return bool(bdtrc(needed - 1, guesses, share) >= _OFTEN)

    low, high = 0.0, _MOST_MU
    if needed > guesses or not is_flagged(high):
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_flagged(middle) else (middle, high)
    return GaussianShape(high).epsilon(delta=delta)
