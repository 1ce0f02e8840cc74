"""Subqueries that group rows: allowed where each group lies within one unit."""

from dataclasses import replace
from fractions import Fraction
from typing import Final, final

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.relation import UNIT, GroupedRows
from discreet.tables.model.scalar import Call, Cast, ColumnRef, Fold, Scalar
from discreet.tables.sql.aggregate_calls import AggregateCall, has_aggregate, read_call
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.term import Term, number, tidy, tidy_double, together
from discreet.tables.sql.expressions.translate import translate
from discreet.tables.sql.question.context import ReadingContext, fold
from discreet.tables.sql.relations.joins import Relation
from discreet.tables.sql.relations.row_owner import OWN
from discreet.tables.sql.relations.scopes import GroupedScope, RowScope, inner_names, unit_column

__all__ = ["Named", "group_items", "grouped"]

Named = dict[str, tuple[str, Term | None, str]]
"""Columns by their lower-case name: the name as written, the term, the type."""

_STEPS: Final = scalar.double(1 << 20)  # sums within a unit are whole numbers of these parts of 1
_LARGEST: Final = 1 << 60  # so many rows of it still fit 128 bits


def group_items(
    question: ReadingContext,
    select: exp.Select,
    items: list[tuple[str, exp.Expression]],
    scope: RowScope,
) -> list[exp.Expression]:
    """Return the expressions of GROUP BY (or DISTINCT), names and numbers resolved."""
    clause = select.args.get("group")
    distinct = select.args.get("distinct")
    if distinct is not None:
        if distinct.args.get("on") is not None:
            raise question.refuse("distinct_on", distinct)
        if clause is not None or any(has_aggregate(node) for _, node in items):
            raise question.refuse("distinct", distinct)
        return [node for _, node in items]
    if clause is None:
        return []
    for key, word in (("rollup", "ROLLUP"), ("cube", "CUBE"), ("grouping_sets", "GROUPING SETS")):
        if clause.args.get(key):
            raise question.refuse("grouping_sets", clause, word=word)
    question.arguments(clause, "expressions", "all")
    if clause.args.get("all"):
        return [node for _, node in items if not has_aggregate(node)]
    return [_key(question, node, items, scope) for node in clause.expressions]


def _key(
    question: ReadingContext,
    node: exp.Expression,
    items: list[tuple[str, exp.Expression]],
    scope: RowScope,
) -> exp.Expression:
    words = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS"}
    if type(node) in words:
        raise question.refuse("grouping_sets", node, word=words[type(node)])
    found = node
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        written = str(node.this)
        if not written.isdecimal() or not 1 <= int(written[:9]) <= len(items):
            raise question.refuse("ordinal", node, word=written, most=len(items))
        found = items[int(written) - 1][1]
    elif isinstance(node, exp.Column) and not node.table:
        # A column of the tables comes before a name of the SELECT list, as SQL has it.
        is_column = any(fold(node.name) in source.columns for source in scope.sources)
        named = [item for title, item in items if fold(title) == fold(node.name)]
        if not is_column and named:
            found = named[0]
    if has_aggregate(found):
        raise question.refuse("key_aggregate", node)
    return found


def grouped(
    question: ReadingContext,
    select: exp.Select,
    items: list[tuple[str, exp.Expression]],
    relation: Relation,
    where: tuple[Scalar, ...],
) -> tuple[Named, GroupedRows]:
    """Translate a subquery with GROUP BY."""
    scope = relation.scope
    nodes = group_items(question, select, items, scope)
    keys = [scope.at("in GROUP BY").term(node) for node in nodes]
    if relation.is_private:
        _check_unit(question, select, nodes, keys)
    inner = [
        replace(key, node=ColumnRef(f"k{i}"), is_literal=False, is_tidy=True)
        for i, key in enumerate(keys)
    ]
    groups = _UnitScope(scope, [(key.node, new) for key, new in zip(keys, inner, strict=True)])
    columns: Named = {}
    names = inner_names([title for title, _ in items])
    unit = unit_column(scope.unit)
    shown: list[tuple[str, Scalar]] = [(UNIT, ColumnRef(UNIT)) for _ in unit]
    for title, node in items:
        if fold(title) in columns:
            raise question.refuse("duplicate", node, word=title)
        term = groups.term(node)
        columns[fold(title)] = (title, term, term.type)
        shown.append((names[fold(title)], tidy(term)))
    having = select.args.get("having")
    groups.aliases = {fold(title): node for title, node in items}
    condition = None
    if having is not None:
        condition = need(groups, having.this, "boolean", word="HAVING").node
    inside = [*unit, *((f"k{i}", tidy(key)) for i, key in enumerate(keys))]
    inside += [(f"v{i}", value) for i, value in enumerate(groups.values)]
    by = (*(UNIT for _ in unit), *(f"k{i}" for i in range(len(keys))))
    rows = relation.select(tuple(inside), where)
    return columns, GroupedRows(rows, by, tuple(shown), condition, _per_unit(keys))


