"""The rows of a protected table as arrays, for whoever computes with them under the same budget.

Reading is no release: what is returned is as private as the table. Columns look as they do to
questions, so that declared keys and bounds mean the same here and there.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError
from discreet.privacy import Sensitive
from discreet.tables.engines.protocol import Engine
from discreet.tables.engines.sources import Sources, check_public, open_sources
from discreet.tables.model.relation import UNIT as UNIT_COLUMN
from discreet.tables.model.relation import Scan, Select
from discreet.tables.model.scalar import Call, Cast, ColumnRef, Scalar
from discreet.tables.model.types import without_labels
from discreet.tables.model.unit_forms import exact_form, exact_unit
from discreet.tables.sql.expressions.term import tidy, total_column

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.protected import Protected

__all__ = ["UNIT", "read_public", "read_rows"]

Columns = dict[str, npt.NDArray[Any]]
UNIT = ""  # the key of the units' numbers among the columns: no column is called so
_HELD_OUT = "held-out"


def read_rows(protected: "Protected", columns: Sequence[str], *, table: str) -> Sensitive[Columns]:
    """Return columns of a protected table, and numbers for its units under :data:`UNIT`.

    Numbers are float64, NULL being NaN; everything else are objects: texts, truth values, dates
    as ISO texts, NULL being None. Rows that belong to nobody are left out. Two rows have the same
    number of a unit if, and only if, they have the same unit; the numbers mean nothing else.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     read_rows(T, ["age", "sex"], table="people")
    Sensitive(<redacted>)
    """
    protected.refresh()
    types = protected.tables[table]
    parts = _columns(table, columns, types)
    unit = protected.catalog.unit
    where: tuple[Scalar, ...] = ()
    if unit.name is not None:
        named = protected.declaration.unit_column(table)
        if named is None:
            raise ParameterError(
                f"table {table!r} reaches its unit through another table; rows are read of tables "
                "that have the unit's column.",
                parameter="table",
            )
        own = next(one for one in types if one.casefold() == named.casefold())
        whose = exact_unit(ColumnRef(own), types[own], exact_form(types[own]) or "VARCHAR")
        # As a text, since not all types of units have their like in arrays.
        parts.append((UNIT_COLUMN, Cast(whose, "text", widens=True)))
        where = (Call("not", (Call("is_null", (whose,)),)),)
    found = _run(protected._sources, Select(Scan(table), tuple(parts), where))
    arrays = _arrays(found, columns)
    if unit.name is not None:
        arrays[UNIT] = _numbered(found[UNIT_COLUMN])
    return Sensitive(arrays)


def read_public(
    protected: "Protected", columns: Sequence[str], *, table: str, place: str
) -> Columns:
    """Return columns of a file that is declared public, in the form of a protected table.

    Data that is protected is refused, also under another name of the same file.
    """
    known = {one: type_ for one, type_ in protected.tables[table].items() if one in columns}
    public = _opened_public(place, known, protected._sources.engine)
    check_public([*protected._sources.values(), public[_HELD_OUT]])
    types = dict(public[_HELD_OUT].columns)
    missing = [one for one in columns if one not in types]
    if missing:
        raise DataError(f"{place} has no column {missing[0]!r}, which the model needs.")
    select = Select(Scan(_HELD_OUT), tuple(_columns(_HELD_OUT, columns, types)))
    return _arrays(_run(public, select), columns)


def _opened_public(place: str, types: Mapping[str, str], engine: Engine) -> Sources:
    """Open what is public with the engine of the tables, or as a file that lies here."""
    try:
        return open_sources({}, public={_HELD_OUT: place}, types={_HELD_OUT: types}, engine=engine)
    except DataError:
        if not Path(place).expanduser().exists():
            raise
    return open_sources({}, public={_HELD_OUT: place}, types={_HELD_OUT: types})


def _columns(
    table: str, columns: Sequence[str], types: Mapping[str, str]
) -> list[tuple[str, Scalar]]:
    return [(f"c{i}", _column(table, one, types)) for i, one in enumerate(columns)]


def _column(table: str, column: str, types: Mapping[str, str]) -> Scalar:
    term = total_column(ColumnRef(column), types[column])
    if term is None:
        raise ParameterError(
            f"column {column!r} of table {table!r} has the type {without_labels(types[column])}, "
            "which cannot be used.",
            parameter="columns",
        )
    return tidy(term)


def _run(sources: Sources, select: Select) -> "pa.Table":
    with closing(sources.connected()) as engine:
        return engine.rows(select).reveal_without_noise()  # whoever reads wraps them again


def _numbered(units: "pa.ChunkedArray") -> npt.NDArray[Any]:
    """Return a number for each unit; a text could be cut short on its way into an array."""
    indices = units.cast("large_string").combine_chunks().dictionary_encode().indices
    return np.asarray(indices.to_numpy(), dtype=np.int64)


def _arrays(found: "pa.Table", columns: Sequence[str]) -> Columns:
    return {one: _array(found[f"c{i}"]) for i, one in enumerate(columns)}


def _array(column: "pa.ChunkedArray") -> npt.NDArray[Any]:
    if str(column.type).startswith(("int", "uint", "double", "float")):
        return np.asarray(column.cast("float64", safe=False).to_numpy(), dtype=np.float64)
    values = [
        one.isoformat() if isinstance(one, date | time) else one for one in column.to_pylist()
    ]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
