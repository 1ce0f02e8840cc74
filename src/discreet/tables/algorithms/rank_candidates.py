"""The places among which a group's quantile is chosen, and the draw of one of them by rank."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, whole
from discreet.errors import DataError
from discreet.noise import Source, exponential_race, uniform_below_secret
from discreet.tables.model.bounds import WEIGHT_STEPS

__all__ = ["Candidates", "Places", "Weights", "by_group", "in_steps"]

Places = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64]

_FAR: Final = 1 << 62  # scores end here


def by_group(
    groups: npt.NDArray[np.int64], places: Places, weights: Weights, *, count: int
) -> Iterator[tuple[Places, Weights]]:
    """Yield the places and weights of the groups 0, ..., count - 1, sorted by place.

    Each pair of group and place appears at most once; groups without rows come out empty.

    >>> parts = by_group(np.array([1, 1, 0]), np.array([7, 3, 5]), np.array([1, 2, 3]), count=3)
    >>> [(places.tolist(), weights.tolist()) for places, weights in parts]
    [([5], [3]), ([3, 7], [2, 1]), ([], [])]
    """
    order = np.lexsort((places, groups))
    numbers, sorted_places, sorted_weights = groups[order], places[order], weights[order]
    starts = np.searchsorted(numbers, np.arange(whole(count, name="count", minimum=0) + 1))
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield sorted_places[start:end], sorted_weights[start:end]


def in_steps(rows: Number) -> int:
    """Return a public number of rows in whole steps, the nearest."""
    return math.floor(exact(rows, name="shift") * WEIGHT_STEPS + Fraction(1, 2))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The candidates of one group, those of one score together."""

    start: Places  # the first place of each cell
    size: Places  # how many places it has
    below: Weights  # the steps below it
    upto: Weights  # the steps at or below it
    total: int

    @classmethod
    def of(cls, places: Places, weights: Weights, points: int) -> "Candidates":
        """Return the open intervals between places that hold rows, and these places."""
        spots, steps = np.asarray(places), np.asarray(weights)
        if spots.dtype != np.int64 or steps.dtype != np.int64 or spots.shape != steps.shape:
            raise DataError("places and weights must be int64 arrays of one shape.")
        if spots.size and (
            spots[0] < 0 or spots[-1] >= points or steps.min() < 0 or (np.diff(spots) <= 0).any()
        ):
            raise DataError("places must increase from 0 to points - 1, and weights be at least 0.")
        # More than 2**42 rows in one group do not fit 64 bits; Python's integers take over.
        is_huge = float(steps.sum(dtype=np.float64)) > 2.0**61
        ends = np.concatenate(([0], np.cumsum(steps.astype(object) if is_huge else steps)))
        start = np.concatenate(([0], spots + 1, spots))
        return cls(
            start=start,
            size=np.concatenate((spots, [points], spots + 1)) - start,
            below=np.concatenate((ends, ends[:-1])),
            upto=np.concatenate((ends, ends[1:])),
            total=int(ends[-1]),
        )

    def choose(self, wanted: int, unit: int, *, rate: Fraction, source: Source) -> int:
        """Draw a place by its distance from the rank ``wanted / unit``, in steps."""
        nearest, part = divmod(wanted, unit)
        # unit L - wanted = unit (L - nearest) - part, and likewise for U.
        over = _times(self.below, nearest, unit, part)
        under = _times(-self.upto, -nearest, unit, -part)
        score = -np.maximum(0, np.maximum(over, under))
        each = rate / (unit * WEIGHT_STEPS)
        cell = exponential_race(score, rate=each, multiplicity=self.size, source=source)
        return int(self.start[cell]) + uniform_below_secret(int(self.size[cell]), source=source)


def _times(values: Weights, centre: int, unit: int, part: int) -> Weights:
    """Return unit (values - centre) - part, stopping at +-2**62 or a little before."""
    most = _FAR // unit
    is_huge = values.dtype == object or abs(centre) > _FAR
    wide = values.astype(object) if is_huge else values
    distance = np.clip(wide - centre, -most, most).astype(np.int64)
    # Where the distance is cut off, so is the difference: by at most 2 ``unit`` before the end.
    ends = (most - 2) * unit
    cut: Weights = np.clip(distance * unit - part, -ends, ends)
    return cut
