"""Where tables come from: files, frames and databases, opened without looking at their rows."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, final

from discreet.errors import DataError, ParameterError
from discreet.tables.sources.files import expand, fingerprint, kind_of, open_csv, open_parquet
from discreet.tables.sources.frames import as_arrow, content
from discreet.tables.sources.sql_text import described, names_checked, quoted, text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Source", "Sources", "open_sources"]

SourceKind = Literal["parquet", "csv", "frame", "database"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One table that can be read again and again.

    ``columns`` are names and DuckDB's names of types; ``version`` changes when the data does;
    ``identities`` say which data it is, for the ledger: absolute paths, or a digest of a frame.
    ``location`` is what a declaration writes down, None for frames.

    >>> import numpy as np
    >>> people = open_sources({"people": {"user_id": np.arange(3)}})["people"]
    >>> people.columns, people.kind, people.location
    ((('user_id', 'BIGINT'),), 'frame', None)
    """

    name: str
    kind: SourceKind
    columns: tuple[tuple[str, str], ...]
    version: str
    identities: tuple[str, ...]
    location: str | tuple[str, ...] | None
    is_public: bool
    reader: str = field(repr=False)  # what a SELECT reads from
    paths: tuple[str, ...] = field(default=(), repr=False)
    given: object = field(default=None, repr=False, compare=False)
    frame: "pa.Table | None" = field(default=None, repr=False, compare=False)

    def has_changed(self) -> bool:
        """Say whether files differ from when they were opened. Frames never change."""
        if self.kind == "frame":
            return False
        try:
            paths = self.paths if self.kind == "database" else expand(self.given, name=self.name)
            now = fingerprint(paths or (), with_footers=self.kind == "parquet")
        except (DataError, OSError):
            return True
        return now != self.version

    def reopened(self) -> "Source":
        """Open the same place again: a new version if the data changed.

        A column that is gone or has another type is a DataError that names it; new columns are
        welcome.
        """
        types = dict(self.columns) if self.kind == "csv" else None
        now = _opened(self.name, self.given, is_public=self.is_public, types=types)
        found = dict(now.columns)
        for column, kind in self.columns:
            if column not in found:
                raise DataError(
                    f"table {self.name!r} no longer has the column {column!r}. Restore it, or "
                    "protect the table anew."
                )
            if found[column] != kind:
                raise DataError(
                    f"column {column!r} of table {self.name!r} was of type {kind} and now is of "
                    f"type {found[column]}. Restore it, or protect the table anew."
                )
        return now


