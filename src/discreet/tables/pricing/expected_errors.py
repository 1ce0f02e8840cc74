"""How far off each aggregate would be, from public facts alone."""

import math
from fractions import Fraction
from typing import Final

from discreet.tables.algorithms.propagation import interval_factor
from discreet.tables.algorithms.quantile_draw import PLACES, Ranks
from discreet.tables.model.aggregates import CELLS
from discreet.tables.model.bounds import Bounding, Groups, Norm, largest, root_up, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Aggregate
from discreet.tables.model.quotes import Expected
from discreet.tables.pricing.inferences import declared_limit, over_groups, said_total
from discreet.tables.pricing.prepared import Prepared

__all__ = ["expected_errors"]


def expected_errors(
    prepared: Prepared, catalog: Catalog, *, confidence: Fraction, size: int | None
) -> tuple[Expected, ...]:
    """Return what is known beforehand of each aggregate's error; ``size``: rows in a group."""
    return tuple(
        _expected(i, aggregate, prepared, catalog, confidence, size)
        for i, aggregate in enumerate(prepared.query.aggregates)
    )


def name_of(aggregate: Aggregate, prepared: Prepared) -> str:
    """Return the aggregate as people write it."""
    inside = ", ".join(prepared.query.values[v].text for v in aggregate.values)
    return aggregate.spec.text.format(inside)


def _expected(
    index: int,
    aggregate: Aggregate,
    prepared: Prepared,
    catalog: Catalog,
    confidence: Fraction,
    size: int | None,
) -> Expected:
    text = name_of(aggregate, prepared)
    if index in prepared.layout.ranks:
        return _of_rank(text, aggregate, prepared, catalog, confidence)
    bounding, limit_is_known = _bounding(aggregate, prepared, catalog)
    total = _total(index, aggregate, prepared, catalog)
    if total is not None:  # the limit is in the units of the sum
        bounding, limit_is_known = Norm(limit=1, order=prepared.price.order), total > 0
    reach = sensitivity(
        bounding,
        order=prepared.price.order,
        neighbours=catalog.neighbours,
        is_signed=_is_signed(aggregate, prepared),
        group_size=catalog.unit.size,
    )
    factor, cells = _factor(index, aggregate, prepared)
    if total and factor is not None:
        factor = float(total)
    width = interval_factor(prepared.price.noise.kind, confidence=confidence, cells=cells)
    deviation = prepared.price.noise.deviation(sensitivity=reach)
    if factor is None:
        return Expected(text=text, half_width=None, words=_unknown(aggregate, prepared))
    half = width * deviation * factor
    if aggregate.spec.range_power is not None:
        if size is None:
            words = f"within about {_short(half)} divided by the number of rows"
            if catalog.size is not None and not prepared.query.keys:
                about = _short(half / catalog.size)
                words = f"within about {about} if all {catalog.size:,} units count"
            return Expected(
                text=text, half_width=None, words=words + ("" if limit_is_known else _PER_LIMIT)
            )
        half /= size
    if not limit_is_known:
        return Expected(text=text, half_width=None, words=f"within {_short(half)}{_PER_LIMIT}")
    return Expected(text=text, half_width=half, words=f"within {_short(half)}")


_PER_LIMIT: Final = ", times the limit on a unit, which is chosen privately"


def _unknown(aggregate: Aggregate, prepared: Prepared) -> str:
    if any(prepared.query.values[v].bounds is None for v in aggregate.values):
        return "unknown: the bounds are chosen privately. Declare them to know more"
    return "unknown: it depends on how much the values vary"


def _bounding(aggregate: Aggregate, prepared: Prepared, catalog: Catalog) -> tuple[Bounding, bool]:
    """Return how units are bounded; where the limit is not known, as if it were 1."""
    query, order = prepared.query, prepared.price.order
    if query.unit_is_row:
        return Norm(limit=1, order=1), True
    of = over_groups(order, query)
    if aggregate.spec.counts == "units":
        limit = declared_limit("groups", query, catalog, prepared.bounding)
        if limit is not None and order == 2:
            limit = root_up(limit)
    elif "distinct" in (aggregate.spec.counts, aggregate.spec.adds):
        limit, order = declared_limit("pairs", query, catalog), 1
    elif isinstance(prepared.bounding, Norm | Groups):
        return prepared.bounding, True
    else:
        limit = declared_limit(of, query, catalog)
    return Norm(limit=1 if limit is None else limit, order=order), limit is not None


def _total(
    index: int, aggregate: Aggregate, prepared: Prepared, catalog: Catalog
) -> Fraction | None:
    """Return how much of a unit's whole sum counts, 0 if not known; None: it is no whole sum."""
    source, query = prepared.layout.sources[index], prepared.query
    if source is None or prepared.layout.families[source].kind != "total":
        return None
    value = query.values[aggregate.values[0]]
    said = said_total(value, prepared.bounding)
    if said is not None:
        return said
    rows = declared_limit(over_groups(prepared.price.order, query), query, catalog)
    return Fraction(0) if rows is None or value.bounds is None else rows * largest(value.bounds)


def _is_signed(aggregate: Aggregate, prepared: Prepared) -> bool:
    bounds = prepared.query.values[aggregate.values[0]].bounds if aggregate.values else None
    is_sum = aggregate.kind in ("sum", "sum_distinct")
    return is_sum and bounds is not None and bounds[0] < 0


def _factor(index: int, aggregate: Aggregate, prepared: Prepared) -> tuple[float | None, int]:
    """Return the error in deviations of one cell, and over how many cells it adds up."""
    source, spec = prepared.layout.sources[index], aggregate.spec
    if spec.adds is not None:
        bounds = prepared.query.values[aggregate.values[0]].bounds
        return None if bounds is None else float(largest(bounds)), 1
    if source is None:
        return 1.0, 1
    family = prepared.layout.families[source]
    if spec.counts is not None:
        cells = CELLS[family.kind] + (family.with_absent and spec.counts == "rows")
        return math.sqrt(cells), cells
    given = [prepared.query.values[v].bounds for v in aggregate.values]
    ends = [(float(one[0]), float(one[1])) for one in given if one is not None]
    if len(ends) < len(given):
        return None, 1
    if spec.cells == "sum":
        low, high = ends[0]
        if family.kind in ("sum", "total"):
            return max(-low, high, 0.0), 1
        points = (low, high) if family.kind == "linear" else (low, (low + high) / 2, high)
        return math.hypot(*points), len(points)
    if spec.range_power is None:
        return None, 1
    return math.prod(high - low for low, high in ends) ** spec.range_power, 2


def _of_rank(
    text: str, aggregate: Aggregate, prepared: Prepared, catalog: Catalog, confidence: Fraction
) -> Expected:
    """Say how many rows a quantile misses its rank by."""
    declared = declared_limit("rows", prepared.query, catalog)
    if isinstance(prepared.bounding, Groups):
        declared = Fraction(prepared.bounding.groups * prepared.bounding.rows)
    drawer = Ranks(
        epsilon=prepared.price.rank_epsilon,
        limit=1 if declared is None else declared,
        points=PLACES + 1,
        neighbours=catalog.neighbours,
        group_size=catalog.unit.size,
        is_single=not prepared.query.keys,
    )
    missed = _short(drawer.rank_error(confidence=confidence, q=aggregate.quantile) * (
        2 if aggregate.quantile is not None else 1
    ))  # fmt: skip
    per = "" if declared is not None else _PER_LIMIT
    return Expected(text=text, half_width=None, words=f"within {missed} rows of its rank{per}")


def _short(number: float) -> str:
    """Write a number with three digits, and thousands apart."""
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"
