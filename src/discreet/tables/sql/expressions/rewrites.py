"""Functions that are short for an expression over others: one line each."""

from functools import cache
from typing import Final

import sqlglot
from sqlglot import exp

from discreet.tables.sql.expressions.arguments import Rule
from discreet.tables.sql.expressions.term import Scope, Term
from discreet.tables.sql.question.context import DIALECT

__all__ = ["ANONYMOUS", "RULES", "rewritten"]

# By name and number of arguments, which are called a, b and c here.
_REWRITES: Final[dict[tuple[str, int], str]] = {
    ("IFF", 3): "CASE WHEN a THEN b ELSE c END",
    ("NVL2", 3): "CASE WHEN a IS NOT NULL THEN b ELSE c END",
    ("ISNULL", 1): "a IS NULL",
    ("ISNULL", 2): "COALESCE(a, b)",
    ("ZEROIFNULL", 1): "COALESCE(a, 0)",
    ("NULLIFZERO", 1): "NULLIF(a, 0)",
    ("EQUAL_NULL", 2): "a IS NOT DISTINCT FROM b",
    ("SAFE_DIVIDE", 2): "a / b",
    ("SAFE_ADD", 2): "a + b",
    ("SAFE_SUBTRACT", 2): "a - b",
    ("SAFE_MULTIPLY", 2): "a * b",
    ("SAFE_NEGATE", 1): "-a",
    ("DIV0", 2): "CASE WHEN b = 0 THEN 0 ELSE a / b END",
    ("DIV0NULL", 2): "CASE WHEN COALESCE(b, 0) = 0 THEN 0 ELSE a / b END",
    ("SQUARE", 1): "a * a",
    ("CBRT", 1): "SIGN(a) * POWER(ABS(a), 1 / 3)",
    ("PI", 0): "3.141592653589793",
    ("RADIANS", 1): "a * 0.017453292519943295",
    ("DEGREES", 1): "a * 57.29577951308232",
    ("GREATEST_IGNORE_NULLS", 2): "GREATEST(a, b)",
    ("LEAST_IGNORE_NULLS", 2): "LEAST(a, b)",
    ("BOOLAND", 2): "a AND b",
    ("BOOLOR", 2): "a OR b",
    ("BOOLNOT", 1): "NOT a",
    ("BTRIM", 1): "TRIM(a)",
    ("BTRIM", 2): "TRIM(BOTH b FROM a)",
    ("CONTAINS_SUBSTR", 2): "CONTAINS(LOWER(a), LOWER(b))",
    ("TO_VARCHAR", 1): "CAST(a AS VARCHAR)",
    ("TO_NUMBER", 1): "CAST(a AS DOUBLE)",
    ("TO_DOUBLE", 1): "CAST(a AS DOUBLE)",
    ("TRY_TO_NUMBER", 1): "CAST(a AS DOUBLE)",
    ("TRY_TO_TIMESTAMP", 1): "CAST(a AS TIMESTAMP)",
    ("MONTHNAME", 1): "STRFTIME(a, '%B')",
    ("DAYNAME", 1): "STRFTIME(a, '%A')",
    ("UNIX_SECONDS", 1): "FLOOR(EPOCH(a))",
    ("UNIX_MILLIS", 1): "FLOOR(EPOCH(a) * 1000)",
    ("UNIX_TIMESTAMP", 1): "FLOOR(EPOCH(a))",
    ("TIMESTAMP_SECONDS", 1): "TO_TIMESTAMP(a)",
    ("TIMESTAMP_MILLIS", 1): "TO_TIMESTAMP(a / 1000)",
    ("FROM_UNIXTIME", 1): "TO_TIMESTAMP(a)",
    ("WEEKISO", 1): "WEEK(a)",
}
_CLASSES: Final[dict[type[exp.Expr], str]] = {
    kind: name for name, _ in _REWRITES if (kind := exp.FUNCTION_BY_NAME.get(name)) is not None
}


@cache
def _parsed(sql: str) -> exp.Expression:
    return sqlglot.parse_one(sql, dialect=DIALECT)  # type: ignore[return-value]


def rewritten(
    node: exp.Expression, scope: Scope, sql: str, *arguments: exp.Expression
) -> exp.Expression:
    """Return SQL in which a, b and c stand for arguments; refusals are told at the node's place."""
    named = dict(zip("abc", arguments, strict=False))
    start = scope.question.positions.offset(node)

    def filled(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Column) and part.name in named:
            return named[part.name].copy()
        part.meta["start"] = start
        return part

    return _parsed(sql).copy().transform(filled, copy=False)


def _rewrite(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node, exp.Anonymous):
        name, given = str(node.this).upper(), list(node.expressions)
    else:
        name = _CLASSES[type(node)]
        given = [node.args[key] for key in node.arg_types if node.args.get(key)]
    sql = _REWRITES.get((name, len(given)))
    if sql is None or not all(isinstance(one, exp.Expression) for one in given):
        most = next(n for word, n in _REWRITES if word == name)
        example = f"{name}({', '.join('abc'[:most])})"
        raise scope.question.refuse("arguments", node, word=name, example=example)
    return scope.term(rewritten(node, scope, sql, *given))


RULES: Final[dict[type[exp.Expression], Rule]] = dict.fromkeys(_CLASSES, _rewrite)  # type: ignore[arg-type]
ANONYMOUS: Final[dict[str, Rule]] = {
    name.lower(): _rewrite for name, _ in _REWRITES if name not in exp.FUNCTION_BY_NAME
}
