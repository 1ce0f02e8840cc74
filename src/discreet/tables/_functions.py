"""The scalar functions that questions may use, each written so that it never raises."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables import _intervals as intervals
from discreet.tables._operators import Rule, is_tidy, need
from discreet.tables._question import shown
from discreet.tables._terms import (
    Scope,
    Term,
    as_double,
    boolean,
    joined,
    number,
    text,
    tidy,
    tidy_double,
    unify,
)

__all__ = ["ANONYMOUS", "RULES"]

RULES: dict[type[exp.Expression], Rule] = {}
ANONYMOUS: dict[str, Rule] = {}  # functions that the parser does not know, by name
_LONGEST: Final = 2**31
_WORDS: Final[dict[type[exp.Expression], str]] = {
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Trunc: "trunc",
    exp.Substring: "substring",
    exp.Left: "left",
    exp.Right: "right",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "suffix",
    exp.Contains: "contains",
}


def _rule(*kinds: type[exp.Expression] | str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for kind in kinds:
            if isinstance(kind, str):
                ANONYMOUS[kind] = function
            else:
                RULES[kind] = function
        return function

    return enter


def _inputs(node: exp.Expression, scope: Scope, example: str, *counts: int) -> list[exp.Expression]:
    """Return the arguments of a function in order, whose number must be one of ``counts``."""
    parts: list[exp.Expression] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if isinstance(value, exp.Expression):
            parts.append(value)
        elif isinstance(value, list):
            parts += value
    if counts and len(parts) not in counts:
        raise scope.question.refuse(
            "arguments", node, word=shown(node).split("(")[0], example=example
        )
    return parts


def _whole_literal(node: exp.Expression, scope: Scope, *, word: str, example: str) -> int:
    term = scope.term(node)
    value = term.interval[0] if term.is_literal and term.kind == "number" else None
    if value is None or value.denominator != 1 or abs(value) >= _LONGEST:
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a whole number", example=example
        )
    return value.numerator


# Numbers.


@_rule("clamp")
def _clamp(node: exp.Expression, scope: Scope) -> Term:
    value, low, high = _three(node, scope)
    term = need(scope, value, "number", "boolean", word="CLAMP")
    ends = [scope.term(end) for end in (low, high)]
    lowest, highest = (end.interval[0] if end.is_literal else None for end in ends)
    if lowest is None or highest is None or lowest > highest:
        raise scope.question.refuse("clamp", node)
    inner = tidy_double(term)
    sql = f"least(greatest({inner}, {as_double(ends[0])}), {as_double(ends[1])})"
    old_low, old_high = term.interval
    span = (
        min(max(lowest, old_low), highest) if old_low is not None else lowest,
        max(min(highest, old_high), lowest) if old_high is not None else highest,
    )
    return number(
        # LEAST and GREATEST leave NULLs out; a clamped NULL stays one.
        f"CASE WHEN {inner} IS NULL THEN NULL ELSE {sql} END",
        interval=span,
        is_whole=term.is_whole and all(end.is_whole for end in ends),
        is_nullable=term.is_nullable,
        is_tidy=True,
    )


def _three(node: exp.Expression, scope: Scope) -> list[exp.Expression]:
    if len(node.expressions) != 3:
        raise scope.question.refuse("clamp", node)
    return list(node.expressions)


@_rule(exp.Abs)
def _absolute(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="ABS")
    return number(
        f"abs({as_double(term)})",
        interval=intervals.absolute(term.interval),
        is_whole=term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


@_rule(exp.Sign)
def _sign(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    value = tidy_double(need(scope, node.this, "number", word="SIGN"))
    span = (Fraction(-1), Fraction(1))
    return number(f"CAST(sign({value}) AS DOUBLE)", interval=span, is_whole=True, is_tidy=True)


@_rule(exp.Floor, exp.Ceil, exp.Trunc)
def _round_whole(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    word = _WORDS[type(node)]
    term = need(scope, node.this, "number", word=word.upper())
    return number(
        f"{word}({as_double(term)})",
        interval=intervals.rounded(term.interval),
        is_whole=True,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


@_rule(exp.Round)
def _round(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "decimals")
    term = need(scope, node.this, "number", word="ROUND")
    digits = 0
    if node.args.get("decimals") is not None:
        digits = _whole_literal(node.args["decimals"], scope, word="ROUND", example="ROUND(x, 2)")
        digits = max(-300, min(300, digits))
    low, high = term.interval
    step = Fraction(10) ** -digits
    span = (
        None if low is None else step * math.floor(low / step),
        None if high is None else step * math.ceil(high / step),
    )
    return number(
        f"round({as_double(term)}, {digits})",
        interval=span,
        is_whole=digits <= 0 or term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


@_rule(exp.Sqrt)
def _sqrt(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="SQRT")
    value = tidy_double(term)
    sql = f"CASE WHEN {value} >= 0e0 THEN sqrt({value}) END"
    low, high = term.interval
    span = (max(low, Fraction(0)) if low is not None else Fraction(0), high)
    return number(sql, interval=intervals.monotone(math.sqrt, span, least=0.0), is_tidy=True)


@_rule(exp.Exp)
def _exp(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="EXP")
    span = intervals.monotone(math.exp, term.interval, least=0.0)
    return number(
        f"exp({as_double(term)})",
        interval=span,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


@_rule(exp.Ln, exp.Log)
def _log(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    question.arguments(node, "this", "expression")
    base, argument = 10, node.this  # LOG of one argument has base 10 in DuckDB
    if isinstance(node, exp.Ln):
        base = 0
    elif node.args.get("expression") is not None:
        base, argument = (
            _whole_literal(node.this, scope, word="LOG", example="LOG10(x)"),
            (node.expression),
        )
        if base not in (2, 10):
            raise question.refuse(
                "literal", node.this, word="the base of LOG", what="2 or 10", example="LOG(2, x)"
            )
    word, function = {0: ("ln", math.log), 2: ("log2", math.log2), 10: ("log10", math.log10)}[base]
    term = need(scope, argument, "number", word=word.upper())
    value = tidy_double(term)
    low, high = term.interval
    positive = (low if low is not None and low > 0 else None, high)
    return number(
        f"CASE WHEN {value} > 0e0 THEN {word}({value}) END",
        interval=intervals.monotone(function, positive, least=-math.inf),
        is_tidy=True,
    )


@_rule(exp.Pow)
def _power(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    base = need(scope, node.this, "number", word="POWER")
    power = need(scope, node.expression, "number", word="POWER")
    span = intervals.ANY
    exponent = power.interval[0] if power.is_literal else None
    if exponent in (1, 2, 3, 4):
        span = base.interval
        for _ in range(int(exponent or 1) - 1):
            span = intervals.multiply(span, base.interval)
        if exponent in (2, 4):
            span = (
                intervals.absolute(span) if base.interval != intervals.ANY else (Fraction(0), None)
            )
    sql = f"power({as_double(base)}, {as_double(power)})"
    is_whole = base.is_whole and exponent in (1, 2, 3, 4)
    return number(sql, interval=span, is_whole=is_whole)


@_rule(exp.Least, exp.Greatest)
def _extreme(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expressions", "ignore_nulls")
    word = "LEAST" if isinstance(node, exp.Least) else "GREATEST"
    terms = _alike(node, scope, [node.this, *node.expressions], word)
    one_of = joined(terms, f"{word.lower()}({', '.join(tidy(t) for t in terms)})")
    choose = intervals.least if word == "LEAST" else intervals.greatest
    span = choose([t.interval for t in terms], [not t.is_nullable for t in terms])
    return Term(
        sql=one_of.sql,
        kind=one_of.kind,
        type=one_of.type,
        interval=span,
        is_whole=one_of.is_whole,
        is_nullable=all(t.is_nullable for t in terms),
        is_tidy=True,
    )


def _alike(
    node: exp.Expression, scope: Scope, parts: list[exp.Expression], word: str
) -> list[Term]:
    terms = [scope.term(part) for part in parts]
    same = unify(terms)
    if same is None:
        kinds = [t.kind for t in terms if t.kind != "null"]
        other = next(kind for kind in kinds if kind != kinds[0])
        raise scope.question.refuse("types", node, word=word, left=kinds[0], right=other)
    return same


# NULLs.


@_rule(exp.Coalesce)
def _coalesce(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expressions", "is_nvl")
    terms = _alike(node, scope, [node.this, *node.expressions], "COALESCE")
    term = joined(terms, f"coalesce({', '.join(tidy(t) for t in terms)})")
    is_nullable = all(t.is_nullable for t in terms)
    values = term.values
    if values is not None and not is_nullable:
        values = tuple(v for v in values if v is not None)
    return Term(
        sql=term.sql,
        kind=term.kind,
        type=term.type,
        interval=term.interval,
        is_whole=term.is_whole,
        is_nullable=is_nullable,
        values=values,
        is_tidy=True,
    )


@_rule(exp.Nullif)
def _nullif(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    left, right = _alike(node, scope, [node.this, node.expression], "NULLIF")
    sql = f"CASE WHEN {tidy(left)} = {tidy(right)} THEN NULL ELSE {left.sql} END"
    return joined([left], sql) if left.is_nullable else _nullable(joined([left], sql))


def _nullable(term: Term) -> Term:
    values = None if term.values is None else (*term.values, None)
    return Term(
        sql=term.sql,
        kind=term.kind,
        type=term.type,
        interval=term.interval,
        is_whole=term.is_whole,
        values=values,
        is_tidy=term.is_tidy,
    )


# Texts.


@_rule(exp.Lower, exp.Upper)
def _case(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    word = "lower" if isinstance(node, exp.Lower) else "upper"
    term = need(scope, node.this, "text", word=word.upper())
    return text(f"{word}({term.sql})", is_nullable=term.is_nullable)


@_rule(exp.Trim)
def _trim(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "position", "expression")
    position = str(node.args.get("position") or "BOTH").upper()
    word = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    term = need(scope, node.this, "text", word=word.upper())
    if node.args.get("expression") is None:
        return text(f"{word}({term.sql})", is_nullable=term.is_nullable)
    what = _text_literal(node.expression, scope, word=word.upper())
    return text(f"{word}({term.sql}, {what})", is_nullable=term.is_nullable)


def _text_literal(node: exp.Expression, scope: Scope, *, word: str) -> str:
    term = scope.term(node)
    if term.kind != "text" or not term.is_literal:
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a text", example="'north%'"
        )
    return term.sql


@_rule(exp.Length)
def _length(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "text", word="LENGTH")
    return Term(
        sql=f"length({term.sql})",
        kind="number",
        type="BIGINT",
        interval=(Fraction(0), None),
        is_whole=True,
        is_nullable=term.is_nullable,
    )


@_rule(exp.Substring, exp.Left, exp.Right)
def _part(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "start", "length")
    word = _WORDS[type(node)]
    example = f"{word.upper()}(x, 3)"
    term = need(scope, node.this, "text", word=word.upper())
    numbers = [node.args[k] for k in ("start", "length", "expression") if node.args.get(k)]
    if not numbers:
        raise scope.question.refuse("arguments", node, word=word.upper(), example=example)
    shares = [str(_whole_literal(n, scope, word=word.upper(), example=example)) for n in numbers]
    return text(f"{word}({term.sql}, {', '.join(shares)})", is_nullable=term.is_nullable)


@_rule(exp.Concat, exp.DPipe)
def _concat(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node, exp.DPipe):
        scope.question.arguments(node, "this", "expression", "safe")
        terms = [need(scope, n, "text", word="||") for n in (node.this, node.expression)]
        sql = f"({terms[0].sql} || {terms[1].sql})"
        return text(sql, is_nullable=any(t.is_nullable for t in terms))
    scope.question.arguments(node, "expressions", "safe", "coalesce")
    terms = [need(scope, part, "text", word="CONCAT") for part in node.expressions]
    return text(f"concat({', '.join(t.sql for t in terms)})", is_nullable=False)


@_rule(exp.Replace)
def _replace(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "replacement")
    parts = _inputs(node, scope, "REPLACE(x, 'a', 'b')", 3)
    term = need(scope, parts[0], "text", word="REPLACE")
    old, new = (_text_literal(part, scope, word="REPLACE") for part in parts[1:])
    return text(f"replace({term.sql}, {old}, {new})", is_nullable=term.is_nullable)


@_rule(exp.StartsWith, exp.EndsWith, exp.Contains, "prefix", "suffix")
def _contains(node: exp.Expression, scope: Scope) -> Term:
    word = _WORDS.get(type(node)) or str(node.this).lower()
    parts = list(node.expressions) if isinstance(node, exp.Anonymous) else None
    if parts is None:
        scope.question.arguments(node, "this", "expression", "json_scope")
        parts = _inputs(node, scope, "", 2)
    if len(parts) != 2:
        raise scope.question.refuse(
            "arguments", node, word=word.upper(), example=f"{word.upper()}(x, 'a')"
        )
    terms = [need(scope, part, "text", word=word.upper()) for part in parts]
    return boolean(
        f"{word}({terms[0].sql}, {terms[1].sql})", is_nullable=any(t.is_nullable for t in terms)
    )


@_rule(exp.Like, exp.ILike)
def _like(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "negate")
    word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
    term = need(scope, node.this, "text", word=word)
    pattern = _text_literal(node.expression, scope, word=word)
    sql = f"({term.sql} {word} {pattern})"
    if node.args.get("negate"):
        sql = f"(NOT {sql})"
    return boolean(sql, is_nullable=term.is_nullable)
