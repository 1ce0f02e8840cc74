"""Literals, and conversions that yield NULL where a value does not fit."""

from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import Call, Cast, Scalar
from discreet.tables.model.types import INTEGERS, SQL_NAMES, Type
from discreet.tables.sql.expressions import intervals
from discreet.tables.sql.expressions.arguments import Rule
from discreet.tables.sql.expressions.literals import (
    exact,
    number_literal,
    text_literal,
    time_literal,
    truth_literal,
)
from discreet.tables.sql.expressions.term import (
    NULL,
    Scope,
    Term,
    as_double,
    boolean,
    in_range,
    number,
    text,
    tidy,
)
from discreet.tables.sql.question.context import DIALECT

__all__ = ["RULES", "cast"]

_INTEGERS: Final[dict[str, Type]] = {
    **{SQL_NAMES[type_]: type_ for type_ in INTEGERS}, "INT": "int32", "HUGEINT": "int64",
}  # fmt: skip

_NAMES: Final = {  # of other databases
    "FLOAT64": "DOUBLE", "FLOAT8": "DOUBLE", "NUMBER": "DOUBLE", "BIGNUMERIC": "DOUBLE",
    "TIMESTAMPNTZ": "TIMESTAMP", "DATETIME": "TIMESTAMP",
}  # fmt: skip


def _null(node: exp.Expression, scope: Scope) -> Term:
    return NULL


def _boolean(node: exp.Expression, scope: Scope) -> Term:
    return truth_literal(bool(node.this))


def _literal(node: exp.Expression, scope: Scope) -> Term:
    written = str(node.this)
    if node.args.get("is_string"):
        if "\0" in written:
            raise scope.question.refuse(
                "literal", node, word="the text", what="readable text", example="'north'"
            )
        return text_literal(written)
    value = exact(written)
    if value is None:
        raise scope.question.refuse(
            "literal", node, word=written[:40], what="a number of usual size", example="1.5"
        )
    return number_literal(value)


def _cast(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "to", "safe")
    target = node.args["to"]
    wanted = target.sql(DIALECT).upper()
    wanted = _NAMES.get(wanted, wanted)
    is_text = isinstance(node.this, exp.Literal) and node.this.args.get("is_string")
    if is_text and wanted in ("DATE", "TIMESTAMP"):
        moment = time_literal(str(node.this.this), "date" if wanted == "DATE" else "timestamp")
        if moment is None:
            raise scope.question.refuse(
                "literal", node.this, word=f"a {wanted}", what="a day of the calendar",
                example="DATE '2026-01-31'",
            )  # fmt: skip
        return moment
    return cast(scope, node, scope.term(node.this), wanted)


def cast(scope: Scope, node: exp.Expression, term: Term, wanted: str) -> Term:
    """Convert a term, to NULL where a value cannot be converted."""
    source = tidy(term)
    if term.kind in ("number", "text", "boolean", "null"):
        if wanted in _INTEGERS:
            # A text goes through a double, as a number would: '1e3' is then the same as 1e3.
            type_ = _INTEGERS[wanted]
            return Term(
                node=Cast(source, type_), kind="number", type=type_, is_whole=True,
                interval=intervals.rounded(term.interval),
            )  # fmt: skip
        if wanted in ("DOUBLE", "FLOAT", "REAL") or wanted.startswith("DECIMAL"):
            return number(
                _to_double(term, source), interval=term.interval,
                is_whole=term.is_whole, is_nullable=term.is_nullable or term.kind == "text",
                is_tidy=True,
            )  # fmt: skip
        if wanted == "BOOLEAN":
            return boolean(Cast(source, "boolean"))
    if wanted in ("TEXT", "VARCHAR"):
        if term.kind == "number" and term.type == "double":
            source = Call("plus_zero", (source,))
        return text(Cast(source, "text"), is_nullable=term.is_nullable)
    if wanted in ("DATE", "TIMESTAMP") and term.kind in ("text", "date", "timestamp", "null"):
        moment: Type = "date" if wanted == "DATE" else "timestamp"
        return in_range(Cast(source, moment), moment)
    raise scope.question.refuse("cast", node, word=wanted)


def _to_double(term: Term, source: Scalar) -> Scalar:
    if term.kind == "text":
        return Call("parse_double", (source,))
    return as_double(replace(term, node=source))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Literal: _literal,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
