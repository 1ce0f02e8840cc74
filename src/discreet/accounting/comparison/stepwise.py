"""Accountants that know nothing of a step but its (epsilon, delta)."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from discreet._exact import Number, float_up
from discreet.accounting.comparison import theorems
from discreet.accounting.comparison.result import NO_ROOM, NOT_PURE, Found, MethodResult, timed
from discreet.accounting.losses.certified import Parts, epsilon_upper
from discreet.accounting.losses.loss import Loss

__all__ = ["advanced", "basic", "optimal"]

Steps = list[tuple[Fraction, Fraction, int]]

# How much of delta the steps get, the theorem the rest. Every choice is a proof; the best is kept.
_SHARES: Final = tuple(Fraction(n, 100) for n in (1, 10, 50, 90, 100))


def basic(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up the epsilons of all steps; steps that are not pure share delta equally.

    Claim: an upper bound, by [DR14, Theorem 3.16].

    >>> from discreet.accounting import GaussianLoss
    >>> round(basic(GaussianLoss(noise_multiplier=100) * 100, delta=1e-6).epsilon, 3)
    4.429
    """

    def find(parts: Parts, allowed: Fraction) -> Found:
        steps = _steps(parts, allowed)
        if steps is None:
            return Found(None, NO_ROOM if allowed else NOT_PURE)
        return Found(float(theorems.basic(steps).epsilon), "the sum of the steps' epsilons")

    return timed("basic", find, loss, delta=delta)


def advanced(loss: Loss, *, delta: Number) -> MethodResult:
    """Apply advanced composition, with both of its terms.

    Claim: an upper bound: the textbook's [DR14, Theorem 3.20] for equal steps, and for different
    ones the sharper [KOV17, Theorem 3.5].

    >>> from discreet.accounting import PureLoss
    >>> round(advanced(PureLoss(epsilon=0.01) * 10_000, delta=1e-5).epsilon, 2)
    5.8
    """

    def one(steps: Steps, slack: Fraction) -> float:
        if slack <= 0:
            return math.inf
        if len(steps) > 1:
            return float(theorems.advanced_mixed(steps, slack=slack).epsilon)
        ((e, d, n),) = steps
        return float(theorems.advanced_classic(epsilon=e, delta=d, steps=n, slack=slack).epsilon)

    def find(parts: Parts, allowed: Fraction) -> Found:
        note = "textbook formula" if len(parts) == 1 else "sharper formula for different steps"
        return _best_share(parts, allowed, one, note)

    return timed("advanced", find, loss, delta=delta)


def optimal(loss: Loss, *, delta: Number) -> MethodResult:
    """Apply the best theorem that knows nothing but each step's (epsilon, delta).

    Claim: an upper bound: [KOV17, Theorem 3.3] for equal steps, exact for pure and approximate
    ones; for different ones the lattice bound in the manner of [MV18].

    >>> from discreet.accounting import PureLoss
    >>> round(optimal(PureLoss(epsilon=0.01) * 10_000, delta=1e-5).epsilon, 5)
    4.37638
    """

    def find(parts: Parts, allowed: Fraction) -> Found:
        def one(steps: Steps, _slack: Fraction) -> float:
            if len(steps) > 1:
                return theorems.optimal_mixed(steps, target_delta=allowed)
            ((e, d, n),) = steps
            return theorems.optimal(epsilon=e, delta=d, steps=n, target_delta=allowed)

        return _best_share(parts, allowed, one, "best for steps known by (epsilon, delta) alone")

    return timed("optimal", find, loss, delta=delta)


def _best_share(
    parts: Parts, allowed: Fraction, one: Callable[[Steps, Fraction], float], note: str
) -> Found:
    """Return the best that a theorem for (epsilon, delta) steps gives over ways to share delta."""
    if allowed == 0:
        return Found(None, "at delta = 0 nothing beats the sum of pure epsilons")
    best = math.inf
    for share in _SHARES if any(_is_free(part) for part, _ in parts) else (Fraction(1),):
        steps = _steps(parts, allowed * share)
        if steps is None:
            continue
        slack = allowed - sum((d * n for _, d, n in steps), Fraction(0))
        best = min(best, one(steps, slack))
    return Found(best, note) if best < math.inf else Found(None, NO_ROOM)


def _steps(parts: Parts, allowed: Fraction) -> Steps | None:
    """Return each part's (epsilon, delta, times), the deltas adding up to at most ``allowed``.

    Pure and approximate losses are taken at their word; all others share what is left equally.
    """
    floors = [part.least_delta for part, _ in parts]
    left = allowed - sum((f * n for f, (_, n) in zip(floors, parts, strict=True)), Fraction(0))
    takers = sum(n for part, n in parts if _is_free(part))
    if left < 0 or (takers and left == 0):
        return None
    steps: Steps = []
    for floor, (part, n) in zip(floors, parts, strict=True):
        stated, _ = part.approximate_dp
        delta = floor if isinstance(stated, Fraction) else floor + left / takers
        epsilon = (
            float_up(stated) if isinstance(stated, Fraction) else epsilon_upper(part, delta=delta)
        )
        if not epsilon <= theorems.LARGEST:
            return None
        steps.append((Fraction(epsilon), delta, n))
    return steps


def _is_free(part: Loss) -> bool:
    """Whether the part trades delta for epsilon, so that a delta must be chosen for it."""
    return part.approximate_dp[0] == math.inf
