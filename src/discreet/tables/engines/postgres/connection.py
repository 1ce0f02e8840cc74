"""Statements in PostgreSQL: one transaction each, stopped in time, and silent about values."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, final

from discreet.errors import DataError
from discreet.privacy import Sensitive
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.statement import compile  # noqa: A004
from discreet.tables.engines.duckdb.sampling import sampled
from discreet.tables.engines.postgres.arrow import as_batch, prepared
from discreet.tables.engines.postgres.dialect import POSTGRES
from discreet.tables.engines.postgres.finishing import Finished, finished
from discreet.tables.engines.postgres.lacking import CASES, lacking, lacking_join, parts_of
from discreet.tables.engines.postgres.looking import looked_up, reading_of
from discreet.tables.engines.postgres.sampling import WORDS
from discreet.tables.engines.postgres.server import LATE, begin, connected, driver, said
from discreet.tables.engines.progress import run
from discreet.tables.model.relation import Joined, Rows, Select
from discreet.tables.model.scalar import Call
from discreet.tables.model.statements import Statement
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

    from discreet.ledger import TableContent

__all__ = ["PostgresConnection"]

T = TypeVar("T")
_LETTERS: Final = "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'"
_AT_ONCE: Final = 50_000  # rows that are fetched together
_IDLE: Final = 4  # connections that are kept for later
_CHANGED: Final = (
    "is another table by now, or has other columns or partitions, than when it was opened. Open "
    "the tables again."
)


@final
class PostgresConnection:
    """Run statements in a database, which read the given tables and nothing else.

    Each is one SELECT in a transaction that only reads, and reads one snapshot; all statements of
    one question, from its charge on, read the same one. What is sent is the text that :meth:`sql`
    returns, with the salt and public keys as parameters. Threads may share it: each statement has
    a connection of its own.

    See :class:`discreet.tables.engines.PostgresEngine`, which opens it.
    """

    def __init__(
        self, sources: Mapping[str, DataSource], *, url: str | None, seconds: float | None
    ) -> None:
        self._readings = {name: reading_of(one) for name, one in sources.items()}
        self._readers = {name: one.reader for name, one in self._readings.items()}
        self._columns = {name: one.columns for name, one in sources.items()}
        declared = {name: dict(columns) for name, columns in self._columns.items()}
        self._dialect = replace(POSTGRES, tables=declared)
        self._url, self._seconds = url, seconds
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        self._is_closed, self._pid = False, os.getpid()
        self._held: ContextVar[psycopg.Connection[Any] | None] = ContextVar("held", default=None)
        self._known: tuple[bool, frozenset[str]] | None = None
        self._let_go = weakref.finalize(self, _closed, self._idle)

    def sql(self, statement: Statement, /) -> str:
        """Return the text that :meth:`aggregate` would run, its salt left out."""
        made = compile(statement, dialect=self._dialect)
        return self._finished(made, "").shown

    def aggregate(self, statement: Statement, /) -> "Sensitive[pa.Table]":
        """Run one statement. An error's message is the same whatever the data."""
        made = compile(statement, dialect=self._dialect)
        asked = self._finished(made, statement.salt)
        return Sensitive(self._carried_out(lambda one: _whole(one, asked)))

    def rows(self, select: Select, /) -> "Sensitive[pa.Table]":
        """Return rows as they are, fetched in batches, so that they are held in memory once."""
        text = rows_sql(select, self._dialect)
        asked = finished(text, self._readers, (), "")
        return Sensitive(self._carried_out(lambda one: _in_batches(one, asked)))

    def _finished(self, made: Any, salt: str) -> Finished:
        return finished(made.text, self._readers, made.keys, salt)

    def sample(self, table: str, /, *, unit: str | None, salt: str) -> "Sensitive[TableContent]":
        """Return samples of a table by keyed hashes, the same ones as of every copy of it."""

        def run_one(text: str, salt: str) -> "pa.Table":
            asked = finished(text, self._readers, (), salt)
            return self._carried_out(lambda one: _whole(one, asked))

        columns = [(name, kind) for name, kind in self._columns[table] if kind != "BLOB"]
        with self.holding():
            return Sensitive(sampled(run_one, table, columns, unit, salt, WORDS))

    def lacks(self, rows: Rows, /) -> str | None:
        """Return what rows ask for that cannot be written for PostgreSQL."""
        for joined in parts_of(rows, Joined):
            if (found := lacking_join(joined)) is not None:
                return found
        for call in parts_of(rows, Call):
            zones = self._facts()[1] if call.function in ("to_zone", "from_zone") else None
            has_letters = call.function not in CASES or self._facts()[0]
            found = lacking(call, has_letters=has_letters, zones=zones)
            if found is not None:
                return found
        return None

    def _facts(self) -> tuple[bool, frozenset[str]]:
        """Ask the server, once, what it knows of letters and time zones."""
        if self._known is None:
            self._known = self._carried_out(_known)
        return self._known

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Read one snapshot until the end of the block, in which no table can be dropped."""
        if self._held.get() is not None:
            yield
            return
        connection = self._began()
        token = self._held.set(connection)
        try:
            yield
        finally:
            self._held.reset(token)
            self._put_back(connection)

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _carried_out(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        with self.holding():
            connection = self._held.get()
            assert connection is not None
            found = _attempt(connection, work)
        # Raised out here, it has no __context__: the server's own messages quote values.
        if isinstance(found, str):
            raise DataError(found)
        return found

    def _began(self) -> "psycopg.Connection[Any]":
        """Return a connection in a transaction in which all tables can be read."""
        if self._is_closed:
            raise DataError("the engine is closed. Open the tables again.")
        while True:
            with self._lock:
                if self._pid != os.getpid():  # they are the parent's
                    self._idle, self._pid = [], os.getpid()
                kept = self._idle.pop() if self._idle else None
            connection = kept or connected(self._url)
            failed = _attempt(connection, self._start)
            if failed is None:
                return connection
            connection.close()
            if kept is None:  # a kept one may have been lost in the meantime
                raise DataError(failed)

    def _start(self, connection: "psycopg.Connection[Any]") -> str | None:
        """Begin, and return what is wrong with the tables, if anything."""
        begin(connection, self._seconds)
        # With this, the snapshot is there, and nobody can drop or alter the tables.
        each = [
            f"(SELECT count(*) FROM ({one} LIMIT 0) AS t)"  # noqa: S608
            for one in self._readers.values()
        ]
        connection.execute(f"SELECT {', '.join(each) or 1}".encode())
        for name, known in self._readings.items():
            if looked_up(connection, known.schema, known.table) != known:
                return f"table {name!r} {_CHANGED}"
        return None

    def _put_back(self, connection: "psycopg.Connection[Any]") -> None:
        with suppress(driver().Error):
            connection.execute(b"ROLLBACK")
            with self._lock:
                if not self._is_closed and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                    return
        connection.close()


def _attempt(
    connection: "psycopg.Connection[Any]", work: "Callable[[psycopg.Connection[Any]], T]"
) -> T | str:
    """Return what comes of it, or what to say instead."""
    try:
        return run(lambda: work(connection), stop=connection.cancel, done=lambda: -1.0)
    except TimeoutError:
        return LATE
    except (driver().Error, OSError, MemoryError, UnicodeError) as error:
        return said(error)


def _whole(connection: "psycopg.Connection[Any]", asked: Finished) -> "pa.Table":
    import pyarrow as pa

    with connection.cursor(binary=True) as cursor:
        prepared(cursor)
        cursor.execute(asked.text.encode(), asked.parameters, prepare=False)
        batches = [as_batch(cursor, cursor.fetchmany(_AT_ONCE))]
        while rows := cursor.fetchmany(_AT_ONCE):
            batches.append(as_batch(cursor, rows))
    return pa.Table.from_batches(batches)


def _known(connection: "psycopg.Connection[Any]") -> tuple[bool, frozenset[str]]:
    letters = connection.execute(_LETTERS).fetchone()
    zones = connection.execute("SELECT name FROM pg_timezone_names").fetchall()
    return letters is not None, frozenset(name for (name,) in zones)


def _in_batches(connection: "psycopg.Connection[Any]", asked: Finished) -> "pa.Table":
    import pyarrow as pa

    with connection.cursor("discreet_rows", binary=True) as cursor:
        prepared(cursor)
        cursor.execute(asked.text.encode(), asked.parameters)
        batches = [as_batch(cursor, cursor.fetchmany(_AT_ONCE))]
        while rows := cursor.fetchmany(_AT_ONCE):
            batches.append(as_batch(cursor, rows))
    return pa.Table.from_batches(batches)


def _closed(connections: "list[psycopg.Connection[Any]]") -> None:
    while connections:
        connections.pop().close()
