"""Comparisons, logic and CASE."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import Call, Case, Function, Literal, Scalar
from discreet.tables.sql.expressions.arguments import Rule, need
from discreet.tables.sql.expressions.casts import cast
from discreet.tables.sql.expressions.literals import as_kind, joined, unify
from discreet.tables.sql.expressions.released import is_released_list
from discreet.tables.sql.expressions.rewrites import rewritten
from discreet.tables.sql.expressions.term import NULL, Scope, Term, boolean, tidy
from discreet.tables.sql.question.context import short_sql

__all__ = ["RULES", "conjuncts", "in_order"]

_COMPARISONS: Final[dict[type[exp.Expression], tuple[str, Function]]] = {
    exp.EQ: ("=", "equal"),
    exp.NEQ: ("<>", "not_equal"),
    exp.LT: ("<", "less"),
    exp.LTE: ("<=", "less_equal"),
    exp.GT: (">", "greater"),
    exp.GTE: (">=", "greater_equal"),
    exp.NullSafeEQ: ("IS NOT DISTINCT FROM", "same"),
    exp.NullSafeNEQ: ("IS DISTINCT FROM", "different"),
}

_READ: Final = {"number": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP", "boolean": "BOOLEAN"}


def _paren(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    return scope.term(node.this)


def _comparison(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    sign, function = _COMPARISONS[type(node)]
    left, right = _pair(node, scope, node.this, node.expression, word=sign)
    is_nullable = (left.is_nullable or right.is_nullable) and not sign.startswith("IS")
    return boolean(Call(function, (tidy(left), tidy(right))), is_nullable=is_nullable)


def _pair(
    node: exp.Expression, scope: Scope, one: exp.Expression, other: exp.Expression, *, word: str
) -> tuple[Term, Term]:
    """Translate two things that are compared, converted to one kind."""
    left, right = scope.term(one), scope.term(other)
    left, right = _read(scope, one, left, right), _read(scope, other, right, left)
    same = unify([left, right])
    if same is None:
        raise scope.question.refuse("types", node, word=word, left=left.kind, right=right.kind)
    # Numbers stay as they are: engines compare integers and doubles without an error, and an
    # integer column that is not converted lets them skip parts of a file.
    return (left, right) if left.kind == right.kind == "number" else (same[0], same[1])


def _read(scope: Scope, node: exp.Expression, term: Term, other: Term) -> Term:
    """Return a column of texts as what it is compared with, NULL where it is not written so."""
    wanted = _READ.get(other.kind)
    return (
        term
        if term.kind != "text" or term.is_literal or not wanted
        else cast(scope, node, term, wanted)
    )


def _between(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "low", "high", "symmetric")
    if node.args.get("symmetric"):
        parts = (node.this, node.args["low"], node.args["high"])
        sql = "(a BETWEEN b AND c OR a BETWEEN c AND b)"
        return scope.term(rewritten(node, scope, sql, *parts))
    value, low = _pair(node, scope, node.this, node.args["low"], word="BETWEEN")
    again, high = _pair(node, scope, node.this, node.args["high"], word="BETWEEN")
    above = Call("greater_equal", (tidy(value), tidy(low)))
    below = Call("less_equal", (tidy(again), tidy(high)))
    return boolean(
        Call("and", (above, below)),
        is_nullable=value.is_nullable or low.is_nullable or high.is_nullable,
    )


def _in(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    if node.args.get("query") is not None:
        raise question.refuse("subquery", node.args["query"])
    question.arguments(node, "this", "expressions")
    value = scope.term(node.this)
    if any(is_released_list(one) for one in node.expressions):
        listed = scope.term(node.expressions[0])
        value = as_kind(_read(scope, node.this, value, listed), listed.kind) or value
        if value.kind != listed.kind:
            raise question.refuse("types", node, word="IN", left=value.kind, right=listed.kind)
        return boolean(Call("in", (tidy(value), listed.node)))
    others = [scope.term(item) for item in node.expressions]
    for other in others:
        value = _read(scope, node.this, value, other)
    literals: list[Literal] = []
    for item in node.expressions:
        _, other = _pair(item, scope, node.this, item, word="IN")
        if not isinstance(other.node, Literal):
            raise question.refuse(
                "literal",
                item,
                word=short_sql(item),
                what="a literal",
                example="IN ('north', 'south')",
            )
        literals.append(other.node)
    pair = unify([value, *others])
    if pair is None:
        kind = next(other.kind for other in others if other.kind not in (value.kind, "null"))
        raise question.refuse("types", node, word="IN", left=value.kind, right=kind)
    value = value if value.kind == "number" else pair[0]
    # In one order: equal questions have equal queries.
    literals = sorted(set(literals), key=lambda one: (one.type, str(one.value)))
    return boolean(Call("in", (tidy(value), *literals)), is_nullable=value.is_nullable)


def _is(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression")
    value = scope.term(node.this)
    if isinstance(node.expression, exp.Null):
        return boolean(Call("is_null", (tidy(value),)), is_nullable=False)
    if isinstance(node.expression, exp.Boolean):
        value = need(scope, node.this, "boolean", word="IS")
        wanted = Literal(bool(node.expression.this), "boolean")
        return boolean(Call("same", (value.node, wanted)), is_nullable=False)
    raise scope.question.refuse("expression", node, word=short_sql(node))


def _not(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "boolean", word="NOT")
    return boolean(Call("not", (term.node,)), is_nullable=term.is_nullable)


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


def _logic(node: exp.Expression, scope: Scope) -> Term:
    function: Function = "and" if isinstance(node, exp.And) else "or"
    word = function.upper()
    terms = [need(scope, part, "boolean", word=word) for part in conjuncts(node, type(node))]
    return boolean(
        Call(function, in_order(term.node for term in terms)),
        is_nullable=any(t.is_nullable for t in terms),
    )


def in_order(parts: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Return different parts of an AND or OR, always in the same order.

    Every part is total, so their order means nothing and equal questions become equal.

    >>> one, other = Literal(1, "int32"), Literal(2, "int32")
    >>> in_order([other, one, one]) == (one, other)
    True
    """
    return tuple(sorted(set(parts), key=repr))