def _per_unit(keys: list[Term]) -> int | None:
    """Return how many combinations of keys one unit can have, None where that is not public."""
    found = 1
    for key in keys:
        if key.is_literal or _is_of_unit(key):
            continue
        if key.values is None:
            return None
        found *= len(set(key.values) | ({None} if key.is_nullable else set()))
    return found


def _is_of_unit(key: Term) -> bool:
    """Whether a key is the unit's column, of which a period makes only a part of the unit."""
    return key.is_unit or OWN in key.owner


def _check_unit(
    question: ReadingContext, select: exp.Select, nodes: list[exp.Expression], keys: list[Term]
) -> None:
    unit = question.catalog.unit
    part = select.args.get("group") or select.args.get("distinct") or select
    if unit.kind == "record":
        raise question.refuse("unit_is_row", part, what="grouping inside a subquery")
    if any(_is_of_unit(key) or key.owner for key in keys):
        return  # groups are those of one unit, and a key of rows of one unit belongs to one
    clause = "SELECT DISTINCT" if select.args.get("distinct") else "GROUP BY of this subquery"
    raise question.refuse("unit_missing", part, word=unit.name, clause=clause)


@final
class _UnitScope(GroupedScope):
    """Groups within units: aggregates are computed at once, and exactly."""

    def __init__(self, rows: RowScope, keys: list[tuple[Scalar, Term]]) -> None:
        super().__init__(rows, keys)
        self.values: list[Scalar] = []

    def aggregate(self, node: exp.Expression, /) -> Term:
        call = read_call(node, self.rows)
        if call is None:
            return translate(node, self)
        if call.word not in ("count", "sum", "mean", "minimum", "maximum"):
            raise self.question.refuse("aggregate_rows", node, word=call.shown)
        rows = self.rows.at("inside another aggregate")
        given = [rows.term(one) for one in call.filtered()]
        term = given[0] if len(given) == 1 else together(given)
        if call.word == "count":
            return self._count(call, term)
        if call.word in ("minimum", "maximum"):
            return replace(
                term, node=Fold(call.word, self._value(tidy(term))), is_literal=False, is_tidy=True,
                is_nullable=True, column=None, is_unit=False, owner=frozenset(),
                values=None if term.kind != "boolean" else term.values,
            )  # fmt: skip
        if term.kind not in ("number", "boolean", "null"):
            raise self.question.refuse(
                "aggregate_type", node, word=call.shown, argument="its argument", kind=term.kind
            )
        return self._sum(call, term)

    def _count(self, call: AggregateCall, term: Term) -> Term:
        node = Fold("count")
        if call.arguments or call.condition is not None:
            value = self._value(tidy(term))
            node = Fold("count_distinct" if call.is_distinct else "count", value)
        return Term(
            node=node, kind="number", type="int64", interval=(Fraction(0), None), is_whole=True,
            is_nullable=False,
        )  # fmt: skip

    def _sum(self, call: AggregateCall, term: Term) -> Term:
        # Doubles added up depend on the order of rows; these whole numbers do not.
        ends = (scalar.double(-_LARGEST), scalar.double(_LARGEST))
        clamped = Call("clamp", (tidy_double(term), *ends))
        steps = Call("floor", (Call("multiply", (clamped, _STEPS)),))
        value = self._value(Cast(steps, "int128", widens=True))
        total = Call("divide", (Cast(Fold("sum", value), "double", widens=True), _STEPS))
        if call.word == "mean":
            count = Cast(Fold("count", value), "double", widens=True)
            return number(Call("divide", (total, count)), interval=term.interval, is_tidy=True)
        low, high = term.interval
        span = (
            Fraction(0) if low is not None and low >= 0 else None,
            Fraction(0) if high is not None and high <= 0 else None,
        )
        return number(total, interval=span, is_whole=term.is_whole, is_tidy=True)

    def _value(self, node: Scalar) -> ColumnRef:
        if node not in self.values:
            self.values.append(node)
        return ColumnRef(f"v{self.values.index(node)}")
