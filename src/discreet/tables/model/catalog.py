"""What the custodian declares about tables: all of it public, none of it read from the data."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from discreet.privacy import Neighbours, Unit
from discreet.tables.model.bounds import JOINED_ROWS
from discreet.tables.model.query import KeyValue
from discreet.tables.model.types import kind_of, plain_type

__all__ = ["Catalog", "Column", "ForeignKey", "Table", "column_kind"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its type, its public bounds, its public keys, and how much of a unit's sum counts.

    A column without bounds has them inferred privately where they are needed; one without keys
    has them selected privately.

    >>> Column(name="region", type="VARCHAR", keys=("north", "south")).bounds is None
    True
    """

    name: str
    type: str
    bounds: tuple[Fraction, Fraction] | None = None
    keys: tuple[KeyValue, ...] | None = None
    total: Fraction | None = None

    @property
    def kind(self) -> str:
        """What can be declared about it: see :func:`column_kind`.

        >>> Column(name="age", type="BIGINT").kind
        'number'
        """
        return column_kind(self.type)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Say whose rows they are through another protected table: its row with the same ``key``.

    Rows whose ``column`` is NULL or no such key belong to nobody, and do not count. A key that
    rows of several units have belongs to one of these, the least of them: one owner for each key,
    whatever is in the tables.

    Claim: without the rows that are a unit's by this rule, in all tables, every other row belongs
    to whom it belonged before. So the rows of a unit can be added and removed as those of a table
    with the unit's column, and sensitivities are the same.

    Why: a unit's rows in the other table go with it. A key that stays has the same least unit as
    before, unless that was the one that went, and then the rows of the key went, too.

    Where keys are of one unit each, as they are meant to be, these are the rows that anybody would
    call the unit's. Otherwise the rows of a shared key are protected as those of its owner alone.

    >>> ForeignKey(column="order_id", table="orders", key="id").label
    'orders.id'
    """

    column: str
    table: str
    key: str

    @property
    def label(self) -> str:
        """The key that it means."""
        return f"{self.table}.{self.key}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its columns, and whether it is public (a dimension table, say).

    ``unit`` is the column that says whose rows they are, where it has another name than in the
    catalog, or a :class:`ForeignKey`.

    >>> Table(name="regions", columns=(Column(name="region", type="VARCHAR"),), is_public=True)
    Table(name='regions', columns=(Column(...),), is_public=True, unit=None)
    """

    name: str
    columns: tuple[Column, ...]
    is_public: bool = False
    unit: str | ForeignKey | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All tables of one population, who is protected, and what may be assumed of a unit.

    ``rows`` and ``groups`` are how many rows and groups of one unit shall count at most: not facts,
    but limits that are enforced. Left out, they are inferred privately. ``joined_rows`` is how many
    rows of one unit a join may make: left out, a million, or ``rows`` if these are more. ``size``
    is the number of units, where that is public.

    >>> Catalog(unit=Unit.column("user_id"), neighbours=Neighbours.add_remove).most_joined
    1000000
    """

    unit: Unit
    neighbours: Neighbours
    tables: tuple[Table, ...] = field(default=())
    rows: int | None = None
    groups: int | None = None
    joined_rows: int | None = None
    size: int | None = None

    @property
    def most_joined(self) -> int:
        """How many rows of one unit a join may make."""
        return self.joined_rows or max(JOINED_ROWS, self.rows or 0)


def column_kind(type_: str) -> str:
    """Sort a type into number, boolean, text, time or other.

    >>> [column_kind(t) for t in ("DECIMAL(18,3)", "BOOLEAN", "ENUM('a')", "TIMESTAMP_NS", "BLOB")]
    ['number', 'boolean', 'text', 'time', 'other']
    """
    kind, plain = kind_of(type_), plain_type(type_)
    is_clock = plain.startswith("TIME") and not plain.endswith("]")  # of no use to questions
    return "time" if is_clock or kind == "date" else kind or "other"
