"""Subqueries over released values where rows are read: released first, then compared with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from discreet.errors import DataError
from discreet.tables.engines.post_processing import OuterQuery, empty_answer
from discreet.tables.model.catalog import Table
from discreet.tables.model.composite import ROW, released_name
from discreet.tables.model.query import Query
from discreet.tables.model.scalar import ColumnRef
from discreet.tables.model.types import SQL_NAMES, Type
from discreet.tables.sql.aggregate_calls import is_aggregate
from discreet.tables.sql.expressions.term import total_column
from discreet.tables.sql.question.context import fold

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inner_subqueries", "row_subqueries", "type_of_column", "used_alone"]

_LATER: Final = ("having", "qualify", "order", "windows", "limit", "offset")
_NOT_VALUES: Final = (exp.From, exp.Join, exp.CTE, exp.Subquery, exp.SetOperation, exp.Exists,
                      exp.Any, exp.All, exp.Lateral)  # fmt: skip


def row_subqueries(select: exp.Select) -> list[exp.Expression]:
    """Return subqueries that are a value, or a list after IN, for the rows that a SELECT reads.

    Those that stand where released groups are computed with are left out: they are computed with
    afterwards. Of nested ones the outermost is returned.

    >>> import sqlglot
    >>> where = "x < (SELECT AVG(x) FROM t) AND y IN (SELECT 2)"
    >>> asked = f"SELECT SUM(x) - (SELECT 1) FROM t WHERE {where}"
    >>> [one.sql() for one in row_subqueries(sqlglot.parse_one(asked))]
    ['(SELECT AVG(x) FROM t)', 'y IN (SELECT 2)']
    """
    found: list[exp.Expression] = []
    for key, value in select.args.items():
        if key in _LATER:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expression):
                found += _values(part, is_row=key != "expressions")
    return found


def inner_subqueries(query: exp.Expression) -> list[exp.Expression]:
    """Return those inside a subquery, all of which is about rows.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("SELECT a FROM t WHERE x < (SELECT 1)")
    >>> [one.sql() for one in inner_subqueries(asked)]
    ['(SELECT 1)']
    """
    return [one for child in query.iter_expressions() for one in _values(child, is_row=True)]


def _values(node: exp.Expression, *, is_row: bool) -> Iterator[exp.Expression]:
    if is_row and isinstance(node, exp.In) and node.args.get("query") is not None:
        yield node
        return
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, _NOT_VALUES):
        if is_row:
            yield node
        return
    for child in node.iter_expressions():
        yield from _values(child, is_row=is_row or is_aggregate(node))


def used_alone(own: exp.Select) -> exp.Select:
    """Return a query without the parts of WITH that nothing in it reads any more.

    >>> import sqlglot
    >>> used_alone(sqlglot.parse_one("WITH a AS (SELECT 1) SELECT 2 FROM t")).sql()
    'SELECT 2 FROM t'
    """
    clause = own.args.get("with_")
    for part in reversed(clause.expressions if clause is not None else []):
        if not any(fold(table.name) == fold(part.alias) for table in own.find_all(exp.Table)):
            part.pop()
    if clause is not None and not clause.expressions:
        own.set("with_", None)
    return own


def type_of_column(sql: str, parts: Sequence[Query], public: Mapping[str, Table]) -> Type | None:
    """Return the type of the one column of a query over released answers, None where it has none.

    It is tried on answers without rows.
    """
    import numpy as np
    import pyarrow as pa

    tables = {name: _empty(table) for name, table in public.items()}
    answers = {
        released_name(i): empty_answer(one).append_column(ROW, pa.array(np.arange(0)))
        for i, one in enumerate(parts)
    }
    try:
        found = OuterQuery(sql, tables)(answers)
    except DataError:
        return None
    return _type(found.schema.field(0).type) if found.num_columns == 1 else None


def _type(type_: "pa.DataType") -> Type | None:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_boolean(type_):
        return "boolean"
    if kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_):
        return "double"
    if kinds.is_string(type_) or kinds.is_large_string(type_):
        return "text"
    if kinds.is_timestamp(type_) and type_.tz is None:
        return "timestamp"
    return "date" if kinds.is_date(type_) else None


def _empty(table: Table) -> "pa.Table":
    """Return a public table as questions see it, without rows."""
    terms = [(c.name, total_column(ColumnRef(c.name), c.type)) for c in table.columns]
    casts = [
        exp.alias_(exp.cast(exp.Null(), SQL_NAMES[term.type], dialect="duckdb"), name, quoted=True)
        for name, term in terms
        if term is not None
    ]
    return OuterQuery(exp.select(*casts).limit(0).sql("duckdb"), {})({})
