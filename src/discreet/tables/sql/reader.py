"""From the text of a question to its plan."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import Refused
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.composite import Composite
from discreet.tables.model.output import Output
from discreet.tables.model.query import Query
from discreet.tables.model.relation import Select
from discreet.tables.model.scalar import ReleasedKey, Scalar
from discreet.tables.sql.aggregate_calls import has_aggregate, is_aggregate, read_call
from discreet.tables.sql.composites.splitting import reads_public_alone, split
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.group_keys import GroupKey, group_key, listed_values
from discreet.tables.sql.question.constants import with_constants_in_place
from discreet.tables.sql.question.context import DIALECT, ReadingContext, fold, short_sql
from discreet.tables.sql.question.dialects import normalised
from discreet.tables.sql.relations.from_clause import (
    With,
    check_clauses,
    from_clause,
    where_clause,
    with_clause,
)
from discreet.tables.sql.relations.row_owner import OWN
from discreet.tables.sql.relations.scopes import spelled, unit_column
from discreet.tables.sql.relations.unit_subqueries import group_items
from discreet.tables.sql.select_list import (
    HistogramKey,
    OutputScope,
    histogram,
    ordering,
    row_limit,
)

__all__ = ["read_query", "read_question"]

_LONGEST = 50_000  # characters
_MOST_TOKENS = 10_000
_SHAPES = frozenset({
    "aggregate_rows", "aggregate_top", "grouping_sets", "inner_order", "join_unit", "no_table",
    "raw_rows", "set_operation", "star", "subquery", "unit_is_row", "unit_missing", "window",
})  # fmt: skip
"""Refusals of a plain reading that may be for the shape alone: others hold in any shape."""


def read_query(text: str, catalog: Catalog, *, periods: Sequence[str] | None) -> Query:
    """Translate a question, or refuse it."""
    found = _read(text, catalog, periods, is_split=False)
    assert isinstance(found, Query)
    return found


def read_question(
    text: str, catalog: Catalog, *, periods: Sequence[str] | None
) -> Query | Composite:
    """Translate a question, also one that asks something of released answers, or refuse it."""
    return _read(text, catalog, periods, is_split=True)


def _read(
    text: str, catalog: Catalog, periods: Sequence[str] | None, *, is_split: bool
) -> Query | Composite:
    tokens = _tokens(text)

    def context() -> ReadingContext:
        return ReadingContext(text, tokens or [], catalog=catalog, periods=periods)

    question = context()
    try:
        if tokens is None:
            raise _unreadable(question)
        _check_tokens(question, tokens)
        tree = _parse(question)
        _check_lists(question, tree)
        try:
            if is_split and reads_public_alone(question, tree):
                raise question.refuse("no_table", tree)
            return _Reader(question, _select_of(question, tree)).query()
        except Refused as refusal:
            is_shape = refusal.code in _SHAPES or tree.find(exp.Window, exp.Qualify) is not None
            if not is_split or not is_shape:
                raise
            return _composite(context, tree, refusal)
    except RecursionError:
        raise question.refuse_at("too_complex", 1, 1) from None


def _composite(
    context: Callable[[], ReadingContext], tree: exp.Expression, refusal: Refused
) -> Composite:
    """Return a question as parts and what is asked of them, or say why it is refused as it is."""

    def read(select: exp.Select) -> Query:
        reader = _Reader(context(), select)
        if reader.groups_by_unit:  # which nobody may see, and no sum over it would be bounded
            raise refusal
        return reader.query()

    try:
        return split(context(), tree, read)
    except Refused as other:
        if other.code in _SHAPES:
            raise refusal from None
        raise


def _tokens(text: str) -> list[Token] | None:
    """Cut a text into words, or return None where that is impossible."""
    try:
        text.encode()
        return (
            None if len(text) > _LONGEST or "\0" in text else sqlglot.tokenize(text, read=DIALECT)
        )
    except (TokenError, UnicodeEncodeError):
        return None


def _parse(question: ReadingContext) -> exp.Expression:
    try:
        trees = sqlglot.parse(question.text, read=DIALECT)
    except ParseError as error:
        raise _not_sql(question, error) from None
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        raise question.refuse_at("syntax", 1, 1, why="the parser gave up on it") from None
    tree = next(tree for tree in trees if tree is not None)
    while isinstance(tree, exp.Subquery):
        question.arguments(tree, "this")
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise question.refuse_at("statement", 1, 1, word=type(tree).__name__.upper())
    return with_constants_in_place(normalised(tree))


def _select_of(question: ReadingContext, tree: exp.Expression) -> exp.Select:
    if not isinstance(tree, exp.Select):
        raise question.refuse("set_operation", tree, word=type(tree).__name__.upper())
    return tree


def _check_tokens(question: ReadingContext, tokens: list[Token]) -> None:
    if len(tokens) > _MOST_TOKENS:
        raise question.refuse_at("too_complex", 1, 1)
    if all(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise question.refuse_at("empty", 1, 1)
    for token, after in pairwise(tokens):
        if token.token_type == TokenType.SEMICOLON and after.token_type != TokenType.SEMICOLON:
            raise question.refuse_at("statements", *question.positions.at(after.start))
    # Asked before parsing, which would log what it does not know.
    words = [token for token in tokens if token.token_type != TokenType.L_PAREN]
    first = words[0] if words else tokens[0]
    allowed = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)
    if first.token_type not in allowed:
        place = question.positions.at(first.start)
        raise question.refuse_at("statement", *place, word=first.text.upper()[:40])


def _check_lists(question: ReadingContext, tree: exp.Expression) -> None:
    """Refuse a SELECT that selects nothing: what comes after the charge could not answer it."""
    for select in tree.find_all(exp.Select):
        if not select.expressions:
            raise question.refuse("syntax", select, why="a SELECT says nothing to select")


def _unreadable(question: ReadingContext) -> Refused:
    """Say why a text cannot even be cut into words: a quote is open, mostly."""
    text = question.text
    if len(text) > _LONGEST:
        return question.refuse_at("too_complex", 1, 1)
    for mark in ("'", '"'):
        if text.count(mark) % 2:
            place = question.positions.at(text.rfind(mark))
            return question.refuse_at("syntax", *place, why=f"a {mark} is never closed")
    return question.refuse_at("syntax", 1, 1, why="it has unreadable characters")


def _not_sql(question: ReadingContext, error: ParseError) -> Refused:
    found = error.errors[0] if error.errors else {}
    word = str(found.get("highlight") or "")
    line = int(found.get("line") or 1)
    column = max(1, int(found.get("col") or 1) - max(len(word), 1) + 1)
    why = f"the words around {word!r} do not fit together" if word else "words are missing"
    return question.refuse_at("syntax", line, column, why=why)


class _Reader:
    """Puts together the parts of one query."""

    def __init__(self, question: ReadingContext, select: exp.Select) -> None:
        self.question, self.select = question, select
        check_clauses(question, select, "order", "limit", "offset")
        known = with_clause(question, select, With())
        self.relation = from_clause(question, select, known)
        self.items = self._items()
        if not self.relation.is_private:
            raise question.refuse("no_table", select.args["from_"].this)
        self.where, conditions = where_clause(question, select, self.relation)
        self.rows = self.relation.scope
        self.listed = listed_values(question, conditions, self.rows)
        self.histogram: HistogramKey | None = None
        self.keys = self._keys()
        released = [(k.written, k.released(i)) for i, k in enumerate(self.keys)]
        self.scope = OutputScope(self.rows, released)
        self.scope.key_count = len(self.keys)

    @property
    def groups_by_unit(self) -> bool:
        """Whether a key is the unit of privacy."""
        unit = fold(self.question.catalog.unit.name or "")
        return any(
            k.term.is_unit or OWN in k.term.owner or fold(k.term.column or "") == unit
            for k in self.keys
            if unit
        )

    def query(self) -> Query:
        """Return the plan."""
        shown = self._shown()
        self.scope.aliases = {fold(title): node for title, node in self.items}
        having = self.select.args.get("having")
        where = None
        if having is not None:
            where = need(self.scope, having.this, "boolean", word="HAVING").node
        order = ordering(self.question, self.select, self.scope, self.items)
        limit, offset = (row_limit(self.question, self.select, w) for w in ("LIMIT", "OFFSET"))
        if not self.scope.aggregates:
            self.scope.row_count()
        names = _unique([title for title, _, _ in shown])
        columns = zip(names, (node for _, node, _ in shown), strict=True)
        keys = [key.key for key in self.keys]
        if self.histogram is not None:
            keys.append(self.histogram.key)
        return Query(
            rows=self._rows(),
            keys=tuple(keys),
            values=tuple(self.scope.values),
            aggregates=tuple(self.scope.aggregates),
            output=Output(
                columns=tuple(columns), where=where, order=order, limit=limit, offset=offset
            ),
            tables=tuple(sorted(self.question.read)),
            key_names=tuple(
                name for name, (_, _, is_key) in zip(names, shown, strict=True) if is_key
            ),
            unit_is_row=self.question.catalog.unit.kind == "record",
        )

    def _items(self) -> list[tuple[str, exp.Expression]]:
        items = []
        for item in self.select.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            is_column = isinstance(inner, exp.Column)
            if isinstance(inner, exp.Star) or (is_column and isinstance(inner.this, exp.Star)):
                raise self.question.refuse("star", inner, word=short_sql(inner))
            is_named = is_column or isinstance(item, exp.Alias)
            title = item.alias_or_name if is_named else self._default_name(inner)
            items.append((title, inner))
        return items

    def _default_name(self, node: exp.Expression) -> str:
        if is_aggregate(node) and str(node.name).lower() == "histogram":
            return "histogram"
        try:  # without the names of tables, which mean nothing to whoever reads the answer
            return spelled(node, self.relation.scope, functions="lower")
        except Refused:
            return short_sql(node)

    def _keys(self) -> list[GroupKey]:
        nodes = group_items(self.question, self.select, self.items, self.rows)
        has_any = any(has_aggregate(node) for _, node in self.items)
        is_grouped = self.select.args.get("group") or self.select.args.get("distinct")
        having = self.select.args.get("having")
        if not is_grouped and not has_any and not (having and has_aggregate(having)):
            for _, node in self.items:
                self.rows.at("here").term(node)  # a more telling refusal, where there is one
            raise self.question.refuse("raw_rows", self.items[0][1])
        keys: dict[Scalar, GroupKey] = {}
        for node in nodes:
            term = self.rows.at("in GROUP BY").term(node)
            if term.is_unit and term.values is None and term.node not in self.listed:
                unit = self.question.catalog.unit.name
                raise self.question.refuse("unit_key", node, word=unit)
            if term.node not in keys:
                title = term.column or spelled(node, self.rows)
                listed = self.listed.get(term.node)
                keys[term.node] = group_key(
                    self.question, node, term, name=self._title(node, title), listed=listed
                )
        return list(keys.values())

    def _title(self, node: exp.Expression, default: str) -> str:
        return next((title for title, item in self.items if item is node), default)

    def _shown(self) -> list[tuple[str, Scalar, bool]]:
        """Return name, node and whether it is a key, for each column of the answer."""
        found: list[tuple[str, Scalar, bool]] = []
        for title, node in self.items:
            call = read_call(node, self.rows) if is_aggregate(node) else None
            if call is not None and call.word == "histogram":
                found += self._histogram(title, node)
                continue
            term = self.scope.term(node)
            self.scope.aliases[fold(title)] = node  # later columns may use its name
            found.append((title, term.node, isinstance(term.node, ReleasedKey)))
        if self.histogram is not None and len(self.scope.aggregates) > 1:
            raise self.question.refuse(
                "histogram", self.select, why="HISTOGRAM must be the only aggregate"
            )
        return found

    def _histogram(self, title: str, node: exp.Expression) -> list[tuple[str, Scalar, bool]]:
        if self.histogram is not None or self.scope.aggregates:
            raise self.question.refuse(
                "histogram", node, why="HISTOGRAM must be the only aggregate"
            )
        found = histogram(self.question, node, self.rows, title=title)
        self.histogram, place = found, len(self.keys)
        self.scope.key_count, self.scope.histogram = place + 1, node
        count = self.scope.row_count()
        return [
            (f"{title}_from", found.edge(place, offset=0), True),
            (f"{title}_to", found.edge(place, offset=1), True),
            (title, count.node, False),
        ]

    def _rows(self) -> Select:
        keys = [key.node for key in self.keys]
        if self.histogram is not None:
            keys.append(self.histogram.node)
        columns = [
            *unit_column(self.rows.unit),
            *((f"key_{i}", node) for i, node in enumerate(keys)),
            *((f"value_{i}", node) for i, node in enumerate(self.scope.value_nodes)),
        ]
        return self.relation.select(tuple(columns), self.where)


def _unique(titles: list[str]) -> list[str]:
    """Return names that differ also where upper and lower case do not."""
    seen: set[str] = set()
    names = []
    for title in titles:
        new, number = title, 1
        while fold(new) in seen:
            new, number = f"{title}_{number}", number + 1
        seen.add(fold(new))
        names.append(new)
    return names
