"""The functions that questions about the catalogue may call: all others are refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

__all__ = ["CALLS", "MACROS", "PLAIN", "TYPED", "constant_calls"]

Call = Callable[[Sequence[exp.Expr]], exp.Expr]


def _null(*_: object) -> exp.Expr:
    return exp.cast(exp.null(), "text")


def _always(value: object) -> Call:
    return lambda _: exp.convert(value)


def _subscripts(given: Sequence[exp.Expr]) -> exp.Expr:
    length = exp.func("len", given[0])
    return exp.func("unnest", exp.func("generate_series", exp.convert(1), length))


def _expanded(_: Sequence[exp.Expr]) -> exp.Expr:
    return exp.cast(exp.null(), "STRUCT(x INT, n INT)", dialect="duckdb")


_NOTHING: Final = [
    "col_description",
    "json_build_object",
    "obj_description",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_tablespace_location",
    "shobj_description",
    "inet_server_addr",
    "inet_client_addr",
    "pg_get_partition_constraintdef",
]
_TRUE: Final = [
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_schema_privilege",
    "has_table_privilege",
    "pg_collation_is_visible",
    "pg_function_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_table_is_visible",
    "pg_type_is_visible",
]
_FALSE: Final = [
    "pg_has_role",
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_relation_is_publishable",
    "has_function_privilege",
    "has_sequence_privilege",
    "has_language_privilege",
    "has_foreign_data_wrapper_privilege",
    "has_server_privilege",
    "has_tablespace_privilege",
]
_ZERO: Final = [
    "age",
    "pg_database_size",
    "pg_indexes_size",
    "pg_my_temp_schema",
    "pg_relation_size",
    "pg_table_size",
    "pg_total_relation_size",
    "txid_current",
    "inet_server_port",
    "pg_stat_get_numscans",
]

CALLS: Final[dict[str, Call]] = {
    **dict.fromkeys(_NOTHING, _null),
    **dict.fromkeys(_TRUE, _always(True)),
    **dict.fromkeys(_FALSE, _always(False)),
    **dict.fromkeys(_ZERO, _always(0)),
    "pg_encoding_to_char": _always("UTF8"),
    "pg_size_pretty": _always("0 bytes"),
    "pg_client_encoding": _always("UTF8"),
    "pg_advisory_unlock_all": _null,
    "pg_postmaster_start_time": lambda _: exp.cast(exp.null(), "timestamp"),
    "current_schemas": lambda _: exp.array("'pg_catalog'", "'public'"),
    "array_lower": _always(1),
    "array_upper": lambda given: exp.func("len", given[0]),
    "generate_subscripts": _subscripts,
    "_pg_expandarray": _expanded,
}
"""What is put in the place of a call: nothing of it is looked up, and most of it is nothing."""

MACROS: Final[dict[str, str]] = {
    "format_type": "(t, m) AS (SELECT shown FROM known_types WHERE oid = t)",
    "pg_get_userbyid": "(u) AS (SELECT rolname FROM pg_catalog_.pg_roles WHERE oid = u)",
    "to_regclass": "(n) AS (SELECT min(oid) FROM pg_catalog_.pg_class WHERE relname = "
    "replace(regexp_replace(n, '^(\"?(public|pg_catalog)\"?\\.)', ''), '\"', ''))",
    "to_regtype": "(n) AS (SELECT min(oid) FROM known_types WHERE n IN (shown, name))",
    "to_regnamespace": "(n) AS (SELECT min(oid) FROM pg_catalog_.pg_namespace WHERE nspname = n)",
    "to_regrole": "(n) AS (SELECT min(oid) FROM pg_catalog_.pg_roles WHERE rolname = n)",
    "regclass_name": "(o) AS (SELECT min(relname) FROM pg_catalog_.pg_class WHERE oid = o)",
    "regtype_name": "(o) AS (SELECT min(shown) FROM known_types WHERE oid = o)",
    "regnamespace_name": "(o) AS (SELECT min(nspname) FROM pg_catalog_.pg_namespace WHERE oid = o)",
    "regrole_name": "(o) AS (SELECT min(rolname) FROM pg_catalog_.pg_roles WHERE oid = o)",
    "quote_ident": "(n) AS (CASE WHEN regexp_full_match(n, '[a-z_][a-z0-9_]*') THEN n "
    "ELSE '\"' || replace(n, '\"', '\"\"') || '\"' END)",
}
"""Functions that the catalogue's database has for us."""

PLAIN: Final = frozenset({
    "all", "array_length",
    "array_remove", "array_to_string", "btrim", "concat_ws", "len", "regexp_full_match", "now",
    "unnest", "generate_series", "strpos", "split_part", "string_to_array",
})  # fmt: skip
"""Functions of DuckDB that are called by name."""

TYPED: Final = (
    exp.Abs, exp.Any, exp.Array, exp.ArrayAgg, exp.ArrayToString, exp.Avg, exp.Case, exp.Cast,
    exp.Ceil, exp.Coalesce, exp.Concat, exp.ConcatWs, exp.Count, exp.CurrentDate,
    exp.CurrentTimestamp, exp.Exists, exp.Explode, exp.ExplodingGenerateSeries, exp.Extract,
    exp.Floor, exp.GenerateSeries, exp.Greatest, exp.GroupConcat, exp.If, exp.Least, exp.Left,
    exp.Length, exp.LogicalAnd, exp.LogicalOr, exp.Lower, exp.Max, exp.Min, exp.Mod, exp.Nullif,
    exp.RegexpLike, exp.RegexpReplace, exp.Replace, exp.Right, exp.Round, exp.RowNumber,
    exp.SplitPart, exp.StringToArray, exp.StrPosition, exp.Substring, exp.Sum, exp.Trim,
    exp.Unnest, exp.Upper, exp.And, exp.Or, exp.Xor,
)  # fmt: skip
"""Functions that the parser has names of its own for."""


def constant_calls(facts: Mapping[str, object]) -> dict[str, Call]:
    """Return the calls that a session answers by itself.

    >>> constant_calls({"version": "16.0"})["version"]([]).sql()
    "'16.0'"
    """
    return {name: _always(value) for name, value in facts.items()}
