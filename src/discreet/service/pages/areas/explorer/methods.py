"""What answers cost together, by one accountant after the other: so far, and if this went on."""

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any, Final

from discreet.accounting import Loss, comparison
from discreet.service.pages.areas.explorer.company import DELTA, EPSILON

__all__ = ["METHODS", "ahead", "so_far"]

METHODS: Final = (
    ("basic", "Basic", "adds the epsilons up", comparison.basic),
    ("advanced", "Advanced", "pays for its theorem first: good for many small answers only",
     comparison.advanced),
    ("renyi", "Rényi", "adds up moments of the loss", comparison.renyi),
    ("pld", "PLD", "composes all of the loss: the tightest", comparison.pld),
)  # fmt: skip
_TIMES: Final = (1, 3, 10, 30, 100)


def so_far(losses: Sequence[Loss]) -> list[dict[str, Any]]:
    """Return each method's epsilon of all answers together.

    >>> from discreet.accounting import LaplaceLoss
    >>> so_far([LaplaceLoss(noise_multiplier=2)] * 3)[0]["epsilon"]
    1.5
    """
    found = _epsilons(reduce(add, losses)) if losses else dict.fromkeys(_NAMES, 0.0)
    return [
        {"name": name, "label": label, "told": told, "epsilon": found[name]}
        for name, label, told, _ in METHODS
    ]


def ahead(loss: Loss) -> dict[str, Any]:
    """Return a chart of what up to a hundred answers like one would cost, by each method.

    >>> from discreet.accounting import LaplaceLoss
    >>> chart = ahead(LaplaceLoss(noise_multiplier=20))
    >>> [round(one["y"][-1], 1) for one in chart["series"]]
    [5.0, 2.9, 2.3, 2.2, 5.0]
    """
    found = [_epsilons(loss * times) for times in _TIMES]
    series = [{"label": label, "y": [one[name] for one in found]} for name, label, _, _ in METHODS]
    return {
        "x": list(_TIMES),
        "x_log": True,
        "series": [*series, {"label": "Budget", "y": [EPSILON] * len(_TIMES), "dash": True}],
        "x_label": "answers like this one",
        "y_label": "epsilon",
        "height": 240,
    }


_NAMES: Final = tuple(name for name, *_ in METHODS)


@lru_cache(maxsize=4096)
def _epsilons(loss: Loss) -> dict[str, float | None]:
    """Ask all of them; visitors who ask alike share what is found."""
    return {name: method(loss, delta=DELTA).epsilon for name, _, _, method in METHODS}
