"""Parquet and CSV files: which they are, what their columns are, and whether they changed."""

import csv
import glob
import gzip
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from discreet.errors import DataError
from discreet.tables.sources.csv_lines import lines
from discreet.tables.sources.sql_text import described, names_checked, quoted, text

if TYPE_CHECKING:
    import duckdb

__all__ = ["expand", "fingerprint", "kind_of", "open_csv", "open_parquet"]

_ENDINGS: dict[str, Literal["parquet", "csv"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
}
_GUESSES = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
_NEARLY = 0.9  # of the fields that are not empty: a few bad ones are NULL
_LONGEST_HEADER = 1 << 20  # characters
_SAMPLE = 20_480  # lines from which the types of a CSV file are guessed


def expand(given: object, *, name: str) -> tuple[str, ...] | None:
    """Return the files that a path, glob, folder or list of them names; None for anything else.

    >>> expand(3, name="people") is None
    True
    >>> expand("nowhere/*.parquet", name="people")
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: table 'people': there is no file 'nowhere/*.parquet'.
    """
    if isinstance(given, str | os.PathLike):
        given = (given,)
    if not isinstance(given, list | tuple) or not given:
        return None
    if not all(isinstance(item, str | os.PathLike) for item in given):
        return None
    found: list[str] = []
    for item in given:
        found += _files_of(os.fspath(item), name)
    return tuple(dict.fromkeys(found))


def _files_of(item: str, name: str) -> list[str]:
    path = Path(item).expanduser()
    if path.is_file():
        matches = [path]
    elif path.is_dir():
        matches = [file for file in path.rglob("*") if file.is_file() and _ending(file) is not None]
        matches = [file for file in matches if not file.name.startswith((".", "_"))]
    else:
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
        matches = [file for file in matches if file.is_file()]
    if not matches:
        raise DataError(f"table {name!r}: there is no file {item!r}.")
    absolute = sorted(str(file.resolve()) for file in matches)
    if any(set(file) & set("*?[]\0") for file in absolute):
        raise DataError(
            f"table {name!r}: a file's path has one of the signs * ? [ ], which are read as "
            "patterns. Rename it."
        )
    return absolute


def _ending(path: Path) -> Literal["parquet", "csv"] | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return _ENDINGS.get("".join(suffixes[-2:])) or _ENDINGS.get("".join(suffixes[-1:]))


def kind_of(paths: Sequence[str], *, name: str) -> Literal["parquet", "csv"]:
    """Tell Parquet from CSV by the files' endings.

    >>> kind_of(["a.csv.gz", "b.csv"], name="people")
    'csv'
    """
    kinds = {_ending(Path(path)) for path in paths}
    if kinds == {"parquet"}:
        return "parquet"
    if kinds == {"csv"}:
        return "csv"
    raise DataError(
        f"table {name!r}: files must all end in .parquet or all in .csv (.csv.gz, .tsv)."
    )


def fingerprint(paths: Sequence[str], *, with_footers: bool) -> str:
    """Digest the paths, sizes and times of files, and Parquet's footers; rows are not read."""
    digest = hashlib.sha256()
    for path in paths:
        state = os.stat(path)
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        if with_footers:
            digest.update(_footer(path, state.st_size))
    return digest.hexdigest()


def _footer(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little") + 8
        file.seek(max(0, size - length))
        return hashlib.sha256(file.read(min(length, size))).digest()


def open_parquet(
    connection: "duckdb.DuckDBPyConnection", name: str, paths: Sequence[str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what to read from, and the columns. All files must have the same ones."""
    import pyarrow.parquet as pq

    for path in paths:
        names_checked(name, list(pq.read_schema(path).names))
        one = described(connection, f"read_parquet({text(path)}, hive_partitioning = false)")
        if path == paths[0]:
            first = one
        elif one != first:
            raise DataError(
                f"table {name!r}: its files have different columns or types of columns. Write "
                "them alike, or protect them as tables of their own."
            )
    files = ", ".join(text(path) for path in paths)
    # A folder like u=1 would otherwise replace the files' own column of that name.
    reader = f"read_parquet([{files}], hive_partitioning = false)"
    return reader, first


def open_csv(
    connection: "duckdb.DuckDBPyConnection",
    name: str,
    paths: Sequence[str],
    types: Mapping[str, str] | None,
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what to read from, and the columns: of the declared types, else of guessed ones.

    The first line names the columns, and only it tells how fields are separated: were that guessed
    from the rows, one row could change how all others are read. For the same reason every line is
    a row: see :func:`discreet.tables.sources.csv_lines.lines`.
    """
    names, delimiter = _header(paths[0])
    names_checked(name, names)
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
    return reader, described(connection, reader)


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
    if kind != "BIGINT":
        return _cast(column, kind)
    # A cast would round 0.5 and call it whole.
    whole = f"REGEXP_FULL_MATCH(TRIM({quoted(column)}), '[+-]?[0-9]+')"
    return f"CASE WHEN {whole} THEN {_cast(column, kind)} END"
