"""A file of SQLite in which whatever was acknowledged is there after a kill or a power cut."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, final

from discreet.errors import LedgerUnavailable, ParameterError

__all__ = ["StateFile"]

_PATIENCE: Final = 30.0  # seconds that another process may keep the file locked
_ABOUT: Final = "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


@final
class StateFile:
    """Keep one kind of state in a file that nobody but its owner may open.

    What is deleted is overwritten (``secure_delete``) and, with :meth:`forget`, leaves the
    write-ahead log too. What a disk or a backup remembers of its own is out of reach.

    >>> import tempfile
    >>> with StateFile.make(f"{tempfile.mkdtemp()}/a.db", kind="an example",
    ...                     tables=["CREATE TABLE t (n)"], about={"colour": "blue"}) as state:
    ...     with state.write() as database:
    ...         _ = database.execute("INSERT INTO t VALUES (1)")
    ...     state.about("colour"), state.rows("SELECT n FROM t")
    ('blue', [(1,)])
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = RLock()

    @classmethod
    def make(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str,
        tables: Sequence[str],
        about: dict[str, str | bytes],
    ) -> "StateFile":
        """Make a new file; refuse one that is in use. A kill meanwhile leaves an empty one."""
        place = Path(path).resolve()
        with _told(place):
            os.close(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
        state = cls(place, _connected(place))
        try:
            with state.write() as database:
                if database.execute("SELECT 1 FROM sqlite_master").fetchall():
                    raise ParameterError(
                        f"{path} is in use already. Name a file that does not exist.",
                        parameter="path",
                    )
                for statement in (_ABOUT, *tables):
                    database.execute(statement)
                facts = list({"kind": kind, **about}.items())
                database.executemany("INSERT INTO about VALUES (?, ?)", facts)
        except BaseException:
            state.close()
            raise
        return state

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, kind: str) -> "StateFile":
        """Open a file that :meth:`make` made."""
        place = Path(path).resolve()
        if not place.exists():
            raise ParameterError(f"there is no file {path}.", parameter="path")
        state = cls(place, _connected(place))
        found = state.rows("SELECT 1 FROM sqlite_master WHERE name = 'about'")
        if not found or state.about("kind") != kind:
            state.close()
            raise ParameterError(f"{path} is not the state of {kind}.", parameter="path")
        state.forget()  # what a kill kept from it
        return state

    def about(self, name: str) -> Any:
        """Return a fact of those that it was made with, or were put there since."""
        ((value,),) = self.rows("SELECT value FROM about WHERE name = ?", name)
        return value

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return what a question finds."""
        with self._lock, _told(self._path):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction: on the disk afterwards as a whole, or not at all."""
        with self._lock, _told(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def forget(self) -> None:
        """Take out of the write-ahead log, too, what was deleted."""
        with self._lock, _told(self._path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of the file. Calling it twice does no harm."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> "StateFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connected(place: Path) -> sqlite3.Connection:
    with _told(place):
        connection = sqlite3.connect(
            f"{place.as_uri()}?mode=rw",  # a file that is gone must not come back empty
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def _told(place: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        # What SQLite says names tables and columns, never values.
        raise LedgerUnavailable(
            f"the state in {place} did not answer ({error}). Check that the file is there, has "
            "room and may be written, then try again."
        ) from None
