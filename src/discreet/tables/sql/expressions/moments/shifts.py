"""Moments moved by intervals, in the spellings of several databases, and counted from 1970."""

import re
from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Call, Cast, Literal
from discreet.tables.sql.expressions.arguments import Rule, need, whole_literal
from discreet.tables.sql.expressions.literals import as_kind
from discreet.tables.sql.expressions.moments.formats import parsed_moment
from discreet.tables.sql.expressions.moments.temporal import (
    STEPS,
    part_name,
    seconds,
    written_step,
)
from discreet.tables.sql.expressions.term import (
    Scope,
    Term,
    in_range,
    number,
    tidy_double,
)
from discreet.tables.sql.question.context import short_sql

__all__ = ["ANONYMOUS", "RULES", "moved", "time_arithmetic"]

_SECONDS: Final = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_WHOLE: Final = {1: "month", 3: "quarter", 12: "year"}  # which begin where buckets do
_FIRST: Final = 946_857_600  # seconds from 1970 to 2000-01-03
# Years 1 to 9999 moved by this much stay far inside what a TIMESTAMP can hold.
_MOST: Final = {"day": 999_999, "hour": 9_999_999, "minute": 99_999_999, "second": 999_999_999}


def time_arithmetic(node: exp.Expression, scope: Scope) -> Term | None:
    """Translate date + INTERVAL, date - INTERVAL, date + 7 and date - date, None if it is none."""
    sign = "+" if isinstance(node, exp.Add) else "-"
    left, right = node.this, node.expression
    if sign == "+" and isinstance(left, exp.Interval):
        left, right = right, left
    if isinstance(right, exp.Interval):
        count, unit = _interval(right, scope)
        return moved(right, scope, left, count if sign == "+" else -count, unit, word=sign)
    one, other = scope.term(left), scope.term(right)
    if sign == "+" and one.kind == "number":
        (left, one), (right, other) = (right, other), (left, one)
    if one.kind == "date" and other.kind == "number" and other.is_literal:
        days = whole_literal(right, scope, word=sign, example="d + 7")
        return _day(moved(node, scope, left, days if sign == "+" else -days, "day", word=sign))
    if sign == "-" and {one.kind, other.kind} <= {"date", "timestamp"}:
        if "timestamp" in (one.kind, other.kind):
            raise scope.question.refuse("moments", node, one=short_sql(left), two=short_sql(right))
        passed = Call("date_diff", (Literal("day", "text"), other.node, one.node))
        return number(Cast(passed, "double", widens=True), is_whole=True, is_tidy=True)
    return None


def moved(
    node: exp.Expression, scope: Scope, moment: exp.Expression, count: int, unit: str, *, word: str
) -> Term:
    """Return a moment so many steps later: a timestamp, NULL outside the years 1 to 9999."""
    if abs(count) > _MOST.get(unit, 9999):
        raise scope.question.refuse(
            "literal", node, word="an INTERVAL", what="a small whole number and its unit",
            example="INTERVAL 7 DAY",
        )  # fmt: skip
    term = need(scope, moment, "date", "timestamp", word=word)
    later = Call("shift", (term.node, Literal(count, "int32"), Literal(unit, "text")))
    return replace(in_range(later, "timestamp"), is_zoned=term.is_zoned)


def _day(term: Term) -> Term:
    return replace(term, node=Cast(term.node, "date"), kind="date", type="date")


def _interval(node: exp.Expression, scope: Scope) -> tuple[int, str]:
    unit = written_step(node.args.get("unit"))
    count = node.this
    written = str(count.this) if isinstance(count, exp.Literal) else ""
    if unit not in STEPS or not re.fullmatch(r"-?\d{1,9}", written):
        raise scope.question.refuse(
            "literal", node, word="an INTERVAL", what="a small whole number and its unit",
            example="INTERVAL 7 DAY",
        )  # fmt: skip
    return int(written), unit


def _add(node: exp.Expression, scope: Scope) -> Term:
    """Translate DATE_ADD(d, INTERVAL 1 DAY), DATEADD(day, 1, d), DATE_ADD(d, 7) and the like."""
    word, given = _call(node)
    sign = -1 if word.endswith("SUB") else 1
    if len(given) == 2 and isinstance(given[1], exp.Interval):
        count, unit = _interval(given[1], scope)
        return moved(node, scope, given[0], sign * count, unit, word=word)
    example = f"{word}(d, INTERVAL 7 DAY)"
    if len(given) == 2:  # days, or months
        count = sign * whole_literal(given[1], scope, word=word, example=example)
        unit = "month" if word == "ADD_MONTHS" else "day"
        return _day(moved(node, scope, given[0], count, unit, word=word))
    if len(given) != 3 or sign < 0:
        raise scope.question.refuse("arguments", node, word=word, example=example)
    unit = part_name(given[0], scope, STEPS)
    count = whole_literal(given[1], scope, word=word, example=f"{word}(day, 7, d)")
    return moved(node, scope, given[2], count, unit, word=word)


