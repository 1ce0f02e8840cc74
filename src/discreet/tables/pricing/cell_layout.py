"""Which numbers a question needs: the fewest cells from which all its aggregates follow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, final

from discreet.tables.model.aggregates import CellsKind
from discreet.tables.model.bounds import AskedBounding, Groups, Norm
from discreet.tables.model.query import Aggregate, Query

__all__ = ["Family", "CellLayout", "lay_out"]

_DEGREES: Final[tuple[CellsKind, ...]] = ("present", "sum", "linear", "quadratic")
"""Cells of one value: each serves what the ones before it serve."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Cells that are released together: see :class:`discreet.tables.model.statements.Cells`."""

    kind: CellsKind
    values: tuple[int, ...] = ()
    with_absent: bool = False

    @property
    def needs_bounds(self) -> bool:
        """Whether values are clamped."""
        return self.kind not in ("rows", "present")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellLayout:
    """What is released for a question.

    ``families`` are weighted sums over rows. ``with_units`` asks for the number of units,
    ``distinct`` for the number of distinct values and ``distinct_sums`` for their sum, ``ranks``
    are the aggregates that are quantiles.
    ``sources`` says for each aggregate which family it follows from, None if it is none of these.
    Where keys are secret, ``selector`` is what decides which of them are shown.
    """

    families: tuple[Family, ...]
    with_units: bool
    distinct: tuple[int, ...]
    distinct_sums: tuple[int, ...]
    ranks: tuple[int, ...]
    sources: tuple[int | None, ...]
    selector: Literal["rows", "units"] | None = None

    @property
    def bounded_values(self) -> tuple[int, ...]:
        """The values that are clamped, each once."""
        found = {v for family in self.families if family.needs_bounds for v in family.values}
        return tuple(sorted(found))

    @property
    def totals(self) -> tuple[int, ...]:
        """The values whose sums are bounded as a whole."""
        return tuple(f.values[0] for f in self.families if f.kind == "total")

    @property
    def parts(self) -> int:
        """How many releases share the price."""
        named = len(self.distinct) + len(self.distinct_sums)
        return len(self.families) + self.with_units + named + len(self.ranks)


def lay_out(
    query: Query, *, rows: int | None = None, bounding: AskedBounding | None = None
) -> CellLayout:
    """Return the cells for a question.

    A mean, a sum and a count of the same values come from the same two cells, a variance from
    three: cells that add up to one row per row cost no more than a single count does
    (docs/proofs/norm_clipping.md). The number of rows then is their sum, if rows without a value
    have a cell, too.

    A sum that is asked for without a count or mean of the same values is bounded as a whole: of
    what bounding its rows to the same sensitivity leaves, that loses nothing more of any unit
    (docs/proofs/whole_sums.md). An analyst who asks for a ``bounding`` of rows gets that.

    Keys that nobody listed are selected by their number of units, whatever is asked about them:
    that moves less than their number of rows. Where at most one of a unit's ``rows`` counts, both
    are the same, and a count of rows that is asked for selects keys, too, which saves a part of the
    price. It then has a cell of its own.

    >>> from discreet.tables.model.query import Value
    >>> from discreet.tables.model.relation import Select
    >>> asked = (Aggregate(kind="count"), Aggregate(kind="mean", values=(0,)))
    >>> query = Query(rows=Select.of("t", unit="id", value_0="x"), tables=("t",), aggregates=asked,
    ...               values=(Value(text="x", bounds=None),))
    >>> lay_out(query).families
    (Family(kind='linear', values=(0,), with_absent=True),)
    """
    aggregates = query.aggregates
    families = [*_of_values(aggregates), *_of_pairs(aggregates)]
    counted = {one.spec.counts for one in aggregates}
    shown = query.output.aggregates  # others were only added so that there is something to release
    counts_rows = any(aggregates[i].spec.counts == "rows" for i in shown)
    selector: Literal["rows", "units"] | None = None
    if not query.has_known_keys:
        is_same = query.unit_is_row or rows == 1
        selector = "rows" if is_same and counts_rows and "units" not in counted else "units"
    if selector == "rows":
        families.insert(0, Family(kind="rows"))
    elif counts_rows or (selector is None and "rows" in counted):
        families = _counting_rows(families)
    if not query.unit_is_row and not isinstance(bounding, Norm | Groups):
        families = [replace(f, kind="total") if f.kind == "sum" else f for f in families]
    distinct = {one.values[0] for one in aggregates if one.spec.counts == "distinct"}
    added = {one.values[0] for one in aggregates if one.spec.adds == "distinct"}
    return CellLayout(
        families=tuple(families),
        with_units="units" in counted or selector == "units",
        distinct=tuple(sorted(distinct)),
        distinct_sums=tuple(sorted(added)),
        ranks=tuple(i for i, one in enumerate(aggregates) if one.spec.draws),
        sources=tuple(_source(one, families) for one in aggregates),
        selector=selector,
    )


def _of_values(aggregates: Sequence[Aggregate]) -> list[Family]:
    """Return one family for each value, of the lowest degree that serves all its aggregates."""
    wanted: dict[int, set[int]] = {}
    for one in aggregates:
        if one.spec.cells in _DEGREES:
            wanted.setdefault(one.values[0], set()).add(_DEGREES.index(one.spec.cells))
    return [
        # A sum together with a count follows from the cells of a mean.
        Family(kind=_DEGREES[2 if degrees == {0, 1} else max(degrees)], values=(value,))
        for value, degrees in wanted.items()
    ]


def _of_pairs(aggregates: Sequence[Aggregate]) -> list[Family]:
    pairs = {one.values: None for one in aggregates if one.spec.cells == "moments"}
    return [Family(kind="moments", values=pair) for pair in pairs]


def _counting_rows(families: list[Family]) -> list[Family]:
    """Let the first family that can also count the rows without a value, or add one for rows."""
    for i, family in enumerate(families):
        if family.kind != "sum":
            absent = Family(kind=family.kind, values=family.values, with_absent=True)
            return [*families[:i], absent, *families[i + 1 :]]
    return [Family(kind="rows"), *families]


def _source(one: Aggregate, families: Sequence[Family]) -> int | None:
    if one.spec.counts == "rows":
        own = (i for i, f in enumerate(families) if f.kind == "rows" or f.with_absent)
        return next(own, None)
    if one.spec.cells is None:
        return None
    return next(i for i, f in enumerate(families) if f.values == one.values)
