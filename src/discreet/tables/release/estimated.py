"""All aggregates of a question in all groups, with intervals, and how they move with the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.estimates import Estimate, deviations, estimate
from discreet.tables.algorithms.propagation import Array, Noisy, interval_factor, moved, spread
from discreet.tables.model.steepness import steep_values
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.clipped import clipped
from discreet.tables.release.execution.run import Released

__all__ = ["Estimated", "Estimates"]

_SMALL: Final = 1 / 20  # of the largest value that an aggregate could have


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """One column of the answer in all groups, with its interval."""

    value: Array
    error: Array
    low: Array
    high: Array
    reliable: npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What follows from a release for the aggregates of a question."""

    prepared: Prepared
    released: Released
    confidence: Fraction

    def with_intervals(self) -> list[Estimated]:
        """Return all aggregates."""
        return [self._with_interval(i) for i in range(len(self.prepared.query.aggregates))]

    def deviations(self) -> dict[int, list[float]]:
        """Return the least and the greatest deviation of the noise of aggregates, where known."""
        found = {}
        for i, noisy in self._sources().items():
            errors = deviations(self.prepared.query.aggregates[i], noisy)
            finite = errors[np.isfinite(errors)]
            if finite.size:
                found[i] = [float(finite.min()), float(finite.max())]
        return found

    def free_values(self, shown: Sequence[Estimated]) -> list[Array]:
        """Return all aggregates as they follow from their cells, also beyond their ranges."""
        values = [one.value for one in shown]
        for i, noisy in self._sources().items():
            values[i] = self._free(i, noisy)
        return values

    def moved_values(self, shown: Sequence[Estimated]) -> Iterator[list[Array]]:
        """Yield all aggregates anew for each noisy cell moved by its deviation."""
        values, sources = self.free_values(shown), self._sources()
        for noisy in {id(noisy): noisy for noisy in sources.values()}.values():
            for other in moved(noisy):
                yield [
                    self._free(i, other) if sources.get(i) is noisy else value
                    for i, value in enumerate(values)
                ]
        for i, one in enumerate(shown):
            step = np.nan_to_num(one.error) if i in self.released.ranked else self._cut_step(one)
            if step.any():
                yield [value + step if j == i else value for j, value in enumerate(values)]

    def derived(
        self, centre: Array, moves: Sequence[Array], shown: Sequence[Estimated]
    ) -> Estimated:
        """Return an expression over aggregates, from what it becomes when cells are moved."""
        error = spread(centre, moves)
        reliable = np.isfinite(centre) & np.isfinite(error)
        reliable &= np.logical_and.reduce([one.reliable for one in shown])
        if np.isnan(centre).all():  # a text, say: it has no error bar, and is as it is
            reliable = np.ones_like(reliable)
        return self._around(Estimate(value=centre, error=error, reliable=reliable), cells=2)

    def _with_interval(self, index: int) -> Estimated:
        aggregate, source = self.prepared.query.aggregates[index], self._sources().get(index)
        if source is None:
            found = self._of_draw(index)
        else:
            found = self._around(estimate(aggregate, source), cells=source.cells.count)
        steep = any(v in aggregate.values for v in steep_values(self.prepared.query))
        cut = clipped(aggregate, found.value, source, self.released, is_steep=steep)
        if not cut.is_found:
            unknown = np.full(found.value.shape, np.nan)
            return Estimated(
                value=unknown, error=unknown, low=unknown, high=unknown,
                reliable=np.zeros(unknown.shape, dtype=np.bool_),
            )  # fmt: skip
        error = np.nan_to_num(found.error, nan=0.0)  # of a draw with one end, say
        is_clear = 2 * error + cut.width <= np.maximum(np.abs(found.value), self._least(index))
        return replace(
            found,
            low=np.where(np.isfinite(cut.below), found.low - cut.below, np.nan),
            high=np.where(np.isfinite(cut.above), found.high + cut.above, np.nan),
            reliable=found.reliable & is_clear,
        )

    def _least(self, index: int) -> float:
        """Return an error that is small beside what an aggregate could be, if not beside itself."""
        aggregate = self.prepared.query.aggregates[index]
        if aggregate.spec.counts is not None or aggregate.kind in ("sum", "sum_distinct"):
            return 0.0
        ends = [self.released.bounds[v] for v in aggregate.values]
        ranges = [float(high - low) for low, high in ends]
        largest = {
            "variance": ranges[0] * ranges[0] / 4,  # not **, which raises where this is infinite
            "deviation": ranges[0] / 2,
            "covariance": ranges[0] * ranges[-1] / 2,
            "correlation": 2.0,
        }
        return largest.get(aggregate.kind, ranges[0]) * _SMALL

    def _of_draw(self, index: int) -> Estimated:
        found, value = self.released.ranked[index], self.prepared.query.aggregates[index].values[0]
        low, high = found.low, found.high
        reliable = np.isfinite(found.value) & (np.isfinite(low) | np.isfinite(high))
        least, most = (float(end) for end in self.released.bounds[value])
        if value in self.released.clamps:  # what is cut at an inferred bound may lie beyond it
            low = np.where((low <= least) & (least != 0), np.nan, low)
            high = np.where((high >= most) & (most != 0), np.nan, high)
        else:  # the clamped values lie between declared bounds, however few they are
            low, high = np.where(np.isnan(low), least, low), np.where(np.isnan(high), most, high)
        error = (high - low) / 2 / interval_factor("gaussian", confidence=self.confidence)
        return Estimated(value=found.value, error=error, low=low, high=high, reliable=reliable)

    def _cut_step(self, shown: Estimated) -> Array:
        """Return what clipping is estimated to move, as if it were a standard error."""
        uneven = np.abs(shown.high + shown.low - 2 * shown.value)
        is_clear = uneven > 1e-9 * np.abs(shown.high - shown.low)
        return np.where(is_clear, uneven, 0) / interval_factor(
            "gaussian", confidence=self.confidence
        )

    def _around(self, made: Estimate, *, cells: int) -> Estimated:
        kind = self.prepared.price.noise.kind
        half = interval_factor(kind, confidence=self.confidence, cells=cells) * made.error
        return Estimated(
            value=made.value,
            error=made.error,
            low=made.value - half,
            high=made.value + half,
            reliable=made.reliable,
        )

    def _free(self, index: int, noisy: Noisy) -> Array:
        # Without clamping, or an aggregate at the end of its range would seem to have no error.
        return estimate(self.prepared.query.aggregates[index], noisy, is_clamped=False).value

    def _sources(self) -> dict[int, Noisy]:
        """Return the cells that each aggregate follows from, but for those that are drawn."""
        found = {}
        for i, aggregate in enumerate(self.prepared.query.aggregates):
            family = self.prepared.layout.sources[i]
            if family is not None:
                found[i] = self.released.families[family]
            elif aggregate.spec.counts == "distinct":
                found[i] = self.released.distinct[aggregate.values[0]]
            elif aggregate.spec.adds == "distinct":
                found[i] = self.released.distinct_sums[aggregate.values[0]]
            elif aggregate.spec.counts is not None:  # also rows that nobody asked to see
                assert self.released.units is not None
                found[i] = self.released.units
        return found
