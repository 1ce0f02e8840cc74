"""Scores that estimate the log-likelihood ratio: sums over features, and tables of two."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, final

import numpy as np

from discreet.audit.outputs import ReadOutputs
from discreet.audit.scores.bins import Binning, fit_bins
from discreet.audit.scores.features import Feature, Values

__all__ = ["Sides", "additive_scores", "rate", "tables_of_two"]

Sides: TypeAlias = tuple[ReadOutputs, ReadOutputs]

_COARSE, _PAIRED = 24, 8  # bins of a feature, alone and in a table of two
_TABLED, _KEPT = 14, 10  # features whose pairs are tried, and pairs that are kept
_ADDED = 120
_TELLING = 4.0  # standard deviations beyond what chance does
_PRIOR = 3.0  # counts added to every bin


@final
@dataclass(frozen=True, slots=True)
class Rated:
    """A feature, its coarse bins, their log-likelihood ratios, and how far those beat chance."""

    feature: Feature
    binning: Binning
    ratios: Values
    strength: float


def rate(feature: Feature, known: Sides) -> Rated:
    """Measure how differently a feature is distributed on the two inputs."""
    first, second = (feature.values(side) for side in known)
    both = np.concatenate([first, second])
    binning = fit_bins(both, is_ordered=feature.is_ordered, bins=_COARSE)
    counts = binning.counts(first), binning.counts(second)
    return Rated(feature, binning, _ratios(*counts), _strength(*counts))


def additive_scores(rated: Sequence[Rated]) -> list[Feature]:
    """Return the sum of the log-likelihood ratios of all telling parts of the output.

    It is the best score there is where the parts are independent.
    """
    used = [r for r in rated if r.feature.is_part and r.strength > _TELLING]
    used = sorted(used, key=lambda r: -r.strength)[:_ADDED]
    if len(used) < 2:
        return []

    def total(reading: ReadOutputs) -> Values:
        return sum(
            (r.ratios[r.binning.index(r.feature.values(reading))] for r in used),
            np.zeros(len(reading)),
        )

    return [Feature(name=f"a score that adds {len(used)} parts of the output", values=total)]


def tables_of_two(rated: Sequence[Rated], known: Sides) -> list[Feature]:
    """Return the pairs of features whose joint distribution tells most: exclusive ors, say."""
    ordered = sorted(rated, key=lambda r: -r.strength)
    parts = [r for r in rated if r.feature.is_part]
    # The first parts are tried even if none tells anything alone.
    chosen = list({id(r): r for r in [*ordered[: _TABLED // 2], *parts]}.values())[:_TABLED]
    indexed = []
    for r in chosen:
        values = [r.feature.values(side) for side in known]
        binning = r.binning
        if r.feature.is_ordered:
            binning = fit_bins(np.concatenate(values), is_ordered=True, bins=_PAIRED)
        if len(binning) <= 64:
            indexed.append((r.feature, binning, [binning.index(v) for v in values]))
    found = []
    for (one, bins, at), (two, more, also) in combinations(indexed, 2):
        size = len(bins) * len(more)
        cells = [
            np.bincount(i * len(more) + j, minlength=size) for i, j in zip(at, also, strict=True)
        ]
        found.append((_strength(cells[0], cells[1]), one, bins, two, more))
    found.sort(key=lambda f: -f[0])
    return [_table(one, bins, two, more) for _, one, bins, two, more in found[:_KEPT]]


def _table(one: Feature, bins: Binning, two: Feature, more: Binning) -> Feature:
    def cells(reading: ReadOutputs) -> Values:
        return bins.index(one.values(reading)) * len(more) + more.index(two.values(reading))

    name = f"the cell of ({one.name}, {two.name})"
    return Feature(name=name, values=cells, is_ordered=False)


def _ratios(first: Values, second: Values) -> Values:
    return np.log((first + _PRIOR) / (second + _PRIOR))


def _strength(first: Values, second: Values) -> float:
    """Return the chi-square distance of two tables of counts in its standard deviations."""
    total = first + second
    used = total > 0
    freedom = max(int(used.sum()) - 1, 1)
    distance = float((((first - second) ** 2)[used] / total[used]).sum())
    return (distance - freedom) / math.sqrt(2 * freedom)
