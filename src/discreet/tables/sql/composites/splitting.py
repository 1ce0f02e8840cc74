"""Split a question into private parts, and what is asked of their released answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from sqlglot import exp

from discreet.errors import Refused
from discreet.tables.model.catalog import Table
from discreet.tables.model.composite import PART, ROW, Composite, released_name
from discreet.tables.model.filling import ReleasedLookup
from discreet.tables.model.query import Query
from discreet.tables.sql.aggregate_calls import has_aggregate
from discreet.tables.sql.composites.grouping_sets import expanded_sets, has_sets, titled
from discreet.tables.sql.composites.lifting import RELEASED, lifted, needs_lifting, outside_windows
from discreet.tables.sql.composites.lookups import (
    inner_subqueries,
    row_subqueries,
    type_of_column,
    used_alone,
)
from discreet.tables.sql.composites.modes import over_modes
from discreet.tables.sql.expressions.released import released_value
from discreet.tables.sql.expressions.translate import check_known
from discreet.tables.sql.question.context import DIALECT, ReadingContext, fold, nearest
from discreet.tables.sql.relations.row_owner import owner_names

__all__ = ["reads_public_alone", "split"]

_MOST_PARTS = 64
_COMPUTED = (exp.Func, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)
_WHOLE = (exp.AggFunc, exp.Window, exp.Query, exp.Connector)  # which TRY may not hold
Known = Mapping[str, tuple[exp.Expression, Any]]
"""What WITH names: each query, and the names that it sees itself."""
Read = Callable[[exp.Select], Query]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A query over released tables: its columns, and those that are a part's own, by part.

    ``origins`` of None: its rows are not rows of parts. Otherwise PART and ROW stand last.
    """

    tree: exp.Expression
    columns: list[str]
    origins: dict[int, dict[str, str]] | None = None


def reads_public_alone(question: ReadingContext, tree: exp.Expression) -> bool:
    """Whether all tables of a question are public, so that nothing private is asked."""
    named = {fold(part.alias) for part in tree.find_all(exp.CTE)}
    read = [table for table in tree.find_all(exp.Table) if fold(table.name) not in named]
    found = [question.tables.get(fold(table.name)) for table in read]
    return bool(found) and all(table is not None and table.is_public for table in found)


def split(question: ReadingContext, tree: exp.Expression, read: Read) -> Composite:
    """Return the parts of a question that a plain reading refused; ``read`` reads one part."""
    splitter = _Splitter(question, read)
    made = splitter.made(tree, {})
    check_known(made.tree, question)
    return Composite(
        parts=tuple(splitter.parts),
        outer=_tried(made.tree).sql(DIALECT, comments=False),
        public=tuple(sorted(splitter.public)),
        lookups=tuple(splitter.lookups),
        is_traced=made.origins is not None,
        origins=made.origins or {},
    )


def _tried(tree: exp.Expression) -> exp.Expression:
    """Return the same with NULL where something cannot be computed: by then it is paid for.

    What is computed of aggregates and windows is left alone, since these are doubles, of which
    nothing fails.
    """

    def cast(node: exp.Expression) -> exp.Expression:
        return exp.TryCast(**node.args) if type(node) is exp.Cast else node

    def safe(node: exp.Expression) -> exp.Expression:
        can_fail = isinstance(node, _COMPUTED) and not isinstance(node.parent, _WHOLE)
        if can_fail and not any(isinstance(part, _WHOLE) for part in node.walk()):
            return exp.Anonymous(this="TRY", expressions=[node])
        return node

    return tree.transform(cast).transform(safe)


def _named(select: exp.Expression, known: Known) -> Known:
    """Return the parts of WITH that are visible inside a query."""
    clause = select.args.get("with_")
    for part in clause.expressions if clause is not None else []:
        known = {**known, fold(part.alias): (part.this, known)}
    return known


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Subquery) and not node.args.get("joins"):
        node = node.this
    return node


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _sources(select: exp.Expression) -> list[exp.Expression]:
    """Return what FROM and joins read: tables and subqueries."""
    clause = select.args.get("from_")
    found = [] if clause is None else [clause.this]
    found += [join.this for join in select.args.get("joins") or []]
    inner = [one.this for item in found for one in item.args.get("joins") or []]
    return [*found, *inner]


