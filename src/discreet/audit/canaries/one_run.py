"""Audit a trainer in one run."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._exact import Number, nonnegative, plain, probability, whole
from discreet.accounting import Loss
from discreet.accounting import epsilon as epsilon_of
from discreet.audit.canaries.found import TrainingAudit
from discreet.audit.canaries.guessing import Coins, Guesses, Scores, plan, right_guesses
from discreet.audit.canaries.power import distance_seen, smallest_flagged
from discreet.audit.canaries.shapes import GaussianShape, Shape, is_refuted, mu_proved, shape_of
from discreet.audit.canaries.tails import epsilon_proved, tail_upper
from discreet.errors import DataError, ParameterError

__all__ = ["training"]

_NO_DELTA = 1e-6  # what a claim of delta = 0 is planned for: Gaussian scores have some


def training(
    train: Callable[[Coins], Any],
    *,
    delta: Number,
    epsilon: Number | None = None,
    loss: Loss | None = None,
    canaries: int = 10_000,
    confidence: Number = 0.95,
    seed: int | None = None,
) -> TrainingAudit:
    """Prove a lower bound on the epsilon of a trainer from one run with many canaries.

    ``train(included)`` is called once, with a boolean for each canary: it trains with those
    canaries and returns a score for each of all, the higher the more it looks included. Anything
    may be a score: a product of the updates with the canary's direction, or minus its loss.
    Claimed is ``epsilon`` at ``delta``, or a whole ``loss``, of which the trade-off curve is
    tested. ``seed`` fixes the coins, for an example that prints the same each time.

    Claim: if the trainer is as private as claimed when any one canary is added or removed, the
    audit fails with probability at most 1 - ``confidence``, however the scores are made and
    however they depend on each other.

    Why: the canaries with the highest and lowest scores are guessed, and the chance of so many
    right guesses is bounded by theorem 2 of docs/proofs/one_run_auditing.md for an epsilon, after
    [SNJ23], and by theorem 3 for a curve, after [MMC24]. How many are guessed is settled before.

    >>> rng = np.random.default_rng(7)
    >>> def noisy_sum(included):           # each canary in a direction of its own
    ...     return included + rng.normal(scale=0.6, size=len(included))
    >>> found = training(noisy_sum, epsilon=2, delta=1e-5, seed=7)   # its true epsilon is 8
    >>> found.passed, found.epsilon_lower > 3
    (False, True)
    >>> training(noisy_sum, epsilon=8.1, delta=1e-5, seed=7).passed
    True
    """
    count = whole(canaries, name="canaries", minimum=16)
    failure = float(probability(delta, name="delta", zero=True))
    alpha = float(1 - probability(confidence, name="confidence"))
    claimed, shape = _claim(epsilon, loss, delta=failure)
    test = _Test(canaries=count, epsilon=float(claimed), delta=failure, shape=shape)
    mu = _mu(float(claimed), delta=failure or _NO_DELTA)
    chosen = plan(canaries=count, mu=mu, alpha=alpha, proved=test.mu if shape else test.proved)

    coins = np.random.default_rng(seed).random(count) < 0.5
    scores = _scores(train(coins.copy()), count)

    seen = min(1.0, max(0.0, distance_seen(scores, coins) / mu))
    rights = [right_guesses(scores, coins, guesses) for guesses in chosen]
    gaussian = GaussianShape(max(map(test.mu, rights, chosen)))
    return TrainingAudit(
        epsilon_lower=max(map(test.proved, rights, chosen)),
        gaussian=gaussian.epsilon(delta=failure) if failure else None,
        epsilon=claimed,
        delta=plain(delta, name="delta"),
        confidence=plain(confidence, name="confidence"),
        power=min(test.power(each, seen) for each in chosen if each.included == each.left_out),
        canaries=count,
        guesses=chosen[0].total,
        right=rights[0],
        is_refuted=any(map(test.refutes, rights, chosen)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """What so many right guesses prove about a claim."""

    canaries: int
    epsilon: float
    delta: float
    shape: Shape | None

    def proved(self, right: int, guesses: Guesses) -> float:
        failures = guesses.pool(self.canaries) * self.delta
        return epsilon_proved(right, guesses=guesses.total, failures=failures, alpha=guesses.alpha)

    def mu(self, right: int, guesses: Guesses) -> float:
        pool = guesses.pool(self.canaries)
        return mu_proved(right, guesses=guesses.total, pool=pool, alpha=guesses.alpha)

    def refutes(self, right: int, guesses: Guesses) -> bool:
        pool, total = guesses.pool(self.canaries), guesses.total
        failures = pool * self.delta
        bound = tail_upper(right, guesses=total, epsilon=self.epsilon, failures=failures)
        # Both are thresholds on one count, so that the lower of the two costs nothing.
        return bound <= guesses.alpha or (
            self.shape is not None
            and is_refuted(self.shape, right, guesses=total, pool=pool, alpha=guesses.alpha)
        )

    def power(self, guesses: Guesses, seen: float) -> float:
        counts = range(guesses.total + 1)
        return smallest_flagged(
            guesses=guesses.total,
            needed=bisect_left(counts, True, key=lambda n: self.refutes(n, guesses)),
            canaries=self.canaries,
            delta=self.delta or _NO_DELTA,
            efficiency=seen,
        )


def _claim(
    epsilon: Number | None, loss: Loss | None, *, delta: float
) -> tuple[Number, Shape | None]:
    """Return the claimed epsilon, and the curve if there is one."""
    if (epsilon is None) == (loss is None):
        raise ParameterError(
            "give either epsilon, which is claimed at delta, or loss, whose whole curve is.",
            parameter="epsilon",
        )
    if loss is None:
        nonnegative(epsilon, name="epsilon")
        return plain(epsilon, name="epsilon"), None
    spent = epsilon_of(loss, delta=delta)
    return spent, shape_of(loss, epsilon=spent)


def _mu(epsilon: float, *, delta: float) -> float:
    """Return the distance of Gaussian noise that has this epsilon at delta."""
    low, high = 0.0, 40.0
    for _ in range(40):
        middle = (low + high) / 2
        within = GaussianShape(middle).epsilon(delta=delta) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return max(low, 1e-3)


def _scores(answer: Any, canaries: int) -> Scores:
    """Return one number for each canary, or refuse."""
    try:
        scores = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last where tensors want gradients
        scores = np.empty((0, 0))
    if scores.shape != (canaries,):
        raise DataError(
            f"train(included) must return one number for each of the {canaries} canaries, also of "
            "those that it left out; it did not."
        )
    # Training that breaks down is an output like any other, at the upper end by convention.
    return np.where(np.isnan(scores), np.inf, scores)
