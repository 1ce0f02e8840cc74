"""FROM: tables, subqueries, WITH and joins, each row still belonging to one unit."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

from sqlglot import exp

from discreet.tables.model.catalog import Column, Table
from discreet.tables.model.relation import Scan, Select
from discreet.tables.model.scalar import ColumnRef, Scalar
from discreet.tables.sql.aggregate_calls import has_aggregate
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.logic import conjuncts, in_order
from discreet.tables.sql.expressions.term import Term, tidy, total_column
from discreet.tables.sql.question.context import ReadingContext, fold, nearest, short_sql
from discreet.tables.sql.relations.joins import Relation, attach, check_units
from discreet.tables.sql.relations.row_owner import OWN, owner_labels, rows_of
from discreet.tables.sql.relations.scopes import (
    TWICE,
    FromItem,
    JoinSide,
    RowScope,
    inner_names,
    unit_column,
)
from discreet.tables.sql.relations.semi_joins import attach_semi_join, semi_join
from discreet.tables.sql.relations.unions import plain_query, retitled, union
from discreet.tables.sql.relations.unit_subqueries import Named, grouped

__all__ = ["With", "check_clauses", "from_clause", "where_clause", "with_clause"]

_CLAUSES = {
    "qualify": "window", "sample": "sample", "into": "into", "laterals": "lateral",
    "pivots": "pivot",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class With:
    """The subqueries named by WITH that a place in the question can see."""

    parts: Mapping[str, tuple[exp.Query, "With"]] = field(default_factory=dict)


def check_clauses(question: ReadingContext, select: exp.Select, *allowed: str) -> None:
    """Refuse clauses that a SELECT may not have here."""
    always = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
    for key, value in select.args.items():
        if not value or key in always or key in allowed:
            continue
        part = value[0] if isinstance(value, list) else value
        node = part if isinstance(part, exp.Expression) else select
        if key in _CLAUSES:
            raise question.refuse(_CLAUSES[key], node)
        if key in ("order", "limit", "offset"):
            word = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}[key]
            raise question.refuse("inner_order", node, word=word)
        word = key.strip("_").upper().removesuffix("S")
        raise question.refuse_at("clause", *question.positions.word(word), word=word)


def with_clause(question: ReadingContext, select: exp.Query, outer: With) -> With:
    """Read WITH; its parts are translated wherever they are used, and once to be checked."""
    clause = select.args.get("with_")
    if clause is None:
        return outer
    if clause.args.get("recursive"):
        raise question.refuse("recursive", clause)
    question.arguments(clause, "expressions")
    known = outer
    for part in clause.expressions:
        question.arguments(part, "this", "alias", "materialized")
        title = part.args["alias"]
        if title.args.get("columns"):
            raise question.refuse("column_list", title)
        wanted = fold(title.name)
        if wanted in question.tables:
            raise question.refuse("shadow", title, word=title.name)
        if wanted in known.parts:
            raise question.refuse("duplicate", title, word=title.name)
        inner = _query(question, part.this)
        tables, uses = set(question.read), question.uses
        _derived(question, inner, known, alias="s0", title=title.name)
        # A part that is never used is checked, but not read.
        question.read, question.uses = tables, uses
        known = With(parts={**known.parts, wanted: (inner, known)})
    return known


def _query(question: ReadingContext, node: exp.Expression) -> exp.Query:
    while isinstance(node, exp.Subquery) and not node.args.get("alias"):
        question.arguments(node, "this")
        node = node.this
    node = plain_query(question, node)
    if isinstance(node, exp.SetOperation) and not isinstance(node, exp.Union):
        raise question.refuse("set_operation", node, word=type(node).__name__.upper())
    if isinstance(node, exp.Table):
        raise question.refuse("clause", node, word="A join in parentheses")
    if not isinstance(node, exp.Select | exp.Union):
        raise question.refuse("table_function", node, word=short_sql(node))
    return node


def from_clause(question: ReadingContext, select: exp.Select, known: With) -> Relation:
    """Translate FROM and its joins."""
    clause = select.args.get("from_")
    if clause is None:
        raise question.refuse("no_table", select)
    start, joins = _flat(clause.this, select.args.get("joins") or [])
    relation = _joined(question, start, joins, known)
    where = select.args.get("where")
    parts = [] if where is None else conjuncts(where.this)
    check_units(question, relation, parts)

    def inside(inner: exp.Select) -> RowScope:
        tables, uses = set(question.read), question.uses
        scope = from_clause(question, inner, with_clause(question, inner, known)).scope
        question.read, question.uses = tables, uses  # read once more, when it is joined
        return scope

    def derive(inner: exp.Select, alias: str, title: str) -> JoinSide:
        return _derived(question, inner, known, alias=alias, title=title)

    for asked in (semi_join(part) for part in parts):
        if asked is not None:
            attach_semi_join(question, relation, asked, inside=inside, derive=derive)
    return relation


def _flat(
    node: exp.Expression, joins: list[exp.Expression]
) -> tuple[exp.Expression, list[exp.Expression]]:
    """Return the first table and all joins, without parentheses that change nothing."""
    joins = [*(node.args.get("joins") or []), *joins]
    while isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
        if node.args.get("alias") is not None:
            break
        node = node.this
        joins = [*(node.args.get("joins") or []), *joins]
    return node, joins


def _joined(
    question: ReadingContext, start: exp.Expression, joins: list[exp.Expression], known: With
) -> Relation:
    """Translate tables and subqueries, joined from left to right."""
    relation = Relation.of(question, _side(question, start, known, alias="s0"))
    for join in joins:
        alias = relation.next_alias
        inner, others = _flat(join.this, [])
        if others:  # joined among themselves before
            nested = _joined(question, inner, others, known)
            check_units(question, nested, [])
            side = nested.nested(alias)
        else:
            side = _side(question, inner, known, alias=alias)
        attach(question, relation, join, side)
    return relation


def where_clause(
    question: ReadingContext, select: exp.Select, relation: Relation
) -> tuple[tuple[Scalar, ...], list[exp.Expression]]:
    """Return the conditions of WHERE, and its conjuncts as they were written."""
    clause = select.args.get("where")
    if clause is None:
        return (), []
    scope = relation.scope.at("in WHERE")
    parts = [part for part in conjuncts(clause.this) if semi_join(part) is None]
    terms = [need(scope, part, "boolean", word="WHERE").node for part in parts]
    return in_order([*terms, *relation.conditions]), parts


def _side(question: ReadingContext, node: exp.Expression, known: With, *, alias: str) -> JoinSide:
    question.count_source(node)
    if isinstance(node, exp.Lateral):
        raise question.refuse("lateral", node)
    if node.args.get("pivots"):
        raise question.refuse("pivot", node.args["pivots"][0])
    if node.args.get("sample"):
        raise question.refuse("sample", node.args["sample"])
    if not isinstance(node, exp.Table | exp.Subquery):
        word = "VALUES" if isinstance(node, exp.Values) else short_sql(node).split("(")[0]
        raise question.refuse("table_function", node, word=word)
    title = _title(question, node)
    if isinstance(node, exp.Subquery):
        question.arguments(node, "this", "alias", "joins")
        return _derived(question, _query(question, node.this), known, alias=alias, title=title)
    if not isinstance(node.this, exp.Identifier):
        word = short_sql(node.this).split("(")[0]
        raise question.refuse("table_function", node.this, word=word)
    question.arguments(node, "this", "alias", "joins", "db", "catalog")
    wanted = fold(node.name)
    is_qualified = node.args.get("db") is not None or node.args.get("catalog") is not None
    if is_qualified and wanted not in question.tables:
        raise question.refuse("qualified", node, word=short_sql(node))
    if wanted in known.parts and not is_qualified:
        inner_select, before = known.parts[wanted]
        return _derived(question, inner_select, before, alias=alias, title=title or node.name)
    table = question.tables.get(wanted)
    if table is None:
        if "." in node.name or "/" in node.name:
            raise question.refuse("table_function", node, word=node.name)
        names = [t.name for t in question.catalog.tables] + list(known.parts)
        near = nearest(node.name, names, what="tables")
        raise question.refuse("unknown_table", node, word=node.name, near=near)
    return _base(question, table, node, alias=alias, title=title or table.name)


def _title(question: ReadingContext, node: exp.Expression) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if alias.args.get("columns"):
        raise question.refuse("column_list", alias)
    title = str(alias.name)
    own = fold(node.name) if isinstance(node, exp.Table) else ""
    if fold(title) in question.tables and fold(title) != own:
        raise question.refuse("shadow", alias, word=title)
    return title


def _base(
    question: ReadingContext, table: Table, node: exp.Expression, *, alias: str, title: str
) -> JoinSide:
    question.count_table(node)
    make = None if table.is_public else rows_of(question, table, node)
    columns = {fold(c.name): (c.name, _term(question, table, c), c.type) for c in table.columns}
    item = FromItem(alias=alias, title=title, columns=columns, is_private=not table.is_public)

    def rows() -> Select:
        needed = tuple(
            (item.names[lower], term.node)
            for lower, (_, term, _) in columns.items()
            if lower in item.used and term is not None
        )
        return Select(Scan(table.name), needed) if make is None else make(needed)

    has_unit = not table.is_public and question.catalog.unit.kind != "record"
    return JoinSide(alias=alias, items=[item], rows=rows, has_unit=has_unit)


def _term(question: ReadingContext, table: Table, column: Column) -> Term | None:
    term = total_column(ColumnRef(column.name), column.type)
    if term is None:
        return None
    interval = term.interval
    if column.bounds is not None and term.kind == "number":
        interval = (Fraction(column.bounds[0]), Fraction(column.bounds[1]))
    values = column.keys if column.keys is not None else term.values
    owner = owner_labels(question, table, column)
    is_unit = OWN in owner and question.catalog.unit.period is None
    return replace(
        term, interval=interval, values=values, is_unit=is_unit, owner=owner, total=column.total
    )


def _derived(
    question: ReadingContext, query: exp.Query, known: With, *, alias: str, title: str
) -> JoinSide:
    """Translate a subquery or a part of WITH."""
    if isinstance(query, exp.Union):
        return _union(question, query, known, alias=alias, title=title)
    assert isinstance(query, exp.Select)
    select = query
    check_clauses(question, select)
    known = with_clause(question, select, known)
    relation = from_clause(question, select, known)
    where, _ = where_clause(question, select, relation)
    is_grouped = (
        select.args.get("group") is not None
        or select.args.get("having") is not None
        or select.args.get("distinct") is not None
        or any(has_aggregate(item) for item in select.expressions)
    )
    items = _items(question, select, relation.scope)
    columns, rows = (
        grouped(question, select, items, relation, where)
        if is_grouped
        else _plain(question, items, relation, where)
    )
    item = FromItem(alias=alias, title=title, columns=columns, is_private=relation.is_private)
    has_unit = relation.scope.unit is not None
    return JoinSide(alias=alias, items=[item], rows=lambda: rows, has_unit=has_unit)


def _union(
    question: ReadingContext, query: exp.Union, known: With, *, alias: str, title: str
) -> JoinSide:
    """Translate UNION ALL."""
    for word in ("order", "limit", "offset"):
        if query.args.get(word) is not None:
            told = "ORDER BY" if word == "order" else word.upper()
            raise question.refuse("inner_order", query.args[word], word=told)
    known = with_clause(question, query, known)
    before, sides = question.read, []
    parts = _query(question, query.this), retitled(_query(question, query.expression))
    for part in parts:
        question.read = set()
        sides.append(_derived(question, part, known, alias="s0", title=""))
        if question.catalog.unit.kind == "record" and question.read & before:
            # A row that is there twice would count twice.
            twice = "UNION ALL of a table with itself"
            raise question.refuse("unit_is_row", query.expression, what=twice)
        before = before | question.read
    question.read = before
    return union(question, query, sides, alias=alias, title=title)


def _plain(
    question: ReadingContext,
    items: list[tuple[str, exp.Expression]],
    relation: Relation,
    where: tuple[Scalar, ...],
) -> tuple[Named, Select]:
    scope = relation.scope.at("in a subquery without GROUP BY")
    columns: Named = {}
    inner = inner_names([title for title, _ in items])
    parts = [*unit_column(scope.unit)]
    count = Counter(fold(title) for title, _ in items)
    for title, node in items:
        is_twice = count[fold(title)] > 1 and bool(node.meta.get("from_star"))
        known = columns.get(fold(title))
        if known is not None and not (is_twice and known[2] == TWICE):
            raise question.refuse("duplicate", node, word=title)
        unusable = TWICE if is_twice else _unusable(scope, node)
        if unusable is not None:
            columns[fold(title)] = (title, None, unusable)
            continue
        term = scope.term(node)
        columns[fold(title)] = (title, term, term.type)
        parts.append((inner[fold(title)], tidy(term)))
    return columns, relation.select(tuple(parts), where)


def _unusable(scope: RowScope, node: exp.Expression) -> str | None:
    """Return the type of a column that came with a star and cannot be used."""
    if not isinstance(node, exp.Column) or not node.meta.get("from_star"):
        return None
    source, wanted = scope.find(node)
    _, term, type_ = source.columns[wanted]
    return type_ if term is None else None


def _items(
    question: ReadingContext, select: exp.Select, scope: RowScope
) -> list[tuple[str, exp.Expression]]:
    """Return the names and expressions of a subquery's SELECT list, stars written out."""
    items: list[tuple[str, exp.Expression]] = []
    for item in select.expressions:
        is_star = isinstance(item, exp.Star)
        if is_star or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            question.arguments(item if is_star else item.this)
            items += _star(question, item, scope)
            continue
        inner = item.this if isinstance(item, exp.Alias) else item
        is_named = isinstance(item, exp.Alias | exp.Column)
        items.append((item.alias_or_name if is_named else short_sql(inner).lower(), inner))
    return items


def _star(
    question: ReadingContext, item: exp.Expression, scope: RowScope
) -> list[tuple[str, exp.Expression]]:
    table = fold(item.table) if isinstance(item, exp.Column) else ""
    sources = [s for s in scope.sources if not table or fold(s.title) == table]
    if not sources:
        near = nearest(table, [s.title for s in scope.sources], what="tables of this query")
        raise question.refuse("unknown_table", item, word=table, near=near)
    found: list[tuple[str, exp.Expression]] = []
    for source in sources:
        for lower, (declared, _, _) in source.columns.items():
            if not table and lower in source.merged:
                continue
            column = exp.column(declared, table=source.title or None, quoted=True)
            column.meta.update({"start": question.positions.offset(item), "from_star": True})
            if not source.title or (not table and lower in source.shared):
                column.set("table", None)
            found.append((declared, column))
    return found
