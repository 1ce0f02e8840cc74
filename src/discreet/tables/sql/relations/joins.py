"""Joins: each row of the result still belongs to one unit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

from sqlglot import exp

from discreet.errors import Refused
from discreet.tables.model.relation import Columns, Joined, JoinKind, Rows, Select, sources_of
from discreet.tables.model.scalar import Call, ColumnRef, Scalar
from discreet.tables.sql.expressions.arguments import need
from discreet.tables.sql.expressions.logic import conjuncts, in_order
from discreet.tables.sql.question.context import ReadingContext, fold
from discreet.tables.sql.relations.scopes import (
    FromItem,
    JoinSide,
    RowScope,
    SharedColumn,
    unit_column,
)

__all__ = ["Relation", "attach", "check_units"]

_KINDS: Final[dict[str, JoinKind]] = {
    "": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full",
}  # fmt: skip


@final
@dataclass(slots=True, kw_only=True)
class Relation:
    """The rows of FROM: its parts, how they are joined, and the columns that they have."""

    scope: RowScope
    sides: list[JoinSide]
    joins: list[tuple[JoinKind, tuple[Scalar, ...]]] = field(default_factory=list)
    conditions: list[Scalar] = field(default_factory=list)  # of WHERE, which joins stand for
    same_units: list[tuple[str, str]] = field(default_factory=list)  # aliases, as conditions say
    waiting: dict[str, exp.Expression] = field(default_factory=dict)  # joins whose unit WHERE names

    @classmethod
    def of(cls, question: ReadingContext, first: JoinSide) -> "Relation":
        """Return the rows of one side, to which others may be joined."""
        where = "in a join condition"
        scope = RowScope(question, first.items, where=where, unit=first.unit)
        return cls(scope=scope, sides=[first])

    @property
    def next_alias(self) -> str:
        """The alias of the next part."""
        return f"s{len(self.sides)}"

    def joined(self) -> tuple[Joined, ...]:
        """Return the joined rows, once all needed columns are known."""
        return tuple(
            Joined(alias=side.alias, rows=side.rows(), kind=kind, on=on)
            for side, (kind, on) in zip(self.sides, [("inner", ()), *self.joins], strict=True)
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
            is_early = bool(read) and _is_as_good_before(parts, last, at)
            if len(read) == 1 and is_early:
                own[last].append(node)
            elif at < len(parts):
                on[at].append(node)
            elif is_early and parts[last].kind == "inner":
                on[last].append(node)
            else:
                rest.append(node)
        joined = tuple(
            replace(part, rows=_narrowed(part, in_order(own[i])), on=in_order(on[i]))
            for i, part in enumerate(parts)
        )
        most = self.scope.question.catalog.most_joined if self.is_private else None
        return Select(joined, columns, in_order(rest), most)

    def nested(self, alias: str) -> JoinSide:
        """Return these rows as one side of another join, all columns seen as they were."""
        items = [
            replace(
                item,
                alias=alias,
                names={wanted: f"{item.alias}_{name}" for wanted, name in item.names.items()},
                used=set(),
                merged={*item.merged},
            )
            for item in self.scope.sources
        ]
        places = {id(item): place for place, item in enumerate(self.scope.sources)}
        for item in items:
            item.shared = {
                wanted: replace(one, items=tuple(items[places[id(i)]] for i in one.items))
                for wanted, one in item.shared.items()
            }

        def rows() -> Select:
            columns = [*unit_column(self.scope.unit)]
            for inner, outer in zip(self.scope.sources, items, strict=True):
                inner.used |= outer.used
                columns += [
                    (outer.names[wanted], ColumnRef(inner.names[wanted], inner.alias))
                    for wanted in inner.columns
                    if wanted in outer.used
                ]
            return self.select(tuple(columns), ())

        return JoinSide(alias=alias, items=items, rows=rows, has_unit=self.scope.unit is not None)

    @property
    def is_private(self) -> bool:
        """Whether any source is protected."""
        return any(source.is_private for source in self.scope.sources)


def _is_as_good_before(parts: tuple[Joined, ...], last: int, at: int) -> bool:
    """Whether rows can be asked at the part ``last`` what is asked at ``at``, or in WHERE after it.

    They can where that join says who is a partner, or drops the rows that do not meet it, and where
    no join between them would keep others with NULLs in their place.
    """
    if last == at:
        return parts[at].kind in ("inner", "left")
    asked = "inner" if at == len(parts) else parts[at].kind
    between = [part.kind for part in parts[last + 1 : at]]
    return (
        asked in ("inner", "right")
        and parts[last].kind in ("inner", "right")
        and not {"right", "full"} & {*between}
    )


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
    side: JoinSide,
    *,
    is_semi: bool = False,
) -> None:
    """Join one more side to a relation; ``is_semi`` says that no row has two partners in it.

    Claim: where either side is protected, each row of the result belongs to one unit, and the rows
    of a unit are a function of its own rows and public tables.

    Why: where both sides are protected, partners are of the same unit, so that a join of any kind
    is the union of the joins of each unit's own rows; a row without a partner belongs to its own
    unit. Where one side is public, only rows of the other are kept without a partner: whether a
    public row has one would depend on everybody.
    """
    kind = _kind(question, join)
    was_private = relation.is_private
    is_record = question.catalog.unit.kind == "record"
    if (was_private or side.is_private) and is_record and (not is_semi or side.is_private):
        # A row with several partners would count several times, and nothing bounds that.
        raise question.refuse("unit_is_row", join.this, what="a join")
    titles = {fold(one.title) for one in relation.scope.sources}
    for item in side.items:
        if item.title and fold(item.title) in titles:
            raise question.refuse("duplicate", join.this, word=item.title)
    keeps = {"inner": (), "left": (was_private,), "right": (side.is_private,)}
    if was_private != side.is_private and not all(keeps.get(kind, (False,))):
        raise question.refuse("join_public", join.this, word=f"{kind.upper()} JOIN")
    before, unit = list(relation.scope.sources), relation.scope.unit
    for item in (*(before if kind in ("right", "full") else ()),
                 *(side.items if kind in ("left", "full") else ())):  # fmt: skip
        item.is_optional = True
        for shared in item.shared.values():
            shared.is_optional = True
    relation.scope.sources += side.items
    relation.sides.append(side)
    conditions, pairs = _conditions(question, relation, join, before, kind)
    if was_private and side.is_private:
        relation.same_units += pairs
        if not any(side.alias in pair for pair in pairs):
            if kind != "inner" or is_semi:
                raise question.refuse("join_unit", join.this, word=question.catalog.unit.name)
            relation.waiting[side.alias] = join.this
        # Whatever the condition says: no row may belong to two units.
        assert unit is not None
        assert side.unit is not None
        conditions = (Call("equal", (unit, side.unit)), *conditions)
    if not conditions and kind != "inner":
        raise question.refuse("join_condition", join.this)
    relation.joins.append((kind, conditions))
    relation.scope.unit = _unit(kind, unit, side.unit)


def _kind(question: ReadingContext, join: exp.Expression) -> JoinKind:
    question.arguments(join, "this", "on", "using", "side", "kind", "method")
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    method = str(join.args.get("method") or "").upper()
    if method or side not in _KINDS or kind not in ("", "INNER", "CROSS", "OUTER"):
        word = " ".join(part for part in (method, side, kind, "JOIN") if part)
        raise question.refuse("join_kind", join.this, word=word)
    return _KINDS[side]


def _unit(kind: JoinKind, before: Scalar | None, added: Scalar | None) -> Scalar | None:
    """Return whose the rows of a join are: of whichever side is sure to be there."""
    if kind == "full" and before is not None and added is not None:
        return Call("coalesce", (before, added))
    first, second = (added, before) if kind == "right" else (before, added)
    return second if first is None else first


def _conditions(
    question: ReadingContext,
    relation: Relation,
    join: exp.Expression,
    before: list[FromItem],
    kind: JoinKind,
) -> tuple[tuple[Scalar, ...], list[tuple[str, str]]]:
    """Return the conditions of a join, and the aliases of parts of whose units they say: equal."""
    conditions: list[Scalar] = []
    pairs: list[tuple[str, str]] = []
    added = relation.scope.sources[len(before) :]
    for column in join.args.get("using") or []:
        wanted, plain = fold(column.name), exp.Column(this=column.copy())
        scopes = [RowScope(question, items, where="in USING") for items in (before, added)]
        left, right = (scope.term(plain) for scope in scopes)
        if left.kind != right.kind:
            raise question.refuse("types", column, word="USING", left=left.kind, right=right.kind)
        conditions.append(Call("equal", (left.node, right.node)))
        (one, _), (other, _) = (scope.find(plain) for scope in scopes)
        if _is_one_unit((one, wanted), (other, wanted)):
            pairs.append((one.alias, other.alias))
        other.merged.add(wanted)
        ends = [i.shared[wanted].items if wanted in i.shared else (i,) for i in (one, other)]
        if kind in ("right", "full"):
            items = ends[1] if kind == "right" else (*ends[0], *ends[1])
            one.shared[wanted] = SharedColumn(items=items)
    if join.args.get("on") is not None:
        parts = conjuncts(join.args["on"])
        conditions += [need(relation.scope, part, "boolean", word="ON").node for part in parts]
        pairs += _unit_pairs(parts, relation.scope)
    return in_order(conditions), pairs


def _unit_pairs(parts: Sequence[exp.Expression], scope: RowScope) -> list[tuple[str, str]]:
    """Return the aliases of sources whose units conditions equate."""
    pairs = []
    for part in parts:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            continue
        try:
            one, other = (scope.find(side) for side in sides)
        except Refused:  # which whoever translates the condition will tell
            continue
        if one[0].alias != other[0].alias and _is_one_unit(one, other):
            pairs.append((one[0].alias, other[0].alias))
    return pairs


def check_units(
    question: ReadingContext, relation: Relation, conditions: Sequence[exp.Expression]
) -> None:
    """Demand that conditions, those of WHERE too, say of all protected sources: the same unit."""
    if not relation.waiting:
        return
    pairs = relation.same_units + _unit_pairs(conditions, relation.scope)
    reached = {next(one.alias for one in relation.scope.sources if one.is_private)}
    while grown := {end for pair in pairs if reached & {*pair} for end in pair} - reached:
        reached |= grown
    for alias, join in relation.waiting.items():
        if alias not in reached:
            raise question.refuse("join_unit", join, word=question.catalog.unit.name)


def _is_one_unit(*columns: tuple[FromItem, str]) -> bool:
    """Whether rows in which these columns are equal belong to one unit.

    That is so of the unit's own columns, also where periods make them only a part of the unit, of a
    declared foreign key and the key that it means, and of two foreign keys that mean the same.
    """
    terms = [item.columns[name][1] if item.is_private else None for item, name in columns]
    one, other = (frozenset() if term is None else term.owner for term in terms)
    return bool(one & other)
