"""Scalar expressions as SQL."""

from discreet.tables.engines.compile.column_types import Scope, type_of
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.text import identifier, number, text
from discreet.tables.model.scalar import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Fold,
    Literal,
    ReleasedAggregate,
    ReleasedKey,
    ReleasedValue,
    Scalar,
)

__all__ = ["scalar_sql"]

_FOLDS = {
    "count": "count({})",
    "count_distinct": "count(DISTINCT {})",
    "minimum": "min({})",
    "maximum": "max({})",
    "sum": "sum({})",
}


def scalar_sql(node: Scalar, dialect: Dialect, scope: Scope | None = None) -> str:
    """Return an expression as SQL; ``scope`` has the types of what it names.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> scalar_sql(Call("divide", (ColumnRef("x", "s0"), ColumnRef("n"))), DUCKDB)
    '(s0."x" / nullif("n", 0e0))'
    """
    match node:
        case ColumnRef():
            return (
                f"{node.source}.{identifier(node.name)}" if node.source else identifier(node.name)
            )
        case Literal():
            return _literal(node, dialect)
        case Call():
            texts = [scalar_sql(argument, dialect, scope) for argument in node.arguments]
            template = dialect.functions[node.function]
            if isinstance(template, str):
                return template.format(*texts)
            return template(node.arguments, texts)
        case Case():
            whens = [
                f"WHEN {scalar_sql(when, dialect, scope)} THEN {scalar_sql(then, dialect, scope)}"
                for when, then in node.branches
            ]
            is_null = isinstance(node.otherwise, Literal) and node.otherwise.value is None
            ending = "" if is_null else f" ELSE {scalar_sql(node.otherwise, dialect, scope)}"
            return f"CASE {' '.join(whens)}{ending} END"
        case Cast():
            value, given = scalar_sql(node.value, dialect, scope), type_of(node.value, scope or {})
            return dialect.cast(value, given, node.type, node.widens)
        case Fold():
            inner = "*" if node.value is None else scalar_sql(node.value, dialect, scope)
            return _FOLDS[node.function].format(inner)
        case ReleasedKey():
            return f"released.key_{node.index}"
        case ReleasedAggregate():
            return f"released.aggregate_{node.index}"
        case ReleasedValue():
            return f"released.value_{node.index}"  # to be read: a literal stands there by then


def _literal(node: Literal, dialect: Dialect) -> str:
    value = node.value
    if value is None:
        return "NULL" if node.type == "null" else f"CAST(NULL AS {dialect.types[node.type]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        if node.type == "text":
            return text(value)
        return f"{node.type.upper()} '{value.replace('T', ' ')}'"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        shown = f"{int(value)}e0"
    else:
        shown = number(value) if isinstance(value, float) else str(value)
    return f"({shown})" if value < 0 else shown
