"""Literals, arithmetic, comparisons, logic, CASE and CAST."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables import _intervals as intervals
from discreet.tables._intervals import Interval
from discreet.tables._question import shown
from discreet.tables._terms import (
    INTEGERS,
    NULL,
    Kind,
    Scope,
    Term,
    as_double,
    boolean,
    in_range,
    joined,
    number,
    number_literal,
    text,
    text_literal,
    tidy,
    time_literal,
    unify,
)

__all__ = ["RULES", "Rule", "conjuncts", "need"]

Rule = Callable[[exp.Expression, Scope], Term]
RULES: dict[type[exp.Expression], Rule] = {}
Range = Callable[[Interval, Interval], Interval]
_DIVISIONS: Final[dict[type[exp.Expression], str]] = {
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}

_CASTS: Final = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}


def rule(*kinds: type[exp.Expression]) -> Callable[[Rule], Rule]:
    """Enter a function as the rule for some kinds of node."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return enter


def need(scope: Scope, node: exp.Expression, *kinds: Kind, word: str) -> Term:
    """Translate an argument that must be of one of these kinds."""
    term = scope.term(node)
    if term.kind not in kinds and term.kind != "null":
        raise scope.question.refuse(
            "type",
            node,
            word=word,
            wanted=" or ".join(kinds),
            argument=shown(node),
            kind=term.kind,
            cast=_CASTS.get(kinds[0], "TIMESTAMP"),
        )
    return term


