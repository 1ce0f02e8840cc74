"""Rows of a plan: projections and groups over tables and joins, which engines render."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, final

from discreet.tables.model.scalar import Call, ColumnRef, Scalar, form, walk

__all__ = [
    "UNIT",
    "Columns",
    "GroupedRows",
    "JoinKind",
    "Joined",
    "Rows",
    "Scan",
    "Select",
    "UnionRows",
    "most_joined",
    "most_rows",
    "partner_keys",
    "rows_form",
    "sources_of",
]

UNIT: Final = "unit"
"""The column that says whose row it is."""

Columns = tuple[tuple[str, Scalar], ...]

JoinKind = Literal["inner", "left", "right", "full"]
"""Which rows without a partner a join keeps: none, those before it, its own, or both."""


@final
@dataclass(frozen=True, slots=True)
class Scan:
    """A table as it is. Columns of it are named without a source.

    >>> Scan("people").table
    'people'
    """

    table: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Rows under the name ``alias``, joined to those before them; the first one to nothing.

    Columns are named with this alias as their source. A ``left`` join keeps the rows before that
    have no partner, with NULLs, a ``right`` join its own, and a ``full`` join both; without
    conditions, ``on``, all pairs are partners.

    >>> Joined(alias="s0", rows=Select(Scan("people"), (("age", ColumnRef("age")),))).kind
    'inner'
    """

    alias: str
    rows: "Rows"
    kind: JoinKind = "inner"
    on: tuple[Scalar, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Select:
    """Columns of the rows that meet all conditions, ``where``; without columns, bare rows.

    ``most`` limits how many rows of one unit a join makes, before they are made. Let a unit have
    n_i rows in the i-th of the k joined parts with a column :data:`UNIT` (1 where it has none), let
    m be the most partners that rows can have in the other, public parts: the product, over these,
    of the largest number of rows that agree in all :func:`partner_keys`; and let l be ``most``
    halved for each ``full`` join, rounded down, and at least 1. A unit with m n_1 ... n_k > l is
    crowded: of its rows in part i only c_i are joined, those of lowest salted hash. c_i is the
    largest of 1, the k-th root of floor(l / m), and l over m times all n_j but n_i; both are
    rounded down.

    Claim: a unit has at most max(``most``, 2^f m) joined rows, with f full joins, whatever
    anybody's rows are, and these are a function of its own rows, the public tables and the salt. So
    sensitivities stay the same.

    Why: where a c_i is the third of these, what the unit has in all other parts times m times c_i
    is at most l. Otherwise all are the k-th root, and so is their product times m; or all are 1.
    Of a and b rows of the unit, at least 1 each, an inner, left or right join makes at most a b: a
    row that is kept without a partner stands for one pair that is not made. A full join makes at
    most max(a b, a + b) <= 2 a b. What is bounded, weighed and added up comes afterwards, unit by
    unit.

    >>> Select.of("people", unit="user_id", value_0="age").names
    ('unit', 'value_0')
    """

    source: Scan | tuple[Joined, ...]
    columns: Columns
    where: tuple[Scalar, ...] = ()
    most: int | None = None

    @classmethod
    def of(cls, table: str, /, **columns: str) -> "Select":
        """Return some columns of a table under other names."""
        return cls(Scan(table), tuple((new, ColumnRef(old)) for new, old in columns.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)


@final
@dataclass(frozen=True, slots=True)
class GroupedRows:
    """One row for each combination of the columns ``by`` of ``rows``; NULL is a value like others.

    ``columns`` and ``having`` are made of these columns and of
    :class:`~discreet.tables.model.scalar.Fold`. The unit, where there is one, is among ``by``;
    ``per_unit`` is how many combinations of the others one unit can have, where that is public.

    >>> GroupedRows(Select.of("visits", unit="id", k0="day"), by=("unit", "k0"),
    ...         columns=(("day", ColumnRef("k0")),)).names
    ('day',)
    """

    rows: Select
    by: tuple[str, ...]
    columns: Columns
    having: Scalar | None = None
    per_unit: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)


@final
@dataclass(frozen=True, slots=True)
class UnionRows:
    """The rows of all parts, which have the same columns of the same types; none is left out.

    >>> UnionRows((Select.of("visits", unit="id"), Select.of("calls", unit="id"))).names
    ('unit',)
    """

    parts: tuple["Rows", ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.parts[0].names


Rows = Select | GroupedRows | UnionRows


def partner_keys(parts: tuple[Joined, ...], index: int) -> tuple[Scalar, ...]:
    """Return what of a public part its partners fix: rows that agree in it are all they can have.

    That is what conditions equate with something of the parts that have units, or of public parts
    before it: were they to fix each other, nobody would fix either. Conditions count where every
    row of the part meets them: those of inner joins, its own if it is not kept without a partner,
    and those of right joins after it.

    >>> day = Call("equal", (ColumnRef("day", "s0"), ColumnRef("day", "s1")))
    >>> late = Call("less", (ColumnRef("hour", "s0"), ColumnRef("hour", "s1")))
    >>> visits = Joined(alias="s0", rows=Select.of("visits", unit="id", day="day", hour="hour"))
    >>> days = Joined(alias="s1", rows=Select.of("days", day="day", hour="hour"), on=(day, late))
    >>> partner_keys((visits, days), 1)
    (ColumnRef(name='day', source='s1'),)
    """
    own = parts[index]
    given = {p.alias for i, p in enumerate(parts) if i < index or UNIT in p.rows.names}
    found: list[Scalar] = []
    for part in parts:
        kinds = ("inner", "left") if part is own else ("inner", "right")
        for node in part.on if part.kind in kinds else ():
            if isinstance(node, Call) and node.function in ("equal", "same"):
                one, other = node.arguments
                for mine, theirs in ((one, other), (other, one)):
                    if sources_of(mine) == {own.alias} and sources_of(theirs) <= given:
                        found.append(mine)
    return tuple(found)


def sources_of(node: Scalar) -> set[str]:
    """Return the aliases of the joined parts that a node reads from.

    >>> sources_of(Call("add", (ColumnRef("x", "s0"), ColumnRef("y", "s1")))) == {"s0", "s1"}
    True
    """
    return {one.source for one in walk(node) if isinstance(one, ColumnRef)}


def most_joined(rows: Rows) -> int | None:
    """Return how many rows of a unit joins in a plan may make, None where there are no joins.

    >>> most_joined(Select.of("people", unit="id")) is None
    True
    """
    if isinstance(rows, GroupedRows):
        return most_joined(rows.rows)
    if isinstance(rows, UnionRows):
        inside = [most_joined(part) for part in rows.parts]
        return next((one for one in inside if one is not None), None)
    parts = () if isinstance(rows.source, Scan) else rows.source
    inside = [rows.most, *(most_joined(part.rows) for part in parts)]
    return next((one for one in inside if one is not None), None)


def most_rows(rows: Rows) -> int | None:
    """Return how many rows of one unit there are at most by how they are made, None if unknown.

    Grouping by the unit leaves one; unions add up; joins on the unit multiply (full ones may add up
    instead), and so do public parts unless their partners fix all that they are grouped by. It is
    enforced like every other limit, so that no guarantee rests on it.

    >>> visits = Select.of("visits", unit="id")
    >>> most_rows(visits), most_rows(GroupedRows(visits, by=("unit",), columns=(), per_unit=1))
    (None, 1)
    """
    if isinstance(rows, GroupedRows):
        known = [n for n in (rows.per_unit, most_rows(rows.rows)) if n is not None]
        return min(known, default=None)
    if isinstance(rows, UnionRows):
        counts = [most_rows(part) for part in rows.parts]
        return None if None in counts else sum(n for n in counts if n is not None)
    if isinstance(rows.source, Scan):
        return None
    product = 1
    for index, part in enumerate(rows.source):
        if UNIT in part.rows.names:
            most = most_rows(part.rows)
        else:
            most = 1 if _is_one(part, partner_keys(rows.source, index)) else None
        if most is None:
            return None
        product = max(product * most, product + most if part.kind == "full" else 0)
    return product


def _is_one(part: Joined, fixed: tuple[Scalar, ...]) -> bool:
    """Whether rows of a public part that agree in what is ``fixed`` are one at most."""
    rows, names = part.rows, _columns_in(fixed)
    while isinstance(rows, Select) and not isinstance(rows.source, Scan) and len(rows.source) == 1:
        names = _columns_in(node for name, node in rows.columns if name in names)
        rows = rows.source[0].rows
    if not isinstance(rows, GroupedRows):
        return False
    return set(rows.by) <= _columns_in(node for name, node in rows.columns if name in names)


def _columns_in(nodes: Iterable[Scalar]) -> set[str]:
    return {node.name for node in nodes if isinstance(node, ColumnRef)}


def rows_form(rows: Rows) -> list[object]:
    """Return rows as plain lists, which tell all plans apart.

    >>> rows_form(Select.of("people", unit="id"))
    ['select', ['people'], [['unit', ['column', '', 'id']]], []]
    """
    if isinstance(rows, UnionRows):
        return ["union", *(rows_form(part) for part in rows.parts)]
    columns = [[name, form(node)] for name, node in rows.columns]
    if isinstance(rows, GroupedRows):
        having = None if rows.having is None else form(rows.having)
        return ["grouped", rows_form(rows.rows), list(rows.by), columns, having]
    source: list[object] = (
        [rows.source.table]
        if isinstance(rows.source, Scan)
        else [
            [one.alias, one.kind, rows_form(one.rows), [form(node) for node in one.on]]
            for one in rows.source
        ]
    )
    most = [] if rows.most is None else [rows.most]
    return ["select", source, columns, [form(node) for node in rows.where], *most]
