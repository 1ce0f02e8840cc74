"""Trade-off curves: how often an attacker must miss, to cry wolf at most so often."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

from discreet.accounting import ApproximateLoss, Loss, tradeoff
from discreet.mechanisms import Gaussian, Laplace
from discreet.privacy import Guarantee, success
from discreet.service.pages.areas.gallery.drawing import computed
from discreet.service.pages.page import PageCall

__all__ = ["tradeoffs"]

_ALARMS: Final = tuple(i / 40 for i in range(41))
_FEW: Final = 2  # the place of 5%


async def tradeoffs(call: PageCall) -> Mapping[str, Any]:
    """Show the curves of two mechanisms with one promise, and of the promise itself."""
    epsilon = round(call.number("epsilon", 1.0, least=0.1, most=5), 2)
    digits = round(call.number("digits", 3, least=1, most=9))
    return {
        "epsilon": epsilon,
        "digits": digits,
        "delta": 10.0**-digits,
        **await computed(partial(_curves, epsilon, digits)),
    }


@lru_cache(maxsize=256)
def _curves(epsilon: float, digits: int) -> dict[str, Any]:
    delta = 10.0**-digits
    losses: dict[str, Loss] = {
        "the promise alone": ApproximateLoss(epsilon=epsilon, delta=delta),
        "Gaussian noise": Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=1).loss,
        "Laplace noise": Laplace.calibrated(epsilon=epsilon, sensitivity=1).loss,
    }
    curves = [
        {"title": title, "misses": tradeoff(loss, false_positive_rates=_ALARMS).tolist()}
        for title, loss in losses.items()
    ]
    return {
        "alarms": list(_ALARMS),
        "guessing": [1 - a for a in _ALARMS],
        "curves": curves,
        "few": {"alarms": _ALARMS[_FEW], "misses": [one["misses"][_FEW] for one in curves]},
        "success": success(Guarantee(epsilon=epsilon, delta=delta), prior=0.5),
    }
