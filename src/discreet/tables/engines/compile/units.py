"""Distinct values by group, and units by the size of something about them."""

import math
from fractions import Fraction
from itertools import pairwise

from discreet._exact import whole
from discreet.errors import ParameterError
from discreet.tables.engines.compile.cells import signed_steps
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.rows import Chain, Compiled, start
from discreet.tables.engines.compile.sums import keep_lowest
from discreet.tables.engines.compile.text import column_list, number
from discreet.tables.model.bounds import WEIGHT_STEPS
from discreet.tables.model.statements import Distinct, Profile

__all__ = ["distinct", "profile"]


def distinct(statement: Distinct, dialect: Dialect) -> Compiled:
    """Write a count or a sum of distinct values."""
    query, most = statement.query, whole(statement.most, name="most")
    value = f"value_{statement.value}"
    chain = start(query, statement.groups, dialect, conditions=[f"{value} IS NOT NULL"])
    keys = chain.by
    if not query.unit_is_row:
        chain.add(
            "pairs",
            f"SELECT DISTINCT {column_list(['unit', *keys, value])}\nFROM counted",
            keep=True,
        )
        keep_lowest(chain, ["unit", *keys, value], most, dialect)
    if statement.bounds is None:
        return chain.answer([f"COUNT(DISTINCT {value})"], chain.last)
    chain.add("named", f"SELECT DISTINCT {column_list([*keys, value])}\nFROM {chain.last}")
    steps = signed_steps(value, statement.bounds, "sum", dialect)
    total = f"COALESCE(SUM(CAST({steps} AS BIGINT)), 0)"
    return chain.answer([f"CAST({total} AS BIGINT)"], chain.last)


def profile(statement: Profile, dialect: Dialect) -> Compiled:
    """Write a count of units by size."""
    edges = statement.edges
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise ParameterError(
            "edges must increase, and there must be at least one.", parameter="edges"
        )
    needs_value = statement.of in ("pairs", "largest", "smallest", "total")
    if needs_value == (statement.value is None):
        raise ParameterError(
            f"a profile of {statement.of!r} takes {int(needs_value)} values.", parameter="value"
        )
    if (statement.of == "total") == (statement.bounds is None):
        raise ParameterError("a profile of totals takes bounds, and no other.", parameter="bounds")
    conditions = [f"value_{statement.value} IS NOT NULL"] if needs_value else []
    chain = start(statement.query, statement.groups, dialect, conditions=conditions)
    size, marks = _size(statement, chain, dialect)
    grouped = "" if statement.query.unit_is_row else "\nGROUP BY unit"
    chain.add("sizes", f"SELECT {size} AS size\nFROM {chain.last}{grouped}")
    chain.add("bins", f"SELECT {_bin('size', marks, 0)} AS bin\nFROM sizes")
    return chain.ending(
        "SELECT CAST(bin AS BIGINT) AS bin, COUNT(*) AS units\nFROM bins\nGROUP BY bin"
    )


def _size(statement: Profile, chain: Chain, dialect: Dialect) -> tuple[str, list[str]]:
    """Return the size of a unit, and for each edge the greatest size that is not above it."""
    value, is_row = f"value_{statement.value}", statement.query.unit_is_row
    if statement.of in ("largest", "smallest"):
        marks = [_number_below(edge) for edge in statement.edges]
        if is_row:
            return value, marks
        return f"{'MAX' if statement.of == 'largest' else 'MIN'}({value})", marks
    if statement.of == "total":
        return _total_size(statement, chain, dialect)
    rows = [str(_floor(edge)) for edge in statement.edges]
    squares = [str(_floor(edge * abs(edge))) for edge in statement.edges]
    if is_row:
        return "1", squares if statement.of == "norm" else rows
    keys = chain.by
    if statement.of == "rows" and not statement.once:
        return "COUNT(*)", rows
    if statement.of == "pairs":
        by = ["unit", *keys, value]
        chain.add("pairs", f"SELECT DISTINCT {column_list(by)}\nFROM counted")
        return "COUNT(*)", rows
    count = "CAST(1 AS BIGINT)" if statement.once else "COUNT(*)"
    columns = column_list(["unit", *keys])
    text = f"SELECT {columns}, {count} AS row_count\nFROM counted\nGROUP BY {columns}"
    chain.add("contributions", text)
    if statement.of == "rows":
        return "SUM(row_count)", rows
    return f"SUM(CAST(row_count AS {dialect.wide}) * row_count)", squares


def _total_size(statement: Profile, chain: Chain, dialect: Dialect) -> tuple[str, list[str]]:
    """Return the norm of a unit's totals, or its square, in steps, and the edges likewise."""
    assert statement.bounds is not None
    steps = signed_steps(f"value_{statement.value}", statement.bounds, "total", dialect)
    total = f"ABS(SUM(CAST({steps} AS {dialect.wide})))"
    marks = [edge * WEIGHT_STEPS for edge in statement.edges]
    if statement.order == 2:
        marks = [edge * abs(edge) for edge in marks]
    if statement.query.unit_is_row:
        size = f"ABS(CAST({steps} AS {dialect.wide}))"
        return f"{size} * {size}" if statement.order == 2 else size, [str(_floor(m)) for m in marks]
    by = column_list(["unit", *chain.by])
    chain.add("contributions", f"SELECT {by}, {total} AS total\nFROM counted\nGROUP BY {by}")
    return f"SUM({'total * total' if statement.order == 2 else 'total'})", [
        str(_floor(mark)) for mark in marks
    ]


def _floor(edge: Fraction) -> int:
    # Sizes lie between 1 and 2**84, so marks beyond that need not be told apart.
    return min(max(math.floor(edge), 0), 1 << 100)


def _number_below(edge: Fraction) -> str:
    """Write the greatest double that is not above the edge: y > edge just if y > that."""
    try:
        nearest = float(edge)
    except OverflowError:
        nearest = math.inf if edge > 0 else -math.inf
    if nearest == math.inf or (math.isfinite(nearest) and Fraction(nearest) > edge):
        nearest = math.nextafter(nearest, -math.inf)
    return number(nearest) if math.isfinite(nearest) else "CAST('-Infinity' AS DOUBLE)"


def _bin(size: str, marks: list[str], first: int) -> str:
    """Count the marks below a size by bisection, so that many edges cost little."""
    if not marks:
        return str(first)
    middle = len(marks) // 2
    above = _bin(size, marks[middle + 1 :], first + middle + 1)
    below = _bin(size, marks[:middle], first)
    return f"CASE WHEN {size} > {marks[middle]} THEN {above} ELSE {below} END"
