"""What a guarantee means to somebody with a prior belief, in sentences."""

from collections.abc import Mapping
from typing import Any

from discreet._words import of_100
from discreet.privacy import (
    Guarantee,
    odds,
    posterior_bound,
    strength,
    success,
)
from discreet.service.pages.rendering.numbers import short

__all__ = ["meaning"]


def meaning(*, epsilon: float, delta: float, neighbours: str, prior: float) -> Mapping[str, Any]:
    """Return the numbers, and the sentences that say them.

    >>> told = meaning(epsilon=0.5, delta=0.0, neighbours="add_remove", prior=0.1)
    >>> print(told["sentences"][0])
    Somebody who knows everyone else's data and beforehand gives a chance of 10% to your being in
    the data gives it at most 15.5% afterwards.
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta)
    after, right = posterior_bound(guarantee, prior=prior), success(guarantee, prior=prior)
    before, chances = max(prior, 1 - prior), odds(guarantee)
    what = (
        "your being in the data"
        if neighbours == "add_remove"
        else "one of two versions of your data"
    )
    yes, no = of_100(chances.with_you, up=True), of_100(chances.without_you, up=False)
    accident = f" But for an accident whose chance is at most {short(delta)}." if delta else ""
    return {
        "epsilon": epsilon,
        "delta": delta,
        "prior": prior,
        "believed_after": float(after),
        "right_before": before,
        "right_after": right,
        "with_you": chances.with_you,
        "without_you": chances.without_you,
        "strength": strength(guarantee),
        "sentences": [
            "Somebody who knows everyone else's data and beforehand gives a chance of "
            f"{of_100(prior, up=False)}% to {what} gives it at most {of_100(after, up=True)}% "
            f"afterwards.{accident}",
            f"Guessing, they are right {of_100(before, up=False)} times in 100 without the answer, "
            f"and at most {of_100(right, up=True)} times with it.",
            f"At most {yes} of 100 possible answers make them believe it when it is so; {no} of "
            "100 do when it is not.",
        ],
    }
