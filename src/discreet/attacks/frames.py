"""Data to attack, however it is held: files, frames and dicts as Arrow tables for DuckDB."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["chosen", "connected", "quoted", "read"]

_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".csv.gz": "read_csv"}


def read(data: object, *, name: str = "data") -> "pa.Table":
    """Return a Parquet or CSV file, a frame of any library or a dict of columns as a table.

    >>> read({"age": [1, 2]}).column_names
    ['age']
    """
    import pyarrow as pa

    if isinstance(data, str | PathLike):
        table = _from_file(fspath(data), name)
    elif isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "to_arrow"):  # polars, and whatever else speaks Arrow
        table = data.to_arrow()
    else:
        table = _from_columns(data, name)
    if not table.num_rows or not table.num_columns:
        raise DataError(f"{name} is empty. An attack needs rows to look at.")
    names = [one.lower() for one in table.column_names]  # the database tells no A from an a
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"{name} has two columns of the name {twice[:60]!r}. Rename one of them.")
    return table


def _from_file(path: str, name: str) -> "pa.Table":
    import duckdb

    reader = next((one for ending, one in _READERS.items() if path.lower().endswith(ending)), None)
    if reader is None:
        raise ParameterError(
            f"{name} must be a .parquet, .csv or .csv.gz file, got {path[:80]!r}.", parameter=name
        )
    try:
        with connected({}) as run:
            return run.sql(f"FROM {reader}(?)", params=[path]).to_arrow_table()
    except (duckdb.Error, UnicodeError):  # whose words may show a value
        raise DataError(
            f"{name} cannot be read from {path[:80]!r} as {reader.removeprefix('read_')}. Check "
            "that the file is there and whole."
        ) from None


def _from_columns(data: object, name: str) -> "pa.Table":
    import pyarrow as pa

    try:
        if isinstance(data, Mapping):
            return pa.table(dict(data))
        return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError, ValueError):
        raise DataError(
            f"{name} must be a file, an Arrow, pandas or Polars frame, or a dict of equally long "
            f"columns, each of one type and with a name of its own, got {type(data).__name__}."
        ) from None


def chosen(table: "pa.Table", columns: Sequence[str], *, name: str) -> list[str]:
    """Return the columns asked for, all of which the table has, each once.

    >>> chosen(read({"age": [1], "sex": ["f"]}), ["sex"], name="quasi")
    ['sex']
    """
    asked = list(dict.fromkeys([columns] if isinstance(columns, str) else columns))
    unknown = [one for one in asked if one not in table.column_names]
    if unknown or not asked:
        what = f"knows no column {str(unknown[0])[:60]!r}" if unknown else "must name a column"
        known = ", ".join(table.column_names[:12])
        raise ParameterError(f"{name} {what}. The columns are {known}.", parameter=name)
    return asked


def quoted(name: str) -> str:
    """Return a name as SQL writes it.

    >>> quoted('a "b" c')
    '"a ""b"" c"'
    """
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def connected(tables: "Mapping[str, pa.Table]") -> Iterator[Any]:
    """Open an empty database that sees the tables under their names.

    >>> with connected({"people": read({"age": [1, 2]})}) as run:
    ...     run.execute("SELECT sum(age) FROM people").fetchone()
    (3,)
    """
    import duckdb

    run = duckdb.connect()
    try:
        for name, table in tables.items():
            run.register(name, table)
        yield run
    finally:
        run.close()
