"""Which columns of a plan can be as large as they like, though what they are made of is not."""

from typing import Final

from discreet.tables.model.query import Query
from discreet.tables.model.relation import GroupedRows, Rows, Scan, Select, UnionRows
from discreet.tables.model.scalar import Call, Case, Cast, ColumnRef, Fold, Literal, Scalar, walk

__all__ = ["steep_values"]

# Functions that are large where an argument is; all others are bounded, or grow more slowly.
_AS_LARGE_AS_INSIDE: Final = (
    "negate", "abs", "add", "subtract", "multiply", "floor", "ceil", "trunc", "round", "sqrt",
    "least", "greatest", "coalesce", "not_nan", "plus_zero",
)  # fmt: skip


def steep_values(query: Query) -> list[int]:
    """Return the values without public bounds that a few ordinary rows can make of any size.

    So do quotients by what is not fixed, exponentials and tangents: a row whose divisor is small
    is like any other, and no profile of the many tells of it. It follows from the question alone.
    """
    free = [i for i, value in enumerate(query.values) if value.bounds is None]
    return [i for i in free if is_steep(query.rows, f"value_{i}")]


def is_steep(rows: Rows, column: str) -> bool:
    """Say whether a column of a plan is steep, also where it is made in a subquery.

    >>> ratio = Call("divide", (ColumnRef("fare"), ColumnRef("distance")))
    >>> trips = Select(Scan("trips"), (("value_0", ratio), ("value_1", ColumnRef("fare"))))
    >>> is_steep(trips, "value_0"), is_steep(trips, "value_1")
    (True, False)
    """
    if isinstance(rows, UnionRows):
        return any(is_steep(part, column) for part in rows.parts)
    return any(_is_steep(node, rows) for name, node in rows.columns if name == column)


def _is_steep(node: Scalar, rows: Select | GroupedRows) -> bool:
    match node:
        case ColumnRef(name, source):
            return _is_column_steep(name, source, rows)
        case Call("divide", (above, below)):
            return not _is_fixed(below) or _is_steep(above, rows)
        case Call("exp" | "tan", (inner,)):
            return not _is_fixed(inner)
        case Call("power", (base, Literal(float() | int() as exponent, _))) if exponent >= 0:
            return _is_steep(base, rows)
        case Call("power", arguments):
            return not all(_is_fixed(one) for one in arguments)
        case Call(function, arguments):
            inside = function in _AS_LARGE_AS_INSIDE
            return inside and any(_is_steep(one, rows) for one in arguments)
        case Case(branches, otherwise):
            results = (*(result for _, result in branches), otherwise)
            return any(_is_steep(result, rows) for result in results)
        case Cast(inner) | Fold(_, inner):
            return inner is not None and _is_steep(inner, rows)
    return False


def _is_column_steep(name: str, source: str, rows: Select | GroupedRows) -> bool:
    if isinstance(rows, GroupedRows):
        return is_steep(rows.rows, name)
    if isinstance(rows.source, Scan):
        return False
    return any(is_steep(one.rows, name) for one in rows.source if one.alias == source)


def _is_fixed(node: Scalar) -> bool:
    return not any(isinstance(part, ColumnRef | Fold) for part in walk(node))
