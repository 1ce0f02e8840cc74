"""What expressions can refer to: the columns of rows, or the keys and aggregates of groups."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

from sqlglot import ErrorLevel, exp

from discreet.errors import Refused
from discreet.tables.model.relation import UNIT, Columns, Rows
from discreet.tables.model.scalar import Call, ColumnRef, Scalar
from discreet.tables.sql.aggregate_calls import (
    expanded,
    has_aggregate,
    is_aggregate,
    is_supported,
)
from discreet.tables.sql.expressions.literals import joined, unify
from discreet.tables.sql.expressions.term import Term, tidy
from discreet.tables.sql.expressions.translate import translate
from discreet.tables.sql.question.context import DIALECT, ReadingContext, fold, nearest, short_sql

__all__ = [
    "TWICE",
    "FromItem",
    "GroupedScope",
    "JoinSide",
    "RowScope",
    "SharedColumn",
    "inner_names",
    "spelled",
    "unit_column",
]


TWICE: Final = "two columns"
"""In the place of a type: a star gave this name twice, and nobody says which is meant."""


@final
@dataclass(slots=True, kw_only=True, eq=False)
class FromItem:
    """One table or subquery in FROM. ``columns`` are by lower-case name, None if unusable.

    Columns are read from the part ``alias`` of a plan, under their ``names`` there. Where USING
    shows a column once, it is ``merged`` in all items but one, in which it may be ``shared``.
    """

    alias: str
    title: str
    columns: dict[str, tuple[str, Term | None, str]]  # name as declared, term, type
    is_private: bool
    names: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    is_optional: bool = False  # a join may put NULLs in the place of its rows
    merged: set[str] = field(default_factory=set)
    shared: dict[str, "SharedColumn"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = self.names or inner_names([name for name, _, _ in self.columns.values()])


@final
@dataclass(slots=True, kw_only=True)
class SharedColumn:
    """A column of USING in an outer join: the first of some items' values that is not NULL."""

    items: tuple[FromItem, ...]
    is_optional: bool = False


@final
@dataclass(slots=True, kw_only=True)
class JoinSide:
    """What a join adds: one part of a plan, and the items whose columns are read from it.

    ``rows`` makes its rows, once it is known which columns of the items are used.
    """

    alias: str
    items: list[FromItem]
    rows: Callable[[], Rows]
    has_unit: bool

    @property
    def is_private(self) -> bool:
        """Whether any of it is protected."""
        return any(item.is_private for item in self.items)

    @property
    def unit(self) -> ColumnRef | None:
        """Whose row it is, None where rows are units or all tables public."""
        return ColumnRef(UNIT, self.alias) if self.has_unit else None


def inner_names(columns: Sequence[str]) -> dict[str, str]:
    """Return the names that columns have inside the translation, where ``unit`` is taken.

    >>> inner_names(["unit", "age"])
    {'unit': 'unit_', 'age': 'age'}
    """
    taken = {fold(column) for column in columns} | {"unit"}
    names = {}
    for column in columns:
        inner = column
        while fold(inner) == "unit" or (inner != column and fold(inner) in taken):
            inner += "_"
        names[fold(column)] = inner
    return names


