"""Parquet and CSV files as DuckDB reads them, and the types of CSV files."""

import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted, text
from discreet.tables.engines.duckdb.arrow_files import by_arrow, coarse_times
from discreet.tables.engines.duckdb.csv_lines import lines
from discreet.tables.engines.duckdb.schema import described
from discreet.tables.sources.names import columns_checked

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

__all__ = ["OpenedFiles", "open_csv", "open_parquet"]

_GUESSES = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
# A cast would round 0.5 and call it whole, and cut the clock off a moment and call it a day.
_SPELLED = {"BIGINT": "[+-]?[0-9]+", "DATE": "[^:]*"}
_NEARLY = 0.9  # of the fields that are not empty: a few bad ones are NULL
_LONGEST_HEADER = 1 << 20  # characters
_SAMPLE = 20_480  # lines from which the types of a CSV file are guessed


class OpenedFiles(NamedTuple):
    """What a SELECT reads from, the columns, and what Arrow reads where DuckDB does not."""

    reader: str
    columns: tuple[tuple[str, str], ...]
    frame: "ds.Dataset | None" = None


def open_parquet(
    connection: "duckdb.DuckDBPyConnection", name: str, paths: Sequence[str], *, alias: str
) -> OpenedFiles:
    """Return what to read from, and the columns. All files must have the same ones."""
    import pyarrow.parquet as pq

    for path in paths:
        schema = pq.read_schema(path)
        columns_checked(name, list(schema.names))
        one = described(connection, _parquet([path])), coarse_times(schema)
        if path == paths[0]:
            first = one
        elif one != first:
            raise DataError(
                f"table {name!r}: its files have different columns or types of columns. Write "
                "them alike, or protect them as tables of their own."
            )
    columns, units = first
    if units:
        reader, frame = by_arrow(alias, paths, columns, units)
        return OpenedFiles(reader, columns, frame)
    return OpenedFiles(_parquet(paths), columns)


def _parquet(paths: Sequence[str]) -> str:
    # A folder like u=1 would otherwise replace the files' own column of that name; and bytes that
    # are no text would make every question about their column fail.
    files = ", ".join(text(path) for path in paths)
    return f"read_parquet([{files}], hive_partitioning = false, utf8_validation = 'replace')"


def open_csv(
    connection: "duckdb.DuckDBPyConnection",
    name: str,
    paths: Sequence[str],
    types: Mapping[str, str] | None,
) -> OpenedFiles:
    """Return what to read from, and the columns: of the declared types, else of guessed ones.

    The first line names the columns, and only it tells how fields are separated: were that guessed
    from the rows, one row could change how all others are read. For the same reason every line is
    a row: see :func:`discreet.tables.engines.duckdb.csv_lines.lines`.
    """
    names, delimiter = _header(paths[0])
    columns_checked(name, names)
    for path in paths[1:]:
        if _header(path) != (names, delimiter):
            raise DataError(
                f"table {name!r}: its files do not begin with the same line of names. Write them "
                "alike, or protect them as tables of their own."
            )
    fields = lines(paths, names, delimiter)
    known = {column.casefold(): kind for column, kind in (types or {}).items()}
    unknown = [column for column in names if column.casefold() not in known]
    known |= {c.casefold(): kind for c, kind in _guessed(connection, fields, unknown).items()}
    # A field that does not fit is NULL: an error would show it, and show that it is there.
    casts = ", ".join(
        quoted(column)
        if known[column.casefold()] == "VARCHAR"
        else f"{_cast(column, known[column.casefold()])} AS {quoted(column)}"
        for column in names
    )
    reader = f"(SELECT {casts} FROM {fields})"  # noqa: S608
    return OpenedFiles(reader, described(connection, reader))


def _header(path: str) -> tuple[list[str], str]:
    """Return the names in the first line, and what separates them."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline(_LONGEST_HEADER)
    separators = "\t" if ".tsv" in Path(path).suffixes else ",;\t|"
    delimiter = max(separators, key=first.count)
    names = next(csv.reader([first], delimiter=delimiter), [])
    return [column.strip() for column in names], delimiter


def _guessed(
    connection: "duckdb.DuckDBPyConnection", fields: str, columns: Sequence[str]
) -> dict[str, str]:
    """Guess types from the first rows: the first that nearly all fields fit."""
    if not columns:
        return {}
    asked = ", ".join(
        f"COUNT({quoted(column)})" + "".join(f", COUNT({_fit(column, kind)})" for kind in _GUESSES)
        for column in columns
    )
    head = f"(SELECT * FROM {fields} LIMIT {_SAMPLE})"  # noqa: S608
    counts = connection.execute(f"SELECT {asked} FROM {head}").fetchone()  # noqa: S608
    assert counts is not None
    width, found = len(_GUESSES) + 1, {}
    for i, column in enumerate(columns):
        filled, *fitting = counts[i * width : (i + 1) * width]
        fits = (kind for kind, n in zip(_GUESSES, fitting, strict=True) if n >= _NEARLY * filled)
        found[column] = next(fits, "VARCHAR") if filled else "VARCHAR"
    return found


def _cast(column: str, kind: str) -> str:
    return f"TRY_CAST({quoted(column)} AS {kind})"


def _fit(column: str, kind: str) -> str:
    """Return an expression that is NULL where a field is not written like this type."""
    if kind not in _SPELLED:
        return _cast(column, kind)
    is_spelled = f"REGEXP_FULL_MATCH(TRIM({quoted(column)}), {text(_SPELLED[kind])})"
    return f"CASE WHEN {is_spelled} THEN {_cast(column, kind)} END"
