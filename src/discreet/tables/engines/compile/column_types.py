"""What type everything in a plan has, from the declared types of its tables."""

from collections.abc import Mapping
from typing import Final

from discreet.tables.model.relation import Columns, GroupedRows, Rows, Scan, Select, UnionRows
from discreet.tables.model.scalar import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Fold,
    Function,
    Literal,
    Scalar,
)
from discreet.tables.model.types import SQL_NAMES, Type, plain_type

__all__ = ["Scope", "Tables", "scope_of", "type_of", "types_of"]

Tables = Mapping[str, Mapping[str, str]]
"""The declared types of the columns of tables, by name."""

Scope = Mapping[str, Mapping[str, str]]
"""The types of columns by the alias of what they are from; '' where there is only one."""

_OURS: Final[dict[str, Type]] = {name: type_ for type_, name in SQL_NAMES.items()}
_RESULTS: Final[dict[Function, Type]] = {
    **dict.fromkeys(
        (
            "negate", "abs", "add", "subtract", "multiply", "divide", "remainder", "floor", "ceil",
            "trunc", "round", "sign", "sqrt", "exp", "ln", "log2", "log10", "power", "sin", "cos",
            "tan", "asin", "acos", "atan", "atan2", "clamp", "not_nan", "plus_zero", "parse_double",
        ),
        "double",
    ),
    **dict.fromkeys(
        (
            "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same",
            "different", "in", "is_null", "not", "and", "or", "starts_with", "ends_with",
            "contains", "like", "ilike", "matches", "matches_whole",
        ),
        "boolean",
    ),
    **dict.fromkeys(
        (
            "lower", "upper", "trim", "ltrim", "rtrim", "substring", "left", "right", "concat",
            "concat_present", "initcap", "replace", "split_part", "pad_left", "pad_right",
            "reverse", "format_time", "match", "replace_matches", "period_label", "tagged",
        ),
        "text",
    ),
    **dict.fromkeys(
        ("length", "position", "byte_length", "epoch_microseconds", "date_part", "date_diff"),
        "int64",
    ),
    **dict.fromkeys(
        (
            "from_epoch", "parse_time", "timestamp_in_range", "from_utc", "date_trunc", "shift",
            "to_zone", "from_zone",
        ),
        "timestamp",
    ),
    "date_in_range": "date",
}  # fmt: skip
_COUNTS: Final = ("count", "count_distinct")


def types_of(rows: Rows, tables: Tables) -> dict[str, str]:
    """Return the type of each column of rows: one of ours, or a declared one that is no other.

    >>> people = {"people": {"id": "BIGINT", "pay": "DECIMAL(9,2)"}}
    >>> types_of(Select.of("people", unit="id", value_0="pay"), people)
    {'unit': 'int64', 'value_0': 'DECIMAL(9,2)'}
    """
    if isinstance(rows, UnionRows):
        return types_of(rows.parts[0], tables)
    if isinstance(rows, GroupedRows):
        return _named(rows.columns, {"": types_of(rows.rows, tables)})
    return _named(rows.columns, scope_of(rows, tables))


def scope_of(select: Select, tables: Tables) -> Scope:
    """Return the types of what the columns and conditions of a SELECT can name.

    >>> scope_of(Select.of("people", unit="id"), {"people": {"id": "INT"}})
    {'': {'id': 'int32'}}
    """
    if isinstance(select.source, Scan):
        given = tables.get(select.source.table, {})
        return {"": {name: _ours(declared) for name, declared in given.items()}}
    return {part.alias: types_of(part.rows, tables) for part in select.source}


def type_of(node: Scalar, scope: Scope) -> str:
    """Return the type of an expression; ``null`` where nothing is known.

    >>> type_of(Call("divide", (ColumnRef("x"), ColumnRef("n"))), {"": {"x": "int32"}})
    'double'
    >>> type_of(Call("coalesce", (Literal(None, "null"), ColumnRef("n"))), {"": {"n": "int32"}})
    'int32'
    """
    match node:
        case ColumnRef():
            return scope.get(node.source, {}).get(node.name, "null")
        case Literal() | Cast():
            return node.type
        case Call():
            known = _RESULTS.get(node.function)
            return known or _first(node.arguments, scope)
        case Case():
            return _first((*(then for _, then in node.branches), node.otherwise), scope)
        case Fold():
            if node.function in _COUNTS:
                return "int64"
            assert node.value is not None
            return "int128" if node.function == "sum" else type_of(node.value, scope)
        case _:
            return "released"


def _first(nodes: tuple[Scalar, ...], scope: Scope) -> str:
    """Return the type of the first that has one: all others have the same, or are NULL."""
    return next((found for node in nodes if (found := type_of(node, scope)) != "null"), "null")


def _named(columns: Columns, scope: Scope) -> dict[str, str]:
    return {name: type_of(node, scope) for name, node in columns}


def _ours(declared: str) -> str:
    plain = plain_type(declared)
    return _OURS.get(plain, plain)
