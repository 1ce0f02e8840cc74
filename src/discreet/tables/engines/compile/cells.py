"""Cells as integer SQL: what to add up for each unit and group, and the cells made of these sums.

Every sum is a sum of whole numbers, so it does not depend on the order of rows, and the cells are
whole linear combinations of sums that hold row by row: see
:class:`discreet.tables.model.statements.Cells`.

The sums of one unit are kept in doubles, which is faster and just as exact: a sum of whole numbers
is exact in any order as long as no partial sum exceeds 2**53, which takes 2**33 rows. (Units of
2**32 rows count nothing.) Sums over all units are integers.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from discreet.errors import ParameterError
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.text import as_double, number
from discreet.tables.model.aggregates import CellsKind
from discreet.tables.model.bounds import WEIGHT_STEPS
from discreet.tables.model.statements import Cells, ValueGrid

__all__ = ["Sheet", "place_on", "sheet", "signed_steps"]

_STEPS = number(WEIGHT_STEPS)
_VALUES = {
    "rows": 0, "units": 0, "present": 1, "sum": 1, "total": 1, "linear": 1, "quadratic": 1,
    "moments": 2,
}  # fmt: skip
_COUNTED = ("rows", "units", "present")


@final
@dataclass(slots=True)
class Sheet:
    """What one statement computes: columns of rows, their sums, and the cells made of the sums."""

    in_doubles: bool
    dialect: Dialect
    present: tuple[str, ...] = ()  # values that every row has
    shares: dict[str, str] = field(default_factory=dict)  # expression -> name, for each row
    halves: dict[str, str] = field(default_factory=dict)  # likewise, made of the shares
    sums: dict[str, str] = field(default_factory=dict)  # aggregate -> name, for unit and group
    cells: list[str] = field(default_factory=list)  # of the sums' names

    def share(self, expression: str) -> str:
        """Name an expression of a row, once however often it is needed."""
        return self.shares.setdefault(expression, f"share_{len(self.shares)}")

    def half(self, expression: str) -> str:
        """Name an expression of a row's shares, once however often it is needed."""
        return self.halves.setdefault(expression, f"half_{len(self.halves)}")

    def sum_of(self, aggregate: str) -> str:
        """Name an aggregate, once however often it is needed."""
        return self.sums.setdefault(aggregate, f"sum_{len(self.sums)}")


def sheet(
    families: tuple[Cells, ...],
    dialect: Dialect,
    *,
    in_doubles: bool,
    present: tuple[int, ...] = (),
) -> Sheet:
    """Write down all cells of a statement, in whose rows the values ``present`` are not NULL.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> sheet((Cells(kind="rows"),), DUCKDB, in_doubles=True).cells
    ['1048576 * row_count']
    """
    there = tuple(f"value_{index}" for index in present)
    made = Sheet(in_doubles=in_doubles, dialect=dialect, present=there)
    for cells in families:
        if len(cells.values) != _VALUES[cells.kind]:
            raise ParameterError(
                f"cells of kind {cells.kind!r} take {_VALUES[cells.kind]} values.",
                parameter="cells",
            )
        if (cells.own is None) == (cells.kind in ("units", "total")):
            raise ParameterError(
                "cells of kind 'units' and 'total' are bounded by themselves, and no others.",
                parameter="cells",
            )
        if cells.kind not in _COUNTED and len(cells.bounds) != len(cells.values):
            raise ParameterError(
                f"cells of kind {cells.kind!r} need bounds of each value.", parameter="bounds"
            )
        made.cells += _cells(cells, made)
    return made


def place_on(grid: ValueGrid, dialect: Dialect) -> str:
    """Return the expression of a row's place on a grid, which is NULL where the value is.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> place_on(ValueGrid(value=0, low=Fraction(0), high=Fraction(2), points=1), DUCKDB)
    'CASE WHEN value_0 IS NULL THEN NULL ELSE CAST(0 AS BIGINT) END'
    """
    name = f"value_{grid.value}"
    share = _share(name, (grid.low, grid.high), dialect)
    if share is None or grid.points == 1:
        where = "0"
    else:
        # The share is at most 1, so that the floor is at most points - 1.
        where = f"FLOOR({share} * {number(grid.points - 1)} + 0.5e0)"
    return f"CASE WHEN {name} IS NULL THEN NULL ELSE CAST({where} AS BIGINT) END"


