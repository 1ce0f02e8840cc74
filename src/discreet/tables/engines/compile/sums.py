"""Sums of cells by group, each unit bounded by its norm or to a number of groups."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.errors import ParameterError
from discreet.tables.engines.compile.cells import Sheet, place_on, sheet
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.rows import Chain, Compiled, start
from discreet.tables.engines.compile.text import as_double, column_list, number
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm
from discreet.tables.model.statements import Sums

__all__ = ["keep_lowest", "sums"]

MOST_KEPT = 500_000  # DuckDB finds the n-th lowest for n below a million only

_LARGEST = 1 << 62
_SLACK = 1 - 2.0**-40  # far more than the rounding of a root, a division and two products
_WHOLE = 1 << 53  # doubles hold every whole number up to here
_ROWS = 1 << 32  # a unit with as many rows counts nothing, so that its sums stay below that


def sums(statement: Sums, dialect: Dialect) -> Compiled:
    """Write a statement of sums."""
    _check(statement)
    query, grid = statement.query, statement.grid
    needed = statement.needed
    made = sheet(statement.cells, in_doubles=not query.unit_is_row, present=needed)
    extra = dict(made.shares)
    conditions = [f"value_{index} IS NOT NULL" for index in needed]
    if grid is not None:
        extra[place_on(grid)] = "place"
    chain = start(query, statement.groups, dialect, conditions=conditions, extra=extra)
    if made.halves:
        named = [f"{expression} AS {name}" for expression, name in made.halves.items()]
        chain.add("halved", f"SELECT *, {column_list(named)}\nFROM {chain.last}")
    by = chain.by = chain.by + ["place"] * (grid is not None)
    if query.unit_is_row:
        # Every row is a unit of its own: all weights are 1, so the rows add up at once.
        _contributions(chain, made, by)
        cells = [_narrow(f"COALESCE({cell}, 0)") for cell in made.cells]
        return chain.answer(cells, chain.last, is_grouped=False)
    _contributions(chain, made, ["unit", *by])
    weights = _weights(statement, made, dialect)
    if isinstance(statement.bounding, Groups):
        _keep_groups(chain, statement, by, dialect)
    else:
        _weigh_by_norm(chain, weights, by, dialect)
    each = [one for one in weights for _ in range(one.cells)]
    cells = [one.weighted(cell) for one, cell in zip(each, made.cells, strict=True)]
    rest, having = _left_out(statement, weights[0], chain.last)
    totals = [_narrow(f"COALESCE(SUM({cell}), 0)") for cell in cells]
    return chain.answer(totals, rest, having=having)


def _left_out(statement: Sums, first: "_Weight", last: str) -> tuple[str, str]:
    """Leave out small contributions; return what is read, and what groups must have."""
    if statement.least is None:
        return last, ""
    if first.is_whole:  # small ones are 0 already
        return last, f"SUM({first.name}) > 0"
    rows = first.weighted(f"{WEIGHT_STEPS} * row_count")
    return f"{last}\nWHERE {rows} >= {math.ceil(statement.least * WEIGHT_STEPS)}", ""


def _check(statement: Sums) -> None:
    is_row, first = statement.query.unit_is_row, statement.cells[:1]
    has_own = [one.own is not None for one in statement.cells]
    if not first:
        raise ParameterError("a statement needs at least one family of cells.", parameter="cells")
    if (statement.bounding is None) != (is_row or all(has_own)) or (is_row and any(has_own)):
        raise ParameterError(
            "units are bounded, once, unless every row is a unit of its own.", parameter="bounding"
        )
    if any(has_own) and isinstance(statement.bounding, Groups):
        raise ParameterError(
            "cells with a bound of their own are not added up where groups are dropped.",
            parameter="bounding",
        )
    is_norm = isinstance(statement.bounding, Norm) or first[0].kind == "units"
    if statement.least is not None and not is_norm:
        raise ParameterError(
            "contributions can only be left out where a norm bounds the unit.", parameter="least"
        )


def _contributions(chain: Chain, made: Sheet, by: list[str]) -> None:
    """Add up the rows of each unit in each group."""
    named = [f"{aggregate} AS {name}" for aggregate, name in made.sums.items()]
    grouped = f"\nGROUP BY {column_list(by)}" if by else ""
    text = f"SELECT {column_list([*by, 'COUNT(*) AS row_count', *named])}"
    is_read_twice = "unit" in by and len(by) > 1
    chain.add("contributions", f"{text}\nFROM {chain.last}{grouped}", keep=is_read_twice)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Weight:
    """What a unit's cells of one family are multiplied by: min(1, limit / norm), in ``name``.

    In one group the norm is ``size``; over groups it is ``norm``, or the root of it where the order
    is 2. Both are whole numbers of which ``one`` make a row. ``is_whole``: there is one cell, the
    same in all groups of a unit, and ``name`` is this cell, or 0 if it is below ``least``.
    """

    name: str
    cells: int
    bounding: Bounding | None
    size: str
    norm: str
    one: int = 1
    is_whole: bool = False
    least: int = 0
    long: str = "BIGINT"

    def of(self, norm: str, rows: str, *, order: int) -> str:
        """Return the weight, given the columns with the norm and with the number of rows."""
        assert isinstance(self.bounding, Norm)
        limit, is_square = Fraction(self.bounding.limit), order == 2
        weight = _weight(norm, limit, is_square=is_square, one=self.one)
        if self.is_whole:
            cell = f"CAST(TRUNC({WEIGHT_STEPS} * {weight}) AS {self._type})"
            return f"CASE WHEN {cell} >= {self.least} THEN {cell} ELSE 0 END"
        if self.one == 1:
            return weight
        return f"CASE WHEN {rows} >= {number(_ROWS)} THEN 0.0e0 ELSE {weight} END"

    def weighted(self, cell: str) -> str:
        """Return the cell of one unit and group times its weight, rounded towards zero."""
        if self.is_whole:
            return self.name
        return f"CAST(TRUNC(({cell}) * {self.name}) AS {self._type})"

    @property
    def _type(self) -> str:
        """A type for weighted cells: none exceeds the limit, and narrow ones add up faster."""
        assert self.bounding is not None
        most = self.bounding.limit if isinstance(self.bounding, Norm) else self.bounding.rows
        return "INTEGER" if Fraction(most) * WEIGHT_STEPS < 1 << 31 else self.long

    @property
    def order(self) -> int:
        """That of the norm."""
        return self.bounding.order if isinstance(self.bounding, Norm) else 1


def _weights(statement: Sums, made: Sheet, dialect: Dialect) -> list[_Weight]:
    """Return the weight of each family."""
    found, place = list[_Weight](), 0
    for index, family in enumerate(statement.cells):
        bounding, cell = family.own or statement.bounding, made.cells[place]
        name, one = "weight" if family.own is None else f"weight_{index}", 1
        is_whole, least = family.kind == "units", Fraction(0)
        is_square = isinstance(bounding, Norm) and bounding.order == 2
        if is_whole:
            size, norm = "1", "COUNT(*)"
            least = statement.least if statement.least is not None and not index else least
        elif family.kind == "total":
            wide = f"CAST({cell} AS {dialect.wide})"
            size, one = f"ABS({cell})", WEIGHT_STEPS
            norm = f"SUM({wide} * {wide})" if is_square else f"SUM({size})"
        else:
            size, rows = "row_count", "CAST(row_count AS DOUBLE)"
            norm = f"SUM({rows} * row_count)" if is_square else f"SUM({rows})"
        found.append(
            _Weight(
                name=name,
                cells=family.count,
                bounding=bounding,
                size=size,
                norm=norm,
                one=one,
                is_whole=is_whole,
                least=math.ceil(least * WEIGHT_STEPS),
                long=dialect.long,
            )
        )
        place += family.count
    return found


def _weigh_by_norm(chain: Chain, weights: list[_Weight], by: list[str], dialect: Dialect) -> None:
    """Give each unit its weights."""
    each = {one.name: one for one in weights}
    if not by:
        # With one group the norm is the size itself: nothing to look up.
        found = [f"{w.of(w.size, 'row_count', order=1)} AS {name}" for name, w in each.items()]
        chain.add("weighted", f"SELECT *, {column_list(found)}\nFROM contributions")
        return
    over = " OVER (PARTITION BY unit)" if dialect.windows else ""
    norms = [f"{one.norm}{over} AS norm_of_{name}" for name, one in each.items()]
    if any(one.one > 1 for one in weights):
        norms.append(f"SUM(CAST(row_count AS DOUBLE)){over} AS unit_rows")
    found = [
        f"{one.of(f'norm_of_{name}', 'unit_rows', order=one.order)} AS {name}"
        for name, one in each.items()
    ]
    if dialect.windows:
        chain.add("norms", f"SELECT *, {column_list(norms)}\nFROM contributions")
        chain.add("weighted", f"SELECT *, {column_list(found)}\nFROM norms")
        return
    chain.add("norms", f"SELECT unit, {column_list(norms)}\nFROM contributions\nGROUP BY unit")
    chain.add("weights", f"SELECT unit, {column_list(found)}\nFROM norms")
    # An inner join: a unit that for whatever reason has no weight is lost, never unbounded.
    chain.add(
        "weighted",
        f"SELECT contributions.*, {column_list(f'weights.{name}' for name in each)}\n"
        "FROM contributions\nJOIN weights ON contributions.unit = weights.unit",
    )


def _keep_groups(chain: Chain, statement: Sums, by: list[str], dialect: Dialect) -> None:
    bounding = statement.bounding
    assert isinstance(bounding, Groups)
    if _most_groups(statement) > bounding.groups:
        keep_lowest(chain, ["unit", *by], bounding.groups, dialect)
    weight = _weight("row_count", Fraction(bounding.rows))
    chain.add("weighted", f"SELECT *, {weight} AS weight\nFROM {chain.last}")


def _most_groups(statement: Sums) -> float:
    """Return how many groups there can be, from public facts."""
    points = statement.grid.points if statement.grid is not None else 1
    if not statement.query.keys:
        return points
    return math.inf if statement.groups is None else len(statement.groups) * points


def keep_lowest(chain: Chain, columns: list[str], most: int, dialect: Dialect) -> None:
    """Keep, of each unit's rows in the last step, at most ``most``: those of lowest hash.

    The cut-off is the first hash that is *not* kept. Fewer than ``most`` + 1 rows lie strictly
    below it even where hashes are equal, and which ones does not depend on the order of rows.
    """
    most = min(most, MOST_KEPT)  # fewer than asked for is bounded all the more
    whole = chain.last
    rank = dialect.hash(chain.hashed(columns))
    if dialect.windows:
        # As many as are not above a row: at most as many as are kept just if it is below the cut.
        chain.add("ranked", f"SELECT *, {rank} AS own_rank\nFROM {whole}")
        below = "COUNT(*) OVER (PARTITION BY unit ORDER BY own_rank RANGE UNBOUNDED PRECEDING)"
        chain.add("placed", f"SELECT *, {below} AS own_place\nFROM ranked")
        chain.add("kept", f"SELECT *\nFROM placed\nWHERE own_place <= {most}")
        return
    chain.add(
        "cuts",
        f"SELECT unit, {dialect.lowest(rank, most + 1)} AS cut\nFROM {whole}\nGROUP BY unit",
    )
    chain.add(
        "kept",
        f"SELECT {whole}.*\nFROM {whole}\nJOIN cuts ON {whole}.unit = cuts.unit\n"
        f"WHERE cuts.cut IS NULL OR "
        f"{dialect.hash(chain.hashed(columns, whole))} < cuts.cut",
    )


def _weight(norm: str, limit: Fraction, *, is_square: bool = False, one: int = 1) -> str:
    """Return min(1, limit / norm) less a hair; whether it is 1 is decided exactly.

    The norm, or its square, is a whole number of which ``one`` make a row. Sums of whole doubles
    are exact up to 2**53, and whatever the order of rows they reach 2**53 just if the true sum
    does. Beyond, the weight is 0: sums that depend on the order would not be a function of the
    unit's rows. (Squares of steps are added up in wider integers.)
    """
    edge = (limit * one) ** (2 if is_square else 1)
    size = f"SQRT(CAST({norm} AS DOUBLE))" if is_square else norm
    weight = f"{number(as_double(limit * one) * _SLACK)} / {size}"
    if one > 1:
        return f"CASE WHEN {norm} > {math.floor(edge)} THEN {weight} ELSE 1.0e0 END"
    most = _WHOLE if is_square else _ROWS
    return (
        f"CASE WHEN {norm} >= {number(most)} THEN 0.0e0 "
        f"WHEN {norm} > {number(min(math.floor(edge), most))} THEN {weight} ELSE 1.0e0 END"
    )


def _narrow(total: str) -> str:
    """Return a total as BIGINT. Clamping never moves two totals further apart."""
    return f"CAST(LEAST(GREATEST({total}, -{_LARGEST}), {_LARGEST}) AS BIGINT)"
