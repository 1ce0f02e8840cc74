"""Functions of numbers and of NULLs, each written so that it never raises."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Call, Case, Function, Literal
from discreet.tables.sql.expressions import intervals
from discreet.tables.sql.expressions.arguments import Rule, is_tidy, need, whole_literal
from discreet.tables.sql.expressions.literals import joined, unify
from discreet.tables.sql.expressions.rewrites import rewritten
from discreet.tables.sql.expressions.term import (
    Scope,
    Term,
    as_double,
    decimals,
    exactly,
    number,
    tidy,
    tidy_double,
)

__all__ = ["ANONYMOUS", "RULES"]

_WORDS: Final[dict[type[exp.Expression], Function]] = {
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Trunc: "trunc",
}
_ANGLES: Final[dict[type[exp.Expression], tuple[Function, int | None]]] = {
    exp.Sin: ("sin", 1),
    exp.Cos: ("cos", 1),
    exp.Tan: ("tan", None),
    exp.Asin: ("asin", 2),
    exp.Acos: ("acos", 4),
    exp.Atan: ("atan", 2),
    exp.Atan2: ("atan2", 4),
}
_LOGARITHMS: Final[dict[int, tuple[Function, Callable[[float], float]]]] = {
    0: ("ln", math.log),
    2: ("log2", math.log2),
    10: ("log10", math.log10),
}


def _clamp(node: exp.Expression, scope: Scope) -> Term:
    value, low, high = _three(node, scope)
    term = need(scope, value, "number", "boolean", word="CLAMP")
    ends = [scope.term(end) for end in (low, high)]
    lowest, highest = (end.interval[0] if end.is_literal else None for end in ends)
    if lowest is None or highest is None or lowest > highest:
        raise scope.question.refuse("clamp", node)
    old_low, old_high = term.interval
    span = (
        min(max(lowest, old_low), highest) if old_low is not None else lowest,
        max(min(highest, old_high), lowest) if old_high is not None else highest,
    )
    return number(
        Call("clamp", (tidy_double(term), as_double(ends[0]), as_double(ends[1]))),
        interval=span,
        is_whole=term.is_whole and all(end.is_whole for end in ends),
        is_nullable=term.is_nullable,
        is_tidy=True,
    )


def _three(node: exp.Expression, scope: Scope) -> list[exp.Expression]:
    if len(node.expressions) != 3:
        raise scope.question.refuse("clamp", node)
    return list(node.expressions)


def _absolute(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="ABS")
    return number(
        Call("abs", (as_double(term),)),
        interval=intervals.absolute(term.interval),
        is_whole=term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
        digits=decimals(term),
    )


def _sign(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    value = tidy_double(need(scope, node.this, "number", word="SIGN"))
    span = (Fraction(-1), Fraction(1))
    return number(Call("sign", (value,)), interval=span, is_whole=True, is_tidy=True)


def _round_whole(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "decimals")
    word = _WORDS[type(node)]
    if node.args.get("decimals") is not None:  # so many digits are kept
        digits = node.args["decimals"]
        places = whole_literal(digits, scope, word=word.upper(), example=f"{word.upper()}(x, 2)")
        ten = exp.Literal.number(10 ** min(abs(places), 300))
        sql = f"{word}(a * b) / b" if places >= 0 else f"{word}(a / b) * b"
        return scope.term(rewritten(node, scope, sql, node.this, ten))
    term = need(scope, node.this, "number", word=word.upper())
    return number(
        Call(word, (exactly(term),)),
        interval=intervals.rounded(term.interval),
        is_whole=True,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


def _round(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "decimals")
    term = need(scope, node.this, "number", word="ROUND")
    digits = 0
    if node.args.get("decimals") is not None:
        digits = whole_literal(node.args["decimals"], scope, word="ROUND", example="ROUND(x, 2)")
        digits = max(-300, min(300, digits))
    low, high = term.interval
    step = Fraction(10) ** -digits
    span = (
        None if low is None else step * math.floor(low / step),
        None if high is None else step * math.ceil(high / step),
    )
    value, scale = exactly(term), decimals(term)
    if scale is not None and scale > max(digits, 0):  # a half is one exactly as a whole number
        parts = scalar.double(10 ** (scale - digits))
        whole = Call("multiply", (value, scalar.double(10**scale)))
        value = Call("divide", (Call("round", (whole, Literal(0, "int32"))), parts))
        value = Call("round", (value, Literal(0, "int32")))
        value = Call("multiply", (value, scalar.double(10**-digits)))
    return number(
        Call("round", (value, Literal(digits, "int32"))),
        interval=span,
        is_whole=digits <= 0 or term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


def _sqrt(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="SQRT")
    root = Call("sqrt", (tidy_double(term),))
    low, high = term.interval
    span = (max(low, Fraction(0)) if low is not None else Fraction(0), high)
    return number(root, interval=intervals.monotone(math.sqrt, span, least=0.0), is_tidy=True)


def _exp(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="EXP")
    span = intervals.monotone(math.exp, term.interval, least=0.0)
    return number(
        Call("exp", (as_double(term),)),
        interval=span,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
    )


def _log(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    question.arguments(node, "this", "expression")
    base, argument = 10, node.this  # LOG of one argument has base 10
    if isinstance(node, exp.Ln):
        base = 0
    elif node.args.get("expression") is not None:
        base, argument = (
            whole_literal(node.this, scope, word="LOG", example="LOG10(x)"),
            (node.expression),
        )
        if base not in (2, 10):
            raise question.refuse(
                "literal", node.this, word="the base of LOG", what="2 or 10", example="LOG(2, x)"
            )
    word, function = _LOGARITHMS[base]
    term = need(scope, argument, "number", word=word.upper())
    low, high = term.interval
    positive = (low if low is not None and low > 0 else None, high)
    return number(
        Call(word, (tidy_double(term),)),
        interval=intervals.monotone(function, positive, least=-math.inf),
        is_tidy=True,
    )


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
    is_whole = base.is_whole and exponent in (1, 2, 3, 4)
    return number(
        Call("power", (as_double(base), as_double(power))), interval=span, is_whole=is_whole
    )


def _angle(node: exp.Expression, scope: Scope) -> Term:
    """Translate a function of an angle, or one that has an angle."""
    scope.question.arguments(node, "this", "expression")
    word, span = _ANGLES[type(node)]
    parts = [node.this, *([node.expression] if node.args.get("expression") else [])]
    terms = [need(scope, part, "number", word=word.upper()) for part in parts]
    return number(
        Call(word, tuple(tidy_double(term) for term in terms)),
        interval=intervals.ANY if span is None else (Fraction(-span), Fraction(span)),
    )


def _bucket(node: exp.Expression, scope: Scope) -> Term:
    """Translate WIDTH_BUCKET(x, low, high, buckets): from 1 on, 0 below and one more above."""
    question = scope.question
    question.arguments(node, "this", "min_value", "max_value", "num_buckets")
    ends = [scope.term(node.args[key]) for key in ("min_value", "max_value", "num_buckets")]
    low, high, count = (end.interval[0] if end.is_literal else None for end in ends)
    if (
        low is None
        or high is None
        or count is None
        or not low < high
        or count not in range(1, 10001)
    ):
        example = "WIDTH_BUCKET(age, 0, 100, 10)"
        raise question.refuse("arguments", node, word="WIDTH_BUCKET", example=example)
    least, most = node.args["min_value"], node.args["max_value"]
    sql = (
        f"CASE WHEN a IS NULL THEN NULL WHEN a < b THEN 0 WHEN a >= c THEN {count + 1} "
        f"ELSE LEAST(FLOOR((a - b) * {count} / (c - b)), {count - 1}) + 1 END"
    )
    made = scope.term(rewritten(node, scope, f"CAST({sql} AS INTEGER)", node.this, least, most))
    is_nullable = need(scope, node.this, "number", word="WIDTH_BUCKET").is_nullable
    values = (*range(int(count) + 2), *((None,) if is_nullable else ()))
    span = (Fraction(0), Fraction(count + 1))
    return replace(made, values=values, interval=span, is_nullable=is_nullable)


def _extreme(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expressions", "ignore_nulls")
    function: Function = "least" if isinstance(node, exp.Least) else "greatest"
    terms = _alike(node, scope, [node.this, *node.expressions], function.upper())
    one_of = joined(terms, Call(function, tuple(tidy(t) for t in terms)))
    choose = intervals.least if function == "least" else intervals.greatest
    span = choose([t.interval for t in terms], [not t.is_nullable for t in terms])
    return replace(
        one_of,
        interval=span,
        is_nullable=all(t.is_nullable for t in terms),
        values=None,
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


def _coalesce(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expressions", "is_nvl")
    terms = _alike(node, scope, [node.this, *node.expressions], "COALESCE")
    term = joined(terms, Call("coalesce", tuple(tidy(t) for t in terms)))
    is_nullable = all(t.is_nullable for t in terms)
    values = term.values
    if values is not None and not is_nullable:
        values = tuple(v for v in values if v is not None)
    return replace(term, is_nullable=is_nullable, values=values, is_tidy=True)


def _nullif(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    left, right = _alike(node, scope, [node.this, node.expression], "NULLIF")
    same = Call("equal", (tidy(left), tidy(right)))
    term = joined([left], Case(((same, scalar.NULL),), left.node))
    if left.is_nullable:
        return term
    values = None if term.values is None else (*term.values, None)
    return replace(term, is_nullable=True, values=values)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Floor: _round_whole,
    exp.Ceil: _round_whole,
    exp.Trunc: _round_whole,
    exp.Round: _round,
    exp.Sqrt: _sqrt,
    exp.Exp: _exp,
    exp.Ln: _log,
    exp.Log: _log,
    exp.Pow: _power,
    **dict.fromkeys(_ANGLES, _angle),
    exp.WidthBucket: _bucket,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
}
ANONYMOUS: Final[dict[str, Rule]] = {  # functions that the parser does not know, by name
    "clamp": _clamp,
}
