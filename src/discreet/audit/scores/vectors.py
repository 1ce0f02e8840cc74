"""Features of outputs that hold many numbers: sums, extremes, runs, distances to the two inputs."""

from collections.abc import Callable

import numpy as np

from discreet.audit.outputs import Reader, ReadOutputs
from discreet.audit.scores.features import Feature, Values

__all__ = ["vector_features"]

_SORTABLE = 40  # coordinates up to which every order statistic is looked at


def vector_features(reader: Reader, pair: tuple[object, object]) -> list[Feature]:
    """Return summaries of the numbers in an output, none where there is one number only."""
    items = reader.items
    if len(items) < 2:
        return []

    def of_items(name: str, summary: Callable[[Values], Values]) -> Feature:
        return Feature(
            name=name,
            values=lambda reading: summary(reading.numbers[:, items]),
            is_ordered=name not in _PATTERNS,
        )

    found = [of_items(name, summary) for name, summary in _SUMMARIES.items()]
    if len(items) <= _SORTABLE:
        found += [
            of_items(f"entry {place} of the sorted output", _order_statistic(place))
            for place in range(1, len(items) - 1)
        ]
    found += [of_items(name, pattern) for name, pattern in _PATTERNS.items()]
    return found + _distances(reader, pair)


def _order_statistic(place: int) -> Callable[[Values], Values]:
    def values(x: Values) -> Values:
        return np.asarray(np.partition(_filled(x, np.inf), place, axis=1)[:, place])

    return values


def _first(hits: Values) -> Values:
    """Return the place of the first hit in each row, or the length where there is none."""
    return np.asarray(np.where(hits.any(axis=1), hits.argmax(axis=1), hits.shape[1]))


def _last(x: Values) -> Values:
    """Return the last number of each row that is there."""
    there = ~np.isnan(x)
    at = x.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    return np.asarray(x[np.arange(len(x)), at])


def _longest_run(x: Values) -> Values:
    longest, run = np.ones(len(x)), np.ones(len(x))
    for change in _changes(x).T:
        run = np.where(change, 1, run + 1)
        longest = np.maximum(longest, run)
    return longest


def _changes(x: Values) -> Values:
    filled = np.where(np.isnan(x), 0.0, x)
    return np.asarray(filled[:, 1:] != filled[:, :-1])


def _filled(x: Values, value: float) -> Values:
    return np.where(np.isnan(x), value, x)


_SUMMARIES: dict[str, Callable[[Values], Values]] = {
    "the sum of the output": lambda x: _filled(x, 0.0).sum(axis=1),
    "the sum of absolute values": lambda x: np.abs(_filled(x, 0.0)).sum(axis=1),
    "the sum of squares": lambda x: (_filled(x, 0.0) ** 2).sum(axis=1),
    "the greatest entry": lambda x: _filled(x, -np.inf).max(axis=1),
    "the least entry": lambda x: _filled(x, np.inf).min(axis=1),
    "the place of the greatest entry": lambda x: _filled(x, -np.inf).argmax(axis=1),
    "the place of the least entry": lambda x: _filled(x, np.inf).argmin(axis=1),
    "the variance of the output": lambda x: _filled(x, 0.0).var(axis=1),
    "the number of entries": lambda x: (~np.isnan(x)).sum(axis=1),
    "the number of zeros": lambda x: (x == 0).sum(axis=1),
    "the number of positive entries": lambda x: (x > 0).sum(axis=1),
    "the number of changes": lambda x: _changes(x).sum(axis=1),
    "the place of the first change": lambda x: _first(_changes(x)),
    "the place of the first non-zero": lambda x: _first(_filled(x, 0.0) != 0),
    "the place of the first positive": lambda x: _first(x > 0),
    "the parity of the number of positive entries": lambda x: (x > 0).sum(axis=1) % 2,
    "the sum of the output modulo 2": lambda x: np.round(_filled(x, 0.0).sum(axis=1) % 2, 3) % 2,
    "the sum of the output modulo 3": lambda x: np.round(_filled(x, 0.0).sum(axis=1) % 3, 3) % 3,
    "the number of repeated entries": lambda x: (np.diff(np.sort(x, axis=1), axis=1) == 0).sum(
        axis=1
    ),
    "the longest run of equal entries": lambda x: _longest_run(x),
    "the median of the output": lambda x: np.median(_filled(x, 0.0), axis=1),
    "the last entry": lambda x: _last(x),
    "the number of rises": lambda x: (np.diff(_filled(x, 0.0), axis=1) > 0).sum(axis=1),
}


def _coded(hits: Values) -> Values:
    """Return one number for each row of hits, equal for equal rows."""
    weights = np.random.default_rng(1).integers(1, 2**62, hits.shape[1])
    with np.errstate(over="ignore"):
        return np.asarray(hits.astype(np.int64) @ weights)


_PATTERNS: dict[str, Callable[[Values], Values]] = {
    "the pattern of missing entries": lambda x: _coded(np.isnan(x)),
    "the pattern of signs": lambda x: _coded(x > 0),
    "the order of the first entries": lambda x: _coded(np.argsort(_filled(x, 0.0)[:, :5])),
}


def _distances(reader: Reader, pair: tuple[object, object]) -> list[Feature]:
    """Return how much closer an output lies to one input, where both have its shape."""
    items, centres = reader.items, []
    for value in pair:
        try:
            centre = np.asarray(value, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError, OverflowError):
            return []
        if centre.shape != items.shape or not np.isfinite(centre).all():
            return []
        centres.append(centre)
    one, two = centres

    def along(reading: ReadOutputs) -> Values:
        return np.asarray(reading.numbers[:, items] @ (two - one))

    def closer(reading: ReadOutputs) -> Values:
        moved = np.flatnonzero(one != two)
        x = reading.numbers[:, items[moved]]
        gap = np.abs(x - one[moved]).sum(axis=1) - np.abs(x - two[moved]).sum(axis=1)
        # Rounded, because the last bits of a difference of floats tell its size: that is the
        # business of low_bits.
        size = float(np.abs(two - one).sum()) or 1.0
        return np.asarray(np.round(gap / size, 6))

    return [
        Feature(name="the output along the difference of the inputs", values=along),
        Feature(name="how much closer the output is to the second input", values=closer),
    ]