def _cells(cells: Cells, made: Sheet) -> list[str]:
    names = [f"value_{index}" for index in cells.values]
    perhaps = [name for name in names if name not in made.present]
    if len(perhaps) == 2:
        both = f"{names[0]} IS NOT NULL AND {names[1]} IS NOT NULL"
        present = made.sum_of(f"COUNT(CASE WHEN {both} THEN 1 END)")
    elif perhaps:
        present = made.sum_of(f"COUNT({perhaps[0]})")
    else:
        present = "row_count"
    full = f"{WEIGHT_STEPS} * {present}"
    found: list[str]
    if cells.kind == "units":
        found = [str(WEIGHT_STEPS)]
    elif cells.kind in ("rows", "present"):
        found = [full]
    elif cells.kind in ("sum", "total"):
        found = [
            _total(signed_steps(names[0], cells.bounds[0], cells.kind, made.dialect), names, made)
        ]
    elif cells.kind == "linear":
        high = _total(f"FLOOR({_part(names[0], cells.bounds[0], made.dialect)})", [names[0]], made)
        found = [f"{full} - {high}", high]
    elif cells.kind == "quadratic":
        first, square = _halves(names[0], cells.bounds[0], made)
        one, two = (_total(part, [names[0]], made) for part in (first, square))
        found = [f"{full} - 2 * {one} + {two}", f"2 * ({one} - {two})", two]
    else:
        found = _products(names, cells.bounds, made)
    if cells.with_absent:
        found.append(f"{WEIGHT_STEPS} * (row_count - {present})")
    return found


def signed_steps(
    name: str, bounds: tuple[Fraction, Fraction], kind: CellsKind, dialect: Dialect
) -> str:
    """Return what a row with a value adds to a ``sum`` or ``total``: a whole number in a double.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> signed_steps("value_0", (Fraction(0), Fraction(0)), "sum", DUCKDB)
    '0.0e0'
    """
    low, high = as_double(bounds[0]), as_double(bounds[1])
    largest = max(-low, high, 0.0)
    if largest == 0.0:
        return "0.0e0"
    # At most 1 in size even after rounding, as no double lies between: x / x is exactly 1.
    steps = f"{dialect.ratio(_clamped(name, low, high), largest)} * {_STEPS}"
    return f"TRUNC({steps})" if kind == "sum" else f"FLOOR({steps} + 0.5e0)"


def _products(
    names: list[str], bounds: tuple[tuple[Fraction, Fraction], ...], made: Sheet
) -> list[str]:
    sides = []
    for name, pair in zip(names, bounds, strict=True):
        one, two = (made.half(part) for part in _halves(name, pair, made))
        sides.append((f"({_STEPS} - 2 * {one} + {two})", f"(2 * ({one} - {two}))", two))
    # Products of two whole numbers of at most 2**20: exact in doubles, and so is the division.
    return [
        _total(f"FLOOR({left} * {right} / {_STEPS})", names, made)
        for left in sides[0]
        for right in sides[1]
    ]


def _halves(name: str, bounds: tuple[Fraction, Fraction], made: Sheet) -> tuple[str, str]:
    """Return m = floor(t S) and c = max(floor(t^2 S), 2 m - S), so that no cell is negative."""
    share = _share(name, bounds, made.dialect)
    if share is None:
        return "0.0e0", "0.0e0"
    t = made.share(share)
    first = f"FLOOR({t} * {_STEPS})"
    return first, f"GREATEST(FLOOR({t} * {t} * {_STEPS}), 2 * {first} - {_STEPS})"


def _part(name: str, bounds: tuple[Fraction, Fraction], dialect: Dialect) -> str:
    share = _share(name, bounds, dialect)
    return "0.0e0" if share is None else f"{share} * {_STEPS}"


def _share(name: str, bounds: tuple[Fraction, Fraction], dialect: Dialect) -> str | None:
    """Return t = (x - low) / (high - low), in [0, 1]; None where it is always 0."""
    low, high = as_double(bounds[0]), as_double(bounds[1])
    if low > high:
        raise ParameterError(
            "the lower bound of a value must not be above the upper one.", parameter="bounds"
        )
    clamped = _clamped(name, low, high)
    if high - low == float("inf"):
        low, high, clamped = low / 2, high / 2, dialect.half.format(clamped)
    if low == high:
        return None
    # The width is the same difference of doubles that x = high gives, so t never exceeds 1.
    start = clamped if low == 0 else f"({clamped} - {number(low)})"
    return dialect.ratio(start, high - low)


def _clamped(name: str, low: float, high: float) -> str:
    # Where all values of a batch lie between the ends, as nearly always, DuckDB takes them as they
    # are, which least() and greatest() never do. NaN is above all numbers, and NULL at the low end.
    least, most = number(low), number(high)
    return (
        f"CASE WHEN {name} BETWEEN {least} AND {most} THEN {name} "
        f"WHEN {name} > {most} THEN {most} ELSE {least} END"
    )


def _total(expression: str, names: list[str], made: Sheet) -> str:
    """Add up a whole number over the rows that have all the values (clamps forget NULLs)."""
    if not made.in_doubles:
        expression = f"CAST({expression} AS INTEGER)"
    absent = " OR ".join(f"{name} IS NULL" for name in names if name not in made.present)
    if not absent:
        return made.sum_of(f"SUM({expression})")
    zero = "0.0e0" if made.in_doubles else "0"
    return made.sum_of(f"SUM(CASE WHEN {absent} THEN {zero} ELSE {expression} END)")
