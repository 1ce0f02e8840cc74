"""Functions of dates and timestamps, which base tables only hold from year 1 to 9999."""

from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Call, Cast, Literal
from discreet.tables.sql.expressions.arguments import Rule, need
from discreet.tables.sql.expressions.casts import cast
from discreet.tables.sql.expressions.literals import as_kind
from discreet.tables.sql.expressions.term import Scope, Term, number
from discreet.tables.sql.question.context import short_sql

__all__ = [
    "ANONYMOUS",
    "RULES",
    "STEPS",
    "part_name",
    "seconds",
    "written_step",
]

# The least and greatest value of each part; few enough to be public keys where listed as such.
_PARTS: Final[dict[str, tuple[int, int]]] = {
    "year": (1, 9999),
    "isoyear": (0, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_MOST_KEYS: Final = 31
_ALIASES: Final = {
    "years": "year",
    "quarters": "quarter",
    "months": "month",
    "mon": "month",
    "weeks": "week",
    "weekofyear": "week",
    "days": "day",
    "dayofmonth": "day",
    "doy": "dayofyear",
    "dayofweek": "dow",
    "weekday": "dow",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
    "isoweek": "week",
    "epoch_second": "epoch",
    "epoch_seconds": "epoch",
}
_NAMED: Final = (*_PARTS, "epoch", "date")
_NODES: Final[dict[type[exp.Expression], str]] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfYear: "dayofyear",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
STEPS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_MICROSECONDS: Final = scalar.double(1_000_000)


def written_step(node: exp.Expression | None) -> str:
    """Return what a word for a part of a date is called here."""
    if isinstance(node, exp.Literal | exp.Var):
        written = str(node.this)
    else:
        written = "" if node is None else short_sql(node)
    return _ALIASES.get(written.lower(), written.lower())


def part_name(node: exp.Expression, scope: Scope, allowed: tuple[str, ...]) -> str:
    """Return the part of a date that is named, or refuse it."""
    part = written_step(node)
    if part not in allowed:
        raise scope.question.refuse("date_part", node, word=short_sql(node).strip("'"))
    return part


def seconds(term: Term) -> Term:
    """Return a moment as seconds since 1970 in UTC, with fractions."""
    count = Cast(Call("epoch_microseconds", (term.node,)), "double", widens=True)
    return number(
        Call("divide", (count, _MICROSECONDS)),
        is_whole=term.kind == "date",
        is_nullable=term.is_nullable,
        is_tidy=True,
    )


def _passed(part: str, node: exp.Expression, scope: Scope) -> Term | None:
    """Translate EXTRACT(EPOCH FROM a - b) and EXTRACT(DAY FROM a - b), None if it is neither."""
    while isinstance(node, exp.Paren):
        node = node.this
    if part not in ("epoch", "day") or not isinstance(node, exp.Sub):
        return None
    sides = [scope.term(side) for side in (node.this, node.expression)]
    if not {side.kind for side in sides} <= {"date", "timestamp"}:
        return None
    apart = Call("subtract", (seconds(sides[0]).node, seconds(sides[1]).node))
    is_nullable = any(side.is_nullable for side in sides)
    if part == "day":
        days = Call("trunc", (Call("divide", (apart, scalar.double(86_400))),))
        return number(days, is_whole=True, is_nullable=is_nullable, is_tidy=True)
    return number(apart, is_nullable=is_nullable, is_tidy=True)


def _part(part: str, moment: exp.Expression, scope: Scope) -> Term:
    passed = _passed(part, moment, scope)
    if passed is not None:
        return passed
    if part in ("epoch", "date"):
        term = need(scope, moment, "date", "timestamp", word="EXTRACT")
        return seconds(term) if part == "epoch" else cast(scope, moment, term, "DATE")
    term = need(scope, moment, "date", "timestamp", word=part.upper())
    if term.kind == "date" and part in ("hour", "minute", "second"):
        term = as_kind(term, "timestamp") or term
    low, high = _PARTS[part]
    values = (*range(low, high + 1), *((None,) if term.is_nullable else ()))
    return Term(
        node=Call("date_part", (Literal(part, "text"), term.node)),
        kind="number",
        type="int64",
        interval=(Fraction(low), Fraction(high)),
        is_whole=True,
        is_nullable=term.is_nullable,
        values=values if high - low < _MOST_KEYS else None,
    )


def _extract(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    return _part(part_name(node.this, scope, _NAMED), node.expression, scope)


def _date_part(node: exp.Expression, scope: Scope) -> Term:
    if len(node.expressions) != 2:
        raise scope.question.refuse(
            "arguments", node, word="DATE_PART", example="DATE_PART('month', d)"
        )
    part, moment = node.expressions
    return _part(part_name(part, scope, _NAMED), moment, scope)


def _named_part(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    return _part(_NODES[type(node)], node.this, scope)


def _weekday(node: exp.Expression, scope: Scope) -> Term:
    if len(node.expressions) != 1:
        raise scope.question.refuse("arguments", node, word="WEEKDAY", example="WEEKDAY(d)")
    return _part("dow", node.expressions[0], scope)


def _trunc(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "unit")
    step = part_name(node.args["unit"], scope, STEPS)
    term = need(scope, node.this, "date", "timestamp", word="DATE_TRUNC")
    return Term(
        node=Call("date_trunc", (Literal(step, "text"), term.node)),
        kind="timestamp",
        type="timestamp",
        is_nullable=term.is_nullable,
        is_zoned=term.is_zoned,
    )


def _difference(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "unit", "date_part_boundary")
    if node.args.get("unit") is None:
        example = "DATE_DIFF('day', a, b)"
        raise scope.question.refuse("arguments", node, word="DATE_DIFF", example=example)
    step = part_name(node.args["unit"], scope, STEPS)
    moments = [
        need(scope, part, "date", "timestamp", word="DATE_DIFF")
        for part in (node.expression, node.this)
    ]
    stamps = [as_kind(moment, "timestamp") or moment for moment in moments]
    return Term(
        node=Call("date_diff", (Literal(step, "text"), stamps[0].node, stamps[1].node)),
        kind="number",
        type="int64",
        is_whole=True,
        is_nullable=any(moment.is_nullable for moment in moments),
    )


def _to_date(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    return cast(scope, node, scope.term(node.this), "DATE")


RULES: Final[dict[type[exp.Expression], Rule]] = {
    **dict.fromkeys(_NODES, _named_part),
    exp.Extract: _extract,
    exp.TimestampTrunc: _trunc,
    exp.DateTrunc: _trunc,
    exp.DatetimeTrunc: _trunc,
    exp.DateDiff: _difference,
    exp.TimestampDiff: _difference,
    exp.DatetimeDiff: _difference,
    exp.Date: _to_date,
    exp.TsOrDsToDate: _to_date,
}
ANONYMOUS: Final[dict[str, Rule]] = {
    "date_part": _date_part,
    "datepart": _date_part,
    "weekday": _weekday,
}
