"""Join what is declared with the columns that tables have."""

import difflib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import DataError, ParameterError
from discreet.privacy import Unit
from discreet.tables.declarations.column import DeclaredColumn, key_kind
from discreet.tables.declarations.names import fold
from discreet.tables.declarations.owners import check_types
from discreet.tables.model.catalog import Catalog, Column, ForeignKey, Table, column_kind
from discreet.tables.model.key_values import column_key_type, key_value
from discreet.tables.model.query import KeyValue
from discreet.tables.model.types import without_labels

if TYPE_CHECKING:
    from discreet.tables.declarations.declaration import Declaration, DeclaredTable

__all__ = ["join"]


def join(declaration: "Declaration", columns: Mapping[str, Mapping[str, str]]) -> Catalog:
    """Return what questions may rely on: see :meth:`Declaration.catalog`."""
    unit = declaration.unit
    made = []
    for is_public, group in ((False, declaration.tables), (True, declaration.public)):
        for name, declared in group.items():
            if name not in columns:
                raise DataError(f"table {name!r} is declared, but there is no source for it.")
            needed = [] if is_public else [_owner(declared, unit), unit.time]
            if isinstance(declared.unit, ForeignKey):
                needed = needed[:1]  # the other table has the time as well
            _check_columns(name, declared, columns[name], [one for one in needed if one])
            facts = {fold(own): facts for own, facts in declared.columns.items()}
            merged = [
                _column(name, own, without_labels(type_), facts.get(fold(own)))
                for own, type_ in columns[name].items()
            ]
            made.append(
                Table(name=name, columns=tuple(merged), is_public=is_public, unit=declared.unit)
            )
    if unit.name is not None:
        check_types([table for table in made if not table.is_public], unit.name)
    return Catalog(
        unit=unit,
        neighbours=declaration.neighbours,
        tables=tuple(made),
        rows=declaration.rows,
        groups=declaration.groups,
        joined_rows=declaration.joined_rows,
        size=declaration.size,
    )


def _owner(table: "DeclaredTable", unit: Unit) -> str | None:
    """Return the column of a protected table that says whose rows they are."""
    return table.unit.column if isinstance(table.unit, ForeignKey) else table.unit or unit.name


def _check_columns(
    table: str, declared: "DeclaredTable", found: Mapping[str, str], needed: Sequence[str]
) -> None:
    there = {fold(name) for name in found}
    for name in needed:
        if fold(name) not in there:
            near = difflib.get_close_matches(name, list(found), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise DataError(
                f"table {table!r} has no column {name!r}, which says whose rows they are.{hint} "
                "Every protected table needs it, another column of its own, or a foreign key of "
                "one that has it (units=); a table about nobody may be declared public. Where each "
                "row is one person, the unit is a record."
            )
    for name in declared.columns:
        if fold(name) not in there:
            raise DataError(
                f"column {name!r} of table {table!r} is declared, but the source no longer has "
                "it. Rename or remove it in the declaration."
            )


def _column(table: str, name: str, type_: str, facts: DeclaredColumn | None) -> Column:
    declared = facts or DeclaredColumn()
    path = f"tables.{table}.columns.{name}"
    kind = column_kind(type_)
    for word, said in (("bounds", declared.bounds), ("total", declared.total)):
        if said is not None and kind != "number":
            raise ParameterError(
                f"{path}.{word}: {word} are for numbers, and the column has the type {type_}."
                if word == "bounds"
                else f"{path}.{word}: a {word} is of numbers, and the column has the type {type_}.",
                parameter=f"{path}.{word}",
            )
    present = [key for key in declared.keys or () if key is not None]
    if present and key_kind(present[0]) != {"time": "text"}.get(kind, kind):
        raise ParameterError(
            f"{path}.keys: these keys do not fit the type {type_} of the column.",
            parameter=f"{path}.keys",
        )
    if kind == "time" and not all(_is_time(str(key), type_) for key in present):
        raise ParameterError(
            f"{path}.keys: keys of a column of the type {type_} must be texts in ISO form, such "
            "as 2026-01-31.",
            parameter=f"{path}.keys",
        )
    bounds = declared.bounds
    exactly = None if bounds is None else (Fraction(bounds[0]), Fraction(bounds[1]))
    total = None if declared.total is None else Fraction(declared.total)
    keys = _keys(path, type_, declared.keys)
    return Column(name=name, type=type_, bounds=exactly, keys=keys, total=total)


def _keys(path: str, type_: str, keys: tuple[KeyValue, ...] | None) -> tuple[KeyValue, ...] | None:
    """Return keys in the one way in which their type writes them."""
    key_type = column_key_type(type_)
    if keys is None or key_type is None:  # questions cannot use such a column
        return keys
    try:
        found = tuple(key_value(key, key_type) for key in keys)
    except ValueError:
        found = ()
    if not found:
        raise ParameterError(
            f"{path}.keys: not all of these keys are values of the type {type_} of the column.",
            parameter=f"{path}.keys",
        )
    if len(set(found)) != len(found):
        raise ParameterError(
            f"{path}.keys: two of these keys are the same value of the type {type_}.",
            parameter=f"{path}.keys",
        )
    return found


def _is_time(text: str, type_: str) -> bool:
    base = type_.upper()
    kind = date if base == "DATE" else datetime if base.startswith("TIMESTAMP") else time
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True
