"""Joins: each row of the result still belongs to one unit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, final

from sqlglot import exp

from discreet.errors import Refused
from discreet.tables.model.relation import UNIT, Columns, Joined, Rows, Select, sources_of
from discreet.tables.model.scalar import Call, ColumnRef, Scalar
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.logic import conjuncts, in_order
from discreet.tables.sql.question.context import ReadingContext, fold
from discreet.tables.sql.relations.scopes import FromItem, RowScope

__all__ = ["Relation", "attach", "check_units"]


@final
@dataclass(slots=True, kw_only=True)
class Relation:
    """The rows of FROM: its sources, and how they are joined."""

    scope: RowScope
    joins: list[tuple[Literal["inner", "left"], tuple[Scalar, ...]]] = field(default_factory=list)
    conditions: list[Scalar] = field(default_factory=list)  # of WHERE, which joins stand for
    same_units: list[tuple[str, str]] = field(default_factory=list)  # aliases, as conditions say
    waiting: dict[str, exp.Expression] = field(default_factory=dict)  # joins whose unit WHERE names

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
    question: ReadingContext,
    relation: Relation,
    join: exp.Expression,
    source: FromItem,
    *,
    is_semi: bool = False,
) -> None:
    """Join one more source to a relation; ``is_semi`` says that no row has two partners in it."""
    question.arguments(join, "this", "on", "using", "side", "kind", "method")
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    method = str(join.args.get("method") or "").upper()
    if method or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        word = " ".join(part for part in (method, side, kind, "JOIN") if part)
        raise question.refuse("join_kind", join.this, word=word)
    sources = relation.scope.sources
    is_private = relation.is_private or source.is_private
    if is_private and question.catalog.unit.kind == "record" and (not is_semi or source.is_private):
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
        if not _names_units(question, join, source, relation):
            if side == "LEFT" or is_semi:
                raise question.refuse("join_unit", join.this, word=question.catalog.unit.name)
            relation.waiting[source.alias] = join.this
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


def _names_units(
    question: ReadingContext, join: exp.Expression, source: FromItem, relation: Relation
) -> bool:
    """Whether the condition names the unit on both sides, so that its meaning is plain."""
    wanted = fold(question.catalog.unit.name or "")
    if wanted in {fold(column.name) for column in join.args.get("using") or []}:
        first = next(one for one in relation.scope.sources if one.is_private)
        relation.same_units.append((first.alias, source.alias))
        return True
    on = join.args.get("on")
    found = [] if on is None else _unit_pairs(question, conjuncts(on), relation.scope)
    relation.same_units += found
    return any(source.alias in pair for pair in found)


def _unit_pairs(
    question: ReadingContext, parts: Sequence[exp.Expression], scope: RowScope
) -> list[tuple[str, str]]:
    """Return the aliases of sources whose units conditions equate."""
    pairs = []
    for part in parts:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            continue
        try:
            (one, left), (other, right) = (scope.find(side) for side in sides)
        except Refused:  # which whoever translates the condition will tell
            continue
        if one is not other and _is_unit(question, one, left) and _is_unit(question, other, right):
            pairs.append((one.alias, other.alias))
    return pairs


def check_units(
    question: ReadingContext, relation: Relation, conditions: Sequence[exp.Expression]
) -> None:
    """Demand that conditions, those of WHERE too, say of all protected sources: the same unit."""
    if not relation.waiting:
        return
    pairs = relation.same_units + _unit_pairs(question, conditions, relation.scope)
    reached = {next(one.alias for one in relation.scope.sources if one.is_private)}
    while grown := {end for pair in pairs if reached & {*pair} for end in pair} - reached:
        reached |= grown
    for alias, join in relation.waiting.items():
        if alias not in reached:
            raise question.refuse("join_unit", join, word=question.catalog.unit.name)


def _is_unit(question: ReadingContext, source: FromItem, column: str) -> bool:
    """Whether a column is the unit's, also where periods make it only a part of the unit."""
    _, term, _ = source.columns[column]
    unit = question.catalog.unit
    if term is None or not source.is_private:
        return False
    return term.is_unit or (unit.period is not None and column == fold(unit.name or ""))
