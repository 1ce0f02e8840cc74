"""What DuckDB takes for a table, looked at without its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted
from discreet.tables.engines.duckdb.databases import as_database, open_database
from discreet.tables.engines.duckdb.files import open_csv, open_parquet
from discreet.tables.engines.duckdb.frames import content
from discreet.tables.engines.duckdb.pinning import PinnedFiles
from discreet.tables.sources.files import expand, fingerprint, format_of, inodes
from discreet.tables.sources.frames import as_arrow
from discreet.tables.sources.names import columns_checked
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = ["Reading", "look", "reading_of", "version"]

_HINT: Final = (
    "Give a path of Parquet or CSV files, 'file.duckdb::table', an Arrow, pandas or Polars frame, "
    "or a dict of NumPy arrays."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What DuckDB reads a table from: the SQL of it, and files or a frame that it stands for.

    A frame is registered under the name ``alias``; it may also be files that Arrow reads.
    """

    reader: str  # what a SELECT reads from
    paths: tuple[str, ...] = ()
    files: PinnedFiles | None = None
    frame: "pa.Table | ds.Dataset | None" = None
    alias: str = ""


def reading_of(source: DataSource) -> Reading:
    """Return what :func:`look` kept for this engine."""
    if not isinstance(source.reading, Reading):
        raise DataError(f"table {source.name!r} was opened for another engine.")
    return source.reading


def look(
    name: str, given: object, *, is_public: bool = False, types: Mapping[str, str] | None = None
) -> DataSource:
    """Look at a database's table, at files or at a frame."""
    database = as_database(given)
    if database is not None:
        source = _database(name, database, is_public=is_public)
    elif (paths := expand(given, name=name)) is not None:
        source = _files(name, given, paths, types)
    else:
        source = _frame(name, given, types)
    columns_checked(name, [column for column, _ in source.columns])
    return replace(source, is_public=is_public, given=given)


def version(source: DataSource) -> str:
    """Return the version of a table now. Frames never change."""
    if source.kind == "frame":
        return source.version
    paths = reading_of(source).paths
    if source.kind != "database":
        paths = expand(source.given, name=source.name) or ()
    return fingerprint(paths, paths, with_footers=source.kind == "parquet")


def _files(
    name: str, given: object, paths: tuple[str, ...], types: Mapping[str, str] | None
) -> DataSource:
    import duckdb

    kind = format_of(paths, name=name)
    opened, files = None, PinnedFiles(paths)  # all that follows is about the same version
    alias = f"{name}\x1f"  # a sign that no table's name is likely to have
    with duckdb.connect(":memory:") as connection:
        try:
            if kind == "parquet":
                opened = open_parquet(connection, name, files.names, alias=alias)
            else:
                opened = open_csv(connection, name, files.names, types)
        except (duckdb.Error, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
    if opened is None:
        raise DataError(f"table {name!r}: its files cannot be read as {kind}.")
    reader, columns, frame = opened
    several = isinstance(given, list | tuple)
    return DataSource(
        name=name,
        kind=kind,
        columns=columns,
        version=fingerprint(paths, files.names, with_footers=kind == "parquet"),
        identities=paths,
        location=tuple(map(str, given)) if several else str(given),  # type: ignore[call-overload]
        untyped=tuple(column for column, _ in columns) if kind == "csv" else (),
        places=tuple(inodes(files.names)),
        reading=Reading(reader=reader, paths=files.names, files=files, frame=frame, alias=alias),
    )


def _database(name: str, given: tuple[str, str], *, is_public: bool) -> DataSource:
    paths = expand(given[0], name=name)
    if paths is None or len(paths) != 1:
        raise DataError(f"table {name!r}: a database is one file.")
    opened = open_database(name, given, paths[0], is_public=is_public)
    return DataSource(
        name=name,
        kind="database",
        columns=opened.columns,
        version=fingerprint(paths, paths, with_footers=False),
        identities=(f"{paths[0]}::{opened.table}",),
        location=f"{given[0]}::{given[1]}",
        places=tuple(inodes(paths, opened.table)),
        reading=Reading(reader=opened.reader, paths=paths),
    )


def _frame(name: str, given: object, types: Mapping[str, str] | None) -> DataSource:
    table, guessed = as_arrow(name, given, types=types, hint=_HINT)
    columns, digest = content(name, table)
    return DataSource(
        name=name,
        kind="frame",
        columns=columns,
        version=digest,
        identities=(f"frame:{digest}",),
        untyped=guessed,
        reading=Reading(reader=quoted(name), frame=table, alias=name),
    )
