"""Aggregate functions as written, before anyone decides how to compute them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, final

from sqlglot import exp

from discreet.tables.sql.expressions.term import Scope
from discreet.tables.sql.question.context import ReadingContext

__all__ = ["AggregateCall", "has_aggregate", "is_aggregate", "read_call"]

Word = Literal[
    "count", "sum", "mean", "variance", "deviation", "minimum", "maximum", "quantile",
    "covariance", "correlation", "histogram",
]  # fmt: skip

_ONE: Final[dict[type[exp.Expression], tuple[Word, bool]]] = {
    exp.Sum: ("sum", True),
    exp.Avg: ("mean", True),
    exp.Variance: ("variance", True),
    exp.VariancePop: ("variance", False),
    exp.Stddev: ("deviation", True),
    exp.StddevSamp: ("deviation", True),
    exp.StddevPop: ("deviation", False),
    exp.Min: ("minimum", True),
    exp.Max: ("maximum", True),
}
_TWO: Final[dict[type[exp.Expression], tuple[Word, bool]]] = {
    exp.Corr: ("correlation", True),
    exp.CovarSamp: ("covariance", True),
    exp.CovarPop: ("covariance", False),
}
_QUANTILES: Final = (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_NAMES: Final = ("histogram", "mean")
_SHOWN: Final = {
    "count": "COUNT", "sum": "SUM", "mean": "AVG", "variance": "VARIANCE", "deviation": "STDDEV",
    "minimum": "MIN", "maximum": "MAX", "quantile": "QUANTILE", "covariance": "COVAR_SAMP",
    "correlation": "CORR", "histogram": "HISTOGRAM",
}  # fmt: skip


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
        return _SHOWN[self.word]

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
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _NAMES
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls)


def has_aggregate(node: exp.Expression) -> bool:
    """Whether there is an aggregate anywhere in an expression."""
    return any(is_aggregate(part) for part in node.walk())


def read_call(node: exp.Expression, scope: Scope) -> AggregateCall | None:
    """Return what an aggregate asks for, or None where it is not one that is supported."""
    question = scope.question
    if isinstance(node, exp.Filter):
        question.arguments(node, "this", "expression")
        call = read_call(node.this, scope)
        return None if call is None else replace(call, condition=node.expression.this)
    if isinstance(node, exp.Count):
        return _count(node, question)
    if type(node) in _ONE:
        word, is_sample = _ONE[type(node)]
        argument = _only(node, question, _SHOWN[word])
        return AggregateCall(word=word, arguments=(argument,), is_sample=is_sample)
    if type(node) in _TWO:
        question.arguments(node, "this", "expression")
        word, is_sample = _TWO[type(node)]
        if node.args.get("expression") is None:
            raise _bad(node, question, _SHOWN[word], f"{_SHOWN[word]}(x, y)")
        return AggregateCall(word=word, arguments=(node.this, node.expression), is_sample=is_sample)
    if isinstance(node, exp.Median):
        argument = _only(node, question, "MEDIAN")
        return AggregateCall(word="quantile", arguments=(argument,), quantile=Fraction(1, 2))
    if isinstance(node, (*_QUANTILES, exp.WithinGroup)):
        return _quantile(node, scope)
    return _named(node, question)


def _count(node: exp.Count, question: ReadingContext) -> AggregateCall:
    question.arguments(node, "this", "expressions", "big_int")
    inner = node.this
    if node.expressions or inner is None:
        if inner is None:
            return AggregateCall(word="count")  # COUNT() is COUNT(*)
        raise _bad(node, question, "COUNT", "COUNT(x)")
    if isinstance(inner, exp.Star):
        question.arguments(inner)
        return AggregateCall(word="count")
    if isinstance(inner, exp.Distinct):
        question.arguments(inner, "expressions")
        if len(inner.expressions) != 1:
            raise _bad(node, question, "COUNT(DISTINCT ...)", "COUNT(DISTINCT x)")
        return AggregateCall(word="count", arguments=(inner.expressions[0],), is_distinct=True)
    return AggregateCall(word="count", arguments=(inner,))


def _only(node: exp.Expression, question: ReadingContext, word: str) -> exp.Expression:
    """Return the only argument of an aggregate."""
    if isinstance(node.this, exp.Distinct):
        raise question.refuse("aggregate_distinct", node, word=word)
    others = [key for key, value in node.args.items() if value and key != "this"]
    if others or not isinstance(node.this, exp.Expression) or isinstance(node.this, exp.Star):
        raise _bad(node, question, word, f"{word}(x)")
    return node.this


def _quantile(node: exp.Expression, scope: Scope) -> AggregateCall:
    question = scope.question
    if isinstance(node, exp.WithinGroup):
        question.arguments(node, "this", "expression")
        inner, order = node.this, node.expression
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
            raise question.refuse("aggregate_distinct", node, word="QUANTILE")
    if isinstance(written, exp.Array):
        raise question.refuse("nested_type", written)
    term = scope.term(written) if written is not None else None
    share = term.interval[0] if term is not None and term.is_literal else None
    if share is None or not 0 <= share <= 1:
        raise question.refuse("quantile", written if written is not None else node)
    share = 1 - share if is_descending else share
    return AggregateCall(word="quantile", arguments=(argument,), quantile=share)


def _named(node: exp.Expression, question: ReadingContext) -> AggregateCall | None:
    if not isinstance(node, exp.Anonymous):
        return None
    word = str(node.this).lower()
    if word == "mean":
        if len(node.expressions) != 1:
            raise _bad(node, question, "AVG", "AVG(x)")
        return AggregateCall(word="mean", arguments=(node.expressions[0],))
    if word == "histogram":
        return AggregateCall(word="histogram", arguments=tuple(node.expressions))
    return None


def _bad(node: exp.Expression, question: ReadingContext, word: str, example: str) -> Exception:
    return question.refuse("aggregate_arguments", node, word=word, example=example)
