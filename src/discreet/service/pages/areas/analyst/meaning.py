"""What a guarantee means to somebody with a prior belief, in sentences."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from discreet._words import of_100
from discreet.accounting import Loss, risk
from discreet.privacy import Guarantee, posterior, strength, success
from discreet.service.pages.page import PageCall
from discreet.service.pages.rendering.numbers import short

__all__ = ["meaning", "read_prior"]

_EVEN: Final = 0.5


def read_prior(call: PageCall) -> float:
    """Return the belief that the reader chose, which is told in percent."""
    return call.number("prior", 10.0, least=0.01, most=99.99) / 100


def meaning(
    guarantee: Guarantee, *, loss: Loss | None, neighbours: str, prior: float
) -> Mapping[str, Any]:
    """Return the numbers, and the sentences that say them.

    The ``loss`` of an answer says more exactly than its guarantee how often somebody guesses right.

    >>> told = meaning(Guarantee(epsilon=0.5), loss=None, neighbours="add_remove", prior=0.1)
    >>> print(told["sentences"][0])
    Somebody who knows everyone else's data, and gives your being in the data a chance of 10%
    beforehand, gives it at most 15.5% afterwards.
    """
    guessed = partial(success, guarantee) if loss is None else partial(risk.success, loss)
    after, before = posterior(guarantee, prior=prior), max(prior, 1 - prior)
    right, even = (min(guessed(prior=one), 1.0) for one in (prior, _EVEN))
    what = "one of two versions of your data"
    if neighbours == "add_remove":
        what = "your being in the data"
    accident = f", but for an accident of chance {short(float(guarantee.delta))} at most"
    return {
        "epsilon": float(guarantee.epsilon),
        "delta": float(guarantee.delta),
        "prior": prior,
        "believed_after": after,
        "right_before": before,
        "right_after": right,
        "right_from_even": even,
        "strength": strength(guarantee),
        "sentences": [
            f"Somebody who knows everyone else's data, and gives {what} a chance of "
            f"{of_100(prior, up=False)}% beforehand, gives it at most {of_100(after, up=True)}% "
            f"afterwards{accident if guarantee.delta else ''}.",
            f"Without it they guess right {of_100(before, up=False)} times in 100; with it, at "
            f"most {of_100(right, up=True)} times.",
            f"Who starts from an even guess is right at most {of_100(even, up=True)} times in 100.",
        ],
    }
