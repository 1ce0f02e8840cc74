"""What the samples of one channel prove."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from discreet._rates import Counts, Rates, epsilon_lower, rate_lower, rate_upper

__all__ = ["Proof", "Terms", "least_flagged", "prove"]

_STUDIED = 4  # one sample in so many settles what to look for; the others are counted
_SHOWN = 60

Numbers = dict[Hashable, float]
Candidate = tuple[float, "_Event", bool]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is claimed, and the chance with which one channel may refute a true claim."""

    epsilon: float
    delta: float
    alpha: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A lower bound, the event that gave it, and the smallest epsilon that would have shown."""

    epsilon_lower: float
    power: float
    event: str


class _Event(Protocol):
    """A set of things that may be seen."""

    def __contains__(self, seen: Any) -> bool: ...

    def __str__(self) -> str: ...


def prove(first: Sequence[Any], second: Sequence[Any], terms: Terms) -> Proof:
    """Return what the samples of one channel prove of the two tables they were seen for.

    Claim: if samples are independent and the path is (epsilon, delta)-DP, the bound exceeds
    epsilon with probability at most ``terms.alpha``.

    Why: a quarter of the samples settles one event and the table on which it is likelier; the rest
    counts it. Clopper-Pearson bounds [CP34] on its two probabilities are each wrong with
    probability at most alpha / 2, whatever the choice was. :func:`discreet.audit.mechanism` weighs
    thousands of events, for which a few hundred samples of a whole query path are too few.

    >>> terms = Terms(epsilon=1, delta=0, alpha=1e-6)
    >>> prove(["fine"] * 200, ["ValueError"] * 200, terms).epsilon_lower > 1
    True
    """
    studied = len(first) // _STUDIED
    event, is_turned = _best(first[:studied], second[:studied])
    likely, unlikely = (second, first) if is_turned else (first, second)
    hits = [sum(seen in event for seen in side[studied:]) for side in (likely, unlikely)]
    trials = len(first) - studied
    low = rate_lower(np.array(hits[:1]), trials=trials, alpha=terms.alpha / 2)
    high = rate_upper(np.array(hits[1:]), trials=trials, alpha=terms.alpha / 2)
    return Proof(
        epsilon_lower=float(epsilon_lower(low, high, delta=terms.delta)[0]),
        power=least_flagged(trials, terms),
        event=f"{event}: {hits[0]} of {trials} times, otherwise {hits[1]}",
    )


def least_flagged(trials: int, terms: Terms) -> float:
    """Return the smallest epsilon flagged in 95 of 100 runs, of a leak that always shows.

    The leak is an event that is certain of one table and has probability exp(-epsilon) of the
    other. Infinite where not even an event that tells everything would be enough.

    >>> 1 < least_flagged(200, Terms(epsilon=1, delta=0, alpha=1e-5)) < 2
    True
    >>> least_flagged(10, Terms(epsilon=1, delta=0, alpha=1e-5))
    inf
    """
    from scipy.special import betaincinv

    hits = np.arange(trials)
    low = rate_lower(np.array([trials]), trials=trials, alpha=terms.alpha / 2)
    high = rate_upper(hits, trials=trials, alpha=terms.alpha / 2)
    flagged = hits[epsilon_lower(low, high, delta=terms.delta) > terms.epsilon]
    if not len(flagged):
        return math.inf
    most = int(flagged[-1])
    rate = float(betaincinv(most + 1, trials - most, 0.05))  # P[at most so many hits] = 95%
    return -math.log(rate)


@final
@dataclass(frozen=True, slots=True)
class _OneOf:
    """One of some outcomes."""

    outcomes: frozenset[Hashable]

    def __contains__(self, seen: Hashable) -> bool:
        return bool(self.outcomes) and seen in self.outcomes  # numbers by place have no hash

    def __str__(self) -> str:
        shown = sorted(repr(one) for one in self.outcomes) or ["nothing that differs"]
        text = shown[0] if len(shown) == 1 else f"{shown[0]} or {len(shown) - 1} others"
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


@final
@dataclass(frozen=True, slots=True)
class _Above:
    """A number of an answer above a threshold, or not; one that is missing is below all."""

    place: Hashable
    threshold: float
    is_above: bool

    def __contains__(self, seen: Numbers) -> bool:
        return (_at(seen, self.place) > self.threshold) == self.is_above

    def __str__(self) -> str:
        parts = self.place if isinstance(self.place, tuple) else (self.place,)
        name = (" ".join(str(part) for part in parts if part) or "answer")[:_SHOWN]
        if self.threshold == -math.inf:
            return f"{name} is {'there' if self.is_above else 'missing'}"
        return f"{name} {'>' if self.is_above else '<='} {self.threshold:.6g}"


def _best(first: Sequence[Any], second: Sequence[Any]) -> tuple[_Event, bool]:
    """Return the event that promises most, and whether the second table has more of it."""
    candidates = _half_lines if isinstance(first[0], dict) else _outcomes
    nothing: _Event = _OneOf(frozenset())
    found = [(0.0, nothing, False), *candidates(first, second), *_turned(candidates(second, first))]
    _, event, is_turned = max(found, key=lambda one: one[0])
    return event, is_turned


def _turned(found: Iterator[Candidate]) -> Iterator[Candidate]:
    return ((score, event, True) for score, event, _ in found)


def _outcomes(likely: Sequence[Any], unlikely: Sequence[Any]) -> Iterator[Candidate]:
    """Yield the set of all outcomes that are more frequent of one table."""
    hits, misses = Counter(likely), Counter(unlikely)
    more = frozenset(one for one in hits if hits[one] > misses[one])
    counts = (np.array([sum(side[one] for one in more)]) for side in (hits, misses))
    yield float(_promise(*counts, trials=len(likely))[0]), _OneOf(more), False


def _half_lines(likely: Sequence[Numbers], unlikely: Sequence[Numbers]) -> Iterator[Candidate]:
    """Yield for each number of an answer the best threshold to either side."""
    trials = len(likely)
    for place in dict.fromkeys(at for side in (likely, unlikely) for one in side for at in one):
        sides = [np.sort([_at(seen, place) for seen in side]) for side in (likely, unlikely)]
        both = np.unique(np.concatenate(sides))
        below = [np.searchsorted(side, both, side="right") for side in sides]
        above = [trials - counts for counts in below]
        for is_above, counts in ((False, below), (True, above)):
            scores = _promise(*counts, trials=trials)
            best = np.flatnonzero(scores == scores.max())
            at = int(best[len(best) // 2])
            yield float(scores[at]), _Above(place, _between(both, at), is_above), False


def _between(both: Rates, at: int) -> float:
    """Return a threshold in the middle between two values that were seen, not at the edge."""
    low, high = both[at], both[min(at + 1, len(both) - 1)]
    middle = float(low / 2 + high / 2)
    return middle if low <= middle < high else float(low)


def _promise(hits: Counts, misses: Counts, *, trials: int) -> Rates:
    """Return what an event would prove, were its counts not also those that chose it."""
    low = rate_lower(hits, trials=trials, alpha=0.05)
    high = rate_upper(misses, trials=trials, alpha=0.05)
    return epsilon_lower(low, high, delta=0.0) + 1e-6 * (hits - misses)  # the gap breaks ties


def _at(seen: Numbers, place: Hashable) -> float:
    value = seen.get(place, -math.inf)
    return math.inf if math.isnan(value) else value
