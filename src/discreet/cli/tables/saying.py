"""What is said about columns on the command line: ``--bounds age=0,120 --keys sex=female,male``."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError
from discreet.tables import DeclaredColumn, read_bounds, read_keys

if TYPE_CHECKING:
    from discreet.tables import Declaration

__all__ = ["with_said"]

Schemas = Mapping[str, Mapping[str, str]]


def with_said(
    declaration: "Declaration",
    columns: Schemas,
    *,
    bounds: Iterable[str] | None,
    keys: Iterable[str] | None,
) -> "Declaration":
    """Return a declaration with bounds and keys as they were typed, in all tables that have them.

    >>> from discreet.cli.tables.wizard import propose
    >>> from discreet.privacy import Guarantee
    >>> columns = {"people": {"id": "BIGINT", "age": "BIGINT", "sex": "VARCHAR"}}
    >>> made = propose(columns, name="people", unit="id", guarantee=Guarantee(epsilon=3))
    >>> made = with_said(made, columns, bounds=["age=0,120"], keys=["sex=female,male"])
    >>> made.tables["people"].columns["age"].bounds, made.tables["people"].columns["sex"].keys
    ((0, 120), ('female', 'male'))
    """
    for text in bounds or ():
        declaration = _with_one(declaration, columns, text, "bounds")
    for text in keys or ():
        declaration = _with_one(declaration, columns, text, "keys")
    return declaration


def _with_one(
    declaration: "Declaration",
    columns: Schemas,
    text: str,
    what: str,
) -> "Declaration":
    column, _, told = text.partition("=")
    example = {"bounds": "age=0,120", "keys": "sex=female,male"}[what]
    if not told.strip():
        raise ParameterError(
            f"{what} must be a column and what is public about it, such as {example}.",
            parameter=what,
        )
    tables = dict(declaration.tables)
    named = [name for name in tables if column in columns[name]]
    if not named:
        listed = dict.fromkeys(c for name in tables for c in columns[name])
        raise ParameterError(f"{what} must name one of {', '.join(listed)}.", parameter=what)
    for name in named:
        known = tables[name].columns
        if what == "bounds":
            said: dict[str, Any] = {what: read_bounds(told).bounds}
        else:
            said = {what: read_keys(told, column_type=columns[name][column]).keys}
        one = replace(known.get(column, DeclaredColumn()), **said)
        tables[name] = replace(tables[name], columns={**known, column: one})
    return replace(declaration, tables=tables)
