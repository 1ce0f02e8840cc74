"""Joins: each row of the result still belongs to one unit."""

from dataclasses import dataclass, field, replace
from typing import Literal, final

from sqlglot import exp

from discreet.tables.model.relation import UNIT, Columns, Joined, Rows, Select, sources_of
from discreet.tables.model.scalar import Call, ColumnRef, Scalar
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.logic import conjuncts, in_order
from discreet.tables.sql.question.context import ReadingContext, fold
from discreet.tables.sql.scopes import FromItem, RowScope

__all__ = ["Relation", "attach"]


@final
@dataclass(slots=True, kw_only=True)
class Relation:
    """The rows of FROM: its sources, and how they are joined."""

    scope: RowScope
    joins: list[tuple[Literal["inner", "left"], tuple[Scalar, ...]]] = field(default_factory=list)

    def joined(self) -> tuple[Joined, ...]:
        """Return the joined rows, once all needed columns are known."""
        return tuple(
            Joined(alias=item.alias, rows=item.rows(item.used), kind=kind, on=on)
            for item, (kind, on) in zip(
                self.scope.sources, [("inner", ()), *self.joins], strict=True
            )
        )

    def select(self, columns: Columns, where: tuple[Scalar, ...]) -> Select:
        """Return columns of the joined rows that meet the conditions.

        A condition is asked as early as its columns are there, before units are bounded: rows that
        do not count shall not take the place of others.
        """
        parts = self.joined()
        if len(parts) == 1:
            return Select(parts, columns, where)
        places = {part.alias: index for index, part in enumerate(parts)}
        own: list[list[Scalar]] = [[] for _ in parts]
        on: list[list[Scalar]] = [[] for _ in parts]
        rest: list[Scalar] = []
        for at, node in [(i, node) for i, part in enumerate(parts) for node in part.on] + [
            (len(parts), node) for node in where
        ]:
            read = {places[source] for source in sources_of(node)}
            last = max(read, default=at)
            is_kept = at < len(parts) and parts[at].kind == "left"  # it says who is a partner
            if len(read) == 1 and (last == at or (not is_kept and parts[last].kind == "inner")):
                own[last].append(node)
            elif at < len(parts):
                on[at].append(node)
            elif read and parts[last].kind == "inner":
                on[last].append(node)
            else:
                rest.append(node)
        joined = tuple(
            replace(part, rows=_narrowed(part, in_order(own[i])), on=in_order(on[i]))
            for i, part in enumerate(parts)
        )
        most = self.scope.question.catalog.most_joined if self.is_private else None
        return Select(joined, columns, in_order(rest), most)

    @property
    def is_private(self) -> bool:
        """Whether any source is protected."""
        return any(source.is_private for source in self.scope.sources)


def _narrowed(part: Joined, where: tuple[Scalar, ...]) -> Rows:
    """Return the rows of a part that meet conditions, which name its columns by its alias."""
    if not where:
        return part.rows
    columns = tuple((name, ColumnRef(name, part.alias)) for name in part.rows.names)
    return Select((Joined(alias=part.alias, rows=part.rows),), columns, where)


def attach(
    question: ReadingContext, relation: Relation, join: exp.Expression, source: FromItem
) -> None:
    """Join one more source to a relation."""
    question.arguments(join, "this", "on", "using", "side", "kind", "method")
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    method = str(join.args.get("method") or "").upper()
    if method or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        word = " ".join(part for part in (method, side, kind, "JOIN") if part)
        raise question.refuse("join_kind", join.this, word=word)
    sources = relation.scope.sources
    is_private = relation.is_private or source.is_private
    if is_private and question.catalog.unit.kind == "record":
        # A row with several partners would count several times, and nothing bounds that.
        raise question.refuse("unit_is_row", join.this, what="a join")
    if join.this.args.get("joins"):
        raise question.refuse("clause", join.this, word="A join in parentheses")
    if source.title and fold(source.title) in {fold(s.title) for s in sources}:
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
        assert unit is not None
        conditions = (Call("equal", (unit, ColumnRef(UNIT, source.alias))), *conditions)
    if not conditions and side == "LEFT":
        raise question.refuse("join_condition", join.this)
    relation.joins.append(("left" if side == "LEFT" else "inner", conditions))


def _conditions(
    question: ReadingContext, relation: Relation, join: exp.Expression, source: FromItem
) -> tuple[Scalar, ...]:
    conditions: list[Scalar] = []
    for column in join.args.get("using") or []:
        wanted = fold(column.name)
        before = RowScope(question, relation.scope.sources[:-1], where="in USING")
        here = RowScope(question, [source], where="in USING")
        plain = exp.Column(this=column.copy())
        left, right = before.term(plain), here.term(plain)
        if left.kind != right.kind:
            raise question.refuse("types", column, word="USING", left=left.kind, right=right.kind)
        conditions.append(Call("equal", (left.node, right.node)))
        source.merged.add(wanted)
    if join.args.get("on") is not None:
        parts = conjuncts(join.args["on"])
        conditions += [need(relation.scope, part, "boolean", word="ON").node for part in parts]
    return in_order(conditions)


def _check_units(
    question: ReadingContext, join: exp.Expression, source: FromItem, relation: Relation
) -> None:
    """Demand that the condition names the unit on both sides, so that its meaning is plain."""
    unit = question.catalog.unit
    wanted = fold(unit.name or "")
    using = {fold(column.name) for column in join.args.get("using") or []}
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


def _is_unit(question: ReadingContext, source: FromItem, column: str) -> bool:
    """Whether a column is the unit's, also where periods make it only a part of the unit."""
    _, term, _ = source.columns[column]
    unit = question.catalog.unit
    if term is None or not source.is_private:
        return False
    return term.is_unit or (unit.period is not None and column == fold(unit.name or ""))
