"""What the answers so far cost together, by one accountant after the other."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from discreet.accounting import Loss, comparison
from discreet.service.pages.areas.explorer.company import DELTA, EPSILON

__all__ = ["METHODS", "compared"]

METHODS: Final = (
    ("basic", "Basic", "adds the epsilons up", comparison.basic),
    ("advanced", "Advanced", "trades a little delta for a slower growth; worth it for many small "
     "answers only", comparison.advanced),
    ("renyi", "Rényi", "adds up moments of the loss, which is what training uses most",
     comparison.renyi),
    ("pld", "PLD", "composes the whole law of the loss: the tightest", comparison.pld),
)  # fmt: skip


def compared(losses: Sequence[Loss]) -> dict[str, Any]:
    """Return each method's epsilon after every answer, and a chart of all of them.

    >>> from discreet.accounting import LaplaceLoss
    >>> found = compared([LaplaceLoss(noise_multiplier=2)] * 3)
    >>> found["methods"][0]["epsilon"]
    1.5
    """
    curves: dict[str, list[float | None]] = {name: [0.0] for name, *_ in METHODS}
    together: Loss | None = None
    for loss in losses:
        together = loss if together is None else together + loss
        for name, epsilon in _epsilons(together).items():
            curves[name].append(epsilon)
    steps = list(range(len(losses) + 1))
    return {
        "methods": [
            {"name": name, "label": label, "told": told, "epsilon": curves[name][-1]}
            for name, label, told, _ in METHODS
        ],
        "chart": {
            "x": steps,
            "series": [
                {"label": label, "y": curves[name], "points": False} for name, label, *_ in METHODS
            ]
            + [{"label": "The budget", "y": [EPSILON] * len(steps), "dash": True}],
            "x_label": "answers",
            "y_label": "epsilon",
            "height": 220,
        },
    }


@lru_cache(maxsize=4096)
def _epsilons(loss: Loss) -> dict[str, float | None]:
    """Ask all of them; visitors who ask alike share what is found."""
    return {name: method(loss, delta=DELTA).epsilon for name, _, _, method in METHODS}