@final
class _Splitter:
    def __init__(self, question: ReadingContext, read: Read) -> None:
        self.question, self.read = question, read
        self.parts: list[Query] = []
        self.public: set[str] = set()
        self.lookups: list[ReleasedLookup] = []

    def made(self, node: exp.Expression, known: Known) -> _Made:
        """Return a query over released tables for one over protected ones."""
        node = _bare(node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, _named(node, known))
        if not isinstance(node, exp.Select):
            raise self.question.refuse("table_function", node, word=type(node).__name__.upper())
        known = _named(node, known)
        if self._reads_protected(node, known):
            try:
                return self._part(self._own(node, known))
            except Refused:
                if not self._reads_rows(node, known):
                    return self._over_released(node, known)
                made = self._with_lookups(node, known)
                if made is not None:
                    return made
                modes = over_modes(self.question, node)
                if modes is not None or needs_lifting(node):
                    return self._lifted(known, *(modes or lifted(self.question, node)))
                if not has_sets(node):
                    raise
                return self.made(expanded_sets(self.question, node), known)
        return self._over_released(node, known)

    def _own(self, select: exp.Select, known: Known) -> exp.Select:
        """Return a query together with the parts of WITH that it needs."""
        own = select.copy()
        used = self._used(select, known)
        clause = [
            exp.CTE(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
            for name, query in used.items()
        ]
        own.set("with_", exp.With(expressions=clause) if clause else None)
        return own

    def _with_lookups(self, select: exp.Select, known: Known) -> _Made | None:
        """Return a query whose rows are compared with what is released first, None if it is none.

        Only what is released of itself can be: a subquery that names columns of the rows around it
        is left as it is, and so is whatever a plain reading understands.
        """
        for is_all in (False, True):
            before, own = self._state(), self._own(select, known)
            found = [self._looked_up(one, known, is_all) for one in row_subqueries(own)]
            try:
                if any(found):
                    return self._part(used_alone(own))
            except Refused:
                self._go_back(before)  # nothing is paid for what leads nowhere
        return None

    def _state(self) -> tuple[int, int, set[str]]:
        return len(self.parts), len(self.lookups), set(self.public)

    def _go_back(self, state: tuple[int, int, set[str]]) -> None:
        del self.parts[state[0] :], self.lookups[state[1] :]
        self.public = state[2]

    def _looked_up(self, node: exp.Expression, known: Known, is_all: bool) -> bool:
        """Look up a subquery or, where it is to stay, those inside it; say whether any was.

        Public lists after IN stay at first: where a join can look rows up, it is faster.
        """
        query = node.args["query"] if isinstance(node, exp.In) else node
        is_tried = is_all or query is node or self._reads_protected(query, known)
        if is_tried and self._look_up(node, query, known):
            return True
        inner = [self._looked_up(one, known, is_all) for one in inner_subqueries(_bare(query))]
        return any(inner)

    def _look_up(self, node: exp.Expression, query: exp.Expression, known: Known) -> bool:
        """Put a released value, or list of values, in the place of a subquery, if it can be."""
        before, is_list = self._state(), query is not node
        sql = ""
        try:
            tree = _plain(self.made(query, known))
            check_known(tree, self.question)
            sql = _tried(tree).sql(DIALECT, comments=False)
        except Refused:
            pass
        public = {t.name: t for t in self.question.catalog.tables if t.name in self.public}
        type_ = type_of_column(sql, self.parts, public) if sql else None
        if type_ is None:
            self._go_back(before)
            return False
        lookup = ReleasedLookup(sql=sql, type=type_, is_list=is_list)
        if lookup not in self.lookups:
            self.lookups.append(lookup)
        value = released_value(self.lookups.index(lookup), type_, is_list=is_list)
        value.meta["start"] = self.question.positions.offset(node)
        made = exp.In(this=node.this.copy(), expressions=[value]) if is_list else value
        node.replace(made)
        return True

    def _part(self, own: exp.Select) -> _Made:
        query = self.read(own)
        if query not in self.parts:
            self.parts.append(query)
        if len(self.parts) > _MOST_PARTS:
            raise self.question.refuse("too_complex", own)
        place = self.parts.index(query)
        shown = [exp.column(name, quoted=True) for name in query.names]
        hidden = [exp.alias_(exp.Literal.number(place), PART), exp.column(ROW)]
        tree = exp.Select(expressions=[*shown, *hidden]).from_(released_name(place))
        return _Made(
            tree=tree, columns=list(query.names), origins={place: {n: n for n in query.names}}
        )

    def _used(self, node: exp.Expression, known: Known) -> dict[str, exp.Expression]:
        """Return the parts of WITH that a query needs, in an order in which each can be read."""
        found: dict[str, exp.Expression] = {}
        for table in node.find_all(exp.Table):
            name = fold(table.name)
            if name in known and not table.args.get("db"):
                query, before = known[name]
                found |= {**self._used(query, before), name: query}
        return found

    def _set_operation(self, node: exp.SetOperation, known: Known) -> _Made:
        left, right = self.made(node.this, known), self.made(node.expression, known)
        is_all = isinstance(node, exp.Union) and not node.args.get("distinct")
        is_traced = is_all and left.origins is not None and right.origins is not None
        if len(left.columns) != len(right.columns) or node.args.get("by_name"):
            is_traced = False
        whole = node.copy()
        whole.set("with_", None)
        for side, one in (("this", left), ("expression", right)):
            whole.set(side, one.tree if is_traced else _plain(one))
        if not is_traced:
            return _Made(tree=whole, columns=left.columns)
        origins = {part: dict(names) for part, names in (left.origins or {}).items()}
        moved = dict(zip(right.columns, left.columns, strict=True))
        for part, names in (right.origins or {}).items():
            renamed = {moved[shown]: own for shown, own in names.items()}
            before = origins.get(part, renamed)
            origins[part] = {n: own for n, own in renamed.items() if before.get(n) == own}
        return _Made(tree=whole, columns=left.columns, origins=origins)

    def _lifted(self, known: Known, core: exp.Select, outer: exp.Select) -> _Made:
        core.set("with_", None)
        inner = self.made(core, known)
        outer.set("from_", exp.From(this=exp.Subquery(this=inner.tree, alias=_alias(RELEASED))))
        self._inside(outer, known)
        return _traced(outer, {RELEASED: inner})

    def _over_released(self, select: exp.Select, known: Known) -> _Made:
        outer = select.copy()
        outer.set("with_", None)
        for item in outer.expressions:
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.replace(exp.alias_(item.copy(), titled(item), quoted=True))
        items: dict[str, _Made] = {}
        for source in _sources(outer):
            self._source(source, known, items)
        self._inside(outer, known)
        return _traced(outer, items)

    def _source(self, node: exp.Expression, known: Known, items: dict[str, _Made]) -> None:
        """Put a released or public table in the place of one of FROM."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            return self._source(node.this, known, items)  # in parentheses
        joins = node.args.get("joins")
        if isinstance(node, exp.Subquery):
            title, inner = node.alias, self.made(node.this, known)
        elif not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.question.refuse("table_function", node, word=type(node).__name__.upper())
        elif fold(node.name) in known and not node.args.get("db"):
            query, before = known[fold(node.name)]
            title, inner = node.alias or node.name, self.made(query, before)
        else:
            table = self._table(node)
            if not table.is_public:
                raise self.question.refuse("unit_missing", node, word=self._unit, clause="FROM")
            self.public.add(table.name)
            node.set("this", exp.to_identifier(table.name, quoted=True))
            node.set("db", None)
            node.set("catalog", None)
            columns = [column.name for column in table.columns]
            items[node.alias or table.name] = _Made(tree=exp.Select(), columns=columns)
            return None
        alias = title or f"{RELEASED}_{len(items)}"
        items[alias] = inner
        made = exp.Subquery(this=inner.tree, alias=_alias(alias))
        if joins:
            made.set("joins", joins)
        node.replace(made)
        return None

    def _inside(self, outer: exp.Select, known: Known) -> None:
        """Put released tables in the place of those of subqueries inside expressions."""
        for key, value in list(outer.args.items()):
            if key in ("from_", "with_", "laterals"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, exp.Expression):
                    self._expression(part.args.get("on") if key == "joins" else part, known)

    def _expression(self, node: object, known: Known) -> None:
        if not isinstance(node, exp.Expression):
            return
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            inner = _plain(self.made(node, known))
            node.replace(exp.Subquery(this=inner) if isinstance(node, exp.Subquery) else inner)
            return
        for child in list(node.iter_expressions()):
            self._expression(child, known)

    @property
    def _unit(self) -> str:
        return self.question.catalog.unit.name or "unit"

    def _table(self, node: exp.Table) -> Table:
        table = self.question.tables.get(fold(node.name))
        if table is None:
            near = nearest(node.name, [t.name for t in self.question.catalog.tables], what="tables")
            raise self.question.refuse("unknown_table", node, word=node.name, near=near)
        return table

    def _reads_protected(self, node: exp.Expression, known: Known) -> bool:
        for table in node.find_all(exp.Table):
            name = fold(table.name)
            if name in known and not table.args.get("db"):
                query, before = known[name]
                if self._reads_protected(query, before):
                    return True
            elif name in self.question.tables and not self.question.tables[name].is_public:
                return True
        return False

    def _reads_rows(self, node: exp.Expression, known: Known) -> bool:
        """Whether a query reads rows of people, and not what was released of them."""
        node = _bare(node)
        if isinstance(node, exp.Table):
            if fold(node.name) in known and not node.args.get("db"):
                query, before = known[fold(node.name)]
                return self._is_of_rows(query, before)
            return self._reads_protected(node, known)
        if isinstance(node, exp.SetOperation):
            return any(self._reads_rows(n, known) for n in (node.this, node.expression))
        return any(
            self._reads_rows(one, known)
            if isinstance(_bare(one), exp.Table)
            else self._is_of_rows(one, known)
            for one in _sources(node)
        )

    def _is_of_rows(self, node: exp.Expression, known: Known) -> bool:
        """Whether rows of a query are each of one unit."""
        node = _bare(node)
        if isinstance(node, exp.SetOperation):
            return any(self._is_of_rows(n, known) for n in (node.this, node.expression))
        known = _named(node, known) if isinstance(node, exp.Query) else known
        if not self._reads_rows(node, known):
            return False
        group, distinct = node.args.get("group"), node.args.get("distinct")
        if group is None and distinct is None:
            return not any(has_aggregate(item) for item in node.expressions)
        keys = node.expressions if group is None else group.expressions
        owners = owner_names(self.question)
        return any(fold(one.name) in owners for k in keys for one in k.find_all(exp.Column))


def _plain(made: _Made) -> exp.Expression:
    """Return a query without the columns that say where its rows are from."""
    if made.origins is None:
        return made.tree
    shown = [exp.column(name, quoted=True) for name in made.columns]
    whole = exp.Select(expressions=shown)
    whole.set("from_", exp.From(this=exp.Subquery(this=made.tree, alias=_alias(RELEASED))))
    return whole


def _traced(outer: exp.Select, items: dict[str, _Made]) -> _Made:
    """Write out stars, and carry along where rows are from, where they are rows of one part."""
    traced = [alias for alias, one in items.items() if one.origins is not None]
    if traced:
        outer.set("expressions", _starless(outer, items))
    columns = [titled(item) for item in outer.expressions]
    over_groups = outer.args.get("group") or outer.args.get("distinct")
    is_plain = not over_groups and not any(
        has_aggregate(part) for item in outer.expressions for part in outside_windows(item)
    )
    if len(traced) != 1 or not is_plain:
        return _Made(tree=outer, columns=columns)
    alias = traced[0]
    inner = items[alias]
    hidden = [exp.column(name, table=alias, quoted=True) for name in (PART, ROW)]
    shown = dict(zip(columns, (item.unalias() for item in outer.expressions), strict=True))
    outer.set("expressions", [*outer.expressions, *hidden])
    origins = {
        part: {
            title: names[node.name]
            for title, node in shown.items()
            if isinstance(node, exp.Column)
            and fold(node.table or alias) == fold(alias)
            and node.name in names
        }
        for part, names in (inner.origins or {}).items()
    }
    return _Made(tree=outer, columns=columns, origins=origins)


def _starless(outer: exp.Select, items: dict[str, _Made]) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for item in outer.expressions:
        is_star = isinstance(item, exp.Star)
        if not is_star and not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            found.append(item)
            continue
        wanted = "" if is_star else fold(item.table)
        for alias, one in items.items():
            if not wanted or fold(alias) == wanted:
                found += [exp.column(n, table=alias, quoted=True) for n in one.columns]
    return found
