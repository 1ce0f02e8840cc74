"""Arithmetic of numbers."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Call, Function, Literal, Scalar
from discreet.tables.sql.expressions import intervals
from discreet.tables.sql.expressions.arguments import Rule, is_tidy, need
from discreet.tables.sql.expressions.intervals import Interval
from discreet.tables.sql.expressions.literals import number_literal
from discreet.tables.sql.expressions.moments.shifts import time_arithmetic
from discreet.tables.sql.expressions.term import (
    Scope,
    Term,
    as_double,
    decimals,
    exactly,
    kept_digits,
    number,
)

__all__ = ["RULES"]

_LARGEST: Final = 2**1000  # of numbers that are computed while reading

Range = Callable[[Interval, Interval], Interval]
_DIVISIONS: Final[dict[type[exp.Expression], str]] = {
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}

_ARITHMETIC: Final[dict[type[exp.Expression], tuple[str, Function, Range]]] = {
    exp.Add: ("+", "add", intervals.add),
    exp.Sub: ("-", "subtract", intervals.subtract),
    exp.Mul: ("*", "multiply", intervals.multiply),
}


def _negate(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "number", word="-")
    if term.is_literal and term.interval[0] is not None:
        return number_literal(-term.interval[0])
    return number(
        Call("negate", (as_double(term),)),
        interval=intervals.negate(term.interval),
        is_whole=term.is_whole,
        is_nullable=term.is_nullable,
        is_tidy=is_tidy(term),
        digits=decimals(term),
    )


def _arithmetic(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    sign, function, span = _ARITHMETIC[type(node)]
    times = time_arithmetic(node, scope) if sign != "*" else None
    if times is not None:
        return times
    left = need(scope, node.this, "number", word=sign)
    right = need(scope, node.expression, "number", word=sign)
    low, high = span(left.interval, right.interval)
    if left.is_literal and right.is_literal and low is not None and abs(low) < _LARGEST:
        return number_literal(low)  # of numbers that are written out, exactly
    return number(
        Call(function, (as_double(left), as_double(right))),
        interval=(low, high),
        is_whole=left.is_whole and right.is_whole,
        is_nullable=left.is_nullable or right.is_nullable,
        digits=_digits(left, right, sum if sign == "*" else max),
    )


def _digits(left: Term, right: Term, join: Callable[[list[int]], int]) -> int | None:
    each = [decimals(term) for term in (left, right)]
    known = [digits for digits in each if digits is not None]
    return kept_digits(join(known)) if len(known) == len(each) else None


def _division(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "typed", "safe")
    sign = _DIVISIONS[type(node)]
    left = need(scope, node.this, "number", word=sign)
    right = need(scope, node.expression, "number", word=sign)
    sides = (exactly(left), exactly(right))
    is_nullable = left.is_nullable or right.is_nullable or not _never_zero(right)
    if sign == "%":
        digits = _digits(left, right, max)
        if digits:  # of whole numbers of the last digit, exactly
            ten = scalar.double(10**digits)
            whole = [
                Call("round", (Call("multiply", (side, ten)), Literal(0, "int32")))
                for side in sides
            ]
            remainder: Scalar = Call("divide", (Call("remainder", tuple(whole)), ten))
        else:
            remainder = Call("remainder", sides)
        # NaN only for an infinite x, which tidy() of whatever uses it turns into NULL.
        top = intervals.absolute(right.interval)[1]
        low = Fraction(0) if left.interval[0] is not None and left.interval[0] >= 0 else None
        span = (low if low is not None or top is None else -top, top)
        is_whole = left.is_whole and right.is_whole
        return number(
            remainder, interval=span, is_whole=is_whole, is_nullable=is_nullable, digits=digits
        )
    share = _written_share(left, right) if sign == "/" else None
    if share is not None:
        return share
    span = intervals.divide(left.interval, right.interval)
    made = Call("divide", sides)
    if sign == "//":
        return number(
            Call("trunc", (made,)),
            interval=intervals.rounded(span), is_whole=True, is_nullable=is_nullable,
        )  # fmt: skip
    return number(made, interval=span, is_nullable=is_nullable)


def _written_share(left: Term, right: Term) -> Term | None:
    """Divide two numbers that are written out: a double, as SQL has it."""
    top, below = (term.interval[0] if term.is_literal else None for term in (left, right))
    if top is None or not below or not float(below) or abs(top / below) > _LARGEST:
        return None
    share = float(top) / float(below)
    return replace(number_literal(Fraction(share)), node=scalar.double(share), type="double")


def _never_zero(term: Term) -> bool:
    return term.is_literal and term.interval[0] is not None and term.interval[0] != 0


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Neg: _negate,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _division,
    exp.IntDiv: _division,
    exp.Mod: _division,
}
