"""Rows of a plan: projections and groups over tables and joins, which engines render."""

from dataclasses import dataclass
from typing import Final, Literal, final

from discreet.tables.model.scalar import ColumnRef, Scalar, form

__all__ = ["UNIT", "Columns", "GroupedRows", "Joined", "Rows", "Scan", "Select", "rows_form"]

UNIT: Final = "unit"
"""The column that says whose row it is."""

Columns = tuple[tuple[str, Scalar], ...]


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
    have no partner, with NULLs; without conditions, ``on``, all pairs are partners.

    >>> Joined(alias="s0", rows=Select(Scan("people"), (("age", ColumnRef("age")),))).kind
    'inner'
    """

    alias: str
    rows: "Rows"
    kind: Literal["inner", "left"] = "inner"
    on: tuple[Scalar, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Select:
    """Columns of the rows that meet all conditions, ``where``; without columns, bare rows.

    >>> Select.of("people", unit="user_id", value_0="age").names
    ('unit', 'value_0')
    """

    source: Scan | tuple[Joined, ...]
    columns: Columns
    where: tuple[Scalar, ...] = ()

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
    :class:`~discreet.tables.model.scalar.Fold`. The unit, where there is one, is among ``by``.

    >>> GroupedRows(Select.of("visits", unit="id", k0="day"), by=("unit", "k0"),
    ...         columns=(("day", ColumnRef("k0")),)).names
    ('day',)
    """

    rows: Select
    by: tuple[str, ...]
    columns: Columns
    having: Scalar | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)


Rows = Select | GroupedRows


def rows_form(rows: Rows) -> list[object]:
    """Return rows as plain lists, which tell all plans apart.

    >>> rows_form(Select.of("people", unit="id"))
    ['select', ['people'], [['unit', ['column', '', 'id']]], []]
    """
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
    return ["select", source, columns, [form(node) for node in rows.where]]
