"""From a question about the catalogue in PostgreSQL's SQL to one in DuckDB's, or to a refusal."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlglot import exp

from discreet.service.wire.catalogue.emptiness import without_empty_parts
from discreet.service.wire.catalogue.functions import (
    CALLS,
    MACROS,
    PLAIN,
    TYPED,
    Call,
    constant_calls,
)
from discreet.service.wire.catalogue.relations import relation_named
from discreet.service.wire.protocol.failures import WireFailure

__all__ = ["reads_catalogue_alone", "rewritten"]

_SCHEMAS: Final = ("pg_catalog", "information_schema")
_REGISTERED: Final = ("REGCLASS", "REGTYPE", "REGNAMESPACE", "REGROLE")
_AS_TEXT: Final = {"REGPROC", "REGPROCEDURE", "REGOPER", "REGOPERATOR", "NAME", "CHAR"}
_LIST: Final = re.compile(r"\{([^{}\\\n\r]*)\}")  # an array as a text
_REFUSED: Final = (
    exp.DDL, exp.DML, exp.Command, exp.Into, exp.Lock, exp.Pivot, exp.TableSample, exp.Lambda,
    exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Columns, exp.Fetch, exp.Hint,
)  # fmt: skip


def reads_catalogue_alone(tree: exp.Expr) -> bool:
    """Say whether a question reads relations of the catalogue, or no table at all.

    >>> import sqlglot
    >>> [reads_catalogue_alone(sqlglot.parse_one(t, read="postgres")) for t in (
    ...     "SELECT 1", "SELECT * FROM pg_class", "SELECT COUNT(*) FROM people")]
    [True, True, False]
    """
    return all(_is_catalogue(table) for table in _tables(tree))


def rewritten(tree: exp.Expr, *, facts: Mapping[str, object], settings: Mapping[str, str]) -> str:
    """Return a question in DuckDB's SQL over the tables that a clerk keeps.

    ``facts`` are functions that take nothing and are known beforehand: user, version and so on.
    ``settings`` are those of the session.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("SELECT relname FROM pg_catalog.pg_class", read="postgres")
    >>> rewritten(asked, facts={}, settings={})
    'SELECT relname FROM pg_catalog_.pg_class'
    """
    if not isinstance(tree, exp.Query):
        raise refused_here("this statement", "0A000")
    _check_shape(tree)
    calls = {**CALLS, **constant_calls(facts), "current_setting": _setting(settings)}
    tree = _without_schemas(without_empty_parts(tree.copy()))
    for node in reversed(list(tree.walk())):  # what is inside comes first
        made = _replacement(node, calls)
        if made is not node:
            node.replace(made)
    _check_functions(tree)
    return tree.sql("duckdb", comments=False)


def refused_here(what: str, code: str = "42883") -> WireFailure:
    """Return the refusal of something that the catalogue does not know."""
    return WireFailure(
        code,
        f"{what} is not known to this catalogue",
        hint="It answers what tools ask of tables and columns. Nothing was spent.",
    )


def _setting(settings: Mapping[str, str]) -> Call:
    def call(given: Sequence[exp.Expr]) -> exp.Expr:
        name: exp.Expr | None = given[0] if given else None
        name = name.this if isinstance(name, exp.Cast) else name
        known = settings.get(name.name.lower()) if isinstance(name, exp.Literal) else None
        return exp.cast(exp.convert(known), "text")

    return call


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that a question reads, without the parts of its own WITH."""
    own = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.db or table.name.lower() not in own:
            yield table


def _is_catalogue(table: exp.Table) -> bool:
    if not isinstance(table.this, exp.Identifier):
        return True  # a function of rows, which is checked on its own
    return table.db.lower() in _SCHEMAS or relation_named(table.db, table.name) is not None


