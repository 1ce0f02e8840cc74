"""Tables of DuckDB's own files, opened without the right to change them."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, final

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted, text
from discreet.tables.engines.duckdb.schema import described
from discreet.tables.sources.files import fingerprint

if TYPE_CHECKING:
    import duckdb

__all__ = ["HeldDatabases", "OpenedTable", "as_database", "attach", "open_database"]

_KIND: Final = """
    SELECT is_view, schema_name, table_name FROM (
        SELECT FALSE AS is_view, database_name, schema_name, table_name FROM duckdb_tables()
        UNION ALL
        SELECT TRUE, database_name, schema_name, view_name FROM duckdb_views()
    ) WHERE database_name = ? AND LOWER(schema_name) = LOWER(?) AND LOWER(table_name) = LOWER(?)
"""


_PAUSES: Final = (0.05, 0.2, 0.8)  # seconds, for others to finish writing


class OpenedTable(NamedTuple):
    """What a SELECT reads from, the columns, and the table's full name."""

    reader: str
    columns: tuple[tuple[str, str], ...]
    table: str


def as_database(given: object) -> tuple[str, str] | None:
    """Return the file and the table of a DuckDB database, however it was written.

    >>> as_database("people.duckdb::visits"), as_database("people.parquet")
    (('people.duckdb', 'visits'), None)
    """
    if isinstance(given, str) and "::" in given:
        path, _, table = given.partition("::")
        return path, table
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(x, str) for x in given):
        path, table = given
        if path.endswith((".duckdb", ".db", ".ddb")):
            return path, table
    return None


def open_database(name: str, given: tuple[str, str], path: str, *, is_public: bool) -> OpenedTable:
    """Look at a table of the file at ``path``; a view only if it is public."""
    import duckdb

    alias, parts = _alias(path), given[1].split(".")
    place = ".".join(quoted(part) for part in (alias, *parts))
    found = None
    columns: tuple[tuple[str, str], ...] = ()
    with duckdb.connect(":memory:") as connection, suppress(duckdb.Error):
        if _is_possible(lambda: connection.execute(attach(path))):
            columns = described(connection, place)
            found = connection.execute(_KIND, [alias, *["main", *parts][-2:]]).fetchone()
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
    return OpenedTable(f"(SELECT {shown} FROM {place})", columns, f"{schema}.{table}")  # noqa: S608


def attach(path: str) -> str:
    """Return the statement that opens a database file without the right to change it."""
    return f"ATTACH IF NOT EXISTS {text(path)} AS {quoted(_alias(path))} (READ_ONLY)"


@final
class HeldDatabases:
    """Database files that are attached while somebody reads them, and only then.

    DuckDB lets a file be open once for writing or many times for reading: a table that stayed open
    would keep everybody else from writing. ``versions`` are those that the files had when they were
    looked at, by path; ``connections`` the list of an engine, whose first one is used.
    """

    def __init__(
        self,
        versions: Iterable[tuple[str, str]],
        connections: "list[duckdb.DuckDBPyConnection]",
    ) -> None:
        self._versions, self._connections = dict(versions), connections
        self._lock = threading.Lock()
        self._holders = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the files open until the end of the block; a DataError says why they cannot be."""
        if not self._versions:
            yield
            return
        with self._lock:
            if not self._holders:
                self._attach()
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self.detach()

    def detach(self) -> None:
        """Let go of the files."""
        import duckdb

        for path in self._versions:
            with suppress(duckdb.Error):
                self._execute(f"DETACH DATABASE IF EXISTS {quoted(_alias(path))}")

    def _attach(self) -> None:
        if not _is_possible(lambda: self._execute(*map(attach, self._versions))):
            self.detach()
            raise DataError(
                "the tables' database is open for writing elsewhere, or gone. Ask again when "
                "whoever writes has closed it."
            )
        # From here on nobody can write to them.
        if any(_version(path) != known for path, known in self._versions.items()):
            self.detach()
            raise DataError("the tables' database was written to just now. Ask again.")

    def _execute(self, *commands: str) -> None:
        for connection in self._connections[:1]:
            with connection.cursor() as cursor:
                for command in commands:
                    cursor.execute(command)


def _is_possible(attaching: Callable[[], object]) -> bool:
    """Attach files, at the latest when others have finished writing."""
    import duckdb

    for pause in (*_PAUSES, None):
        with suppress(duckdb.Error):
            attaching()
            return True
        if pause is not None:
            time.sleep(pause)
    return False


def _version(path: str) -> str | None:
    with suppress(OSError):
        return fingerprint([path], [path], with_footers=False)
    return None


def _alias(path: str) -> str:
    return "database_" + hashlib.sha256(path.encode()).hexdigest()[:16]
