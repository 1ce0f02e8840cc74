"""UNION ALL: the rows of several queries, one after another, each still belonging to one unit."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.relation import Columns, Joined, Select, UnionRows
from discreet.tables.model.scalar import Cast
from discreet.tables.sql.expressions.literals import joined, unify
from discreet.tables.sql.expressions.term import Term, tidy
from discreet.tables.sql.question.context import UNWRITTEN, ReadingContext, fold, short_sql
from discreet.tables.sql.relations.scopes import FromItem, JoinSide, RowScope, unit_column

__all__ = ["plain_query", "retitled", "union"]


def plain_query(question: ReadingContext, node: exp.Expression) -> exp.Expression:
    """Return SELECT DISTINCT over UNION ALL for a UNION, and any other query as it is.

    Rows are the same to both where they agree in all columns. That the unit is among these is
    asked of every DISTINCT, so that no unit's row hides another's.
    """
    if not isinstance(node, exp.Union) or not node.args.get("distinct"):
        return node
    every = node.copy()
    clause = every.args.get("with_")
    every.set("distinct", False)
    every.set("with_", None)
    named = exp.TableAlias(this=exp.to_identifier(UNWRITTEN, quoted=True))
    made = exp.select("*").distinct().from_(exp.Subquery(this=every, alias=named))
    made.set("with_", clause)
    start = question.positions.offset(node)
    for part in made.walk():
        part.meta.setdefault("start", start)
    return made


def retitled(query: exp.Query) -> exp.Query:
    """Return a part of a union other than the first with a name of its own for each column.

    Nobody sees these names, so that ``NULL, NULL`` is as good as any.
    """
    made, seen = query.copy(), set[str]()
    for place, item in enumerate(made.expressions if isinstance(made, exp.Select) else ()):
        is_named = isinstance(item, exp.Alias | exp.Column)
        title = fold(item.alias_or_name if is_named else short_sql(item))
        if title in seen and not item.is_star:
            item.replace(exp.alias_(item.unalias().copy(), f" {place}", quoted=True))
        seen.add(title)
    return made


def union(
    question: ReadingContext, node: exp.Expression, sides: list[JoinSide], *, alias: str, title: str
) -> JoinSide:
    """Return the rows of several sides as one, its columns named as those of the first.

    Claim: each row belongs to one unit, and a unit's rows are a function of its own rows; it has as
    many as in all sides together.

    Why: every row is a row of one side, under the unit that it has there.
    """
    question.arguments(node, "this", "expression", "distinct", "with_")
    if len({side.is_private for side in sides}) > 1:
        raise question.refuse("union_public", node)
    lists = [list(side.items[0].columns) for side in sides]
    if len({len(names) for names in lists}) > 1:
        raise question.refuse("union_columns", node)
    first = sides[0].items[0]
    columns: dict[str, tuple[str, Term | None, str]] = {}
    shown: list[list[tuple[str, scalar.Scalar]]] = [[] for _ in sides]
    for place in zip(*lists, strict=True):
        declared, _, type_ = first.columns[place[0]]
        made = _column(question, node, [s.items[0] for s in sides], place)
        if made is None:
            columns[place[0]] = (declared, None, type_)
            continue
        term, parts = made
        columns[place[0]] = (declared, term, term.type)
        for own, part in zip(shown, parts, strict=True):
            own.append((first.names[place[0]], part))
    item = FromItem(
        alias=alias, title=title, columns=columns, is_private=sides[0].is_private, names=first.names
    )

    def rows() -> UnionRows:
        return UnionRows(tuple(map(_rows, sides, shown)))

    return JoinSide(alias=alias, items=[item], rows=rows, has_unit=sides[0].has_unit)


def _rows(side: JoinSide, columns: list[tuple[str, scalar.Scalar]]) -> Select:
    part = Joined(alias=side.alias, rows=side.rows())
    named: Columns = (*unit_column(side.unit), *columns)
    return Select((part,), named)


def _column(
    question: ReadingContext, node: exp.Expression, items: list[FromItem], names: tuple[str, ...]
) -> tuple[Term, list[scalar.Scalar]] | None:
    """Return a column of a union and what it is in each side, None where it cannot be used."""
    if any(item.columns[name][1] is None for item, name in zip(items, names, strict=True)):
        return None
    terms = []
    for item, name in zip(items, names, strict=True):
        scope = RowScope(question, [item], where="in UNION ALL")
        terms.append(scope.term(exp.column(name, quoted=True)))
    same = unify(terms)
    if same is None:
        kinds = [term.kind for term in terms if term.kind != "null"]
        other = next(kind for kind in kinds if kind != kinds[0])
        raise question.refuse("types", node, word="UNION", left=kinds[0], right=other)
    made = joined(same, scalar.NULL)
    totals = [term.total for term in terms]
    names_ = {fold(term.column or "") for term in terms}
    parts = [
        Cast(scalar.NULL, made.type, widens=True)
        if term.kind == "null" and made.type != "null"
        else tidy(unified)
        for term, unified in zip(terms, same, strict=True)
    ]
    made = replace(
        made,
        is_unit=all(term.is_unit for term in terms),
        owner=frozenset.intersection(*(term.owner for term in terms)),
        column=terms[0].column if len(names_) == 1 else None,
        total=None if None in totals else sum((n for n in totals if n is not None), Fraction(0)),
    )
    return made, parts
