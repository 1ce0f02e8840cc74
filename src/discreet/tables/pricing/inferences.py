"""Limits on units and bounds of values: which are declared, and which are chosen privately."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, final

from discreet.tables.algorithms.limit_choice import limit_edges, total_edges, value_edges
from discreet.tables.model.bounds import AskedBounding, Groups, Norm, Totals
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query, Value
from discreet.tables.model.relation import most_rows
from discreet.tables.pricing.cell_layout import CellLayout

__all__ = [
    "Inference",
    "LimitKind",
    "NoiseKind",
    "declared_limit",
    "inferences_of",
    "known_rows",
    "over_groups",
    "said_total",
]

NoiseKind = Literal["laplace", "gaussian"]
LimitKind = Literal["rows", "norm", "groups", "pairs"]
ValueEnd = Literal["smallest", "largest", "only"]

FEW: Final = 16  # rows that a unit has by how they are made: looking for fewer would gain little


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """A profile of units that is released, so that a limit or bounds of a value follow from it.

    Bounds follow from the ``smallest`` and the ``largest`` value of each unit; of units that have
    one row, from its ``only`` value.

    >>> Inference(of="largest", value=0).is_limit
    False
    """

    of: Literal["rows", "norm", "groups", "pairs", "smallest", "largest", "only", "total"]
    value: int | None = None

    @property
    def is_limit(self) -> bool:
        """Whether a limit on units follows from it, or else bounds of a value."""
        return self.of in ("rows", "norm", "groups", "pairs", "total")

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges of its bins."""
        if self.of == "total":
            return total_edges()
        return limit_edges(2 if self.of == "norm" else 1) if self.is_limit else value_edges()


def declared_limit(
    of: LimitKind, query: Query, catalog: Catalog, bounding: AskedBounding | None = None
) -> Fraction | None:
    """Return how much of a unit counts, where that is declared or clear; None: infer it.

    Whoever asks for a bound on rows has said in how many groups a unit counts: in as many as one
    has whose rows are just within the bound.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.model.query import Aggregate
    >>> from discreet.tables.model.relation import Select
    >>> query = Query(rows=Select.of("people", unit="id"), tables=("people",),
    ...               aggregates=(Aggregate(kind="count"),))
    >>> catalog = Catalog(unit=Unit.column("u"), neighbours=Neighbours.add_remove, rows=20)
    >>> declared_limit("rows", query, catalog), declared_limit("groups", query, catalog)
    (Fraction(20, 1), Fraction(1, 1))
    """
    rows, made = known_rows(query, catalog), most_rows(query.rows)
    if rows == 1 or (of == "groups" and not query.keys):
        return Fraction(1)
    if of == "norm" and query.keys:
        return None  # rows bound it, but are usually spread over several groups
    declared = catalog.groups if of == "groups" else catalog.rows
    if of == "groups":
        declared = min((n for n in (declared, _within(bounding)) if n is not None), default=None)
        if declared is not None and query.has_known_keys:  # nobody is in more than there are
            declared = min(declared, math.prod(len(key.values or ()) or 1 for key in query.keys))
    if made is not None and (declared is not None or made <= FEW):
        declared = min(made, declared or made)
    return None if declared is None else Fraction(declared)


def _within(bounding: AskedBounding | None) -> int | None:
    """Return in how many groups a unit can be whose rows are within a bound, None without one."""
    if isinstance(bounding, Groups):
        return bounding.groups
    if isinstance(bounding, Norm):  # of k groups with a row each: k, or its root
        return max(1, math.floor(Fraction(bounding.limit) ** bounding.order))
    return None


def known_rows(query: Query, catalog: Catalog) -> int | None:
    """Return how many rows of a unit count at most, as declared or as they are made.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.model.relation import Select
    >>> query = Query(rows=Select.of("people", unit="id"), tables=("people",))
    >>> known_rows(query, Catalog(unit=Unit.column("u"), neighbours=Neighbours.add_remove, rows=9))
    9
    """
    if query.unit_is_row:
        return 1
    return min((n for n in (catalog.rows, most_rows(query.rows)) if n is not None), default=None)


def inferences_of(
    kind: NoiseKind,
    query: Query,
    layout: CellLayout,
    catalog: Catalog,
    bounding: AskedBounding | None,
) -> tuple[Inference, ...]:
    """Return what must be chosen privately: limits, then bounds, then limits of whole sums."""
    limits: list[tuple[LimitKind, int | None]] = []
    of = over_groups(2 if kind == "gaussian" else 1, query)
    is_free = bounding is None or isinstance(bounding, Totals)  # to bound rows
    if len(layout.families) > len(layout.totals) and is_free:
        limits.append((of, None))
    if layout.ranks and (is_free or (isinstance(bounding, Norm) and bounding.order == 2)):
        limits.append(("rows", None))
    if layout.with_units:
        limits.append(("groups", None))
    limits += [("pairs", value) for value in (*layout.distinct, *layout.distinct_sums)]
    found = [
        Inference(of=of, value=value)
        for of, value in dict.fromkeys(limits)
        if declared_limit(of, query, catalog, bounding) is None
    ]
    ranked = (query.aggregates[i].values[0] for i in layout.ranks)
    for value in sorted({*layout.bounded_values, *ranked}):
        if query.values[value].bounds is None:
            ends: tuple[ValueEnd, ...] = ("smallest", "largest")
            if known_rows(query, catalog) == 1:
                ends = ("only",)
            found += [Inference(of=end, value=value) for end in ends]
    if declared_limit(of, query, catalog) is None:
        free = (v for v in layout.totals if said_total(query.values[v], bounding) is None)
        found += [Inference(of="total", value=value) for value in free]
    return tuple(found)


def over_groups(order: int, query: Query) -> LimitKind:
    """Return which limit bounds a unit over all groups, for noise of this order.

    >>> from discreet.tables.model.relation import Select
    >>> over_groups(2, Query(rows=Select.of("people", unit="id"), tables=("people",)))
    'rows'
    """
    return "norm" if order == 2 and query.keys else "rows"


def said_total(value: Value, bounding: AskedBounding | None) -> Fraction | None:
    """Return how much of a unit's sum of a value counts, as asked for or declared, None if neither.

    >>> said_total(Value(text="x", bounds=None, total=Fraction(50)), Totals(limit=20, order=1))
    Fraction(20, 1)
    """
    return Fraction(bounding.limit) if isinstance(bounding, Totals) else value.total
