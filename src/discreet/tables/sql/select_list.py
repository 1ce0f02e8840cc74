"""The SELECT list, HAVING, ORDER BY and LIMIT: aggregates to release, then post-processing."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.output import Order
from discreet.tables.model.query import Aggregate, Key, Value
from discreet.tables.model.scalar import (
    Call,
    Case,
    Cast,
    ReleasedAggregate,
    ReleasedKey,
    Scalar,
)
from discreet.tables.sql.aggregate_calls import AggregateCall, read_call
from discreet.tables.sql.expressions import intervals
from discreet.tables.sql.expressions.literals import number_literal
from discreet.tables.sql.expressions.moments.temporal import seconds
from discreet.tables.sql.expressions.term import (
    Term,
    as_double,
    in_range,
    tidy,
    tidy_double,
    together,
)
from discreet.tables.sql.expressions.translate import translate
from discreet.tables.sql.question.context import ReadingContext, fold, short_sql
from discreet.tables.sql.relations.scopes import GroupedScope, RowScope, spelled

__all__ = ["HistogramKey", "OutputScope", "histogram", "ordering", "row_limit"]

_OF_MOMENTS: Final = ("minimum", "maximum", "quantile")


@final
class OutputScope(GroupedScope):
    """Collects aggregates and values while output expressions are translated."""

    def __init__(self, rows: RowScope, keys: list[tuple[Scalar, Term]]) -> None:
        super().__init__(rows, keys)
        self.aggregates: list[Aggregate] = []
        self.values: list[Value] = []
        self.value_nodes: list[Scalar] = []
        self.key_count = len(keys)
        self.histogram: exp.Expression | None = None  # the one of the SELECT list

    def aggregate(self, node: exp.Expression, /) -> Term:
        """Enter an aggregate, and return its column of the released table."""
        call = read_call(node, self.rows)
        if call is None:
            return translate(node, self)
        if call.word == "histogram" and node == self.histogram:
            return self.row_count()
        if call.word == "histogram":
            raise self.question.refuse(
                "histogram", node, why="HISTOGRAM must stand alone in the SELECT list"
            )
        released = self._released(self._aggregate(node, call))
        return self._dated(released, call)

    def _dated(self, released: Term, call: AggregateCall) -> Term:
        """Return what was released of moments, as seconds, as the moment that it is."""
        if call.word not in _OF_MOMENTS:
            return released
        term = self.rows.at("inside another aggregate").term(call.arguments[0])
        if term.kind not in ("date", "timestamp"):
            return released
        # A date is the nearest one: a trace below midnight is not the day before.
        shift = scalar.double(43_200 if term.kind == "date" else 0)
        nearest = Call("add", (as_double(released), shift))
        count = Call("multiply", (nearest, scalar.double(1_000_000)))
        moment = in_range(Call("from_epoch", (count,)), "timestamp")
        return moment if term.kind == "timestamp" else in_range(Cast(moment.node, "date"), "date")

    def row_count(self) -> Term:
        """Enter COUNT(*), so that there is something to release for each key."""
        return self._released(Aggregate(kind="count"))

    def _released(self, aggregate: Aggregate) -> Term:
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        position = self.aggregates.index(aggregate)
        # Its type is the releaser's business: arithmetic converts it to a double first.
        return Term(node=ReleasedAggregate(position), kind="number", type="released")

    def _aggregate(self, node: exp.Expression, call: AggregateCall) -> Aggregate:
        assert call.word != "histogram"
        if call.word == "count":
            return self._count(call)
        if call.word == "sum_distinct":
            return self._sum_distinct(node, call)
        places = tuple(self._number(argument, node, call) for argument in call.filtered())
        return Aggregate(
            kind=call.word, values=places, quantile=call.quantile, is_sample=call.is_sample
        )

    def _count(self, call: AggregateCall) -> Aggregate:
        rows = self.rows.at("inside another aggregate")
        if not call.arguments and call.condition is None:
            return Aggregate(kind="count")
        argument, *others = call.filtered()
        term = rows.term(argument)
        if others:
            term = together([term, *(rows.term(other) for other in others)])
            argument = exp.Tuple(expressions=[one.copy() for one in call.arguments])
        if call.is_distinct:
            if term.is_unit:
                return Aggregate(kind="count_units")
            value = tidy(term)
            if term.type == "double":
                value = Call("plus_zero", (value,))
            place = self._value(value, self._described(argument, term))
            return Aggregate(kind="count_distinct", values=(place,))
        if not term.is_nullable:
            return Aggregate(kind="count")
        if term.kind in ("number", "boolean"):  # the value itself, which a sum or mean may share
            place = self._value(tidy_double(term), self._described(argument, term))
            return Aggregate(kind="count_values", values=(place,))
        present = Case(((Call("is_null", (tidy(term),)), scalar.NULL),), scalar.double(1))
        described = replace(
            self._described(argument, term), bounds=(Fraction(0), Fraction(1)), is_whole=True
        )
        return Aggregate(kind="count_values", values=(self._value(present, described),))

    def _sum_distinct(self, node: exp.Expression, call: AggregateCall) -> Aggregate:
        place = self._number(call.filtered()[0], node, call)
        if self.values[place].bounds is None:
            # A few rare values are a few units' but may be most of the sum: what clipping takes of
            # units does not tell what it takes of distinct values.
            raise self.question.refuse("distinct_bounds", node, subject=self.values[place].text)
        return Aggregate(kind="sum_distinct", values=(place,))

    def _number(self, argument: exp.Expression, node: exp.Expression, call: AggregateCall) -> int:
        term = self.rows.at("inside another aggregate").term(argument)
        if term.kind in ("date", "timestamp") and call.word in _OF_MOMENTS:
            term = seconds(term)
        if term.kind not in ("number", "boolean", "null"):
            raise self.question.refuse(
                "aggregate_type",
                node,
                word=call.shown,
                argument=short_sql(argument),
                kind=term.kind,
            )
        return self._value(tidy_double(term), self._described(argument, term))

    def _described(self, argument: exp.Expression, term: Term) -> Value:
        return Value(
            text=spelled(argument, self.rows),
            bounds=intervals.bounded(term.interval) if term.kind in ("number", "boolean") else None,
            is_whole=term.is_whole,
            column=term.column,
            total=None if term.column is None else term.total,
        )

    def _value(self, node: Scalar, value: Value) -> int:
        for place, (known, other) in enumerate(zip(self.value_nodes, self.values, strict=True)):
            if known == node and other.bounds == value.bounds:
                return place
        self.values.append(value)
        self.value_nodes.append(node)
        return len(self.values) - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramKey:
    """A histogram: one more key that is the number of the bin, and where bins begin."""

    node: Scalar
    key: Key
    low: Fraction
    high: Fraction

    def edge(self, position: int, *, offset: int) -> Scalar:
        """Return the lower (0) or upper (1) end of a bin."""
        bins = scalar.double(len(self.key.values or ()))
        low, width = (as_double(number_literal(one)) for one in (self.low, self.high - self.low))
        bin_ = Cast(ReleasedKey(position), "double", widens=True)
        steps = Call("multiply", (Call("add", (bin_, scalar.double(offset))), width))
        return Call("add", (low, Call("divide", (steps, bins))))


def histogram(
    question: ReadingContext, node: exp.Expression, rows: RowScope, *, title: str
) -> HistogramKey:
    """Read HISTOGRAM(x, low, high, bins)."""
    call = read_call(node, rows)
    assert call is not None
    if len(call.arguments) != 4:
        raise question.refuse("histogram", node, why="HISTOGRAM takes four arguments")
    inside = rows.at("inside another aggregate")
    subject = replace(call, arguments=call.arguments[:1]).filtered()[0]
    term = inside.term(subject)
    if term.kind not in ("number", "boolean"):
        raise question.refuse(
            "aggregate_type", node, word="HISTOGRAM", argument=short_sql(subject), kind=term.kind
        )
    ends = [inside.term(argument) for argument in call.arguments[1:]]
    low, high, bins = (end.interval[0] if end.is_literal else None for end in ends)
    if low is None or high is None or bins is None or not low < high:
        raise question.refuse(
            "histogram", node, why="low, high and bins must be literals, low below high"
        )
    if bins.denominator != 1 or not 1 <= bins <= 10_000:
        raise question.refuse(
            "histogram", call.arguments[3], why="the number of bins must be from 1 to 10000"
        )
    value, width = tidy_double(term), as_double(number_literal(high - low))
    above = Call("subtract", (value, as_double(ends[0])))
    steps = Call("multiply", (above, scalar.double(int(bins))))
    bin_ = Call("floor", (Call("divide", (steps, width)),))
    # Infinite values go into the end bins like all that lie outside.
    kept = Call("clamp", (bin_, scalar.double(0), scalar.double(int(bins) - 1)))
    return HistogramKey(
        node=Cast(kept, "int64"),
        key=Key(name=title, type="int64", values=tuple(range(int(bins)))),
        low=low,
        high=high,
    )


def ordering(
    question: ReadingContext,
    select: exp.Select,
    scope: OutputScope,
    items: list[tuple[str, exp.Expression]],
) -> tuple[Order, ...]:
    """Return what ORDER BY sorts released values by; ties go by the keys."""
    clause = select.args.get("order")
    found = []
    for ordered in clause.expressions if clause is not None else []:
        question.arguments(ordered, "this", "desc", "nulls_first")
        is_descending, nulls_first = (
            bool(ordered.args.get(word)) for word in ("desc", "nulls_first")
        )
        for node in _ordered(question, ordered.this, items):
            term = scope.term(node)
            if not term.is_literal:  # which would order nothing
                found.append(Order(term.node, is_descending, nulls_first))
    found += [Order(ReleasedKey(i)) for i in range(scope.key_count)]
    return tuple(dict.fromkeys(found))


def _ordered(
    question: ReadingContext, node: exp.Expression, items: list[tuple[str, exp.Expression]]
) -> list[exp.Expression]:
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return [item for _, item in items]
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        written = str(node.this)
        if not written.isdecimal() or not 1 <= int(written[:9]) <= len(items):
            raise question.refuse("ordinal", node, word=written, most=len(items))
        return [items[int(written) - 1][1]]
    if isinstance(node, exp.Column) and not node.table:  # names of the SELECT list come first
        named = [item for title, item in items if fold(title) == fold(node.name)]
        if named:
            return named[:1]
    return [node]


def row_limit(question: ReadingContext, select: exp.Select, word: str) -> int | None:
    """Return the whole number after LIMIT or OFFSET, None where there is no such clause."""
    clause = select.args.get(word.lower())
    if clause is None:
        return None
    count = clause.expression
    is_plain = isinstance(count, exp.Literal) and not count.args.get("is_string")
    others = [key for key, value in clause.args.items() if value and key != "expression"]
    written = str(count.this) if is_plain and not others else ""
    if not written.isdecimal() or len(written) > 15:
        raise question.refuse("limit", clause, word=word)
    return int(written)
