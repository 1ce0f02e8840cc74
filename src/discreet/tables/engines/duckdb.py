"""DuckDB, in this process: the engine that comes with the package."""

import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from discreet._exact import whole
from discreet.errors import DataError
from discreet.privacy import Sensitive
from discreet.tables.engines.compile.statement import compile  # noqa: A004
from discreet.tables.engines.progress import run
from discreet.tables.model.statements import Profile, Statement
from discreet.tables.sources.sources import Sources, attach, open_sources
from discreet.tables.sources.sql_text import quoted, text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["DuckDBEngine"]

# Statistics of Parquet files leave NaN out, and these two believe them: a filter or a clamp on a
# column with NaN can be optimised into a wrong one.
_OPTIMIZERS = "statistics_propagation,filter_pushdown"


@final
class DuckDBEngine:
    """Run statements in a DuckDB of its own, which can read the given tables and nothing else.

    Files and databases are opened for reading only; after the tables are set up no other file, no
    network, no extension and no setting can be reached by any statement. What does not fit into
    ``memory_limit`` (DuckDB's notation, "4GB") is spilled to the folder ``spill``: as it is, not
    encrypted, so choose a disk that may hold the data. If None, it is a temporary folder that only
    this user can read and that is removed at the end. Safe to share between threads.

    >>> import pyarrow as pa
    >>> from discreet.tables.model.bounds import Norm
    >>> from discreet.tables.model.query import Query
    >>> from discreet.tables.model.statements import Cells, Sums
    >>> engine = DuckDBEngine({"people": pa.table({"user_id": [1, 1, 1, 2]})})
    >>> people = Query(rows="SELECT user_id AS unit FROM people", keys=(), values=(),
    ...                aggregates=(), output="", names=(), tables=("people",))
    >>> counted = engine.aggregate(Sums(query=people, cells=(Cells(kind="rows"),), salt="",
    ...                                 bounding=Norm(limit=2, order=1)))
    >>> counted
    Sensitive(<redacted>)
    >>> counted.reveal_without_noise().to_pylist()  # 3 rows: not quite 2 for one, 1 for the other
    [{'cell_0': 3145727}]
    """

    def __init__(
        self,
        sources: Sources | Mapping[str, object],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
    ) -> None:
        self._sources = sources if isinstance(sources, Sources) else open_sources(sources)
        if threads is not None:
            whole(threads, name="threads")
        if spill is None:
            folder = tempfile.mkdtemp(prefix="discreet-")
        else:
            folder = str(Path(spill).resolve())
        self._folder = folder
        # A list that is emptied on closing. At exit an engine may still be held by someone, and a
        # connection that outlives its library is reported as leaked.
        self._connections = [_connected(memory_limit, threads, folder)]
        self._lock = threading.Lock()
        self._close = weakref.finalize(
            self, _closed, self._connections, folder if spill is None else None
        )
        _set_up(self._connections[0], self._sources, folder)

    @property
    def sources(self) -> Sources:
        """The tables that can be read."""
        return self._sources

    def sql(self, statement: Statement, /) -> str:
        """Return the text that :meth:`aggregate` would run, its salt left out."""
        return compile(statement)

    def aggregate(self, statement: Statement, /) -> "Sensitive[pa.Table]":
        """Run one statement. An error's message is the same whatever the data."""
        salt = "" if isinstance(statement, Profile) else statement.salt
        return Sensitive(self._run(compile(statement), salt))

    def close(self) -> None:
        """Close the connection and remove what was spilled."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, query: str, salt: str) -> "pa.Table":
        found = self._attempt(query, salt)
        # Raised out here, it has no __context__: DuckDB's own messages quote values.
        if isinstance(found, str):
            raise DataError(found)
        return found

    def _attempt(self, query: str, salt: str) -> "pa.Table | str":
        """Return the answer, or what to say instead."""
        import duckdb

        with self._lock:
            if not self._connections:
                return _CLOSED
            cursor = self._connections[0].cursor()
        try:
            for name, source in self._sources.items():
                if source.frame is not None:
                    cursor.register(name, source.frame)

            def work() -> "pa.Table":
                (parsed,) = cursor.extract_statements(query)
                parameters = {"salt": salt} if "salt" in parsed.named_parameters else None
                return cursor.sql(query, params=parameters).to_arrow_table()

            return run(work, stop=cursor.interrupt, done=cursor.query_progress)
        except duckdb.OutOfMemoryException:
            return _FULL
        except duckdb.Error as error:
            return _FULL if "No space left" in str(error) else _FAILED
        finally:
            cursor.close()


_FAILED = (
    "the engine could not carry out the statement. Its message is withheld because it may show "
    "values. Check that the tables are still there and have the columns they had."
)
_CLOSED = "the engine is closed. Open the tables again."
_FULL = (
    "the statement needs more memory or disk than it may use. Give the engine a larger "
    "memory_limit, or a folder with more space as spill."
)


def _connected(
    memory_limit: str | None, threads: int | None, folder: str
) -> "duckdb.DuckDBPyConnection":
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "allow_community_extensions": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
        "python_enable_replacements": False,
        "temp_directory": folder,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = threads
    return duckdb.connect(":memory:", config=config)


def _set_up(connection: "duckdb.DuckDBPyConnection", sources: Sources, folder: str) -> None:
    """Show the tables, then shut the door."""
    allowed = sorted({path for source in sources.values() for path in source.paths})
    connection.execute(f"SET allowed_paths = [{', '.join(text(path) for path in allowed)}]")
    connection.execute(f"SET allowed_directories = [{text(folder)}]")
    connection.execute(f"SET disabled_optimizers = {text(_OPTIMIZERS)}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    for name, source in sources.items():
        if source.kind == "database":
            connection.execute(attach(source.paths[0]))
        if source.frame is None:
            columns = ", ".join(quoted(column) for column, _ in source.columns)
            connection.execute(
                f"CREATE VIEW {quoted(name)} AS SELECT {columns} FROM {source.reader}"  # noqa: S608
            )
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _closed(connections: "list[duckdb.DuckDBPyConnection]", folder: str | None) -> None:
    while connections:
        connections.pop().close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