def _case(node: exp.Expression, scope: Scope) -> Term:
    question = scope.question
    if isinstance(node, exp.Case):
        question.arguments(node, "this", "ifs", "default")
        branches = [(part, part.args["true"]) for part in node.args["ifs"]]
        otherwise = node.args.get("default")
    else:
        question.arguments(node, "this", "true", "false")
        branches, otherwise = [(node, node.args["true"])], node.args.get("false")
    conditions: list[Scalar] = []
    for part, _ in branches:
        if isinstance(node, exp.Case) and node.args.get("this") is not None:
            left, right = _pair(part, scope, node.this, part.this, word="CASE")
            conditions.append(Call("equal", (tidy(left), tidy(right))))
        else:
            conditions.append(need(scope, part.this, "boolean", word="WHEN").node)
    results = [scope.term(result) for _, result in branches]
    results.append(scope.term(otherwise) if otherwise is not None else NULL)
    same = unify([replace(term, node=tidy(term), is_tidy=True) for term in results])
    if same is None:
        kinds = [t.kind for t in results if t.kind != "null"]
        other = next((kind for kind in kinds if kind != kinds[0]), kinds[0])
        raise question.refuse("types", node, word="CASE", left=kinds[0], right=other)
    *chosen, last = same
    whens = tuple((when, then.node) for when, then in zip(conditions, chosen, strict=True))
    return joined(same, Case(whens, last.node))


def _decode(node: exp.Expression, scope: Scope) -> Term:
    """Translate DECODE(x, 1, 'a', 2, 'b', 'other'): NULL is a value like others here."""
    scope.question.arguments(node, "expressions")
    subject, *rest = node.expressions or [exp.Null()]
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    if not pairs:
        example = "DECODE(x, 1, 'a', 2, 'b', 'other')"
        raise scope.question.refuse("arguments", node, word="DECODE", example=example)
    same = [rewritten(node, scope, "a IS NOT DISTINCT FROM b", subject, one) for one, _ in pairs]
    ifs = [exp.If(this=when, true=then) for when, (_, then) in zip(same, pairs, strict=True)]
    default = rest[-1] if len(rest) % 2 else None
    return scope.term(exp.Case(ifs=ifs, default=default))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Paren: _paren,
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Not: _not,
    exp.And: _logic,
    exp.Or: _logic,
    exp.Case: _case,
    exp.If: _case,
    exp.DecodeCase: _decode,
}
