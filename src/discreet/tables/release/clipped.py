"""What inferred bounds and limits took from each aggregate, as estimated from their profiles."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from discreet.tables.algorithms.limit_choice import ChosenBounds, ChosenLimit
from discreet.tables.algorithms.propagation import Array, Noisy
from discreet.tables.model.bounds import Groups, largest
from discreet.tables.model.query import Aggregate
from discreet.tables.release.execution.run import Released

__all__ = ["ClippingBias", "clipped"]

_JOINT_SHARE: Final = 0.02  # of units: what moves a correlation is not told by each value alone


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippingBias:
    """How far the raw answer may lie ``below`` and ``above`` the bounded one; infinite: unknown.

    ``is_found`` is false where too few people were found to choose what the aggregate needs.
    """

    below: Array
    above: Array
    is_found: bool = True

    def __post_init__(self) -> None:
        for name in ("below", "above"):  # an unknown part of nothing is unknown
            found = np.where(np.isnan(getattr(self, name)), math.inf, getattr(self, name))
            object.__setattr__(self, name, found)

    @property
    def width(self) -> Array:
        """The larger of the two."""
        return np.maximum(self.below, self.above)


def clipped(
    aggregate: Aggregate,
    value: Array,
    source: Noisy | None,
    released: Released,
    *,
    is_steep: bool = False,
) -> ClippingBias:
    """Return what was cut from one aggregate in every group, from released numbers alone.

    A profile is about all groups together: each is taken to lose its part. What bounds cut from
    values that are steep is unknown: a handful of rows may be most of it, and no noise shows them.
    """
    nothing = np.zeros(value.shape)
    limits, clamps = _limits(aggregate, released), _clamps(aggregate, released)
    if any(one is None for one in (*limits, *clamps)):
        return ClippingBias(below=nothing, above=nothing, is_found=False)
    part = math.fsum(one.share for one in limits if one is not None)
    size = np.abs(value)
    if aggregate.spec.draws is not None:  # what is cut is in the ranks that were drawn
        return ClippingBias(below=nothing, above=nothing)
    if aggregate.spec.counts is not None:
        return ClippingBias(below=nothing, above=part * size)
    ends = [one for one in clamps if one is not None]
    if is_steep:
        return ClippingBias(below=nothing + math.inf, above=nothing + math.inf)
    if aggregate.kind in ("covariance", "correlation"):
        shares = [(one.below.units + one.above.units) / max(one.units, 1.0) for one in ends]
        moved = math.inf if part + sum(shares) > _JOINT_SHARE else 0.0
        return ClippingBias(below=nothing + moved, above=nothing + moved)
    low, high = (float(end) for end in released.bounds[aggregate.values[0]])
    rows = _rows_of_unit(aggregate, released)
    is_sum = aggregate.kind in ("sum", "sum_distinct")
    if source is not None and ends and not is_sum:  # as many as are usual
        rows = min(rows, max(1.0, _counted(source) / max(1.0, ends[0].units)))
    below = rows * sum(one.below.first for one in ends)
    above = rows * sum(one.above.first for one in ends)
    if is_sum:
        shares_of = size / max(float(size.sum()), 1e-300)
        more = part * size
        return ClippingBias(
            below=below * shares_of + (more if low < 0 else 0),
            above=above * shares_of + (more if high > 0 else 0),
        )
    assert source is not None
    counted = _counted(source)
    lost = part / (1 + part) if math.isfinite(part) else 1.0  # of all rows
    if aggregate.kind == "mean":
        aside = nothing + lost * (high - low) / 4  # heavy units may differ from others
        return ClippingBias(below=below / counted + aside, above=above / counted + aside)
    squares = nothing + rows * sum(one.spread for one in ends) / counted
    if aggregate.kind == "deviation":
        squares = np.sqrt(size**2 + squares) - size
    return ClippingBias(below=lost * size, above=squares + lost * size)


def _clamps(aggregate: Aggregate, released: Released) -> list[ChosenBounds | None]:
    """Return the inferred bounds that an aggregate is computed with."""
    if aggregate.spec.counts is not None:
        return []
    return [released.clamps[v] for v in dict.fromkeys(aggregate.values) if v in released.clamps]


def _limits(aggregate: Aggregate, released: Released) -> list[ChosenLimit | None]:
    """Return the inferred limits that an aggregate is computed with."""
    names = ["rows"] if aggregate.spec.draws is not None else ["norm", "rows"]
    if _is_whole(aggregate, released):
        names = [f"total_{aggregate.values[0]}"]
    elif aggregate.spec.counts == "units":
        names = ["groups"]
    elif "distinct" in (aggregate.spec.counts, aggregate.spec.adds):
        names = [f"pairs_{aggregate.values[0]}"]
    return [released.cuts[name] for name in names if name in released.cuts][:1]


def _is_whole(aggregate: Aggregate, released: Released) -> bool:
    """Whether units are bounded by their whole sums."""
    return aggregate.kind == "sum" and aggregate.values[0] in released.totals


def _rows_of_unit(aggregate: Aggregate, released: Released) -> float:
    """Return how many rows of a unit count, of the largest value where sums are bounded."""
    if _is_whole(aggregate, released):
        value = aggregate.values[0]
        row = largest(released.bounds[value])
        return max(1.0, float(released.totals[value] / row)) if row else 1.0
    bounding = released.bounding
    if bounding is None:
        return 1.0
    limit = bounding.rows if isinstance(bounding, Groups) else bounding.limit
    return max(1.0, float(Fraction(limit)))


def _counted(source: Noisy) -> float:
    """Return how many rows have a value, in all groups."""
    own = source.cells.count - source.cells.with_absent
    return max(1.0, float(source.noisy[:, :own].sum()))
