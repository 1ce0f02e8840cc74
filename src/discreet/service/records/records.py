"""Small tables that all workers of a gateway share, in SQLite or PostgreSQL."""

import ctypes
import os
import threading
import weakref
from typing import Any, Self, final

from discreet.errors import LedgerUnavailable
from discreet.service.records.driver import RecordsDriver, Value
from discreet.service.records.postgres import PostgresRecords
from discreet.service.records.sqlite import SqliteRecords
from discreet.service.records.tables import TABLES, VERSION, VERSION_QUERY

__all__ = ["Records"]

IDLE = 8  # connections kept for whoever comes next

# Those that a fork would leave with connections of their parent.
_open_records: "weakref.WeakSet[Records]" = weakref.WeakSet()


def _after_fork() -> None:
    for records in list(_open_records):
        records._leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@final
class Records:
    """Run single statements of portable SQL, from any thread, each in its own transaction.

    What must be atomic is one statement, so nobody ever holds a transaction open.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     records.run("SELECT value FROM shared WHERE name = :name", name="version")
    [('1',)]
    """

    def __init__(self, driver: RecordsDriver) -> None:
        self._driver = driver
        self._is_closed = False
        self._pooling = threading.Lock()
        self._idle: list[Any] = []

    @classmethod
    def open(cls, location: str) -> Self:
        """Open the records in a file or at ``postgresql://...``; make them where there are none.

        A schema can be named: ``postgresql://host/database?schema=name``.

        >>> import tempfile
        >>> Records.open(f"{tempfile.mkdtemp()}/gateway.db").close()
        """
        is_server = location.startswith(("postgresql://", "postgres://"))
        driver = PostgresRecords(location) if is_server else SqliteRecords(location)
        records = cls(driver)
        connection = driver.connect()
        try:
            if not driver.has_tables(connection):
                driver.make(connection, TABLES)
            version = int(driver.run(connection, VERSION_QUERY, {})[0][0])
            if version > VERSION:
                raise LedgerUnavailable(
                    "the gateway's records were made by a newer version of discreet. Nothing was "
                    "written. Install that version, or name another place for them."
                )
        except BaseException:
            connection.close()
            raise
        records._idle.append(connection)
        _open_records.add(records)
        return records

    def run(self, sql: str, /, **parameters: Value) -> list[tuple[Any, ...]]:
        """Run one statement, with parameters written as ``:name``, and return its rows.

        >>> import tempfile
        >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
        ...     records.run("SELECT COUNT(*) FROM jobs WHERE who = :who", who="ana")
        [(0,)]
        """
        connection = self._borrow()
        try:
            rows = self._driver.run(connection, sql, parameters)
        except BaseException:
            connection.close()  # nobody should build on what it may remember
            raise
        with self._pooling:
            if len(self._idle) < IDLE and not self._is_closed:
                self._idle.append(connection)
                return rows
        connection.close()
        return rows

    def close(self) -> None:
        """Let go of all connections. Calling it twice does no harm.

        >>> import tempfile
        >>> records = Records.open(f"{tempfile.mkdtemp()}/gateway.db")
        >>> records.close(), records.close()
        (None, None)
        """
        with self._pooling:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _borrow(self) -> Any:
        while True:
            with self._pooling:
                if self._is_closed:
                    raise LedgerUnavailable("these records are closed. Open them again.")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._driver.connect()
            if self._driver.is_sound(connection):
                return connection
            connection.close()

    def _leave_parent(self) -> None:
        """After a fork: connections and locks that are held belong to the parent."""
        for connection in self._idle:
            # One reference that nobody gives back: if the child closed it, even on its way out,
            # it would say good-bye to a server, or delete a write-ahead log, in the parent's name.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._pooling, self._idle = threading.Lock(), []