@rule(exp.Paren)
def _paren(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    return scope.term(node.this)


@rule(exp.Null)
def _null(node: exp.Expression, scope: Scope) -> Term:
    return NULL


@rule(exp.Boolean)
def _boolean(node: exp.Expression, scope: Scope) -> Term:
    value = bool(node.this)
    return replace(
        boolean("TRUE" if value else "FALSE", is_nullable=False), is_literal=True, values=(value,)
    )


@rule(exp.Literal)
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


def exact(written: str) -> Fraction | None:
    """Read a number exactly, unless no DOUBLE comes near it.

    >>> exact("2.5e1"), exact("1e999")
    (Fraction(25, 1), None)
    """
    match = re.fullmatch(r"(\d[\d_]*\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3}))?", written)
    if match is None or len(written) > 400:
        return None
    value = Fraction(written.replace("_", ""))
    return value if value < Fraction(10) ** 308 else None


@rule(exp.Neg)
def _negate(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="-")
    if term.is_literal and term.interval[0] is not None:
        return number_literal(-term.interval[0])
    return number(
        f"(-{as_double(term)})",
        interval=intervals.negate(term.interval),
        is_whole=term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


def is_tidy(term: Term) -> bool:
    """Whether a term is known to have no NaN, as a DOUBLE too."""
    return term.is_tidy or term.is_literal or term.type != "DOUBLE"


_ARITHMETIC: Final[dict[type[exp.Expression], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_RANGES: Final[dict[type[exp.Expression], Range]] = {
    exp.Add: intervals.add,
    exp.Sub: intervals.subtract,
    exp.Mul: intervals.multiply,
}


@rule(exp.Add, exp.Sub, exp.Mul)
def _arithmetic(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    sign = _ARITHMETIC[type(node)]
    times = _time_arithmetic(node, scope) if sign != "*" else None
    if times is not None:
        return times
    left = need(scope, node.this, "number", word=sign)
    right = need(scope, node.expression, "number", word=sign)
    return number(
        f"({as_double(left)} {sign} {as_double(right)})",
        interval=_RANGES[type(node)](left.interval, right.interval),
        is_whole=left.is_whole and right.is_whole,
        is_nullable=left.is_nullable or right.is_nullable,
    )


def _time_arithmetic(node: exp.Expression, scope: Scope) -> Term | None:
    """Translate date + INTERVAL, date - INTERVAL and date - date."""
    sign = _ARITHMETIC[type(node)]
    left, right = node.this, node.expression
    if sign == "+" and isinstance(left, exp.Interval):
        left, right = right, left
    if isinstance(right, exp.Interval):
        moment = need(scope, left, "date", "timestamp", word=sign)
        return in_range(f"({moment.sql} {sign} {_interval(right, scope)})", "timestamp")
    if sign == "-":
        one, other = scope.term(left), scope.term(right)
        if one.kind == "date" and other.kind == "date":
            days = f"CAST(date_diff('day', {other.sql}, {one.sql}) AS DOUBLE)"
            return number(days, is_whole=True, is_tidy=True)
    return None


def _interval(node: exp.Interval, scope: Scope) -> str:
    unit = str(node.args["unit"]).upper().rstrip("S") if node.args.get("unit") else ""
    count = node.this
    written = str(count.this) if isinstance(count, exp.Literal) else ""
    units = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
    # Years 1 to 9999 moved by this much stay far inside what a TIMESTAMP can hold.
    if unit not in units or not re.fullmatch(r"\d{1,4}", written):
        raise scope.question.refuse(
            "literal", node, word="an INTERVAL", what="a small whole number and its unit",
            example="INTERVAL 7 DAY",
        )  # fmt: skip
    return f"INTERVAL {int(written)} {unit}"


@rule(exp.Div, exp.IntDiv, exp.Mod)
def _division(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "typed", "safe")
    sign = _DIVISIONS[type(node)]
    left = need(scope, node.this, "number", word=sign)
    right = need(scope, node.expression, "number", word=sign)
    below = as_double(right) if _never_zero(right) else f"nullif({as_double(right)}, 0e0)"
    is_nullable = left.is_nullable or right.is_nullable or not _never_zero(right)
    if sign == "%":
        # NaN only for an infinite x, which tidy() of whatever uses it turns into NULL.
        top = intervals.absolute(right.interval)[1]
        low = Fraction(0) if left.interval[0] is not None and left.interval[0] >= 0 else None
        span = (low if low is not None or top is None else -top, top)
        is_whole = left.is_whole and right.is_whole
        sql = f"fmod({as_double(left)}, {below})"
        return number(sql, interval=span, is_whole=is_whole, is_nullable=is_nullable)
    span = intervals.divide(left.interval, right.interval)
    sql = f"({as_double(left)} / {below})"
    if sign == "//":
        return number(
            f"trunc({sql})" if not (left.is_whole and right.is_whole) else f"floor({sql})",
            interval=intervals.rounded(span), is_whole=True, is_nullable=is_nullable,
        )  # fmt: skip
    return number(sql, interval=span, is_nullable=is_nullable)


def _never_zero(term: Term) -> bool:
    return term.is_literal and term.interval[0] is not None and term.interval[0] != 0


_COMPARISONS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


@rule(*_COMPARISONS)
def _comparison(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    sign = _COMPARISONS[type(node)]
    left, right = _pair(node, scope, node.this, node.expression, word=sign)
    is_nullable = (left.is_nullable or right.is_nullable) and not sign.startswith("IS")
    return boolean(f"({tidy(left)} {sign} {tidy(right)})", is_nullable=is_nullable)


def _pair(
    node: exp.Expression, scope: Scope, one: exp.Expression, other: exp.Expression, *, word: str
) -> tuple[Term, Term]:
    """Translate two things that are compared, converted to one kind."""
    left, right = scope.term(one), scope.term(other)
    same = unify([left, right])
    if same is None:
        raise scope.question.refuse("types", node, word=word, left=left.kind, right=right.kind)
    # Numbers stay as they are: DuckDB compares integers and doubles without an error, and an
    # integer column that is not converted lets it skip parts of a file.
    return (left, right) if left.kind == right.kind == "number" else (same[0], same[1])


@rule(exp.Between)
def _between(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "low", "high")
    value, low = _pair(node, scope, node.this, node.args["low"], word="BETWEEN")
    again, high = _pair(node, scope, node.this, node.args["high"], word="BETWEEN")
    return boolean(
        f"(({tidy(value)} >= {tidy(low)}) AND ({tidy(again)} <= {tidy(high)}))",
        is_nullable=value.is_nullable or low.is_nullable or high.is_nullable,
    )


@rule(exp.In)
def _in(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    if node.args.get("query") is not None:
        raise question.refuse("subquery", node.args["query"])
    question.arguments(node, "this", "expressions")
    value = scope.term(node.this)
    listed = []
    for item in node.expressions:
        _, other = _pair(item, scope, node.this, item, word="IN")
        if not other.is_literal:
            raise question.refuse(
                "literal", item, word=shown(item), what="a literal", example="IN ('north', 'south')"
            )
        listed.append(other.sql)
    pair = unify([value, *(scope.term(item) for item in node.expressions)])
    value = value if value.kind == "number" or pair is None else pair[0]
    listed = sorted(set(listed))  # equal questions have equal queries
    return boolean(f"({tidy(value)} IN ({', '.join(listed)}))", is_nullable=value.is_nullable)


@rule(exp.Is)
def _is(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    value = scope.term(node.this)
    if isinstance(node.expression, exp.Null):
        return boolean(f"({tidy(value)} IS NULL)", is_nullable=False)
    if isinstance(node.expression, exp.Boolean):
        value = need(scope, node.this, "boolean", word="IS")
        word = "TRUE" if node.expression.this else "FALSE"
        return boolean(f"({value.sql} IS NOT DISTINCT FROM {word})", is_nullable=False)
    raise scope.question.refuse("expression", node, word=shown(node))


@rule(exp.Not)
def _not(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "boolean", word="NOT")
    return boolean(f"(NOT {term.sql})", is_nullable=term.is_nullable)


def conjuncts(node: exp.Expression, kind: type[exp.Expression] = exp.And) -> list[exp.Expression]:
    """Return the parts of a chain of ANDs (or ORs), parentheses removed.

    >>> import sqlglot
    >>> len(conjuncts(sqlglot.parse_one("a AND (b AND c)")))
    3
    """
    parts: list[exp.Expression] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Paren):
            waiting.append(part.this)
        elif type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


@rule(exp.And, exp.Or)
def _logic(node: exp.Expression, scope: Scope) -> Term:
    word = "AND" if isinstance(node, exp.And) else "OR"
    terms = [need(scope, part, "boolean", word=word) for part in conjuncts(node, type(node))]
    # Every part is total, so their order means nothing and equal questions become equal.
    parts = sorted({term.sql for term in terms})
    return boolean(f"({f' {word} '.join(parts)})", is_nullable=any(t.is_nullable for t in terms))


@rule(exp.Case, exp.If)
def _case(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    if isinstance(node, exp.Case):
        question.arguments(node, "this", "ifs", "default")
        branches = [(part, part.args["true"]) for part in node.args["ifs"]]
        otherwise = node.args.get("default")
    else:
        question.arguments(node, "this", "true", "false")
        branches, otherwise = [(node, node.args["true"])], node.args.get("false")
    conditions = []
    for part, _ in branches:
        if isinstance(node, exp.Case) and node.args.get("this") is not None:
            left, right = _pair(part, scope, node.this, part.this, word="CASE")
            conditions.append(f"({tidy(left)} = {tidy(right)})")
        else:
            conditions.append(need(scope, part.this, "boolean", word="WHEN").sql)
    results = [scope.term(result) for _, result in branches]
    results.append(scope.term(otherwise) if otherwise is not None else NULL)
    same = unify([replace(term, sql=tidy(term), is_tidy=True) for term in results])
    if same is None:
        kinds = [t.kind for t in results if t.kind != "null"]
        other = next((kind for kind in kinds if kind != kinds[0]), kinds[0])
        raise question.refuse("types", node, word="CASE", left=kinds[0], right=other)
    *chosen, last = same
    whens = " ".join(
        f"WHEN {when} THEN {then.sql}" for when, then in zip(conditions, chosen, strict=True)
    )
    ending = "" if last.sql == "NULL" else f" ELSE {last.sql}"
    return joined(same, f"CASE {whens}{ending} END")


@rule(exp.Cast, exp.TryCast)
def _cast(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "to", "safe")
    target = node.args["to"]
    wanted = target.sql("duckdb").upper()
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


def _to_double(term: Term, source: str) -> str:
    if term.kind != "text":
        return as_double(replace(term, sql=source))
    return f"nullif(TRY_CAST({source} AS DOUBLE), CAST('nan' AS DOUBLE))"


def cast(scope: Scope, node: exp.Expression, term: Term, wanted: str) -> Term:
    """Convert a term, to NULL where a value cannot be converted."""
    source = tidy(term)
    integer = {"INT": "INTEGER", "HUGEINT": "BIGINT"}.get(wanted, wanted)
    if term.kind in ("number", "text", "boolean", "null"):
        if integer in INTEGERS:
            # A text goes through DOUBLE, as a number would: '1e3' is then the same as 1e3.
            return Term(
                sql=f"TRY_CAST({source} AS {integer})", kind="number", type=integer, is_whole=True,
                interval=intervals.rounded(term.interval),
            )  # fmt: skip
        if wanted in ("DOUBLE", "FLOAT", "REAL") or wanted.startswith("DECIMAL"):
            return number(
                _to_double(term, source), interval=term.interval,
                is_whole=term.is_whole, is_nullable=term.is_nullable or term.kind == "text",
                is_tidy=True,
            )  # fmt: skip
        if wanted == "BOOLEAN":
            return boolean(f"TRY_CAST({source} AS BOOLEAN)")
    if wanted in ("TEXT", "VARCHAR"):
        if term.kind == "number" and term.type == "DOUBLE":
            source = f"CASE WHEN {source} = 0e0 THEN 0e0 ELSE {source} END"  # no minus zero
        return text(f"TRY_CAST({source} AS VARCHAR)", is_nullable=term.is_nullable)
    if wanted in ("DATE", "TIMESTAMP") and term.kind in ("text", "date", "timestamp", "null"):
        return in_range(
            f"TRY_CAST({source} AS {wanted})", "date" if wanted == "DATE" else "timestamp"
        )
    raise scope.question.refuse("cast", node, word=wanted)
