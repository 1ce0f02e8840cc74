"""Rows and outputs of a plan as SQL."""

from itertools import repeat

from discreet.tables.engines.compile.column_types import Scope, scope_of, types_of
from discreet.tables.engines.compile.crowds import cut
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.scalars import scalar_sql
from discreet.tables.engines.compile.text import identifier, quoted
from discreet.tables.model.output import Output
from discreet.tables.model.relation import UNIT, GroupedRows, Joined, Rows, Scan, Select, UnionRows
from discreet.tables.model.scalar import Call, ColumnRef, Scalar, rewritten

__all__ = ["output_sql", "rows_sql"]


def rows_sql(rows: Rows, dialect: Dialect) -> str:
    """Return rows as one SELECT.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> from discreet.tables.model.relation import Select
    >>> rows_sql(Select.of("people", unit="user_id", key_0="sex"), DUCKDB)
    'SELECT "user_id" AS unit, "sex" AS key_0 FROM "people"'
    """
    if isinstance(rows, UnionRows):
        names = ", ".join(map(identifier, rows.names)) or "1 AS one"
        texts = [rows_sql(part, dialect) for part in rows.parts]
        return " UNION ALL ".join(f"SELECT {names} FROM ({text}) AS r" for text in texts)  # noqa: S608
    if isinstance(rows, GroupedRows):
        scope: Scope = {"": types_of(rows.rows, dialect.tables)}
    else:
        scope = scope_of(rows, dialect.tables)
    columns = ", ".join(_named(*one, dialect, scope) for one in rows.columns) or "1 AS one"
    if isinstance(rows, GroupedRows):
        by = f" GROUP BY {', '.join(map(identifier, rows.by))}" if rows.by else ""
        having = "" if rows.having is None else f" HAVING {scalar_sql(rows.having, dialect, scope)}"
        return f"SELECT {columns} FROM ({rows_sql(rows.rows, dialect)}) AS r{by}{having}"  # noqa: S608
    before = ""
    if isinstance(rows.source, Scan):
        source = quoted(rows.source.table)
    else:
        texts = [rows_sql(one.rows, dialect) for one in rows.source]
        if rows.most is not None:
            before, texts = cut(rows.source, texts, rows.most, dialect, scope)
        items = [f"({text}) AS {one.alias}" for one, text in zip(rows.source, texts, strict=True)]
        conditions = _conditions(rows.source)[1:]
        joins = map(_join, rows.source[1:], conditions, items[1:], repeat(dialect), repeat(scope))
        source = " ".join([items[0], *joins])
    where = " AND ".join(scalar_sql(node, dialect, scope) for node in rows.where)
    return f"{before}SELECT {columns} FROM {source}" + (f" WHERE {where}" if where else "")  # noqa: S608


def _named(name: str, node: Scalar, dialect: Dialect, scope: Scope) -> str:
    if node == ColumnRef(name):
        return identifier(name)
    return f"{scalar_sql(node, dialect, scope)} AS {identifier(name)}"


def _conditions(parts: tuple[Joined, ...]) -> list[list[Scalar]]:
    """Return the conditions of each join, each once, where a column that is the unit is ``unit``.

    Engines look up, compare and keep both otherwise: they cannot know that they are the same.
    """
    units = {
        (part.alias, name)
        for part in parts
        if isinstance(part.rows, Select)
        for name, node in part.rows.columns
        if node == dict(part.rows.columns).get(UNIT)
    }

    def named(node: Scalar) -> Scalar:
        is_unit = isinstance(node, ColumnRef) and (node.source, node.name) in units
        return ColumnRef(UNIT, node.source) if is_unit else node  # type: ignore[union-attr]

    each = [[rewritten(node, named) for node in part.on] for part in parts]
    return [list({_told(node): node for node in nodes}.values()) for nodes in each]


def _told(node: Scalar) -> object:
    """Return what tells a condition from others: x = y is y = x."""
    is_equality = isinstance(node, Call) and node.function == "equal"
    return frozenset(node.arguments) if is_equality else node  # type: ignore[union-attr]


def _join(one: Joined, on: list[Scalar], item: str, dialect: Dialect, scope: Scope) -> str:
    if not on and one.kind == "inner":
        return f"CROSS JOIN {item}"
    word = "JOIN" if one.kind == "inner" else f"{one.kind.upper()} JOIN"
    condition = " AND ".join(scalar_sql(node, dialect, scope) for node in on) or "TRUE"
    return f"{word} {item} ON {condition}"


def output_sql(output: Output, dialect: Dialect) -> str:
    """Return an output as a SELECT over a table ``released`` of keys and aggregates.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> from discreet.tables.model.scalar import ReleasedAggregate
    >>> output_sql(Output(columns=(("n", ReleasedAggregate(0)),), limit=3), DUCKDB)
    'SELECT released.aggregate_0 AS "n" FROM released LIMIT 3'
    """
    columns = ", ".join(
        f"{scalar_sql(node, dialect)} AS {quoted(name)}" for name, node in output.columns
    )
    text = f"SELECT {columns} FROM released"  # noqa: S608
    if output.where is not None:
        text += f" WHERE {scalar_sql(output.where, dialect)}"
    order = [
        f"{scalar_sql(one.by, dialect)} {'DESC' if one.is_descending else 'ASC'} "
        f"NULLS {'FIRST' if one.nulls_first else 'LAST'}"
        for one in output.order
    ]
    if order:
        text += f" ORDER BY {', '.join(order)}"
    for word, count in (("LIMIT", output.limit), ("OFFSET", output.offset)):
        text += "" if count is None else f" {word} {count}"
    return text
