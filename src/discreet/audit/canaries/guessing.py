"""Which canaries are guessed: settled before the run, and paid for.

Whoever tries many numbers of guesses and reports the best has cheated. Here the main number
follows from what is claimed by a rule, and gets four fifths of the chance of a false alarm; a short
ladder of other numbers shares the rest, for trainers that are far from what they claim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coins", "Guesses", "Scores", "likely_right", "plan", "right_guesses"]

Coins: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.float64]

_MAIN_SHARE = 0.8
_LADDER = 4  # every number of guesses is so many times the one before
_LEAST = 16
_RULE_STEPS = 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """So many canaries are guessed "included", so many "left out"; at a level of ``alpha``."""

    included: int
    left_out: int
    alpha: float

    @property
    def total(self) -> int:
        return self.included + self.left_out

    def pool(self, canaries: int) -> float:
        """Return how many canaries' deltas count: half of them where one side is not guessed."""
        return float(canaries) if self.included and self.left_out else canaries / 2


def plan(
    *, canaries: int, mu: float, alpha: float, proved: Callable[[int, Guesses], float]
) -> tuple[Guesses, ...]:
    """Return what is guessed, the main number first.

    The rule takes the number from which most would be proved, were the scores Gaussian with a
    distance of ``mu``: what the claim allows. ``proved(right, guesses)`` says how much.

    >>> def share_above_half(right, guesses):
    ...     return right - guesses.total / 2
    >>> chosen = plan(canaries=1000, mu=1, alpha=0.05, proved=share_above_half)
    >>> [each.total for each in chosen]
    [1000, 16, 16, 64, 64, 256, 256]
    """
    sizes = np.unique(np.geomspace(min(_LEAST, canaries) // 2, canaries // 2, _RULE_STEPS).round())
    main_alpha = _MAIN_SHARE * alpha
    both = [Guesses(included=int(n), left_out=int(n), alpha=main_alpha) for n in sizes]

    def promise(guesses: Guesses) -> float:
        share = likely_right(guesses.total, canaries=canaries, mu=mu)
        return proved(int(guesses.total * share), guesses)

    totals = []
    total = _LEAST
    while total <= canaries // 2:
        totals.append(total)
        total *= _LADDER
    small = (1 - _MAIN_SHARE) * alpha / max(1, 2 * len(totals))
    ladder = [
        Guesses(included=ceil(share * total), left_out=total - ceil(share * total), alpha=small)
        for total in totals
        for share in (0.5, 1)
    ]
    return (max(both, key=promise), *ladder)


def likely_right(guesses: int, *, canaries: int, mu: float) -> float:
    """Return the share of right guesses at both ends of Gaussian scores ``mu`` apart.

    >>> round(likely_right(100, canaries=10_000, mu=1), 3)
    0.958
    """
    from scipy.special import ndtr

    share = guesses / 2 / canaries
    low, high = -40.0, 40.0 + mu  # where the upper end begins, by halving
    for _ in range(60):
        middle = (low + high) / 2
        above = (ndtr(-middle) + ndtr(mu - middle)) / 2
        low, high = (middle, high) if above > share else (low, middle)
    return min(1.0, float(ndtr(mu - low) / 2 / share))


def right_guesses(scores: Scores, coins: Coins, guesses: Guesses) -> int:
    """Return how many guesses are right, those with the highest and lowest scores being guessed.

    >>> coins = np.array([True, False, True, False])
    >>> right_guesses(np.array([3.0, 1, 0, 2]), coins, Guesses(included=2, left_out=1, alpha=0.05))
    1
    """
    # Equal scores are told apart by place, which knows nothing of the coins.
    order = np.argsort(scores, kind="stable")
    included = order[len(order) - guesses.included :]
    return int(coins[included].sum() + (~coins[order[: guesses.left_out]]).sum())
