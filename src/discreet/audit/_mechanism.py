"""Audit a mechanism by counting."""

from collections.abc import Callable
from typing import Literal, TypeVar

import numpy as np

from discreet._exact import Number, nonnegative, probability, whole
from discreet._rates import epsilon_lower, rate_lower, rate_upper
from discreet.audit._events import Event, half_lines, outcome_sets
from discreet.audit._outputs import Outputs, Values, collect, encode
from discreet.audit._result import Audit
from discreet.errors import ParameterError

__all__ = ["mechanism"]

T = TypeVar("T")


def mechanism(
    fn: Callable[..., object],
    *,
    pair: tuple[T, T],
    epsilon: Number,
    delta: Number,
    samples: int = 100_000,
    confidence: Number = 0.999,
    batch: bool = False,
) -> Audit:
    """Prove a lower bound on the epsilon of ``fn`` between two neighbouring inputs.

    ``fn(value)`` is called ``samples`` times for each input of the pair; with ``batch=True``,
    ``fn(value, n)`` is called once for each and returns n outputs. Outputs may be numbers, strings,
    booleans, tuples or arrays.

    Claim: if calls are independent and ``fn`` is (epsilon, delta)-DP for this pair, the result
    fails with probability at most 1 - ``confidence``, however the outputs are distributed. A pass
    proves nothing.

    Why: a quarter of the samples proposes events (half-lines for numbers; for anything, sets of
    outcomes ordered by their likelihood ratio), a quarter picks one event and the direction, and
    the other half certifies that one: Clopper-Pearson bounds [CP34] on its two probabilities, each
    wrong with probability at most (1 - confidence) / 2 independently of the choice, so by the union
    bound log((p - delta) / q) is a lower bound. It cannot exceed about log(samples / 3.7) at 95%.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> def noisy(value, n):
    ...     return value + rng.laplace(scale=1, size=n)   # insecure: an example, not a mechanism
    >>> found = mechanism(noisy, pair=(0, 1), epsilon=1, delta=0, batch=True)
    >>> found.passed, found.epsilon_lower > 0.9
    (True, True)
    >>> mechanism(noisy, pair=(0, 2), epsilon=1, delta=0, batch=True).passed
    False
    """
    nonnegative(epsilon, name="epsilon")
    failure = probability(delta, name="delta", zero=True)
    count = whole(samples, name="samples", minimum=100)
    alpha = float(1 - probability(confidence, name="confidence"))
    _require_pair(pair)
    outputs = encode(*(collect(fn, value, count, batch=batch) for value in pair))

    event, likelier = _choose(outputs, delta=float(failure), alpha=alpha)
    sides = (outputs.first, outputs.second)
    likely, unlikely = (side[count // 2 :] for side in _turned(sides, likelier))
    trials = len(likely)
    low = rate_lower(np.array([event.count(likely)]), trials=trials, alpha=alpha / 2)
    high = rate_upper(np.array([event.count(unlikely)]), trials=trials, alpha=alpha / 2)
    return Audit(
        epsilon_lower=float(epsilon_lower(low, high, delta=float(failure))[0]),
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        samples=count,
        event=event.describe(outputs.labels),
        likelier=likelier,
        rate_lower=float(low[0]),
        rate_upper=float(high[0]),
    )


Side = Literal["first", "second"]


def _turned(sides: tuple[Values, Values], likelier: Side) -> tuple[Values, Values]:
    return sides if likelier == "first" else (sides[1], sides[0])


def _choose(outputs: Outputs, *, delta: float, alpha: float) -> tuple[Event, Side]:
    """Return the event and direction that promise most, from the first half of the samples.

    Events are proposed on one quarter and judged on another: judged where they were proposed, the
    set of all values seen once would look perfect and be worthless.
    """
    half, quarter = len(outputs.first) // 2, len(outputs.first) // 4
    # About a thousand events compete; without this a rare one with lucky counts tends to win.
    strict = alpha / 2000
    best: tuple[float, Event, Side] | None = None
    directions: tuple[Side, Side] = ("first", "second")
    for likelier in directions:
        likely, unlikely = _turned((outputs.first, outputs.second), likelier)
        proposed = likely[:quarter], unlikely[:quarter]
        families = outcome_sets(*proposed)
        if outputs.is_ordered:
            families += half_lines(*proposed)
        for family in families:
            trials = half - quarter
            low = rate_lower(family.counts(likely[quarter:half]), trials=trials, alpha=strict)
            high = rate_upper(family.counts(unlikely[quarter:half]), trials=trials, alpha=strict)
            # The gap breaks ties among the many events that prove nothing yet.
            scores = epsilon_lower(low, high, delta=delta) + 1e-9 * (low - high)
            index = int(np.argmax(scores))
            if best is None or scores[index] > best[0]:
                best = float(scores[index]), family.member(index), likelier
    assert best is not None  # every collection of outputs has at least one outcome
    return best[1], best[2]


def _require_pair(pair: object) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        message = "pair must be a tuple of two neighbouring inputs, such as pair=(0, 1)."
        raise ParameterError(message, parameter="pair")