@final
@dataclass(frozen=True, slots=True)
class Sources(Mapping[str, Source]):
    """All tables of one population by name; see :func:`open_sources`.

    >>> import numpy as np
    >>> list(open_sources({"people": {"user_id": np.arange(3)}}))
    ['people']
    """

    tables: Mapping[str, Source]

    def __getitem__(self, name: str, /) -> Source:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def version(self) -> str:
        """A digest of all versions."""
        lines = sorted(f"{name}\0{table.version}" for name, table in self.tables.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def has_changed(self) -> bool:
        """Say whether any table has."""
        return any(table.has_changed() for table in self.tables.values())

    def reopened(self) -> "Sources":
        """Open all tables again."""
        now = {name: table.reopened() for name, table in self.tables.items()}
        _check_public(now.values())
        return Sources(now)


def open_sources(
    tables: Mapping[str, object],
    *,
    public: Mapping[str, object] | None = None,
    types: Mapping[str, Mapping[str, str]] | None = None,
) -> Sources:
    """Open tables by name, reading their columns' names and types.

    A table is a path, glob, folder or list of paths of Parquet or CSV files (``.gz`` too), a
    DuckDB database's table (``"file.duckdb::table"`` or a pair), an Arrow, pandas or Polars frame,
    or a dict of one-dimensional NumPy arrays. ``public`` are tables that nobody's privacy depends
    on. Files are scanned when they are asked about, never copied.

    A CSV file has no types. ``types`` declares them by table and column; any others are guessed
    from the file once, here: the guess depends on the rows, so look at it before it is
    written into a declaration, which is public. Fields that do not fit their type are NULL. Every
    line is a row, also one that ends within quotes: were a field allowed to go on in the next
    lines, one row could swallow others. So write texts with line breaks to Parquet instead.

    Texts are told apart by their letters, whatever collation a database gives them. A view of a
    database can be public but not protected, as its rows may depend on several people. Nor can the
    same data be both.

    >>> import pyarrow as pa
    >>> tables = open_sources({"people": pa.table({"user_id": [1, 2], "region": ["a", "b"]})})
    >>> tables["people"].columns
    (('user_id', 'BIGINT'), ('region', 'VARCHAR'))
    """
    found: dict[str, Source] = {}
    folded: set[str] = set()
    for is_public, group in ((False, tables), (True, public or {})):
        for name, given in group.items():
            if not name or "\0" in name or '"' in name:
                raise ParameterError(
                    "a table's name must be a text without quotes.", parameter="name"
                )
            if name.casefold() in folded:
                raise ParameterError(
                    f"two tables are named {name!r} (capital letters do not count).",
                    parameter="name",
                )
            folded.add(name.casefold())
            known = (types or {}).get(name)
            found[name] = _opened(name, given, is_public=is_public, types=known)
    _check_public(found.values())
    return Sources(found)


def _check_public(tables: Iterable[Source]) -> None:
    """Refuse data that is protected and public at once."""
    seen: dict[str, str] = {}
    for table in sorted(tables, key=lambda one: one.is_public):
        for identity in (*table.identities, *_places(table)):
            if table.is_public and identity in seen:
                raise ParameterError(
                    f"the public table {table.name!r} reads the same data as the protected table "
                    f"{seen[identity]!r}. Public tables are shown without noise: leave it out, or "
                    "write what really is public into a file of its own.",
                    parameter="public",
                )
            if not table.is_public:
                seen[identity] = table.name


def _places(table: Source) -> Iterator[str]:
    """Tell files by where they are on the disk, so that a second name of one is noticed."""
    tables = [one.partition("::")[2] for one in table.identities if table.kind == "database"]
    for path in table.paths:
        state = os.stat(path)
        yield ":".join(map(str, ("inode", state.st_dev, state.st_ino, *tables)))


def _opened(
    name: str, given: object, *, is_public: bool, types: Mapping[str, str] | None
) -> Source:
    database = _as_database(given)
    if database is not None:
        source = _database(name, database, is_public=is_public)
    elif (paths := expand(given, name=name)) is not None:
        source = _files(name, given, paths, types)
    else:
        source = _frame(name, given)
    names_checked(name, [column for column, _ in source.columns])
    return replace(source, is_public=is_public, given=given)


def _files(
    name: str, given: object, paths: tuple[str, ...], types: Mapping[str, str] | None
) -> Source:
    import duckdb

    kind = kind_of(paths, name=name)
    opened = None
    with duckdb.connect(":memory:") as connection:
        try:
            if kind == "parquet":
                opened = open_parquet(connection, name, paths)
            else:
                opened = open_csv(connection, name, paths, types)
        except (duckdb.Error, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
    if opened is None:
        raise DataError(f"table {name!r}: its files cannot be read as {kind}.")
    reader, columns = opened
    if isinstance(given, list | tuple):
        location: str | tuple[str, ...] = tuple(str(item) for item in given)
    else:
        location = str(given)
    return Source(
        name=name,
        kind=kind,
        columns=columns,
        version=fingerprint(paths, with_footers=kind == "parquet"),
        identities=paths,
        location=location,
        is_public=False,
        reader=reader,
        paths=paths,
    )


def _as_database(given: object) -> tuple[str, str] | None:
    """Return the file and the table of a DuckDB database, however it was written."""
    if isinstance(given, str) and "::" in given:
        path, _, table = given.partition("::")
        return path, table
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(x, str) for x in given):
        path, table = given
        if path.endswith((".duckdb", ".db", ".ddb")):
            return path, table
    return None


def _database(name: str, given: tuple[str, str], *, is_public: bool) -> Source:
    import duckdb

    paths = expand(given[0], name=name)
    if paths is None or len(paths) != 1:
        raise DataError(f"table {name!r}: a database is one file.")
    alias, parts = database_alias(paths[0]), given[1].split(".")
    place = ".".join(quoted(part) for part in (alias, *parts))
    found = None
    columns: tuple[tuple[str, str], ...] = ()
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(attach(paths[0]))
            columns = described(connection, place)
            found = connection.execute(_KIND, [alias, *["main", *parts][-2:]]).fetchone()
        except duckdb.Error:
            pass
    if found is None:
        raise DataError(
            f"table {name!r}: {given[0]!r} has no table {given[1]!r}, is no DuckDB database, or "
            "is open for writing elsewhere."
        )
    is_view, schema, table = found
    if is_view and not is_public:
        raise DataError(
            f"table {name!r}: {given[1]!r} is a view, and one row of a view may depend on several "
            "people. Export it to a file where each row is about one of them, or protect its base "
            "tables."
        )
    # With a collation, equal texts may look different: units would merge, and a key would be shown
    # as one of them wrote it.
    shown = ", ".join(
        f'{quoted(column)} COLLATE "binary" AS {quoted(column)}'
        if kind == "VARCHAR"
        else quoted(column)
        for column, kind in columns
    )
    return Source(
        name=name,
        kind="database",
        columns=columns,
        version=fingerprint(paths, with_footers=False),
        identities=(f"{paths[0]}::{schema}.{table}",),
        location=f"{given[0]}::{given[1]}",
        is_public=False,
        reader=f"(SELECT {shown} FROM {place})",  # noqa: S608
        paths=paths,
    )


_KIND = """
    SELECT is_view, schema_name, table_name FROM (
        SELECT FALSE AS is_view, database_name, schema_name, table_name FROM duckdb_tables()
        UNION ALL
        SELECT TRUE, database_name, schema_name, view_name FROM duckdb_views()
    ) WHERE database_name = ? AND LOWER(schema_name) = LOWER(?) AND LOWER(table_name) = LOWER(?)
"""


def database_alias(path: str) -> str:
    """Return the name under which a database file is attached."""
    return "database_" + hashlib.sha256(path.encode()).hexdigest()[:16]


def attach(path: str) -> str:
    """Return the statement that opens a database file without the right to change it."""
    return f"ATTACH IF NOT EXISTS {text(path)} AS {quoted(database_alias(path))} (READ_ONLY)"


def _frame(name: str, given: object) -> Source:
    table = as_arrow(name, given)
    columns, digest = content(name, table)
    return Source(
        name=name,
        kind="frame",
        columns=columns,
        version=digest,
        identities=(f"frame:{digest}",),
        location=None,
        is_public=False,
        reader=quoted(name),
        frame=table,
    )
