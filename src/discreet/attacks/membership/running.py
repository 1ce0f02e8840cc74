"""The attack on a model: the door to membership inference."""

from collections.abc import Callable
from typing import TypeAlias

from discreet._exact import Number
from discreet.attacks.membership.certifying import reported
from discreet.attacks.membership.observations import Floats, Observations, floats
from discreet.attacks.membership.scores import lira_online
from discreet.attacks.report import AttackReport
from discreet.errors import DataError
from discreet.privacy import Guarantee

__all__ = ["Attack", "run"]

Attack: TypeAlias = Callable[[Observations], Floats]
"""Scores all examples, larger where one was rather a member; it must not look at ``members``."""


def run(
    seen: Observations,
    *,
    attack: Attack | None = None,
    false_positive_rate: Number = 0.001,
    guarantee: Guarantee | None = None,
    confidence: Number = 0.95,
) -> AttackReport:
    """Find out who was in the training of a model, and how surely.

    ``attack`` is one of this folder, :func:`lira_online` if none, or a function of your own.
    ``guarantee`` is what the training promised: the report says how much it allows. The threshold
    is chosen on the non-members so that the rate of false positives is certified, as
    :func:`certified_rate` proves for examples that are independent given the model. For those of
    one training that is an approximation: all of them shaped the same model, each a little.

    >>> import numpy as np
    >>> from discreet.attacks.membership import loss_threshold, observe
    >>> dice = np.random.default_rng(0)
    >>> def train(included):  # remembers what it has seen, on top of how easy it is
    ...     return easy + 2 * included + dice.normal(0, 0.5, 4000)
    >>> easy = dice.normal(0, 3, 4000)
    >>> seen = observe(train, examples=4000, shadows=8)
    >>> report = run(seen, false_positive_rate=0.01)
    >>> print(report.summary)
    lira_online finds 89.1% of the members while it accuses at most 1% of the others.
    >>> run(seen, attack=loss_threshold, false_positive_rate=0.01).success < 0.1
    True
    """
    attack = lira_online if attack is None else attack
    name = getattr(attack, "__name__", type(attack).__name__)
    scores = floats(attack(seen), f"scores of {name}")
    if scores.shape != seen.members.shape:
        raise DataError(f"{name} must give one score to each of {len(seen.members)} examples.")
    return reported(
        scores[seen.members],
        scores[~seen.members],
        subject=name,
        false_positive_rate=false_positive_rate,
        confidence=confidence,
        guarantee=guarantee,
        facts={"attack": name, "shadow_models": len(seen.included) - 1},
    )
