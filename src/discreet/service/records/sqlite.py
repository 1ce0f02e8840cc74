"""Records in one SQLite file, for the workers of one host."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from discreet.service.records.driver import PATIENCE, Value, unavailable

__all__ = ["SqliteRecords"]


@final
class SqliteRecords:
    """Keep records in a file that nobody but its owner may open.

    SQLite gives the write-ahead log and the index beside the file the same mode.
    """

    def __init__(self, path: str) -> None:
        # Where a link leads to: it may dangle, and SQLite would make the file with a mode of its
        # own.
        self._path = Path(path).resolve()
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise unavailable(str(self._path), error.strerror or "no file") from None

    def connect(self) -> sqlite3.Connection:
        with self._told():
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode=rw",  # a file that is gone must not come back empty
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous=FULL")  # a revocation outlasts a power cut
            except BaseException:
                connection.close()
                raise
            return connection

    def is_sound(self, _connection: sqlite3.Connection, /) -> bool:
        return True

    def run(
        self, connection: sqlite3.Connection, sql: str, parameters: Mapping[str, Value], /
    ) -> list[tuple[Any, ...]]:
        with self._told():
            return connection.execute(sql, parameters).fetchall()

    def has_tables(self, connection: sqlite3.Connection, /) -> bool:
        with self._told():
            found = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if found and ("shared",) not in found:
            raise unavailable(str(self._path), "it is another program's database")
        return bool(found)

    def make(self, connection: sqlite3.Connection, statements: Sequence[str], /) -> None:
        with self._told():
            _use_wal(connection)  # which the file remembers
            connection.execute("BEGIN IMMEDIATE")
            if not self.has_tables(connection):
                for statement in statements:
                    connection.execute(statement)
            connection.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # What SQLite says names tables and columns, never values.
            raise unavailable(str(self._path), str(error)) from None


def _use_wal(connection: sqlite3.Connection) -> None:
    """Write through a write-ahead log; SQLite itself does not wait when others switch to it too."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
