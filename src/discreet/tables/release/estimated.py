"""All aggregates of a question in all groups, with intervals, and how they move with the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.estimates import Estimate, deviations, estimate
from discreet.tables.algorithms.propagation import Array, Noisy, interval_factor, moved, spread
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.execution.run import Released

__all__ = ["Estimated", "Estimates"]


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
        for i in self.released.ranked:
            step = np.nan_to_num(shown[i].error)
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
        if index not in self.released.ranked:
            noisy = self._sources()[index]
            made = estimate(self.prepared.query.aggregates[index], noisy)
            return self._around(made, cells=noisy.cells.count)
        found = self.released.ranked[index]
        width = (found.high - found.low) / 2
        error = width / interval_factor("gaussian", confidence=self.confidence)
        reliable = np.isfinite(found.value) & (np.isfinite(found.low) | np.isfinite(found.high))
        return Estimated(
            value=found.value, error=error, low=found.low, high=found.high, reliable=reliable
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
            elif aggregate.spec.counts is not None:  # also rows that nobody asked to see
                assert self.released.units is not None
                found[i] = self.released.units
        return found
