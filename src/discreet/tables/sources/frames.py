"""Frames of any library as Arrow tables, without copies where the library allows it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from discreet.errors import DataError
from discreet.tables.sources.names import columns_checked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["as_arrow", "check_texts"]


def as_arrow(name: str, given: object, *, hint: str = "") -> "pa.Table":
    """Return a frame as an Arrow table. Whatever goes wrong, no value is shown.

    ``hint`` says what an engine takes for a table.

    >>> import numpy as np
    >>> as_arrow("people", {"age": np.array([1.0, 2.0])}).column_names
    ['age']
    """
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if isinstance(given, Mapping):
        return _from_columns(name, given)
    module = type(given).__module__.partition(".")[0]
    if module == "pandas":
        return _from_pandas(name, given)
    if module == "polars" and hasattr(given, "collect"):
        given = given.collect()
    failure = f"table {name!r} could not be read as an Arrow table. Check the types of its columns."
    table = None
    try:
        if hasattr(given, "__arrow_c_stream__"):
            table = pa.table(given)
        elif hasattr(given, "to_arrow_table"):
            table = given.to_arrow_table()
        else:
            failure = f"table {name!r} is a {type(given).__name__}, and no source of tables. {hint}"
    except Exception:  # noqa: S110 - its message may show values, so it goes no further
        pass
    if not isinstance(table, pa.Table):
        raise DataError(failure)
    return table


def _from_columns(name: str, given: Mapping[object, object]) -> "pa.Table":
    columns_checked(name, list(given))
    arrays = {str(column): _array(name, str(column), values) for column, values in given.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        raise DataError(f"the columns of table {name!r} must have the same length.")
    import pyarrow as pa

    return pa.table(arrays)


def _from_pandas(name: str, given: object) -> "pa.Table":
    names = list(given.columns)  # type: ignore[attr-defined]
    columns_checked(name, names)
    import pyarrow as pa

    arrays = [_array(name, column, given[column]) for column in names]  # type: ignore[index]
    return pa.table(arrays, names=names)


def _array(table: str, column: str, values: object) -> "pa.Array | pa.ChunkedArray":
    import pyarrow as pa

    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"column {column!r} of table {table!r} must have one dimension.")
    array = None
    with suppress(Exception):  # its message may show values, so it goes no further
        array = pa.array(values)
    if array is None:
        raise DataError(
            f"column {column!r} of table {table!r} has values of several types, or of a type that "
            "Arrow does not know. Give all of them one type."
        )
    return array


def check_texts(name: str, table: "pa.Table") -> None:
    """Refuse columns that are not what they say: bytes that are no text would show up in errors."""
    import pyarrow as pa

    for column, values in zip(table.column_names, table.columns, strict=True):
        is_sound = True
        try:
            values.validate(full=True)
        except pa.ArrowException:
            is_sound = False
        if not is_sound:
            raise DataError(
                f"column {column!r} of table {name!r} has texts that are no UTF-8, or values that "
                "its type does not allow. Repair them where they come from."
            )