@final
class RowScope:
    """The columns of the rows of FROM."""

    def __init__(
        self,
        question: ReadingContext,
        sources: Sequence[FromItem],
        *,
        where: str,
        unit: Scalar | None = None,
    ) -> None:
        self.question, self.sources, self.where = question, list(sources), where
        self.unit = unit  # whose row it is, None where rows are units or all tables public

    def at(self, where: str) -> "RowScope":
        """Return the same scope for another clause, named in refusals."""
        return RowScope(self.question, self.sources, where=where, unit=self.unit)

    def term(self, node: exp.Expression, /) -> Term:
        """Translate an expression over rows."""
        self.question.check(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if is_aggregate(node):
            # An aggregate that does not exist at all is told so first.
            if isinstance(node, exp.AggFunc) and not is_supported(node):
                return translate(node, self)
            raise self.question.refuse("aggregate_place", node, where=self.where)
        return translate(node, self)

    def find(self, node: exp.Column) -> tuple[FromItem, str]:
        """Return the source and the lower-case name of a column."""
        if isinstance(node.this, exp.Star):
            raise self.question.refuse("star", node, word=short_sql(node))
        is_qualified = node.args.get("db") is not None or node.args.get("catalog") is not None
        if is_qualified and fold(node.table) not in self.question.tables:
            raise self.question.refuse("nested_type", node)
        wanted, table = fold(node.name), fold(node.table)
        found = [
            source
            for source in self.sources
            if wanted in source.columns
            and (fold(source.title) == table if table else wanted not in source.merged)
        ]
        if not found:
            raise self._unknown(node)
        if len(found) > 1:
            titles = found[0].title or "t"
            raise self.question.refuse("ambiguous", node, word=node.name, table=titles)
        return found[0], wanted

    def _unknown(self, node: exp.Column) -> Exception:
        titles = {fold(source.title) for source in self.sources}
        table = fold(node.table)
        if table and table not in titles:
            near = nearest(node.table, [s.title for s in self.sources], what="tables of this query")
            return self.question.refuse("unknown_table", node, word=node.table, near=near)
        names = [
            declared
            for source in self.sources
            if not table or fold(source.title) == table
            for declared, _, _ in source.columns.values()
        ]
        near = nearest(node.name, names, what="columns")
        is_compared = isinstance(node.parent, exp.Predicate) and node.parent.this is not node
        if is_compared and not table:
            near += f" A text stands in single quotes: '{node.name}'."
        return self.question.refuse("unknown_column", node, word=short_sql(node), near=near)

    def _column(self, node: exp.Column) -> Term:
        self.question.arguments(node, "this", "table", "db", "catalog")
        source, wanted = self.find(node)
        shared = None if node.table else source.shared.get(wanted)
        if shared is None:
            return self._of_item(node, source, wanted)
        terms = [self._of_item(node, item, wanted) for item in shared.items]
        if len(terms) == 1:
            return terms[0]
        same = unify(terms)
        assert same is not None  # USING compared them
        known = [item.columns[wanted][1] for item in shared.items]
        return replace(
            joined(same, Call("coalesce", tuple(tidy(term) for term in same))),
            is_nullable=shared.is_optional or any(one is None or one.is_nullable for one in known),
            is_unit=not shared.is_optional and all(one and one.is_unit for one in known),
            is_tidy=True,
            column=terms[0].column,
        )

    def _of_item(self, node: exp.Column, source: FromItem, wanted: str) -> Term:
        declared, term, type_ = source.columns[wanted]
        if term is None:
            code = "duplicate" if type_ == TWICE else "column_type"
            raise self.question.refuse(code, node, word=declared, type=type_)
        source.used.add(wanted)
        return replace(
            term,
            node=ColumnRef(source.names[wanted], source.alias),
            is_literal=False,
            is_nullable=term.is_nullable or source.is_optional,
            is_unit=term.is_unit and not source.is_optional,
            owner=frozenset() if source.is_optional else term.owner,
            is_tidy=True,
            column=declared,
        )


class GroupedScope(ABC):
    """The keys and aggregates of groups; whatever else stands in it would be a raw value."""

    def __init__(self, rows: RowScope, keys: Sequence[tuple[Scalar, Term]]) -> None:
        self.question, self.rows = rows.question, rows
        self._keys = dict(keys)  # by their node over rows
        self.aliases: dict[str, exp.Expression] = {}
        self._open: list[str] = []

    @abstractmethod
    def aggregate(self, node: exp.Expression, /) -> Term:
        """Translate one aggregate."""

    def term(self, node: exp.Expression, /) -> Term:
        """Translate an expression over groups."""
        self.question.check(node)
        if isinstance(node, exp.Window):
            return translate(node, self)
        if is_aggregate(node):
            made = expanded(node, self.question)
            return self.aggregate(node) if made is None else self.term(made)
        key = self._key(node)
        if key is not None:
            return key
        if isinstance(node, exp.Column):
            return self._column(node)
        return translate(node, self)

    def _key(self, node: exp.Expression) -> Term | None:
        if has_aggregate(node) or node.find(exp.Column) is None:
            return None
        if node.find(exp.Query, exp.Window) is not None or not self._is_over_rows(node):
            return None
        return self._keys.get(self.rows.term(node).node)

    def _is_over_rows(self, node: exp.Expression) -> bool:
        """Whether all columns are those of rows; others are names of the SELECT list, perhaps."""
        try:
            for column in node.find_all(exp.Column):
                self.rows.find(column)
        except Refused:
            return False
        return True

    def _column(self, node: exp.Column) -> Term:
        wanted = fold(node.name)
        if not node.table and wanted in self.aliases and wanted not in self._open:
            self._open.append(wanted)
            try:
                return self.term(self.aliases[wanted])
            finally:
                self._open.pop()
        self.rows.find(node)  # an unknown column is told so first
        raise self.question.refuse("not_grouped", node, word=short_sql(node))


def spelled(node: exp.Expression, rows: RowScope, *, functions: str = "upper") -> str:
    """Return an expression over rows as text that does not depend on how it was typed."""
    node = node.copy()
    while isinstance(node, exp.Paren):
        node = node.this
    for column in list(node.find_all(exp.Column)):
        source, wanted = rows.find(column)
        declared = source.columns[wanted][0]
        is_plain = declared.isidentifier()
        plain = exp.Column(this=exp.Identifier(this=declared, quoted=not is_plain))
        if column is node:
            node = plain
        else:
            column.replace(plain)
    return node.sql(
        DIALECT,
        comments=False,
        normalize_functions=functions,
        unsupported_level=ErrorLevel.IGNORE,
    )


def unit_column(unit: Scalar | None) -> Columns:
    """Return the column that says whose row it is, where there is one."""
    return () if unit is None else ((UNIT, unit),)
