"""Statements in DuckDB: what it may reach, how it is stopped, what it may say."""

import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, final

from discreet._exact import whole
from discreet.errors import DataError
from discreet.privacy import Sensitive
from discreet.tables.engines.compile.keys import KeyTable
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.rows import Compiled
from discreet.tables.engines.compile.statement import compile  # noqa: A004
from discreet.tables.engines.compile.text import quoted, text
from discreet.tables.engines.duckdb import sampling
from discreet.tables.engines.duckdb.databases import HeldDatabases, attach
from discreet.tables.engines.duckdb.dialect import DUCKDB, PORTABLE
from discreet.tables.engines.duckdb.folders import PrivateFolder
from discreet.tables.engines.duckdb.looking import look, reading_of
from discreet.tables.engines.progress import run
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Statement
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from discreet.ledger import TableContent

__all__ = ["DuckDBConnection"]

T = TypeVar("T")

# Statistics of Parquet files leave NaN out, and the first two believe them: a filter or a clamp on
# a column with NaN can be optimised into a wrong one. The third lifts conditions out of joins for
# the second to put back: alone, it would leave each row to meet every other.
_OPTIMIZERS = "statistics_propagation,filter_pushdown,filter_pullup"


@final
class DuckDBConnection:
    """Run statements in a DuckDB of its own, which can read the given tables and nothing else.

    Files and databases are opened for reading only; after the tables are set up no other file, no
    network, no extension and no setting can be reached by any statement. The settings are those of
    :class:`discreet.tables.DuckDBEngine`, which says what a table is, too. Threads may share it.

    >>> import pyarrow as pa
    >>> from discreet.tables.engines import Cells, Norm, Query, Select, Sums
    >>> engine = DuckDBConnection({"people": pa.table({"user_id": [1, 1, 1, 2]})})
    >>> people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
    >>> counted = engine.aggregate(Sums(query=people, cells=(Cells(kind="rows"),), salt="",
    ...                                 bounding=Norm(limit=2, order=1)))
    >>> counted
    Sensitive(<redacted>)
    >>> counted.reveal_without_noise().to_pylist()  # 3 rows: not quite 2 for one, 1 for the other
    [{'cell_0': 3145727}]
    """

    def __init__(
        self,
        tables: Mapping[str, object],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | PathLike[str] | None = None,
        spill_limit: str | None = None,
        portable: bool = False,
    ) -> None:
        sources = {
            name: one if isinstance(one, DataSource) else look(name, one)
            for name, one in tables.items()
        }
        if threads is not None:
            whole(threads, name="threads")
        self._folder = PrivateFolder(spill)
        self._columns = {name: source.columns for name, source in sources.items()}
        declared = {name: dict(columns) for name, columns in self._columns.items()}
        self._dialect = replace(PORTABLE if portable else DUCKDB, tables=declared)
        readings = [reading_of(source) for source in sources.values()]
        self._frames = {one.alias: one.frame for one in readings if one.frame is not None}
        self._files = [one.files for one in readings if one.files]
        # A list that is emptied on closing. At exit an engine may still be held by someone, and a
        # connection that outlives its library is reported as leaked.
        self._connect = partial(
            _opened, sources, memory_limit, threads, self._folder.path, spill_limit
        )
        self._connections = [self._connect()]
        self._databases = HeldDatabases(
            ((reading_of(one).paths[0], one.version) for one in sources.values()
             if one.kind == "database"),
            self._connections,
        )  # fmt: skip
        self._databases.detach()
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, _closed, self._connections, self._folder)

    def sql(self, statement: Statement, /) -> str:
        """Return the text that :meth:`aggregate` would run, its salt left out."""
        return compile(statement, dialect=self._dialect).text

    def aggregate(self, statement: Statement, /) -> "Sensitive[pa.Table]":
        """Run one statement. An error's message is the same whatever the data."""
        made = compile(statement, dialect=self._dialect)
        return Sensitive(self._run(made.text, statement.salt, made.keys))

    @contextmanager
    def batches(
        self, statement: Statement, /, *, rows: int
    ) -> "Iterator[Iterator[Sensitive[pa.Table]]]":
        """Run one statement, and give its result part by part; see StreamingConnection."""
        made = compile(statement, dialect=self._dialect)
        with (
            self._asked(made, statement.salt, lambda it: it.to_arrow_reader(rows)) as (one, reader),
            reader,
        ):
            yield self._parts(one, reader)

    def rows(self, select: Select, /) -> "Sensitive[pa.Table]":
        """Return rows as they are."""
        return Sensitive(self._run(rows_sql(select, self._dialect), ""))

    def holding(self) -> AbstractContextManager[None]:
        """Keep databases open until the end of the block: in between, others may write to them."""
        return self._databases.held()

    def sample(self, table: str, /, *, unit: str | None, salt: str) -> "Sensitive[TableContent]":
        """Return samples of a table by keyed hashes, the same ones from every copy of it."""
        with self.holding():
            return Sensitive(sampling.sampled(self._run, table, self._columns[table], unit, salt))

    def close(self) -> None:
        """Close the connection and remove what was spilled."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, query: str, salt: str, keys: Sequence[KeyTable] = ()) -> "pa.Table":
        made = Compiled(query, tuple(keys))
        with self._asked(made, salt, lambda found: found.to_arrow_table()) as (_, table):
            return table

    @contextmanager
    def _asked(
        self, made: Compiled, salt: str, take: "Callable[[duckdb.DuckDBPyRelation], T]"
    ) -> "Iterator[tuple[duckdb.DuckDBPyConnection, T]]":
        """Give what is taken of an answer, and the cursor that it comes from, while that is open.

        At the latest it comes when whoever overwrites a file has finished.
        """
        with self.holding(), ExitStack() as cursors:
            found = self._attempt(made, salt, take, cursors)
            for pause in _PAUSES:
                # Nothing was released: reading once more costs nobody's privacy.
                if found is not _FAILED or not any(files.has_changed() for files in self._files):
                    break
                time.sleep(pause)
                self._reconnect()
                found = self._attempt(made, salt, take, cursors)
            else:
                found = _CHANGED if found is _FAILED else found
            yield _unless_failed(found)

    def _reconnect(self) -> None:
        """Open the tables anew: where files may be read is settled when a connection is made."""
        import duckdb

        with self._lock, suppress(duckdb.Error, OSError):
            for files in self._files:
                files.restore()
            if self._connections:
                self._connections.append(self._connect())
                self._connections.pop(0).close()

    def _attempt(
        self,
        made: Compiled,
        salt: str,
        take: "Callable[[duckdb.DuckDBPyRelation], T]",
        cursors: ExitStack,
    ) -> "tuple[duckdb.DuckDBPyConnection, T] | str":
        """Return the answer, or what to say instead."""
        with self._lock:
            if not self._connections:
                return _CLOSED
            cursor = self._connections[0].cursor()
        cursors.callback(cursor.close)
        tables = self._frames | {one.name: _arrow(one) for one in made.keys}

        def work() -> "tuple[duckdb.DuckDBPyConnection, T]":
            # Names that are registered are this cursor's alone: no other question sees them.
            for name, frame in tables.items():
                cursor.register(name, frame)
            (parsed,) = cursor.extract_statements(made.text)
            parameters = {"salt": salt} if "salt" in parsed.named_parameters else None
            return cursor, take(cursor.sql(made.text, params=parameters))

        return self._guarded(cursor, work)

    def _parts(
        self, cursor: "duckdb.DuckDBPyConnection", reader: "pa.RecordBatchReader"
    ) -> "Iterator[Sensitive[pa.Table]]":
        import pyarrow as pa

        # Groups come out once the last row went in: no file is read from here on, and what fails
        # would fail again.
        yield Sensitive(reader.schema.empty_table())
        while True:
            found = _unless_failed(self._guarded(cursor, partial(next, reader, None)))
            if found is None:
                return
            yield Sensitive(pa.Table.from_batches([found]))

    def _guarded(self, cursor: "duckdb.DuckDBPyConnection", work: Callable[[], T]) -> T | str:
        """Return what ``work`` does in time, or what to say instead."""
        import duckdb
        import pyarrow as pa

        try:
            return run(work, stop=cursor.interrupt, done=cursor.query_progress)
        except TimeoutError:
            return _LATE
        except (duckdb.OutOfMemoryException, MemoryError):
            return _FULL
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow reads some files
            # A full disk, a quota, a folder that went: whatever it is, it names what was spilled.
            return _FULL if str(self._folder.path) in str(error) else _FAILED


def _unless_failed(found: T | str) -> T:
    # Raised out here, it has no __context__: DuckDB's own messages quote values.
    if isinstance(found, str):
        raise DataError(found)
    return found


def _arrow(keys: KeyTable) -> "pa.Table":
    import pyarrow as pa

    number, *texts = keys.columns
    arrays = {number[0]: pa.array(number[1], pa.int64())}
    return pa.table(arrays | {name: pa.array(column, pa.string()) for name, column in texts})


_FAILED = (
    "the engine could not carry out the statement. Its message is withheld because it may show "
    "values. Check that the tables are still there and have the columns they had."
)
_CHANGED = (
    "the tables' files were written to while they were read, or are gone. Write a new version "
    "beside the old one and move it into its place: questions under way finish on the old one."
)
_PAUSES = (0.05, 0.2, 0.8)  # seconds, for whoever overwrites a file to come to an end
_CLOSED = "the engine is closed. Open the tables again."
_FULL = (
    "the statement needs more memory or disk than it may use or there is. Raise memory or disk in "
    "the resources of the tables, or give the engine a larger memory_limit, or a folder with more "
    "space as spill; or ask about fewer rows, with WHERE."
)
_LATE = (
    "the question took longer than it may, and was stopped. Ask for less at once, or let the "
    "custodian raise seconds in the resources of the tables."
)


def _connected(
    memory_limit: str | None, threads: int | None, folder: Path
) -> "duckdb.DuckDBPyConnection":
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "allow_community_extensions": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
        "python_enable_replacements": False,
        "temp_directory": str(folder),
        # Spill that a killed process leaves is of use to nobody. DuckDB wants to be told that its
        # own random numbers, of which the key is made, are not as good as those of OpenSSL.
        "temp_file_encryption": True,
        "force_mbedtls_unsafe": True,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = threads
    return duckdb.connect(":memory:", config=config)


def _set_up(
    connection: "duckdb.DuckDBPyConnection", sources: Mapping[str, DataSource], folder: Path
) -> None:
    """Show the tables, then shut the door."""
    readings = [reading_of(source) for source in sources.values()]
    allowed = sorted({path for reading in readings for path in reading.paths})
    bases = {reading_of(one).paths[0] for one in sources.values() if one.kind == "database"}
    allowed += [f"{path}.wal" for path in sorted(bases)]
    connection.execute(f"SET allowed_paths = [{', '.join(text(path) for path in allowed)}]")
    # A name of an open file counts as the path of the file, and as itself once that is removed.
    pinned = [str(one.files.folder.path) for one in readings if one.files and one.files.folder]
    folders = ", ".join(text(place) for place in (str(folder), *pinned))
    connection.execute(f"SET allowed_directories = [{folders}]")
    connection.execute(f"SET disabled_optimizers = {text(_OPTIMIZERS)}")
    connection.execute("SET TimeZone = 'UTC'")
    _tell_progress(connection)
    for name, source in sources.items():
        reading = reading_of(source)
        if source.kind == "database":
            connection.execute(attach(reading.paths[0]))
        if reading.alias != name:
            if reading.frame is not None:
                connection.register(reading.alias, reading.frame)
            columns = ", ".join(quoted(column) for column, _ in source.columns)
            connection.execute(
                f"CREATE VIEW {quoted(name)} AS SELECT {columns} FROM {reading.reader}"  # noqa: S608
            )
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _tell_progress(connection: "duckdb.DuckDBPyConnection") -> None:
    """Let long questions say how far they are, without a bar of DuckDB's own."""
    import duckdb

    # In a notebook DuckDB refuses both without ipywidgets, which is no reason to refuse to answer.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")


def _opened(
    sources: Mapping[str, DataSource],
    memory_limit: str | None,
    threads: int | None,
    folder: Path,
    spill_limit: str | None,
) -> "duckdb.DuckDBPyConnection":
    connection = _connected(memory_limit, threads, folder)
    try:
        half = f"{shutil.disk_usage(folder).free >> 21} MiB"
        # Among the settings to connect with, it would be shown but not be kept.
        connection.execute(f"SET max_temp_directory_size = {text(spill_limit or half)}")
        _set_up(connection, sources, folder)
    except BaseException:
        connection.close()
        raise
    return connection


def _closed(connections: "list[duckdb.DuckDBPyConnection]", folder: PrivateFolder) -> None:
    while connections:
        connections.pop().close()
    folder.remove()
