"""Aggregate functions as written, before anyone decides how to compute them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, final

import sqlglot
from sqlglot import exp

from discreet.tables.model.aggregates import (
    AGGREGATES,
    SPECS,
    AggregateKind,
    AggregateSpec,
    Rewrite,
)
from discreet.tables.sql.expressions.term import Scope
from discreet.tables.sql.question.context import DIALECT, ReadingContext, short_sql

__all__ = [
    "AggregateCall",
    "expanded",
    "has_aggregate",
    "is_aggregate",
    "is_supported",
    "read_call",
]

Word = AggregateKind | Literal["histogram"]
Function = type[exp.Expr] | str
"""A function as the parser knows it: by a class of its own, or by its name alone."""


def _function(name: str) -> Function:
    return exp.FUNCTION_BY_NAME.get(name, name)


def _function_of(node: exp.Expr) -> Function:
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else type(node)


_HISTOGRAM: Final = "HISTOGRAM"
_FINEST: Final = Fraction(1, 10**6)  # quantiles nearer to an end cannot be told from it
_NATIVE: Final[dict[Function, tuple[AggregateSpec, bool]]] = {
    _function(name): (spec, is_sample)
    for spec in SPECS.values()
    for names, is_sample in ((spec.names, True), (spec.population_names, False))
    for name in names
}
_REWRITES: Final[dict[Function, Rewrite]] = {
    _function(name): one for one in AGGREGATES if isinstance(one, Rewrite) for name in one.names
}


_DISTINCT_MEAN: Final = Rewrite(names=("AVG",), sql="SUM(DISTINCT x) / COUNT(DISTINCT x)")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """One aggregate: what it computes, of which expressions, over which rows."""

    word: Word
    arguments: tuple[exp.Expression, ...] = ()
    is_distinct: bool = False
    is_sample: bool = True
    quantile: Fraction | None = None
    condition: exp.Expression | None = None

    @property
    def shown(self) -> str:
        """The usual name in SQL."""
        return _HISTOGRAM if self.word == "histogram" else SPECS[self.word].names[0]

    def filtered(self) -> tuple[exp.Expression, ...]:
        """Return the arguments, NULL in rows that FILTER leaves out; COUNT(*) counts a 1."""
        arguments = self.arguments or (exp.Literal.number(1),)
        if self.condition is None:
            return arguments
        return tuple(
            exp.Case(ifs=[exp.If(this=self.condition.copy(), true=argument.copy())])
            for argument in arguments
        )


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, also one that is refused later."""
    kinds = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.IgnoreNulls)
    return isinstance(node, kinds) or is_supported(node) or _function_of(node) == _HISTOGRAM


