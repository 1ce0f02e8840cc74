"""What one accountant says about one loss, and how long it took."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, final

from discreet._exact import Number, probability
from discreet.accounting.losses.certified import Parts
from discreet.accounting.losses.loss import Loss

__all__ = ["NOT_PURE", "NO_ROOM", "Found", "MethodResult", "timed"]

NOT_PURE: Final = "at delta = 0 it has nothing to say of steps that are not pure"
NO_ROOM: Final = "the chance that a step reveals its input outright exceeds delta"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """What one accountant says; ``is_bound`` is False for what is only an estimate.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.accounting.comparison import basic
    >>> basic(PureLoss(epsilon=1) * 3, delta=0).epsilon
    3.0
    """

    name: str
    epsilon: float | None
    seconds: float
    is_bound: bool
    note: str


class Found(NamedTuple):
    """An epsilon, None where the method does not apply, and a note that says why or how."""

    epsilon: float | None
    note: str


def timed(
    name: str,
    find: Callable[[Parts, Fraction], Found],
    loss: Loss,
    *,
    delta: Number,
    is_bound: bool = True,
) -> MethodResult:
    """Ask one accountant about the parts of a loss, by the clock."""
    allowed = probability(delta, name="delta", zero=True)
    parts = loss.parts
    start = time.perf_counter()
    epsilon, note = find(parts, allowed) if parts else Found(0.0, "nothing was done")
    if epsilon is not None and not math.isfinite(epsilon):
        epsilon, note = None, "it finds no finite epsilon at this delta"
    seconds = time.perf_counter() - start
    return MethodResult(name=name, epsilon=epsilon, seconds=seconds, is_bound=is_bound, note=note)
