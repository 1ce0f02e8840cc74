"""Sums of cells by group, each unit bounded by its norm or to a number of groups."""

import math
from fractions import Fraction

from discreet.errors import ParameterError
from discreet.tables.engines.compile.cells import Sheet, place_on, sheet
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.rows import Chain, Compiled, start
from discreet.tables.engines.compile.text import as_double, column_list, number
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm
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
    made = sheet(statement.cells, once=statement.once, in_doubles=statement.bounding is not None)
    extra = dict(made.shares)
    conditions = []
    if grid is not None:
        extra[place_on(grid)] = "place"
        conditions.append(f"value_{grid.value} IS NOT NULL")
    chain = start(query, statement.groups, dialect, conditions=conditions, extra=extra)
    if made.halves:
        named = [f"{expression} AS {name}" for expression, name in made.halves.items()]
        chain.add("halved", f"SELECT *, {column_list(named)}\nFROM {chain.last}")
    by = chain.by = chain.by + ["place"] * (grid is not None)
    if statement.bounding is None:
        # Every row is a unit of its own: all weights are 1, so the rows add up at once.
        _contributions(chain, made, by, statement)
        cells = [_narrow(f"COALESCE({cell}, 0)") for cell in made.cells]
        return chain.answer(cells, chain.last, is_grouped=False)
    _contributions(chain, made, ["unit", *by], statement)
    if isinstance(statement.bounding, Norm):
        _weigh_by_norm(chain, statement.bounding, by)
    else:
        _keep_groups(chain, statement, by, dialect)
    cells = [_weighted(cell) for cell in made.cells]
    where = ""
    if statement.least is not None:
        least = math.ceil(statement.least * WEIGHT_STEPS)
        where = f"\nWHERE {_weighted(f'{WEIGHT_STEPS} * row_count')} >= {least}"
    totals = [_narrow(f"COALESCE(SUM({cell}), 0)") for cell in cells]
    return chain.answer(totals, f"{chain.last}{where}")


def _check(statement: Sums) -> None:
    if (statement.bounding is None) != statement.query.unit_is_row:
        raise ParameterError(
            "units are bounded unless every row is a unit of its own.", parameter="bounding"
        )
    if statement.least is not None and not isinstance(statement.bounding, Norm):
        raise ParameterError(
            "contributions can only be left out where a norm bounds the unit.", parameter="least"
        )
    if statement.once and statement.bounding is None:
        raise ParameterError("a row is a unit of its own and always counts once.", parameter="once")
    if not statement.cells:
        raise ParameterError("a statement needs at least one family of cells.", parameter="cells")


def _contributions(chain: Chain, made: Sheet, by: list[str], statement: Sums) -> None:
    """Add up the rows of each unit in each group."""
    count = "CAST(1 AS BIGINT)" if statement.once else "COUNT(*)"
    named = [f"{aggregate} AS {name}" for aggregate, name in made.sums.items()]
    grouped = f"\nGROUP BY {column_list(by)}" if by else ""
    text = f"SELECT {column_list([*by, f'{count} AS row_count', *named])}"
    is_read_twice = "unit" in by and len(by) > 1
    chain.add("contributions", f"{text}\nFROM {chain.last}{grouped}", keep=is_read_twice)


def _weigh_by_norm(chain: Chain, bounding: Norm, by: list[str]) -> None:
    """Give each unit the weight min(1, limit / norm)."""
    limit = Fraction(bounding.limit)
    if not by:
        # With one group the norm is the count itself: nothing to look up.
        weight = _weight("row_count", limit)
        chain.add("weighted", f"SELECT *, {weight} AS weight\nFROM contributions")
        return
    rows = "CAST(row_count AS DOUBLE)"
    if bounding.order == 1:
        norm, weight = f"SUM({rows})", _weight("norm", limit)
    else:
        norm, weight = f"SUM({rows} * row_count)", _weight("norm", limit, is_square=True)
    chain.add("norms", f"SELECT unit, {norm} AS norm\nFROM contributions\nGROUP BY unit")
    chain.add("weights", f"SELECT unit, {weight} AS weight\nFROM norms")
    # An inner join: a unit that for whatever reason has no weight is lost, never unbounded.
    chain.add(
        "weighted",
        "SELECT contributions.*, weights.weight\n"
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
    rank = dialect.hash(columns)
    chain.add(
        "cuts",
        f"SELECT unit, {dialect.lowest(rank, most + 1)} AS cut\nFROM {whole}\nGROUP BY unit",
    )
    chain.add(
        "kept",
        f"SELECT {whole}.*\nFROM {whole}\nJOIN cuts ON {whole}.unit = cuts.unit\n"
        f"WHERE cuts.cut IS NULL OR "
        f"{dialect.hash([f'{whole}.{column}' for column in columns])} < cuts.cut",
    )


def _weight(norm: str, limit: Fraction, *, is_square: bool = False) -> str:
    """Return min(1, limit / norm) less a hair; whether it is 1 is decided exactly.

    Sums of whole doubles are exact up to 2**53, and whatever the order of rows they reach 2**53
    just if the true sum does. Beyond, the weight is 0: sums that depend on the order would not be
    a function of the unit's rows.
    """
    most, size, edge = _ROWS, norm, limit
    if is_square:
        most, size, edge = _WHOLE, f"SQRT({norm})", limit**2
    scaled = number(as_double(limit) * _SLACK)
    return (
        f"CASE WHEN {norm} >= {number(most)} THEN 0.0e0 "
        f"WHEN {norm} > {number(min(math.floor(edge), most))} THEN {scaled} / {size} ELSE 1.0e0 END"
    )


def _weighted(cell: str) -> str:
    """Return the cell of one unit and group times its weight, rounded towards zero."""
    return f"CAST(TRUNC(({cell}) * weight) AS BIGINT)"


def _narrow(total: str) -> str:
    """Return a total as BIGINT. Clamping never moves two totals further apart."""
    return f"CAST(LEAST(GREATEST({total}, -{_LARGEST}), {_LARGEST}) AS BIGINT)"
