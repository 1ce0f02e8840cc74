"""Subqueries that group rows: allowed where each group lies within one unit."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final, final

from sqlglot import exp

from discreet.tables.sql.aggregate_calls import Call, has_aggregate, read
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.term import Term, number, tidy, tidy_double
from discreet.tables.sql.expressions.translate import translate
from discreet.tables.sql.question.context import Question, fold
from discreet.tables.sql.scopes import GroupedScope, RowScope, inner_names, tidied

__all__ = ["grouped", "group_items"]

Columns = dict[str, tuple[str, Term | None, str]]
_STEPS: Final = 1 << 20  # sums within a unit are whole numbers of these parts of 1
_LARGEST: Final = "1152921504606846976e0"  # 2**60: so many rows of it still fit a HUGEINT


def group_items(
    question: Question,
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
    question: Question,
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
        # A column of the tables comes before a name of the SELECT list, as in DuckDB.
        is_column = any(fold(node.name) in source.columns for source in scope.sources)
        named = [item for title, item in items if fold(title) == fold(node.name)]
        if not is_column and named:
            found = named[0]
    if has_aggregate(found):
        raise question.refuse("key_aggregate", node)
    return found


def grouped(
    question: Question,
    select: exp.Select,
    items: list[tuple[str, exp.Expression]],
    scope: RowScope,
    *,
    is_private: bool,
    rows: Callable[[], str],
) -> tuple[Columns, str]:
    """Translate a subquery with GROUP BY; ``rows`` gives its FROM and WHERE at the end."""
    nodes = group_items(question, select, items, scope)
    keys = [scope.at("in GROUP BY").term(node) for node in nodes]
    if is_private:
        _check_unit(question, select, nodes, keys)
    inner = [
        replace(key, sql=f"k{i}", is_literal=False, is_tidy=True) for i, key in enumerate(keys)
    ]
    groups = _UnitScope(scope, [(key.sql, new) for key, new in zip(keys, inner, strict=True)])
    columns: Columns = {}
    names = inner_names([title for title, _ in items])
    shown = []
    for title, node in items:
        if fold(title) in columns:
            raise question.refuse("duplicate", node, word=title)
        term = groups.term(node)
        columns[fold(title)] = (title, term, term.type)
        shown.append(tidied(term, names[fold(title)]))
    having = select.args.get("having")
    groups.aliases = {fold(title): node for title, node in items}
    condition = ""
    if having is not None:
        condition = f" HAVING {need(groups, having.this, 'boolean', word='HAVING').sql}"
    unit = scope.unit()
    start = [] if unit is None else [f"{unit} AS unit"]
    inside = [*start, *(f"{tidy(key)} AS k{i}" for i, key in enumerate(keys))]
    inside += [f"{sql} AS v{i}" for i, sql in enumerate(groups.values)]
    by = ", ".join([*(["unit"] if unit else []), *(f"k{i}" for i in range(len(keys)))])
    text = (
        f"SELECT {', '.join([*(['unit'] if unit else []), *shown])} "  # noqa: S608
        f"FROM (SELECT {', '.join(inside) or '1 AS one'} {rows()}) AS r"
        + (f" GROUP BY {by}" if by else "")
        + condition
    )
    return columns, text


def _check_unit(
    question: Question, select: exp.Select, nodes: list[exp.Expression], keys: list[Term]
) -> None:
    unit = question.catalog.unit
    part = select.args.get("group") or select.args.get("distinct") or select
    if unit.kind == "record":
        raise question.refuse("unit_is_row", part, what="grouping inside a subquery")
    named = [key.column for key in keys if unit.period is not None and key.column]
    if any(key.is_unit for key in keys) or fold(unit.name or "") in map(fold, named):
        return
    clause = "SELECT DISTINCT" if select.args.get("distinct") else "GROUP BY of this subquery"
    raise question.refuse("unit_missing", part, word=unit.name, clause=clause)


@final
class _UnitScope(GroupedScope):
    """Groups within units: aggregates are computed at once, and exactly."""

    def __init__(self, rows: RowScope, keys: list[tuple[str, Term]]) -> None:
        super().__init__(rows, keys)
        self.values: list[str] = []

    def aggregate(self, node: exp.Expression, /) -> Term:
        call = read(node, self.rows)
        if call is None:
            return translate(node, self)
        if call.word not in ("count", "sum", "mean", "minimum", "maximum"):
            raise self.question.refuse("aggregate_rows", node, word=call.shown)
        rows = self.rows.at("inside another aggregate")
        term = rows.term(call.filtered()[0])
        if call.word == "count":
            return self._count(call, term)
        if call.word in ("minimum", "maximum"):
            word = "min" if call.word == "minimum" else "max"
            return replace(
                term, sql=f"{word}({self._value(tidy(term))})", is_literal=False, is_tidy=True,
                is_nullable=True, column=None, is_unit=False,
                values=None if term.kind != "boolean" else term.values,
            )  # fmt: skip
        if term.kind not in ("number", "boolean", "null"):
            raise self.question.refuse(
                "aggregate_type", node, word=call.shown, argument="its argument", kind=term.kind
            )
        return self._sum(call, term)

    def _count(self, call: Call, term: Term) -> Term:
        if not call.arguments and call.condition is None:
            sql = "count(*)"
        else:
            sql = f"count({'DISTINCT ' if call.is_distinct else ''}{self._value(tidy(term))})"
        return Term(
            sql=sql, kind="number", type="BIGINT", interval=(Fraction(0), None), is_whole=True,
            is_nullable=False,
        )  # fmt: skip

    def _sum(self, call: Call, term: Term) -> Term:
        value = tidy_double(term)
        # Doubles added up depend on the order of rows; these whole numbers do not. NULL stays
        # NULL, which LEAST and GREATEST alone would turn into a number.
        steps = (
            f"CASE WHEN {value} IS NULL THEN NULL ELSE CAST(floor(least(greatest({value}, "
            f"-{_LARGEST}), {_LARGEST}) * {_STEPS}e0) AS HUGEINT) END"
        )
        named = self._value(steps)
        total = f"(CAST(sum({named}) AS DOUBLE) / {_STEPS}e0)"
        if call.word == "mean":
            mean = f"({total} / nullif(CAST(count({named}) AS DOUBLE), 0e0))"
            return number(mean, interval=term.interval, is_tidy=True)
        low, high = term.interval
        span = (
            Fraction(0) if low is not None and low >= 0 else None,
            Fraction(0) if high is not None and high <= 0 else None,
        )
        return number(total, interval=span, is_whole=term.is_whole, is_tidy=True)

    def _value(self, sql: str) -> str:
        if sql not in self.values:
            self.values.append(sql)
        return f"v{self.values.index(sql)}"
