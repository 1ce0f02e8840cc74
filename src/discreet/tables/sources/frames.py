"""Frames of any library as Arrow tables, without copies where the library allows it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import DataError
from discreet.tables.sources.arrow_columns import readable
from discreet.tables.sources.names import columns_checked
from discreet.tables.sources.objects import from_objects

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowFrame", "as_arrow"]


class ArrowFrame(NamedTuple):
    """A frame that any engine can read, and which of its columns had no type of their own."""

    table: "pa.Table"
    guessed: tuple[str, ...] = ()


def as_arrow(
    name: str, given: object, *, types: Mapping[str, str] | None = None, hint: str = ""
) -> ArrowFrame:
    """Return a frame as an Arrow table. Whatever goes wrong, no value is shown.

    No value makes it fail: one that its column cannot have is NULL. Columns of Python objects get
    the type that ``types`` gives them, else the one that nearly all objects have. ``hint`` says
    what an engine takes for a table.

    >>> import numpy as np
    >>> as_arrow("people", {"age": np.array([1.0, 2.0])}).table.column_names
    ['age']
    """
    import pyarrow as pa

    made = _made(name, given, types or {}, hint)
    columns_checked(name, made.table.column_names)
    columns = [
        readable(values, column=column, table=name)
        for column, values in zip(made.table.column_names, made.table.columns, strict=True)
    ]
    return made._replace(table=pa.table(columns, names=made.table.column_names))


def _made(name: str, given: object, types: Mapping[str, str], hint: str) -> ArrowFrame:
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return ArrowFrame(given)
    module = type(given).__module__.partition(".")[0]
    if isinstance(given, Mapping):
        return _from_columns(name, given, types)
    if module == "pandas":
        columns = list(given.columns)  # type: ignore[attr-defined]
        columns_checked(name, columns)
        return _from_columns(name, {one: given[one] for one in columns}, types)  # type: ignore[index]
    failure = f"table {name!r} could not be read as an Arrow table. Check the types of its columns."
    table = None
    try:
        if module == "polars" and hasattr(given, "collect"):
            given = given.collect()
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
    return ArrowFrame(table)


def _from_columns(name: str, given: Mapping[Any, object], types: Mapping[str, str]) -> ArrowFrame:
    columns_checked(name, list(given))
    known = {column.casefold(): type_ for column, type_ in types.items()}
    arrays, guessed = {}, []
    for column, values in given.items():
        if getattr(values, "ndim", 1) != 1:
            raise DataError(f"column {column!r} of table {name!r} must have one dimension.")
        type_ = known.get(column.casefold())
        array, is_typed = _array(values, type_)
        if array is None:
            array = from_objects(values, type_)  # type: ignore[arg-type]
        if not is_typed:
            guessed.append(column)
        arrays[column] = array
    if len({len(array) for array in arrays.values()}) > 1:
        raise DataError(f"the columns of table {name!r} must have the same length.")
    import pyarrow as pa

    return ArrowFrame(pa.table(arrays), tuple(guessed))


def _array(values: object, type_: str | None) -> "tuple[pa.Array | pa.ChunkedArray | None, bool]":
    """Return values as Arrow has them, None where they are to be taken one by one.

    And whether that is their own type: of objects Arrow takes it from the values, and any one of
    them may change it. Only if all of them are texts there is no other choice.
    """
    import pyarrow as pa

    is_object = str(getattr(values, "dtype", "object")) == "object"
    array = None
    with suppress(Exception):  # its message may show values, so it goes no further
        array = pa.array(values, from_pandas=True if is_object else None)
    is_text = type_ in (None, "VARCHAR") and array is not None and pa.types.is_string(array.type)
    return (array if is_text or not is_object else None), array is not None and not is_object