def _without_schemas(tree: exp.Query) -> exp.Query:
    """Take the names of schemas off functions and columns, and put ours before tables."""
    for dot in list(tree.find_all(exp.Dot)):
        if isinstance(dot.this, exp.Identifier) and dot.this.name.lower() in _SCHEMAS:
            dot.replace(dot.expression)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    for table in list(_tables(tree)):
        if not isinstance(table.this, exp.Identifier):
            table.set("db", None)  # a function of rows, some of which are relations here
            full = relation_named("", _function_name(table.this))
            if full is None:
                continue
        else:
            full = relation_named(table.db, table.name)
        if full is None:
            raise refused_here(f"relation {table.sql('postgres')[:80]!r}", "42P01")
        schema, _, name = full.partition(".")
        made = exp.to_table(f"{schema}_.{name}")
        made.set("alias", table.args.get("alias"))
        made.set("joins", table.args.get("joins"))
        table.replace(made)
    return tree


def _replacement(node: exp.Expr, calls: Mapping[str, Call]) -> exp.Expr:
    if isinstance(node, exp.Operator):
        if str(node.args.get("operator")).rpartition(".")[2] != "~":
            raise refused_here("this operator")
        return exp.RegexpLike(this=node.this, expression=node.expression)
    if isinstance(node, exp.Collate):
        return node.left
    if isinstance(node, exp.ByteString):  # E'...'
        return exp.Literal.string(node.name)
    if isinstance(node, exp.Cast):
        return _cast(node)
    name = _function_name(node)
    if name in calls and not isinstance(node, TYPED):
        this = node.this
        return calls[name]([*([this] if isinstance(this, exp.Expr) else []), *node.expressions])
    return node


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    name = node.sql_name().lower() if isinstance(node, exp.Func) else ""
    return "version" if name == "current_version" else name


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a cast without the types that DuckDB has not: oids are numbers, names are texts."""
    kind = node.args["to"]
    word = str(kind.this).upper() if isinstance(kind, exp.ObjectIdentifier) else kind.sql().upper()
    word = word.rpartition(".")[2].strip('"')
    inner: exp.Expr = node.this
    if word in _REGISTERED:
        if isinstance(inner, exp.Literal | exp.Cast) and _is_text(inner):
            return exp.Anonymous(this=f"to_{word.lower()}", expressions=[inner])
        is_shown = node.find_ancestor(exp.Where, exp.Join) is None  # compared as a number there
        if isinstance(node.parent, exp.Cast):
            is_shown = _is_text(node.parent)
        named = exp.Anonymous(this=f"{word.lower()}_name", expressions=[inner])
        return named if is_shown else inner
    if word == "OID":
        return exp.cast(inner, "bigint")
    if word in _AS_TEXT:
        return exp.cast(inner, "text")
    if word in ("INT2VECTOR", "OIDVECTOR"):
        return inner
    listed = _LIST.fullmatch(inner.name) if isinstance(inner, exp.Literal) else None
    if listed is not None and node.is_type("array"):
        words = next(csv.reader([listed[1]]), [])
        node.set("this", exp.Array(expressions=[exp.Literal.string(one) for one in words]))
    return node


def _is_text(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return bool(node.is_string)
    return isinstance(node, exp.Cast) and node.is_type("text", "varchar", "char", "name")


def _check_shape(tree: exp.Expr) -> None:
    """Refuse statements that are no plain questions, and their kin."""
    for node in tree.walk():
        if isinstance(node, _REFUSED):
            raise refused_here(f"{type(node).__name__.upper()}", "0A000")
        if isinstance(node, exp.With) and node.recursive:
            raise refused_here("WITH RECURSIVE", "0A000")


def _check_functions(tree: exp.Expr) -> None:
    """Refuse all functions that are not known to be harmless."""
    for node in tree.find_all(exp.Func):
        name = _function_name(node)
        if not isinstance(node, TYPED) and name not in MACROS and name not in PLAIN:
            raise refused_here(f"function {name[:60]!r}")
