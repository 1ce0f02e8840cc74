"""The events an audit looks at: half-lines for numbers, sets of outcomes for everything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet._rates import Counts
from discreet.audit._outputs import Values

__all__ = ["Event", "EventFamily", "half_lines", "outcome_sets"]

_CANDIDATES = 200  # of each family; neighbouring candidates are then nearly the same event
_SHOWN = 5

Grid: TypeAlias = NDArray[np.int64]


class Event(Protocol):
    """A set of outputs."""

    def count(self, values: Values) -> int:
        """Return how many of ``values`` are in the event."""
        ...

    def describe(self, labels: Sequence[object] | None) -> str:
        """Say in words which outputs are in the event."""
        ...


class EventFamily(Protocol):
    """A one-parameter family of events that can be counted all at once."""

    def counts(self, values: Values) -> Counts:
        """Return for every member how many of ``values`` it contains."""
        ...

    def member(self, index: int) -> Event:
        """Return one event."""
        ...


@dataclass(frozen=True, slots=True)
class HalfLine:
    """All outputs on one side of a threshold, the threshold included."""

    side: Literal["<=", ">="]
    threshold: float

    def count(self, values: Values) -> int:
        hits = values <= self.threshold if self.side == "<=" else values >= self.threshold
        return int(np.count_nonzero(hits))

    def describe(self, labels: Sequence[object] | None) -> str:
        return f"output {self.side} {self.threshold:.10g}"


@dataclass(frozen=True, slots=True)
class HalfLines:
    """Half-lines on one side, one for each threshold."""

    side: Literal["<=", ">="]
    thresholds: Values

    def counts(self, values: Values) -> Counts:
        ordered = np.sort(values)
        if self.side == "<=":
            return np.searchsorted(ordered, self.thresholds, side="right").astype(np.int64)
        below = np.searchsorted(ordered, self.thresholds, side="left")
        return (len(ordered) - below).astype(np.int64)

    def member(self, index: int) -> Event:
        return HalfLine(self.side, self.thresholds[index].item())


@dataclass(frozen=True, slots=True)
class OutcomeSet:
    """A finite set of outcomes."""

    outcomes: Values

    def count(self, values: Values) -> int:
        return int(np.count_nonzero(np.isin(values, self.outcomes)))

    def describe(self, labels: Sequence[object] | None) -> str:
        names = self.outcomes.tolist()
        if labels is not None:
            names = [labels[code] for code in names]
        shown = ", ".join(_short(name) for name in names[:_SHOWN])
        if len(names) > _SHOWN:
            return f"output among {len(names)} outcomes such as {shown}"
        return f"output = {shown}" if len(names) == 1 else f"output among {shown}"


@dataclass(frozen=True, slots=True)
class OutcomeSets:
    """Growing sets of outcomes, the most telling first."""

    ranked: Values
    sizes: Grid

    def counts(self, values: Values) -> Counts:
        order = np.argsort(self.ranked)
        ordered = self.ranked[order]
        at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
        known = ordered[at] == values
        ranks = np.sort(order[at[known]])
        return np.searchsorted(ranks, self.sizes, side="left").astype(np.int64)

    def member(self, index: int) -> Event:
        return OutcomeSet(self.ranked[: self.sizes[index]])


def half_lines(likely: Values, unlikely: Values) -> list[EventFamily]:
    """Return half-lines to both sides, with thresholds where the samples lie."""
    ordered = np.unique(np.concatenate([likely, unlikely]))
    thresholds = ordered[_spread(len(ordered))]
    return [HalfLines("<=", thresholds), HalfLines(">=", thresholds)]


def outcome_sets(likely: Values, unlikely: Values) -> list[EventFamily]:
    """Return the sets of outcomes that a likelihood-ratio test would choose."""
    outcomes, codes = np.unique(np.concatenate([likely, unlikely]), return_inverse=True)
    hits = np.bincount(codes[: len(likely)], minlength=len(outcomes))
    misses = np.bincount(codes[len(likely) :], minlength=len(outcomes))
    # Half a count each tames outcomes seen once; among equals the frequent come first.
    ratio = (hits + 0.5) / (misses + 0.5)
    ranked = outcomes[np.lexsort((-hits, -ratio))]
    return [OutcomeSets(ranked, _spread(len(ranked)) + 1)]


def _spread(length: int) -> Grid:
    """Return indices into ``length`` places: dense at both ends, where the rare events are."""
    if length <= 2 * _CANDIDATES:
        return np.arange(length)
    geometric = np.geomspace(1, length, _CANDIDATES) - 1
    even = np.linspace(0, length - 1, _CANDIDATES)
    places = np.concatenate([geometric, length - 1 - geometric, even])
    return np.unique(np.clip(np.rint(places), 0, length - 1).astype(np.int64))


def _short(name: object) -> str:
    text = f"{name:.10g}" if isinstance(name, float) else repr(name)
    return text if len(text) <= 40 else text[:37] + "..."
