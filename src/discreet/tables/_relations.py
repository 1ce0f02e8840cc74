"""FROM: tables, subqueries, WITH and joins, each row still belonging to one unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

from sqlglot import exp

from discreet.tables import _unit_rows
from discreet.tables._aggregates import has_aggregate
from discreet.tables._operators import conjuncts, need
from discreet.tables._question import Question, nearest, shown
from discreet.tables._scopes import RowScope, Source, inner_names, tidied
from discreet.tables._terms import Term, name, total_column
from discreet.tables._units import is_unit_column, unit_of
from discreet.tables.metadata import Column, Table

__all__ = ["Relation", "With", "check_clauses", "from_clause", "where_clause", "with_clause"]

_CLAUSES = {
    "qualify": "window", "sample": "sample", "into": "into", "laterals": "lateral",
    "pivots": "pivot",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class With:
    """The subqueries named by WITH that a place in the question can see."""

    parts: Mapping[str, tuple[exp.Select, "With"]] = field(default_factory=dict)


@final
@dataclass(slots=True, kw_only=True)
class Relation:
    """The rows of FROM: its sources, and how they are joined."""

    scope: RowScope
    joins: list[tuple[str, Source, str | None]] = field(default_factory=list)

    def sql(self) -> str:
        """Return what follows FROM, once all needed columns are known."""
        parts = [self.scope.sources[0].sql()]
        for word, source, condition in self.joins:
            parts.append(f"{word} {source.sql()}" + (f" ON {condition}" if condition else ""))
        return " ".join(parts)

    @property
    def is_private(self) -> bool:
        """Whether any source is protected."""
        return any(source.is_private for source in self.scope.sources)


def check_clauses(question: Question, select: exp.Select, *allowed: str) -> None:
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
        raise question.refuse_at("clause", *question.places.word(word), word=word)


def with_clause(question: Question, select: exp.Select, outer: With) -> With:
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
        wanted = title.name.lower()
        if wanted in question.tables:
            raise question.refuse("shadow", title, word=title.name)
        if wanted in known.parts:
            raise question.refuse("duplicate", title, word=title.name)
        inner = _select(question, part.this)
        _derived(question, inner, known, alias="s0", title=title.name)
        known = With(parts={**known.parts, wanted: (inner, known)})
    return known


def _select(question: Question, node: exp.Expression) -> exp.Select:
    while isinstance(node, exp.Subquery) and not node.args.get("alias"):
        question.arguments(node, "this")
        node = node.this
    if isinstance(node, exp.SetOperation):
        raise question.refuse("set_operation", node, word=type(node).__name__.upper())
    if not isinstance(node, exp.Select):
        raise question.refuse("table_function", node, word=shown(node))
    return node


def from_clause(question: Question, select: exp.Select, known: With) -> Relation:
    """Translate FROM and its joins."""
    clause = select.args.get("from_")
    if clause is None:
        raise question.refuse("no_table", select)
    first = _source(question, clause.this, known, alias="s0")
    relation = Relation(scope=RowScope(question, [first], where="in a join condition"))
    for join in [*_inner_joins(clause.this), *(select.args.get("joins") or [])]:
        _join(question, relation, join, known)
    return relation


def _inner_joins(node: exp.Expression) -> list[exp.Expression]:
    return list(node.args.get("joins") or [])


def where_clause(
    question: Question, select: exp.Select, relation: Relation
) -> tuple[str, list[exp.Expression]]:
    """Return WHERE as SQL ('' if there is none), and its conjuncts."""
    clause = select.args.get("where")
    if clause is None:
        return "", []
    scope = relation.scope.at("in WHERE")
    parts = conjuncts(clause.this)
    terms = sorted({need(scope, part, "boolean", word="WHERE").sql for part in parts})
    return " WHERE " + " AND ".join(terms), parts


def _source(question: Question, node: exp.Expression, known: With, *, alias: str) -> Source:
    question.count_source(node)
    if isinstance(node, exp.Lateral):
        raise question.refuse("lateral", node)
    if node.args.get("pivots"):
        raise question.refuse("pivot", node.args["pivots"][0])
    if node.args.get("sample"):
        raise question.refuse("sample", node.args["sample"])
    if not isinstance(node, exp.Table | exp.Subquery):
        word = "VALUES" if isinstance(node, exp.Values) else shown(node).split("(")[0]
        raise question.refuse("table_function", node, word=word)
    title = _title(question, node)
    if isinstance(node, exp.Subquery):
        question.arguments(node, "this", "alias", "joins")
        return _derived(question, _select(question, node.this), known, alias=alias, title=title)
    if not isinstance(node.this, exp.Identifier):
        word = shown(node.this).split("(")[0]
        raise question.refuse("table_function", node.this, word=word)
    question.arguments(node, "this", "alias", "joins", "db", "catalog")
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        raise question.refuse("qualified", node, word=shown(node))
    wanted = node.name.lower()
    if wanted in known.parts:
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


def _title(question: Question, node: exp.Expression) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if alias.args.get("columns"):
        raise question.refuse("column_list", alias)
    title = str(alias.name)
    own = node.name.lower() if isinstance(node, exp.Table) else ""
    if title.lower() in question.tables and title.lower() != own:
        raise question.refuse("shadow", alias, word=title)
    return title


def _base(
    question: Question, table: Table, node: exp.Expression, *, alias: str, title: str
) -> Source:
    unit, conditions = (None, []) if table.is_public else unit_of(question, table, node)
    if not table.is_public:
        question.read.add(table.name)
    columns = {c.name.lower(): (c.name, _term(question, c), c.type) for c in table.columns}
    inner = inner_names([c.name for c in table.columns])

    def render(used: set[str]) -> str:
        shown_columns = [] if unit is None else [f"{unit} AS unit"]
        for lower, (_, term, _) in columns.items():
            if lower in used and term is not None:
                shown_columns.append(f"{term.sql} AS {name(inner[lower])}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(shown_columns) or '1 AS one'} FROM {name(table.name)}{where}"

    return Source(
        alias=alias,
        title=title,
        columns=columns,
        is_private=not table.is_public,
        has_unit=unit is not None,
        render=render,
    )


def _term(question: Question, column: Column) -> Term | None:
    term = total_column(name(column.name), column.type)
    if term is None:
        return None
    interval = term.interval
    if column.bounds is not None and term.kind == "number":
        interval = (Fraction(column.bounds[0]), Fraction(column.bounds[1]))
    values = column.keys if column.keys is not None else term.values
    return replace(term, interval=interval, values=values, is_unit=is_unit_column(question, column))


def _derived(
    question: Question, select: exp.Select, known: With, *, alias: str, title: str
) -> Source:
    """Translate a subquery or a part of WITH."""
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
    if is_grouped:
        columns, text = _unit_rows.grouped(
            question, select, items, relation.scope, is_private=relation.is_private,
            rows=lambda: f"FROM {relation.sql()}{where}",
        )  # fmt: skip
    else:
        columns, text = _plain(question, items, relation, where)
    has_unit = relation.scope.unit() is not None
    return Source(
        alias=alias,
        title=title,
        columns=columns,
        is_private=relation.is_private,
        has_unit=has_unit,
        render=lambda used: text,
    )


def _plain(
    question: Question,
    items: list[tuple[str, exp.Expression]],
    relation: Relation,
    where: str,
) -> tuple[dict[str, tuple[str, Term | None, str]], str]:
    scope = relation.scope.at("in a subquery without GROUP BY")
    columns: dict[str, tuple[str, Term | None, str]] = {}
    inner = inner_names([title for title, _ in items])
    unit = scope.unit()
    parts = [] if unit is None else [f"{unit} AS unit"]
    for title, node in items:
        if title.lower() in columns:
            raise question.refuse("duplicate", node, word=title)
        unusable = _unusable(scope, node)
        if unusable is not None:
            columns[title.lower()] = (title, None, unusable)
            continue
        term = scope.term(node)
        columns[title.lower()] = (title, term, term.type)
        parts.append(tidied(term, inner[title.lower()]))
    return columns, f"SELECT {', '.join(parts) or '1 AS one'} FROM {relation.sql()}{where}"


def _unusable(scope: RowScope, node: exp.Expression) -> str | None:
    """Return the type of a column that came with a star and cannot be used."""
    if not isinstance(node, exp.Column) or not node.meta.get("from_star"):
        return None
    source, wanted = scope.find(node)
    _, term, type_ = source.columns[wanted]
    return type_ if term is None else None


def _items(
    question: Question, select: exp.Select, scope: RowScope
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
        items.append((item.alias_or_name if is_named else shown(inner).lower(), inner))
    return items


def _star(
    question: Question, item: exp.Expression, scope: RowScope
) -> list[tuple[str, exp.Expression]]:
    table = item.table.lower() if isinstance(item, exp.Column) else ""
    sources = [s for s in scope.sources if not table or s.title.lower() == table]
    if not sources:
        near = nearest(table, [s.title for s in scope.sources], what="tables of this query")
        raise question.refuse("unknown_table", item, word=table, near=near)
    found: list[tuple[str, exp.Expression]] = []
    for source in sources:
        for lower, (declared, _, _) in source.columns.items():
            if not table and lower in source.merged:
                continue
            column = exp.column(declared, table=source.title or None, quoted=True)
            column.meta.update({**item.meta, "from_star": True})
            if not source.title:
                column.set("table", None)
            found.append((declared, column))
    return found


def _join(question: Question, relation: Relation, join: exp.Expression, known: With) -> None:
    question.arguments(join, "this", "on", "using", "side", "kind", "method")
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    method = str(join.args.get("method") or "").upper()
    if method or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        word = " ".join(part for part in (method, side, kind, "JOIN") if part)
        raise question.refuse("join_kind", join.this, word=word)
    sources = relation.scope.sources
    source = _source(question, join.this, known, alias=f"s{len(sources)}")
    if _inner_joins(join.this):
        raise question.refuse("clause", join.this, word="a join in parentheses")
    if source.title and source.title.lower() in {s.title.lower() for s in sources}:
        raise question.refuse("duplicate", join.this, word=source.title)
    was_private = relation.is_private
    if side == "LEFT" and source.is_private and not was_private:
        raise question.refuse("join_left", join.this)
    unit = relation.scope.unit()
    source.is_optional = side == "LEFT"
    sources.append(source)
    conditions = _conditions(question, relation, join, source)
    if was_private and source.is_private:
        _check_units(question, join, source, relation)
        # Whatever the condition says: no row may belong to two units.
        conditions.insert(0, f"{unit} = {source.alias}.unit")
    if not conditions and side == "LEFT":
        raise question.refuse("join_condition", join.this)
    word = "LEFT JOIN" if side == "LEFT" else "JOIN" if conditions else "CROSS JOIN"
    relation.joins.append((word, source, " AND ".join(conditions) or None))


def _conditions(
    question: Question, relation: Relation, join: exp.Expression, source: Source
) -> list[str]:
    conditions = []
    for column in join.args.get("using") or []:
        wanted = column.name.lower()
        before = RowScope(question, relation.scope.sources[:-1], where="in USING")
        here = RowScope(question, [source], where="in USING")
        plain = exp.Column(this=column.copy())
        left, right = before.term(plain), here.term(plain)
        if left.kind != right.kind:
            raise question.refuse("types", column, word="USING", left=left.kind, right=right.kind)
        conditions.append(f"({left.sql} = {right.sql})")
        source.merged.add(wanted)
    if join.args.get("on") is not None:
        parts = conjuncts(join.args["on"])
        conditions += [need(relation.scope, part, "boolean", word="ON").sql for part in parts]
    return sorted(set(conditions))


def _check_units(
    question: Question, join: exp.Expression, source: Source, relation: Relation
) -> None:
    """Demand that the condition names the unit on both sides, so that its meaning is plain."""
    unit = question.catalog.unit
    if unit.kind == "record":
        raise question.refuse("unit_is_row", join.this, what="a join of protected tables")
    wanted = (unit.name or "").lower()
    using = {column.name.lower() for column in join.args.get("using") or []}
    if wanted in using:
        return
    for part in conjuncts(join.args["on"]) if join.args.get("on") is not None else []:
        if isinstance(part, exp.EQ):
            sides = [part.this, part.expression]
            if all(isinstance(s, exp.Column) for s in sides):
                found = [relation.scope.find(s) for s in sides]
                is_unit = [_is_unit(question, s, column) for s, column in found]
                if all(is_unit) and sum(s is source for s, _ in found) == 1:
                    return
    raise question.refuse("join_unit", join.this, word=unit.name)


def _is_unit(question: Question, source: Source, column: str) -> bool:
    """Whether a column is the unit's, also where periods make it only a part of the unit."""
    _, term, _ = source.columns[column]
    unit = question.catalog.unit
    if term is None or not source.is_private:
        return False
    return term.is_unit or (unit.period is not None and column == (unit.name or "").lower())
