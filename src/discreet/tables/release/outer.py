"""The query over released answers: run on them, and tried on none before anything is paid."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DataError, Refused
from discreet.tables.engines.post_processing import OuterQuery, empty_answer
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.catalog import Catalog, Table
from discreet.tables.model.composite import ROW, Composite, released_name
from discreet.tables.model.filling import ReleasedLookup
from discreet.tables.model.relation import Scan, Select
from discreet.tables.model.scalar import ColumnRef, Literal
from discreet.tables.model.types import Type
from discreet.tables.sql.expressions.term import tidy, total_column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_outer", "looked_up", "outer_columns"]


def check_outer(
    composite: Composite, catalog: Catalog, connection: Connection
) -> "dict[str, pa.ChunkedArray]":
    """Return the columns that an answer would have, as they look without rows.

    What cannot be computed of released answers is refused: names and types that do not fit.
    """
    try:
        none = [empty_answer(one) for one in composite.parts]
        return outer_columns(composite, none, catalog, connection)[0]
    except DataError as error:
        why = str(error)
    raise Refused(
        code="outer",
        line=1,
        column=1,
        reason=f"what is asked of the released values cannot be computed. {why}",
        remedy="Check names and types in the outer query; each inner one can be asked by itself.",
    )


def outer_columns(
    composite: Composite, tables: "Sequence[pa.Table]", catalog: Catalog, connection: Connection
) -> "tuple[dict[str, pa.ChunkedArray], tuple[Any, Any] | None]":
    """Return the columns of the outer query by name, and the part and row of each of its rows."""
    import pyarrow as pa

    found = _asked(composite.outer, composite, tables, catalog, connection)
    columns, names = found.columns, found.column_names
    rows = None
    if composite.is_traced:
        *columns, part, row = columns
        names = names[:-2]
        rows = (part.fill_null(-1).to_numpy(), row.fill_null(-1).to_numpy())
    for name, column in zip(names, columns, strict=True):
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise DataError(f"{name} is no number, text, truth value or time")
    unique: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(names, columns, strict=True):
        new, number = name, 1
        while new in unique:
            new, number = f"{name}_{number}", number + 1
        unique[new] = column
    return unique, rows


def looked_up(
    lookup: ReleasedLookup,
    composite: Composite,
    tables: "Sequence[pa.Table]",
    catalog: Catalog,
    connection: Connection,
) -> tuple[Literal, ...]:
    """Return what a later part compares with, from the answers of the parts before it."""
    import pyarrow as pa

    column = _asked(lookup.sql, composite, tables, catalog, connection).column(0)
    if lookup.type in ("date", "timestamp"):
        column = column.cast(pa.string())
    found = tuple(_literal(value, lookup.type) for value in column.to_pylist())
    if lookup.is_list:
        return tuple(dict.fromkeys(found))
    return found[:1] or (Literal(None, lookup.type),)


def _literal(value: Any, type_: Type) -> Literal:
    """Return a released value as a literal: NULL where none can be written."""
    if type_ == "double" and value is not None:
        value = float(value) if math.isfinite(value) else None
    elif type_ == "text" and value is not None and "\0" in value:
        value = None
    elif type_ in ("date", "timestamp") and value is not None:
        try:
            datetime.fromisoformat(value)
        except ValueError:  # beyond the years 1 to 9999
            value = None
    return Literal(value, type_)


def _asked(
    sql: str,
    composite: Composite,
    tables: "Sequence[pa.Table]",
    catalog: Catalog,
    connection: Connection,
) -> "pa.Table":
    import pyarrow as pa

    public = {table.name: table for table in catalog.tables if table.is_public}
    ask = OuterQuery(sql, {name: _public(public[name], connection) for name in composite.public})
    return ask(
        {
            released_name(i): one.append_column(ROW, pa.array(np.arange(one.num_rows)))
            for i, one in enumerate(tables)
        }
    )


def _public(table: Table, connection: Connection) -> "pa.Table":
    """Return a public table as questions see it."""
    terms = [(c.name, total_column(ColumnRef(c.name), c.type)) for c in table.columns]
    columns = tuple((name, tidy(term)) for name, term in terms if term is not None)
    return connection.rows(Select(Scan(table.name), columns)).reveal_without_noise()
