"""IN and EXISTS with a subquery, as joins in which every row has one partner at most.

``x IN (SELECT y ...)`` keeps the rows that have a partner among the *distinct* values of y, and
NOT IN those that have none. No row is multiplied. Where the subquery reads protected tables, both
sides are of the same unit, as in every join: whether a row stays depends on its own unit's rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from sqlglot import exp

from discreet.errors import Refused
from discreet.tables.model.scalar import Call, ColumnRef
from discreet.tables.sql.aggregate_calls import has_aggregate
from discreet.tables.sql.expressions.logic import conjuncts
from discreet.tables.sql.question.context import UNWRITTEN, ReadingContext
from discreet.tables.sql.relations.joins import Relation, attach
from discreet.tables.sql.relations.scopes import JoinSide, RowScope

__all__ = ["SemiJoin", "attach_semi_join", "semi_join"]

Pairs = list[tuple[exp.Expression, exp.Expression]]
"""What is equal: an expression of the subquery, and one of the rows around it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SemiJoin:
    """A condition ``subject IN (query)``, or EXISTS (query) where there is no subject."""

    node: exp.Expression
    query: exp.Select
    subject: exp.Expression | None
    is_negated: bool = False


def semi_join(part: exp.Expression) -> SemiJoin | None:
    """Return what a condition asks of a subquery, None where it is another condition.

    >>> import sqlglot
    >>> semi_join(sqlglot.parse_one("NOT EXISTS (SELECT 1 FROM t)")).is_negated
    True
    """
    while isinstance(part, exp.Paren):
        part = part.this
    if isinstance(part, exp.Not):
        inner = semi_join(part.this)
        return None if inner is None else replace(inner, is_negated=not inner.is_negated)
    subject, query = None, None
    if isinstance(part, exp.In):
        subject, query = part.this, part.args.get("query")
    elif isinstance(part, exp.EQ) and isinstance(part.expression, exp.Any):
        subject, query = part.this, part.expression.this
    elif isinstance(part, exp.Exists):
        query = part.this
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Union) and subject is not None:
        query = _of_union(query)
    if not isinstance(query, exp.Select):
        return None
    return SemiJoin(node=part, query=query, subject=subject)


def _of_union(query: exp.Union) -> exp.Select | None:
    """Return the one column of a union as a SELECT, None where it has no name or is not one."""
    first: exp.Expression = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.expressions if isinstance(first, exp.Select) else []
    if len(items) != 1 or not isinstance(items[0], exp.Alias | exp.Column) or items[0].is_star:
        return None
    named = exp.TableAlias(this=exp.to_identifier(UNWRITTEN, quoted=True))
    column = exp.column(items[0].alias_or_name, quoted=True)
    return exp.select(column).from_(exp.Subquery(this=query.copy(), alias=named))


def attach_semi_join(
    question: ReadingContext,
    relation: Relation,
    asked: SemiJoin,
    *,
    inside: Callable[[exp.Select], RowScope],
    derive: Callable[[exp.Select, str, str], JoinSide],
) -> None:
    """Join the distinct values that a condition compares with.

    ``inside`` returns what a subquery's expressions refer to, and ``derive`` translates a subquery
    under an alias and a title.
    """
    query, pairs = _correlated(question, relation, asked, inside)
    alias = relation.next_alias
    title = f" {alias}"  # which no question can write as a plain name
    start = question.positions.offset(asked.node)
    select = _distinct(query, [own for own, _ in pairs])
    on = exp.and_(*(
        exp.EQ(this=other.copy(), expression=exp.column(f"k{i}", table=title, quoted=True))
        for i, (_, other) in enumerate(pairs)
    ))  # fmt: skip
    for part in (*select.walk(), *on.walk()):
        part.meta.setdefault("start", start)
    side = derive(select, alias, title)
    (source,) = side.items
    source.merged.update(source.columns)  # seen by nobody who does not name its title
    join = exp.Join(this=exp.to_identifier("t"), on=on, side="LEFT" if asked.is_negated else None)
    join.this.meta["start"] = start
    if asked.is_negated and asked.subject is not None and not source.is_private:
        raise question.refuse("not_in", asked.node)  # a NULL among the values would say no to all
    attach(question, relation, join, side, is_semi=True)
    if asked.is_negated:
        source.used.update(source.columns)
        relation.conditions.append(Call("is_null", (ColumnRef("k0", source.alias),)))
        if asked.subject is not None:
            subject = relation.scope.term(asked.subject)
            relation.conditions.append(Call("not", (Call("is_null", (subject.node,)),)))


def _correlated(
    question: ReadingContext,
    relation: Relation,
    asked: SemiJoin,
    inside: Callable[[exp.Select], RowScope],
) -> tuple[exp.Select, Pairs]:
    """Return a subquery without what it equates with the rows around it, and these pairs."""
    query, pairs = asked.query.copy(), Pairs()
    if asked.subject is not None:
        if len(query.expressions) != 1 or query.is_star:
            raise question.refuse("subquery", asked.node)
        item = query.expressions[0]
        pairs.append((item.this if isinstance(item, exp.Alias) else item, asked.subject))
    where = query.args.get("where")
    if where is not None:
        scope, kept = inside(asked.query), []
        for part in conjuncts(where.this):
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            whose = [_is_over(scope, side) for side in sides]
            if semi_join(part) is not None or _is_over(scope, part):
                kept.append(part)
            elif set(whose) == {True, False} and _is_over(
                relation.scope, sides[whose.index(False)]
            ):
                pairs.append((sides[whose.index(True)], sides[whose.index(False)]))
            else:
                raise question.refuse("subquery", part)
        query.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    if not pairs:
        raise question.refuse("subquery", asked.node)
    return query, pairs


def _is_over(scope: RowScope, node: exp.Expression) -> bool:
    """Whether a scope has all columns of an expression."""
    try:
        for column in node.find_all(exp.Column):
            scope.find(column)
    except Refused:
        return False
    return True


def _distinct(query: exp.Select, items: list[exp.Expression]) -> exp.Select:
    """Return a subquery that has the distinct values of some of its expressions, as k0, k1, ..."""
    named = [exp.alias_(item.copy(), f"k{i}") for i, item in enumerate(items)]
    query.set("expressions", named)
    is_grouped = query.args.get("group") is not None or query.args.get("having") is not None
    if not is_grouped and not any(has_aggregate(item) for item in items):
        query.set("distinct", exp.Distinct())
        return query
    names = [exp.column(f"k{i}", table=UNWRITTEN, quoted=True) for i in range(len(items))]
    alias = exp.TableAlias(this=exp.to_identifier(UNWRITTEN, quoted=True))
    return exp.select(*names).distinct().from_(exp.Subquery(this=query, alias=alias))
