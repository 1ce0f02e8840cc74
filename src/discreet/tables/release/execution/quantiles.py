"""Quantiles and extremes of all groups, with intervals where there are rows enough for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms import quantile_draw as ranks
from discreet.tables.algorithms.noise import in_rows
from discreet.tables.algorithms.rank_candidates import by_group
from discreet.tables.model.bounds import Norm, sensitivity
from discreet.tables.model.query import Aggregate
from discreet.tables.model.statements import Cells, Sums, ValueGrid
from discreet.tables.pricing.price import SIZE_SHARE, size_noise
from discreet.tables.release.execution.context import RunContext
from discreet.tables.release.execution.group_index import GroupIndex
from discreet.tables.release.execution.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ranked", "draw_ranked", "value_grid"]

MOST_PLACES: Final = 1 << 20  # for whole numbers

Integers = npt.NDArray[np.int64]


def value_grid(value: int, bounds: tuple[Fraction, Fraction], *, is_whole: bool) -> ValueGrid:
    """Return the points among which a quantile is chosen: whole numbers, where values are.

    >>> value_grid(0, (Fraction(0), Fraction(120)), is_whole=True).points
    121
    """
    low, high = bounds
    if is_whole and high - low < MOST_PLACES:
        low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
        return ValueGrid(value=value, low=low, high=high, points=int(high - low) + 1)
    points = 1 if low == high else ranks.PLACES + 1
    return ValueGrid(value=value, low=low, high=high, points=points)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A quantile in every group: the value and, with confidence, what it lies between."""

    value: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    @classmethod
    def of(cls, found: Sequence[ranks.Covering], grid: ValueGrid, *, is_whole: bool) -> "Ranked":
        """Turn places back into values; NaN where nothing is known.

        Values up to half a step around a place are rounded to it, so intervals are that much wider,
        unless all of them are on the grid.
        """
        step = (grid.high - grid.low) / max(1, grid.points - 1)
        half = Fraction(0) if is_whole and step == 1 else step / 2

        def values(places: Sequence[int | None], aside: Fraction) -> npt.NDArray[np.float64]:
            ends = (None if p is None else grid.low + p * step + aside for p in places)
            at = (math.nan if p is None else float(min(max(p, grid.low), grid.high)) for p in ends)
            return np.fromiter(at, dtype=np.float64, count=len(places))

        return cls(
            value=values([one.place for one in found], Fraction(0)),
            low=values([one.low for one in found], -half),
            high=values([one.high for one in found], half),
        )


def draw_ranked(limits: Limits, shown: GroupIndex) -> dict[int, Ranked]:
    """Choose quantiles, or nearly extremes, in every group that is shown: by aggregate.

    Claim: the draws of one aggregate in all groups, with the sizes that come along, cost what
    :class:`discreet.tables.pricing.price.Price` says: ``rank_epsilon``.

    Why: a unit weighs at most the limit of its bounding over all groups, in L1. So does what it
    adds to their sizes, which get Laplace noise for a tenth of the price; the draws take the rest
    (:class:`discreet.tables.algorithms.quantile_draw.Ranks`).
    """
    context, tables = limits.context, dict[int, "pa.Table"]()  # by value
    found = {}
    for i in context.prepared.layout.ranks:
        aggregate = context.query.aggregates[i]
        value = aggregate.values[0]
        is_whole = context.query.values[value].is_whole
        grid = value_grid(value, limits.bounds[value], is_whole=is_whole)
        if value not in tables:
            tables[value] = _placed(limits, grid, shown)
        found[i] = _ranked(limits, aggregate, grid, tables[value], shown)
    return found


def _placed(limits: Limits, grid: ValueGrid, shown: GroupIndex) -> "pa.Table":
    context = limits.context
    return context.aggregate(
        Sums(
            query=context.query,
            cells=(Cells(kind="rows"),),
            bounding=limits.of_ranks(),
            salt=context.salt,
            groups=context.groups,
            grid=grid,
        ),
        shown.keep,
    )


def _ranked(
    limits: Limits, aggregate: Aggregate, grid: ValueGrid, table: "pa.Table", shown: GroupIndex
) -> Ranked:
    """Draw one aggregate in every group."""
    context, bounding = limits.context, limits.of_ranks()
    drawer = ranks.Ranks(
        epsilon=context.price.rank_epsilon * (1 - SIZE_SHARE),
        limit=1 if bounding is None else bounding.limit,
        points=grid.points,
        neighbours=context.catalog.neighbours,
        group_size=context.catalog.unit.size,
        is_single=not context.query.keys,
    )
    at, weights = shown.indices(table), table["cell_0"].to_numpy()
    parts = by_group(at, table["place"].to_numpy(), weights, count=len(shown))
    steps = np.zeros(len(shown), dtype=np.int64)
    np.add.at(steps, at[at >= 0], weights[at >= 0])
    found = [
        _drawn(context, drawer, aggregate, *part, size=size, lost=limits.lost("rows"))
        for part, size in zip(parts, _sizes(context, bounding, steps), strict=True)
    ]
    is_whole = context.query.values[grid.value].is_whole
    return Ranked.of(found, grid, is_whole=is_whole)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """How many rows a group has, noise included, and at ``least``, but for a small chance."""

    noisy: float
    least: float


def _sizes(context: RunContext, bounding: Norm | None, steps: Integers) -> list[_Size]:
    reach = sensitivity(
        bounding or Norm(limit=1, order=1),
        order=1,
        neighbours=context.catalog.neighbours,
        group_size=context.catalog.unit.size,
    )
    noise = size_noise(context.price.rank_epsilon)
    noisy = in_rows(noise.add(steps, sensitivity=reach, source=context.source))
    lower = noise.reach((1 - context.confidence) / 10, sensitivity=reach)
    return [_Size(noisy=float(one), least=max(0.0, float(one) - lower)) for one in noisy]


def _drawn(
    context: RunContext,
    drawer: ranks.Ranks,
    aggregate: Aggregate,
    places: Integers,
    weights: Integers,
    *,
    size: _Size,
    lost: float,
) -> ranks.Covering:
    # What the noisy size may miss by is taken off what the draws may.
    confidence = context.confidence + (1 - context.confidence) / 10
    source = context.source
    if aggregate.quantile is not None:
        is_told = math.isfinite(lost)  # how many rows a limit cut
        return drawer.interval(
            places, weights, q=aggregate.quantile, confidence=confidence,
            rows=size.least if is_told else 0, lost=lost * max(0.0, size.noisy) if is_told else 0,
            source=source,
        )  # fmt: skip
    end = aggregate.spec.draws
    assert end in ("minimum", "maximum")
    found = drawer.extreme(places, weights, kind=end, confidence=confidence, source=source)
    is_enough = size.least >= drawer.extreme_rank(confidence=confidence)
    return found if is_enough else replace(found, low=None, high=None)