def is_supported(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate that exists."""
    return _function_of(node) in _NATIVE or _function_of(node) in _REWRITES


def has_aggregate(node: exp.Expression) -> bool:
    """Whether there is an aggregate in an expression, those of its subqueries left out."""
    return any(is_aggregate(p) for p in node.walk(prune=lambda p: isinstance(p, exp.Query)))


def read_call(node: exp.Expression, scope: Scope) -> AggregateCall | None:
    """Return what an aggregate asks for, or None where it is not one that is supported."""
    question = scope.question
    if isinstance(node, exp.Filter):
        question.arguments(node, "this", "expression")
        call = read_call(node.this, scope)
        return None if call is None else replace(call, condition=node.expression.this)
    if isinstance(node, exp.Count):
        return _count(node, question)
    if _function_of(node) == _HISTOGRAM:
        return AggregateCall(word="histogram", arguments=tuple(node.expressions))
    if isinstance(node, exp.WithinGroup):
        return _quantile(node, scope)
    if _is_distinct_mean(node):
        return None  # it is expanded
    if isinstance(node, exp.Sum) and isinstance(node.this, exp.Distinct):
        return AggregateCall(word="sum_distinct", arguments=(_only(node, question, "SUM"),))
    spec, is_sample = _NATIVE.get(_function_of(node), (None, True))
    if spec is None:
        return None
    if spec.draws == "quantile":
        return _quantile(node, scope)
    arguments = _arguments(node, question, spec.names[0], spec.parameters)
    return AggregateCall(word=spec.kind, arguments=arguments, is_sample=is_sample)


def expanded(node: exp.Expression, question: ReadingContext) -> exp.Expression | None:
    """Return the expression over others that an aggregate stands for; None if for itself."""
    call, condition = node, None
    if isinstance(node, exp.Filter):
        question.arguments(node, "this", "expression")
        call, condition = node.this, node.expression
    rewrite = _REWRITES.get(_function_of(call))
    if _is_distinct_mean(call):
        rewrite, call = _DISTINCT_MEAN, exp.Avg(this=_only(call, question, "AVG"))
    if rewrite is None:
        return None
    given = _arguments(call, question, rewrite.names[0], rewrite.parameters)
    named = dict(zip(rewrite.parameters, given, strict=True))
    made = sqlglot.parse_one(rewrite.sql, dialect=DIALECT)
    start = question.positions.offset(node)

    def filled(part: exp.Expression) -> exp.Expression:
        part.meta["start"] = start  # where it was asked for, should it be refused
        if isinstance(part, exp.Column):
            return named[part.name].copy()
        return part

    def filtered(part: exp.Expression) -> exp.Expression:
        if condition is None or not is_aggregate(part):
            return part
        return exp.Filter(this=part, expression=condition.copy())

    return made.transform(filled).transform(filtered)


def _count(node: exp.Count, question: ReadingContext) -> AggregateCall:
    question.arguments(node, "this", "expressions", "big_int")
    inner = node.this
    if inner is None:
        return AggregateCall(word="count")  # COUNT() is COUNT(*)
    if node.expressions:  # COUNT(x, y) counts the rows that have both
        columns = [inner, *node.expressions]
        if any(isinstance(one, exp.Star | exp.Distinct) for one in columns):
            raise _bad(node, question, "COUNT", "COUNT(x)")
        known = exp.and_(*(one.copy().is_(exp.Null()).not_() for one in columns))
        met = exp.If(this=known, true=exp.Literal.number(1))
        return AggregateCall(word="count", arguments=(exp.Case(ifs=[met]),))
    if isinstance(inner, exp.Star) and not any(inner.args.values()):
        return AggregateCall(word="count")
    if inner.is_star or isinstance(inner.this, exp.Star):  # m.*, * EXCLUDE (x), * ILIKE 'x%'
        raise _bad(node, question, "COUNT", "COUNT(*), or COUNT(x, y) for rows that have both")
    if isinstance(inner, exp.Distinct):
        question.arguments(inner, "expressions")
        return AggregateCall(word="count", arguments=tuple(inner.expressions), is_distinct=True)
    return AggregateCall(word="count", arguments=(inner,))


def _is_distinct_mean(node: exp.Expression) -> bool:
    return isinstance(node, exp.Avg) and isinstance(node.this, exp.Distinct)


def _only(node: exp.Expression, question: ReadingContext, word: str) -> exp.Expression:
    """Return the one value of which SUM(DISTINCT x) or AVG(DISTINCT x) is."""
    question.arguments(node, "this")
    question.arguments(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise _bad(node, question, word, f"{word}(DISTINCT x)")
    return node.this.expressions[0]  # type: ignore[no-any-return]


def _arguments(
    node: exp.Expression, question: ReadingContext, word: str, parameters: Sequence[str]
) -> tuple[exp.Expression, ...]:
    """Return the arguments of an aggregate, one for each of its parameters."""
    if isinstance(node, exp.Anonymous):
        given = list(node.expressions)
    elif len(parameters) == 1:
        others = [value for key, value in node.args.items() if value and key != "this"]
        given = [node.this, *others]
    else:
        question.arguments(node, "this", "expression")
        given = [node.this, node.args.get("expression")]
    if len(parameters) == 1 and given and isinstance(given[0], exp.Distinct):
        inner = given[0].expressions
        if word not in ("MIN", "MAX") or len(inner) != 1:  # of which DISTINCT changes nothing
            column = short_sql(inner[0]) if inner else "x"
            raise question.refuse("aggregate_distinct", node, word=word, subject=column)
        given[0] = inner[0]
    wrong = exp.Star if len(parameters) == 1 else ()
    is_plain = all(isinstance(one, exp.Expression) and not isinstance(one, wrong) for one in given)
    if not is_plain or len(given) != len(parameters):
        raise _bad(node, question, word, f"{word}({', '.join(parameters)})")
    return tuple(given)


def _quantile(node: exp.Expression, scope: Scope) -> AggregateCall:
    question = scope.question
    if isinstance(node, exp.WithinGroup):
        question.arguments(node, "this", "expression")
        inner, order = node.this, node.expression
        if isinstance(inner, exp.Mode):
            subject = short_sql(order.expressions[0].this)
            words = {"word": "MODE", "subject": subject, "measure": "COUNT(*)", "most": "1"}
            raise question.refuse("aggregate_top", node, **words)
        is_plain = isinstance(inner, exp.PercentileCont | exp.PercentileDisc)
        if not is_plain or inner.args.get("expression") or len(order.expressions) != 1:
            example = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"
            raise _bad(node, question, "WITHIN GROUP", example)
        written, argument = inner.this, order.expressions[0].this
        is_descending = bool(order.expressions[0].args.get("desc"))
    else:
        question.arguments(node, "this", "expression", "quantile")
        written = node.args.get("quantile") or node.args.get("expression")
        argument, is_descending = node.this, False
        if isinstance(argument, exp.Distinct):
            column = short_sql(argument.expressions[0])
            raise question.refuse("aggregate_distinct", node, word="QUANTILE", subject=column)
    if isinstance(written, exp.Array):
        raise question.refuse("nested_type", written)
    term = scope.term(written) if written is not None else None
    share = term.interval[0] if term is not None and term.is_literal else None
    if share is None or not _FINEST <= share <= 1 - _FINEST:
        raise question.refuse("quantile", written if written is not None else node)
    share = 1 - share if is_descending else share
    return AggregateCall(word="quantile", arguments=(argument,), quantile=share)


def _bad(node: exp.Expression, question: ReadingContext, word: str, example: str) -> Exception:
    return question.refuse("aggregate_arguments", node, word=word, example=example)