def _call(node: exp.Expression) -> tuple[str, list[exp.Expression]]:
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper(), list(node.expressions)
    parts = [node.this, node.args.get("expression"), node.args.get("unit")]
    assert isinstance(node, exp.Func)
    return type(node).sql_names()[0], [part for part in parts if part is not None]


def _last_day(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "unit")
    if node.args.get("unit") is not None:
        part_name(node.args["unit"], scope, ("month",))
    term = need(scope, node.this, "date", "timestamp", word="LAST_DAY")
    month = Literal("month", "text")
    first = Call("date_trunc", (month, term.node))
    after = Call("shift", (first, Literal(1, "int32"), month))
    last = Call("shift", (after, Literal(-1, "int32"), Literal("day", "text")))
    return in_range(Cast(last, "date"), "date")


def _epoch(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    return seconds(need(scope, node.this, "date", "timestamp", word="EPOCH"))


def _since_epoch(node: exp.Expression, scope: Scope) -> Term:
    """Translate TO_TIMESTAMP(x) of seconds, EPOCH_MS of either, and TO_TIMESTAMP(x, format)."""
    scope.question.arguments(node, "this", "scale")
    scale = node.args.get("scale")
    if isinstance(scale, exp.Literal) and scale.args.get("is_string"):
        return parsed_moment(node, scope, node.this, scale, "timestamp")
    power = int(str(scale.this)) if isinstance(scale, exp.Literal) else 0
    term = need(scope, node.this, "number", "date", "timestamp", word="TO_TIMESTAMP")
    if term.kind != "number":
        steps = Call("multiply", (seconds(term).node, scalar.double(10**power)))
        return number(Call("floor", (steps,)), is_whole=True, is_nullable=term.is_nullable)
    count = Call("multiply", (tidy_double(term), scalar.double(10 ** (6 - power))))
    moment = in_range(Call("from_epoch", (Call("not_nan", (count,)),)), "timestamp")
    return replace(moment, is_zoned=scale is None)  # TO_TIMESTAMP has a zone, EPOCH_MS has none


def _bucket(node: exp.Expression, scope: Scope) -> Term:
    """Translate TIME_BUCKET(INTERVAL 15 MINUTE, t): where the interval around t begins.

    Intervals are counted from Monday, 2000-01-03, and those of months from 2000-01-01. Seconds
    since then, and microseconds at the end of a whole second, are whole numbers that doubles hold
    exactly; so is the floor of their quotient.
    """
    scope.question.arguments(node, "this", "expression")
    example = "TIME_BUCKET(INTERVAL 15 MINUTE, t)"
    if not isinstance(node.this, exp.Interval) or node.args.get("expression") is None:
        raise scope.question.refuse("arguments", node, word="TIME_BUCKET", example=example)
    count, unit = _interval(node.this, scope)
    term = need(scope, node.expression, "date", "timestamp", word="TIME_BUCKET")
    months = count * _MONTHS.get(unit, 0)
    if count < 1 or (months and months not in _WHOLE):
        raise scope.question.refuse("arguments", node, word="TIME_BUCKET", example=example)
    if months:
        found = Call("date_trunc", (Literal(_WHOLE[months], "text"), term.node))
    else:
        width = scalar.double(count * _SECONDS[unit])
        stamp = (as_kind(term, "timestamp") or term).node
        first = Literal("2000-01-03 00:00:00", "timestamp")
        passed = Call("date_diff", (Literal("second", "text"), first, stamp))
        steps = Call("floor", (Call("divide", (Cast(passed, "double", widens=True), width)),))
        start = Call("add", (Call("multiply", (steps, width)), scalar.double(_FIRST)))
        found = Call("from_epoch", (Call("multiply", (start, scalar.double(1_000_000))),))
    made = replace(in_range(found, "timestamp"), is_zoned=term.is_zoned)
    return _day(made) if term.kind == "date" else made


_ADDED: Final = (
    exp.DateAdd, exp.TimestampAdd, exp.TimestampSub, exp.DatetimeAdd, exp.DatetimeSub,
    exp.DateSub, exp.TsOrDsAdd, exp.AddMonths,
)  # fmt: skip
RULES: Final[dict[type[exp.Expression], Rule]] = {
    **dict.fromkeys(_ADDED, _add),
    exp.LastDay: _last_day,
    exp.DateBin: _bucket,
    exp.TimeToUnix: _epoch,
    exp.UnixToTime: _since_epoch,
}
ANONYMOUS: Final[dict[str, Rule]] = dict.fromkeys(
    ("dateadd", "date_add", "timestampadd", "date_sub", "datetime_sub", "timestamp_sub"), _add
)
