"""Whose rows a table has, where it does not say so by the unit's own column."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.errors import DataError, ParameterError
from discreet.tables.declarations.names import fold, is_same
from discreet.tables.model.catalog import ForeignKey, Table
from discreet.tables.model.unit_forms import common_form, exact_form

if TYPE_CHECKING:
    from discreet.tables.declarations.declaration import Declaration

__all__ = ["check_owners", "check_types", "read_owner"]


def read_owner(given: object, *, parameter: str) -> "str | ForeignKey":
    """Return a column's name, or the foreign key that ``column = table.key`` says.

    >>> read_owner("order_id = orders.id", parameter="units")
    ForeignKey(column='order_id', table='orders', key='id')
    """
    if isinstance(given, ForeignKey):
        return given
    if isinstance(given, str):
        column, sign, means = (part.strip() for part in given.partition("="))
        table, dot, key = (part.strip() for part in means.partition("."))
        if column and not sign:
            return column
        if column and table and dot and key:
            return ForeignKey(column=column, table=table, key=key)
    raise ParameterError(
        "whose rows a table has is said by a column, as in 'customer', or by a foreign key, as in "
        "'order_id = orders.id'.",
        parameter=parameter,
    )


def check_owners(declaration: "Declaration") -> None:
    """Refuse foreign keys that lead nowhere or in a circle, and units of tables without any."""
    if any(table.unit is not None for table in declaration.public.values()):
        raise ParameterError("a public table has no unit.", parameter="public")
    said = {name: table.unit for name, table in declaration.tables.items() if table.unit}
    if said and declaration.unit.name is None:
        raise ParameterError(
            "each row is a unit of its own, so that no column says whose it is.",
            parameter=f"tables.{next(iter(said))}.unit",
        )
    names = {fold(name): name for name in declaration.tables}
    for name in said:
        seen = {name}
        at: str | ForeignKey | None = said[name]
        while isinstance(at, ForeignKey):
            found = names.get(fold(at.table))
            where = f"tables.{name}.unit"
            if found is None:
                told = f"{where}: {at.table!r} is no protected table."
                raise ParameterError(
                    f"{told} They are {', '.join(names.values())}.", parameter=where
                )
            if found in seen:
                told = f"{where} leads in a circle, to {found!r} again."
                raise ParameterError(
                    f"{told} One table must have the unit's column.", parameter=where
                )
            seen.add(found)
            at = declaration.tables[found].unit


def check_types(tables: Sequence[Table], usual: str) -> None:
    """Refuse units that cannot be told apart exactly, or not in the same way in all tables."""
    types: dict[str, tuple[str, str]] = {}
    for table in tables:
        if not isinstance(table.unit, ForeignKey):
            name = table.unit or usual
            types[table.name] = (name, _type(table, name))
    first, (name, type_) = next(iter(types.items()))
    for table_name, (own, own_type) in types.items():
        _check_form(table_name, own, own_type)
        _check_same((first, name, type_), (table_name, own, own_type))
    known: Mapping[str, Table] = {fold(table.name): table for table in tables}
    for table in tables:
        if isinstance(key := table.unit, ForeignKey):
            means = known[fold(key.table)]
            if not any(is_same(column.name, key.key) for column in means.columns):
                raise DataError(
                    f"table {means.name!r} has no column {key.key!r}, which {key.column!r} of "
                    f"table {table.name!r} means. Name the key in its declaration."
                )
            here, there = _type(table, key.column), _type(means, key.key)
            _check_form(table.name, key.column, here)
            _check_same((table.name, key.column, here), (means.name, key.key, there))


def _type(table: Table, name: str) -> str:
    return next(column.type for column in table.columns if is_same(column.name, name))


def _check_form(table: str, name: str, type_: str) -> None:
    if exact_form(type_) is None:
        raise DataError(
            f"column {name!r} of table {table!r} has the type {type_}, which cannot say "
            "whose rows they are. Use a column of numbers, texts, dates or timestamps."
        )


def _check_same(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    if common_form([one[2], other[2]]) is None:
        raise DataError(
            f"column {one[1]!r} has the type {one[2]} in table {one[0]!r} and {other[1]!r} "
            f"{other[2]} in table {other[0]!r}, so they could not be compared exactly. Give both "
            "the same type; only integers may differ in size."
        )
